// SPDX-License-Identifier: Apache-2.0
// The options of the job.
#pragma once

#include <string>

namespace wirepress {

// Reads them into job(); "" or why the library cannot be used.
std::string read_options();
// Whether the option `engine` names one with devices, which may then be asked.
bool names_device();
// Of all that must be the same on every rank.
std::string config_hash();
// Whether MPI is to be asked for MPI_THREAD_MULTIPLE; before PMPI_Init.
bool wants_threads();

}  // namespace wirepress
