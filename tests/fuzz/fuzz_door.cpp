// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as calls of the C door, with options set between them.
#include "pipeline/door_script.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  wirepress::DoorScript(bytes, size).run();
  return 0;
}
