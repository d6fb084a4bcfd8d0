// SPDX-License-Identifier: Apache-2.0
// What a function of the store that can fail returns: a wpr_status and its sentence.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "wirepress/wirepress.h"

namespace wirepress::store {

// The text is a fixed buffer: failing never allocates.
struct [[nodiscard]] Status {
  wpr_status code = WPR_OK;
  char text[512] = "";
  bool ok() const { return code == WPR_OK; }
};

[[gnu::format(printf, 2, 3)]] inline Status fail(wpr_status code, const char* format, ...) {
  Status status;
  status.code = code;
  va_list args;
  va_start(args, format);
  std::vsnprintf(status.text, sizeof status.text, format, args);
  va_end(args);
  return status;
}

}  // namespace wirepress::store

#define WPR_STORE_TRY(expression)                                                        \
  do {                                                                                   \
    if (auto wpr_try_status = (expression); !wpr_try_status.ok()) return wpr_try_status; \
  } while (0)
