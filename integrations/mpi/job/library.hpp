// SPDX-License-Identifier: Apache-2.0
// The MPI library below: is this module made for it?
#pragma once

#include <string>

namespace wirepress {

void require_abi();           // before PMPI_Init: ends the process if the library has another ABI
std::string unfit_library();  // why this module is not for the library's version, or ""
bool is_open_mpi();
// Why calls of this program would bypass the module, or "".
std::string unseen_calls();

}  // namespace wirepress
