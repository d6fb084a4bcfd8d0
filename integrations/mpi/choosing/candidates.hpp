// SPDX-License-Identifier: Apache-2.0
// The recipes that messages of a call and an element type may be compressed with.
#pragma once

#include <cstddef>
#include <vector>

#include "messages/types.hpp"
#include "recording/calls.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// Turns mpi_codec and mpi_error into candidates. nullptr, or why that is not possible.
const char* prepare_candidates(wpr_ctx* ctx);
// Once the nodes are known: how often a value is coded may depend on their number.
void prepare_bounded();

bool has_fixed_recipe();  // mpi_codec names one: nothing is to be chosen
const std::vector<int>& candidates_for(Call call, wpr_dtype dtype);
size_t n_candidates();
const char* candidate_recipe(int candidate);
const char* candidate_name(int candidate);  // the recipe, and the type that it takes bytes for
bool is_lossy(int candidate);
// Whether the candidate may be given data of this type: not every recipe is lossless for each.
bool suits(int candidate, wpr_dtype dtype);

// How the codec is given `size` bytes of the type. count 0: no whole number of elements.
struct Coded {
  wpr_dtype dtype;
  uint64_t count;
};
Coded coded_as(int candidate, const Type& type, size_t size);

}  // namespace wirepress
