// SPDX-License-Identifier: Apache-2.0
// The structs between rooms: what a codec and a kernel are, and the generated registry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace wirepress {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

// Element types. The values are frozen: they stand in frame headers (spec/frame.md, "dtype").
enum class DType : uint8_t {
  kBytes = 0,  // opaque
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kInt64 = 7,
  kUint64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kFloat8E4M3 = 13,
  kFloat8E5M2 = 14,
  kBool = 15,
  kComplex64 = 16,
  kComplex128 = 17,
};
inline constexpr int kDTypeCount = 18;
inline constexpr int kMaxDims = 4;

size_t dtype_size(DType dtype);       // bytes per element; kBytes: 1
const char* dtype_name(DType dtype);  // "bytes", "float32" ...

// What a parameter bounds of each value's error, if it does.
enum class Bounds : uint8_t {
  kNothing,
  kFractionBits,  // the relative error: at most 2^-(m+1) for m fraction bits
  kAbsolute,      // the absolute error: at most the parameter
};

// One parameter of a codec: an integer that fits a signed byte, or a real, as they stand in the
// frame header. Where `words` is set the text form is words[value] instead of the number.
struct Param {
  const char* name;
  int min;  // of a real: 0, as max; Codec::check knows its range
  int max;
  int fallback;              // the value when the recipe does not name it
  const char* const* words;  // nullptr, or max + 1 names for the values 0..max
  const char* sentence;
  bool real = false;
  // Came after the codec's first release; such ones stand last. Where all of them have their
  // fallback they are left out of the frame header, which is then as it was before.
  bool later = false;
  Bounds bounds = Bounds::kNothing;
  bool positive = false;  // a real whose 0 says that the recipe does not name it: it never names 0

  size_t size() const { return real ? 3 : 1; }  // bytes in the frame header
};
inline constexpr size_t kMaxParams = 4;
inline constexpr size_t kMaxParamBytes = 3 * kMaxParams;

// A real parameter: digits * 10^exponent, digits 0..32767 without a final 0 in decimal, exponent
// -128..127, so that text, header and text again are the same number. 0 is digits 0, exponent 0.
constexpr int real_param(int digits, int exponent) { return digits + exponent * 65536; }
constexpr int real_digits(int value) { return value & 0xFFFF; }
constexpr int real_exponent(int value) { return value >> 16; }
double real_of(int value);                                   // the nearest double
bool parse_real(const char* text, size_t size, int* value);  // false: no such number
std::string real_text(int value);  // the shortest text that parse_real takes back

// One stage's parameters, in the order of Codec::params, and what else it may depend on.
struct Args {
  DType dtype = DType::kBytes;
  std::array<int, kMaxParams> value{};
  // Extents of the whole array in C order, for codecs with by_slabs; n_dims 0: not known. A block
  // is then a run of whole rows (of the outermost dimension), 4 or a multiple of it but for the
  // last, or the whole array.
  int n_dims = 0;
  std::array<uint64_t, kMaxDims> shape{};
  // For encoders that draw random numbers, and only for them: what they draw for element i of the
  // block depends on (seed, first + i) and nothing else.
  uint64_t seed = 0;
  uint64_t first = 0;
  // decode's dst has exactly the raw size; false behind a codec that changes sizes.
  bool exact_size = true;
  // What decode writes is more than caches hold, with what else is expanded: it may go past them.
  bool past_caches = false;
  // The device, of an engine that has several, whose memory the raw data may lie in
  // (base/memory.hpp); -1: they lie where the cores reach them.
  int device = -1;
  // Then, of such an engine: the device that works, the current one of the thread that called.
  int home = -1;

  double real(size_t i) const { return real_of(value[i]); }
};

// A byte format. Says what the bytes mean, never where they are made.
struct Codec {
  const char* name;
  const char* sentence;           // one line for `wirepress codecs`
  std::span<const Param> params;  // the first one may be given without its name: "zstd:3"
  bool lossless;
  bool exact_encode;        // every kernel writes the same bytes
  bool keeps_size;          // the encoded size is always the raw size
  bool needs_size;          // decode must be given a dst of exactly the raw size
  bool typed = false;       // the bytes depend on the dtype; check() says which it takes
  bool by_slabs = false;    // wants Args::shape, and blocks that are whole rows of the array
  bool stable = true;       // encoding what was decoded changes nothing more
  bool may_refuse = false;  // encode may say kDstTooSmall for any dst: these data cannot be coded
  bool sparse = false;      // codes some float32 values exactly and drops the others
  // The id of an older format of this name, which is no longer read and not used again; 0: none.
  uint16_t former_id = 0;
  // Gradients train worse without error feedback. Not so where the error is unbiased, and averages
  // out over steps and ranks, or is far below the noise of a gradient.
  bool wants_feedback = false;
  // Checks the parameters against each other and the dtype, and resolves those that depend on the
  // dtype. nullptr: nothing to check.
  Status (*check)(Args* args);
  // The largest encoded size of n raw bytes.
  size_t (*bound)(const Args& args, size_t n);
  // Whether these checked parameters lose nothing; nullptr: as `lossless` says, whatever they are.
  bool (*lossless_with)(const Args& args) = nullptr;

  bool is_lossless(const Args& args) const {
    return lossless_with != nullptr ? lossless_with(args) : lossless;
  }
};

// The codec's parameters as a recipe has them that names none; not checked.
inline Args default_args(const Codec& codec, DType dtype) {
  Args args;
  args.dtype = dtype;
  for (size_t i = 0; i < codec.params.size(); ++i) args.value[i] = codec.params[i].fallback;
  return args;
}

struct StreamKernel;  // base/streams.hpp

// One implementation of one codec on one engine. Reads and writes only the spans it is given.
struct Kernel {
  const char* engine;   // "cpu" or "rtl": a name of engines()
  const char* variant;  // "scalar", "avx2", "avx512", "neon", "liblz4" ...
  bool (*usable)() noexcept;
  // A context that one thread at a time uses, reused from block to block; nullptr: stateless.
  Status (*open)(const Args& args, void** state) noexcept;
  void (*close)(void* state) noexcept;  // of nullptr: does nothing
  // Writes at most dst.size() bytes; kDstTooSmall where the code does not fit (the caller then
  // stores the block raw), any dst of bound() bytes fits.
  Status (*encode)(void* state, const Args& args, ConstBytes src, Bytes dst,
                   size_t* written) noexcept;
  // src is untrusted. Writes at most dst.size() bytes, exactly the raw size.
  Status (*decode)(void* state, const Args& args, ConstBytes src, Bytes dst,
                   size_t* written) noexcept;

  // The rest is optional (nullptr); the first three are for float32 gradients, `add` for integers
  // too. Each must give bit for bit what the functions above give with plain additions between
  // them, of integers modulo 2^bits.

  // Encodes t[i] = src[i] + residual[i] and leaves residual[i] = t[i] - decoded[i] (0 where that
  // is not finite), in one pass. dst has bound() bytes; a smaller one fails before anything is
  // written.
  Status (*encode_feedback)(void* state, const Args& args, ConstBytes src, Bytes residual,
                            Bytes dst, size_t* written) noexcept = nullptr;
  // dst[i] += decoded[i]; where a code leaves zeros out, a -0 in dst may stay one. After kCorrupt
  // any part of dst may have been added to.
  Status (*decode_add)(void* state, const Args& args, ConstBytes src, Bytes dst) noexcept = nullptr;
  // The code of decoded(a) + decoded(b), without decoding: both are codes of raw_size bytes made
  // with these args. kUnsupported where these two have no such sum.
  Status (*add)(void* state, const Args& args, ConstBytes a, ConstBytes b, size_t raw_size,
                Bytes dst, size_t* written) noexcept = nullptr;
  // For integers that are steps between words (base/order.hpp), in one pass. The code of the steps
  // from `before` to `after`, as encode makes it.
  Status (*encode_steps)(void* state, const Args& args, ConstBytes before, ConstBytes after,
                         Bytes dst, size_t* written) noexcept = nullptr;
  // Moves the words of dst by the decoded steps. After kCorrupt any part of dst may have moved.
  Status (*decode_steps)(void* state, const Args& args, ConstBytes src,
                         Bytes dst) noexcept = nullptr;
  // Parts of one code that can be decoded side by side (1: none), and one of them: it writes its
  // own part of dst, which has the raw size.
  size_t (*parts)(const Args& args, ConstBytes src, size_t raw_size) noexcept = nullptr;
  Status (*decode_part)(void* state, const Args& args, ConstBytes src, size_t part,
                        Bytes dst) noexcept = nullptr;

  // Of an engine whose device works beside the cores. As encode and decode; or *begun is not
  // nullptr, and the device has the block: end_encode or end_decode then ends it, called with the
  // same arguments by the same thread until it is true, while src and dst stay. `left`: what nobody
  // has begun of the message, in blocks of this one's size, this one among them, for each thread
  // that works on it. begin_encode also takes 0: the thread is there to wait for the device, and
  // nothing is begun.
  // divides: device and cores divide the blocks of a message now; encode and decode do the same
  // without. may_begin is false where the device surely does not expand a block of this size now;
  // decode then does the same for less.
  bool (*divides)() noexcept = nullptr;
  bool (*may_begin)(size_t raw_size, double left) noexcept = nullptr;
  Status (*begin_encode)(void* state, const Args& args, ConstBytes src, Bytes dst, double left,
                         size_t* written, void** begun) noexcept = nullptr;
  bool (*end_encode)(void* state, const Args& args, void* begun, ConstBytes src, Bytes dst,
                     size_t* written, Status* status) noexcept = nullptr;
  Status (*begin_decode)(void* state, const Args& args, ConstBytes src, Bytes dst, double left,
                         size_t* written, void** begun) noexcept = nullptr;
  bool (*end_decode)(void* state, const Args& args, void* begun, ConstBytes src, Bytes dst,
                     size_t* written, Status* status) noexcept = nullptr;
  // Of an engine whose devices have memory of their own: the calling thread's current one
  // (Args::home).
  int (*current_device)() noexcept = nullptr;
  // The same work, in the order of a stream.
  const StreamKernel* on_stream = nullptr;
};

struct Entry {
  uint16_t id;  // 1..0xFFF, frozen
  const Codec* codec;
  std::span<const Kernel* const> kernels;  // best first, scalar last
};

// Every codec of this build, ordered by id. Written by cmake/registry.cmake from the codec folders.
std::span<const Entry> registry();

const Entry* find_codec(const char* name, size_t name_size);  // nullptr: unknown
const Entry* find_codec(uint16_t id);

inline constexpr std::string_view kWithCores = "cores+";

// The first usable kernel that `choice` allows: "" or "auto" (the processor), an engine ("cpu"), or
// engine and variant ("cpu:scalar"; a codec without that variant gives its best one on that engine:
// of a recipe one codec must have it, which pipeline/recipe.hpp looks at; with an engine that has
// devices, the processor's where it has none; "cores+" before it and "!" behind are for
// check_engine). nullptr: none.
const Kernel* choose_kernel(const Entry& entry, const char* choice);
// Whether a kernel is what `choice` names: of that engine, and where a variant is named, of that.
bool is_named(const Kernel& kernel, const char* choice);
// Whether `choice` names a variant, as "cpu:scalar" and "rtl:verilator16" do. What stands behind
// the colon of an engine with devices is none.
bool names_variant(const char* choice);

// What kernels name as their `usable`. A file named avx2 is compiled for x86-64-v3, one named
// avx512 for x86-64-v4 with VBMI, VBMI2 and GFNI (cmake/wirepress.cmake), neon for aarch64's
// baseline.
bool always_usable() noexcept;
bool has_avx2() noexcept;
bool has_avx512() noexcept;

// What a thread had its device do, in raw bytes, what the cores did instead, and why.
struct DeviceWork {
  uint64_t device_size = 0, cores_size = 0;
  const char* reason = "";  // of the last bytes that went to the cores
};

struct DeviceMemory;  // base/memory.hpp

// How a device is to be used.
struct DeviceUse {
  bool verify = false;      // expand on the cores at once what it coded
  bool with_cores = false;  // it and the cores divide the blocks of a message
};

// A place where kernels run.
struct Engine {
  const char* name;
  const char* sentence;
  const char* (*unavailable)();  // nullptr: usable here; else why not, once drivers are loaded
  // Clocks that its kernels took in this process; nullptr: it has no clock of its own.
  uint64_t (*clocks)() = nullptr;
  // Of an engine with devices, whose name stands behind a colon ("": any): sets it up, when a
  // program names the engine. The kernels' `usable` is true from then on, and codecs without a
  // kernel of this engine run on the processor.
  Status (*select)(const char* device, DeviceUse use) = nullptr;
  // Threads that coding a message is to have besides one for each core: they wait for the device.
  // At most, or now: none where the device has nothing to give.
  int (*extra_threads)(bool now) = nullptr;
  std::string (*state)() = nullptr;    // what the device can do and has done; "": none is selected
  std::string (*refusal)() = nullptr;  // why the last select failed; "": it did not
  DeviceWork (*work)() = nullptr;      // of the calling thread
  // Of its devices, which its kernels reach and the cores do not; of two of a name the first
  // counts.
  std::span<const DeviceMemory* const> memories = {};
};
std::span<const Engine* const> engines();  // generated, like registry()

}  // namespace wirepress
