// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_frames.hpp"

#include <algorithm>
#include <cstring>

namespace wirepress {
namespace {

constexpr auto up = Layout::up;

// Scratch memory of blocks that a device has at once.
constexpr size_t kMostScratch = 256 << 20;

// What addresses are counted from in a draft of a plan, where no memory is yet.
std::byte* nowhere() { return reinterpret_cast<std::byte*>(uintptr_t{1} << 32); }

Args args_of(const Recipe& recipe, const Place& place) {
  Args args = recipe.step[0].args;
  args.device = place.device;
  return args;
}

}  // namespace

// ---- both directions ----

void DeviceFrame::begin_plan(bool draft) {
  plan_.begin(draft);
  noted_ = 0;
}

void DeviceFrame::begin_block() {
  turn_ = noted_++ % at_once_;
  if (turn_ == 0) plan_.begin_round();
  plan_.begin_block();
}

void DeviceFrame::lay_out_scratch(size_t each, size_t n_blocks) {
  each_ = up(each);
  at_once_ = each == 0 ? n_blocks : std::clamp<size_t>(kMostScratch / each_, 1, n_blocks);
}

void DeviceFrame::place_scratch() { scratch_ = there_.add(at_once_ * each_); }

Status DeviceFrame::launch_plan(std::byte* there) {
  began_ = true;
  return plan_.launch(on_.place.device, on_.stream, there + tables_);
}

Status DeviceFrame::copy(std::byte* to, const std::byte* from, size_t size) const {
  return on_.streams().copy(on_.place.device, on_.stream, to, from, size);
}

// ---- frames that a device makes ----

DeviceEncoding::DeviceEncoding(const OnDevice& on, const Recipe& recipe, const Header& header,
                               ConstBytes head, const BlockSettings& settings, const Data& data,
                               StreamPlan& plan)
    : DeviceFrame(on, header, plan),
      recipe_(recipe),
      head_(head),
      seed_(settings.seed),
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

// What the kernel refuses takes no memory. A code that may not fit is a block's own matter, but for
// one with feedback.
bool DeviceEncoding::lay_out() {
  bool has_values = in_parts_;
  for (uint64_t i = 0; i < n_; ++i) {
    const Status status = check(i);
    if (!status.ok() && (feedback_ || status.code() != Code::kDstTooSmall)) return false;
    has_values |= may_be_unstored(i);
  }
  // All blocks but the last one are alike.
  lay_out_scratch(std::max(scratch_size(0), scratch_size(n_ - 1)), n_);
  slot_ = up(std::max(room(0), room(n_ - 1)));
  reports_ = there_.add(n_ * sizeof(Report));
  header_at_ = there_.add(kMaxHeader);
  result_ = there_.add(sizeof(Sealed));
  if (in_parts_) all_well_ = there_.add(sizeof(uint64_t));
  if (!note(true, nowhere()).ok()) return false;
  tables_ = there_.add(plan_.table_size());
  inputs_ = there_.size();
  place_scratch();
  sealed_ = there_.add(n_ * sizeof(SealedBlock));
  codes_ = there_.add(n_ * slot_);
  if (has_values) values_ = there_.add(data_.raw.size());
  if (in_parts_) sum_ = there_.add(data_.raw.size());
  pinned_.add(inputs_);
  results_ = pinned_.add(sizeof(Sealed));
  frame_ = pinned_.add(data_.staged ? data_.bound : 0);
  return true;
}

// Blocks whose code cannot fit are left out.
Status DeviceEncoding::note(bool draft, std::byte* there) {
  begin_plan(draft);
  if (in_parts_) WPR_TRY(note_sum(there));
  for (uint64_t i = 0; i < n_; ++i)
    if (check(i).ok()) WPR_TRY(note_block(i, there));
  return in_parts_ ? note_rest(there) : Status();
}

Status DeviceEncoding::note_sum(std::byte* there) {
  return on_.streams().add(on_.place.device, on_.stream,
                           {.to = there + sum_,
                            .base = data_.raw.data(),
                            .from = data_.residual.data(),
                            .size = data_.raw.size()},
                           &plan_);
}

Status DeviceEncoding::note_rest(std::byte* there) {
  plan_.begin_round();
  return on_.streams().keep(on_.place.device, on_.stream,
                            {.sum = there + sum_,
                             .values = there + values_,
                             .residual = data_.residual.data(),
                             .size = data_.raw.size(),
                             .reports = reports(there),
                             .n_reports = n_,
                             .all_well = reinterpret_cast<uint64_t*>(there + all_well_),
                             .limit = code_limit(header_.block_raw_size(0)),
                             .last_limit = code_limit(header_.block_raw_size(n_ - 1))},
                            &plan_);
}

Status DeviceEncoding::note_block(uint64_t i, std::byte* there) {
  begin_block();
  const size_t at = i * header_.block_size(), size = header_.block_raw_size(i);
  StreamTask task = {.raw = const_cast<std::byte*>(data_.raw.data()) + at,
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

Status DeviceEncoding::launch(std::byte* there, std::byte* pinned) {
  std::memset(pinned, 0, tables_);
  std::memcpy(pinned + header_at_, head_.data(), header_.size);
  for (uint64_t i = 0; i < n_; ++i) {
    Report& report = reports(pinned)[i];
    report = kNoReport;
    report.full = !check(i).ok();
  }
  if (in_parts_) *reinterpret_cast<uint64_t*>(pinned + all_well_) = 1;
  WPR_TRY(note(false, there));
  plan_.put_tables(pinned + tables_);
  WPR_TRY(copy(there, pinned, inputs_));
  WPR_TRY(launch_plan(there));
  WPR_TRY(on_.streams().seal(on_.place.device, on_.stream, sealing(there, pinned)));
  return copy(pinned + results_, there + result_, sizeof(Sealed));
}

Sealing DeviceEncoding::sealing(std::byte* there, std::byte* pinned) const {
  return {.raw = values_ != 0 ? there + values_ : data_.raw.data(),
          .raw_size = data_.raw.size(),
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
          .result = reinterpret_cast<Sealed*>(there + result_)};
}

// ---- frames that a device expands ----

DeviceExpanding::DeviceExpanding(const OnDevice& on, const ParsedFrame& frame, Bytes dst, bool adds,
                                 StreamPlan& plan)
    : DeviceFrame(on, frame.header, plan),
      blocks_(frame.blocks),
      dst_(dst),
      adds_(adds && on.kernel->decode_add != nullptr),
      sums_(adds && !adds_),
      args_(args_of(frame.chain->recipe(), on.place)) {}

size_t DeviceExpanding::scratch_size(size_t raw_size) const {
  return on_.kernel->scratch(args_, raw_size, true);
}

Status DeviceExpanding::lay_out(bool* can) {
  *can = false;
  const size_t n = blocks_.size();
  reports_ = there_.add(n * sizeof(Report));
  if (sums_) all_well_ = there_.add(sizeof(uint64_t));
  payloads_ = there_.size();
  for (const Block& block : blocks_) {
    if (!is_noted(block)) continue;
    const size_t size = block.payload.size();
    const Status status =
        block.raw ? Status() : on_.kernel->check_decode(args_, size, block.raw_size);
    if (status.code() == Code::kUnsupported) return {};
    if (!status.ok()) return in_block(block.index, status);
    there_.add(size);
  }
  lay_out_scratch(
      std::max(scratch_size(blocks_.front().raw_size), scratch_size(blocks_.back().raw_size)), n);
  if (!note(true, nowhere()).ok()) return {};
  tables_ = there_.add(plan_.table_size());
  inputs_ = there_.size();
  place_scratch();
  if (sums_) values_ = there_.add(header_.raw_size);
  pinned_.add(inputs_);
  results_ = pinned_.add(n * sizeof(Report));
  stored_ = pinned_.size();
  for (const Block& block : blocks_)
    if (!is_noted(block)) pinned_.add(block.payload.size());
  reserve_longest();
  *can = true;
  return {};
}

// Room for the longest codes, so that a frame of other data finds memory that is as large.
void DeviceExpanding::reserve_longest() {
  const auto n = blocks_.size(), noted = static_cast<size_t>(std::ranges::count_if(
                                     blocks_, [&](const Block&b) { return is_noted(b); }));
  const size_t more_tables = noted > 0 ? plan_.table_size() * (n - noted) / noted : 0;
  there_.add(more_tables);
  pinned_.add(more_tables);
  for (const Block& block : blocks_) {
    const size_t most = up(block.raw_size), has = up(block.payload.size());
    there_.add(is_noted(block) ? most - std::min(most, has) : most);
    pinned_.add(most - std::min(most, has));
  }
}

Status DeviceExpanding::note(bool draft, std::byte* there) {
  begin_plan(draft);
  std::byte* payload = there + payloads_;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!is_noted(blocks_[i])) continue;
    WPR_TRY(note_block(i, payload, there));
    payload += up(blocks_[i].payload.size());
  }
  return sums_ ? note_sum(there) : Status();
}

Status DeviceExpanding::note_sum(std::byte* there) {
  plan_.begin_round();
  const Adding adding = {.to = dst_.data(),
                         .base = dst_.data(),
                         .from = there + values_,
                         .size = header_.raw_size,
                         .reports = reinterpret_cast<const Report*>(there + reports_),
                         .n_reports = blocks_.size(),
                         .all_well = reinterpret_cast<uint64_t*>(there + all_well_)};
  return on_.streams().add(on_.place.device, on_.stream, adding, &plan_);
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
                           .report = reinterpret_cast<Report*>(there + reports_) + i};
  return (adds_ ? on_.kernel->decode_add : on_.kernel->decode)(device, on_.stream, args_, task,
                                                               &plan_);
}

Status DeviceExpanding::launch(std::byte* there, std::byte* pinned) {
  std::fill_n(reinterpret_cast<Report*>(pinned + reports_), blocks_.size(), kNoReport);
  if (sums_) *reinterpret_cast<uint64_t*>(pinned + all_well_) = 1;
  size_t noted_at = payloads_, stored_at = stored_;
  for (const Block& block : blocks_) {
    size_t& at = is_noted(block) ? noted_at : stored_at;
    std::memcpy(pinned + at, block.payload.data(), block.payload.size());
    at += up(block.payload.size());
  }
  WPR_TRY(note(false, there));
  plan_.put_tables(pinned + tables_);
  WPR_TRY(copy(there, pinned, inputs_));
  WPR_TRY(copy_stored(there, pinned));
  WPR_TRY(launch_plan(there));
  return copy(pinned + results_, there + reports_, blocks_.size() * sizeof(Report));
}

// Runs of blocks, where they lie side by side here, too.
Status DeviceExpanding::copy_stored(std::byte* there, const std::byte* pinned) const {
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
