// SPDX-License-Identifier: Apache-2.0
// Start and end of the job: the ranks agree before the first message and report after the last.
#pragma once

namespace wirepress {

void activate();    // after PMPI_Init
void deactivate();  // before PMPI_Finalize
// After PMPI_Finalize, so that other ranks do not wait inside MPI for this rank's report.
void leave_reports();

}  // namespace wirepress
