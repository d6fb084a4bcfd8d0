// SPDX-License-Identifier: Apache-2.0
#include "store/frame_store.hpp"

#include <pthread.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <random>

#include "base/process.hpp"
#include "store/place.hpp"

namespace wirepress::store {
namespace {

constexpr size_t kDefaultSlots = 4;
constexpr size_t kLeastSlots = 2;
constexpr uint64_t kMostSlots = 256;  // tiny frames would make millions, and slots are searched
constexpr size_t kMostAhead = 32;
constexpr int kMostServants = 256;

uint64_t random_id() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

Status missing(uint64_t step) {
  return fail(Code::kParameter, "step %" PRIu64 " is not in the store", step);
}

Status closed() { return fail(Code::kParameter, "the store is closed"); }

Status check_config(wpr_store_policy policy, const wpr_store_config& config) {
  if (policy < WPR_STORE_MEMORY || policy > WPR_STORE_IN_WORKER)
    return fail(Code::kParameter, "policy %d is not known", static_cast<int>(policy));
  if (config.on_error < WPR_STORE_STOP || config.on_error > WPR_STORE_SPILL)
    return fail(Code::kParameter, "on_error %d is not known", static_cast<int>(config.on_error));
  if (config.servants < 0 || config.servants > kMostServants)
    return fail(Code::kParameter, "%d servants: 1 to %d can be had", config.servants,
                kMostServants);
  if (config.n_pin && !config.pin) return fail(Code::kParameter, "pin is NULL");
  if (config.n_nodes && !config.nodes) return fail(Code::kParameter, "nodes is NULL");
  if (config.n_options && !config.options) return fail(Code::kParameter, "options is NULL");
  if (config.n_options % 2)
    return fail(Code::kParameter, "%zu options: keys and values take turns", config.n_options);
  for (size_t i = 0; i < config.n_options; ++i)
    if (!config.options[i]) return fail(Code::kParameter, "options[%zu] is NULL", i);
  WPR_TRY(check_cores({config.pin, config.n_pin}));
  return check_nodes({config.nodes, config.n_nodes});
}

}  // namespace

// ---- opening ------------------------------------------------------------------------------

Status FrameStore::create(const char* path, const wpr_store_config& config) {
  head_.dtype = config.dtype;
  head_.n_dims = config.n_dims;
  std::copy_n(config.shape, WPR_MAX_DIMS, head_.shape);
  head_.id = random_id();
  writable_ = true;
  WPR_TRY(measure(&head_));
  const bool has_file = config.policy != WPR_STORE_MEMORY;
  if (has_file && !path) return fail(Code::kParameter, "this policy needs a path");
  WPR_TRY(start(config.policy, config));
  if (has_file) {  // comes last: a wrong request leaves no file
    WPR_TRY(log_.create(path, head_));
    changed_file_ = true;
    WPR_TRY(log_.start_appending(direct_bytes_, config.reserve));
    if (config.direct) log_.read_directly();
  }
  open_ = true;
  return {};
}

Status FrameStore::open(const char* path, bool append, const wpr_store_config& config) {
  if (!path) return fail(Code::kParameter, "path is NULL");
  writable_ = append;
  Contents contents;
  WPR_TRY(log_.open(path, append, &contents));
  head_ = contents.head;
  from_index_ = contents.from_index;
  torn_bytes_ = contents.report.torn_bytes;
  for (const IndexEntry& found : contents.entries) {
    Entry& entry = frames_[found.step];
    entry.place = Entry::Place::kFile;
    entry.offset = found.offset;
    entry.stored_size = found.stored_size;
  }
  WPR_TRY(start(config.policy == WPR_STORE_MEMORY ? WPR_STORE_COMPRESSED : config.policy, config));
  if (append) WPR_TRY(log_.start_appending(direct_bytes_, config.reserve));
  if (config.direct) log_.read_directly();
  changed_file_ = append && !from_index_;
  open_ = true;
  return {};
}

// Recipes matter to those that compress; the others still read frames of any recipe.
void FrameStore::keep_settings(wpr_store_policy policy, const wpr_store_config& config) {
  const bool packs = policy == WPR_STORE_COMPRESSED || policy == WPR_STORE_IN_WORKER;
  if (packs && config.recipe) settings_.recipe = config.recipe;
  if (!packs || (!writable_ && !config.recipe)) settings_.recipe = "store";
  if (config.engine) settings_.engine = config.engine;
  settings_.options.assign(config.options, config.options + config.n_options);
  callers_.configure(head_, settings_);
}

Status FrameStore::start(wpr_store_policy policy, const wpr_store_config& config) {
  WPR_TRY(check_config(policy, config));
  on_error_ = config.on_error;
  memory_ = config.memory;
  if (config.direct && writable_) direct_bytes_ = Appender::buffer_size(head_.raw_size);
  keep_settings(policy, config);
  WPR_TRY(Grid::make(head_, config.tile, &grid_));
  if (policy == WPR_STORE_MEMORY) return {};
  policy_ = Policy::make(policy, grid_, head_);
  WPR_TRY(direct_.open(head_, settings_));
  const int n = std::max(1, config.servants);
  for (int i = 0; i < n; ++i) WPR_TRY(codecs_.emplace_back().open(head_, settings_));
  WPR_TRY(set_up_buffers(codecs_.size(), config.direct != 0));
  for (Slot& slot : ring_.slots()) {
    if (config.n_nodes) prefer_node(slot.data.data(), slot.data.size(), config.nodes[0]);
  }
  return start_servants(config);
}

// Every servant, and a caller that reads what was not read ahead, may hold one payload; the rest of
// the budget is the ring. Direct writes have a buffer of their own.
Status FrameStore::set_up_buffers(size_t n_servants, bool direct) {
  const uint64_t payloads = (n_servants + 1) * direct_.room(direct) + direct_bytes_;
  const size_t slot_size = policy_->slot_size(direct_, direct);
  const uint64_t least = payloads + kLeastSlots * slot_size;
  if (memory_ == 0) memory_ = payloads + kDefaultSlots * slot_size;
  if (memory_ < least)
    return fail(Code::kParameter,
                "memory is %" PRIu64
                " bytes; %zu buffers of a frame and %zu of a payload need %" PRIu64,
                memory_, kLeastSlots, n_servants + 1, least);
  ring_.make(std::min((memory_ - payloads) / slot_size, kMostSlots), slot_size);
  stats_.buffer_bytes = payloads + ring_.size() * slot_size;
  return {};
}

Status FrameStore::start_servants(const wpr_store_config& config) {
  const SignalsBlocked blocked;
  for (size_t i = 0; i < codecs_.size(); ++i) {
    try {
      servants_.emplace_back([this, i] { serve(codecs_[i]); });
    } catch (const std::system_error& error) {
      if (i > 0) break;  // work with what there is
      return fail(Code::kNoMemory, "no servant thread can be made: %s", error.what());
    }
    if (config.n_pin == 0 && config.n_nodes == 0) continue;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (config.n_pin) {
      CPU_SET(static_cast<size_t>(config.pin[i % config.n_pin]), &set);
    } else {
      WPR_TRY(cores_of_node(config.nodes[i % config.n_nodes], &set));
    }
    if (pthread_setaffinity_np(servants_.back().native_handle(), sizeof set, &set) != 0)
      return fail(Code::kDevice, "servant %zu cannot be pinned", i);
  }
  return {};
}

void FrameStore::stop_servants() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    to_read_.clear();
  }
  work_.notify_all();
  for (std::thread& servant : servants_) servant.join();
  servants_.clear();
}

// ---- servants -----------------------------------------------------------------------------

void FrameStore::serve(Codec& codec) {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || !to_write_.empty() || !to_read_.empty(); });
    std::deque<Slot*>& queue = to_write_.empty() ? to_read_ : to_write_;
    if (queue.empty()) return;
    const bool writing = &queue == &to_write_;
    Slot* slot = queue.front();
    queue.pop_front();
    lock.unlock();
    if (writing) {
      write_slot(codec, slot);
    } else {
      read_slot(codec, slot);
    }
    lock.lock();
    changed_.notify_all();
  }
}

void FrameStore::write_slot(Codec& codec, Slot* slot) {
  const uint64_t step = slot->step, ticket = slot->ticket;
  const double began = now();
  Kind kind = Kind::kRaw;
  ConstBytes payload{slot->data.data(), head_.raw_size};
  Status status;
  try {
    status = policy_->pack(codec, *slot, &kind, &payload);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to compress step %" PRIu64, step);
  }
  const double middle = now();
  // The payload lies elsewhere; but a frame that spills needs its buffer.
  const bool release_now = payload.data() != slot->data.data() && on_error_ != WPR_STORE_SPILL;
  if (release_now) {
    const std::lock_guard lock(mutex_);
    slot->state = Slot::State::kFree;
    changed_.notify_all();
  }
  uint64_t offset = 0;
  if (status.ok()) status = log_.append(kind, step, payload, &offset);
  const double end = now();
  const std::lock_guard lock(mutex_);
  times_.compress += middle - began;
  times_.write += end - middle;
  if (status.ok()) {
    written(step, kind, payload.size(), offset);
  } else {
    not_written(release_now ? nullptr : slot, step, kind, payload, status);
  }
  if (!release_now && slot->state == Slot::State::kToWrite) slot->state = Slot::State::kFree;
  pending_.erase(ticket);
}

void FrameStore::written(uint64_t step, Kind kind, size_t size, uint64_t offset) {
  Entry& entry = frames_[step];
  if (entry.place == Entry::Place::kMemory) stats_.buffer_bytes -= entry.stored_size;
  entry.place = Entry::Place::kFile;
  entry.kind = kind;
  entry.offset = offset;
  entry.stored_size = size;
  entry.memory.reset();
  changed_file_ = true;
  stats_.raw_bytes += head_.raw_size;
  stats_.stored_bytes += size;
}

void FrameStore::not_written(Slot* slot, uint64_t step, Kind kind, ConstBytes payload,
                             const Status& why) {
  last_ = why;
  if (on_error_ == WPR_STORE_SPILL) {
    try {
      return spill(slot, kind, payload);
    } catch (const std::exception&) {  // lost after all
    }
  }
  frames_.erase(step);
  ++stats_.dropped;
  if (on_error_ != WPR_STORE_DROP && broken_.ok()) broken_ = why;
}

// The frame stays in its buffer's memory: nothing is allocated, and the budget holds.
void FrameStore::spill(Slot* slot, Kind kind, ConstBytes payload) {
  auto memory = std::make_shared<Buffer>();
  if (kind == Kind::kFrame && payload.size() >= head_.raw_size) kind = Kind::kRaw;
  if (kind == Kind::kFrame) std::memcpy(slot->data.data(), payload.data(), payload.size());
  *memory = ring_.take(slot, kind == Kind::kRaw ? head_.raw_size : payload.size());
  Entry& entry = frames_[slot->step];
  entry.place = Entry::Place::kMemory;
  entry.kind = kind;
  entry.stored_size = memory->size();
  entry.memory = std::move(memory);
  ++stats_.spilled;
  stats_.buffer_bytes -= ring_.slot_size() - entry.stored_size;
  fill_ring();
}

// Buffers whose memory went with spilled frames come back as far as the budget goes.
void FrameStore::fill_ring() {
  while (stats_.buffer_bytes + ring_.slot_size() <= memory_ && ring_.give_back())
    stats_.buffer_bytes += ring_.slot_size();
}

void FrameStore::read_slot(Codec& codec, Slot* slot) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    entry = frames_[slot->step];
  }
  Status status;
  Times times;
  bool done = false;
  slot->tiles.clear();
  try {
    if (entry.place == Entry::Place::kFile)
      status = policy_->read(codec, log_.source(), entry, slot, &times, &done);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to read step %" PRIu64, slot->step);
  }
  if (status.ok() && !done) status = load(slot->step, entry, codec, slot->data.data());
  const std::lock_guard lock(mutex_);
  times_.read += times.read;
  slot->n_got = 0;
  slot->status = status;
  slot->state = Slot::State::kReady;
}

Status FrameStore::load(uint64_t step, const Entry& entry, Codec& codec, std::byte* dst) {
  Times times;
  Status status;
  try {
    if (entry.place == Entry::Place::kFile) {
      status = codec.load(log_.source(), step, entry.offset, entry.end(), dst, &times);
    } else {
      const double began = now();
      status = codec.expand_any(entry.kind, {entry.memory->data(), entry.memory->size()}, dst);
      times.expand = now() - began;
    }
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to read step %" PRIu64, step);
  }
  const std::lock_guard lock(mutex_);
  times_.read += times.read;
  times_.expand += times.expand;
  return status;
}

// ---- writing ------------------------------------------------------------------------------

Status FrameStore::check_put(uint64_t step, const void* src) const {
  if (!open_) return closed();
  if (!writable_) return fail(Code::kParameter, "the store is open for reading only");
  if (!src) return fail(Code::kParameter, "step %" PRIu64 ": src is NULL", step);
  if (!broken_.ok()) return broken_;
  if (frames_.has(step))
    return fail(Code::kParameter, "step %" PRIu64 " is in the store already", step);
  return {};
}

Status FrameStore::put(uint64_t step, const void* src, size_t n) {
  Lock lock(mutex_);
  WPR_TRY(check_put(step, src));
  if (n != head_.raw_size)
    return fail(Code::kParameter,
                "step %" PRIu64 " has %zu bytes; a frame of this store has %" PRIu64, step, n,
                head_.raw_size);
  if (filling_.contains(step))
    return fail(Code::kParameter, "step %" PRIu64 " is being put by tiles", step);
  if (!policy_) return put_in_memory(step, src);
  if (policy_->packs_tiles()) {
    lock.unlock();
    return put_by_tiles(step, src);
  }

  Entry& entry = frames_[step];
  const uint64_t ticket = next_ticket_++;
  pending_.insert(ticket);
  const double asked = now();
  Slot* slot = nullptr;
  const Status status = wait_for_slot(lock, &slot);
  if (!slot) {
    frames_.erase(step);
    pending_.erase(ticket);
    changed_.notify_all();
    return status;
  }
  slot->ticket = ticket;
  slot->step = step;
  slot->state = Slot::State::kToWrite;
  count_put(&entry, now() - asked);
  lock.unlock();
  const double began = now();
  std::memcpy(slot->data.data(), src, n);
  const double copied = now() - began;
  lock.lock();
  stats_.put_copy_seconds += copied;
  queue(slot);
  return {};
}

void FrameStore::queue(Slot* slot) {
  to_write_.push_back(slot);
  work_.notify_one();
}

void FrameStore::count_put(Entry* entry, double waited) {
  entry->put_wait = waited;
  stats_.put_wait_seconds += waited;
  stats_.longest_put_wait_seconds = std::max(stats_.longest_put_wait_seconds, waited);
  ++stats_.puts;
}

Status FrameStore::room_in_memory(uint64_t step) const {
  if (memory_ == 0 || stats_.buffer_bytes + head_.raw_size <= memory_) return {};
  return fail(Code::kNoMemory,
              "step %" PRIu64 ": %" PRIu64 " bytes of frames are in memory and %" PRIu64
              " are allowed; a frame has %" PRIu64,
              step, stats_.buffer_bytes, memory_, head_.raw_size);
}

Status FrameStore::put_in_memory(uint64_t step, const void* src) {
  WPR_TRY(room_in_memory(step));
  const double began = now();
  Buffer copy(head_.raw_size);
  std::memcpy(copy.data(), src, head_.raw_size);
  stats_.put_copy_seconds += now() - began;
  stats_.buffer_bytes += head_.raw_size;
  keep_in_memory(step, std::make_shared<const Buffer>(std::move(copy)));
  return {};
}

void FrameStore::keep_in_memory(uint64_t step, std::shared_ptr<const Buffer> frame) {
  Entry& entry = frames_[step];
  entry.place = Entry::Place::kMemory;
  entry.stored_size = head_.raw_size;
  entry.memory = std::move(frame);
  stats_.raw_bytes += head_.raw_size;
  stats_.stored_bytes += head_.raw_size;
  ++stats_.puts;
}

// A free buffer, or one that was read ahead and is not wanted as much. *slot stays NULL: the store
// broke, or was closed, or spilled frames fill the memory.
Status FrameStore::wait_for_slot(Lock& lock, Slot** slot) {
  while (true) {
    changed_.wait(lock, [&] {
      return !broken_.ok() || !open_ || (*slot = ring_.for_put()) || ring_.all_gone();
    });
    if (*slot) return {};
    if (!broken_.ok()) return broken_;
    if (!open_) return closed();
    const Status why = write_spilled();
    if (!why.ok())
      return fail(why.code(), "spilled frames fill the memory of %" PRIu64 " bytes: %s", memory_,
                  why.text());
  }
}

// What was put before; others may go on putting.
void FrameStore::finish_writing(Lock& lock) {
  const uint64_t before = next_ticket_;
  changed_.wait(lock, [&] { return pending_.empty() || *pending_.begin() >= before; });
}

// Puts wait in the mutex meanwhile: what the file did not take is not to grow.
Status FrameStore::write_spilled() {
  if (stats_.spilled == 0) return {};
  for (auto& [step, entry] : frames_.all()) {
    if (entry.place != Entry::Place::kMemory) continue;
    uint64_t offset;
    const std::shared_ptr<const Buffer> memory = entry.memory;
    WPR_TRY(log_.append(entry.kind, step, {memory->data(), memory->size()}, &offset));
    written(step, entry.kind, memory->size(), offset);
    fill_ring();
  }
  return {};
}

Status FrameStore::sync() {
  Lock lock(mutex_);
  if (!open_) return closed();
  if (!policy_ || !writable_) return {};
  return flush(lock);
}

Status FrameStore::flush(Lock& lock) {
  finish_writing(lock);
  const Status spilled = write_spilled();
  lock.unlock();
  const Status synced = log_.sync();
  lock.lock();
  changed_.notify_all();  // buffers of spilled frames
  // After a failed sync the kernel may have dropped what it could not write: nothing later counts.
  if (!synced.ok()) {
    sync_failed_ = true;
    if (broken_.ok()) broken_ = synced;
  }
  if (!broken_.ok()) return broken_;
  return spilled;
}

Status FrameStore::close() {
  Lock lock(mutex_);
  if (!open_) return {};
  open_ = false;  // before the last sync: an index must not outlive what it names
  to_read_.clear();
  changed_.notify_all();
  changed_.wait(lock, [this] { return n_busy_ == 0; });
  const Status incomplete = drop_incomplete();
  const bool has_file = policy_ && writable_;
  Status status = has_file ? flush(lock) : Status();
  if (status.ok()) status = incomplete;
  lock.unlock();
  stop_servants();
  lock.lock();
  if (has_file && changed_file_ && !sync_failed_) {
    const Status indexed = log_.append_index(frames_.in_file());
    if (status.ok()) status = indexed;
  }
  log_.close();
  return status;
}

// ---- reading ------------------------------------------------------------------------------

Status FrameStore::get(uint64_t step, void* dst, size_t cap) {
  Lock lock(mutex_);
  if (!open_) return closed();
  if (!dst) return fail(Code::kParameter, "step %" PRIu64 ": dst is NULL", step);
  if (cap < head_.raw_size)
    return fail(Code::kDstTooSmall, "dst has %zu bytes; a frame of this store has %" PRIu64, cap,
                head_.raw_size);
  const Busy busy(*this);
  const double began = now();
  Entry* found = nullptr;
  WPR_TRY(find_written(step, lock, &found));
  follow(step);
  const Entry entry = *found;
  bool served = false;
  WPR_TRY(take_from_slot(step, lock, dst, &served));
  if (!served) {
    lock.unlock();
    const Status status = load_directly(step, entry, static_cast<std::byte*>(dst));
    lock.lock();
    if (!status.ok()) return status;
  }
  ++stats_.gets;
  count_get(step, now() - began);
  return {};
}

Status FrameStore::find_written(uint64_t step, Lock& lock, Entry** found) {
  *found = frames_.find(step);
  if (!*found) {
    const auto filling = filling_.find(step);
    if (filling == filling_.end()) return missing(step);
    return fail(Code::kParameter,
                "step %" PRIu64 " is not complete: %" PRIu64 " of %" PRIu64 " tiles", step,
                filling->second.n_done, grid_.n_tiles());
  }
  changed_.wait(lock, [&] {  // it may be lost meanwhile
    *found = frames_.find(step);
    return !*found || (*found)->place != Entry::Place::kPending;
  });
  if (*found) return {};
  return broken_.ok() ? missing(step) : broken_;
}

void FrameStore::count_get(uint64_t step, double waited) {
  stats_.get_wait_seconds += waited;
  stats_.longest_get_wait_seconds = std::max(stats_.longest_get_wait_seconds, waited);
  if (Entry* entry = frames_.find(step)) entry->get_wait += waited;
}

Status FrameStore::load_directly(uint64_t step, const Entry& entry, std::byte* dst) {
  if (entry.is_raw_memory()) {
    const double began = now();
    std::memcpy(dst, entry.memory->data(), head_.raw_size);
    const double took = now() - began;
    const std::lock_guard lock(mutex_);
    stats_.get_copy_seconds += took;
    return {};
  }
  const std::lock_guard lock(direct_mutex_);
  return load(step, entry, direct_, dst);
}

// *served: the frame was read ahead. A put that waits may take its buffer at any time before.
Status FrameStore::take_from_slot(uint64_t step, Lock& lock, void* dst, bool* served) {
  Slot* slot = ring_.reading(step);
  if (!slot) return {};
  changed_.wait(lock, [&] { return slot->state != Slot::State::kReading || !open_; });
  if (slot->state != Slot::State::kReady || slot->step != step) return {};
  if (!slot->status.ok()) {  // the caller reads it again, and says why it cannot
    forget(slot);
    return {};
  }
  ++slot->n_users;
  lock.unlock();
  const double began = now();
  Status status;
  if (slot->tiles.empty()) {
    std::memcpy(dst, slot->data.data(), head_.raw_size);
  } else {
    const std::lock_guard direct(direct_mutex_);
    status = direct_.expand_tiles(grid_, slot->tiles, static_cast<std::byte*>(dst));
  }
  const double took = now() - began;
  lock.lock();
  (slot->tiles.empty() ? stats_.get_copy_seconds : times_.expand) += took;
  slot->n_got = grid_.n_tiles();
  leave(slot);
  *served = true;
  ++stats_.read_ahead;
  read_ahead(step);
  return status;
}

void FrameStore::follow(uint64_t step) {
  reader_.follow(frames_, step);
  read_ahead(step);
}

// Queues the frames behind `step`, as the reader goes, nearest first, as far as there are buffers.
void FrameStore::read_ahead(uint64_t step) {
  if (!open_ || !policy_ || !reader_.direction()) return;
  const std::vector<uint64_t> wanted =
      frames_.neighbours(step, reader_.direction(), std::min(ring_.size(), kMostAhead));
  for (const uint64_t next : wanted) {
    if (frames_[next].place == Entry::Place::kPending || ring_.reading(next)) continue;
    Slot* slot = ring_.for_reading(reader_.last(), wanted);
    if (!slot) return;
    read_to(slot, next, false);
  }
}

// Has a servant read the frame of `step`; next: before all others.
void FrameStore::read_to(Slot* slot, uint64_t step, bool next) {
  slot->step = step;
  slot->state = Slot::State::kReading;
  to_read_.insert(next ? to_read_.begin() : to_read_.end(), slot);
  work_.notify_one();
}

Status FrameStore::prefetch(uint64_t step, int direction) {
  const std::lock_guard lock(mutex_);
  if (!open_) return closed();
  if (direction != -1 && direction != 1)
    return fail(Code::kParameter, "direction is %d, not -1 or 1", direction);
  const Entry* entry = frames_.find(step);
  if (!entry) return missing(step);
  reader_.turn(direction);
  if (!policy_) return {};
  if (entry->place != Entry::Place::kPending && !ring_.reading(step)) {
    Slot* slot = ring_.for_reading(reader_.last(), {});
    if (slot) read_to(slot, step, false);
  }
  read_ahead(step);
  return {};
}

// ---- what there is ------------------------------------------------------------------------

void FrameStore::info(wpr_store_info* info) {
  const std::lock_guard lock(mutex_);
  *info = {};
  info->dtype = head_.dtype;
  info->n_dims = head_.n_dims;
  std::copy_n(head_.shape, WPR_MAX_DIMS, info->shape);
  info->raw_size = head_.raw_size;
  info->n_frames = frames_.size();
  info->n_buffers = ring_.size();
  info->n_tiles = grid_.n_tiles();
  info->torn_bytes = torn_bytes_;
  info->from_index = from_index_;
  info->direct = writable_ ? log_.writes_directly() : log_.reads_directly();
}

void FrameStore::stats(wpr_store_stats* stats) {
  const std::lock_guard lock(mutex_);
  *stats = stats_;
  stats->compress_seconds = times_.compress;
  stats->write_seconds = times_.write;
  stats->read_seconds = times_.read;
  stats->expand_seconds = times_.expand;
}

bool FrameStore::frame_from(uint64_t step, wpr_store_frame* frame) {
  const std::lock_guard lock(mutex_);
  const auto found = frames_.all().lower_bound(step);
  if (found == frames_.all().end()) return false;
  const Entry& entry = found->second;
  *frame = {found->first, entry.stored_size, entry.offset, entry.put_wait, entry.get_wait};
  return true;
}

void FrameStore::keep(const Status& status) {
  const std::lock_guard lock(mutex_);
  last_ = status;
}

const char* FrameStore::sentence() {
  const std::lock_guard lock(mutex_);
  last_text_ = last_.text();
  return last_text_.c_str();
}

}  // namespace wirepress::store
