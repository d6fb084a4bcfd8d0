// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <algorithm>
#include <cstring>

namespace nic {
namespace {

void append(const std::vector<std::byte>& from, Bytes* to) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from.data());
  to->insert(to->end(), bytes, bytes + from.size());
}

// What rtl/nic/wpr_nic_zfp_enc.sv refuses.
bool zfp_takes(View payload) {
  constexpr size_t kCell = 4;
  constexpr uint32_t kBias = 127, kHuge = kBias + 112, kLarge = kBias - 74, kTiny = kBias - 98;
  bool huge = false, large = false, tiny = false;
  for (size_t at = 0; at < payload.size(); at += kCell * sizeof(float)) {
    uint32_t most = 0;  // magnitude of the cell, as a word
    for (size_t i = at; i < std::min(payload.size(), at + kCell * sizeof(float));
         i += sizeof(float)) {
      uint32_t word = 0;
      std::memcpy(&word, payload.data() + i, sizeof(word));
      most = std::max(most, word & 0x7FFFFFFF);
    }
    huge |= most >> 23 >= kHuge;
    large |= most >> 23 >= kLarge;
    tiny |= most != 0 && most >> 23 < kTiny;
  }
  return !huge && (large || !tiny);
}

}  // namespace

bool Library::takes(View payload) const {
  return payload.size() % codec_.unit == 0 && (codec_.name != "zfp" || zfp_takes(payload));
}

Library::Library(const Codec& codec, const char* engine) : codec_(codec) {
  for (wirepress::Context* context : {&writer_, &reader_}) {
    context->set("recipe", codec.recipe);
    context->set("checksum", "off");
    context->set("probe", "off");
    context->set("engine", context == &writer_ ? engine : "cpu");  // no core reads its own codes
    context->set("threads", "1");
  }
  std::vector<std::byte> begun;
  writer_.stream_begin(codec.dtype, begun);
  append(begun, &header_);
  writer_.stream_end(begun);
}

Bytes Library::frame(View payload) {
  std::vector<std::byte> out;
  writer_.stream_begin(codec_.dtype, out);
  writer_.stream_update(payload.data(), payload.size(), out);
  writer_.stream_end(out);
  Bytes made;
  append(out, &made);
  return made;
}

Bytes Library::expanded(View frame) {
  Bytes raw;
  append(reader_.decompress(frame.data(), frame.size()), &raw);
  return raw;
}

bool Library::is_frame(View payload) const {
  return payload.size() > prefix() && std::equal(header_.begin(), header_.end(), payload.begin());
}

}  // namespace nic
