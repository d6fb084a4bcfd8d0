/* SPDX-License-Identifier: Apache-2.0
 * A broken network: preloaded beside the interposer it stands between that and MPI, and damages
 * what is sent with tags from 1000 on. Tag 1000 + k: the byte at k of 64 parts is inverted; tag
 * 2000 + k: the message ends there. Messages that the interposer left raw pass as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Send(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  static int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
  if (!send) *(void **)&send = dlsym(RTLD_NEXT, "PMPI_Send");
  if (tag < 1000 || n >= 200000) return send(buffer, n, type, to, tag, comm);
  char *copy = malloc((size_t)n);
  memcpy(copy, buffer, (size_t)n);
  const int at = 16 + (int)((long)(n - 17) * (tag % 1000) / 63); /* the cookie stays */
  if (tag < 2000) {
    copy[at] = (char)~copy[at];
  } else {
    n = at + 1;
  }
  const int error = send(copy, n, type, to, tag, comm);
  free(copy);
  return error;
}

/* Messages in pieces go by these two. Every 17th piece, and every fifth first one, has a byte of
 * its middle or of its head inverted. The copies stay: they may be sent later. */
typedef int nonblocking(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int damaged(const char *name, int every, int *count, size_t at, const void *buffer, int n,
                   MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  nonblocking *send;
  *(void **)&send = dlsym(RTLD_NEXT, name);
  if (!getenv("FLIP_PIECES") || n < 1000 || ++*count % every)
    return send(buffer, n, type, to, tag, comm, request);
  char *copy = malloc((size_t)n);
  memcpy(copy, buffer, (size_t)n);
  at = at ? at : (size_t)n / 2;
  copy[at] = (char)~copy[at];
  return send(copy, n, type, to, tag, comm, request);
}

int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request) {
  static int count;
  return damaged("PMPI_Isend", 17, &count, 0, buffer, n, type, to, tag, comm, request);
}

int PMPI_Issend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request *request) {
  static int count;
  return damaged("PMPI_Issend", 5, &count, 40, buffer, n, type, to, tag, comm, request);
}
