// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chain.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/memory.hpp"
#include "base/order.hpp"

namespace wirepress {
namespace {

bool same_step(const Recipe::Step& a, const Recipe::Step& b) {
  return a.entry == b.entry && a.kernel == b.kernel && a.args.dtype == b.args.dtype &&
         a.args.value == b.args.value && a.args.n_dims == b.args.n_dims &&
         a.args.shape == b.args.shape && a.args.device == b.args.device &&
         a.args.home == b.args.home;
}

Args with(Args args, Draw draw) {
  args.seed = draw.seed;
  args.first = draw.first;
  return args;
}

Status reserve(Buffer& buffer, size_t size, Bytes* bytes) {
  std::byte* memory = buffer.reserve(size);
  if (!memory) return fail(Code::kNoMemory, "no memory for %zu bytes of scratch", size);
  *bytes = {memory, size};
  return {};
}

float load(const std::byte* at) {
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void store(std::byte* at, float value) { std::memcpy(at, &value, sizeof value); }

}  // namespace

void add_floats(ConstBytes from, Bytes to) {
  for (size_t i = 0; i + 4 <= to.size(); i += 4) store(&to[i], load(&to[i]) + load(&from[i]));
}

namespace {

// Calls function(T{}) with the unsigned type of `size` bytes, 1, 2 or 4.
template <typename Function>
void with_word(size_t size, Function function) {
  if (size == 1) return function(uint8_t{});
  if (size == 2) return function(uint16_t{});
  function(uint32_t{});
}

}  // namespace

bool is_past_caches(size_t raw_size) {
  // Three quarters of 32 MiB, as memcpy of the C library reckons. Not from sysconf, which on AMD's
  // processors sums up the caches of all groups of cores.
  constexpr size_t kMost = 24 << 20;
  return raw_size >= kMost;
}

bool can_add_values(DType dtype) {
  return dtype == DType::kFloat32 || (dtype >= DType::kInt8 && dtype <= DType::kUint32);
}

void add_values(DType dtype, ConstBytes from, Bytes to) {
  if (dtype == DType::kFloat32) return add_floats(from, to);
  with_word(dtype_size(dtype), [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < to.size() / sizeof(T); ++i) {
      const T sum = static_cast<T>(load_word<T>(to.data(), i) + load_word<T>(from.data(), i));
      std::memcpy(to.data() + i * sizeof(T), &sum, sizeof sum);
    }
  });
}

void find_steps(size_t word_size, ConstBytes before, ConstBytes after, Bytes steps) {
  with_word(word_size, [&](auto type) {
    find_steps<decltype(type)>(before.data(), after.data(), after.size(), steps.data());
  });
}

void take_steps(size_t word_size, ConstBytes steps, Bytes words) {
  with_word(word_size, [&](auto type) {
    take_steps<decltype(type)>(steps.data(), words.size(), words.data());
  });
}

Chain::Chain(const Recipe& recipe, int n_workers)
    : recipe_(recipe), workers_(static_cast<size_t>(n_workers)) {}

Chain::~Chain() {
  for (Worker& worker : workers_) {
    for (int i = 0; i < recipe_.n_steps; ++i) {
      const Kernel& kernel = *recipe_.step[i].kernel;
      if (worker.open[i] && kernel.close) kernel.close(worker.state[i]);
      const Kernel* const spare = worker.spare[i];
      if (spare != nullptr && spare->close != nullptr) spare->close(worker.spare_state[i]);
    }
  }
}

bool Chain::matches(const Recipe& recipe, int n_workers) const {
  if (recipe.n_steps != recipe_.n_steps || workers_.size() < static_cast<size_t>(n_workers))
    return false;
  for (int i = 0; i < recipe.n_steps; ++i) {
    if (!same_step(recipe.step[i], recipe_.step[i])) return false;
  }
  return true;
}

Status Chain::open(Worker& worker, int step) {
  if (worker.open[step]) return {};
  const Recipe::Step& it = recipe_.step[step];
  if (it.kernel->open) WPR_TRY(it.kernel->open(it.args, &worker.state[step]));
  worker.open[step] = true;
  return {};
}

// What a device was to do of data that the cores have, they do where it fails.
Status Chain::spare_for(Worker& worker, int step, size_t size, const Kernel** kernel,
                        void** state) {
  const Recipe::Step& it = recipe_.step[step];
  if (worker.spare[step] == nullptr) {
    const Kernel* const found = choose_kernel(*it.entry, "auto");
    if (found == nullptr)
      return fail(Code::kUnsupported, "%s: no kernel of the cores", it.entry->codec->name);
    if (found->open != nullptr) WPR_TRY(found->open(it.args, &worker.spare_state[step]));
    worker.spare[step] = found;
  }
  *kernel = worker.spare[step];
  *state = worker.spare_state[step];
  failed_size_ += size;
  return {};
}

bool Chain::may_take_over(int step, const Status& status) const {
  const Recipe::Step& it = recipe_.step[step];
  return status.code() == Code::kDevice && it.kernel->current_device != nullptr &&
         it.args.device < 0;
}

Status Chain::encode_step(Worker& worker, int step, Draw draw, ConstBytes src, Bytes dst,
                          size_t* written) {
  const Recipe::Step& it = recipe_.step[step];
  const Args args = with(it.args, draw);
  Status status = open(worker, step);
  if (status.ok()) status = it.kernel->encode(worker.state[step], args, src, dst, written);
  if (!may_take_over(step, status)) return status;
  const Kernel* kernel;
  void* state;
  WPR_TRY(spare_for(worker, step, src.size(), &kernel, &state));
  return kernel->encode(state, args, src, dst, written);
}

Status Chain::decode_step(Worker& worker, int step, const Args& args, ConstBytes src, Bytes dst,
                          size_t* written) {
  const Recipe::Step& it = recipe_.step[step];
  Status status = open(worker, step);
  if (status.ok()) status = it.kernel->decode(worker.state[step], args, src, dst, written);
  if (!may_take_over(step, status)) return status;
  const Kernel* kernel;
  void* state;
  WPR_TRY(spare_for(worker, step, dst.size(), &kernel, &state));
  return kernel->decode(state, args, src, dst, written);
}

void Chain::note_failures() {
  const size_t size = failed_size_.exchange(0);
  if (size == 0) return;
  for (int i = 0; i < recipe_.n_steps; ++i) {
    const Kernel& kernel = *recipe_.step[i].kernel;
    const DeviceMemory* const memory =
        kernel.current_device == nullptr
            ? nullptr
            : find_memory(std::string(kernel.engine) + ":" + kernel.variant);
    if (memory != nullptr) return memory->note(0, size, "the device failed");
  }
}

size_t Chain::first_bound(size_t raw_size) const {
  return recipe_.step[0].entry->codec->bound(recipe_.step[0].args, raw_size);
}

Status Chain::encode(int index, ConstBytes src, Draw draw, Bytes dst, size_t* written) {
  return encode_from(workers_[static_cast<size_t>(index)], 0, src, draw, dst, written);
}

Status Chain::encode_from(Worker& worker, int step_begin, ConstBytes src, Draw draw, Bytes dst,
                          size_t* written) {
  const int last = recipe_.n_steps - 1;
  WPR_TRY(encode_to_last(worker, step_begin, draw, &src));
  size_t size = 0;
  WPR_TRY(encode_step(worker, last, draw, src, dst, &size));
  *written = size;
  return {};
}

Status Chain::encode_to_last(Worker& worker, int step_begin, Draw draw, ConstBytes* code) {
  for (int i = step_begin; i < recipe_.n_steps - 1; ++i) {
    const Recipe::Step& step = recipe_.step[i];
    Bytes out;
    WPR_TRY(
        reserve(worker.scratch[i % 2], step.entry->codec->bound(step.args, code->size()), &out));
    size_t size = 0;
    WPR_TRY(encode_step(worker, i, draw, *code, out, &size));
    *code = out.first(size);
  }
  return {};
}

// What a device may do is the last step. What it reads is the block's own until it is done.
Status Chain::begin_encode(int index, ConstBytes src, Draw draw, Bytes dst, double left,
                           size_t* written, Begun* begun) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int last = recipe_.n_steps - 1;
  const Recipe::Step& step = recipe_.step[last];
  WPR_TRY(encode_to_last(worker, 0, draw, &src));
  if (last > 0) std::swap(worker.scratch[(last - 1) % 2], begun->scratch);
  WPR_TRY(open(worker, last));
  begun->in = src;
  begun->out = dst;
  return step.kernel->begin_encode(worker.state[last], with(step.args, draw), src, dst, left,
                                   written, &begun->device);
}

bool Chain::end_encode(int index, Draw draw, size_t* written, Begun* begun, Status* status) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int last = recipe_.n_steps - 1;
  const Recipe::Step& step = recipe_.step[last];
  return step.kernel->end_encode(worker.state[last], with(step.args, draw), begun->device,
                                 begun->in, begun->out, written, status);
}

Status Chain::decode(int index, ConstBytes src, Bytes dst, bool past_caches) {
  return decode_from(workers_[static_cast<size_t>(index)], recipe_.n_steps - 1, src, dst,
                     past_caches);
}

Status Chain::decode_from(Worker& worker, int step, ConstBytes src, Bytes dst, bool past_caches) {
  ConstBytes code;
  WPR_TRY(decode_between(worker, step, src, dst.size(), nullptr, &code));
  size_t size = 0;
  Args args = recipe_.step[0].args;
  args.past_caches = past_caches;
  WPR_TRY(decode_step(worker, 0, args, code, dst, &size));
  if (size != dst.size())
    return fail(Code::kCorrupt, "expands to %zu bytes instead of %zu", size, dst.size());
  return {};
}

// What a device may do is the step that is decoded first.
Status Chain::begin_decode(int index, ConstBytes src, Bytes dst, double left, Begun* begun) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int last = recipe_.n_steps - 1;
  const Recipe::Step& step = recipe_.step[last];
  WPR_TRY(open(worker, last));
  begun->out = dst;
  if (last > 0) WPR_TRY(reserve(begun->scratch, limit(last, dst.size()), &begun->out));
  size_t size = 0;
  WPR_TRY(step.kernel->begin_decode(worker.state[last], step.args, src, begun->out, left, &size,
                                    &begun->device));
  return begun->device ? Status() : behind_last(worker, begun->out.first(size), dst);
}

bool Chain::end_decode(int index, ConstBytes src, Bytes dst, Begun* begun, Status* status) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int last = recipe_.n_steps - 1;
  const Recipe::Step& step = recipe_.step[last];
  size_t size = 0;
  if (!step.kernel->end_decode(worker.state[last], step.args, begun->device, src, begun->out, &size,
                               status))
    return false;
  if (status->ok()) *status = behind_last(worker, begun->out.first(size), dst);
  return true;
}

Status Chain::behind_last(Worker& worker, ConstBytes code, Bytes dst) {
  if (recipe_.n_steps > 1) return decode_from(worker, recipe_.n_steps - 2, code, dst, false);
  if (code.size() == dst.size()) return {};
  return fail(Code::kCorrupt, "expands to %zu bytes instead of %zu", code.size(), dst.size());
}

// The largest size that a step may legally hand to the one before it.
size_t Chain::limit(int step, size_t raw_size) const {
  size_t size = raw_size;
  for (int i = 0; i < step; ++i) {
    const Recipe::Step& before = recipe_.step[i];
    if (!before.entry->codec->keeps_size) size = before.entry->codec->bound(before.args, size);
  }
  return size;
}

Status Chain::decode_to_first(Worker& worker, ConstBytes src, size_t raw_size, Buffer* into,
                              ConstBytes* code) {
  return decode_between(worker, recipe_.n_steps - 1, src, raw_size, into, code);
}

Status Chain::decode_between(Worker& worker, int last, ConstBytes src, size_t raw_size,
                             Buffer* into, ConstBytes* code) {
  for (int i = last; i >= 1; --i) {
    Bytes out;
    WPR_TRY(reserve(i == 1 && into ? *into : worker.scratch[i % 2], limit(i, raw_size), &out));
    size_t size = 0;
    WPR_TRY(decode_step(worker, i, recipe_.step[i].args, src, out, &size));
    src = out.first(size);
  }
  *code = src;
  return {};
}

size_t Chain::parts(ConstBytes src, size_t raw_size) const {
  const Recipe::Step& step = recipe_.step[0];
  if (recipe_.n_steps > 1 || !step.kernel->parts) return 1;
  return step.kernel->parts(step.args, src, raw_size);
}

Status Chain::decode_part(int index, ConstBytes src, size_t part, Bytes dst) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  return recipe_.step[0].kernel->decode_part(worker.state[0], recipe_.step[0].args, src, part, dst);
}

// The first step with error feedback. `values` has the raw size; a codec without a function of its
// own leaves there what its code decodes to.
Status Chain::first_feedback(Worker& worker, ConstBytes src, Bytes residual, Draw draw,
                             Bytes values, Bytes code, size_t* written) {
  const Recipe::Step& step = recipe_.step[0];
  const Args args = with(step.args, draw);
  if (step.kernel->encode_feedback)
    return step.kernel->encode_feedback(worker.state[0], args, src, residual, code, written);
  Bytes sum;
  WPR_TRY(reserve(worker.kept[1], src.size(), &sum));
  std::copy(src.begin(), src.end(), sum.begin());
  add_floats(residual, sum);
  WPR_TRY(step.kernel->encode(worker.state[0], args, sum, code, written));
  size_t size = 0;
  WPR_TRY(step.kernel->decode(worker.state[0], args, code.first(*written), values, &size));
  for (size_t i = 0; i + 4 <= sum.size(); i += 4) {
    const float rest = load(&sum[i]) - load(&values[i]);
    store(&residual[i], std::isfinite(rest) ? rest : 0.0f);
  }
  return {};
}

Status Chain::encode_feedback(int index, ConstBytes src, Bytes residual, Draw draw, size_t limit,
                              Bytes dst, size_t* written, bool* coded) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  const Bytes values = dst.first(src.size());
  Bytes code;
  WPR_TRY(reserve(worker.kept[0], first_bound(src.size()), &code));
  size_t size = 0;
  *coded = false;
  *written = src.size();
  Status status = first_feedback(worker, src, residual, draw, values, code, &size);
  if (status.code() == Code::kDstTooSmall && recipe_.step[0].args.device < 0) {
    // Cannot be coded: the sum goes as it is.
    std::copy(src.begin(), src.end(), values.begin());
    add_floats(residual, values);
    std::fill(residual.begin(), residual.end(), std::byte{0});
    return {};
  }
  WPR_TRY(status);
  code = code.first(size);
  if (recipe_.n_steps == 1) {
    if (size != 0 && size <= limit) {
      std::copy(code.begin(), code.end(), dst.begin());
      *written = size;
      *coded = true;
      return {};
    }
  } else {
    status = encode_from(worker, 1, code, {}, dst.first(limit), &size);
    if (status.ok() && size != 0) {
      *written = size;
      *coded = true;
      return {};
    }
    if (!status.ok() && status.code() != Code::kDstTooSmall) return status;
  }
  // The residual lacks what this code lacks, so its values are what must go.
  return recipe_.step[0].kernel->decode(worker.state[0], recipe_.step[0].args, code, values, &size);
}

Status Chain::decode_add(int index, ConstBytes src, Bytes dst) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  ConstBytes code;
  WPR_TRY(decode_to_first(worker, src, dst.size(), nullptr, &code));
  const Recipe::Step& step = recipe_.step[0];
  if (step.kernel->decode_add)
    return step.kernel->decode_add(worker.state[0], step.args, code, dst);
  Bytes values;
  WPR_TRY(reserve(worker.kept[0], dst.size(), &values));
  size_t size = 0;
  WPR_TRY(step.kernel->decode(worker.state[0], step.args, code, values, &size));
  if (size != dst.size())
    return fail(Code::kCorrupt, "expands to %zu bytes instead of %zu", size, dst.size());
  add_values(step.args.dtype == DType::kBytes ? DType::kFloat32 : step.args.dtype, values, dst);
  return {};
}

Status Chain::encode_steps(int index, ConstBytes before, ConstBytes after, Bytes dst,
                           size_t* written) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  const Recipe::Step& step = recipe_.step[0];
  if (step.kernel->encode_steps && recipe_.n_steps == 1)
    return step.kernel->encode_steps(worker.state[0], step.args, before, after, dst, written);
  Bytes steps;
  WPR_TRY(reserve(worker.kept[0], after.size(), &steps));
  find_steps(dtype_size(step.args.dtype), before, after, steps);
  return encode_from(worker, 0, steps, {}, dst, written);
}

Status Chain::decode_steps(int index, ConstBytes src, Bytes dst) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  const Recipe::Step& step = recipe_.step[0];
  if (step.kernel->decode_steps && recipe_.n_steps == 1)
    return step.kernel->decode_steps(worker.state[0], step.args, src, dst);
  Bytes steps;
  WPR_TRY(reserve(worker.kept[0], dst.size(), &steps));
  WPR_TRY(decode(index, src, steps));
  take_steps(dtype_size(step.args.dtype), steps, dst);
  return {};
}

Status Chain::add(int index, ConstBytes a, ConstBytes b, size_t raw_size, Draw draw, size_t limit,
                  Bytes dst, size_t* written) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  WPR_TRY(open(worker, 0));
  ConstBytes code_a, code_b;
  WPR_TRY(decode_to_first(worker, a, raw_size, &worker.kept[0], &code_a));
  WPR_TRY(decode_to_first(worker, b, raw_size, &worker.kept[1], &code_b));
  Bytes sum = dst.first(limit);
  if (recipe_.n_steps > 1) WPR_TRY(reserve(worker.kept[2], first_bound(raw_size), &sum));
  const Recipe::Step& step = recipe_.step[0];
  const Args args = with(step.args, draw);
  size_t size = 0;
  WPR_TRY(step.kernel->add(worker.state[0], args, code_a, code_b, raw_size, sum, &size));
  if (recipe_.n_steps > 1)
    return encode_from(worker, 1, sum.first(size), {}, dst.first(limit), written);
  *written = size;
  return {};
}

}  // namespace wirepress
