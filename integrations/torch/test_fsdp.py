# SPDX-License-Identifier: Apache-2.0
"""FSDP2 with compressed collectives between real ranks, against FSDP2 without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard  # noqa: E402
from wirepress.errors import ParameterError  # noqa: E402

OnRanks = Callable[..., list[Any]]


def sharded(**policy: Any) -> nn.Sequential:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64), nn.Linear(64, 5))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **policy)
    return fully_shard(model, **policy)


def data(step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(16, 64, generator=generator)


def train(model: nn.Sequential, steps: range, lr: float = 0.05) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in steps:
        optimizer.zero_grad()
        model(data(step)).square().mean().backward()
        optimizer.step()


def whole(model: nn.Sequential) -> list[torch.Tensor]:
    return [p.full_tensor().detach().clone() for p in model.parameters()]


def trained_ways(ways: list[tuple[Any, dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [trained(*way) for way in ways]


def trained(options: dict[str, Any] | None, policy: dict[str, Any]) -> tuple[Any, ...]:
    policy = {"mp_policy": MixedPrecisionPolicy(**policy)} if policy else {}
    model = sharded(**policy)
    before = whole(model)
    state = None
    if options is not None:
        state = wt.compress_fsdp(model, threshold=2000, **options)
    train(model, range(4))
    return before, whole(model), state.statistics() if state else None


def distance(got: tuple[Any, ...], expected: tuple[Any, ...]) -> float:
    """How far apart the ways are that parameters went, as a part of the way."""
    apart = sum((a - b).norm() ** 2 for a, b in zip(got[1], expected[1], strict=True))
    way = sum((a - b).norm() ** 2 for a, b in zip(expected[0], expected[1], strict=True))
    return float(apart / way) ** 0.5


HALF = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.bfloat16}


WAYS = [  # n, options, policy, how far apart, and share of the bytes
    (2, {"gradients": "planes", "parameters": "planes"}, {}, 0.0, 1.0),
    (2, {"gradients": "int4", "error_feedback": True}, {}, 0.1, 0.2),
    (2, {"gradients": "int8", "parameters": "int8"}, {}, 0.05, 0.35),
    (2, {"gradients": "int4", "error_feedback": True}, HALF, 0.1, 0.4),
    (3, {"gradients": "int8"}, {}, 0.02, 0.35),
    (3, {"gradients": "bx:m=5"}, HALF, 0.05, 0.8),
]


@pytest.mark.parametrize("n", [2, 3])
def test_training_comes_to_the_same_place(on_ranks: OnRanks, n: int) -> None:
    ways = [way[1:] for way in WAYS if way[0] == n]
    calls = [(None, {}), (None, HALF), *((options, policy) for options, policy, *_ in ways)]
    first, *_, last = on_ranks(trained_ways, n, calls)
    for i, (options, policy, apart, share) in enumerate(ways, 2):
        assert all(torch.equal(a, b) for a, b in zip(first[i][1], last[i][1], strict=True))
        assert distance(first[i], first[1 if policy else 0]) <= apart, options
        gradients, moved = first[i][2]["gradients"], first[i][2]["parameters"]
        assert (gradients.calls, gradients.compressed_calls) == (12, 8)  # the last layer is small
        assert gradients.wire_bytes < share * gradients.raw_bytes
        if "parameters" in options:
            assert 0 < moved.wire_bytes < share * moved.raw_bytes
        else:
            assert moved.calls == 0


def feedback(recipe: str, error_feedback: bool) -> torch.Tensor:
    """What was sent of the same gradient in 10 steps."""
    torch.manual_seed(1)
    layer = fully_shard(nn.Linear(64, 64, bias=False))
    wt.compress_fsdp(layer, recipe, error_feedback=error_feedback, threshold=0)
    for _ in range(10):
        (layer(data(0)).clone() ** 2).sum().backward()
    return layer.weight.grad.full_tensor()


def feedback_errors() -> list[float]:
    exact = feedback("none", False)
    ways = [feedback("topk:ratio=0.25", wanted) for wanted in (False, True)]
    return [((way - exact).norm() / exact.norm()).item() for way in ways]


def test_error_feedback_sends_what_was_dropped(on_ranks: OnRanks) -> None:
    without, with_feedback = on_ranks(feedback_errors, 2)[0]
    assert with_feedback < 0.5 * without


def restarted(recipe: str, stop: int) -> list[torch.Tensor]:
    """Trains 4 steps, with a stop after which a new model and state go on."""
    model = sharded()
    state = wt.compress_fsdp(model, recipe, error_feedback=True, threshold=1000)
    train(model, range(stop))
    saved, weights = state.state_dict(), model.state_dict()
    if stop < 4:
        other = sharded()
        other.load_state_dict(weights)
        state = wt.compress_fsdp(other, recipe, error_feedback=True, threshold=1000)
        state.load_state_dict(saved)
        model = other
    train(model, range(stop, 4))
    return whole(model)


def restarts() -> list[bool]:
    ways = [(restarted(recipe, 4), restarted(recipe, 2)) for recipe in ("int4", "qsgd")]
    return [all(map(torch.equal, straight, broken)) for straight, broken in ways]


def test_a_restart_gives_the_same_bits(on_ranks: OnRanks) -> None:
    assert on_ranks(restarts, 2) == [[True, True]] * 2


def refusals() -> None:
    rank = dist.get_rank()
    with pytest.raises(ParameterError, match="nothing in this module"):
        wt.compress_fsdp(nn.Linear(2, 2))
    model = sharded()
    with pytest.raises(ParameterError, match="ranks differ in gradients: 'int8' on rank 0"):
        wt.compress_fsdp(model, "int4" if rank else "int8")
    with pytest.raises(ParameterError, match="int9"):
        wt.compress_fsdp(model, "int9")
    with pytest.raises(ParameterError, match="int9"):  # on all ranks
        wt.compress_fsdp(model, "int9" if rank else "int8")
    with pytest.raises(ParameterError, match="one of 'pass'"):
        wt.compress_fsdp(model, on_nonfinite="never")
    state = wt.compress_fsdp(model, error_feedback=True)
    with pytest.raises(ParameterError, match="compressed already"):
        wt.compress_fsdp(model)
    saved = {**state.state_dict(), "world_size": 7}
    with pytest.raises(ParameterError, match="world_size 7"):
        state.load_state_dict(saved)
    state.load_state_dict(saved, strict=False)
    assert state.residuals == {}
    saved = state.state_dict()
    assert "trials" not in saved["settings"]  # residuals do not depend on it
    mine = [state.state_dict()]
    dist.broadcast_object_list(mine)
    with pytest.raises(ParameterError, match=r"full_state_dict\(\) on rank 0"):
        state.load_state_dict(mine[0])
    mine = [wt.FullState(state).state_dict()]
    dist.broadcast_object_list(mine)
    wt.FullState(state).load_state_dict(mine[0])
    with pytest.raises(ParameterError, match="saved with model"):
        state.load_state_dict({**state.state_dict(), "model": "another"})


def test_what_cannot_be_is_refused(on_ranks: OnRanks) -> None:
    on_ranks(refusals, 2)


def replicated(compressed: bool) -> list[torch.Tensor]:
    from torch.distributed.device_mesh import init_device_mesh

    model = sharded(mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards")))
    if compressed:
        wt.compress_fsdp(model, "planes", threshold=1000)
    train(model, range(2))
    return whole(model)


@pytest.mark.slow
def test_replicas_of_shards(on_ranks: OnRanks) -> None:
    plain, ours = on_ranks(replicated, 4, False), on_ranks(replicated, 4, True)
    for rank in range(4):
        for a, b in zip(plain[0], ours[rank], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


# ---- what FSDP2 can do, with several recipes ----


class Complex(nn.Module):
    """A unit has one type, says FSDP2."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64, dtype=torch.complex64) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(self.weight.dtype) @ self.weight).abs()


FEATURES: dict[str, dict[str, Any]] = {
    "float64": {"model": lambda: nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).double()},
    "frozen": {"model": lambda: nn.Sequential(nn.Linear(64, 64).requires_grad_(False),
                                              nn.Linear(64, 64))},
    "accumulated": {},
    "kept": {"reshard_after_forward": False},
    "complex": {"model": lambda: nn.Sequential(nn.Linear(64, 64), Complex(), nn.Linear(64, 9))},
}  # fmt: skip
RECIPES: tuple[dict[str, Any], ...] = (
    {"gradients": "planes", "parameters": "planes"},
    {"gradients": "int4"},
    {"gradients": "onebit", "parameters": "int8"},
    {"gradients": "topk:ratio=0.5"},
)


def end_of(feature: str, recipe: dict[str, Any] | None) -> list[torch.Tensor]:
    torch.manual_seed(3)
    options = dict(FEATURES[feature])
    model = options.pop("model", lambda: nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)))()
    for layer in model:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    if recipe is not None:
        state = wt.compress_fsdp(model, threshold=1000, **recipe)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.05)
    for step in range(3):
        optimizer.zero_grad()
        for part in range(2 if feature == "accumulated" else 1):
            model.set_requires_gradient_sync(feature != "accumulated" or part == 1)
            x = data(step + 10 * part).to(torch.float64 if feature == "float64" else torch.float32)
            model(x).square().mean().backward()
        optimizer.step()
    ended = whole(model)
    if recipe is not None:
        state.close()
        with pytest.raises(ParameterError, match="was closed"):
            model(x).square().mean().backward()
    return ended


def scan() -> list[str]:
    wrong = []
    for feature in FEATURES:
        plain = end_of(feature, None)
        for recipe in RECIPES:
            ours = end_of(feature, recipe)
            apart = sum(
                float((a - b).abs().square().sum()) for a, b in zip(ours, plain, strict=True)
            )
            exact = recipe["gradients"] == "planes"
            if not apart <= (0 if exact else 5):
                wrong.append(f"{feature}, {recipe}: {apart}")
    return wrong


@pytest.mark.slow
def test_every_feature(on_ranks: OnRanks) -> None:
    assert on_ranks(scan, 2, timeout=120) == [[], []]


def overflowing_pass(model: nn.Sequential) -> None:
    """The gradient of the first layer, and of no other, is infinite on rank 1."""

    def poison(_: Any, __: Any, out: torch.Tensor) -> None:
        if dist.get_rank() == 1:
            out.register_hook(lambda g: g.index_fill(1, torch.tensor([3]), float("inf")))

    handle = model[0].register_forward_hook(poison)
    try:
        model(data(0)).square().mean().backward()
    finally:
        handle.remove()


def overflow(ways: list[str]) -> list[str]:
    """A scaled gradient that overflows in one unit must not stay in the residuals of any."""
    wrong = []
    for recipe in ways:
        ends = []
        for bad in (False, True):
            model = sharded()
            state = wt.compress_fsdp(
                model, recipe, error_feedback=True, threshold=0, on_nonfinite="skip"
            )
            if bad:
                overflowing_pass(model)
                if state.residuals:
                    wrong.append(f"{recipe}: residuals after the first step")
                found = [p.grad.to_local().isfinite().all().item() for p in model.parameters()]
                if all(found):
                    wrong.append(f"{recipe}: no sign of it")
                model.zero_grad()
            train(model, range(3))
            ends.append(whole(model))
        if recipe != "qsgd" and not all(map(torch.equal, *ends)):
            wrong.append(f"{recipe}: other bits")
    return wrong


def test_a_skipped_step_leaves_nothing_behind(on_ranks: OnRanks) -> None:
    assert on_ranks(overflow, 2, ["int4", "onebit", "topk:ratio=0.1", "qsgd"]) == [[], []]


def after_a_failed_pass(way: str) -> str:
    """A backward pass that an error ended, and the one after `reset_iter_state`."""
    model = sharded()
    state = wt.compress_fsdp(model, "int4", error_feedback=True, threshold=0, on_nonfinite=way)
    train(model, range(2))
    before = {unit: residual.clone() for unit, residual in state.residuals.items()}

    def fail(_: Any, __: Any, out: torch.Tensor) -> None:
        def raises(gradient: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("a hook of the program")

        out.register_hook(raises)

    handle = model[0].register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="a hook of the program"):
        model(data(0)).square().mean().backward()
    handle.remove()
    if all(torch.equal(before[unit], left) for unit, left in state.residuals.items()):
        return "the failed pass changed nothing: no test"
    model.reset_iter_state()
    model.zero_grad()
    try:
        overflowing_pass(model)
    except FloatingPointError:
        if way != "raise":
            raise
    else:
        if way == "raise":
            return "nothing was raised"
    same = [torch.equal(before[unit], left) for unit, left in state.residuals.items()]
    return "" if all(same) and len(same) == len(before) else "other residuals"


def test_a_failed_pass_is_forgotten(on_ranks: OnRanks) -> None:
    if not hasattr(FSDPModule, "reset_iter_state"):
        pytest.skip("this PyTorch cannot go on after a failed pass")
    for way in ("skip", "raise"):
        assert on_ranks(after_a_failed_pass, 2, way) == ["", ""]


def replicas_overflow() -> None:
    """The gradient is infinite in one replica, on rank 1: the other replica drops the step, too."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    model = sharded(mesh=mesh)
    state = wt.compress_fsdp(model, "int4", error_feedback=True, threshold=0, on_nonfinite="skip")
    train(model, range(1))
    before = {unit: residual.clone() for unit, residual in state.residuals.items()}
    assert before
    overflowing_pass(model)
    assert not all(p.grad.to_local().isfinite().all() for p in model.parameters())
    assert state.residuals.keys() == before.keys()
    for unit, residual in before.items():
        assert torch.equal(state.residuals[unit], residual), unit
    model = sharded(mesh=mesh)
    wt.compress_fsdp(model, "int4", threshold=0, on_nonfinite="raise")
    with pytest.raises(FloatingPointError, match='unit "0" is not finite on rank 1'):
        overflowing_pass(model)
    model.zero_grad()
    train(model, range(1))


def test_replicas_skip_a_step_together(on_ranks: OnRanks) -> None:
    on_ranks(replicas_overflow, 4)


def errors() -> None:
    model = sharded()
    wt.compress_fsdp(model, "int4", threshold=0, on_nonfinite="raise")
    with pytest.raises(FloatingPointError, match='unit "0" is not finite on rank 1'):
        overflowing_pass(model)
    model.zero_grad()
    train(model, range(1))
    assert all(p.isfinite().all() for p in whole(model))
    silent = sharded()
    wt.compress_fsdp(silent, "int8", threshold=0)
    train(silent, range(1))
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 1:
        store.wait(["done"])
        return
    with pytest.raises(RuntimeError, match="5000ms"):
        train(silent, range(1))
    store.set("done", "")


def test_errors_keep_their_type_and_timeouts_hold(on_ranks: OnRanks) -> None:
    on_ranks(errors, 2, timeout_of_group=5)


def resized() -> None:
    model = sharded(reshard_after_forward=False)
    wt.compress_fsdp(model, "int8", parameters="planes", threshold=0)
    model(data(0)).sum().backward()
    for p in model.parameters():
        p.to_local().untyped_storage().resize_(0)
    before = len(dist.distributed_c10d._world.pg_map)
    for _ in range(3):
        model = sharded()
        wt.compress_fsdp(model, "int8", threshold=0)
        train(model, range(1))
    assert len(dist.distributed_c10d._world.pg_map) == before


def test_nothing_stays_of_a_model(on_ranks: OnRanks) -> None:
    on_ranks(resized, 2)
