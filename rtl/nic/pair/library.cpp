// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <algorithm>

namespace nic {
namespace {

void append(const std::vector<std::byte>& from, Bytes* to) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from.data());
  to->insert(to->end(), bytes, bytes + from.size());
}

}  // namespace

Library::Library(const std::string& recipe) {
  context_.set("recipe", recipe);
  context_.set("checksum", "off");
  context_.set("probe", "off");
  context_.set("engine", "cpu");  // not the cores that it is compared with
  context_.set("threads", "1");
  std::vector<std::byte> begun;
  context_.stream_begin(WPR_FLOAT32, begun);
  append(begun, &header_);
  context_.stream_end(begun);
}

Bytes Library::frame(View payload) {
  std::vector<std::byte> out;
  context_.stream_begin(WPR_FLOAT32, out);
  context_.stream_update(payload.data(), payload.size(), out);
  context_.stream_end(out);
  Bytes made;
  append(out, &made);
  return made;
}

Bytes Library::expanded(View frame) {
  Bytes raw;
  append(context_.decompress(frame.data(), frame.size()), &raw);
  return raw;
}

bool Library::is_frame(View payload) const {
  return payload.size() > prefix() && std::equal(header_.begin(), header_.end(), payload.begin());
}

}  // namespace nic
