// SPDX-License-Identifier: Apache-2.0
// What tests ask of wpr_get_device_work.
#pragma once

#include <cstdint>
#include <string>

#include "wirepress/wirepress.h"

namespace wirepress {

// What engines with devices did in this thread since it was made.
class Work {
 public:
  Work() { wpr_get_device_work(&before_); }
  uint64_t device() const { return now().device_bytes - before_.device_bytes; }
  uint64_t cores() const { return now().cores_bytes - before_.cores_bytes; }
  std::string reason() const { return now().reason; }

 private:
  static wpr_device_work now() {
    wpr_device_work work;
    wpr_get_device_work(&work);
    return work;
  }
  wpr_device_work before_;
};

}  // namespace wirepress
