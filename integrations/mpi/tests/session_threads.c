/* SPDX-License-Identifier: Apache-2.0
 * A session with MPI_THREAD_MULTIPLE beside MPI_Init_thread with MPI_THREAD_SERIALIZED, begun
 * before it or after it (argv[1]): a thread sends by the session's communicator while the main
 * thread does by MPI_COMM_WORLD. */
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 300, ROOM = 200000 };
static int rank;

static int size_of(int round) { return round % 3 == 0 ? 700 : 66000 + 100 * round; }

static void exchange(MPI_Comm comm, unsigned seed) {
  unsigned char *a = malloc(ROOM), *b = malloc(ROOM);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request requests[2];
    MPI_Status status;
    const int n = size_of(round);
    fill(a, (size_t)n, TEXT, seed + (unsigned)(10 * round + rank));
    MPI_Irecv(b, ROOM, MPI_BYTE, 1 - rank, round, comm, &requests[0]);
    MPI_Isend(a, n, MPI_BYTE, 1 - rank, round, comm, &requests[1]);
    for (int flag = 0; !flag;) MPI_Test(&requests[0], &flag, &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    CHECK(count_of(&status, MPI_BYTE) == n);
    CHECK(filled(b, (size_t)n, TEXT, seed + (unsigned)(10 * round + 1 - rank)));
  }
  free(a), free(b);
}

static MPI_Session begin(void) {
  MPI_Session session;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  return session;
}

static int has_threads(MPI_Session session) {
  char level[64] = "";
  int size = sizeof level, found;
  MPI_Info info;
  MPI_Session_get_info(session, &info);
  MPI_Info_get_string(info, "thread_level", &size, level, &found);
  MPI_Info_free(&info);
  return found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

static void *work(void *comm) {
  exchange(*(MPI_Comm *)comm, 1000000);
  return NULL;
}

int main(int argc, char **argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  const int before = argc > 1 && strcmp(argv[1], "before") == 0;
  int level;
  if (before) session = begin();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  if (!before) session = begin();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "session_threads.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                             &comm);
  MPI_Group_free(&group);
  const int threads = has_threads(session);
  pthread_t thread;
  if (threads) pthread_create(&thread, NULL, work, &comm);
  exchange(MPI_COMM_WORLD, 1);
  if (threads) pthread_join(thread, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("ok session_threads: world %d, %s\n", level, threads ? "multiple" : "less");
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  MPI_Finalize();
  return 0;
}
