// SPDX-License-Identifier: Apache-2.0
// ISA-L called directly: pieces of a file coded at level 1 and expanded, one after the other.
// Prints a JSON line: bytes, bytes of the codes, and seconds of processor time each way, the
// fastest of ROUNDS. compressdev.py runs it.
//
//   isal_direct FILE LIMIT JOB ROUNDS          LIMIT, JOB: bytes of the file, and of a piece
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fail(const char *why) {
  fprintf(stderr, "isal_direct: %s\n", why);
  exit(1);
}

static size_t code(struct isal_zstream *stream, unsigned char *tables, unsigned char *src,
                   size_t size, unsigned char *dst, size_t room) {
  isal_deflate_stateless_init(stream);
  stream->level = 1;
  stream->level_buf = tables;
  stream->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
  stream->end_of_stream = 1;
  stream->flush = NO_FLUSH;
  stream->next_in = src, stream->avail_in = (uint32_t)size;
  stream->next_out = dst, stream->avail_out = (uint32_t)room;
  if (isal_deflate_stateless(stream) != COMP_OK) fail("does not code");
  return stream->total_out;
}

static void expand(struct inflate_state *state, unsigned char *src, size_t size, unsigned char *dst,
                   size_t room) {
  isal_inflate_init(state);
  state->next_in = src, state->avail_in = (uint32_t)size;
  state->next_out = dst, state->avail_out = (uint32_t)room;
  if (isal_inflate_stateless(state) != ISAL_DECOMP_OK || state->total_out != room)
    fail("does not expand");
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: isal_direct FILE LIMIT JOB ROUNDS");
  const size_t limit = strtoul(argv[2], NULL, 10), job = strtoul(argv[3], NULL, 10);
  const int rounds = atoi(argv[4]);
  unsigned char *raw = malloc(limit), *again = malloc(job), *tables = malloc(ISAL_DEF_LVL1_DEFAULT);
  FILE *file = fopen(argv[1], "rb");
  if (!raw || !again || !tables || !file || job == 0) fail("no memory, or no file");
  const size_t n = fread(raw, 1, limit, file) / job, room = 2 * job;
  fclose(file);
  unsigned char *codes = malloc(n * room + 1);
  size_t *sizes = malloc(n * sizeof *sizes + 1), total = 0;
  struct isal_zstream *stream = malloc(sizeof *stream);
  struct inflate_state *state = malloc(sizeof *state);
  if (!codes || !sizes || !stream || !state) fail("no memory");
  double encode = 1e9, decode = 1e9;
  for (int round = 0; round < rounds; ++round) {
    double begin = seconds();
    total = 0;
    for (size_t i = 0; i < n; ++i)
      total += sizes[i] = code(stream, tables, raw + i * job, job, codes + i * room, room);
    double end = seconds();
    if (end - begin < encode) encode = end - begin;
    begin = seconds();
    for (size_t i = 0; i < n; ++i) expand(state, codes + i * room, sizes[i], again, job);
    end = seconds();
    if (end - begin < decode) decode = end - begin;
    for (size_t i = 0; i < n; ++i) {
      expand(state, codes + i * room, sizes[i], again, job);
      if (memcmp(again, raw + i * job, job) != 0) fail("gives other bytes");
    }
  }
  printf("{\"bytes\": %zu, \"frame_bytes\": %zu, \"encode\": %.9f, \"decode\": %.9f}\n", n * job,
         total, encode, decode);
  return 0;
}
