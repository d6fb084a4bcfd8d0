// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/sparse.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <new>

#include "codecs/common/sparse/layout.hpp"

namespace wirepress::sparse {
namespace {

constexpr int kPlacesMax = 13;  // of a share: 5 digits, and 1e-9 is the least
constexpr double kShareMin = 1e-9;

uint32_t load_word(const std::byte* from, size_t i) {
  uint32_t word;
  std::memcpy(&word, from + 4 * i, sizeof(word));
  return word;
}
void store_word(std::byte* to, size_t i, uint32_t word) {
  std::memcpy(to + 4 * i, &word, sizeof(word));
}
uint32_t sum(uint32_t a, uint32_t b) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
}

// ---- payload --------------------------------------------------------------------------------

class Packer {
 public:
  // dst has layout.size() bytes and the last bytes.
  Packer(const Layout& layout, ConstBytes tail, Bytes dst) : layout_(layout), dst_(dst.data()) {
    const size_t size = layout.size();
    const size_t from = layout.dense ? kCountSize : layout.high_at();
    if (size > 0) store_word(dst_, 0, static_cast<uint32_t>(layout.count));
    if (size > from) std::memset(dst_ + from, 0, size - from);
    if (!tail.empty()) std::memcpy(dst_ + size, tail.data(), tail.size());
  }
  // In the order of the indices; word is no zero.
  void put(uint32_t index, uint32_t word) {
    if (layout_.dense) return store_word(dst_ + kCountSize, index, word);
    store_word(dst_ + kCountSize, i_, word);
    const size_t high = (index >> layout_.width) + i_;
    dst_[layout_.high_at() + high / 8] |= static_cast<std::byte>(1 << high % 8);
    const uint64_t low = index & ((uint64_t{1} << layout_.width) - 1);
    const size_t bit = i_ * layout_.width;
    std::byte* at = dst_ + layout_.low_at() + bit / 8;
    for (uint64_t bits = low << bit % 8; bits != 0; bits >>= 8) *at++ |= std::byte(bits & 0xFF);
    ++i_;
  }

 private:
  const Layout layout_;
  std::byte* dst_;
  size_t i_ = 0;
};

// Reads a payload that nobody vouches for, value by value in the order of their positions.
class Cursor {
 public:
  Status open(const char* codec, ConstBytes src, size_t raw_size) {
    const size_t n = raw_size / 4;
    const size_t tail = raw_size % 4;
    uint32_t count = 0;
    if (n > UINT32_MAX) return fail(Code::kCorrupt, "%s: a block of %zu values", codec, n);
    if (n > 0 && src.size() < kCountSize)
      return fail(Code::kCorrupt, "%s: %zu bytes do not hold a count", codec, src.size());
    if (n > 0) count = load_word(src.data(), 0);
    if (count > n) return fail(Code::kCorrupt, "%s: %u values in a block of %zu", codec, count, n);
    layout_ = layout_of(n, count);
    if (layout_.count != count)
      return fail(Code::kCorrupt, "%s: positions of %u in %zu values, which do not pay", codec,
                  count, n);
    if (layout_.size() + tail != src.size())
      return fail(Code::kCorrupt, "%s: %zu bytes, but %u of %zu values take %zu", codec, src.size(),
                  count, n, layout_.size() + tail);
    codec_ = codec;
    src_ = src;
    if (n > 0) values_ = src.data() + kCountSize;
    return {};
  }

  const Layout& layout() const { return layout_; }
  const std::byte* values() const { return values_; }
  ConstBytes tail() const { return src_.subspan(layout_.size()); }

  // False: no more, or damaged; status() knows.
  bool next(uint32_t* index, uint32_t* word) {
    if (i_ == layout_.count) return false;
    *word = load_word(values_, i_);
    if (layout_.dense) {
      *index = static_cast<uint32_t>(i_++);
      return *word != kSign || damaged();
    }
    while (bits_ == 0) {
      if (8 * next_ >= 8 * layout_.high_size) return damaged();
      base_ = 8 * next_;
      bits_ = load_bits(layout_.high_at() + next_, layout_.low_at());
      next_ += 8;
    }
    const size_t high = base_ + static_cast<size_t>(std::countr_zero(bits_)) - i_;
    bits_ &= bits_ - 1;
    const size_t position = high << layout_.width | low();
    if (position < least_ || position >= layout_.n || (*word & ~kSign) == 0) return damaged();
    least_ = position + 1;
    *index = static_cast<uint32_t>(position);
    ++i_;
    return true;
  }

  // After the last value: nothing but zeros may follow in the two bit fields.
  Status status() const {
    const bool all = !damaged_ && i_ == layout_.count;
    bool zeros = bits_ == 0;
    for (size_t at = next_; at < layout_.high_size; ++at)
      zeros = zeros && src_[layout_.high_at() + at] == std::byte{0};
    if (const size_t used = layout_.count * layout_.width % 8; used != 0)
      zeros = zeros && std::to_integer<unsigned>(src_[layout_.size() - 1]) >> used == 0;
    if (all && (layout_.dense || zeros)) return {};
    return fail(Code::kCorrupt, "%s: value %zu of %zu is a zero, or its position is wrong", codec_,
                i_, layout_.count);
  }

 private:
  bool damaged() {
    damaged_ = true;
    return false;
  }
  // Up to 8 bytes from `at`, none from `end` on.
  uint64_t load_bits(size_t at, size_t end) const {
    uint64_t bits = 0;
    std::memcpy(&bits, src_.data() + at, std::min(sizeof(bits), end - at));
    return bits;
  }
  size_t low() const {
    if (layout_.width == 0) return 0;
    const size_t bit = i_ * layout_.width;
    const uint64_t bits = load_bits(layout_.low_at() + bit / 8, layout_.size());
    return bits >> bit % 8 & ((uint64_t{1} << layout_.width) - 1);
  }

  Layout layout_{};
  const char* codec_ = "";
  ConstBytes src_;
  const std::byte* values_ = nullptr;
  size_t i_ = 0;
  size_t least_ = 0;   // the least position that may come
  size_t next_ = 0;    // byte of the high bits to load
  size_t base_ = 0;    // the number of bits_'s lowest bit
  uint64_t bits_ = 0;  // high bits not yet used
  bool damaged_ = false;
};

// ---- choice ---------------------------------------------------------------------------------

// Leaves the k largest, in their order. Of the `aim` largest, aim >= k, returns the least
// magnitude; 0: there are not so many.
uint32_t keep_largest(size_t k, size_t aim, uint64_t* sorted, Keys* keys) {
  if (keys->count <= k) return 0;
  std::copy_n(keys->key, keys->count, sorted);
  uint64_t* end = sorted + keys->count;
  uint32_t aimed = 0;
  if (aim < keys->count) {
    end = sorted + aim;
    std::nth_element(sorted, end - 1, sorted + keys->count, std::greater<>());
    aimed = key_magnitude(end[-1]);
  }
  std::nth_element(sorted, sorted + k - 1, end, std::greater<>());
  const uint64_t least = sorted[k - 1];
  size_t kept = 0;
  for (size_t i = 0; i < keys->count; ++i) {
    const uint64_t key = keys->key[i];
    keys->key[kept] = key;
    kept += key >= least;
  }
  keys->count = kept;
  return aimed;
}

uint32_t least_magnitude(const Keys& keys) {
  uint32_t least = kSign;
  for (size_t i = 0; i < keys.count; ++i) least = std::min(least, key_magnitude(keys.key[i]));
  return least;
}

class Chooser {
 public:
  Chooser(const char* codec, Scans scans, const Rule& rule, const Args& args, Room* room,
          ConstBytes src, Bytes residual)
      : codec_(codec),
        scans_(scans),
        rule_(rule),
        args_(args),
        room_(*room),
        values_(src.data()),
        residual_(residual.data()),
        n_(src.size() / 4) {}

  // Afterwards the residual, where there is one, is src + residual, but 0 where that is not finite.
  Status choose(Keys* keys) {
    uint32_t threshold = room_.guess;
    const bool guessed = rule_.exact && threshold > 0;
    if (!guessed) WPR_TRY(sample(&threshold));
    WPR_TRY(collect(n_, rule_.k, &threshold, keys));
    if (!rule_.exact) {
      keep_largest(rule_.k, SIZE_MAX, room_.sorted(0), keys);
      return {};
    }
    if (too_few(*keys, threshold) && residual_ != nullptr) use_sums(*keys);
    if (guessed && too_few(*keys, threshold)) {
      WPR_TRY(sample(&threshold));
      WPR_TRY(collect(n_, rule_.k, &threshold, keys));
    }
    if (too_few(*keys, threshold)) {
      threshold = 1;
      WPR_TRY(collect(n_, rule_.k, &threshold, keys));
    }
    settle(threshold, keys);
    return {};
  }

 private:
  bool too_few(const Keys& keys, uint32_t threshold) const {
    return keys.count < rule_.k && threshold > 1;
  }

  // The keys of the values that reach the threshold, or of the k largest and some more. Where they
  // have no room the threshold rises; not above infinity, so that feedback sees all that is not
  // finite.
  Status collect(size_t n, size_t k, uint32_t* threshold, Keys* keys) {
    constexpr size_t kSpare = 192;  // so that few rounds are needed where k is small
    *keys = {.room = std::min(4 * k + kSpare, n + kGroup)};
    keys->key = room_.keys(keys->room + kSlack);
    uint64_t* const sorted = room_.sorted(keys->room);
    if (keys->key == nullptr || sorted == nullptr)
      return fail(Code::kNoMemory, "%s: no memory for %zu positions", codec_, keys->room);
    const Scan scan = residual_ != nullptr ? scans_.feedback : scans_.plain;
    for (size_t at = 0; (at = scan(values_, residual_, at, n, *threshold, keys)) < n;) {
      keep_largest(k, SIZE_MAX, sorted, keys);
      *threshold = std::min(least_magnitude(*keys) + 1, kInfinity);
    }
    return {};
  }

  // The magnitude of rank rule_.rank in the sample, between 1 and infinity.
  Status sample(uint32_t* threshold) {
    const size_t n = sample_size(n_, rule_.sample);
    *threshold = 1;
    if (rule_.rank > n) return {};
    std::byte* const copy = room_.sample(n);
    if (copy == nullptr) return fail(Code::kNoMemory, "%s: no memory for a sample", codec_);
    copy_sample(n, copy);
    Chooser of_sample(codec_, scans_, rule_, args_, &room_, ConstBytes(copy, 4 * n), {});
    Keys keys;
    WPR_TRY(of_sample.collect(n, rule_.rank, threshold, &keys));
    const size_t found = keys.count;
    keep_largest(rule_.rank, SIZE_MAX, room_.sorted(0), &keys);
    *threshold = found < rule_.rank ? 1 : std::min(least_magnitude(keys), kInfinity);
    return {};
  }

  void copy_sample(size_t n, std::byte* out) const {
    constexpr size_t kAhead = 16;  // runs that are fetched meanwhile
    const size_t runs = n / kRun;
    const size_t groups = n_ / kRun, parts = n < n_ ? runs : groups;
    std::array<size_t, kAhead> begin{};
    for (size_t run = 0; run < runs + kAhead; ++run) {
      size_t& at = begin[run % kAhead];
      if (run >= kAhead) copy_run(at, kRun, out + 4 * kRun * (run - kAhead));
      if (run >= runs) continue;
      at = run_begin(args_.seed, args_.first, groups, parts, run);
      __builtin_prefetch(values_ + 4 * at);
      if (residual_ != nullptr) __builtin_prefetch(residual_ + 4 * at);
    }
    copy_run(runs * kRun, n % kRun, out + 4 * kRun * runs);
  }

  // n <= kRun values from `begin`.
  void copy_run(size_t begin, size_t n, std::byte* out) const {
    float x[kRun] = {}, e[kRun] = {};
    std::memcpy(x, values_ + 4 * begin, 4 * n);
    if (residual_ != nullptr) {
      std::memcpy(e, residual_ + 4 * begin, 4 * n);
      for (size_t i = 0; i < kRun; ++i) x[i] += e[i];
    }
    std::memcpy(out, x, 4 * n);
  }

  // From now on the values are the sums that the first scan left in the residual, and those that
  // it took out of it: they have keys, will have them again, and be chosen, since k is not reached.
  void use_sums(const Keys& keys) {
    for (size_t i = 0; i < keys.count; ++i)
      if (key_magnitude(keys.key[i]) >= kInfinity)
        store_word(residual_, key_index(keys.key[i]), key_word(keys.key[i]));
    values_ = residual_;
    residual_ = nullptr;
  }

  // Chooses, and guesses a threshold that somewhat more than k values of a like block reach.
  void settle(uint32_t threshold, Keys* keys) {
    constexpr uint32_t kLower = 1 << 20;  // an eighth of an octave
    const double k = static_cast<double>(rule_.k);
    const size_t aim = static_cast<size_t>(1.25 * k + 4 * std::sqrt(k) + 8);
    const bool few = keys->count < rule_.k;
    const uint32_t aimed = keep_largest(rule_.k, aim, room_.sorted(0), keys);
    room_.guess = few                  ? 0  // the next block may be any
                  : aimed > 0          ? std::min(aimed, kInfinity)
                  : threshold > kLower ? threshold - kLower
                                       : 1;
  }

  const char* codec_;
  const Scans scans_;
  const Rule& rule_;
  const Args& args_;
  Room& room_;
  const std::byte* values_;
  std::byte* residual_;  // nullptr: none
  const size_t n_;
};

}  // namespace

// ---- parameters -----------------------------------------------------------------------------

static uint64_t scale_of(int share) {
  uint64_t scale = 1;
  for (int places = -real_exponent(share); places > 0; --places) scale *= 10;
  return scale;
}

size_t share_of(size_t n, int share) {
  const uint64_t scale = scale_of(share);
  const uint64_t digits = static_cast<uint64_t>(real_digits(share));
  // n = whole * scale + rest, so that no product exceeds 64 bits: rest * digits < 1e13 * 32768.
  return n / scale * digits + (n % scale * digits + scale - 1) / scale;
}

Status check_share(const char* codec, const char* name, int share) {
  if (real_of(share) < kShareMin || real_of(share) > 1 || real_exponent(share) < -kPlacesMax)
    return fail(Code::kParameter, "%s: %s must be from 1e-9 to 1, not %s", codec, name,
                real_text(share).c_str());
  return {};
}

Status check_dtype(const char* codec, DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "%s: takes float32, not %s", codec, dtype_name(dtype));
}

size_t bound(size_t raw_size) { return raw_size < 4 ? raw_size : raw_size + kCountSize; }

size_t sample_size(size_t n, size_t sample) {
  const size_t runs = (sample + kRun - 1) / kRun;
  return runs < n / kRun ? runs * kRun : n;
}

size_t sample_of(size_t n, int ratio, int share) {
  constexpr uint64_t kExpected = 8;
  const uint64_t digits = static_cast<uint64_t>(real_digits(ratio));
  const size_t least = (kExpected * scale_of(ratio) + digits - 1) / digits;
  return sample_size(n, std::max(share_of(n, share), least));
}

// ---- state ----------------------------------------------------------------------------------

uint64_t* Room::grow(Array* array, size_t* have, size_t count) {
  if (*have < count) {
    array->reset();
    array->reset(new (std::nothrow) uint64_t[count]);
    *have = *array ? count : 0;
  }
  return array->get();
}

Status open(const Args&, void** room) noexcept {
  *room = new (std::nothrow) Room;
  if (*room == nullptr) return fail(Code::kNoMemory, "no memory for a sparse codec's state");
  return {};
}

void close(void* room) noexcept { delete static_cast<Room*>(room); }

// ---- functions of a kernel ------------------------------------------------------------------

Status encode(const char* codec, Scans scans, const Rule& rule, const Args& args, Room* room,
              ConstBytes src, Bytes residual, Bytes dst, size_t* written) {
  const size_t n = src.size() / 4;
  if (n > UINT32_MAX) return fail(Code::kUnsupported, "%s: a block of %zu values", codec, n);
  Keys keys;
  if (n > 0) WPR_TRY(Chooser(codec, scans, rule, args, room, src, residual).choose(&keys));
  const Layout layout = layout_of(n, keys.count);
  const ConstBytes tail = src.subspan(4 * n);
  if (layout.size() + tail.size() > dst.size())
    return fail(Code::kDstTooSmall, "%s: the code of %zu bytes does not fit %zu", codec, src.size(),
                dst.size());
  Packer out(layout, tail, dst);
  for (size_t i = 0; i < keys.count; ++i) {
    const uint64_t key = keys.key[i];
    out.put(key_index(key), key_word(key));
    if (!residual.empty()) store_word(residual.data(), key_index(key), 0);
  }
  *written = layout.size() + tail.size();
  return {};
}

Status find_threshold(const char* codec, Scans scans, const Rule& rule, const Args& args,
                      Room* room, ConstBytes src, uint32_t* threshold, bool* all) {
  const size_t n = src.size() / 4;
  Keys keys;
  WPR_TRY(Chooser(codec, scans, rule, args, room, src, {}).choose(&keys));
  *threshold = std::min(least_magnitude(keys), kInfinity);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) count += (load_word(src.data(), i) & ~kSign) >= *threshold;
  *all = count == keys.count;
  return {};
}

Status decode(const char* codec, ConstBytes src, Bytes dst, size_t* written) {
  Cursor in;
  WPR_TRY(in.open(codec, src, dst.size()));
  const size_t size = 4 * in.layout().n;
  if (!in.layout().dense && size > 0) std::memset(dst.data(), 0, size);
  for (uint32_t index, word; in.next(&index, &word);) store_word(dst.data(), index, word);
  WPR_TRY(in.status());
  if (!in.tail().empty()) std::memcpy(dst.data() + size, in.tail().data(), in.tail().size());
  *written = dst.size();
  return {};
}

Status decode_add(const char* codec, ConstBytes src, Bytes dst) {
  Cursor in;
  WPR_TRY(in.open(codec, src, dst.size()));
  for (uint32_t index, word; in.next(&index, &word);)
    store_word(dst.data(), index, sum(load_word(dst.data(), index), word));
  return in.status();
}

namespace {

// Calls put(index, word) for every sum that is not 0.
template <typename Put>
Status merge(const char* codec, ConstBytes a, ConstBytes b, size_t raw_size, Put put) {
  struct Side {
    Cursor in;
    uint32_t index = 0, word = 0;
    bool there = false;
    void step() { there = in.next(&index, &word); }
  } x, y;
  WPR_TRY(x.in.open(codec, a, raw_size));
  WPR_TRY(y.in.open(codec, b, raw_size));
  x.step();
  y.step();
  while (x.there || y.there) {
    const bool left = x.there && (!y.there || x.index <= y.index);
    const bool right = y.there && (!x.there || y.index <= x.index);
    const uint32_t index = left ? x.index : y.index;
    const uint32_t word = canonical(sum(left ? x.word : 0, right ? y.word : 0));
    if ((word & ~kSign) != 0) put(index, word);
    if (left) x.step();
    if (right) y.step();
  }
  WPR_TRY(x.in.status());
  return y.in.status();
}

}  // namespace

Status add(const char* codec, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
           size_t* written) {
  if (raw_size % 4 != 0)
    return fail(Code::kUnsupported, "%s: blocks of %zu bytes, not whole values, have no sum", codec,
                raw_size);
  size_t count = 0;
  WPR_TRY(merge(codec, a, b, raw_size, [&](uint32_t, uint32_t) { ++count; }));
  const Layout layout = layout_of(raw_size / 4, count);
  if (layout.size() > dst.size())
    return fail(Code::kDstTooSmall, "%s: the sum of %zu values does not fit %zu bytes", codec,
                count, dst.size());
  Packer out(layout, {}, dst);
  WPR_TRY(merge(codec, a, b, raw_size, [&](uint32_t i, uint32_t word) { out.put(i, word); }));
  *written = layout.size();
  return {};
}

}  // namespace wirepress::sparse
