// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rtm {
namespace {

// Just enough of JSON: objects and arrays in order, written as they come.
class Json {
 public:
  explicit Json(std::ostream& out) : out_(out) { out_.precision(9); }
  void open(const char* name, char bracket) {
    start(name);
    out_ << bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ << bracket;
    first_ = false;
  }
  void value(const char* name, const std::string& text) {
    start(name);
    out_ << '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') out_ << '\\';
      out_ << c;
    }
    out_ << '"';
  }
  void value(const char* name, bool yes) {
    start(name);
    out_ << (yes ? "true" : "false");
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void value(const char* name, Number number) {
    start(name);
    if (std::isfinite(static_cast<double>(number))) {
      out_ << number;
    } else {
      out_ << "null";
    }
  }
  template <class List>
  void list(const char* name, const List& values) {
    open(name, '[');
    for (const auto& one : values) value(nullptr, one);
    close(']');
  }

 private:
  void start(const char* name) {
    if (!first_) out_ << ", ";
    first_ = false;
    if (name) out_ << '"' << name << "\": ";
  }
  std::ostream& out_;
  bool first_ = true;
};

double ratio(const wpr_store_stats& stats) {
  return stats.stored_bytes
             ? static_cast<double>(stats.raw_bytes) / static_cast<double>(stats.stored_bytes)
             : 1;
}

// Of the frame that is kept last, which the wave fills.
double last_ratio(const Run& run, size_t frame_size) {
  return run.frames.empty()
             ? 0
             : static_cast<double>(frame_size) / static_cast<double>(run.frames.back().stored_size);
}

double below_one_percent(const Difference& difference) {
  double share = 0;
  for (const Bin& bin : difference.histogram) {
    if (bin.name == "< 2 %") break;
    share += bin.share;
  }
  return share;
}

void write_pass(Json& json, const char* name, const PassTimes& times) {
  json.open(name, '{');
  json.value("wall", times.wall);
  json.value("storage", times.storage);
  json.value("barrier", times.barrier);
  json.value("kernel", times.wall - times.storage - times.barrier);
  json.close('}');
}

void write_stats(Json& json, const wpr_store_stats& s) {
  json.open("store", '{');
  json.value("puts", s.puts);
  json.value("gets", s.gets);
  json.value("read_ahead", s.read_ahead);
  json.value("raw_bytes", s.raw_bytes);
  json.value("stored_bytes", s.stored_bytes);
  json.value("buffer_bytes", s.buffer_bytes);
  json.value("put_wait_seconds", s.put_wait_seconds);
  json.value("put_copy_seconds", s.put_copy_seconds);
  json.value("get_wait_seconds", s.get_wait_seconds);
  json.value("get_copy_seconds", s.get_copy_seconds);
  json.value("longest_put_wait_seconds", s.longest_put_wait_seconds);
  json.value("longest_get_wait_seconds", s.longest_get_wait_seconds);
  json.value("compress_seconds", s.compress_seconds);
  json.value("write_seconds", s.write_seconds);
  json.value("read_seconds", s.read_seconds);
  json.value("expand_seconds", s.expand_seconds);
  json.close('}');
}

void write_frames(Json& json, const std::vector<wpr_store_frame>& frames, size_t frame_size) {
  json.open("frames", '[');
  for (const wpr_store_frame& frame : frames) {
    json.open(nullptr, '{');
    json.value("step", frame.step);
    json.value("ratio", static_cast<double>(frame_size) / static_cast<double>(frame.stored_size));
    json.value("put_wait_seconds", frame.put_wait_seconds);
    json.value("get_wait_seconds", frame.get_wait_seconds);
    json.close('}');
  }
  json.close(']');
}

void write_difference(Json& json, const Difference& d) {
  json.open("image", '{');
  json.value("equal", d.equal);
  json.value("snr_db", d.snr_db);
  json.value("snr_amplitude_db", d.snr_amplitude_db);
  json.value("bias", d.bias);
  json.value("largest", d.largest);
  json.open("histogram", '{');
  for (const Bin& bin : d.histogram) json.value(bin.name.c_str(), bin.share);
  json.close('}');
  json.close('}');
}

void write_run(Json& json, const Run& run, size_t frame_size) {
  json.open(nullptr, '{');
  json.value("policy", run.policy);
  json.value("recipe", run.recipe);
  json.value("threads", run.threads);
  json.value("seconds", run.times.total());
  write_pass(json, "forward", run.times.forward);
  write_pass(json, "backward", run.times.backward);
  json.value("finish", run.times.finish);
  json.value("ratio", ratio(run.stats));
  json.value("direct", run.direct);
  write_stats(json, run.stats);
  write_frames(json, run.frames, frame_size);
  if (run.difference) write_difference(json, *run.difference);
  json.close('}');
}

void write_peer(Json& json, const char* name, const Run& run, size_t frame_size) {
  json.open(name, '{');
  json.value("recipe", run.recipe);
  json.value("stored_bytes", run.stats.stored_bytes);
  json.value("ratio", ratio(run.stats));
  json.value("ratio_of_last_frame", last_ratio(run, frame_size));
  if (run.difference) {
    json.value("equal", run.difference->equal);
    json.value("snr_db", run.difference->snr_db);
    json.value("points_below_1_percent", below_one_percent(*run.difference));
  }
  json.close('}');
}

void write_peers(Json& json, const Report& report) {
  json.open("equal_size", '[');
  for (const Peers& peers : report.peers) {
    json.open(nullptr, '{');
    write_peer(json, "rival", report.runs[peers.rival], report.frame_size);
    json.open("ours", '[');
    for (const size_t i : peers.ours) write_peer(json, nullptr, report.runs[i], report.frame_size);
    json.close(']');
    json.close('}');
  }
  json.close(']');
}

void write_rooflines(Json& json, const Report& report) {
  json.open("roofline", '[');
  for (const auto& [threads, roofline] : report.rooflines) {
    json.open(nullptr, '{');
    json.value("threads", threads);
    json.value("copy_rate", roofline.copy_rate);
    json.value("stream_rate", roofline.stream_rate);
    json.value("points_rate", roofline.points_rate);
    json.value("reached", roofline.reached());
    json.close('}');
  }
  json.close(']');
}

std::string image_column(const Run& run) {
  if (!run.difference) return "-";
  if (run.difference->equal) return "equal";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f dB", run.difference->snr_db);
  return text;
}

void print_roofline(int threads, const Roofline& r) {
  std::printf(
      "%d worker%s: memcpy reads and writes %.1f GB/s, a loop of 3 reads and a write %.1f GB/s;\n"
      "  stencil %.0f Mpoint/s of %.0f (16 bytes a point): %.2f of the roofline\n",
      threads, threads == 1 ? "" : "s", r.copy_rate / 1e9, r.stream_rate / 1e9, r.points_rate / 1e6,
      r.limit() / 1e6, r.reached());
}

void print_ages(const Report& report) {
  for (const Run& run : report.runs) {
    if (!compresses(run.policy) || run.frames.empty()) continue;
    std::printf("ratio by age, %s %s:", run.policy.c_str(), run.recipe.c_str());
    constexpr size_t kColumns = 8;
    for (size_t i = 0; i < kColumns; ++i) {
      const wpr_store_frame& frame = run.frames[i * (run.frames.size() - 1) / (kColumns - 1)];
      std::printf("  %llu: %.1f", static_cast<unsigned long long>(frame.step),
                  static_cast<double>(report.frame_size) / static_cast<double>(frame.stored_size));
    }
    std::printf("\n");
  }
}

void print_histogram(const Report& report) {
  bool head = false;
  for (const Run& run : report.runs) {
    if (!run.difference || run.difference->equal) continue;
    if (!head) {
      std::printf("\nerror of the image's points, by their value (shares in %%)\n%-32s", "");
      for (const Bin& bin : run.difference->histogram) std::printf("%9s", bin.name.c_str());
      std::printf("\n");
      head = true;
    }
    std::printf("%-12s%-20s", run.policy.c_str(), run.recipe.c_str());
    for (const Bin& bin : run.difference->histogram) std::printf("%9.2f", 100 * bin.share);
    std::printf("\n");
  }
}

void print_peer(const Report& report, const Run& run) {
  std::printf("%-20s %6.2f %6.2f %9s %6.1f %%\n", run.recipe.c_str(), ratio(run.stats),
              last_ratio(run, report.frame_size), image_column(run).c_str(),
              run.difference ? 100 * below_one_percent(*run.difference) : 0.0);
}

void print_peers(const Report& report) {
  if (report.peers.empty()) return;
  std::printf(
      "\nimages at equal size: a rival, then the most exact of ours whose frames, all together, "
      "are\nnot larger. last: ratio of the last frame; < 1 %%: points with such an error\n"
      "%-20s %6s %6s %9s %8s\n",
      "recipe", "ratio", "last", "image", "< 1 %");
  for (const Peers& peers : report.peers) {
    print_peer(report, report.runs[peers.rival]);
    for (const size_t i : peers.ours) print_peer(report, report.runs[i]);
    if (peers.ours.empty()) std::printf("  none of ours is as small\n");
  }
}

void print_direct(const Report& report) {
  if (!report.options.storage.direct) return;
  for (const Run& run : report.runs) {
    if (run.direct || run.policy == "none" || run.policy == "memory") continue;
    std::printf("%s %s: the file system takes no direct writes; they went through the page cache\n",
                run.policy.c_str(), run.recipe.c_str());
  }
}

}  // namespace

void print_table(const Report& report) {
  const Size s = report.options.size;
  std::printf(
      "%d x %d x %d cells and a sponge of %d, %zu shot%s of %d steps, every %d. kept: frames "
      "of %.1f MB\nstencil %s; modelling took %.2f s\n",
      s.x, s.y, s.z, report.options.sponge, report.survey.shots.size(),
      report.survey.shots.size() == 1 ? "" : "s", report.survey.n_steps, report.survey.every,
      static_cast<double>(report.frame_size) / 1e6, report.kernel.c_str(), report.model_seconds);
  for (const auto& [threads, roofline] : report.rooflines) print_roofline(threads, roofline);
  std::printf(
      "\nseconds; kernel, write, read and barrier are means over the workers\n"
      "%-11s %-20s %7s %7s | %7s %7s %7s | %7s %7s %7s | %6s  %s\n",
      "policy", "recipe", "workers", "total", "FP", "kernel", "write", "BP", "kernel", "read",
      "ratio", "image");
  for (const Run& run : report.runs) {
    const PassTimes &fp = run.times.forward, &bp = run.times.backward;
    std::printf("%-11s %-20s %7d %7.2f | %7.2f %7.2f %7.2f | %7.2f %7.2f %7.2f | %6.2f  %s\n",
                run.policy.c_str(), run.recipe.empty() ? "-" : run.recipe.c_str(), run.threads,
                run.times.total(), fp.wall, fp.wall - fp.storage - fp.barrier, fp.storage, bp.wall,
                bp.wall - bp.storage - bp.barrier, bp.storage, ratio(run.stats),
                image_column(run).c_str());
  }
  std::printf("\n");
  print_ages(report);
  print_histogram(report);
  print_peers(report);
  print_direct(report);
}

void write_json(const Report& report, const std::string& path) {
  std::ofstream out(path);
  Json json(out);
  json.open(nullptr, '{');
  const Size s = report.options.size;
  json.list("size", std::vector<int>{s.x, s.y, s.z});
  json.value("sponge", report.options.sponge);
  json.value("model",
             report.options.velocity.empty() ? report.options.model : report.options.velocity);
  json.value("seed", report.options.seed);
  json.value("steps", report.survey.n_steps);
  json.value("every", report.survey.every);
  json.value("shots", report.survey.shots.size());
  json.value("time_step", report.survey.time_step);
  json.value("points", report.n_points);
  json.value("frame_size", report.frame_size);
  json.value("kernel", report.kernel);
  json.value("servants", report.options.storage.servants);
  json.value("direct_asked", report.options.storage.direct);
  json.value("reserve", report.options.storage.reserve);
  json.value("model_seconds", report.model_seconds);
  write_rooflines(json, report);
  json.open("runs", '[');
  for (const Run& run : report.runs) write_run(json, run, report.frame_size);
  json.close(']');
  write_peers(json, report);
  json.list("reflectors", report.reflectors);
  json.list("column", report.column);
  json.close('}');
  out << '\n';
  out.close();
  if (!out) throw std::runtime_error(path + " cannot be written");
}

}  // namespace rtm
