// SPDX-License-Identifier: Apache-2.0
// Settings, and whole frames.
#include "pipeline/context.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace wirepress {
namespace {

constexpr size_t kMaxChains = 8;

unsigned long long ull(uint64_t value) { return value; }

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
  if (name == "engine" || name == "verify")
    return check_engine(options.get("engine"), options.number("verify") != 0);
  if (name == "block_size" && !std::has_single_bit(options.number(key)))
    return fail(Code::kParameter, "block_size: %s is not a power of two", value);
  return {};
}

}  // namespace

Status Context::read_environment() {
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
  return first;
}

Status Context::set(const char* key, const char* value) {
  Options changed = options_;
  WPR_TRY(changed.set(key, value));
  WPR_TRY(check_option(changed, key));
  options_ = std::move(changed);
  settled_ = false;
  return {};
}

int Context::n_workers() const {
  const uint64_t wanted = options_.number("threads");
  return wanted ? static_cast<int>(wanted) : usable_cores();
}

Status Context::settle() {
  if (settled_) return {};
  settings_ = {.checksum = options_.number("checksum") != 0,
               .probe = options_.number("probe") != 0,
               .block_log = std::countr_zero(options_.number("block_size")),
               .threads = n_workers(),
               .seed = options_.number("seed")};
  settled_ = true;
  return {};
}

Status Context::chain_for(const Recipe& recipe, int threads, ChainPointer* chain) {
  for (size_t i = chains_.size(); i-- > 0;) {
    if (!chains_[i]->matches(recipe, threads)) continue;
    std::rotate(chains_.begin() + static_cast<ptrdiff_t>(i),
                chains_.begin() + static_cast<ptrdiff_t>(i) + 1, chains_.end());
    *chain = chains_.back();
    return {};
  }
  if (chains_.size() == kMaxChains) chains_.erase(chains_.begin());
  chains_.push_back(std::make_shared<Chain>(recipe, threads));
  *chain = chains_.back();
  return {};
}

size_t Context::bound(uint64_t raw_size) const {
  const uint64_t block_size = options_.number("block_size");
  // A block of whole rows may be little more than half as large.
  return kMaxHeader + raw_size + 8 * (2 * raw_size / block_size + 1);
}

// Plain bytes are taken as float32 by codecs that lose: what is no float32 would come back as other
// bytes, so the caller has to name the type. (Frames of such bytes are still read.)
Status Context::recipe_for(const Header& header, Recipe* recipe) const {
  const char* text = options_.get("recipe");
  WPR_TRY(parse_recipe(text, header.dtype, options_.get("engine"), recipe));
  if (header.dtype != DType::kBytes || recipe->lossless()) return {};
  return fail(Code::kParameter,
              "recipe %s changes values, and the data are bytes of no stated type: state their "
              "dtype, such as float32, or take a recipe that loses nothing",
              text);
}

Status Context::lossless(const char* text, DType dtype, bool* answer) const {
  if (is_auto(text)) {
    Goal goal;
    WPR_TRY(parse_goal(text, options_.rate("link"), &goal));
    *answer = (goal.rel == 0 && goal.abs == 0) || !is_float(dtype);
    return {};
  }
  Recipe recipe;
  WPR_TRY(parse_recipe(text, dtype, options_.get("engine"), &recipe));
  *answer = recipe.lossless();
  return {};
}

Status Context::begin_frame(const Recipe& plain, Header* header, ChainPointer* chain, Bytes dst) {
  Recipe recipe = plain;
  header->checksum = settings_.checksum;
  header->block_log = settings_.block_log;
  header->slabs = header->slabs || (wants_slabs(recipe) && can_be_slabs(*header));
  tell_shape(*header, &recipe);
  WPR_TRY(chain_for(recipe, settings_.threads, chain));
  header->stages = stages_of(recipe);
  size_t size;
  return write_header(header, dst, &size);
}

Status Context::compress(ConstBytes src, Header header, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  WPR_TRY(settle());
  if (wants_auto()) {
    WPR_TRY(compress_auto(src, header, dst, written));
  } else {
    Recipe recipe;
    ChainPointer chain;
    WPR_TRY(recipe_for(header, &recipe));
    WPR_TRY(begin_frame(recipe, &header, &chain, dst));
    size_t size;
    const PlainBlocks blocks(header, settings_, *chain, {}, 0, src, false);
    WPR_TRY(make_blocks(blocks, settings_.threads, dst.subspan(header.size), &size));
    *written = header.size + size;
  }
  stats_.raw_bytes += src.size();
  stats_.wire_bytes += *written;
  return {};
}

// The chooser ready, the header's blocks as its candidates want them, and the recipe of a frame
// about which nothing is known yet.
Status Context::begin_auto(Choice* choice, Header* header, Recipe* store) {
  Goal goal;
  const char* text = wants_auto() ? options_.get("recipe") : "auto";
  WPR_TRY(parse_goal(text, options_.rate("link"), &goal));
  header->block_log = settings_.block_log;
  WPR_TRY(choice->chooser.begin(goal, *header, options_.get("engine")));
  header->slabs = choice->chooser.wants_slabs() && can_be_slabs(*header);
  choice->chains.clear();
  return parse_recipe("store", header->dtype, "auto", store);
}

Status Context::choose_groups(const Header& header, int threads, ConstBytes src, Choice* choice) {
  auto& [chooser, groups, chains] = *choice;
  groups.clear();
  const size_t block_size = header.block_size(), group_size = kGroupBlocks * block_size;
  for (size_t at = 0; at < src.size(); at += group_size) {
    const ConstBytes group = src.subspan(at, std::min(group_size, src.size() - at));
    Recipe recipe;
    ChainPointer chain;
    WPR_TRY(chooser.choose(group, block_size, &recipe));
    WPR_TRY(chain_for(recipe, threads, &chain));
    if (std::ranges::find(chains, chain) == chains.end()) {
      if (chains.size() == kMaxOwnRecipes)
        chain = chains.front();
      else
        chains.push_back(chain);
    }
    groups.push_back(chain);
  }
  return {};
}

Status Context::compress_auto(ConstBytes src, Header header, Bytes dst, size_t* written) {
  Recipe first;
  ChainPointer chain;
  WPR_TRY(begin_auto(&choice_, &header, &first));
  WPR_TRY(choose_groups(header, settings_.threads, src, &choice_));
  std::vector<ChainPointer>& groups = choice_.groups;
  if (!groups.empty()) first = groups.front()->recipe();
  WPR_TRY(begin_frame(first, &header, &chain, dst));
  for (ChainPointer& group : groups)
    if (group->matches(chain->recipe(), settings_.threads)) group = chain;
  size_t size;
  const PlainBlocks blocks(header, settings_, *chain, groups, 0, src, false);
  WPR_TRY(make_blocks(blocks, settings_.threads, dst.subspan(header.size), &size));
  *written = header.size + size;
  return {};
}

Status Context::explain(ConstBytes src, Header header,
                        void (*row)(void* seen, const Explained& group), void* seen) {
  WPR_TRY(settle());
  Recipe recipe;
  WPR_TRY(begin_auto(&choice_, &header, &recipe));
  const size_t block_size = header.block_size(), group_size = kGroupBlocks * block_size;
  for (size_t at = 0; at < src.size(); at += group_size) {
    const size_t size = std::min(group_size, src.size() - at);
    WPR_TRY(choice_.chooser.choose(src.subspan(at, size), block_size, &recipe));
    row(seen, {at, size, choice_.chooser});
  }
  return {};
}

Status Context::compress_feedback(ConstBytes src, Bytes residual, Header header, Bytes dst,
                                  size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (header.dtype != DType::kFloat32)
    return fail(Code::kParameter, "error feedback is for float32, not %s",
                dtype_name(header.dtype));
  if (dst.size() < bound(src.size())) {
    return fail(Code::kDstTooSmall, "error feedback needs a dst of bound() = %zu bytes, not %zu",
                bound(src.size()), dst.size());
  }
  WPR_TRY(settle());
  if (wants_auto())
    return fail(Code::kParameter, "error feedback needs a recipe that names its codec, not auto");
  Recipe recipe;
  ChainPointer chain;
  WPR_TRY(recipe_for(header, &recipe));
  WPR_TRY(begin_frame(recipe, &header, &chain, dst));
  size_t size;
  const FeedbackBlocks blocks(header, settings_, *chain, src, residual);
  WPR_TRY(make_blocks(blocks, settings_.threads, dst.subspan(header.size), &size));
  *written = header.size + size;
  stats_.raw_bytes += src.size();
  stats_.wire_bytes += *written;
  return {};
}

Status Context::add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  WPR_TRY(settle());
  Header header, other;
  WPR_TRY(read_header(a, &header));
  WPR_TRY(read_header(b, &other));
  if (header.size != other.size || std::memcmp(a.data(), b.data(), header.size) != 0)
    return fail(Code::kParameter, "the two frames differ in recipe, type, shape or block size");
  if (header.streamed || header.dtype != DType::kFloat32)
    return fail(Code::kParameter, "only frames of float32 that are no streams can be added");
  if (dst.size() < bound(header.raw_size)) {
    return fail(Code::kDstTooSmall, "the sum needs a dst of bound() = %zu bytes, not %zu",
                bound(header.raw_size), dst.size());
  }
  Recipe recipe;
  ChainPointer chain;
  WPR_TRY(recipe_of(header.stages, header, options_.get("engine"), &recipe));
  WPR_TRY(chain_for(recipe, settings_.threads, &chain));
  if (!chain->can_add())
    return fail(Code::kUnsupported, "%s: codes of it cannot be added",
                recipe.step[0].entry->codec->name);
  std::vector<ChainPointer> keep_alive;
  std::vector<SumBlocks::Term> terms[2];
  for (const int t : {0, 1}) {
    uint64_t raw_size;
    WPR_TRY(walk(header, t ? b : a, &raw_size));
    WPR_TRY(find_chains(header, chain, settings_.threads, &blocks_, &block_chains_));
    for (size_t i = 0; i < blocks_.size(); ++i)
      terms[t].push_back({blocks_[i], block_chains_[block_chains_.size() > 1 ? i : 0].get()});
    keep_alive.insert(keep_alive.end(), block_chains_.begin(), block_chains_.end());
  }
  size_t head, size;
  WPR_TRY(write_header(&header, dst, &head));
  const SumBlocks blocks(header, settings_, *chain, terms[0], terms[1]);
  WPR_TRY(make_blocks(blocks, settings_.threads, dst.subspan(head), &size));
  *written = head + size;
  return {};
}

Status Context::inspect(ConstBytes frame, Header* header, std::string* recipe) {
  Header result;
  WPR_TRY(read_header(frame, &result));
  Recipe steps;
  WPR_TRY(recipe_of(result.stages, result, "auto", &steps));
  *recipe = recipe_text(steps);
  *header = result;
  return {};
}

Status Context::walk(const Header& header, ConstBytes frame, uint64_t* raw_size) {
  blocks_.clear();
  ConstBytes rest = frame.subspan(header.size);
  const uint64_t n_blocks = header.n_blocks();
  uint64_t sum = 0;
  bool last = n_blocks == 0;
  for (uint64_t index = 0; !last; ++index) {
    Block block;
    size_t size;
    WPR_TRY(read_block(header, index, rest, &block, &size));
    blocks_.push_back(block);
    sum += block.raw_size;
    rest = rest.subspan(size);
    last = header.streamed ? block.last : index + 1 == n_blocks;
  }
  if (!rest.empty()) {
    return fail(Code::kCorrupt, "%zu bytes follow the frame's last block (frame of %zu bytes)",
                rest.size(), frame.size() - rest.size());
  }
  *raw_size = sum;
  return {};
}

Status Context::check_room(uint64_t raw_size, Bytes dst) const {
  if (raw_size <= dst.size()) return {};
  return fail(Code::kDstTooSmall, "the frame holds %llu bytes, dst has %zu", ull(raw_size),
              dst.size());
}

Status Context::decompress(ConstBytes frame, Bytes dst, size_t* written) {
  return expand_frame(frame, false, dst, written);
}

Status Context::decompress_add(ConstBytes frame, Bytes dst, size_t* written) {
  return expand_frame(frame, true, dst, written);
}

Status Context::expand_frame(ConstBytes frame, bool add, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.decompress_seconds);
  WPR_TRY(settle());
  Header header;
  WPR_TRY(read_header(frame, &header));
  if (add && header.dtype != DType::kFloat32)
    return fail(Code::kParameter, "only float32 can be added, the frame holds %s",
                dtype_name(header.dtype));
  if (!header.streamed) WPR_TRY(check_room(header.raw_size, dst));
  Recipe recipe;
  WPR_TRY(recipe_of(header.stages, header, options_.get("engine"), &recipe));
  uint64_t raw_size;
  WPR_TRY(walk(header, frame, &raw_size));
  WPR_TRY(check_room(raw_size, dst));
  ChainPointer chain;
  WPR_TRY(chain_for(recipe, settings_.threads, &chain));
  WPR_TRY(expand_blocks(header, chain, settings_.threads, add, dst.first(raw_size)));
  *written = raw_size;
  stats_.expanded_bytes += raw_size;
  return {};
}

Status Context::decompress_range(ConstBytes frame, uint64_t offset, Bytes dst) {
  const Stopwatch watch(&stats_.decompress_seconds);
  WPR_TRY(settle());
  Header header;
  WPR_TRY(read_header(frame, &header));
  Recipe recipe;
  WPR_TRY(recipe_of(header.stages, header, options_.get("engine"), &recipe));
  uint64_t raw_size;
  WPR_TRY(walk(header, frame, &raw_size));
  if (offset > raw_size || dst.size() > raw_size - offset) {
    return fail(Code::kParameter, "bytes %llu..%llu of a frame that holds %llu", ull(offset),
                ull(offset + dst.size()), ull(raw_size));
  }
  if (dst.empty()) return {};
  ChainPointer chain;
  WPR_TRY(chain_for(recipe, settings_.threads, &chain));
  const std::vector<Block> all = std::move(blocks_);
  const uint64_t end = offset + dst.size();
  const uint64_t block_size = header.block_size();
  for (uint64_t index = offset / block_size; index * block_size < end; ++index) {
    const uint64_t begin = index * block_size;
    const Block& block = all[index];
    std::byte* scratch = partial_.reserve(block.raw_size);
    if (!scratch)
      return fail(Code::kNoMemory, "no memory for a block of %llu bytes", ull(block.raw_size));
    blocks_.assign(1, block);
    WPR_TRY(expand_blocks(header, chain, settings_.threads, false, {scratch, block.raw_size}));
    const uint64_t from = std::max(begin, offset), to = std::min(begin + block.raw_size, end);
    std::memcpy(dst.data() + (from - offset), scratch + (from - begin), to - from);
  }
  stats_.expanded_bytes += dst.size();
  return {};
}

}  // namespace wirepress
