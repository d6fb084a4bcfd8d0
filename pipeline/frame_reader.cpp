// SPDX-License-Identifier: Apache-2.0
#include "pipeline/frame_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/memory.hpp"
#include "pipeline/device_wait.hpp"

namespace wirepress {
namespace {

unsigned long long ull(uint64_t value) { return value; }

// Expands blocks, or parts of them where there are fewer blocks than workers.
struct ParallelExpand {
  const ParsedFrame& frame;
  const std::vector<ExpandItem>& items;
  Bytes dst;
  Into into;
  int workers;
  // Where dst lies on a device, or has halves:
  const std::vector<DeviceChain>& there;
  std::vector<Staging>& staging;
  const Interrupt& interrupt;
  DeviceShare share{};
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex{};
  Status status{};
  size_t failed_item = SIZE_MAX;

  Status expand(int worker, const ExpandItem& item) {
    const Block& block = frame.blocks[item.block];
    const Bytes out = this->out(item);
    Chain& chain = frame.chain_of(item.block);
    if (frame.place.on_device()) return expand_there(worker, block, item.block, out);
    if (frame.halves) {
      WPR_TRY(verify_block(frame.header, block));
      const Status result = add_to_halves(worker, block, chain, out);
      return result.ok() ? result : in_block(block.index, result);
    }
    if (into != Into::kPlace || block.raw || item.n_parts > 1) {
      WPR_TRY(verify_block(frame.header, block));
      if (block.raw) return use_raw(block, out), Status();
      const Status result = into == Into::kSum ? chain.decode_add(worker, block.payload, out)
                            : into == Into::kMove
                                ? chain.decode_steps(worker, block.payload, out)
                                : chain.decode_part(worker, block.payload, item.part, out);
      return result.ok() ? result : in_block(block.index, result);
    }
    // Decoders stand any bytes, so the checksum comes second: the payload then lies in the cache,
    // where hashing costs a third. It has the last word on what is wrong.
    const Status result = chain.decode(worker, block.payload, out, is_past_caches(dst.size()));
    WPR_TRY(verify_block(frame.header, block));
    return result.ok() ? result : in_block(block.index, result);
  }

  Status expand_there(int worker, const Block& block, size_t i, Bytes out) {
    WPR_TRY(verify_block(frame.header, block));
    if (out.empty()) return {};
    if (block.raw && into == Into::kPlace) return frame.place.upload(out.data(), block.payload);
    const DeviceChain& device = there[there.size() == 1 ? 0 : i];
    const char* why = !device.chain  ? device.why
                      : frame.halves ? "the device's kernels add to float32"
                                     : "the cores add values that were not coded";
    if (device.chain && !block.raw && !frame.halves) {
      const bool adds = into == Into::kSum;
      why = "the device's kernel does not add";
      if (!adds || device.chain->can_decode_add()) {
        const Status result = adds ? device.chain->decode_add(worker, block.payload, out)
                                   : device.chain->decode(worker, block.payload, out);
        if (result.ok()) return share.device(out.size()), result;
        // What is partly added to is lost.
        if (adds || !cores_take_over(result)) return in_block(block.index, result);
        why = taken_over(result);
      }
    }
    share.cores(block.raw_size, why);
    const Status result = expand_on_cores(worker, block, i, out);
    return result.ok() ? result : in_block(block.index, result);
  }

  Status expand_on_cores(int worker, const Block& block, size_t i, Bytes out) {
    Bytes here;
    Staging& own = staging[static_cast<size_t>(worker)];
    WPR_TRY(reserve(frame.halves ? own.halves : own.raw, out.size(), &here));
    if (into == Into::kSum) WPR_TRY(frame.place.download(here, out.data()));
    Chain& chain = frame.chain_of(i);
    if (frame.halves)
      WPR_TRY(add_to_halves(worker, block, chain, here));
    else if (block.raw)
      use_raw(block, here);
    else
      WPR_TRY(into == Into::kSum ? chain.decode_add(worker, block.payload, here)
                                 : chain.decode(worker, block.payload, here));
    return frame.place.upload(out.data(), here);
  }

  // The sum is rounded once, whatever the steps of the codec are.
  Status add_to_halves(int worker, const Block& block, Chain& chain, Bytes out) const {
    Bytes sum;
    WPR_TRY(reserve(staging[static_cast<size_t>(worker)].raw, block.raw_size, &sum));
    const Bytes values = sum.first(frame.halves.raw_size_of(out.size()));
    WPR_TRY(frame.halves.widen(out, values));
    if (block.raw)
      use_raw(block, sum);
    else
      WPR_TRY(chain.decode_add(worker, block.payload, sum));
    return frame.halves.narrow(values, out);
  }

  void use_raw(const Block& block, Bytes out) const {
    if (into == Into::kSum) return add_floats(block.payload, out);
    if (into == Into::kMove)
      return wirepress::take_steps(dtype_size(frame.header.dtype), block.payload, out);
    if (!out.empty()) std::memcpy(out.data(), block.payload.data(), out.size());
  }

  void work(int worker) {
    std::vector<Begun> begun;
    for (size_t i; goes_on(worker) && (i = next++) < items.size();) {
      while (!begun.empty() && ends(worker, &begun)) continue;
      if (begins(i) && has_room(&begun))
        begin(worker, i, &begun);
      else
        note(i, expand(worker, items[i]));
    }
    for (DeviceWait wait(workers == 1); !begun.empty();)
      ends(worker, &begun) ? wait.answered() : wait.turn();
  }

  // Worker 0 is the thread that made the call, which may be ended between blocks.
  bool goes_on(int worker) {
    if (worker == 0 && items.size() > 1) note(items.size(), interrupt.ask());
    return !failed;
  }

  // Blocks that a device may have meanwhile, with the last one begun at the end.
  struct Begun {
    size_t item;
    Chain::Begun decode;
  };

  bool begins(size_t i) const {
    const ExpandItem& item = items[i];
    return into == Into::kPlace && !frame.place.on_device() && !frame.blocks[item.block].raw &&
           item.n_parts == 1 && items.size() > 1 &&
           frame.chain_of(item.block).may_begin(frame.blocks[item.block].raw_size, left(i));
  }

  // As of Kernel::begin_decode.
  double left(size_t i) const {
    const size_t block = items[i].block, bytes = dst.size() - block * frame.header.block_size();
    return static_cast<double>(bytes) / static_cast<double>(frame.blocks[block].raw_size) / workers;
  }

  Bytes out(const ExpandItem& item) const {
    return dst.subspan(frame.halves.size_of(item.block * frame.header.block_size()),
                       frame.halves.size_of(frame.blocks[item.block].raw_size));
  }

  void begin(int worker, size_t i, std::vector<Begun>* begun) {
    const Block& block = frame.blocks[items[i].block];
    Chain& chain = frame.chain_of(items[i].block);
    Status result = verify_block(frame.header, block);
    if (!result.ok()) return note(i, result);
    begun->push_back({.item = i, .decode = {}});
    result =
        chain.begin_decode(worker, block.payload, out(items[i]), left(i), &begun->back().decode);
    if (begun->back().decode.device) return;
    begun->pop_back();
    note(i, result.ok() ? result : in_block(block.index, result));
  }

  // The oldest one. false: not yet.
  bool ends(int worker, std::vector<Begun>* begun) {
    Begun& oldest = begun->front();
    const Block& block = frame.blocks[items[oldest.item].block];
    Status result;
    if (!frame.chain_of(items[oldest.item].block)
             .end_decode(worker, block.payload, out(items[oldest.item]), &oldest.decode, &result))
      return false;
    note(oldest.item, result.ok() ? result : in_block(block.index, result));
    begun->erase(begun->begin());
    return true;
  }

  void note(size_t i, const Status& result) {
    if (result.ok()) return;
    failed = true;
    const std::lock_guard lock(mutex);
    if (i >= failed_item) return;
    failed_item = i;
    status = result;
  }
};

}  // namespace

Status FrameReader::check_room(uint64_t raw_size, size_t room) {
  if (raw_size <= room) return {};
  return fail(Code::kDstTooSmall, "the frame holds %llu bytes, dst has %zu", ull(raw_size), room);
}

Status FrameReader::check_sum(const Header& header) {
  if (header.dtype == DType::kFloat32) return {};
  return fail(Code::kParameter, "only float32 can be added, the frame holds %s",
              dtype_name(header.dtype));
}

Status FrameReader::inspect(ConstBytes bytes, Header* header, std::string* recipe) {
  Header result;
  WPR_TRY(read_header(bytes, &result));
  Recipe steps;
  WPR_TRY(recipe_of(result.stages, result, "auto", &steps));
  *recipe = recipe_text(steps);
  *header = result;
  return {};
}

Status FrameReader::find_chain(int threads, ParsedFrame* frame) {
  const Header& header = frame->header;
  return chains_.for_stages(header.stages, header, engine_of(*frame), threads, &frame->chain);
}

const char* FrameReader::engine_of(const ParsedFrame& frame) const {
  return frame.place.on_device() ? cores_engine(settings_.engine()) : settings_.engine();
}

void FrameReader::find_device_chains(const ParsedFrame& frame, int threads) {
  const auto find = [&](const Chain& cores) {
    return device_chain(chains_, cores.recipe(), frame.place, settings_.engine(), threads);
  };
  there_.clear();
  if (frame.own.empty()) return there_.push_back(find(*frame.chain));
  for (size_t i = 0; i < frame.own.size(); ++i) {
    const auto first = std::ranges::find(frame.own, frame.own[i]) - frame.own.begin();
    const auto known = static_cast<size_t>(first);
    there_.push_back(known < i ? there_[known] : find(*frame.own[i]));
  }
}

Status FrameReader::parse(ConstBytes bytes, ParsedFrame* frame) {
  WPR_TRY(find_chain(settings_.blocks().threads, frame));
  return read_blocks(frame->header, bytes, &frame->blocks, &frame->raw_size);
}

Status FrameReader::find_own_chains(int threads, ParsedFrame* frame) {
  auto& [header, raw_size, blocks, chain, place, halves, own] = *frame;
  own.clear();
  if (std::ranges::none_of(blocks, &Block::own)) return {};
  own.assign(blocks.size(), chain);
  std::vector<std::pair<Stages, ChainPointer>> known;
  for (size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
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
      ChainPointer found;
      const Status status = chains_.for_stages(stages, header, engine_of(*frame), threads, &found);
      if (!status.ok()) {
        WPR_TRY(verify_block(header, block));
        return in_block(block.index, status);
      }
      known.emplace_back(stages, found);
      it = known.end() - 1;
    }
    own[i] = it->second;
  }
  return {};
}

Status FrameReader::expand_blocks(ParsedFrame* frame, int n_threads, Into into, Bytes dst) {
  WPR_TRY(find_own_chains(n_threads, frame));
  items_.clear();
  const std::vector<Block>& blocks = frame->blocks;
  const bool on_device = frame->place.on_device();
  there_.clear();
  if (on_device) find_device_chains(*frame, n_threads);
  const auto threads =
      static_cast<size_t>(std::min(n_threads, settings_.decoders(frame->n_workers())));
  if (on_device || frame->halves) staging_.resize(std::max(staging_.size(), threads));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const bool whole = into != Into::kPlace || on_device || block.raw || blocks.size() >= threads;
    const size_t n = whole ? 1 : frame->chain_of(i).parts(block.payload, block.raw_size);
    for (size_t part = 0; part < n; ++part) items_.push_back({i, part, n});
  }
  const int workers = static_cast<int>(std::min(threads, items_.size()));
  ParallelExpand job{.frame = *frame,
                     .items = items_,
                     .dst = dst,
                     .into = into,
                     .workers = workers,
                     .there = there_,
                     .staging = staging_,
                     .interrupt = interrupt_};
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelExpand*>(it)->work(worker); }, &job);
  if (on_device)
    job.share.note(frame->place);
  else if (job.status.ok())
    count_kernels(*frame);
  there_.clear();
  frame->chain->note_failures();
  for (const ChainPointer& own : frame->own) own->note_failures();
  return job.status;
}

void FrameReader::count_kernels(const ParsedFrame& frame) const {
  const bool others = frame.own.empty() && settings_.lacks_kernel(frame.chain->recipe());
  if (frame.own.empty() && !others) return;
  for (size_t i = 0; i < frame.blocks.size(); ++i)
    if (!frame.blocks[i].raw && (others || settings_.lacks_kernel(frame.chain_of(i).recipe())))
      count_other_kernels(frame.blocks[i].raw_size);
}

Status FrameReader::decompress(ConstBytes bytes, Bytes dst, size_t* written, const Place& place) {
  return expand_frame(bytes, Into::kPlace, dst, {}, written, place);
}

Status FrameReader::decompress_add(ConstBytes bytes, Bytes dst, const Halves& halves,
                                   size_t* n_values, const Place& place) {
  size_t raw_size = 0;
  WPR_TRY(expand_frame(bytes, Into::kSum, dst, halves, &raw_size, place));
  *n_values = raw_size / 4;
  return {};
}

Status FrameReader::take_steps(ConstBytes bytes, Bytes words, size_t* written) {
  return expand_frame(bytes, Into::kMove, words, {}, written, {});
}

Status FrameReader::expand_frame(ConstBytes bytes, Into into, Bytes dst, const Halves& halves,
                                 size_t* raw_size, const Place& place) {
  const Stopwatch watch(&stats_.decompress_seconds);
  Header& header = frame_.header;
  frame_.place = place;
  frame_.halves = halves;
  WPR_TRY(read_header(bytes, &header));
  if (into == Into::kMove && (!can_add_values(header.dtype) || header.dtype == DType::kFloat32))
    return fail(Code::kParameter, "steps are integers of 8, 16 or 32 bits, the frame holds %s",
                dtype_name(header.dtype));
  if (into == Into::kSum) WPR_TRY(check_sum(header));
  const size_t room = halves.raw_size_of(dst.size());
  if (!header.streamed) WPR_TRY(check_room(header.raw_size, room));
  WPR_TRY(parse(bytes, &frame_));
  WPR_TRY(check_room(frame_.raw_size, room));
  if (into == Into::kMove && frame_.raw_size % dtype_size(header.dtype) != 0)
    return fail(Code::kParameter, "the frame's %llu bytes are not whole steps of %s",
                ull(frame_.raw_size), dtype_name(header.dtype));
  // What a caller says of more room may be wrong.
  dst = dst.first(halves.size_of(frame_.raw_size));
  WPR_TRY(check_apart("src", bytes, into == Into::kMove ? "words" : "dst", dst));
  const int threads = settings_.blocks().threads;
  WPR_TRY(expand_blocks(&frame_, threads, into, dst));
  *raw_size = frame_.raw_size;
  stats_.expanded_bytes += frame_.raw_size;
  return {};
}

Status FrameReader::decompress_range(ConstBytes bytes, uint64_t offset, Bytes dst) {
  const Stopwatch watch(&stats_.decompress_seconds);
  frame_.place = {};
  frame_.halves = {};
  WPR_TRY(read_header(bytes, &frame_.header));
  WPR_TRY(parse(bytes, &frame_));
  const uint64_t raw_size = frame_.raw_size;
  if (offset > raw_size || dst.size() > raw_size - offset) {
    const uint64_t end = offset + std::min<uint64_t>(dst.size(), UINT64_MAX - offset);
    return fail(Code::kParameter, "bytes %llu..%llu of a frame that holds %llu", ull(offset),
                ull(end), ull(raw_size));
  }
  if (dst.empty()) return {};
  WPR_TRY(check_apart("src", bytes, "dst", dst));
  const std::vector<Block> all = std::move(frame_.blocks);
  const uint64_t end = offset + dst.size();
  const uint64_t block_size = frame_.header.block_size();
  for (uint64_t index = offset / block_size; index * block_size < end; ++index) {
    WPR_TRY(interrupt_.ask());
    const uint64_t begin = index * block_size;
    const Block& block = all[index];
    std::byte* scratch = partial_.reserve(block.raw_size);
    if (!scratch)
      return fail(Code::kNoMemory, "no memory for a block of %llu bytes", ull(block.raw_size));
    frame_.blocks.assign(1, block);
    WPR_TRY(expand_blocks(&frame_, settings_.blocks().threads, Into::kPlace,
                          {scratch, block.raw_size}));
    const uint64_t from = std::max(begin, offset), to = std::min(begin + block.raw_size, end);
    std::memcpy(dst.data() + (from - offset), scratch + (from - begin), to - from);
  }
  stats_.expanded_bytes += dst.size();
  return {};
}

}  // namespace wirepress
