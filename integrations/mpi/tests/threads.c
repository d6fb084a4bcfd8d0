/* SPDX-License-Identifier: Apache-2.0
 * MPI_THREAD_MULTIPLE: threads that send, receive, probe and reduce at the same time, and one that
 * does nothing but look, which takes messages out of MPI while others wait for them. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 60 };
static int rank, size;
static atomic_int running = THREADS;
static MPI_Comm comms[THREADS];

static int size_of(int thread, int round) {
  return (round * 37 + thread * 11) % 5 == 0 ? 700 : 66000 + round * 1000 + thread;
}

static void receive(int thread, int round, unsigned char *buffer, int from, int tag) {
  MPI_Status status;
  MPI_Request request;
  MPI_Message message;
  const int room = 200000, n = size_of(thread, round);
  switch (round % 5) {
    case 0:
      MPI_Recv(buffer, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
      break;
    case 1:
      MPI_Irecv(buffer, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      for (int flag = 0; !flag;) MPI_Test(&request, &flag, &status);
      break;
    case 2:
      MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status);
      CHECK(count_of(&status, MPI_BYTE) == n);
      MPI_Mrecv(buffer, room, MPI_BYTE, &message, &status);
      break;
    case 3:
      MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
      CHECK(count_of(&status, MPI_BYTE) == n);
      MPI_Recv(buffer, n, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
      break;
    default:
      MPI_Irecv(buffer, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      MPI_Waitall(1, &request, &status);
  }
  CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag);
  CHECK(count_of(&status, MPI_BYTE) == n);
  CHECK(filled(buffer, (size_t)n, TEXT, (unsigned)(from * 1000 + thread * 100 + round)));
}

static void *work(void *argument) {
  const int thread = (int)(intptr_t)argument, to = (rank + 1) % size;
  const int from = (rank + size - 1) % size;
  unsigned char *a = malloc(200000), *b = malloc(200000);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request request;
    const int n = size_of(thread, round);
    fill(a, (size_t)n, TEXT, (unsigned)(rank * 1000 + thread * 100 + round));
    MPI_Isend(a, n, MPI_BYTE, to, thread, MPI_COMM_WORLD, &request);
    receive(thread, round, b, from, thread);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (round % 10 == 0) {
      float *x = (float *)a, *y = (float *)b;
      for (int i = 0; i < 40000; ++i) x[i] = (float)(i / 30 + rank);
      MPI_Allreduce(x, y, 40000, MPI_FLOAT, MPI_SUM, comms[thread]);
      for (int i = 0; i < 40000; ++i) CHECK(y[i] == (float)(i / 30 * size + size * (size - 1) / 2));
    }
  }
  free(a);
  free(b);
  --running;
  return NULL;
}

static void *look(void *argument) {
  (void)argument;
  while (running > 0) {
    int flag;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    if (flag) {
      const int n = count_of(&status, MPI_BYTE);
      CHECK(n == 700 || (n >= 66000 && n < 66000 + ROUNDS * 1000 + THREADS));
    }
    sched_yield();
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_t threads[THREADS], looker;
  pthread_create(&looker, NULL, look, NULL);
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  pthread_join(looker, NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("ok threads\n");
  MPI_Finalize();
  return 0;
}
