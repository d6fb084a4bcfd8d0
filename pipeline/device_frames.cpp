// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_frames.hpp"

#include <algorithm>
#include <cstring>

namespace wirepress {
namespace {

constexpr auto up = Layout::up;

// Scratch memory of blocks that a device has at once.
constexpr size_t kMostScratch = 256 << 20;

Args args_of(const Recipe& recipe, const Place& place) {
  Args args = recipe.step[0].args;
  args.device = place.device;
  return args;
}

}  // namespace

// ---- both directions ----

// Rounds take turns with the scratch memory.
void DeviceFrame::begin_block() {
  turn_ = noted_ % at_once_;
  if (turn_ == 0 && noted_ > 0) plan_.begin_round();
  ++noted_;
  plan_.begin_block();
}

void DeviceFrame::lay_out_scratch(size_t each, size_t n_blocks) {
  each_ = up(each);
  at_once_ = each == 0 ? n_blocks : std::clamp<size_t>(kMostScratch / each_, 1, n_blocks);
}

// A cast is a codec's kernel for all values as one block.
Args DeviceFrame::cast_args() const {
  Args args = halves_.args();
  args.device = on_.place.device;
  return args;
}

StreamTask DeviceFrame::cast(std::byte* halves, std::byte* there) const {
  return {.raw = wide(there),
          .raw_size = header_.raw_size,
          .code = halves,
          .code_size = halves_.size_of(header_.raw_size),
          .report = reinterpret_cast<Report*>(there + cast_report_)};
}

Status DeviceFrame::note_widen(const std::byte* halves, std::byte* there) {
  return on_.casts->decode(on_.place.device, on_.stream, cast_args(),
                           cast(const_cast<std::byte*>(halves), there), &plan_);
}

Status DeviceFrame::note_narrow(std::byte* halves, std::byte* there) {
  return on_.casts->encode(on_.place.device, on_.stream, cast_args(), cast(halves, there), &plan_);
}

// ---- frames that a device makes ----

DeviceEncoding::DeviceEncoding(const OnDevice& on, const Recipe& recipe, const Header& header,
                               ConstBytes head, uint64_t seed, const Data& data, StreamPlan& plan)
    : DeviceFrame(on, header, data.halves, plan),
      recipe_(recipe),
      head_(head),
      seed_(seed),
      data_(data),
      n_(header.n_blocks()),
      feedback_(!data.residual.empty()),
      in_parts_(feedback_ && on.kernel->encode_feedback == nullptr) {}

Args DeviceEncoding::args(uint64_t i) const {
  Args args = args_of(recipe_, on_.place);
  const size_t size = header_.dtype == DType::kBytes ? 4 : dtype_size(header_.dtype);
  args.seed = seed_;
  args.first = i * header_.block_size() / size;  // as BlockMaker::draw
  return args;
}

size_t DeviceEncoding::bound(uint64_t i) const {
  const Recipe::Step& step = recipe_.step[0];
  return step.entry->codec->bound(step.args, header_.block_raw_size(i));
}

size_t DeviceEncoding::room(uint64_t i) const {
  return feedback_ ? bound(i) : code_limit(header_.block_raw_size(i));
}

Status DeviceEncoding::check(uint64_t i) const {
  return on_.kernel->check_encode(args(i), header_.block_raw_size(i), room(i));
}

// A code that is larger than what is stored has taken its part from the residual, so that its
// values are what must go.
bool DeviceEncoding::may_be_unstored(uint64_t i) const {
  return feedback_ && bound(i) > code_limit(header_.block_raw_size(i));
}

size_t DeviceEncoding::scratch_size(uint64_t i) const {
  const size_t size = header_.block_raw_size(i);
  const size_t encodes = on_.kernel->scratch(args(i), size, false);
  return in_parts_ || may_be_unstored(i)
             ? std::max(encodes, on_.kernel->scratch(args(i), size, true))
             : encodes;
}

// A code that may not fit is a block's own matter, but for one with feedback.
Status DeviceEncoding::check(bool* can) const {
  *can = true;
  for (uint64_t i = 0; i < n_; ++i) {
    const Status status = check(i);
    *can &= status.ok() || (!feedback_ && status.code() == Code::kDstTooSmall);
  }
  return {};
}

void DeviceEncoding::lay_out_inputs(Layout* there) {
  bool has_values = in_parts_;
  for (uint64_t i = 0; i < n_; ++i) has_values |= may_be_unstored(i);
  // All blocks but the last one are alike.
  lay_out_scratch(std::max(scratch_size(0), scratch_size(n_ - 1)), n_);
  slot_ = up(std::max(room(0), room(n_ - 1)));
  values_ = has_values;  // until there is a place
  reports_ = there->add(n_ * sizeof(Report));
  header_at_ = there->add(kMaxHeader);
  if (in_parts_) all_well_ = there->add(sizeof(uint64_t));
  lay_out_casts(there);
}

void DeviceEncoding::lay_out_rest(Layout* there, Layout* pinned) {
  place_scratch(there);
  sealed_ = there->add(n_ * sizeof(SealedBlock));
  codes_ = there->add(n_ * slot_);
  if (values_ != 0) values_ = there->add(header_.raw_size);
  if (in_parts_) sum_ = there->add(header_.raw_size);
  lay_out_wide(there);
  frame_ = pinned->add(data_.staged ? data_.bound : 0);
}

void DeviceEncoding::fill(std::byte* pinned) const {
  std::memcpy(pinned + header_at_, head_.data(), header_.size);
  for (uint64_t i = 0; i < n_; ++i) {
    Report& report = reports(pinned)[i];
    report = kNoReport;
    report.full = !check(i).ok();
  }
  if (in_parts_) *reinterpret_cast<uint64_t*>(pinned + all_well_) = 1;
  fill_casts(pinned);
}

Status DeviceEncoding::note_first(std::byte* there) {
  if (halves_) WPR_TRY(note_widen(data_.raw.data(), there));
  if (!in_parts_) return {};
  return on_.streams().add(on_.place.device, on_.stream,
                           {.to = there + sum_,
                            .base = raw(there),
                            .from = data_.residual.data(),
                            .size = header_.raw_size},
                           &plan_);
}

// Blocks whose code cannot fit are left out.
Status DeviceEncoding::note_blocks(std::byte* there) {
  begin_blocks();
  for (uint64_t i = 0; i < n_; ++i)
    if (check(i).ok()) WPR_TRY(note_block(i, there));
  return {};
}

Status DeviceEncoding::note_last(std::byte* there) {
  if (data_.probed)
    return on_.streams().probe(on_.place.device, on_.stream,
                               {.raw = data_.raw.data(),
                                .raw_size = data_.raw.size(),
                                .block_size = header_.block_size(),
                                .n_blocks = n_,
                                .reports = reports(there)},
                               &plan_);
  if (!in_parts_) return {};
  return on_.streams().keep(
      on_.place.device, on_.stream,
      {.sum = there + sum_,
       .values = there + values_,
       .residual = data_.residual.data(),
       .size = header_.raw_size,
       .reports = {.first = reports(there),
                   .n = n_,
                   .all_well = reinterpret_cast<uint64_t*>(there + all_well_)},
       .limit = code_limit(header_.block_raw_size(0)),
       .last_limit = code_limit(header_.block_raw_size(n_ - 1))},
      &plan_);
}

Status DeviceEncoding::note_block(uint64_t i, std::byte* there) {
  begin_block();
  const size_t at = i * header_.block_size(), size = header_.block_raw_size(i);
  StreamTask task = {.raw = raw(there) + at,
                     .raw_size = size,
                     .code = there + codes_ + i * slot_,
                     .code_size = room(i),
                     .scratch = scratch(there),
                     .scratch_size = scratch_size(i),
                     .report = reports(there) + i};
  const int device = on_.place.device;
  if (in_parts_) {
    task.raw = there + sum_ + at;
    WPR_TRY(on_.kernel->encode(device, on_.stream, args(i), task, &plan_));
    task.raw = there + values_ + at;
    return on_.kernel->decode_made(device, on_.stream, args(i), task, &plan_);
  }
  if (!feedback_) return on_.kernel->encode(device, on_.stream, args(i), task, &plan_);
  task.residual = data_.residual.data() + at;
  task.values = may_be_unstored(i) ? there + values_ + at : nullptr;
  task.limit = code_limit(size);
  return on_.kernel->encode_feedback(device, on_.stream, args(i), task, &plan_);
}

Status DeviceEncoding::note_frame(std::byte* there, std::byte* pinned) {
  const Sealing sealing = {.raw = values_ != 0 ? there + values_ : raw(there),
                           .raw_size = header_.raw_size,
                           .block_size = header_.block_size(),
                           .n_blocks = n_,
                           .codes = there + codes_,
                           .slot = slot_,
                           .reports = reports(there),
                           .header = there + header_at_,
                           .header_size = header_.size,
                           .checksum = header_.checksum,
                           .dst = data_.staged ? pinned + frame_ : data_.dst.data(),
                           .cap = std::min(data_.dst.size(), data_.bound),
                           .blocks = reinterpret_cast<SealedBlock*>(there + sealed_),
                           .result = reinterpret_cast<Sealed*>(there + results_)};
  return on_.streams().seal(on_.place.device, on_.stream, sealing, &plan_);
}

// ---- frames that a device expands ----

DeviceExpanding::DeviceExpanding(const OnDevice& on, const ParsedFrame& frame, Bytes dst,
                                 const Halves& halves, bool adds, StreamPlan& plan)
    : DeviceFrame(on, frame.header, halves, plan),
      blocks_(frame.blocks),
      dst_(dst),
      adds_(adds && on.kernel->decode_add != nullptr),
      sums_(adds && !adds_),
      args_(args_of(frame.chain->recipe(), on.place)) {}

size_t DeviceExpanding::scratch_size(size_t raw_size) const {
  return on_.kernel->scratch(args_, raw_size, true);
}

void DeviceExpanding::lay_out_results(Layout* there) {
  results_ = there->add(blocks_.size() * sizeof(Report));
}

Status DeviceExpanding::check(bool* can) const {
  *can = true;
  for (const Block& block : blocks_) {
    if (block.raw) continue;
    const Status status = on_.kernel->check_decode(args_, block.payload.size(), block.raw_size);
    if (status.code() == Code::kUnsupported)
      *can = false;
    else if (!status.ok())
      return in_block(block.index, status);
  }
  return {};
}

void DeviceExpanding::lay_out_inputs(Layout* there) {
  if (sums_ || halves_) all_well_ = there->add(sizeof(uint64_t));
  lay_out_casts(there);
  payloads_ = there->size();
  for (const Block& block : blocks_)
    if (is_noted(block)) there->add(block.payload.size());
  lay_out_scratch(
      std::max(scratch_size(blocks_.front().raw_size), scratch_size(blocks_.back().raw_size)),
      blocks_.size());
}

void DeviceExpanding::lay_out_rest(Layout* there, Layout* pinned) {
  place_scratch(there);
  if (sums_) values_ = there->add(header_.raw_size);
  lay_out_wide(there);
  if (halves_) narrow_ = there->add(dst_.size());
  stored_ = pinned->size();
  for (const Block& block : blocks_)
    if (!is_noted(block)) pinned->add(block.payload.size());
  reserve_longest(there, pinned);
}

// Room for the longest codes, so that a frame of other data finds memory that is as large.
void DeviceExpanding::reserve_longest(Layout* there, Layout* pinned) const {
  const auto n = blocks_.size(), noted = static_cast<size_t>(std::ranges::count_if(
                                     blocks_, [&](const Block&b) { return is_noted(b); }));
  const size_t more_tables = noted > 0 ? plan_.table_size() * (n - noted) / noted : 0;
  there->add(more_tables);
  pinned->add(more_tables);
  for (const Block& block : blocks_) {
    const size_t most = up(block.raw_size), has = up(block.payload.size());
    there->add(is_noted(block) ? most - std::min(most, has) : most);
    pinned->add(most - std::min(most, has));
  }
}

void DeviceExpanding::fill(std::byte* pinned) const {
  std::fill_n(reinterpret_cast<Report*>(pinned + results_), blocks_.size(), kNoReport);
  if (sums_ || halves_) *reinterpret_cast<uint64_t*>(pinned + all_well_) = 1;
  fill_casts(pinned);
  size_t noted_at = payloads_, stored_at = stored_;
  for (const Block& block : blocks_) {
    size_t& at = is_noted(block) ? noted_at : stored_at;
    std::memcpy(pinned + at, block.payload.data(), block.payload.size());
    at += up(block.payload.size());
  }
}

Status DeviceExpanding::note_first(std::byte* there) {
  return halves_ ? note_widen(dst_.data(), there) : Status();
}

Status DeviceExpanding::note_blocks(std::byte* there) {
  begin_blocks();
  std::byte* payload = there + payloads_;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!is_noted(blocks_[i])) continue;
    WPR_TRY(note_block(i, payload, there));
    payload += up(blocks_[i].payload.size());
  }
  return {};
}

Status DeviceExpanding::note_last(std::byte* there) {
  const Reports reports = {.first = reinterpret_cast<Report*>(there + results_),
                           .n = blocks_.size(),
                           .all_well = reinterpret_cast<uint64_t*>(there + all_well_)};
  const Adding adding = {.to = total(there),
                         .base = total(there),
                         .from = there + values_,
                         .size = header_.raw_size,
                         .reports = reports};
  if (sums_) WPR_TRY(on_.streams().add(on_.place.device, on_.stream, adding, &plan_));
  if (!halves_) return {};
  WPR_TRY(note_narrow(there + narrow_, there));
  return on_.streams().put(
      on_.place.device, on_.stream,
      {.to = dst_.data(), .from = there + narrow_, .size = dst_.size(), .reports = reports},
      &plan_);
}

Status DeviceExpanding::note_block(size_t i, std::byte* payload, std::byte* there) {
  begin_block();
  const Block& block = blocks_[i];
  const int device = on_.place.device;
  if (block.raw)
    return on_.streams().add(
        device, on_.stream,
        {.to = out(i, there), .base = out(i, there), .from = payload, .size = block.raw_size},
        &plan_);
  const StreamTask task = {.raw = out(i, there),
                           .raw_size = block.raw_size,
                           .code = payload,
                           .code_size = block.payload.size(),
                           .scratch = scratch(there),
                           .scratch_size = scratch_size(block.raw_size),
                           .report = reinterpret_cast<Report*>(there + results_) + i};
  return (adds_ ? on_.kernel->decode_add : on_.kernel->decode)(device, on_.stream, args_, task,
                                                               &plan_);
}

// Runs of blocks, where they lie side by side here, too.
Status DeviceExpanding::copy_before(std::byte* there, const std::byte* pinned) const {
  size_t at = stored_;
  for (size_t i = 0; i < blocks_.size();) {
    const size_t first = i, from = at;
    size_t size = 0;
    for (; i < blocks_.size() && !is_noted(blocks_[i]) && at == from + size; ++i) {
      size += blocks_[i].raw_size;
      at += up(blocks_[i].raw_size);
    }
    if (size > 0) WPR_TRY(copy(out(first, there), pinned + from, size));
    if (i == first) ++i;
  }
  return {};
}

}  // namespace wirepress
