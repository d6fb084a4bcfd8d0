// SPDX-License-Identifier: Apache-2.0
// Pictures of wiggles, PNG, and arrays as NumPy reads them.
#pragma once

#include <string>
#include <vector>

#include "field.hpp"

namespace rtm {

// Values in rows from the top; white is 0, red positive, blue negative. The scale is the value that
// 1 of 100 exceed. Enlarged to at least 400 pixels.
void write_png(const std::string& path, const std::vector<float>& values, int width, int height);
void write_npy(const std::string& path, const std::vector<float>& values, Size size);

// Divides each row by its mean size over some rows around it.
void level_rows(std::vector<float>* values, int width);

// Less of the long waves that correlating turning waves leaves: the Laplacian, with its sign
// turned.
std::vector<float> sharpened(const std::vector<float>& image, Size size);

}  // namespace rtm
