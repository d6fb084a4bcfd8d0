// SPDX-License-Identifier: Apache-2.0
#include "recording/json.hpp"

#include <locale.h>

#include <cstdarg>
#include <cstdio>

namespace wirepress {

void append(std::string* text, const char* format, ...) {
  // A program may have set a locale that writes 0,5 for 0.5.
  static const locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", nullptr);
  const locale_t before = c_locale ? uselocale(c_locale) : nullptr;
  char formatted[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(formatted, sizeof formatted, format, args);
  va_end(args);
  if (before) uselocale(before);
  *text += formatted;
}

std::string json_string(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      append(&json, "\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

}  // namespace wirepress
