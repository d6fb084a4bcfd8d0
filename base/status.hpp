// SPDX-License-Identifier: Apache-2.0
// Status: what a function that can fail returns. Values equal wpr_status in wirepress.h.
#pragma once

#include <cstdint>

namespace wirepress {

// Grouped by who must act: the bytes (10..), the call (20..), the place (30..).
enum class Code : uint8_t {
  kOk = 0,
  kCorrupt = 10,
  kChecksum = 11,
  kUnsupported = 12,
  kTruncated = 13,
  kParameter = 20,
  kDstTooSmall = 21,
  kInterrupted = 22,
  kNoMemory = 30,
  kDevice = 31,
  kIo = 32,
};

// A code and one sentence with the numbers. The text is a fixed buffer, so that failing never
// allocates and a Status may cross a noexcept function.
class [[nodiscard]] Status {
 public:
  Status() { text_[0] = '\0'; }
  Code code() const { return code_; }
  bool ok() const { return code_ == Code::kOk; }
  const char* text() const { return text_; }

 private:
  friend Status fail(Code code, const char* format, ...);
  Code code_ = Code::kOk;
  char text_[511];
};

// A failed Status; the sentence is cut at 510 bytes.
[[gnu::format(printf, 2, 3)]] Status fail(Code code, const char* format, ...);

// The code's name as users see it: "corrupt", "dst_too_small" ...
const char* code_name(Code code);

}  // namespace wirepress

#define WPR_TRY(expression)                                                              \
  do {                                                                                   \
    if (auto wpr_try_status = (expression); !wpr_try_status.ok()) return wpr_try_status; \
  } while (0)
