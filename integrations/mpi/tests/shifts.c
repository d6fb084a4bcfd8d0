/* SPDX-License-Identifier: Apache-2.0
 * Every rank sends to the next and receives from the one before, by each call that does both:
 *   shifts ring|chain cores|device
 * A chain's ends have MPI_PROC_NULL beside them. device: buffers lie in memory of an emulated GPU.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "check.h"

static void *(*device_alloc)(int, size_t);
static int (*device_copy)(void *, const void *, size_t);
static void (*device_free)(void *);
static int rank, size, there;

static void *make(const void *data, size_t n) {
  void *buffer = there ? device_alloc(0, n + 1) : malloc(n + 1);
  CHECK(buffer);
  if (there)
    CHECK(device_copy(buffer, data, n) == 0);
  else
    memcpy(buffer, data, n);
  return buffer;
}
static void look(void *data, const void *buffer, size_t n) {
  if (there)
    CHECK(device_copy(data, buffer, n) == 0);
  else
    memcpy(data, buffer, n);
}
static void drop(void *buffer) {
  if (there)
    device_free(buffer);
  else
    free(buffer);
}

enum {
  SENDRECV,
  REPLACE,
#ifdef HAS_ISENDRECV
  ISENDRECV,
  IREPLACE,
#endif
  WAYS
};

/* n bytes of a type, each fourth ones of eight where it has gaps. */
static void shift(int way, size_t n, int gaps, int before, int behind) {
  const size_t room = gaps ? 2 * n : n;
  MPI_Datatype type = MPI_BYTE;
  int count = (int)n, replaces = way == REPLACE;
#ifdef HAS_ISENDRECV
  replaces |= way == IREPLACE;
#endif
  if (gaps) {
    MPI_Type_vector((int)n / 4, 4, 8, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    count = 1;
  }
  unsigned char *data = malloc(room + 1), *blank = malloc(room + 1);
  memset(blank, 0x55, room);
  memset(data, 0x55, room);
  for (size_t i = 0; i < n; ++i)
    data[gaps ? i / 4 * 8 + i % 4 : i] = byte_at(TEXT, (unsigned)rank, i);
  void *out = make(data, room), *in = replaces ? out : make(blank, room);
  MPI_Status status;
  const int tag = way * 10 + gaps;
  if (way == SENDRECV) {
    MPI_Sendrecv(out, count, type, behind, tag, in, count, type, before, tag, MPI_COMM_WORLD,
                 &status);
  } else if (way == REPLACE) {
    MPI_Sendrecv_replace(in, count, type, behind, tag, before, tag, MPI_COMM_WORLD, &status);
  }
  if (way == SENDRECV || way == REPLACE) {
    CHECK(status.MPI_SOURCE == before);
    CHECK(count_of(&status, MPI_BYTE) == (before == MPI_PROC_NULL ? 0 : (int)n));
  }
#ifdef HAS_ISENDRECV
  MPI_Request request;
  if (way == ISENDRECV) {
    MPI_Isendrecv(out, count, type, behind, tag, in, count, type, before, tag, MPI_COMM_WORLD,
                  &request);
  } else if (way == IREPLACE) {
    MPI_Isendrecv_replace(in, count, type, behind, tag, before, tag, MPI_COMM_WORLD, &request);
  }
  if (way == ISENDRECV || way == IREPLACE) MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
  look(data, in, room);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = gaps ? i / 4 * 8 + i % 4 : i;
    if (before != MPI_PROC_NULL)
      CHECK(data[at] == byte_at(TEXT, (unsigned)before, i));
    else
      CHECK(data[at] == (replaces ? byte_at(TEXT, (unsigned)rank, i) : 0x55));
    if (gaps) CHECK(data[at + 4] == 0x55);
  }
  if (gaps) MPI_Type_free(&type);
  if (!replaces) drop(out);
  drop(in);
  free(data);
  free(blank);
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc == 3);
  const int chain = strcmp(argv[1], "chain") == 0;
  there = strcmp(argv[2], "device") == 0;
  if (there) {
    device_alloc = (void *(*)(int, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_alloc");
    device_copy = (int (*)(void *, const void *, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_copy");
    device_free = (void (*)(void *))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_free");
    CHECK(device_alloc && device_copy && device_free);
  }
  const int before = chain && rank == 0 ? MPI_PROC_NULL : (rank + size - 1) % size;
  const int behind = chain && rank == size - 1 ? MPI_PROC_NULL : (rank + 1) % size;
  static const size_t sizes[] = {4, 1000, 100000, 1000000};
  /* MPICH 4.0 releases derived types of MPI_Isendrecv once too often. */
  for (int way = 0; way < WAYS; ++way)
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i)
      for (int gaps = 0; gaps < (way <= REPLACE ? 2 : 1); ++gaps)
        for (int again = 0; again < 2; ++again) shift(way, sizes[i], gaps, before, behind);
  if (rank == 0) printf("ok shifts\n");
  MPI_Finalize();
  return 0;
}
