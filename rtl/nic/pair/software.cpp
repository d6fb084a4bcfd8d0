// SPDX-License-Identifier: Apache-2.0
// A host without a box, whose program uses the library; its packets are counted as a box would.
#include "end.hpp"

namespace nic {
namespace {

class Software : public End {
 public:
  Software(const Settings& settings, Library* library) : settings_(settings), library_(library) {}

  void from_host(Bytes packet) override { host_in_.push_back(std::move(packet)); }
  void from_wire(Bytes packet) override { wire_in_.push_back(std::move(packet)); }

  bool clock(uint64_t now) override {
    now_ = now;
    const bool moved = !host_in_.empty() || !wire_in_.empty();
    if (!host_in_.empty()) {
      send(host_in_.front());
      host_in_.pop_front();
      if (begun == 0) begun = now;
    }
    if (!wire_in_.empty()) {
      receive(wire_in_.front());
      wire_in_.pop_front();
    }
    return moved;
  }

  Counted counted() override { return counted_; }

 private:
  bool ours(const Bytes& packet, Datagram* datagram) {
    std::string why;
    return settings_.on && datagram_of(packet, datagram, &why) &&
           datagram->port == settings_.port && packet.size() == kHeaders + datagram->payload.size();
  }
  void put(std::deque<Timed>* to, Bytes packet) { to->push_back({std::move(packet), now_, now_}); }

  void send(const Bytes& packet) {
    Datagram datagram;
    if (ours(packet, &datagram)) {
      const Bytes frame = library_->frame(datagram.payload);
      if (kHeaders + frame.size() <= settings_.largest) {
        ++(library_->is_coded(frame) ? counted_.coded : counted_.stored);
        return put(&to_wire, with_payload(packet, frame));
      }
    }
    ++counted_.passed;
    put(&to_wire, packet);
  }

  void receive(const Bytes& packet) {
    Datagram datagram;
    if (!ours(packet, &datagram) || !library_->is_frame(datagram.payload)) {
      ++counted_.host_passed;
      return put(&to_host, packet);
    }
    try {
      const Bytes payload = library_->expanded(datagram.payload);
      ++counted_.expanded;
      put(&to_host, with_payload(packet, payload));
    } catch (const wirepress::Error&) {
      ++counted_.host_dropped;
    }
  }

  const Settings settings_;
  Library* library_;
  Counted counted_;
  std::deque<Bytes> host_in_, wire_in_;
  uint64_t now_ = 0;
};

}  // namespace

std::unique_ptr<End> software(const Settings& settings, Library* library) {
  return std::make_unique<Software>(settings, library);
}

}  // namespace nic
