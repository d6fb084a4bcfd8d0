// SPDX-License-Identifier: Apache-2.0
// One thread's way between a frame's raw bytes and a record's payload, with its buffer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "store/file.hpp"
#include "store/tiles.hpp"

namespace wirepress::store {

// Seconds of a thread; copy: between a caller and a buffer.
struct Times {
  double compress = 0, write = 0, read = 0, expand = 0, copy = 0;
};

double now();  // seconds, monotonic

// Options of a codec's context; a recipe or an engine that is empty: the option's value.
struct Settings {
  std::string recipe, engine;
  std::vector<std::string> options;  // key, value, ...
};

// Where records are; direct: the same file past the page cache, or NULL.
struct Source {
  const File& file;
  const File* direct = nullptr;
};

class Codec {
 public:
  Codec() = default;
  ~Codec() { wpr_free(context_); }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // Fails where the recipe does not take the dtype.
  Status open(const Head& head, const Settings& settings);
  bool is_open() const { return context_ != nullptr; }
  size_t bound() const { return bound_; }  // of a payload
  // Of the buffer that holds one: what is read directly is whole blocks.
  size_t room(bool direct) const { return bound_ + (direct ? 3 * kBlock : 0); }

  // The payload lies in this object until its next call.
  Status compress(const std::byte* raw, ConstBytes* payload);
  // payload may be anything; raw has the head's raw_size bytes.
  Status expand(ConstBytes payload, std::byte* raw);
  // The same of one tile. What does not lie side by side is gathered first, in this object.
  Status compress_tile(const Grid& grid, const Tile& tile, const std::byte* src,
                       const Strides& strides, ConstBytes* payload);
  Status expand_tile(const Grid& grid, const Tile& tile, ConstBytes payload, std::byte* dst,
                     const Strides& strides);
  Status expand_tiles(const Grid& grid, std::span<const ConstBytes> tiles, std::byte* raw);
  // The payload of a record, or of one in memory, to a frame.
  Status expand_any(Kind kind, ConstBytes payload, std::byte* raw);
  size_t tile_bound(const Grid& grid) const { return wpr_bound(context_, grid.largest()); }

  // Reads the record of a step at `offset` and writes its frame to raw.
  Status load(const Source& source, uint64_t step, uint64_t offset, uint64_t file_size,
              std::byte* raw, Times* times);
  // Reads its payload only and finds its tiles in it. None: it has not the tiles of this grid.
  Status load_tiles(const Source& source, uint64_t step, uint64_t offset, uint64_t file_size,
                    const Grid& grid, Bytes room, std::vector<ConstBytes>* tiles, Times* times);

 private:
  Status failed(wpr_status status) const;
  std::byte* staging(size_t size);
  std::byte* gathered(size_t size);
  Status expand_shape(ConstBytes payload, int n_dims, const uint64_t* shape, uint64_t size,
                      std::byte* dst);
  Status head_of(const File& file, ConstBytes whole, uint64_t step, uint64_t offset,
                 uint64_t file_size, Record* record);
  Status payload_of(const File& file, ConstBytes whole, uint64_t step, uint64_t offset,
                    const Record& record, Bytes room, ConstBytes* payload);

  wpr_ctx* context_ = nullptr;
  Head head_;
  size_t bound_ = 0;
  Buffer staging_, gathered_;
};

}  // namespace wirepress::store
