// SPDX-License-Identifier: Apache-2.0
#include "pipeline/blocks.hpp"

#include <algorithm>
#include <cstring>

#include "pipeline/probe.hpp"

namespace wirepress {

Status in_block(uint64_t index, const Status& status) {
  const unsigned long long number = index;
  return fail(status.code(), "block %llu: %s", number, status.text());
}

Status reserve(Buffer& buffer, size_t size, Bytes* bytes) {
  std::byte* const memory = buffer.reserve(size);
  if (memory == nullptr) return fail(Code::kNoMemory, "no memory for a block of %zu bytes", size);
  *bytes = {memory, size};
  return {};
}

Draw BlockMaker::draw(size_t i) const {
  const size_t size = header_.dtype == DType::kBytes ? 4 : dtype_size(header_.dtype);
  return {seed_, (first_ + i) * block_size_ / size};
}

int least_workers(const Chain& chain, std::span<const ChainPointer> others) {
  int n = chain.n_workers();
  for (const ChainPointer& other : others) n = std::min(n, other->n_workers());
  return n;
}

int PlainBlocks::n_workers() const { return least_workers(chain_, groups_); }

Status PlainBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  size_t prefix = 0, size = 0;
  const Bytes room = room_for(i, out, payload, &prefix);
  if (room.empty()) return {};
  const Status status = chain_of(i).encode(worker, block(i), draw(i), room, &size);
  return conclude(i, status, prefix, size, payload);
}

bool PlainBlocks::divides() const {
  return chain_.divides() &&
         std::ranges::all_of(groups_, [](const auto& g) { return g->divides(); });
}

Status PlainBlocks::begin_make(int worker, size_t i, Bytes out, double left, Payload* payload,
                               Begun* begun) const {
  size_t size = 0;
  begun->code.device = nullptr;
  const Bytes room = room_for(i, out, payload, &begun->prefix);
  if (room.empty()) return {};
  const Status status =
      chain_of(i).begin_encode(worker, block(i), draw(i), room, left, &size, &begun->code);
  return begun->code.device ? Status() : conclude(i, status, begun->prefix, size, payload);
}

bool PlainBlocks::end_make(int worker, size_t i, Payload* payload, Begun* begun,
                           Status* status) const {
  size_t size = 0;
  if (!chain_of(i).end_encode(worker, draw(i), &size, &begun->code, status)) return false;
  *status = conclude(i, *status, begun->prefix, size, payload);
  return true;
}

Bytes PlainBlocks::room_for(size_t i, Bytes out, Payload* payload, size_t* prefix) const {
  const ConstBytes raw = block(i);
  *payload = {.size = raw.size(), .outside = raw.data()};
  if (raw.empty()) return {};
  Chain& chain = chain_of(i);
  if (probe_ && chain.recipe().lossless() && looks_incompressible(raw)) {
    payload->stored = Stored::kRawByProbe;
    return {};
  }
  const Bytes limited = out.first(std::min(out.size(), code_limit(raw.size())));
  const bool own = &chain != &chain_;
  *prefix = own ? write_own_stages(stages_of(chain.recipe()), limited) : 0;
  return own && *prefix == 0 ? Bytes() : limited.subspan(*prefix);
}

Status PlainBlocks::conclude(size_t i, const Status& status, size_t prefix, size_t size,
                             Payload* payload) const {
  if (status.code() == Code::kDstTooSmall || (status.ok() && size == 0)) return {};
  if (!status.ok()) return in_block(first() + i, status);
  *payload = {.size = prefix + size,
              .content = prefix != 0 ? Content::kOwnCode : Content::kCode,
              .stored = Stored::kCode};
  return {};
}

Status FeedbackBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  *payload = {};
  bool coded = false;
  ConstBytes values = src_.subspan(halves_.size_of(begin(i)), halves_.size_of(raw_size(i)));
  if (halves_) {
    Bytes floats;
    WPR_TRY(reserve(staging_[static_cast<size_t>(worker)].raw, raw_size(i), &floats));
    WPR_TRY(halves_.widen(values, floats));
    values = floats;
  }
  const Status status =
      chain_.encode_feedback(worker, values, residual_.subspan(begin(i), raw_size(i)), draw(i),
                             code_limit(raw_size(i)), out, &payload->size, &coded);
  if (!status.ok()) return in_block(i, status);
  if (coded) *payload = {.size = payload->size, .content = Content::kCode, .stored = Stored::kCode};
  return {};
}

Status StepBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  const ConstBytes before = before_.subspan(begin(i), raw_size(i));
  const ConstBytes after = after_.subspan(begin(i), raw_size(i));
  *payload = {.size = after.size()};
  if (out.size() < after.size())
    return fail(Code::kDstTooSmall, "block %zu: %zu bytes left for %zu", i, out.size(),
                after.size());
  size_t size = 0;
  const Status status =
      chain_.encode_steps(worker, before, after, out.first(code_limit(after.size())), &size);
  if (status.ok() && size != 0) {
    *payload = {.size = size, .content = Content::kCode, .stored = Stored::kCode};
    return {};
  }
  if (!status.ok() && status.code() != Code::kDstTooSmall) return in_block(i, status);
  find_steps(dtype_size(header().dtype), before, after, out.first(after.size()));
  return {};
}

Status SumBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  const Block &a = a_.blocks[i], &b = b_.blocks[i];
  Chain &chain_a = a_.chain_of(i), &chain_b = b_.chain_of(i);
  *payload = {};
  for (const Block* block : {&a, &b}) WPR_TRY(verify_block(header(), *block));
  if (!a.raw && !b.raw && &chain_a == a_.chain.get() && &chain_b == &chain_a) {
    const Status status = chain_a.add(worker, a.payload, b.payload, raw_size(i), draw(i),
                                      code_limit(raw_size(i)), out, &payload->size);
    if (status.ok() && payload->size != 0) {
      payload->content = Content::kCode;
      payload->stored = Stored::kCode;
      return {};
    }
    if (!status.ok() && status.code() != Code::kDstTooSmall && status.code() != Code::kUnsupported)
      return in_block(i, status);
  }
  // No code for this sum: its values.
  payload->size = raw_size(i);
  if (out.size() < raw_size(i))
    return fail(Code::kDstTooSmall, "block %zu: its values need %zu bytes, dst has %zu", i,
                raw_size(i), out.size());
  const Bytes values = out.first(raw_size(i));
  if (a.raw) {
    std::copy(a.payload.begin(), a.payload.end(), values.begin());
  } else if (const Status status = chain_a.decode(worker, a.payload, values); !status.ok()) {
    return in_block(i, status);
  }
  const DType dtype = header().dtype;
  if (b.raw) return add_values(dtype, b.payload, values), Status();
  const Status status = chain_b.decode_add(worker, b.payload, values);
  return status.ok() ? status : in_block(i, status);
}

}  // namespace wirepress
