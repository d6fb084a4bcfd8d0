/* SPDX-License-Identifier: Apache-2.0
 * Preloaded, counts the blocks of memory that the interposer has and has not given back: those that
 * its code asked for, whoever frees them. Unlike what is resident, that does not depend on MPI, on
 * the allocator or on what else the machine does. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

enum { SLOTS = 1 << 20 }; /* far more than there are blocks */
static uintptr_t blocks[SLOTS];
static long n_blocks;
static uintptr_t first, last; /* the interposer's code */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

long live_blocks(void) { return n_blocks; }

static int find(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (!info->dlpi_name || !strstr(info->dlpi_name, "libwirepress_mpi_")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    first = info->dlpi_addr + part->p_vaddr;
    last = first + part->p_memsz;
  }
  return 1;
}
__attribute__((constructor)) static void begin(void) { dl_iterate_phdr(find, NULL); }

static size_t place_of(uintptr_t block) { return (size_t)((block * 0x9E3779B97F4A7C15u) >> 44); }

/* Linear probing; what is taken out moves the ones behind it up. */
static void put(void *block, void *caller) {
  if (!block || (uintptr_t)caller < first || (uintptr_t)caller >= last) return;
  pthread_mutex_lock(&mutex);
  size_t at = place_of((uintptr_t)block);
  while (blocks[at]) at = (at + 1) % SLOTS;
  blocks[at] = (uintptr_t)block;
  ++n_blocks;
  pthread_mutex_unlock(&mutex);
}

static int take(void *block) {
  if (!block || !first) return 0;
  pthread_mutex_lock(&mutex);
  size_t at = place_of((uintptr_t)block);
  while (blocks[at] && blocks[at] != (uintptr_t)block) at = (at + 1) % SLOTS;
  const int found = blocks[at] != 0;
  if (found) {
    --n_blocks;
    blocks[at] = 0;
    for (size_t next = (at + 1) % SLOTS; blocks[next]; next = (next + 1) % SLOTS) {
      const size_t home = place_of(blocks[next]);
      if ((next - home) % SLOTS < (next - at) % SLOTS) continue;
      blocks[at] = blocks[next];
      blocks[next] = 0;
      at = next;
    }
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

void *malloc(size_t size) {
  void *block = __libc_malloc(size);
  put(block, __builtin_return_address(0));
  return block;
}
void *calloc(size_t n, size_t size) {
  void *block = __libc_calloc(n, size);
  put(block, __builtin_return_address(0));
  return block;
}
void *realloc(void *old, size_t size) {
  void *caller = take(old) ? (void *)first : __builtin_return_address(0);
  void *block = __libc_realloc(old, size);
  put(block || !size ? block : old, caller);
  return block;
}
void *memalign(size_t alignment, size_t size) {
  void *block = __libc_memalign(alignment, size);
  put(block, __builtin_return_address(0));
  return block;
}
void *aligned_alloc(size_t alignment, size_t size) {
  void *block = __libc_memalign(alignment, size);
  put(block, __builtin_return_address(0));
  return block;
}
int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = __libc_memalign(alignment, size);
  put(*block, __builtin_return_address(0));
  return *block ? 0 : ENOMEM;
}
void free(void *block) {
  take(block);
  __libc_free(block);
}
