# SPDX-License-Identifier: Apache-2.0
"""The life of groups of the backend "wirepress": timeouts, errors, and what is left of them."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch.distributed import distributed_c10d as c10d  # noqa: E402
from wirepress.errors import CorruptError  # noqa: E402

OnRanks = Callable[..., list[Any]]
ALWAYS = {"threshold": 1000, "adaptive": False}
N = 2000


def timeouts() -> None:
    def of(group: Any) -> list[float]:
        backends = [each._get_backend(torch.device("cpu")) for each in (group._direct, group._line)]
        return [backend.options._timeout.total_seconds() for backend in backends]

    patient = dist.new_group(backend="gloo", timeout=timedelta(seconds=77))
    assert of(wt.wrap_group(patient)) == [77, 77]
    assert of(wt.wrap_group(patient, timeout=timedelta(seconds=5))) == [5, 5]
    group = wt.wrap_group(**ALWAYS)
    world = dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout
    assert of(group) == [world.total_seconds()] * 2
    c10d._set_pg_timeout(timedelta(seconds=1), group)
    ones = torch.ones(N)
    dist.all_reduce(ones, group=group)
    assert of(group) == [1, 1]
    began = time.monotonic()
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match=r"(?i)timed out"):
            dist.all_reduce(ones, group=group)
        assert time.monotonic() - began < 40
    dist.barrier()


def test_timeouts_are_kept(on_ranks: OnRanks) -> None:
    on_ranks(timeouts, 2, timeout=90)


def left() -> tuple[int, int]:
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def use_and_drop(some: Any) -> None:
    """A group of all ranks, or of some of them, whose names PyTorch gives again."""
    if dist.get_rank() not in dist.get_process_group_ranks(some):
        return
    group = wt.wrap_group(some, **ALWAYS)
    dist.all_reduce(torch.ones(N), group=group)
    dist.all_reduce(torch.ones(3), group=group)
    dist.destroy_process_group(group)


def many_groups() -> list[tuple[int, int]]:
    pair = dist.new_group([0, 1])
    seen = []
    for _ in range(3):
        for _ in range(3):
            use_and_drop(None)
            if dist.get_rank() < 2:
                use_and_drop(pair)
        seen.append(left())
    threads = [thread.name for thread in threading.enumerate()]
    assert "wirepress" not in threads, threads
    return seen


@pytest.mark.slow
def test_destroyed_groups_leave_no_threads_and_descriptors(on_ranks: OnRanks) -> None:
    for _, before, after in on_ranks(many_groups, 3):
        # Sockets close a little later; each group would leave several.
        assert all(b < a + 6 for a, b in zip(before, after, strict=True)), (before, after)


class Broken:
    """A packer that fails."""

    def __init__(self, packer: Any) -> None:
        self._packer = packer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packer, name)

    def pack_all(self, *args: Any, **kwargs: Any) -> list[int]:
        raise CorruptError("the 7th block is torn")


def errors() -> None:
    group = wt.wrap_group(timeout=timedelta(seconds=20), **ALWAYS)
    group._packer = Broken(group._packer)
    tensor = torch.ones(N)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    future = work.get_future()
    later = future.then(lambda done: done.value()[0] + 1)
    with c10d._coalescing_manager(group, async_ops=True) as manager:
        for _ in range(2):
            dist.all_gather_into_tensor(torch.ones(2 * N), tensor, group=group)
    (both,) = manager.works
    with pytest.raises(CorruptError, match="the 7th block is torn"):
        work.wait()
    assert not work.is_success() and isinstance(work.exception(), CorruptError)
    for each in future, later, both.get_future(), torch.futures.collect_all([future]):
        with pytest.raises(RuntimeError, match=r"CorruptError: the 7th block is torn"):
            each.wait()
    with pytest.raises(CorruptError, match="the 7th block is torn"):
        both.wait()
    assert isinstance(both.exception(), CorruptError) and not both.is_success()


def test_errors_keep_their_text_where_they_cross_a_future(on_ranks: OnRanks) -> None:
    on_ranks(errors, 2)


def error_in_ddp() -> str:
    group = wt.wrap_group(timeout=timedelta(seconds=20), **ALWAYS)
    layer = torch.nn.Linear(100, 100)
    model = torch.nn.parallel.DistributedDataParallel(layer, process_group=group)
    group._packer = Broken(group._packer)
    with pytest.raises(RuntimeError) as caught:
        model(torch.ones(2, 100)).sum().backward()
    return str(caught.value)


def test_errors_keep_their_text_in_ddp(on_ranks: OnRanks) -> None:
    for said in on_ranks(error_in_ddp, 2):
        assert "CorruptError: the 7th block is torn" in said


def callbacks() -> None:
    """They run on a thread of the group, and make usual tensors."""
    group = wt.wrap_group(**ALWAYS)
    work = dist.all_reduce(torch.ones(N), group=group, async_op=True)
    made = work.get_future().then(lambda done: done.value()[0] * 2).wait()
    assert not made.is_inference()
    (made * torch.ones(N, requires_grad=True)).sum().backward()


def test_callbacks_are_not_in_inference_mode(on_ranks: OnRanks) -> None:
    on_ranks(callbacks, 2)


def types_that_gloo_does_not_carry() -> list[str]:
    """They are refused each time, and the group works afterwards."""
    group = wt.wrap_group(threshold=1000)
    said = []
    for dtype in torch.int16, torch.float8_e4m3fn, torch.uint32:
        for _ in range(8):  # compressed and raw ones would take turns
            tensor = torch.ones(N).to(dtype)
            with pytest.raises(RuntimeError) as caught:
                dist.broadcast(tensor, 0, group=group)
            said.append(str(caught.value))
            dist.all_reduce(ones := torch.ones(N), group=group)
            assert ones.unique().tolist() == [2.0]
    return said


def test_types_that_gloo_does_not_carry(on_ranks: OnRanks) -> None:
    for said in on_ranks(types_that_gloo_does_not_carry, 2):
        assert set(said) == {"Invalid scalar type"}


def barrier_after_raw() -> None:
    """A barrier waits for what went raw, too: who passes it has the others' sums."""
    group = wt.wrap_group(threshold=1 << 40)
    tensor = torch.ones(10_000_000)  # takes longer than a barrier
    work = dist.all_reduce(tensor, group=group, async_op=True)
    dist.barrier(group=group)
    assert work.is_completed() and tensor[-1] == 2.0


def test_a_barrier_waits_for_raw_ones(on_ranks: OnRanks) -> None:
    on_ranks(barrier_after_raw, 2)


def refused() -> list[str]:
    """What other backends have, and this one does not."""
    group = wt.wrap_group(**ALWAYS)
    said = []
    for call in (
        lambda: dist.monitored_barrier(group),
        lambda: dist.split_group(group, [[0, 1]]),
        lambda: group._start_coalescing(torch.device("cpu")),
    ):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            call()
        said.append(str(caught.value))
    dist.all_reduce(ones := torch.ones(N), group=group)
    assert ones.unique().tolist() == [2.0]
    return said


def test_what_the_backend_does_not_have_is_refused(on_ranks: OnRanks) -> None:
    for said in on_ranks(refused, 2):
        assert "monitored_barrier" in said[0] and all(said)
