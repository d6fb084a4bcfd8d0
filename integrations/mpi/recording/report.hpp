// SPDX-License-Identifier: Apache-2.0
// The report (spec/report.md).
#pragma once

#include <string>
#include <vector>

namespace wirepress {

// The report of this rank as JSON.
std::string rank_report();
// Joins rank reports to the job's report and writes it, whole or not at all.
bool write_report(const std::string& file, const std::vector<std::string>& ranks);

}  // namespace wirepress
