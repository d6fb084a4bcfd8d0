// SPDX-License-Identifier: Apache-2.0
// Steps through the frame store with an engine, every byte of which is compared:
//   device_faults FILE ENGINE CODEC N SEED
// Prints a JSON line: steps put, right and lost, the seconds of the slowest put or get, and what
// the device did. device_faults.py runs it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wirepress/store.h>

enum { kSize = 100000, kBatch = 20 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fill(unsigned char *data, unsigned seed) {
  unsigned state = seed * 2654435761u + 1;
  for (size_t i = 0; i < kSize; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (unsigned char)('a' + ((state >> 28) & (state >> 24) & 15));
  }
}

static void fail(const char *why) {
  fprintf(stderr, "device_faults: %s\n", why);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 6) fail("usage: device_faults FILE ENGINE CODEC N SEED");
  const unsigned n = (unsigned)atoi(argv[4]), seed = (unsigned)atoi(argv[5]);
  const char *options[] = {"block_size", "16KiB", "verify", "on"};
  wpr_store_config config = {.dtype = WPR_UINT8,
                             .n_dims = 1,
                             .shape = {kSize},
                             .policy = WPR_STORE_COMPRESSED,
                             .recipe = argv[3],
                             .engine = argv[2],
                             .options = options,
                             .n_options = 4};
  wpr_store *store;
  if (wpr_store_create(argv[1], &config, &store) != WPR_OK) fail(wpr_store_error(store));
  unsigned char *data = malloc(kSize), *wanted = malloc(kSize);
  if (!data || !wanted) fail("no memory");
  unsigned right = 0, lost = 0;
  double slowest = 0;
  for (unsigned first = 0; first < n; first += kBatch) {
    const unsigned end = first + kBatch < n ? first + kBatch : n;
    for (unsigned i = first; i < end; ++i) {
      fill(wanted, seed * 10000 + i);
      const double begin = now();
      if (wpr_store_put(store, i, wanted, kSize) != WPR_OK) fail(wpr_store_error(store));
      if (now() - begin > slowest) slowest = now() - begin;
    }
    if (wpr_store_sync(store) != WPR_OK) fail(wpr_store_error(store));
    for (unsigned i = first; i < end; ++i) {
      fill(wanted, seed * 10000 + i);
      memset(data, 0, kSize);
      const double begin = now();
      if (wpr_store_get(store, i, data, kSize) != WPR_OK)
        ++lost;
      else
        right += memcmp(data, wanted, kSize) == 0;
      if (now() - begin > slowest) slowest = now() - begin;
    }
  }
  if (wpr_store_close(store) != WPR_OK) fail(wpr_store_error(store));
  wpr_store_free(store);
  const char *state = "";
  for (size_t i = 0; wpr_engine_state(i) && i < 8; ++i)
    if (*wpr_engine_state(i)) state = wpr_engine_state(i);
  printf("{\"n\": %u, \"right\": %u, \"lost\": %u, \"slowest\": %.6f, \"state\": \"%s\"}\n", n,
         right, lost, slowest, state);
  return 0;
}
