// SPDX-License-Identifier: Apache-2.0
// The engine: finds and loads the module when a program selects the engine, and keeps the device to
// the process's end. One device a process.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

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
std::atomic<Device*> current{nullptr};
std::atomic<bool> verify{false};

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
    "this build has no module for it: apt-get install libdpdk-dev, and build wirepress again";

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

Status start(const char* name, Device** device) {
  const wpr_device_table* table = nullptr;
  wpr_device_info info;
  WPR_TRY(load_in_helper(name, &table, &info));
  *device = new Device(*table, info);  // never freed
  return (*device)->probe() ? Status() : fail(Code::kDevice, "%s fails on a sample", name);
}

// "" and "any" are the device in use, or the default.
Status find_device(const char* wanted, DeviceUse how) {
  const std::string_view text = wanted;
  const bool any = text.empty() || text == "any";
  Device* device = current;
  if (device == nullptr) {
    const char* name = any ? kDefaultDevice : wanted;
    if (*refused_device == name) return fail(Code::kDevice, "%s", refusal->c_str());
    const Status status = start(name, &device);
    if (!status.ok()) *refused_device = name;
    WPR_TRY(status);
  } else if (device->owner() != getpid()) {
    return fail(Code::kDevice, "%s belongs to the parent process", device->info().name);
  } else if (!any && text != device->info().name) {
    return fail(Code::kDevice, "this process has device %s, and one is all it may have",
                device->info().name);
  }
  use(device, how);
  return {};
}

Status select(const char* wanted, DeviceUse how) {
  const std::scoped_lock lock(selecting);
  const Status status = find_device(wanted, how);
  *refusal = status.ok() ? "" : status.text();
  return status;
}

std::string why_refused() {
  const std::scoped_lock lock(selecting);
  return *refusal;
}

int extra_threads(Wait wait) {
  const Device* device = current;
  if (device == nullptr) return 0;
  if (wait == Wait::kAtMost) return device->depth();
  return device->gives(wait == Wait::kExpanding ? Direction::kExpand : Direction::kCompress)
             ? device->depth()
             : 0;
}

std::string state() {
  const Device* device = current;
  return device != nullptr ? device->state() : "";
}

}  // namespace

Outcome run(const Job& job, size_t* written) noexcept {
  Device* device = current;
  if (device == nullptr) return Outcome::kCores;
  const Reason reason = device->run(job, written);
  if (reason == Reason::kNone) {
    work.device_size += job.direction == Direction::kCompress ? job.src.size() : *written;
    return Outcome::kDone;
  }
  work.cores_size += job.raw_size();
  work.reason = reason_text(reason);
  return reason == Reason::kWrongSum ? Outcome::kWrongSum : Outcome::kCores;
}
void use(Device* device, DeviceUse how) {
  verify = how.verify;
  if (device != nullptr) device->divide(how.with_cores);
  current = device;
}
CoresWatch::~CoresWatch() {
  if (Device* device = current) device->learn_cores(way_, raw_size_, Clock::now() - begin_);
}
bool selected() noexcept { return current != nullptr; }
bool verifying() noexcept { return verify; }
void disown() noexcept {
  if (Device* device = current) device->switch_off();
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
