# SPDX-License-Identifier: Apache-2.0
"""Gradients on a GPU: the hook codes them where they lie, to the bits of gradients on the CPU. The
GPU is the library's emulated one: a tensor of it is one of PyTorch's for the CPU, over the bytes
that the emulator keeps, and its address is that of the device, which the library must not touch."""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress import _core  # noqa: E402
from wirepress.torch import memory  # noqa: E402
from wirepress.torch.ddp import buckets  # noqa: E402


class EmulatedGpu:
    """Takes the place of CUDA in the hook."""

    def __init__(self, device: int = 0) -> None:
        self._device = device
        self._ranges: list[tuple[int, int, int]] = []  # on the CPU: begin, end; on the device
        memory.device_address = self.address
        memory.beside = self.beside
        buckets.stays = lambda buffer: True
        buckets.Streams.place = lambda _, buffer, number: self.place(buffer)

    def tensor(self, n: int) -> torch.Tensor:
        address = _core.device_alloc("cuda:emulated", self._device, 4 * n)
        here = _core.place_of(address)[2]
        bisect.insort(self._ranges, (here, here + 4 * n, address))
        kept = (ctypes.c_uint8 * max(4 * n, 1)).from_address(here)
        return torch.frombuffer(kept, dtype=torch.float32, count=n)

    def address(self, tensor: torch.Tensor) -> int | None:
        at = tensor.data_ptr()
        i = bisect.bisect_right(self._ranges, (at, 1 << 62, 0)) - 1
        if i < 0 or not self._ranges[i][0] <= at < self._ranges[i][1]:
            return None
        return self._ranges[i][2] + at - self._ranges[i][0]

    def beside(self, values: torch.Tensor, kept: torch.Tensor | None, n: int) -> torch.Tensor:
        if kept is not None and (self.address(kept) is None) == (self.address(values) is None):
            return kept
        if self.address(values) is None:
            return torch.zeros(n) if kept is None else kept.clone()
        made = self.tensor(n)
        return made.zero_() if kept is None else made.copy_(kept)

    def place(self, buffer: torch.Tensor) -> buckets.Place:
        values = self.tensor(buffer.numel())
        values.copy_(buffer)

        def fetch() -> None:
            buffer.copy_(values)

        return buckets.Place(values, fetch)


def make_ddp(dtype: torch.dtype = torch.float32) -> DistributedDataParallel:
    torch.manual_seed(0)
    layers = (nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 250), nn.ReLU(), nn.Linear(250, 10))
    return DistributedDataParallel(nn.Sequential(*layers).to(dtype), bucket_cap_mb=0.2)


def backward(ddp: nn.Module, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    x = torch.randn(16, 64, generator=generator).to(next(ddp.parameters()).dtype)
    y = torch.randint(0, 10, (16,), generator=generator)
    ddp.zero_grad()
    nn.functional.cross_entropy(ddp(x).float(), y).backward()
    return torch.cat([p.grad.float().flatten() for p in ddp.parameters()])


def steps(
    method: str, knobs: dict[str, Any], dtype: torch.dtype
) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Gradients of three steps, after the second of which the state is saved and loaded."""
    ddp = make_ddp(dtype)
    state = wirepress.torch.compress(ddp, method, **knobs)
    found = [backward(ddp, 0), backward(ddp, 1)]
    state.load_state_dict(state.state_dict())
    return [*found, backward(ddp, 2)], state.statistics()


Case = tuple[str, dict[str, Any]]


def on_both(cases: list[Case], dtype: str) -> list[tuple[bool, dict[str, Any]]]:
    torch_dtype = getattr(torch, dtype)
    expected = [steps(method, knobs, torch_dtype)[0] for method, knobs in cases]
    EmulatedGpu()
    found = []
    for (method, knobs), gradients in zip(cases, expected, strict=True):
        there, statistics = steps(method, knobs, torch_dtype)
        same = all(map(torch.equal, there, gradients))
        found.append((same, statistics))
    return found


BY_DEVICE: list[Case] = [
    ("onebit", {}),
    ("onebit", {"feedback_decay": 0.5, "algorithm": "scatter", "on_nonfinite": "skip"}),
    ("int8", {"algorithm": "scatter"}),
    ("terngrad+zstd", {}),
    ("topk:ratio=0.1", {}),
    ("dgc:ratio=0.1", {"momentum": 0.9}),
    ("bf16", {"algorithm": "gather"}),
]
BY_BOTH: list[Case] = [("planes", {})]
BY_CORES: list[Case] = [("zstd", {})]


@pytest.mark.parametrize(("dtype", "cases"), [("float32", BY_DEVICE), ("bfloat16", BY_DEVICE[:1])])
def test_gradients_are_coded_where_they_lie(
    on_ranks: Callable[..., Any], dtype: str, cases: list[Case]
) -> None:
    for results in on_ranks(on_both, 2, cases, dtype, timeout=240):
        for (method, knobs), (same, statistics) in zip(cases, results, strict=True):
            assert same, (method, knobs)
            assert statistics["device_bytes"] > statistics["raw_bytes"], method
            assert statistics["cores_bytes"] == 0, (method, statistics["cores_reason"])


def test_what_the_device_cannot_add_is_counted(on_ranks: Callable[..., Any]) -> None:
    for results in on_ranks(on_both, 2, BY_BOTH, "float32", timeout=240):
        for (method, _), (same, statistics) in zip(BY_BOTH, results, strict=True):
            assert same, method
            assert statistics["device_bytes"] > 0, method
            assert statistics["cores_bytes"] > 0, method
            assert "does not add" in statistics["cores_reason"], method


def test_what_the_device_cannot_do_is_counted(on_ranks: Callable[..., Any]) -> None:
    for results in on_ranks(on_both, 2, BY_CORES, "float32", timeout=240):
        for (method, _), (same, statistics) in zip(BY_CORES, results, strict=True):
            assert same, method
            assert statistics["device_bytes"] == 0, method
            assert statistics["cores_bytes"] > 0, method
            assert "no kernel" in statistics["cores_reason"], method


def not_finite() -> tuple[bool, bool]:
    EmulatedGpu()
    ddp = make_ddp()
    wirepress.torch.compress(ddp, "onebit", on_nonfinite="raise")
    first = backward(ddp, 0)
    with torch.no_grad():
        next(ddp.parameters())[0, 0] = float("nan")
    try:
        backward(ddp, 1)
    except FloatingPointError:
        return bool(first.isfinite().all()), True
    return bool(first.isfinite().all()), False


def test_a_gradient_that_is_not_finite_is_named(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(not_finite, 2) == [(True, True)] * 2
