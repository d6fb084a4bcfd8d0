# SPDX-License-Identifier: Apache-2.0
"""torchft's DiLoCo with coded outer gradients: its own lighthouse, managers and groups."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torchft", reason="torchft is not installed")
    from torchft import Manager, ProcessGroupGloo
    from torchft.coordination import LighthouseServer
    from torchft.local_sgd import DiLoCo, LocalSGD

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch import nn  # noqa: E402
from wirepress.errors import ParameterError  # noqa: E402

OnRanks = Callable[..., list[Any]]
SLOW = pytest.mark.slow
EVERY = 4
PATIENCE = timedelta(seconds=30)
# Warnings of torchft, and of what it imports, are not ours.
pytestmark = pytest.mark.filterwarnings("ignore")


@contextlib.contextmanager
def lighthouse(least: int = 2) -> Iterator[str]:
    server = LighthouseServer(
        bind="[::]:0", min_replicas=least, join_timeout_ms=200, heartbeat_timeout_ms=1000
    )
    yield server.address()
    server.shutdown()


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 100), nn.Tanh(), nn.Linear(100, 50), nn.Tanh(), nn.Linear(50, 7)
    )


def in_a_row(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


torch.manual_seed(3)
FIRST = network()  # threads share the seed, so it is drawn once
START = in_a_row(FIRST)


class Replica:
    """A replica of one rank, which draws data of its own."""

    def __init__(
        self,
        address: str,
        number: int,
        method: str | None,
        *,
        n: int = 2,
        halves: bool = False,
        wrapped: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        self.model, self.number, self.drawn = copy.deepcopy(FIRST), number, 0
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.own = Manager(
            pg=ProcessGroupGloo(timeout=PATIENCE),
            min_replica_size=n,
            load_state_dict=self.model.load_state_dict,
            state_dict=self.model.state_dict,
            replica_id=f"replica_{number}",
            store_addr="127.0.0.1",
            store_port=self.store.port,
            rank=0,
            world_size=1,
            lighthouse_addr=address,
            timeout=PATIENCE,
            quorum_timeout=PATIENCE,
            use_async_quorum=False,
            init_sync=False,
        )
        self.manager = self.own if method is None else wt.manager(self.own, method)
        if wrapped is not None:
            wrapped(self)
        self.inner = torch.optim.SGD(self.model.parameters(), 0.05)
        fragments = [self.model[:2], self.model[2:]] if halves else [self.model]
        rate = 1.0 if "sparseloco" in (method or "") else 0.7
        self.outer = [
            torch.optim.SGD(
                f.parameters(), rate, momentum=0.0 if rate == 1 else 0.9, nesterov=rate < 1
            )
            for f in fragments
        ]
        self.diloco = DiLoCo(
            self.manager, fragments, self.inner, self.outer, EVERY, pin_memory=False, **options
        )

    def train(self, steps: int) -> None:
        for _ in range(steps):
            seed = self.number + 100 * self.drawn
            self.drawn += 1
            generator = torch.Generator().manual_seed(seed)
            data = torch.randn(16, 64, generator=generator)
            self.inner.zero_grad()
            (self.model(data) - data[:, :7]).square().mean().backward()
            self.inner.step()

    def run(self, steps: int) -> torch.Tensor:
        with self.diloco:
            self.train(steps)
        return in_a_row(self.model)


def together(n: int, function: Callable[[int], Any]) -> list[Any]:
    """What the function returns for each replica; torchft's groups live in threads as well."""
    with ThreadPoolExecutor(n) as threads:
        return [f.result(60) for f in [threads.submit(function, i) for i in range(n)]]


def trained(method: str | None, *, n: int = 2, rounds: int = 3, **options: Any) -> list[Any]:
    """Weights and counts of all replicas."""

    def one(number: int) -> tuple[torch.Tensor, Any]:
        replica = Replica(address, number, method, n=n, **options)
        try:
            weights = replica.run(EVERY * rounds)
            return weights, getattr(replica.manager, "counts", None)
        finally:
            replica.own.shutdown(wait=False)

    with lighthouse(n) as address:
        return together(n, one)


@pytest.mark.parametrize(
    "method",
    [
        "none",
        "planes",
        "int4",
        *(
            pytest.param(m, marks=SLOW)
            for m in ("int8", "qsgd", "sparseloco:k=64", "topk:ratio=0.05", "int4+zstd")
        ),
    ],
)
def test_replicas_have_the_same_bits(method: str) -> None:
    results = trained(method)
    first, counts = results[0]
    assert all(torch.equal(first, weights) for weights, _ in results)
    assert not torch.equal(first, START)
    assert counts.rounds == 3 and counts.dropped == 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"halves": True},
        pytest.param({"halves": True, "fragment_sync_delay": 1}, marks=SLOW),
        pytest.param({"fragment_sync_delay": 2, "fragment_update_alpha": 0.5}, marks=SLOW),
        pytest.param({"use_bucketization": True, "bucket_cap_mb": 1 << 30}, marks=SLOW),
        pytest.param({"should_quantize": True}, marks=SLOW),
    ],
    ids=str,
)
def test_as_torchft_itself(options: dict[str, Any]) -> None:
    """Float32 as it is: what torchft does, but for the order of sums."""
    ours = trained("none", **options)
    plain = trained(None, **options)
    for (a, _), (b, _) in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    int4 = trained("int4", **options)
    moved = (plain[0][0] - START).norm()
    assert (int4[0][0] - plain[0][0]).norm() < 0.2 * moved


def alone(function: Callable[[Replica], Any], method: str = "int4", **options: Any) -> Any:
    with lighthouse(1) as address:
        replica = Replica(address, 0, method, n=1, **options)
        try:
            return function(replica)
        finally:
            replica.own.shutdown(wait=False)


def failing_in(replica: Replica, steps: tuple[int, ...]) -> None:
    """Something outside goes wrong after the exchange of these rounds, counted from 0."""
    own, rounds = replica.own.should_commit, itertools.count()

    def should_commit(*args: Any, **options: Any) -> bool:
        if next(rounds) in steps:
            replica.own.report_error(RuntimeError("a test"))
        return own(*args, **options)

    replica.own.should_commit = should_commit


@pytest.mark.parametrize("method", ["int4", "sparseloco:k=64", "topk:ratio=0.05"])
def test_nothing_is_lost(method: str) -> None:
    """What was given is what was sent and what is kept; a dropped round counts for nothing."""
    decay = 0.95 if "sparseloco" in method else 1.0
    left: dict[int, torch.Tensor] = {}

    def run(replica: Replica) -> None:
        failing_in(replica, (1,))
        manager, rounds, given = replica.manager, itertools.count(), {}
        allreduce, commit = manager.allreduce, manager.should_commit

        def noting(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
            given[len(given)] = tensor.clone(), tensor
            return allreduce(tensor, *args, **options)

        def ending(*args: Any, **options: Any) -> bool:
            commits = commit(*args, **options)
            assert commits == (next(rounds) != 1)
            for number, (before, sent) in given.items():
                if commits and before.numel() >= 1024:
                    kept = left.get(number, torch.zeros_like(before))
                    left[number] = decay * kept + before - sent
            given.clear()
            return commits

        manager.allreduce, manager.should_commit = noting, ending
        replica.run(4 * EVERY)
        assert (manager.counts.rounds, manager.counts.dropped) == (3, 1)
        assert {key[1] for key in manager._kept} == set(left) and left
        for (_, number), kept in manager._kept.items():
            assert kept.abs().max() > 0
            torch.testing.assert_close(kept, left[number].reshape(-1), rtol=1e-4, atol=1e-6)

    alone(run, method)


def test_a_frame_that_is_larger_than_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained("int4", n=3)
    monkeypatch.setattr(wt.CodedManager, "room", lambda self, n: 100)
    parts = trained("int4", n=3)
    assert torch.equal(whole[0][0], parts[0][0])
    assert all(torch.equal(parts[0][0], weights) for weights, _ in parts)


@pytest.mark.parametrize("rounds", [(1,), (0, 2)])
def test_a_replica_that_fails_takes_the_state_of_the_others(rounds: tuple[int, ...]) -> None:
    taken: list[int] = []

    def fails(replica: Replica) -> None:
        if replica.number == 1:
            failing_in(replica, rounds)
            load = replica.own._load_state_dict_fns["wirepress"]

            def noting(saved: Any) -> None:
                before = len(replica.manager._kept)
                load(saved)
                assert not replica.manager._kept
                taken.append(before)

            replica.own._load_state_dict_fns["wirepress"] = noting

    (a, of_a), (b, of_b) = trained("int4", rounds=5, wrapped=fails)
    assert of_a.dropped == 0 and of_b.dropped == len(rounds)
    assert torch.equal(a, b)
    assert len(taken) == len(rounds) and (taken[-1] > 0 or rounds == (0,))  # and lost its own rest


def spoilt(message: torch.Tensor) -> torch.Tensor:
    message[-1] ^= 0x55
    return message


def announced_too_large(message: torch.Tensor) -> torch.Tensor:
    message[:8] = torch.tensor([1 << 40]).view(torch.uint8)
    return message


def not_finite(message: torch.Tensor) -> torch.Tensor:
    message[:8] = torch.tensor([-1]).view(torch.uint8)
    return message[:8]


@pytest.mark.parametrize("change", [spoilt, announced_too_large, not_finite])
def test_a_message_that_is_wrong_drops_the_round(change: Callable[..., torch.Tensor]) -> None:
    """On all replicas; training goes on, and all have the same bits."""

    def wrong(replica: Replica) -> None:
        if replica.number == 1:
            made = replica.manager._message

            def message(tensor: torch.Tensor, key: tuple[int, int]) -> torch.Tensor:
                own = made(tensor, key)
                return change(own) if replica.drawn == 2 * EVERY else own

            replica.manager._message = message

    results = trained("int4", rounds=4, wrapped=wrong)
    assert all(counts.dropped == 1 and counts.rounds == 3 for _, counts in results)
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][0].isfinite().all()


def test_a_gradient_that_is_not_finite_drops_the_round() -> None:
    def spoil(replica: Replica) -> None:
        if replica.number == 0:
            own = replica.own.start_quorum

            def start_quorum(*args: Any, **options: Any) -> None:
                own(*args, **options)
                if replica.drawn == EVERY:  # the step that ends the first round
                    with torch.no_grad():
                        replica.model[0].weight[3, 3] = float("nan")

            replica.own.start_quorum = start_quorum

    results = trained("int4", rounds=3, wrapped=spoil)
    assert all(counts.dropped == 1 and counts.rounds == 2 for _, counts in results)
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][0].isfinite().all()


def with_a_death(address: str, port: int) -> Any:
    """Replica 1 dies within a round; another process goes on as replica 1."""
    store = dist.TCPStore("127.0.0.1", port, timeout=PATIENCE)
    me = dist.get_rank()
    if me == 2:
        store.wait(["dead"])
    replica = Replica(address, min(me, 1), "int4", n=1)
    replica.drawn = 50 * me
    if me == 1:
        replica.run(2 * EVERY + 1)
        store.set("dead", "")
        os._exit(1)
    weights = {}
    with replica.diloco:
        while (replica.manager.counts.rounds < 4) if me == 2 else not store.check(["ended"]):
            replica.train(EVERY)
            weights[replica.own.current_step()] = in_a_row(replica.model)
    store.set("ended", "")
    return weights


@SLOW
def test_a_replica_that_dies_and_comes_back(on_ranks: OnRanks) -> None:
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with lighthouse(1) as address:
        a, _, b = on_ranks(with_a_death, 3, address, server.port, dying=[1])
    both = set(a) & set(b)
    assert min(b) > 2  # it took the other one's state
    assert len(both) >= 2 and all(torch.equal(a[step], b[step]) for step in both)


def test_what_replicas_do_not_share_is_an_error_on_all() -> None:
    errors: list[str] = []

    def one(number: int) -> None:
        replica = Replica(address, number, ("int4", "int8")[number])
        with pytest.raises(ParameterError, match="another method") as caught:
            replica.run(EVERY)
        errors.append(str(caught.value))
        replica.own.shutdown(wait=False)

    with lighthouse() as address:
        together(2, one)
    assert len(errors) == 2


def test_one_replica_with_other_settings_stops_alone() -> None:
    """The others lose the round in which it came, and go on."""
    two, stopped = threading.Barrier(2, timeout=60), threading.Event()
    begun = threading.Event()

    def one(number: int) -> Any:
        if number == 2:
            assert begun.wait(60)
        replica = Replica(address, number, "int8" if number == 2 else "int4", n=1)
        with replica.diloco, contextlib.ExitStack() as end:
            end.callback(replica.own.shutdown, wait=False)
            if number == 2:
                with pytest.raises(ParameterError, match="another method"):
                    replica.train(3 * EVERY)
                stopped.set()
                return None
            left = 2  # rounds after the other one has stopped
            while left:
                replica.train(EVERY)
                begun.set()
                two.wait()
                left -= stopped.is_set()
                two.wait()
        return replica.manager.counts, in_a_row(replica.model)

    with lighthouse(2) as address:
        (counts, a), (_, b), _ = together(3, one)
    assert counts.rounds >= 2 and counts.dropped >= 1
    assert torch.equal(a, b)


@pytest.mark.parametrize("cap", [30_000, 26_000])
def test_buckets(cap: int) -> None:
    """Of several, which torchft's own futures mix up."""
    plain = trained("none")
    buckets = trained("none", use_bucketization=True, bucket_cap_mb=cap)
    torch.testing.assert_close(buckets[0][0], plain[0][0], rtol=1e-5, atol=1e-6)
    a, b = trained("int4", use_bucketization=True, bucket_cap_mb=cap)
    assert torch.equal(a[0], b[0])


def test_averages_of_weights_are_refused() -> None:
    def local_sgd(replica: Replica) -> None:
        with lighthouse(1) as address:
            other = Replica(address, 0, None, n=1)
            manager = wt.manager(other.own, "int4")
            inner = torch.optim.SGD(other.model.parameters(), 0.1)
            with (
                LocalSGD(manager, other.model, inner, 1),
                pytest.raises(ParameterError, match="DiLoCo"),
            ):
                inner.step()
            other.own.shutdown(wait=False)

    alone(local_sgd)
