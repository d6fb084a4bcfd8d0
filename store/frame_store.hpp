// SPDX-License-Identifier: Apache-2.0
// The frame store: what wirepress/store.h says, in C++. One mutex guards all that changes; copying,
// compressing and file access happen outside it.
#pragma once

#include <atomic>
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
#include "store/place.hpp"
#include "store/scan.hpp"

namespace wirepress::store {

class FrameStore {
 public:
  explicit FrameStore(Calls& calls = Calls::system()) : file_(calls), direct_reads_(calls) {}
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
  // Where a frame is. A spilled one is a payload in memory; policy memory keeps raw bytes there.
  struct Entry {
    enum class Place { kPending, kFile, kMemory } place = Place::kPending;
    uint64_t offset = 0, stored_size = 0;
    Kind kind = Kind::kRaw;
    std::shared_ptr<const Buffer> memory;
    double put_wait = 0, get_wait = 0;
  };
  // A buffer of the ring. Policy in-worker keeps payloads of tiles there, others raw bytes. It is
  // gone while its memory holds a frame that spilled.
  struct Slot {
    enum class State { kFree, kFilling, kToWrite, kReading, kReady, kGone } state = State::kFree;
    uint64_t step = 0;
    uint64_t ticket = 0;  // of the put
    Buffer data;
    Status status;                  // of reading
    std::atomic<size_t> used{0};    // of the payload, while it is made
    std::vector<ConstBytes> tiles;  // of a payload that was read; none: raw bytes
    size_t n_users = 0;             // callers that copy or expand out of it
    uint64_t n_got = 0;             // tiles
  };
  // A frame that is put by tiles and not complete. Its step is no entry yet.
  struct Filling {
    Slot* slot = nullptr;
    std::shared_ptr<Buffer> memory;  // policy memory
    std::vector<bool> taken;         // tiles
    uint64_t n_done = 0;
    double waited = 0;
    bool ready() const { return slot || memory; }
  };
  // A caller's thread gets its own codec again: its buffers are in that core's cache.
  struct CallerCodec {
    std::thread::id owner;
    bool busy = false;
    Codec codec;
  };
  class Busy;
  struct Borrowed;
  using Entries = std::map<uint64_t, Entry>;
  using Lock = std::unique_lock<std::mutex>;

  Status create_file(const char* path);
  Status start(const wpr_store_config& config);
  Status keep_settings(const wpr_store_config& config);
  Settings settings() const;
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

  Status put_by_tiles(uint64_t step, const void* src);
  Status check_put(uint64_t step, const void* src) const;
  Status begin_frame(uint64_t step, Lock& lock, Filling** filling);
  Status fill(Filling* filling, uint64_t tile, const std::byte* src, const Strides& strides,
              Times* times, double* copied);
  void complete(uint64_t step, Filling* filling);
  Status drop_incomplete();
  Status find_written(uint64_t step, Lock& lock, Entries::iterator* found);
  Status wait_for_reading(uint64_t step, Lock& lock, Slot** slot);
  Status tile_directly(uint64_t step, const Entry& entry, const Tile& tile, std::byte* dst,
                       const Strides& strides);
  Status tile_from_slot(Slot* slot, uint64_t tile, std::byte* dst, const Strides& strides,
                        Times* times, double* copied);
  Status borrow(CallerCodec** codec);
  void give_back(CallerCodec* codec);
  void leave(Slot* slot);
  void forget(Slot* slot);
  void count_put_wait(double waited);
  void count_get(uint64_t step, double waited);
  Status room_in_memory(uint64_t step) const;
  void keep_in_memory(uint64_t step, std::shared_ptr<const Buffer> frame);

  Status put_in_memory(uint64_t step, const void* src);
  Status wait_for_slot(Lock& lock, Slot** slot);
  Slot* slot_of(uint64_t step);
  Status take_from_slot(uint64_t step, Lock& lock, void* dst, bool* served);
  Status load_directly(uint64_t step, const Entry& entry, std::byte* dst);
  Status load(uint64_t step, const Entry& entry, Codec& codec, std::byte* dst);
  Source source() const { return {file_, direct_reads_.is_open() ? &direct_reads_ : nullptr}; }
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
  std::string recipe_, engine_;
  std::vector<std::string> options_;
  std::vector<const char*> option_texts_;
  Grid grid_;
  uint64_t memory_ = 0;
  bool asked_direct_ = false;
  File direct_reads_;        // open where it was asked and can be
  size_t direct_bytes_ = 0;  // of the buffer of direct writes
  bool writable_ = false, open_ = false, stop_ = false, from_index_ = false;
  Entries entries_;
  std::deque<Slot> slots_;
  size_t slot_size_ = 0;
  std::deque<Slot*> to_write_, to_read_;
  std::map<uint64_t, Filling> filling_;
  size_t n_busy_ = 0;           // calls for tiles
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
  std::mutex callers_mutex_;  // guards callers_
  std::deque<CallerCodec> callers_;
  std::deque<Codec> codecs_;
  std::vector<std::thread> servants_;
};

}  // namespace wirepress::store
