// SPDX-License-Identifier: Apache-2.0
// The payload around SZ3's interpolation: error bounds, choice of the predictor, values that cannot
// keep the bound, and checks of everything that is read (spec.md).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <vector>

#include "codecs/common/default_floats.hpp"
#include "codecs/sz3/interpolation.hpp"
#include "codecs/sz3/logarithm.hpp"
#include "codecs/sz3/sz3.hpp"

namespace wirepress {
namespace {

using namespace sz3;

using Buffer = std::vector<std::byte>;

template <typename T>
struct Arrays {
  std::vector<T> values, sample, literals;
};

struct State {
  Tokens tokens;
  std::vector<int> integers;
  Buffer out, stream, outliers, signs, zeros;
  Arrays<float> floats;
  Arrays<double> doubles;

  template <typename T>
  Arrays<T>& arrays() {
    if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return doubles;
    }
  }
};

template <typename T>
using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
constexpr unsigned kSignBit = 8 * sizeof(T) - 1;

template <typename T>
T load(ConstBytes src, size_t i) {
  T value;
  std::memcpy(&value, src.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void put(T value, Buffer* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

void put_all(ConstBytes bytes, Buffer* out) { out->insert(out->end(), bytes.begin(), bytes.end()); }

void put_varint(uint64_t value, Buffer* out) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<std::byte>(value | 128));
  out->push_back(static_cast<std::byte>(value));
}

// ---- what stands outside the bound --------------------------------------------------------------

// Runs of values with the same bits: distance from the end of the last run, length, bits.
template <typename T>
class Outliers {
 public:
  explicit Outliers(Buffer* out) : out_(*out) { out_.clear(); }

  void add(size_t i, T value) {
    const auto word = std::bit_cast<Word<T>>(value);
    if (i != end_ || word != word_ || length_ == 0) {
      finish();
      put_varint(i - end_, &out_);
      word_ = word;
      ++runs_;
    }
    ++length_;
    end_ = i + 1;
  }
  void finish() {
    if (length_ == 0) return;
    put_varint(length_, &out_);
    put(word_, &out_);
    length_ = 0;
  }
  size_t runs() const { return runs_; }

 private:
  Buffer& out_;
  size_t end_ = 0, length_ = 0, runs_ = 0;
  Word<T> word_ = 0;
};

// ---- how a block lies
// -----------------------------------------------------------------------------

// By the array's shape, without extents of 1; one-dimensional where the block is no run of rows.
Grid grid_of(const Args& args, size_t n) {
  Grid line;
  line.extent[0] = n;
  uint64_t row = 1;
  for (int i = 1; i < args.n_dims; ++i) {
    if (args.shape[i] == 0 || args.shape[i] > n / row) return line;
    row *= args.shape[i];
  }
  if (n % row != 0) return line;
  Grid grid;
  grid.n_dims = 0;
  for (int i = 0; i < args.n_dims; ++i) {
    const size_t extent = i == 0 ? n / row : args.shape[i];
    if (extent != 1) grid.extent[grid.n_dims++] = extent;
  }
  return grid.n_dims == 0 ? line : grid;
}

// ---- which predictor
// ------------------------------------------------------------------------------

constexpr size_t kLeastBox = 1 << 12, kMostBox = 1 << 15;  // values
constexpr size_t kSampledPart = 32;                        // of all values, about
constexpr size_t kMostBoxes = 16;
constexpr double kClearlyBetter = 0.98;

// The extents of a box: as near to a cube as the grid allows.
Grid box_of(const Grid& grid) {
  const size_t most = std::clamp(grid.count() / 16, kLeastBox, kMostBox);
  Grid box = grid;
  while (box.count() > most) {
    size_t& longest = *std::max_element(box.extent.begin(), box.extent.end());
    longest -= longest / 8 + 1;
  }
  return box;
}

// Copies a box out of the grid; the first one, of index 0, lies in the middle.
template <typename T>
void copy_box(const Grid& grid, const Grid& box, const T* values, size_t index,
              std::vector<T>* sample) {
  static constexpr double kSpread[kMaxDims] = {0.7549, 0.5698, 0.8192, 0.6711};
  std::array<size_t, kMaxDims> at{};
  for (unsigned i = 0; i < grid.n_dims; ++i) {
    const double part = 0.5 + static_cast<double>(index) * kSpread[i];
    at[i] = static_cast<size_t>((part - std::floor(part)) *
                                static_cast<double>(grid.extent[i] - box.extent[i]));
  }
  sample->resize(box.count());
  T* to = sample->data();
  const auto& [e0, e1, e2, e3] = grid.extent;
  const auto& [b0, b1, b2, b3] = box.extent;
  for (size_t i = 0; i < b0; ++i)
    for (size_t j = 0; j < b1; ++j)
      for (size_t k = 0; k < b2; ++k, to += b3)
        std::copy_n(values + (((at[0] + i) * e1 + at[1] + j) * e2 + at[2] + k) * e3 + at[3], b3,
                    to);
}

// Bits of the tokens at their entropy, and of the literals.
template <typename T>
double cost(const Tokens& tokens, const std::vector<T>& literals) {
  double bits = static_cast<double>(literals.size() * 8 * sizeof(T));
  const double total = static_cast<double>(tokens.token().size());
  for (unsigned token = 0; token < kTokens; ++token) {
    const double count = static_cast<double>(tokens.histogram()[token]);
    if (count != 0) bits += count * (log2_of(total / count) + kMeanings[token].extra);
  }
  return bits;
}

// Linear or cubic, along the dimensions in their order or the other way round, or Lorenzo: what is
// cheapest for some boxes.
template <typename T>
void choose(double bound, State* state, Grid* grid) {
  Arrays<T>& arrays = state->arrays<T>();
  Grid box = box_of(*grid);
  const size_t boxes =
      std::clamp<size_t>(grid->count() / kSampledPart / box.count(), 1, kMostBoxes);
  const auto cost_of = [&](bool cubic, unsigned order) {
    double sum = 0;
    box.cubic = cubic;
    box.order = order;
    for (size_t i = 0; i < boxes; ++i) {
      copy_box(*grid, box, arrays.values.data(), i, &arrays.sample);
      quantise(box, bound, arrays.sample.data(), &arrays.literals, &state->tokens);
      sum += cost(state->tokens, arrays.literals);
    }
    return sum;
  };
  const double linear = cost_of(false, 0), cubic = cost_of(true, 0);
  grid->cubic = cubic <= linear;
  grid->order = 0;
  double best = std::min(linear, cubic);
  const auto also = [&](bool with_cubic, unsigned order) {
    const double other = cost_of(with_cubic, order);
    if (other >= kClearlyBetter * best) return;
    best = other;
    grid->cubic = with_cubic;
    grid->order = order;
  };
  if (grid->n_dims > 1) also(grid->cubic, grid->orders() - 1);
  also(false, kLorenzo);
}

// ---- encoding
// -------------------------------------------------------------------------------------

// Noise as a part of what is allowed: what to aim at, and what is near enough to it.
constexpr double kNearNoise = 0.98;
constexpr double kGoodNoise = 0.94;
constexpr int kPsnrAttempts = 3;

template <typename T>
class Encoder {
 public:
  Encoder(const Args& args, ConstBytes src, State* state)
      : args_(args),
        src_(src),
        state_(*state),
        arrays_(state->arrays<T>()),
        n_(src.size() / sizeof(T)),
        grid_(grid_of(args, n_)) {}

  // The payload, in state.out.
  void run() {
    state_.out.clear();
    if (n_ > 0 && n_ <= std::numeric_limits<uint32_t>::max()) {
      scan();
      if (args_.value[kPw] != 0) {
        by_value();
      } else {
        by_block();
      }
    }
    if (state_.out.empty() || state_.out.size() > src_.size()) {
      state_.out.assign(1, static_cast<std::byte>(kStored));
      put_all(src_, &state_.out);
    }
  }

 private:
  T original(size_t i) const { return load<T>(src_, i); }

  // Least, greatest; in the working copy, what is not finite is replaced by the value before it.
  void scan() {
    arrays_.values.resize(n_);
    std::memcpy(arrays_.values.data(), src_.data(), n_ * sizeof(T));
    T last = 0;
    bool any = false;
    same_ = true;
    for (T& value : arrays_.values) {
      if (!std::isfinite(value)) {
        value = last;
        continue;
      }
      if (!any) least_ = most_ = first_ = value;
      any = true;
      same_ &= std::bit_cast<Word<T>>(value) == std::bit_cast<Word<T>>(first_);
      least_ = std::min(least_, value);
      most_ = std::max(most_, value);
      last = value;
    }
  }

  // One bound for all values.
  void by_block() {
    const double least = static_cast<double>(least_), most = static_cast<double>(most_);
    const double range = std::min(most - least, std::numeric_limits<double>::max());
    double bound = args_.real(kAbs);
    if (args_.value[kRel] != 0) bound = args_.real(kRel) * range;
    if (args_.value[kPsnr] != 0) return by_noise(range);
    const T middle = static_cast<T>(least / 2 + most / 2);
    if (least_ == most_) return constant(first_, 0);
    if (most - static_cast<double>(middle) <= bound && static_cast<double>(middle) - least <= bound)
      return constant(middle, bound);
    within(bound);
  }

  // An error of at most target * range makes the noise low enough, whatever the values. Most errors
  // are much smaller than the largest one, so a larger bound is looked for: first as if they
  // were spread evenly, then in proportion to the noise that was found.
  void by_noise(double range) {
    if (least_ == most_) return constant(first_, 0);
    const double target = power_of_two(args_.real(kPsnr) * -0.16609640474436812);  // log2(10) / 20
    double factor = 1.7320508075688772;
    Buffer good;
    for (int attempt = 0; attempt < kPsnrAttempts; ++attempt) {
      const double found = noise_within(factor * target * range, range) / target;
      const bool smaller = good.empty() || state_.out.size() < good.size();
      if (found <= 1 && smaller) std::swap(good, state_.out);
      if (found > kGoodNoise && found <= 1) break;
      scan();
      if (found > 0) factor *= kNearNoise / found;
    }
    if (good.empty()) return within(target * range);
    std::swap(good, state_.out);
  }

  // Root of the mean of the squared errors, in units of the range.
  double noise_within(double bound, double range) {
    within(bound);
    double sum = 0;
    size_t n_finite = 0;  // the others are exact, and make no noise less
    for (size_t i = 0; i < n_; ++i) {
      n_finite += std::isfinite(original(i));
      const double error = error_of(i);
      if (error <= bound) sum += error / range * (error / range);  // else written as it is
    }
    return std::sqrt(sum / static_cast<double>(n_finite));
  }
  double error_of(size_t i) const {
    return std::fabs(static_cast<double>(arrays_.values[i]) - static_cast<double>(original(i)));
  }

  void constant(T value, double bound) {
    Outliers<T> outliers(&state_.outliers);
    for (size_t i = 0; i < n_; ++i)
      if (!(std::fabs(static_cast<double>(original(i)) - static_cast<double>(value)) <= bound))
        outliers.add(i, original(i));
    state_.out.assign(1, static_cast<std::byte>(kConstant));
    put(value, &state_.out);
    put_end(&outliers);
  }

  void within(double bound) {
    if (!(bound > 0)) return;
    bound = std::min(bound, std::numeric_limits<double>::max() / 4);  // twice of it is finite, too
    choose<T>(bound, &state_, &grid_);
    quantise(grid_, bound, arrays_.values.data(), &arrays_.literals, &state_.tokens);
    Outliers<T> outliers(&state_.outliers);
    for (size_t i = 0; i < n_; ++i)
      if (!(error_of(i) <= bound)) outliers.add(i, original(i));
    put_head(kLinear, bound);
    put_codes(arrays_.literals);
    put_end(&outliers);
  }

  // A bound for each value: their logarithms within one bound.
  void by_value() {
    if (same_) return constant(first_, 0);
    const double pw = args_.real(kPw);
    // The rounding to T takes its part of the bound.
    const double rest = pw - static_cast<double>(std::numeric_limits<T>::epsilon());
    const double bound = log2_of(1 + std::max(rest, pw / 2));
    take_logarithms();
    Arrays<double>& logs = state_.doubles;
    choose<double>(bound, &state_, &grid_);
    quantise(grid_, bound, logs.values.data(), &logs.literals, &state_.tokens);
    Outliers<T> outliers(&state_.outliers);
    for (size_t i = 0; i < n_; ++i) {
      const double size = std::fabs(static_cast<double>(original(i)));
      const double decoded = static_cast<double>(static_cast<T>(power_of_two(logs.values[i])));
      const bool kept = std::fabs(decoded - size) <= pw * size && std::isfinite(size);
      if (!kept && size != 0) outliers.add(i, original(i));
    }
    put_head(kLogarithmic, bound);
    put_codes(logs.literals);
    if (any_negative_) put_all(state_.signs, &state_.out);
    if (any_zero_) put_all(state_.zeros, &state_.out);
    put_end(&outliers);
  }

  // Signs and zeros have bits of their own; where there is no logarithm, the last one goes on.
  void take_logarithms() {
    state_.signs.assign((n_ + 7) / 8, std::byte{0});
    state_.zeros = state_.signs;
    state_.doubles.values.resize(n_);
    double last = 0;
    for (size_t begin = 0; begin < n_; begin += 8) {
      unsigned signs = 0, zeros = 0;
      for (size_t i = begin; i < std::min(begin + 8, n_); ++i) {
        const double value = static_cast<double>(original(i)), size = std::fabs(value);
        signs |= static_cast<unsigned>(std::signbit(value)) << (i - begin);
        zeros |= static_cast<unsigned>(size == 0) << (i - begin);
        if (std::isnormal(size)) last = log2_of(size);
        state_.doubles.values[i] = last;
      }
      state_.signs[begin / 8] = static_cast<std::byte>(signs);
      state_.zeros[begin / 8] = static_cast<std::byte>(zeros);
      any_negative_ |= signs != 0;
      any_zero_ |= zeros != 0;
    }
  }

  void put_head(Method method, double bound) {
    Buffer& out = state_.out;
    out.assign(1, static_cast<std::byte>(method));
    out.push_back(static_cast<std::byte>((grid_.n_dims - 1) | grid_.cubic << kCubicBit |
                                         grid_.order << kOrderBit));
    if (method == kLogarithmic)
      out.push_back(static_cast<std::byte>(any_negative_ | any_zero_ << 1));
    for (unsigned i = 1; i < grid_.n_dims; ++i) put(static_cast<uint32_t>(grid_.extent[i]), &out);
    put(2 * bound, &out);
  }

  template <typename U>
  void put_codes(const std::vector<U>& literals) {
    const Lengths lengths = code_lengths(state_.tokens.histogram());
    const size_t size = stream_size(state_.tokens.histogram(), lengths);
    put(static_cast<uint32_t>(size), &state_.out);
    write_lengths(lengths, &state_.out);
    write_stream(state_.tokens, lengths, &state_.out);
    put_all(std::as_bytes(std::span(literals)), &state_.out);
  }

  void put_end(Outliers<T>* outliers) {
    outliers->finish();
    put_varint(outliers->runs(), &state_.out);
    put_all(state_.outliers, &state_.out);
    put_all(src_.subspan(n_ * sizeof(T)), &state_.out);
  }

  const Args& args_;
  ConstBytes src_;
  State& state_;
  Arrays<T>& arrays_;
  size_t n_;
  Grid grid_;
  T least_ = 0, most_ = 0, first_ = 0;
  bool same_ = false, any_negative_ = false, any_zero_ = false;
};

// ---- decoding
// -------------------------------------------------------------------------------------

Status cut(size_t size, const char* what) {
  return fail(Code::kCorrupt, "sz3: %zu bytes end in %s", size, what);
}

template <typename T>
class Decoder {
 public:
  Decoder(ConstBytes src, Bytes dst, State* state)
      : whole_(src.size()), src_(src), dst_(dst), state_(*state), n_(dst.size() / sizeof(T)) {}

  Status run() {
    uint8_t method;
    if (!take(&method)) return cut(whole_, "the method");
    if (method == kStored) return stored();
    if (n_ == 0 || method > kLogarithmic)
      return fail(Code::kCorrupt, "sz3: method %u for %zu bytes", method, dst_.size());
    if (method == kConstant) WPR_TRY(constant());
    if (method == kLinear) WPR_TRY(linear());
    if (method == kLogarithmic) WPR_TRY(logarithmic());
    return end();
  }

 private:
  template <typename V>
  bool take(V* value) {
    if (src_.size() < sizeof(V)) return false;
    std::memcpy(value, src_.data(), sizeof(V));
    src_ = src_.subspan(sizeof(V));
    return true;
  }
  bool take(size_t size, ConstBytes* bytes) {
    if (src_.size() < size) return false;
    *bytes = src_.first(size);
    src_ = src_.subspan(size);
    return true;
  }
  // At most 32 bits, in the shortest form.
  bool take_varint(uint64_t* value) {
    *value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      uint8_t byte;
      if (!take(&byte)) return false;
      *value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return byte != 0 || shift == 0;
    }
    return false;
  }

  Status stored() {
    if (src_.size() != dst_.size())
      return fail(Code::kCorrupt, "sz3: %zu bytes stored instead of %zu", src_.size(), dst_.size());
    if (!dst_.empty()) std::memcpy(dst_.data(), src_.data(), dst_.size());
    return {};
  }

  Status constant() {
    T value;
    if (!take(&value)) return cut(whole_, "the value");
    for (size_t i = 0; i < n_; ++i) store(i, value);
    return {};
  }

  Status linear() {
    Arrays<T>& arrays = state_.arrays<T>();
    WPR_TRY(read_layout());
    WPR_TRY(decode_grid(&arrays));
    std::memcpy(dst_.data(), arrays.values.data(), n_ * sizeof(T));
    return {};
  }

  Status logarithmic() {
    WPR_TRY(read_layout(true));
    WPR_TRY(decode_grid(&state_.doubles));
    const ConstBytes none;
    ConstBytes signs = none, zeros = none;
    if (flags_ & 1) WPR_TRY(take_bits(&signs));
    if (flags_ & 2) WPR_TRY(take_bits(&zeros));
    for (size_t i = 0; i < n_; ++i) {
      const T size = static_cast<T>(power_of_two(state_.doubles.values[i]));
      const Word<T> word = bit(zeros, i) ? 0 : std::bit_cast<Word<T>>(size);
      store(i, std::bit_cast<T>(word | static_cast<Word<T>>(bit(signs, i)) << kSignBit<T>));
    }
    return {};
  }

  Status read_layout(bool flagged = false) {
    uint8_t layout;
    if (!take(&layout) || (flagged && !take(&flags_))) return cut(whole_, "the layout");
    grid_.n_dims = 1 + (layout & 3);
    grid_.cubic = layout >> kCubicBit & 1;
    grid_.order = layout >> kOrderBit;
    const bool known = grid_.order < grid_.orders() || (grid_.order == kLorenzo && !grid_.cubic);
    if (!known || flags_ > 3)
      return fail(Code::kCorrupt, "sz3: layout 0x%02x, flags 0x%02x", layout, flags_);
    size_t row = 1;
    for (unsigned i = 1; i < grid_.n_dims; ++i) {
      uint32_t extent;
      if (!take(&extent)) return cut(whole_, "the extents");
      if (extent == 0 || extent > n_ / row)
        return fail(Code::kCorrupt, "sz3: extent %u in %zu values", extent, n_);
      grid_.extent[i] = extent;
      row *= extent;
    }
    grid_.extent[0] = n_ / row;
    if (n_ % row != 0) return fail(Code::kCorrupt, "sz3: rows of %zu in %zu values", row, n_);
    return {};
  }

  template <typename U>
  Status decode_grid(Arrays<U>* arrays) {
    double step;
    uint32_t stream_size;
    if (!take(&step) || !take(&stream_size)) return cut(whole_, "the step");
    if (!(step > 0) || std::isinf(step)) return fail(Code::kCorrupt, "sz3: a step of %g", step);
    Lengths lengths;
    WPR_TRY(read_lengths(&src_, &lengths));
    ConstBytes stream, literals;
    if (!take(stream_size, &stream)) return cut(whole_, "the codes");
    state_.integers.assign(n_, 0);
    size_t n_literals = 0;
    WPR_TRY(Reader(lengths).read(stream, &state_.stream, &state_.integers, &n_literals));
    if (!take(n_literals * sizeof(U), &literals)) return cut(whole_, "the literals");
    arrays->literals.resize(n_literals);
    if (n_literals != 0) std::memcpy(arrays->literals.data(), literals.data(), literals.size());
    arrays->values.resize(n_);
    restore(grid_, step / 2, arrays->values.data(), &arrays->literals, &state_.integers);
    return {};
  }

  // A bit for each value, the rest of the last byte 0.
  Status take_bits(ConstBytes* bits) {
    if (!take((n_ + 7) / 8, bits)) return cut(whole_, "the signs or zeros");
    if (n_ % 8 != 0 && static_cast<unsigned>(bits->back()) >> n_ % 8 != 0)
      return fail(Code::kCorrupt, "sz3: bits after those of %zu values", n_);
    return {};
  }
  static bool bit(ConstBytes bits, size_t i) {
    return !bits.empty() && (static_cast<unsigned>(bits[i / 8]) >> i % 8 & 1) != 0;
  }

  // Runs of values outside the bound, and the last bytes, which are no value.
  Status end() {
    uint64_t runs;
    if (!take_varint(&runs)) return cut(whole_, "the number of runs");
    for (size_t at = 0; runs > 0; --runs) {
      uint64_t gap, length;
      T value;
      if (!take_varint(&gap) || !take_varint(&length) || !take(&value)) return cut(whole_, "a run");
      if (length == 0 || gap + length > n_ - at)
        return fail(Code::kCorrupt, "sz3: a run of %llu after %llu values from %zu of %zu",
                    static_cast<unsigned long long>(length), static_cast<unsigned long long>(gap),
                    at, n_);
      at += gap;
      for (const size_t last = at + length; at < last; ++at) store(at, value);
    }
    const Bytes tail = dst_.subspan(n_ * sizeof(T));
    if (src_.size() != tail.size())
      return fail(Code::kCorrupt, "sz3: %zu last bytes instead of %zu", src_.size(), tail.size());
    if (!tail.empty()) std::memcpy(tail.data(), src_.data(), tail.size());
    return {};
  }

  void store(size_t i, T value) { std::memcpy(dst_.data() + i * sizeof(T), &value, sizeof(T)); }

  size_t whole_;
  ConstBytes src_;
  Bytes dst_;
  State& state_;
  size_t n_;
  Grid grid_;
  uint8_t flags_ = 0;
};

// ---- the kernel
// -----------------------------------------------------------------------------------

Status open(const Args&, void** state) noexcept {
  *state = new (std::nothrow) State;
  return *state == nullptr ? fail(Code::kNoMemory, "sz3: no memory for its state") : Status();
}

void close(void* state) noexcept { delete static_cast<State*>(state); }

Status no_memory(size_t n) {
  return fail(Code::kNoMemory, "sz3: no memory for the arrays of %zu bytes", n);
}

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const DefaultFloats floats;
  auto* own = static_cast<State*>(state);
  try {
    if (args.dtype == DType::kFloat64) {
      Encoder<double>(args, src, own).run();
    } else {
      Encoder<float>(args, src, own).run();
    }
  } catch (const std::exception&) {
    return no_memory(src.size());
  }
  if (own->out.size() > dst.size())
    return fail(Code::kDstTooSmall, "sz3: %zu bytes into %zu", own->out.size(), dst.size());
  std::memcpy(dst.data(), own->out.data(), own->out.size());
  *written = own->out.size();
  return {};
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const DefaultFloats floats;
  auto* own = static_cast<State*>(state);
  try {
    if (args.dtype == DType::kFloat64) {
      WPR_TRY(Decoder<double>(src, dst, own).run());
    } else {
      WPR_TRY(Decoder<float>(src, dst, own).run());
    }
  } catch (const std::exception&) {
    return no_memory(dst.size());
  }
  *written = dst.size();
  return {};
}

}  // namespace

extern const Kernel sz3_libsz3;
const Kernel sz3_libsz3 = {
    .engine = "cpu",
    .variant = "libsz3",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
