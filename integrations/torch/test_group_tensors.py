# SPDX-License-Identifier: Apache-2.0
"""Tensors of every form in groups of the backend "wirepress": strided, expanded, lazy, without
memory ...: the values that contiguous ones give, or gloo's refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from wirepress.torch.memory import as_array, in_a_row, shares_elements  # noqa: E402

OnRanks = Callable[..., list[Any]]
N = 1800
PATIENCE = timedelta(seconds=30)
GROUPS = {
    "raw": {"threshold": 1 << 40},
    "compressed": {"threshold": 1000, "adaptive": False},
}
Make = Callable[[], torch.Tensor]


def forms(rank: int) -> Iterator[tuple[str, Make]]:
    """Tensors of the same values in a row, by what is odd about them."""
    base = (torch.arange(2 * N) % 7 + rank).float()
    image = base[:N].view(2, 3, 10, 30)
    yield "strided", lambda: base.clone()[::2]
    yield "transposed", lambda: base[:N].clone().view(6, -1).t()
    yield "with gaps", lambda: base.clone().view(-1, 20)[:, :10]
    yield "channels last", lambda: image.contiguous(memory_format=torch.channels_last)
    yield "other strides by rank", lambda: (base.clone()[::2], base.clone()[1::2] + 0)[rank]
    yield "other order by rank", lambda: image.clone().contiguous(memory_format=FORMATS[rank])
    yield "at an offset", lambda: base.clone()[3 : N + 3]
    yield "a leaf with a gradient", lambda: base[:N].clone().requires_grad_()
    yield "a result with a gradient", lambda: base[:N].clone().requires_grad_() * 1
    yield "negated lazily", lambda: torch._neg_view(base[:N].clone())
    yield "the imaginary part of a conjugate", lambda: torch.complex(base, base).conj()[:N].imag
    yield "a parameter", lambda: torch.nn.Parameter(base[:N].clone())
    yield "one value", lambda: torch.tensor(1.0 + rank)
    yield "no value", lambda: base[:0].clone()
    yield "no rows", lambda: base[:0].clone().view(0, 3)


FORMATS = [torch.contiguous_format, torch.channels_last]


def refused(rank: int) -> Iterator[tuple[str, Make]]:
    """What gloo groups do not take, but for some calls."""
    base = (torch.arange(2 * N) % 7 + rank).float()
    yield "meta", lambda: base.to("meta")
    yield "sparse", lambda: base.view(-1, 4).to_sparse()
    yield "sparse rows", lambda: base.view(-1, 4).to_sparse_csr()
    yield "quantized", lambda: torch.quantize_per_tensor(base, 0.5, 0, torch.quint8)


class Call:
    def __init__(self, group: Any, make: Make) -> None:
        self.group, self.make = group, make
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def like(self) -> torch.Tensor:
        """A room of the tensor's form."""
        room = self.make().detach()
        return room.zero_() if room.layout == torch.strided and not room.is_quantized else room


def all_reduce(call: Call) -> Any:
    tensor = call.make()
    dist.all_reduce(tensor, group=call.group)
    return tensor


def all_reduce_later(call: Call) -> Any:
    tensor = call.make()
    work = dist.all_reduce(tensor, group=call.group, async_op=True)
    while not work.is_completed():
        pass
    return tensor


def all_reduce_by_future(call: Call) -> Any:
    tensor = call.make()
    dist.all_reduce(tensor, group=call.group, async_op=True).get_future().wait()
    return tensor


def all_reduce_coalesced(call: Call) -> Any:
    some = [call.make(), call.like()]
    dist.all_reduce_coalesced(some, group=call.group)
    return some


def broadcast(call: Call) -> Any:
    tensor = call.make()
    dist.broadcast(tensor, group_src=1, group=call.group)
    return tensor


def reduce(call: Call) -> Any:
    tensor = call.make()
    dist.reduce(tensor, group_dst=1, group=call.group)
    return tensor if call.rank == 1 else None


def all_gather(call: Call) -> Any:
    rooms = [call.like() for _ in range(call.size)]
    dist.all_gather(rooms, call.make(), group=call.group)
    return rooms


def all_gather_into_tensor(call: Call) -> Any:
    tensor = call.make()
    shape = (call.size * tensor.shape[0], *tensor.shape[1:]) if tensor.dim() else (call.size,)
    room = torch.zeros(shape, device=tensor.device)
    dist.all_gather_into_tensor(room, tensor, group=call.group)
    return room


def reduce_scatter(call: Call) -> Any:
    room = call.like()
    dist.reduce_scatter(room, [call.make() for _ in range(call.size)], group=call.group)
    return room


def reduce_scatter_tensor(call: Call) -> Any:
    tensor = call.make()
    rows = tensor.shape[0] // call.size if tensor.dim() else 0
    room = torch.zeros((rows, *tensor.shape[1:]), device=tensor.device)
    dist.reduce_scatter_tensor(room, tensor, group=call.group)
    return room


def all_to_all(call: Call) -> Any:
    rooms = [call.like() for _ in range(call.size)]
    dist.all_to_all(rooms, [call.make() for _ in range(call.size)], group=call.group)
    return rooms


def all_to_all_single(call: Call) -> Any:
    room = call.like()
    dist.all_to_all_single(room, call.make(), group=call.group)
    return room


def gather(call: Call) -> Any:
    rooms = [call.like() for _ in range(call.size)] if call.rank == 1 else None
    dist.gather(call.make(), rooms, group_dst=1, group=call.group)
    return rooms


def scatter(call: Call) -> Any:
    room = call.like()
    parts = [call.make() for _ in range(call.size)] if call.rank == 1 else None
    dist.scatter(room, parts, group_src=1, group=call.group)
    return room


def send_and_receive(call: Call) -> Any:
    room = call.like()
    sent = dist.isend(call.make(), group_dst=1 - call.rank, group=call.group)
    dist.recv(room, group_src=1 - call.rank, group=call.group)
    sent.wait()
    return room


CALLS = [
    *[all_reduce, all_reduce_later, all_reduce_by_future, all_reduce_coalesced, broadcast, reduce],
    *[all_gather, all_gather_into_tensor, reduce_scatter, reduce_scatter_tensor, all_to_all],
    *[all_to_all_single, gather, scatter, send_and_receive],
]
ONE_ROW = {all_to_all_single, send_and_receive}  # gloo refuses others there


def outcome(call: Any, group: Any, make: Make) -> tuple[str, Any]:
    try:
        return "ok", plain(call(Call(group, make)))
    except Exception as error:
        return type(error).__name__, str(error)


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, torch.Tensor) or value.device.type == "meta":
        return None
    return (value.to_dense() if value.layout != torch.strided else in_a_row(value)).tolist()


def in_one_row(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy without anything odd, of which gloo says what is right; None: gloo takes no such."""
    usual = tensor.device.type == "cpu" and tensor.layout == torch.strided
    return in_a_row(tensor).clone() if usual and not tensor.is_quantized else None


def odd_ones() -> list[str]:
    rank = dist.get_rank()
    gloo = dist.new_group(backend="gloo", timeout=PATIENCE)
    ours = {name: wt.wrap_group(timeout=PATIENCE, **how) for name, how in GROUPS.items()}
    wrong = []
    for form, make in [*forms(rank), *refused(rank)]:
        row = in_one_row(make())
        for call in CALLS:
            if call in ONE_ROW and "by rank" in form:
                continue  # one rank would be refused, and the other wait
            if call is reduce_scatter_tensor and form == "one value":
                continue  # gloo may crash
            if call is all_reduce_later and form == "meta":
                continue  # which is never done
            takes_it = row is not None and (call not in ONE_ROW or make().is_contiguous())
            expected = outcome(call, gloo, row.clone if takes_it else make)
            for name, group in ours.items():
                got = outcome(call, group, make)
                if got[0] != expected[0] or (got[0] == "ok" and got[1] != expected[1]):
                    words = [str(each)[:150] for each in (got, expected)]
                    wrong.append(f"{form}, {call.__name__}, {name}: {words}")
    return wrong


def test_tensors_of_any_form(on_ranks: OnRanks) -> None:
    for wrong in on_ranks(odd_ones, 2, timeout=60):
        assert not wrong, "\n".join(wrong)


def overlapping() -> list[str]:
    """What no call can write to, and gloo would crash with."""
    rank = dist.get_rank()
    said = []
    for how in GROUPS.values():
        group = wt.wrap_group(timeout=PATIENCE, **how)
        calls = [all_reduce, all_reduce_coalesced, all_gather, reduce_scatter, all_to_all]
        for call in calls:
            with pytest.raises(RuntimeError, match="elements of a result share memory") as caught:
                call(Call(group, lambda: torch.ones(4).expand(500, 4)))
            said.append(str(caught.value))
        with pytest.raises(RuntimeError, match="without dimensions cannot be cut"):
            dist.reduce_scatter_tensor(torch.zeros(()), torch.zeros(()), group=group)
        # What is only sent may overlap.
        rooms = [torch.zeros(500, 4) for _ in range(2)]
        dist.all_gather(rooms, torch.full((4,), float(rank)).expand(500, 4), group=group)
        assert [room.unique().tolist() for room in rooms] == [[0.0], [1.0]]
        dist.all_reduce(works := torch.ones(1500), group=group)
        assert works.unique().tolist() == [2.0]
    return said


def inputs_in_results(settings: dict[str, Any]) -> list[str]:
    """What a rank gives may lie where another rank's part comes to."""
    rank, size = dist.get_rank(), dist.get_world_size()
    group = wt.wrap_group(timeout=PATIENCE, **settings)
    parts = [(torch.arange(N) % 5 + 10.0 * i) for i in range(size)]
    wrong = []
    for place in range(size):
        row = torch.zeros(size * N)
        mine = row[place * N : (place + 1) * N].copy_(parts[rank])
        dist.all_gather_into_tensor(row, mine, group=group)
        if not torch.equal(row, torch.cat(parts)):
            wrong.append(f"all_gather_into_tensor from place {place}")
        outs = [torch.zeros(N) for _ in range(size)]
        outs[place].copy_(parts[rank])
        dist.all_gather(outs, outs[place], group=group)
        if not all(map(torch.equal, outs, parts)):
            wrong.append(f"all_gather from place {place}")
        outs = [torch.zeros(N) for _ in range(size)]
        outs[place].copy_(parts[rank])
        dist.gather(outs[place], outs if rank == 1 else None, dst=1, group=group)
        if rank == 1 and not all(map(torch.equal, outs, parts)):
            wrong.append(f"gather from place {place}")
    return wrong


@pytest.mark.parametrize("settings", GROUPS.values(), ids=list(GROUPS))
def test_inputs_in_results(on_ranks: OnRanks, settings: dict[str, Any]) -> None:
    assert on_ranks(inputs_in_results, 3, settings) == [[], [], []]


def test_results_that_overlap_are_refused_before_anything_is_sent(on_ranks: OnRanks) -> None:
    for said in on_ranks(overlapping, 2):
        assert said[0].startswith("wirepress: all_reduce: ") and "strides [0, 1]" in said[0]


def resized() -> None:
    """A storage that was compressed can be resized, as FSDP does to free parameters."""
    group = wt.wrap_group(**GROUPS["compressed"])
    tensors = [torch.ones(N) for _ in range(8)]
    halves = torch.ones(N, dtype=torch.bfloat16)
    dist.all_reduce(tensors[0], group=group)
    dist.broadcast(tensors[1], 0, group=group)
    dist.all_gather_into_tensor(room := torch.ones(2 * N), tensors[2], group=group)
    dist.reduce_scatter_tensor(tensors[3], torch.ones(2 * N), group=group)
    dist.all_to_all_single(tensors[4], tensors[5], group=group)
    dist.reduce(tensors[6], 0, group=group)
    dist.all_reduce(halves, group=group)
    for tensor in [*tensors, room, halves]:
        size = tensor.untyped_storage().size()
        tensor.untyped_storage().resize_(0)
        tensor.untyped_storage().resize_(size)


def test_storages_stay_resizable(on_ranks: OnRanks) -> None:
    on_ranks(resized, 2)


def untouched() -> None:
    """What lies between the values of a tensor stays, and autograd sees no change."""
    rank = dist.get_rank()
    for how in GROUPS.values():
        group = wt.wrap_group(**how)
        base = torch.arange(2 * N, dtype=torch.float32) + 1
        dist.all_reduce(base[::2], group=group)
        assert torch.equal(base[1::2], torch.arange(2, 2 * N + 1, 2.0))
        assert torch.equal(base[::2], 2 * torch.arange(1, 2 * N, 2.0))
        weight = torch.nn.Parameter(torch.full((N,), 1.0 + rank))
        loss = (weight * weight).sum()
        dist.broadcast(weight, 0, group=group)  # between forward and backward, as gloo lets one
        loss.backward()
        assert torch.equal(weight.detach(), torch.ones(N))
        with torch.inference_mode():
            inner = torch.ones(2 * N)[::2]
            dist.all_reduce(inner, group=group)
            assert inner.unique().tolist() == [2.0]


def test_only_results_change(on_ranks: OnRanks) -> None:
    on_ranks(untouched, 2)


def test_arrays_are_the_memory_of_tensors() -> None:
    for dtype in torch.uint8, torch.int8, torch.int16, torch.float16, torch.float32, torch.int64:
        tensor = torch.arange(6).to(dtype)
        array = as_array(tensor[2:])
        array[0] = 9
        assert tensor.tolist() == [0, 1, 9, 3, 4, 5]
        assert array.dtype.itemsize == dtype.itemsize
        tensor.untyped_storage().resize_(0)
    assert as_array(torch.empty(0)).size == 0
    kept = as_array(torch.full((1000,), 3.0))
    assert kept.sum() == 3000  # the tensor lives as long as the array
    with pytest.raises(ValueError, match="not contiguous"):
        as_array(torch.ones(6)[::2])


def test_what_overlaps_is_seen() -> None:
    assert shares_elements(torch.ones(3).expand(2, 3))
    assert not shares_elements(torch.ones(3).expand(1, 3))
    assert not shares_elements(torch.ones(0).expand(2, 0))
    assert not shares_elements(torch.ones(4, 2).t())
