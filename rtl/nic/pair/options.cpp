// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

namespace nic {
namespace {

constexpr char kHelp[] =
    R"(Two simulated NIC boxes back to back: packets of two hosts go into both at once, leave
compressed over UDP sockets on 127.0.0.1 (a datagram is one whole Ethernet packet), and arrive
expanded at the other host.

  scripts/rtl nic [OPTIONS]

  --against box|software  the other end: a second box, or the library (default box)
  --recipe RECIPE         fre:m=M or bx:m=M, 2 to 23; tbq:tau=T,of=one, T a power of two; lz4;
                          or zfp:rate=R, R a whole number of 3 to 16 (default fre:m=5)
  --lanes N               in the place of a box up to 64 lanes from the host to one wire, with tbq,
                          lz4 or zfp, one way (rtl/nic/wpr_nic_lanes.sv); the other end is the library
  --off                   compress and expand nothing: the boxes alone
  --sizes N,N,...         bytes of a packet without FCS, 60 to 9600
  --data KIND,KIND,...    wave; noise: every bit random; even[:R]: in [1, 2), a part R of the values
                          equal to the one before; sparse[:P]: a part P is 1 or -1, the others 0;
                          copies[:P]: pieces of 4 to 64 bytes, a part P of them copied from before;
                          repeat[:P]: a part P of the payload is noise, and repeated
  --packets N             of each size and kind in each direction, up to 60000 (default 100)
  --other P               a part P of them for a port that is not compressed (default 0.125)
  --drop P, --reorder P, --corrupt P
                          a part P is lost, overtaken by up to 8 others, or has one bit flipped
  --pause P               hosts and wire pause in a part P of the clocks, up to 0.9
  --line GBPS             rate of the wire, with preambles, FCS and gaps (default 0: no limit)
  --seed N                of all that is drawn (default 1)
  --json FILE             the rows as JSON

Checked: what leaves on the wire is byte for byte the library's frame; what arrives is what the
library makes of it, which without a lossy code is what was sent; order, lengths, checksums; every
packet and every counter of the boxes is accounted for. Status 1 where anything is not so, or nothing
moves any more.

  scripts/rtl nic --sizes 1518,9018 --packets 500
  scripts/rtl nic --drop 0.05 --reorder 0.1 --corrupt 0.05 --seed 7
  scripts/rtl nic --against software --recipe tbq:tau=1,of=one --data sparse:0.06
  scripts/rtl nic --lanes 16 --recipe tbq:tau=1,of=one --data sparse:0.02 --sizes 9018 --line 100
)";

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "nic_pair: %s; --help says more\n", why.c_str());
  std::exit(2);
}

double number(const std::string& text, const std::string& option, double low, double high) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  char range[64];
  std::snprintf(range, sizeof(range), "%g to %g", low, high);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    stop(option + ": \"" + text + "\" is not a number of " + range);
  return value;
}

size_t whole(const std::string& text, const std::string& option, double low, double high) {
  const double value = number(text, option, low, high);
  if (value != std::floor(value)) stop(option + ": \"" + text + "\" is not a whole number");
  return static_cast<size_t>(value);
}

std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> found;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) found.push_back(part);
  return found;
}

std::vector<size_t> sizes_of(const std::string& text) {
  std::vector<size_t> sizes;
  for (const std::string& part : parts(text)) sizes.push_back(whole(part, "--sizes", kLeast, 9600));
  if (sizes.empty()) stop("--sizes: none is given");
  return sizes;
}

std::vector<Data> data_of(const std::string& text) {
  const std::map<std::string, double> kinds = {{"wave", 0},      {"noise", 0},
                                               {"even", 0},      {"sparse", 0.0625},
                                               {"copies", 0.75}, {"repeat", 0.1}};
  std::vector<Data> found;
  for (const std::string& part : parts(text)) {
    const size_t colon = part.find(':');
    const std::string kind = part.substr(0, colon);
    if (!kinds.count(kind))
      stop("--data: \"" + kind + "\" is none of wave, noise, even, sparse, copies, repeat");
    Data data{part, kind, kinds.at(kind)};
    if (colon != std::string::npos) data.number = number(part.substr(colon + 1), "--data", 0, 1);
    found.push_back(data);
  }
  if (found.empty()) stop("--data: none is given");
  return found;
}

Codec codec_of(const std::string& recipe) {
  constexpr uint8_t kNearest = 1 << 5;
  constexpr int kBias = 127;
  int number = 0, used = 0;
  double tau = 0;
  const auto is = [&](const char* format, auto* value) {
    return std::sscanf(recipe.c_str(), format, value, &used) == 1 &&
           used == static_cast<int>(recipe.size());
  };
  const auto within = [&](int low, int high) { return number >= low && number <= high; };
  if (is("fre:m=%d%n", &number) && within(2, 23))
    return {.name = "fre", .recipe = recipe, .control = static_cast<uint8_t>(number | kNearest)};
  if (is("bx:m=%d%n", &number) && within(2, 23))
    return {.name = "bx", .recipe = recipe, .control = static_cast<uint8_t>(number | kNearest)};
  if (is("tbq:tau=%lf,of=one%n", &tau) && tau >= 0x1p-60 && tau <= 0x1p60 &&
      std::exp2(std::ilogb(tau)) == tau)
    return {
        .name = "tbq", .recipe = recipe, .control = static_cast<uint8_t>(std::ilogb(tau) + kBias)};
  if (is("zfp:rate=%d%n", &number) && within(3, 16))
    return {.name = "zfp", .recipe = recipe, .control = static_cast<uint8_t>(number)};
  if (recipe == "lz4")
    return {.name = "lz4", .recipe = recipe, .dtype = WPR_BYTES, .unit = 1, .engine = "rtl"};
  stop("--recipe: \"" + recipe +
       "\" is none of fre:m=M, bx:m=M, tbq:tau=T,of=one, lz4 and zfp:rate=R as the boxes "
       "take them");
}

void set_recipe(const std::string& recipe, Options* options) {
  options->codec = codec_of(recipe);
  options->settings.codec = options->codec.control;
}

void set_against(const std::string& text, Options* options) {
  if (text != "box" && text != "software")
    stop("--against: \"" + text + "\" is neither box nor software");
  options->software = text == "software";
}

}  // namespace

Options options_of(int argc, char** argv) {
  constexpr uint16_t kPort = 5000;
  constexpr double kMost = 0.9;  // of 1 nothing would ever move
  Options options;
  options.settings.port = kPort;
  set_recipe("fre:m=5", &options);
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"--against", [&](auto& text) { set_against(text, &options); }},
      {"--recipe", [&](auto& text) { set_recipe(text, &options); }},
      {"--sizes", [&](auto& text) { options.sizes = sizes_of(text); }},
      {"--data", [&](auto& text) { options.data = data_of(text); }},
      {"--packets", [&](auto& text) { options.packets = whole(text, "--packets", 1, 60000); }},
      {"--other", [&](auto& text) { options.other = number(text, "--other", 0, 1); }},
      {"--drop", [&](auto& text) { options.faults.drop = number(text, "--drop", 0, 1); }},
      {"--reorder", [&](auto& text) { options.faults.reorder = number(text, "--reorder", 0, 1); }},
      {"--corrupt", [&](auto& text) { options.faults.corrupt = number(text, "--corrupt", 0, 1); }},
      {"--pause", [&](auto& text) { options.settings.pause = number(text, "--pause", 0, kMost); }},
      {"--line", [&](auto& text) { options.settings.line = number(text, "--line", 0, 1000); }},
      {"--lanes",
       [&](auto& text) { options.settings.lanes = whole(text, "--lanes", 1, kMostLanes); }},
      {"--seed", [&](auto& text) { options.faults.seed = whole(text, "--seed", 0, 1e9); }},
      {"--json", [&](auto& text) { options.json = text; }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (option == "--off") {
      options.settings.on = false;
      continue;
    }
    if (!known.count(option)) stop("\"" + option + "\" is no option");
    if (++i == argc) stop(option + " wants a value");
    known.at(option)(argv[i]);
  }
  if (options.settings.lanes > 0 && (options.codec.name == "fre" || options.codec.name == "bx"))
    stop("--lanes: they have tbq, lz4 or zfp, give --recipe tbq:tau=1,of=one");
  options.software |= options.settings.lanes > 0;
  options.settings.seed = options.faults.seed;
  return options;
}

}  // namespace nic
