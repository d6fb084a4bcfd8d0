// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of MPI, and of communicators.
#include "interposer.hpp"
#include "pmpi.hpp"

using namespace wirepress;

WPR_EXPORT int MPI_Init(int* argc, char*** argv) {
  const int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS) activate();
  return error;
}

WPR_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS) activate();
  return error;
}

WPR_EXPORT int MPI_Finalize(void) {
  deactivate();
  const int error = PMPI_Finalize();
  leave_reports();
  return error;
}

WPR_EXPORT int MPI_Comm_free(MPI_Comm* comm) {
  if (comm && !inert()) forget_comm(*comm);
  return PMPI_Comm_free(comm);
}

WPR_EXPORT int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (comm && !inert()) forget_comm(*comm);
  return PMPI_Comm_disconnect(comm);
}
