// SPDX-License-Identifier: Apache-2.0
// A recipe made ready to run: its codecs, one behind the other, on blocks.
#pragma once

#include <atomic>
#include <vector>

#include "base/buffer.hpp"
#include "pipeline/recipe.hpp"

namespace wirepress {

// What an encoder that draws random numbers draws from: the frame's seed, and the number of the
// block's first element in the array.
struct Draw {
  uint64_t seed = 0;
  uint64_t first = 0;
};

// Whether data that are expanded are so large that, when all is done, what came first is no longer
// in the last cache.
bool is_past_caches(size_t raw_size);

// A recipe ready to run: kernel states and scratch for every worker, kept from block to block.
// Different workers may be used at the same time.
class Chain {
 public:
  Chain(const Recipe& recipe, int n_workers);
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain();

  const Recipe& recipe() const { return recipe_; }
  int n_workers() const { return static_cast<int>(workers_.size()); }
  bool matches(const Recipe& recipe, int n_workers) const;
  // Of a chain whose first kernel reaches memory of a device (Args::device): raw data and residuals
  // may lie there, where these say so; codes, and what is between steps, may not. It codes what
  // can_encode_feedback and can_decode_add say without help of the cores.
  bool can_encode_feedback() const { return recipe_.step[0].kernel->encode_feedback != nullptr; }
  bool can_decode_add() const { return recipe_.step[0].kernel->decode_add != nullptr; }

  // Counts what the cores did since the last call because a device failed, by the thread whose
  // call it was.
  void note_failures();

  // kDstTooSmall: the code does not fit dst.
  Status encode(int worker, ConstBytes src, Draw draw, Bytes dst, size_t* written);
  // dst has exactly the raw size. past_caches: see Args.
  Status decode(int worker, ConstBytes src, Bytes dst, bool past_caches = false);
  // As encode and decode, but a device may have the block meanwhile: begun->device. end_encode or
  // end_decode then ends it, called by the same worker with the same bytes until it is true. `left`
  // as of Kernel::begin_encode.
  struct Begun {
    void* device = nullptr;
    Buffer scratch{};
    ConstBytes in{};
    Bytes out{};
  };
  bool divides() const {
    const auto ask = recipe_.step[recipe_.n_steps - 1].kernel->divides;
    return ask != nullptr && ask();
  }
  bool may_begin(size_t raw_size, double left) const {
    const auto ask = recipe_.step[recipe_.n_steps - 1].kernel->may_begin;
    return ask != nullptr && ask(raw_size, left);
  }
  Status begin_encode(int worker, ConstBytes src, Draw draw, Bytes dst, double left,
                      size_t* written, Begun* begun);
  bool end_encode(int worker, Draw draw, size_t* written, Begun* begun, Status* status);
  Status begin_decode(int worker, ConstBytes src, Bytes dst, double left, Begun* begun);
  bool end_decode(int worker, ConstBytes src, Bytes dst, Begun* begun, Status* status);

  // The next two are for float32. A value of src and of residual are added, then the first codec's
  // error is left in residual. dst has the raw size at least: it gets the code, or where that is
  // larger than `limit` the values that it decodes to (*coded false, *written the raw size).
  Status encode_feedback(int worker, ConstBytes src, Bytes residual, Draw draw, size_t limit,
                         Bytes dst, size_t* written, bool* coded);
  // dst[i] += decoded[i].
  Status decode_add(int worker, ConstBytes src, Bytes dst);
  // Steps between words (base/order.hpp), for integer types: encodes those from `before` to
  // `after`, and moves the words of dst.
  Status encode_steps(int worker, ConstBytes before, ConstBytes after, Bytes dst, size_t* written);
  Status decode_steps(int worker, ConstBytes src, Bytes dst);
  // Parts of a code that decode_part can expand side by side; 1: use decode.
  size_t parts(ConstBytes src, size_t raw_size) const;
  Status decode_part(int worker, ConstBytes src, size_t part, Bytes dst);
  // Whether the first codec can add codes.
  bool can_add() const { return recipe_.step[0].kernel->add != nullptr; }
  // The code of the sum of two codes of raw_size bytes; kUnsupported or kDstTooSmall where these
  // two have none that fits `limit`.
  Status add(int worker, ConstBytes a, ConstBytes b, size_t raw_size, Draw draw, size_t limit,
             Bytes dst, size_t* written);

 private:
  struct Worker {
    void* state[kMaxStages] = {};
    bool open[kMaxStages] = {};
    Buffer scratch[2];
    Buffer kept[3];                        // what must outlive the steps behind the first one
    const Kernel* spare[kMaxStages] = {};  // of the cores, where a device's has failed
    void* spare_state[kMaxStages] = {};
  };
  Status open(Worker& worker, int step);
  // One step, by the cores where a device fails and they have its data.
  Status encode_step(Worker& worker, int step, Draw draw, ConstBytes src, Bytes dst,
                     size_t* written);
  Status decode_step(Worker& worker, int step, const Args& args, ConstBytes src, Bytes dst,
                     size_t* written);
  bool may_take_over(int step, const Status& status) const;
  Status spare_for(Worker& worker, int step, size_t size, const Kernel** kernel, void** state);
  Status encode_from(Worker& worker, int step, ConstBytes src, Draw draw, Bytes dst,
                     size_t* written);
  // The steps from `step` to the one before the last, whose code *code is then: in scratch.
  Status encode_to_last(Worker& worker, int step, Draw draw, ConstBytes* code);
  // Decodes down to the code of the first step, which lies in `into` or is src.
  Status decode_to_first(Worker& worker, ConstBytes src, size_t raw_size, Buffer* into,
                         ConstBytes* code);
  // Decodes the steps from this one down to the first.
  Status decode_from(Worker& worker, int step, ConstBytes src, Bytes dst, bool past_caches);
  Status decode_between(Worker& worker, int last, ConstBytes src, size_t raw_size, Buffer* into,
                        ConstBytes* code);
  Status behind_last(Worker& worker, ConstBytes code, Bytes dst);  // decodes the other steps
  size_t limit(int step, size_t raw_size) const;
  Status first_feedback(Worker& worker, ConstBytes src, Bytes residual, Draw draw, Bytes values,
                        Bytes code, size_t* written);
  size_t first_bound(size_t raw_size) const;

  Recipe recipe_;
  std::vector<Worker> workers_;
  std::atomic<size_t> failed_size_{0};
};

// to[i] += from[i], float32.
void add_floats(ConstBytes from, Bytes to);
// The same by type: float32, or integers of 8, 16 and 32 bits modulo 2^bits.
bool can_add_values(DType dtype);
void add_values(DType dtype, ConstBytes from, Bytes to);

// Steps between words of 1, 2 and 4 bytes in the order of floats (base/order.hpp).
void find_steps(size_t word_size, ConstBytes before, ConstBytes after, Bytes steps);
void take_steps(size_t word_size, ConstBytes steps, Bytes words);

}  // namespace wirepress
