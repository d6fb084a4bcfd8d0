/* SPDX-License-Identifier: Apache-2.0
 * Point-to-point semantics, one function each. Every rank runs every function; what is received is
 * known in advance. Passes with any MPI, with and without the interposer. */
#include "check.h"

static int rank, size, peer; /* peer: 0 <-> 1; others take no part */

#define KIB 1024
#define BIG (300 * KIB)

static unsigned char *buf, *out;

/* The number of bytes that reach the ends of all the ways a message can go. */
static const int sizes[] = {
    0, 1, 33, 1000, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 200 * KIB, 1024 * KIB + 3};
#define N_SIZES ((int)(sizeof sizes / sizeof *sizes))

static void send_as(int how, const void *data, int n, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (how) {
    case 0:
      MPI_Send(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Ssend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 2:
      MPI_Isend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case 3:
      MPI_Issend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case 4:
      MPI_Bsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 5:
      MPI_Irsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case 6:
      MPI_Send_init(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
      break;
    case 7:
      MPI_Rsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    default:
      MPI_Ibsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  }
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
#define N_SENDS 9

static void receive_as(int how, void *data, int capacity, int from, int tag, MPI_Status *status) {
  MPI_Request request;
  MPI_Message message;
  switch (how) {
    case 0:
      MPI_Recv(data, capacity, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
      return;
    case 1:
      MPI_Irecv(data, capacity, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      break;
    case 2:
      MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, status);
      MPI_Mrecv(data, capacity, MPI_BYTE, &message, status);
      CHECK(message == MPI_MESSAGE_NULL);
      return;
    case 3:
      MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, status);
      MPI_Imrecv(data, capacity, MPI_BYTE, &message, &request);
      CHECK(message == MPI_MESSAGE_NULL);
      break;
    case 4:
      MPI_Recv_init(data, capacity, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      MPI_Start(&request);
      MPI_Wait(&request, status);
      MPI_Request_free(&request);
      return;
    case 5:
      MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, data, capacity, MPI_BYTE, from, tag,
                   MPI_COMM_WORLD, status);
      return;
    case 6:
      MPI_Probe(from, tag, MPI_COMM_WORLD, status);
      MPI_Recv(data, capacity, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
      return;
    default:
      MPI_Probe(from, tag, MPI_COMM_WORLD, status);
      MPI_Irecv(data, capacity, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
  }
  MPI_Wait(&request, status);
  CHECK(request == MPI_REQUEST_NULL);
}
#define N_RECEIVES 8

static void every_call_and_size(void) {
  for (int s = 0; s < N_SENDS; ++s) {
    for (int r = 0; r < N_RECEIVES; ++r) {
      for (int i = 0; i < N_SIZES; ++i) {
        if ((i == N_SIZES - 1 || i < 3) && s > 2 && r > 2) continue;
        const int n = sizes[i], kind = (i + r) % 3 == 0 ? NOISE : TEXT, tag = 10 + r;
        const unsigned seed = (unsigned)(s * 100 + r * 10 + i);
        if (rank == 0) {
          if (s == 5 || s == 7)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          fill(buf, (size_t)n, kind, seed);
          send_as(s, buf, n, 1, tag);
        } else if (rank == 1) {
          MPI_Status status;
          memset(out, 0xEE, (size_t)n + 100);
          if (s == 5 || s == 7) { /* a ready send needs its receive posted */
            MPI_Request request;
            MPI_Irecv(out, n + 100, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            MPI_Wait(&request, &status);
          } else {
            receive_as(r, out, n + 100, (s + i) % 2 ? MPI_ANY_SOURCE : 0,
                       (r + i) % 2 ? MPI_ANY_TAG : tag, &status);
          }
          CHECK(count_of(&status, MPI_BYTE) == n);
          CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == tag);
          CHECK(filled(out, (size_t)n, kind, seed));
          if (r != 4 && n < 64 * KIB) CHECK(all_bytes(out + n, 100, 0xEE));
        }
      }
    }
  }
}

static void bytes_after_the_message_stay(void) {
  const int n = 200 * KIB, room = n + 5000;
  if (rank == 0) {
    fill(buf, (size_t)n, TEXT, 3);
    for (int i = 0; i < 2; ++i) MPI_Send(buf, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else if (rank == 1) {
    for (int i = 0; i < 2; ++i) {
      memset(out, 0x5A, (size_t)room);
      MPI_Recv(out, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(filled(out, (size_t)n, TEXT, 3) && all_bytes(out + n, 5000, 0x5A));
    }
  }
}

static void wildcards_keep_order(void) {
  enum { EACH = 12 };
  if (rank == 0) {
    int next[64] = {0};
    for (int i = 0; i < EACH * (size - 1); ++i) {
      MPI_Status status;
      if (i % 3 == 1) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        const int n = count_of(&status, MPI_BYTE), from = status.MPI_SOURCE;
        CHECK(n == 1000 + (next[from] % 4) * 60 * KIB);
      }
      MPI_Recv(out, 2 * BIG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      const int from = status.MPI_SOURCE, k = next[from]++;
      CHECK(status.MPI_TAG == k % 5);
      CHECK(count_of(&status, MPI_BYTE) == 1000 + (k % 4) * 60 * KIB);
      CHECK(filled(out, (size_t)(1000 + (k % 4) * 60 * KIB), TEXT, (unsigned)(from * 100 + k)));
    }
  } else {
    for (int k = 0; k < EACH; ++k) {
      fill(buf, (size_t)(1000 + (k % 4) * 60 * KIB), TEXT, (unsigned)(rank * 100 + k));
      MPI_Send(buf, 1000 + (k % 4) * 60 * KIB, MPI_BYTE, 0, k % 5, MPI_COMM_WORLD);
    }
  }
}

/* A probe for a later message must not let a wildcard overtake an earlier one. */
static void stash_keeps_order(void) {
  const int n = 100 * KIB;
  if (rank == 0) {
    MPI_Request requests[4];
    for (int tag = 0; tag < 4; ++tag) {
      fill(buf + tag * n, (size_t)n, TEXT, (unsigned)tag);
      MPI_Isend(buf + tag * n, tag == 1 ? 10 : n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[tag]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  } else if (rank == 1) {
    MPI_Status status;
    MPI_Request request, inactive;
    MPI_Message message;
    int flag = 0;
    MPI_Probe(0, 2, MPI_COMM_WORLD, &status);
    CHECK(count_of(&status, MPI_BYTE) == n && status.MPI_TAG == 2);
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, &status);
    CHECK(count_of(&status, MPI_BYTE) == n && status.MPI_TAG == 2);
    MPI_Recv(out, n, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_TAG == 0 && filled(out, (size_t)n, TEXT, 0));
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
    CHECK(status.MPI_TAG == 1 && count_of(&status, MPI_BYTE) == 10);
    MPI_Irecv(out, n, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Mrecv(out + n, n, MPI_BYTE, &message, &status);
    CHECK(filled(out + n, 10, TEXT, 1));
    MPI_Recv_init(out + 2 * n, n, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &inactive);
    MPI_Probe(0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&inactive);
    MPI_Request both[2] = {inactive, request};
    MPI_Status statuses[2];
    MPI_Waitall(2, both, statuses);
    CHECK(both[0] != MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
    CHECK(statuses[1].MPI_TAG == 2 && filled(out, (size_t)n, TEXT, 2));
    CHECK(statuses[0].MPI_TAG == 3 && filled(out + 2 * n, (size_t)n, TEXT, 3));
    CHECK(count_of(&statuses[0], MPI_BYTE) == n && count_of(&statuses[1], MPI_BYTE) == n);
    MPI_Request_free(&both[0]);
  }
}

static void derived_types(void) {
  const int blocks = 3000, doubles = blocks * 8;
  MPI_Datatype vector, contiguous, pair, shifted;
  MPI_Type_vector(blocks, 8, 16, MPI_DOUBLE, &vector);
  MPI_Type_contiguous(8, MPI_DOUBLE, &contiguous);
  MPI_Type_create_resized(contiguous, 0, 128, &shifted);
  MPI_Type_dup(MPI_DOUBLE_INT, &pair);
  MPI_Type_commit(&vector);
  MPI_Type_commit(&contiguous);
  MPI_Type_commit(&shifted);
  double *from = (double *)buf, *to = (double *)out;
  for (int way = 0; way < 6; ++way) {
    if (rank == 0) {
      for (int i = 0; i < 2 * doubles; ++i) from[i] = i / 100 + way;
      if (way == 0) MPI_Send(from, doubles, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
      if (way == 1) MPI_Send(from, 1, vector, 1, 1, MPI_COMM_WORLD);
      if (way == 2) MPI_Send(from, blocks, contiguous, 1, 1, MPI_COMM_WORLD);
      if (way == 3) MPI_Send(from, blocks, shifted, 1, 1, MPI_COMM_WORLD);
      if (way >= 4) MPI_Send(from, doubles / 2 + 3, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
      const int strided = way == 1 || way == 3;
      const int n = way >= 4 ? doubles / 2 + 3 : doubles;
      {
        MPI_Status status;
        MPI_Request request;
        memset(out, 0xEE, (size_t)doubles * 16);
        if (way % 2) {
          MPI_Irecv(to, way == 3 ? blocks : 1, way == 3 ? shifted : vector, 0, 1, MPI_COMM_WORLD,
                    &request);
          MPI_Wait(&request, &status);
        } else {
          MPI_Recv(to, 1, vector, 0, 1, MPI_COMM_WORLD, &status);
        }
        int elements;
        MPI_Get_elements(&status, vector, &elements);
        CHECK(elements == n && count_of(&status, MPI_DOUBLE) == n);
        CHECK(way == 3 || count_of(&status, vector) == (way >= 4 ? MPI_UNDEFINED : 1));
        for (int i = 0; i < n; ++i) {
          const int source = strided ? i / 8 * 16 + i % 8 : i;
          CHECK(to[i / 8 * 16 + i % 8] == source / 100 + way);
        }
        CHECK(all_bytes(to + 8, 64, 0xEE)); /* gaps */
      }
    }
  }
  /* pairs have gaps, and absolute addresses have no buffer */
  struct {
    double value;
    int index;
  } *pairs = (void *)buf, *into = (void *)out;
  const int n = 20000;
  if (rank == 0) {
    for (int i = 0; i < n; ++i) pairs[i].value = i / 9, pairs[i].index = i;
    MPI_Send(pairs, n, pair, 1, 2, MPI_COMM_WORLD);
    for (int i = 0; i < doubles; ++i) from[i] = i / 100 + 5;
    MPI_Send(from, doubles, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Datatype absolute;
    MPI_Aint where;
    int length = doubles;
    MPI_Recv(into, n, MPI_DOUBLE_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; ++i) CHECK(into[i].value == i / 9 && into[i].index == i);
    MPI_Get_address(to, &where);
    MPI_Type_create_hindexed(1, &length, &where, MPI_DOUBLE, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Request request;
    MPI_Irecv(MPI_BOTTOM, 1, absolute, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Type_free(&absolute); /* legal while the receive is on its way */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < doubles; ++i) CHECK(to[i] == i / 100 + 5);
  }
  MPI_Type_free(&vector);
  MPI_Type_free(&contiguous);
  MPI_Type_free(&shifted);
  MPI_Type_free(&pair);
}

/* Types of every make, sent as bytes that compress: what arrives, packed, is what MPI packs. The
 * receiver takes it packed or into the same layout. */
static MPI_Datatype make_type(int which, int *dims) {
  MPI_Datatype type = MPI_DATATYPE_NULL, inner;
  enum { N = 4000 };
  static int lengths[N], places[N];
  static MPI_Aint addresses[N];
  for (int i = 0; i < N; ++i) {
    lengths[i] = 1 + i % 7;
    places[i] = (N - 1 - i) * 9; /* backwards: in another order than memory's */
    addresses[i] = 8 * (MPI_Aint)places[i];
  }
  switch (which) {
    case 0:
      MPI_Type_vector(N, 5, 9, MPI_FLOAT, &type);
      break;
    case 1:
      MPI_Type_create_hvector(N, 3, 56, MPI_DOUBLE, &type);
      break;
    case 2:
      MPI_Type_indexed(N, lengths, places, MPI_INT, &type);
      break;
    case 3:
      MPI_Type_create_hindexed(N, lengths, addresses, MPI_DOUBLE, &type);
      break;
    case 4:
      MPI_Type_create_indexed_block(N, 4, places, MPI_FLOAT, &type);
      break;
    case 5: {
      int counts[3] = {2, 1, 3};
      MPI_Aint at[3] = {0, 24, 40};
      MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_FLOAT};
      MPI_Type_create_struct(3, counts, at, types, &inner);
      MPI_Type_contiguous(N, inner, &type);
      MPI_Type_free(&inner);
      break;
    }
    case 6: {
      int sizes[3] = {dims[0], dims[1], dims[2]}, part[3] = {dims[0] / 2, dims[1] / 2, dims[2] / 2};
      int from[3] = {3, 5, 7};
      MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_C, MPI_DOUBLE, &type);
      break;
    }
    case 7:
      MPI_Type_vector(4, 1, 3, MPI_DOUBLE, &inner);
      MPI_Type_create_resized(inner, 0, 200, &type);
      MPI_Type_free(&inner);
      MPI_Type_vector(N / 4, 3, 3, type, &inner);
      MPI_Type_free(&type);
      type = inner;
      break;
    default: { /* the whole array: no gaps after all */
      int from[3] = {0, 0, 0};
      MPI_Type_create_subarray(3, dims, dims, from, MPI_ORDER_FORTRAN, MPI_FLOAT, &type);
    }
  }
  MPI_Type_commit(&type);
  return type;
}

static void packed(void) {
  int dims[3] = {40, 30, 50};
  if (rank > 1) return;
  double *values = (double *)buf;
  for (int which = 0; which < 9; ++which) {
    MPI_Datatype type = make_type(which, dims);
    MPI_Aint lower, extent, where;
    int bytes, place = 0;
    MPI_Type_size(type, &bytes);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower + extent < (4 << 20) && bytes >= 40000);
    unsigned char *expected = malloc((size_t)bytes), *into = out + (8 << 20);
    for (int i = 0; i < (4 << 20) / 8; ++i) values[i] = i / 50 + which;
    MPI_Pack(buf, 1, type, expected, bytes, &place, MPI_COMM_SELF);
    MPI_Datatype absolute;
    int one = 1;
    MPI_Get_address(buf, &where);
    MPI_Type_create_hindexed(1, &one, &where, type, &absolute);
    MPI_Type_commit(&absolute);
    for (int way = 0; way < 4; ++way) {
      MPI_Request request;
      MPI_Status status;
      if (rank == 0) {
        if (way == 0) MPI_Send(buf, 1, type, 1, 0, MPI_COMM_WORLD);
        if (way == 1) MPI_Isend(buf, 1, type, 1, 1, MPI_COMM_WORLD, &request);
        if (way == 2) MPI_Send(MPI_BOTTOM, 1, absolute, 1, 2, MPI_COMM_WORLD);
        if (way == 3) MPI_Bsend(buf, 1, type, 1, 3, MPI_COMM_WORLD);
        if (way == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
        continue;
      }
      memset(out, 0x44, 16 << 20);
      if (way % 2) {
        MPI_Recv(into, bytes, MPI_BYTE, 0, way, MPI_COMM_WORLD, &status);
      } else {
        MPI_Recv(out, 1, type, 0, way, MPI_COMM_WORLD, &status);
        CHECK(count_of(&status, type) == 1);
        place = 0;
        MPI_Pack(out, 1, type, into, bytes, &place, MPI_COMM_SELF);
        for (size_t i = 0; i < (4 << 20); ++i) CHECK(out[i] == 0x44 || out[i] == buf[i]);
        MPI_Unpack(memset(expected, 0x44, (size_t)bytes), bytes, (place = 0, &place), out, 1, type,
                   MPI_COMM_SELF);
        CHECK(all_bytes(out, 4 << 20, 0x44)); /* the gaps stayed */
        place = 0;
        MPI_Pack(buf, 1, type, expected, bytes, &place, MPI_COMM_SELF);
      }
      CHECK(count_of(&status, MPI_BYTE) == bytes && memcmp(into, expected, (size_t)bytes) == 0);
    }
    MPI_Type_free(&absolute);
    MPI_Type_free(&type);
    free(expected);
  }
}

enum { MANY = 9 };

static int size_of(int i) { return i % 3 == 0 ? 500 : 70 * KIB + i; }

static void send_many(void) {
  MPI_Request requests[MANY];
  for (int i = 0; i < MANY; ++i) {
    fill(buf + i * BIG, (size_t)size_of(i), i % 4 == 3 ? NOISE : TEXT, (unsigned)i);
    MPI_Isend(buf + i * BIG, size_of(i), MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
}

static void post_many(MPI_Request *requests) {
  for (int i = 0; i < MANY; ++i)
    MPI_Irecv(out + i * BIG, BIG, MPI_BYTE, i % 2 ? 0 : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
              &requests[i]);
}

static void check_one(int i, const MPI_Status *status) {
  if (status) CHECK(count_of(status, MPI_BYTE) == size_of(i) && status->MPI_TAG == i);
  CHECK(filled(out + i * BIG, (size_t)size_of(i), i % 4 == 3 ? NOISE : TEXT, (unsigned)i));
}

static void completions(void) {
  for (int how = 0; how < 11; ++how) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) send_many();
    if (rank != 1) continue;
    MPI_Request requests[MANY + 1];
    MPI_Status statuses[MANY], status;
    int indices[MANY], done = 0, n, flag = 0, index, seen[MANY] = {0};
    post_many(requests);
    requests[MANY] = MPI_REQUEST_NULL;
    switch (how) {
      case 0:
        MPI_Waitall(MANY, requests, statuses);
        for (int i = 0; i < MANY; ++i) check_one(i, &statuses[i]);
        break;
      case 1:
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; ++i) check_one(i, NULL);
        break;
      case 2:
        while (!flag) MPI_Testall(MANY, requests, &flag, statuses);
        for (int i = 0; i < MANY; ++i) check_one(i, &statuses[i]);
        break;
      case 3:
        while (!flag) MPI_Testall(MANY, requests, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; ++i) check_one(i, NULL);
        break;
      case 4:
      case 5:
        while (done < MANY) {
          if (how == 4) {
            MPI_Waitsome(MANY, requests, &n, indices, statuses);
          } else {
            MPI_Testsome(MANY, requests, &n, indices, statuses);
          }
          CHECK(n != MPI_UNDEFINED);
          for (int k = 0; k < n; ++k, ++done) check_one(indices[k], &statuses[k]);
        }
        MPI_Waitsome(MANY, requests, &n, indices, statuses);
        CHECK(n == MPI_UNDEFINED);
        break;
      case 6:
      case 7:
        while (done < MANY) {
          flag = 1;
          if (how == 6) {
            MPI_Waitany(MANY + 1, requests, &index, &status);
          } else {
            MPI_Testany(MANY + 1, requests, &index, &flag, &status);
          }
          if (!flag) continue;
          CHECK(index >= 0 && index < MANY && !seen[index]);
          seen[index] = 1;
          check_one(index, &status);
          ++done;
        }
        MPI_Waitany(MANY, requests, &index, &status);
        CHECK(index == MPI_UNDEFINED);
        break;
      case 8:
        for (int i = MANY - 1; i >= 0; --i) {
          for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, i % 2 ? &status : MPI_STATUS_IGNORE);
          check_one(i, i % 2 ? &status : NULL);
        }
        break;
      case 9:
        for (int i = 0; i < MANY; ++i) {
          for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &status);
          check_one(i, &status);
          CHECK(requests[i] != MPI_REQUEST_NULL);
          MPI_Request_get_status(requests[i], &flag, &status);
          CHECK(flag);
          MPI_Wait(&requests[i], &status);
          check_one(i, &status);
        }
        break;
      default:
        for (int i = 0; i < MANY; ++i) {
          MPI_Wait(&requests[i], i % 2 ? MPI_STATUS_IGNORE : &status);
          check_one(i, i % 2 ? NULL : &status);
        }
    }
    for (int i = 0; i < MANY; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
  }
}

static void persistent(void) {
  enum { N = 4, ROUNDS = 5 };
  const int n = 150 * KIB;
  MPI_Request requests[N];
  MPI_Status statuses[N];
  if (rank > 1) return;
  for (int i = 0; i < N; ++i) {
    if (rank == 0) {
      MPI_Send_init(buf + i * n, n, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    } else {
      MPI_Recv_init(out + i * n, n, MPI_BYTE, i % 2 ? 0 : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                    &requests[i]);
    }
  }
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 0) {
      MPI_Request sent[N];
      for (int i = 0; i < N; ++i) {
        fill(buf + i * n, (size_t)n, TEXT, (unsigned)(round * 10 + i));
        if (round == 4) continue;
        MPI_Isend(buf + i * n, n, MPI_BYTE, 1, i, MPI_COMM_WORLD, &sent[i]);
      }
      if (round == 4) {
        MPI_Startall(N, requests);
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
      } else {
        MPI_Waitall(N, sent, MPI_STATUSES_IGNORE);
      }
      continue;
    }
    if (round == 1) MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (round % 2) {
      MPI_Startall(N, requests);
    } else {
      for (int i = 0; i < N; ++i) MPI_Start(&requests[i]);
    }
    if (round == 2) {
      for (int done = 0, index; done < N; ++done) {
        MPI_Waitany(N, requests, &index, &statuses[0]);
        CHECK(statuses[0].MPI_TAG == index && count_of(&statuses[0], MPI_BYTE) == n);
      }
    } else if (round == 3) {
      for (int done = 0, k, which[N]; done < N; done += k)
        MPI_Testsome(N, requests, &k, which, statuses);
    } else {
      MPI_Waitall(N, requests, statuses);
      for (int i = 0; i < N; ++i) CHECK(count_of(&statuses[i], MPI_BYTE) == n);
    }
    for (int i = 0; i < N; ++i) {
      CHECK(requests[i] != MPI_REQUEST_NULL);
      CHECK(filled(out + i * n, (size_t)n, TEXT, (unsigned)(round * 10 + i)));
    }
    MPI_Waitall(N, requests, statuses); /* inactive: at once, empty */
    CHECK(count_of(&statuses[0], MPI_BYTE) == 0 && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
  }
  for (int i = 0; i < N; ++i) MPI_Request_free(&requests[i]);
}

/* A buffered send needs no more of the attached buffer than MPI says, and detaching waits. */
static void buffered_sends(void) {
  const int n = 400 * KIB;
  void *attached;
  int attached_size, packed_size;
  if (rank > 1) return;
  if (rank == 0) {
    MPI_Buffer_detach(&attached, &attached_size);
    MPI_Pack_size(n, MPI_BYTE, MPI_COMM_WORLD, &packed_size);
    const int exact = 2 * (packed_size + MPI_BSEND_OVERHEAD);
    void *own = malloc((size_t)exact);
    for (int kind = TEXT; kind <= NOISE; ++kind) {
      MPI_Request request;
      void *back;
      int back_size;
      MPI_Buffer_attach(own, exact);
      fill(buf, (size_t)n, kind, 1);
      MPI_Bsend(buf, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      fill(buf, (size_t)n, kind, 2); /* the message was copied */
      MPI_Ibsend(buf, n, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      memset(buf, 0, (size_t)n);
      MPI_Ssend(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
      MPI_Buffer_detach(&back, &back_size);
      CHECK(back == own && back_size == exact);
    }
    free(own);
    MPI_Buffer_attach(attached, attached_size);
  } else {
    for (int kind = TEXT; kind <= NOISE; ++kind) {
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int tag = 2; tag > 0; --tag) {
        memset(out, 0, (size_t)n);
        MPI_Recv(out, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(out, (size_t)n, kind, (unsigned)tag));
      }
    }
  }
}

enum { STARTS = 5 };

static void start_kinds(MPI_Request *requests, int n) {
  MPI_Send_init(buf, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Ssend_init(buf + n, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Bsend_init(buf + 2 * n, n, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Rsend_init(buf + 3 * n, n, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[3]);
  MPI_Send_init(buf + 4 * n, 100, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[4]);
}

/* Every kind, completed in every way; some rounds do not compress, and one request is small. */
static void persistent_sends(void) {
  const int n = 150 * KIB;
  MPI_Request requests[STARTS + 1], kept[STARTS];
  MPI_Status statuses[STARTS], status;
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  if (rank > 1) {
    MPI_Comm_free(&dup);
    return;
  }
  if (rank == 0) {
    start_kinds(requests, n);
    requests[STARTS] = MPI_REQUEST_NULL;
    memcpy(kept, requests, sizeof kept);
  }
  for (int round = 0; round < 10; ++round) {
    const int kind = round % 4 == 1 ? NOISE : TEXT;
    if (rank == 1) {
      MPI_Request receives[STARTS];
      memset(out, 0, (size_t)(STARTS * n));
      for (int i = 0; i < STARTS; ++i)
        MPI_Irecv(out + i * n, n, MPI_BYTE, 0, i, MPI_COMM_WORLD, &receives[i]);
      MPI_Send(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
      MPI_Waitall(STARTS, receives, statuses);
      for (int i = 0; i < STARTS; ++i) {
        const int size = i == 4 ? 100 : n;
        CHECK(count_of(&statuses[i], MPI_BYTE) == size);
#ifdef OPEN_MPI /* 4.1 sends the data of the first start again and again */
        if (i == 2 && round > 0) continue;
#endif
        CHECK(filled(out + i * n, (size_t)size, kind, (unsigned)(round * 10 + i)));
      }
      continue;
    }
    for (int i = 0; i < STARTS; ++i)
      fill(buf + i * n, i == 4 ? 100 : (size_t)n, kind, (unsigned)(round * 10 + i));
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (round % 2) {
      MPI_Startall(STARTS, requests);
    } else {
      for (int i = 0; i < STARTS; ++i) MPI_Start(&requests[i]);
    }
    int done = 0, k, index, flag, which[STARTS];
    switch (round) {
      case 0:
        MPI_Waitall(STARTS + 1, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
      case 2:
        for (int i = 0; i < STARTS; ++i)
          MPI_Wait(&requests[i], round == 1 ? &status : MPI_STATUS_IGNORE);
        break;
      case 3:
        for (int i = STARTS - 1; i >= 0; --i)
          for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &status);
        break;
      case 4:
        for (; done < STARTS; ++done) {
          MPI_Waitany(STARTS + 1, requests, &index, &status);
          CHECK(index >= 0 && index < STARTS);
        }
        MPI_Waitany(STARTS + 1, requests, &index, &status);
        CHECK(index == MPI_UNDEFINED);
        break;
      case 5:
        while (done < STARTS) {
          MPI_Testany(STARTS, requests, &index, &flag, &status);
          done += flag;
        }
        break;
      case 6:
        while (done < STARTS) {
          MPI_Waitsome(STARTS, requests, &k, which, statuses);
          done += k;
        }
        MPI_Waitsome(STARTS, requests, &k, which, statuses);
        CHECK(k == MPI_UNDEFINED);
        break;
      case 7:
        while (done < STARTS) {
          MPI_Testsome(STARTS, requests, &k, which, MPI_STATUSES_IGNORE);
          done += k;
        }
        break;
      case 8:
        for (flag = 0; !flag;) MPI_Testall(STARTS, requests, &flag, statuses);
        break;
      default:
        for (int i = 0; i < STARTS; ++i) {
          for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &status);
          MPI_Wait(&requests[i], &status);
        }
    }
    CHECK(memcmp(kept, requests, sizeof kept) == 0);
    MPI_Waitall(STARTS, requests, statuses); /* inactive: at once */
  }
  /* freed while it is on its way, and with its type and communicator gone */
  MPI_Datatype vector;
  MPI_Type_vector(n / 16, 8, 16, MPI_BYTE, &vector);
  MPI_Type_commit(&vector);
  if (rank == 0) {
    fill(buf, (size_t)n, TEXT, 77);
    MPI_Send_init(buf, n, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &requests[5]);
    MPI_Start(&requests[5]);
    MPI_Request_free(&requests[5]);
    CHECK(requests[5] == MPI_REQUEST_NULL);
    MPI_Send_init(buf, 1, vector, 1, 7, dup, &requests[5]);
  }
  MPI_Type_free(&vector);
  if (rank == 0) {
    MPI_Start(&requests[5]);
    MPI_Wait(&requests[5], MPI_STATUS_IGNORE);
    MPI_Ssend(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
    for (int i = 0; i <= STARTS; ++i) MPI_Request_free(&requests[i]);
  } else {
    MPI_Recv(out, n, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &status);
    CHECK(filled(out, (size_t)n, TEXT, 77));
    MPI_Recv(out, n, MPI_BYTE, 0, 7, dup, &status);
    CHECK(count_of(&status, MPI_BYTE) == n / 16 * 8);
    for (int i = 0; i < n / 16 * 8; ++i)
      CHECK(out[i] == byte_at(TEXT, 77, (size_t)(i / 8 * 16 + i % 8)));
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &status);
  }
  MPI_Comm_free(&dup);
}

static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int flag;
  if (rank == 1) {
    memset(out, 0x11, BIG);
    MPI_Irecv(out, BIG, MPI_BYTE, 0, 77, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && all_bytes(out, BIG, 0x11));
    MPI_Irecv(out, BIG, MPI_BYTE, 0, 78, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && filled(out, BIG, TEXT, 4));
  } else if (rank == 0) {
    fill(buf, BIG, TEXT, 4);
    MPI_Send(buf, BIG, MPI_BYTE, 1, 78, MPI_COMM_WORLD);
  }
}

static void freed_requests(void) {
  MPI_Request request;
  if (rank == 0) {
    fill(buf, BIG, TEXT, 5);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(buf, BIG, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Ssend(buf, 1, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    memset(out, 0, BIG);
    MPI_Irecv(out, BIG, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
    MPI_Recv(out + BIG, 1, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* messages do not overtake: the freed receive matched first; give it calls to finish in */
    for (int i = 0, flag; i < 1000000 && !filled(out, BIG, TEXT, 5); ++i)
      MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(filled(out, BIG, TEXT, 5));
    MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
  }
}

static void nobody(void) {
  MPI_Status status;
  MPI_Request requests[2];
  int flag;
  MPI_Send(buf, BIG, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(out, BIG, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && count_of(&status, MPI_BYTE) == 0);
  MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Message message;
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(out, BIG, MPI_BYTE, &message, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && message == MPI_MESSAGE_NULL);
  MPI_Isend(buf, BIG, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(out, BIG, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(buf, BIG, MPI_BYTE, MPI_PROC_NULL, 0, out, BIG, MPI_BYTE, MPI_PROC_NULL, 0,
               MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Request null = MPI_REQUEST_NULL;
  MPI_Wait(&null, &status);
  CHECK(count_of(&status, MPI_BYTE) == 0);
}

static int class_of(int error) {
  int result;
  MPI_Error_class(error, &result);
  return result;
}

static void truncation(void) {
  const int n = 200 * KIB, room = 150 * KIB;
  enum { WAYS = 6 };
  if (rank == 0) {
    fill(buf, (size_t)n, TEXT, 9);
    for (int i = 0; i < WAYS; ++i) {
      MPI_Send(buf, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Send(buf, n, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    }
  } else if (rank == 1) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < WAYS; ++way) {
      MPI_Request requests[2];
      MPI_Status statuses[2];
      MPI_Message message;
      int error = MPI_SUCCESS, flag = 0, index;
      memset(out, 0x77, (size_t)n * 2);
      if (way == 1 || way == 2 || way == 3) {
        MPI_Irecv(out, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(out + n, n, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
      }
      if (way == 0) error = MPI_Recv(out, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (way == 1) error = MPI_Wait(&requests[0], &statuses[0]);
      if (way == 2) {
        error = MPI_Waitall(2, requests, statuses);
        CHECK(class_of(error) == MPI_ERR_IN_STATUS);
        if (class_of(statuses[1].MPI_ERROR) == MPI_ERR_PENDING) /* a library may stop early */
          CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
        else
          CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
        error = statuses[0].MPI_ERROR;
      }
      if (way == 3) {
        while (!flag && !error) error = MPI_Testany(1, requests, &index, &flag, &statuses[0]);
      }
      if (way == 4) {
        MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, &statuses[0]);
        error = MPI_Mrecv(out, room, MPI_BYTE, &message, &statuses[0]);
      }
      if (way == 5) {
        MPI_Probe(0, 1, MPI_COMM_WORLD, &statuses[0]);
        error = MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, out, room, MPI_BYTE, 0, 1,
                             MPI_COMM_WORLD, &statuses[0]);
      }
      CHECK(class_of(error) == MPI_ERR_TRUNCATE);
      /* Open MPI 4.1 itself writes behind the buffer here; the interposer must not */
      if (getenv("CHECK_OVERRUN")) CHECK(all_bytes(out + room, (size_t)(n - room), 0x77));
      if (way == 1 || way == 3) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      if (way == 0 || way > 3)
        MPI_Recv(out + n, n, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(filled(out + n, (size_t)n, TEXT, 9));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  }
}

static void wrong_arguments(void) {
  MPI_Request request;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(class_of(MPI_Send(buf, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
  CHECK(class_of(MPI_Send(buf, BIG, MPI_BYTE, size + 5, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
  CHECK(class_of(MPI_Send(buf, BIG, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_Send(buf, BIG, MPI_BYTE, peer, -7, MPI_COMM_WORLD)) == MPI_ERR_TAG);
  CHECK(class_of(MPI_Recv(out, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) ==
        MPI_ERR_COUNT);
  CHECK(class_of(MPI_Irecv(out, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &request)) ==
        MPI_ERR_TYPE);
  CHECK(class_of(MPI_Recv(out, BIG, MPI_BYTE, size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) ==
        MPI_ERR_RANK);
  CHECK(class_of(MPI_Bcast(buf, BIG, MPI_BYTE, size + 3, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
  CHECK(class_of(MPI_Send(buf, BIG, MPI_BYTE, 0, 0, MPI_COMM_NULL)) == MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void exchanges(void) {
  const int n = 180 * KIB, right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Status status;
  for (int round = 0; round < 3; ++round) {
    const int kind = round == 1 ? NOISE : TEXT;
    fill(buf, (size_t)n, kind, (unsigned)(rank * 7 + round));
    MPI_Sendrecv(buf, n, MPI_BYTE, right, round, out, n + 9, MPI_BYTE, left, round, MPI_COMM_WORLD,
                 &status);
    CHECK(count_of(&status, MPI_BYTE) == n && status.MPI_SOURCE == left);
    CHECK(filled(out, (size_t)n, kind, (unsigned)(left * 7 + round)));
    MPI_Sendrecv_replace(buf, n, MPI_BYTE, right, round, left, round, MPI_COMM_WORLD, &status);
    CHECK(count_of(&status, MPI_BYTE) == n && status.MPI_SOURCE == left);
    CHECK(filled(buf, (size_t)n, kind, (unsigned)(left * 7 + round)));
#ifdef HAS_ISENDRECV
    MPI_Request request;
    fill(buf, (size_t)n, kind, (unsigned)(rank * 7 + round));
    MPI_Isendrecv(buf, n, MPI_BYTE, right, 5, out, n, MPI_BYTE, left, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(count_of(&status, MPI_BYTE) == n &&
          filled(out, (size_t)n, kind, (unsigned)(left * 7 + round)));
    MPI_Isendrecv_replace(buf, n, MPI_BYTE, right, 6, left, 6, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(count_of(&status, MPI_BYTE) == n &&
          filled(buf, (size_t)n, kind, (unsigned)(left * 7 + round)));
    /* One half is with this rank itself, whose messages are not compressed. */
    MPI_Request both[2];
    unsigned char *in = out + n;
    fill(buf, (size_t)n, kind, (unsigned)(rank * 7 + round));
    memset(out, 0, 2 * (size_t)n);
    MPI_Isendrecv(buf, n, MPI_BYTE, rank, 7, out, n, MPI_BYTE, left, 7, MPI_COMM_WORLD, &both[0]);
    MPI_Isendrecv(buf, n, MPI_BYTE, right, 7, in, n, MPI_BYTE, rank, 7, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    CHECK(filled(out, (size_t)n, kind, (unsigned)(left * 7 + round)));
    CHECK(filled(in, (size_t)n, kind, (unsigned)(rank * 7 + round)));
#endif
  }
  MPI_Datatype vector;
  MPI_Type_vector(2000, 20, 40, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  int *ints = (int *)buf;
  for (int i = 0; i < 2000 * 40; ++i) ints[i] = i % 40 < 20 ? rank : -1;
  MPI_Sendrecv_replace(ints, 1, vector, right, 9, left, 9, MPI_COMM_WORLD, &status);
  for (int i = 0; i < 2000 * 40; ++i)
    CHECK(i / 40 == 1999 && i % 40 >= 20 ? 1 : ints[i] == (i % 40 < 20 ? left : -1));
  MPI_Type_free(&vector);
}

static void communicators(void) {
  const int n = 120 * KIB;
  MPI_Comm dup, half, inter, again;
  MPI_Status status;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* ranks reversed */
  fill(buf, (size_t)n, TEXT, (unsigned)rank);
  MPI_Request request;
  if (rank < 2) {
    MPI_Isend(buf, n, MPI_BYTE, peer, 3, dup, &request);
    MPI_Probe(peer, 3, dup, &status);
    CHECK(count_of(&status, MPI_BYTE) == n);
    int flag;
    MPI_Iprobe(peer, 3, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag); /* another communicator */
    MPI_Recv(out, n, MPI_BYTE, peer, 3, dup, &status);
    CHECK(filled(out, (size_t)n, TEXT, (unsigned)peer));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  int half_rank, half_size;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  if (half_size > 1) {
    const int to = (half_rank + 1) % half_size, from = (half_rank + half_size - 1) % half_size;
    unsigned seed = (unsigned)half_rank + 50;
    fill(buf, (size_t)n, TEXT, seed);
    MPI_Sendrecv(buf, n, MPI_BYTE, to, 0, out, n, MPI_BYTE, from, 0, half, &status);
    CHECK(filled(out, (size_t)n, TEXT, (unsigned)from + 50));
  }
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
                       rank % 2 ? (size - 1) / 2 * 2 : (size - 2) / 2 * 2 + 1, 12, &inter);
  int remote_size;
  MPI_Comm_remote_size(inter, &remote_size);
  if (half_rank < remote_size && half_rank < half_size) {
    fill(buf, (size_t)n, TEXT, (unsigned)rank);
    MPI_Isend(buf, n, MPI_BYTE, half_rank, 4, inter, &request);
    MPI_Recv(out, n, MPI_BYTE, MPI_ANY_SOURCE, 4, inter, &status);
    CHECK(status.MPI_SOURCE == half_rank && count_of(&status, MPI_BYTE) == n);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
  for (int i = 0; i < 20; ++i) { /* handle values come back for other groups */
    MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? 0 : rank, 0, &again);
    int again_size;
    MPI_Comm_size(again, &again_size);
    if (rank < 2 && again_size > 1) {
      MPI_Sendrecv(buf, n, MPI_BYTE, peer, 0, out, n, MPI_BYTE, peer, 0, again, &status);
    }
    MPI_Comm_free(&again);
  }
  /* a message to oneself */
  fill(buf, (size_t)n, TEXT, 8);
  MPI_Isend(buf, n, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
  MPI_Recv(out, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(filled(out, (size_t)n, TEXT, 8));
}

#if MPI_VERSION >= 4
/* Types that large-count functions made: only such functions tell what they are made of. */
static void types_of_large_counts(void) {
  enum { BLOCKS = 2000, BLOCK = 30 };
  MPI_Datatype gaps, pairs;
  MPI_Type_contiguous_c(2, MPI_INT, &pairs);
  MPI_Type_vector_c(BLOCKS, BLOCK / 2, BLOCK, pairs, &gaps);
  MPI_Type_commit(&gaps);
  int *ints = (int *)buf, *got = (int *)out;
  for (int i = 0; rank == 0 && i < BLOCKS * BLOCK * 2; ++i) ints[i] = i / 100;
  for (int i = 0; rank == 0 && i < 3; ++i) MPI_Send(ints, 1, gaps, 1, 4, MPI_COMM_WORLD);
  for (int i = 0; rank == 1 && i < 3; ++i) {
    MPI_Request request;
    MPI_Message message;
    memset(out, 0xFF, BLOCKS * BLOCK * 2 * sizeof(int));
    if (i == 0) MPI_Recv(got, 1, gaps, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i > 0) MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    if (i == 1) MPI_Mrecv(got, 1, gaps, &message, MPI_STATUS_IGNORE);
    if (i == 2) {
      MPI_Imrecv(got, 1, gaps, &message, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < BLOCKS * BLOCK * 2 - BLOCK; ++k)
      CHECK(got[k] == (k % (2 * BLOCK) < BLOCK ? k / 100 : -1));
  }
  MPI_Type_free(&gaps);
  MPI_Type_free(&pairs);
}
#endif

static void large_counts(void) {
#if MPI_VERSION >= 4
  const MPI_Count n = 170 * KIB;
  MPI_Request request;
  MPI_Status status;
  MPI_Count got;
  if (rank == 0) {
    fill(buf, (size_t)n, TEXT, 2);
    MPI_Send_c(buf, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Ssend_c(buf, n / 4, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    MPI_Isend_c(buf, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv_c(buf, n, MPI_BYTE, 1, 0, out, n, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                   &status);
  } else if (rank == 1) {
    for (int i = 0; i < 4; ++i) {
      MPI_Message message;
      memset(out, 0, (size_t)n);
      if (i == 0) MPI_Recv_c(out, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
      if (i == 1) {
        MPI_Irecv_c(out, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
      }
      if (i == 2) {
        MPI_Mprobe(0, 0, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv_c(out, n, MPI_BYTE, &message, &status);
      }
      if (i == 3) {
        MPI_Recv_init_c(out, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        MPI_Request_free(&request);
      }
      MPI_Get_count_c(&status, MPI_BYTE, &got);
      CHECK(got == n && filled(out, (size_t)n, TEXT, 2));
    }
  }
  types_of_large_counts();
#endif
}

static const struct {
  const char *name;
  void (*run)(void);
} tests[] = {
    {"every_call_and_size", every_call_and_size},
    {"bytes_after_the_message_stay", bytes_after_the_message_stay},
    {"wildcards_keep_order", wildcards_keep_order},
    {"stash_keeps_order", stash_keeps_order},
    {"derived_types", derived_types},
    {"completions", completions},
    {"persistent", persistent},
    {"buffered_sends", buffered_sends},
    {"persistent_sends", persistent_sends},
    {"packed", packed},
    {"cancelled", cancelled},
    {"freed_requests", freed_requests},
    {"nobody", nobody},
    {"truncation", truncation},
    {"wrong_arguments", wrong_arguments},
    {"exchanges", exchanges},
    {"communicators", communicators},
    {"large_counts", large_counts},
};

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "threads") == 0) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  peer = rank ^ 1;
  const size_t room = 16u << 20;
  buf = malloc(room);
  out = malloc(room);
  char *attached = malloc(room);
  memset(buf, 0, room);
  memset(out, 0, room);
  MPI_Buffer_attach(attached, (int)room);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    tests[i].run();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  void *address;
  int attached_size;
  MPI_Buffer_detach(&address, &attached_size);
  MPI_Finalize();
  free(buf);
  free(out);
  free(attached);
  return 0;
}
