// SPDX-License-Identifier: Apache-2.0
// What python/src/emulated.hpp says, in the room that may look into all others.
#include "python/src/emulated.hpp"

#include "engines/cuda/emulated_stream.hpp"
#include "python/src/context.hpp"

namespace nb = nanobind;

namespace wirepress::python {

void add_emulated(nb::module_& m) {
  using cuda::EmulatedStream;
  nb::class_<EmulatedStream>(m, "EmulatedStream")
      .def(nb::init<>())
      .def_prop_ro("address", [](EmulatedStream& own) { return reinterpret_cast<intptr_t>(&own); })
      .def_prop_ro("waiting",
                   [](const EmulatedStream& own) { return own.put_count() - own.done_count(); })
      .def(
          "step",
          [](EmulatedStream& own, Context& context) {
            bool some = false;
            context.between_calls([&] { some = own.step(); });
            return some;
          },
          nb::arg("context"));
}

}  // namespace wirepress::python
