# SPDX-License-Identifier: Apache-2.0
"""Gradients on a GPU: the hook codes them where they lie, to the bits of gradients on the CPU. The
GPU is the library's emulated one: a tensor of it is one of PyTorch's for the CPU, over the bytes
that the emulator keeps, and its address is that of the device, which the library must not touch."""

from __future__ import annotations

import bisect
import ctypes
import inspect
import math
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.multiprocessing import reductions  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress import _core  # noqa: E402
from wirepress.torch import coder, fsdp, memory, powersgd, shared, wires  # noqa: E402
from wirepress.torch.ddp import buckets  # noqa: E402
from wirepress.torch.transport import Post  # noqa: E402


class EmulatedGpu:
    """Takes the place of CUDA in the hook."""

    def __init__(self, device: int = 0) -> None:
        self._device = device
        self._ranges: list[tuple[int, int, int]] = []  # on the CPU: begin, end; on the device
        memory.device_address = self.address
        memory.beside = self.beside
        memory.room_beside = self.room_beside
        fsdp._Memory.allocate = lambda _, size, *, dtype, device: self.made(size, dtype)
        buckets.stays = lambda buffer: True
        wires.open_there = self.open_there
        buckets.Streams.place = lambda _, buffer, number: self.place(buffer)

    def tensor(self, n: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        size = dtype.itemsize * n
        address = _core.device_alloc("cuda:emulated", self._device, size)
        here = _core.place_of(address)[2]
        bisect.insort(self._ranges, (here, here + size, address))
        kept = (ctypes.c_uint8 * max(size, 1)).from_address(here)
        return torch.frombuffer(kept, dtype=dtype, count=n)

    def made(self, size: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return self.tensor(math.prod(size), dtype).view(*size)

    def like(self, values: torch.Tensor) -> torch.Tensor:
        """A copy of values of the CPU."""
        return self.made(values.shape, values.dtype).copy_(values)

    def room_beside(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if self.address(values) is None:
            return torch.empty(values.numel(), dtype=dtype)
        return self.tensor(values.numel(), dtype)

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

    def open_there(self, post: Post, n_values: int, device: torch.device) -> shared.Rooms | None:
        """Memory that the ranks share: other processes' of emulated devices they do not reach."""
        rooms = shared.open_rooms(post, n_values)
        if rooms:
            rooms.there = True
        return rooms

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
    ("dgc:ratio=0.1", {"momentum": 0.9, "clip": 0.01, "on_nonfinite": "skip"}),
    ("bf16", {"algorithm": "gather"}),
    ("planes", {}),
    ("zfp:accuracy=1e-4", {}),
]
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


def test_what_the_device_cannot_do_is_counted(on_ranks: Callable[..., Any]) -> None:
    for results in on_ranks(on_both, 2, BY_CORES, "float32", timeout=240):
        for (method, _), (same, statistics) in zip(BY_CORES, results, strict=True):
            assert same, method
            assert statistics["device_bytes"] == 0, method
            assert statistics["cores_bytes"] > 0, method
            assert "no kernel" in statistics["cores_reason"], method


def not_finite(method: str) -> tuple[bool, bool]:
    EmulatedGpu()
    ddp = make_ddp()
    wirepress.torch.compress(ddp, method, on_nonfinite="raise")
    first = backward(ddp, 0)
    with torch.no_grad():
        next(ddp.parameters())[0, 0] = float("nan")
    try:
        backward(ddp, 1)
    except FloatingPointError:
        return bool(first.isfinite().all()), True
    return bool(first.isfinite().all()), False


@pytest.mark.parametrize("method", ["onebit", "dgc:ratio=0.1"])
def test_a_gradient_that_is_not_finite_is_named(on_ranks: Callable[..., Any], method: str) -> None:
    assert on_ranks(not_finite, 2, method) == [(True, True)] * 2


def in_hosts(cases: list[Case]) -> list[tuple[bool, dict[str, Any]]]:
    socket.gethostname = lambda: f"host{dist.get_rank() // 2}"
    return on_both(cases, "float32")


IN_HOSTS: list[Case] = [
    ("onebit", {}),
    ("int8", {"algorithm": "scatter", "on_nonfinite": "skip"}),
    ("terngrad", {"algorithm": "gather", "partition": 20000}),
]


def test_ranks_of_a_host_add_on_their_devices(on_ranks: Callable[..., Any]) -> None:
    for results in on_ranks(in_hosts, 4, IN_HOSTS, timeout=240):
        for (method, knobs), (same, statistics) in zip(IN_HOSTS, results, strict=True):
            assert same, (method, knobs)
            assert statistics["adds_in_host"] == "devices", method
            assert statistics["sent_bytes_in_host"] == 0, method
            assert statistics["device_bytes"] > statistics["raw_bytes"] > 0, method
            assert statistics["cores_bytes"] == 0, (method, statistics["cores_reason"])


def low_rank() -> tuple[float, bool, dict[str, Any]]:
    """How far gradients of a device are from those of the CPU, and whether products were made of
    matrices there."""
    case = ("powersgd:rank=3", {"on_nonfinite": "skip", "min_values": 100}, torch.float32)
    expected, _ = steps(*case)
    EmulatedGpu()
    places: list[bool] = []
    product = powersgd.first_product

    def seen(matrix: powersgd.Matrix) -> tuple[torch.Tensor, bool]:
        places.append(memory.on_device(matrix.values))
        return product(matrix)

    powersgd.first_product = seen
    found, statistics = steps(*case)
    far = max(float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True))
    return far, len(places) > 3 and all(places), statistics


def test_matrices_of_powersgd_stay_on_their_device(on_ranks: Callable[..., Any]) -> None:
    for far, there, statistics in on_ranks(low_rank, 2, timeout=240):
        assert there
        assert far < 1e-5  # whole matrices are multiplied at once
        assert statistics["cores_bytes"] == 0, statistics["cores_reason"]


def together() -> dict[str, list[int]]:
    """How many pieces each job had, of those that code and those that expand."""
    EmulatedGpu()
    found: dict[str, list[int]] = {}
    for name in ("compress_pieces_async", "decompress_pieces_async"):
        plain = getattr(wirepress.Compressor, name)

        def counted(
            self: Any, rows: Sequence[Any], plain: Any = plain, name: str = name, **how: Any
        ) -> wirepress.Job:
            found.setdefault(name, []).append(len(rows))
            return plain(self, rows, **how)

        setattr(wirepress.Compressor, name, counted)
    ddp = make_ddp()
    wirepress.torch.compress(ddp, "terngrad", min_values=100)
    backward(ddp, 0)
    return found


def test_pieces_of_a_bucket_are_one_job(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(together, 2):
        made, expanded = found["compress_pieces_async"], found["decompress_pieces_async"]
        assert len(made) == 1 and sum(made) >= 5  # the bucket of the first step has all
        assert expanded == 2 * made  # of two ranks


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    for owner, name in (
        (memory, "device_address"),
        (memory, "beside"),
        (memory, "room_beside"),
        (fsdp._Memory, "allocate"),
        (buckets, "stays"),
        (wires, "open_there"),
        (buckets.Streams, "place"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # which is put back
    return EmulatedGpu()


@pytest.mark.parametrize("runs", [True, False])
def test_tensors_stay_where_kernels_run(
    gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, runs: bool
) -> None:
    """A driver may be too old for the library, and a GPU for its kernels."""
    monkeypatch.setattr(memory, "_has_kernels", lambda: runs)
    assert memory.stays(gpu.tensor(4)) == runs
    assert not memory.stays(torch.zeros(4))


def test_small_ones_go_by_one_copy(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    monkeypatch.setattr(
        coder, "room_on_cpu", lambda n, _: copies.append(n) or torch.empty(n, dtype=torch.uint8)
    )
    whole = [torch.randn(n) for n in (1, 300, 17)]
    whole.append(torch.randn(40).to(torch.bfloat16))
    there = [gpu.like(values) for values in whole]
    outs = [torch.zeros(4 * values.numel() + 9, dtype=torch.uint8) for values in whole]
    begun = [coder.PLAIN.begin_encode(*each) for each in zip(there, outs, strict=True)]
    sizes = [coder.size_of(each) for each in begun]
    assert sizes == [4, 1200, 68, 160] and copies == [sum(sizes)]
    frames = [out[:size] for out, size in zip(outs, sizes, strict=True)]
    for frame, values, out in zip(frames, whole, outs, strict=True):
        assert torch.equal(frame.clone().view(torch.float32), values.float())
        assert not out[frame.numel() :].any()
    sums = [gpu.tensor(values.numel()).fill_(2.5) for values in whole]
    coder.wait_for([coder.PLAIN.begin_decode_add(*each) for each in zip(frames, sums, strict=True)])
    for values, total in zip(whole, sums, strict=True):
        assert torch.equal(total, 2.5 + values.float())
    coder.wait_for([coder.PLAIN.begin_decode(*each) for each in zip(frames, sums, strict=True)])
    for values, total in zip(whole, sums, strict=True):
        assert torch.equal(total, values.float())
    assert len(copies) == 3
    with pytest.raises(wirepress.CorruptError, match="holds 4 bytes, not 1200"):
        coder.PLAIN.begin_decode(frames[0], sums[1])


def sharded_steps(options: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Parameters after three steps, after the second of which the state is saved and loaded."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    state = wirepress.torch.compress_fsdp(model, threshold=2000, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(3):
        generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
        optimizer.zero_grad()
        model(torch.randn(16, 64, generator=generator)).square().mean().backward()
        optimizer.step()
        if step == 1:
            state.load_state_dict(state.state_dict())
    return [p.full_tensor().detach().clone() for p in model.parameters()], state.statistics()


SHARDED: list[dict[str, Any]] = [
    {"gradients": "int8", "parameters": "bf16"},
    {"gradients": "onebit", "error_feedback": True},
    {"gradients": "planes", "parameters": "planes"},
]


def sharded_on_both() -> list[tuple[bool, int]]:
    expected = [sharded_steps(options)[0] for options in SHARDED]
    EmulatedGpu()
    found = []
    for options, values in zip(SHARDED, expected, strict=True):
        before = wirepress.device_work().device_bytes
        there, _ = sharded_steps(options)
        same = all(map(torch.equal, there, values))
        found.append((same, wirepress.device_work().device_bytes - before))
    return found


def test_fsdp_codes_where_its_buffers_lie(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(sharded_on_both, 2, timeout=240):
        for options, (same, device_bytes) in zip(SHARDED, found, strict=True):
            assert same, options
            assert device_bytes > 0, options


N = 30000


def grouped(
    place: Callable[[torch.Tensor], torch.Tensor], how: dict[str, Any]
) -> tuple[list[torch.Tensor], int]:
    """What the collectives of a group give, and the bytes that devices coded in it."""
    group = wirepress.torch.wrap_group(**how)
    rank, size = dist.get_rank(), dist.get_world_size()
    base = torch.sin(torch.arange(N) * 0.01) + rank

    def mine(n: int = N, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return place(base[:n].to(dtype))

    def room(n: int = N) -> torch.Tensor:
        return place(torch.zeros(n))

    found = []
    dist.all_reduce(total := mine(), group=group)
    dist.all_reduce(half := mine(dtype=torch.bfloat16), group=group)
    dist.all_reduce(most := mine(), op=dist.ReduceOp.MAX, group=group)
    dist.broadcast(sent := mine(), 1, group=group)
    dist.all_gather(rows := [room() for _ in range(size)], mine(), group=group)
    dist.all_gather_into_tensor(row := room(N * size), mine(), group=group)
    dist.reduce_scatter_tensor(part := room(N // size), mine(N // size * size), group=group)
    dist.all_to_all_single(dealt := room(N // size * size), mine(N // size * size), group=group)
    dist.reduce(root := mine(), 0, group=group)
    rooms = [room() for _ in range(size)] if rank == 0 else None
    dist.gather(mine(), rooms, 0, group=group)
    dist.scatter(own := room(), [mine() for _ in range(size)] if rank == 0 else None, 0, group)
    dist.all_reduce(strided := mine(2 * (N // 2))[::2], group=group)
    if rank == 0:
        dist.send(mine(), 1, group=group)
    elif rank == 1:
        dist.recv(came := room(), 0, group=group)
        found.append(came)
    work = dist.all_reduce(later := mine(), group=group, async_op=True)
    found += [work.get_future().wait()[0], later]
    found += [total, half, most, sent, *rows, row, part, dealt, own, strided, *(rooms or [])]
    found += [root] if rank == 0 else []
    return [each.clone() for each in found], group.device_work.device_bytes


GROUPS: list[dict[str, Any]] = [
    {"recipe": "int8", "threshold": 1000, "adaptive": False},
    {"recipe": "planes", "threshold": 1000},
    {"threshold": 1 << 40},
]


def grouped_on_both(n: int) -> list[tuple[bool, int]]:
    expected = [grouped(torch.clone, how)[0] for how in GROUPS]
    gpu, found = EmulatedGpu(), []
    for how, values in zip(GROUPS, expected, strict=True):
        there, device_bytes = grouped(gpu.like, how)
        found.append((all(map(torch.equal, there, values)), device_bytes))
    return found


@pytest.mark.parametrize("n", [2, 3])
def test_groups_code_where_tensors_lie(on_ranks: Callable[..., Any], n: int) -> None:
    for found in on_ranks(grouped_on_both, n, n, timeout=240):
        for how, (same, device_bytes) in zip(GROUPS, found, strict=True):
            assert same, how
            assert (device_bytes > 0) == (how["threshold"] < N), how


# What the emulator has not: PyTorch's own streams, pinned memory and futures of a device
# (scripts/gpu-check runs these).
with_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")


def grouped_on_cuda() -> list[bool]:
    same = []
    for how in GROUPS:
        expected, (there, _) = grouped(torch.clone, how)[0], grouped(torch.Tensor.cuda, how)
        same.append(all(torch.equal(a.cpu(), b) for a, b in zip(there, expected, strict=True)))
    return same


@with_cuda
def test_groups_on_a_cuda_device(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(grouped_on_cuda, 2, timeout=60) == [[True] * len(GROUPS)] * 2


def ddp_on_cuda(levels: int) -> tuple[bool, dict[str, Any]]:
    """Whether a lossless method gives the gradients of none, and what the hook says of it."""
    found = []
    for method in ("none", "planes"):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(300, 250).cuda())
        state = wirepress.torch.compress(model, method, levels=levels)
        x = torch.randn(16, 300, generator=torch.Generator().manual_seed(dist.get_rank()))
        model(x.cuda()).square().mean().backward()
        found.append([p.grad.clone() for p in model.parameters()])
    return all(map(torch.equal, *found)), state.statistics()


@with_cuda
@pytest.mark.parametrize(("levels", "adds"), [(1, ""), (2, "devices")])
def test_gradients_on_a_cuda_device(on_ranks: Callable[..., Any], levels: int, adds: str) -> None:
    for same, statistics in on_ranks(ddp_on_cuda, 2, levels, timeout=60):
        assert same and statistics["device_bytes"] > 0
        assert statistics["adds_in_host"] == adds


def test_pytorch_names_the_device_of_shared_memory_where_rooms_look_for_it() -> None:
    names = list(inspect.signature(reductions.rebuild_cuda_tensor).parameters)
    assert names[shared._DEVICE] == "storage_device"
