// SPDX-License-Identifier: Apache-2.0
// The library as the other side of a box: it makes and reads the payloads of spec/nic-wire.md.
#pragma once

#include <string>
#include <wirepress/wirepress.hpp>

#include "packet.hpp"

namespace nic {

class Library {
 public:
  explicit Library(const std::string& recipe);
  const Bytes& header() const { return header_; }
  // Of a frame's bytes, with block word and raw size.
  size_t prefix() const { return header_.size() + 8; }
  // Header, one block; its bytes as they are where they do not shrink.
  Bytes frame(View payload);
  // Throws wirepress::Error.
  Bytes expanded(View frame);
  bool is_frame(View payload) const;
  bool is_coded(View frame) const { return (frame[header_.size() + 3] & 0x80) == 0; }

 private:
  wirepress::Context context_;
  Bytes header_;
};

}  // namespace nic
