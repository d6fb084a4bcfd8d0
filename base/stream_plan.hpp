// SPDX-License-Identifier: Apache-2.0
// What a device is to do for the blocks of a frame. A codec's launches are noted block by block,
// and go to the stream for all blocks at once: as many launches as one block takes, which keep a
// device busy that a block leaves idle. What a launch is given for each block stands in a table in
// memory of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"

namespace wirepress {

class StreamPlan {
 public:
  // Puts a step on the stream: `table` is that of its `n` entries, in memory of the device, none of
  // which takes more than `most` blocks of warps.
  using Launch = Status (*)(int device, void* stream, const std::byte* table, size_t n,
                            uint64_t most) noexcept;

  // Begins anew; memory is kept. `draft`: addresses are not the blocks' own, for `table_size`.
  void begin(bool draft) noexcept;
  bool is_draft() const noexcept { return draft_; }
  void begin_block() noexcept { next_ = round_; }
  // Of blocks to come: behind all that was noted, whose scratch memory they take.
  void begin_round() noexcept { next_ = round_ = n_steps_; }
  // The block's next launch. Steps are shared with blocks that were noted before where their
  // launches come in the same order.
  Status note(Launch wanted, const void* entry, size_t entry_size, uint64_t blocks) noexcept;

  size_t table_size() const noexcept;
  void put_tables(std::byte* to) const noexcept;
  // tables: where they are, in memory of the device.
  Status launch(int device, void* stream, const std::byte* tables) const noexcept;

 private:
  struct Step {
    Launch launch = nullptr;
    std::vector<std::byte> table;
    size_t n = 0;
    uint64_t most = 0;
  };
  static constexpr size_t kAligned = 256;
  static size_t room(const Step& step) {
    return (step.table.size() + kAligned - 1) / kAligned * kAligned;
  }
  Step& step_of(Launch wanted);

  std::vector<Step> steps_;  // the first n_steps_; the others keep their memory
  size_t n_steps_ = 0, round_ = 0, next_ = 0;
  bool draft_ = false;
};

}  // namespace wirepress
