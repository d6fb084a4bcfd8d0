// SPDX-License-Identifier: Apache-2.0
#include "store/codec.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstring>

namespace wirepress::store {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status Codec::open(const Head& head, const Settings& settings) {
  head_ = head;
  wpr_status status = wpr_create(&context_);
  if (!context_) return fail(Code::kNoMemory, "no memory");
  const auto set = [&](const char* key, const std::string& value) {
    if (status == WPR_OK) status = wpr_set(context_, key, value.c_str());
  };
  // A servant is a thread, and a record's checksum covers the frame in it.
  set("threads", "1");
  set("checksum", "off");
  for (size_t i = 0; i + 1 < settings.options.size(); i += 2)
    set(settings.options[i].c_str(), settings.options[i + 1]);
  if (!settings.engine.empty()) set("engine", settings.engine);
  if (!settings.recipe.empty()) set("recipe", settings.recipe);
  std::byte frame[WPR_MAX_HEADER];  // an empty one: whether the recipe takes the type
  const uint64_t none = 0;
  size_t size;
  if (status == WPR_OK)
    status = wpr_compress_array(context_, nullptr, head.dtype, WPR_NO_SHAPE, &none, frame,
                                sizeof frame, &size);
  if (status != WPR_OK) return failed(status);
  bound_ = wpr_bound(context_, head.raw_size);
  return {};
}

namespace {

// Grows only, and not both at once.
std::byte* grown(Buffer* buffer, size_t size) {
  if (buffer->size() < size) {
    *buffer = Buffer();
    *buffer = Buffer(size, kBlock);
  }
  return buffer->data();
}

}  // namespace

Status Codec::failed(wpr_status status) const {
  return fail(static_cast<Code>(status), "%s", wpr_error(context_));
}

std::byte* Codec::staging(size_t size) { return grown(&staging_, size); }
std::byte* Codec::gathered(size_t size) { return grown(&gathered_, size); }

Status Codec::compress(const std::byte* raw, ConstBytes* payload) {
  std::byte* dst = staging(bound_);
  size_t written = 0;
  const wpr_status status = wpr_compress_array(context_, raw, head_.dtype, head_.n_dims,
                                               head_.shape, dst, bound_, &written);
  if (status != WPR_OK) return failed(status);
  *payload = {dst, written};
  return {};
}

Status Codec::compress_tile(const Grid& grid, const Tile& tile, const std::byte* src,
                            const Strides& strides, ConstBytes* payload) {
  if (!is_packed(tile.box, strides, grid.element_size())) {
    std::byte* copy = gathered(grid.largest());
    copy_box(tile.box, grid.element_size(), src, strides, copy,
             packed(tile.box, grid.element_size()));
    src = copy;
  }
  const size_t room = tile_bound(grid);
  std::byte* dst = staging(room);
  size_t written = 0;
  const wpr_status status = wpr_compress_array(context_, src, head_.dtype, head_.n_dims,
                                               grid.shape_of(tile), dst, room, &written);
  if (status != WPR_OK) return failed(status);
  *payload = {dst, written};
  return {};
}

Status Codec::expand_shape(ConstBytes payload, int n_dims, const uint64_t* shape, uint64_t size,
                           std::byte* dst) {
  wpr_info info;
  size_t written = 0;
  wpr_status status = wpr_inspect(context_, payload.data(), payload.size(), &info);
  if (status != WPR_OK) return failed(status);
  if (info.dtype != head_.dtype || info.n_dims != n_dims ||
      !std::equal(info.shape, info.shape + n_dims, shape))
    return fail(Code::kCorrupt, "the frame has another type or shape than the store");
  status = wpr_decompress(context_, payload.data(), payload.size(), dst, size, &written);
  if (status != WPR_OK) return failed(status);
  if (written != size)
    return fail(Code::kCorrupt, "the frame holds %zu bytes, not %" PRIu64, written, size);
  return {};
}

Status Codec::expand(ConstBytes payload, std::byte* raw) {
  return expand_shape(payload, head_.n_dims, head_.shape, head_.raw_size, raw);
}

Status Codec::expand_tile(const Grid& grid, const Tile& tile, ConstBytes payload, std::byte* dst,
                          const Strides& strides) {
  const uint64_t* shape = grid.shape_of(tile);
  if (is_packed(tile.box, strides, grid.element_size()))
    return expand_shape(payload, head_.n_dims, shape, tile.size, dst);
  std::byte* copy = gathered(grid.largest());
  WPR_TRY(expand_shape(payload, head_.n_dims, shape, tile.size, copy));
  copy_box(tile.box, grid.element_size(), copy, packed(tile.box, grid.element_size()), dst,
           strides);
  return {};
}

Status Codec::expand_tiles(const Grid& grid, std::span<const ConstBytes> tiles, std::byte* raw) {
  for (uint64_t i = 0; i < tiles.size(); ++i) {
    const Tile tile = grid.tile(i);
    const Status status = expand_tile(grid, tile, tiles[i], raw + tile.offset, grid.strides());
    if (!status.ok()) return fail(status.code(), "tile %" PRIu64 ": %s", i, status.text());
  }
  return {};
}

Status Codec::expand_any(Kind kind, ConstBytes payload, std::byte* raw) {
  if (kind == Kind::kFrame) return expand(payload, raw);
  if (kind == Kind::kTiles) {
    Grid grid;
    std::vector<ConstBytes> tiles;
    WPR_TRY(read_tiles(payload, head_, &grid, &tiles));
    return expand_tiles(grid, tiles, raw);
  }
  std::memcpy(raw, payload.data(), head_.raw_size);
  return {};
}

namespace {

// The blocks that a record lies in.
struct Blocks {
  uint64_t first;
  size_t size;
  Blocks(uint64_t offset, uint64_t end)
      : first(offset / kBlock * kBlock), size((end - first + kBlock - 1) / kBlock * kBlock) {}
};

// The bytes from offset to end, in room, past the page cache; none: they are to be read otherwise.
ConstBytes read_direct(const Source& source, uint64_t offset, uint64_t end, Bytes room) {
  const Blocks blocks(offset, end);
  if (room.size() < blocks.size || reinterpret_cast<uintptr_t>(room.data()) % kBlock != 0 ||
      !source.direct->read_blocks(blocks.first, room.first(blocks.size), end - blocks.first))
    return {};
  return room.subspan(offset - blocks.first, end - offset);
}

}  // namespace

// whole: the record where it was read already, else nothing.
Status Codec::head_of(const File& file, ConstBytes whole, uint64_t step, uint64_t offset,
                      uint64_t file_size, Record* record) {
  std::byte bytes[kRecordSize];
  if (whole.empty()) {
    WPR_TRY(file.read(offset, bytes));
  } else {
    std::memcpy(bytes, whole.data(), kRecordSize);
  }
  if (!read_record(bytes, head_, offset, file_size, record) || record->step != step ||
      record->kind == Kind::kIndex)
    return fail(Code::kChecksum,
                "%s: step %" PRIu64 ": the record's head at %" PRIu64 " is damaged", file.path(),
                step, offset);
  // Blocks of 1 KiB cost 8 bytes each, and no frame costs more; a tile has an entry and a header.
  uint64_t most = head_.raw_size + head_.raw_size / 64 + WPR_MAX_HEADER + 64;
  if (record->kind == Kind::kTiles) most += kMostTiles * (WPR_MAX_HEADER + 64);
  if (record->stored_size <= most) return {};
  return fail(Code::kCorrupt,
              "%s: step %" PRIu64 ": %" PRIu64 " bytes for a frame of at most %" PRIu64,
              file.path(), step, record->stored_size, most);
}

Status Codec::payload_of(const File& file, ConstBytes whole, uint64_t step, uint64_t offset,
                         const Record& record, Bytes room, ConstBytes* payload) {
  if (whole.empty()) {
    WPR_TRY(file.read(offset + kRecordSize, room.first(record.stored_size)));
    *payload = room.first(record.stored_size);
  } else {
    *payload = whole.subspan(kRecordSize, record.stored_size);
  }
  if (checksum(*payload, head_.id) == record.checksum) return {};
  return fail(Code::kChecksum,
              "%s: step %" PRIu64 ": the checksum of its %" PRIu64 " bytes at %" PRIu64
              " does not match",
              file.path(), step, record.stored_size, offset + kRecordSize);
}

Status Codec::load(const Source& source, uint64_t step, uint64_t offset, uint64_t file_size,
                   std::byte* raw, Times* times) {
  const double began = now();
  const File& file = source.file;
  ConstBytes whole, payload;
  // No more memory than a frame can need, whatever the file says of it.
  const size_t blocks = Blocks(offset, file_size).size;
  if (source.direct && blocks <= room(true))
    whole = read_direct(source, offset, file_size, {staging(blocks), blocks});
  Record record;
  WPR_TRY(head_of(file, whole, step, offset, file_size, &record));
  const bool packed_up = record.kind != Kind::kRaw;
  std::byte* to = whole.empty() && packed_up ? staging(record.stored_size) : raw;
  WPR_TRY(payload_of(file, whole, step, offset, record, {to, record.stored_size}, &payload));
  if (!packed_up && !whole.empty()) std::memcpy(raw, payload.data(), head_.raw_size);
  const double middle = now();
  times->read += middle - began;
  if (!packed_up) return {};
  const Status status = expand_any(record.kind, payload, raw);
  times->expand += now() - middle;
  if (!status.ok())
    return fail(status.code(), "%s: step %" PRIu64 ": %s", file.path(), step, status.text());
  return {};
}

Status Codec::load_tiles(const Source& source, uint64_t step, uint64_t offset, uint64_t file_size,
                         const Grid& grid, Bytes room, std::vector<ConstBytes>* tiles,
                         Times* times) {
  const double began = now();
  const File& file = source.file;
  tiles->clear();
  ConstBytes whole, payload;
  if (source.direct) whole = read_direct(source, offset, file_size, room);
  Record record;
  WPR_TRY(head_of(file, whole, step, offset, file_size, &record));
  if (record.kind != Kind::kTiles || record.stored_size > room.size()) return {};
  WPR_TRY(payload_of(file, whole, step, offset, record, room, &payload));
  times->read += now() - began;
  Grid found;
  const Status status = read_tiles(payload, head_, &found, tiles);
  if (!status.ok())
    return fail(status.code(), "%s: step %" PRIu64 ": %s", file.path(), step, status.text());
  if (!(found == grid)) tiles->clear();
  return {};
}

}  // namespace wirepress::store
