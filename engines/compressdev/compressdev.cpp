// SPDX-License-Identifier: Apache-2.0
// The engine: finds and loads the module when a program selects the engine, and keeps its devices
// to the process's end. A process has one, or several side by side.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "engines/compressdev/device.hpp"
#include "engines/compressdev/job.hpp"

namespace wirepress {
namespace compressdev {
namespace {

constexpr const char* kModule = "libwirepress_compressdev";
constexpr const char* kDefaultDevice = "isal";

std::mutex selecting;
// Of the last selection; "": there was none. A device that failed is not tried again.
std::string* refusal = new std::string;
std::string* refused_device = new std::string;
thread_local DeviceWork work;
std::atomic<bool> verify{false};

// Side by side; empty: none is set up. Never freed, for threads may hold it.
struct Devices {
  static constexpr size_t kMost = 4;
  std::array<Device*, kMost> device{};
  size_t n = 0;
  std::string names{};

  std::span<Device* const> all() const { return {device.data(), n}; }
};
const Devices none;
std::atomic<const Devices*> current{&none};
thread_local Device* last = nullptr;  // that did a job of this thread
thread_local unsigned n_watches = 0, n_choices = 0;

// The file beside the library, in the folders where an installation and a wheel keep modules, or
// where it was built; "": nowhere.
std::string find_module(const std::string& file) {
  Dl_info here;
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&find_module), &here) != 0) folder = here.dli_fname;
  folder.resize(folder.find_last_of('/') + 1);
  std::string places[] = {folder, folder + "wirepress/", folder + "lib/", folder + "../",
                          folder + "../lib/"};
  for (std::string& place : places) {
    place += file;
    if (access(place.c_str(), R_OK) == 0) return place;
  }
#ifdef WPR_MODULE_FOLDER
  const std::string built = WPR_MODULE_FOLDER "/" + file;
  if (access(built.c_str(), R_OK) == 0) return built;
#endif
  return "";
}

constexpr const char* kNoModule =
    "its module is not here: install package wirepress-compressdev, or install libdpdk-dev and "
    "build wirepress again";

const char* unavailable() {
  static const bool here = !find_module(std::string(kModule) + ".so").empty();
  return here ? nullptr : kNoModule;
}

// A device NAME or NAME-MODEL may have a module of its own, libwirepress_compressdev_NAME.so: in
// those folders, or where the loader looks (LD_LIBRARY_PATH). Others have the library's.
Status open_module(const std::string& device, void** module) {
  const std::string own = std::string(kModule) + "_" + device.substr(0, device.find('-')) + ".so";
  std::string file = find_module(own);
  *module = nullptr;
  if (file.empty() && own.find('/') == std::string::npos)
    *module = dlopen(own.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (*module != nullptr) return {};
  if (file.empty()) file = find_module(std::string(kModule) + ".so");
  if (file.empty()) return fail(Code::kDevice, "%s", kNoModule);
  *module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  return *module != nullptr ? Status() : fail(Code::kDevice, "%s", dlerror());
}

Status load(const char* name, const wpr_device_table** table, wpr_device_info* info) {
  void* module;
  WPR_TRY(open_module(name, &module));
  *table = static_cast<const wpr_device_table*>(dlsym(module, WPR_DEVICE_SYMBOL));
  if (*table == nullptr)
    return fail(Code::kDevice, "the module of device %s is of another version", name);
  char why[400];
  if ((*table)->describe(name, info, why, sizeof why) != 0) return fail(Code::kDevice, "%s", why);
  return {};
}

// Set-up pins its thread to a core and leaves a thread with its signal mask: not those of a caller.
Status load_in_helper(const char* name, const wpr_device_table** table, wpr_device_info* info) {
  Status status;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([&] { status = load(name, table, info); }).join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

// Nothing in use is ever freed: threads may still look at it, and a device may write late.
void keep(const void* what) {
  static auto* kept = new std::vector<const void*>;
  kept->push_back(what);
}

Status start(const char* name, Device** device) {
  static auto* started = new std::vector<Device*>;
  for (Device* one : *started)
    if (std::strcmp(one->info().name, name) == 0) return *device = one, Status();
  const wpr_device_table* table = nullptr;
  wpr_device_info info;
  WPR_TRY(load_in_helper(name, &table, &info));
  *device = new Device(*table, info);
  keep(*device);
  if (!(*device)->probe()) return fail(Code::kDevice, "%s fails on a sample", name);
  started->push_back(*device);
  return {};
}

// Those of "NAME,NAME".
Status start_all(std::string_view names, Devices* devices) {
  devices->names = names;
  for (std::string_view rest = names; !rest.empty();) {
    const std::string name(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (devices->n == Devices::kMost)
      return fail(Code::kDevice, "a process has %zu devices at most", Devices::kMost);
    Device* device = nullptr;
    WPR_TRY(start(name.c_str(), &device));
    for (const Device* other : devices->all())
      if (other == device) return fail(Code::kDevice, "%s is named twice", name.c_str());
    devices->device[devices->n++] = device;
  }
  return {};
}

void use_all(const Devices* devices, DeviceUse how) {
  verify = how.verify;
  for (Device* device : devices->all()) device->divide(how.with_cores);
  current = devices;
}

// "" and "any" are the devices in use, or the default.
Status find_devices(const char* wanted, DeviceUse how) {
  const std::string_view text = wanted;
  const bool any = text.empty() || text == "any";
  const Devices* devices = current;
  if (devices->n == 0) {
    const char* name = any ? kDefaultDevice : wanted;
    if (*refused_device == name) return fail(Code::kDevice, "%s", refusal->c_str());
    auto fresh = std::make_unique<Devices>();
    const Status status = start_all(name, fresh.get());
    if (!status.ok()) *refused_device = name;
    WPR_TRY(status);
    devices = fresh.release();
    keep(devices);
  } else if (devices->device[0]->owner() != getpid()) {
    return fail(Code::kDevice, "%s belongs to the parent process", devices->names.c_str());
  } else if (!any && text != devices->names) {
    return fail(Code::kDevice, "this process has device %s, and may have no other",
                devices->names.c_str());
  }
  use_all(devices, how);
  return {};
}

Status select(const char* wanted, DeviceUse how) {
  const std::scoped_lock lock(selecting);
  const Status status = find_devices(wanted, how);
  *refusal = status.ok() ? "" : status.text();
  return status;
}

std::string why_refused() {
  const std::scoped_lock lock(selecting);
  return *refusal;
}

int extra_threads(bool now) {
  int n = 0;
  for (const Device* device : current.load()->all())
    if (!now || device->gives()) n += device->threads();
  return n;
}

std::string state() {
  std::string text;
  for (const Device* device : current.load()->all())
    text += (text.empty() ? "" : "; and ") + device->state();
  return text;
}

using Turns = std::array<bool, Devices::kMost>;

// The one that should answer first of those that had no turn; now and then any, for what is known
// of it may be old.
size_t next_device(std::span<Device* const> devices, const Job& job, const Turns& had) {
  constexpr unsigned kAny = 32;
  const unsigned count = n_choices++;
  const size_t any = count / kAny % devices.size();
  if (count % kAny == 0 && !had[any]) return any;
  size_t best = devices.size();
  double least = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const double seconds = devices[i]->seconds_for(job);
    if (had[i] || (best != devices.size() && seconds >= least)) continue;
    best = i;
    least = seconds;
  }
  return best;
}

// Where a device takes no such job, or has enough of them, the next one has its turn. `bring` gives
// it the job.
template <class Bring>
Reason bring_to_one(std::span<Device* const> devices, const Job& job, Bring bring) {
  if (devices.size() == 1) return bring(last = devices[0]);
  Turns had{};
  Reason reason = Reason::kNone;
  for (size_t turn = 0; turn < devices.size(); ++turn) {
    const size_t i = next_device(devices, job, had);
    had[i] = true;
    reason = bring(devices[i]);
    if (!is_refusal(reason)) return last = devices[i], reason;
  }
  return reason;
}

Outcome count(const Job& job, Reason reason, size_t written) {
  if (reason == Reason::kNone) {
    work.device_size += job.direction == Direction::kCompress ? job.src.size() : written;
    return Outcome::kDone;
  }
  work.cores_size += job.raw_size();
  work.reason = reason_text(reason);
  return reason == Reason::kWrongSum ? Outcome::kWrongSum : Outcome::kCores;
}

struct BegunOn {
  Device* device = nullptr;
  Device::Begun job{};
};

}  // namespace

Outcome run(const Job& job, size_t* written, bool waits) noexcept {
  const std::span<Device* const> devices = current.load()->all();
  if (devices.empty()) return Outcome::kCores;
  const Reason reason =
      bring_to_one(devices, job, [&](Device* device) { return device->run(job, written, waits); });
  return count(job, reason, *written);
}

void* begin(const Job& job, double left) noexcept {
  const std::span<Device* const> devices = current.load()->all();
  if (devices.empty()) return nullptr;
  std::unique_ptr<BegunOn> begun(new (std::nothrow) BegunOn);
  if (begun == nullptr) return nullptr;
  const Reason reason = bring_to_one(devices, job, [&](Device* device) {
    begun->device = device;
    return device->begin(job, left, &begun->job);
  });
  if (reason == Reason::kNone) return begun.release();
  count(job, reason, 0);
  return nullptr;
}

bool end(void* begun, size_t* written, Outcome* outcome) noexcept {
  auto* const it = static_cast<BegunOn*>(begun);
  Reason reason;
  if (!it->device->end(&it->job, written, &reason)) return false;
  last = it->device;
  *outcome = count(it->job.job, reason, *written);
  delete it;
  return true;
}

bool may_begin(size_t way, size_t raw_size, double left) noexcept {
  const std::span<Device* const> devices = current.load()->all();
  return std::any_of(devices.begin(), devices.end(), [&](const Device* device) {
    return !device->is_hopeless(way, raw_size, left);
  });
}

bool divides() noexcept {
  const Devices* devices = current;
  return devices->n != 0 && devices->device[0]->divided();
}

void use(Device* device, DeviceUse how) {
  if (device == nullptr) return use_all(&none, how);
  auto* devices = new Devices;
  keep(devices);
  devices->device[0] = device;
  devices->n = 1;
  use_all(devices, how);
}

// The first jobs, then one in 16: asking for the time takes half a microsecond.
constexpr int kWatched = 16;
bool knows_cores(size_t way) {
  const std::span<Device* const> devices = current.load()->all();
  return std::all_of(devices.begin(), devices.end(),
                     [&](const Device* device) { return device->knows_cores(way); });
}
CoresWatch::CoresWatch(const Job& job) : way_(job.way()), raw_size_(job.raw_size()) {
  if (!divides()) return;
  if (knows_cores(way_)) n_ = n_watches++ % kWatched == 0 ? kWatched : 0;
  if (n_ != 0) begin_ = thread_seconds();
}
CoresWatch::~CoresWatch() {
  if (begin_ == 0) return;
  const double time = thread_seconds() - begin_;
  for (Device* device : current.load()->all()) device->learn_cores(way_, raw_size_, time, n_);
}
bool selected() noexcept { return current.load()->n != 0; }
bool verifying() noexcept { return verify; }
void disown() noexcept {
  if (last != nullptr) last->switch_off();
}

}  // namespace compressdev

extern const Engine compressdev_engine;
const Engine compressdev_engine = {
    .name = "compressdev",
    .sentence = "compression hardware behind DPDK's compressdev, or a software driver of it",
    .unavailable = compressdev::unavailable,
    .select = compressdev::select,
    .extra_threads = compressdev::extra_threads,
    .state = compressdev::state,
    .refusal = compressdev::why_refused,
    .work = [] { return compressdev::work; },
};

}  // namespace wirepress
