// SPDX-License-Identifier: Apache-2.0
#include "base/stream_plan.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace wirepress {

void StreamPlan::begin(bool draft) noexcept {
  n_steps_ = round_ = next_ = 0;
  draft_ = draft;
}

// The first step of that launch from the block's next one on; else a new one, there.
StreamPlan::Step& StreamPlan::step_of(Launch wanted) {
  for (size_t i = next_; i < n_steps_; ++i) {
    if (steps_[i].launch != wanted) continue;
    next_ = i + 1;
    return steps_[i];
  }
  if (n_steps_ == steps_.size()) steps_.emplace_back();
  const auto at = steps_.begin() + static_cast<std::ptrdiff_t>(next_++);
  const auto spare = steps_.begin() + static_cast<std::ptrdiff_t>(n_steps_++);
  std::rotate(at, spare, spare + 1);
  at->launch = wanted;
  at->table.clear();
  at->n = at->most = 0;
  return *at;
}

Status StreamPlan::note(Launch wanted, const void* entry, size_t entry_size,
                        uint64_t blocks) noexcept {
  try {
    Step& step = step_of(wanted);
    const auto* const bytes = static_cast<const std::byte*>(entry);
    step.table.insert(step.table.end(), bytes, bytes + entry_size);
    ++step.n;
    step.most = std::max(step.most, blocks);
    return {};
  } catch (const std::exception&) {
    return fail(Code::kNoMemory, "no memory for a plan of launches");
  }
}

size_t StreamPlan::table_size() const noexcept {
  size_t size = 0;
  for (size_t i = 0; i < n_steps_; ++i) size += room(steps_[i]);
  return size;
}

void StreamPlan::put_tables(std::byte* to) const noexcept {
  for (size_t i = 0; i < n_steps_; ++i) {
    const std::vector<std::byte>& table = steps_[i].table;
    std::memcpy(to, table.data(), table.size());
    to += room(steps_[i]);
  }
}

Status StreamPlan::launch(int device, void* stream, const std::byte* tables) const noexcept {
  for (size_t i = 0; i < n_steps_; ++i) {
    const Step& step = steps_[i];
    WPR_TRY(step.launch(device, stream, tables, step.n, step.most));
    tables += room(step);
  }
  return {};
}

}  // namespace wirepress
