// SPDX-License-Identifier: Apache-2.0
// A writer of a frame store that is to be killed, and what looks at the file then.
//
//   store_crash write FILE [--policy disk|compressed|in-worker] [--servants N] [--values N]
//               [--frames N] [--life N] [--seed N] [--die CALL:NUMBER:PHASE]
//               [--on-error stop|spill] [--direct 1] [--reserve N] [--workers N] [--tile N]
//     goes on with FILE, or makes it, and puts frames; prints "ack N" when the first N steps are
//     synced. --workers: threads that put them together, tile by tile of so many values; 0: frames
//     are put whole. --die: SIGKILL before, after or half through the number-th call of a kind, one
//     kind being "tile".
//   store_crash verify FILE ACKED LIFE
//     status 0: the first ACKED steps are there, and every frame is what a life up to LIFE put.
//
// A frame is made of its step and the life of the writer that put it: a mixture is seen.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include "store/frame_store.hpp"

namespace {

using wirepress::Status;
using wirepress::store::Calls;
using wirepress::store::FrameStore;
using Frame = std::vector<uint32_t>;

constexpr int kLost = 1, kUsage = 2, kWrong = 3, kRefused = 4;

struct Options {
  std::string file;
  wpr_store_config config = {};
  uint64_t life = 0, seed = 1, n_frames = 200;
  size_t n_values = 3000, n_workers = 0;
  std::string die_call, die_phase;
  uint64_t die_number = 0;
};

uint32_t noise(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
  return static_cast<uint32_t>(x >> 32);
}

// Half of it is noise: policy compressed writes frames of another size, not of none.
Frame frame_of(uint64_t step, uint64_t life, size_t n) {
  Frame frame(n);
  for (size_t i = 0; i < n; ++i)
    frame[i] = i % 64 < 32 ? noise((step << 40) + (life << 24) + i) : static_cast<uint32_t>(step);
  frame[0] = static_cast<uint32_t>(life);
  return frame;
}

bool is_right(const Frame& frame, uint64_t step, uint64_t last_life) {
  return frame[0] <= last_life && frame == frame_of(step, frame[0], frame.size());
}

// Dies at one named point of a file's life.
class DyingFile : public Calls {
 public:
  explicit DyingFile(const Options& options) : options_(options) {}

  int open(const char* path, int flags) override {
    return at("open", [&](bool) { return Calls::open(path, flags); });
  }
  ssize_t write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) override {
    return at("write", [&](bool due) {
      if (due && options_.die_phase == "half") {
        write_half(descriptor, parts, n_parts, offset);
        die();
      }
      return Calls::write(descriptor, parts, n_parts, offset);
    });
  }
  int truncate(int descriptor, uint64_t size) override {
    return at("truncate", [&](bool) { return Calls::truncate(descriptor, size); });
  }
  int sync(int descriptor) override {
    return at("sync", [&](bool) { return Calls::sync(descriptor); });
  }
  int sync_folder(const char* folder) override {
    return at("folder", [&](bool) { return Calls::sync_folder(folder); });
  }
  Status put_tile(const std::function<Status()>& put) {
    return at("tile", [&](bool) { return put(); });
  }

 private:
  [[noreturn]] static void die() {
    ::kill(::getpid(), SIGKILL);
    std::abort();
  }

  // It ends within a record's head, or within its payload.
  void write_half(int descriptor, const iovec* parts, int n_parts, uint64_t offset) {
    iovec some[2] = {parts[0], parts[n_parts - 1]};
    const int n = n_parts == 1 || options_.seed % 3 == 0 ? 1 : 2;
    some[n - 1].iov_len /= 2;
    (void)Calls::write(descriptor, some, n, offset);
  }

  template <typename Call>
  std::invoke_result_t<Call, bool> at(std::string_view name, Call call) {
    const bool due = name == options_.die_call && number_++ == options_.die_number;
    if (due && options_.die_phase == "before") die();
    const auto result = call(due);
    if (due) die();
    return result;
  }

  const Options& options_;
  std::atomic<uint64_t> number_ = 0;
};

void say(const char* word, uint64_t number) {
  char line[64];
  const int n =
      std::snprintf(line, sizeof line, "%s %llu\n", word, static_cast<unsigned long long>(number));
  if (::write(STDOUT_FILENO, line, static_cast<size_t>(n)) != n) std::exit(kUsage);
}

int complain(const char* what, const Status& status, int code) {
  std::fprintf(stderr, "store_crash: %s: %s\n", what, status.text());
  return code;
}

bool has(FrameStore& store, uint64_t step) {
  wpr_store_frame frame;
  return store.frame_from(step, &frame) && frame.step == step;
}

Status open(FrameStore& store, const Options& options) {
  std::ifstream in(options.file);
  char magic[72];
  // A life that died in create leaves a file without a head: nothing was acknowledged.
  if (in.read(magic, sizeof magic)) return store.open(options.file.c_str(), true, options.config);
  ::unlink(options.file.c_str());
  return store.create(options.file.c_str(), options.config);
}

// Worker i puts every n-th tile, another one first at every step.
Status put_by_tiles(FrameStore& store, DyingFile& calls, uint64_t step, const Frame& frame,
                    size_t n_workers) {
  wpr_store_info info;
  store.info(&info);
  std::vector<Status> results(n_workers);
  const auto work = [&](size_t worker) {
    for (uint64_t i = worker; i < info.n_tiles; i += n_workers) {
      const uint64_t number = (i + step) % info.n_tiles;
      wpr_store_tile tile;
      Status status = store.tile_at(number, &tile);
      if (status.ok())
        status = calls.put_tile(
            [&] { return store.put_tile(step, number, frame.data() + tile.first[0], nullptr); });
      if (!status.ok()) results[worker] = status;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (size_t i = 1; i < n_workers; ++i) workers.emplace_back(work, i);
    work(0);
  }
  for (const Status& status : results)
    if (!status.ok()) return status;
  return {};
}

// One life: puts, syncs, looks back, closes and opens again, as the seed says.
int write(const Options& options) {
  DyingFile calls(options);
  std::mt19937_64 random(options.seed);
  std::vector<uint64_t> mine;
  for (uint64_t step = 0; step < options.n_frames;) {
    FrameStore store(calls);
    Status status = open(store, options);
    if (!status.ok()) return complain("open", status, kRefused);
    while (has(store, step)) ++step;
    const uint64_t until = step + 20 + random() % 100;
    for (; step < std::min(until, options.n_frames); ++step) {
      if (has(store, step)) continue;
      const Frame frame = frame_of(step, options.life, options.n_values);
      status = options.n_workers ? put_by_tiles(store, calls, step, frame, options.n_workers)
                                 : store.put(step, frame.data(), 4 * frame.size());
      if (!status.ok()) return complain("put", status, kRefused);
      if (random() % 6 == 0) {
        status = store.sync();
        if (!status.ok()) return complain("sync", status, kRefused);
        say("ack", step + 1);
      }
      if (random() % 8 == 0) {
        const uint64_t back = step - random() % std::min<uint64_t>(step + 1, 10);
        Frame got(options.n_values);
        status = store.get(back, got.data(), 4 * got.size());
        if (!status.ok()) return complain("get", status, kRefused);
        if (!is_right(got, back, options.life)) return complain("a wrong frame", {}, kWrong);
      }
    }
    status = store.close();
    if (!status.ok()) return complain("close", status, kRefused);
    say("ack", step);
  }
  return 0;
}

int verify(const std::string& file, uint64_t acknowledged, uint64_t life) {
  FrameStore store;
  Status status = store.open(file.c_str(), false, {});
  if (!status.ok()) return acknowledged ? complain("open", status, kLost) : 0;
  wpr_store_info info;
  store.info(&info);
  for (uint64_t step = 0; step < acknowledged; ++step) {
    if (has(store, step)) continue;
    std::fprintf(stderr, "store_crash: step %llu of %llu is lost\n",
                 static_cast<unsigned long long>(step),
                 static_cast<unsigned long long>(acknowledged));
    return kLost;
  }
  uint64_t n = 0;
  wpr_store_frame frame;
  for (uint64_t step = 0; store.frame_from(step, &frame); step = frame.step + 1, ++n) {
    Frame got(info.raw_size / 4);
    status = store.get(frame.step, got.data(), info.raw_size);
    if (!status.ok()) return complain("get", status, frame.step < acknowledged ? kLost : kWrong);
    if (!is_right(got, frame.step, life)) return complain("a wrong frame", {}, kWrong);
  }
  std::printf("%llu %llu\n", static_cast<unsigned long long>(n),
              static_cast<unsigned long long>(info.torn_bytes));
  return 0;
}

bool parse(int n, char** words, Options* options) {
  options->config.dtype = WPR_UINT32;
  options->config.n_dims = 1;
  options->config.policy = WPR_STORE_COMPRESSED;
  options->config.recipe = "lz4";
  for (int i = 0; i + 1 < n; i += 2) {
    const std::string name = words[i], value = words[i + 1];
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "--policy") {
      if (value == "disk") options->config.policy = WPR_STORE_DISK;
      if (value == "in-worker") options->config.policy = WPR_STORE_IN_WORKER;
    } else if (name == "--on-error") {
      if (value == "spill") options->config.on_error = WPR_STORE_SPILL;
    } else if (name == "--servants") {
      options->config.servants = static_cast<int>(number);
    } else if (name == "--direct") {
      options->config.direct = number != 0;
    } else if (name == "--reserve") {
      options->config.reserve = number;
    } else if (name == "--workers") {
      options->n_workers = number;
    } else if (name == "--tile") {
      options->config.tile[0] = number;
    } else if (name == "--values") {
      options->n_values = number;
    } else if (name == "--frames") {
      options->n_frames = number;
    } else if (name == "--life") {
      options->life = number;
    } else if (name == "--seed") {
      options->seed = number;
    } else if (name == "--die") {
      const size_t first = value.find(':'), last = value.rfind(':');
      options->die_call = value.substr(0, first);
      options->die_number = std::strtoull(value.c_str() + first + 1, nullptr, 10);
      options->die_phase = value.substr(last + 1);
    } else {
      return false;
    }
  }
  options->config.shape[0] = options->n_values;
  return n % 2 == 0 && options->n_values > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  Options options;
  if (command == "write" && parse(argc - 3, argv + 3, &options)) {
    options.file = argv[2];
    return write(options);
  }
  if (command == "verify" && argc == 5)
    return verify(argv[2], std::strtoull(argv[3], nullptr, 10),
                  std::strtoull(argv[4], nullptr, 10));
  std::fprintf(stderr, "usage: store_crash write FILE [options] | verify FILE ACKED LIFE\n");
  return kUsage;
}
