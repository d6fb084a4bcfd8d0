/* SPDX-License-Identifier: Apache-2.0
 * Messages between ranks 0 and 1, and collectives from and to memory of an emulated GPU, which ends
 * who touches it: by turns one rank's buffers lie there, the other's, all and none, then every
 * second one of each; every byte is compared. device_memory NONBLOCKING WHICH    1: the interposer
 * has Ibcast, too; all: every rank's lie there, some: all other turns */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static void *(*device_alloc)(int, size_t);
static int (*copy)(void *, const void *, size_t);
static void (*device_free)(void *);
static int rank, size, side; /* side: bit r of it: the buffers of rank r lie on a device */
static int mixed;            /* every second buffer lies where the rank's others do not */
static int n_devices;
static void *there[64]; /* buffers on a device */
enum { MOST = sizeof there / sizeof *there };

static void **place_of(void *buffer) {
  for (int i = 0; i < MOST; ++i) {
    if (there[i] == buffer) return &there[i];
  }
  return NULL;
}

/* A buffer where this rank has it now, with n bytes of a message or 0x55. Every second one of a
 * device begins at an odd address. */
enum { ODD = 7 };
static void *make(size_t n, int kind, unsigned seed, int filled_in) {
  unsigned char *here = malloc(n + 1);
  CHECK(here);
  memset(here, 0x55, n);
  if (filled_in) fill(here, n, kind, seed);
  static int n_made;
  if ((side >> rank & 1) == (mixed && n_made++ % 2)) return here;
  unsigned char *far = device_alloc(rank & 1, n + ODD);
  void **place = place_of(NULL);
  CHECK(far && place);
  far += n_devices % 2 ? ODD : 0;
  CHECK(copy(far, here, n) == 0);
  free(here);
  ++n_devices;
  return *place = far;
}
static void put(void *buffer, const void *here, size_t n) {
  if (place_of(buffer))
    CHECK(copy(buffer, here, n) == 0);
  else
    memcpy(buffer, here, n);
}
static unsigned char *look(void *buffer, size_t n) {
  unsigned char *here = malloc(n + 1);
  CHECK(here && (place_of(buffer) ? copy(here, buffer, n) == 0 : (memcpy(here, buffer, n), 1)));
  return here;
}
static void drop(void *buffer) {
  void **place = place_of(buffer);
  if (!place) return free(buffer);
  *place = NULL;
  device_free((char *)buffer - ((uintptr_t)buffer % 8 == ODD ? ODD : 0));
}

static void expect(void *buffer, size_t n, int kind, unsigned seed) {
  unsigned char *here = look(buffer, n);
  CHECK(filled(here, n, kind, seed));
  free(here);
  drop(buffer);
}

/* The last two are of several chunks, and in pieces. */
static const size_t sizes[] = {0, 1, 1000, 65536, 150001, 1200007};

static void messages(int kind, size_t n, unsigned seed) {
  const int other = 1 - rank, count = (int)n;
  if (rank > 1) return;
  MPI_Status status;
  for (int way = 0; way < 5; ++way) {
    void *out = make(n, kind, seed + (unsigned)rank, 1), *in = make(n, 0, 0, 0);
    if (way == 0 && rank == 0) {
      MPI_Send(out, count, MPI_BYTE, other, way, MPI_COMM_WORLD);
      MPI_Recv(in, count, MPI_BYTE, other, way, MPI_COMM_WORLD, &status);
    } else if (way == 0) {
      MPI_Recv(in, count, MPI_BYTE, other, way, MPI_COMM_WORLD, &status);
      MPI_Ssend(out, count, MPI_BYTE, other, way, MPI_COMM_WORLD);
    } else if (way == 1) {
      MPI_Request request[2];
      MPI_Irecv(in, count, MPI_BYTE, other, way, MPI_COMM_WORLD, &request[0]);
      MPI_Isend(out, count, MPI_BYTE, other, way, MPI_COMM_WORLD, &request[1]);
      MPI_Status both[2];
      MPI_Waitall(2, request, both);
      status = both[0];
    } else if (way == 2) {
      MPI_Sendrecv(out, count, MPI_BYTE, other, way, in, count, MPI_BYTE, other, way,
                   MPI_COMM_WORLD, &status);
    } else if (way == 3) { /* in place */
      drop(in);
      in = make(n, kind, seed + (unsigned)rank, 1);
      MPI_Sendrecv_replace(in, count, MPI_BYTE, other, way, other, way, MPI_COMM_WORLD, &status);
    } else { /* every second element, as a type with gaps */
      MPI_Datatype gaps;
      MPI_Type_vector(count / 8, 4, 8, MPI_BYTE, &gaps);
      MPI_Type_commit(&gaps);
      MPI_Sendrecv(out, 1, gaps, other, way, in, 1, gaps, other, way, MPI_COMM_WORLD, &status);
      MPI_Type_free(&gaps);
      unsigned char *here = look(in, n);
      size_t at = 0;
      for (; at < n / 8 * 8; at += 8) {
        CHECK(filled_from(at, here + at, 4, kind, seed + (unsigned)other));
        CHECK(all_bytes(here + at + 4, 4, 0x55));
      }
      CHECK(all_bytes(here + at, n - at, 0x55));
      free(here);
      drop(in);
      expect(out, n, kind, seed + (unsigned)rank);
      continue;
    }
    CHECK(count_of(&status, MPI_BYTE) == count);
    expect(in, n, kind, seed + (unsigned)other);
    expect(out, n, kind, seed + (unsigned)rank);
  }
}

static void persistent(int kind, size_t n, unsigned seed) {
  if (rank > 1) return;
  const int other = 1 - rank, count = (int)n;
  void *out = make(n, kind, seed + (unsigned)rank, 1), *in = make(n, 0, 0, 0);
  MPI_Request request[2];
  MPI_Recv_init(in, count, MPI_BYTE, other, 9, MPI_COMM_WORLD, &request[0]);
  MPI_Send_init(out, count, MPI_BYTE, other, 9, MPI_COMM_WORLD, &request[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, request);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&request[0]);
  MPI_Request_free(&request[1]);
  expect(in, n, kind, seed + (unsigned)other);
  expect(out, n, kind, seed + (unsigned)rank);
}

static void probed(int kind, size_t n, unsigned seed) {
  if (rank > 1) return;
  const int other = 1 - rank, count = (int)n;
  for (int way = 0; way < 3; ++way) {
    if (rank == 0) {
      void *out = make(n, kind, seed, 1);
      MPI_Send(out, count, MPI_BYTE, other, 10, MPI_COMM_WORLD);
      expect(out, n, kind, seed);
      continue;
    }
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    if (way == 0)
      MPI_Probe(other, 10, MPI_COMM_WORLD, &status);
    else
      MPI_Mprobe(other, 10, MPI_COMM_WORLD, &message, &status);
    CHECK(count_of(&status, MPI_BYTE) == count);
    void *in = make(n, 0, 0, 0);
    if (way == 0) {
      MPI_Recv(in, count, MPI_BYTE, other, 10, MPI_COMM_WORLD, &status);
    } else if (way == 1) {
      MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
    } else {
      MPI_Imrecv(in, count, MPI_BYTE, &message, &request);
      MPI_Wait(&request, &status);
    }
    CHECK(count_of(&status, MPI_BYTE) == count && status.MPI_SOURCE == other);
    expect(in, n, kind, seed);
  }
}

/* Blocks of every member, of n bytes each. */
static void expect_blocks(void *buffer, size_t n, int kind, unsigned seed, int step) {
  unsigned char *here = look(buffer, n * (size_t)size);
  for (int r = 0; r < size; ++r)
    CHECK(filled_from(step ? (size_t)rank * n : 0, here + (size_t)r * n, n, kind,
                      seed + (unsigned)r));
  free(here);
  drop(buffer);
}

/* A rank's own block stands where the results go. */
static void in_place(int kind, size_t n, unsigned seed, int root) {
  const int count = (int)n;
  const size_t all = n * (size_t)size;
  unsigned char *values = malloc(all + 1);
  CHECK(values);
  for (int way = 0; way < 4; ++way) { /* of all ranks, or of the root */
    void *whole = make(all, 0, 0, 0);
    int counts[16], at[16];
    for (int r = 0; r < size; ++r) counts[r] = count, at[r] = r * count;
    memset(values, 0x55, all);
    for (int r = 0; r < size; ++r)
      if (r == rank || way == 1)
        fill_from(way == 1 ? (size_t)r * n : 0, values + (size_t)r * n, n, kind,
                  seed + (unsigned)rank);
    put(whole, values, all);
    if (way == 0)
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, whole, count, MPI_BYTE, MPI_COMM_WORLD);
    else if (way == 1)
      MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, whole, count, MPI_BYTE, MPI_COMM_WORLD);
    else if (way == 2)
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, whole, counts, at, MPI_BYTE, MPI_COMM_WORLD);
    else if (rank == root)
      MPI_Gatherv(MPI_IN_PLACE, 0, MPI_BYTE, whole, counts, at, MPI_BYTE, root, MPI_COMM_WORLD);
    else
      MPI_Gatherv((char *)whole + (size_t)rank * n, count, MPI_BYTE, NULL, NULL, NULL, MPI_BYTE,
                  root, MPI_COMM_WORLD);
    if (way < 3 || rank == root)
      expect_blocks(whole, n, kind, seed, way == 1);
    else
      drop(whole);
  }
  free(values);
}

static void collectives(int kind, size_t n, unsigned seed) {
  const int count = (int)n;
  const size_t all = n * (size_t)size;
  const int root = (int)(seed % (unsigned)size);
  void *one = make(n, kind, seed, rank == root);
  MPI_Bcast(one, count, MPI_BYTE, root, MPI_COMM_WORLD);
  expect(one, n, kind, seed);

  void *mine = make(n, kind, seed + (unsigned)rank, 1), *whole = make(all, 0, 0, 0);
  MPI_Allgather(mine, count, MPI_BYTE, whole, count, MPI_BYTE, MPI_COMM_WORLD);
  expect_blocks(whole, n, kind, seed, 0);
  whole = make(all, 0, 0, 0);
  MPI_Gather(mine, count, MPI_BYTE, whole, count, MPI_BYTE, root, MPI_COMM_WORLD);
  if (rank == root)
    expect_blocks(whole, n, kind, seed, 0);
  else
    drop(whole);
  int counts[16], at[16];
  for (int r = 0; r < size; ++r) counts[r] = count, at[r] = (size - 1 - r) * count;
  whole = make(all, 0, 0, 0);
  MPI_Allgatherv(mine, count, MPI_BYTE, whole, counts, at, MPI_BYTE, MPI_COMM_WORLD);
  unsigned char *here = look(whole, all);
  for (int r = 0; r < size; ++r) CHECK(filled(here + at[r], n, kind, seed + (unsigned)r));
  free(here);
  drop(whole);
  expect(mine, n, kind, seed + (unsigned)rank);

  in_place(kind, n, seed, root);

  void *from = make(all, kind, seed + (unsigned)rank, 1);
  whole = make(all, 0, 0, 0);
  MPI_Alltoall(from, count, MPI_BYTE, whole, count, MPI_BYTE, MPI_COMM_WORLD);
  expect_blocks(whole, n, kind, seed, 1);
  for (int r = 0; r < size; ++r) at[r] = r * count;
  whole = make(all, 0, 0, 0);
  MPI_Alltoallv(from, counts, at, MPI_BYTE, whole, counts, at, MPI_BYTE, MPI_COMM_WORLD);
  expect_blocks(whole, n, kind, seed, 1);
  MPI_Datatype types[16];
  for (int r = 0; r < size; ++r) types[r] = MPI_BYTE;
  whole = make(all, 0, 0, 0);
  MPI_Alltoallw(from, counts, at, types, whole, counts, at, types, MPI_COMM_WORLD);
  expect_blocks(whole, n, kind, seed, 1);
  void *part = make(n, 0, 0, 0);
  MPI_Scatter(from, count, MPI_BYTE, part, count, MPI_BYTE, root, MPI_COMM_WORLD);
  here = look(part, n);
  CHECK(filled_from((size_t)rank * n, here, n, kind, seed + (unsigned)root));
  free(here);
  drop(part);
  part = make(n, 0, 0, 0);
  MPI_Scatterv(from, counts, at, MPI_BYTE, part, count, MPI_BYTE, root, MPI_COMM_WORLD);
  here = look(part, n);
  CHECK(filled_from((size_t)rank * n, here, n, kind, seed + (unsigned)root));
  free(here);
  drop(part);
  expect(from, all, kind, seed + (unsigned)rank);
}

/* To the next rank: addresses, behind MPI_BOTTOM. */
static MPI_Comm ring;
static void addresses(int kind, size_t n, unsigned seed) {
  const int count = (int)n;
  void *out = make(n, kind, seed + (unsigned)rank, 1), *in = make(n, 0, 0, 0);
  MPI_Aint from, to;
  MPI_Get_address(out, &from);
  MPI_Get_address(in, &to);
  const MPI_Datatype type = MPI_BYTE;
  MPI_Neighbor_alltoallw(MPI_BOTTOM, &count, &from, &type, MPI_BOTTOM, &count, &to, &type, ring);
  expect(in, n, kind, seed + (unsigned)((rank + size - 1) % size));
  expect(out, n, kind, seed + (unsigned)rank);
}

static void reductions(size_t n) {
  const int count = (int)(n / 4);
  int *values = malloc(4 * (size_t)count * (size_t)size + 4);
  for (int way = 0; way < 8; ++way) {
    const int parts = way == 3 || way == 4, blocks = parts ? size : 1;
    const int in_place = way == 1 || way == 6;
    int n_added = size; /* ranks, from 0 on */
    const size_t bytes = 4 * (size_t)count * (size_t)blocks, mine = 4 * (size_t)count;
    for (int i = 0; i < count * blocks; ++i) values[i] = rank + i / 50;
    void *from = make(bytes, 0, 0, 0), *to = make(bytes, 0, 0, 0);
    put(in_place ? to : from, values, bytes);
    int counts[16], whole = 1;
    for (int r = 0; r < size; ++r) counts[r] = count;
    if (way < 2)
      MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (way == 2)
      MPI_Reduce(from, to, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD), whole = rank == 0;
    else if (way == 3)
      MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (way == 4)
      MPI_Reduce_scatter_block(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (way < 7)
      MPI_Scan(in_place ? MPI_IN_PLACE : from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
          n_added = rank + 1;
    else
      MPI_Exscan(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD), n_added = whole = rank;
    int *result = (int *)look(to, mine);
    const int first = parts ? rank * count : 0;
    for (int i = 0; whole && i < count; ++i)
      CHECK(result[i] == n_added * (n_added - 1) / 2 + n_added * ((first + i) / 50));
    free(result);
    drop(from);
    drop(to);
  }
  free(values);
}

static void nonblocking(int kind, size_t n, unsigned seed) {
  MPI_Request request;
  void *one = make(n, kind, seed, rank == 0);
  MPI_Ibcast(one, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(one, n, kind, seed);
}

/* Bytes in gaps are the program's while a call is on its way: what it writes there stays. */
static atomic_int writes;
static void *write_gap(void *there) {
  uintptr_t lost = 0;
  for (unsigned char value = 0; writes; ++value) {
    unsigned char back;
    CHECK(copy(there, &value, 1) == 0);
    usleep(200);
    CHECK(copy(&back, there, 1) == 0);
    lost += back != value;
  }
  return (void *)lost;
}

static void gaps(void) {
  const int half = 2048, step = 4096, n_blocks = 200;
  const size_t n = (size_t)step * (size_t)n_blocks;
  MPI_Datatype type;
  MPI_Type_vector(n_blocks, half, step, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  void *out = make(n, TEXT, 1, 1), *in = make(n, 0, 0, 0);
  pthread_t thread;
  const int there = side >> rank & 1;
  writes = 1;
  if (there) CHECK(pthread_create(&thread, NULL, write_gap, (char *)in + half + 1) == 0);
  int counts[16], at[16];
  for (int r = 0; r < size; ++r) counts[r] = half, at[r] = r * step;
  for (int i = 0; i < 20; ++i) {
    if (rank < 2)
      MPI_Sendrecv(out, 1, type, 1 - rank, 8, in, 1, type, 1 - rank, 8, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    MPI_Bcast(rank == 0 ? out : in, 1, type, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(out, half, MPI_BYTE, in, counts, at, MPI_BYTE, MPI_COMM_WORLD);
  }
  writes = 0;
  void *lost = NULL;
  if (there) CHECK(pthread_join(thread, &lost) == 0);
  CHECK(lost == NULL);
  MPI_Type_free(&type);
  drop(in);
  expect(out, n, TEXT, 1);
}

static int class_of(int error) {
  int class;
  MPI_Error_class(error, &class);
  return class;
}

/* What cannot be copied from the device is an error, and not one of memory: MPI itself does not get
 * such an address. */
static void beyond_the_end(void) {
  if (rank > 1 || !(side >> rank & 1)) return;
  void *out = make(1000, TEXT, 1, 1);
  const int other = 1 - rank, n = 100000;
  MPI_Request request;
  MPI_Datatype gaps;
  MPI_Type_vector(n / 8, 4, 8, MPI_BYTE, &gaps);
  MPI_Type_commit(&gaps);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(class_of(MPI_Send(out, n, MPI_BYTE, other, 99, MPI_COMM_WORLD)) == MPI_ERR_OTHER);
  CHECK(class_of(MPI_Send(out, 1, gaps, other, 99, MPI_COMM_WORLD)) == MPI_ERR_OTHER);
  CHECK(class_of(MPI_Isend(out, n, MPI_BYTE, other, 99, MPI_COMM_WORLD, &request)) ==
        MPI_ERR_OTHER);
  CHECK(MPI_Send_init(out, n, MPI_BYTE, other, 99, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  CHECK(class_of(MPI_Start(&request)) == MPI_ERR_OTHER);
  MPI_Request_free(&request);
  MPI_Type_free(&gaps);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  drop(out);
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  device_alloc = (void *(*)(int, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_alloc");
  copy = (int (*)(void *, const void *, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_copy");
  device_free = (void (*)(void *))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_free");
  CHECK(device_alloc && copy && device_free);
  CHECK(argc == 3);
  const int with_nonblocking = argv[1][0] == '1', all = (1 << size) - 1;
  const int only_all = strcmp(argv[2], "all") == 0;
  const int before = (rank + size - 1) % size, behind = (rank + 1) % size, weight = 1;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &behind, &weight,
                                 MPI_INFO_NULL, 0, &ring);
  for (side = only_all ? all : 0; side < all + only_all; ++side) {
    gaps();
    beyond_the_end();
    for (int kind = TEXT; kind <= SPARSE; ++kind) {
      for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const size_t n = sizes[i];
        const unsigned seed = 1 + 16 * i;
        messages(kind, n, seed);
        persistent(kind, n, seed);
        probed(kind, n, seed);
        MPI_Barrier(MPI_COMM_WORLD);
        if (n > 400000) continue;
        for (mixed = 0; mixed < 2; ++mixed) {
          collectives(kind, n, seed);
          reductions(n);
          addresses(kind, n, seed);
        }
        mixed = 0;
        if (with_nonblocking && n >= 65536) nonblocking(kind, n, seed);
      }
    }
  }
  MPI_Comm_free(&ring);
  int devices = 0;
  MPI_Reduce(&n_devices, &devices, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("device memory: %d buffers, all right\n", devices);
  MPI_Finalize();
  return 0;
}
