// SPDX-License-Identifier: Apache-2.0
#include "pipeline/settings.hpp"

#include <algorithm>
#include <bit>

#include "pipeline/options.hpp"

namespace wirepress {
Status Settings::read_environment() {
  const Status first = wirepress::read_environment(&options_);
  settle();
  return first;
}

Status Settings::set(const char* key, const char* value) {
  WPR_TRY(set_option(&options_, key, value));
  if (is_of_a_call(key))
    blocks_.seed = options_.number("seed");  // programs set it for every frame
  else
    settle();
  return {};
}

void Settings::settle() {
  blocks_ = {.checksum = options_.number("checksum") != 0,
             .probe = options_.number("probe") != 0,
             .block_log = std::countr_zero(options_.number("block_size")),
             .threads = static_cast<int>(options_.number("threads")),
             .seed = options_.number("seed")};
  cores_ = 0;
  wants_auto_ = is_auto(options_.get("recipe"));
  recipes_.clear();
  goal_.reset();
}

int Settings::threads() const {
  return blocks_.threads ? blocks_.threads : usable_cores() + extra_threads(engine(), false);
}

// What an engine has to give is read once: another context may change its device meanwhile.
int Settings::encoders(int most) {
  const auto own = static_cast<int>(options_.number("threads"));
  return std::clamp(own ? own : cores() + extra_threads(engine(), true), 1, most);
}

bool Settings::has_own_threads() const { return options_.number("threads") != 0; }

int Settings::decoders(int most) {
  const auto own = static_cast<int>(options_.number("threads"));
  return std::clamp(own ? own : cores(), 1, most);
}

int Settings::cores() {
  if (cores_ == 0) cores_ = usable_cores();
  return cores_;
}

const BlockSettings& Settings::blocks() {
  blocks_.threads = threads();
  return blocks_;
}

// Plain bytes are taken as float32 by codecs that lose: what is no float32 would come back as other
// bytes, so the caller has to name the type. (Frames of such bytes are still read.)
Status Settings::recipe_for(DType dtype, const Recipe** recipe, bool on_cores) {
  auto found = recipes_.find({dtype, on_cores});
  if (found == recipes_.end()) {
    const char* text = options_.get("recipe");
    const char* engine = on_cores ? cores_engine(this->engine()) : this->engine();
    Recipe parsed;
    WPR_TRY(parse_recipe(text, dtype, engine, &parsed));
    if (dtype == DType::kBytes && !parsed.lossless()) {
      return fail(Code::kParameter,
                  "recipe %s changes values, and the data are bytes of no stated type: state their "
                  "dtype, such as float32, or take a recipe that loses nothing",
                  text);
    }
    if (must_have_variant(options_)) WPR_TRY(check_variant(parsed, engine));
    found = recipes_.emplace(std::pair(dtype, on_cores), parsed).first;
  }
  *recipe = &found->second;
  return {};
}

Status Settings::goal(const Goal** goal) {
  if (!goal_) {
    Goal parsed;
    const char* text = wants_auto_ ? options_.get("recipe") : "auto";
    WPR_TRY(parse_goal(text, options_.rate("link"), &parsed));
    goal_ = parsed;
  }
  *goal = &*goal_;
  return {};
}

Status Settings::lossless(const char* text, DType dtype, bool* answer) const {
  if (is_auto(text)) {
    Goal goal;
    WPR_TRY(parse_goal(text, options_.rate("link"), &goal));
    *answer = (goal.rel == 0 && goal.abs == 0) || !is_float(dtype);
    return {};
  }
  Recipe recipe;
  WPR_TRY(parse_recipe(text, dtype, engine(), &recipe));
  if (must_have_variant(options_)) WPR_TRY(check_variant(recipe, engine()));
  *answer = recipe.lossless();
  return {};
}

}  // namespace wirepress
