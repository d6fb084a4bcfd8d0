# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory of an emulated GPU, whose memory ends a process that touches it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from wirepress import _core


class DeviceArray:
    """An array in memory of an emulated device, by `__cuda_array_interface__`."""

    def __init__(self, values: np.ndarray, device: int = 0, **interface: Any) -> None:
        self.address = _core.device_alloc("cuda:emulated", device, values.nbytes)
        self._like = np.empty_like(values)
        if values.nbytes:
            _core.copy_to(self.address, np.ascontiguousarray(values))
        self._interface = interface

    def __del__(self) -> None:
        _core.device_free(self.address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.address, False),
            "shape": self._like.shape,
            "typestr": self._like.dtype.str,
            "strides": None,
            "version": 3,
            **self._interface,
        }

    def numpy(self) -> np.ndarray:
        values = self._like.copy()
        if values.nbytes:
            _core.copy_from(self.address, values)
        return values


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Tensor(ctypes.Structure):  # DLPack's DLManagedTensor
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class DlpackArray:
    """A one-dimensional float32 array of a device that has DLPack and nothing else."""

    def __init__(self, values: np.ndarray, stride: int = 1, kind: int = 2) -> None:
        self._array, self._kind = DeviceArray(values), kind
        self._shape = (ctypes.c_int64 * 1)(values.size // stride)
        self._strides = (ctypes.c_int64 * 1)(stride)
        self._tensor = _Tensor(
            self._array.address, _Device(kind, 0), 1, 2, 32, 1, self._shape, self._strides, 0, 0, 0
        )

    def __dlpack__(self, **_: Any) -> Any:
        return _capsule(ctypes.addressof(self._tensor), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0

    def numpy(self) -> np.ndarray:
        return self._array.numpy()


def gradient(n: int = 50_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1e-3, n).astype(np.float32)
