// SPDX-License-Identifier: Apache-2.0
// Gather(v), Scatter(v), Allgatherv and Alltoall(v, w) between nodes.
//
// All but Allgatherv are messages between pairs of ranks, sent as point-to-point ones are: each is
// compressed or not as its sender alone decides, so that nobody needs to know the sizes of others.
// That is how MPI's own algorithms go as well, except for the equal forms with small blocks, where
// trees take fewer messages: these are left to MPI.
#include "collectives/collectives.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

constexpr size_t kPeers = 32;         // looked after at a time, each way
constexpr size_t kLeastInFlight = 4;  // chunks to or from a peer: the link is shared by all peers
// Tags by call: what a wrong program sends too much must not be taken by the next call.
constexpr int kFirstTag = 0x100;
constexpr unsigned kTags = 0x3FFF;

// What one rank is to send or to get.
struct Block {
  Byte* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// What goes to, or comes from, one rank: one raw message, or chunks of which the first is a frame.
// The last chunk is shorter than the others, if need be empty: the receiver of less than it
// expected knows where it ends.
struct Parcel {
  int peer = 0;
  bool remote = false;
  Block block;
  Type type;
  size_t size = 0;

  Byte* data = nullptr;  // the bytes: the user's own, or packed
  Buffer packed;
  size_t chunk_size = 0, n_chunks = 1;
  size_t next = 0;      // chunk to be sent, or asked for
  size_t n_flying = 0;  // of those before it
  size_t received = 0;  // bytes
  Site* site = nullptr;
  int candidate = kRaw;
  size_t tried = 0, saved = 0;
  double codec_seconds = 0;

  size_t begin(size_t chunk) const { return chunk * chunk_size; }
  size_t size_of(size_t chunk) const { return std::min(chunk_size, size - begin(chunk)); }
  size_t n_all_chunks() const { return size / chunk_size + 1; }
  // Without memory for the packed bytes: what is sent is described to MPI as the user did, or left
  // out (`empty`); what is received must come whole, or is dropped.
  bool unpacked = false, empty = false;
  // It goes as the user described it.
  bool plain() const { return !remote || unpacked; }
  bool ended() const { return next == n_chunks && n_flying == 0; }
};

#ifdef WPR_MPI_LARGE
constexpr auto isend_large = PMPI_Isend_c;
constexpr auto irecv_large = PMPI_Irecv_c;
using Count = MPI_Count;
#else
constexpr auto isend_large = PMPI_Isend;
constexpr auto irecv_large = PMPI_Irecv;
using Count = int;
#endif

// The messages of one call on this rank.
class Traffic {
 public:
  Traffic(Call call, Comm* comm, Shadow* shadow)
      : call_(call),
        comm_(comm),
        shadow_(shadow),
        tag_(kFirstTag + static_cast<int>(shadow->n_calls++ & kTags)) {
    ++stats(call).messages;
  }

  // `kept`: the buffer will be overwritten by what comes.
  void send(int peer, const Block& block, bool kept = false) { add(peer, block, true, kept); }
  void receive(int peer, const Block& block) { add(peer, block, false, false); }
  void check(int error) {
    if (error && !error_) error_ = error;
  }

  // Moves everything; afterwards the user's error handler knows of a failure.
  int run() {
    if (all_small_) {
      run_small();
    } else {
      run_chunks();
    }
    finish_counting();
    return error_ ? raise(comm_, error_) : MPI_SUCCESS;
  }

 private:
  struct Side {
    std::deque<Parcel> parcels;  // in the order in which their peers are served
    size_t next = 0;
    std::vector<Parcel*> active;
  };
  // A message that MPI has.
  struct Flight {
    Parcel* parcel = nullptr;
    bool receives = false;
    size_t chunk = 0;
    Buffer frame;
  };
  enum Sent { kNothing, kCheap, kCompressed };

  struct Message {
    int peer;
    bool sends, kept;
    Block block;
    Type type;
    size_t size;
  };

  void add(int peer, const Block& block, bool sends, bool kept) {
    Type type;
    MPI_Count size;
    if (block.count == 0 || !look_up(block.type, &type) ||
        !product(block.count, type.size, &size)) {
      return;
    }
    if (messages_.empty()) messages_.reserve(2 * static_cast<size_t>(comm_->size));
    messages_.push_back({peer, sends, kept, block, type, static_cast<size_t>(size)});
    all_small_ =
        all_small_ && !kept && static_cast<size_t>(size) < small_ && messages_.size() <= 2 * kPeers;
  }

  // Nothing that could be a frame: as MPI itself would do it.
  void run_small() {
    std::array<MPI_Request, 2 * kPeers> requests;
    int n = 0;
    const double start = now();
    for (const bool sends : {false, true}) {
      for (const Message& message : messages_) {
        if (message.sends != sends) continue;
        const Block& block = message.block;
        const int count = static_cast<int>(block.count);  // of elements of a byte or more
        check(sends ? PMPI_Isend(block.buffer, count, block.type, message.peer, tag_, shadow_->all,
                                 &requests[static_cast<size_t>(n)])
                    : PMPI_Irecv(block.buffer, count, block.type, message.peer, tag_, shadow_->all,
                                 &requests[static_cast<size_t>(n)]));
        if (error_) break;
        ++n;
        if (!comm_->takes_frames(message.peer)) continue;
        CallStats& counts = stats(call_);
        if (sends) {
          counts.raw_size += message.size;
          counts.wire_size += message.size;
          if (bypass_ == kSameHost) bypass_ = kSmall;
        } else {
          ++counts.received;
          counts.received_raw_size += message.size;
          counts.received_wire_size += message.size;
          receives_remote_ = true;
        }
      }
    }
    wait_small(requests.data(), n);
    stats(call_).wait_seconds += now() - start;
  }

  void wait_small(MPI_Request* requests, int n) {
    std::array<MPI_Status, 2 * kPeers> statuses;
    const int error = PMPI_Waitall(n, requests, statuses.data());
    if (!error) return;
    for (int i = 0; i < n && in_status(error); ++i) {
      check(statuses[static_cast<size_t>(i)].MPI_ERROR);
    }
    check(error);
  }

  void run_chunks() {
    for (const Message& message : messages_) make_parcel(message);
    for (;;) {
      start_receives();
      const int sent = send_chunk();
      if (sent == kCheap) continue;
      if (sent == kNothing && n_flying_ == 0) break;
      harvest(sent == kNothing);
    }
  }

  void make_parcel(const Message& message) {
    Parcel& parcel = (message.sends ? out_ : in_).parcels.emplace_back();
    parcel.peer = message.peer;
    parcel.remote = comm_->takes_frames(message.peer);
    parcel.block = message.block;
    parcel.type = message.type;
    parcel.size = message.size;
    parcel.chunk_size = job().chunk;
    if (!message.sends) receives_remote_ = receives_remote_ || parcel.remote;
    if (!message.kept) return;
    if (!pack(&parcel, true)) {
      // Others would wait for it: they get an empty message, which they take for an error.
      check(MPI_ERR_NO_MEM);
      parcel.empty = parcel.unpacked = true;
      return;
    }
    parcel.type.contiguous = true;
    parcel.block = {parcel.data, static_cast<MPI_Count>(parcel.size), MPI_BYTE};
  }

  // Room for the packed bytes, and `fill`: the bytes.
  bool pack(Parcel* parcel, bool fill) {
    if (!parcel->packed.reserve(parcel->size)) {
      ++self_thread().events.no_memory;
      return false;
    }
    parcel->data = parcel->packed.data();
    if (!fill) return true;
    if (parcel->type.contiguous && parcel->block.buffer) {
      std::memcpy(parcel->data, parcel->block.buffer, parcel->size);
    } else {
      check(collect(parcel->block.buffer, parcel->block.count, parcel->block.type, parcel->data,
                    parcel->size));
    }
    return true;
  }

  static size_t window(const Side& side) {
    return std::max(kLeastInFlight, kInFlight / std::max<size_t>(side.active.size(), 1));
  }

  // The next peers' turn.
  void activate(Side* side, bool sends) {
    while (side->active.size() < kPeers && side->next < side->parcels.size()) {
      Parcel* parcel = &side->parcels[side->next++];
      parcel->data = parcel->block.buffer;
      if (!parcel->type.contiguous && !parcel->plain() && !pack(parcel, sends)) {
        parcel->unpacked = true;
      }
      if (sends) choose_codec(parcel);
      side->active.push_back(parcel);
    }
  }

  void choose_codec(Parcel* parcel) {
    if (parcel->plain()) return;
    CallStats& counts = stats(call_);
    counts.raw_size += parcel->size;
    if (parcel->size < least_size(call_) || !parcel->data) {
      if (bypass_ == kSameHost) bypass_ = kSmall;
      return;
    }
    parcel->site = find_site(call_, parcel->type.dtype, parcel->size, kCollectiveLink);
    parcel->candidate = choose(parcel->site, parcel->data, parcel->size, parcel->type, true);
    bypass_ = parcel->candidate < 0 ? bypass_of(parcel->candidate) : kNotSmaller;
  }

  void start_receives() {
    activate(&in_, false);
    for (Parcel* parcel : in_.active) {
      while (parcel->next < parcel->n_chunks && parcel->n_flying < window(in_)) {
        const size_t chunk = parcel->next;
        const size_t slot = take_slot(parcel, true, chunk);
        if (chunk == 0) {
          receive_first(parcel, &requests_[slot]);
        } else {
          Byte* to = parcel->unpacked ? nowhere_.data() : parcel->data + parcel->begin(chunk);
          check(PMPI_Irecv(to, static_cast<int>(parcel->size_of(chunk)), MPI_BYTE, parcel->peer,
                           tag_, shadow_->all, &requests_[slot]));
        }
      }
    }
  }

  // All of it, or the first chunk.
  void receive_first(Parcel* parcel, MPI_Request* request) {
    const Block& block = parcel->block;
    if (parcel->plain()) {
      return check(irecv_large(block.buffer, static_cast<Count>(block.count), block.type,
                               parcel->peer, tag_, shadow_->all, request));
    }
    const ByteRoom room(parcel->size);
    check(
        PMPI_Irecv(parcel->data, room.count, room.type, parcel->peer, tag_, shadow_->all, request));
  }

  void send_whole(Parcel* parcel, MPI_Request* request) {
    const Block& block = parcel->block;
    if (parcel->empty) {
      return check(PMPI_Isend(nullptr, 0, MPI_BYTE, parcel->peer, tag_, shadow_->all, request));
    }
    if (parcel->plain() && !parcel->packed.data()) {
      return check(isend_large(block.buffer, static_cast<Count>(block.count), block.type,
                               parcel->peer, tag_, shadow_->all, request));
    }
    const ByteRoom room(parcel->size);
    check(
        PMPI_Isend(parcel->data, room.count, room.type, parcel->peer, tag_, shadow_->all, request));
  }

  // The next chunk of the first peer that has not enough on its way to it.
  Sent send_chunk() {
    activate(&out_, true);
    for (Parcel* parcel : out_.active) {
      if (parcel->next == parcel->n_chunks || parcel->n_flying >= window(out_)) continue;
      const size_t chunk = parcel->next;
      const size_t slot = take_slot(parcel, false, chunk);
      const bool tries = parcel->candidate >= 0;
      Buffer& frame = flights_[slot].frame;
      size_t wire_size = parcel->size_of(chunk);
      const Byte* wire = parcel->data + parcel->begin(chunk);
      if (tries && wire_size >= kMinWire) wire_size = compress(parcel, &wire, wire_size, &frame);
      if (chunk == 0 && wire == parcel->data) {
        wire_size = parcel->size;
        send_whole(parcel, &requests_[slot]);
      } else {
        parcel->n_chunks = parcel->n_all_chunks();
        check(PMPI_Isend(wire, static_cast<int>(wire_size), MPI_BYTE, parcel->peer, tag_,
                         shadow_->all, &requests_[slot]));
      }
      if (parcel->remote) stats(call_).wire_size += wire_size;
      return tries ? kCompressed : kCheap;
    }
    return kNothing;
  }

  size_t compress(Parcel* parcel, const Byte** wire, size_t size, Buffer* frame) {
    parcel->tried += size;
    if (!frame->reserve(size)) return size;
    const size_t wire_size =
        make_wire(call_, parcel->candidate, *wire, size, parcel->type, frame->data(), size);
    parcel->codec_seconds += self_thread().codec_seconds;
    if (!wire_size) return size;
    parcel->saved += size - wire_size;
    framed_ = true;
    *wire = frame->data();
    return wire_size;
  }

  size_t take_slot(Parcel* parcel, bool receives, size_t chunk) {
    size_t slot = requests_.size();
    if (free_.empty()) {
      requests_.push_back(MPI_REQUEST_NULL);
      flights_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    flights_[slot].parcel = parcel;
    flights_[slot].receives = receives;
    flights_[slot].chunk = chunk;
    ++parcel->next;
    ++parcel->n_flying;
    ++n_flying_;
    return slot;
  }

  // Looks after what arrived or left.
  void harvest(bool wait) {
    const auto n = static_cast<int>(requests_.size());
    done_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int n_done = 0;
    const double start = now();
    const int error =
        wait ? PMPI_Waitsome(n, requests_.data(), &n_done, done_.data(), statuses_.data())
             : PMPI_Testsome(n, requests_.data(), &n_done, done_.data(), statuses_.data());
    stats(call_).wait_seconds += now() - start;
    if (n_done == MPI_UNDEFINED || (error && !in_status(error))) return give_up(error);
    for (int i = 0; i < n_done; ++i) {
      const MPI_Status& status = statuses_[static_cast<size_t>(i)];
      land(static_cast<size_t>(done_[static_cast<size_t>(i)]), status,
           error ? status.MPI_ERROR : MPI_SUCCESS);
    }
  }

  static bool in_status(int error) {
    int kind = error;
    PMPI_Error_class(error, &kind);
    return kind == MPI_ERR_IN_STATUS;
  }

  // MPI does not want any of it: nothing is on its way.
  void give_up(int error) {
    check(error ? error : MPI_ERR_OTHER);
    for (Side* side : {&in_, &out_}) {
      side->active.clear();
      side->next = side->parcels.size();
    }
    n_flying_ = 0;
  }

  void land(size_t slot, const MPI_Status& status, int error) {
    Flight& flight = flights_[slot];
    Parcel* parcel = flight.parcel;
    flight.frame.release();
    free_.push_back(slot);
    --n_flying_;
    --parcel->n_flying;
    if (error && flight.receives && flight.chunk == 0 && parcel->unpacked && parcel->remote) {
      pass_by(parcel, 0, 1);  // a frame does not end with an element of the user's type
    } else if (error) {
      check(error);
      if (flight.receives) cut_short(parcel);
    } else if (flight.receives) {
      int cancelled = 0;
      PMPI_Test_cancelled(&status, &cancelled);
      const size_t size = received_size(status);
      if (size == 0 && flight.chunk == 0) check(MPI_ERR_OTHER);  // its sender has no memory
      if (!cancelled) take(parcel, flight.chunk, size);
    }
    if (!parcel->ended()) return;
    if (flight.receives) {
      finish_receive(parcel);
    } else if (parcel->tried) {
      const bool good = parcel->saved * 32 > parcel->tried;
      learn_outcome(parcel->site, parcel->candidate, parcel->tried,
                    good ? parcel->tried - parcel->saved : 0, parcel->codec_seconds);
    }
    parcel->packed.release();
    std::erase(flight.receives ? in_.active : out_.active, parcel);
  }

  void take(Parcel* parcel, size_t chunk, size_t wire_size) {
    if (parcel->unpacked) return pass_by(parcel, chunk, wire_size);
    if (parcel->plain()) return;
    Byte* data = parcel->data + parcel->begin(chunk);
    size_t written = wire_size;
    CallStats& counts = stats(call_);
    ++counts.received;
    counts.received_wire_size += wire_size;
    const bool framed = is_framed(data, wire_size);
    if (framed) {
      ++counts.received_framed;
      const int error = expand_there(parcel, chunk, wire_size, &written);
      check(error);
      // Without its first chunk the others must be taken all the same.
      if (error) written = parcel->size_of(chunk);
      if (chunk == 0 && written == parcel->chunk_size) parcel->n_chunks = parcel->n_all_chunks();
    }
    counts.received_raw_size += written;
    parcel->received += written;
    if (written < parcel->chunk_size && chunk + 1 < parcel->n_chunks) cut_short(parcel);
  }

  int expand_there(Parcel* parcel, size_t chunk, size_t wire_size, size_t* written) {
    Byte* data = parcel->data + parcel->begin(chunk);
    Buffer& aside = self_thread().wire;
    if (!aside.reserve(wire_size, true)) return MPI_ERR_NO_MEM;
    std::memcpy(aside.data(), data, wire_size);
    return expand(call_, aside.data(), wire_size, data, parcel->size_of(chunk), written);
  }

  // What came where there is no memory to expand it: a message that is not whole is a frame, and
  // others follow.
  void pass_by(Parcel* parcel, size_t chunk, size_t wire_size) {
    if (!parcel->remote || wire_size == 0 || (chunk == 0 && wire_size == parcel->size)) return;
    check(MPI_ERR_NO_MEM);
    if (chunk == 0 && nowhere_.reserve(parcel->chunk_size, true)) {
      parcel->n_chunks = parcel->n_all_chunks();
    }
  }

  // Nothing more will come.
  void cut_short(Parcel* parcel) {
    parcel->next = parcel->n_chunks;
    for (size_t i = 0; i < flights_.size(); ++i) {
      if (flights_[i].parcel == parcel && requests_[i] != MPI_REQUEST_NULL) {
        PMPI_Cancel(&requests_[i]);
      }
    }
  }

  void finish_receive(Parcel* parcel) {
    if (parcel->plain() || parcel->type.contiguous || parcel->received == 0 || error_) return;
    check(deliver(parcel->data, parcel->received, parcel->block.buffer, parcel->block.count,
                  parcel->block.type));
  }

  void finish_counting() {
    CallStats& counts = stats(call_);
    if (framed_) {
      ++counts.framed;
    } else if (bypass_ != kSameHost || !receives_remote_) {
      ++counts.bypass[bypass_];
    }
  }

  Call call_;
  Comm* comm_;
  Shadow* shadow_;
  int tag_;
  std::vector<Message> messages_;
  const size_t small_ = std::min(least_size(call_), job().chunk);
  bool all_small_ = true, receives_remote_ = false;
  Side in_, out_;
  std::vector<MPI_Request> requests_;
  std::deque<Flight> flights_;
  std::vector<size_t> free_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  Buffer nowhere_;
  size_t n_flying_ = 0;
  bool framed_ = false;
  Bypass bypass_ = kSameHost;
  int error_ = MPI_SUCCESS;
};

// ---- the blocks of a call ----

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower, extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

// Numbers, not pointers: MPI_BOTTOM is a good base for displacements.
Byte* place(const void* base, MPI_Aint offset) {
  return reinterpret_cast<Byte*>(reinterpret_cast<uintptr_t>(base) +
                                 static_cast<uintptr_t>(offset));
}

// Blocks of equal size, one behind the other.
struct Equal {
  const void* base;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Aint extent;

  Equal(const void* b, MPI_Count n, MPI_Datatype t)
      : base(b), count(n), type(t), extent(t == MPI_DATATYPE_NULL ? 0 : extent_of(t)) {}
  Block operator()(int rank) const {
    return {place(base, static_cast<MPI_Aint>(rank) * static_cast<MPI_Aint>(count) * extent), count,
            type};
  }
};

template <typename N, typename D>
struct Varying {
  const void* base;
  const N* counts;
  const D* at;
  MPI_Datatype type;
  MPI_Aint extent;

  Varying(const void* b, const N* n, const D* d, MPI_Datatype t)
      : base(b), counts(n), at(d), type(t), extent(t == MPI_DATATYPE_NULL ? 0 : extent_of(t)) {}
  Block operator()(int rank) const {
    return {place(base, static_cast<MPI_Aint>(at[rank]) * extent), counts[rank], type};
  }
};

template <typename N, typename D>
struct Typed {
  const void* base;
  const N* counts;
  const D* at;
  const MPI_Datatype* types;

  Block operator()(int rank) const {
    return {place(base, static_cast<MPI_Aint>(at[rank])), counts[rank], types[rank]};
  }
};

// The bytes of a block; false: MPI is to judge it.
bool block_size(const Block& block, MPI_Count* size) {
  Type type;
  *size = 0;
  if (block.count == 0) return true;
  return block.count > 0 && look_up(block.type, &type) &&
         !__builtin_mul_overflow(block.count, type.size, size);
}

template <typename Blocks>
bool sound(const Blocks& blocks, int n) {
  MPI_Count size;
  for (int i = 0; i < n; ++i) {
    if (!block_size(blocks(i), &size)) return false;
  }
  return true;
}

int copy_own(const Block& from, const Block& to) {
  MPI_Count size, room;
  block_size(from, &size);
  block_size(to, &room);
  if (size == 0 && room == 0) return MPI_SUCCESS;
  return copy(from.buffer, from.count, from.type, to.buffer, to.count, to.type);
}

// ---- one to all, all to one, all to all ----

template <typename Blocks>
int gather(Call call, Comm* comm, Shadow* shadow, const Block& mine, const Blocks& blocks,
           bool in_place, int root) {
  Traffic traffic(call, comm, shadow);
  if (comm->rank != root) {
    traffic.send(root, mine);
    return traffic.run();
  }
  for (int i = 1; i < comm->size; ++i) {
    const int peer = (root + i) % comm->size;
    traffic.receive(peer, blocks(peer));
  }
  if (!in_place) traffic.check(copy_own(mine, blocks(root)));
  return traffic.run();
}

template <typename Blocks>
int scatter(Call call, Comm* comm, Shadow* shadow, const Blocks& blocks, const Block& mine,
            bool in_place, int root) {
  Traffic traffic(call, comm, shadow);
  if (comm->rank != root) {
    traffic.receive(root, mine);
    return traffic.run();
  }
  for (int i = 1; i < comm->size; ++i) {
    const int peer = (root + i) % comm->size;
    traffic.send(peer, blocks(peer));
  }
  if (!in_place) traffic.check(copy_own(blocks(root), mine));
  return traffic.run();
}

template <typename From, typename To>
int all_to_all(Call call, Comm* comm, Shadow* shadow, const From& from, const To& to,
               bool in_place) {
  Traffic traffic(call, comm, shadow);
  const int n = comm->size, me = comm->rank;
  for (int i = 1; i < n; ++i) {
    const int next = (me + i) % n, previous = (me + n - i) % n;
    traffic.send(next, in_place ? to(next) : from(next), in_place);
    traffic.receive(previous, to(previous));
  }
  if (!in_place) traffic.check(copy_own(from(me), to(me)));
  return traffic.run();
}

// ---- Allgatherv ----

template <typename N, typename D>
int own_allgatherv(Comm* comm, Shadow* shadow, const Block& mine, const Varying<N, D>& blocks,
                   bool in_place, const Type& type, const Room& room) {
  Operation op(kAllgatherv, comm, shadow, type);
  const auto element = static_cast<size_t>(type.size);
  const size_t n = shadow->members.size();
  std::vector<size_t> begin(n + 1, 0);  // of blocks in node order
  size_t my_place = 0;
  for (size_t i = 0; i < n; ++i) {
    const int rank = shadow->members[i];
    begin[i + 1] = begin[i] + static_cast<size_t>(blocks.counts[rank]) * element;
    if (rank == comm->rank) my_place = i;
  }
  Byte* all = room.data();
  const size_t my_size = begin[my_place + 1] - begin[my_place];
  const Block own = in_place ? blocks(comm->rank) : mine;
  if (my_size) {
    op.check(collect(own.buffer, own.count, own.type, all + begin[my_place], my_size));
  }

  const auto first = [&](int node) {
    return static_cast<size_t>(shadow->first[static_cast<size_t>(node)]);
  };
  const size_t node_begin = begin[first(shadow->my_node)];
  if (shadow->node_size > 1) {
    std::vector<int> sizes, at;
    for (size_t i = first(shadow->my_node); i < first(shadow->my_node + 1); ++i) {
      sizes.push_back(static_cast<int>(begin[i + 1] - begin[i]));
      at.push_back(static_cast<int>(begin[i] - node_begin));
    }
    op.timed([&] {
      const void* from = op.leads() ? MPI_IN_PLACE : all + begin[my_place];
      return PMPI_Gatherv(from, static_cast<int>(my_size), MPI_BYTE, all + node_begin, sizes.data(),
                          at.data(), MPI_BYTE, 0, shadow->node);
    });
  }
  if (op.leads()) {
    std::vector<Segment> segments;
    for (int i = 0; i < shadow->n_nodes; ++i) {
      segments.push_back({begin[first(i)], begin[first(i + 1)] - begin[first(i)]});
    }
    const Segment& node = segments[static_cast<size_t>(shadow->my_node)];
    if (node.size) op.look(all + node.offset, node.size);
    Exchange(op, all, segments).all_gather();
  }
  node_bcast(op, all, begin[n], 0);
  for (size_t i = 0; i < n && !op.error(); ++i) {
    const size_t size = begin[i + 1] - begin[i];
    // Coding may have changed my own block: all ranks are to have what the others got.
    const bool mine_is_there = i == my_place && in_place && job().bound.kind == Bound::kNone;
    if (size == 0 || mine_is_there) continue;
    const Block block = blocks(shadow->members[i]);
    op.check(deliver(all + begin[i], size, block.buffer, block.count, block.type));
  }
  return op.end();
}

// ---- who runs it ----

// For calls of which no member knows all sizes: messages cost the same either way. The first calls
// on a communicator are MPI's, as in run_collective().
Shadow* always_ours(Comm* comm, Bypass* why) {
  *why = kUnsupported;
  if (comm->inter || comm->collectives == 0 || !comm->any_remote) return nullptr;
  if (job().contest && comm->collectives < 0 && comm->early++ < kEarly) {
    *why = kLearning;
    return nullptr;
  }
  return find_shadow(comm);
}

bool is_rank(const Comm* comm, int root) { return root >= 0 && root < comm->size; }

template <typename N>
int gather_equal(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf,
                 N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kGather, handle, why, [&](Across& across) {
      across.gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return gather_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                                handle);
  };
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const Block theirs{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const bool receives = comm->rank == root;
  MPI_Count size, other;
  if (!block_size(receives ? theirs : mine, &size) || size == 0 ||
      (receives && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kGather, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(recvbuf, recvcount, receives ? recvtype : MPI_DATATYPE_NULL);
    return gather(kGather, comm, shadow, mine, blocks, in_place, root);
  });
}

template <typename N>
int scatter_equal(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf,
                  N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kScatter, handle, why, [&](Across& across) {
      across.scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return scatter_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                                 handle);
  };
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = recvbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const Block theirs{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const bool sends = comm->rank == root;
  MPI_Count size, other;
  if (!block_size(sends ? theirs : mine, &size) || size == 0 ||
      (sends && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kScatter, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(sendbuf, sendcount, sends ? sendtype : MPI_DATATYPE_NULL);
    return scatter(kScatter, comm, shadow, blocks, mine, in_place, root);
  });
}

template <typename N>
int alltoall(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, N recvcount,
             MPI_Datatype recvtype, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoall, handle, why, [&](Across& across) {
      across.alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle);
    });
    return alltoall_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                  handle);
  };
  Comm* comm = collective_comm(handle);
  const bool in_place = sendbuf == MPI_IN_PLACE;
  MPI_Count size, own;
  if (!comm || comm->inter || !block_size({nullptr, recvcount, recvtype}, &size) || size == 0 ||
      (!in_place && !block_size({nullptr, sendcount, sendtype}, &own))) {
    return plain();
  }
  return run_collective(kAlltoall, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal from(sendbuf, sendcount, in_place ? MPI_DATATYPE_NULL : sendtype);
    const Equal to(recvbuf, recvcount, recvtype);
    return all_to_all(kAlltoall, comm, shadow, from, to, in_place);
  });
}

template <typename N, typename D>
int gatherv(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, const N* counts,
            const D* at, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kGatherv, handle, why, [&](Across& across) {
      across.gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, handle);
    });
    return gatherv_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root,
                                 handle);
  };
  Comm* comm = collective_comm(handle);
  Bypass why = kUnsupported;
  Shadow* shadow = comm && is_rank(comm, root) ? always_ours(comm, &why) : nullptr;
  if (!shadow) return plain(why);
  const bool receives = comm->rank == root, in_place = receives && sendbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const Varying<N, D> blocks(recvbuf, counts, at, receives ? recvtype : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (receives && (!counts || !at || !sound(blocks, comm->size)))) {
    return plain();
  }
  return gather(kGatherv, comm, shadow, mine, blocks, in_place, root);
}

template <typename N, typename D>
int scatterv(const void* sendbuf, const N* counts, const D* at, MPI_Datatype sendtype,
             void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kScatterv, handle, why, [&](Across& across) {
      across.scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return scatterv_form<N>::call(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root,
                                  handle);
  };
  Comm* comm = collective_comm(handle);
  Bypass why = kUnsupported;
  Shadow* shadow = comm && is_rank(comm, root) ? always_ours(comm, &why) : nullptr;
  if (!shadow) return plain(why);
  const bool sends = comm->rank == root, in_place = sends && recvbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const Varying<N, D> blocks(sendbuf, counts, at, sends ? sendtype : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (sends && (!counts || !at || !sound(blocks, comm->size)))) {
    return plain();
  }
  return scatter(kScatterv, comm, shadow, blocks, mine, in_place, root);
}

template <typename N, typename D>
int allgatherv(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf,
               const N* counts, const D* at, MPI_Datatype recvtype, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAllgatherv, handle, why, [&](Across& across) {
      across.allgatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, handle);
    });
    return allgatherv_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype,
                                    handle);
  };
  Comm* comm = collective_comm(handle);
  Type type;
  if (!comm || comm->inter || !counts || !at || !look_up(recvtype, &type)) return plain();
  MPI_Count total = 0, size;
  for (int i = 0; i < comm->size; ++i) {
    if (!block_size({nullptr, counts[i], recvtype}, &size) ||
        __builtin_add_overflow(total, size, &total)) {
      return plain();
    }
  }
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (total == 0 || total > static_cast<MPI_Count>(kPiece) ||
      (!in_place && !block_size({nullptr, sendcount, sendtype}, &size))) {
    return plain();
  }
  return run_collective(kAllgatherv, comm, static_cast<size_t>(total), plain, [&](Shadow* shadow) {
    const Block mine{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
    const Varying<N, D> blocks(recvbuf, counts, at, recvtype);
    Room room;
    const auto size_of_all = static_cast<size_t>(total);
    if (!room.get(shadow, size_of_all, size_of_all)) return plain();
    return own_allgatherv(comm, shadow, mine, blocks, in_place, type, room);
  });
}

template <typename Plain, typename From, typename To>
int varying_all_to_all(Call call, MPI_Comm handle, Plain plain, const From& from, const To& to,
                       bool in_place) {
  Comm* comm = collective_comm(handle);
  Bypass why = kUnsupported;
  Shadow* shadow = comm ? always_ours(comm, &why) : nullptr;
  if (!shadow || !to.counts || !to.at || !sound(to, comm->size)) return plain(why);
  if (!in_place && (!from.counts || !from.at || !sound(from, comm->size))) return plain();
  return all_to_all(call, comm, shadow, from, to, in_place);
}

template <typename N, typename D>
int alltoallv(const void* sendbuf, const N* sendcounts, const D* sendat, MPI_Datatype sendtype,
              void* recvbuf, const N* recvcounts, const D* recvat, MPI_Datatype recvtype,
              MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoallv, handle, why, [&](Across& across) {
      across.alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat, recvtype,
                       handle);
    });
    return alltoallv_form<N>::call(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts,
                                   recvat, recvtype, handle);
  };
  if (inert() || recvtype == MPI_DATATYPE_NULL) return plain();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const Varying<N, D> from(sendbuf, sendcounts, sendat, in_place ? MPI_DATATYPE_NULL : sendtype);
  const Varying<N, D> to(recvbuf, recvcounts, recvat, recvtype);
  return varying_all_to_all(kAlltoallv, handle, plain, from, to, in_place);
}

template <typename N, typename D>
int alltoallw(const void* sendbuf, const N* sendcounts, const D* sendat,
              const MPI_Datatype* sendtypes, void* recvbuf, const N* recvcounts, const D* recvat,
              const MPI_Datatype* recvtypes, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoallw, handle, why, [&](Across& across) {
      across.alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,
                       recvtypes, handle);
    });
    return alltoallw_form<N>::call(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts,
                                   recvat, recvtypes, handle);
  };
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (inert() || !recvtypes || (!in_place && !sendtypes)) return plain();
  const Typed<N, D> from{sendbuf, sendcounts, sendat, sendtypes};
  const Typed<N, D> to{recvbuf, recvcounts, recvat, recvtypes};
  return varying_all_to_all(kAlltoallw, handle, plain, from, to, in_place);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_WRAP(MPI_Gather##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,            \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {           \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(                                                                                     \
        kGather, comm,                                                                             \
        gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),            \
        gather_equal<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm));  \
  }                                                                                                \
  WPR_WRAP(MPI_Scatter##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,           \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {           \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(                                                                                     \
        kScatter, comm,                                                                            \
        scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),           \
        scatter_equal<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)); \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoall##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,          \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, MPI_Comm comm) {                     \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoall, comm,                                                                     \
              alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),          \
              alltoall<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));      \
  }                                                                                                \
  WPR_WRAP(MPI_Gatherv##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,           \
           void* recvbuf, const N counts[], const Displacement<N> at[], MPI_Datatype recvtype,     \
           int root, MPI_Comm comm) {                                                              \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kGatherv, comm,                                                                      \
              gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, comm),    \
              gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, comm));   \
  }                                                                                                \
  WPR_WRAP(MPI_Scatterv##suffix, const void* sendbuf, const N counts[],                            \
           const Displacement<N> at[], MPI_Datatype sendtype, void* recvbuf, N recvcount,          \
           MPI_Datatype recvtype, int root, MPI_Comm comm) {                                       \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kScatterv, comm,                                                                     \
              scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, comm),   \
              scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, comm));  \
  }                                                                                                \
  WPR_WRAP(MPI_Allgatherv##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,        \
           void* recvbuf, const N counts[], const Displacement<N> at[], MPI_Datatype recvtype,     \
           MPI_Comm comm) {                                                                        \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAllgatherv, comm,                                                                   \
              allgatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, comm),       \
              allgatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, comm));      \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoallv##suffix, const void* sendbuf, const N sendcounts[],                       \
           const Displacement<N> sendat[], MPI_Datatype sendtype, void* recvbuf,                   \
           const N recvcounts[], const Displacement<N> recvat[], MPI_Datatype recvtype,            \
           MPI_Comm comm) {                                                                        \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoallv, comm,                                                                    \
              alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat,        \
                        recvtype, comm),                                                           \
              alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat,        \
                        recvtype, comm));                                                          \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoallw##suffix, const void* sendbuf, const N sendcounts[],                       \
           const Displacement<N> sendat[], const MPI_Datatype sendtypes[], void* recvbuf,          \
           const N recvcounts[], const Displacement<N> recvat[], const MPI_Datatype recvtypes[],   \
           MPI_Comm comm) {                                                                        \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoallw, comm,                                                                    \
              alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,       \
                        recvtypes, comm),                                                          \
              alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,       \
                        recvtypes, comm));                                                         \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
