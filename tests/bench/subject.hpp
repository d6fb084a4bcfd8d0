// SPDX-License-Identifier: Apache-2.0
// What the parts of the codecs' benchmark share.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress::bench {

using Buffer = std::vector<std::byte>;

inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}
inline void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

// What is compressed, and where it is expanded to.
struct Data {
  Buffer raw, out;
  DType dtype;
  std::vector<uint64_t> shape;  // one extent where the array is not known
  double range = 0;             // greatest - least
};

// Something to time. Empty functions: it has no such thing.
struct Subject {
  std::string name, variant;
  bool lossless;
  std::function<size_t()> encode;  // returns the size of the code
  std::function<void()> decode;    // to Data::out
  std::function<void()> decode_add = {};
  std::function<size_t()> encode_feedback = {};
};

// Other libraries that take this type of data. Each makes its subject, whose buffers are large.
std::vector<std::function<Subject(Data&)>> peers(DType dtype);
// {"lz4", "1.9.4"} ...
std::vector<std::pair<std::string, std::string>> peer_versions();

// The block that a frame has by default.
size_t default_block_size();

}  // namespace wirepress::bench
