// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <nanobind/stl/tuple.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "buffer.hpp"

namespace nb = nanobind;

namespace wirepress::python {
namespace {

// The library believes the shape; Python code must not be able to make it read elsewhere.
void check_size(size_t size, int dtype, int n_dims, const std::vector<uint64_t>& shape) {
  size_t expected = dtype_size(static_cast<wpr_dtype>(dtype));
  bool overflow = false;
  for (const uint64_t extent : shape) {
    overflow |= __builtin_mul_overflow(expected, extent, &expected);
  }
  const size_t n_extents = n_dims == WPR_NO_SHAPE ? 1 : static_cast<size_t>(n_dims);
  if (overflow || expected != size || shape.size() != n_extents) {
    throw nb::value_error("the data do not hold what dtype and shape say");
  }
}

// Values of a gradient of this type, with a residual of equally many float32.
size_t equally_many(const Input& data, int dtype, const Output& residual) {
  const size_t size = dtype_size(static_cast<wpr_dtype>(dtype)),
               n = residual.size() / sizeof(float);
  if (residual.size() % sizeof(float) != 0 || size == 0 || data.size() != n * size)
    throw nb::value_error("data and residual must hold equally many values, the residual float32");
  return n;
}

// wpr_raw_size has no context to keep a sentence in: where it fails, a call that fails alike and
// says which block is asked too. Neither can succeed, or write more than a byte.
size_t raw_size_of(wirepress::Context& context, const Input& frame) {
  const wpr_info info = context.inspect(frame.data(), frame.size());
  try {
    return static_cast<size_t>(wirepress::Context::raw_size(frame.data(), frame.size()));
  } catch (const Error&) {
    std::byte none;
    if (info.streamed) context.decompress(frame.data(), frame.size(), &none, 0);
    context.decompress_range(frame.data(), frame.size(), info.raw_size - 1, 1, &none);
    throw;
  }
}

constexpr std::chrono::milliseconds kBetweenLooks(50);  // for signals

// Python runs handlers of signals in its main thread alone. Nearly always that is the process's.
bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

// The context's stream, for one call.
// NOLINTBEGIN(performance-no-int-to-ptr): addresses come as numbers
class OnStream {
 public:
  OnStream(wirepress::Context& context, intptr_t stream, intptr_t before)
      : context_(context), before_(before) {
    context_.set_stream(reinterpret_cast<void*>(stream));
  }
  ~OnStream() { context_.set_stream(reinterpret_cast<void*>(before_)); }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  wirepress::Context& context_;
  intptr_t before_;
};
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace

// While it lives, calls look for signals.
class Context::Looking {
 public:
  explicit Looking(Context* context) : context_(context) {
    context_->may_look_ = true;
    context_->look_at_ = {};
  }
  ~Looking() { context_->may_look_ = false; }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  Context* context_;
};

struct Context::AtFork {
  std::mutex mutex;
  std::atomic<bool> forking{false};  // calls look for no signals: the fork waits for them
  std::vector<Context*> contexts;

  // Never destroyed: contexts may outlive the module.
  static AtFork& all() {
    static AtFork* all = [] {
      pthread_atfork([] { AtFork::all().lock(); }, [] { AtFork::all().unlock(false); },
                     [] { AtFork::all().unlock(true); });
      return new AtFork;
    }();
    return *all;
  }
  void lock() {
    mutex.lock();
    forking = true;
    for (Context* context : contexts) context->hold();
  }
  void unlock(bool in_child) {
    for (Context* context : contexts) context->let_go(in_child);
    forking = false;
    mutex.unlock();
  }
};

void Context::hold() {
  while (!mutex_.try_lock()) {
    if ((left_ = looks_.load())) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Context::let_go(bool in_child) {
  if (!left_) return mutex_.unlock();
  left_ = false;
  torn_ = in_child;
}

Context::Context() {
  context_.set_interrupt(
      [](void* self) -> int { return static_cast<Context*>(self)->is_interrupted(); }, this);
  AtFork& all = AtFork::all();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.contexts.push_back(this);
}

Context::~Context() {
  AtFork& all = AtFork::all();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto at = std::find(all.contexts.begin(), all.contexts.end(), this);
  *at = all.contexts.back();
  all.contexts.pop_back();
}

// Asked between blocks.
bool Context::is_interrupted() {
  if (!may_look_) return false;
  const Clock::time_point now = Clock::now();
  const bool is_first = look_at_ == Clock::time_point(), is_time = !is_first && now >= look_at_;
  if (is_first || is_time) look_at_ = now + kBetweenLooks;
  if (!is_time || !is_main_thread() || AtFork::all().forking) return false;
  looks_ = true;
  looker_ = std::this_thread::get_id();
  {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) interrupt_ = std::make_exception_ptr(nb::python_error());
  }
  looker_ = std::thread::id();
  looks_ = false;
  return interrupt_ != nullptr;
}

bool Context::runs_handlers() const { return looker_.load() == std::this_thread::get_id(); }

void Context::check_usable() const {
  if (torn_)
    throw Error(WPR_PARAMETER,
                "another thread was in a call of this compressor when the process forked, and "
                "looked for signals: make a new one in the child");
  if (runs_handlers())
    throw Error(WPR_PARAMETER,
                "this compressor is in the call that the signal interrupts: use another one in "
                "the signal's handler");
}

template <class Call>
auto Context::alone(Call call) {
  check_usable();
  const std::lock_guard<std::mutex> lock(mutex_);
  return call(context_);
}

template <class Call>
auto Context::run(Call call) {
  nb::gil_scoped_release released;
  return alone([&](auto& context) {
    const Looking looking(this);
    try {
      return call(context);
    } catch (const Error&) {
      if (interrupt_) std::rethrow_exception(std::exchange(interrupt_, nullptr));
      throw;
    }
  });
}

template <class Cap, class Call>
nb::bytes Context::make_bytes(Cap cap, Call call, Fill fill) {
  while (true) {  // until no other thread's set() comes between the two
    uint64_t n_sets = 0;
    const size_t size = run([&](auto& context) {
      n_sets = n_sets_;
      return cap(context);
    });
    NewBytes bytes(size, fill);
    const std::optional<size_t> written = run([&](auto& context) -> std::optional<size_t> {
      if (n_sets_ != n_sets) return std::nullopt;
      return call(context, bytes.data(), size);
    });
    if (written) return bytes.take(*written);
  }
}

void Context::set(const std::string& key, const std::string& value) {
  run([&](auto& context) {
    context.set(key, value);
    ++n_sets_;
  });
}

std::string Context::get(const std::string& key) {
  return run([&](auto& context) { return context.get(key); });
}

double Context::number(const std::string& key) {
  return run([&](auto& context) { return context.number(key); });
}

nb::tuple Context::error_bound(const std::string& key) {
  const auto bound = run([&](auto& context) { return context.error_bound(key); });
  return nb::make_tuple(static_cast<int>(bound.first), bound.second);
}

std::string Context::origin(const std::string& key) {
  return run([&](auto& context) { return context.origin(key); });
}

nb::bytes Context::compress(nb::handle data, int dtype, int n_dims,
                            const std::vector<uint64_t>& shape) {
  const Input input(data);
  check_size(input.size(), dtype, n_dims, shape);
  return make_bytes([&](auto& context) { return context.bound(input.size()); },
                    [&](auto& context, void* dst, size_t cap) {
                      return context.compress_array(input.data(), static_cast<wpr_dtype>(dtype),
                                                    n_dims, shape.data(), dst, cap);
                    });
}

size_t Context::compress_into(nb::handle data, int dtype, int n_dims,
                              const std::vector<uint64_t>& shape, nb::handle out) {
  const Input input(data);
  check_size(input.size(), dtype, n_dims, shape);
  const Output output(out);
  return run([&](auto& context) {
    return context.compress_array(input.data(), static_cast<wpr_dtype>(dtype), n_dims, shape.data(),
                                  output.data(), output.size());
  });
}

size_t Context::bound(size_t raw_size) {
  return run([&](auto& context) { return context.bound(raw_size); });
}

nb::bytes Context::decompress(nb::handle frame, std::optional<intptr_t> stream) {
  const Input input(frame);
  return make_bytes(
      [&](auto& context) {
        const OnStream there(context, stream.value_or(stream_), stream_);
        return raw_size_of(context, input);
      },
      [&](auto& context, void* dst, size_t cap) {
        const OnStream there(context, stream.value_or(stream_), stream_);
        return context.decompress(input.data(), input.size(), dst, cap);
      },
      Fill::kWhole);
}

size_t Context::decompress_into(nb::handle frame, nb::handle out) {
  const Input input(frame);
  const Output output(out);
  return run([&](auto& context) {
    return context.decompress(input.data(), input.size(), output.data(), output.size());
  });
}

nb::bytes Context::compress_feedback(nb::handle data, int dtype, nb::handle residual) {
  const Input input(data);
  const Output rest(residual);
  const size_t n = equally_many(input, dtype, rest);
  return make_bytes([&](auto& context) { return context.bound(rest.size()); },
                    [&](auto& context, void* dst, size_t cap) {
                      return context.compress_feedback(input.data(), static_cast<wpr_dtype>(dtype),
                                                       static_cast<float*>(rest.data()), n, dst,
                                                       cap);
                    });
}

size_t Context::compress_feedback_into(nb::handle data, int dtype, nb::handle residual,
                                       nb::handle out) {
  const Input input(data);
  const Output rest(residual), output(out);
  const size_t n = equally_many(input, dtype, rest);
  return run([&](auto& context) {
    return context.compress_feedback(input.data(), static_cast<wpr_dtype>(dtype),
                                     static_cast<float*>(rest.data()), n, output.data(),
                                     output.size());
  });
}

size_t Context::decompress_add(nb::handle frame, nb::handle out, int dtype) {
  const Input input(frame);
  const Output output(out);
  const size_t size = dtype_size(static_cast<wpr_dtype>(dtype));
  return run([&](auto& context) {
    return context.decompress_add(input.data(), input.size(), output.data(),
                                  static_cast<wpr_dtype>(dtype),
                                  size == 0 ? 0 : output.size() / size);
  });
}

nb::bytes Context::add(nb::handle a, nb::handle b) {
  const Input left(a), right(b);
  const auto room = [&](auto& context) {  // blocks may be smaller than the context's
    const auto raw_size = static_cast<size_t>(raw_size_of(context, left));
    return std::max<size_t>(context.bound(raw_size), left.size() + raw_size);
  };
  return make_bytes(room, [&](auto& context, void* dst, size_t cap) {
    return context.add(left.data(), left.size(), right.data(), right.size(), dst, cap);
  });
}

nb::bytes Context::compress_steps(nb::handle before, nb::handle after, size_t word_size) {
  const Input from(before), to(after);
  if (from.size() != to.size() || word_size == 0 || to.size() % word_size != 0)
    throw nb::value_error("before and after must hold equally many words");
  return make_bytes([&](auto& context) { return context.bound(to.size()); },
                    [&](auto& context, void* dst, size_t cap) {
                      return context.compress_steps(from.data(), to.data(), to.size() / word_size,
                                                    word_size, dst, cap);
                    });
}

size_t Context::take_steps(nb::handle frame, nb::handle words) {
  const Input input(frame);
  const Output output(words);
  return run([&](auto& context) {
    return context.take_steps(input.data(), input.size(), output.data(), output.size());
  });
}

uint64_t hash(nb::handle data, uint64_t seed) {
  const Input input(data);
  nb::gil_scoped_release released;
  if (wirepress::place_of(input.data()).device >= 0)
    throw Error(WPR_PARAMETER, "the data lie in memory of a device: copy them to hash them");
  return wpr_hash(input.data(), input.size(), seed);
}

// NOLINTBEGIN(performance-no-int-to-ptr): addresses come as numbers
nb::tuple place_of(uintptr_t address) {
  const wpr_place place = wirepress::place_of(reinterpret_cast<const void*>(address));
  return nb::make_tuple(place.engine, place.device, reinterpret_cast<uintptr_t>(place.on_cores));
}

void copy_to(uintptr_t address, nb::handle data) {
  const Input input(data);
  nb::gil_scoped_release released;
  wirepress::Context().copy(reinterpret_cast<void*>(address), input.data(), input.size());
}

void copy_from(uintptr_t address, nb::handle out) {
  const Output output(out);
  nb::gil_scoped_release released;
  wirepress::Context().copy(output.data(), reinterpret_cast<const void*>(address), output.size());
}

void wait_for(uintptr_t address, intptr_t stream) {
  nb::gil_scoped_release released;
  wirepress::Context context;
  context.set_stream(reinterpret_cast<void*>(stream));
  std::byte one;  // of memory of a device a copy waits
  context.copy(&one, reinterpret_cast<const void*>(address), 1);
}

uintptr_t device_alloc(const std::string& engine, int device, size_t size) {
  return reinterpret_cast<uintptr_t>(wirepress::Context().device_alloc(engine, device, size));
}

void device_free(uintptr_t address) {
  wirepress::Context().device_free(reinterpret_cast<void*>(address));
}

void Context::set_stream(intptr_t stream) {
  run([&](auto& context) {
    context.set_stream(reinterpret_cast<void*>(stream));
    stream_ = stream;
  });
}

// NOLINTEND(performance-no-int-to-ptr)

nb::bytes Context::decompress_range(nb::handle frame, uint64_t offset, size_t size) {
  const Input input(frame);
  return make_bytes([&](auto&) { return size; },
                    [&](auto& context, void* dst, size_t cap) {
                      context.decompress_range(input.data(), input.size(), offset, cap, dst);
                      return cap;
                    },
                    Fill::kWhole);
}

nb::list Context::explain(nb::handle data, int dtype, int n_dims,
                          const std::vector<uint64_t>& shape) {
  const Input input(data);
  check_size(input.size(), dtype, n_dims, shape);
  struct Row {
    wpr_choice choice;
    std::string recipe;
  };
  std::vector<Row> rows;
  run([&](auto& context) {
    context.explain(input.data(), static_cast<wpr_dtype>(dtype), n_dims, shape.data(),
                    [&](const wpr_choice& choice) {
                      rows.push_back({choice, choice.recipe});
                    });
  });
  nb::list result;
  for (const auto& [c, recipe] : rows)
    result.append(nb::make_tuple(c.offset, c.size, c.reused != 0, c.zero_lines, c.byte_entropy,
                                 c.exponent_entropy, c.roughness, c.matches, recipe.c_str(), c.why,
                                 c.ratio, c.compress_rate, c.expand_rate, c.finish, c.chosen != 0,
                                 c.tried, c.timed != 0, c.pace, c.prior));
  return result;
}

nb::tuple Context::inspect(nb::handle frame, std::optional<intptr_t> stream) {
  const Input input(frame);
  const wpr_info info = run([&](auto& context) {
    const OnStream there(context, stream.value_or(stream_), stream_);
    return context.inspect(input.data(), input.size());
  });
  nb::list shape;
  for (int i = 0; i < info.n_dims; ++i) shape.append(info.shape[i]);
  return nb::make_tuple(info.version, info.header_size, info.raw_size, info.block_size,
                        info.n_blocks, static_cast<int>(info.dtype), info.n_dims, nb::tuple(shape),
                        info.checksum != 0, info.streamed != 0, info.recipe);
}

bool Context::lossless(const std::string& recipe, int dtype) {
  return run([&](auto& context) {
    return context.lossless(recipe.c_str(), static_cast<wpr_dtype>(dtype));
  });
}

nb::bytes Context::stream_begin(int dtype) {
  return make_bytes([](auto& context) { return context.stream_bound(0); },
                    [&](auto& context, void* dst, size_t cap) {
                      return context.stream_begin(static_cast<wpr_dtype>(dtype), dst, cap);
                    });
}

nb::bytes Context::stream_update(nb::handle data) {
  const Input input(data);
  return make_bytes([&](auto& context) { return context.stream_bound(input.size()); },
                    [&](auto& context, void* dst, size_t cap) {
                      return context.stream_update(input.data(), input.size(), dst, cap);
                    });
}

nb::bytes Context::stream_end() {
  return make_bytes(
      [](auto& context) { return context.stream_bound(0); },
      [](auto& context, void* dst, size_t cap) { return context.stream_end(dst, cap); });
}

void Context::expand_begin() {
  run([](auto& context) { context.expand_begin(); });
}

nb::tuple Context::expand_update(nb::handle data, size_t offset, nb::handle out) {
  const Input input(data);
  const Output output(out);
  offset = std::min(offset, input.size());
  const auto progress = run([&](auto& context) {
    return context.expand_update(static_cast<const std::byte*>(input.data()) + offset,
                                 input.size() - offset, output.data(), output.size());
  });
  return nb::make_tuple(progress.consumed, progress.written, progress.done);
}

// ---- jobs ----

template <class Begin>
Job::Job(nb::object context, nb::object data, nb::object residual, nb::object out, size_t cap,
         Begin begin)
    : owner_(std::move(context)),
      data_(std::move(data)),
      residual_(std::move(residual)),
      out_(std::move(out)) {
  input_ = std::make_unique<Input>(data_);
  if (!residual_.is_none()) rest_ = std::make_unique<Output>(residual_);
  if (out_.is_none()) {
    bytes_ = std::make_unique<NewBytes>(cap, Fill::kPart);
  } else {
    output_ = std::make_unique<Output>(out_);
  }
  void* const to = bytes_ ? bytes_->data() : output_->data();
  const size_t room = bytes_ ? cap : output_->size();
  job_ = this->context().run([&](auto& own) { return begin(own, *input_, rest_.get(), to, room); });
}

template <class Begin>
Job::Job(nb::object context, const nb::list& rows, size_t size, Begin begin)
    : owner_(std::move(context)) {
  for (const nb::handle row : rows) {
    const auto [data, residual, out, seed] =
        nb::cast<std::tuple<nb::object, nb::object, nb::object, uint64_t>>(row);
    Held& held = held_.emplace_back();
    held.data = data;
    held.residual = residual;
    held.out = out;
    held.input = std::make_unique<Input>(data);
    if (!residual.is_none()) held.rest = std::make_unique<Output>(residual);
    held.output = std::make_unique<Output>(out);
    if (held.input->size() % size != 0)
      throw nb::value_error("the data do not hold what dtype says");
    const size_t n = held.input->size() / size;
    if (held.rest && held.rest->size() != n * sizeof(float))
      throw nb::value_error(
          "data and residual must hold equally many values, the residual float32");
    auto* const rest = held.rest ? static_cast<float*>(held.rest->data()) : nullptr;
    pieces_.push_back(
        {held.input->data(), n, rest, held.output->data(), held.output->size(), seed, 0});
  }
  job_ = this->context().run([&](auto& own) { return begin(own, &pieces_); });
}

// A device may still read and write what the job has.
Job::~Job() {
  if (job_.load(std::memory_order_acquire) == nullptr) return;
  context().runs_handlers() ? leave() : wait(false);
}

// Its context cannot be asked: the call that it is in goes on when this returns. So nothing of the
// job is ever freed.
void Job::leave() {
  (void)input_.release();
  (void)rest_.release();
  (void)output_.release();
  (void)bytes_.release();
  (void)new std::vector<Held>(std::move(held_));
  (void)new std::vector<wpr_piece>(std::move(pieces_));
  for (nb::object* object : {&owner_, &data_, &residual_, &out_}) (void)object->release();
}

Context& Job::context() const { return *nb::inst_ptr<Context>(owner_); }

bool Job::look() {
  return context().alone([&](auto& own) {
    wpr_job* const job = job_.load(std::memory_order_relaxed);
    if (job == nullptr) return true;  // another thread was faster
    try {
      if (!own.poll(job, &written_)) return false;
    } catch (...) {
      error_ = std::current_exception();
    }
    job_.store(nullptr, std::memory_order_release);
    return true;
  });
}

// Nobody waits for the device alone with the context: its stream may be behind what other threads
// have yet to put there, by the same context.
void Job::wait(bool looks_for_signals) {
  constexpr std::chrono::microseconds kLongest(200);
  std::chrono::microseconds pause(5);
  looks_for_signals = looks_for_signals && is_main_thread();
  nb::gil_scoped_release released;
  for (Clock::time_point looked = Clock::now(); !look();) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
    if (!looks_for_signals || Clock::now() < looked + kBetweenLooks) continue;
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    looked = Clock::now();
  }
}

// What the device is done with.
void Job::let_go() {
  input_.reset();
  rest_.reset();
  output_.reset();
  held_.clear();
  data_ = residual_ = nb::none();
}

bool Job::done() {
  if (job_.load(std::memory_order_acquire) != nullptr) {
    nb::gil_scoped_release released;
    if (!look()) return false;
  }
  let_go();
  return true;
}

nb::object Job::result() {
  if (job_.load(std::memory_order_acquire) != nullptr) wait(true);
  let_go();
  if (error_) std::rethrow_exception(error_);
  if (!result_.is_valid() && !pieces_.empty()) {
    nb::list sizes;
    for (const wpr_piece& piece : pieces_) sizes.append(piece.written);
    result_ = std::move(sizes);
  }
  if (!result_.is_valid()) {
    result_ = bytes_ ? nb::object(bytes_->take(written_)) : nb::object(nb::int_(written_));
    bytes_.reset();
  }
  return result_;
}

template <class Begin>
Job* Context::make_async(nb::object self, nb::object data, nb::object residual, nb::object out,
                         size_t raw_size, Begin begin) {
  while (true) {  // until no other thread's set() comes between the room and the job
    uint64_t n_sets = 0;
    size_t cap = 0;
    if (out.is_none())
      cap = run([&](auto& context) {
        n_sets = n_sets_;
        return context.bound(raw_size);
      });
    auto job = std::make_unique<Job>(self, data, residual, out, cap,
                                     [&](auto& context, const Input& input, const Output* rest,
                                         void* to, size_t room) -> wpr_job* {
                                       if (out.is_none() && n_sets_ != n_sets) return nullptr;
                                       return begin(context, input, rest, to, room);
                                     });
    if (job->begun()) return job.release();
  }
}

Job* Context::compress_async(nb::object self, nb::object data, int dtype, int n_dims,
                             const std::vector<uint64_t>& shape, nb::object out, intptr_t stream) {
  size_t size = 0;
  {
    const Input input(data);
    check_size(input.size(), dtype, n_dims, shape);
    size = input.size();
  }
  return make_async(std::move(self), std::move(data), nb::none(), std::move(out), size,
                    [&](auto& context, const Input& input, const Output*, void* to, size_t room) {
                      if (input.size() != size)
                        throw Error(WPR_PARAMETER, "the data have changed their size");
                      const OnStream there(context, stream, stream_);
                      return context.compress_async(input.data(), static_cast<wpr_dtype>(dtype),
                                                    n_dims, shape.data(), to, room);
                    });
}

Job* Context::compress_feedback_async(nb::object self, nb::object data, int dtype,
                                      nb::object residual, nb::object out, intptr_t stream) {
  const size_t size = Output(residual).size();
  return make_async(
      std::move(self), std::move(data), std::move(residual), std::move(out), size,
      [&](auto& context, const Input& input, const Output* rest, void* to, size_t room) {
        const size_t n = equally_many(input, dtype, *rest);
        if (rest->size() != size) throw Error(WPR_PARAMETER, "the residual has changed its size");
        const OnStream there(context, stream, stream_);
        return context.compress_feedback_async(input.data(), static_cast<wpr_dtype>(dtype),
                                               static_cast<float*>(rest->data()), n, to, room);
      });
}

Job* Context::decompress_async(nb::object self, nb::object frame, nb::object out, intptr_t stream) {
  return new Job(std::move(self), std::move(frame), nb::none(), std::move(out), 0,
                 [&](auto& context, const Input& input, const Output*, void* to, size_t room) {
                   const OnStream there(context, stream, stream_);
                   return context.decompress_async(input.data(), input.size(), to, room);
                 });
}

Job* Context::decompress_add_async(nb::object self, nb::object frame, nb::object out, int dtype,
                                   intptr_t stream) {
  const size_t size = dtype_size(static_cast<wpr_dtype>(dtype));
  return new Job(std::move(self), std::move(frame), nb::none(), std::move(out), 0,
                 [&](auto& context, const Input& input, const Output*, void* to, size_t room) {
                   const OnStream there(context, stream, stream_);
                   return context.decompress_add_async(input.data(), input.size(), to,
                                                       static_cast<wpr_dtype>(dtype),
                                                       size == 0 ? 0 : room / size);
                 });
}

template <class Begin>
Job* Context::pieces_async(nb::object self, const nb::list& rows, size_t size, intptr_t stream,
                           Begin begin) {
  if (size == 0) throw nb::value_error("no such dtype");
  return new Job(std::move(self), rows, size,
                 [&](auto& context, std::vector<wpr_piece>* pieces) -> wpr_job* {
                   const OnStream there(context, stream, stream_);
                   return begin(context, pieces->data(), pieces->size());
                 });
}

Job* Context::compress_pieces_async(nb::object self, const nb::list& rows, int dtype,
                                    intptr_t stream) {
  const auto type = static_cast<wpr_dtype>(dtype);
  return pieces_async(std::move(self), rows, dtype_size(type), stream,
                      [&](auto& context, wpr_piece* pieces, size_t n) {
                        return context.compress_pieces_async(pieces, n, type);
                      });
}

Job* Context::decompress_pieces_async(nb::object self, const nb::list& rows, bool add,
                                      intptr_t stream) {
  return pieces_async(std::move(self), rows, 1, stream,
                      [&](auto& context, wpr_piece* pieces, size_t n) {
                        return context.decompress_pieces_async(pieces, n, add);
                      });
}

wpr_stats Context::stats() {
  return run([](auto& context) { return context.stats(); });
}

void Context::between_calls(const std::function<void()>& work) {
  run([&](auto&) { work(); });
}

void Context::reset_stats() {
  run([](auto& context) { context.reset_stats(); });
}

}  // namespace wirepress::python
