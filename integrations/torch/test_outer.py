# SPDX-License-Identifier: Apache-2.0
"""Outer steps between real processes, which are late, die, and join."""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch import nn  # noqa: E402
from wirepress.errors import ParameterError  # noqa: E402

OnRanks = Callable[..., list[Any]]
SLOW = pytest.mark.slow
METHODS = ("none", "planes", "int8", "int4", "sparseloco:k=64", "topk:ratio=0.05")


@pytest.fixture
def port() -> Iterator[int]:
    """Of a store that outlives the peers."""
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    yield server.port
    del server


def store(port: int) -> dist.Store:
    return dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=60))


def model_of(seed: int = 3, dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 100), nn.Tanh(), nn.Linear(100, 50), nn.Linear(50, 7))
    model[3].bias.requires_grad_(False)
    return model.to(dtype)


class Peer:
    """A training of its own: each draws other data."""

    def __init__(self, number: int, method: str, every: int = 2, **options: Any) -> None:
        self.model = options.pop("model", None) or model_of()
        self.number, self.drawn = number, 0
        self.optimizer = torch.optim.SGD(
            (p for p in self.model.parameters() if p.requires_grad), 0.05, momentum=0.9
        )
        self.outer = wt.OuterStep(self.model, method, every=every, **options)

    def train(self, steps: int) -> list[bool]:
        return [self.step() for _ in range(steps)]

    def step(self) -> bool:
        draw = torch.Generator().manual_seed(1000 * self.number + self.drawn)
        x = torch.randn(16, 64, generator=draw).to(next(self.model.parameters()).dtype)
        self.drawn += 1
        self.optimizer.zero_grad()
        (self.model(x) - x[:, :7]).square().mean().backward()
        self.optimizer.step()
        return self.outer.step()

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().view(-1).float() for p in self.model.parameters()])


# ---- the same bits, and nothing lost ----


def plain_diloco(steps: int, every: int, outer: str) -> torch.Tensor:
    """DiLoCo by PyTorch's optimizer and all-reduce."""
    peer = Peer(dist.get_rank(), "none", every=10**9)
    trained = [p for p in peer.model.parameters() if p.requires_grad]
    start = [p.detach().clone() for p in trained]
    knobs = {"lr": 0.7, "momentum": 0.9, "nesterov": True} if outer == "nesterov" else {"lr": 1.0}
    optimizer = torch.optim.SGD([nn.Parameter(t) for t in start], **knobs)
    for step in range(1, steps + 1):
        peer.step()
        if step % every == 0:
            masters = optimizer.param_groups[0]["params"]
            for p, master in zip(trained, masters, strict=True):
                master.grad = master.detach() - p.detach()
                dist.all_reduce(master.grad)
                master.grad /= dist.get_world_size()
            optimizer.step()
            for p, master in zip(trained, masters, strict=True):
                p.data.copy_(master.data)
    return peer.weights()


def rounds_of_all_methods() -> dict[str, Any]:
    found: dict[str, Any] = {outer: plain_diloco(8, 2, outer) for outer in ("nesterov", "sgd")}
    for method in METHODS:
        peer = Peer(dist.get_rank(), method, outer="nesterov", label=method)
        begin = peer.weights()
        assert peer.train(8) == [False, True] * 4
        found[method] = begin, peer.weights(), peer.outer.counts
        peer.outer.close()
        with pytest.raises(ParameterError, match="was closed"):
            peer.outer.step()
    return found


# Relative distances of the weights from those without compression; frames for 4 bytes.
FAR = {"none": (1e-6, 1.01), "planes": (1e-6, 1.01), "int8": (0.02, 0.28), "int4": (0.2, 0.15),
       "sparseloco:k=64": (1.2, 0.012), "topk:ratio=0.05": (1.2, 0.09)}  # fmt: skip


@pytest.mark.parametrize("n", [pytest.param(2, marks=SLOW), 3, pytest.param(4, marks=SLOW)])
def test_peers_have_the_same_bits(on_ranks: OnRanks, n: int) -> None:
    ranks = on_ranks(rounds_of_all_methods, n)
    for method in METHODS:
        begin, end, counts = ranks[0][method]
        for other in ranks[1:]:
            assert torch.equal(other[method][1], end), method
        way = (ranks[0]["nesterov"] - begin).norm()
        far, share = FAR[method]
        assert (end - ranks[0]["nesterov"]).norm() <= far * way, method
        assert (counts.rounds, counts.dropped, counts.members) == (4, 0, n)
        # Heads of frames, two for so small a model, are about 50 bytes each.
        assert counts.coded_bytes <= share * counts.raw_bytes + 4 * 200, method
        assert counts.wire_bytes <= (n - 1) * (counts.coded_bytes + 4 * 64), method


def conserved(method: str) -> list[float]:
    """With outer SGD of rate 1, the weights lack what is left in the residuals, and no more."""
    peer = Peer(dist.get_rank(), method, outer="sgd:lr=1")
    outer = peer.outer
    outer._method = type(outer._method)(outer._method.recipe, 1.0, 1.0, 0.0)  # no decay
    ways, begin = torch.zeros_like(outer._start), outer._start.clone()
    for step in range(12):
        if step == 6:  # a round that one peer cannot do
            fail_once(outer, dist.get_rank() == 1)
        if peer.step():
            ways += WAYS[0]
    total = ways - outer._residual
    dist.all_reduce(total)
    total /= dist.get_world_size()
    moved = begin - outer._start
    return [float((total - moved).norm() / moved.norm()), outer.counts.dropped]


WAYS: list[torch.Tensor] = []


def fail_once(outer: Any, here: bool) -> None:
    """The next exchange fails on this peer, after it has sent all."""
    exchange = outer._exchange

    def failing(*args: Any) -> Any:
        outer._exchange = exchange
        exchange(*args)
        raise RuntimeError("the cable is out")

    if here:
        outer._exchange = failing


def conserved_by(methods: tuple[str, ...]) -> list[list[float]]:
    plain = wt.OuterStep._exchange

    def noting(self: Any, meeting: Any, way: torch.Tensor) -> Any:
        WAYS[:] = [way.clone()]
        return plain(self, meeting, way)

    wt.OuterStep._exchange = noting
    warnings.simplefilter("ignore")
    return [conserved(method) for method in methods]


def test_nothing_is_lost_where_a_round_is_dropped(on_ranks: OnRanks) -> None:
    methods = ("int4", "sparseloco:k=64", "planes")
    for found in on_ranks(conserved_by, 3, methods):
        for method, (apart, dropped) in zip(methods, found, strict=True):
            assert dropped == 1
            assert apart < 1e-4, method


def dropped() -> list[Any]:
    peer = Peer(dist.get_rank(), "int4")
    peer.train(2)
    before = {key: value.clone() for key, value in state_of(peer).items()}
    fail_once(peer.outer, dist.get_rank() == 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        weights = peer.train(1) and peer.weights()
        assert peer.train(1) == [False]
    after = state_of(peer)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not torch.equal(peer.weights(), weights)  # training went on from where it was
    assert any("the cable is out" in str(each.message) for each in said) == (dist.get_rank() == 1)
    assert peer.train(2) == [False, True]
    return [peer.weights(), peer.outer.counts.dropped]


def state_of(peer: Peer) -> dict[str, torch.Tensor]:
    saved = peer.outer.state_dict()
    return {key: saved[key] for key in ("start", "momentum", "residual", "began")}


def test_a_dropped_round_leaves_nothing_behind(on_ranks: OnRanks) -> None:
    first, *others = on_ranks(dropped, 3)
    for other in others:
        assert torch.equal(other[0], first[0])
    assert first[1] == 1


# ---- peers that die, come late, and join ----


def with_a_dead_peer(port: int, phase: str) -> Any:
    """The last of three peers dies in its second round."""
    me = dist.get_rank()
    warnings.simplefilter("ignore")
    peer = Peer(me, "int4", store=store(port), name=f"p{me}", peers=3, patience=3.0)
    assert peer.train(2) == [False, True]
    if me == 2:
        target = peer.outer if hasattr(peer.outer, phase) else peer.outer._rounds
        work = getattr(target, phase)

        def last_words(*args: Any) -> None:
            if phase in ("meet", "_encoded"):
                os._exit(1)
            work(*args)
            os._exit(1)

        setattr(target, phase, last_words)
    counted = peer.train(6)
    return counted, peer.weights(), peer.outer.counts


PHASES = [pytest.param(phase, marks=SLOW) for phase in ("meet", "_connect", "_encoded")]


@pytest.mark.parametrize("phase", ["_exchange", "vote", *PHASES])
def test_a_peer_that_dies(on_ranks: OnRanks, port: int, phase: str) -> None:
    a, b, _ = on_ranks(with_a_dead_peer, 3, port, phase, dying=[2])
    assert a[0] == b[0]
    assert torch.equal(a[1], b[1])
    assert a[0][3:] == [True, False, True]  # the others go on
    assert a[0][1] == (phase in ("meet", "vote"))  # all had done their part, or it was not there
    assert a[2].members == 2


def wait_for(port: int, key: str, count: int) -> None:
    while int(store(port).add(key, 0)) < count:
        time.sleep(0.01)


def with_a_joiner(port: int) -> Any:
    me = dist.get_rank()
    warnings.simplefilter("ignore")
    address = {"store": store(port), "name": f"p{me}", "peers": 2, "patience": 20.0}
    if me == 2:  # with other weights, when two rounds are over
        wait_for(port, "two rounds", 2)
        model = model_of(99)
        model[3].bias.data.copy_(model_of()[3].bias)
        peer = Peer(me, "int4", every=2, model=model, **address)
    else:
        peer = Peer(me, "int4", **address)
        peer.train(4)
        store(port).add("two rounds", 1)
        wait_for(port, "wirepress/outer/model/2/count", 1)  # the joiner comes first
    counted = peer.train(4)
    return counted, peer.weights(), peer.outer.counts.caught_up, peer.outer.counts.members


def test_a_peer_that_joins(on_ranks: OnRanks, port: int) -> None:
    a, b, joined = on_ranks(with_a_joiner, 3, port)
    assert a[0] == b[0] == joined[0] == [False, True] * 2
    assert torch.equal(a[1], b[1]) and torch.equal(a[1], joined[1])
    assert (a[2], b[2], joined[2]) == (0, 0, 1)
    assert a[3] == 3


def with_a_late_peer(port: int) -> Any:
    me = dist.get_rank()
    peer = Peer(me, "int4", store=store(port), name=f"p{me}", peers=3, patience=4.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        peer.train(2)
        kept = torch.zeros(1)
        if me == 2:
            peer.train(1)
            wait_for(port, "a round", 2)
            before = peer.outer._residual.clone()
            peer.step()  # its round is over; it is taken into the next one
            kept = peer.outer._residual - before
        else:
            peer.train(2)
            store(port).add("a round", 1)
            wait_for(port, "wirepress/outer/model/2/count", 1)
            peer.train(2)
    counts = peer.outer.counts
    return peer.weights(), counts, float(kept.norm()), [str(each.message) for each in said]


@SLOW
def test_a_peer_that_is_late(on_ranks: OnRanks, port: int) -> None:
    a, b, late = on_ranks(with_a_late_peer, 3, port)
    assert torch.equal(a[0], b[0]) and torch.equal(a[0], late[0])
    assert (a[1].caught_up, late[1].caught_up, late[1].rounds, a[1].rounds) == (0, 1, 2, 3)
    assert late[2] == 0  # its way is lost, what earlier codes lacked is kept
    assert any("goes on without p2" in text for text in a[3] + b[3])


def left_alone(port: int) -> None:
    """A peer whose state nobody has any more gives up, and says why."""
    me = dist.get_rank()
    warnings.simplefilter("ignore")
    options = {"store": store(port), "name": f"p{me}", "peers": 1, "patience": 0.5, "timeout": 1.5}
    if me == 0:
        Peer(me, "int4", **options).train(2)
        store(port).set("alone", "")
        return
    store(port).wait(["alone"])
    with pytest.raises(TimeoutError, match="peer p1: no round took it in"):
        Peer(me, "int4", model=model_of(5), **options).train(2)


def test_a_peer_that_is_left_alone(on_ranks: OnRanks, port: int) -> None:
    on_ranks(left_alone, 2, port)


# ---- values, types, states ----


def with_nan() -> Any:
    me = dist.get_rank()
    peer = Peer(me, "int4")
    peer.train(2)
    residual = peer.outer._residual.clone()
    peer.train(1)
    if me == 1:
        peer.model[0].weight.data[3, 4] = float("nan")
    assert peer.train(1) == [True]
    same = torch.equal(residual, peer.outer._residual)
    return peer.weights(), same


def test_a_peer_whose_weights_are_not_finite(on_ranks: OnRanks) -> None:
    first, bad, third = on_ranks(with_nan, 3)
    assert first[0].isfinite().all()
    assert torch.equal(first[0], bad[0]) and torch.equal(first[0], third[0])
    assert (first[1], bad[1]) == (False, True)


def in_halves() -> Any:
    peer = Peer(dist.get_rank(), "int4", model=model_of(3, torch.bfloat16))
    peer.train(6)
    start = peer.outer._start
    fine = int((start != start.bfloat16().float()).sum())
    dropped = peer.outer.state_dict()
    return peer.weights(), fine, dropped["start"]


@SLOW
def test_halves_have_a_float32_master(on_ranks: OnRanks) -> None:
    a, b = on_ranks(in_halves, 2)
    assert torch.equal(a[0], b[0])
    assert a[1] > 1000


def resumed(stop: int, method: str) -> torch.Tensor:
    me = dist.get_rank()
    peer = Peer(me, method, label=f"{method} until {stop}")
    peer.train(stop)
    if stop < 8:
        saved = peer.outer.state_dict(), peer.model.state_dict(), peer.optimizer.state_dict()
        peer.outer.close()
        again = Peer(me, method, label=f"{method} after {stop}")
        again.model.load_state_dict(saved[1])
        again.optimizer.load_state_dict(saved[2])
        again.outer.load_state_dict(saved[0])
        again.drawn = stop
        peer = again
        with pytest.raises(ParameterError, match="saved with"):
            peer.outer.load_state_dict({**saved[0], "method": {}})
        with pytest.raises(ParameterError, match="other sizes"):
            peer.outer.load_state_dict({**saved[0], "start": torch.zeros(3)})
        with pytest.raises(ParameterError, match="format None"):
            peer.outer.load_state_dict({})
        lacking = {key: value + 1 for key, value in saved[0].items() if key in state_of(peer)}
        with pytest.raises(ParameterError, match="has no steps"):
            peer.outer.load_state_dict({"format": 1, "method": saved[0]["method"], **lacking})
        with pytest.raises(ParameterError, match="has no began"):
            peer.outer.load_state_dict({k: v for k, v in saved[0].items() if k != "began"})
        assert all(torch.equal(v, saved[0][k]) for k, v in state_of(peer).items())
    peer.train(8 - stop)
    return peer.weights()


def resumes() -> list[bool]:
    same = []
    for method in ("sparseloco:k=64", "qsgd:bits=4"):  # the latter rounds at random
        straight = resumed(8, method)
        same += [torch.equal(straight, resumed(stop, method)) for stop in (4, 5)]
    return same


def test_a_restart_gives_the_same_bits(on_ranks: OnRanks) -> None:
    assert on_ranks(resumes, 2) == [[True] * 4] * 2


def sites() -> Any:
    """Two sites of two ranks, which train one copy each by DDP."""
    from torch.nn.parallel import DistributedDataParallel

    me = dist.get_rank()
    inside = [dist.new_group([0, 1]), dist.new_group([2, 3])][me // 2]
    model = model_of()
    outer = wt.OuterStep(model, "int4", every=2, inside=inside, name=f"site {me // 2}", peers=2)
    ddp = DistributedDataParallel(model, process_group=inside)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.05)
    counted = []
    for step in range(4):
        draw = torch.Generator().manual_seed(10 * me + step)
        optimizer.zero_grad()
        ddp(torch.randn(16, 64, generator=draw)).square().mean().backward()
        optimizer.step()
        counted.append(outer.step())
    saved = outer.state_dict()
    outer.load_state_dict(saved)
    return counted, torch.cat([p.detach().view(-1) for p in model.parameters()]), "start" in saved


@SLOW
def test_sites_of_several_ranks(on_ranks: OnRanks) -> None:
    first, *others = on_ranks(sites, 4)
    assert first[0] == [False, True] * 2
    for other in others:
        assert other[0] == first[0]
        assert torch.equal(other[1], first[1])
    assert [each[2] for each in (first, *others)] == [True, False, True, False]


def site_in_trouble(port: int) -> list[str]:
    """What the first rank of a site raises, the other one raises too."""
    warnings.simplefilter("ignore")
    inside = dist.new_group([0, 1])
    with pytest.raises(ParameterError, match="a name and the number of peers") as unborn:
        wt.OuterStep(model_of(), inside=inside, peers=2, store=store(port))
    outer = wt.OuterStep(model_of(), every=1, inside=inside, peers=1, patience=1.0)
    if dist.get_rank() == 0:

        def meet(*_: Any) -> None:
            raise TimeoutError("no round took it")

        outer._rounds.meet = meet
    with pytest.raises((TimeoutError, RuntimeError), match="no round took it") as late:
        outer.step()
    return [str(unborn.value), str(late.value)]


def test_trouble_of_a_site_is_told_to_all_its_ranks(on_ranks: OnRanks, port: int) -> None:
    first, other = on_ranks(site_in_trouble, 2, port)
    assert other == [
        f"rank 0: {first[0]}",
        f"the first rank of this site: TimeoutError: {first[1]}",
    ]


def failing_by(error: type[Exception]) -> list[bool]:
    """Whatever fails here, the others are told at once."""
    warnings.simplefilter("ignore")
    peer = Peer(dist.get_rank(), "int4", every=1, label=error.__name__)
    if dist.get_rank() == 1:
        encoded = peer.outer._encoded

        def failing(*_: Any) -> None:
            peer.outer._encoded = encoded
            raise error("of no use")

        peer.outer._encoded = failing
    return peer.train(2)


@pytest.mark.parametrize("error", [ParameterError, MemoryError])
def test_errors_of_all_kinds_drop_a_round(on_ranks: OnRanks, error: type[Exception]) -> None:
    assert on_ranks(failing_by, 2, error) == [[False, True]] * 2


def test_a_restart_of_all_peers_on_a_lasting_store(port: int) -> None:
    from wirepress.torch.meeting import Rounds

    def one() -> Rounds:
        return Rounds(store(port), "p", "alike", 1, 0.5, 1.5)

    first = one()
    assert first.vote(first.meet("begin", -1), "after one")
    assert not first.give_up(first.meet("after one", -1))
    again = one()  # from a checkpoint
    meeting = again.meet("after one", -1)
    assert (meeting.number, meeting.state, meeting.giving()) == (2, "after one", [0])
    assert again.vote(meeting, "after two")
    with pytest.raises(TimeoutError, match="no round took it"):
        one().meet("begin", -1)  # of an older checkpoint


def test_a_first_round_that_lacks_peers_says_so(port: int) -> None:
    from wirepress.torch.meeting import Rounds

    with pytest.warns(UserWarning, match="round 0 goes on with 1 of 3 peers"):
        Rounds(store(port), "p", "alike", 3, 0.3, 5.0).meet("begin", -1)


def with_a_huge_way() -> list[Any]:
    warnings.simplefilter("ignore")
    peer = Peer(dist.get_rank(), "none", every=1, outer="sgd:lr=10")
    before = peer.outer._start.clone()
    with torch.no_grad():
        peer.model[0].weight.fill_(3e38)
    counted = peer.outer.step()
    return [counted, torch.equal(before, peer.outer._start)]


def test_weights_that_would_overflow_are_not_taken(on_ranks: OnRanks) -> None:
    assert on_ranks(with_a_huge_way, 2) == [[False, True]] * 2


def refusals(port: int) -> str:
    me = dist.get_rank()
    for method, outer, text in (
        ("int9", None, "int9"),
        ("sparseloco:k=9999", None, "whole number"),
        ("int4", "adam", 'outer="adam"'),
        ("int4", "sgd:momentum=0.9", "outer="),
        ("int4", "nesterov:lr=much", "outer="),
        ("int4", "nesterov:lr=nan", "outer="),
        ("int4", "sgd:lr=inf", "outer="),
        ("int4", "sgd:lr=-1", "outer="),
        ("int4", "nesterov:momentum=1", "outer="),
    ):
        with pytest.raises(ParameterError, match=text):
            wt.OuterStep(model_of(), method, outer=outer)
    with pytest.raises(ParameterError, match="at least 1"):
        wt.OuterStep(model_of(), every=0)
    for knob in ("patience", "timeout", "peers"):
        with pytest.raises(ParameterError, match=f"{knob} is 0"):
            wt.OuterStep(model_of(), **{knob: 0})
    with pytest.raises(ParameterError, match="patience is nan"):
        wt.OuterStep(model_of(), patience=float("nan"))
    with pytest.raises(ParameterError, match="a name and the number of peers"):
        wt.OuterStep(model_of(), store=store(port))
    with pytest.raises(ParameterError, match='label="a/b" has a "/"'):
        wt.OuterStep(model_of(), store=store(port), name="p", peers=1, label="a/b")
    with pytest.raises(ParameterError, match="no parameters"):
        wt.OuterStep(nn.Tanh())
    with pytest.raises(ParameterError, match="float64"):
        wt.OuterStep(model_of().double())
    # Who has other settings than the first is not let in; the other goes on.
    options = {"store": store(port), "peers": 2, "patience": 1.0, "timeout": 20.0}
    peer = Peer(me, "int8" if me else "int4", name=f"p{me}", label="settings", **options)
    try:
        return str(peer.train(2))
    except ParameterError as error:
        return str(error)


def test_what_cannot_be_is_refused(on_ranks: OnRanks, port: int) -> None:
    first, last = sorted(on_ranks(refusals, 2, port))
    assert first == "[False, True]"
    assert "peers differ in settings: int" in last


def test_two_of_one_name(port: int) -> None:
    """The one that came last is a member; the other one is told."""
    from wirepress.torch.meeting import Rounds

    found: list[Any] = [None, None]

    def come(i: int) -> None:
        rounds = Rounds(store(port), "twin", "alike", 1 + i, 1.0, 5.0)
        try:
            found[i] = len(rounds.meet("state", -1).members)
        except ParameterError as error:
            found[i] = str(error)

    first = Rounds(store(port), "twin", "alike", 2, 2.0, 6.0)
    threads = [threading.Thread(target=come, args=(0,))]
    store(port).add("0/count", 1)
    store(port).set("0/peer/1", '["twin", "other", "state", "alike", false, -1]')
    threads[0].start()
    threads[0].join()
    assert found[0] == 1
    with pytest.raises(ParameterError, match="another peer has the name twin"):
        first.meet("state", -1)


def sole(port: int, label: str = "run") -> Any:
    from wirepress.torch.meeting import Rounds

    own = dist.PrefixStore(f"wirepress/outer/{label}", store(port))
    return Rounds(own, "p", "alike", 1, 0.5, 1.5)


def settle(rounds: Any, n: int, state: str, *, counts: bool = True) -> None:
    """Rounds with one member, which count on it or not; they leave the state as it is."""
    for _ in range(n):
        meeting = rounds.meet(state, -1)
        dist.PrefixStore(f"{meeting.number}/gloo/", rounds.store).set("address", "here")
        assert (rounds.vote(meeting, state) if counts else rounds.give_up(meeting)) is counts


def words_of(rounds: Any) -> set[int]:
    """The rounds that have words in the store."""
    found = (re.match(r"(\d+)/(?!latest|first)[a-z]", key) for key in rounds.store.list_keys())
    return {int(match[1]) for match in found if match}


def test_words_of_old_rounds_are_deleted(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirepress.torch import meeting

    monkeypatch.setattr(meeting, "_KEPT", 5)
    monkeypatch.setattr(meeting, "_SWEEP", 3)
    neighbours = [sole(port, label) for label in ("run2", "run12", "run/2", "running")]
    for neighbour in neighbours:
        settle(neighbour, 3, "n")
    late, rounds = sole(port), sole(port)
    settle(rounds, 7, "s")
    assert words_of(rounds) == set(range(1, 7))
    settle(rounds, 20, "s")
    assert words_of(rounds) == set(range(22, 27))
    settle(rounds, 21, "s", counts=False)  # round 26 says which state all have
    assert words_of(rounds) == set(range(26, 48))
    again = sole(port)
    assert again._current == "s" and again._counted == 26
    found = again.meet("s", -1)
    assert (found.number, found.state, found.giving()) == (48, "s", [0])
    assert again.vote(found, "t")
    found = late.meet("t", -1)  # it never came to a round, and 49 were settled
    assert (found.number, found.state, found.giving()) == (49, "t", [0])
    for state in ("t", "u"):  # it is about to come to a round that is long over, and may propose
        late._number = 3
        assert late._attend(state, -1, time.monotonic() + 9) is None and late._number == 26
    assert sole(port)._current == "t"
    for neighbour in neighbours:
        assert words_of(neighbour) == {0, 1, 2} and neighbour.store.check(["latest"])
        settle(neighbour, 1, "n")


class Killed(BaseException):
    pass


class Until:
    """A store whose user is killed at its n-th deletion."""

    def __init__(self, store: Any, n: int) -> None:
        self._store, self._left = store, n

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def delete_key(self, key: str) -> bool:
        if self._left == 0:
            raise Killed
        self._left -= 1
        return self._store.delete_key(key)


def test_a_peer_that_is_killed_while_it_deletes(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirepress.torch import meeting

    monkeypatch.setattr(meeting, "_KEPT", 2)
    killed = 0
    for at in range(40):
        monkeypatch.setattr(meeting, "_SWEEP", 1000)
        rounds = sole(port)
        settle(rounds, 4, "s")
        late = sole(port)
        rounds.store = Until(rounds.store, at)
        try:
            rounds._sweep()
        except Killed:
            killed += 1
        others = sole(port)
        assert others._current == "s"
        settle(others, 1, "s")
        assert late.meet("s", -1).giving() == [0]
        late.give_up(meeting.Meeting(late._number, "s", ()))
        last = sole(port)
        settle(last, 1, "s")
        last._sweep()
        assert len(words_of(last)) <= 3
    assert killed >= 10
