// SPDX-License-Identifier: Apache-2.0
// The library as the other side of a box: it makes and reads the payloads of spec/nic-wire.md.
#pragma once

#include <string>
#include <wirepress/wirepress.hpp>

#include "packet.hpp"

namespace nic {

// A box's codec.
struct Codec {
  std::string name, recipe;
  uint8_t control = 0;  // bits 8 to 15 of the box's control register
  wpr_dtype dtype = WPR_FLOAT32;
  size_t unit = sizeof(float);  // bytes of a value
  // Which kernels make the box's codes: where encoders may write different bytes, the cores'.
  const char* engine = "cpu";
};

class Library {
 public:
  Library(const Codec& codec, const char* engine);
  const Bytes& header() const { return header_; }
  // Of a frame's bytes, with block word and raw size.
  size_t prefix() const { return header_.size() + 8; }
  // Header, one block; its bytes as they are where they do not shrink.
  Bytes frame(View payload);
  // Throws wirepress::Error.
  Bytes expanded(View frame);
  bool is_frame(View payload) const;
  bool is_coded(View frame) const { return (frame[header_.size() + 3] & 0x80) == 0; }
  // Payloads that a box codes, if that makes them smaller (spec/nic-wire.md).
  bool takes(View payload) const;

 private:
  const Codec codec_;
  wirepress::Context writer_, reader_;
  Bytes header_;
};

}  // namespace nic
