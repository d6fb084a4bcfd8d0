// SPDX-License-Identifier: Apache-2.0
// Text of reports.
#pragma once

#include <string>

namespace wirepress {

// At most 511 characters, with "." in numbers whatever the program's locale.
[[gnu::format(printf, 2, 3)]] void append(std::string* text, const char* format, ...);
std::string json_string(const std::string& text);

}  // namespace wirepress
