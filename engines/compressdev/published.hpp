// SPDX-License-Identifier: Apache-2.0
// Compression devices as they are published: what they do, how fast, in which pieces. Rates are of
// raw bytes; "derived" and "assumed" say what no source prints.
#pragma once

#include <cstddef>

#include "engines/compressdev/device_table.h"

namespace wirepress::compressdev {

struct Published {
  struct Way {
    double rate = 0;       // bytes a second; 0: the device does not do it
    size_t most_size = 0;  // of a job and its answer, bytes
  };

  const char* name;
  const char* device;
  const char* source;
  double latency;  // seconds from a job to its answer, besides what the rate takes
  double set_up;   // seconds, once in a process
  Way deflate[2];  // by direction
  Way lz4[2];
};

inline constexpr size_t kMiB = 1 << 20;
// No source prints a job's latency, so all have that of a device on a bus, assumed.
inline constexpr double kAssumedLatency = 20e-6;
// PEDAL, figure 7: start and memory are 94 % of compressing and expanding 5.1 MB. Derived with the
// rate of BlueField-2: 5.1 MiB twice at 0.79 GB/s are 13.5 ms.
inline constexpr double kBlueFieldSetUp = 0.0135 * 94 / 6;

inline constexpr Published kPublished[] = {
    {"bluefield2",
     "BlueField-2",
     "100 MB in 0.127 s (dpdk_compression); expanding is no slower (PEDAL, section V-C): derived; "
     "jobs to 128 MiB (DOCA)",
     kAssumedLatency,
     kBlueFieldSetUp,
     {{0.79e9, 128 * kMiB}, {0.79e9, 128 * kMiB}},
     {}},
    {"bluefield3",
     "BlueField-3",
     "expands DEFLATE 1.78 times as fast as BlueField-2 (PEDAL, figure 8); LZ4 as DEFLATE: "
     "assumed; "
     "jobs to 2 MiB (DOCA)",
     kAssumedLatency,
     kBlueFieldSetUp,
     {{}, {1.78 * 0.79e9, 2 * kMiB}},
     {{}, {1.78 * 0.79e9, 2 * kMiB}}},
    {"qat4",
     "QAT gen 4",
     "four compress 54 GB in 16.6 s (QEMU's guide); expanding by 104 : 79 as C62x (QATzip): "
     "derived; jobs to 1 MiB: assumed",
     kAssumedLatency,
     0,
     {{54e9 / 16.6 / 4, kMiB}, {54e9 / 16.6 / 4 * 104 / 79, kMiB}},
     {}},
    {"nx",
     "POWER9 NX",
     "280 GB/s by 20 chips of z15, twice as fast each (ISCA 2020), both ways: derived; jobs to "
     "1 MiB: assumed",
     kAssumedLatency,
     0,
     {{280e9 / 20 / 2, kMiB}, {280e9 / 20 / 2, kMiB}},
     {}},
    {"blackwell",
     "Blackwell's engine",
     "expands to 600 GB/s, jobs to 4 MB (nvCOMP)",
     kAssumedLatency,
     0,
     {{}, {600e9, 4000000}},
     {{}, {600e9, 4000000}}},
};

// For experiments: a device of `rate` bytes a second in both directions.
constexpr Published published_by_rate(double rate) {
  return {"rate",
          "any rate",
          "as asked",
          kAssumedLatency,
          0,
          {{rate, kMiB}, {rate, kMiB}},
          {{}, {rate, kMiB}}};
}

}  // namespace wirepress::compressdev
