// SPDX-License-Identifier: Apache-2.0
// The frame store: what wirepress/store.h says, in C++. One mutex guards all that changes; copying,
// compressing and file access happen outside it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/appender.hpp"
#include "store/codec.hpp"
#include "store/scan.hpp"

namespace wirepress::store {

class FrameStore {
 public:
  explicit FrameStore(Calls& calls = Calls::system()) : file_(calls) {}
  ~FrameStore() { stop_servants(); }
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;

  Status create(const char* path, const wpr_store_config& config);
  Status open(const char* path, bool append, const wpr_store_config& config);
  Status put(uint64_t step, const void* src, size_t n);
  Status get(uint64_t step, void* dst, size_t cap);
  Status prefetch(uint64_t step, int direction);
  Status sync();
  Status close();

  void info(wpr_store_info* info);
  void stats(wpr_store_stats* stats);
  bool frame_from(uint64_t step, wpr_store_frame* frame);
  void keep(const Status& status);  // for sentence()
  const char* sentence();

 private:
  // Where a frame is. A spilled one is a payload in memory; policy memory keeps raw bytes there.
  struct Entry {
    enum class Place { kPending, kFile, kMemory } place = Place::kPending;
    uint64_t offset = 0, stored_size = 0;
    Kind kind = Kind::kRaw;
    std::shared_ptr<const Buffer> memory;
    double put_wait = 0, get_wait = 0;
  };
  // A buffer of the ring. It is gone while its memory holds a frame that spilled.
  struct Slot {
    enum class State { kFree, kToWrite, kReading, kReady, kTaken, kGone } state = State::kFree;
    uint64_t step = 0;
    uint64_t ticket = 0;  // of the put
    Buffer data;
    Status status;  // of reading
  };
  using Entries = std::map<uint64_t, Entry>;
  using Lock = std::unique_lock<std::mutex>;

  Status create_file(const char* path);
  Status start(const wpr_store_config& config);
  Status check_config(const wpr_store_config& config) const;
  Status set_up_buffers();
  Status start_servants(const wpr_store_config& config);
  void stop_servants();

  void serve(size_t servant);
  void write_slot(Codec& codec, Slot* slot);
  void read_slot(Codec& codec, Slot* slot);
  Status append(Kind kind, uint64_t step, ConstBytes payload, uint64_t* offset);
  void written(uint64_t step, Kind kind, size_t size, uint64_t offset);
  void not_written(Slot* slot, uint64_t step, Kind kind, ConstBytes payload, const Status& why);
  void spill(Slot* slot, Kind kind, ConstBytes payload);
  void fill_ring();

  Status put_in_memory(uint64_t step, const void* src);
  Status wait_for_slot(Lock& lock, Slot** slot);
  Slot* slot_of(uint64_t step);
  Status take_from_slot(uint64_t step, Lock& lock, void* dst, bool* served);
  Status load_directly(uint64_t step, const Entry& entry, std::byte* dst);
  Status load(uint64_t step, const Entry& entry, Codec& codec, std::byte* dst);
  void follow(uint64_t step);
  void read_ahead(uint64_t step, int direction);
  Slot* slot_for_reading(const std::vector<uint64_t>& wanted);
  Status flush(Lock& lock);
  void finish_writing(Lock& lock);
  Status write_the_index();
  Status write_spilled();

  std::mutex mutex_;
  std::condition_variable work_;     // for servants
  std::condition_variable changed_;  // for callers
  Head head_;
  File file_;
  Appender appender_{file_};
  wpr_store_policy policy_ = WPR_STORE_MEMORY;
  wpr_store_on_error on_error_ = WPR_STORE_STOP;
  std::string recipe_;
  bool has_recipe_ = false;
  uint64_t memory_ = 0;
  size_t direct_bytes_ = 0;  // of the buffer of direct writes
  bool writable_ = false, open_ = false, stop_ = false, from_index_ = false;
  Entries entries_;
  std::deque<Slot> slots_;
  std::deque<Slot*> to_write_, to_read_;
  std::set<uint64_t> pending_;  // tickets of what was put and is not yet written
  uint64_t next_ticket_ = 0;
  Status broken_;  // why no frame is taken any more
  Status last_;
  std::string last_text_;
  wpr_store_stats stats_ = {};
  Times times_;
  uint64_t torn_bytes_ = 0;
  int direction_ = 0;  // of reading
  uint64_t last_got_ = 0;
  bool got_ = false, changed_file_ = false, sync_failed_ = false;

  std::mutex file_mutex_;  // guards the two below; mutex_ is never taken under it
  uint64_t tail_ = 0, next_sequence_ = 0;

  std::mutex direct_mutex_;  // guards direct_, the caller's own codec
  Codec direct_;
  std::deque<Codec> codecs_;
  std::vector<std::thread> servants_;
};

}  // namespace wirepress::store
