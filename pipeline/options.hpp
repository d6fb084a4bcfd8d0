// SPDX-License-Identifier: Apache-2.0
// The checks of options that take the codecs and engines to know.
#pragma once

#include "base/options.hpp"

namespace wirepress {

// Sets an option to a value that is checked as a whole; after a failure nothing has changed.
Status set_option(Options* options, const char* key, const char* value);

// Takes WIREPRESS_<KEY> variables. An invalid value gives way to the default; the status is that of
// the first one.
Status read_environment(Options* options);

// Whether a recipe must have the variant that the option engine names. One of the processor that
// stands in the environment is a wish, for all recipes of a process.
bool must_have_variant(const Options& options);

}  // namespace wirepress
