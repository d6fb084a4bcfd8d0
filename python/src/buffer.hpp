// SPDX-License-Identifier: Apache-2.0
// Python objects as plain memory: the buffer protocol and DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wirepress::python {

// A DLPack array in memory of the CPU or of a CUDA device, held until it is destroyed. Its elements
// are C-contiguous: an array of the CPU with strides is copied once.
class Array {
 public:
  // Throws nanobind::type_error where obj is no such array, or one of a device has strides, or it
  // is to be written and may not be.
  explicit Array(nanobind::handle obj, bool writable = false);
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

// Memory that its owner's address says, of a device or of the cores: an object of another library
// that has no buffer to give. It is the caller's to keep `owner` alive and its memory where it is.
class Memory {
 public:
  Memory(nanobind::object owner, uintptr_t address, size_t size, bool writable)
      : owner_(std::move(owner)),
        data_(reinterpret_cast<void*>(address)),  // NOLINT: it came as a number
        size_(size),
        writable_(writable) {}
  void* data() const { return data_; }
  size_t size() const { return size_; }  // bytes
  bool writable() const { return writable_; }

 private:
  nanobind::object owner_;
  void* data_;
  size_t size_;
  bool writable_;
};

// The bytes of a buffer object, an Array or a Memory, C-contiguous: a buffer with strides is copied
// once. The object's memory is pinned meanwhile. Throws what Python raised.
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

// A writable, C-contiguous buffer, or a Memory. Throws nanobind::type_error where its elements are
// Python objects or of another byte order.
class Output {
 public:
  explicit Output(nanobind::handle obj);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Py_buffer view_{};  // view_.obj is NULL where there is none
  void* data_;
  size_t size_;
};

// How much of its room a call will write: all, or what a code takes of its bound.
enum class Fill { kWhole, kPart };

// A bytes object being written, cut to the size written at the end; nobody else sees it before
// take().
class NewBytes {
 public:
  NewBytes(size_t cap, Fill fill);
  ~NewBytes() { Py_XDECREF(object_); }
  NewBytes(const NewBytes&) = delete;
  NewBytes& operator=(const NewBytes&) = delete;
  void* data() const { return PyBytes_AS_STRING(object_); }
  nanobind::bytes take(size_t size);

 private:
  PyObject* object_;
};

}  // namespace wirepress::python
