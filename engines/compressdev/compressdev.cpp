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

constexpr const char* kModule = "libwirepress_compressdev.so";
constexpr const char* kDefaultDevice = "isal";

std::mutex selecting;
std::atomic<Device*> current{nullptr};
std::atomic<bool> verify{false};

// Beside the library, in the folders where an installation and a wheel keep modules, or where it
// was built; "": nowhere.
std::string find_module() {
  Dl_info here;
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&find_module), &here) != 0) folder = here.dli_fname;
  folder.resize(folder.find_last_of('/') + 1);
  std::string places[] = {folder, folder + "wirepress/", folder + "lib/", folder + "../",
                          folder + "../lib/"};
  for (std::string& place : places) {
    place += kModule;
    if (access(place.c_str(), R_OK) == 0) return place;
  }
#ifdef WPR_MODULE_FOLDER
  const std::string built = std::string(WPR_MODULE_FOLDER "/") + kModule;
  if (access(built.c_str(), R_OK) == 0) return built;
#endif
  return "";
}

const char* unavailable() {
  static const std::string* const place = new std::string(find_module());
  return place->empty() ? "this build has no module for it: libdpdk-dev was not found" : nullptr;
}

Status load(const char* name, const wpr_device_table** table, wpr_device_info* info) {
  const std::string file = find_module();
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return fail(Code::kDevice, "%s", dlerror());
  *table = static_cast<const wpr_device_table*>(dlsym(module, WPR_DEVICE_SYMBOL));
  if (*table == nullptr) return fail(Code::kDevice, "%s is of another version", file.c_str());
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
Status select(const char* wanted, bool with_verify) {
  const std::scoped_lock lock(selecting);
  const std::string_view text = wanted;
  const bool any = text.empty() || text == "any";
  Device* device = current;
  if (device == nullptr) {
    WPR_TRY(start(any ? kDefaultDevice : wanted, &device));
  } else if (device->owner() != getpid()) {
    return fail(Code::kDevice, "%s belongs to the parent process", device->info().name);
  } else if (!any && text != device->info().name) {
    return fail(Code::kDevice, "this process has device %s, and one is all it may have",
                device->info().name);
  }
  use(device, with_verify);
  return {};
}

std::string state() {
  const Device* device = current;
  return device != nullptr ? device->state() : "";
}

}  // namespace

bool run(Direction direction, bool has_sum, ConstBytes src, Bytes dst, size_t* written) noexcept {
  Device* device = current;
  return device != nullptr && device->run(direction, has_sum, src, dst, written);
}
void use(Device* device, bool with_verify) {
  verify = with_verify;
  current = device;
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
    .state = compressdev::state,
};

}  // namespace wirepress
