// SPDX-License-Identifier: Apache-2.0
// Work that a device does in the order of a caller's stream, while nobody waits for it. Memory is
// of a device (DeviceMemory::allocate) or pinned; nothing here allocates but what says so, and
// nothing waits but `await`.
#pragma once

#include "base/kernel.hpp"
#include "base/stream_plan.hpp"

namespace wirepress {

// What a job left, in memory of the device; the host reads it when it likes.
struct Report {
  uint64_t written;    // bytes
  uint64_t first_bad;  // the first chunk that no encoder wrote; kNone
  uint64_t full;       // not 0: the code does not fit, or (kNoise) is not wanted
  uint64_t elsewhere;  // not 0: what no kernel for GPUs codes
  static constexpr uint64_t kNone = ~uint64_t{0}, kNoise = 2;
};
inline constexpr Report kNoReport = {0, Report::kNone, 0, 0};

// In memory of the device, aligned to 16, as long as the work is on its way. When the work begins
// `report` holds kNoReport.
struct StreamTask {
  std::byte* raw = nullptr;
  size_t raw_size = 0;
  std::byte* code = nullptr;
  size_t code_size = 0;  // its room, in encoding
  std::byte* scratch = nullptr;
  size_t scratch_size = 0;
  Report* report = nullptr;
  // Of encode_feedback, whose code has a room of bound() bytes:
  std::byte* residual = nullptr;  // of raw_size bytes
  // Where a code has more than `limit` bytes the report says `full`, and what the code decodes to
  // is put here, raw_size bytes; nullptr: no code has.
  std::byte* values = nullptr;
  size_t limit = 0;
};

// What a kernel puts on a stream (Kernel::on_stream).
struct StreamKernel {
  size_t (*scratch)(const Args& args, size_t raw_size, bool decodes) noexcept;
  // What can be refused without a look at the code.
  Status (*check_encode)(const Args& args, size_t raw_size, size_t room) noexcept;
  Status (*check_decode)(const Args& args, size_t code_size, size_t raw_size) noexcept;
  // Notes what the task takes, behind the checks. Of a draft (stream_plan.hpp) no address is looked
  // at.
  Status (*encode)(int device, void* stream, const Args& args, const StreamTask& task,
                   StreamPlan* plan) noexcept;
  Status (*decode)(int device, void* stream, const Args& args, const StreamTask& task,
                   StreamPlan* plan) noexcept;
  // What a report says, once the host has it.
  Status (*outcome)(const Report& report, size_t raw_size, size_t room) noexcept;
  // Of gradients, as Kernel's of these names; nullptr where that has none. The scratch memory of
  // the first is what encode and decode need.
  Status (*encode_feedback)(int device, void* stream, const Args& args, const StreamTask& task,
                            StreamPlan* plan) noexcept = nullptr;
  Status (*decode_add)(int device, void* stream, const Args& args, const StreamTask& task,
                       StreamPlan* plan) noexcept = nullptr;
  // Of some others: what `encode` has put in task.code before, as long as task.report says, to
  // task.raw. With that a frame is made with error feedback in parts (Keeping).
  Status (*decode_made)(int device, void* stream, const Args& args, const StreamTask& task,
                        StreamPlan* plan) noexcept = nullptr;
};

// A frame that a device puts together of the codes of its blocks, with their checksums
// (spec/frame.md). Pointers are of the device; dst may be pinned.
struct SealedBlock {
  uint64_t place;  // of its first byte, in the frame
  uint32_t word, checksum;
};
struct Sealed {
  uint64_t size;       // of the frame
  uint64_t full;       // not 0: it does not fit, and dst is as it was
  uint64_t elsewhere;  // not 0: a block is one that no kernel for GPUs codes, and dst is as it was
  uint64_t n_raw;      // blocks that are stored as they are
  uint64_t n_noise;    // of these, such as look like noise
};
struct Sealing {
  const std::byte* raw;  // aligned to 16, and so is block_size where there is more than one
  uint64_t raw_size, block_size, n_blocks;
  const std::byte* codes;  // of block i at i * slot; slot is a multiple of 256
  uint64_t slot;
  const Report* reports;
  const std::byte* header;
  uint64_t header_size;
  uint64_t checksum;  // 1: every block carries one
  std::byte* dst;
  uint64_t cap;
  SealedBlock* blocks;  // n_blocks
  Sealed* result;       // zeros
};

// What kernels left before. *all_well is 1 when the work begins, and 0 where a report says that its
// values are not there: then nothing is changed.
struct Reports {
  Report* first = nullptr;
  uint64_t n = 0;
  uint64_t* all_well = nullptr;
};

// to = base + from, of float32, `size` bytes of each. Aligned to 16.
struct Adding {
  std::byte* to = nullptr;
  const std::byte* base = nullptr;
  const std::byte* from = nullptr;
  size_t size = 0;
  Reports reports;  // of what was expanded before; none: it is added in any case
};

// What is done behind the blocks' encode and decode_made, of float32, `size` bytes of each:
// residual = sum - values, 0 where that is not finite. The report of a block that is not well says
// `elsewhere`; that of a code of more than `limit` bytes, of the last block `last_limit`, `full`.
struct Keeping {
  const std::byte* sum = nullptr;
  const std::byte* values = nullptr;
  std::byte* residual = nullptr;
  size_t size = 0;
  Reports reports;
  uint64_t limit = 0, last_limit = 0;
};

// Values that were made before are copied, `size` bytes, aligned to 16.
struct Putting {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t size = 0;
  Reports reports;
};

// A look at blocks of raw data behind their encode: the report of one that looks like noise
// (base/noise.hpp) says that its code is not wanted.
struct Probing {
  const std::byte* raw = nullptr;
  size_t raw_size = 0, block_size = 0, n_blocks = 0;
  Report* reports = nullptr;
};

inline Status is_captured() {
  return fail(Code::kParameter, "the stream is captured into a graph, and a job is for once");
}

// Of one kind of device. `stream` is the caller's, nullptr the default one, or one that was made
// here.
struct DeviceStreams {
  // A stream that waits for no other one.
  Status (*make_stream)(int device, void** stream) noexcept;
  void (*drop_stream)(int device, void* stream) noexcept;
  // Whether a job may be put there: not while the stream's work is recorded for later (a graph).
  Status (*check)(int device, void* stream) noexcept;
  // Memory of the cores that copies and kernels of all devices reach while nobody waits; allocates.
  Status (*pin)(int device, size_t size, void** at) noexcept;
  void (*unpin)(void* at) noexcept;
  Status (*copy)(int device, void* stream, std::byte* to, const std::byte* from,
                 size_t size) noexcept;
  Status (*clear)(int device, void* stream, std::byte* at, size_t size) noexcept;
  // Notes that a frame is put together.
  Status (*seal)(int device, void* stream, const Sealing& sealing, StreamPlan* plan) noexcept;
  // Notes that values are added.
  Status (*add)(int device, void* stream, const Adding& adding, StreamPlan* plan) noexcept;
  // Notes that values are put where they belong.
  Status (*put)(int device, void* stream, const Putting& putting, StreamPlan* plan) noexcept;
  // Notes that a frame's blocks are probed.
  Status (*probe)(int device, void* stream, const Probing& probing, StreamPlan* plan) noexcept;
  // Notes what is kept of values that were coded with error feedback.
  Status (*keep)(int device, void* stream, const Keeping& keeping, StreamPlan* plan) noexcept;
  // A mark in a stream, which is passed when all that was on the stream before it is done. A failed
  // status of `passed` and `await`: the work has failed, and the device does it no more.
  Status (*make_mark)(int device, void** mark) noexcept;  // allocates
  void (*drop_mark)(int device, void* mark) noexcept;
  Status (*set_mark)(int device, void* stream, void* mark) noexcept;
  Status (*passed)(int device, void* mark, bool* yes) noexcept;
  Status (*await)(int device, void* mark) noexcept;
};

}  // namespace wirepress
