// SPDX-License-Identifier: Apache-2.0
// The library as the other side of a box: it makes and reads the payloads of spec/nic-wire.md.
#pragma once

#include <string>
#include <wirepress/wirepress.hpp>

#include "packet.hpp"

namespace nic {

constexpr size_t kFrameHeader = 16;           // of the boxes here
constexpr size_t kPrefix = kFrameHeader + 8;  // with block word and raw size

class Library {
 public:
  explicit Library(const std::string& recipe);
  const Bytes& header() const { return header_; }
  // Header, one block; its bytes as they are where they do not shrink.
  Bytes frame(View payload);
  // Throws wirepress::Error.
  Bytes expanded(View frame);
  bool is_frame(View payload) const;
  static bool is_coded(View frame) { return (frame[kFrameHeader + 3] & 0x80) == 0; }

 private:
  wirepress::Context context_;
  Bytes header_;
};

}  // namespace nic
