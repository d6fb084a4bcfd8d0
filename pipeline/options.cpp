// SPDX-License-Identifier: Apache-2.0
#include "pipeline/options.hpp"

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "pipeline/auto.hpp"
#include "pipeline/recipe.hpp"

namespace wirepress {
namespace {

Status parse_for_any(const char* text, const char* engine, Recipe* recipe) {
  const Status status = parse_recipe(text, DType::kBytes, engine, recipe);
  if (status.ok()) return {};
  for (int dtype = 1; dtype < kDTypeCount; ++dtype) {  // it may be meant for data of another type
    if (parse_recipe(text, static_cast<DType>(dtype), engine, recipe).ok()) return {};
  }
  return status;
}

// A default that lacks the kernel is refused when it is used: an engine may be named first.
Status check_recipe(const char* text, const Options& options, const char* key) {
  if (is_auto(text)) {
    Goal goal;
    return parse_goal(text, options.rate("link"), &goal);
  }
  const char* engine = options.get("engine");
  Recipe recipe;
  WPR_TRY(parse_for_any(text, engine, &recipe));
  const bool is_default = std::strcmp(options.origin(key), "default") == 0;
  return is_default || !must_have_variant(options) ? Status() : check_variant(recipe, engine);
}

Status check_value(const Options& options, const OptionRow& row) {
  const std::string_view name = row.key;
  const char* value = options.get(row.key);
  if (row.type == OptionType::kRecipe) {
    const bool own_auto = std::string_view(row.choices) == "auto";  // not that of auto.hpp
    if (own_auto && std::string_view(value) == "auto") return {};
    if (own_auto && is_auto(value))
      return fail(Code::kParameter, "auto measures its goal, it takes none: \"%s\"", value);
    return check_recipe(value, options, row.key);
  }
  if (name == "engine" || name == "verify")
    return check_engine(options.get("engine"), options.number("verify") != 0);
  if (name == "block_size" && !std::has_single_bit(options.number(row.key)))
    return fail(Code::kParameter, "%s is not a power of two", value);
  return {};
}

Status check_option(const Options& options, const OptionRow& row) {
  const Status status = check_value(options, row);
  return status.ok() ? status : fail(Code::kParameter, "%s: %s", row.key, status.text());
}

// Replaces an invalid value by the default; *first is the first failure.
void settle(Options* options, size_t row, Status* first) {
  const char* key = option_rows()[row].key;
  const Status status = check_option(*options, option_rows()[row]);
  if (status.ok()) return;
  // A default may be invalid, too: in a build without its codec, or on another engine.
  const bool is_default = std::strcmp(options->origin(key), "default") == 0;
  if (first->ok())
    *first = is_default ? fail(Code::kParameter, "the default of %s", status.text())
                        : in_environment(key, status);
  options->reset(row);
}

}  // namespace

bool must_have_variant(const Options& options) {
  return std::strcmp(options.origin("engine"), "set") == 0 ||
         !names_processor(options.get("engine"));
}

Status set_option(Options* options, const char* key, const char* value) {
  Options changed = *options;
  WPR_TRY(changed.set(key, value));
  for (const OptionRow& row : option_rows()) {
    if (std::strcmp(row.key, key) == 0) WPR_TRY(check_option(changed, row));
  }
  *options = std::move(changed);
  return {};
}

Status read_environment(Options* options) {
  Status first = options->read_environment();
  const auto rows = option_rows();
  for (size_t i = 0; i < rows.size(); ++i) {  // before the recipes, which are checked for an engine
    if (std::strcmp(rows[i].key, "engine") == 0) settle(options, i, &first);
  }
  for (size_t i = 0; i < rows.size(); ++i) settle(options, i, &first);
  return first;
}

}  // namespace wirepress
