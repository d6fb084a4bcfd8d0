// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recipe.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/memory.hpp"

namespace wirepress {
namespace {

using Text = std::string_view;

// Cuts the part before `mark` off the front of `rest`.
Text cut(Text* rest, char mark) {
  const size_t at = rest->find(mark);
  const Text part = rest->substr(0, at);
  *rest = at == Text::npos ? Text() : rest->substr(at + 1);
  return part;
}

int length(Text text) { return static_cast<int>(text.size()); }

std::string known_codecs() {
  std::string names;
  for (const Entry& entry : registry())
    names += (names.empty() ? "" : ", ") + std::string(entry.codec->name);
  return names;
}

std::string known_params(const Codec& codec) {
  std::string names;
  for (const Param& param : codec.params)
    names += (names.empty() ? "" : ", ") + std::string(param.name);
  return names.empty() ? "none" : names;
}

std::string range_of(const Param& param) {
  if (param.real)
    return std::string("a number ") + (param.positive ? "above 0 " : "") +
           "such as 1e-3 or 2.5, at most 4 digits";
  if (!param.words) return std::to_string(param.min) + ".." + std::to_string(param.max);
  std::string words;
  for (int i = 0; i <= param.max; ++i) words += (i ? ", " : "") + std::string(param.words[i]);
  return words;
}

bool read_value(const Param& param, Text text, int* value) {
  if (param.real)
    return parse_real(text.data(), text.size(), value) && !(param.positive && *value == 0);
  if (param.words) {
    for (int i = 0; i <= param.max; ++i) {
      if (text == param.words[i]) return *value = i, true;
    }
    return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value >= param.min && *value <= param.max;
}

// `given`: the parameters that were given before, a bit each.
Status parse_param(const Codec& codec, Text text, unsigned* given, Args* args) {
  Text value = text;
  size_t index = 0;
  if (text.find('=') != Text::npos) {
    const Text name = cut(&value, '=');
    while (index < codec.params.size() && name != codec.params[index].name) ++index;
    if (index == codec.params.size()) {
      return fail(Code::kParameter, "%s: unknown parameter \"%.*s\"; known: %s", codec.name,
                  length(name), name.data(), known_params(codec).c_str());
    }
  } else if (*given != 0 || codec.params.empty()) {
    return fail(Code::kParameter, "%s: \"%.*s\" is not name=value; known parameters: %s",
                codec.name, length(text), text.data(), known_params(codec).c_str());
  }
  const Param& param = codec.params[index];
  if ((*given >> index & 1) != 0)
    return fail(Code::kParameter, "%s: %s is given twice", codec.name, param.name);
  *given |= 1u << index;
  if (!read_value(param, value, &args->value[index])) {
    return fail(Code::kParameter, "%s: %s cannot be \"%.*s\"; known: %s", codec.name, param.name,
                length(value), value.data(), range_of(param).c_str());
  }
  return {};
}

Status finish_step(const Entry* entry, const char* engine, Code without_kernel,
                   Recipe::Step* step) {
  step->entry = entry;
  if (entry->codec->check) WPR_TRY(entry->codec->check(&step->args));
  step->kernel = choose_kernel(*entry, engine);
  if (!step->kernel) {
    return fail(without_kernel, "%s: no kernel for engine \"%s\" can run here", entry->codec->name,
                engine);
  }
  return {};
}

Status parse_step(Text text, DType dtype, const char* engine, Recipe::Step* step) {
  Text rest = text;
  const Text name = cut(&rest, ':');
  const Entry* entry = find_codec(name.data(), name.size());
  if (!entry) {
    return fail(Code::kParameter, "unknown codec \"%.*s\"; known: %s", length(name), name.data(),
                known_codecs().c_str());
  }
  *step = {};
  step->args = default_args(*entry->codec, dtype);
  for (unsigned given = 0; !rest.empty();)
    WPR_TRY(parse_param(*entry->codec, cut(&rest, ','), &given, &step->args));
  return finish_step(entry, engine, Code::kParameter, step);
}

// A codec that must know how much it expands to can only stand where that is known; the others are
// told.
Status check_order(Recipe* recipe) {
  bool known = true;
  for (int i = 0; i < recipe->n_steps; ++i) {
    const Codec& codec = *recipe->step[i].entry->codec;
    recipe->step[i].args.exact_size = known;
    if (codec.needs_size && !known) {
      return fail(Code::kParameter,
                  "%s must know the raw size: before it only codecs that keep sizes may stand",
                  codec.name);
    }
    known = known && codec.keeps_size;
  }
  return {};
}

// The bound of a codec is one for the values it gets: behind another codec they are not the data's.
Status check_loss(const Recipe& recipe) {
  for (int i = 1; i < recipe.n_steps; ++i) {
    const Codec& codec = *recipe.step[i].entry->codec;
    if (!codec.is_lossless(recipe.step[i].args))
      return fail(Code::kParameter, "%s changes values: it can only be the first of a recipe",
                  codec.name);
  }
  return {};
}

// How many parameters stand in a header: all, or those before the later ones.
size_t n_early(const Codec& codec) {
  return static_cast<size_t>(
      std::ranges::count_if(codec.params, [](const Param& param) { return !param.later; }));
}

size_t n_stored(const Codec& codec, const Args& args) {
  for (size_t i = n_early(codec); i < codec.params.size(); ++i)
    if (args.value[i] != codec.params[i].fallback) return codec.params.size();
  return n_early(codec);
}

size_t params_size(const Codec& codec, size_t n) {
  size_t size = 0;
  for (const Param& param : codec.params.first(n)) size += param.size();
  return size;
}

Status read_stage(const Stage& stage, int number, DType dtype, const char* engine,
                  Recipe::Step* step) {
  const Entry* entry = find_codec(stage.id);
  if (!entry) {
    for (const Entry& known : registry())
      if (known.codec->former_id == stage.id)
        return fail(
            Code::kUnsupported,
            "header: stage %d has codec id 0x%03x, an older format of %s, which this version "
            "does not read: expand it with the version that wrote it",
            number, stage.id, known.codec->name);
    return fail(Code::kUnsupported, "header: stage %d has codec id 0x%03x; known here: %s", number,
                stage.id, known_codecs().c_str());
  }
  const Codec& codec = *entry->codec;
  const size_t n =
      stage.n_bytes == params_size(codec, n_early(codec)) ? n_early(codec) : codec.params.size();
  if (stage.n_bytes != params_size(codec, n)) {
    return fail(Code::kUnsupported,
                "header: stage %d (%s) has %d bytes of parameters, the codec has %zu", number,
                codec.name, stage.n_bytes, params_size(codec, n));
  }
  *step = {};
  step->args.dtype = dtype;
  for (size_t i = n; i < codec.params.size(); ++i) step->args.value[i] = codec.params[i].fallback;
  const uint8_t* bytes = stage.bytes;
  for (size_t i = 0; i < n; bytes += codec.params[i++].size()) {
    const Param& param = codec.params[i];
    int& value = step->args.value[i];
    if (param.real) {
      value = real_param(bytes[0] | bytes[1] << 8, static_cast<int8_t>(bytes[2]));
      if (bytes[1] > 127 || (bytes[2] != 0 && real_digits(value) == 0) ||
          (real_digits(value) != 0 && real_digits(value) % 10 == 0))
        return fail(Code::kCorrupt, "header: stage %d (%s) has %s=%d*10^%d, not the shortest form",
                    number, codec.name, param.name, bytes[0] | bytes[1] << 8,
                    static_cast<int8_t>(bytes[2]));
      continue;
    }
    value = static_cast<int8_t>(bytes[0]);
    if (value < param.min || value > param.max) {
      return fail(Code::kCorrupt, "header: stage %d (%s) has %s=%d, not in %d..%d", number,
                  codec.name, param.name, value, param.min, param.max);
    }
  }
  if (n != n_stored(codec, step->args)) {
    return fail(Code::kCorrupt, "header: stage %d (%s) has defaults that are left out", number,
                codec.name);
  }
  const Args stored = step->args;
  WPR_TRY(finish_step(entry, engine, Code::kUnsupported, step));
  if (step->args.value != stored.value) {
    return fail(Code::kCorrupt, "header: stage %d (%s) leaves a parameter to be resolved", number,
                codec.name);
  }
  return {};
}

}  // namespace

bool Recipe::lossless() const {
  for (int i = 0; i < n_steps; ++i) {
    if (!step[i].entry->codec->is_lossless(step[i].args)) return false;
  }
  return true;
}

Status parse_recipe(const char* text, DType dtype, const char* engine, Recipe* recipe) {
  Recipe result;
  Text rest = text;
  if (!rest.empty() && Text("+,").find(rest.back()) != Text::npos)
    return fail(Code::kParameter, "recipe \"%s\" ends in \"%c\"", text, rest.back());
  do {
    if (result.n_steps == kMaxStages)
      return fail(Code::kParameter, "recipe \"%s\": at most %d codecs", text, kMaxStages);
    WPR_TRY(parse_step(cut(&rest, '+'), dtype, engine, &result.step[result.n_steps]));
    ++result.n_steps;
  } while (!rest.empty());
  WPR_TRY(check_order(&result));
  WPR_TRY(check_loss(result));
  *recipe = result;
  return {};
}

Status recipe_of(const Stages& stages, const Header& header, const char* engine, Recipe* recipe) {
  Recipe result;
  result.n_steps = stages.n;
  for (int i = 0; i < stages.n; ++i) {
    Status status = read_stage(stages.stage[i], i, header.dtype, engine, &result.step[i]);
    if (status.code() == Code::kParameter)
      return fail(Code::kCorrupt, "header: stage %d: %s", i, status.text());
    WPR_TRY(status);
  }
  if (Status status = check_order(&result); !status.ok())
    return fail(Code::kCorrupt, "header: %s", status.text());
  if (Status status = check_variant(result, engine); !status.ok() && !names_processor(engine))
    return fail(Code::kUnsupported, "header: %s", status.text());
  tell_shape(header, &result);
  *recipe = result;
  return {};
}

bool wants_slabs(const Recipe& recipe) { return recipe.step[0].entry->codec->by_slabs; }

void tell_shape(const Header& header, Recipe* recipe) {
  if (!wants_slabs(*recipe)) return;
  Args& args = recipe->step[0].args;
  args.n_dims = header.slabs ? header.n_dims : 0;
  args.shape = {};
  if (header.slabs) std::copy_n(header.shape, kMaxDims, args.shape.begin());
}

Stages stages_of(const Recipe& recipe) {
  Stages stages;
  stages.n = recipe.n_steps;
  for (int i = 0; i < recipe.n_steps; ++i) {
    const Recipe::Step& step = recipe.step[i];
    Stage& stage = stages.stage[i];
    stage.id = step.entry->id;
    const Codec& codec = *step.entry->codec;
    for (size_t p = 0; p < n_stored(codec, step.args); ++p) {
      const int value = step.args.value[p];
      const int bits =
          codec.params[p].real ? real_digits(value) | real_exponent(value) << 16 : value;
      for (size_t b = 0; b < codec.params[p].size(); ++b)
        stage.bytes[stage.n_bytes++] = static_cast<uint8_t>(bits >> 8 * b);
    }
  }
  return stages;
}

std::string recipe_text(const Recipe& recipe) {
  std::string text;
  for (int i = 0; i < recipe.n_steps; ++i) {
    const Recipe::Step& step = recipe.step[i];
    const Codec& codec = *step.entry->codec;
    if (i) text += '+';
    text += codec.name;
    char mark = ':';
    for (size_t p = 0; p < codec.params.size(); ++p) {
      const Param& param = codec.params[p];
      const int value = step.args.value[p];
      if (value == param.fallback && (codec.params.size() > 1 || param.later)) continue;
      text += mark;
      if (codec.params.size() > 1) text.append(param.name).append("=");
      text += param.words  ? param.words[value]
              : param.real ? real_text(value)
                           : std::to_string(value);
      mark = ',';
    }
  }
  return text;
}

// Sets the device up. Where that fails the cores do its jobs, and the engine keeps the reason.
Status select_device(const Engine& engine, Text choice, Text device, bool strict, DeviceUse use) {
  const Status status = engine.select(std::string(device).c_str(), use);
  if (status.ok() || !strict) return {};
  return fail(Code::kParameter, "%.*s: %s", length(choice), choice.data(), status.text());
}

Status check_engine(const char* choice, bool verify) {
  Text text = choice;
  if (text.empty() || text == "auto") return {};
  const bool strict = text.ends_with('!');
  if (strict) text.remove_suffix(1);
  const bool with_cores = text.starts_with(kWithCores);
  if (with_cores) text.remove_prefix(kWithCores.size());
  std::string known = "auto";
  for (const Engine* engine : engines()) {
    known += std::string(", ") + engine->name;
    const bool with_device = engine->select && text.starts_with(engine->name + std::string(":"));
    if (text == engine->name || with_device) {
      const Text device = with_device ? text.substr(text.find(':') + 1) : "";
      if (engine->select) return select_device(*engine, text, device, strict, {verify, with_cores});
      if (with_cores)
        return fail(Code::kParameter, "%s: engine %s has no devices", choice, engine->name);
      const char* reason = engine->unavailable();
      return reason ? fail(Code::kParameter, "%s: %s", choice, reason) : Status();
    }
  }
  if (with_cores || strict)
    return fail(Code::kParameter, "unknown engine with devices \"%s\"; known: %s", choice,
                known.c_str());
  for (const Entry& entry : registry()) {
    for (const Kernel* kernel : entry.kernels) {
      const std::string name = std::string(kernel->engine) + ":" + kernel->variant;
      if (text == name) {
        if (kernel->usable()) return {};
        return fail(Code::kParameter, "%s: this machine cannot run it", choice);
      }
      if ((", " + known + ", ").find(", " + name + ", ") == std::string::npos) known += ", " + name;
    }
  }
  return fail(Code::kParameter, "unknown engine \"%s\"; known: %s", choice, known.c_str());
}

bool lacks_kernel(const Recipe& recipe, const char* choice) {
  if (Text(choice) == "auto") return false;
  // A copy is the same by any kernel, and doors that only read have this recipe.
  if (names_processor(choice) && recipe.n_steps == 1 &&
      Text(recipe.step[0].entry->codec->name) == "store")
    return false;
  for (int i = 0; i < recipe.n_steps; ++i)
    for (const Kernel* kernel : recipe.step[i].entry->kernels)
      if (is_named(*kernel, choice)) return false;
  return true;
}

Status check_variant(const Recipe& recipe, const char* choice) {
  if (!names_variant(choice) || !lacks_kernel(recipe, choice)) return {};
  const Text engine = Text(choice).substr(0, Text(choice).find(':'));
  std::string has;
  for (int i = 0; i < recipe.n_steps; ++i)
    for (const Kernel* kernel : recipe.step[i].entry->kernels)
      if (engine == kernel->engine && kernel->usable())
        has += (has.empty() ? "" : ", ") + std::string(engine) + ":" + kernel->variant;
  return fail(Code::kParameter, "%s has no kernel %s; it has %s", recipe_text(recipe).c_str(),
              choice, has.c_str());
}

bool names_processor(const char* choice) {
  return Text(choice) == "cpu" || Text(choice).starts_with("cpu:");
}

int extra_threads(const char* choice, bool now) {
  int n = 0;
  if (!Text(choice).starts_with(kWithCores)) return 0;
  for (const Engine* engine : engines())
    if (engine->extra_threads) n += engine->extra_threads(now);
  return n;
}

const char* cores_engine(const char* choice) {
  return find_memory(choice) != nullptr ? "auto" : choice;
}

}  // namespace wirepress
