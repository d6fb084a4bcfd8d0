// SPDX-License-Identifier: Apache-2.0
#include "store/policy.hpp"

#include <cstring>

namespace wirepress::store {
namespace {

// Policy compressed: a servant makes one wirepress frame of a raw frame.
class Compressed : public Policy {
 public:
  using Policy::Policy;
  Status pack(Codec& codec, Slot& slot, Kind* kind, ConstBytes* payload) const override {
    WPR_TRY(codec.compress(slot.data.data(), payload));
    *kind = Kind::kFrame;
    return {};
  }
};

// Policy in-worker: callers make and expand a wirepress frame of each tile.
class InWorker : public Policy {
 public:
  using Policy::Policy;
  size_t slot_size(const Codec& codec, bool direct) const override {
    return tiles_head_size(grid_.n_tiles()) + grid_.n_tiles() * codec.tile_bound(grid_) +
           (direct ? 3 * kBlock : 0);  // payloads are read into it
  }
  bool packs_tiles() const override { return true; }

  void begin(Slot* slot) const override { slot->used = tiles_head_size(grid_.n_tiles()); }

  Status put_tile(CallerCodecs& callers, const CallerTile& tile, const std::byte* src, Slot* slot,
                  Times* times) const override {
    const double began = now();
    CallerCodecs::Loan codec(callers);
    WPR_TRY(codec.borrow());
    ConstBytes payload;
    WPR_TRY(codec->compress_tile(grid_, grid_.tile(tile.number), src, tile.strides, &payload));
    std::byte* frame = slot->data.data();
    const size_t at = slot->used.fetch_add(payload.size());
    std::memcpy(frame + at, payload.data(), payload.size());
    write_tile_entry(tile.number, at, payload.size(), frame);
    times->compress = now() - began;
    return {};
  }

  void complete(Slot* slot) const override { write_tiles_head(grid_, slot->data.data()); }

  Status pack(Codec&, Slot& slot, Kind* kind, ConstBytes* payload) const override {
    *kind = Kind::kTiles;
    *payload = {slot.data.data(), slot.used.load()};
    return {};
  }

  // Callers expand the tiles, so only the payload is read; not that of other tiles, or of a frame.
  Status read(Codec& codec, const Source& source, const Entry& entry, Slot* slot, Times* times,
              bool* done) const override {
    WPR_TRY(codec.load_tiles(source, slot->step, entry.offset, entry.end(), grid_,
                             {slot->data.data(), slot->data.size()}, &slot->tiles, times));
    *done = !slot->tiles.empty();
    return {};
  }
};

}  // namespace

std::unique_ptr<Policy> Policy::make(wpr_store_policy policy, const Grid& grid, const Head& head) {
  if (policy == WPR_STORE_COMPRESSED) return std::make_unique<Compressed>(grid, head);
  if (policy == WPR_STORE_IN_WORKER) return std::make_unique<InWorker>(grid, head);
  return std::make_unique<Policy>(grid, head);
}

Status Policy::put_tile(CallerCodecs&, const CallerTile& tile, const std::byte* src, Slot* slot,
                        Times* times) const {
  const double began = now();
  copy_to_frame(grid_, tile, src, slot->data.data());
  times->copy = now() - began;
  return {};
}

Status Policy::pack(Codec&, Slot& slot, Kind* kind, ConstBytes* payload) const {
  *kind = Kind::kRaw;
  *payload = {slot.data.data(), raw_size_};
  return {};
}

void copy_to_frame(const Grid& grid, const CallerTile& tile, const std::byte* src,
                   std::byte* frame) {
  const Tile box = grid.tile(tile.number);
  copy_box(box.box, grid.element_size(), src, tile.strides, frame + box.offset, grid.strides());
}

void copy_from_frame(const Grid& grid, const CallerTile& tile, const std::byte* frame,
                     std::byte* dst) {
  const Tile box = grid.tile(tile.number);
  copy_box(box.box, grid.element_size(), frame + box.offset, grid.strides(), dst, tile.strides);
}

}  // namespace wirepress::store
