# SPDX-License-Identifier: Apache-2.0
"""The memory of tensors: as bytes and NumPy arrays, and in one row."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import torch
import wirepress
from wirepress import _core

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
"""Floats that every codec of floats, or its sums, may take."""
HALVES = (torch.bfloat16, torch.float16)
GRADIENTS = (torch.float32, *HALVES)
"""Gradients that are coded with error feedback."""


def all_finite(values: torch.Tensor) -> bool:
    """`isfinite` makes five passes over memory; a sum makes one, and is finite almost always where
    all values are."""
    return bool(values.sum().isfinite()) or bool(values.isfinite().all())


def finite(totals: Sequence[torch.Tensor | None]) -> list[bool]:
    """Which of some numbers, of one device, are finite, at one look; None is."""
    known = [total.double() for total in totals if total is not None]
    answers = iter(torch.stack(known).isfinite().tolist() if known else [])
    return [total is None or next(answers) for total in totals]


def foreign_kind(tensor: torch.Tensor) -> str:
    """What a tensor is that has no values of its own in rows, as a word for a sentence; "": it has.

    A DTensor and a masked tensor are such: other tensors hold what they stand for.
    """
    if torch.nn.parameter.is_lazy(tensor):
        return f"an {type(tensor).__name__}"
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"a {type(tensor).__name__}, not a plain tensor"
    for kind in ("meta", "nested", "quantized"):
        if getattr(tensor, f"is_{kind}"):
            return kind
    return "" if tensor.layout == torch.strided else str(tensor.layout)


class _Memory:
    """Memory of a tensor, in NumPy's protocol; the array keeps this and so the tensor."""

    def __init__(self, tensor: torch.Tensor, kind: str) -> None:
        self._tensor = tensor
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False),
            "shape": (tensor.numel(),),
            "typestr": kind,
            "version": 3,
        }


@functools.cache
def _typestr(dtype: torch.dtype) -> str:
    """NumPy's word for a dtype that NumPy has."""
    return np.dtype(str(dtype).removeprefix("torch.")).str


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The memory of a contiguous tensor of the CPU, as a NumPy array of one dimension.

    `Tensor.numpy` gives the same, but then the tensor's storage can never be resized again, which
    FSDP and others do with theirs.
    """
    if not (tensor.is_cpu and tensor.is_contiguous()):
        raise ValueError("the tensor is not contiguous, or not in memory of the CPU")
    kind = _typestr(tensor.dtype)
    return np.asarray(_Memory(tensor, kind)) if tensor.numel() else np.empty(0, kind)


class _DeviceMemory:
    """Memory of a tensor of a CUDA device, in the protocol of CuPy and Numba. It names no stream:
    whoever gives it to the library says which one its work is on."""

    def __init__(self, tensor: torch.Tensor, address: int) -> None:
        self._tensor = tensor
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (tensor.numel(),),
            "typestr": _typestr(tensor.dtype),
            "strides": None,
            "version": 3,
        }


def device_address(tensor: torch.Tensor) -> int | None:
    """Where a tensor lies in memory of a CUDA device; None: it lies in the CPU's."""
    return tensor.data_ptr() if tensor.is_cuda else None


def on_device(tensor: torch.Tensor) -> bool:
    return device_address(tensor) is not None


def as_memory(tensor: torch.Tensor) -> Any:
    """The memory of a contiguous tensor of any device, as the library takes it."""
    address = device_address(tensor)
    if address is None:
        return as_array(tensor)
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous")
    return _DeviceMemory(tensor, address)


def as_gradient(tensor: torch.Tensor) -> tuple[Any, str]:
    """The memory of a contiguous tensor of `GRADIENTS`, and the library's name of its type, of
    which NumPy lacks one."""
    name = str(tensor.dtype).removeprefix("torch.")
    return as_memory(tensor.view(torch.int16) if tensor.dtype in HALVES else tensor), name


def as_floats(tensor: torch.Tensor) -> torch.Tensor:
    """The values as float32: the tensor itself where it has them."""
    return tensor if tensor.dtype == torch.float32 else tensor.float()


def stream_of(tensor: torch.Tensor) -> int | None:
    """The stream that the calling thread's work on a tensor is put on; None: on none."""
    if not tensor.is_cuda:
        return None
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


@contextlib.contextmanager
def on_stream(stream: torch.cuda.Stream) -> Iterator[None]:
    """What a thread works in that is wirepress's own, or that has this device already. The device
    stays the thread's: to go back to another one would make a context there."""
    if torch.cuda.current_device() != stream.device.index:
        torch.cuda.set_device(stream.device)
    with torch.cuda.stream(stream):
        yield


def stays(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies on a device that codes it there. (PyTorch calls ROCm's devices CUDA,
    too, and this build may have no CUDA.)"""
    address = device_address(tensor)
    return bool(address) and _core.place_of(address)[1] >= 0 and _has_kernels()


@functools.cache
def _has_kernels() -> bool:
    """Whether kernels run on this machine's GPU: not with a driver that is older than the library's
    CUDA, which could not even copy from there."""
    return any(engine.name == "cuda" and engine.available for engine in wirepress.engines())


def within_reach(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where the library codes it: itself, or a copy in memory of the CPU."""
    foreign = tensor.is_cuda and tensor.numel() > 0 and not stays(tensor)
    return tensor.cpu() if foreign else tensor


def room_beside(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Memory for as many values of another type, in a row, on the device of `values`."""
    return torch.empty(values.numel(), dtype=dtype, device=values.device)


def as_type(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The values in that type, in a row, on their device; themselves where they have it."""
    flat = values.view(-1)
    return flat if flat.dtype == dtype else room_beside(flat, dtype).copy_(flat)


def room_on_cpu(n_bytes: int, beside: torch.Tensor | None) -> torch.Tensor:
    """Memory of the CPU for messages of such tensors, pinned for those of CUDA devices."""
    pinned = beside is not None and beside.is_cuda
    return torch.empty(n_bytes, dtype=torch.uint8, device="cpu", pin_memory=pinned)


def beside(values: torch.Tensor, kept: torch.Tensor | None, n: int) -> torch.Tensor:
    """`kept` on the device of `values`; `n` zeros where there is none."""
    if kept is not None:
        return kept.to(values.device)
    return torch.zeros(n, dtype=torch.float32, device=values.device)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor."""
    return tensor.detach().view(-1).view(torch.uint8)


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """The values in contiguous memory that the library reaches, without autograd and lazy signs:
    the tensor's own memory where it is that, else a copy.

    The result has a version counter of its own: writing to it is for autograd as when gloo writes.
    """
    data = within_reach(tensor.data)
    if data.is_contiguous() and not data.is_neg() and not data.is_conj():
        return data
    return data.resolve_conj().resolve_neg().contiguous()


def shares_elements(tensor: torch.Tensor) -> bool:
    """Whether several elements lie at one place, as in an expanded tensor."""
    return not tensor.is_contiguous() and any(
        step == 0 and n > 1 for step, n in zip(tensor.stride(), tensor.shape, strict=True)
    )


Pairs = Sequence[tuple[torch.Tensor, torch.Tensor]]


def copies(rooms: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Pairs:
    """Those tensors, with their rooms, whose room is a copy."""
    return [
        (room, tensor)
        for room, tensor in zip(rooms, tensors, strict=True)
        if room.data_ptr() != tensor.data_ptr()
    ]


def copy_back(pairs: Pairs) -> None:
    """Gives tensors the values of their rooms."""
    with torch.inference_mode():  # the tensors may have been made in it
        for room, tensor in pairs:
            tensor.data.copy_(room)
