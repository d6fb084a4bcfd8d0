// SPDX-License-Identifier: Apache-2.0
#include "base/status.hpp"

#include <cstdarg>
#include <cstdio>

namespace wirepress {

Status fail(Code code, const char* format, ...) {
  Status status;
  status.code_ = code;
  va_list args;
  va_start(args, format);
  std::vsnprintf(status.text_, sizeof status.text_, format, args);
  va_end(args);
  return status;
}

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kChecksum:
      return "checksum";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kTruncated:
      return "truncated";
    case Code::kParameter:
      return "parameter";
    case Code::kDstTooSmall:
      return "dst_too_small";
    case Code::kInterrupted:
      return "interrupted";
    case Code::kNoMemory:
      return "no_memory";
    case Code::kDevice:
      return "device";
    case Code::kIo:
      return "io";
  }
  return "unknown";
}

}  // namespace wirepress
