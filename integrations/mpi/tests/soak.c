/* SPDX-License-Identifier: Apache-2.0
 * A random program: point-to-point calls of every kind, collectives, data types and communicators,
 * all from one seed, so that every rank knows what it must receive, to the last byte. Floats hold
 * whole numbers: every order of adding them gives the same sum.
 *
 *   soak [--seed N] [--seconds S] [--steps N] [--warm N] [--largest BYTES] [--multiple]
 *
 * A difference ends the job and names seed and step. At the end rank 0 prints how many blocks of
 * memory the interposer had in the middle and at the end (live.c counts them; the largest of all
 * ranks), and how much was resident. The middle is not before step --warm, nor the end before twice
 * as many: until then steps come that are larger than all before. */
#include <complex.h>
#include <stddef.h>
#include <unistd.h>

#include "check.h"

typedef unsigned char byte;
typedef struct {
  uint64_t state;
} Random;

static uint64_t seed = 1;
static long step;
static const char *doing = "start";
static size_t largest = 2 << 20;
static int world_rank, world_size;

/* ---- random numbers: the same on every rank, or my own ---- */

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
static uint64_t mix3(uint64_t a, uint64_t b, uint64_t c) { return mix(mix(mix(a) + b) + c); }
static int below(Random *random, int n) {
  random->state = mix(random->state);
  return (int)((random->state >> 20) % (uint64_t)n);
}
static int one_in(Random *random, int n) { return below(random, n) == 0; }

static Random shared(uint64_t about) {
  const Random random = {mix3(seed, (uint64_t)step, about)};
  return random;
}
static Random own(uint64_t about) {
  const Random random = {mix3(seed ^ 0x5555, (uint64_t)step, about * 64 + (uint64_t)world_rank)};
  return random;
}

#define FAIL(...)                                                                                 \
  do {                                                                                            \
    fprintf(stderr,                                                                               \
            "soak: --seed %llu: step %ld (%s), rank %d, %s:%d: ", (unsigned long long)seed, step, \
            doing, world_rank, __FILE__, __LINE__);                                               \
    fprintf(stderr, __VA_ARGS__);                                                                 \
    fprintf(stderr, "\n");                                                                        \
    MPI_Abort(MPI_COMM_WORLD, 1);                                                                 \
  } while (0)

static void *room(size_t size) {
  void *memory = malloc(size + 64);
  if (!memory) FAIL("no memory for %zu bytes", size);
  return memory;
}

/* Sizes around every limit there is, and some large ones. */
static size_t any_size(Random *random) {
  static const size_t near[] = {0, 1, 33, 64, 4096, 65536, 131072, 524288, 1048576};
  size_t size;
  switch (below(random, 8)) {
    case 0:
      size = (size_t)below(random, 64);
      break;
    case 1:
    case 2:
      size = (size_t)below(random, 5000);
      break;
    case 3:
      size = (size_t)below(random, (int)largest);
      break;
    case 4:
      size = (size_t)below(random, 200000);
      break;
    default:
      size = near[below(random, 9)] + (size_t)below(random, 40);
      size -= size > 20 ? 20 : 0;
  }
  return size < largest ? size : largest;
}

/* ---- what messages hold ---- */

enum { ZEROS, WORDS, SMOOTH, RANDOM_BYTES, KINDS };

static void generate(int kind, uint64_t id, byte *to, size_t n) {
  static const char words[] = "the ranks of a job exchange what they know about the halo cells ";
  size_t i = 0;
  switch (kind) {
    case ZEROS:
      memset(to, 0, n);
      return;
    case WORDS:
      for (; i < n; ++i) to[i] = (byte)(words[(i + id) % (sizeof words - 1)] + (i / 997) % 3);
      return;
    case SMOOTH:
      for (; i < n; i += 4) {
        const float value = 0.25f * (float)((id % 1000) + i / 64);
        memcpy(to + i, &value, n - i < 4 ? n - i : 4);
      }
      return;
    default:
      for (; i < n; i += 8) {
        const uint64_t value = mix(id + i);
        memcpy(to + i, &value, n - i < 8 ? n - i : 8);
      }
  }
}

/* ---- data types: the type, and where its bytes lie ---- */

enum { MOST_BLOCKS = 8, GUARD = 0xEE };
typedef struct {
  MPI_Datatype type;
  int made, n_blocks;
  size_t offset[MOST_BLOCKS], length[MOST_BLOCKS]; /* of one, in the order of the type */
  size_t extent, size, basic;                      /* bytes of one; of one basic element */
} Layout;

typedef struct {
  MPI_Datatype type;
  size_t size;
} Basic;

static Basic basic_type(int i) {
  const Basic basics[] = {
      {MPI_BYTE, 1},  {MPI_CHAR, 1},   {MPI_SHORT, 2},   {MPI_INT, 4},
      {MPI_FLOAT, 4}, {MPI_DOUBLE, 8}, {MPI_INT64_T, 8}, {MPI_C_DOUBLE_COMPLEX, 16},
  };
  return basics[i % 8];
}

static Layout basic_layout(Basic basic) {
  Layout layout = {.type = basic.type, .n_blocks = 1, .extent = basic.size, .size = basic.size};
  layout.length[0] = layout.basic = basic.size;
  return layout;
}

static void block_layout(Layout *layout, Random *random, Basic basic, int as_struct) {
  const int n = 2 + below(random, MOST_BLOCKS - 2);
  int lengths[MOST_BLOCKS], places[MOST_BLOCKS], at = 0;
  MPI_Aint bytes[MOST_BLOCKS];
  MPI_Datatype types[MOST_BLOCKS];
  for (int i = 0; i < n; ++i) {
    lengths[i] = 1 + below(random, 3);
    places[i] = at;
    at += lengths[i] + below(random, 3);
  }
  layout->extent = (size_t)(places[n - 1] + lengths[n - 1]) * basic.size;
  if (one_in(random, 3)) { /* not in the order of memory */
    const int a = below(random, n), b = below(random, n);
    const int place = places[a], length = lengths[a];
    places[a] = places[b], lengths[a] = lengths[b];
    places[b] = place, lengths[b] = length;
  }
  layout->n_blocks = n;
  layout->size = 0;
  for (int i = 0; i < n; ++i) {
    layout->offset[i] = (size_t)places[i] * basic.size;
    layout->length[i] = (size_t)lengths[i] * basic.size;
    layout->size += layout->length[i];
    bytes[i] = (MPI_Aint)layout->offset[i];
    types[i] = basic.type;
  }
  if (as_struct) {
    MPI_Type_create_struct(n, lengths, bytes, types, &layout->type);
  } else if (one_in(random, 2)) {
    MPI_Type_create_hindexed(n, lengths, bytes, basic.type, &layout->type);
  } else {
    MPI_Type_indexed(n, lengths, places, basic.type, &layout->type);
  }
}

static void vector_layout(Layout *layout, Random *random, Basic basic, int resized) {
  const int n = 2 + below(random, 5), length = 1 + below(random, 4);
  const int stride = length + below(random, 4);
  MPI_Type_vector(n, length, stride, basic.type, &layout->type);
  layout->n_blocks = n;
  layout->size = (size_t)(n * length) * basic.size;
  for (int i = 0; i < n; ++i) {
    layout->offset[i] = (size_t)(i * stride) * basic.size;
    layout->length[i] = (size_t)length * basic.size;
  }
  layout->extent = (size_t)((n - 1) * stride + length) * basic.size;
  if (resized) {
    MPI_Datatype plain = layout->type;
    layout->extent += (size_t)below(random, 5) * basic.size;
    MPI_Type_create_resized(plain, 0, (MPI_Aint)layout->extent, &layout->type);
    MPI_Type_free(&plain);
  }
}

static void subarray_layout(Layout *layout, Random *random, Basic basic) {
  int whole[2], part[2], start[2];
  for (int i = 0; i < 2; ++i) {
    whole[i] = 2 + below(random, 5);
    part[i] = 1 + below(random, whole[i]);
    start[i] = below(random, whole[i] - part[i] + 1);
  }
  MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, basic.type, &layout->type);
  layout->n_blocks = part[0];
  for (int i = 0; i < part[0]; ++i) {
    layout->offset[i] = (size_t)((start[0] + i) * whole[1] + start[1]) * basic.size;
    layout->length[i] = (size_t)part[1] * basic.size;
  }
  layout->size = (size_t)(part[0] * part[1]) * basic.size;
  layout->extent = (size_t)(whole[0] * whole[1]) * basic.size;
}

static Layout any_layout(Random *random, Basic basic) {
  Layout layout = basic_layout(basic);
  const int shape = below(random, 10);
  if (shape < 3) return layout;
  layout.made = 1;
  if (shape == 3) {
    const int n = 1 + below(random, 7);
    MPI_Type_contiguous(n, basic.type, &layout.type);
    layout.size = layout.extent = layout.length[0] = (size_t)n * basic.size;
  } else if (shape == 4 || shape == 5) {
    vector_layout(&layout, random, basic, shape == 5);
  } else if (shape == 6 || shape == 7) {
    block_layout(&layout, random, basic, shape == 7);
  } else if (shape == 8) {
    subarray_layout(&layout, random, basic);
  } else {
    MPI_Type_dup(basic.type, &layout.type);
  }
  MPI_Type_commit(&layout.type);
  return layout;
}

static void free_layout(Layout *layout) {
  if (layout->made) MPI_Type_free(&layout->type);
  layout->made = 0;
}

/* Puts n packed bytes where `layout` wants them. */
static void scatter_bytes(const Layout *layout, const byte *packed, size_t n, byte *to) {
  if (layout->n_blocks == 1 && layout->length[0] == layout->extent) {
    memcpy(to, packed, n);
    return;
  }
  for (size_t item = 0; n > 0; ++item) {
    for (int i = 0; i < layout->n_blocks && n > 0; ++i) {
      const size_t length = layout->length[i] < n ? layout->length[i] : n;
      memcpy(to + item * layout->extent + layout->offset[i], packed, length);
      packed += length;
      n -= length;
    }
  }
}

static void put_message(const Layout *layout, int kind, uint64_t id, size_t n, byte *to) {
  byte *packed = room(n);
  generate(kind, id, packed, n);
  scatter_bytes(layout, packed, n, to);
  free(packed);
}

static byte *blank(size_t size) {
  byte *buffer = room(size);
  memset(buffer, GUARD, size + 64);
  return buffer;
}

static void compare(const byte *got, const byte *want, size_t size, const char *what) {
  if (memcmp(got, want, size + 64) == 0) return;
  size_t at = 0;
  while (got[at] == want[at]) ++at;
  FAIL("%s: byte %zu of %zu is %02x, not %02x", what, at, size, got[at], want[at]);
}

/* ---- communicators ---- */

enum { SLOTS = 6 };
typedef struct {
  MPI_Comm comm;                           /* MPI_COMM_NULL: none, or I am not in it */
  uint64_t name;                           /* the same on every rank of it */
  int inter, rank, size, remote_size, low; /* low: my group sends as group 0 */
  int may_be_inter;                        /* the same on all ranks, members or not */
} Slot;
static Slot slots[SLOTS];

static void learn(Slot *slot) {
  MPI_Comm_rank(slot->comm, &slot->rank);
  MPI_Comm_size(slot->comm, &slot->size);
  slot->remote_size = slot->size;
  if (slot->inter) MPI_Comm_remote_size(slot->comm, &slot->remote_size);
}

static void make_inter(Slot *slot, const Slot *from, Random *random) {
  const int low = from->rank < from->size / 2;
  MPI_Comm half;
  MPI_Comm_split(from->comm, low, from->rank, &half);
  const int leader = low ? from->size / 2 : 0;
  MPI_Intercomm_create(half, 0, from->comm, leader, 40 + below(random, 9), &slot->comm);
  MPI_Comm_free(&half);
  slot->inter = 1;
  slot->low = low;
}

static void change_comms(Random *random) {
  doing = "communicators";
  Slot *slot = &slots[1 + below(random, SLOTS - 1)];
  const Slot *from = &slots[below(random, SLOTS)];
  const int how = below(random, 6);
  if (slot->name) { /* from may be it */
    if (slot->comm != MPI_COMM_NULL) MPI_Comm_free(&slot->comm);
    memset(slot, 0, sizeof *slot);
    slot->comm = MPI_COMM_NULL;
    return;
  }
  if (!from->name || from->may_be_inter) from = &slots[0];
  slot->name = mix3(from->name, (uint64_t)step, 7);
  slot->may_be_inter = how == 3;
  if (from->comm == MPI_COMM_NULL) return;
  if (how < 2) {
    MPI_Comm_dup(from->comm, &slot->comm);
  } else if (how == 2) {
    MPI_Request request;
    MPI_Comm_idup(from->comm, &slot->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (how == 3 && from->size > 1) {
    make_inter(slot, from, random);
  } else {
    const uint64_t lot = mix3(slot->name, (uint64_t)from->rank, 1);
    const int color = lot % 5 == 0 ? MPI_UNDEFINED : (int)(lot % 2);
    MPI_Comm_split(from->comm, color, (int)(lot >> 9) % 100, &slot->comm);
    slot->name = mix(slot->name + (uint64_t)color);
  }
  if (slot->comm != MPI_COMM_NULL) learn(slot);
}

#ifdef MPICH_VERSION
#define IS_MPICH 1
#else
#define IS_MPICH 0
#endif

/* ---- completing requests: every call that can ---- */

static int left(int n, const char *finished) {
  int count = 0;
  for (int i = 0; i < n; ++i) count += !finished[i];
  return count;
}

static void complete_some(int n, MPI_Request *requests, MPI_Status *statuses, char *finished,
                          int wait) {
  int n_done, *indices = room((size_t)n * sizeof(int));
  MPI_Status *found = room((size_t)n * sizeof(MPI_Status));
  while (left(n, finished) > 0) {
    if (wait) {
      MPI_Waitsome(n, requests, &n_done, indices, found);
    } else {
      MPI_Testsome(n, requests, &n_done, indices, found);
    }
    if (n_done == MPI_UNDEFINED) FAIL("no active request, %d are", left(n, finished));
    for (int i = 0; i < n_done; ++i) {
      if (finished[indices[i]]++) FAIL("request %d completed twice", indices[i]);
      statuses[indices[i]] = found[i];
    }
  }
  free(indices);
  free(found);
}

static void complete_any(int n, MPI_Request *requests, MPI_Status *statuses, char *finished,
                         int wait) {
  while (left(n, finished) > 0) {
    int index = MPI_UNDEFINED, flag = 1;
    MPI_Status status;
    if (wait) {
      MPI_Waitany(n, requests, &index, &status);
    } else {
      MPI_Testany(n, requests, &index, &flag, &status);
    }
    if (!flag) continue;
    if (index == MPI_UNDEFINED) FAIL("no active request, %d are", left(n, finished));
    if (finished[index]++) FAIL("request %d completed twice", index);
    statuses[index] = status;
  }
}

static void complete_one(MPI_Request *request, MPI_Status *status, Random *random) {
  int flag = 0;
  switch (below(random, 3)) {
    case 0:
      MPI_Wait(request, status);
      break;
    case 1:
      while (!flag) MPI_Test(request, &flag, status);
      break;
    default:
      while (!flag) MPI_Request_get_status(*request, &flag, status);
      /* MPICH 4.2 forgets the status of a persistent receive here. */
      MPI_Wait(request, IS_MPICH ? MPI_STATUS_IGNORE : status);
  }
}

static void complete(int n, MPI_Request *requests, MPI_Status *statuses, Random *random) {
  char *finished = room((size_t)n);
  int flag = 0;
  memset(finished, 0, (size_t)n);
  switch (n == 0 ? 0 : below(random, 7)) {
    case 0:
      MPI_Waitall(n, requests, statuses);
      break;
    case 1:
      while (!flag) MPI_Testall(n, requests, &flag, statuses);
      break;
    case 2:
    case 3:
      complete_some(n, requests, statuses, finished, below(random, 2));
      break;
    case 4:
    case 5:
      complete_any(n, requests, statuses, finished, below(random, 2));
      break;
    default:
      for (int i = 0; i < n; ++i) complete_one(&requests[i], &statuses[i], random);
  }
  free(finished);
}

/* ---- messages ---- */

/* MPICH 4.0 over UCX loses messages, or its way, where an active send was freed. */
#define CAN_FREE !IS_MPICH

enum { MOST_MESSAGES = 12, BUFFERED_MOST = 1 << 20 };
typedef struct {
  int from, to, low; /* of the group that sends; `low`: that is group 0 */
  int tag, kind, mode, taken;
  size_t size; /* packed bytes */
  uint64_t id;
  Layout layout;
  int count;
  byte *buffer;
} Message;

enum { ANY_S = 1, ANY_T = 2 };
typedef struct {
  Layout layout;
  int count, source, tag, how;
  size_t room, exact; /* bytes of the buffer; what a probe said + 1 */
  byte *buffer;
  MPI_Request request;
  MPI_Status status;
} Receive;

/* One basic type for all that a rank receives: any of its receives may get any message. */
static Basic basic_for(const Slot *slot, const Message *message) {
  const uint64_t name = mix3(slot->name + (uint64_t)message->low, (uint64_t)message->to, 3);
  return basic_type((int)(mix(name + (uint64_t)step) % 8));
}

static void plan(Message *message, const Slot *slot, int index) {
  Random mine = shared(100 + (uint64_t)index + slot->name);
  const int low = below(&mine, 2);
  const int my_size = slot->size, other = slot->inter ? slot->remote_size : slot->size;
  const int low_size = slot->low ? my_size : other, high_size = slot->low ? other : my_size;
  memset(message, 0, sizeof *message);
  message->low = slot->inter ? low : 1;
  const int from_size = slot->inter ? (message->low ? low_size : high_size) : my_size;
  const int to_size = slot->inter ? (message->low ? high_size : low_size) : my_size;
  message->from = below(&mine, 64) % from_size;
  message->to = below(&mine, 64) % to_size;
  message->tag = below(&mine, 3);
  message->kind = below(&mine, KINDS);
  message->mode = below(&mine, 10);
  message->id = mix3(slot->name, (uint64_t)step, (uint64_t)index);
  message->layout = any_layout(&mine, basic_for(slot, message));
  message->count = (int)(any_size(&mine) / message->layout.size);
  message->size = (size_t)message->count * message->layout.size;
}

static int i_send(const Message *message, const Slot *slot) {
  return message->from == slot->rank && (!slot->inter || message->low == slot->low);
}
static int i_receive(const Message *message, const Slot *slot) {
  return message->to == slot->rank && (!slot->inter || message->low != slot->low);
}

/* `ready`: the receive is known to be there. */
static MPI_Request send_message(Message *m, MPI_Comm comm, int ready, Random *random) {
  MPI_Request request = MPI_REQUEST_NULL;
  const size_t span = (size_t)m->count * m->layout.extent;
  m->buffer = blank(span);
  put_message(&m->layout, m->kind, m->id, m->size, m->buffer);
  int mode = m->mode;
  if (m->size > BUFFERED_MOST / 2 && (mode == 3 || mode == 4 || mode == 5)) mode = 0;
  if (ready && mode == 0) mode = 8 + below(random, 3);
  const MPI_Datatype type = m->layout.type;
  switch (mode) {
    case 1:
      MPI_Issend(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      break;
    case 2:
      MPI_Ssend_init(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      MPI_Start(&request);
      break;
    case 3:
      MPI_Bsend(m->buffer, m->count, type, m->to, m->tag, comm);
      break;
    case 4:
      MPI_Ibsend(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      break;
    case 5:
      MPI_Bsend_init(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      MPI_Startall(1, &request);
      break;
    case 6:
      MPI_Send_init(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      MPI_Start(&request);
      break;
    case 8:
      if (ready) {
        MPI_Rsend(m->buffer, m->count, type, m->to, m->tag, comm);
        break;
      }
      /* fall through */
    case 9:
      if (ready) {
        MPI_Irsend(m->buffer, m->count, type, m->to, m->tag, comm, &request);
        break;
      }
#if MPI_VERSION >= 4
      MPI_Isend_c(m->buffer, m->count, type, m->to, m->tag, comm, &request);
      break;
#endif
      /* fall through */
    case 10:
      if (ready) {
        MPI_Rsend_init(m->buffer, m->count, type, m->to, m->tag, comm, &request);
        MPI_Start(&request);
        break;
      }
      /* fall through */
    default:
      MPI_Isend(m->buffer, m->count, type, m->to, m->tag, comm, &request);
  }
  return request;
}

/* Receives before the sends. */
static int post_receive(Receive *r, MPI_Comm comm) {
  const MPI_Datatype type = r->layout.type;
  if (r->how == 0) {
    MPI_Irecv(r->buffer, r->count, type, r->source, r->tag, comm, &r->request);
  } else if (r->how == 1) {
    MPI_Recv_init(r->buffer, r->count, type, r->source, r->tag, comm, &r->request);
    MPI_Start(&r->request);
  } else {
    return 0;
  }
  return 1;
}

static size_t bytes_in(const MPI_Status *status, const Layout *layout) {
  int n;
  MPI_Get_elements(status, layout->type, &n);
  return n == MPI_UNDEFINED ? SIZE_MAX : (size_t)n * layout->basic;
}

static void receive_now(Receive *r, MPI_Comm comm) {
  const MPI_Datatype type = r->layout.type;
  MPI_Message message;
  MPI_Status seen;
  int flag = 0;
  switch (r->how) {
    case 2:
      MPI_Recv(r->buffer, r->count, type, r->source, r->tag, comm, &r->status);
      return;
    case 3:
    case 4:
      if (r->how == 3) MPI_Probe(r->source, r->tag, comm, &seen);
      while (r->how == 4 && !flag) MPI_Iprobe(r->source, r->tag, comm, &flag, &seen);
      r->exact = bytes_in(&seen, &r->layout) + 1;
      MPI_Recv(r->buffer, r->count, type, seen.MPI_SOURCE, seen.MPI_TAG, comm, &r->status);
      return;
    case 5:
      MPI_Mprobe(r->source, r->tag, comm, &message, &seen);
      r->exact = bytes_in(&seen, &r->layout) + 1;
      MPI_Mrecv(r->buffer, r->count, type, &message, &r->status);
      return;
    default:
      while (!flag) MPI_Improbe(r->source, r->tag, comm, &flag, &message, &seen);
      r->exact = bytes_in(&seen, &r->layout) + 1;
      MPI_Imrecv(r->buffer, r->count, type, &message, &r->request);
      MPI_Wait(&r->request, &r->status);
  }
}

/* The oldest message that this receive, in its turn, must have got. */
static void check_receive(Receive *r, Message *messages, int n, const Slot *slot) {
  Message *got = NULL;
  for (int i = 0; i < n && !got; ++i) {
    Message *m = &messages[i];
    if (i_receive(m, slot) && !m->taken && m->from == r->status.MPI_SOURCE &&
        (r->tag == MPI_ANY_TAG || m->tag == r->tag)) {
      got = m;
    }
  }
  if (!got) FAIL("a message from %d that nobody sent", r->status.MPI_SOURCE);
  got->taken = 1;
  if (r->status.MPI_TAG != got->tag) FAIL("tag %d, not %d", r->status.MPI_TAG, got->tag);
  const size_t size = bytes_in(&r->status, &r->layout);
  if (size != got->size) FAIL("%zu bytes, not %zu", size, got->size);
  if (r->exact && r->exact - 1 != size) FAIL("probed %zu bytes, got %zu", r->exact - 1, size);
  byte *want = blank(r->room);
  put_message(&r->layout, got->kind, got->id, got->size, want);
  compare(r->buffer, want, r->room, "received");
  free(want);
}

/* A receive for which there is never a message. */
static void cancel_one(MPI_Comm comm, Random *random) {
  byte *buffer = blank(100000);
  MPI_Request request;
  MPI_Status status;
  int cancelled;
  MPI_Irecv(buffer, 100000, MPI_BYTE, one_in(random, 2) ? MPI_ANY_SOURCE : 0, 1000, comm, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (!cancelled) FAIL("a receive without a message was not cancelled");
  free(buffer);
}

static int plan_receives(Receive *receives, Message *messages, int n, const Slot *slot,
                         int all_posted, int fenced) {
  Random random = own(5);
  const int wild = !fenced || one_in(&random, 2) ? 0 : below(&random, 4);
  int n_receives = 0;
  size_t most = 0;
  for (int i = 0; i < n; ++i) {
    if (i_receive(&messages[i], slot) && messages[i].size > most) most = messages[i].size;
  }
  for (int i = 0; i < n; ++i) {
    const Message *m = &messages[i];
    if (!i_receive(m, slot)) continue;
    int alone = wild == 0;
    for (int k = 0; k < n; ++k) {
      alone &= k == i || !i_receive(&messages[k], slot) || messages[k].from != m->from ||
               messages[k].tag != m->tag;
    }
    Receive *r = &receives[n_receives++];
    memset(r, 0, sizeof *r);
    r->layout = any_layout(&random, basic_for(slot, m));
    const size_t size = alone ? m->size : most;
    r->count = (int)((size + r->layout.size - 1) / r->layout.size) + below(&random, 3);
    r->room = (size_t)r->count * r->layout.extent;
    r->buffer = blank(r->room);
    r->source = wild & ANY_S ? MPI_ANY_SOURCE : m->from;
    r->tag = wild & ANY_T ? MPI_ANY_TAG : m->tag;
    r->how = below(&random, all_posted ? 2 : 7);
    r->request = MPI_REQUEST_NULL;
  }
  return n_receives;
}

static void batch(const Slot *slot, Random *random) {
  Message messages[MOST_MESSAGES];
  Receive receives[MOST_MESSAGES];
  MPI_Request requests[2 * MOST_MESSAGES];
  MPI_Status statuses[2 * MOST_MESSAGES];
  Receive *of[2 * MOST_MESSAGES];
  Receive *order[MOST_MESSAGES];
  const int n = 1 + below(random, MOST_MESSAGES), ready = one_in(random, 4);
  /* Then no message of a later step comes into a receive from anybody, and all have arrived. */
  const int fenced = one_in(random, 2);
  int n_requests = 0, n_ordered = 0, room_for = 0;
  Random mine = own(9);
  doing = ready ? "messages, receives posted" : "messages";
  for (int i = 0; i < n; ++i) plan(&messages[i], slot, i);
  const int n_receives = plan_receives(receives, messages, n, slot, ready, fenced);
  byte *attached = NULL;
  for (int i = 0; i < n; ++i) {
    if (i_send(&messages[i], slot)) room_for += BUFFERED_MOST / 2 + MPI_BSEND_OVERHEAD + 64;
  }
  if (room_for) MPI_Buffer_attach(attached = room((size_t)room_for), room_for);
  for (int i = 0; i < n_receives; ++i) {
    if (!post_receive(&receives[i], slot->comm)) continue;
    order[n_ordered++] = &receives[i];
    of[n_requests] = &receives[i];
    requests[n_requests++] = receives[i].request;
  }
  if (ready) MPI_Barrier(slot->comm);
  for (int i = 0; i < n; ++i) {
    if (!i_send(&messages[i], slot)) continue;
    MPI_Request request = send_message(&messages[i], slot->comm, ready, &mine);
    if (request == MPI_REQUEST_NULL) continue;
    if (CAN_FREE && fenced && one_in(&mine, 6)) {
      MPI_Request_free(&request);
      continue;
    }
    of[n_requests] = NULL;
    requests[n_requests++] = request;
  }
  if (one_in(&mine, 6)) cancel_one(slot->comm, &mine);
  for (int i = 0; i < n_receives; ++i) {
    if (receives[i].how < 2) continue;
    receive_now(&receives[i], slot->comm);
    order[n_ordered++] = &receives[i];
  }
  complete(n_requests, requests, statuses, &mine);
  for (int i = 0; i < n_requests; ++i) {
    if (of[i]) of[i]->status = statuses[i];
    if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
  }
  for (int i = 0; i < n_ordered; ++i) check_receive(order[i], messages, n, slot);
  if (attached) {
    void *detached;
    MPI_Buffer_detach(&detached, &room_for);
    free(attached);
  }
  if (fenced) MPI_Barrier(slot->comm);
  for (int i = 0; i < n_receives; ++i) {
    free_layout(&receives[i].layout);
    free(receives[i].buffer);
  }
  for (int i = 0; i < n; ++i) {
    free_layout(&messages[i].layout);
    free(messages[i].buffer);
  }
}

/* Blocking sends from one rank, blocking receives on another. */
static void one_way(const Slot *slot, Random *random) {
  doing = "blocking messages";
  if (slot->inter || slot->size < 2) return;
  const int fenced = one_in(random, 2);
  const int from = below(random, 64) % slot->size;
  const int to = (from + 1 + below(random, 64) % (slot->size - 1)) % slot->size;
  for (int i = 0; i < 4; ++i) {
    Message message;
    Receive receive;
    plan(&message, slot, i);
    message.from = from;
    message.to = to;
    if (slot->rank == from) {
      const Layout *l = &message.layout;
      message.buffer = blank((size_t)message.count * l->extent);
      put_message(l, message.kind, message.id, message.size, message.buffer);
      (message.mode % 2 ? MPI_Send : MPI_Ssend)(message.buffer, message.count, l->type, to,
                                                message.tag, slot->comm);
      free(message.buffer);
    } else if (slot->rank == to) {
      Random mine = own(60 + (uint64_t)i);
      memset(&receive, 0, sizeof receive);
      receive.layout = message.layout;
      receive.count = message.count + below(&mine, 2);
      receive.room = (size_t)receive.count * receive.layout.extent;
      receive.buffer = blank(receive.room);
      receive.source = fenced && one_in(&mine, 3) ? MPI_ANY_SOURCE : from;
      receive.tag = fenced && one_in(&mine, 3) ? MPI_ANY_TAG : message.tag;
      receive.how = 2 + below(&mine, 5);
      receive.request = MPI_REQUEST_NULL;
      receive_now(&receive, slot->comm);
      check_receive(&receive, &message, 1, slot);
      free(receive.buffer);
    }
    free_layout(&message.layout);
  }
  if (fenced) MPI_Barrier(slot->comm);
}

static void exchange(const Slot *slot, Random *random) {
  doing = "exchange";
  if (slot->inter) return;
  const int shift = below(random, 64) % slot->size, n = slot->size, how = below(random, 3);
  const int to = (slot->rank + shift) % n, from = (slot->rank + n - shift) % n;
  const int kind = below(random, KINDS);
  const Basic basic = basic_type(below(random, 8));
  /* MPICH 4.0 releases derived types of MPI_Isendrecv once too often. */
  Layout plain = basic_layout(basic), layout = how == 2 ? plain : any_layout(random, basic);
  const int count = (int)(any_size(random) / layout.size);
  const size_t size = (size_t)count * layout.size, span = (size_t)count * layout.extent;
  const uint64_t id = mix3(slot->name, (uint64_t)step, 50);
  byte *out = blank(span), *in = blank(size), *want = blank(how == 1 ? span : size);
  put_message(&layout, kind, id + (uint64_t)slot->rank, size, out);
  put_message(how == 1 ? &layout : &plain, kind, id + (uint64_t)from, size, want);
  MPI_Status status;
  memset(&status, 0, sizeof status);
  const int elements = (int)(size / basic.size);
  if (how == 1) {
    MPI_Sendrecv_replace(out, count, layout.type, to, 3, from, 3, slot->comm, &status);
    compare(out, want, span, "replaced");
  } else {
#ifdef HAS_ISENDRECV
    if (how == 2) {
      MPI_Request request;
      MPI_Isendrecv(out, count, layout.type, to, 3, in, elements, basic.type, from, 3, slot->comm,
                    &request);
      MPI_Wait(&request, &status);
    } else
#endif
      MPI_Sendrecv(out, count, layout.type, to, 3, in, elements, basic.type, from, 3, slot->comm,
                   &status);
    compare(in, want, size, "exchanged");
  }
#ifdef HAS_ISENDRECV
  if (how == 2) status.MPI_SOURCE = from; /* MPICH 4.0 gives no status of this request */
#endif
  if (status.MPI_SOURCE != from) FAIL("from %d, not %d", status.MPI_SOURCE, from);
  free_layout(&layout);
  free(out);
  free(in);
  free(want);
}

/* The same requests, started again with other data. */
static void persistent(const Slot *slot, Random *random) {
  doing = "persistent";
  if (slot->inter) return;
  const int n = slot->size, to = (slot->rank + 1) % n, from = (slot->rank + n - 1) % n;
  const Basic basic = basic_type(below(random, 8));
  Layout layout = any_layout(random, basic);
  const int count = (int)(any_size(random) / layout.size);
  const size_t size = (size_t)count * layout.size, span = (size_t)count * layout.extent;
  byte *out = blank(span), *in = blank(span);
  Random mine = own(11);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Recv_init(in, count, layout.type, n < 3 && one_in(&mine, 3) ? MPI_ANY_SOURCE : from, 4,
                slot->comm, &requests[0]);
  (one_in(&mine, 2) ? MPI_Send_init : MPI_Ssend_init)(out, count, layout.type, to, 4, slot->comm,
                                                      &requests[1]);
  for (int round = 0; round < 3; ++round) {
    const uint64_t id = mix3(slot->name, (uint64_t)step, (uint64_t)round);
    put_message(&layout, round % KINDS, id + (uint64_t)slot->rank, size, out);
    memset(in, GUARD, span);
    if (one_in(&mine, 2)) {
      MPI_Startall(2, requests);
    } else {
      MPI_Start(&requests[1]);
      int flag = 0;
      if (one_in(&mine, 2)) MPI_Iprobe(from, 4, slot->comm, &flag, MPI_STATUS_IGNORE);
      MPI_Start(&requests[0]);
    }
    complete(2, requests, statuses, &mine);
    byte *want = blank(span);
    put_message(&layout, round % KINDS, id + (uint64_t)from, size, want);
    compare(in, want, span, "received by a persistent request");
    free(want);
    if (statuses[0].MPI_SOURCE != from) FAIL("from %d, not %d", statuses[0].MPI_SOURCE, from);
    if (bytes_in(&statuses[0], &layout) != size) FAIL("not %zu bytes", size);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free_layout(&layout);
  free(out);
  free(in);
}

/* ---- collectives ---- */

enum What {
  BARRIER,
  BCAST,
  GATHER,
  GATHERV,
  SCATTER,
  SCATTERV,
  ALLGATHER,
  ALLGATHERV,
  ALLTOALL,
  ALLTOALLV,
  ALLTOALLW,
  REDUCE,
  ALLREDUCE,
  REDUCE_SCATTER,
  REDUCE_SCATTER_BLOCK,
  SCAN,
  EXSCAN,
  WHATS
};
static const char *const names[WHATS] = {
    "Barrier",   "Bcast",     "Gather",     "Gatherv",        "Scatter",
    "Scatterv",  "Allgather", "Allgatherv", "Alltoall",       "Alltoallv",
    "Alltoallw", "Reduce",    "Allreduce",  "Reduce_scatter", "Reduce_scatter_block",
    "Scan",      "Exscan"};

typedef struct {
  enum What what;
  int nonblocking, in_place, root, kind, count, varied, op;
  uint64_t id;
  Layout layout;
  Basic basic;
  byte *in, *out, *want;
  size_t out_size;
  int *numbers; /* counts and places */
  MPI_Datatype *types;
  MPI_Request request;
} Collective;

/* Operations: predefined ones, pairs, a commutative one of ours and one that is not. */
enum { N_OPS = 14, PAD_DOUBLE_INT = 8, MATRIX = 12, MODULUS = 251 };
typedef struct {
  MPI_Datatype type;
  MPI_Op op;
  size_t size;
} Op;
static MPI_Datatype matrix_type;
static MPI_Op matrix_op, add_op;

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type) {
  (void)type;
  const int *a = in;
  int *b = inout;
  for (int i = 0; i < *n; ++i, a += 4, b += 4) {
    const int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                      a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    for (int k = 0; k < 4; ++k) b[k] = c[k] % MODULUS;
  }
}
static void add(void *in, void *inout, int *n, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int *)inout)[i] += ((int *)in)[i];
}

static Op op_of(int i) {
  const Op ops[N_OPS] = {
      {MPI_INT, MPI_SUM, 4},
      {MPI_FLOAT, MPI_SUM, 4},
      {MPI_DOUBLE, MPI_SUM, 8},
      {MPI_INT64_T, MPI_SUM, 8},
      {MPI_INT, MPI_MAX, 4},
      {MPI_FLOAT, MPI_MIN, 4},
      {MPI_INT, MPI_BXOR, 4},
      {MPI_INT, MPI_BAND, 4},
      {MPI_DOUBLE_INT, MPI_MINLOC, 16},
      {MPI_2INT, MPI_MAXLOC, 8},
      {MPI_FLOAT_INT, MPI_MINLOC, 8},
      {MPI_DOUBLE, MPI_MAX, 8},
      {matrix_type, matrix_op, 16},
      {MPI_INT, add_op, 4},
  };
  return ops[i];
}

struct double_int {
  double value;
  int place;
};
struct float_int {
  float value;
  int place;
};

static void element(int op, int value, int rank, byte *to) {
  const double as_double = value;
  const float as_float = (float)value;
  const int64_t as_long = value;
  switch (op) {
    case 1:
    case 5:
      memcpy(to, &as_float, 4);
      return;
    case 2:
    case 11:
      memcpy(to, &as_double, 8);
      return;
    case 3:
      memcpy(to, &as_long, 8);
      return;
    case 8:
      memset(to, 0, 16);
      memcpy(to, &as_double, 8);
      memcpy(to + 8, &rank, 4);
      return;
    case 9:
      memcpy(to, &value, 4);
      memcpy(to + 4, &rank, 4);
      return;
    case 10:
      memcpy(to, &as_float, 4);
      memcpy(to + 4, &rank, 4);
      return;
    case MATRIX: {
      const int matrix[4] = {value % 7, value % 11 + rank, 1, value % 5};
      memcpy(to, matrix, 16);
      return;
    }
    default:
      memcpy(to, &value, 4);
  }
}

/* What rank `rank` contributes. */
static void contribution(const Collective *c, int rank, int n, byte *to) {
  const size_t size = op_of(c->op).size;
  for (int i = 0; i < n; ++i) {
    const int steady = (i / 41 + rank * 3) % 5 + 1;
    const int value = c->kind == RANDOM_BYTES
                          ? (int)(mix3(c->id, (uint64_t)i, (uint64_t)rank) % 100000)
                      : c->kind == ZEROS ? 0
                                         : steady;
    element(c->op, value, rank, to + (size_t)i * size);
  }
}

#define COMBINE(T, expression)         \
  for (int i = 0; i < n; ++i) {        \
    const T a = ((const T *)left_)[i]; \
    T *const b = &((T *)right)[i];     \
    *b = (expression);                 \
  }                                    \
  return

/* right = left op right */
static void combine(int op, const void *left_, void *right, int n) {
  switch (op) {
    case 1:
      COMBINE(float, a + *b);
    case 2:
      COMBINE(double, a + *b);
    case 3:
      COMBINE(int64_t, a + *b);
    case 4:
      COMBINE(int, a > *b ? a : *b);
    case 5:
      COMBINE(float, a < *b ? a : *b);
    case 6:
      COMBINE(int, a ^ *b);
    case 7:
      COMBINE(int, a &*b);
    case 8:
      for (int i = 0; i < n; ++i) {
        const struct double_int *a = (const struct double_int *)left_ + i;
        struct double_int *b = (struct double_int *)right + i;
        if (a->value < b->value || (a->value == b->value && a->place < b->place)) *b = *a;
      }
      return;
    case 9:
      for (int i = 0; i < n; ++i) {
        const int *a = (const int *)left_ + 2 * i;
        int *b = (int *)right + 2 * i;
        if (a[0] > b[0] || (a[0] == b[0] && a[1] < b[1])) memcpy(b, a, 8);
      }
      return;
    case 10:
      for (int i = 0; i < n; ++i) {
        const struct float_int *a = (const struct float_int *)left_ + i;
        struct float_int *b = (struct float_int *)right + i;
        if (a->value < b->value || (a->value == b->value && a->place < b->place)) *b = *a;
      }
      return;
    case 11:
      COMBINE(double, a > *b ? a : *b);
    case MATRIX:
      multiply((void *)(uintptr_t)left_, right, &n, NULL);
      return;
    default:
      COMBINE(int, a + *b);
  }
}

/* The reduction of ranks [0, ranks). */
static void reduced(const Collective *c, int ranks, int n, byte *to) {
  byte *next = room((size_t)n * op_of(c->op).size);
  contribution(c, 0, n, to);
  for (int rank = 1; rank < ranks; ++rank) {
    contribution(c, rank, n, next);
    combine(c->op, to, next, n);
    memcpy(to, next, (size_t)n * op_of(c->op).size);
  }
  free(next);
}

/* Only what C leaves unnamed inside a pair may differ. */
static void clear_padding(int op, byte *data, int n) {
  for (int i = 0; op == PAD_DOUBLE_INT && i < n; ++i) memset(data + (size_t)i * 16 + 12, 0, 4);
}

#define CALL(NAME, name, ...)                          \
  if (c->nonblocking) {                                \
    MPI_I##name(__VA_ARGS__, slot->comm, &c->request); \
  } else {                                             \
    MPI_##NAME(__VA_ARGS__, slot->comm);               \
  }

static void start_reduction(Collective *c, const Slot *slot) {
  const Op op = op_of(c->op);
  const int n = slot->size, me = slot->rank, count = c->count / n;
  c->numbers = room((size_t)n * sizeof(int));
  int total = 0, mine = count, before = 0;
  const int parts = c->what == REDUCE_SCATTER || c->what == REDUCE_SCATTER_BLOCK;
  for (int i = 0; i < n; ++i) {
    c->numbers[i] = count;
    if (c->what == REDUCE_SCATTER && mix(c->id + (uint64_t)i) % 3 == 0) c->numbers[i] /= 3;
    if (i == me) before = total, mine = c->numbers[i];
    total += c->numbers[i];
  }
  if (!parts) total = mine = count;
  c->in = room((size_t)total * op.size);
  c->out_size = (size_t)(c->in_place ? total : mine) * op.size;
  c->out = blank(c->out_size);
  c->want = blank(c->out_size);
  contribution(c, me, total, c->in);
  if (c->in_place) memcpy(c->out, c->in, (size_t)total * op.size);
  byte *whole = room((size_t)total * op.size);
  const int ranks = c->what == SCAN ? me + 1 : c->what == EXSCAN ? me : n;
  if (c->in_place) memcpy(c->want, c->in, (size_t)total * op.size);
  if (ranks > 0 && (c->what != REDUCE || me == c->root)) {
    reduced(c, ranks, total, whole);
    memcpy(c->want, whole + (parts ? (size_t)before * op.size : 0), (size_t)mine * op.size);
  }
  free(whole);
  const void *in = c->in_place ? MPI_IN_PLACE : c->in;
  switch (c->what) {
    case REDUCE:
      if (me != c->root) in = c->in;
      CALL(Reduce, reduce, in, c->out, count, op.type, op.op, c->root)
      break;
    case ALLREDUCE:
      CALL(Allreduce, allreduce, in, c->out, count, op.type, op.op)
      break;
    case SCAN:
      CALL(Scan, scan, in, c->out, count, op.type, op.op)
      break;
    case EXSCAN:
      CALL(Exscan, exscan, in, c->out, count, op.type, op.op)
      break;
    case REDUCE_SCATTER:
      CALL(Reduce_scatter, reduce_scatter, in, c->out, c->numbers, op.type, op.op)
      break;
    default:
      CALL(Reduce_scatter_block, reduce_scatter_block, in, c->out, count, op.type, op.op)
  }
}

/* How much rank `from` has for rank `to`, in items of the layout. */
static int items(const Collective *c, int from, int to) {
  if (!c->varied) return c->count;
  uint64_t lot;
  switch (c->what) {
    case GATHERV:
    case ALLGATHERV:
      lot = mix(c->id + (uint64_t)from);
      break;
    case SCATTERV:
      lot = mix(c->id + (uint64_t)to);
      break;
    default: /* the same both ways, which MPI_IN_PLACE wants */
      lot = mix3(c->id, (uint64_t)(from < to ? from : to), (uint64_t)(from < to ? to : from));
  }
  return lot % 4 == 0 ? 0 : (int)(lot % (uint64_t)(c->count + 1));
}

static uint64_t id_for(const Collective *c, int from, int to) {
  if (c->what == ALLGATHER || c->what == ALLGATHERV) to = 0;
  return mix3(c->id, (uint64_t)from, (uint64_t)to);
}

/* An array of parts, one for each rank, with or without gaps between them. */
typedef struct {
  int *counts, *places, *byte_places;
  size_t size;
} Parts;

static Parts lay_out(const Collective *c, int n, int *numbers, int me, int incoming, int gaps) {
  Parts parts = {numbers, numbers + n, numbers + 2 * n, 0};
  int at = 0;
  for (int i = 0; i < n; ++i) {
    parts.counts[i] = incoming ? items(c, i, me) : items(c, me, i);
    parts.places[i] = at;
    parts.byte_places[i] = at * (int)c->layout.extent;
    at += parts.counts[i] + (gaps ? i % 2 : 0);
  }
  parts.size = (size_t)at * c->layout.extent;
  return parts;
}

static void put_part(const Collective *c, const Parts *parts, int index, int from, int to,
                     byte *array) {
  put_message(&c->layout, c->kind, id_for(c, from, to),
              (size_t)parts->counts[index] * c->layout.size,
              array + (size_t)parts->places[index] * c->layout.extent);
}

static void start_movement(Collective *c, const Slot *slot) {
  const int n = slot->size, me = slot->rank, root = c->root, count = c->count;
  c->numbers = room((size_t)n * 6 * sizeof(int));
  c->types = room((size_t)n * sizeof(MPI_Datatype));
  for (int i = 0; i < n; ++i) c->types[i] = c->layout.type;
  const int to_root = c->what == GATHER || c->what == GATHERV;
  const int from_root = c->what == SCATTER || c->what == SCATTERV;
  const int all_to_all = c->what >= ALLTOALL && c->what <= ALLTOALLW;
  const int gather = c->what == ALLGATHER || c->what == ALLGATHERV;
  const Parts out = lay_out(c, n, c->numbers, me, 1, c->varied);
  const Parts in = lay_out(c, n, c->numbers + 3 * n, me, 0, c->varied);
  const MPI_Datatype type = c->layout.type;
  const int mine_sent = items(c, me, root), mine_received = items(c, root, me);
  const size_t one = c->layout.extent;
  /* What I send. */
  size_t in_size = in.size;
  if (to_root || gather) in_size = (size_t)items(c, me, root) * one;
  if (from_root && me != root) in_size = 0;
  c->in = blank(in_size);
  if (to_root || gather) {
    put_message(&c->layout, c->kind, id_for(c, me, root), (size_t)mine_sent * c->layout.size,
                c->in);
  } else if (all_to_all || me == root) {
    for (int i = 0; i < n; ++i) put_part(c, &in, i, me, i, c->in);
  }
  /* What I must have at the end. */
  c->out_size = out.size;
  if (from_root) c->out_size = (size_t)mine_received * one;
  if (to_root && me != root) c->out_size = 0;
  c->out = blank(c->out_size);
  c->want = blank(c->out_size);
  if (from_root) {
    if (!(c->in_place && me == root)) {
      put_message(&c->layout, c->kind, id_for(c, root, me), (size_t)mine_received * c->layout.size,
                  c->want);
    }
  } else if (!to_root || me == root) {
    for (int i = 0; i < n; ++i) put_part(c, &out, i, i, to_root ? root : me, c->want);
  }
  const void *from = c->in;
  void *to = c->out;
  if (c->in_place) {
    if (to_root && me == root) put_part(c, &out, me, me, root, c->out), from = MPI_IN_PLACE;
    if (gather) put_part(c, &out, me, me, root, c->out), from = MPI_IN_PLACE;
    if (from_root && me == root) to = MPI_IN_PLACE;
    if (all_to_all) {
      for (int i = 0; i < n; ++i) put_part(c, &out, i, me, i, c->out);
      from = MPI_IN_PLACE;
    }
  }
  /* The other side may describe the same bytes by basic elements. */
  const int flat = (int)(c->layout.size / c->basic.size);
  byte *packed = NULL;
  MPI_Datatype sent = type;
  int times = 1;
  if (!c->in_place && (to_root || gather) && c->id % 2) {
    packed = room((size_t)mine_sent * c->layout.size);
    generate(c->kind, id_for(c, me, root), packed, (size_t)mine_sent * c->layout.size);
    free(c->in);
    from = c->in = packed;
    sent = c->basic.type;
    times = flat;
  }
  switch (c->what) {
    case GATHER:
      CALL(Gather, gather, from, count * times, sent, to, count, type, root)
      break;
    case GATHERV:
      CALL(Gatherv, gatherv, from, mine_sent * times, sent, to, out.counts, out.places, type, root)
      break;
    case SCATTER:
      CALL(Scatter, scatter, from, count, type, to, count, type, root)
      break;
    case SCATTERV:
      CALL(Scatterv, scatterv, from, in.counts, in.places, type, to, mine_received, type, root)
      break;
    case ALLGATHER:
      CALL(Allgather, allgather, from, count * times, sent, to, count, type)
      break;
    case ALLGATHERV:
      CALL(Allgatherv, allgatherv, from, mine_sent * times, sent, to, out.counts, out.places, type)
      break;
    case ALLTOALL:
      CALL(Alltoall, alltoall, from, count, type, to, count, type)
      break;
    case ALLTOALLV:
      CALL(Alltoallv, alltoallv, from, in.counts, in.places, type, to, out.counts, out.places, type)
      break;
    default:
      CALL(Alltoallw, alltoallw, from, in.counts, in.byte_places, c->types, to, out.counts,
           out.byte_places, c->types)
  }
}

static void start_bcast(Collective *c, const Slot *slot) {
  const size_t size = (size_t)c->count * c->layout.size;
  c->out_size = (size_t)c->count * c->layout.extent;
  c->out = blank(c->out_size);
  c->want = blank(c->out_size);
  put_message(&c->layout, c->kind, c->id, size, c->want);
  int root = c->root;
  if (slot->inter) { /* group 0 sends to group 1 */
    if (slot->low) root = slot->rank == c->root ? MPI_ROOT : MPI_PROC_NULL;
    if (slot->low && root == MPI_PROC_NULL) memset(c->want, GUARD, c->out_size);
  }
  if (root == MPI_ROOT || (!slot->inter && slot->rank == root)) {
    put_message(&c->layout, c->kind, c->id, size, c->out);
  }
  CALL(Bcast, bcast, c->out, c->count, c->layout.type, root)
}

/* On intercommunicators: what the other group has. */
static void start_inter(Collective *c, const Slot *slot) {
  const int remote = slot->remote_size;
  if (c->what == ALLREDUCE) {
    const Op op = op_of(c->op);
    c->in = room((size_t)c->count * op.size);
    c->out_size = (size_t)c->count * op.size;
    c->out = blank(c->out_size);
    c->want = blank(c->out_size);
    contribution(c, slot->rank, c->count, c->in);
    reduced(c, remote, c->count, c->want);
    CALL(Allreduce, allreduce, c->in, c->out, c->count, op.type, op.op)
    return;
  }
  const size_t one = (size_t)c->count * c->layout.extent, size = (size_t)c->count * c->layout.size;
  c->in = blank(one);
  c->out_size = one * (size_t)remote;
  c->out = blank(c->out_size);
  c->want = blank(c->out_size);
  put_message(&c->layout, c->kind, c->id + (uint64_t)(slot->rank * 2 + slot->low), size, c->in);
  for (int i = 0; i < remote; ++i) {
    put_message(&c->layout, c->kind, c->id + (uint64_t)(i * 2 + !slot->low), size,
                c->want + (size_t)i * one);
  }
  CALL(Allgather, allgather, c->in, c->count, c->layout.type, c->out, c->count, c->layout.type)
}

static void start_collective(Collective *c, const Slot *slot, int index) {
  Random random = shared(300 + (uint64_t)index + slot->name);
  memset(c, 0, sizeof *c);
  c->what = (enum What)below(&random, WHATS);
  if (slot->inter) {
    static const enum What some[] = {BARRIER, BCAST, ALLGATHER, ALLREDUCE};
    c->what = some[below(&random, 4)];
  }
  doing = names[c->what];
  c->request = MPI_REQUEST_NULL;
  c->nonblocking = one_in(&random, 2);
  c->in_place = !slot->inter && one_in(&random, 3);
  const int low_size = slot->inter && !slot->low ? slot->remote_size : slot->size;
  c->root = below(&random, 64) % low_size;
  c->kind = below(&random, KINDS);
  c->varied = c->what == GATHERV || c->what == SCATTERV || c->what == ALLGATHERV ||
              c->what == ALLTOALLV || c->what == ALLTOALLW;
  c->op = below(&random, N_OPS);
  /* What the libraries do wrong by themselves: Open MPI 4.1 exchanges derived types in place by
   * MPI_Alltoallv, MPICH 4.0 copies parts of reductions onto themselves, and reads
   * from MPI_IN_PLACE where the root of MPI_Reduce is not rank 0. */
  const int parts = c->what == REDUCE_SCATTER || c->what == REDUCE_SCATTER_BLOCK;
  const int exchanges = c->what >= ALLTOALL && c->what <= ALLTOALLW;
  if (exchanges && c->nonblocking) c->in_place = 0;
#ifdef MPICH_VERSION
  if (parts) c->in_place = 0;
#else
  (void)parts;
#endif
  if (c->what == ALLTOALLV || c->what == ALLTOALLW) c->in_place = 0;
  if (c->what == REDUCE && c->root != 0) c->in_place = 0;
  c->id = mix3(slot->name, (uint64_t)step, 400 + (uint64_t)index);
  c->basic = basic_type(below(&random, 8));
  c->layout = any_layout(&random, c->basic);
  const size_t size = any_size(&random);
  if (c->what == BARRIER) {
    if (c->nonblocking) MPI_Ibarrier(slot->comm, &c->request);
    if (!c->nonblocking) MPI_Barrier(slot->comm);
  } else if (c->what == BCAST) {
    c->count = (int)(size / c->layout.size);
    start_bcast(c, slot);
  } else if (c->what >= REDUCE) {
    c->count = (int)(size / op_of(c->op).size);
    slot->inter ? start_inter(c, slot) : start_reduction(c, slot);
  } else {
    c->count = (int)(size / c->layout.size / 2);
    slot->inter ? start_inter(c, slot) : start_movement(c, slot);
  }
}

static void finish_collective(Collective *c, const Slot *slot) {
  doing = names[c->what];
  if (c->what >= REDUCE) {
    const int n = (int)(c->out_size / op_of(c->op).size);
    clear_padding(c->op, c->out, n);
    clear_padding(c->op, c->want, n);
  }
  /* Undefined: what is behind the result in an MPI_IN_PLACE buffer of these. */
  if (c->in_place && (c->what == REDUCE_SCATTER || c->what == REDUCE_SCATTER_BLOCK)) {
    const size_t mine = (size_t)c->numbers[slot->rank] * op_of(c->op).size;
    memcpy(c->out + mine, c->want + mine, c->out_size - mine);
  }
  if ((c->what == EXSCAN && slot->rank == 0) ||
      (c->in_place && c->what == REDUCE && slot->rank != c->root)) {
    memcpy(c->want, c->out, c->out_size);
  }
  if (c->out) compare(c->out, c->want, c->out_size, names[c->what]);
  free_layout(&c->layout);
  free(c->in);
  free(c->out);
  free(c->want);
  free(c->numbers);
  free(c->types);
}

static void collectives(const Slot *slot, Random *random) {
  enum { MOST = 4 };
  Collective all[MOST];
  MPI_Request requests[MOST];
  MPI_Status statuses[MOST];
  const int n = 1 + below(random, MOST);
  int n_requests = 0;
  Random mine = own(13);
  for (int i = 0; i < n; ++i) start_collective(&all[i], slot, i);
  for (int i = 0; i < n; ++i) {
    if (all[i].request != MPI_REQUEST_NULL) requests[n_requests++] = all[i].request;
  }
  doing = "completing collectives";
  complete(n_requests, requests, statuses, &mine);
  for (int i = 0; i < n; ++i) finish_collective(&all[i], slot);
}

/* ---- the program ---- */

static void do_step(void) {
  Random random = shared(1);
  if (one_in(&random, 10)) {
    change_comms(&random);
    return;
  }
  const Slot *slot = &slots[below(&random, SLOTS)];
  if (!slot->name) slot = &slots[0];
  if (slot->comm == MPI_COMM_NULL) return;
  const int what = below(&random, 10);
  if (what < 4) {
    batch(slot, &random);
  } else if (what < 5) {
    one_way(slot, &random);
  } else if (what < 6) {
    exchange(slot, &random);
  } else if (what < 7) {
    persistent(slot, &random);
  } else {
    collectives(slot, &random);
  }
}

static long resident_kib(void) {
  long pages = 0, ignored;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &ignored, &pages) != 2) pages = 0;
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

long live_blocks(void) __attribute__((weak));

int main(int argc, char **argv) {
  double seconds = 5;
  long steps = 1000000000, warm = 0;
  int level = MPI_THREAD_SINGLE;
  for (int i = 1; i < argc; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : "0";
    if (!strcmp(argv[i], "--multiple")) {
      level = MPI_THREAD_MULTIPLE;
      continue;
    }
    if (!strcmp(argv[i], "--seed")) seed = strtoull(value, NULL, 10);
    if (!strcmp(argv[i], "--seconds")) seconds = atof(value);
    if (!strcmp(argv[i], "--steps")) steps = atol(value);
    if (!strcmp(argv[i], "--warm")) warm = atol(value);
    if (!strcmp(argv[i], "--largest")) largest = strtoull(value, NULL, 10);
    ++i;
  }
  MPI_Init_thread(&argc, &argv, level, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Type_contiguous(4, MPI_INT, &matrix_type);
  MPI_Type_commit(&matrix_type);
  MPI_Op_create(multiply, 0, &matrix_op);
  MPI_Op_create(add, 1, &add_op);
  for (int i = 0; i < SLOTS; ++i) slots[i].comm = MPI_COMM_NULL;
  slots[0].comm = MPI_COMM_WORLD;
  slots[0].name = 1;
  learn(&slots[0]);
  const double began = MPI_Wtime();
  long memory[4] = {0, 0, 0, 0}, most[4], middle = 0;
  for (int go_on = 1; go_on; ++step) {
    do_step();
    if (step % 8 != 7) continue;
    doing = "between steps";
    const double past = MPI_Wtime() - began;
    if (past < seconds / 2 || step <= warm) {
      middle = step;
      memory[0] = live_blocks ? live_blocks() : 0;
      memory[2] = resident_kib();
    }
    go_on = (past < seconds || step < 2 * warm) && step + 1 < steps;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  memory[1] = live_blocks ? live_blocks() : 0;
  memory[3] = resident_kib();
  MPI_Reduce(memory, most, 4, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (world_rank == 0) {
    printf("ok soak: seed %llu, steps %ld %ld, blocks %ld %ld, KiB resident %ld %ld\n",
           (unsigned long long)seed, middle, step, most[0], most[1], most[2], most[3]);
  }
  for (int i = 1; i < SLOTS; ++i) {
    if (slots[i].comm != MPI_COMM_NULL) MPI_Comm_free(&slots[i].comm);
  }
  MPI_Op_free(&matrix_op);
  MPI_Op_free(&add_op);
  MPI_Type_free(&matrix_type);
  MPI_Finalize();
  return 0;
}
