// SPDX-License-Identifier: Apache-2.0
#include "choosing/candidates.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "choosing/bounds.hpp"
#include "job/job.hpp"
#include "messages/thread.hpp"

namespace wirepress {
namespace {

constexpr size_t kDTypes = WPR_COMPLEX128 + 1;

bool g_fixed = false;

// What a sender codes bytes as, where the program does not say what they are: mostly doubles.
constexpr const char kOfDoubles[] = " of doubles";

// Recipes that may pay for an element type, the cheap ones first. None loses anything.
std::vector<std::string> recipes_for(wpr_dtype dtype) {
  switch (dtype) {
    case WPR_FLOAT32:
    case WPR_FLOAT64:
      return {"zeros",         dtype == WPR_FLOAT32 ? "bx:m=23" : "bx:m=52",
              "lz4:1",         "planes",
              "zstd:1",        "shuffle+lz4:1",
              "shuffle+zstd:1"};
    case WPR_BYTES:  // whatever was packed: floats or integers of 4 bytes, as often doubles
      return {"zeros",  "bx:m=23", "lz4:1",          "shuffle:8+lz4:1", "planes of doubles",
              "planes", "zstd:1",  "shuffle+zstd:1", "shuffle:8+zstd:1"};
    case WPR_INT8:
    case WPR_UINT8:
    case WPR_BOOL:
      return {"zeros", "lz4:1", "zstd:1"};
    default:
      return {"zeros", "lz4:1", "shuffle+lz4:1", "zstd:1", "shuffle+zstd:1"};
  }
}

// How often a value is coded on its way to where it is used: a reduction codes partial sums, and
// once more the result.
constexpr size_t kMostCodings = 2;
size_t codings(Call call) { return is_reduction(call) ? 2 : 1; }

struct Candidate {
  std::string recipe, name;
  wpr_dtype view = WPR_BYTES;  // that bytes are coded as
  bool lossy = false;
  uint32_t suits = 0;  // a bit for each dtype
};
std::vector<Candidate>& candidates() { return the<std::vector<Candidate>>(); }
using List = std::vector<int>;
using Lists = std::array<std::array<List, kDTypes>, kMostCodings>;
Lists& lists() { return the<Lists>(); }

// Its number; a recipe is listed once. -1: there are too many.
int add_candidate(const std::string& name, wpr_dtype dtype, bool lossy) {
  size_t i = 0;
  while (i < candidates().size() && candidates()[i].name != name) ++i;
  if (i == kMaxCandidates) return -1;
  if (i == candidates().size()) {
    const size_t view = name.find(kOfDoubles);
    candidates().push_back(
        {name.substr(0, view), name, view == std::string::npos ? WPR_BYTES : WPR_FLOAT64, lossy});
  }
  candidates()[i].suits |= 1u << dtype;
  return static_cast<int>(i);
}

// Appends the candidate to the list of messages whose values are coded so often.
void offer(size_t n_codings, wpr_dtype dtype, const std::string& name, bool lossy) {
  const int i = add_candidate(name, dtype, lossy);
  if (i < 0) return;
  List& list = lists()[n_codings - 1][dtype];
  list.insert(lossy ? list.begin() : list.end(), i);
}

// Those of `names` that this build has and that lose nothing, in every list of the type.
void offer_lossless(wpr_ctx* ctx, wpr_dtype dtype, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string recipe = name.substr(0, name.find(kOfDoubles));
    int lossless = 0;
    if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) != WPR_OK || !lossless) continue;
    for (size_t n = 1; n <= kMostCodings; ++n) offer(n, dtype, name, false);
  }
}

// The codecs that keep mpi_error: "fre or bx".
std::string names_of_keepers(const char* between) {
  std::string names;
  for (const Keeper& keeper : keepers(job().bound.kind)) {
    names += (names.empty() ? "" : between) + std::string(keeper.codec);
  }
  return names;
}

}  // namespace

const char* prepare_candidates(wpr_ctx* ctx) {
  static std::string problem;
  Job& j = job();
  g_fixed = j.codec != "auto";
  // Another life of MPI in this process is not possible: the lists are filled once.
  for (const wpr_dtype dtype :
       {WPR_BYTES, WPR_INT8, WPR_UINT8, WPR_INT16, WPR_UINT16, WPR_INT32, WPR_UINT32, WPR_INT64,
        WPR_UINT64, WPR_FLOAT32, WPR_FLOAT64, WPR_BOOL}) {  // those that types.cpp gives
    offer_lossless(ctx, dtype, g_fixed ? std::vector{j.codec} : recipes_for(dtype));
  }
  std::string refusal;
  bool bounded = false;
  for (const wpr_dtype dtype : {WPR_FLOAT32, WPR_FLOAT64}) {
    for (const std::string& recipe : bounded_recipes(j.codec, j.bound, dtype, 1, 2)) {
      int lossless;
      if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) == WPR_OK) {
        bounded = true;
      } else {  // the codec does not take the type, or not the bound
        refusal = wpr_error(ctx);
      }
    }
  }
  if (j.bound.kind == WPR_ERROR_NONE ? !candidates().empty() : bounded) return nullptr;
  const bool relative = j.bound.kind == WPR_ERROR_RELATIVE;
  problem = "mpi_codec: " + j.codec + " is lossy, MPI messages must not change";
  if (g_fixed && !refusal.empty()) {
    problem = "mpi_error: \"" + j.error + "\": " + refusal;
  } else if (!candidates().empty()) {
    problem = "mpi_error: \"" + j.error + "\": mpi_codec " + j.codec +
              " loses nothing, take auto, " + names_of_keepers(" or ") + ", or no mpi_error";
  } else if (j.bound.kind != WPR_ERROR_NONE) {
    problem = "mpi_codec: " + j.codec + ": of codecs that lose something, " +
              names_of_keepers(" and ") +
              (relative ? " keep a relative error, with the m that it takes"
                        : " keep an absolute error, with the bound that it takes");
  }
  return problem.c_str();
}

void prepare_bounded() {
  const Job& j = job();
  if (j.bound.kind == WPR_ERROR_NONE) return;
  const int n_nodes = j.node.empty() ? j.size : 1 + *std::max_element(j.node.begin(), j.node.end());
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);
  if (!ctx) return;
  for (const wpr_dtype dtype : {WPR_FLOAT32, WPR_FLOAT64}) {
    for (size_t n = 1; n <= kMostCodings; ++n) {
      for (const std::string& recipe :
           bounded_recipes(j.codec, j.bound, dtype, static_cast<int>(n), n_nodes)) {
        int lossless = 0;
        if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) != WPR_OK) continue;
        // With all bits a recipe is one of those that lose nothing, which auto has anyway.
        if (!lossless || g_fixed) offer(n, dtype, recipe, !lossless);
      }
    }
  }
  wpr_free(ctx);
}

bool has_fixed_recipe() { return g_fixed; }

bool is_lossy(int candidate) { return candidates()[static_cast<size_t>(candidate)].lossy; }

const List& candidates_for(Call call, wpr_dtype dtype) { return lists()[codings(call) - 1][dtype]; }
size_t n_candidates() { return candidates().size(); }

const char* candidate_recipe(int candidate) {
  return candidates()[static_cast<size_t>(candidate)].recipe.c_str();
}
const char* candidate_name(int candidate) {
  return candidates()[static_cast<size_t>(candidate)].name.c_str();
}
Coded coded_as(int candidate, const Type& type, size_t size) {
  Coded as{type.dtype, type.element};
  const wpr_dtype view = candidates()[static_cast<size_t>(candidate)].view;
  if (type.dtype == WPR_BYTES && view != WPR_BYTES) as = {view, sizeof(double)};
  as.count = size % as.count == 0 ? size / as.count : 0;
  return as;
}
bool suits(int candidate, wpr_dtype dtype) {
  return (candidates()[static_cast<size_t>(candidate)].suits >> dtype & 1) != 0;
}

}  // namespace wirepress
