// SPDX-License-Identifier: Apache-2.0
//
// wirepress.hpp: the C++ door (C++17), header-only. It owns the context, throws where wirepress.h
// returns a status, and sizes results; it adds no behaviour. wirepress.h says what the calls do.
//
//   wirepress::Context context;
//   context.set("recipe", "shuffle:4+zstd:1");
//   std::vector<std::byte> frame = context.compress(data, size);
//   std::vector<std::byte> again = context.decompress(frame.data(), frame.size());
//
// Wherever a pointer and a size are taken, C++20 programs may give a contiguous range instead:
// context.compress(std::span(values)) compresses its bytes. A recipe that changes values needs
// their type: compress_array.
// Long because it is the whole door, read from top to bottom.
#ifndef WIREPRESS_HPP
#define WIREPRESS_HPP

#include <wirepress/wirepress.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

namespace wirepress {
// The library's own C++ lives in namespace wirepress too; an inline namespace keeps the symbols of
// this header apart from it in programs that link the static library.
inline namespace door {

// A failed call: its status, and the library's sentence as what().
class Error : public std::runtime_error {
 public:
  Error(wpr_status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  wpr_status status() const noexcept { return status_; }

 private:
  wpr_status status_;
};

inline std::string version() { return wpr_version(); }

// Bytes of an element; 0: dtype is no element type.
inline size_t dtype_size(wpr_dtype dtype) { return wpr_dtype_size(dtype); }

// A string as C takes it, where it would end at a NUL.
inline const char* c_text(const std::string& text) {
  if (text.find('\0') == std::string::npos) return text.c_str();
  throw Error(WPR_PARAMETER, std::string("\"") + text.c_str() + "\" has a NUL behind it");
}

// Bytes a second of "25Gbps" or "1.2GB/s".
inline double parse_rate(const std::string& text) {
  double rate;
  if (wpr_parse_rate(c_text(text), &rate) == WPR_OK) return rate;
  throw Error(WPR_PARAMETER, "\"" + text + "\" is not a rate such as 10Gbps or 1.2GB/s");
}

// What the program should print or log, once; "": nothing.
inline std::string take_warning() { return wpr_take_warning(); }

// Where an address lies.
inline wpr_place place_of(const void* at) {
  wpr_place place;
  wpr_place_of(at, &place);
  return place;
}

// What engines with devices have done in the calling thread.
inline wpr_device_work device_work() {
  wpr_device_work work;
  wpr_get_device_work(&work);
  return work;
}

// Owns a wpr_ctx; one thread at a time. Movable; a moved-from Context may only be assigned to or
// destroyed.
class Context {
 public:
  Context() {
    wpr_ctx* raw = nullptr;
    const wpr_status status = wpr_create(&raw);
    context_.reset(raw);
    check(status);
  }

  wpr_ctx* get() const noexcept { return context_.get(); }

  void set(const std::string& key, const std::string& value) {
    check(wpr_set(get(), c_text(key), c_text(value)));
  }
  std::string get(const std::string& key) const {
    const char* value = wpr_get(get(), key.c_str());
    if (!value) throw Error(WPR_PARAMETER, "unknown option \"" + key + "\"");
    return value;
  }
  double number(const std::string& key) const {
    double value;
    if (wpr_get_number(get(), key.c_str(), &value) != WPR_OK)
      throw Error(WPR_PARAMETER, "no option \"" + key + "\" that is a number");
    return value;
  }
  std::pair<wpr_error_kind, double> error_bound(const std::string& key) const {
    std::pair<wpr_error_kind, double> bound;
    if (wpr_get_error_bound(get(), key.c_str(), &bound.first, &bound.second) != WPR_OK)
      throw Error(WPR_PARAMETER, "no option \"" + key + "\" that is an error bound");
    return bound;
  }
  std::string origin(const std::string& key) const {
    const char* value = wpr_origin(get(), key.c_str());
    if (!value) throw Error(WPR_PARAMETER, "unknown option \"" + key + "\"");
    return value;
  }

  // Calls may be ended: they throw WPR_INTERRUPTED once asked(user) is not 0.
  void set_interrupt(int (*asked)(void*), void* user) {
    check(wpr_set_interrupt(get(), asked, user));
  }

  // ---- whole buffers; the forms with dst return how many bytes they wrote ----

  size_t bound(size_t raw_size) const { return wpr_bound(get(), raw_size); }

  size_t compress(const void* src, size_t n, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_compress(get(), src, n, dst, cap, &written));
    return written;
  }
  std::vector<std::byte> compress(const void* src, size_t n) {
    std::vector<std::byte> frame(bound(n));
    frame.resize(compress(src, n, frame.data(), frame.size()));
    return frame;
  }

  // An array in C order, outermost extent first; n_dims as in wpr_compress_array.
  size_t compress_array(const void* src, wpr_dtype dtype, int n_dims, const uint64_t* shape,
                        void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_compress_array(get(), src, dtype, n_dims, shape, dst, cap, &written));
    return written;
  }
  std::vector<std::byte> compress_array(const void* src, wpr_dtype dtype,
                                        const std::vector<uint64_t>& shape) {
    size_t raw_size = dtype_size(dtype);
    for (const uint64_t extent : shape) raw_size *= static_cast<size_t>(extent);
    std::vector<std::byte> frame(bound(raw_size));
    frame.resize(compress_array(src, dtype, static_cast<int>(shape.size()), shape.data(),
                                frame.data(), frame.size()));
    return frame;
  }

  size_t decompress(const void* frame, size_t n, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_decompress(get(), frame, n, dst, cap, &written));
    return written;
  }
  std::vector<std::byte> decompress(const void* frame, size_t n) {
    std::vector<std::byte> data(static_cast<size_t>(raw_size(frame, n)));
    data.resize(decompress(frame, n, data.data(), data.size()));
    return data;
  }

  void decompress_range(const void* frame, size_t n, uint64_t offset, size_t size, void* dst) {
    check(wpr_decompress_range(get(), frame, n, offset, size, dst));
  }
  std::vector<std::byte> decompress_range(const void* frame, size_t n, uint64_t offset,
                                          size_t size) {
    std::vector<std::byte> data(size);
    decompress_range(frame, n, offset, size, data.data());
    return data;
  }

  // ---- gradients; sizes of src, residual and dst are values, of frames bytes ----

  size_t compress_feedback(const float* src, float* residual, size_t n, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_compress_feedback(get(), src, residual, n, dst, cap, &written));
    return written;
  }
  size_t decompress_add(const void* frame, size_t n, float* dst, size_t cap) {
    size_t n_values = 0;
    check(wpr_decompress_add(get(), frame, n, dst, cap, &n_values));
    return n_values;
  }
  // Of WPR_BFLOAT16 or WPR_FLOAT16; the frame holds float32.
  size_t compress_feedback(const void* src, wpr_dtype dtype, float* residual, size_t n, void* dst,
                           size_t cap) {
    size_t written = 0;
    check(wpr_compress_feedback_typed(get(), src, dtype, residual, n, dst, cap, &written));
    return written;
  }
  size_t decompress_add(const void* frame, size_t n, void* dst, wpr_dtype dtype, size_t cap) {
    size_t n_values = 0;
    check(wpr_decompress_add_typed(get(), frame, n, dst, dtype, cap, &n_values));
    return n_values;
  }
  size_t add(const void* a, size_t a_size, const void* b, size_t b_size, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_add(get(), a, a_size, b, b_size, dst, cap, &written));
    return written;
  }

  // ---- weights: steps between states of n words; sizes of frames and of words are bytes ----

  size_t compress_steps(const void* before, const void* after, size_t n, size_t word_size,
                        void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_compress_steps(get(), before, after, n, word_size, dst, cap, &written));
    return written;
  }
  size_t take_steps(const void* frame, size_t n, void* words, size_t cap) {
    size_t used = 0;
    check(wpr_take_steps(get(), frame, n, words, cap, &used));
    return used;
  }

  // Whether a recipe gives back every bit of data of that type.
  bool lossless(const char* recipe, wpr_dtype dtype) {
    int answer = 0;
    check(wpr_lossless(get(), recipe, dtype, &answer));
    return answer != 0;
  }

  // What recipe "auto" would choose: calls row(choice) for every candidate of every group.
  template <class Row>
  void explain(const void* src, wpr_dtype dtype, int n_dims, const uint64_t* shape, Row row) {
    struct Call {
      Row* row;
      std::exception_ptr thrown;  // which may not cross C
    } call = {&row, nullptr};
    const auto one = [](void* user, const wpr_choice* choice) {
      auto* const given = static_cast<Call*>(user);
      if (given->thrown) return;
      try {
        (*given->row)(*choice);
      } catch (...) {
        given->thrown = std::current_exception();
      }
    };
    const wpr_status status = wpr_explain(get(), src, dtype, n_dims, shape, one, &call);
    if (call.thrown) std::rethrow_exception(call.thrown);
    check(status);
  }

  // ---- looking at frames ----

  wpr_info inspect(const void* frame, size_t n) {
    wpr_info info;
    check(wpr_inspect(get(), frame, n, &info));
    return info;
  }
  static uint64_t raw_size(const void* frame, size_t n) {
    uint64_t size = 0;
    const wpr_status status = wpr_raw_size(frame, n, &size);
    if (status != WPR_OK) throw Error(status, std::string("raw size: ") + wpr_status_name(status));
    return size;
  }

  // ---- streams: begin, update ..., end; each returns how many bytes it wrote to dst, which has
  // room for stream_bound(n), or appends to out ----

  size_t stream_bound(size_t n) const { return wpr_stream_bound(get(), n); }

  size_t stream_begin(wpr_dtype dtype, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_stream_begin(get(), dtype, dst, cap, &written));
    return written;
  }
  size_t stream_update(const void* src, size_t n, void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_stream_update(get(), src, n, dst, cap, &written));
    return written;
  }
  size_t stream_end(void* dst, size_t cap) {
    size_t written = 0;
    check(wpr_stream_end(get(), dst, cap, &written));
    return written;
  }

  void stream_begin(wpr_dtype dtype, std::vector<std::byte>& out) {
    append(out, 0, [&](void* dst, size_t cap) { return stream_begin(dtype, dst, cap); });
  }
  void stream_update(const void* src, size_t n, std::vector<std::byte>& out) {
    append(out, n, [&](void* dst, size_t cap) { return stream_update(src, n, dst, cap); });
  }
  void stream_end(std::vector<std::byte>& out) {
    append(out, 0, [&](void* dst, size_t cap) { return stream_end(dst, cap); });
  }

  struct Progress {
    size_t consumed, written;
    bool done;
  };
  void expand_begin() { check(wpr_expand_begin(get())); }
  Progress expand_update(const void* src, size_t n, void* dst, size_t cap) {
    Progress progress{};
    int done = 0;
    check(wpr_expand_update(get(), src, n, &progress.consumed, dst, cap, &progress.written, &done));
    progress.done = done != 0;
    return progress;
  }

  // ---- memory of devices ----

  void set_stream(void* stream) { check(wpr_set_stream(get(), stream)); }
  void* device_alloc(const std::string& engine, int device, size_t n) {
    void* memory = nullptr;
    check(wpr_device_alloc(get(), engine.c_str(), device, n, &memory));
    return memory;
  }
  void device_free(void* memory) { check(wpr_device_free(get(), memory)); }
  void copy(void* to, const void* from, size_t n) { check(wpr_copy(get(), to, from, n)); }

  // ---- jobs ----

  // src and dst stay until the job is done; n_dims as in wpr_compress_array.
  wpr_job* compress_async(const void* src, wpr_dtype dtype, int n_dims, const uint64_t* shape,
                          void* dst, size_t cap) {
    wpr_job* job = nullptr;
    check(wpr_compress_async(get(), src, dtype, n_dims, shape, dst, cap, &job));
    return job;
  }
  wpr_job* compress_async(const void* src, wpr_dtype dtype, const std::vector<uint64_t>& shape,
                          void* dst, size_t cap) {
    return compress_async(src, dtype, static_cast<int>(shape.size()), shape.data(), dst, cap);
  }
  wpr_job* decompress_async(const void* src, size_t n, void* dst, size_t cap) {
    wpr_job* job = nullptr;
    check(wpr_decompress_async(get(), src, n, dst, cap, &job));
    return job;
  }
  // Sizes of src, residual and what is added to are values; *written of the second, too.
  wpr_job* compress_feedback_async(const void* src, wpr_dtype dtype, float* residual, size_t n,
                                   void* dst, size_t cap) {
    wpr_job* job = nullptr;
    check(wpr_compress_feedback_async(get(), src, dtype, residual, n, dst, cap, &job));
    return job;
  }
  wpr_job* decompress_add_async(const void* src, size_t n, void* dst, wpr_dtype dtype, size_t cap) {
    wpr_job* job = nullptr;
    check(wpr_decompress_add_async(get(), src, n, dst, dtype, cap, &job));
    return job;
  }
  // Several frames as one job; the pieces stay until it is done.
  wpr_job* compress_pieces_async(wpr_piece* pieces, size_t n_pieces, wpr_dtype dtype) {
    wpr_job* job = nullptr;
    check(wpr_compress_pieces_async(get(), pieces, n_pieces, dtype, &job));
    return job;
  }
  wpr_job* decompress_pieces_async(wpr_piece* pieces, size_t n_pieces, bool add) {
    wpr_job* job = nullptr;
    check(wpr_decompress_pieces_async(get(), pieces, n_pieces, add, &job));
    return job;
  }
  // Whether it is done, and no more; *written then.
  bool poll(wpr_job* job, size_t* written) {
    int done = 0;
    check(wpr_poll(get(), job, &done, written));
    return done != 0;
  }
  size_t wait(wpr_job* job) {
    size_t written = 0;
    check(wpr_wait(get(), job, &written));
    return written;
  }

  // ---- statistics ----

  wpr_stats stats() const {
    wpr_stats stats;
    wpr_get_stats(get(), &stats);
    return stats;
  }
  void reset_stats() { wpr_reset_stats(get()); }

#if __cplusplus >= 202002L
  template <class T, size_t N>
  std::vector<std::byte> compress(std::span<T, N> data) {
    static_assert(std::is_trivially_copyable_v<T>);
    return compress(data.data(), data.size_bytes());
  }
  template <size_t N>
  std::vector<std::byte> decompress(std::span<const std::byte, N> frame) {
    return decompress(frame.data(), frame.size());
  }
  template <size_t N>
  wpr_info inspect(std::span<const std::byte, N> frame) {
    return inspect(frame.data(), frame.size());
  }
#endif

 private:
  struct Free {
    void operator()(wpr_ctx* context) const noexcept { wpr_free(context); }
  };

  void check(wpr_status status) const {
    if (status == WPR_OK) return;
    if (!context_) throw std::bad_alloc();  // wpr_create alone can leave no context
    const std::string sentence = wpr_error(get());
    throw Error(status, sentence.empty() ? wpr_status_name(status) : sentence);
  }

  template <class Call>
  void append(std::vector<std::byte>& out, size_t n, Call call) {
    const size_t before = out.size(), cap = stream_bound(n);
    out.resize(before + cap);
    try {
      out.resize(before + call(out.data() + before, cap));
    } catch (...) {
      out.resize(before);
      throw;
    }
  }

  std::unique_ptr<wpr_ctx, Free> context_;
};

}  // namespace door
}  // namespace wirepress

#endif  // WIREPRESS_HPP
