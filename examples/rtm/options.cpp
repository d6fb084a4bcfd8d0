// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "rivals.hpp"

namespace rtm {
namespace {

constexpr const char* kHead =
    R"(Reverse time migration of a 3-D acoustic wave. The forward pass keeps every k-th step in a frame
store, the backward pass reads them in reverse and makes the image.

usage: rtm [options]
)";

constexpr const char* kExamples = R"(
examples:
  rtm --roofline
      how near the stencil is to what the memory allows, and a run by each default policy
  rtm --size 200 --policies memory,disk,compressed,in-worker --threads 1,2 --json run.json
      the same shot by four policies on one and two workers; plot.py run.json run.png draws it
  rtm --policies compressed --recipe bx:m=5 --recipe bx:m=6,round=truncate --recipe bf16
      what recipes do to time, size and image
  rtm --policies memory --rivals bf16,int8
      the image's error by others' codecs and by ours, frames being of equal size
  rtm --model salt --shots 4 --image image.png --gather gather.png
      pictures of a vertical slice of the image and of what a line of receivers heard

Every run does the same shots. Images are compared with that of the first run that does not compress;
where there is none, policy memory runs first.
)";

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

double number(const std::string& text, double low, double high) {
  char* end;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= low && value <= high)) {
    char range[96];
    std::snprintf(range, sizeof range, "\" is not a number from %g to %g", low, high);
    throw std::invalid_argument("\"" + text + range);
  }
  return value;
}

int whole(const std::string& text, int low, int high) {
  const double value = number(text, low, high);
  if (value != static_cast<int>(value))
    throw std::invalid_argument("\"" + text + "\" is not a whole number");
  return static_cast<int>(value);
}

std::vector<int> wholes(const std::string& text, int low, int high) {
  std::vector<int> values;
  for (const std::string& part : split(text, ',')) values.push_back(whole(part, low, high));
  return values;
}

uint64_t bytes(const std::string& text) {
  static const std::pair<const char*, double> kUnits[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"", 1.0}};
  for (const auto& [unit, size] : kUnits) {
    if (text.ends_with(unit))
      return static_cast<uint64_t>(
          size * number(text.substr(0, text.size() - std::string(unit).size()), 0, 1e15 / size));
  }
  return 0;
}

Size size_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, 'x');
  if (parts.size() == 1) {
    const int n = whole(text, 8, 4096);
    return {n, n, n};
  }
  if (parts.size() != 3)
    throw std::invalid_argument("\"" + text + "\" is not N or NXxNYxNZ, NZ being the depth");
  return {whole(parts[0], 8, 4096), whole(parts[1], 8, 4096), whole(parts[2], 8, 4096)};
}

std::vector<std::string> known(const std::string& text, const std::vector<std::string>& all) {
  const std::vector<std::string> names = split(text, ',');
  for (const std::string& name : names) {
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    std::string list;
    for (const std::string& one : all) list += " " + one;
    throw std::invalid_argument("\"" + name + "\" is not one of" + list);
  }
  return names;
}

std::vector<std::string> known_scales(const std::string& text) {
  std::vector<std::string> all;
  for (const Scale& scale : scales()) all.push_back(scale.recipe);
  return known(text, all);
}

int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct Row {
  const char* name;
  const char* value;  // NULL: none is taken
  const char* help;
  std::function<void(const std::string&)> set;
};

std::vector<Row> rows_of(Options* o) {
  Storage& s = o->storage;
  const auto text = [](std::string* to) { return [to](const std::string& v) { *to = v; }; };
  const auto flag = [](bool* to) { return [to](const std::string&) { *to = true; }; };
  const auto integer = [](int* to, int low, int high) {
    return [=](const std::string& v) { *to = whole(v, low, high); };
  };
  const auto real = [](float* to, double low, double high) {
    return [=](const std::string& v) { *to = static_cast<float>(number(v, low, high)); };
  };
  return {
      {"size", "N|NXxNYxNZ", "cells of the image (128); the sponge lies around it",
       [o](const std::string& v) { o->size = size_of(v); }},
      {"sponge", "CELLS", "absorbing cells on each side (20)", integer(&o->sponge, 4, 200)},
      {"model", "NAME", "flat, layered, salt or constant (layered)", text(&o->model)},
      {"velocity", "FILE", "float32 in m/s, x fastest, instead of a model", text(&o->velocity)},
      {"seed", "N", "of the model (1)",
       [o](const std::string& v) { o->seed = static_cast<uint64_t>(whole(v, 0, 1 << 30)); }},
      {"spacing", "M", "metres from cell to cell (10)", real(&o->spacing, 0.01, 1e4)},
      {"frequency", "HZ", "peak of the Ricker wavelet (15)", real(&o->frequency, 0.01, 1e5)},
      {"steps", "N", "time steps of a pass (until the deepest reflection is back)",
       integer(&o->steps, 1, 1000000)},
      {"every", "K", "keep and image every K-th step (4)", integer(&o->every, 1, 1000000)},
      {"receiver-step", "CELLS", "between receivers (2)", integer(&o->receiver_step, 1, 1000)},
      {"shots", "N", "along a line in the middle (1)", integer(&o->shots, 1, 1000)},
      {"smooth", "CELLS", "radius by which the migration's velocity is smoothed (size / 20)",
       integer(&o->smooth, 1, 1000)},
      {"policies", "LIST", "none, memory, disk, compressed, in-worker (memory,compressed)",
       [o](const std::string& v) { o->policies = known(v, policies()); }},
      {"recipe", "RECIPE", "for the two that compress (bx:m=5); repeated: each is a run of its own",
       [o, given = false](const std::string& v) mutable {
         if (!given) o->recipes.clear();
         given = true;
         o->recipes.push_back(v);
       }},
      {"rivals", "LIST",
       "recipes, such as bf16,int8, to be compared with the most exact ones of --match whose "
       "frames are not larger",
       [o](const std::string& v) { o->rivals = split(v, ','); }},
      {"match", "LIST", "of bx:m, fre:m, zfp:precision, zfp:rate (bx:m,zfp:precision)",
       [o](const std::string& v) { o->match = known_scales(v); }},
      {"set", "KEY=VALUE", "an option of the library for compressing; may be repeated",
       [&s](const std::string& v) {
         const size_t at = v.find('=');
         if (at == std::string::npos) throw std::invalid_argument("\"" + v + "\" is not KEY=VALUE");
         s.options.push_back(v.substr(0, at));
         s.options.push_back(v.substr(at + 1));
       }},
      {"engine", "NAME", "where compressing runs, such as cpu:scalar (auto)", text(&s.engine)},
      {"threads", "LIST", "workers; each number is a run of its own (the cores there are)",
       [o](const std::string& v) { o->threads = wholes(v, 1, 1024); }},
      {"servants", "N", "threads of the store (1)", integer(&s.servants, 1, 256)},
      {"memory", "BYTES", "of the store's buffers (policy memory: frames), such as 2GiB",
       [&s](const std::string& v) { s.memory = bytes(v); }},
      {"direct", nullptr, "past the page cache, where the file system can", flag(&s.direct)},
      {"reserve", "BYTES", "of disk to allocate ahead of what is written (0)",
       [&s](const std::string& v) { s.reserve = bytes(v); }},
      {"pin", "LIST", "cores of the workers, in turn",
       [o](const std::string& v) { o->pin = wholes(v, 0, CPU_SETSIZE - 1); }},
      {"pin-servants", "LIST", "cores of the servants, in turn",
       [&s](const std::string& v) { s.cores = wholes(v, 0, CPU_SETSIZE - 1); }},
      {"nodes", "LIST", "NUMA nodes of the servants; the buffers lie on the first",
       [&s](const std::string& v) { s.nodes = wholes(v, 0, 1023); }},
      {"folder", "PATH", "for the files of frames (.)", text(&o->folder)},
      {"keep", nullptr, "leave the files of frames there", flag(&o->keep)},
      {"image", "FILE",
       "PNG: a slice through the middle of the last run's image, and a .npy of it "
       "all beside it",
       text(&o->image)},
      {"gather", "FILE", "PNG: what the middle line of receivers heard, without the direct wave",
       text(&o->gather)},
      {"json", "FILE", "all that was measured", text(&o->json)},
      {"roofline", nullptr, "measure first what memory allows and what the stencil reaches",
       flag(&o->roofline)},
      {"progress", nullptr, "a bar even where stderr is no terminal", flag(&o->progress)},
  };
}

void print_help(const std::vector<Row>& rows) {
  std::printf("%s\n", kHead);
  for (const Row& row : rows) {
    const std::string left =
        std::string("--") + row.name + (row.value ? std::string(" ") + row.value : "");
    std::printf("  %-22s %s\n", left.c_str(), row.help);
  }
  std::printf("%s", kExamples);
}

void check(const Options& o) {
  for (const int n : o.threads) {
    if (n > o.size.y)
      throw std::invalid_argument(std::to_string(n) + " threads for " + std::to_string(o.size.y) +
                                  " rows: each needs one");
  }
}

}  // namespace

bool read_options(int argc, char** argv, Options* options) {
  const std::vector<Row> rows = rows_of(options);
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], value;
    if (word == "--help" || word == "-h") {
      print_help(rows);
      return false;
    }
    const size_t equals = word.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row& r) { return word == std::string("--") + r.name; });
    if (row == rows.end()) throw std::invalid_argument("unknown option " + word + "; see --help");
    if (!row->value && joined) throw std::invalid_argument(word + " takes no value");
    if (row->value && !joined) {
      if (i + 1 == argc) throw std::invalid_argument(word + " needs a value: " + row->value);
      value = argv[++i];
    }
    try {
      row->set(value);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(word + ": " + error.what());
    }
  }
  if (options->threads.empty()) options->threads = {std::min(usable_cores(), options->size.y)};
  if (options->smooth == 0) options->smooth = std::max(1, options->size.z / 20);
  options->progress = options->progress || ::isatty(STDERR_FILENO);
  check(*options);
  return true;
}

}  // namespace rtm
