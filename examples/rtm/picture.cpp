// SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace rtm {
namespace {

class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) throw std::runtime_error(path + " cannot be written");
  }
  void write(const void* data, size_t size) {
    if (std::fwrite(data, 1, size, file_.get()) != size)
      throw std::runtime_error(path_ + ": writing failed");
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

std::string big_endian(uint32_t value) {
  std::string bytes(4, 0);
  for (int i = 0; i < 4; ++i)
    bytes[static_cast<size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  return bytes;
}

void write_chunk(File& file, std::string content) {
  const std::string size = big_endian(static_cast<uint32_t>(content.size() - 4));
  content += big_endian(libdeflate_crc32(0, content.data(), content.size()));
  content.insert(0, size);
  file.write(content.data(), content.size());
}

float percentile(std::vector<float> values) {
  for (float& value : values) value = std::fabs(value);
  const auto at = values.begin() + static_cast<ptrdiff_t>(values.size() * 99 / 100);
  std::nth_element(values.begin(), at, values.end());
  return *at > 0 ? *at : std::max(1e-30F, *std::max_element(values.begin(), values.end()));
}

void colour(float value, uint8_t* rgb) {
  const float size = std::min(1.0F, std::fabs(value));
  const auto fade = static_cast<uint8_t>(255 * (1 - size));
  rgb[0] = value < 0 ? fade : 255;
  rgb[1] = fade;
  rgb[2] = value < 0 ? 255 : fade;
}

}  // namespace

void write_png(const std::string& path, const std::vector<float>& values, int width, int height) {
  const int zoom = std::max(1, 400 / std::max(1, std::min(width, height)));
  const float scale = percentile(values);
  const size_t line = 1 + 3 * static_cast<size_t>(width * zoom);
  std::vector<uint8_t> pixels;
  pixels.reserve(line * static_cast<size_t>(height * zoom));
  std::vector<uint8_t> row(line, 0);  // begins with filter 0
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width * zoom; ++x)
      colour(values[static_cast<size_t>(y * width + x / zoom)] / scale,
             row.data() + 1 + 3 * static_cast<size_t>(x));
    for (int i = 0; i < zoom; ++i) pixels.insert(pixels.end(), row.begin(), row.end());
  }
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::string data(libdeflate_zlib_compress_bound(compressor.get(), pixels.size()), 0);
  data.resize(libdeflate_zlib_compress(compressor.get(), pixels.data(), pixels.size(), data.data(),
                                       data.size()));
  File file(path);
  file.write("\x89PNG\r\n\x1a\n", 8);
  write_chunk(file, "IHDR" + big_endian(static_cast<uint32_t>(width * zoom)) +
                        big_endian(static_cast<uint32_t>(height * zoom)) +
                        std::string("\x08\x02\x00\x00\x00", 5));  // 8 bits of red, green and blue
  write_chunk(file, "IDAT" + data);
  write_chunk(file, "IEND");
}

void level_rows(std::vector<float>* values, int width) {
  const auto row = static_cast<size_t>(width);
  const size_t n_rows = values->size() / row, window = std::max<size_t>(2, n_rows / 20);
  std::vector<double> sizes(n_rows, 0);
  double most = 0;
  for (size_t y = 0; y < n_rows; ++y) {
    for (size_t x = 0; x < row; ++x)
      sizes[y] += std::fabs(static_cast<double>((*values)[y * row + x]));
    most = std::max(most, sizes[y]);
  }
  for (size_t y = 0; y < n_rows; ++y) {
    double sum = 1e-6 * most;  // silence stays silent
    size_t n = 0;
    for (size_t i = y > window ? y - window : 0; i < std::min(n_rows, y + window + 1); ++i, ++n)
      sum += sizes[i];
    if (sum == 0) continue;
    const auto scale = static_cast<float>(static_cast<double>(n) / sum);
    for (size_t x = 0; x < row; ++x) (*values)[y * row + x] *= scale;
  }
}

void write_npy(const std::string& path, const std::vector<float>& values, Size size) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(size.z) + ", " + std::to_string(size.y) + ", " +
                       std::to_string(size.x) + "), }";
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);
  head += header;
  File file(path);
  file.write(head.data(), head.size());
  file.write(values.data(), 4 * values.size());
}

std::vector<float> sharpened(const std::vector<float>& image, Size size) {
  std::vector<float> result(image.size(), 0);
  const auto row = static_cast<size_t>(size.x), plane = row * static_cast<size_t>(size.y);
  for (int z = 1; z + 1 < size.z; ++z) {
    for (int y = 1; y + 1 < size.y; ++y) {
      for (int x = 1; x + 1 < size.x; ++x) {
        const size_t i =
            static_cast<size_t>(z) * plane + static_cast<size_t>(y) * row + static_cast<size_t>(x);
        result[i] = 6 * image[i] - image[i - 1] - image[i + 1] - image[i - row] - image[i + row] -
                    image[i - plane] - image[i + plane];
      }
    }
  }
  return result;
}

}  // namespace rtm
