# SPDX-License-Identifier: Apache-2.0
"""Parameters that a step does not use: buckets that DDP leaves out, and residuals that stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress.errors import ParameterError  # noqa: E402

OnRanks = Callable[..., list[Any]]


class Heads(nn.Module):
    """Layers of which a step uses those with these numbers; each fills a bucket."""

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(n))

    def forward(self, x: torch.Tensor, used: list[int]) -> torch.Tensor:
        for number in used:
            x = self.layers[number](x)
        return x


def wrapped(model: nn.Module, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model, bucket_cap_mb=0.01, **options)


def left_out(used: list[int], method: str) -> str:
    """DDP calls no hook for buckets that nobody uses, be they the first or the last."""
    options = {"find_unused_parameters": True, "skip_all_reduce_unused_params": True}
    within = 0.9 if method.startswith("powersgd") else 0.05  # a sum of ranks is off by more
    plain, ours = wrapped(Heads(), **options), wrapped(Heads(), **options)
    state = wt.compress(ours, method, min_values=1, on_nonfinite="raise")
    for step in range(3):
        draw = torch.Generator().manual_seed(10 * step + dist.get_rank())
        x = torch.randn(8, 64, generator=draw)
        for model in plain, ours:
            model.zero_grad()
            model(x, used).square().sum().backward()
        for number, (a, b) in enumerate(zip(plain.parameters(), ours.parameters(), strict=True)):
            if (a.grad is None) != (b.grad is None):
                return f"layer {number} has a gradient"
            if a.grad is not None and (a.grad - b.grad).norm() > within * a.grad.norm():
                return f"step {step}, layer {number}: another gradient"
    if state.statistics()["steps"] != 3:
        return f"{state.statistics()['steps']} steps"
    before = state.state_dict()["residuals"]
    with pytest.raises(FloatingPointError):
        ours(torch.full((8, 64), float("nan")), used).sum().backward()
    after = state.state_dict()["residuals"]
    if str(before) != str(after):
        return "the residuals are others after an error"
    return ""


def every_place(method: str) -> list[str]:
    places = ([0, 1, 2], [0, 1], [1, 2], [1], [0, 2], [0], [2])
    return [f"{used}: {said}" for used in places if (said := left_out(used, method))]


@pytest.mark.parametrize("method", ["int8", "none", "powersgd:rank=31"])
def test_buckets_that_are_left_out(on_ranks: OnRanks, method: str) -> None:
    assert on_ranks(every_place, 2, method) == [[], []]


def kept(method: str, options: dict[str, Any], knobs: dict[str, Any]) -> bool:
    """What is left of a layer stays while no rank uses it: DDP would drop what is sent."""
    ddp = wrapped(Heads(2), **options)
    state = wt.compress(ddp, method, min_values=1, **knobs)

    def residual() -> torch.Tensor:
        saved = state.state_dict()["residuals"]["layers.1.weight"]
        return torch.cat(
            [each.flatten() for each in (saved["residual"], *saved.get("sums", {}).values())]
        )

    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(dist.get_rank()))

    def step(used: list[int]) -> torch.Tensor:
        ddp.zero_grad()
        ddp(x, used).square().sum().backward()
        return residual()

    step([0, 1])
    before = step([0, 1])
    unused = [step([0]), step([0])][-1]
    return bool(before.any()) and torch.equal(unused, before) and not step([0, 1]).equal(before)


def all_kept() -> list[str]:
    methods: dict[str, dict[str, Any]] = {
        "topk:ratio=0.05": {},
        "onebit": {"algorithm": "scatter"},
        "int4": {"error_feedback": True, "feedback_decay": 0.5},
        "dgc:ratio=0.05": {},
        "powersgd:rank=2": {},
    }
    options = {"find_unused_parameters": True}
    return [method for method, knobs in methods.items() if not kept(method, options, knobs)]


def test_residuals_of_unused_parameters_stay(on_ranks: OnRanks) -> None:
    assert on_ranks(all_kept, 2) == [[], []]


def used_by_one(method: str) -> float:
    """What is lost of a layer's gradients, of which ranks take turns: neither sent nor kept."""
    ddp = wrapped(Heads(2), find_unused_parameters=True)
    state = wt.compress(ddp, method, min_values=1, algorithm="gather")
    total, came = torch.zeros(64, 64), torch.zeros(64, 64)
    draw = torch.Generator().manual_seed(1)
    for step in range(20):
        x, uses = torch.randn(8, 64, generator=draw), dist.get_rank() == step % 2
        ddp.zero_grad()
        ddp(x, [0, 1] if uses else [0]).sum().backward()
        if uses:  # the gradient of a sum of rows: their sum, in each row
            total += ddp.module.layers[0](x).detach().sum(0).expand(64, 64) / 2
        came += ddp.module.layers[1].weight.grad
    total += -state.state_dict()["residuals"]["layers.1.weight"]["residual"].view(64, 64) / 2
    dist.all_reduce(total)
    return float((total - came).norm() / total.norm())


def test_nothing_is_lost_where_ranks_take_turns(on_ranks: OnRanks) -> None:
    for lost in on_ranks(used_by_one, 2, "topk:ratio=0.05"):
        assert lost < 1e-4


def mixed() -> str:
    with pytest.raises(ParameterError) as caught:
        wt.compress(wrapped(Heads(2)), "auto", rules={"layers.0*": "dgc:ratio=0.01"})
    return str(caught.value)


def test_dgc_beside_auto_is_refused(on_ranks: OnRanks) -> None:
    assert all("dgc" in said and "auto" in said for said in on_ranks(mixed, 2))


def other_defaults(method: str) -> list[str]:
    """The program's default type and device are not those of what wirepress keeps."""
    torch.set_default_dtype(torch.bfloat16)
    found = []
    try:
        ddp = wrapped(Heads(2))
        state = wt.compress(ddp, method, min_values=1)
        for _ in range(2):
            ddp(torch.ones(8, 64), [0, 1]).sum().backward()
        found += [
            f"{name}: {key}"
            for name, saved in state.state_dict()["residuals"].items()
            for key, kept in saved.items()
            if key != "sums" and kept.dtype != torch.float32
        ]
        state.close()
        outer = wt.OuterStep(ddp.module, "none", every=1)
        with torch.no_grad():
            for parameter in ddp.parameters():
                parameter.add_(1 + dist.get_rank())
        outer.step()
        momentum = outer.state_dict()["momentum"]
        found += [] if momentum.dtype == torch.float32 else [f"momentum of {momentum.dtype}"]
        outer.close()
        group = wt.wrap_group(threshold=1, adaptive=False)
        values = torch.full((1000,), 2.0)
        dist.all_reduce(values, group=group)
        found += [] if values.dtype == torch.bfloat16 and bool((values == 4).all()) else ["a sum"]
    finally:
        torch.set_default_dtype(torch.float32)
    return found


@pytest.mark.parametrize("method", ["int8", "onebit", "topk", "powersgd:rank=2", "planes", "auto"])
def test_another_default_type(on_ranks: OnRanks, method: str) -> None:
    assert on_ranks(other_defaults, 2, method) == [[], []]
