// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/emulated_stream.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "engines/cuda/seal.hpp"
#include "engines/cuda/values.hpp"

namespace wirepress::cuda {
namespace {

std::mutex all_mutex;
// Never destroyed: streams end at the end of programs.
std::set<EmulatedStream*>& all() {
  static auto* const all = new std::set<EmulatedStream*>;
  return *all;
}

// Pinned memory: where it begins, and its size.
std::mutex pinned_mutex;
std::map<uintptr_t, size_t>& pinned() {
  static auto* const pinned = new std::map<uintptr_t, size_t>;
  return *pinned;
}

bool is_pinned(const std::byte* at, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const std::lock_guard lock(pinned_mutex);
  auto it = pinned().upper_bound(address);
  if (it == pinned().begin()) return false;
  --it;
  return address + size <= it->first + it->second;
}

Status pin(int, size_t size, void** at) noexcept {
  const size_t room = (std::max<size_t>(size, 1) + 63) / 64 * 64;
  void* const memory = std::aligned_alloc(64, room);
  if (memory == nullptr) return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
  try {
    const std::lock_guard lock(pinned_mutex);
    pinned().emplace(reinterpret_cast<uintptr_t>(memory), room);
  } catch (const std::bad_alloc&) {
    std::free(memory);
    return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
  }
  count_emulated_allocation();
  *at = memory;
  return {};
}

void unpin(void* at) noexcept {
  {
    const std::lock_guard lock(pinned_mutex);
    pinned().erase(reinterpret_cast<uintptr_t>(at));
  }
  std::free(at);
}

Status unknown(const char* what, const void* at, size_t size) {
  return fail(Code::kDevice,
              "cuda: %s: %zu bytes at %p are neither pinned nor memory of the stream's device",
              what, size, at);
}

Status copy(int device, void* stream, std::byte* to, const std::byte* from, size_t size) noexcept {
  EmulatedQueue queue(device, stream);
  std::byte* const there = queue.reach(to, size);
  const std::byte* const here = queue.reach(from, size);
  if (there == nullptr) return unknown("a copy", to, size);
  if (here == nullptr) return unknown("a copy", from, size);
  return queue.put([=] {
    WPR_TRY(emulated_operation("a copy"));
    return std::memcpy(there, here, size), Status();
  });
}

Status clear(int device, void* stream, std::byte* at, size_t size) noexcept {
  EmulatedQueue queue(device, stream);
  std::byte* const there = queue.reach(at, size);
  return there == nullptr ? unknown("memory", at, size) : queue.clear(there, size);
}

template <typename T>
bool find(const EmulatedQueue& queue, T** at, size_t size) {
  using Plain = std::remove_const_t<T>;
  if (size == 0) return true;
  auto* const bytes = reinterpret_cast<const std::byte*>(*at);
  *at = reinterpret_cast<Plain*>(queue.reach(bytes, size));
  return *at != nullptr;
}

bool find(const EmulatedQueue& queue, Reports* reports) {
  return find(queue, &reports->first, reports->n * sizeof(Report)) &&
         find(queue, &reports->all_well, reports->n == 0 ? 0 : sizeof(uint64_t));
}

Status seal(int device, void* stream, const Sealing& given, StreamPlan* plan) noexcept {
  const EmulatedQueue queue(device, stream);
  Sealing task = given;
  if (!plan->is_draft() &&
      (!find(queue, &task.raw, task.raw_size) ||
       !find(queue, &task.codes, task.n_blocks * task.slot) ||
       !find(queue, &task.reports, task.n_blocks * sizeof(Report)) ||
       !find(queue, &task.header, task.header_size) || !find(queue, &task.dst, task.cap) ||
       !find(queue, &task.blocks, task.n_blocks * sizeof(SealedBlock)) ||
       !find(queue, &task.result, sizeof(Sealed))))
    return unknown("a frame's parts", given.raw, given.raw_size);
  return note_seal<EmulatedQueue>(task, plan);
}

Status add(int device, void* stream, const Adding& given, StreamPlan* plan) noexcept {
  const EmulatedQueue queue(device, stream);
  Adding adding = given;
  if (!plan->is_draft() &&
      (!find(queue, &adding.to, given.size) || !find(queue, &adding.base, given.size) ||
       !find(queue, &adding.from, given.size) || !find(queue, &adding.reports)))
    return unknown("values", given.to, given.size);
  return note_add<EmulatedQueue>(adding, plan);
}

Status put_values(int device, void* stream, const Putting& given, StreamPlan* plan) noexcept {
  const EmulatedQueue queue(device, stream);
  Putting putting = given;
  if (!plan->is_draft() &&
      (!find(queue, &putting.to, given.size) || !find(queue, &putting.from, given.size) ||
       !find(queue, &putting.reports)))
    return unknown("values", given.to, given.size);
  return note_put<EmulatedQueue>(putting, plan);
}

Status probe(int device, void* stream, const Probing& given, StreamPlan* plan) noexcept {
  const EmulatedQueue queue(device, stream);
  Probing probing = given;
  if (!plan->is_draft() && (!find(queue, &probing.raw, given.raw_size) ||
                            !find(queue, &probing.reports, given.n_blocks * sizeof(Report))))
    return unknown("a frame's data", given.raw, given.raw_size);
  return note_probe<EmulatedQueue>(probing, plan);
}

Status keep(int device, void* stream, const Keeping& given, StreamPlan* plan) noexcept {
  const EmulatedQueue queue(device, stream);
  Keeping keeping = given;
  if (!plan->is_draft() &&
      (!find(queue, &keeping.sum, given.size) || !find(queue, &keeping.values, given.size) ||
       !find(queue, &keeping.residual, given.size) || !find(queue, &keeping.reports)))
    return unknown("a residual", given.residual, given.size);
  return note_keep<EmulatedQueue>(keeping, plan);
}

// What is on no stream is done at once.
Status make_stream(int, void** stream) noexcept {
  *stream = nullptr;
  return {};
}
void drop_stream(int, void*) noexcept {}

Status check(int, void* stream) noexcept {
  const EmulatedStream* const own = EmulatedStream::find(stream);
  return own != nullptr && own->is_captured() ? is_captured() : Status();
}

struct Mark {
  EmulatedStream* stream = nullptr;  // nullptr: what is on no stream is done
  uint64_t number = 0;
};

Status make_mark(int, void** mark) noexcept {
  *mark = new (std::nothrow) Mark;
  return *mark == nullptr ? fail(Code::kNoMemory, "cuda: no memory for a mark") : Status();
}
void drop_mark(int, void* mark) noexcept { delete static_cast<Mark*>(mark); }

Status set_mark(int, void* stream, void* mark) noexcept {
  EmulatedStream* const own = EmulatedStream::find(stream);
  *static_cast<Mark*>(mark) = {own, own == nullptr ? 0 : own->put_count()};
  return {};
}

Status passed(int, void* mark, bool* yes) noexcept {
  const Mark& own = *static_cast<Mark*>(mark);
  *yes = true;
  Status status;
  // A stream that ended has done all its work.
  if (EmulatedStream::find(own.stream) != nullptr) *yes = own.stream->passed(own.number, &status);
  return status;
}

Status await(int device, void* mark) noexcept {
  const Mark& own = *static_cast<Mark*>(mark);
  bool yes = false;
  for (;;) {
    WPR_TRY(passed(device, mark, &yes));
    if (yes) return {};
    own.stream->step();
  }
}

}  // namespace

EmulatedStream::EmulatedStream(uint64_t seed) : emulator_(seed) {
  const std::lock_guard lock(all_mutex);
  all().insert(this);
}

EmulatedStream::~EmulatedStream() {
  drain();
  const std::lock_guard lock(all_mutex);
  all().erase(this);
}

EmulatedStream* EmulatedStream::find(void* stream) {
  const std::lock_guard lock(all_mutex);
  const auto it = all().find(static_cast<EmulatedStream*>(stream));
  return it == all().end() ? nullptr : *it;
}

Status EmulatedStream::put(std::function<Status()> work) {
  if (refuse_at_ > 0 && --refuse_at_ == 0)
    return fail(Code::kDevice, "cuda: a launch: refused by the emulator");
  work_.push_back(std::move(work));
  ++put_;
  return {};
}

bool EmulatedStream::step() {
  if (work_.empty()) return false;
  const auto work = std::move(work_.front());
  work_.pop_front();
  ++done_;
  if (failed_.ok() && done_ == fail_at_)
    failed_ = fail(Code::kDevice, "cuda: a kernel: work %llu failed in the emulator",
                   static_cast<unsigned long long>(done_));
  if (failed_.ok()) failed_ = work();
  return true;
}

void EmulatedStream::drain() {
  while (step()) continue;
}

bool EmulatedStream::passed(uint64_t mark, Status* status) const {
  if (done_ < mark) return false;
  *status = failed_;
  return true;
}

std::byte* EmulatedQueue::reach(const std::byte* at, size_t size) const noexcept {
  int owner = -1;
  std::byte* const bytes = emulated_bytes(at, size, &owner);
  if (bytes != nullptr) return owner == device_ ? bytes : nullptr;
  return is_pinned(at, size) ? const_cast<std::byte*>(at) : nullptr;
}

const DeviceStreams emulated_streams = {.make_stream = make_stream,
                                        .drop_stream = drop_stream,
                                        .check = check,
                                        .pin = pin,
                                        .unpin = unpin,
                                        .copy = copy,
                                        .clear = clear,
                                        .seal = seal,
                                        .add = add,
                                        .put = put_values,
                                        .probe = probe,
                                        .keep = keep,
                                        .make_mark = make_mark,
                                        .drop_mark = drop_mark,
                                        .set_mark = set_mark,
                                        .passed = passed,
                                        .await = await};

}  // namespace wirepress::cuda
