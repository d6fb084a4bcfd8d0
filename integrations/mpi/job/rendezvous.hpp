// SPDX-License-Identifier: Apache-2.0
// The rendezvous of `wirepress run`, which ranks ask whether all of them take part, and to which
// they send their reports (protocol: spec/report.md).
#pragma once

#include <string>

namespace wirepress {

struct Verdict {
  bool on = false;
  std::string reason;
};

bool has_rendezvous();
// Fills in the job's cookie and nodes. `refuse`: why this rank keeps out, or "".
Verdict ask_rendezvous(const std::string& refuse);
void send_report(const std::string& report);
[[noreturn]] void end_job(const std::string& why);

}  // namespace wirepress
