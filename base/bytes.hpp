// SPDX-License-Identifier: Apache-2.0
// Checked reading and writing of little-endian bytes. Everything that comes from a wire or a disk
// goes through Reader; it never reads past its span.
#pragma once

#include <cstring>

#include "base/kernel.hpp"

namespace wirepress {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "frames are little endian; this host needs byte swaps in base/bytes.hpp");

class Reader {
 public:
  explicit Reader(ConstBytes bytes) : bytes_(bytes) {}
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  // False, and nothing consumed, when the bytes are not there.
  template <typename T>
  bool read(T* value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }
  bool take(size_t size, ConstBytes* part) {
    if (left() < size) return false;
    *part = bytes_.subspan(position_, size);
    position_ += size;
    return true;
  }

 private:
  ConstBytes bytes_;
  size_t position_ = 0;
};

// Writes into a span that the caller has made large enough; `full()` says when it was not.
class Writer {
 public:
  explicit Writer(Bytes bytes) : bytes_(bytes) {}
  size_t position() const { return position_; }
  bool full() const { return full_; }

  template <typename T>
  void write(T value) {
    if (bytes_.size() - position_ < sizeof(T)) {
      full_ = true;
      return;
    }
    std::memcpy(bytes_.data() + position_, &value, sizeof(T));
    position_ += sizeof(T);
  }
  void write_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) write(static_cast<uint8_t>(value | 0x80));
    write(static_cast<uint8_t>(value));
  }

 private:
  Bytes bytes_;
  size_t position_ = 0;
  bool full_ = false;
};

enum class Varint { kOk, kEnds, kInvalid };

// The shortest form only: a second spelling of the same number would let two different headers
// mean the same frame.
inline Varint read_varint(Reader& reader, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte;
    if (!reader.read(&byte)) return Varint::kEnds;
    if (shift == 63 && byte > 1) return Varint::kInvalid;
    result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift > 0) return Varint::kInvalid;
      *value = result;
      return Varint::kOk;
    }
  }
  return Varint::kInvalid;
}

}  // namespace wirepress
