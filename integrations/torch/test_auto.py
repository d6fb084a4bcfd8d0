# SPDX-License-Identifier: Apache-2.0
"""method="auto": the choice, and that it is not worse than nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress import UnsupportedError  # noqa: E402
from wirepress.torch import auto  # noqa: E402
from wirepress.torch.auto import Trial, choose  # noqa: E402
from wirepress.torch.wires import connect  # noqa: E402


def test_least_time_within_the_budget() -> None:
    trials = {
        "dense": [Trial("none", 10, 0, 1), Trial("int8", 3, 1, 4), Trial("int4", 1, 9, 8)],
        "rows": [Trial("none", 10, 0, 1), Trial("planes", 1, 0, 40), Trial("int4", 2, 5, 8)],
        "small": [Trial("none", 0.1, 0, 1), Trial("int8", 0.2, 1, 4), Trial("int4", 0.2, 2, 8)],
    }

    def recipes(budget: float) -> list[str]:
        chosen = choose(trials, budget)
        assert sum(trial.error for trial in chosen.values()) <= budget
        return [trial.recipe for trial in chosen.values()]

    assert recipes(100) == ["int4", "planes", "none"]
    assert recipes(8) == ["int8", "planes", "none"]
    assert recipes(0.5) == ["none", "planes", "none"]
    assert recipes(0) == ["none", "planes", "none"]
    assert choose({}, 0) == {}


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(5000, 64)
        self.norm = nn.LayerNorm(64)
        self.dense = nn.Linear(64, 512)
        self.out = nn.Linear(512, 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.dense(self.norm(self.embedding(x)))))


def choices_on_two_hosts() -> dict[str, Any]:
    """Of four ranks; those of one rank number see slow steps, the others fast ones."""
    socket.gethostname = lambda: f"host{dist.get_rank() // 2}"
    return choices(1e6, 0.2, dist.get_rank() % 2 == 1)


def test_ranks_of_a_host_agree(on_ranks: Callable[..., Any]) -> None:
    first, *others = on_ranks(choices_on_two_hosts, 4)
    assert first["used"] is False
    for other in others:
        assert all(other[key] == first[key] for key in ("choices", "used", "weights"))


def choices(link: float, budget: float, slow: bool) -> dict[str, Any]:
    ddp = DistributedDataParallel(Words())
    state = wirepress.torch.compress(ddp, "auto", error_budget=budget, min_values=1024)
    tuner = state._tuner
    tuner.link = link
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(30):
        generator = torch.Generator().manual_seed(step)
        x = torch.randint(0, 200, (16,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(ddp(x), x % 50).backward()
        optimizer.step()
        if tuner._phase == "own" and tuner._left == 1:  # as if steps had taken so long
            tuner._times = [2.0 if slow else 1e-9] * 6
    return {
        "choices": {choice.name: choice.recipe for choice in tuner.choices},
        "used": tuner._used,
        "explain": state.explain(),
        "weights": [p.detach().sum().item() for p in ddp.parameters()],
        "compressed": state.statistics()["raw_bytes"],
    }


@pytest.mark.parametrize(("link", "budget", "slow"), [(1e6, 0.2, False), (1e6, 0.0, True)])
def test_choices(on_ranks: Callable[..., Any], link: float, budget: float, slow: bool) -> None:
    first, second = on_ranks(choices, 2, link, budget, slow)
    for key in ("choices", "used", "weights"):
        assert first[key] == second[key]
    chosen = first["choices"]
    lossless = ("planes", "bx:m=0")
    zeros = (*lossless, "int4+zstd:1") if budget else lossless
    assert chosen["embedding.weight"] in zeros  # as nearly all of its rows are
    assert chosen["dense.weight"] in (
        ("int8", "int4", "int4+zstd:1", "qsgd:bits=2") if budget else lossless
    )
    assert first["used"] is not slow
    assert ("left alone" in first["explain"]) is slow
    for name in chosen:
        assert name in first["explain"]
    assert first["compressed"] > 0


def choices_of_builds() -> tuple[list[str], dict[str, Any]]:
    """Rank 1 has a library without zstd, rank 2 one without qsgd."""
    lacks = ("", "zstd", "qsgd")[dist.get_rank()]

    class Built(auto.Coder):
        def __init__(self, recipe: str) -> None:
            if lacks and lacks in recipe:
                raise UnsupportedError(f"no codec {lacks}")
            super().__init__(recipe)

    auto.Coder = Built
    found = choices(1e6, 0.2, False)
    tried = auto.Tuner(connect(dist.group.WORLD, 1), 0.2)._coders
    return list(tried), found


def test_what_a_build_lacks_is_left_out_on_all_ranks(on_ranks: Callable[..., Any]) -> None:
    first, *others = on_ranks(choices_of_builds, 3)
    for other in others:
        assert other[0] == first[0] == ["planes", "bx:m=0", "bf16", "int8", "int4"]
        assert all(other[1][key] == first[1][key] for key in ("choices", "used", "weights"))


def test_a_fast_link_is_left_alone(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(choices, 2, 1e15, 0.2, False):
        assert set(found["choices"].values()) == {"none"}
