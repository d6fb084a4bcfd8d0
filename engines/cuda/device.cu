// SPDX-License-Identifier: Apache-2.0
// Whether this machine has a GPU, and its memory. The CUDA runtime is linked in and looks for the
// driver when it is first asked: a program that loads this library needs none.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <link.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "engines/cuda/device.cuh"
#include "engines/cuda/emulated_memory.hpp"
#include "engines/cuda/seal.hpp"
#include "engines/cuda/values.hpp"

namespace wirepress::cuda {
namespace {

// What the first call found; later changes of a machine are not seen.
struct Found {
  char name[320] = "";
  char reason[320] = "";

  Found() noexcept {
    int count = 0, device = 0, driver = 0;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        driver == 0) {
      std::snprintf(reason, sizeof(reason), "no device: no NVIDIA driver is loaded");
    } else if (error != cudaSuccess) {
      std::snprintf(reason, sizeof(reason), "no device: %s", cudaGetErrorString(error));
    } else if (properties.major < 8) {
      std::snprintf(reason, sizeof(reason), "no device: %s is sm_%d%d, the kernels need sm_80",
                    properties.name, properties.major, properties.minor);
    } else {
      std::snprintf(name, sizeof(name), "cuda:sm_%d%d, %s", properties.major, properties.minor,
                    properties.name);
    }
    cudaGetLastError();  // it is not the next one's
  }
};

std::atomic<bool> streams{false};

const Found& found() noexcept {
  static const Found once;
  return once;
}

// Libraries that this process has loaded since it began.
unsigned long long n_loaded() noexcept {
  unsigned long long n = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;
      },
      &n);
  return n;
}

// The driver's own question, which makes no context, where somebody has loaded the driver: else no
// address can be a device's.
using Ask = CUresult (*)(void* answer, CUpointer_attribute what, CUdeviceptr at);
std::atomic<Ask> known_ask{nullptr};

Ask look_for_driver() noexcept {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver != nullptr) known_ask = reinterpret_cast<Ask>(dlsym(driver, "cuPointerGetAttribute"));
  return known_ask;
}

// It is looked for once a tick of the clock, a few milliseconds, which is less than a driver takes
// from its loading to the first memory, and where a library was loaded.
Ask asks() noexcept {
  static std::atomic<unsigned long long> looked{0};
  static std::atomic<int64_t> looked_at{-1};
  if (const Ask ask = known_ask) return ask;
  timespec clock;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &clock);
  const int64_t tick = clock.tv_sec * int64_t{1000000000} + clock.tv_nsec;
  if (looked_at == tick) return nullptr;
  const unsigned long long now = n_loaded();
  if (looked != now) look_for_driver();
  looked = now;  // last: another thread looks itself until this one has found it
  looked_at = tick;
  return known_ask;
}

bool possible() noexcept { return known_ask != nullptr || look_for_driver() != nullptr; }

// Managed memory is the cores', too.
int device_of(const void* at) noexcept {
  const Ask ask = at == nullptr ? nullptr : asks();
  if (ask == nullptr) return -1;
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  unsigned type = 0, managed = 0;
  int device = -1;
  if (ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE ||
      ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS || managed != 0 ||
      ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
    return -1;
  return device;
}

// One for copies that no kernel's state makes, of the current device. It does not wait for the
// default stream, on which a program may have much to do.
Status copy_stream(int device, cudaStream_t* stream) noexcept {
  static std::array<std::atomic<cudaStream_t>, 64> all;
  std::atomic<cudaStream_t>& own = all[static_cast<size_t>(device) % all.size()];
  *stream = own;
  if (*stream != nullptr) return {};
  WPR_TRY(checked(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "a stream"));
  cudaStream_t before = nullptr;
  if (!own.compare_exchange_strong(before, *stream)) {
    cudaStreamDestroy(*stream);
    *stream = before;
  }
  return {};
}

Status download(int device, std::byte* to, const std::byte* from, size_t row_size, size_t step,
                size_t n) noexcept {
  const Stream::Bound bound(device);
  cudaStream_t stream;
  WPR_TRY(copy_stream(device, &stream));
  const cudaError_t error =
      n == 1 ? cudaMemcpyAsync(to, from, row_size, cudaMemcpyDeviceToHost, stream)
             : cudaMemcpy2DAsync(to, row_size, from, step, row_size, n, cudaMemcpyDeviceToHost,
                                 stream);
  WPR_TRY(checked(error, "download"));
  return checked(cudaStreamSynchronize(stream), "download");
}

Status upload(int device, std::byte* to, ConstBytes from) noexcept {
  const Stream::Bound bound(device);
  cudaStream_t stream;
  WPR_TRY(copy_stream(device, &stream));
  WPR_TRY(checked(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream),
                  "upload"));
  return checked(cudaStreamSynchronize(stream), "upload");
}

Status wait(int device, void* stream) noexcept {
  const Stream::Bound bound(device);
  return checked(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the caller's stream");
}

// What is not there is no failure of the device: a program's own memory may be all of it.
Status allocated(cudaError_t error, const char* what, size_t size) noexcept {
  if (error != cudaErrorMemoryAllocation) return checked(error, what);
  cudaGetLastError();
  return fail(Code::kNoMemory, "cuda: no %s for %zu bytes", what, size);
}

Status allocate(int device, size_t size, void** at) noexcept {
  if (why_no_device() != nullptr) return fail(Code::kDevice, "cuda: %s", why_no_device());
  int n = 0;
  WPR_TRY(checked(cudaGetDeviceCount(&n), "devices"));
  if (device < 0 || device >= n)
    return fail(Code::kParameter, "cuda: no device %d: there are %d", device, n);
  const Stream::Bound bound(device);
  return allocated(cudaMalloc(at, size == 0 ? 1 : size), "memory", size);
}

Status release(int device, void* at) noexcept {
  const Stream::Bound bound(device);
  return checked(cudaFree(at), "memory");
}

// ---- streams ----

Status pin(int device, size_t size, void** at) noexcept {
  const Stream::Bound bound(device);
  return allocated(cudaHostAlloc(at, size == 0 ? 1 : size, cudaHostAllocPortable), "pinned memory",
                   size);
}
void unpin(void* at) noexcept { cudaFreeHost(at); }

Status make_stream(int device, void** stream) noexcept {
  const Stream::Bound bound(device);
  cudaStream_t made = nullptr;
  WPR_TRY(checked(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "a stream"));
  *stream = made;
  return {};
}
void drop_stream(int device, void* stream) noexcept {
  const Stream::Bound bound(device);
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

Status check_stream(int device, void* stream) noexcept {
  const Stream::Bound bound(device);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  WPR_TRY(checked(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status),
                  "the caller's stream"));
  return status == cudaStreamCaptureStatusNone ? Status() : is_captured();
}

Status copy_on(int device, void* stream, std::byte* to, const std::byte* from,
               size_t size) noexcept {
  if (size == 0) return {};
  const Stream::Bound bound(device);
  return checked(
      cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
      "a copy");
}

Status clear_on(int device, void* stream, std::byte* at, size_t size) noexcept {
  if (size == 0) return {};
  const Stream::Bound bound(device);
  return checked(cudaMemsetAsync(at, 0, size, static_cast<cudaStream_t>(stream)), "memory");
}

Status seal(int, void*, const Sealing& task, StreamPlan* plan) noexcept {
  return note_seal<StreamQueue>(task, plan);
}

Status add(int, void*, const Adding& adding, StreamPlan* plan) noexcept {
  return note_add<StreamQueue>(adding, plan);
}
Status put_values(int, void*, const Putting& putting, StreamPlan* plan) noexcept {
  return note_put<StreamQueue>(putting, plan);
}
Status probe(int, void*, const Probing& probing, StreamPlan* plan) noexcept {
  return note_probe<StreamQueue>(probing, plan);
}
Status keep(int, void*, const Keeping& keeping, StreamPlan* plan) noexcept {
  return note_keep<StreamQueue>(keeping, plan);
}

Status make_mark(int device, void** mark) noexcept {
  const Stream::Bound bound(device);
  cudaEvent_t event = nullptr;
  const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  *mark = event;
  return checked(error, "an event");
}
void drop_mark(int device, void* mark) noexcept {
  const Stream::Bound bound(device);
  cudaEventDestroy(static_cast<cudaEvent_t>(mark));
}
Status set_mark(int device, void* stream, void* mark) noexcept {
  const Stream::Bound bound(device);
  return checked(cudaEventRecord(static_cast<cudaEvent_t>(mark), static_cast<cudaStream_t>(stream)),
                 "an event");
}
Status passed(int device, void* mark, bool* yes) noexcept {
  const Stream::Bound bound(device);
  const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(mark));
  *yes = error != cudaErrorNotReady;
  if (*yes) return checked(error, "a kernel");
  cudaGetLastError();  // "not ready" is an answer, and stays with the thread as an error
  return {};
}
Status await(int device, void* mark) noexcept {
  const Stream::Bound bound(device);
  return checked(cudaEventSynchronize(static_cast<cudaEvent_t>(mark)), "a kernel");
}

constexpr DeviceStreams kStreams = {.make_stream = make_stream,
                                    .drop_stream = drop_stream,
                                    .check = check_stream,
                                    .pin = pin,
                                    .unpin = unpin,
                                    .copy = copy_on,
                                    .clear = clear_on,
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

}  // namespace

const DeviceMemory device_memory = {
    .kernels = "cuda:device",
    .device_of = device_of,
    .possible = possible,
    .download = download,
    .upload = upload,
    .wait = wait,
    .allocate = allocate,
    .release = release,
    .on_cores = [](const void*) noexcept -> std::byte* { return nullptr; },
    .note = note_device_work,
    .streams = &kStreams};

bool has_device() noexcept { return found().reason[0] == '\0'; }
const char* why_no_device() noexcept { return has_device() ? nullptr : found().reason; }
const char* device_name() noexcept { return found().name; }
bool has_stream() noexcept { return streams; }
void note_stream() noexcept { streams = true; }

}  // namespace wirepress::cuda
