// SPDX-License-Identifier: Apache-2.0
// A program of somebody else that uses the installed C++ door.
#include <cstdio>
#include <string>
#include <wirepress/wirepress.hpp>

int main() {
  wirepress::Context context;
  const std::string text(1000, 'w');
  const auto frame = context.compress(text.data(), text.size());
  const auto again = context.decompress(frame.data(), frame.size());
  std::printf("%s\n", wirepress::version().c_str());
  return again.size() == text.size() ? 0 : 1;
}
