// SPDX-License-Identifier: Apache-2.0
#include "pipeline/settings.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>

namespace wirepress {
namespace {

Status check_recipe(const char* key, const char* text, const Options& options) {
  if (is_auto(text)) {
    Goal goal;
    return parse_goal(text, options.rate("link"), &goal);
  }
  const char* engine = options.get("engine");
  Recipe recipe;
  const Status status = parse_recipe(text, DType::kBytes, engine, &recipe);
  if (status.ok()) return {};
  for (int dtype = 1; dtype < kDTypeCount; ++dtype) {  // it may be meant for data of another type
    if (parse_recipe(text, static_cast<DType>(dtype), engine, &recipe).ok()) return {};
  }
  return fail(Code::kParameter, "%s: %s", key, status.text());
}

bool parse_all(std::string_view text, double* value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size() && std::isfinite(*value);
}

// "none", "rel:1e-3", "abs:1e-6", "bits:6"; which codec keeps it is the business of who sends.
Status check_error_bound(const char* text) {
  const std::string_view bound = text;
  if (bound.empty() || bound == "none") return {};
  const size_t colon = bound.find_first_of(":=");  // "=" as recipes have it
  const std::string_view kind = bound.substr(0, colon);
  double value;
  if (colon == std::string_view::npos || !parse_all(bound.substr(colon + 1), &value) ||
      (kind != "rel" && kind != "abs" && kind != "bits"))
    return fail(Code::kParameter,
                "mpi_error: \"%s\" is not none, rel:E, abs:A or bits:B, such as rel:1e-3", text);
  if (kind == "rel" && !(value > 0 && value < 1))
    return fail(Code::kParameter, "mpi_error: \"%s\": a relative error lies between 0 and 1", text);
  if (kind == "abs" && !(value >= 1e-100 && value <= 1e100))
    return fail(Code::kParameter,
                "mpi_error: \"%s\": an absolute error lies between 1e-100 and 1e100", text);
  if (kind == "bits" && !(value >= 1 && value <= 52 && value == std::floor(value)))
    return fail(Code::kParameter, "mpi_error: \"%s\": bits are a whole number from 1 to 52", text);
  return {};
}

// What the table cannot check: it takes the codecs to know, or is a text of its own.
Status check_option(const Options& options, const char* key) {
  const std::string_view name = key;
  const char* value = options.get(key);
  if (name == "mpi_codec" && std::string_view(value) == "auto") return {};
  if (name == "mpi_codec" && is_auto(value))
    return fail(Code::kParameter, "mpi_codec: auto measures its goal, it takes none: \"%s\"",
                value);
  if (name == "recipe" || name == "mpi_codec") return check_recipe(key, value, options);
  if (name == "mpi_error") return check_error_bound(value);
  if (name == "engine") return check_engine(value);
  if (name == "block_size" && !std::has_single_bit(options.number(key)))
    return fail(Code::kParameter, "block_size: %s is not a power of two", value);
  return {};
}

}  // namespace

Status Settings::read_environment() {
  Status first = options_.read_environment();
  for (const char* key : {"engine", "recipe", "mpi_codec", "mpi_error", "block_size"}) {
    const Status status = check_option(options_, key);
    if (status.ok()) continue;
    if (first.ok())
      first =
          fail(Code::kParameter, "in the environment, WIREPRESS_ variable of %s", status.text());
    for (const OptionRow& row : option_rows()) {
      if (std::string_view(row.key) == key) (void)options_.set(key, row.fallback);
    }
  }
  settle();
  return first;
}

Status Settings::set(const char* key, const char* value) {
  Options changed = options_;
  WPR_TRY(changed.set(key, value));
  WPR_TRY(check_option(changed, key));
  options_ = std::move(changed);
  settle();
  return {};
}

void Settings::settle() {
  blocks_ = {.checksum = options_.number("checksum") != 0,
             .probe = options_.number("probe") != 0,
             .block_log = std::countr_zero(options_.number("block_size")),
             .threads = static_cast<int>(options_.number("threads")),
             .seed = options_.number("seed")};
  wants_auto_ = is_auto(options_.get("recipe"));
  recipes_.clear();
  goal_.reset();
}

const BlockSettings& Settings::blocks() {
  blocks_.threads = threads();
  return blocks_;
}

// Plain bytes are taken as float32 by codecs that lose: what is no float32 would come back as other
// bytes, so the caller has to name the type. (Frames of such bytes are still read.)
Status Settings::recipe_for(DType dtype, const Recipe** recipe) {
  auto found = recipes_.find(dtype);
  if (found == recipes_.end()) {
    const char* text = options_.get("recipe");
    Recipe parsed;
    WPR_TRY(parse_recipe(text, dtype, engine(), &parsed));
    if (dtype == DType::kBytes && !parsed.lossless()) {
      return fail(Code::kParameter,
                  "recipe %s changes values, and the data are bytes of no stated type: state their "
                  "dtype, such as float32, or take a recipe that loses nothing",
                  text);
    }
    found = recipes_.emplace(dtype, parsed).first;
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
  *answer = recipe.lossless();
  return {};
}

}  // namespace wirepress
