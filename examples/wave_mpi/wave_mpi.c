/* SPDX-License-Identifier: Apache-2.0
 *
 * A 3-D acoustic wave over MPI: slabs along z, halo exchange every step, frames gathered on rank 0.
 * An ordinary MPI program; it knows nothing of wirepress.
 *
 * u_tt = v^2 (u_xx + u_yy + u_zz) + s, float32, second order in time, fourth in space
 * (coefficients -5/2, 4/3, -1/12), u = 0 at the boundary, a Ricker source in the middle of the
 * layered model.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kHalo = 2 }; /* planes that a fourth-order stencil reads on each side */

typedef struct {
  int nx, ny, nz;     /* global grid */
  int steps;          /* time steps */
  int every;          /* a frame every so many steps */
  const char *output; /* file for the frames, or NULL */
} options_t;

typedef struct {
  int rank, size;
  int z0, nz;      /* my slab: planes z0 .. z0 + nz - 1 of the grid */
  size_t plane;    /* values in a plane */
  float *u, *next; /* nz + 2 * kHalo planes */
  float *speed2;   /* (v dt / h)^2 of my planes, one value per plane: the model is layered */
} slab_t;

static void usage(void) {
  puts(
      "wave_mpi: a 3-D acoustic wave, decomposed along z over the ranks of an MPI job\n\n"
      "  mpirun -n 4 wave_mpi [--nx N] [--ny N] [--nz N] [--steps N] [--every N] [--output "
      "FILE]\n\n"
      "  --nx, --ny, --nz   grid (160 160 160)\n"
      "  --steps N          time steps (240)\n"
      "  --every N          rank 0 gathers a frame every N steps (8)\n"
      "  --output FILE      and writes the frames there, raw float32");
}

static int parse(int argc, char **argv, options_t *o) {
  struct {
    const char *name;
    int *value;
  } numbers[] = {{"--nx", &o->nx},
                 {"--ny", &o->ny},
                 {"--nz", &o->nz},
                 {"--steps", &o->steps},
                 {"--every", &o->every}};
  for (int i = 1; i < argc; ++i) {
    int known = 0;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; ++n) {
      if (strcmp(argv[i], numbers[n].name) == 0 && i + 1 < argc) {
        char *end;
        const long value = strtol(argv[++i], &end, 10);
        known = *end == '\0' && value > 0 && value < 100000;
        *numbers[n].value = (int)value;
        break;
      }
    }
    if (strcmp(argv[i], "--output") == 0 && i + 1 < argc) {
      o->output = argv[++i];
      known = 1;
    }
    if (!known) return 0;
  }
  return 1;
}

static void *allocate(size_t n, size_t size) {
  void *p = calloc(n, size);
  if (!p) {
    fprintf(stderr, "wave_mpi: no memory for %zu bytes\n", n * size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

/* First plane of a rank's slab, as even as can be. */
static int slab_begin(int nz, int size, int rank) { return (int)((long long)nz * rank / size); }

static slab_t make_slab(const options_t *o, int rank, int size) {
  slab_t s = {.rank = rank, .size = size};
  s.z0 = slab_begin(o->nz, size, rank);
  s.nz = slab_begin(o->nz, size, rank + 1) - s.z0;
  s.plane = (size_t)o->nx * (size_t)o->ny;
  s.u = allocate(s.plane * (size_t)(s.nz + 2 * kHalo), sizeof *s.u);
  s.next = allocate(s.plane * (size_t)(s.nz + 2 * kHalo), sizeof *s.next);
  s.speed2 = allocate((size_t)s.nz, sizeof *s.speed2);
  static const float speed[] = {1500, 2200, 3000, 4000}; /* m/s, from top to bottom */
  const float h = 10, dt = 0.45f * h / 4500;             /* m, s: stable for the fastest layer */
  for (int z = 0; z < s.nz; ++z) {
    const float v = speed[4 * (s.z0 + z) / o->nz];
    s.speed2[z] = v * dt / h * v * dt / h;
  }
  return s;
}

/* My outer planes to both neighbours, theirs into my halo; all four messages at the same time. */
static void exchange_halo(slab_t *s) {
  const int down = s->rank > 0 ? s->rank - 1 : MPI_PROC_NULL;
  const int up = s->rank + 1 < s->size ? s->rank + 1 : MPI_PROC_NULL;
  const int n = (int)(kHalo * s->plane);
  float *first = s->u + kHalo * s->plane, *last = s->u + (size_t)s->nz * s->plane;
  MPI_Request requests[4];
  MPI_Irecv(s->u, n, MPI_FLOAT, down, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(s->u + (size_t)(s->nz + kHalo) * s->plane, n, MPI_FLOAT, up, 1, MPI_COMM_WORLD,
            &requests[1]);
  MPI_Isend(last, n, MPI_FLOAT, up, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(first, n, MPI_FLOAT, down, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* One time step of the inner points; `next` holds the step before on entry. */
static void step(slab_t *s, const options_t *o) {
  const long sx = 1, sy = o->nx, sz = (long)s->plane;
  for (int z = 0; z < s->nz; ++z) {
    const int global = s->z0 + z;
    if (global < kHalo || global >= o->nz - kHalo) continue;
    const float c = s->speed2[z];
    for (int y = kHalo; y < o->ny - kHalo; ++y) {
      const size_t row = (size_t)(z + kHalo) * s->plane + (size_t)y * (size_t)o->nx;
      const float *u = s->u + row;
      float *next = s->next + row;
      for (int x = kHalo; x < o->nx - kHalo; ++x) {
        const float near = u[x - sx] + u[x + sx] + u[x - sy] + u[x + sy] + u[x - sz] + u[x + sz];
        const float far = u[x - 2 * sx] + u[x + 2 * sx] + u[x - 2 * sy] + u[x + 2 * sy] +
                          u[x - 2 * sz] + u[x + 2 * sz];
        const float laplace = -7.5f * u[x] + (4.0f / 3) * near - (1.0f / 12) * far;
        next[x] = 2 * u[x] - next[x] + c * laplace;
      }
    }
  }
  float *swap = s->u;
  s->u = s->next;
  s->next = swap;
}

static void add_source(slab_t *s, const options_t *o, int t) {
  const int z = o->nz / 2 - s->z0;
  if (z < 0 || z >= s->nz) return;
  const double pi = 3.14159265358979, f = 18, dt = 0.001,
               a = pi * f * (t * dt - 1.0 / f); /* Ricker, 18 Hz */
  const double value = (1 - 2 * a * a) * exp(-a * a);
  s->u[(size_t)(z + kHalo) * s->plane + (size_t)(o->ny / 2) * (size_t)o->nx +
       (size_t)(o->nx / 2)] += (float)value;
}

/* The whole grid on rank 0. */
static void gather(const slab_t *s, const options_t *o, float *frame) {
  const float *mine = s->u + kHalo * s->plane;
  const int n = (int)(s->plane * (size_t)s->nz);
  if (s->rank > 0) {
    MPI_Send(mine, n, MPI_FLOAT, 0, 2, MPI_COMM_WORLD);
    return;
  }
  memcpy(frame, mine, (size_t)n * sizeof *mine);
  for (int rank = 1; rank < s->size; ++rank) {
    const int z0 = slab_begin(o->nz, s->size, rank), z1 = slab_begin(o->nz, s->size, rank + 1);
    MPI_Recv(frame + s->plane * (size_t)z0, (int)(s->plane * (size_t)(z1 - z0)), MPI_FLOAT, rank, 2,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* FNV-1a over 64-bit words: tells runs apart by a single bit. */
static uint64_t hash(uint64_t h, const void *data, size_t size) {
  const unsigned char *p = data;
  for (size_t i = 0; i + 8 <= size; i += 8) {
    uint64_t word;
    memcpy(&word, p + i, 8);
    h = (h ^ word) * 0x100000001B3u;
  }
  for (size_t i = size / 8 * 8; i < size; ++i) h = (h ^ p[i]) * 0x100000001B3u;
  return h;
}

static void write_frame(FILE *file, const float *frame, size_t n) {
  if (fwrite(frame, sizeof *frame, n, file) == n) return;
  perror("wave_mpi: output");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  options_t o = {.nx = 160, .ny = 160, .nz = 160, .steps = 240, .every = 8};
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int help = argc > 1 && strcmp(argv[1], "--help") == 0;
  if (help || !parse(argc, argv, &o) || o.nz < 4 * kHalo * size) {
    if (rank == 0) usage();
    MPI_Finalize();
    return help ? 0 : 2;
  }
  slab_t s = make_slab(&o, rank, size);
  const size_t n = s.plane * (size_t)o.nz;
  float *frame = rank == 0 ? allocate(n, sizeof *frame) : NULL;
  FILE *file = rank == 0 && o.output ? fopen(o.output, "wb") : NULL;
  if (rank == 0 && o.output && !file) {
    perror(o.output);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  uint64_t h = 0xCBF29CE484222325u;
  int frames = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int t = 1; t <= o.steps; ++t) {
    exchange_halo(&s);
    step(&s, &o);
    add_source(&s, &o, t);
    if (t % o.every) continue;
    gather(&s, &o, frame);
    ++frames;
    if (rank > 0) continue;
    h = hash(h, frame, n * sizeof *frame);
    if (file) write_frame(file, frame, n);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    printf("wave_mpi: %d x %d x %d, %d steps, %d frames on %d ranks\n", o.nx, o.ny, o.nz, o.steps,
           frames, size);
    printf("seconds %.3f\nresult %016llx\n", MPI_Wtime() - start, (unsigned long long)h);
    if (file && fclose(file)) perror(o.output);
  }
  free(s.u);
  free(s.next);
  free(s.speed2);
  free(frame);
  MPI_Finalize();
  return 0;
}
