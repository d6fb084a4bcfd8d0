// SPDX-License-Identifier: Apache-2.0
#include "messages/devices.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "messages/thread.hpp"
#include "messages/types.hpp"
#include "recording/counts.hpp"

namespace wirepress {
namespace {

// Open MPI's and MPICH's question, where they have it.
bool mpi_knows_cuda() {
  static const bool known = [] {
    const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return ask != nullptr && ask() == 1;
  }();
  return known;
}

struct Last {
  const link_map* map = nullptr;
  std::string name;
};

// The end of the loader's list, walked under its lock: another thread may load and unload.
Last find_last() {
  Dl_info info;
  link_map* own = nullptr;
  Last last;
  if (!dladdr1(&g_last_library, &info, reinterpret_cast<void**>(&own), RTLD_DL_LINKMAP) || !own)
    return last;
  last.map = own;
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* to) {
        Last& found = *static_cast<Last*>(to);
        while (found.map->l_next) found.map = found.map->l_next;
        found.name = found.map->l_name;
        return 1;
      },
      &last);
  return last;
}

// The module is preloaded: this runs when the program's own libraries are there, and no other.
const void* const g_at_start = last_library();

struct Watch {
  std::mutex lock;
  bool ended = false;
  std::string folder;  // that MPI loads its components from, and nobody else; "": none
  std::vector<void*> kept;
};
Watch& watch() { return the<Watch>(); }

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// Whether libraries lie there that programs load, too.
bool is_shared(const std::string& folder) {
  for (const void* known :
       {reinterpret_cast<const void*>(&PMPI_Init), reinterpret_cast<const void*>(&std::malloc)}) {
    Dl_info info;
    if (dladdr(known, &info) && info.dli_fname && folder_of(info.dli_fname) == folder) return true;
  }
  return false;
}

// From now on the end of the list is this one's place. It is kept loaded, so that it has one.
// Holds the lock.
void watch_behind(const Last& last) {
  if (watch().ended) return;
  void* const kept = dlopen(last.name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!kept) return;
  link_map* map = nullptr;
  // Asked after the end of the list was found: a driver that came before it is known by now.
  if (dlinfo(kept, RTLD_DI_LINKMAP, &map) != 0 || map != last.map || wpr_may_have_devices()) {
    dlclose(kept);
    return;
  }
  watch().kept.push_back(kept);
  g_last_library = map;
}

// Addresses are asked about, as something was loaded. Where that were MPI's own components, which
// Open MPI loads when it first needs them, there still is no device.
void watch_on() {
  static std::atomic<unsigned> n_asked{0};
  const unsigned n = n_asked.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!g_last_library || (n & (n - 1)) != 0) return;  // ever more rarely
  const Last last = find_last();
  // Not waited for: whoever has it may wait for the loader, which may be loading what calls this.
  const std::unique_lock hold(watch().lock, std::try_to_lock);
  if (!hold || last.map == g_last_library || watch().folder.empty() ||
      folder_of(last.name) != watch().folder)
    return;
  watch_behind(last);
  n_asked = 0;
}

// Holds the lock.
void end_watch() {
  watch().ended = true;
  g_last_library = nullptr;
}

}  // namespace

std::atomic<const link_map*> g_last_library{nullptr};

const void* last_library() { return find_last().map; }

void watch_libraries(const void* before) {
  const Last last = find_last();
  if (!last.map || (last.map == before && before != g_at_start)) return;
  std::lock_guard hold(watch().lock);
  const std::string folder = folder_of(last.name);
  if (last.map != g_at_start && !is_shared(folder)) watch().folder = folder;
  watch_behind(last);
}

void ask_about_addresses() {
  std::lock_guard hold(watch().lock);
  end_watch();
}

void unwatch_libraries() {
  std::lock_guard hold(watch().lock);
  end_watch();
  for (void* kept : watch().kept) dlclose(kept);
  watch().kept.clear();
}

bool lies_on_device(const void* buffer) {
  watch_on();
  wpr_place place;
  return buffer != nullptr && wpr_place_of(buffer, &place) == WPR_OK && place.device >= 0;
}

bool reaches_there(const void* buffer) {
  watch_on();
  wpr_place place;
  if (wpr_place_of(buffer, &place) != WPR_OK || place.device < 0) return true;
  return place.on_cores == nullptr && mpi_knows_cuda();
}

int copy_bytes(void* to, const void* from, size_t size) {
  if (size == 0) return MPI_SUCCESS;
  if (!on_device(to) && !on_device(from)) return std::memcpy(to, from, size), MPI_SUCCESS;
  Thread& thread = self_thread();
  wpr_ctx* ctx = decoder(thread);
  if (!ctx) return MPI_ERR_NO_MEM;
  if (wpr_copy(ctx, to, from, size) == WPR_OK) return MPI_SUCCESS;
  complain(wpr_error(ctx));
  return MPI_ERR_OTHER;
}

Byte* DeviceRoom::get(const void* like, size_t size) {
  wpr_place place;
  if (wpr_place_of(like, &place) != WPR_OK || place.device < 0) return nullptr;
  if (memory_ && size_ >= size && place_.device == place.device && place_.engine == place.engine)
    return static_cast<Byte*>(memory_);
  release();
  wpr_ctx* ctx = decoder(self_thread());
  if (!ctx || wpr_device_alloc(ctx, place.engine, place.device, size, &memory_) != WPR_OK)
    return nullptr;
  place_ = place;
  size_ = size;
  return static_cast<Byte*>(memory_);
}

void DeviceRoom::release() {
  if (wpr_ctx* ctx = memory_ ? decoder(self_thread()) : nullptr) wpr_device_free(ctx, memory_);
  memory_ = nullptr;
  size_ = 0;
}

namespace {

Byte* shifted(void* buffer, MPI_Aint by) { return static_cast<Byte*>(buffer) + by; }

bool reserve(Buffer* buffer, size_t size) {
  if (buffer->reserve(std::max<size_t>(size, 1))) return true;
  ++self_thread().events.no_memory;
  complain("no memory for a copy of what a call has in memory of a device");
  return false;
}

// Writes to `buffer` on a device those bytes of `here`, which holds what `reach` says, that the
// first `size` bytes of the message (count, type) at `at` fill. Ones that are delivered to zeros
// tell which: MPI alone knows how it lays out a type.
int write_covered(void* buffer, const Reach& reach, Byte* here, size_t size, MPI_Count count,
                  MPI_Datatype type, MPI_Aint at) {
  Type known;
  if (look_up(type, &known) && known.contiguous)
    return copy_bytes(shifted(buffer, at), here + (at - reach.low), size);
  const Reach own = reach_of(count, type, at);
  Buffer ones, covered;
  if (!reserve(&ones, size) || !reserve(&covered, own.size)) return MPI_ERR_NO_MEM;
  std::memset(ones.data(), 1, size);
  std::memset(covered.data(), 0, own.size);
  Byte* const mask = covered.data();
  if (const int error = deliver_on_cores(ones.data(), size, mask + (at - own.low), count, type))
    return error;
  for (size_t begin = 0, end; begin < own.size; begin = end) {
    for (end = begin + 1; end < own.size && (mask[end] != 0) == (mask[begin] != 0);) ++end;
    if (mask[begin] == 0) continue;
    const MPI_Aint from = own.low + static_cast<MPI_Aint>(begin);
    if (const int error = copy_bytes(shifted(buffer, from), here + (from - reach.low), end - begin))
      return error;
  }
  return MPI_SUCCESS;
}

}  // namespace

int deliver_there(const void* packed, size_t size, void* buffer, MPI_Count count,
                  MPI_Datatype type) {
  Type known;
  if (look_up(type, &known) && known.contiguous) return copy_bytes(buffer, packed, size);
  const Reach reach = reach_of(count, type);
  Buffer here;
  if (!reserve(&here, reach.size)) return MPI_ERR_NO_MEM;
  const int error = deliver_on_cores(packed, size, here.data() - reach.low, count, type);
  return error ? error : write_covered(buffer, reach, here.data(), size, count, type, 0);
}

int collect_there(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed,
                  size_t size) {
  Type known;
  if (look_up(type, &known) && known.contiguous) return copy_bytes(packed, buffer, size);
  const OnHost host(buffer, reach_of(count, type));
  return host.error() ? host.error() : collect_on_cores(host.at(), count, type, packed, size);
}

void Reach::add(const Reach& other) {
  if (other.size == 0) return;
  MPI_Aint begin = other.low, end = begin + static_cast<MPI_Aint>(other.size);
  if (size > 0) {
    end = std::max(end, low + static_cast<MPI_Aint>(size));
    begin = std::min(begin, low);
  }
  low = begin;
  size = static_cast<size_t>(end - begin);
  parts.insert(parts.end(), other.parts.begin(), other.parts.end());
}

Reach reach_of(MPI_Count n, MPI_Datatype type, MPI_Aint at) {
  Reach reach;
  MPI_Aint lower, extent, true_lower, true_extent;
  if (n <= 0 || type == MPI_DATATYPE_NULL ||
      PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent(type, &true_lower, &true_extent) != MPI_SUCCESS)
    return reach;
  const MPI_Aint first = at + true_lower, last = first + static_cast<MPI_Aint>(n - 1) * extent;
  const MPI_Aint end = std::max(first, last) + true_extent;
  reach.low = std::min(first, last);
  if (end <= reach.low) return {};
  reach.size = static_cast<size_t>(end - reach.low);
  reach.parts.push_back({n, type, at});
  return reach;
}

OnHost::OnHost(const void* buffer, Reach reach)
    : user_(const_cast<void*>(buffer)), at_(user_), reach_(std::move(reach)) {
  if (!on_device(buffer)) return;
  copied_ = true;
  if (!reserve(&copy_, reach_.size)) {
    error_ = MPI_ERR_NO_MEM;
    return;
  }
  at_ = copy_.data() - reach_.low;
  error_ = copy_bytes(copy_.data(), shifted(user_, reach_.low), reach_.size);
}

int OnHost::give_back() const {
  if (!copied_ || error_) return error_;
  for (const Reach::Part& part : reach_.parts) {
    MPI_Count element, size;
    if (PMPI_Type_size_x(part.type, &element) != MPI_SUCCESS ||
        __builtin_mul_overflow(part.n, element, &size))
      return MPI_ERR_TYPE;
    if (const int error = write_covered(user_, reach_, copy_.data(), static_cast<size_t>(size),
                                        part.n, part.type, part.at))
      return error;
  }
  return MPI_SUCCESS;
}

}  // namespace wirepress
