// SPDX-License-Identifier: Apache-2.0
#include "store/frame_store.hpp"

#include <pthread.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <random>

#include "base/process.hpp"

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

}  // namespace

// ---- opening ------------------------------------------------------------------------------

Status FrameStore::create(const char* path, const wpr_store_config& config) {
  head_.dtype = config.dtype;
  head_.n_dims = config.n_dims;
  std::copy_n(config.shape, WPR_MAX_DIMS, head_.shape);
  head_.id = random_id();
  policy_ = config.policy;
  writable_ = true;
  WPR_TRY(measure(&head_));
  if (!path && policy_ != WPR_STORE_MEMORY)
    return fail(Code::kParameter, "this policy needs a path");
  WPR_TRY(start(config));
  if (policy_ != WPR_STORE_MEMORY) WPR_TRY(create_file(path));
  changed_file_ = policy_ != WPR_STORE_MEMORY;
  if (changed_file_) WPR_TRY(appender_.open(tail_, direct_bytes_, config.reserve));
  if (changed_file_ && asked_direct_) (void)direct_reads_.open_direct(file_, File::Way::kRead);
  open_ = true;
  return {};
}

// Comes last: a wrong request leaves no file.
Status FrameStore::create_file(const char* path) {
  WPR_TRY(file_.open(path, Access::kCreate));
  std::byte bytes[kHeadSize];
  write_head(head_, bytes);
  Status status = file_.write(0, bytes);
  if (status.ok()) status = file_.sync();
  if (status.ok()) status = file_.sync_folder();
  if (!status.ok()) {
    file_.remove();
    return status;
  }
  tail_ = kHeadSize;
  return {};
}

Status FrameStore::open(const char* path, bool append, const wpr_store_config& config) {
  if (!path) return fail(Code::kParameter, "path is NULL");
  policy_ = config.policy == WPR_STORE_MEMORY ? WPR_STORE_COMPRESSED : config.policy;
  writable_ = append;
  WPR_TRY(file_.open(path, append ? Access::kAppend : Access::kRead));
  Contents contents;
  WPR_TRY(store::load(file_, &contents));
  head_ = contents.head;
  from_index_ = contents.from_index;
  torn_bytes_ = contents.report.torn_bytes;
  tail_ = contents.report.good_size;
  next_sequence_ = contents.next_sequence;
  for (const IndexEntry& entry : contents.entries) {
    Entry& mine = entries_[entry.step];
    mine.place = Entry::Place::kFile;
    mine.offset = entry.offset;
    mine.stored_size = entry.stored_size;
  }
  WPR_TRY(start(config));
  if (append && torn_bytes_ > 0) WPR_TRY(file_.truncate(tail_));
  if (append) WPR_TRY(appender_.open(tail_, direct_bytes_, config.reserve));
  if (asked_direct_) (void)direct_reads_.open_direct(file_, File::Way::kRead);
  changed_file_ = append && !from_index_;
  open_ = true;
  return {};
}

Status FrameStore::check_config(const wpr_store_config& config) const {
  if (policy_ < WPR_STORE_MEMORY || policy_ > WPR_STORE_IN_WORKER)
    return fail(Code::kParameter, "policy %d is not known", static_cast<int>(policy_));
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

// Recipes matter to those that compress; the others still read frames of any recipe.
Status FrameStore::keep_settings(const wpr_store_config& config) {
  const bool packs = policy_ == WPR_STORE_COMPRESSED || policy_ == WPR_STORE_IN_WORKER;
  if (packs && config.recipe) recipe_ = config.recipe;
  if (!packs || (!writable_ && !config.recipe)) recipe_ = "store";
  if (config.engine) engine_ = config.engine;
  for (size_t i = 0; i < config.n_options; ++i) options_.emplace_back(config.options[i]);
  for (const std::string& text : options_) option_texts_.push_back(text.c_str());
  return Grid::make(head_, config.tile, &grid_);
}

Settings FrameStore::settings() const {
  return {recipe_.empty() ? nullptr : recipe_.c_str(), engine_.empty() ? nullptr : engine_.c_str(),
          option_texts_};
}

Status FrameStore::start(const wpr_store_config& config) {
  WPR_TRY(check_config(config));
  on_error_ = config.on_error;
  memory_ = config.memory;
  asked_direct_ = config.direct != 0;
  if (config.direct && writable_) direct_bytes_ = Appender::buffer_size(head_.raw_size);
  WPR_TRY(keep_settings(config));
  if (policy_ == WPR_STORE_MEMORY) return {};
  const size_t n = static_cast<size_t>(std::max(1, config.servants));
  WPR_TRY(direct_.open(head_, settings()));
  for (size_t i = 0; i < n; ++i) WPR_TRY(codecs_.emplace_back().open(head_, settings()));
  WPR_TRY(set_up_buffers());
  for (Slot& slot : slots_) {
    if (config.n_nodes) prefer_node(slot.data.data(), slot.data.size(), config.nodes[0]);
  }
  return start_servants(config);
}

// Every servant, and a caller that reads what was not read ahead, may hold one payload; the rest of
// the budget is the ring. Direct writes have a buffer of their own.
Status FrameStore::set_up_buffers() {
  const uint64_t payloads = (codecs_.size() + 1) * direct_.room(asked_direct_) + direct_bytes_;
  slot_size_ = head_.raw_size;
  if (policy_ == WPR_STORE_IN_WORKER)
    slot_size_ = tiles_head_size(grid_.n_tiles()) + grid_.n_tiles() * direct_.tile_bound(grid_) +
                 (asked_direct_ ? 3 * kBlock : 0);  // payloads are read into it
  const uint64_t least = payloads + kLeastSlots * slot_size_;
  if (memory_ == 0) memory_ = payloads + kDefaultSlots * slot_size_;
  if (memory_ < least)
    return fail(Code::kParameter,
                "memory is %" PRIu64
                " bytes; %zu buffers of a frame and %zu of a payload need %" PRIu64,
                memory_, kLeastSlots, codecs_.size() + 1, least);
  const uint64_t n = (memory_ - payloads) / slot_size_;
  for (uint64_t i = 0; i < std::min(n, kMostSlots); ++i)
    slots_.emplace_back().data = Buffer(slot_size_, kBlock);
  stats_.buffer_bytes = payloads + slots_.size() * slot_size_;
  return {};
}

Status FrameStore::start_servants(const wpr_store_config& config) {
  const SignalsBlocked blocked;
  for (size_t i = 0; i < codecs_.size(); ++i) {
    try {
      servants_.emplace_back([this, i] { serve(i); });
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

void FrameStore::serve(size_t servant) {
  Codec& codec = codecs_[servant];
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
  const uint64_t step = slot->step;
  const bool packed = policy_ == WPR_STORE_COMPRESSED;
  const double began = now();
  const bool in_tiles = policy_ == WPR_STORE_IN_WORKER;
  ConstBytes payload{slot->data.data(), in_tiles ? slot->used.load() : head_.raw_size};
  Status status;
  try {
    if (packed) status = codec.compress(slot->data.data(), &payload);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to compress step %" PRIu64, step);
  }
  const double middle = now();
  // The payload lies elsewhere; but a frame that spills needs its buffer.
  const bool release_now = packed && status.ok() && on_error_ != WPR_STORE_SPILL;
  const Kind kind = in_tiles ? Kind::kTiles : packed && status.ok() ? Kind::kFrame : Kind::kRaw;
  const uint64_t ticket = slot->ticket;
  if (release_now) {
    const std::lock_guard lock(mutex_);
    slot->state = Slot::State::kFree;
    changed_.notify_all();
  }
  uint64_t offset = 0;
  if (status.ok()) status = append(kind, step, payload, &offset);
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

Status FrameStore::append(Kind kind, uint64_t step, ConstBytes payload, uint64_t* offset) {
  Record record{kind, 0, step, head_.raw_size, payload.size(), checksum(payload, head_.id)};
  const std::lock_guard lock(file_mutex_);
  record.sequence = next_sequence_;
  std::byte bytes[kRecordSize];
  write_record(record, head_.id, tail_, bytes);
  const Status status = appender_.append(tail_, bytes, payload);
  if (!status.ok()) {
    // What was written of it would be a torn tail; where it cannot be cut, the next record covers
    // it.
    (void)file_.truncate(tail_);
    return fail(status.code(), "step %" PRIu64 ": %s", step, status.text());
  }
  *offset = tail_;
  tail_ += kRecordSize + payload.size();
  ++next_sequence_;
  return {};
}

void FrameStore::written(uint64_t step, Kind kind, size_t size, uint64_t offset) {
  Entry& entry = entries_[step];
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
  entries_.erase(step);
  ++stats_.dropped;
  if (on_error_ != WPR_STORE_DROP && broken_.ok()) broken_ = why;
}

// The frame stays in its buffer's memory: nothing is allocated, and the budget holds.
void FrameStore::spill(Slot* slot, Kind kind, ConstBytes payload) {
  auto memory = std::make_shared<Buffer>();
  const bool packed = kind == Kind::kFrame && payload.size() < head_.raw_size;
  if (packed) {
    std::memcpy(slot->data.data(), payload.data(), payload.size());
  }
  if (packed || kind == Kind::kTiles) slot->data.shrink(payload.size());
  *memory = std::move(slot->data);
  slot->state = Slot::State::kGone;
  Entry& entry = entries_[slot->step];
  entry.place = Entry::Place::kMemory;
  entry.kind = kind == Kind::kTiles || packed ? kind : Kind::kRaw;
  entry.stored_size = memory->size();
  entry.memory = std::move(memory);
  ++stats_.spilled;
  stats_.buffer_bytes -= slot_size_ - entry.stored_size;
  fill_ring();
}

// Buffers whose memory went with spilled frames come back as far as the budget goes.
void FrameStore::fill_ring() {
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::kGone) continue;
    if (stats_.buffer_bytes + slot_size_ > memory_) return;
    try {
      slot.data = Buffer(slot_size_, kBlock);
    } catch (const std::exception&) {
      return;
    }
    slot.state = Slot::State::kFree;
    stats_.buffer_bytes += slot_size_;
  }
}

void FrameStore::read_slot(Codec& codec, Slot* slot) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    entry = entries_[slot->step];
  }
  Status status;
  Times times;
  slot->tiles.clear();
  if (policy_ == WPR_STORE_IN_WORKER && entry.place == Entry::Place::kFile)
    status = codec.load_tiles(source(), slot->step, entry.offset,
                              entry.offset + kRecordSize + entry.stored_size, grid_,
                              {slot->data.data(), slot_size_}, &slot->tiles, &times);
  if (status.ok() && slot->tiles.empty())
    status = load(slot->step, entry, codec, slot->data.data());
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
      status = codec.load(source(), step, entry.offset,
                          entry.offset + kRecordSize + entry.stored_size, dst, &times);
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
  if (!open_) return fail(Code::kParameter, "the store is closed");
  if (!writable_) return fail(Code::kParameter, "the store is open for reading only");
  if (!src) return fail(Code::kParameter, "step %" PRIu64 ": src is NULL", step);
  if (!broken_.ok()) return broken_;
  if (entries_.contains(step))
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
  if (policy_ == WPR_STORE_MEMORY) return put_in_memory(step, src);
  if (policy_ == WPR_STORE_IN_WORKER) {
    lock.unlock();
    return put_by_tiles(step, src);
  }

  Entry& entry = entries_[step];
  const uint64_t ticket = next_ticket_++;
  pending_.insert(ticket);
  const double asked = now();
  Slot* slot = nullptr;
  const Status status = wait_for_slot(lock, &slot);
  if (!slot) {
    entries_.erase(step);
    pending_.erase(ticket);
    changed_.notify_all();
    return status;
  }
  const double waited = now() - asked;
  slot->ticket = ticket;
  slot->step = step;
  slot->state = Slot::State::kToWrite;
  entry.put_wait = waited;
  count_put_wait(waited);
  ++stats_.puts;
  lock.unlock();
  const double began = now();
  std::memcpy(slot->data.data(), src, n);
  const double copied = now() - began;
  lock.lock();
  stats_.put_copy_seconds += copied;
  to_write_.push_back(slot);
  work_.notify_one();
  return {};
}

void FrameStore::count_put_wait(double waited) {
  stats_.put_wait_seconds += waited;
  stats_.longest_put_wait_seconds = std::max(stats_.longest_put_wait_seconds, waited);
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
  Entry entry;
  entry.place = Entry::Place::kMemory;
  entry.stored_size = head_.raw_size;
  entry.memory = std::move(frame);
  entries_.emplace(step, std::move(entry));
  stats_.raw_bytes += head_.raw_size;
  stats_.stored_bytes += head_.raw_size;
  ++stats_.puts;
}

// A free buffer, or one that was read ahead and is not wanted as much. *slot stays NULL: the store
// broke, or was closed, or spilled frames fill the memory.
Status FrameStore::wait_for_slot(Lock& lock, Slot** slot) {
  while (true) {
    bool all_gone = true;
    changed_.wait(lock, [&] {
      if (!broken_.ok() || !open_) return true;
      all_gone = true;
      for (const Slot::State state : {Slot::State::kFree, Slot::State::kReady}) {
        for (Slot& each : slots_) {
          all_gone = all_gone && each.state == Slot::State::kGone;
          if (each.state != state || each.n_users > 0) continue;
          *slot = &each;
          return true;
        }
      }
      return all_gone;
    });
    if (*slot) return {};
    if (!broken_.ok()) return broken_;
    if (!open_) return fail(Code::kParameter, "the store is closed");
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
  for (auto& [step, entry] : entries_) {
    if (entry.place != Entry::Place::kMemory) continue;
    uint64_t offset;
    const std::shared_ptr<const Buffer> memory = entry.memory;
    WPR_TRY(append(entry.kind, step, {memory->data(), memory->size()}, &offset));
    written(step, entry.kind, memory->size(), offset);
    fill_ring();
  }
  return {};
}

Status FrameStore::sync() {
  Lock lock(mutex_);
  if (!open_) return fail(Code::kParameter, "the store is closed");
  if (policy_ == WPR_STORE_MEMORY || !writable_) return {};
  return flush(lock);
}

Status FrameStore::flush(Lock& lock) {
  finish_writing(lock);
  const Status spilled = write_spilled();
  lock.unlock();
  const Status synced = file_.sync();
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
  const bool has_file = policy_ != WPR_STORE_MEMORY && writable_;
  Status status = has_file ? flush(lock) : Status();
  if (status.ok()) status = incomplete;
  lock.unlock();
  stop_servants();
  lock.lock();
  if (has_file && changed_file_ && !sync_failed_) {
    const Status indexed = write_the_index();
    if (status.ok()) status = indexed;
  }
  direct_reads_.close();
  file_.close();
  return status;
}

// Without an index the next open scans: it is no loss, but it is said.
Status FrameStore::write_the_index() {
  std::vector<IndexEntry> index;
  for (const auto& [step, entry] : entries_) {
    if (entry.place == Entry::Place::kFile)
      index.push_back({step, entry.offset, entry.stored_size});
  }
  Status status = appender_.cut(tail_);
  if (status.ok()) status = append_index(file_, head_, index, next_sequence_, tail_);
  if (status.ok()) return file_.sync();
  (void)file_.truncate(tail_);
  return status;
}

// ---- reading ------------------------------------------------------------------------------

Status FrameStore::get(uint64_t step, void* dst, size_t cap) {
  Lock lock(mutex_);
  if (!open_) return fail(Code::kParameter, "the store is closed");
  if (cap < head_.raw_size || !dst)
    return fail(Code::kDstTooSmall, "dst has %zu bytes; a frame of this store has %" PRIu64, cap,
                head_.raw_size);
  const double began = now();
  Entries::iterator found;
  WPR_TRY(find_written(step, lock, &found));
  follow(step);
  const Entry entry = found->second;
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

Status FrameStore::find_written(uint64_t step, Lock& lock, Entries::iterator* found) {
  *found = entries_.find(step);
  if (*found == entries_.end() && filling_.contains(step))
    return fail(Code::kParameter,
                "step %" PRIu64 " is not complete: %" PRIu64 " of %" PRIu64 " tiles", step,
                filling_[step].n_done, grid_.n_tiles());
  if (*found == entries_.end()) return missing(step);
  changed_.wait(lock, [&] {  // it may be lost meanwhile
    *found = entries_.find(step);
    return *found == entries_.end() || (*found)->second.place != Entry::Place::kPending;
  });
  if (*found != entries_.end()) return {};
  return broken_.ok() ? missing(step) : broken_;
}

void FrameStore::count_get(uint64_t step, double waited) {
  stats_.get_wait_seconds += waited;
  stats_.longest_get_wait_seconds = std::max(stats_.longest_get_wait_seconds, waited);
  const auto found = entries_.find(step);
  if (found != entries_.end()) found->second.get_wait += waited;
}

FrameStore::Slot* FrameStore::slot_of(uint64_t step) {
  for (Slot& slot : slots_) {
    if ((slot.state == Slot::State::kReading || slot.state == Slot::State::kReady) &&
        slot.step == step)
      return &slot;
  }
  return nullptr;
}

Status FrameStore::load_directly(uint64_t step, const Entry& entry, std::byte* dst) {
  if (entry.place == Entry::Place::kMemory && entry.kind == Kind::kRaw) {
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
  Slot* slot = slot_of(step);
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
  if (direction_) read_ahead(step, direction_);
  return status;
}

// Two gets at neighbouring steps say where the reader is going.
void FrameStore::follow(uint64_t step) {
  const auto here = entries_.find(step);
  int direction = direction_;
  if (got_ && last_got_ != step) {
    direction = 0;
    if (std::next(here) != entries_.end() && std::next(here)->first == last_got_) direction = -1;
    if (here != entries_.begin() && std::prev(here)->first == last_got_) direction = 1;
  }
  got_ = true;
  last_got_ = step;
  direction_ = direction;
  if (direction) read_ahead(step, direction);
}

// Queues the frames behind `step`, nearest first, as far as there are buffers.
void FrameStore::read_ahead(uint64_t step, int direction) {
  if (!open_ || policy_ == WPR_STORE_MEMORY) return;
  std::vector<uint64_t> wanted;
  auto here = entries_.find(step);
  while (here != entries_.end() && wanted.size() < std::min(slots_.size(), kMostAhead)) {
    if (direction < 0 && here == entries_.begin()) break;
    here = direction < 0 ? std::prev(here) : std::next(here);
    if (here != entries_.end()) wanted.push_back(here->first);
  }
  for (const uint64_t next : wanted) {
    if (entries_[next].place == Entry::Place::kPending || slot_of(next)) continue;
    Slot* slot = slot_for_reading(wanted);
    if (!slot) return;
    slot->step = next;
    slot->state = Slot::State::kReading;
    to_read_.push_back(slot);
    work_.notify_one();
  }
}

FrameStore::Slot* FrameStore::slot_for_reading(const std::vector<uint64_t>& wanted) {
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::kFree) return &slot;
  }
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::kReady && slot.n_users == 0 && slot.step != last_got_ &&
        std::find(wanted.begin(), wanted.end(), slot.step) == wanted.end())
      return &slot;
  }
  return nullptr;
}

Status FrameStore::prefetch(uint64_t step, int direction) {
  const std::lock_guard lock(mutex_);
  if (!open_) return fail(Code::kParameter, "the store is closed");
  if (direction != -1 && direction != 1)
    return fail(Code::kParameter, "direction is %d, not -1 or 1", direction);
  const auto here = entries_.find(step);
  if (here == entries_.end()) return missing(step);
  direction_ = direction;
  got_ = false;  // the next get does not turn round
  if (policy_ == WPR_STORE_MEMORY) return {};
  if (here->second.place != Entry::Place::kPending && !slot_of(step)) {
    Slot* slot = slot_for_reading({});
    if (slot) {
      slot->step = step;
      slot->state = Slot::State::kReading;
      to_read_.push_back(slot);
      work_.notify_one();
    }
  }
  read_ahead(step, direction);
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
  info->n_frames = entries_.size();
  info->n_buffers = slots_.size();
  info->n_tiles = grid_.n_tiles();
  info->torn_bytes = torn_bytes_;
  info->from_index = from_index_;
  info->direct = writable_ ? appender_.is_direct() : direct_reads_.is_open();
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
  const auto found = entries_.lower_bound(step);
  if (found == entries_.end()) return false;
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
