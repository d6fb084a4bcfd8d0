// SPDX-License-Identifier: Apache-2.0
// A recipe: codecs in order with their parameters. As text: "shuffle:4+zstd:1", "fre:m=6".
#pragma once

#include <string>

#include "frame/frame.hpp"

namespace wirepress {

struct Recipe {
  struct Step {
    const Entry* entry;
    const Kernel* kernel;
    Args args;
  };
  int n_steps = 0;
  Step step[kMaxStages];

  bool lossless() const;
};

// Reads the text for data of `dtype`; kParameter lists the known codecs, parameters or words.
// `engine` is the option's value.
Status parse_recipe(const char* text, DType dtype, const char* engine, Recipe* recipe);

// The recipe that a header or a block names, for the data that the header describes; kUnsupported
// for an unknown codec, and one without a kernel of the engine or of the variant that `engine`
// names, but among those of the processor; kCorrupt for parameters that the codec's document does
// not allow.
Status recipe_of(const Stages& stages, const Header& header, const char* engine, Recipe* recipe);

Stages stages_of(const Recipe& recipe);

// Whether its first codec is one that wants whole rows of an array.
bool wants_slabs(const Recipe& recipe);
// Gives that codec the array's shape, where the header's blocks are whole rows.
void tell_shape(const Header& header, Recipe* recipe);

// The shortest text that parse_recipe reads back to the same recipe for any dtype.
std::string recipe_text(const Recipe& recipe);

// An error where `choice` names no engine, or no kernel of any codec. Sets up the device of an
// engine that has one; that it cannot is an error where `choice` ends in "!". `verify` as in
// Engine::select.
Status check_engine(const char* choice, bool verify);
// Whether no codec of the recipe has a kernel that `choice` names, so that others run in its place.
bool lacks_kernel(const Recipe& recipe, const char* choice);
// Where the choice names a variant that no codec of the recipe has: a sentence that says so.
Status check_variant(const Recipe& recipe, const char* choice);
// Whether kernels of the processor are named: another one of them has the same bytes.
bool names_processor(const char* choice);
// Threads that wait for a device's codes while the cores work, where `choice` is "cores+...":
// Engine::extra_threads.
int extra_threads(const char* choice, bool now);
// The choice of kernels that the cores run beside those of a device whose memory holds the data.
const char* cores_engine(const char* choice);

}  // namespace wirepress
