// SPDX-License-Identifier: Apache-2.0
#include "pipeline/frame_writer.hpp"

#include <algorithm>
#include <cstring>

#include "pipeline/device_wait.hpp"

namespace wirepress {
namespace {

Status no_room(const BlockMaker& maker, size_t i, size_t needs, size_t has) {
  return fail(Code::kDstTooSmall, "block %llu: needs %zu bytes, dst has %zu left",
              static_cast<unsigned long long>(maker.first() + i), needs, has);
}

void count(Stored stored, Stats* stats) {
  ++stats->blocks;
  stats->bypassed_probe += stored == Stored::kRawByProbe;
  stats->bypassed_size += stored == Stored::kRawBySize;
}

// Blocks are encoded out of order into a ring of slots and copied out in order, by whichever worker
// finishes the block that is next; no worker waits unless it is a whole ring ahead, or a device has
// the last of its blocks.
struct ParallelEncode {
  const BlockMaker& maker;
  Bytes dst;
  std::vector<EncodeSlot>& slots;
  int workers;
  Divided divided;
  Stats* stats;
  const Interrupt& interrupt;
  std::mutex mutex{};
  std::condition_variable moved{};
  size_t next = 0;     // block to encode
  size_t drained = 0;  // blocks copied out
  bool draining = false;
  size_t offset = 0;
  Status status{};

  // A worker whose blocks a device has comes back for the oldest between two others.
  void work(int worker) {
    std::vector<size_t> begun;
    DeviceWait wait(workers == 1);
    while (true) {
      while (!begun.empty() && ends(worker, begun.front())) {
        begun.erase(begun.begin());
        wait.answered();
      }
      if (worker == 0) look_for_interrupt();
      size_t i = 0;
      if (take(begun.empty(), &i)) {
        const bool may_begin = divided == Divided::kByWaiting ||
                               (divided == Divided::kByBeginning && has_room(&begun));
        if (encode(worker, i, may_begin)) begun.push_back(i);
      } else if (begun.empty()) {
        return;
      } else {
        wait.turn();
      }
    }
  }

  // Worker 0 is the thread that made the call.
  void look_for_interrupt() {
    const Status asked = interrupt.ask();
    if (asked.ok()) return;
    const std::lock_guard lock(mutex);
    stop(asked);
  }

  // The next block. false: all are taken, or the ring is full and the worker does not wait for it.
  bool take(bool waits, size_t* i) {
    const size_t n = maker.n_blocks();
    std::unique_lock lock(mutex);
    const auto has_room = [&] { return next < drained + slots.size(); };
    if (waits) moved.wait(lock, [&] { return !status.ok() || next >= n || has_room(); });
    if (!status.ok() || next >= n || !has_room()) return false;
    *i = next++;
    return true;
  }

  // true: a device has the block.
  bool encode(int worker, size_t i, bool may_begin) {
    EncodeSlot& slot = slots[i % slots.size()];
    slot.begun.code.device = nullptr;
    Bytes out;
    Status result = reserve(slot.code, maker.raw_size(i), &out);
    if (result.ok())
      result = may_begin ? maker.begin_make(worker, i, out, left(i), &slot.payload, &slot.begun)
                         : maker.make(worker, i, out, &slot.payload);
    // Once it has finished, the slot is another block's.
    const bool has = slot.begun.code.device != nullptr;
    if (!has) finish(i, result);
    return has;
  }

  // As of Kernel::begin_encode.
  double left(size_t i) const {
    if (divided == Divided::kByWaiting) return 0;
    const size_t end = maker.n_blocks() - 1, size = maker.raw_size(i);
    const size_t bytes = maker.begin(end) + maker.raw_size(end) - maker.begin(i);
    return static_cast<double>(bytes) / static_cast<double>(size) / workers;
  }

  bool ends(int worker, size_t i) {
    EncodeSlot& slot = slots[i % slots.size()];
    Status result;
    if (!maker.end_make(worker, i, &slot.payload, &slot.begun, &result)) return false;
    finish(i, result);
    return true;
  }

  void finish(size_t i, const Status& result) {
    std::unique_lock lock(mutex);
    if (!result.ok()) return stop(result);
    slots[i % slots.size()].ready = true;
    drain(lock);
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

// Two for each worker, and more of small blocks: a worker that the machine or a device keeps
// waiting is not to stop the others before 4 MiB are coded.
size_t slots_for(size_t threads, size_t block_size) {
  constexpr size_t kAhead = 4 << 20;
  return std::max(2 * threads, std::min(16 * threads, kAhead / block_size));
}

}  // namespace

size_t FrameWriter::bound(uint64_t raw_size) const {
  if (raw_size > kMaxRawSize) return SIZE_MAX;  // no frame holds so much: no memory is enough
  const uint64_t block_size = settings_.block_size();
  // A block of whole rows may be little more than half as large.
  return kMaxHeader + raw_size + 8 * (2 * raw_size / block_size + 1);
}

Status FrameWriter::begin_frame(const Recipe& plain, Header* header, ChainPointer* chain,
                                Bytes dst) {
  Recipe recipe = plain;
  const BlockSettings& settings = settings_.blocks();
  header->checksum = settings.checksum;
  header->block_log = settings.block_log;
  header->slabs = header->slabs || (wants_slabs(recipe) && can_be_slabs(*header));
  tell_shape(*header, &recipe);
  *chain = chains_.for_recipe(recipe, settings.threads);
  header->stages = stages_of(recipe);
  size_t size;
  return write_header(header, dst, &size);
}

Status FrameWriter::begin_plain(Header* header, ChainPointer* chain, Bytes dst, bool on_cores) {
  const Recipe* recipe;
  WPR_TRY(settings_.recipe_for(header->dtype, &recipe, on_cores));
  return begin_frame(*recipe, header, chain, dst);
}

Status FrameWriter::begin_auto(Choice* choice, Header* header) {
  const Goal* goal;
  WPR_TRY(settings_.goal(&goal));
  header->block_log = settings_.blocks().block_log;
  WPR_TRY(choice->chooser.begin(*goal, *header, settings_.engine()));
  header->slabs = choice->chooser.wants_slabs() && can_be_slabs(*header);
  choice->chains.clear();
  return {};
}

Status FrameWriter::choose_groups(const Header& header, int threads, ConstBytes src,
                                  Choice* choice) {
  auto& [chooser, groups, chains] = *choice;
  groups.clear();
  const size_t block_size = header.block_size(), group_size = kGroupBlocks * block_size;
  for (size_t at = 0; at < src.size(); at += group_size) {
    WPR_TRY(interrupt_.ask());
    const ConstBytes group = src.subspan(at, std::min(group_size, src.size() - at));
    Recipe recipe;
    WPR_TRY(chooser.choose(group, block_size, &recipe));
    tell_shape(header, &recipe);  // candidates are kept for arrays with other numbers of rows, too
    ChainPointer chain = chains_.for_recipe(recipe, threads);
    if (std::ranges::find(chains, chain) == chains.end()) {
      if (chains.size() == kMaxOwnRecipes)
        chain = chains.front();
      else
        chains.push_back(chain);
    }
    groups.push_back(chain);
  }
  return {};
}

Status FrameWriter::begin_stored(Header* header, ChainPointer* chain, Bytes dst) {
  Recipe store;
  WPR_TRY(parse_recipe("store", header->dtype, "auto", &store));
  return begin_frame(store, header, chain, dst);
}

// A header names the recipe of the first group, whose blocks then need none of their own.
Status FrameWriter::begin_auto_frame(ConstBytes src, Header* header, ChainPointer* chain,
                                     Bytes dst) {
  const int threads = settings_.blocks().threads;
  WPR_TRY(begin_auto(&choice_, header));
  WPR_TRY(choose_groups(*header, threads, src, &choice_));
  std::vector<ChainPointer>& groups = choice_.groups;
  if (groups.empty()) return begin_stored(header, chain, dst);
  WPR_TRY(begin_frame(groups.front()->recipe(), header, chain, dst));
  for (ChainPointer& group : groups)
    if (group->matches((*chain)->recipe(), threads)) group = *chain;
  return {};
}

Status FrameWriter::compress(ConstBytes src, Header header, Bytes dst, size_t* written,
                             const Place& place) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (place.on_device() && settings_.wants_auto()) {
    Bytes here;
    WPR_TRY(reserve(whole_, src.size(), &here));
    WPR_TRY(place.download(here, src.data()));
    place.memory->note(0, src.size(), "recipe auto looks at the values on the cores");
    src = here;
  } else if (place.on_device()) {
    return compress_there(src, {}, {}, header, dst, written, place);
  }
  ChainPointer chain;
  std::span<const ChainPointer> groups;
  if (settings_.wants_auto()) {
    WPR_TRY(begin_auto_frame(src, &header, &chain, dst));
    groups = choice_.groups;
  } else {
    WPR_TRY(begin_plain(&header, &chain, dst));
  }
  const PlainBlocks blocks(header, settings_.blocks(), *chain, groups, 0, src, false);
  const Status status = end_frame(blocks, dst, written);
  note_failures(*chain, groups);
  WPR_TRY(status);
  count_kernels(*chain, groups, header, src.size());
  stats_.raw_bytes += src.size();
  stats_.wire_bytes += *written;
  return {};
}

Status FrameWriter::explain(ConstBytes src, Header header,
                            void (*row)(void* seen, const Explained& group), void* seen) {
  Recipe recipe;
  choice_.chooser.forget();  // else there were no trials to show
  WPR_TRY(begin_auto(&choice_, &header));
  const size_t block_size = header.block_size(), group_size = kGroupBlocks * block_size;
  for (size_t at = 0; at < src.size(); at += group_size) {
    WPR_TRY(interrupt_.ask());
    const size_t size = std::min(group_size, src.size() - at);
    WPR_TRY(choice_.chooser.choose(src.subspan(at, size), block_size, &recipe));
    row(seen, {at, size, choice_.chooser});
  }
  return {};
}

// Of data in memory of a device; residual may be empty.
Status FrameWriter::compress_there(ConstBytes src, const Halves& halves, Bytes residual,
                                   Header header, Bytes dst, size_t* written, const Place& place) {
  ChainPointer cores;
  WPR_TRY(begin_plain(&header, &cores, dst, true));
  const DeviceChain device =
      device_chain(chains_, cores->recipe(), place, settings_.engine(), settings_.blocks().threads);
  staging_.resize(std::max(staging_.size(), static_cast<size_t>(cores->n_workers())));
  const DeviceBlocks blocks(header, settings_.blocks(), place, device, *cores, staging_, src,
                            halves, residual);
  const Status status = end_frame(blocks, dst, written);
  blocks.share().note(place);
  WPR_TRY(status);
  stats_.raw_bytes += src.size();
  stats_.wire_bytes += *written;
  return {};
}

Status FrameWriter::check_feedback(const Header& header, size_t raw_size, size_t room) const {
  if (header.dtype != DType::kFloat32)
    return fail(Code::kParameter, "error feedback is for float32, not %s",
                dtype_name(header.dtype));
  if (room < bound(raw_size))
    return fail(Code::kDstTooSmall, "error feedback needs a dst of bound() = %zu bytes, not %zu",
                bound(raw_size), room);
  if (settings_.wants_auto())
    return fail(Code::kParameter, "error feedback needs a recipe that names its codec, not auto");
  return {};
}

Status FrameWriter::compress_feedback(ConstBytes src, const Halves& halves, Bytes residual,
                                      Header header, Bytes dst, size_t* written,
                                      const Place& place) {
  const Stopwatch watch(&stats_.compress_seconds);
  WPR_TRY(check_feedback(header, residual.size(), dst.size()));
  if (place.on_device() && !src.empty())
    return compress_there(src, halves, residual, header, dst, written, place);
  ChainPointer chain;
  WPR_TRY(begin_plain(&header, &chain, dst));
  staging_.resize(std::max(staging_.size(), static_cast<size_t>(chain->n_workers())));
  const FeedbackBlocks blocks(header, settings_.blocks(), *chain, src, halves, staging_, residual);
  const Status status = end_frame(blocks, dst, written);
  note_failures(*chain, {});
  WPR_TRY(status);
  count_kernels(*chain, {}, header, residual.size());
  stats_.raw_bytes += src.size();
  stats_.wire_bytes += *written;
  return {};
}

Status FrameWriter::compress_steps(ConstBytes before, ConstBytes after, Header header, Bytes dst,
                                   size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (dst.size() < bound(after.size())) {
    return fail(Code::kDstTooSmall, "steps need a dst of bound() = %zu bytes, not %zu",
                bound(after.size()), dst.size());
  }
  if (settings_.wants_auto())
    return fail(Code::kParameter, "steps need a recipe that names its codec, not auto");
  ChainPointer chain;
  WPR_TRY(begin_plain(&header, &chain, dst));
  if (!chain->recipe().lossless())
    return fail(Code::kParameter, "steps need a recipe that is lossless");
  const StepBlocks blocks(header, settings_.blocks(), *chain, before, after);
  const Status status = end_frame(blocks, dst, written);
  note_failures(*chain, {});
  WPR_TRY(status);
  count_kernels(*chain, {}, header, after.size());
  stats_.raw_bytes += after.size();
  stats_.wire_bytes += *written;
  return {};
}

Status FrameWriter::sum(const ParsedFrame& a, const ParsedFrame& b, Bytes dst, size_t* written) {
  Header header = a.header;
  size_t size;
  WPR_TRY(write_header(&header, dst, &size));
  const SumBlocks blocks(header, settings_.blocks(), a, b);
  const Status status = end_frame(blocks, dst, written);
  for (const ParsedFrame* const term : {&a, &b}) note_failures(*term->chain, term->own);
  WPR_TRY(status);
  count_kernels(*a.chain, {}, header, a.raw_size);
  return {};
}

void FrameWriter::note_failures(Chain& chain, std::span<const ChainPointer> others) {
  chain.note_failures();
  for (const ChainPointer& other : others) other->note_failures();
}

void FrameWriter::count_kernels(const Chain& chain, std::span<const ChainPointer> groups,
                                const Header& header, size_t raw_size) const {
  if (groups.empty()) {
    if (settings_.lacks_kernel(chain.recipe())) count_other_kernels(raw_size);
    return;
  }
  const size_t group_size = kGroupBlocks * header.block_size();
  for (const ChainPointer& group : groups) {
    const size_t size = std::min(group_size, raw_size);
    if (settings_.lacks_kernel(group->recipe())) count_other_kernels(size);
    raw_size -= size;
  }
}

// The blocks behind a header that was written.
Status FrameWriter::end_frame(const BlockMaker& maker, Bytes dst, size_t* written) {
  const size_t head = maker.header().size;
  size_t size;
  WPR_TRY(make_blocks(maker, settings_.encoders(maker.n_workers()), dst.subspan(head), &size));
  *written = head + size;
  return {};
}

Status FrameWriter::make_blocks(const BlockMaker& maker, int threads, Bytes dst, size_t* written) {
  if (maker.first() > 0) WPR_TRY(interrupt_.ask());  // a batch of a stream
  threads = std::min(threads, maker.n_workers());
  const size_t n = maker.n_blocks();
  Divided divided = Divided::kNot;
  if (n > 0 && maker.divides())
    divided = settings_.has_own_threads() ? Divided::kByBeginning : Divided::kByWaiting;
  return divided == Divided::kByBeginning || (threads > 1 && n > 1)
             ? make_parallel(maker, threads, divided, dst, written)
             : make_serial(maker, dst, written);
}

Status FrameWriter::make_serial(const BlockMaker& maker, Bytes dst, size_t* written) {
  const Header& header = maker.header();
  size_t offset = 0;
  for (size_t i = 0; i < maker.n_blocks(); ++i) {
    if (i > 0) WPR_TRY(interrupt_.ask());
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

Status FrameWriter::make_parallel(const BlockMaker& maker, int threads, Divided divided, Bytes dst,
                                  size_t* written) {
  const size_t n_slots = slots_for(static_cast<size_t>(threads), maker.header().block_size());
  const int workers = static_cast<int>(std::min(static_cast<size_t>(threads), maker.n_blocks()));
  if (slots_.size() < n_slots) slots_ = std::vector<EncodeSlot>(n_slots);
  for (EncodeSlot& slot : slots_) slot.ready = false;  // one may be left over from a failure
  ParallelEncode job{.maker = maker,
                     .dst = dst,
                     .slots = slots_,
                     .workers = workers,
                     .divided = divided,
                     .stats = &stats_,
                     .interrupt = interrupt_};
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelEncode*>(it)->work(worker); }, &job);
  WPR_TRY(job.status);
  *written = job.offset;
  return {};
}

}  // namespace wirepress
