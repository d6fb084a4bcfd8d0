/* SPDX-License-Identifier: Apache-2.0
 * Preloaded behind the interposer: once MPI has begun, nothing in the environment names the job, as
 * under a process manager that has no names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

int PMPI_Init(int *argc, char ***argv) {
  int (*next)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_NEXT, "PMPI_Init");
  const int error = next(argc, argv);
  const char *names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid",
                         "PMI_FD"};
  for (int i = 0; i < 4; ++i) unsetenv(names[i]);
  return error;
}
