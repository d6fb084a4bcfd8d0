// SPDX-License-Identifier: Apache-2.0
// wirepress._core: what python/wirepress/ is built on. Not a public interface.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <wirepress/wirepress.hpp>

#include "buffer.hpp"
#include "context.hpp"
#include "emulated.hpp"
#include "store.hpp"

namespace nb = nanobind;

namespace wirepress::python {
namespace {

void raise(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    const nb::object type =
        nb::module_::import_("wirepress.errors").attr("of_status")(int{error.status()});
    PyErr_SetString(type.ptr(), error.what());
  }
}

// Rows 0, 1, ... of one of the C tables.
template <class Row, class Read, class Convert>
nb::list table(Read read, Convert convert) {
  nb::list rows;
  Row row;
  for (size_t i = 0; read(i, &row); ++i) rows.append(convert(i, row));
  return rows;
}

nb::tuple param_row(const wpr_param_info& param) {
  nb::list words;
  for (int i = 0; param.words && i <= param.max; ++i) words.append(param.words[i]);
  const nb::object fallback = param.real ? nb::object(nb::float_(param.real_fallback))
                                         : nb::object(nb::int_(param.fallback));
  return nb::make_tuple(param.name, param.min, param.max, fallback, nb::tuple(words),
                        param.sentence, param.real != 0, param.bounds);
}

nb::tuple dtypes_of(const wpr_codec_info& codec) {
  nb::list names;
  for (int code = WPR_BYTES; code < 32; ++code)
    if (codec.dtypes >> code & 1) names.append(wpr_dtype_name(static_cast<wpr_dtype>(code)));
  return nb::tuple(names);
}

// Whether kernels are usable may be asked of drivers (wpr_engine_reason): `kernels` false leaves
// them out.
nb::list codecs(bool with_kernels) {
  return table<wpr_codec_info>(wpr_codec_at, [&](size_t codec, const wpr_codec_info& row) {
    const auto params = table<wpr_param_info>(
        [&](size_t i, wpr_param_info* info) { return wpr_codec_param_at(codec, i, info); },
        [](size_t, const wpr_param_info& param) { return param_row(param); });
    const auto kernels = table<wpr_kernel_info>(
        [&](size_t i, wpr_kernel_info* info) {
          return with_kernels ? wpr_codec_kernel_at(codec, i, info) : 0;
        },
        [](size_t, const wpr_kernel_info& kernel) {
          return nb::make_tuple(kernel.engine, kernel.variant, kernel.usable != 0);
        });
    return nb::make_tuple(row.id, row.name, row.sentence, row.lossless != 0, row.exact_encode != 0,
                          row.sparse != 0, row.wants_feedback != 0, dtypes_of(row), params,
                          kernels);
  });
}

nb::list dtypes() {
  nb::list rows;
  for (int code = WPR_BYTES;; ++code) {
    const auto dtype = static_cast<wpr_dtype>(code);
    if (!wpr_dtype_name(dtype)) return rows;
    rows.append(nb::make_tuple(wpr_dtype_name(dtype), wpr_dtype_size(dtype)));
  }
}

nb::list engines() {
  return table<wpr_engine_info>(wpr_engine_at, [](size_t i, const wpr_engine_info& row) {
    const std::string reason = wpr_engine_reason(i);
    return nb::make_tuple(row.name, row.sentence, reason.empty(), reason,
                          std::string(wpr_engine_state(i)), std::string(wpr_engine_refusal(i)));
  });
}

nb::list engine_names() {
  return table<wpr_engine_info>(
      wpr_engine_at, [](size_t, const wpr_engine_info& row) { return nb::str(row.name); });
}

uint64_t engine_clocks(size_t i) { return wpr_engine_clocks(i); }

nb::list options() {
  return table<wpr_option_info>(wpr_option_at, [](size_t, const wpr_option_info& row) {
    return nb::make_tuple(row.key, row.type, row.fallback, row.choices, row.sentence, row.min,
                          row.max);
  });
}

nb::tuple stats_row(Context& context) {
  const wpr_stats s = context.stats();
  return nb::make_tuple(s.raw_bytes, s.wire_bytes, s.blocks, s.bypassed_probe, s.bypassed_size,
                        s.expanded_bytes, s.compress_seconds, s.decompress_seconds);
}

}  // namespace
}  // namespace wirepress::python

NB_MODULE(_core, m) {
  using namespace wirepress::python;  // NOLINT: the module's own names
  nb::register_exception_translator(raise);

  m.attr("UNKNOWN") = WPR_UNKNOWN;
  m.attr("NO_SHAPE") = WPR_NO_SHAPE;
  m.attr("MAX_DIMS") = WPR_MAX_DIMS;
  m.attr("MAX_HEADER") = WPR_MAX_HEADER;
  m.def("version", wirepress::version);
  m.def("take_warning", wirepress::take_warning);
  m.def("dtypes", dtypes);
  m.def("codecs", codecs, nb::arg("kernels") = true);
  m.def("engines", engines);
  m.def("engine_names", engine_names);
  m.def("engine_clocks", engine_clocks, nb::arg("i"));
  m.def("options", options);
  m.def("hash", wirepress::python::hash, nb::arg("data"), nb::arg("seed") = 0);
  m.def("parse_rate", wirepress::parse_rate, nb::arg("text"));

  m.def("place_of", place_of, nb::arg("address"));
  m.def("copy_to", copy_to, nb::arg("address"), nb::arg("data"));
  m.def("copy_from", copy_from, nb::arg("address"), nb::arg("out"));
  m.def("wait_for", wait_for, nb::arg("address"), nb::arg("stream"));
  m.def("device_alloc", device_alloc, nb::arg("engine"), nb::arg("device"), nb::arg("size"));
  m.def("device_free", device_free, nb::arg("address"));
  m.def("device_work", [] {
    const wpr_device_work work = wirepress::device_work();
    return nb::make_tuple(work.device_bytes, work.cores_bytes, work.reason);
  });

  nb::class_<Memory>(m, "Memory")
      .def(nb::init<nb::object, uintptr_t, size_t, bool>(), nb::arg("owner").none(),
           nb::arg("address"), nb::arg("size"), nb::arg("writable"));
  nb::class_<Array>(m, "Array")
      .def(nb::init<nb::handle, bool>(), nb::arg("dlpack"), nb::arg("writable") = false)
      .def_prop_ro("address",
                   [](const Array& array) { return reinterpret_cast<uintptr_t>(array.data()); })
      .def_prop_ro("size", &Array::size)
      .def_prop_ro("shape", &Array::shape)
      .def_prop_ro("type", &Array::type);

  nb::class_<Context>(m, "Context")
      .def(nb::init<>())
      .def("set", &Context::set, nb::arg("key"), nb::arg("value"))
      .def("get", &Context::get, nb::arg("key"))
      .def("number", &Context::number, nb::arg("key"))
      .def("error_bound", &Context::error_bound, nb::arg("key"))
      .def("origin", &Context::origin, nb::arg("key"))
      .def("compress", &Context::compress, nb::arg("data"), nb::arg("dtype"), nb::arg("n_dims"),
           nb::arg("shape"))
      .def("compress_into", &Context::compress_into, nb::arg("data"), nb::arg("dtype"),
           nb::arg("n_dims"), nb::arg("shape"), nb::arg("out"))
      .def("bound", &Context::bound, nb::arg("raw_size"))
      .def("decompress", &Context::decompress, nb::arg("frame"), nb::arg("stream") = nb::none())
      .def("decompress_into", &Context::decompress_into, nb::arg("frame"), nb::arg("out"))
      .def("compress_feedback", &Context::compress_feedback, nb::arg("data"), nb::arg("dtype"),
           nb::arg("residual"))
      .def("lossless", &Context::lossless, nb::arg("recipe"), nb::arg("dtype"))
      .def("compress_feedback_into", &Context::compress_feedback_into, nb::arg("data"),
           nb::arg("dtype"), nb::arg("residual"), nb::arg("out"))
      .def("decompress_add", &Context::decompress_add, nb::arg("frame"), nb::arg("out"),
           nb::arg("dtype"))
      .def("add", &Context::add, nb::arg("a"), nb::arg("b"))
      .def("compress_steps", &Context::compress_steps, nb::arg("before"), nb::arg("after"),
           nb::arg("word_size"))
      .def("take_steps", &Context::take_steps, nb::arg("frame"), nb::arg("words"))
      .def("decompress_range", &Context::decompress_range, nb::arg("frame"), nb::arg("offset"),
           nb::arg("size"))
      .def("explain", &Context::explain, nb::arg("data"), nb::arg("dtype"), nb::arg("n_dims"),
           nb::arg("shape"))
      .def("inspect", &Context::inspect, nb::arg("frame"), nb::arg("stream") = nb::none())
      .def("stream_begin", &Context::stream_begin, nb::arg("dtype"))
      .def("stream_update", &Context::stream_update, nb::arg("data"))
      .def("stream_end", &Context::stream_end)
      .def("expand_begin", &Context::expand_begin)
      .def("expand_update", &Context::expand_update, nb::arg("data"), nb::arg("offset"),
           nb::arg("out"))
      .def("set_stream", &Context::set_stream, nb::arg("stream"))
      .def_prop_ro("stream", &Context::stream)
      .def(
          "compress_async",
          [](nb::object self, nb::object data, int dtype, int n_dims,
             const std::vector<uint64_t>& shape, nb::object out, intptr_t stream) {
            return nb::inst_ptr<Context>(self)->compress_async(self, std::move(data), dtype, n_dims,
                                                               shape, std::move(out), stream);
          },
          nb::arg("data"), nb::arg("dtype"), nb::arg("n_dims"), nb::arg("shape"),
          nb::arg("out").none(), nb::arg("stream"), nb::rv_policy::take_ownership)
      .def(
          "decompress_async",
          [](nb::object self, nb::object frame, nb::object out, intptr_t stream) {
            return nb::inst_ptr<Context>(self)->decompress_async(self, std::move(frame),
                                                                 std::move(out), stream);
          },
          nb::arg("frame"), nb::arg("out").none(), nb::arg("stream"), nb::rv_policy::take_ownership)
      .def(
          "compress_feedback_async",
          [](nb::object self, nb::object data, int dtype, nb::object residual, nb::object out,
             intptr_t stream) {
            return nb::inst_ptr<Context>(self)->compress_feedback_async(
                self, std::move(data), dtype, std::move(residual), std::move(out), stream);
          },
          nb::arg("data"), nb::arg("dtype"), nb::arg("residual"), nb::arg("out").none(),
          nb::arg("stream"), nb::rv_policy::take_ownership)
      .def(
          "decompress_add_async",
          [](nb::object self, nb::object frame, nb::object out, int dtype, intptr_t stream) {
            return nb::inst_ptr<Context>(self)->decompress_add_async(self, std::move(frame),
                                                                     std::move(out), dtype, stream);
          },
          nb::arg("frame"), nb::arg("out"), nb::arg("dtype"), nb::arg("stream"),
          nb::rv_policy::take_ownership)
      .def(
          "compress_pieces_async",
          [](nb::object self, const nb::list& rows, int dtype, intptr_t stream) {
            return nb::inst_ptr<Context>(self)->compress_pieces_async(self, rows, dtype, stream);
          },
          nb::arg("rows"), nb::arg("dtype"), nb::arg("stream"), nb::rv_policy::take_ownership)
      .def(
          "decompress_pieces_async",
          [](nb::object self, const nb::list& rows, bool add, intptr_t stream) {
            return nb::inst_ptr<Context>(self)->decompress_pieces_async(self, rows, add, stream);
          },
          nb::arg("rows"), nb::arg("add"), nb::arg("stream"), nb::rv_policy::take_ownership)
      .def("stats", stats_row)
      .def("reset_stats", &Context::reset_stats);

  nb::class_<Job>(m, "Job").def("done", &Job::done).def("result", &Job::result);

  nb::class_<Store::More>(m, "StoreMore")
      .def(nb::init<>())
      .def_rw("engine", &Store::More::engine)
      .def_rw("options", &Store::More::options)
      .def_rw("nodes", &Store::More::nodes)
      .def_rw("tile", &Store::More::tile);
  nb::class_<Store>(m, "Store")
      .def(nb::init<const std::string&, const std::string&, int, const std::vector<uint64_t>&, int,
                    int, const std::string&, uint64_t, int, const std::vector<int>&, bool, uint64_t,
                    const Store::More&>(),
           nb::arg("path"), nb::arg("mode"), nb::arg("dtype"), nb::arg("shape"), nb::arg("policy"),
           nb::arg("on_error"), nb::arg("recipe"), nb::arg("memory"), nb::arg("servants"),
           nb::arg("pin"), nb::arg("direct"), nb::arg("reserve"), nb::arg("more"))
      .def("put", &Store::put, nb::arg("step"), nb::arg("data"))
      .def("get", &Store::get, nb::arg("step"), nb::arg("out"))
      .def("put_tile", &Store::put_tile, nb::arg("step"), nb::arg("tile"), nb::arg("data"))
      .def("get_tile", &Store::get_tile, nb::arg("step"), nb::arg("tile"), nb::arg("out"))
      .def("tile_at", &Store::tile_at, nb::arg("tile"))
      .def("prefetch", &Store::prefetch, nb::arg("step"), nb::arg("direction"))
      .def("sync", &Store::sync)
      .def("close", &Store::close)
      .def("info", &Store::info)
      .def("stats", &Store::stats)
      .def("frames", &Store::frames)
      .def("frame_from", &Store::frame_from, nb::arg("step"));
  m.def("store_check", store_check, nb::arg("path"), nb::arg("repair"));
#ifdef WPR_EMULATED_STREAMS
  add_emulated(m);
#endif
}
