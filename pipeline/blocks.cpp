// SPDX-License-Identifier: Apache-2.0
// Blocks, on one thread or several. The bytes are the same whichever way.
#include "pipeline/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "pipeline/context.hpp"
#include "pipeline/probe.hpp"

namespace wirepress {
namespace {

unsigned long long ull(uint64_t value) { return value; }

Status in_block(uint64_t index, const Status& status) {
  return fail(status.code(), "block %llu: %s", ull(index), status.text());
}

Status no_room(const BlockMaker& maker, size_t i, size_t needs, size_t has) {
  return fail(Code::kDstTooSmall, "block %llu: needs %zu bytes, dst has %zu left",
              ull(maker.first() + i), needs, has);
}

void count(Stored stored, Stats* stats) {
  ++stats->blocks;
  stats->bypassed_probe += stored == Stored::kRawByProbe;
  stats->bypassed_size += stored == Stored::kRawBySize;
}

// Blocks are encoded out of order into a ring of slots and copied out in order, by whichever worker
// finishes the block that is next; no worker waits unless it is a whole ring ahead.
struct ParallelEncode {
  const BlockMaker& maker;
  Bytes dst;
  std::vector<EncodeSlot>& slots;
  Stats* stats;
  std::mutex mutex{};
  std::condition_variable moved{};
  size_t next = 0;     // block to encode
  size_t drained = 0;  // blocks copied out
  bool draining = false;
  size_t offset = 0;
  Status status{};

  void work(int worker) {
    const size_t n = maker.n_blocks();
    std::unique_lock lock(mutex);
    while (true) {
      moved.wait(lock, [&] { return !status.ok() || next >= n || next < drained + slots.size(); });
      if (!status.ok() || next >= n) return;
      const size_t i = next++;
      EncodeSlot& slot = slots[i % slots.size()];
      lock.unlock();
      Status result = encode(worker, i, &slot);
      lock.lock();
      if (!result.ok()) return stop(result);
      slot.ready = true;
      drain(lock);
    }
  }

  Status encode(int worker, size_t i, EncodeSlot* slot) {
    const size_t size = maker.raw_size(i);
    std::byte* out = slot->code.reserve(size);
    if (!out) return fail(Code::kNoMemory, "no memory for a block of %zu bytes", size);
    return maker.make(worker, i, {out, size}, &slot->payload);
  }

  void stop(const Status& result) {
    if (status.ok()) status = result;
    moved.notify_all();
  }

  void drain(std::unique_lock<std::mutex>& lock) {
    if (draining) return;
    draining = true;
    while (status.ok() && slots[drained % slots.size()].ready) {
      const size_t i = drained;
      EncodeSlot& slot = slots[i % slots.size()];
      lock.unlock();
      Status result = copy_out(i, slot);
      lock.lock();
      slot.ready = false;
      if (!result.ok()) stop(result);
      ++drained;
      moved.notify_all();
    }
    draining = false;
  }

  Status copy_out(size_t i, EncodeSlot& slot) {
    const Header& header = maker.header();
    const bool last = maker.is_last(i);
    const Payload& payload = slot.payload;
    const size_t head = head_size(header, last);
    if (dst.size() - offset < head + payload.size)
      return no_room(maker, i, head + payload.size, dst.size() - offset);
    std::byte* out = dst.data() + offset;
    const void* from = payload.outside ? payload.outside : slot.code.data();
    if (payload.size) std::memcpy(out + head, from, payload.size);
    offset += seal_block(header, maker.first() + i, payload.content, last, maker.raw_size(i),
                         payload.size, out);
    count(payload.stored, stats);
    return {};
  }
};

// Expands blocks, or parts of them where there are fewer blocks than workers.
struct ParallelExpand {
  const Header& header;
  const std::vector<Block>& blocks;
  const std::vector<ChainPointer>& chains;  // one, or one for every block
  const std::vector<ExpandItem>& items;
  Bytes dst;
  bool add;  // to what dst holds
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex{};
  Status status{};
  size_t failed_item = SIZE_MAX;

  Status expand(int worker, const ExpandItem& item) const {
    const Block& block = blocks[item.block];
    const Bytes out = dst.subspan(item.block * header.block_size(), block.raw_size);
    Chain& chain = *chains[chains.size() > 1 ? item.block : 0];
    if (add || block.raw || item.n_parts > 1) {
      WPR_TRY(verify_block(header, block));
      if (block.raw && add) return add_floats(block.payload, out), Status();
      if (block.raw && !out.empty()) std::memcpy(out.data(), block.payload.data(), out.size());
      if (block.raw) return {};
      const Status result = add ? chain.decode_add(worker, block.payload, out)
                                : chain.decode_part(worker, block.payload, item.part, out);
      return result.ok() ? result : in_block(block.index, result);
    }
    // Decoders stand any bytes, so the checksum comes second: the payload then lies in the cache,
    // where hashing costs a third. It has the last word on what is wrong.
    const Status result = chain.decode(worker, block.payload, out);
    WPR_TRY(verify_block(header, block));
    return result.ok() ? result : in_block(block.index, result);
  }

  void work(int worker) {
    for (size_t i; !failed && (i = next++) < items.size();) {
      const Status result = expand(worker, items[i]);
      if (result.ok()) continue;
      failed = true;
      const std::lock_guard lock(mutex);
      if (i < failed_item) {
        failed_item = i;
        status = result;
      }
    }
  }
};

}  // namespace

Draw BlockMaker::draw(size_t i) const {
  const size_t size = header_.dtype == DType::kBytes ? 4 : dtype_size(header_.dtype);
  return {seed_, (first_ + i) * block_size_ / size};
}

Status PlainBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  const ConstBytes block = src_.subspan(begin(i), raw_size(i));
  *payload = {.size = block.size(), .outside = block.data()};
  if (block.empty()) return {};
  Chain& chain = groups_.empty() ? chain_ : *groups_[i / kGroupBlocks];
  if (probe_ && chain.recipe().lossless() && looks_incompressible(block)) {
    payload->stored = Stored::kRawByProbe;
    return {};
  }
  const Bytes limited = out.first(std::min(out.size(), code_limit(block.size())));
  const bool own = &chain != &chain_;
  const size_t prefix = own ? write_own_stages(stages_of(chain.recipe()), limited) : 0;
  if (own && prefix == 0) return {};
  size_t size = 0;
  const Status status = chain.encode(worker, block, draw(i), limited.subspan(prefix), &size);
  if (status.code() == Code::kDstTooSmall || (status.ok() && size == 0)) return {};
  if (!status.ok()) return in_block(first() + i, status);
  *payload = {.size = prefix + size,
              .content = own ? Content::kOwnCode : Content::kCode,
              .stored = Stored::kCode};
  return {};
}

Status FeedbackBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  *payload = {};
  bool coded = false;
  const Status status = chain_.encode_feedback(
      worker, src_.subspan(begin(i), raw_size(i)), residual_.subspan(begin(i), raw_size(i)),
      draw(i), code_limit(raw_size(i)), out, &payload->size, &coded);
  if (!status.ok()) return in_block(i, status);
  if (coded) *payload = {.size = payload->size, .content = Content::kCode, .stored = Stored::kCode};
  return {};
}

Status SumBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  const Term &a = a_[i], &b = b_[i];
  *payload = {};
  for (const Term& term : {a, b}) WPR_TRY(verify_block(header(), term.block));
  if (!a.block.raw && !b.block.raw && a.chain == &chain_ && b.chain == &chain_) {
    const Status status = chain_.add(worker, a.block.payload, b.block.payload, raw_size(i), draw(i),
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
  const Bytes values = out.first(raw_size(i));
  if (a.block.raw) {
    std::copy(a.block.payload.begin(), a.block.payload.end(), values.begin());
  } else if (const Status status = a.chain->decode(worker, a.block.payload, values); !status.ok()) {
    return in_block(i, status);
  }
  if (b.block.raw) return add_floats(b.block.payload, values), Status();
  const Status status = b.chain->decode_add(worker, b.block.payload, values);
  return status.ok() ? status : in_block(i, status);
}

Status Context::make_blocks(const BlockMaker& maker, int threads, Bytes dst, size_t* written) {
  return threads > 1 && maker.n_blocks() > 1 ? make_parallel(maker, threads, dst, written)
                                             : make_serial(maker, dst, written);
}

Status Context::make_serial(const BlockMaker& maker, Bytes dst, size_t* written) {
  const Header& header = maker.header();
  size_t offset = 0;
  for (size_t i = 0; i < maker.n_blocks(); ++i) {
    const bool last = maker.is_last(i);
    const size_t head = head_size(header, last), room = dst.size() - offset;
    if (room < head) return no_room(maker, i, head, room);
    const Bytes out = dst.subspan(offset + head);
    Payload payload;
    WPR_TRY(maker.make(0, i, out, &payload));
    if (payload.outside) {
      if (out.size() < payload.size) return no_room(maker, i, head + payload.size, room);
      if (payload.size) std::memcpy(out.data(), payload.outside, payload.size);
    }
    offset += seal_block(header, maker.first() + i, payload.content, last, maker.raw_size(i),
                         payload.size, dst.data() + offset);
    count(payload.stored, &stats_);
  }
  *written = offset;
  return {};
}

Status Context::make_parallel(const BlockMaker& maker, int threads, Bytes dst, size_t* written) {
  const size_t n_slots = 2 * static_cast<size_t>(threads);
  const int workers = static_cast<int>(std::min(static_cast<size_t>(threads), maker.n_blocks()));
  if (slots_.size() < n_slots) slots_ = std::vector<EncodeSlot>(n_slots);
  for (EncodeSlot& slot : slots_) slot.ready = false;  // one may be left over from a failure
  ParallelEncode job{.maker = maker, .dst = dst, .slots = slots_, .stats = &stats_};
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelEncode*>(it)->work(worker); }, &job);
  WPR_TRY(job.status);
  *written = job.offset;
  return {};
}

// The chain of every block where one has a recipe of its own; else the frame's alone. Takes the
// recipes off the payloads.
Status Context::find_chains(const Header& header, const ChainPointer& chain, int threads,
                            std::vector<Block>* blocks, std::vector<ChainPointer>* chains) {
  chains->assign(1, chain);
  if (std::ranges::none_of(*blocks, &Block::own)) return {};
  chains->assign(blocks->size(), chain);
  std::vector<std::pair<Stages, ChainPointer>> known;
  for (size_t i = 0; i < blocks->size(); ++i) {
    Block& block = (*blocks)[i];
    if (!block.own) continue;
    Stages stages;
    if (const Status status = read_own_stages(block, &stages, &block.payload); !status.ok()) {
      WPR_TRY(verify_block(header, block));
      return status;
    }
    auto it = std::ranges::find_if(known, [&](const auto& k) { return same(k.first, stages); });
    if (it == known.end()) {
      if (known.size() == kMaxOwnRecipes)
        return fail(Code::kUnsupported, "block %llu: more than %d recipes in a frame",
                    ull(block.index), kMaxOwnRecipes);
      Recipe recipe;
      ChainPointer own;
      const Status status = recipe_of(stages, header, options_.get("engine"), &recipe);
      if (!status.ok()) {
        WPR_TRY(verify_block(header, block));
        return in_block(block.index, status);
      }
      WPR_TRY(chain_for(recipe, threads, &own));
      known.emplace_back(stages, own);
      it = known.end() - 1;
    }
    (*chains)[i] = it->second;
  }
  return {};
}

Status Context::expand_blocks(const Header& header, const ChainPointer& chain, int n_threads,
                              bool add, Bytes dst) {
  WPR_TRY(find_chains(header, chain, n_threads, &blocks_, &block_chains_));
  items_.clear();
  const size_t threads = static_cast<size_t>(n_threads);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const bool whole = add || block.raw || blocks_.size() >= threads;
    const size_t n = whole ? 1
                           : block_chains_[block_chains_.size() > 1 ? i : 0]->parts(block.payload,
                                                                                    block.raw_size);
    for (size_t part = 0; part < n; ++part) items_.push_back({i, part, n});
  }
  ParallelExpand job{.header = header,
                     .blocks = blocks_,
                     .chains = block_chains_,
                     .items = items_,
                     .dst = dst,
                     .add = add};
  const int workers = static_cast<int>(std::min(threads, items_.size()));
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelExpand*>(it)->work(worker); }, &job);
  return job.status;
}

}  // namespace wirepress
