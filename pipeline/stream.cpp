// SPDX-License-Identifier: Apache-2.0
// Frames piece by piece, in constant memory.
#include <algorithm>
#include <cstring>

#include "pipeline/context.hpp"

namespace wirepress {
namespace {

// Blocks of a batch: enough that every worker has two, so that uneven blocks even out; whole groups
// where there is something to choose for them.
size_t batch_blocks(int threads, bool groups) {
  const size_t n = threads > 1 ? 2 * static_cast<size_t>(threads) : 1;
  return groups ? (n + kGroupBlocks - 1) / kGroupBlocks * kGroupBlocks : n;
}

}  // namespace

// For the stream that is open, and for one that begins with the options as they are.
size_t Context::stream_bound(uint64_t n) const {
  const auto bound = [n](uint64_t block_size, uint64_t batch) {
    const uint64_t raw = n + batch;
    return kMaxHeader + raw + 8 * (raw / block_size + 2) + 4;
  };
  const uint64_t block_size = options_.number("block_size");
  const uint64_t next = bound(block_size, batch_blocks(n_workers(), wants_auto()) * block_size);
  return stream_.active ? std::max(next, bound(stream_.header.block_size(), stream_.batch)) : next;
}

Status Context::stream_begin(DType dtype, Bytes dst, size_t* written) {
  stream_.active = false;
  Header header;
  header.streamed = true;
  header.dtype = dtype;
  header.raw_size = kUnknownSize;
  WPR_TRY(settle());
  Recipe recipe;
  stream_.chooses = wants_auto();
  if (stream_.chooses)
    WPR_TRY(begin_auto(&stream_.choice, &header, &recipe));
  else
    WPR_TRY(recipe_for(header, &recipe));
  WPR_TRY(begin_frame(recipe, &header, &stream_.chain, dst));
  stream_.settings = settings_;
  stream_.header = header;
  stream_.index = 0;
  stream_.n_pending = 0;
  stream_.batch = batch_blocks(settings_.threads, stream_.chooses) << header.block_log;
  if (!stream_.pending.reserve(stream_.batch))
    return fail(Code::kNoMemory, "no memory for a batch of %zu bytes", stream_.batch);
  stream_.active = true;
  *written = header.size;
  stats_.wire_bytes += header.size;
  return {};
}

// Compresses the first n bytes that wait.
Status Context::stream_batch(size_t n, bool end, Bytes dst, size_t* written) {
  const ConstBytes src(stream_.pending.data(), n);
  CompressStream& s = stream_;
  if (s.chooses) WPR_TRY(choose_groups(s.header, s.settings.threads, src, &s.choice));
  const std::span<const ChainPointer> groups(s.choice.groups);
  const PlainBlocks blocks(s.header, s.settings, *s.chain, s.chooses ? groups : groups.first(0),
                           s.index, src, end);
  return make_blocks(blocks, s.settings.threads, dst, written);
}

Status Context::stream_update(ConstBytes src, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (!stream_.active) return fail(Code::kParameter, "stream_update without stream_begin");
  CompressStream& s = stream_;
  const size_t n = src.size();
  size_t offset = 0;
  // A full batch is written only when more bytes follow it: the last block must be marked.
  while (!src.empty()) {
    if (s.n_pending == s.batch) {
      size_t size;
      const Status status = stream_batch(s.batch, false, dst.subspan(offset), &size);
      if (!status.ok()) return s.active = false, status;
      offset += size;
      s.index += s.batch >> s.header.block_log;
      s.n_pending = 0;
    }
    const size_t part = std::min(src.size(), s.batch - s.n_pending);
    std::memcpy(s.pending.data() + s.n_pending, src.data(), part);
    s.n_pending += part;
    src = src.subspan(part);
  }
  *written = offset;
  stats_.raw_bytes += n;
  stats_.wire_bytes += offset;
  return {};
}

Status Context::stream_end(Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (!stream_.active) return fail(Code::kParameter, "stream_end without stream_begin");
  stream_.active = false;
  WPR_TRY(stream_batch(stream_.n_pending, true, dst, written));
  stats_.wire_bytes += *written;
  return {};
}

Status Context::expand_begin() {
  WPR_TRY(settle());
  ExpandStream& e = expand_;
  e.expect = Expect::kHeader;
  e.threads = settings_.threads;
  e.index = e.n_raw = 0;
  e.n_input = e.n_output = e.taken = e.block_begin = 0;
  e.need = 1;
  e.n_blocks = 0;
  e.last = false;
  return {};
}

// Tries the header with the bytes gathered so far.
Status Context::expand_header() {
  ExpandStream& e = expand_;
  const Status status = read_header({e.input.data(), e.n_input}, &e.header);
  if (status.code() == Code::kTruncated) {
    ++e.need;  // a header is short, and must not swallow bytes that belong to what follows
    return {};
  }
  WPR_TRY(status);
  Recipe recipe;
  WPR_TRY(recipe_of(e.header.stages, e.header, options_.get("engine"), &recipe));
  WPR_TRY(chain_for(recipe, e.threads, &e.chain));
  e.n_input = e.block_begin = 0;
  e.need = 4;
  e.last = e.header.n_blocks() == 0;
  e.expect = e.last ? Expect::kEnd : Expect::kBlocks;
  return {};
}

// Looks at the block being gathered; *batch_full when its end completes a batch.
Status Context::expand_block(bool* batch_full) {
  ExpandStream& e = expand_;
  const ConstBytes gathered(e.input.data() + e.block_begin, e.n_input - e.block_begin);
  BlockReader reader(e.header, gathered, e.index);
  Block block;
  const Status status = reader.next(&block);
  if (status.code() == Code::kTruncated) {
    e.need = e.block_begin + reader.needs();
    return {};
  }
  WPR_TRY(status);
  ++e.n_blocks;
  e.block_begin = e.n_input - reader.rest().size();
  e.need = e.block_begin + 4;
  ++e.index;
  e.last = reader.done();
  *batch_full = e.last || e.n_blocks == batch_blocks(e.threads, false);
  return {};
}

// Expands the whole blocks in input to output.
Status Context::expand_batch() {
  ExpandStream& e = expand_;
  blocks_.clear();
  size_t raw = 0;
  BlockReader reader(e.header, {e.input.data(), e.n_input}, e.index - e.n_blocks);
  while (blocks_.size() < e.n_blocks) {
    Block block;
    WPR_TRY(reader.next(&block));
    blocks_.push_back(block);
    raw += block.raw_size;
  }
  std::byte* out = e.output.reserve(raw);
  if (!out) return fail(Code::kNoMemory, "no memory for %zu bytes of blocks", raw);
  WPR_TRY(expand_blocks(e.header, e.chain, e.threads, false, {out, raw}));
  e.n_output = raw;
  e.taken = 0;
  e.n_raw += raw;
  e.n_blocks = 0;
  e.n_input = e.block_begin = 0;
  e.need = 4;
  if (e.last) e.expect = Expect::kEnd;
  return {};
}

Status Context::expand_update(ConstBytes src, size_t* consumed, Bytes dst, size_t* written,
                              bool* done) {
  const Stopwatch watch(&stats_.decompress_seconds);
  ExpandStream& e = expand_;
  if (e.expect == Expect::kNothing)
    return fail(Code::kParameter, "expand_update without expand_begin");
  size_t used = 0, out = 0;
  Status status;
  while (status.ok()) {
    const size_t ready = std::min(e.n_output - e.taken, dst.size() - out);
    if (ready) std::memcpy(dst.data() + out, e.output.data() + e.taken, ready);
    e.taken += ready;
    out += ready;
    if (e.taken < e.n_output || e.expect == Expect::kEnd) break;
    const size_t part = std::min(e.need - e.n_input, src.size() - used);
    if (part == 0) break;
    // What a block claims to need is believed only as far as bytes really come: the buffer grows by
    // doubling, not to the claim.
    const size_t room = std::min(e.need, std::max<size_t>(2 * e.n_input, 1 << 16) + part);
    if (!e.input.reserve(std::max(room, e.n_input + part), e.n_input)) {
      status = fail(Code::kNoMemory, "no memory for %zu bytes of input", e.need);
      break;
    }
    std::memcpy(e.input.data() + e.n_input, src.data() + used, part);
    used += part;
    e.n_input += part;
    if (e.n_input < e.need) break;
    if (e.expect == Expect::kHeader) {
      status = expand_header();
      continue;
    }
    bool batch_full = false;
    status = expand_block(&batch_full);
    if (status.ok() && batch_full) status = expand_batch();
  }
  if (!status.ok()) {
    e.expect = Expect::kNothing;
    return status;
  }
  *consumed = used;
  *written = out;
  *done = e.expect == Expect::kEnd && e.taken == e.n_output;
  stats_.expanded_bytes += out;
  return {};
}

}  // namespace wirepress
