// SPDX-License-Identifier: Apache-2.0
#include "pipeline/context.hpp"

#include <algorithm>
#include <cstring>

namespace wirepress {

Status Context::wait(const Place& place) const {
  if (!place.on_device() || reinterpret_cast<uintptr_t>(stream) == kNoStream) return {};
  return place.memory->wait(place.device, stream);
}

Status Context::wait(const Place& a, const Place& b) const {
  WPR_TRY(wait(a));
  return a == b ? Status() : wait(b);
}

Status Context::fetch(ConstBytes* frame) {
  const Place place = place_of(frame->data());
  if (!place.on_device()) return {};
  Bytes here;
  WPR_TRY(reserve(frame_, frame->size(), &here));
  WPR_TRY(wait(place));
  WPR_TRY(place.download(here, frame->data()));
  *frame = here;
  return {};
}

template <class Make>
Status Context::make_frame(Bytes dst, size_t most, size_t* written, Make make) {
  const Place place = place_of(dst.data());
  if (!place.on_device()) return make(dst);
  Bytes here;
  WPR_TRY(reserve(frame_, std::min(dst.size(), most), &here));
  WPR_TRY(wait(place));
  WPR_TRY(make(here));
  return place.upload(dst.data(), here.first(*written));
}

Status Context::check_beside(ConstBytes src, Bytes residual) {
  if (src.empty() || place_of(src.data()) == place_of(residual.data())) return {};
  return fail(Code::kParameter,
              "data and residual must lie in one memory, of the cores or of one device");
}

Status Context::run(const JobCall& call, bool* done, size_t* written) {
  const Stopwatch watch(call.expands() ? &stats.decompress_seconds : &stats.compress_seconds);
  return jobs.run(call, done, written);
}

Status Context::perform(JobCall call, size_t* written) {
  const bool feedback = call.kind == JobCall::Kind::kFeedback;
  if (feedback) WPR_TRY(check_beside(call.src, call.residual));
  if (call.expands()) WPR_TRY(fetch(&call.src));
  const Place place = place_of(call.expands() ? call.dst.data() : call.src.data());
  WPR_TRY(wait(place));
  if (!place.on_device()) return by_blocks(call, place, written);
  if (feedback) WPR_TRY(writer.check_feedback(call.header, call.residual.size(), call.dst.size()));
  bool done = false;
  WPR_TRY(run(call, &done, written));
  return done ? Status() : by_blocks(call, place, written);
}

Status Context::by_blocks(const JobCall& call, const Place& place, size_t* written) {
  using Kind = JobCall::Kind;
  if (call.kind == Kind::kExpand) return reader.decompress(call.src, call.dst, written, place);
  if (call.kind == Kind::kAdd)
    return reader.decompress_add(call.src, call.dst, call.halves, written, place);
  return make_frame(call.dst, writer.bound(call.header.raw_size), written, [&](Bytes room) {
    return call.kind == Kind::kCompress
               ? writer.compress(call.src, call.header, room, written, place)
               : writer.compress_feedback(call.src, call.halves, call.residual, call.header, room,
                                          written, place);
  });
}

Status Context::decompress_range(ConstBytes frame, uint64_t offset, Bytes dst) {
  const Place place = place_of(dst.data());
  WPR_TRY(fetch(&frame));
  if (!place.on_device()) return reader.decompress_range(frame, offset, dst);
  Bytes here;
  WPR_TRY(reserve(part_, dst.size(), &here));
  WPR_TRY(reader.decompress_range(frame, offset, here));
  place.memory->note(0, dst.size(), "ranges are expanded on the cores");
  WPR_TRY(wait(place));
  return place.upload(dst.data(), here);
}

// The header is all that is read.
Status Context::inspect(ConstBytes frame, Header* header, std::string* recipe) {
  frame = frame.first(std::min(frame.size(), kMaxHeader));
  WPR_TRY(fetch(&frame));
  return FrameReader::inspect(frame, header, recipe);
}

Status Context::copy(Bytes to, ConstBytes from) {
  const Place there = place_of(to.data()), here = place_of(from.data());
  WPR_TRY(wait(here, there));
  if (here.on_device() && !there.on_device()) return here.download(to, from.data());
  WPR_TRY(fetch(&from));
  if (there.on_device()) return there.upload(to.data(), from);
  if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
  return {};
}

Status Context::add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats.compress_seconds);
  ParsedFrame terms[2];
  Header& header = terms[0].header;
  WPR_TRY(read_header(a, &header));
  WPR_TRY(read_header(b, &terms[1].header));
  if (header.size != terms[1].header.size || std::memcmp(a.data(), b.data(), header.size) != 0)
    return fail(Code::kParameter, "the two frames differ in recipe, type, shape or block size");
  if (header.streamed || !can_add_values(header.dtype))
    return fail(
        Code::kParameter,
        "only frames of float32 or of integers of at most 32 bits that are no streams can be "
        "added");
  // The frames may have more blocks than this context would make.
  const size_t heads = header.n_blocks() * head_size(header, false) + head_size(header, true);
  const size_t bound =
      std::max(writer.bound(header.raw_size), header.size + heads + header.raw_size);
  if (dst.size() < bound)
    return fail(Code::kDstTooSmall, "the sum needs a dst of %zu bytes, not %zu", bound, dst.size());
  const int threads = settings.blocks().threads;
  WPR_TRY(reader.find_chain(threads, &terms[0]));
  if (!terms[0].chain->can_add())
    return fail(Code::kUnsupported, "%s: codes of it cannot be added",
                terms[0].chain->recipe().step[0].entry->codec->name);
  for (const int t : {0, 1}) {
    WPR_TRY(reader.parse(t ? b : a, &terms[t]));
    WPR_TRY(reader.find_own_chains(threads, &terms[t]));
  }
  return writer.sum(terms[0], terms[1], dst, written);
}

}  // namespace wirepress
