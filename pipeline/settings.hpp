// SPDX-License-Identifier: Apache-2.0
// The options of a context, and what follows from them. Texts are read once, not once a frame.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/options.hpp"
#include "pipeline/auto.hpp"
#include "pipeline/blocks.hpp"
#include "pipeline/pool.hpp"

namespace wirepress {

class Settings {
 public:
  Settings() { settle(); }
  // Takes the environment's options; the first invalid one is the status and has its default.
  Status read_environment();
  // kParameter, and nothing changed, where the key is unknown or the value is none of its values.
  Status set(const char* key, const char* value);
  // Whether an option may change while jobs are on their way: each of them has its own.
  static bool is_of_a_call(const char* key) { return std::string_view(key) == "seed"; }
  const Options& options() const { return options_; }

  // How blocks are made. The cores that the process may use are counted by the first call after a
  // change of an option.
  const BlockSettings& blocks();
  uint64_t seed() const { return blocks_.seed; }
  // The seed of the frames to come, whatever the option says; returns that of those before.
  uint64_t draw_from(uint64_t seed) { return std::exchange(blocks_.seed, seed); }
  size_t block_size() const { return size_t{1} << blocks_.block_log; }
  int threads() const;
  // The threads that a message is to have, of `most` for which its chains were made: coding may
  // have some that wait.
  int encoders(int most);
  bool has_own_threads() const;  // they were asked for, so that none of them waits for a device
  int decoders(int most);
  const char* engine() const { return options_.get("engine"); }
  bool lacks_kernel(const Recipe& recipe) const {
    return wirepress::lacks_kernel(recipe, engine());
  }

  bool wants_auto() const { return wants_auto_; }
  // The recipe for data of a type; it is valid until an option changes. kParameter where the recipe
  // does not take the type, or loses bits of kBytes. on_cores: as cores_engine says.
  Status recipe_for(DType dtype, const Recipe** recipe, bool on_cores = false);
  // What recipe=auto is to reach; that of plain "auto" where the recipe names its codecs.
  Status goal(const Goal** goal);
  // Whether the recipe `text` gives back every bit of data of that type.
  Status lossless(const char* text, DType dtype, bool* answer) const;

 private:
  void settle();  // after a change of options
  int cores();

  Options options_;
  BlockSettings blocks_;  // threads 0: not yet counted
  int cores_ = 0;         // 0: not yet counted
  bool wants_auto_ = false;
  std::map<std::pair<DType, bool>, Recipe> recipes_;  // those that were asked for
  std::optional<Goal> goal_;
};

}  // namespace wirepress
