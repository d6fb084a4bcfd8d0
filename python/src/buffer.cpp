// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>

namespace nb = nanobind;

namespace wirepress::python {
namespace {

using Nd = nb::ndarray<nb::ro>;

bool is_contiguous(const Nd& array) {
  int64_t expected = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

// Why bytes must not be written to a buffer of this format; nullptr: they may.
const char* reason_against(const Py_buffer& view) {
  const char* format = view.format ? view.format : "B";
  if (std::strchr(format, 'O')) return "the output holds Python objects: bytes would destroy them";
  constexpr bool kLittle = std::endian::native == std::endian::little;
  if (view.itemsize > 1 && (format[0] == (kLittle ? '>' : '<') || (kLittle && format[0] == '!')))
    return "the output is not in this machine's byte order: use an array that is";
  return nullptr;
}

// Copies dimensions dim, dim + 1, ... in C order; returns the end of what it wrote.
std::byte* copy_strided(const Nd& array, size_t dim, const std::byte* src, std::byte* dst) {
  if (dim == array.ndim()) {
    std::memcpy(dst, src, array.itemsize());
    return dst + array.itemsize();
  }
  const int64_t step = array.stride(dim) * static_cast<int64_t>(array.itemsize());
  for (size_t i = 0; i < array.shape(dim); ++i) {
    dst = copy_strided(array, dim + 1, src + static_cast<int64_t>(i) * step, dst);
  }
  return dst;
}

}  // namespace

Array::Array(nb::handle obj, bool writable) {
  if (!nb::try_cast(obj, array_, false)) throw nb::type_error("not what DLPack can describe");
  nb::ndarray<> rooms;
  if (writable && !nb::try_cast(obj, rooms, false)) throw nb::type_error("it is read-only");
  const int where = array_.device_type();
  const bool here = where == nb::device::cpu::value || where == nb::device::cuda_host::value;
  if (!here && where != nb::device::cuda::value)
    throw nb::type_error("not in memory of the CPU or of a CUDA device");
  size_ = array_.nbytes();
  data_ = array_.data();
  if (!here && !is_contiguous(array_))
    throw nb::type_error("the array of a device has strides: copy it, for example by contiguous()");
  if (!is_contiguous(array_)) {
    copy_.resize(size_);
    copy_strided(array_, 0, static_cast<const std::byte*>(data_), copy_.data());
    data_ = copy_.data();
  }
}

nb::tuple Array::shape() const {
  nb::list extents;
  for (size_t i = 0; i < array_.ndim(); ++i) extents.append(array_.shape(i));
  return nb::tuple(extents);
}

nb::tuple Array::type() const {
  const auto type = array_.dtype();
  return nb::make_tuple(int{type.code}, int{type.bits}, int{type.lanes});
}

Input::Input(nb::handle obj) {
  if (nb::isinstance<Array>(obj)) {
    const Array* array = nb::inst_ptr<Array>(obj);
    data_ = array->data();
    size_ = array->size();
    return;
  }
  if (nb::isinstance<Memory>(obj)) {
    const Memory* memory = nb::inst_ptr<Memory>(obj);
    data_ = memory->data();
    size_ = memory->size();
    return;
  }
  if (PyObject_GetBuffer(obj.ptr(), &view_, PyBUF_FULL_RO) != 0) throw nb::python_error();
  data_ = view_.buf;
  size_ = static_cast<size_t>(view_.len);
  if (PyBuffer_IsContiguous(&view_, 'C')) return;
  copy_.resize(size_);
  if (PyBuffer_ToContiguous(copy_.data(), &view_, view_.len, 'C') != 0) {
    PyBuffer_Release(&view_);
    throw nb::python_error();
  }
  data_ = copy_.data();
}

Input::~Input() {
  if (view_.obj) PyBuffer_Release(&view_);
}

Output::Output(nb::handle obj) {
  if (nb::isinstance<Memory>(obj)) {
    const Memory* memory = nb::inst_ptr<Memory>(obj);
    if (!memory->writable()) throw nb::type_error("the output cannot be written");
    data_ = memory->data();
    size_ = memory->size();
    return;
  }
  constexpr int kFlags = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT;
  if (PyObject_GetBuffer(obj.ptr(), &view_, kFlags) != 0) throw nb::python_error();
  data_ = view_.buf;
  size_ = static_cast<size_t>(view_.len);
  const char* refused = reason_against(view_);
  if (!refused) return;
  PyBuffer_Release(&view_);
  throw nb::type_error(refused);
}

Output::~Output() {
  if (view_.obj) PyBuffer_Release(&view_);
}

// New memory of this size comes from the kernel, whose small pages take longer than most codecs.
// A short code needs few of them, and clearing a huge page takes longer than to make that code:
// the first `small` bytes have small pages.
static void wish_huge_pages(char* data, size_t size, size_t small) {
  constexpr size_t kLarge = 4 << 20;
  if (size < kLarge) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t skip = small + -reinterpret_cast<uintptr_t>(data + small) % page;
  (void)madvise(data + skip, size - skip, MADV_HUGEPAGE);
}

NewBytes::NewBytes(size_t cap, Fill fill)
    : object_(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(cap))) {
  if (!object_) throw nb::python_error();
  constexpr size_t kShort = 1 << 20;
  wish_huge_pages(PyBytes_AS_STRING(object_), cap, fill == Fill::kWhole ? 0 : kShort);
}

nb::bytes NewBytes::take(size_t size) {
  if (_PyBytes_Resize(&object_, static_cast<Py_ssize_t>(size)) != 0) throw nb::python_error();
  PyObject* object = object_;
  object_ = nullptr;
  return nb::steal<nb::bytes>(object);
}

}  // namespace wirepress::python
