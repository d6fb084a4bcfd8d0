// SPDX-License-Identifier: Apache-2.0
// store.h. Nothing is thrown across it.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <new>

#include "base/buffer.hpp"
#include "base/memory.hpp"
#include "base/process.hpp"
#include "store/frame_store.hpp"

using wirepress::Buffer;
using wirepress::check_on_cores;
using wirepress::Code;
using wirepress::fail;
using wirepress::Place;
using wirepress::place_of;
using wirepress::Status;
using wirepress::store::Access;
using wirepress::store::Contents;
using wirepress::store::File;
using wirepress::store::FrameStore;

namespace {

constexpr const char* kForked =
    "the store belongs to the process that opened it, and this one was forked from it: open the "
    "file here once it is closed there";

}  // namespace

struct wpr_store {
  wirepress::store::FrameStore frames;
  const unsigned made_at = wirepress::n_forks();
  const uint64_t number = ++n_made;  // of all stores of the process
  static inline std::atomic<uint64_t> n_made{0};

  // In a forked child there are no servants, locks may be held for ever, and the file is the
  // parent's to write: nothing of `frames` is touched.
  bool is_forked() const { return made_at != wirepress::n_forks(); }
};

namespace {

// What a thread's last call that failed came to.
struct Failure {
  uint64_t store = 0;  // its number
  Status status;
};
thread_local Failure t_failure;

// Memory is the only thing that the standard library throws here.
template <typename Body>
Status guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(Code::kNoMemory, "no memory (%s)", error.what());
  }
}

template <typename Body>
wpr_status call(wpr_store* store, Body body) {
  if (!store || store->is_forked()) return WPR_PARAMETER;
  const Status status = guarded(body);
  if (!status.ok()) {
    store->frames.keep(status);
    t_failure = {store->number, status};
  }
  return static_cast<wpr_status>(status.code());
}

template <typename Body>
wpr_status make(wpr_store** store, Body body) {
  if (!store) return WPR_PARAMETER;
  *store = new (std::nothrow) wpr_store;
  if (!*store) return WPR_NO_MEMORY;
  return call(*store, [&] { return body((*store)->frames); });
}

// A frame in memory of a device is copied whole, after what the default stream has put there: the
// servants code on the cores.
Status put(FrameStore& frames, uint64_t step, const void* src, size_t n) {
  const Place place = place_of(src);
  if (!place.on_device()) return frames.put(step, src, n);
  WPR_TRY(place.memory->wait(place.device, nullptr));
  const Buffer here(n);
  WPR_TRY(place.download({here.data(), n}, static_cast<const std::byte*>(src)));
  return frames.put(step, here.data(), n);
}

Status get(FrameStore& frames, uint64_t step, void* dst, size_t cap) {
  const Place place = place_of(dst);
  if (!place.on_device()) return frames.get(step, dst, cap);
  wpr_store_info info;
  frames.info(&info);
  const size_t n = std::min<uint64_t>(cap, info.raw_size);
  const Buffer here(n);
  WPR_TRY(frames.get(step, here.data(), n));
  WPR_TRY(place.memory->wait(place.device, nullptr));
  return place.upload(static_cast<std::byte*>(dst), {here.data(), n});
}

// What a call must be given: check_given("tile", tile).
Status check_given(const char* name, const void* pointer) {
  return pointer ? Status() : fail(Code::kParameter, "%s is NULL", name);
}

wpr_status say(const Status& status, char* text, size_t cap) {
  if (text && cap) std::snprintf(text, cap, "%s", status.text());
  return static_cast<wpr_status>(status.code());
}

Status check(const char* path, wpr_store_report* report,
             void (*row)(void*, const wpr_store_record*), void* user) {
  WPR_TRY(check_given("path", path));
  WPR_TRY(check_given("report", report));
  File file;
  WPR_TRY(file.open(path, Access::kRead));
  Contents contents;
  const auto each = [&](const wpr_store_record& record) {
    if (row) row(user, &record);
  };
  WPR_TRY(scan(file, each, &contents));
  *report = contents.report;
  return {};
}

Status repair(const char* path, wpr_store_report* report) {
  WPR_TRY(check_given("path", path));
  WPR_TRY(check_given("report", report));
  File file;
  WPR_TRY(file.open(path, Access::kAppend));
  Contents contents;
  WPR_TRY(scan(file, nullptr, &contents));
  *report = contents.report;
  if (report->torn_bytes > 0) WPR_TRY(file.truncate(report->good_size));
  if (report->index && report->torn_bytes == 0) return {};
  WPR_TRY(file.sync());  // an index must not outlive what it names
  WPR_TRY(append_index(file, contents.head, contents.entries, contents.next_sequence,
                       report->good_size));
  return file.sync();
}

}  // namespace

extern "C" {

wpr_status wpr_store_create(const char* path, const wpr_store_config* config, wpr_store** store) {
  return make(store, [&](auto& frames) -> Status {
    WPR_TRY(check_given("config", config));
    return frames.create(path, *config);
  });
}

wpr_status wpr_store_open(const char* path, int append, const wpr_store_config* config,
                          wpr_store** store) {
  const wpr_store_config none = {};
  return make(
      store, [&](auto& frames) { return frames.open(path, append != 0, config ? *config : none); });
}

void wpr_store_free(wpr_store* store) {
  if (store && !store->is_forked()) delete store;
}

const char* wpr_store_error(wpr_store* store) {
  if (!store) return "store is NULL";
  if (store->is_forked()) return kForked;
  return t_failure.store == store->number ? t_failure.status.text() : store->frames.sentence();
}

wpr_status wpr_store_put(wpr_store* store, uint64_t step, const void* src, size_t n) {
  return call(store, [&] { return put(store->frames, step, src, n); });
}

wpr_status wpr_store_get(wpr_store* store, uint64_t step, void* dst, size_t cap) {
  return call(store, [&] { return get(store->frames, step, dst, cap); });
}

wpr_status wpr_store_put_tile(wpr_store* store, uint64_t step, uint64_t tile, const void* src,
                              const uint64_t* strides) {
  return call(store, [&]() -> Status {
    WPR_TRY(check_given("src", src));
    WPR_TRY(check_on_cores(src, "src"));
    return store->frames.put_tile(step, tile, src, strides);
  });
}

wpr_status wpr_store_get_tile(wpr_store* store, uint64_t step, uint64_t tile, void* dst,
                              const uint64_t* strides) {
  return call(store, [&]() -> Status {
    WPR_TRY(check_given("dst", dst));
    WPR_TRY(check_on_cores(dst, "dst"));
    return store->frames.get_tile(step, tile, dst, strides);
  });
}

wpr_status wpr_store_tile_at(wpr_store* store, uint64_t tile, wpr_store_tile* out) {
  return call(store, [&]() -> Status {
    WPR_TRY(check_given("out", out));
    return store->frames.tile_at(tile, out);
  });
}

wpr_status wpr_store_prefetch(wpr_store* store, uint64_t step, int direction) {
  return call(store, [&] { return store->frames.prefetch(step, direction); });
}

wpr_status wpr_store_sync(wpr_store* store) {
  return call(store, [&] { return store->frames.sync(); });
}

wpr_status wpr_store_close(wpr_store* store) {
  return call(store, [&] { return store->frames.close(); });
}

wpr_status wpr_store_get_info(wpr_store* store, wpr_store_info* info) {
  return call(store, [&]() -> Status {
    WPR_TRY(check_given("info", info));
    store->frames.info(info);
    return {};
  });
}

wpr_status wpr_store_get_stats(wpr_store* store, wpr_store_stats* stats) {
  return call(store, [&]() -> Status {
    WPR_TRY(check_given("stats", stats));
    store->frames.stats(stats);
    return {};
  });
}

int wpr_store_frame_from(wpr_store* store, uint64_t step, wpr_store_frame* frame) {
  return store && frame && !store->is_forked() && store->frames.frame_from(step, frame);
}

wpr_status wpr_store_check(const char* path, wpr_store_report* report,
                           void (*row)(void* user, const wpr_store_record* record), void* user,
                           char* text, size_t cap) {
  return say(guarded([&] { return check(path, report, row, user); }), text, cap);
}

wpr_status wpr_store_repair(const char* path, wpr_store_report* report, char* text, size_t cap) {
  return say(guarded([&] { return repair(path, report); }), text, cap);
}

}  // extern "C"
