# SPDX-License-Identifier: Apache-2.0
"""The backend "wirepress" between real ranks, against what gloo gives."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from wirepress.errors import ParameterError  # noqa: E402
from wirepress.torch.group.contest import Contest  # noqa: E402

OnRanks = Callable[..., list[Any]]
ALWAYS = {"threshold": 1000, "adaptive": False}
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8]


def values(dtype: torch.dtype, n: int, seed: int) -> torch.Tensor:
    """Small whole numbers: sums of them are exact in every dtype, in any order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-8, 8, (n,), generator=generator).abs().to(dtype)


def collectives(group: Any, dtype: torch.dtype, n: int) -> dict[str, Any]:
    """The results of every collective, on this rank."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    mine = values(dtype, n, rank)
    results: dict[str, Any] = {}

    results["all_reduce"] = mine.clone()
    dist.all_reduce(results["all_reduce"], group=group)
    results["max"] = mine.clone()
    dist.all_reduce(results["max"], dist.ReduceOp.MAX, group=group)
    work = dist.all_reduce(transposed := mine.clone().view(-1, 4).t(), group=group, async_op=True)
    work.wait()
    results["transposed"] = transposed.contiguous()
    results["broadcast"] = mine.clone()
    dist.broadcast(results["broadcast"], group_src=size - 1, group=group)
    results["all_gather"] = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(results["all_gather"], mine, group=group)
    results["all_gather_single"] = mine.new_empty(size * n)
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gather(results["all_gather_single"], mine, group=group)
    results["reduce_scatter"] = torch.empty_like(mine)
    parts = [values(dtype, n, 10 * rank + part) for part in range(size)]
    dist.reduce_scatter(results["reduce_scatter"], parts, group=group)
    results["reduce_scatter_single"] = torch.empty_like(mine)
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    scatter(results["reduce_scatter_single"], torch.cat(parts), group=group)
    results["all_to_all_single"] = mine.new_empty(size * n)
    dist.all_to_all_single(results["all_to_all_single"], torch.cat(parts), group=group)
    going = [n // (1 + rank + part) for part in range(size)]
    coming = [n // (1 + rank + part) for part in range(size)]
    results["uneven"] = mine.new_empty(sum(coming))
    uneven = torch.cat([part[:k] for part, k in zip(parts, going, strict=True)])
    dist.all_to_all_single(results["uneven"], uneven, coming, going, group=group)
    results["reduce"] = mine.clone()
    dist.reduce(results["reduce"], group_dst=0, group=group)
    if rank:
        del results["reduce"]  # undefined there
    results["gather"] = [torch.empty_like(mine) for _ in range(size)] if rank == 0 else None
    dist.gather(mine, results["gather"], group_dst=0, group=group)
    results["scatter"] = torch.empty_like(mine)
    dist.scatter(results["scatter"], parts if rank == 0 else None, group_src=0, group=group)
    if size > 1:
        results["recv"] = torch.empty_like(mine)
        sent = dist.isend(mine, group_dst=(rank + 1) % size, group=group)
        dist.recv(results["recv"], group_src=(rank - 1) % size, group=group)
        sent.wait()
    dist.barrier(group=group)
    results["objects"] = [None] * size
    dist.all_gather_object(results["objects"], {"rank": rank, "text": "x" * 3000}, group=group)
    return results


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return len(a) == len(b) and all(map(same, a, b)) if isinstance(a, list) else a == b


def compare_with_gloo(dtypes: list[torch.dtype], n: int) -> dict[str, Any]:
    ours = wt.wrap_group(**ALWAYS)
    for dtype in dtypes:
        expected = collectives(None, dtype, n)
        got = collectives(ours, dtype, n)
        for kind, value in expected.items():
            assert same(got[kind], value), (dtype, kind)
    return wt.statistics(ours)


@pytest.mark.parametrize("n", [1, 3])
def test_every_collective_gives_what_gloo_gives(on_ranks: OnRanks, n: int) -> None:
    for counted in on_ranks(compare_with_gloo, n, DTYPES, 40_000):
        for kind in "all_reduce all_gather reduce_scatter all_to_all broadcast".split():
            traffic = counted[kind]
            assert traffic.compressed_calls <= traffic.calls
            assert traffic.compressed_calls > 0 or n == 1, kind
        assert counted["all_gather"].ratio > 1.5 or n == 1


def gradient(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed)) * 0.01


def sums(recipe: str, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    group = wt.wrap_group(recipe=recipe, **ALWAYS)
    mine = gradient(100_001, dist.get_rank()).to(dtype)
    result, mean, small = mine.clone(), mine.clone(), mine[:10].clone()
    dist.all_reduce(result, group=group)
    dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
    dist.all_reduce(small, dist.ReduceOp.AVG, group=group)
    moved = mine.clone()
    dist.broadcast(moved, 0, group=group)
    traffic = wt.statistics(group)["all_reduce"]
    return result, mean, small, moved, traffic.wire_bytes / traffic.raw_bytes


@pytest.mark.parametrize(
    ("recipe", "dtype", "error", "share"),
    [
        ("auto", torch.float32, 1e-7, 0.9),
        ("int8", torch.float32, 0.01, 0.27),
        ("int8", torch.bfloat16, 0.015, 0.54),
    ],
)
def test_sums_have_the_same_bits_everywhere_within_the_error(
    on_ranks: OnRanks, recipe: str, dtype: torch.dtype, error: float, share: float
) -> None:
    n = 3
    inputs = [gradient(100_001, rank).to(dtype) for rank in range(n)]
    exact = sum(each.double() for each in inputs)
    got = on_ranks(sums, n, recipe, dtype)
    for result, mean, small, moved, ratio in got:
        assert torch.equal(result, got[0][0])
        assert torch.equal(mean, got[0][1])
        assert (result - exact).norm() / exact.norm() < error
        assert (mean * n - exact).norm() / exact.norm() < error
        assert (small * n - exact[:10]).norm() / exact[:10].norm() < max(error, 1e-6)
        assert torch.equal(moved, inputs[0])  # what is only moved loses nothing
        assert ratio < share


def noise_traffic() -> tuple[wt.Traffic, int]:
    """Nothing can be made smaller here, and one rank has nothing at all to send."""
    group = wt.wrap_group(**ALWAYS)
    mine = torch.randint(0, 256, (1 << 20,), dtype=torch.uint8)
    outs = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(outs, mine, group=group)
    return wt.statistics(group)["all_gather"], mine.nbytes


def test_noise_is_larger_by_a_header_at_most(on_ranks: OnRanks) -> None:
    for traffic, size in on_ranks(noise_traffic, 2):
        assert traffic.compressed_calls == 1
        assert size == traffic.raw_bytes < traffic.wire_bytes < size + 100


def many_at_once() -> list[torch.Tensor]:
    group = wt.wrap_group(**ALWAYS)
    rank = dist.get_rank()
    tensors = [torch.full((3000 + i,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(each, group=group, async_op=True) for each in tensors]
    futures = [work.get_future().then(lambda f: f.value()[0].clone()) for work in works[10:]]
    for work in reversed(works[:10]):
        work.wait()
        assert work.is_completed()
    return tensors[:10] + [future.wait() for future in futures]


def test_operations_at_once_do_not_meet(on_ranks: OnRanks) -> None:
    for tensors in on_ranks(many_at_once, 2):
        for i, tensor in enumerate(tensors):
            assert torch.equal(tensor, torch.full((3000 + i,), 2.0 * i + 1))


def default_group() -> tuple[Any, ...]:
    rank = dist.get_rank()
    pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    total = torch.full((100_000,), 1.0 + rank)
    dist.all_reduce(total)
    sums = []
    for ranks, pair in zip([[0, 1], [1, 2]], pairs, strict=True):
        if rank in ranks:
            mine = torch.full((100_000,), 1.0 + rank)
            dist.all_reduce(mine, group=pair)
            sums.append(mine.mean().item())
    counted = wt.statistics()["all_reduce"]
    return dist.get_backend(), total.mean().item(), sums, counted.compressed_calls


@pytest.mark.parametrize("backend", ["wirepress", "cpu:wirepress"])
def test_as_the_backend_of_all_ranks(on_ranks: OnRanks, backend: str) -> None:
    options = wt.GroupOptions(**ALWAYS)
    results = on_ranks(default_group, 3, backend=backend, pg_options=options)
    assert [each[1:] for each in results] == [
        (6.0, [3.0], 1),
        (6.0, [3.0, 5.0], 1),
        (6.0, [5.0], 1),
    ]
    assert results[0][0] == backend


def beside_another_backend() -> str:
    with pytest.raises(ParameterError) as caught:
        dist.all_reduce(torch.ones(4))
    return str(caught.value)


def test_another_backend_in_the_same_group_is_refused(on_ranks: OnRanks) -> None:
    """PyTorch takes the first one alone, and says nothing."""
    for said in on_ranks(beside_another_backend, 2, backend="cuda:wirepress,cpu:gloo"):
        assert "gloo" in said and "of its own" in said


def settings_of_this_rank(name: str) -> str:
    if dist.get_rank():
        os.environ[name] = "1MB" if name.endswith("THRESHOLD") else "int8"
    try:
        wt.wrap_group()
    except ParameterError as error:
        return str(error)
    return "no error"


def test_settings_that_differ_are_named_on_all_ranks(on_ranks: OnRanks) -> None:
    for name, word in ("WIREPRESS_TORCH_RECIPE", "int8"), ("WIREPRESS_TORCH_THRESHOLD", "1000000"):
        for said in on_ranks(settings_of_this_rank, 2, name):
            assert "settings differ" in said and word in said and "rank 1" in said


def wrong_variable() -> str:
    if dist.get_rank():
        os.environ["WIREPRESS_TORCH_THRESHOLD"] = "12 parsecs"
    with pytest.raises(ParameterError) as caught:
        wt.wrap_group()
    return str(caught.value)


def test_a_wrong_variable_is_an_error_on_all_ranks(on_ranks: OnRanks) -> None:
    for said in on_ranks(wrong_variable, 2):
        assert "rank 1" in said and "WIREPRESS_TORCH_THRESHOLD" in said and "12 parsecs" in said


def wrong_recipe() -> str:
    with pytest.raises(ParameterError) as caught:
        wt.wrap_group(recipe="int9" if dist.get_rank() else "int8")
    return str(caught.value)


def test_a_wrong_recipe_is_an_error_on_all_ranks(on_ranks: OnRanks) -> None:
    assert all("rank 1" in said and "int9" in said for said in on_ranks(wrong_recipe, 2))


def different_calls(before: int = 0) -> list[str]:
    group = wt.wrap_group(**ALWAYS)
    for _ in range(before):
        dist.all_reduce(torch.ones(10_000), group=group)
    said = []
    for n in 10_000 + dist.get_rank(), 10_000:
        with pytest.raises(RuntimeError) as caught:
            dist.all_reduce(torch.ones(n), group=group)
        said.append(str(caught.value))
    return said


@pytest.mark.parametrize("before", [0, 2])  # votes, and the calls they are for
def test_collectives_that_differ_are_an_error_that_stays(on_ranks: OnRanks, before: int) -> None:
    for said in on_ranks(different_calls, 2, before):
        assert "all_reduce of 40000 bytes" in said[0] and "40004" in said[0]
        assert said[1] == said[0]


def death() -> str:
    group = wt.wrap_group(**ALWAYS)
    tensor = torch.ones(1 << 20)
    dist.all_reduce(tensor, group=group)
    if dist.get_rank() == 1:
        os._exit(3)
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            dist.all_reduce(tensor, group=group)
    assert time.monotonic() - began < 20
    return str(caught.value)


def test_a_dead_rank_is_an_error_of_torch(on_ranks: OnRanks) -> None:
    assert "peer" in on_ranks(death, 2, dying={1})[0]


def train_both(wrap: str, steps: int) -> bool:
    """By gloo and by the default group; whether the parameters are the same to the bit."""
    gloo = dist.new_group(backend="gloo")
    return same(train(wrap, steps, gloo), train(wrap, steps, dist.group.WORLD))


def train(wrap: str, steps: int, group: Any) -> list[torch.Tensor]:
    torch.manual_seed(7)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64), torch.nn.Linear(64, 8)
    )
    if wrap == "fsdp2":
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        trained = fully_shard(model, mesh=mesh)
    else:
        trained = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        if wrap == "compiled":
            trained = torch.compile(trained, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        inputs = gradient(16 * 64, 100 * step + dist.get_rank()).view(16, 64) * 100
        loss = trained(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    whole = [p.full_tensor() if wrap == "fsdp2" else p for p in model.parameters()]
    compressed = sum(traffic.compressed_calls for traffic in wt.statistics().values())
    assert (compressed > 0) == (group is dist.group.WORLD)
    return [p.detach().clone() for p in whole]


@pytest.mark.parametrize("wrap", ["ddp", "fsdp2", pytest.param("compiled", marks=pytest.mark.slow)])
def test_training_gives_the_same_bits_on_two_ranks(on_ranks: OnRanks, wrap: str) -> None:
    """The sum of two is the same in any order."""
    options = wt.GroupOptions(**ALWAYS)
    assert all(on_ranks(train_both, 2, wrap, 3, backend="wirepress", pg_options=options))


def functional_both(compiled: bool) -> bool:
    gloo = dist.new_group(backend="gloo")
    return same(functional(compiled, gloo), functional(compiled, dist.group.WORLD))


def functional(compiled: bool, group: Any) -> list[torch.Tensor]:
    import torch.distributed._functional_collectives as funcol

    gather = getattr(funcol, "all_gather_single", None) or funcol.all_gather_tensor
    scatter = getattr(funcol, "reduce_scatter_single", None) or funcol.reduce_scatter_tensor

    def run(mine: torch.Tensor) -> list[torch.Tensor]:
        return [
            funcol.all_reduce(mine, "sum", group) + 0,
            gather(mine, 0, group) + 0,
            scatter(mine, "sum", 0, group) + 0,
            funcol.all_to_all_single(mine, None, None, group) + 0,
        ]

    return (torch.compile(run, backend="eager") if compiled else run)(
        values(torch.float32, 40_000, dist.get_rank())
    )


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_functional_collectives(on_ranks: OnRanks, compiled: bool) -> None:
    options = wt.GroupOptions(**ALWAYS)
    assert all(on_ranks(functional_both, 2, compiled, backend="wirepress", pg_options=options))


def around_collectives() -> None:
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    came = torch.empty(40_000)
    pair = [
        dist.P2POp(dist.isend, torch.full((40_000,), float(rank)), other),
        dist.P2POp(dist.irecv, came, other),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    assert torch.equal(came, torch.full((40_000,), float(other)))
    objects = ["a" * 400_000, list(range(100_000))] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    assert objects == ["a" * 400_000, list(range(100_000))]
    with torch.inference_mode():
        dist.all_reduce(ones := torch.ones(40_000))
    assert torch.equal(ones, torch.full((40_000,), 2.0))
    weight = torch.nn.Parameter(torch.full((40_000,), float(rank)))
    dist.broadcast(weight, 1)
    assert torch.equal(weight, torch.ones(40_000))
    spectrum = torch.full((40_000,), 1 + 2j)
    dist.all_reduce(spectrum)
    assert torch.equal(spectrum, torch.full((40_000,), 2 + 4j))
    assert wt.statistics()["broadcast"].compressed_calls == 2  # not the sizes of the objects
    assert wt.statistics()["all_reduce"].compressed_calls == 2


def test_what_lies_around_collectives(on_ranks: OnRanks) -> None:
    on_ranks(around_collectives, 2, backend="wirepress", pg_options=wt.GroupOptions(**ALWAYS))


def adapted() -> wt.Traffic:
    group = wt.wrap_group(threshold=1000)
    pack_all = group._packer.pack_all

    def slow(*args: Any, **kwargs: Any) -> list[int]:
        time.sleep(0.1)
        return pack_all(*args, **kwargs)

    group._packer.pack_all = slow
    tensor = gradient(20_000, 1)
    for _ in range(33):
        dist.all_reduce(tensor.clone(), group=group)
    return wt.statistics(group)["all_reduce"]


def test_where_it_is_slower_it_is_seldom_tried(on_ranks: OnRanks) -> None:
    for traffic in on_ranks(adapted, 2):
        assert (traffic.calls, traffic.compressed_calls) == (33, 6)  # the 1st, 3rd, 5th, 31st ...


def test_the_contest_keeps_the_faster_way_and_tries_the_other() -> None:
    contest = Contest()
    raw_cost = 2.0

    def calls_of(n: int) -> list[str]:
        seen = []
        for _ in range(n):
            raw, calls = contest.plan()
            seen.append(f"{calls} {'raw' if raw else 'pressed'}")
            contest.note(raw, raw_cost if raw else 1.0)
        return seen

    learnt, tried = ["1 pressed", "1 raw"] * 3, ["1 raw"] * 3
    assert calls_of(15) == [*learnt, "24 pressed", *tried, *["24 pressed"] * 2, *tried]
    raw_cost = 1.04  # compressing must save more
    assert calls_of(7) == [*["24 pressed"] * 4, *tried]
    assert contest.plan() == (True, 192)
    assert contest.plan() == (False, 1)  # now the other one


def test_sizes_that_vary_are_tried_as_seldom() -> None:
    contest, seen = Contest(), []
    for _ in range(6 + 24 + 3):
        raw, calls = contest.plan(1)
        assert calls == 1
        seen.append(raw)
        contest.note(raw, 1.0 if raw else 2.0)
    assert seen == [False, True] * 3 + [True] * 24 + [False] * 3


def test_a_lucky_trial_is_found_out() -> None:
    contest = Contest()
    for cost in (2.0, 1.0, 1.0):  # two compressed calls that began when the others had waited
        for raw in (False, True):
            assert contest.plan() == (raw, 1)
            contest.note(raw, 1.5 if raw else cost)
    assert contest.plan() == (False, 24)
    contest.note(False, 1.0)
    for _ in range(3):
        assert contest.plan() == (True, 1)
        contest.note(True, 1.5)
    assert contest.plan() == (False, 24)
    for _ in range(24):
        contest.note(False, 2.0)
    assert contest.plan() == (True, 24)  # what is left of the pause


class Fixed(Contest):
    """Always the same way."""

    def __init__(self, raw: bool, calls: int) -> None:
        super().__init__()
        self.fixed = raw, calls

    def plan(self, most: int = 1) -> tuple[bool, int]:
        return self.fixed


def raw_among_compressed() -> tuple[int, int]:
    """How many raw operations the asking thread began, and how many the group's thread."""
    group = wt.wrap_group(threshold=1000)
    rank, line = dist.get_rank(), group._line
    asking, by_asking = threading.current_thread(), []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            by_asking.append(threading.current_thread() is asking)
            return getattr(line, name)

    size = 80_000
    group._contests["all_reduce", size.bit_length()] = Fixed(True, 50)
    group._contests["reduce_scatter", size.bit_length()] = Fixed(False, 3)
    group._line = Watched()
    parts, sums, works = [], [], []
    for step in range(120):
        if step % 7 == rank:  # ranks differ in what is done when they ask for the next one
            time.sleep(0.005)
        sums.append(torch.full((size // 4,), float(step + rank)))
        works.append(dist.all_reduce(sums[-1], group=group, async_op=True))
        if step % 5 == 4:
            whole, part = torch.full((size // 4,), float(step * (rank + 1))), torch.empty(size // 8)
            works.append(dist.reduce_scatter_tensor(part, whole, group=group, async_op=True))
            parts.append((3.0 * step, part))
        if step % 3 == 2:
            works[-1].wait()
    for work in works:
        work.wait()
    for step, got in enumerate(sums):
        assert torch.equal(got, torch.full_like(got, 2.0 * step + 1))
    for value, part in parts:
        assert torch.equal(part, torch.full_like(part, value))
    return by_asking.count(True), by_asking.count(False)


def test_raw_ones_go_at_once_where_nothing_waits(on_ranks: OnRanks) -> None:
    for by_asking, by_thread in on_ranks(raw_among_compressed, 2):
        assert by_asking > 0
        assert by_asking + by_thread == 120


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREPRESS_TORCH_THRESHOLD", "2 mb")
    monkeypatch.setenv("WIREPRESS_TORCH_RECIPE", "lz4")
    settled = wt.GroupOptions().settled()
    assert (settled.threshold, settled.recipe) == (2_000_000, "lz4")
    settled = wt.GroupOptions(threshold=7, recipe="bx").settled()
    assert (settled.threshold, settled.recipe) == (7, "bx")
    for text in "", "x", "KiB", "-1", "64kx":
        with pytest.raises(ParameterError):
            wirepress.Compressor(torch_threshold=text)
