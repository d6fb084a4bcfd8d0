/* SPDX-License-Identifier: Apache-2.0
 *
 * wirepress.h: the C door (C99). Compresses buffers to self-describing frames (spec/frame.md) and
 * back.
 *
 * Ownership: the caller owns every buffer. Sizes are bytes. Outputs are written only on success,
 * but the contents of dst are undefined after a failure.
 * Threads: one wpr_ctx is used by one thread at a time; different contexts are independent. A
 * context may itself use several threads (option "threads"); a frame's bytes do not depend on how
 * many.
 * Fork: the child may use and free its copies of contexts that no other thread was using at the
 * fork; they make threads anew. Those that one was using must not be touched in the child.
 * Alignment: none is needed. Buffers at multiples of 64 bytes are faster: AVX-512 expands gradient
 * codes there up to 1.4 times as fast (4 MiB, one core).
 * Overlap: what a call writes lies apart from what it reads, else it is refused with WPR_PARAMETER
 * (only wpr_copy moves within one buffer). cap counts where more of dst than a frame's bound or its
 * content is given: wpr_expand_update. Of what lies on a device, frames are not looked at.
 * NULL: a call that needs a pointer and gets none is refused with WPR_PARAMETER; the bounds of no
 * context are 0.
 * Not promised: equal bytes from different versions of the library, or of liblz4, libzstd,
 * libsnappy and libdeflate below it. Every released frame stays readable.
 * The library never prints, exits or throws.
 * Long because it is the whole door, read from top to bottom.
 */
#ifndef WIREPRESS_H
#define WIREPRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WPR_API __attribute__((visibility("default")))
#else
#define WPR_API
#endif

#define WPR_VERSION "0.1.0"

/* Grouped by who must act. The values are frozen. */
typedef enum wpr_status {
  WPR_OK = 0,
  /* the bytes */
  WPR_CORRUPT = 10,     /* not a frame, or a frame that contradicts itself */
  WPR_CHECKSUM = 11,    /* a checksum does not match */
  WPR_UNSUPPORTED = 12, /* a version, codec or flag this library does not know */
  WPR_TRUNCATED = 13,   /* the frame ends before its content does */
  /* the call */
  WPR_PARAMETER = 20,     /* an unknown key, codec or value: wpr_error lists the known ones */
  WPR_DST_TOO_SMALL = 21, /* the result does not fit dst */
  WPR_INTERRUPTED = 22,   /* the function of wpr_set_interrupt ended the call */
  /* the place */
  WPR_NO_MEMORY = 30,
  WPR_DEVICE = 31,
  WPR_IO = 32 /* a file system refused: the sentence says what errno says */
} wpr_status;

/* Element types; the values are frozen (spec/frame.md). */
typedef enum wpr_dtype {
  WPR_BYTES = 0,
  WPR_INT8 = 1,
  WPR_UINT8 = 2,
  WPR_INT16 = 3,
  WPR_UINT16 = 4,
  WPR_INT32 = 5,
  WPR_UINT32 = 6,
  WPR_INT64 = 7,
  WPR_UINT64 = 8,
  WPR_FLOAT16 = 9,
  WPR_BFLOAT16 = 10,
  WPR_FLOAT32 = 11,
  WPR_FLOAT64 = 12,
  WPR_FLOAT8_E4M3 = 13,
  WPR_FLOAT8_E5M2 = 14,
  WPR_BOOL = 15,
  WPR_COMPLEX64 = 16,
  WPR_COMPLEX128 = 17
} wpr_dtype;

/* Bytes of an element, 1 of WPR_BYTES; 0: dtype is none of the above. */
WPR_API size_t wpr_dtype_size(wpr_dtype dtype);
/* Its name: "bytes", "float32", "float8_e4m3" ... (spec/frame.md); NULL: dtype is none of the
 * above. */
WPR_API const char *wpr_dtype_name(wpr_dtype dtype);

#define WPR_MAX_DIMS 4
#define WPR_NO_SHAPE (-1)      /* n_dims of a frame that carries bytes without a shape */
#define WPR_UNKNOWN UINT64_MAX /* raw_size and n_blocks of a streamed frame */
#define WPR_MAX_HEADER 64      /* no frame header is longer */
#define WPR_MAX_RECIPE 128     /* the text of a recipe, with its final 0 */

typedef struct wpr_ctx wpr_ctx;

/* ---- context ---------------------------------------------------------------------------- */

/* A context with the defaults of `wirepress options`, overridden by WIREPRESS_* variables.
 * An invalid variable fails with WPR_PARAMETER and *ctx still set, so that wpr_error can say which,
 * as does a default that this build or engine cannot use; only WPR_NO_MEMORY leaves *ctx NULL.
 * Variables that no option has are none of its business: wpr_take_warning names them. */
WPR_API wpr_status wpr_create(wpr_ctx **ctx);
WPR_API void wpr_free(wpr_ctx *ctx); /* NULL is fine */

/* Sets an option by its key: wpr_set(ctx, "recipe", "shuffle:4+zstd:1"). It holds from the next
 * frame on: a stream that is open, in either direction, keeps the options that it began with. */
WPR_API wpr_status wpr_set(wpr_ctx *ctx, const char *key, const char *value);
/* Its current value, as text that stays valid until the next wpr_set; NULL: unknown key. */
WPR_API const char *wpr_get(const wpr_ctx *ctx, const char *key);
/* Its current value as a number: bytes of a size, bytes a second of a rate, an integer (exact below
 * 2^53), 1 or 0 of a boolean; 0 for a word such as auto. WPR_PARAMETER: the key is unknown, or the
 * option is no number, but a text, choice, recipe or error bound; *value is left alone then. */
WPR_API wpr_status wpr_get_number(const wpr_ctx *ctx, const char *key, double *value);
/* How an error bound is meant; the values are frozen. */
typedef enum wpr_error_kind {
  WPR_ERROR_NONE = 0,     /* no error at all; the bound is 0 */
  WPR_ERROR_RELATIVE = 1, /* a part of each value, above 0 and below 1 */
  WPR_ERROR_ABSOLUTE = 2  /* a difference, 1e-100 to 1e100 */
} wpr_error_kind;
/* Its current value as an error bound. WPR_PARAMETER: the key is unknown, or the option is no error
 * bound; *kind and *value are left alone then. */
WPR_API wpr_status wpr_get_error_bound(const wpr_ctx *ctx, const char *key, wpr_error_kind *kind,
                                       double *value);
/* Where the value comes from: "default", "environment" or "set"; NULL: unknown key. */
WPR_API const char *wpr_origin(const wpr_ctx *ctx, const char *key);

/* Lets long calls be ended: asked(user) is called between two blocks, by the thread that made the
 * call and often (after microseconds where blocks are small), and may take its time. Once it
 * returns other than 0 the call fails with WPR_INTERRUPTED, as soon as the blocks that other
 * threads have are done; a stream ends with it. It must not use the context. asked NULL: nobody is
 * asked, as at first. */
WPR_API wpr_status wpr_set_interrupt(wpr_ctx *ctx, int (*asked)(void *user), void *user);

/* One sentence about the context's last failure, "" if there was none. Valid until the next call
 * with this context. */
WPR_API const char *wpr_error(const wpr_ctx *ctx);
WPR_API const char *wpr_status_name(wpr_status status); /* "ok", "corrupt", ... */
WPR_API const char *wpr_version(void);                  /* WPR_VERSION of the library loaded */

/* A sentence that a program should print or log: the variables WIREPRESS_* of the process that
 * nobody reads, each with the name that may be meant. "": there are none, or the sentence was
 * taken: the first call has it, so that of several users in a process one says it. Never NULL,
 * static. */
WPR_API const char *wpr_take_warning(void);

/* Bytes a second of a rate as options take it: a number above 0, k, K, M, G, T or nothing, and bps,
 * b/s, bit/s or B/s (25Gbps, 1.2GB/s); MiB/s is in powers of 1024. WPR_PARAMETER: the text is no
 * rate; nothing is written then. */
WPR_API wpr_status wpr_parse_rate(const char *text, double *rate);

/* ---- whole buffers ---------------------------------------------------------------------- */

/* A dst this big never fails; SIZE_MAX for more than a frame can hold, 2^48 bytes. */
WPR_API size_t wpr_bound(const wpr_ctx *ctx, size_t raw_size);

/* Makes one frame of n bytes. Nobody states their type here, so a recipe that changes values is
 * refused with WPR_PARAMETER: wpr_compress_array states it (and refuses the same for WPR_BYTES). A
 * dst smaller than wpr_bound() is allowed: WPR_DST_TOO_SMALL then says that the data did not shrink
 * enough. */
WPR_API wpr_status wpr_compress(wpr_ctx *ctx, const void *src, size_t n, void *dst, size_t cap,
                                size_t *written);

/* The same for an array: n_dims 0 to 4 (0 is a scalar) in C order, outermost first; src holds
 * product(shape) elements. Codecs use the dtype; the frame remembers dtype and shape.
 * n_dims WPR_NO_SHAPE: shape[0] elements whose shape is not remembered. */
WPR_API wpr_status wpr_compress_array(wpr_ctx *ctx, const void *src, wpr_dtype dtype, int n_dims,
                                      const uint64_t *shape, void *dst, size_t cap,
                                      size_t *written);

/* Expands one whole frame; bytes after its end are WPR_CORRUPT. dst is never written beyond cap. */
WPR_API wpr_status wpr_decompress(wpr_ctx *ctx, const void *src, size_t n, void *dst, size_t cap,
                                  size_t *written);

/* Expands raw bytes [offset, offset + size) only, touching just the blocks that hold them. */
WPR_API wpr_status wpr_decompress_range(wpr_ctx *ctx, const void *src, size_t n, uint64_t offset,
                                        size_t size, void *dst);

/* ---- memory of devices -------------------------------------------------------------------
 * wpr_compress, wpr_compress_array, wpr_compress_feedback, wpr_decompress, wpr_decompress_add,
 * wpr_decompress_range, wpr_inspect and wpr_raw_size take buffers in memory of a GPU: the library
 * asks of each pointer where it lies. There the first codec of a recipe is run by the device's
 * kernel, so that codes are copied and not data; frames have the bytes that the cores make. Where
 * there is no such kernel (or the option "engine" names another one), the blocks are copied and the
 * cores code them, which wpr_get_device_work counts. Calls return when all is done. Other calls
 * refuse such buffers with WPR_PARAMETER, and wpr_hash with 0. data and residual lie in one memory.
 */

typedef struct wpr_place {
  const char *engine; /* of kernels that reach it, such as "cuda:device"; "": the cores */
  int device;         /* its number; -1: none */
  void *on_cores;     /* where the cores reach the same byte, in an emulation; NULL: nowhere */
} wpr_place;

/* Where an address lies; loads no driver. Managed memory is the cores'. */
WPR_API wpr_status wpr_place_of(const void *at, wpr_place *place);

/* 0: no address lies on a device, until the process loads another library (a driver comes with
 * one) or wpr_device_alloc is called. Else 1: wpr_place_of tells. Loads no driver. */
WPR_API int wpr_may_have_devices(void);

/* The stream (a cudaStream_t) that the caller has put its work on the buffers on: calls wait for
 * what is there when they begin. NULL, as it is at first: the default stream. WPR_NO_STREAM: all
 * work on the buffers is done, and no call waits. */
#define WPR_NO_STREAM ((void *)-1)
WPR_API wpr_status wpr_set_stream(wpr_ctx *ctx, void *stream);

/* n bytes of memory of a device: of the engine "cuda", or of "cuda:emulated", for tests of programs
 * without a GPU: who touches it outside of a kernel ends with SIGSEGV. */
WPR_API wpr_status wpr_device_alloc(wpr_ctx *ctx, const char *engine, int device, size_t n,
                                    void **memory);
WPR_API wpr_status wpr_device_free(wpr_ctx *ctx, void *memory); /* NULL is fine */
/* Copies n bytes; each side may lie on a device. They do not overlap there. */
WPR_API wpr_status wpr_copy(wpr_ctx *ctx, void *to, const void *from, size_t n);

/* ---- jobs ---------------------------------------------------------------------------------
 * wpr_compress_array and wpr_decompress for data in memory of a GPU, by calls that return before
 * the work is done: it stands on the stream of wpr_set_stream, behind what is there, and before
 * what comes later. (WPR_NO_STREAM: on the default stream.) How long a frame is the device alone
 * knows until wpr_poll or wpr_wait says it. A context may have any number of jobs on their way, on
 * different streams.
 *
 * The buffers are the job's until it is done; read them by wpr_poll or wpr_wait, not by the stream.
 * A call that fails has touched nothing. A job that fails leaves dst undefined, but for one that
 * the device did and whose frame does not fit: that leaves dst as it was. Memory, of the device and
 * pinned, is kept for the next job; none is allocated once jobs like these (recipe, raw size, block
 * size, direction, and where the frame lies) have been on their way together. A call that allocates
 * may wait for the device, as its driver does. Frames have the bytes that wpr_compress_array makes.
 * A stream that is captured into a graph takes no jobs: WPR_PARAMETER.
 *
 * The device does all of a job where the recipe is one codec that has a kernel there, and data lie
 * at multiples of 16 bytes; to expand, where the frame lies in memory of the cores, which check its
 * sums in the call. Other jobs, and one that the device failed, are done by wpr_wait, or by the
 * wpr_poll that finds the stream ready, as wpr_compress_array and wpr_decompress do them;
 * wpr_get_device_work counts what a stream lost. So are those that have nothing to do with a
 * device, by the call itself. While there are jobs, wpr_set is refused, but for "seed": a job has
 * that of its call. wpr_free waits for them. */
typedef struct wpr_job wpr_job;

WPR_API wpr_status wpr_compress_async(wpr_ctx *ctx, const void *src, wpr_dtype dtype, int n_dims,
                                      const uint64_t *shape, void *dst, size_t cap, wpr_job **job);
WPR_API wpr_status wpr_decompress_async(wpr_ctx *ctx, const void *src, size_t n, void *dst,
                                        size_t cap, wpr_job **job);
/* The same of wpr_compress_feedback_typed and wpr_decompress_add_typed ("gradients", below):
 * frames, residuals and sums have their bits, and *written of wpr_poll and wpr_wait is what they
 * say. The device adds what every codec with a kernel there expands, and does all of a job with a
 * residual where that kernel is for gradients; `residual` lies beside `src`, at a multiple of 16
 * bytes, and is the job's until it is done. What a job changes cannot be done twice: where the
 * device fails that has begun, so does the job, and `residual`, or `dst` that is added to, is
 * undefined; the sentence says so. Before that nothing has changed, and wpr_wait does it. */
WPR_API wpr_status wpr_compress_feedback_async(wpr_ctx *ctx, const void *src, wpr_dtype dtype,
                                               float *residual, size_t n, void *dst, size_t cap,
                                               wpr_job **job);
WPR_API wpr_status wpr_decompress_add_async(wpr_ctx *ctx, const void *src, size_t n, void *dst,
                                            wpr_dtype dtype, size_t cap, wpr_job **job);
/* Several frames as one job, which takes as many launches and copies as one frame does: that is
 * what many small ones cost a device. `pieces`, and all that they name, are the job's until it is
 * done. They lie on one device, or with the cores; n_pieces >= 1. Where a call fails its sentence
 * names the piece; where the job does, every dst is undefined. *written of wpr_poll and wpr_wait is
 * the sum of the pieces'. */
typedef struct wpr_piece {
  const void *src; /* n values, or a frame of n bytes */
  size_t n;
  float *residual; /* of frames that are made: as of wpr_compress_feedback_async; NULL: none */
  void *dst;       /* room for a frame or for what it holds: cap bytes */
  size_t cap;
  uint64_t seed;  /* of frames that are made, in place of the option's */
  size_t written; /* when the job is done: what wpr_wait would say of it alone */
} wpr_piece;
/* Values of a type, each piece a frame of one dimension. */
WPR_API wpr_status wpr_compress_pieces_async(wpr_ctx *ctx, wpr_piece *pieces, size_t n_pieces,
                                             wpr_dtype dtype, wpr_job **job);
/* add: 0 as wpr_decompress_async, 1 as wpr_decompress_add_async to float32. */
WPR_API wpr_status wpr_decompress_pieces_async(wpr_ctx *ctx, wpr_piece *pieces, size_t n_pieces,
                                               int add, wpr_job **job);
/* Whether the job is done, without waiting for the device. *done 1: it is no more, the status is
 * its, and *written is what the call that waits would have said. */
WPR_API wpr_status wpr_poll(wpr_ctx *ctx, wpr_job *job, int *done, size_t *written);
/* Waits until it is. */
WPR_API wpr_status wpr_wait(wpr_ctx *ctx, wpr_job *job, size_t *written);

/* ---- gradients --------------------------------------------------------------------------- */

/* Of float32. Error feedback (the residual of one step is sent with the next): makes a frame of
 * src[i] + residual[i] and leaves in residual[i] what the frame does not carry of that sum; 0 where
 * that is not finite. n values each; dst has wpr_bound(ctx, 4 * n) bytes, else nothing is
 * touched. After another failure residual is undefined. */
WPR_API wpr_status wpr_compress_feedback(wpr_ctx *ctx, const float *src, float *residual, size_t n,
                                         void *dst, size_t cap, size_t *written);

/* dst[i] += what the frame holds, without a copy of it; *n_values says how many. cap is dst's size
 * in values. After a failure any part of dst may have been added to. */
WPR_API wpr_status wpr_decompress_add(wpr_ctx *ctx, const void *src, size_t n, float *dst,
                                      size_t cap, size_t *n_values);

/* The same of gradients of another type, WPR_BFLOAT16 or WPR_FLOAT16 (or WPR_FLOAT32), with no
 * array of float32 between: a worker casts what it is coding. The frame holds float32 and has the
 * bytes that the casted gradient has above; so it is read by any call. The residual stays float32:
 * in 16 bits it would drop most of what it is kept for, since a step's rest is smaller than a unit
 * in the last place of the sum that it is added to. What is added to is rounded once, to the
 * nearest (ties to even). n, cap and *n_values count values; dst of the first has
 * wpr_bound(ctx, 4 * n) bytes. WPR_PARAMETER: another type. */
WPR_API wpr_status wpr_compress_feedback_typed(wpr_ctx *ctx, const void *src, wpr_dtype dtype,
                                               float *residual, size_t n, void *dst, size_t cap,
                                               size_t *written);
WPR_API wpr_status wpr_decompress_add_typed(wpr_ctx *ctx, const void *src, size_t n, void *dst,
                                            wpr_dtype dtype, size_t cap, size_t *n_values);

/* The frame of the sum of two frames' values. The frames hold float32, or integers of at most 32
 * bits, whose sums wrap around; they are not streamed and have equal headers (recipe, type, shape,
 * block size), else WPR_PARAMETER. Codes of the recipe's first codec can be added (the codec's
 * document says what the sum is), else WPR_UNSUPPORTED. dst has wpr_bound(ctx, raw size) bytes, or
 * a_size and the raw size together where the frames were made with smaller blocks than ctx's. */
WPR_API wpr_status wpr_add(wpr_ctx *ctx, const void *a, size_t a_size, const void *b, size_t b_size,
                           void *dst, size_t cap, size_t *written);

/* ---- weights ------------------------------------------------------------------------------- */

/* Steps between two states of n words of word_size 1, 2 or 4 bytes, in the order of floats: a step
 * is the distance in that order, so that neighbours are one apart. Every word is exact, NaNs and -0
 * too. Makes a frame of them, as integers of that size, by the option "recipe", which must be
 * lossless (codec sparse is made for it). dst has wpr_bound(ctx, n * word_size) bytes. */
WPR_API wpr_status wpr_compress_steps(wpr_ctx *ctx, const void *before, const void *after, size_t n,
                                      size_t word_size, void *dst, size_t cap, size_t *written);

/* Moves words by the steps that a frame holds: what was `before` becomes `after`. Steps do not know
 * what they are applied to; wpr_hash does. A word has the size of the frame's integers, 8, 16 or 32
 * bits; a frame of another type, or of no whole number of them, is WPR_PARAMETER. cap is the size
 * of words in bytes, and *used the bytes of them that the frame moved. After a failure any part of
 * words may have moved. */
WPR_API wpr_status wpr_take_steps(wpr_ctx *ctx, const void *src, size_t n, void *words, size_t cap,
                                  size_t *used);

/* XXH3 of n bytes, 64 bits. 0 where data is NULL and n is not 0: nothing was hashed. */
WPR_API uint64_t wpr_hash(const void *data, size_t n, uint64_t seed);

/* ---- looking at frames ------------------------------------------------------------------ */

typedef struct wpr_info {
  uint32_t version;
  uint32_t header_size;
  uint64_t raw_size; /* WPR_UNKNOWN in a streamed frame */
  uint64_t block_size;
  uint64_t n_blocks; /* WPR_UNKNOWN in a streamed frame */
  wpr_dtype dtype;
  int n_dims; /* WPR_NO_SHAPE or 0..4 */
  uint64_t shape[WPR_MAX_DIMS];
  int checksum;                /* 1: every block carries one */
  int streamed;                /* 1: sizes come with the last block */
  char recipe[WPR_MAX_RECIPE]; /* "shuffle:4+zstd:1" */
} wpr_info;

/* Reads the header alone; n may be any prefix that holds it (WPR_MAX_HEADER bytes always do). */
WPR_API wpr_status wpr_inspect(wpr_ctx *ctx, const void *frame, size_t n, wpr_info *info);
/* Of a whole frame; trusts nothing. Of a streamed frame the blocks are walked; of another one the
 * header says it, and one with more blocks than n bytes can hold is WPR_TRUNCATED. */
WPR_API wpr_status wpr_raw_size(const void *frame, size_t n, uint64_t *raw_size);

/* ---- streams ---------------------------------------------------------------------------- */

/* Data of unknown length, in constant memory. begin writes the header, update takes any number of
 * bytes and writes whatever blocks are ready, end writes the rest. Each needs room in dst for
 * wpr_stream_bound(ctx, n) bytes, n being what the call is given (0 for begin and end), asked for
 * before that call: it suffices for the stream that is open and for one that begins. */
WPR_API size_t wpr_stream_bound(const wpr_ctx *ctx, size_t n);
WPR_API wpr_status wpr_stream_begin(wpr_ctx *ctx, wpr_dtype dtype, void *dst, size_t cap,
                                    size_t *written);
WPR_API wpr_status wpr_stream_update(wpr_ctx *ctx, const void *src, size_t n, void *dst, size_t cap,
                                     size_t *written);
WPR_API wpr_status wpr_stream_end(wpr_ctx *ctx, void *dst, size_t cap, size_t *written);

/* Reads any frame, streamed or not, piece by piece: consumes up to n bytes and writes up to cap.
 * Call again, with the rest of the input or none, while *written == cap. *done is 1 after the last
 * byte of content was written. wpr_expand_begin starts (over). */
WPR_API wpr_status wpr_expand_begin(wpr_ctx *ctx);
WPR_API wpr_status wpr_expand_update(wpr_ctx *ctx, const void *src, size_t n, size_t *consumed,
                                     void *dst, size_t cap, size_t *written, int *done);

/* ---- recipe "auto" ---------------------------------------------------------------------- */

/* A candidate that recipe=auto weighed for a group of blocks. Rates are bytes a second. */
typedef struct wpr_choice {
  uint64_t offset, size;   /* raw bytes of the group */
  int reused;              /* 1: it looks like an earlier group, whose choice stands */
  double zero_lines;       /* share of 64-byte lines that are zeros, in a sample of the group */
  double byte_entropy;     /* bits a byte, order 0; this and the next three: of the other lines */
  double exponent_entropy; /* bits an exponent; 0 for what is no float */
  double roughness;        /* mean step between neighbours by twice their mean size, at most 1 */
  double matches; /* share of words (of 4 bytes, or elements of 8) that stood there before */
  const char *recipe;
  const char *why;                   /* it was not tried; "": it was */
  double ratio;                      /* of what was tried */
  double compress_rate, expand_rate; /* one thread, at this ratio: calibrated, or timed */
  double finish; /* seconds a byte until it is expanded on the other side of the link (model) */
  int chosen;
  uint64_t tried; /* bytes that were compressed for the ratio; 0: none, it is known */
  int timed;      /* 1: compress_rate is of a block of data like these */
  double pace;    /* what the machine takes now by what it took at the calibration; in the rates */
  double prior;   /* finish by the calibration alone */
} wpr_choice;

/* What recipe=auto would choose for these data (described as for wpr_compress_array), and why:
 * calls row(user, ...) for every candidate of every group. The goal is in the option "recipe" where
 * that is an auto, else "auto"; strings are valid during the call. */
WPR_API wpr_status wpr_explain(wpr_ctx *ctx, const void *src, wpr_dtype dtype, int n_dims,
                               const uint64_t *shape,
                               void (*row)(void *user, const wpr_choice *choice), void *user);

/* Whether a recipe gives back every bit of data of this type: *lossless is 1 or 0. WPR_PARAMETER:
 * there is no such recipe, or it does not take the type. */
WPR_API wpr_status wpr_lossless(wpr_ctx *ctx, const char *recipe, wpr_dtype dtype, int *lossless);

/* ---- statistics ------------------------------------------------------------------------- */

typedef struct wpr_stats {
  uint64_t raw_bytes;      /* compressed so far: input ... */
  uint64_t wire_bytes;     /* ... and frames */
  uint64_t blocks;         /* of them: all ... */
  uint64_t bypassed_probe; /* ... stored raw because a sample looked incompressible ... */
  uint64_t bypassed_size;  /* ... stored raw because the code was not smaller */
  uint64_t expanded_bytes; /* decompressed so far: raw bytes */
  /* Wall clock in calls that make frames, wpr_add too. Jobs that a device does on a stream count
   * their bytes above and no seconds: nobody waits for them alone. */
  double compress_seconds;
  double decompress_seconds;
} wpr_stats;

WPR_API void wpr_get_stats(const wpr_ctx *ctx, wpr_stats *stats);
WPR_API void wpr_reset_stats(wpr_ctx *ctx);

/* ---- what there is ---------------------------------------------------------------------- */

typedef struct wpr_codec_info {
  uint32_t id;
  const char *name;
  const char *sentence;
  int lossless;
  int exact_encode;
  size_t n_params;
  size_t n_kernels;
  int sparse;         /* 1: codes some float32 values exactly and drops the others */
  int wants_feedback; /* 1: gradients train worse without error feedback */
  uint32_t dtypes;    /* the types that it takes without parameters: bit d for the wpr_dtype d */
} wpr_codec_info;

typedef struct wpr_param_info {
  const char *name;
  int min, max, fallback;
  const char *const *words; /* NULL, or max + 1 names */
  const char *sentence;
  int real;             /* 1: a number such as 1e-3; min and max are 0 and fallback is ... */
  double real_fallback; /* ... this */
  /* What it bounds of each value's error: "fraction_bits": the relative error, at most 2^-(m+1) for
   * the value m; "absolute": the absolute error, at most the value; "": nothing. */
  const char *bounds;
} wpr_param_info;

typedef struct wpr_kernel_info {
  const char *engine;
  const char *variant;
  int usable; /* on this machine */
} wpr_kernel_info;

typedef struct wpr_engine_info {
  const char *name;
  const char *sentence;
} wpr_engine_info;

typedef struct wpr_option_info {
  const char *key; /* C key; WIREPRESS_<KEY> is the variable, --key-with-dashes the flag */
  /* "text", "size", "rate", "integer", "boolean", "choice", "recipe" or "error bound" (none,
   * rel:1e-3, abs:1e-6, bits:6) */
  const char *type;
  const char *fallback; /* the default as text */
  const char *choices;  /* "a|b|c" for a choice; words that others may be; else "" */
  const char *sentence;
  /* The least and the most of a size (bytes) and an integer (exact below 2^53); 0 and 1 of a
   * boolean; 0 and 0 of other types. */
  double min, max;
} wpr_option_info;

/* Rows 0, 1, ...; return 0 past the end and leave the struct alone. Strings are static. Whether a
 * kernel is usable may be asked of the engine's driver (wpr_engine_reason); nothing else is. */
WPR_API int wpr_codec_at(size_t i, wpr_codec_info *info);
WPR_API int wpr_codec_param_at(size_t codec, size_t i, wpr_param_info *info);
WPR_API int wpr_codec_kernel_at(size_t codec, size_t i, wpr_kernel_info *info);
WPR_API int wpr_engine_at(size_t i, wpr_engine_info *info);
WPR_API int wpr_option_at(size_t i, wpr_option_info *info);
/* Why engine i cannot be used here; "": it can. The first call may load a driver, which with CUDA
 * fixes CUDA_VISIBLE_DEVICES and leaves forked children without a device. */
WPR_API const char *wpr_engine_reason(size_t i);
/* Clocks that the kernels of engine i have taken in this process; 0: it has no clock of its own. */
WPR_API uint64_t wpr_engine_clocks(size_t i);
/* What the device of engine i can do, what it has done in this process, and why the cores did the
 * rest, as text; "" where no device is selected. Valid until the thread's next call. */
WPR_API const char *wpr_engine_state(size_t i);
/* Why the cores do the jobs of the device that was named last, "" where it was set up or none was
 * named. Valid until the thread's next call. (`engine=NAME:DEVICE!` makes that an error.) */
WPR_API const char *wpr_engine_refusal(size_t i);

typedef struct wpr_device_work {
  uint64_t device_bytes; /* raw bytes of the blocks that a device has coded and expanded ... */
  uint64_t cores_bytes;  /* ... and of those that it was given and the cores did instead */
  const char *reason;    /* why, of the last such block; static, "": there was none */
} wpr_device_work;

/* What engines with devices have done in the calling thread since it began. cores_bytes also has
 * what the cores did because no codec of a recipe has the kernel that the option "engine" names,
 * and the raw bytes of jobs that a stream lost, whoever did them then. */
WPR_API void wpr_get_device_work(wpr_device_work *work);

#ifdef __cplusplus
}
#endif

#endif /* WIREPRESS_H */
