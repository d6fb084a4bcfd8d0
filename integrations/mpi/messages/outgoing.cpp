// SPDX-License-Identifier: Apache-2.0
// What is to become of a message that the user sends.
#include "messages/outgoing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "choosing/links.hpp"
#include "choosing/sites.hpp"
#include "job/job.hpp"
#include "messages/devices.hpp"
#include "messages/frames.hpp"
#include "messages/pieces.hpp"
#include "messages/requests.hpp"
#include "messages/thread.hpp"

namespace wirepress {
namespace {

// Whether a message of this size to a node goes raw without a look. A link that is known to be slow
// leaves time for smaller ones: to look at a message costs about a microsecond, to make a frame 4.
bool is_small(size_t size, int node) {
  constexpr size_t kLeast = 4 << 10;
  constexpr double kLeastSeconds = 100e-6;  // that the message holds the link
  if (!job().by_link) return size < std::max(job().threshold, kMinWire);
  if (size >= job().threshold) return false;
  const double rate = size < kLeast ? 0 : link_rate(node);
  return rate == 0 || static_cast<double>(size) < kLeastSeconds * rate;
}

// The user's data as contiguous bytes of the cores, in the thread's `packed`. An error class: there
// is no memory for them, or the device does not give them.
int flatten(const void* buffer, MPI_Count count, MPI_Datatype datatype, size_t size) {
  Buffer& packed = self_thread().packed;
  if (packed.reserve(size)) return collect(buffer, count, datatype, packed.data(), size);
  ++self_thread().events.no_memory;
  return MPI_ERR_NO_MEM;
}

// What cannot be sent: MPI does not reach it, and there is no copy.
void refuse(Call call, int error, Outgoing* out) {
  PMPI_Error_class(error, &out->error);
  if (out->error != MPI_ERR_NO_MEM) return;  // the device's own sentence was said
  std::array<char, 160> why;
  std::snprintf(why.data(), why.size(),
                "%s: no memory for a copy of a message of %zu bytes, which MPI does not reach "
                "where it lies",
                kCallNames[call], out->raw_size);
  complain(why.data());
}

void count_raw(CallStats* counts, MPI_Count count, MPI_Datatype datatype) {
  Type type;
  MPI_Count size;
  if (!look_up(datatype, &type) || __builtin_mul_overflow(count, type.size, &size)) return;
  counts->raw_size += static_cast<uint64_t>(size);
  counts->wire_size += static_cast<uint64_t>(size);
}

// An exchange mostly has a peer that sends as much.
Overlap overlap_of(Call call, const Outgoing& out) {
  if (!out.in_pieces) return Overlap::kNone;
  const bool both = call == kSendrecv || call == kSendrecvReplace;
  return both ? Overlap::kOneCore : Overlap::kStages;
}

// Frame of `data` into `bytes`; what keeps it from being sent, or kBypassCount.
Bypass compress(Call call, Outgoing* out, Buffer* bytes, size_t* wire_size) {
  const Byte* data = out->data;
  const size_t size = out->raw_size;
  const Type& type = out->type;
  Site* site = find_site(call, type.dtype, size, out->node, out->there);
  const int candidate = choose(site, data, size, type, overlap_of(call, *out)).candidate;
  out->candidate = candidate;
  if (candidate < 0) return bypass_of(candidate);
  if (!out->in_pieces && !bytes->reserve(size)) {
    ++self_thread().events.no_memory;
    return kUnsupported;
  }
  const Made made = out->in_pieces
                        ? make_first_piece(call, candidate, data, size, type, bytes)
                        : make_frame(call, candidate, data, size, type, bytes->data(), size);
  // The first piece speaks for the whole message.
  const double pieces =
      static_cast<double>(size) / static_cast<double>(std::max<size_t>(made.raw_size, 1));
  const auto whole = static_cast<size_t>(static_cast<double>(made.size) * pieces);
  learn_outcome(site, candidate, size, whole, made.seconds * pieces);
  *wire_size = made.size;
  return made.size > 0 ? kBypassCount : kNotSmaller;
}

}  // namespace

Outgoing prepare(Call call, Comm* comm, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                 int dest, Buffer* bytes, bool blocking) {
  Outgoing out;
  Type& type = out.type;
  if (count < 0 || dest == MPI_PROC_NULL || datatype == MPI_DATATYPE_NULL) return out;
  CallStats& counts = stats(call);
  if (!comm->takes_frames(dest)) {
    const int node = dest >= 0 && dest < comm->size ? comm->node[static_cast<size_t>(dest)] : -1;
    const bool leaves = node >= 0 && node != own_node();
    ++counts.messages;
    ++counts.bypass[leaves ? kUnsupported : node >= 0 ? kSameHost : kNoPeer];
    if (leaves) count_raw(&counts, count, datatype);  // by a communicator of a session
    return out;
  }
  MPI_Count raw_size;
  if (!look_up(datatype, &type) || __builtin_mul_overflow(count, type.size, &raw_size)) return out;
  out.remote = true;
  out.node = comm->node[static_cast<size_t>(dest)];
  out.raw_size = out.size = static_cast<size_t>(raw_size);
  ++counts.messages;
  counts.raw_size += out.raw_size;
  const auto raw = [&](Bypass why) {
    ++counts.bypass[why];
    counts.wire_size += out.raw_size;
    return out;
  };
  const bool small = is_small(out.raw_size, out.node), there = on_device(buffer);
  const bool reached = !there || mpi_reaches(buffer);
  if (small && reached) return raw(kSmall);
  if (type.contiguous && !buffer) return raw(kUnsupported);
  const auto flat = [&] { return flatten(buffer, count, datatype, out.raw_size); };
  const auto refused = [&](int error) {
    refuse(call, error, &out);
    return out;
  };
  out.data = static_cast<const Byte*>(buffer);
  if (!type.contiguous) {
    const int error = flat();
    if (error != MPI_SUCCESS) return reached ? raw(kNoncontiguous) : refused(error);
    out.data = self_thread().packed.data();
  }
  // What MPI does not reach goes from a copy. What is packed already MPI need not pack again.
  const auto packed = [&](Bypass why) {
    out.in_pieces = false;
    out.replaced = !type.contiguous || !reached;
    if (const int error = type.contiguous && !reached ? flat() : MPI_SUCCESS) return refused(error);
    if (out.replaced) std::swap(*bytes, self_thread().packed);
    return raw(why);
  };
  if (small) return packed(kSmall);
  out.there = there && type.contiguous;
  out.in_pieces = blocking && may_go_in_pieces(comm, dest, out.raw_size);
  out.world_rank = comm->world[static_cast<size_t>(dest)];
  size_t wire_size = 0;
  const Bypass why = compress(call, &out, bytes, &wire_size);
  if (why != kBypassCount) return packed(why);
  out.framed = out.replaced = true;
  out.size = wire_size;
  ++counts.framed;
  counts.wire_size += wire_size;
  if (there && !out.there) counts.cores_size += out.raw_size;
  return out;
}

void keep_bytes(MPI_Request request, Buffer bytes) {
  auto* record = new Record;
  record->request = request;
  record->frame = std::move(bytes);
  put(record);
}

}  // namespace wirepress
