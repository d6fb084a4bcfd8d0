// SPDX-License-Identifier: Apache-2.0
// wirepress.h. Nothing is thrown across it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "base/memory.hpp"
#include "base/variables.hpp"
#include "frame/hash.hpp"
#include "pipeline/context.hpp"
#include "wirepress/wirepress.h"

using wirepress::Bytes;
using wirepress::Code;
using wirepress::ConstBytes;
using wirepress::DType;
using wirepress::Engine;
using wirepress::fail;
using wirepress::Halves;
using wirepress::Header;
using wirepress::JobCall;
using wirepress::Status;

struct wpr_ctx {
  wirepress::Context context;
  Status last;
};

namespace {

static_assert(WPR_MAX_HEADER == wirepress::kMaxHeader && WPR_MAX_DIMS == wirepress::kMaxDims);
static_assert(WPR_NO_SHAPE == wirepress::kNoShape && WPR_UNKNOWN == wirepress::kUnknownSize);
static_assert(WPR_COMPLEX128 == static_cast<int>(DType::kComplex128));
static_assert(WPR_ERROR_ABSOLUTE == static_cast<int>(wirepress::ErrorBound::kAbsolute));
static_assert(WPR_DEVICE == static_cast<int>(Code::kDevice) &&
              WPR_IO == static_cast<int>(Code::kIo) &&
              WPR_INTERRUPTED == static_cast<int>(Code::kInterrupted) &&
              WPR_TRUNCATED == static_cast<int>(Code::kTruncated));

wpr_status finish(wpr_ctx* ctx, const Status& status) {
  if (!status.ok()) ctx->last = status;
  return static_cast<wpr_status>(status.code());
}

// Runs `body` and keeps its sentence; memory is the only thing the standard library throws here.
template <typename Body>
wpr_status guarded(wpr_ctx* ctx, Body body) {
  if (!ctx) return WPR_PARAMETER;
  try {
    return finish(ctx, body());
  } catch (const std::exception& error) {
    return finish(ctx, fail(Code::kNoMemory, "no memory (%s)", error.what()));
  }
}

ConstBytes bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
Bytes bytes(void* data, size_t size) { return {static_cast<std::byte*>(data), size}; }

// The types that a codec takes where no parameter is named, a bit each.
uint32_t dtypes_of(const wirepress::Codec& codec) {
  uint32_t found = 0;
  for (int dtype = 0; dtype < wirepress::kDTypeCount; ++dtype) {
    wirepress::Args args = wirepress::default_args(codec, static_cast<DType>(dtype));
    if (codec.check != nullptr && !codec.check(&args).ok()) continue;
    // Bytes of no stated type must come back as they were (Settings::recipe_for).
    if (dtype != WPR_BYTES || codec.is_lossless(args)) found |= 1U << dtype;
  }
  return found;
}

Status check_buffers(const void* src, size_t n, const void* dst, size_t cap,
                     const char* name = "src") {
  if (!src && n) return fail(Code::kParameter, "%s is NULL, %zu bytes", name, n);
  if (!dst && cap) return fail(Code::kParameter, "dst is NULL, %zu bytes", cap);
  return {};
}

// The same of buffers that no device may have.
Status check_own_buffers(const void* src, size_t n, const void* dst, size_t cap,
                         const char* name = "src") {
  WPR_TRY(check_buffers(src, n, dst, cap, name));
  WPR_TRY(wirepress::check_on_cores(src, name));
  return wirepress::check_on_cores(dst, "dst");
}

// Of dst what a frame of raw_size bytes may be written to.
Bytes room_of(const wpr_ctx* ctx, size_t raw_size, void* dst, size_t cap) {
  return bytes(dst, std::min(cap, ctx->context.writer.bound(raw_size)));
}

// That must not be what the frame is made of.
Status check_room(const wpr_ctx* ctx, const void* src, size_t n, void* dst, size_t cap,
                  const char* name = "src") {
  return wirepress::check_apart(name, bytes(src, n), "dst", room_of(ctx, n, dst, cap));
}

Status begin(wpr_ctx* ctx, JobCall call, wpr_job** job) {
  wirepress::Job* begun;
  call.seed = ctx->context.settings.seed();
  WPR_TRY(ctx->context.jobs.begin({&call, 1}, &begun));
  *job = reinterpret_cast<wpr_job*>(begun);
  return {};
}

// A whole frame where the cores reach it.
Status fetch_frame(ConstBytes frame, std::vector<std::byte>* room, ConstBytes* here) {
  const wirepress::Place place = wirepress::place_of(frame.data());
  *here = frame;
  if (!place.on_device()) return {};
  if (frame.size() > room->max_size()) return fail(Code::kNoMemory, "no memory for the frame");
  room->resize(frame.size());
  *here = *room;
  WPR_TRY(place.memory->wait(place.device, nullptr));
  return place.download(*room, frame.data());
}

// What a call must be given: check_given("key", key, "value", value).
Status check_given() { return {}; }
template <typename Pointer, typename... Rest>
Status check_given(const char* name, Pointer pointer, Rest... rest) {
  if (!pointer) return fail(Code::kParameter, "%s is NULL", name);
  return check_given(rest...);
}

// A C caller may give an enum any number; C++ may only read those that the enum has.
template <typename Enum>
int number_of(const Enum& given) {
  int number;
  static_assert(sizeof number == sizeof given);
  std::memcpy(&number, &given, sizeof number);
  return number;
}

bool is_dtype(const wpr_dtype& dtype) {
  const int number = number_of(dtype);
  return number >= 0 && number < wirepress::kDTypeCount;
}

Status check_dtype(const wpr_dtype& dtype) {
  if (is_dtype(dtype)) return {};
  return fail(Code::kParameter, "dtype %d is not known", number_of(dtype));
}

Status check_array(const wpr_dtype& dtype, int n_dims, const uint64_t* shape) {
  WPR_TRY(check_dtype(dtype));
  if (n_dims < WPR_NO_SHAPE || n_dims > WPR_MAX_DIMS)
    return fail(Code::kParameter, "%d dimensions: 0 to %d can be kept", n_dims, WPR_MAX_DIMS);
  if (!shape && n_dims != 0) return fail(Code::kParameter, "shape is NULL");
  return {};
}

// What calls are given, checked. They do it now, or as a job.

Status compress_call(const wpr_ctx* ctx, const void* src, const wpr_dtype& dtype, int n_dims,
                     const uint64_t* shape, void* dst, size_t cap, JobCall* call) {
  WPR_TRY(check_array(dtype, n_dims, shape));
  call->kind = JobCall::Kind::kCompress;
  WPR_TRY(set_shape(&call->header, static_cast<DType>(dtype), n_dims, shape));
  const size_t raw_size = call->header.raw_size;
  WPR_TRY(check_buffers(src, raw_size, dst, cap));
  call->src = bytes(src, raw_size);
  call->dst = bytes(dst, cap);
  return check_room(ctx, src, raw_size, dst, cap);
}

Status expand_call(const void* src, size_t n, void* dst, size_t cap, JobCall* call) {
  WPR_TRY(check_buffers(src, n, dst, cap));
  call->kind = JobCall::Kind::kExpand;
  call->src = bytes(src, n);
  call->dst = bytes(dst, cap);
  return {};
}

Status feedback_call(const wpr_ctx* ctx, const void* src, const wpr_dtype& dtype, float* residual,
                     size_t n, void* dst, size_t cap, JobCall* call) {
  WPR_TRY(check_dtype(dtype));
  call->kind = JobCall::Kind::kFeedback;
  WPR_TRY(Halves::of(static_cast<DType>(dtype), &call->halves));
  const uint64_t shape = n;
  WPR_TRY(set_shape(&call->header, DType::kFloat32, WPR_NO_SHAPE, &shape));
  const size_t raw_size = call->header.raw_size, size = call->halves.size_of(raw_size);
  WPR_TRY(check_buffers(src, size, dst, cap));
  WPR_TRY(check_buffers(residual, raw_size, dst, cap, "residual"));
  call->src = bytes(src, size);
  call->residual = bytes(residual, raw_size);
  call->dst = bytes(dst, cap);
  WPR_TRY(wirepress::check_apart("src", call->src, "dst", room_of(ctx, raw_size, dst, cap)));
  WPR_TRY(check_room(ctx, residual, raw_size, dst, cap, "residual"));
  return wirepress::check_apart("src", call->src, "residual", call->residual);
}

// cap counts values.
Status add_call(const void* src, size_t n, void* dst, const wpr_dtype& dtype, size_t cap,
                JobCall* call) {
  WPR_TRY(check_dtype(dtype));
  call->kind = JobCall::Kind::kAdd;
  WPR_TRY(Halves::of(static_cast<DType>(dtype), &call->halves));
  WPR_TRY(check_buffers(src, n, dst, cap));
  call->src = bytes(src, n);
  call->dst = bytes(dst, call->halves.size_of(std::min(cap, SIZE_MAX / 4) * 4));
  return {};
}

// call_of(piece, &call) says what is to be done for a piece.
template <typename CallOf>
Status begin_pieces(wpr_ctx* ctx, wpr_piece* pieces, size_t n_pieces, wpr_job** job,
                    CallOf call_of) {
  WPR_TRY(check_given("job", job));
  *job = nullptr;
  WPR_TRY(check_given("pieces", pieces));
  if (n_pieces == 0) return fail(Code::kParameter, "a job has one piece at least");
  std::vector<JobCall> calls(n_pieces);
  for (size_t i = 0; i < n_pieces; ++i) {
    const Status status = call_of(pieces[i], &calls[i]);
    if (!status.ok()) return fail(status.code(), "piece %zu: %s", i, status.text());
    calls[i].seed = pieces[i].seed;
    calls[i].written = &pieces[i].written;
  }
  wirepress::Job* begun;
  WPR_TRY(ctx->context.jobs.begin(calls, &begun));
  *job = reinterpret_cast<wpr_job*>(begun);
  return {};
}

void fill(const Header& header, wpr_info* info) {
  info->version = wirepress::kFrameVersion;
  info->header_size = static_cast<uint32_t>(header.size);
  info->raw_size = header.raw_size;
  info->block_size = header.block_size();
  info->n_blocks = header.n_blocks();
  info->dtype = static_cast<wpr_dtype>(header.dtype);
  info->n_dims = header.n_dims;
  std::memcpy(info->shape, header.shape, sizeof info->shape);
  info->checksum = header.checksum;
  info->streamed = header.streamed;
}

const char* text_of_engine(size_t i, std::string (*Engine::*function)()) {
  static thread_local std::string text;
  const auto list = wirepress::engines();
  try {
    text = i < list.size() && list[i]->*function != nullptr ? (list[i]->*function)() : "";
  } catch (const std::bad_alloc&) {
    return "no memory for the engine's text";
  }
  return text.c_str();
}

Status poll(wpr_ctx* ctx, wpr_job* job, bool waits, bool* done, size_t* written) {
  auto* const own = reinterpret_cast<wirepress::Job*>(job);
  if (!ctx->context.jobs.knows(own)) return fail(Code::kParameter, "the context has no such job");
  return ctx->context.jobs.poll(own, waits, done, written);
}

const char* bounds_name(wirepress::Bounds bounds) {
  static constexpr const char* kNames[] = {"", "fraction_bits", "absolute"};
  return kNames[static_cast<int>(bounds)];
}

}  // namespace

extern "C" {

size_t wpr_dtype_size(wpr_dtype dtype) {
  return is_dtype(dtype) ? dtype_size(static_cast<DType>(dtype)) : 0;
}

const char* wpr_dtype_name(wpr_dtype dtype) {
  return is_dtype(dtype) ? dtype_name(static_cast<DType>(dtype)) : nullptr;
}

wpr_status wpr_create(wpr_ctx** ctx) {
  if (!ctx) return WPR_PARAMETER;
  *ctx = nullptr;
  try {
    *ctx = new wpr_ctx;
    return finish(*ctx, (*ctx)->context.settings.read_environment());
  } catch (const std::exception&) {
    delete *ctx;
    *ctx = nullptr;
    return WPR_NO_MEMORY;
  }
}

void wpr_free(wpr_ctx* ctx) { delete ctx; }

wpr_status wpr_set(wpr_ctx* ctx, const char* key, const char* value) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("key", key, "value", value));
    if (ctx->context.jobs.any() && !wirepress::Settings::is_of_a_call(key))
      return fail(Code::kParameter, "jobs are on their way: %s can be set when they are done", key);
    return ctx->context.settings.set(key, value);
  });
}

const char* wpr_get(const wpr_ctx* ctx, const char* key) {
  return ctx && key ? ctx->context.settings.options().get(key) : nullptr;
}

wpr_status wpr_get_number(const wpr_ctx* ctx, const char* key, double* value) {
  if (!ctx || !key || !value) return WPR_PARAMETER;
  return ctx->context.settings.options().as_double(key, value) ? WPR_OK : WPR_PARAMETER;
}

wpr_status wpr_get_error_bound(const wpr_ctx* ctx, const char* key, wpr_error_kind* kind,
                               double* value) {
  wirepress::ErrorBound bound;
  if (!ctx || !key || !kind || !value || !ctx->context.settings.options().error_bound(key, &bound))
    return WPR_PARAMETER;
  *kind = static_cast<wpr_error_kind>(bound.kind);
  *value = bound.value;
  return WPR_OK;
}

const char* wpr_origin(const wpr_ctx* ctx, const char* key) {
  return ctx && key ? ctx->context.settings.options().origin(key) : nullptr;
}

wpr_status wpr_set_interrupt(wpr_ctx* ctx, int (*asked)(void*), void* user) {
  if (!ctx) return WPR_PARAMETER;
  ctx->context.interrupt = {asked, user};
  return WPR_OK;
}

const char* wpr_error(const wpr_ctx* ctx) { return ctx ? ctx->last.text() : "ctx is NULL"; }

const char* wpr_status_name(wpr_status status) {
  return wirepress::code_name(static_cast<Code>(number_of(status)));
}

const char* wpr_version(void) { return WPR_VERSION; }

const char* wpr_take_warning(void) {
  static std::atomic<bool> taken{false};
  if (taken.exchange(true)) return "";
  try {
    static const std::string sentence = wirepress::unknown_variables();
    return sentence.c_str();
  } catch (const std::bad_alloc&) {
    return "";
  }
}

wpr_status wpr_parse_rate(const char* text, double* rate) {
  double found;
  if (!text || !rate || !wirepress::parse_rate(text, &found)) return WPR_PARAMETER;
  *rate = found;
  return WPR_OK;
}

size_t wpr_bound(const wpr_ctx* ctx, size_t raw_size) {
  return ctx ? ctx->context.writer.bound(raw_size) : 0;
}

wpr_status wpr_compress(wpr_ctx* ctx, const void* src, size_t n, void* dst, size_t cap,
                        size_t* written) {
  const uint64_t shape = n;
  return wpr_compress_array(ctx, src, WPR_BYTES, WPR_NO_SHAPE, &shape, dst, cap, written);
}

wpr_status wpr_compress_array(wpr_ctx* ctx, const void* src, wpr_dtype dtype, int n_dims,
                              const uint64_t* shape, void* dst, size_t cap, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    JobCall call;
    WPR_TRY(compress_call(ctx, src, dtype, n_dims, shape, dst, cap, &call));
    return ctx->context.perform(call, written);
  });
}

wpr_status wpr_decompress(wpr_ctx* ctx, const void* src, size_t n, void* dst, size_t cap,
                          size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    JobCall call;
    WPR_TRY(expand_call(src, n, dst, cap, &call));
    return ctx->context.perform(call, written);
  });
}

wpr_status wpr_compress_async(wpr_ctx* ctx, const void* src, wpr_dtype dtype, int n_dims,
                              const uint64_t* shape, void* dst, size_t cap, wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("job", job));
    *job = nullptr;
    JobCall call;
    WPR_TRY(compress_call(ctx, src, dtype, n_dims, shape, dst, cap, &call));
    return begin(ctx, call, job);
  });
}

wpr_status wpr_decompress_async(wpr_ctx* ctx, const void* src, size_t n, void* dst, size_t cap,
                                wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("job", job));
    *job = nullptr;
    JobCall call;
    WPR_TRY(expand_call(src, n, dst, cap, &call));
    return begin(ctx, call, job);
  });
}

wpr_status wpr_compress_feedback_async(wpr_ctx* ctx, const void* src, wpr_dtype dtype,
                                       float* residual, size_t n, void* dst, size_t cap,
                                       wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("job", job));
    *job = nullptr;
    JobCall call;
    WPR_TRY(feedback_call(ctx, src, dtype, residual, n, dst, cap, &call));
    return begin(ctx, call, job);
  });
}

wpr_status wpr_decompress_add_async(wpr_ctx* ctx, const void* src, size_t n, void* dst,
                                    wpr_dtype dtype, size_t cap, wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("job", job));
    *job = nullptr;
    JobCall call;
    WPR_TRY(add_call(src, n, dst, dtype, cap, &call));
    return begin(ctx, call, job);
  });
}

wpr_status wpr_compress_pieces_async(wpr_ctx* ctx, wpr_piece* pieces, size_t n_pieces,
                                     wpr_dtype dtype, wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    return begin_pieces(ctx, pieces, n_pieces, job, [&](const wpr_piece& piece, JobCall* call) {
      if (piece.residual != nullptr)
        return feedback_call(ctx, piece.src, dtype, piece.residual, piece.n, piece.dst, piece.cap,
                             call);
      const uint64_t shape = piece.n;
      return compress_call(ctx, piece.src, dtype, 1, &shape, piece.dst, piece.cap, call);
    });
  });
}

wpr_status wpr_decompress_pieces_async(wpr_ctx* ctx, wpr_piece* pieces, size_t n_pieces, int add,
                                       wpr_job** job) {
  return guarded(ctx, [&]() -> Status {
    return begin_pieces(ctx, pieces, n_pieces, job, [&](const wpr_piece& piece, JobCall* call) {
      const wpr_dtype dtype = WPR_FLOAT32;
      return add ? add_call(piece.src, piece.n, piece.dst, dtype, piece.cap / 4, call)
                 : expand_call(piece.src, piece.n, piece.dst, piece.cap, call);
    });
  });
}

wpr_status wpr_poll(wpr_ctx* ctx, wpr_job* job, int* done, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("done", done, "written", written));
    *done = 0;
    bool over = false;
    const Status status = poll(ctx, job, false, &over, written);
    *done = over;
    return status;
  });
}

wpr_status wpr_wait(wpr_ctx* ctx, wpr_job* job, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    bool over = false;
    return poll(ctx, job, true, &over, written);
  });
}

wpr_status wpr_compress_feedback(wpr_ctx* ctx, const float* src, float* residual, size_t n,
                                 void* dst, size_t cap, size_t* written) {
  return wpr_compress_feedback_typed(ctx, src, WPR_FLOAT32, residual, n, dst, cap, written);
}

wpr_status wpr_compress_feedback_typed(wpr_ctx* ctx, const void* src, wpr_dtype dtype,
                                       float* residual, size_t n, void* dst, size_t cap,
                                       size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    JobCall call;
    WPR_TRY(feedback_call(ctx, src, dtype, residual, n, dst, cap, &call));
    return ctx->context.perform(call, written);
  });
}

wpr_status wpr_decompress_add(wpr_ctx* ctx, const void* src, size_t n, float* dst, size_t cap,
                              size_t* n_values) {
  return wpr_decompress_add_typed(ctx, src, n, dst, WPR_FLOAT32, cap, n_values);
}

wpr_status wpr_decompress_add_typed(wpr_ctx* ctx, const void* src, size_t n, void* dst,
                                    wpr_dtype dtype, size_t cap, size_t* n_values) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("n_values", n_values));
    JobCall call;
    WPR_TRY(add_call(src, n, dst, dtype, cap, &call));
    return ctx->context.perform(call, n_values);
  });
}

wpr_status wpr_add(wpr_ctx* ctx, const void* a, size_t a_size, const void* b, size_t b_size,
                   void* dst, size_t cap, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    WPR_TRY(check_own_buffers(a, a_size, dst, cap, "a"));
    WPR_TRY(check_own_buffers(b, b_size, dst, cap, "b"));
    uint64_t raw_size = 0;
    if (wirepress::raw_size_of(bytes(a, a_size), &raw_size).ok()) {  // else add() says why
      // The bound, or what suffices for as many blocks as a has.
      const Bytes room = bytes(
          dst, std::min(cap, std::max(ctx->context.writer.bound(raw_size), a_size + raw_size)));
      WPR_TRY(wirepress::check_apart("a", bytes(a, a_size), "dst", room));
      WPR_TRY(wirepress::check_apart("b", bytes(b, b_size), "dst", room));
    }
    return ctx->context.add(bytes(a, a_size), bytes(b, b_size), bytes(dst, cap), written);
  });
}

wpr_status wpr_compress_steps(wpr_ctx* ctx, const void* before, const void* after, size_t n,
                              size_t word_size, void* dst, size_t cap, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    const DType dtype = word_size == 1   ? DType::kInt8
                        : word_size == 2 ? DType::kInt16
                                         : DType::kInt32;
    if (dtype_size(dtype) != word_size)
      return fail(Code::kParameter, "words of %zu bytes: 1, 2 and 4 are known", word_size);
    const uint64_t shape = n;
    Header header;
    WPR_TRY(set_shape(&header, dtype, WPR_NO_SHAPE, &shape));
    WPR_TRY(check_own_buffers(before, header.raw_size, dst, cap, "before"));
    WPR_TRY(check_own_buffers(after, header.raw_size, dst, cap, "after"));
    WPR_TRY(check_room(ctx, before, header.raw_size, dst, cap, "before"));
    WPR_TRY(check_room(ctx, after, header.raw_size, dst, cap, "after"));
    return ctx->context.writer.compress_steps(bytes(before, header.raw_size),
                                              bytes(after, header.raw_size), header,
                                              bytes(dst, cap), written);
  });
}

wpr_status wpr_take_steps(wpr_ctx* ctx, const void* src, size_t n, void* words, size_t cap,
                          size_t* used) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("used", used));
    WPR_TRY(check_own_buffers(src, n, nullptr, 0));
    WPR_TRY(check_own_buffers(words, cap, nullptr, 0, "words"));
    return ctx->context.reader.take_steps(bytes(src, n), bytes(words, cap), used);
  });
}

uint64_t wpr_hash(const void* data, size_t n, uint64_t seed) {
  if ((!data && n) || wirepress::place_of(data).on_device()) return 0;
  return wirepress::long_hash(n ? bytes(data, n) : ConstBytes(), seed);
}

wpr_status wpr_decompress_range(wpr_ctx* ctx, const void* src, size_t n, uint64_t offset,
                                size_t size, void* dst) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_buffers(src, n, dst, size));
    return ctx->context.decompress_range(bytes(src, n), offset, bytes(dst, size));
  });
}

wpr_status wpr_inspect(wpr_ctx* ctx, const void* frame, size_t n, wpr_info* info) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("info", info));
    WPR_TRY(check_buffers(frame, n, nullptr, 0));
    Header header;
    std::string recipe;
    WPR_TRY(ctx->context.inspect(bytes(frame, n), &header, &recipe));
    if (recipe.size() >= WPR_MAX_RECIPE)
      return fail(Code::kUnsupported, "the recipe's text has %zu bytes", recipe.size());
    fill(header, info);
    std::memcpy(info->recipe, recipe.c_str(), recipe.size() + 1);
    return {};
  });
}

wpr_status wpr_raw_size(const void* frame, size_t n, uint64_t* raw_size) {
  if ((!frame && n) || !raw_size) return WPR_PARAMETER;
  try {
    std::vector<std::byte> room;
    ConstBytes here;
    Status status = fetch_frame(bytes(frame, n), &room, &here);
    if (status.ok()) status = wirepress::raw_size_of(here, raw_size);
    return static_cast<wpr_status>(status.code());
  } catch (const std::bad_alloc&) {
    return WPR_NO_MEMORY;
  }
}

wpr_status wpr_place_of(const void* at, wpr_place* place) {
  if (!place) return WPR_PARAMETER;
  const wirepress::Place found = wirepress::place_of(at);
  *place = {"", -1, nullptr};
  if (found.on_device()) *place = {found.memory->kernels, found.device, found.memory->on_cores(at)};
  return WPR_OK;
}

int wpr_may_have_devices(void) { return wirepress::may_have_devices() ? 1 : 0; }

wpr_status wpr_device_alloc(wpr_ctx* ctx, const char* engine, int device, size_t n, void** memory) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("engine", engine, "memory", memory));
    *memory = nullptr;
    const wirepress::DeviceMemory* found = wirepress::find_memory(engine);
    if (!found) return fail(Code::kParameter, "engine \"%s\" has no memory of its own", engine);
    return found->allocate(device, n, memory);
  });
}

wpr_status wpr_device_free(wpr_ctx* ctx, void* memory) {
  return guarded(ctx, [&]() -> Status {
    if (!memory) return {};
    const wirepress::Place place = wirepress::place_of(memory);
    if (!place.on_device())
      return fail(Code::kParameter, "%p lies in no memory of a device", memory);
    return place.memory->release(place.device, memory);
  });
}

wpr_status wpr_copy(wpr_ctx* ctx, void* to, const void* from, size_t n) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_buffers(from, n, nullptr, 0, "from"));
    WPR_TRY(check_buffers(to, n, nullptr, 0, "to"));
    return n ? ctx->context.copy(bytes(to, n), bytes(from, n)) : Status();
  });
}

wpr_status wpr_set_stream(wpr_ctx* ctx, void* stream) {
  return guarded(ctx, [&]() -> Status {
    ctx->context.stream = stream;
    return {};
  });
}

size_t wpr_stream_bound(const wpr_ctx* ctx, size_t n) {
  return ctx ? ctx->context.stream_writer.bound(n) : 0;
}

wpr_status wpr_stream_begin(wpr_ctx* ctx, wpr_dtype dtype, void* dst, size_t cap, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    const uint64_t none = 0;
    WPR_TRY(check_array(dtype, WPR_NO_SHAPE, &none));
    WPR_TRY(check_own_buffers(nullptr, 0, dst, cap));
    return ctx->context.stream_writer.begin(static_cast<DType>(dtype), bytes(dst, cap), written);
  });
}

wpr_status wpr_stream_update(wpr_ctx* ctx, const void* src, size_t n, void* dst, size_t cap,
                             size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    WPR_TRY(check_own_buffers(src, n, dst, cap));
    const size_t most = std::min(cap, ctx->context.stream_writer.bound(n));
    WPR_TRY(wirepress::check_apart("src", bytes(src, n), "dst", bytes(dst, most)));
    return ctx->context.stream_writer.update(bytes(src, n), bytes(dst, cap), written);
  });
}

wpr_status wpr_stream_end(wpr_ctx* ctx, void* dst, size_t cap, size_t* written) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("written", written));
    WPR_TRY(check_own_buffers(nullptr, 0, dst, cap));
    return ctx->context.stream_writer.end(bytes(dst, cap), written);
  });
}

wpr_status wpr_expand_begin(wpr_ctx* ctx) {
  return guarded(ctx, [&] { return ctx->context.stream_reader.begin(); });
}

wpr_status wpr_expand_update(wpr_ctx* ctx, const void* src, size_t n, size_t* consumed, void* dst,
                             size_t cap, size_t* written, int* done) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("consumed", consumed, "written", written, "done", done));
    WPR_TRY(check_own_buffers(src, n, dst, cap));
    WPR_TRY(wirepress::check_apart("src", bytes(src, n), "dst", bytes(dst, cap)));
    bool finished = false;
    WPR_TRY(ctx->context.stream_reader.update(bytes(src, n), consumed, bytes(dst, cap), written,
                                              &finished));
    *done = finished;
    return {};
  });
}

wpr_status wpr_lossless(wpr_ctx* ctx, const char* recipe, wpr_dtype dtype, int* lossless) {
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("recipe", recipe, "lossless", lossless));
    WPR_TRY(check_dtype(dtype));
    bool answer;
    WPR_TRY(ctx->context.settings.lossless(recipe, static_cast<DType>(dtype), &answer));
    *lossless = answer;
    return {};
  });
}

wpr_status wpr_explain(wpr_ctx* ctx, const void* src, wpr_dtype dtype, int n_dims,
                       const uint64_t* shape, void (*row)(void* user, const wpr_choice* choice),
                       void* user) {
  struct Seen {
    void (*row)(void*, const wpr_choice*);
    void* user;
  } seen = {row, user};
  return guarded(ctx, [&]() -> Status {
    WPR_TRY(check_given("row", row));
    WPR_TRY(check_array(dtype, n_dims, shape));
    Header header;
    WPR_TRY(set_shape(&header, static_cast<DType>(dtype), n_dims, shape));
    WPR_TRY(check_own_buffers(src, header.raw_size, nullptr, 0));
    return ctx->context.writer.explain(
        bytes(src, header.raw_size), header,
        [](void* it, const wirepress::FrameWriter::Explained& group) {
          const auto& [offset, size, chooser] = group;
          const wirepress::Features& f = chooser.features();
          for (size_t i = 0; i < chooser.trials().size(); ++i) {
            const wirepress::Trial& t = chooser.trials()[i];
            const wpr_choice choice = {offset,       size,           chooser.reused(),
                                       f.zero_lines, f.byte_entropy, f.exponent_entropy,
                                       f.roughness,  f.matches,      t.recipe.c_str(),
                                       t.why,        t.ratio,        t.encode,
                                       t.decode,     t.finish,       i == chooser.chosen(),
                                       t.tried,      t.timed,        t.pace,
                                       t.prior};
            static_cast<Seen*>(it)->row(static_cast<Seen*>(it)->user, &choice);
          }
        },
        &seen);
  });
}

void wpr_get_stats(const wpr_ctx* ctx, wpr_stats* stats) {
  if (!ctx || !stats) return;
  const wirepress::Stats& s = ctx->context.stats;
  *stats = {s.raw_bytes,     s.wire_bytes,     s.blocks,           s.bypassed_probe,
            s.bypassed_size, s.expanded_bytes, s.compress_seconds, s.decompress_seconds};
}

void wpr_reset_stats(wpr_ctx* ctx) {
  if (ctx) ctx->context.stats = {};
}

int wpr_codec_at(size_t i, wpr_codec_info* info) {
  const auto entries = wirepress::registry();
  if (i >= entries.size() || !info) return 0;
  const wirepress::Codec& codec = *entries[i].codec;
  *info = {entries[i].id,
           codec.name,
           codec.sentence,
           codec.lossless,
           codec.exact_encode,
           codec.params.size(),
           entries[i].kernels.size(),
           codec.sparse,
           codec.wants_feedback,
           dtypes_of(codec)};
  return 1;
}

int wpr_codec_param_at(size_t codec, size_t i, wpr_param_info* info) {
  const auto entries = wirepress::registry();
  if (!info || codec >= entries.size() || i >= entries[codec].codec->params.size()) return 0;
  const wirepress::Param& param = entries[codec].codec->params[i];
  *info = {param.name,
           param.min,
           param.max,
           param.fallback,
           param.words,
           param.sentence,
           param.real,
           param.real ? wirepress::real_of(param.fallback) : 0.0,
           bounds_name(param.bounds)};
  return 1;
}

int wpr_codec_kernel_at(size_t codec, size_t i, wpr_kernel_info* info) {
  const auto entries = wirepress::registry();
  if (!info || codec >= entries.size() || i >= entries[codec].kernels.size()) return 0;
  const wirepress::Kernel& kernel = *entries[codec].kernels[i];
  *info = {kernel.engine, kernel.variant, kernel.usable()};
  return 1;
}

int wpr_engine_at(size_t i, wpr_engine_info* info) {
  const auto list = wirepress::engines();
  if (i >= list.size() || !info) return 0;
  *info = {list[i]->name, list[i]->sentence};
  return 1;
}

const char* wpr_engine_reason(size_t i) {
  const auto list = wirepress::engines();
  const char* reason = i < list.size() ? list[i]->unavailable() : nullptr;
  return reason ? reason : "";
}

uint64_t wpr_engine_clocks(size_t i) {
  const auto list = wirepress::engines();
  return i < list.size() && list[i]->clocks != nullptr ? list[i]->clocks() : 0;
}

const char* wpr_engine_state(size_t i) { return text_of_engine(i, &Engine::state); }

const char* wpr_engine_refusal(size_t i) { return text_of_engine(i, &Engine::refusal); }

void wpr_get_device_work(wpr_device_work* work) {
  if (!work) return;
  const wirepress::DeviceWork all = wirepress::all_work();
  *work = {all.device_size, all.cores_size, all.reason};
}

int wpr_option_at(size_t i, wpr_option_info* info) {
  const auto rows = wirepress::option_rows();
  if (i >= rows.size() || !info) return 0;
  *info = {rows[i].key,
           option_type_name(rows[i].type),
           rows[i].fallback,
           rows[i].choices,
           rows[i].sentence,
           static_cast<double>(rows[i].min),
           static_cast<double>(rows[i].max)};
  return 1;
}

}  // extern "C"
