// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of MPI, and of communicators.
#include <atomic>

#include "calls/wrap.hpp"
#include "job/comms.hpp"
#include "job/handshake.hpp"
#include "job/library.hpp"
#include "job/options.hpp"
#include "messages/devices.hpp"
#include "messages/requests.hpp"

using namespace wirepress;

namespace {

// What the program was told, where MPI was asked for more than the program did; negative: it was
// not.
std::atomic<int> g_told{-1};

void start(const void* last_library_before) {
  activate();
  if (g_mode.load() != kInert) watch_libraries(last_library_before);
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  require_abi();
  const bool more = required < MPI_THREAD_MULTIPLE && wants_threads();
  const void* const before = last_library();
  const int error = PMPI_Init_thread(argc, argv, more ? MPI_THREAD_MULTIPLE : required, provided);
  if (error != MPI_SUCCESS) return error;
  if (more && *provided > required) g_told = *provided = required;
  start(before);
  return MPI_SUCCESS;
}

}  // namespace

WPR_WRAP(MPI_Init, int* argc, char*** argv) {
  int provided;
  if (wants_threads()) return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
  require_abi();
  const void* const before = last_library();
  const int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS) start(before);
  return error;
}

WPR_WRAP(MPI_Init_thread, int* argc, char*** argv, int required, int* provided) {
  return init_thread(argc, argv, required, provided);
}

WPR_WRAP(MPI_Query_thread, int* provided) {
  const int error = PMPI_Query_thread(provided);
  if (error == MPI_SUCCESS && g_told >= 0) *provided = g_told;
  return error;
}

WPR_WRAP(MPI_Finalize, void) {
  unwatch_libraries();
  deactivate();
  const int error = PMPI_Finalize();
  leave_reports();
  return error;
}

WPR_WRAP(MPI_Comm_free, MPI_Comm* comm) {
  if (comm && !inert()) forget_comm(*comm);
  return PMPI_Comm_free(comm);
}

WPR_WRAP(MPI_Comm_disconnect, MPI_Comm* comm) {
  if (comm && !inert()) forget_comm(*comm);
  return PMPI_Comm_disconnect(comm);
}
