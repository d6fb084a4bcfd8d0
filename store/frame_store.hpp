// SPDX-License-Identifier: Apache-2.0
// The frame store: what wirepress/store.h says, in C++. It joins ring, catalogue, policy, file and
// servants. One mutex guards all that changes; copying, compressing and file access happen outside
// it.
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

#include "store/policy.hpp"
#include "store/read_ahead.hpp"
#include "store/record_log.hpp"

namespace wirepress::store {

class FrameStore {
 public:
  explicit FrameStore(Calls& calls = Calls::system()) : log_(calls) {}
  ~FrameStore() { stop_servants(); }
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;

  Status create(const char* path, const wpr_store_config& config);
  Status open(const char* path, bool append, const wpr_store_config& config);
  Status put(uint64_t step, const void* src, size_t n);
  Status get(uint64_t step, void* dst, size_t cap);
  Status put_tile(uint64_t step, uint64_t tile, const void* src, const uint64_t* strides);
  Status get_tile(uint64_t step, uint64_t tile, void* dst, const uint64_t* strides);
  Status tile_at(uint64_t tile, wpr_store_tile* out);
  Status prefetch(uint64_t step, int direction);
  Status sync();
  Status close();

  void info(wpr_store_info* info);
  void stats(wpr_store_stats* stats);
  bool frame_from(uint64_t step, wpr_store_frame* frame);
  void keep(const Status& status);  // for sentence()
  const char* sentence();

 private:
  // A frame that is put by tiles and not complete. Its step is no entry yet.
  struct Filling {
    Slot* slot = nullptr;
    std::shared_ptr<Buffer> memory;  // policy memory
    std::vector<bool> taken;         // tiles
    uint64_t n_done = 0;
    double waited = 0;
    bool ready() const { return slot || memory; }
  };
  // A call that others must wait for before they take frames away, or the file; made and ended
  // under the mutex.
  class Busy {
   public:
    explicit Busy(FrameStore& store) : store_(store) { ++store_.n_busy_; }
    ~Busy() {
      if (--store_.n_busy_ == 0 && !store_.open_) store_.changed_.notify_all();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    FrameStore& store_;
  };
  using Lock = std::unique_lock<std::mutex>;

  // Opening.
  Status start(wpr_store_policy policy, const wpr_store_config& config);
  void keep_settings(wpr_store_policy policy, const wpr_store_config& config);
  Status set_up_buffers(size_t n_servants, bool direct);
  Status start_servants(const wpr_store_config& config);
  void stop_servants();

  // Servants.
  void serve(Codec& codec);
  void write_slot(Codec& codec, Slot* slot);
  void read_slot(Codec& codec, Slot* slot);
  void written(uint64_t step, Kind kind, size_t size, uint64_t offset);
  void not_written(Slot* slot, uint64_t step, Kind kind, ConstBytes payload, const Status& why);
  void spill(Slot* slot, Kind kind, ConstBytes payload);
  void fill_ring();

  // Writing.
  Status check_put(uint64_t step, const void* src) const;
  Status put_in_memory(uint64_t step, const void* src);
  Status room_in_memory(uint64_t step) const;
  void keep_in_memory(uint64_t step, std::shared_ptr<const Buffer> frame);
  Status wait_for_slot(Lock& lock, Slot** slot);
  void queue(Slot* slot);
  void count_put(Entry* entry, double waited);
  Status put_by_tiles(uint64_t step, const void* src);
  Status begin_frame(uint64_t step, Lock& lock, Filling** filling);
  Status take_memory(uint64_t step, Lock& lock, Filling* filling);
  Status wait_for_memory(uint64_t step, Lock& lock, Filling** filling);
  Status fill(Filling* filling, const CallerTile& tile, const std::byte* src, Times* times);
  void complete(uint64_t step, Filling* filling);
  Status drop_incomplete();
  Status flush(Lock& lock);
  void finish_writing(Lock& lock);
  Status write_spilled();

  // Reading.
  Status find_written(uint64_t step, Lock& lock, Entry** found);
  void follow(uint64_t step);
  void read_ahead(uint64_t step);
  void read_to(Slot* slot, uint64_t step, bool next);
  Status take_from_slot(uint64_t step, Lock& lock, void* dst, bool* served);
  Status load_directly(uint64_t step, const Entry& entry, std::byte* dst);
  Status load(uint64_t step, const Entry& entry, Codec& codec, std::byte* dst);
  Status tile_from_record(uint64_t step, const Entry& entry, const CallerTile& tile, double began,
                          Lock& lock, std::byte* dst);
  Status tile_directly(uint64_t step, const Entry& entry, const CallerTile& tile, std::byte* dst);
  Status tile_from_slot(const Slot& slot, const CallerTile& tile, std::byte* dst, Times* times);
  Status wait_for_reading(uint64_t step, Lock& lock, Slot** slot);
  void leave(Slot* slot);
  void forget(Slot* slot);
  void count_get(uint64_t step, double waited);

  std::mutex mutex_;
  std::condition_variable work_;     // for servants
  std::condition_variable changed_;  // for callers
  Head head_;
  Grid grid_;
  Settings settings_;               // of all codecs
  std::unique_ptr<Policy> policy_;  // nullptr: memory
  wpr_store_on_error on_error_ = WPR_STORE_STOP;
  uint64_t memory_ = 0;      // bytes that buffers may take
  size_t direct_bytes_ = 0;  // of the buffer of direct writes
  RecordLog log_;
  Catalogue frames_;
  Ring ring_;
  ReadAhead reader_;
  std::deque<Slot*> to_write_, to_read_;
  std::map<uint64_t, Filling> filling_;
  std::set<uint64_t> pending_;  // tickets of what was put and is not yet written
  uint64_t next_ticket_ = 0;
  size_t n_busy_ = 0;  // calls for tiles
  bool writable_ = false, open_ = false, stop_ = false, from_index_ = false;
  bool changed_file_ = false, sync_failed_ = false;
  uint64_t torn_bytes_ = 0;
  Status broken_;  // why no frame is taken any more
  Status last_;
  std::string last_text_;
  wpr_store_stats stats_ = {};
  Times times_;

  CallerCodecs callers_;
  std::mutex direct_mutex_;  // guards direct_, of callers whose frame was not read ahead
  Codec direct_;
  std::deque<Codec> codecs_;  // of the servants
  std::vector<std::thread> servants_;
};

}  // namespace wirepress::store
