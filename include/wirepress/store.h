/* SPDX-License-Identifier: Apache-2.0
 *
 * store.h: the C door (C99) of the frame store: time steps of one shape go to memory or to a file
 * (spec/store.md), compressed by servant threads, and come back, read ahead.
 *
 * Threads: every call on a store may be made from any thread, except wpr_store_free, which is for
 * one that is alone with it. Different stores are independent.
 * What wpr_store_sync acknowledged is readable, bit for bit as get would have given it, after any
 * crash; a later frame is readable or absent. The library never prints, exits or throws.
 * Fork: in the child every call on a store of the parent's is refused with WPR_PARAMETER, and
 * wpr_store_free leaves it alone; the parent's goes on. NULL where a pointer is needed is refused.
 */
#ifndef WIREPRESS_STORE_H
#define WIREPRESS_STORE_H

#include <wirepress/wirepress.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wpr_store wpr_store;

typedef enum wpr_store_policy {
  WPR_STORE_MEMORY = 0,     /* frames stay in memory; there is no file */
  WPR_STORE_DISK = 1,       /* the file holds them raw */
  WPR_STORE_COMPRESSED = 2, /* the file holds them as wirepress frames, made by the servants */
  WPR_STORE_IN_WORKER = 3   /* the same, a wirepress frame for each tile, made and expanded by the
                               threads that call, while the tile is in their cache; nobody copies
                               a frame, and servants only write and read */
} wpr_store_policy;

/* What happens to a frame that the file system does not take. Frames before it stay readable. */
typedef enum wpr_store_on_error {
  WPR_STORE_STOP = 0, /* it is lost; this and every later put, and sync, fail with the reason */
  WPR_STORE_DROP = 1, /* it is lost and counted; later ones are tried */
  WPR_STORE_SPILL = 2 /* it stays in memory; sync and close try the file again */
} wpr_store_on_error;

typedef struct wpr_store_config {
  wpr_dtype dtype; /* with shape: what a frame is. Ignored by wpr_store_open */
  int n_dims;      /* 0 to 4 */
  uint64_t shape[WPR_MAX_DIMS];
  wpr_store_policy policy;
  wpr_store_on_error on_error;
  const char *recipe; /* of the two that compress; NULL: the option "recipe" */
  uint64_t memory;    /* bytes that buffers (policy memory: frames) may take; 0: enough for four
                         frames (policy memory: no limit) */
  int servants;       /* threads that compress, write, read and expand; 0: one */
  const int *pin;     /* cores, one for each servant in turn; NULL: not pinned */
  size_t n_pin;
  int direct;       /* 1: past the page cache (O_DIRECT), where the file system can */
  uint64_t reserve; /* bytes of disk to allocate ahead of what is written; 0: none */
  const int *nodes; /* NUMA nodes, one for each servant in turn, which runs on its cores where pin
                       is NULL; buffers come from the first one while it has memory */
  size_t n_nodes;
  const char *engine;          /* the option "engine" of those who compress; NULL: its value */
  const char *const *options;  /* more options of theirs: key, value, key, value ... */
  size_t n_options;            /* strings: twice the number of options */
  uint64_t tile[WPR_MAX_DIMS]; /* extents of the boxes that put_tile and get_tile take; those at
                                  the upper edges are smaller. All 0: about 256 KiB */
} wpr_store_config;

/* A new store; a file that exists is refused. As with wpr_create, *store is set, for
 * wpr_store_error, unless the status is WPR_NO_MEMORY and it is NULL; it is to be freed. */
WPR_API wpr_status wpr_store_create(const char *path, const wpr_store_config *config,
                                    wpr_store **store);
/* A store that exists. append 0: only to read; the file is never changed. 1: also to put; a torn
 * tail is cut first, and a second writer is refused. config may be NULL; policy memory means
 * compressed. */
WPR_API wpr_status wpr_store_open(const char *path, int append, const wpr_store_config *config,
                                  wpr_store **store);
/* Stops the servants after what is queued. Without wpr_store_close before, the file has no index
 * and the next open reads all of it. NULL is fine. */
WPR_API void wpr_store_free(wpr_store *store);
/* The sentence of the calling thread's last failure, if that was of this store; else of the last
 * failure of any thread, for one that is alone with the store. Valid until the next call. */
WPR_API const char *wpr_store_error(wpr_store *store);

/* Takes a copy of a frame of n bytes (what the shape says, else WPR_PARAMETER) and returns as soon
 * as it lies in a buffer; waits while all buffers are full. A step is put once, in any order.
 * Here and in wpr_store_get, not for tiles, the frame may lie in memory of a GPU: it is copied
 * whole behind the default stream's work, and coded on the cores. */
WPR_API wpr_status wpr_store_put(wpr_store *store, uint64_t step, const void *src, size_t n);
/* Writes the frame of a step to dst (cap: at least its size). Two calls at neighbouring steps, in
 * either direction, make the servants read ahead that way. */
WPR_API wpr_status wpr_store_get(wpr_store *store, uint64_t step, void *dst, size_t cap);
/* The same by tiles, from as many threads as wanted. strides: bytes from element to element along
 * each dimension in the caller's memory, whose last one is the element's size; NULL: the tile is
 * packed. A frame is in the store when its last tile was put; until then it takes a buffer, and
 * close gives up on it: to begin one more frame than there are buffers waits until one is complete,
 * for ever if nobody completes it. Each tile is put once. */
WPR_API wpr_status wpr_store_put_tile(wpr_store *store, uint64_t step, uint64_t tile,
                                      const void *src, const uint64_t *strides);
/* The buffer of a frame is free again after as many calls as it has tiles. */
WPR_API wpr_status wpr_store_get_tile(wpr_store *store, uint64_t step, uint64_t tile, void *dst,
                                      const uint64_t *strides);

typedef struct wpr_store_tile {
  uint64_t raw_size;
  uint64_t first[WPR_MAX_DIMS]; /* its place in the frame, in elements */
  uint64_t shape[WPR_MAX_DIMS];
} wpr_store_tile;

/* Tile 0, 1, ... n_tiles - 1, in C order; WPR_PARAMETER past the end. */
WPR_API wpr_status wpr_store_tile_at(wpr_store *store, uint64_t tile, wpr_store_tile *out);
/* Starts reading ahead at this step; direction is -1 or 1. */
WPR_API wpr_status wpr_store_prefetch(wpr_store *store, uint64_t step, int direction);
/* Returns when every frame put before is on stable storage. */
WPR_API wpr_status wpr_store_sync(wpr_store *store);
/* Writes what is queued, the index, and syncs. Only wpr_store_free, the statistics and a second
 * close (which does nothing) are allowed then. */
WPR_API wpr_status wpr_store_close(wpr_store *store);

typedef struct wpr_store_info {
  wpr_dtype dtype;
  int n_dims;
  uint64_t shape[WPR_MAX_DIMS];
  uint64_t raw_size;   /* bytes of a frame */
  uint64_t n_frames;   /* that get would give, those still being written included */
  uint64_t n_buffers;  /* of one frame each */
  uint64_t n_tiles;    /* of a frame */
  uint64_t torn_bytes; /* an open for append cut them, one for reading passed over them */
  int from_index;      /* 1: the file had an index; 0: it was scanned */
  int direct;          /* 1: writes (of one only to read: reads) go past the page cache */
} wpr_store_info;

typedef struct wpr_store_stats {
  uint64_t puts, gets;
  uint64_t raw_bytes, stored_bytes; /* of the frames written by this object */
  uint64_t read_ahead;              /* gets served from a buffer that was read ahead */
  uint64_t dropped, spilled;        /* frames that the file did not take */
  uint64_t buffer_bytes;            /* what buffers (policy memory: frames) take, at most memory */
  double put_wait_seconds;          /* the producer waited for a buffer ... */
  double put_copy_seconds;          /* ... and copied to it */
  double get_wait_seconds;          /* the consumer waited for its frame, reading included ... */
  double get_copy_seconds;          /* ... and copied it from a buffer */
  double longest_put_wait_seconds, longest_get_wait_seconds;
  /* Of all servants and, in policy in-worker and where nothing was read ahead, of the callers. */
  double compress_seconds, write_seconds, read_seconds, expand_seconds;
} wpr_store_stats;

typedef struct wpr_store_frame {
  uint64_t step;
  uint64_t stored_size; /* 0: not written yet */
  uint64_t offset;      /* of its record in the file; 0: in memory */
  double put_wait_seconds, get_wait_seconds;
} wpr_store_frame;

WPR_API wpr_status wpr_store_get_info(wpr_store *store, wpr_store_info *info);
WPR_API wpr_status wpr_store_get_stats(wpr_store *store, wpr_store_stats *stats);
/* The frame of the lowest step that is at least `step`; returns 0 where there is none. */
WPR_API int wpr_store_frame_from(wpr_store *store, uint64_t step, wpr_store_frame *frame);

/* ---- files ------------------------------------------------------------------------------ */

typedef struct wpr_store_record {
  uint64_t offset, sequence, step, stored_size;
  int kind;          /* 1 raw, 2 wirepress frame, 3 index, 4 tiles */
  wpr_status status; /* WPR_OK, WPR_CHECKSUM or WPR_CORRUPT */
} wpr_store_record;

typedef struct wpr_store_report {
  uint64_t file_size, n_frames;
  uint64_t damaged;    /* records whose content is wrong, and gaps that hold none */
  uint64_t good_size;  /* where the last good record ends */
  uint64_t torn_bytes; /* behind it */
  int index;           /* 1: the file ends with a good index */
} wpr_store_report;

/* Reads all of a file and calls row(user, ...) for every record that has a good head; row may be
 * NULL. WPR_OK says that it was read, not that it is whole: the report says that. On failure its
 * sentence is in text (cap bytes, with its final 0). */
WPR_API wpr_status wpr_store_check(const char *path, wpr_store_report *report,
                                   void (*row)(void *user, const wpr_store_record *record),
                                   void *user, char *text, size_t cap);
/* The same, then cuts a torn tail and writes an index of the good frames where there is none. The
 * report is of the file as it was. */
WPR_API wpr_status wpr_store_repair(const char *path, wpr_store_report *report, char *text,
                                    size_t cap);

#ifdef __cplusplus
}
#endif

#endif /* WIREPRESS_STORE_H */
