// SPDX-License-Identifier: Apache-2.0
// The table of device_table.h over DPDK's compressdev (DPDK 22.11 and later). A module of its own:
// the headers need -march=corei7, and releases of DPDK differ in ABI.
#include <errno.h>
#include <fcntl.h>
#include <rte_bus_vdev.h>
#include <rte_compressdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "engines/compressdev/device_table.h"

namespace {

constexpr size_t kLinear = 65535;  // rte_mbuf::data_len has 16 bits
constexpr uint16_t kQueues = 16;
constexpr unsigned kInFlight = 16;  // of a queue pair; one is used

struct DeviceState {
  uint8_t id = 0;
  uint16_t n_queues = 0, n_open = 0;
  bool in_software = false;  // it works inside of submit, and on any memory
  rte_comp_xform xform[WPR_DEVICE_ALGORITHMS][2] = {};
  bool works[WPR_DEVICE_ALGORITHMS][2] = {};
};

// Memory of the driver library, wrapped once.
struct Side {
  std::byte* memory = nullptr;
  rte_mbuf* mbuf = nullptr;
};

struct Queue {
  uint8_t device = 0;
  uint16_t id = 0;
  bool in_software = false;
  rte_comp_op* op = nullptr;
  void* xform[WPR_DEVICE_ALGORITHMS][2] = {};  // no driver shares those of zlib
  Side src, dst;
  uint64_t tag = 0;
};

[[gnu::format(printf, 3, 4)]] int refuse(char* why, size_t size, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vsnprintf(why, size, format, args);
  va_end(args);
  return -1;
}

// "0@(0,2)": one thread of the library, on the cores that this process may use.
std::string cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) text.append(",").append(std::to_string(core));
  return "--lcores=0@(" + text.substr(1) + ")";
}

bool on_bus(const std::string& device) { return device.find(':') != std::string::npos; }

// EAL starts once in a process, and prints its usage where an option is refused: what it would
// refuse is looked at first.
int start_library(const std::string& device, char* why, size_t size) {
  static enum { kNot, kFailed, kStarted } state = kNot;
  if (state == kStarted) return 0;
  if (state == kFailed) return refuse(why, size, "DPDK's start failed before in this process");
  if (rte_lcore_count() != 0)
    return refuse(why, size, "this program uses DPDK itself, which starts once in a process");
  if (access("/sys/devices/system/cpu/cpu0/topology/core_id", R_OK) != 0)
    return refuse(why, size, "DPDK finds no processor without /sys; mount it");
  state = kFailed;
  std::vector<std::string> words = {"wirepress",       "--no-huge", "--no-shconf", "--no-telemetry",
                                    "--log-level=*:1", "-m",        "64",          cores()};
  if (on_bus(device))
    words.insert(words.end(), {"-a", device + ",class=compress"});
  else
    words.emplace_back("--no-pci");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (rte_eal_init(static_cast<int>(words.size()), arguments.data()) < 0)
    return refuse(why, size, "DPDK's start failed: %s", rte_strerror(rte_errno));
  state = kStarted;
  return 0;
}

// Where the link leads, its last part; "": there is none.
std::string link_end(const std::string& link) {
  char target[512];
  const ssize_t n = readlink(link.c_str(), target, sizeof target);
  const std::string text(target, n > 0 ? static_cast<size_t>(n) : 0);
  return text.substr(text.find_last_of('/') + 1);
}

// DPDK says only that it has no such device; the system knows more. mlx5 works beside the kernel's
// driver, the others need vfio-pci.
int refuse_on_bus(const std::string& name, char* why, size_t size) {
  const std::string place = "/sys/bus/pci/devices/" + name;
  if (access(place.c_str(), F_OK) != 0)
    return refuse(why, size, "there is no device %s on the PCI bus; lspci -D lists those there are",
                  name.c_str());
  const std::string driver = link_end(place + "/driver"), group = link_end(place + "/iommu_group");
  if (driver == "mlx5_core")
    return refuse(why, size,
                  "DPDK cannot open %s: install rdma-core and the driver's package "
                  "librte-compress-mlx5-*, and give this user /dev/infiniband/uverbs* and memory "
                  "that may be locked (ulimit -l unlimited)",
                  name.c_str());
  if (driver != "vfio-pci")
    return refuse(why, size, "%s has driver %s: bind it with dpdk-devbind.py -b vfio-pci %s",
                  name.c_str(), driver.empty() ? "none" : driver.c_str(), name.c_str());
  const std::string file = "/dev/vfio/" + group;
  const int opened = open(file.c_str(), O_RDWR | O_CLOEXEC);
  const int error = errno;
  if (opened >= 0) close(opened);
  if (opened < 0 && error == EBUSY)
    return refuse(why, size, "another process has %s: %s is busy", name.c_str(), file.c_str());
  if (opened < 0)
    return refuse(why, size, "this user may not open %s, the group of %s: %s; chown it to the user",
                  file.c_str(), name.c_str(), std::strerror(error));
  return refuse(why, size,
                "DPDK cannot use %s: its driver's package librte-compress-* or librte-common-qat* "
                "may be missing, or memory that may be locked (ulimit -l unlimited)",
                name.c_str());
}

// Drivers of devices on the bus, which are named by their addresses.
bool is_driver_on_bus(const std::string& name) {
  for (const char* driver : {"mlx5", "qat", "octeontx", "nitrox", "uadk", "zsda"})
    if (name == driver) return true;
  return false;
}

bool is_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// The device's id, or -1.
int find_device(const std::string& name, std::string* driver, char* why, size_t size) {
  if (!on_bus(name) && is_driver_on_bus(name))
    return refuse(why, size,
                  "%s is a driver of devices on the PCI bus: name the device by its address, such "
                  "as 0000:03:00.0 (lspci -D)",
                  name.c_str());
  if (!on_bus(name) && !is_name(name))
    return refuse(why, size, "\"%s\" names no device: isal, zlib or an address on the PCI bus does",
                  name.c_str());
  *driver = on_bus(name) ? name : "compress_" + name;
  if (!on_bus(name)) rte_eal_hotplug_add("vdev", driver->c_str(), "");
  const int id = rte_compressdev_get_dev_id(driver->c_str());
  if (id >= 0) return id;
  if (on_bus(name)) return refuse_on_bus(name, why, size);
  return refuse(why, size,
                "DPDK has no driver %s here; its packages are called librte-compress-*, and "
                "libdpdk-dev brings them all",
                driver->c_str());
}

// Whether an xform of this direction can be made: drivers list algorithms without directions.
bool can_make(uint8_t id, const rte_comp_xform& xform) {
  void* made = nullptr;
  if (rte_compressdev_private_xform_create(id, &xform, &made) < 0 || made == nullptr) return false;
  rte_compressdev_private_xform_free(id, made);
  return true;
}

void ask_deflate(const rte_compressdev_capabilities& can, DeviceState* device) {
  rte_comp_xform* xform = device->xform[WPR_DEVICE_DEFLATE];
  const bool dynamic = (can.comp_feature_flags & RTE_COMP_FF_HUFFMAN_DYNAMIC) != 0;
  rte_comp_xform& compress = xform[WPR_DEVICE_COMPRESS];
  compress.type = RTE_COMP_COMPRESS;
  compress.compress.algo = RTE_COMP_ALGO_DEFLATE;
  compress.compress.deflate.huffman = dynamic ? RTE_COMP_HUFFMAN_DYNAMIC : RTE_COMP_HUFFMAN_FIXED;
  compress.compress.level = RTE_COMP_LEVEL_PMD_DEFAULT;
  compress.compress.window_size = can.window_size.max;
  compress.compress.chksum = RTE_COMP_CHECKSUM_NONE;
  rte_comp_xform& expand = xform[WPR_DEVICE_EXPAND];
  expand.type = RTE_COMP_DECOMPRESS;
  expand.decompress.algo = RTE_COMP_ALGO_DEFLATE;
  expand.decompress.chksum = RTE_COMP_CHECKSUM_NONE;
  expand.decompress.window_size = can.window_size.max;
  for (int way = 0; way < 2; ++way)
    device->works[WPR_DEVICE_DEFLATE][way] = can_make(device->id, xform[way]);
}

// DPDK knows LZ4 since 23.03; drivers expand blocks of it, and compress none. The engine tries a
// sample before it believes that blocks are what it calls so.
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
void ask_lz4(DeviceState* device) {
  const auto* can = rte_compressdev_capability_get(device->id, RTE_COMP_ALGO_LZ4);
  if (can == nullptr) return;
  rte_comp_xform& expand = device->xform[WPR_DEVICE_LZ4][WPR_DEVICE_EXPAND];
  expand.type = RTE_COMP_DECOMPRESS;
  expand.decompress.algo = RTE_COMP_ALGO_LZ4;
  expand.decompress.chksum = RTE_COMP_CHECKSUM_NONE;
  expand.decompress.window_size = can->window_size.max;
  expand.decompress.lz4.flags = RTE_COMP_LZ4_FLAG_BLOCK_INDEPENDENCE;
  device->works[WPR_DEVICE_LZ4][WPR_DEVICE_EXPAND] = can_make(device->id, expand);
}
#else
void ask_lz4(DeviceState*) {}
#endif

// Memory pools have drivers, too, in a package that no driver of a device depends on.
bool has_pools() {
  rte_mempool* pool = rte_comp_op_pool_create("wpr", 1, 0, 0, SOCKET_ID_ANY);
  if (pool == nullptr) return false;
  rte_mempool_free(pool);
  return true;
}

bool start_queues(DeviceState* device) {
  rte_compressdev_info info;
  rte_compressdev_info_get(device->id, &info);
  device->n_queues = kQueues;
  if (info.max_nb_queue_pairs != 0)
    device->n_queues = std::min(device->n_queues, info.max_nb_queue_pairs);
  rte_compressdev_config config = {};
  config.socket_id = SOCKET_ID_ANY;
  config.nb_queue_pairs = device->n_queues;
  config.max_nb_priv_xforms = static_cast<uint16_t>(3 * (device->n_queues + 1));
  if (rte_compressdev_configure(device->id, &config) < 0) return false;
  for (uint16_t i = 0; i < device->n_queues; ++i)
    if (rte_compressdev_queue_pair_setup(device->id, i, kInFlight, SOCKET_ID_ANY) < 0) return false;
  return rte_compressdev_start(device->id) >= 0;
}

void fill_info(const DeviceState& device, const std::string& name, const std::string& driver,
               wpr_device_info* info) {
  std::snprintf(info->name, sizeof info->name, "%s", name.c_str());
  std::snprintf(info->driver, sizeof info->driver, "%s", driver.c_str());
  info->window_log = device.xform[WPR_DEVICE_DEFLATE][WPR_DEVICE_COMPRESS].compress.window_size;
  // Never chains of segments: isal (22.11) loses the end of some codes where a segment fills up, at
  // status 0, and loops for ever on a damaged code.
  for (int algorithm = 0; algorithm < WPR_DEVICE_ALGORITHMS; ++algorithm)
    for (const int way : {WPR_DEVICE_COMPRESS, WPR_DEVICE_EXPAND}) {
      if (!device.works[algorithm][way]) continue;
      const size_t most = way == WPR_DEVICE_COMPRESS ? kLinear : kLinear - WPR_DEVICE_PAD;
      info->max_src[algorithm][way] = info->max_dst[algorithm][way] = most;
    }
}

int describe(const char* name, wpr_device_info* info, char* why, size_t size) {
  if (start_library(name, why, size) != 0) return -1;
  std::string driver;
  const int id = find_device(name, &driver, why, size);
  if (id < 0) return -1;
  const auto* can = rte_compressdev_capability_get(static_cast<uint8_t>(id), RTE_COMP_ALGO_DEFLATE);
  if (can == nullptr) return refuse(why, size, "device %s does not know DEFLATE", name);
  auto* device = new (std::nothrow) DeviceState;  // lives as long as the process
  if (device == nullptr) return refuse(why, size, "no memory for device %s", name);
  device->id = static_cast<uint8_t>(id);
  device->in_software = driver == "compress_isal" || driver == "compress_zlib";
  if (!has_pools())
    return refuse(why, size,
                  "DPDK makes no memory pool: its driver's package librte-mempool-ring* may be "
                  "missing, which libdpdk-dev brings");
  if (!start_queues(device))
    return refuse(why, size, "device %s refuses its queues: another process may have it", name);
  ask_deflate(*can, device);
  ask_lz4(device);
  *info = {};
  info->device = device;
  fill_info(*device, name, driver, info);
  return 0;
}

void keep(void*, void*) {}  // wrapped memory is never freed

bool open_side(rte_mempool* pool, Side* side) {
  static rte_mbuf_ext_shared_info shared = {.free_cb = keep, .fcb_opaque = nullptr, .refcnt = 1};
  side->memory = static_cast<std::byte*>(rte_malloc(nullptr, kLinear, 64));
  side->mbuf = rte_pktmbuf_alloc(pool);
  if (side->memory == nullptr || side->mbuf == nullptr) return false;
  rte_pktmbuf_attach_extbuf(side->mbuf, side->memory, rte_malloc_virt2iova(side->memory), kLinear,
                            &shared);
  side->mbuf->data_off = 0;
  return true;
}

// The pools' names are those of the whole process.
bool fill_queue(const DeviceState& device, Queue* queue) {
  const std::string name = "wpr" + std::to_string(device.id) + "_" + std::to_string(queue->id);
  rte_mempool* ops = rte_comp_op_pool_create((name + "o").c_str(), 1, 0, 0, SOCKET_ID_ANY);
  rte_mempool* mbufs = rte_pktmbuf_pool_create((name + "m").c_str(), 2, 0, 0, 0, SOCKET_ID_ANY);
  if (ops == nullptr || mbufs == nullptr) return false;
  queue->op = rte_comp_op_alloc(ops);
  for (int algorithm = 0; algorithm < WPR_DEVICE_ALGORITHMS; ++algorithm)
    for (int way = 0; way < 2; ++way)  // what the device refuses stays null
      if (device.works[algorithm][way])
        rte_compressdev_private_xform_create(device.id, &device.xform[algorithm][way],
                                             &queue->xform[algorithm][way]);
  return queue->op != nullptr && open_side(mbufs, &queue->src) && open_side(mbufs, &queue->dst);
}

void* open_queue(void* state) {
  auto* device = static_cast<DeviceState*>(state);
  if (device->n_open == device->n_queues) return nullptr;
  auto* queue = new (std::nothrow) Queue;
  if (queue == nullptr) return nullptr;
  queue->device = device->id;
  queue->id = device->n_open++;
  queue->in_software = device->in_software;
  if (fill_queue(*device, queue)) return queue;
  device->n_queues = device->n_open;  // the library's memory is used up
  delete queue;
  return nullptr;
}

rte_mbuf* lay_out(Side* side, size_t size, const void* memory) {
  side->mbuf->buf_addr = const_cast<void*>(memory);
  side->mbuf->data_len = static_cast<uint16_t>(size);
  side->mbuf->pkt_len = static_cast<uint32_t>(size);
  return side->mbuf;
}

// Some drivers want a few bytes beyond the code: a job has all the room there is, and the caller
// compares.
int submit(void* state, const wpr_device_job* job) {
  auto* queue = static_cast<Queue*>(state);
  rte_comp_op* op = queue->op;
  const size_t src_size = job->src_size + job->pad;
  const bool in_place = queue->in_software && job->pad == 0;  // a device may be late
  if (!in_place) {
    std::memcpy(queue->src.memory, job->src, job->src_size);
    std::memset(queue->src.memory + job->src_size, 0, job->pad);
  }
  op->op_type = RTE_COMP_OP_STATELESS;
  op->private_xform = queue->xform[job->algorithm][job->direction];
  op->m_src = lay_out(&queue->src, src_size, in_place ? job->src : queue->src.memory);
  op->m_dst = lay_out(&queue->dst, kLinear, queue->dst.memory);
  op->src.offset = op->dst.offset = 0;
  op->src.length = static_cast<uint32_t>(src_size);
  op->flush_flag = RTE_COMP_FLUSH_FINAL;
  op->input_chksum = 0;
  op->consumed = op->produced = 0;
  op->status = RTE_COMP_OP_STATUS_NOT_PROCESSED;
  queue->tag = job->tag;
  if (rte_compressdev_enqueue_burst(queue->device, queue->id, &op, 1) == 1) return 1;
  return op->status == RTE_COMP_OP_STATUS_NOT_PROCESSED || op->status == RTE_COMP_OP_STATUS_SUCCESS
             ? 0
             : -1;
}

int poll(void* state, wpr_device_answer* answer) {
  auto* queue = static_cast<Queue*>(state);
  rte_comp_op* op = nullptr;
  if (rte_compressdev_dequeue_burst(queue->device, queue->id, &op, 1) != 1) return 0;
  if (op != queue->op || op->status == RTE_COMP_OP_STATUS_NOT_PROCESSED) return 0;  // came twice
  *answer = {queue->tag, op->status, op->consumed, op->produced, queue->dst.memory};
  return 1;
}

void close_device(void* state) {
  const auto* device = static_cast<DeviceState*>(state);
  rte_compressdev_stop(device->id);
  rte_compressdev_close(device->id);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const wpr_device_table wpr_device_table_2;
extern "C" const wpr_device_table wpr_device_table_2 = {describe, open_queue,   submit,
                                                        poll,     close_device, nullptr};
