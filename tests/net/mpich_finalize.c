/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into MPICH's ranks by hosts.py. In MPI_Finalize, Debian 12's MPICH 4.0.2 closes its
 * UCX 1.13 connections one by one and then waits in a barrier without making progress; over UCX's
 * TCP, with three ranks or more, most runs hang there (seen with plain MPICH on loopback too:
 * MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self mpirun.mpich -n 4). NULL says that the connection is
 * closed; the worker's destruction right after the barrier then closes it.
 */
#include <stddef.h>

void *ucp_disconnect_nb(void *endpoint) {
  (void)endpoint;
  return NULL;
}
