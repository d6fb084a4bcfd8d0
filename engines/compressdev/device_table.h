/* SPDX-License-Identifier: Apache-2.0
 * What a loadable module tells of a compression device and does with it. The table names no driver
 * library, so that a module may stand on DPDK (module.cpp), on a vendor's library or on nothing
 * (virtual devices, the tests' faulty device). Jobs are stateless, one block each: raw DEFLATE
 * (RFC 1951) or a raw LZ4 block. */
#ifndef WIREPRESS_DEVICE_TABLE_H
#define WIREPRESS_DEVICE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define WPR_DEVICE_PAD 4
#define WPR_DEVICE_SYMBOL "wpr_device_table_2"

enum { WPR_DEVICE_DEFLATE = 0, WPR_DEVICE_LZ4 = 1, WPR_DEVICE_ALGORITHMS = 2 };
enum { WPR_DEVICE_COMPRESS = 0, WPR_DEVICE_EXPAND = 1 };

typedef struct wpr_device_info {
  char name[64];   /* as the user names it: "isal", "0000:03:00.0" */
  char driver[64]; /* as the driver library names it */
  int window_log;  /* of DEFLATE: log2 of the largest window in bytes */
  /* By algorithm and direction, bytes: the largest job (0: the device does not do it) and answer.
   */
  size_t max_src[WPR_DEVICE_ALGORITHMS][2];
  size_t max_dst[WPR_DEVICE_ALGORITHMS][2];
  void *device; /* for open and close */
} wpr_device_info;

typedef struct wpr_device_job {
  uint64_t tag;  /* comes back in the answer */
  int algorithm; /* WPR_DEVICE_DEFLATE or WPR_DEVICE_LZ4 */
  int direction; /* WPR_DEVICE_COMPRESS or WPR_DEVICE_EXPAND */
  const void *src;
  size_t src_size; /* 1 to max_src */
  size_t pad;      /* zero bytes to put behind a DEFLATE code, at most WPR_DEVICE_PAD */
  size_t room;     /* bytes that the answer may have, 1 to max_dst */
} wpr_device_job;

typedef struct wpr_device_answer {
  uint64_t tag;
  int status; /* 0: done; else the driver's own number */
  size_t consumed, produced;
  const void *data; /* `produced` bytes of the module, valid until the queue's next submit */
} wpr_device_answer;

typedef struct wpr_device_table {
  /* Sets the device up, once in a process, and asks it what it can do. 0, or -1 and a sentence. */
  int (*describe)(const char *device, wpr_device_info *info, char *why, size_t why_size);
  /* A queue for one job at a time, of one thread at a time; NULL: there are no more. Calls of open
   * come one after the other. */
  void *(*open)(void *device);
  /* Copies src. 1: taken; 0: full, try later; -1: refused. */
  int (*submit)(void *queue, const wpr_device_job *job);
  /* 1: *answer is set; 0: nothing yet. Never blocks. */
  int (*poll)(void *queue, wpr_device_answer *answer);
  /* Ends the device's work on all queues. Their memory stays, for the device may be late. */
  void (*close)(void *device);
  /* What else there is to say of the device's work, as a part of a sentence; NULL: nothing. */
  void (*tell)(void *device, char *text, size_t size);
} wpr_device_table;

#endif
