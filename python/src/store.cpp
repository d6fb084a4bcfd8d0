// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <algorithm>
#include <wirepress/wirepress.hpp>

#include "buffer.hpp"

namespace nb = nanobind;

namespace wirepress::python {
namespace {

nb::tuple row(const wpr_store_frame& f) {
  return nb::make_tuple(f.step, f.stored_size, f.offset, f.put_wait_seconds, f.get_wait_seconds);
}

}  // namespace

template <class Call>
void Store::run(Call call) {
  wpr_status status;
  {
    const nb::gil_scoped_release released;
    status = call(store_.get());
  }
  if (status != WPR_OK) throw Error(status, wpr_store_error(store_.get()));
}

Store::Store(const std::string& path, const std::string& mode, int dtype,
             const std::vector<uint64_t>& shape, int policy, int on_error,
             const std::string& recipe, uint64_t memory, int servants, const std::vector<int>& pin,
             bool direct, uint64_t reserve, const More& more) {
  wpr_store_config config = {};
  config.dtype = static_cast<wpr_dtype>(dtype);
  config.n_dims = static_cast<int>(shape.size());
  std::copy_n(shape.begin(), std::min<size_t>(shape.size(), WPR_MAX_DIMS), config.shape);
  config.policy = static_cast<wpr_store_policy>(policy);
  config.on_error = static_cast<wpr_store_on_error>(on_error);
  config.recipe = recipe.empty() ? nullptr : recipe.c_str();
  config.memory = memory;
  config.servants = servants;
  config.pin = pin.data();
  config.n_pin = pin.size();
  config.direct = direct;
  config.reserve = reserve;
  std::vector<const char*> options;
  for (const std::string& text : more.options) options.push_back(text.c_str());
  config.engine = more.engine.empty() ? nullptr : more.engine.c_str();
  config.options = options.data();
  config.n_options = options.size();
  config.nodes = more.nodes.data();
  config.n_nodes = more.nodes.size();
  std::copy_n(more.tile.begin(), std::min<size_t>(more.tile.size(), WPR_MAX_DIMS), config.tile);
  wpr_store* store = nullptr;
  wpr_status status;
  {
    const nb::gil_scoped_release released;
    status = mode == "x" ? wpr_store_create(path.c_str(), &config, &store)
                         : wpr_store_open(path.c_str(), mode == "a", &config, &store);
  }
  store_.reset(store);
  if (status != WPR_OK) throw Error(status, store ? wpr_store_error(store) : "no memory");
}

void Store::put(uint64_t step, nb::handle data) {
  const Input input(data);
  run([&](wpr_store* store) { return wpr_store_put(store, step, input.data(), input.size()); });
}

void Store::get(uint64_t step, nb::handle out) {
  const Output output(out);
  run([&](wpr_store* store) { return wpr_store_get(store, step, output.data(), output.size()); });
}

// The shape of a tile gives its size; a wrong one is refused here, for the library sees a pointer.
void Store::put_tile(uint64_t step, uint64_t tile, nb::handle data) {
  const Input input(data);
  expect_tile(tile, input.size());
  run([&](wpr_store* store) {
    return wpr_store_put_tile(store, step, tile, input.data(), nullptr);
  });
}

void Store::get_tile(uint64_t step, uint64_t tile, nb::handle out) {
  const Output output(out);
  expect_tile(tile, output.size());
  run([&](wpr_store* store) {
    return wpr_store_get_tile(store, step, tile, output.data(), nullptr);
  });
}

void Store::expect_tile(uint64_t tile, size_t size) {
  wpr_store_tile found;
  run([&](wpr_store* store) { return wpr_store_tile_at(store, tile, &found); });
  if (size == found.raw_size) return;
  throw Error(WPR_PARAMETER, "tile " + std::to_string(tile) + " has " +
                                 std::to_string(found.raw_size) + " bytes, not " +
                                 std::to_string(size));
}

nb::tuple Store::tile_at(uint64_t tile) {
  wpr_store_info i;
  wpr_store_tile found;
  run([&](wpr_store* store) { return wpr_store_get_info(store, &i); });
  run([&](wpr_store* store) { return wpr_store_tile_at(store, tile, &found); });
  nb::list first, shape;
  for (int dim = 0; dim < i.n_dims; ++dim) {
    first.append(found.first[dim]);
    shape.append(found.shape[dim]);
  }
  return nb::make_tuple(nb::tuple(first), nb::tuple(shape));
}

void Store::prefetch(uint64_t step, int direction) {
  run([&](wpr_store* store) { return wpr_store_prefetch(store, step, direction); });
}

void Store::sync() { run(wpr_store_sync); }
void Store::close() { run(wpr_store_close); }

nb::tuple Store::info() {
  wpr_store_info i;
  run([&](wpr_store* store) { return wpr_store_get_info(store, &i); });
  nb::list shape;
  for (int dim = 0; dim < i.n_dims; ++dim) shape.append(i.shape[dim]);
  return nb::make_tuple(static_cast<int>(i.dtype), nb::tuple(shape), i.raw_size, i.n_frames,
                        i.n_buffers, i.torn_bytes, i.from_index != 0, i.direct != 0, i.n_tiles);
}

nb::tuple Store::stats() {
  wpr_store_stats s;
  run([&](wpr_store* store) { return wpr_store_get_stats(store, &s); });
  return nb::make_tuple(s.puts, s.gets, s.raw_bytes, s.stored_bytes, s.read_ahead, s.dropped,
                        s.spilled, s.buffer_bytes, s.put_wait_seconds, s.put_copy_seconds,
                        s.get_wait_seconds, s.get_copy_seconds, s.longest_put_wait_seconds,
                        s.longest_get_wait_seconds, s.compress_seconds, s.write_seconds,
                        s.read_seconds, s.expand_seconds);
}

nb::list Store::frames() {
  info();
  nb::list rows;
  wpr_store_frame frame;
  for (uint64_t step = 0; wpr_store_frame_from(store_.get(), step, &frame);) {
    rows.append(row(frame));
    step = frame.step + 1;
    if (step == 0) break;  // there is no higher one
  }
  return rows;
}

nb::object Store::frame_from(uint64_t step) {
  wpr_store_frame frame;
  if (wpr_store_frame_from(store_.get(), step, &frame)) return row(frame);
  info();  // which says why, where no question can be answered
  return nb::none();
}

nb::tuple store_check(const std::string& path, bool repair) {
  wpr_store_report r;
  std::vector<wpr_store_record> records;
  char text[512];
  const auto each = [](void* user, const wpr_store_record* record) {
    static_cast<std::vector<wpr_store_record>*>(user)->push_back(*record);
  };
  wpr_status status;
  {
    const nb::gil_scoped_release released;
    status = repair ? wpr_store_repair(path.c_str(), &r, text, sizeof text)
                    : wpr_store_check(path.c_str(), &r, each, &records, text, sizeof text);
  }
  if (status != WPR_OK) throw Error(status, text);
  nb::list rows;
  for (const wpr_store_record& record : records)
    rows.append(nb::make_tuple(record.offset, record.sequence, record.step, record.stored_size,
                               record.kind, static_cast<int>(record.status)));
  return nb::make_tuple(
      nb::make_tuple(r.file_size, r.n_frames, r.damaged, r.good_size, r.torn_bytes, r.index != 0),
      rows);
}

}  // namespace wirepress::python
