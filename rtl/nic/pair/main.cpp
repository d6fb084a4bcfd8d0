// SPDX-License-Identifier: Apache-2.0
// nic_pair: two simulated boxes of rtl/nic back to back, or one and the library, joined by UDP
// sockets on loopback. --help says what it can do.
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>

#include "traffic.hpp"

namespace nic {
namespace {

double ratio(uint64_t whole, uint64_t part) {
  return part == 0 ? 0 : static_cast<double>(whole) / static_cast<double>(part);
}

void print_head() {
  std::printf("%6s %-12s | %6s %6s %5s | %6s %6s %6s | %10s %10s %6s | %9s %7s | %7s %7s\n",
              "bytes", "data", "sent", "whole", "bad", "coded", "stored", "passed", "host B",
              "wire B", "ratio", "clocks", "first", "Gb/s", "Gb/s <");
}

// Both directions together; clocks of the first one.
void print_row(const Row& row) {
  const Flow &a = row.flows[0], &b = row.flows[1];
  std::printf(
      "%6s %-12s | %6zu %6zu %5zu | %6zu %6zu %6zu | %10zu %10zu %6.2f | %9zu %7zu | %7.2f %7.2f\n",
      row.size.c_str(), row.data.c_str(), size_t{a.sent + b.sent},
      size_t{a.delivered + b.delivered},
      size_t{a.refused + a.to.host_dropped + b.refused + b.to.host_dropped},
      size_t{a.from.coded + b.from.coded}, size_t{a.from.stored + b.from.stored},
      size_t{a.from.passed + b.from.passed}, size_t{a.host_bytes + b.host_bytes},
      size_t{a.wire_bytes + b.wire_bytes},
      ratio(a.host_bytes + b.host_bytes, a.wire_bytes + b.wire_bytes), size_t{a.clocks},
      size_t{a.latency}, a.gbps, b.gbps);
  std::fflush(stdout);
}

void write_flow(const Flow& f, std::ostream& out) {
  out << "{\"sent\": " << f.sent << ", \"delivered\": " << f.delivered
      << ", \"refused\": " << f.refused << ", \"dropped_on_wire\": " << f.dropped
      << ", \"corrupted\": " << f.corrupted << ", \"reordered\": " << f.reordered
      << ", \"coded\": " << f.from.coded << ", \"stored\": " << f.from.stored
      << ", \"passed\": " << f.from.passed << ", \"expanded\": " << f.to.expanded
      << ", \"host_passed\": " << f.to.host_passed << ", \"dropped_by_end\": " << f.to.host_dropped
      << ", \"host_bytes\": " << f.host_bytes << ", \"wire_bytes\": " << f.wire_bytes
      << ", \"coded_bytes\": " << f.raw_bytes << ", \"code_bytes\": " << f.code_bytes
      << ", \"clocks\": " << f.clocks << ", \"first_clocks\": " << f.latency
      << ", \"gbps\": " << f.gbps << "}";
}

void write_json(const Options& options, const std::vector<Row>& rows) {
  std::ofstream out(options.json);
  out << "{\"recipe\": \"" << options.codec.recipe << "\", \"against\": \""
      << (options.software ? "software" : "box")
      << "\", \"on\": " << (options.settings.on ? "true" : "false")
      << ", \"line_gbps\": " << options.settings.line << ", \"lanes\": " << options.settings.lanes
      << ", \"seed\": " << options.faults.seed << ", \"rows\": [";
  for (const Row& row : rows) {
    out << (&row == rows.data() ? "\n " : ",\n ") << "{\"size\": \"" << row.size
        << "\", \"data\": \"" << row.data << "\", \"flows\": [";
    write_flow(row.flows[0], out);
    out << ",\n  ";
    write_flow(row.flows[1], out);
    out << "]}";
  }
  out << "\n]}\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + options.json);
}

int run(const Options& options) {
  Library box(options.codec, options.codec.engine), host(options.codec, "cpu");
  std::vector<Row> rows;
  const auto add = [&](const std::vector<size_t>& sizes, const std::vector<Data>& data) {
    rows.push_back(exchanged(options, sizes, data, &box, &host));
    print_row(rows.back());
  };
  const size_t lanes = options.settings.lanes;
  std::printf("%s, %s against %s, whole Ethernet packets as UDP datagrams on 127.0.0.1\n",
              options.settings.on ? options.codec.recipe.c_str() : "compressing nothing",
              lanes > 0 ? (std::to_string(lanes) + " lanes").c_str() : "a box",
              options.software ? "the library" : "a box");
  print_head();
  for (const size_t size : options.sizes)
    for (const Data& data : options.data) add({size}, {data});
  if (rows.size() > 1) add(options.sizes, options.data);
  if (!options.json.empty()) write_json(options, rows);
  return 0;
}

}  // namespace
}  // namespace nic

int main(int argc, char** argv) {
  const nic::Options options = nic::options_of(argc, argv);
  try {
    return nic::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nic_pair: %s\n", error.what());
    return 1;
  }
}
