// SPDX-License-Identifier: Apache-2.0
// Streams of the emulator's devices for tests: their work goes on when a test says so. They are the
// library's inside, which an extension that is linked with a shared libwirepress does not reach.
#pragma once

#include <nanobind/nanobind.h>

namespace wirepress::python {

// EmulatedStream: `address` is what takes a stream, `waiting` how much work is there, and
// `step(context)` does the oldest, between calls of the context whose work it is. Not for streams
// of two contexts whose calls run at once.
void add_emulated(nanobind::module_& m);

}  // namespace wirepress::python
