// SPDX-License-Identifier: Apache-2.0
// Lossy recipes that keep the bound on the error of results which mpi_error gives.
#pragma once

#include <string>
#include <vector>

#include "job/job.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// A codec's parameter that bounds the error of its values.
struct Keeper {
  const char *codec, *parameter;
};
std::vector<Keeper> keepers(wpr_error_kind kind);

// `codec` is mpi_codec. A value is coded n_codings times.
std::vector<std::string> bounded_recipes(const std::string& codec, const Bound& bound,
                                         wpr_dtype dtype, int n_codings, int n_nodes);

}  // namespace wirepress
