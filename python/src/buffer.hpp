// SPDX-License-Identifier: Apache-2.0
// Python objects as plain memory: the buffer protocol and DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <vector>

namespace wirepress::python {

// A DLPack array in CPU memory, held until it is destroyed. Its elements are C-contiguous: an array
// with strides is copied once.
class Array {
 public:
  // Throws nanobind::type_error where obj is not a DLPack array in CPU memory.
  explicit Array(nanobind::handle obj);
  const void* data() const { return data_; }
  size_t size() const { return size_; }
  nanobind::tuple shape() const;
  nanobind::tuple type() const;  // DLPack's (code, bits, lanes)

 private:
  nanobind::ndarray<nanobind::ro> array_;
  std::vector<std::byte> copy_;
  const void* data_;
  size_t size_;  // bytes
};

// The bytes of a buffer object or an Array, C-contiguous: a buffer with strides is copied once.
// The object's memory is pinned meanwhile. Throws what Python raised.
class Input {
 public:
  explicit Input(nanobind::handle obj);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  const void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Py_buffer view_{};  // view_.obj is NULL where there is none
  std::vector<std::byte> copy_;
  const void* data_;
  size_t size_;
};

// A writable, C-contiguous buffer. Throws nanobind::type_error where its elements are Python
// objects or of another byte order.
class Output {
 public:
  explicit Output(nanobind::handle obj);
  ~Output() { PyBuffer_Release(&view_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void* data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// A bytes object being written, cut to the size written at the end; nobody else sees it before
// take().
class NewBytes {
 public:
  explicit NewBytes(size_t cap);
  ~NewBytes() { Py_XDECREF(object_); }
  NewBytes(const NewBytes&) = delete;
  NewBytes& operator=(const NewBytes&) = delete;
  void* data() const { return PyBytes_AS_STRING(object_); }
  nanobind::bytes take(size_t size);

 private:
  PyObject* object_;
};

}  // namespace wirepress::python
