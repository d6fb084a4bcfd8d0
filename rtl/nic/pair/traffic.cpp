// SPDX-License-Identifier: Apache-2.0
#include "traffic.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace nic {
namespace {

constexpr int kMostIdle = 20000;    // clocks; an engine of fre is busy with a packet for some 2500
constexpr int kAfter = 300;         // clocks in which nothing more may come
constexpr size_t kMostCode = 8192;  // LogCode of wpr_nic_tx
constexpr double kGbpsOfBytesPerClock = 8 * 0.25;

[[noreturn]] void fail(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  throw std::runtime_error(text);
}

float value_of(const Data& data, size_t i, double phase, float before, std::mt19937_64* random) {
  std::uniform_real_distribution<double> part;
  if (data.kind == "wave") return static_cast<float>(std::sin(phase + static_cast<double>(i) / 40));
  if (data.kind == "even") {
    if (part(*random) < data.number && i > 0) return before;
    return static_cast<float>(1 + part(*random));
  }
  if (part(*random) >= data.number) return 0;
  return (*random)() % 2 == 0 ? 1.0f : -1.0f;
}

Bytes noise(size_t size, std::mt19937_64* random) {
  Bytes payload(size);
  for (uint8_t& byte : payload) byte = static_cast<uint8_t>((*random)());
  return payload;
}

Bytes repeats(double part, size_t size, std::mt19937_64* random) {
  const auto n = static_cast<size_t>(part * static_cast<double>(size));
  Bytes payload = noise(std::clamp<size_t>(n, 1, size), random);
  for (size_t i = 0; payload.size() < size; ++i) payload.push_back(uint8_t{payload[i]});
  return payload;
}

Bytes copies(double part, size_t size, std::mt19937_64* random) {
  constexpr size_t kShortest = 4, kLongest = 64;
  std::bernoulli_distribution copied(part);
  Bytes payload;
  while (payload.size() < size) {
    size_t n = kShortest + (*random)() % (kLongest - kShortest + 1);
    const bool copies = copied(*random) && !payload.empty();
    size_t from = copies ? (*random)() % payload.size() : 0;
    for (; n > 0 && payload.size() < size; --n)
      payload.push_back(copies ? payload[from++] : static_cast<uint8_t>((*random)()));
  }
  return payload;
}

Bytes payload_of(const Data& data, size_t size, std::mt19937_64* random) {
  if (data.kind == "noise") return noise(size, random);
  if (data.kind == "copies") return copies(data.number, size, random);
  if (data.kind == "repeat") return repeats(data.number, size, random);
  const double phase = std::uniform_real_distribution<double>(0, 6)(*random);
  Bytes payload(size);
  float value = 0;
  for (size_t i = 0; i < size; i += sizeof(value)) {
    value = value_of(data, i / sizeof(value), phase, value, random);
    std::memcpy(payload.data() + i, &value, std::min(sizeof(value), size - i));
  }
  return payload;
}

// One direction: what was sent, and what must come of it.
class Direction {
 public:
  Direction(const Options& options, Library* library)
      : options_(options), library_(library), next_(std::max<size_t>(1, options.settings.lanes)) {
    std::iota(next_.begin(), next_.end(), size_t{0});
  }

  Bytes next(size_t size, const Data& data, bool from_b, std::mt19937_64* random) {
    Datagram datagram{static_cast<uint16_t>(sent_.size()), options_.settings.port,
                      payload_of(data, size - kHeaders, random)};
    if (std::bernoulli_distribution(options_.other)(*random)) ++datagram.port;
    Bytes packet = packet_of(datagram, from_b);
    flow.host_bytes += packet.size();
    ++flow.sent;
    sent_.push_back({std::move(datagram), {}, false});
    return packet;
  }

  // On the wire, before anything happens to it: order, and what the library would have sent.
  void on_wire(const Bytes& packet) {
    Datagram seen;
    std::string why;
    if (!datagram_of(packet, &seen, &why))
      fail("packet %zu on the wire: %s", on_wire_, why.c_str());
    const size_t lane = seen.number % next_.size();
    if (seen.number != next_[lane])
      fail("packet %u on the wire where %zu is next", seen.number, next_[lane]);
    next_[lane] += next_.size();
    ++on_wire_;
    Sent& sent = sent_[seen.number];
    flow.wire_bytes += packet.size();
    if (seen.port != sent.datagram.port) fail("packet %u: its port has changed", seen.number);
    const bool framed = must_be_framed(sent.datagram, seen);
    if (!framed && seen.payload != sent.datagram.payload)
      fail("packet %u passed the box and is not as it came", seen.number);
    sent.expected = framed ? library_->expanded(seen.payload) : seen.payload;
    if (!framed) return;
    if (library_->is_coded(seen.payload)) {
      flow.raw_bytes += sent.expected.size();
      flow.code_bytes += seen.payload.size() - library_->prefix();
    } else if (sent.expected != sent.datagram.payload) {
      fail("packet %u was stored and is not as it came", seen.number);
    }
  }

  // At the other end, perhaps damaged.
  void arrives(const Bytes& packet) {
    arrived_.push_back(static_cast<size_t>(packet[18]) << 8 | packet[19]);
  }

  void delivered(const Timed& timed) {
    Datagram seen;
    std::string why;
    if (!datagram_of(timed.packet, &seen, &why)) {
      ++flow.refused;
      return;
    }
    if (seen.number >= sent_.size()) fail("packet %u was never sent", seen.number);
    Sent& sent = sent_[seen.number];
    if (sent.done) fail("packet %u arrives twice", seen.number);
    // The library codes payloads that no box takes, too; the box gives such frames on as they come,
    // and the host's library reads them.
    if (options_.software && !library_->takes(sent.datagram.payload) &&
        library_->is_frame(seen.payload))
      seen.payload = library_->expanded(seen.payload);
    if (seen.payload != sent.expected || seen.port != sent.datagram.port)
      fail("packet %u arrives with %zu bytes that are not those expected (%zu)", seen.number,
           seen.payload.size(), sent.expected.size());
    const auto place = std::find(arrived_.begin(), arrived_.end(), seen.number);
    if (place == arrived_.end()) fail("packet %u has been overtaken inside", seen.number);
    arrived_.erase(arrived_.begin(), place + 1);
    sent.done = true;
    if (++flow.delivered == 1) {
      begin_ = timed;
    } else {
      bytes_ += timed.packet.size();
    }
    end_ = timed.last;
  }

  bool all_on_wire() const { return on_wire_ == sent_.size(); }
  bool done(const Wire::Counts& wire) const {
    return all_on_wire() && flow.delivered + flow.refused == flow.sent - wire.dropped;
  }

  // After all is over; `to` and `from` are what the ends have counted of this direction.
  void settle(const Wire::Counts& wire, const Counted& from, const Counted& to, uint64_t begun) {
    flow.dropped = wire.dropped;
    flow.corrupted = wire.corrupted;
    flow.reordered = wire.reordered;
    flow.from = from;
    flow.to = to;
    const uint64_t went = from.coded + from.stored + from.passed;
    const uint64_t came = to.expanded + to.host_passed + to.host_dropped;
    if (from.dropped != 0 || went != flow.sent)
      fail("%zu packets were sent, the end counts %zu and %zu dropped", size_t{flow.sent},
           size_t{went}, size_t{from.dropped});
    if (came != flow.sent - wire.dropped)
      fail("%zu packets came from the wire, the end counts %zu", size_t{flow.sent - wire.dropped},
           size_t{came});
    if (flow.delivered + flow.refused + to.host_dropped != came)
      fail("%zu packets were delivered, %zu refused and %zu dropped of %zu", size_t{flow.delivered},
           size_t{flow.refused}, size_t{to.host_dropped}, size_t{came});
    // Damage to a checksum can make it 0, which is none, and leaves the payload whole.
    if (flow.refused + to.host_dropped > wire.corrupted)
      fail("%zu packets were refused and %zu dropped, but %zu damaged", size_t{flow.refused},
           size_t{to.host_dropped}, size_t{wire.corrupted});
    if (flow.delivered > 0) {
      flow.clocks = end_ - begun;
      flow.latency = begin_.first - begun;
    }
    if (end_ > begin_.last)
      flow.gbps = static_cast<double>(bytes_) / static_cast<double>(end_ - begin_.last) *
                  kGbpsOfBytesPerClock;
  }

  Flow flow;

 private:
  struct Sent {
    Datagram datagram;
    Bytes expected;  // payload at the other host
    bool done;
  };

  // Whether a datagram leaves as a frame, which is then the library's own. But a box stores
  // payloads that its codec does not take and codes beyond its memory, and keeps a code that is
  // smaller by less than the 64th below which the library stores.
  bool must_be_framed(const Datagram& datagram, const Datagram& seen) {
    if (!options_.settings.on || datagram.port != options_.settings.port) return false;
    if (datagram.payload.size() < kLeast - kHeaders) return false;  // padded
    const Bytes frame = library_->frame(datagram.payload);
    if (seen.payload == frame) return true;
    const bool coded = library_->is_coded(frame);
    const bool codable = library_->takes(datagram.payload) &&
                         frame.size() <= library_->prefix() + kMostCode && coded;
    const bool fits =
        kHeaders + library_->prefix() + datagram.payload.size() <= options_.settings.largest;
    const bool framed = library_->is_frame(seen.payload);
    const bool smaller =
        framed && library_->is_coded(seen.payload) && !coded && seen.payload.size() < frame.size();
    if (!smaller && (codable || framed != fits))
      fail("packet %u is not the library's frame", datagram.number);
    return framed;
  }

  const Options& options_;
  Library* library_;
  std::vector<Sent> sent_;
  size_t on_wire_ = 0;
  std::vector<size_t> next_;  // on the wire, of each lane
  std::deque<size_t> arrived_;
  Timed begin_;
  uint64_t end_ = 0, bytes_ = 0;
};

class Exchange {
 public:
  Exchange(const Options& options, Library* box, Library* host)
      : wire_(options.faults),
        directions_{Direction(options, box), Direction(options, options.software ? host : box)} {
    const auto simulate = [&](const Settings& settings) {
      return simulated(options.codec.name, settings, box);
    };
    Settings settings = options.settings;
    settings.seed *= 2;
    ends_[0] = settings.lanes > 0 ? lanes(options.codec.name, settings, box) : simulate(settings);
    ++settings.seed;
    ends_[1] = options.software ? software(settings, host) : simulate(settings);
  }

  void send(size_t d, size_t size, const Data& data, std::mt19937_64* random) {
    ends_[d]->from_host(directions_[d].next(size, data, d == 1, random));
  }

  void run() {
    for (int idle = 0; !done(0) || !done(1);) {
      idle = clock() ? 0 : idle + 1;
      if (idle == kMostIdle) break;  // the counts say whether that is right
    }
    for (int i = 0; i < kAfter; ++i) clock();
  }

  Flow flow(size_t d) {
    const size_t other = 1 - d;
    if (!directions_[d].all_on_wire())
      fail("only %zu of %zu packets have left: nothing has moved for %d clocks",
           size_t{wire_.counts(static_cast<int>(d)).packets}, size_t{directions_[d].flow.sent},
           kMostIdle);
    directions_[d].settle(wire_.counts(static_cast<int>(d)), counted_[d], counted_[other],
                          ends_[d]->begun);
    return directions_[d].flow;
  }

  void count() {
    for (size_t d = 0; d < 2; ++d) counted_[d] = ends_[d]->counted();
  }

 private:
  bool done(size_t d) const { return directions_[d].done(wire_.counts(static_cast<int>(d))); }

  bool clock() {
    bool moved = false;
    ++now_;
    for (auto& end : ends_) moved |= end->clock(now_);
    for (int d = 0; d < 2; ++d) moved |= carry(d);
    return moved;
  }

  bool carry(int d) {
    Direction& direction = directions_[static_cast<size_t>(d)];
    End &from = *ends_[static_cast<size_t>(d)], &to = *ends_[static_cast<size_t>(1 - d)];
    bool moved = false;
    for (; !from.to_wire.empty(); from.to_wire.pop_front()) {
      direction.on_wire(from.to_wire.front().packet);
      wire_.send(d, std::move(from.to_wire.front().packet));
    }
    if (direction.all_on_wire()) wire_.flush(d);
    while (std::optional<Bytes> packet = wire_.receive(1 - d)) {
      direction.arrives(*packet);
      to.from_wire(std::move(*packet));
      moved = true;
    }
    for (; !to.to_host.empty(); to.to_host.pop_front()) direction.delivered(to.to_host.front());
    return moved;
  }

  Wire wire_;
  Direction directions_[2];
  std::unique_ptr<End> ends_[2];
  Counted counted_[2];
  uint64_t now_ = 0;
};

}  // namespace

Row exchanged(const Options& options, const std::vector<size_t>& sizes,
              const std::vector<Data>& data, Library* box, Library* host) {
  std::mt19937_64 random(options.faults.seed);
  Exchange exchange(options, box, host);
  const size_t directions = options.settings.lanes > 0 ? 1 : 2;
  for (size_t i = 0; i < directions * options.packets; ++i) {
    const size_t size = sizes[random() % sizes.size()];
    exchange.send(i % directions, size, data[random() % data.size()], &random);
  }
  exchange.run();
  exchange.count();
  Row row{sizes.size() > 1 ? "mixed" : std::to_string(sizes[0]),
          data.size() > 1 ? "mixed" : data[0].name,
          {}};
  for (size_t d = 0; d < directions; ++d) row.flows[d] = exchange.flow(d);
  return row;
}

}  // namespace nic
