// SPDX-License-Identifier: Apache-2.0
// Variables WIREPRESS_<KEY> of the environment that are no option.
#pragma once

#include <span>
#include <string>

namespace wirepress {

// Keys of the files variables.inc: variables that some part reads though they are no options, or
// that mean something to others. Generated like option_rows().
std::span<const char* const> other_variables();

// One sentence that names the variables of the process which nobody reads, each with the known one
// that it may be a slip of; "": there are none.
std::string unknown_variables();

}  // namespace wirepress
