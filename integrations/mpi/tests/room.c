/* SPDX-License-Identifier: Apache-2.0
 * There is no memory to receive beside the user's buffer, or to send a copy of it: the call says
 * so, and nothing is touched; called again with memory it does its work. memory.c is preloaded and
 * refuses memory on rank 1, whose buffers lie on an emulated GPU, or on the cores with gaps.
 *   room        all of it
 *   room sends  what is to be sent, before anything else took memory
 *   room late   pieces whose receiver does not take them: both ranks are told */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "check.h"

enum { N = 300000, LARGE = 3000000, PLUGS = 6, MOST = 256 };
#define REFUSED "70000"

static void *(*device_alloc)(int, size_t);
static int (*copy)(void *, const void *, size_t);
static void (*device_free)(void *);
static int rank;

/* What a call would find in the interposer's pool is held by requests: more of them after each call
 * than it can have left there. */
static MPI_Request plugs[MOST];
static int n_plugs;
static void *plug_memory;
static void plug(void) {
  for (int i = 0; i < PLUGS && n_plugs < MOST; ++i)
    MPI_Recv_init(plug_memory, N, MPI_BYTE, 0, 1000, MPI_COMM_WORLD, &plugs[n_plugs++]);
}
static void unplug(int most) {
  for (; n_plugs > 0 && most > 0; --most) MPI_Request_free(&plugs[--n_plugs]);
}

static int class_of(int error) {
  int class;
  MPI_Error_class(error, &class);
  return class;
}

/* One buffer of the victim: on a device, or on the cores with every second half of 4096 bytes. */
static int there;
static MPI_Datatype type; /* N bytes of it */
static unsigned char *buffer, *here;

static size_t place_of(size_t i) { return there ? i : i / 2048 * 4096 + i % 2048; }
static void set(int filled_in, unsigned seed) {
  memset(here, 0x55, 2 * N + 4096);
  for (size_t i = 0; filled_in && i < N; ++i) here[place_of(i)] = byte_at(TEXT, seed, i);
  CHECK(copy(buffer, here, there ? N : 2 * N + 4096) == 0);
}
static int holds(unsigned seed) {
  CHECK(copy(here, buffer, there ? N : 2 * N + 4096) == 0);
  for (size_t i = 0; i < N; ++i)
    if (here[place_of(i)] != byte_at(TEXT, seed, i)) return 0;
  return 1;
}
static int is_untouched(void) {
  CHECK(copy(here, buffer, there ? N : 2 * N + 4096) == 0);
  return all_bytes(here, there ? N : 2 * N + 4096, 0x55);
}

enum {
  RECV,
  IRECV,
  SENDRECV,
  REPLACE,
  RECV_INIT,
#ifdef HAS_ISENDRECV
  ISENDRECV,
  IREPLACE,
#endif
  MRECV,
  IMRECV,
  KINDS
};

static int replaces(int kind) {
#ifdef HAS_ISENDRECV
  if (kind == IREPLACE) return 1;
#endif
  return kind == REPLACE;
}

/* The call of this kind, whole: an error of its beginning is its error. */
static int receive(int kind, int tag, MPI_Message *message, const void *out) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_SUCCESS;
  MPI_Comm world = MPI_COMM_WORLD;
  switch (kind) {
    case RECV:
      return MPI_Recv(buffer, 1, type, 0, tag, world, MPI_STATUS_IGNORE);
    case IRECV:
      error = MPI_Irecv(buffer, 1, type, 0, tag, world, &request);
      break;
    case SENDRECV:
      return MPI_Sendrecv(out, N, MPI_BYTE, 0, tag, buffer, 1, type, 0, tag, world,
                          MPI_STATUS_IGNORE);
    case REPLACE:
      return MPI_Sendrecv_replace(buffer, 1, type, 0, tag, 0, tag, world, MPI_STATUS_IGNORE);
    case RECV_INIT:
      error = MPI_Recv_init(buffer, 1, type, 0, tag, world, &request);
      if (error) return error;
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return MPI_Request_free(&request);
#ifdef HAS_ISENDRECV
    case ISENDRECV:
      error = MPI_Isendrecv(out, N, MPI_BYTE, 0, tag, buffer, 1, type, 0, tag, world, &request);
      break;
    case IREPLACE:
      error = MPI_Isendrecv_replace(buffer, 1, type, 0, tag, 0, tag, world, &request);
      break;
#endif
    case MRECV:
      return MPI_Mrecv(buffer, 1, type, message, MPI_STATUS_IGNORE);
    default:
      error = MPI_Imrecv(buffer, 1, type, message, &request);
      break;
  }
  return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int exchanges(int kind) {
#ifdef HAS_ISENDRECV
  if (kind == ISENDRECV) return 1;
#endif
  return kind == SENDRECV || replaces(kind);
}

static void with_victim(int kind, int tag) {
  unsigned char *out = malloc(N);
  fill(out, N, TEXT, 9);
  if (rank == 0) {
    unsigned char *in = malloc(N);
    fill(in, N, TEXT, 3);
    MPI_Send(in, N, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    if (exchanges(kind)) {
      MPI_Recv(in, N, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(filled(in, N, TEXT, 9));
    }
    free(in);
  } else {
    MPI_Message message = MPI_MESSAGE_NULL;
    const int matched = kind == MRECV || kind == IMRECV;
    plug();
    set(replaces(kind), 9);
    setenv("MEMORY_REFUSED", REFUSED, 1);
    if (matched) MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    const int class = class_of(receive(kind, tag, &message, out));
    unsetenv("MEMORY_REFUSED");
    if (matched) { /* it is in the interposer's memory: a device takes it from there */
      CHECK(class == (there ? MPI_SUCCESS : MPI_ERR_NO_MEM));
    } else {
      CHECK(class == MPI_ERR_NO_MEM);
    }
    if (class == MPI_SUCCESS) {
      CHECK(holds(3));
    } else {
      CHECK(replaces(kind) ? holds(9) : is_untouched());
    }
    if (!matched) {
      CHECK(receive(kind, tag, &message, out) == MPI_SUCCESS);
      CHECK(holds(3));
    }
  }
  free(out);
}

/* What is to be sent and lies on a device. How many calls were refused. */
static int sends(int tag) {
  int refused = 0;
  for (int way = 0; way < 4; ++way) {
    if (rank == 0) {
      unsigned char *in = malloc(N);
      MPI_Recv(in, N, MPI_BYTE, 1, tag + way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(filled(in, N, TEXT, 5));
      free(in);
      continue;
    }
    set(1, 5);
    plug();
    for (int again = 0; again < 2; ++again) {
      MPI_Request request = MPI_REQUEST_NULL;
      int error;
      if (!again) setenv("MEMORY_REFUSED", REFUSED, 1);
      if (way == 0) {
        error = MPI_Ssend(buffer, N, MPI_BYTE, 0, tag + way, MPI_COMM_WORLD);
      } else if (way == 1) {
        error = MPI_Isend(buffer, N, MPI_BYTE, 0, tag + way, MPI_COMM_WORLD, &request);
      } else if (way == 2) {
        error = MPI_Send_init(buffer, N, MPI_BYTE, 0, tag + way, MPI_COMM_WORLD, &request);
        CHECK(error == MPI_SUCCESS);
        error = MPI_Start(&request);
      } else {
        error = MPI_Send(buffer, N, MPI_BYTE, 0, tag + way, MPI_COMM_WORLD);
      }
      unsetenv("MEMORY_REFUSED");
      /* a thread's own buffers may be large enough from before */
      CHECK(error == MPI_SUCCESS || (!again && class_of(error) == MPI_ERR_NO_MEM));
      if (request != MPI_REQUEST_NULL && !error) MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (way == 2) MPI_Request_free(&request);
      if (!error) break;
      ++refused;
    }
  }
  return refused;
}

/* A message in pieces with memory for one piece at a time: the sender waits for its buffer. */
static void pieces(int tag) {
  if (rank == 0) {
    unsigned char *in = malloc(LARGE);
    MPI_Recv(in, LARGE, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(in, LARGE, TEXT, 6));
    free(in);
    return;
  }
  unsigned char *data = malloc(LARGE);
  fill(data, LARGE, TEXT, 6);
  void *out = device_alloc(0, LARGE);
  CHECK(out && copy(out, data, LARGE) == 0);
  plug();
  unplug(1); /* a piece is as large as a receive, for the pool */
  setenv("MEMORY_REFUSED", REFUSED, 1);
  CHECK(MPI_Send(out, LARGE, MPI_BYTE, 0, tag, MPI_COMM_WORLD) == MPI_SUCCESS);
  unsetenv("MEMORY_REFUSED");
  unplug(MOST);
  device_free(out);
  free(data);
}

/* Its receiver has matched it, and then waits for the sender. */
static void late(int tag) {
  unsigned char *data = malloc(LARGE);
  int token = 7;
  if (rank == 0) {
    MPI_Request request;
    MPI_Recv(data, LARGE, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(data, LARGE, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_OTHER);
    MPI_Recv(&token, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(token == 8);
  } else {
    /* The first piece shrinks; the others are too large to leave before they are asked for. */
    fill(data, LARGE / 6, TEXT, 6);
    fill(data + LARGE / 6, LARGE - LARGE / 6, NOISE, 6);
    void *out = device_alloc(0, LARGE);
    CHECK(out && copy(out, data, LARGE) == 0);
    /* Codecs get their memory. */
    MPI_Send(out, LARGE, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) plug();
    unplug(1);
    setenv("MEMORY_REFUSED", REFUSED, 1);
    CHECK(class_of(MPI_Send(out, LARGE, MPI_BYTE, 0, tag, MPI_COMM_WORLD)) == MPI_ERR_NO_MEM);
    unsetenv("MEMORY_REFUSED");
    MPI_Barrier(MPI_COMM_WORLD);
    token = 8;
    MPI_Send(&token, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    unplug(MOST);
    device_free(out);
  }
  free(data);
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  device_alloc = (void *(*)(int, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_alloc");
  copy = (int (*)(void *, const void *, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_copy");
  device_free = (void (*)(void *))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_free");
  CHECK(device_alloc && copy && device_free);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(plug_memory = device_alloc(0, N));
  here = malloc(2 * N + 4096);
  const char *only = argc > 1 ? argv[1] : "";
  if (strcmp(only, "late") == 0) late(300);
  for (there = *only ? 1 : 0; there < 2; ++there) {
    if (there) {
      MPI_Type_contiguous(N, MPI_BYTE, &type);
      CHECK(buffer = device_alloc(0, N));
    } else {
      int lengths[N / 2048 + 1], at[N / 2048 + 1], n = 0;
      for (size_t i = 0; i < N; i += 2048, ++n) {
        lengths[n] = i + 2048 <= N ? 2048 : (int)(N - i);
        at[n] = (int)place_of(i);
      }
      MPI_Type_indexed(n, lengths, at, MPI_BYTE, &type);
      CHECK(buffer = malloc(2 * N + 4096));
    }
    MPI_Type_commit(&type);
    for (int kind = 0; kind < KINDS && !*only; ++kind) {
      with_victim(kind, 10 * there + kind);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(only, "sends") == 0) CHECK(sends(100) > 0 || rank == 0);
    if (there && !*only) {
      sends(100);
      pieces(200);
    }
    MPI_Type_free(&type);
    if (there)
      device_free(buffer);
    else
      free(buffer);
  }
  if (rank == 0) printf("ok room\n");
  device_free(plug_memory);
  MPI_Finalize();
  free(here);
  return 0;
}
