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
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
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
    state = wt.compress_fsdp(model, error_feedback=True)
    with pytest.raises(ParameterError, match="compressed already"):
        wt.compress_fsdp(model)
    saved = {**state.state_dict(), "world_size": 7}
    with pytest.raises(ParameterError, match="world_size 7"):
        state.load_state_dict(saved)
    state.load_state_dict(saved, strict=False)
    assert state.residuals == {}


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
