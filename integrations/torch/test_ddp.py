# SPDX-License-Identifier: Apache-2.0
"""The DDP hook on real ranks."""

from __future__ import annotations

import gc
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch.shared  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress.torch.stages import Stages  # noqa: E402
from wirepress.torch.transport import HEAD, Mail, Post  # noqa: E402

LOSSY = {  # method: knobs, relative error that the mean of one step may have
    "bf16": ({}, 0.005),
    "int8": ({}, 0.02),
    "int4": ({}, 0.3),
    "onebit": ({}, 0.9),
    "signsgd": ({}, 0.9),
    "terngrad": ({}, 6.0),
    "terngrad+zstd": ({}, 6.0),
    "terngrad+trits": ({}, 6.0),
    "tbq": ({}, 1.01),
    "qsgd:bits=8": ({}, 0.1),
    "topk:ratio=0.1": ({}, 0.9),
    "graddrop:ratio=0.1": ({}, 0.95),
    "dgc:ratio=0.1": ({}, 0.95),
    "powersgd:rank=4": ({}, 1.0),
    "zfp:accuracy=1e-3": ({}, 0.3),
    "fre:m=5": ({}, 0.02),
    "bx:m=5": ({}, 0.02),
}


def make_model(seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(seed)
    layers = (nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 250), nn.ReLU(), nn.Linear(250, 10))
    return nn.Sequential(*layers).to(dtype)


def make_ddp(model: nn.Module, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model, bucket_cap_mb=0.2, **options)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    return torch.randn(16, 64, generator=generator), torch.randint(
        0, 10, (16,), generator=generator
    )


def train(ddp: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[float]:
    losses = []
    for step in steps:
        x, y = batch(step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(x.to(next(ddp.parameters()).dtype)).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def gradients(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.float().flatten() for p in model.parameters()])


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().float().flatten() for p in model.parameters()])


def same_on_all(tensor: torch.Tensor) -> bool:
    others = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(others, tensor)
    return all(torch.equal(tensor.view(torch.int32), other.view(torch.int32)) for other in others)


def one_step(method: str, steps: int = 1, **knobs: Any) -> tuple[torch.Tensor, Any]:
    """The gradient after `steps` backward passes on changing data, and the state."""
    ddp = make_ddp(make_model())
    state = wirepress.torch.compress(ddp, method, **knobs) if method != "plain" else None
    for step in range(steps):
        ddp.zero_grad()
        x, y = batch(step)
        nn.functional.cross_entropy(ddp(x), y).backward()
    return gradients(ddp), state


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


# ---- results ----


def mean_of_one_step(methods: dict[str, tuple[dict[str, Any], float]]) -> dict[str, Any]:
    plain, _ = one_step("plain")
    found = {}
    for method, (knobs, _) in methods.items():
        mean, state = one_step(method, **knobs)
        found[method] = (relative(mean, plain), same_on_all(mean), state.statistics()["ratio"])
    return found


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow),
                               pytest.param(8, marks=pytest.mark.slow)])  # fmt: skip
def test_mean(on_ranks: Callable[..., Any], n: int) -> None:
    quick = {key: LOSSY[key] for key in ("int8", "onebit", "topk:ratio=0.1", "powersgd:rank=4")}
    methods = LOSSY if n == 2 else quick
    for found in on_ranks(mean_of_one_step, n, methods, timeout=120):
        for method, (error, same, ratio) in found.items():
            assert same, method
            assert 0 < error < methods[method][1], method
            assert ratio > 1.4, method


def exact_means() -> dict[str, Any]:
    plain, _ = one_step("plain", steps=3)
    none, _ = one_step("none", steps=3)
    noop, _ = one_step("noop", steps=3)
    warm, _ = one_step("onebit", steps=3, warmup_steps=3)
    found = {"none": torch.equal(plain, none), "warm-up": torch.equal(plain, warm)}
    found["noop differs"] = not torch.equal(plain, noop)
    for method, algorithm in (("planes", "gather"), ("planes", "scatter"), ("bx:m=0", "auto")):
        mean, _ = one_step(method, steps=3, algorithm=algorithm)
        found[method + algorithm] = relative(mean, plain) < 1e-6 and same_on_all(mean)
    return found


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_lossless_and_plain_methods_give_the_mean(on_ranks: Callable[..., Any], n: int) -> None:
    for found in on_ranks(exact_means, n):
        assert all(found.values()), found


def feedback_sums() -> dict[str, float]:
    """With error feedback what was sent over all steps is what should have been, but for the
    residuals, which stay as small as after one step."""
    found = {}
    for method, knobs in (
        ("onebit", {"algorithm": "gather"}),
        ("onebit", {"algorithm": "scatter"}),
        ("topk:ratio=0.2", {}),
        ("int4", {"partition": 4096}),
    ):
        sums = []
        for name, options in (("plain", {}), (method, knobs)):
            ddp = make_ddp(make_model())
            if name != "plain":
                wirepress.torch.compress(ddp, name, **options)
            total = torch.zeros_like(weights(ddp))
            x, y = batch(0)
            for _ in range(30):
                ddp.zero_grad()
                nn.functional.cross_entropy(ddp(x), y).backward()
                total += gradients(ddp)
            sums.append(total)
        found[method + str(knobs)] = relative(sums[1], sums[0])
    return found


@pytest.mark.slow
def test_error_feedback(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(feedback_sums, 3):
        for method, error in found.items():
            assert error < 0.25, method


def decayed() -> float:
    plain, ddp = make_ddp(make_model()), make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "topk:ratio=0.1", feedback_decay=0.5)
    x, y = batch(0)
    nn.functional.cross_entropy(plain(x), y).backward()
    expected = gradients(plain)
    for _ in range(2):
        before = {n: r["residual"] for n, r in state.state_dict()["residuals"].items()}
        ddp.zero_grad()
        nn.functional.cross_entropy(ddp(x), y).backward()
    after = {n: r["residual"] for n, r in state.state_dict()["residuals"].items()}
    arrived = []
    for name, p in ddp.module.named_parameters():
        flat = p.grad.flatten()
        if name in after:  # what came and what is left, but for half of what was left before
            flat = flat + after[name] - 0.5 * before[name]
        arrived.append(flat)
    assert before
    return relative(torch.cat(arrived), expected)


def test_feedback_that_decays(on_ranks: Callable[..., Any]) -> None:
    (error,) = on_ranks(decayed, 1)
    assert error < 1e-6


def chosen() -> set[str]:
    found = set()
    for method in ("terngrad", "terngrad+zstd", "terngrad+trits", "terngrad:clip=0"):
        state = wirepress.torch.compress(make_ddp(make_model()), method)
        found |= set(state.choices().values()) - {"none"}
    return found


def test_terngrad_clips_as_its_paper_does(on_ranks: Callable[..., Any]) -> None:
    (found,) = on_ranks(chosen, 1)
    clipped = "terngrad:clip=2.5"
    assert found == {clipped, f"{clipped}+zstd", f"{clipped}+trits", "terngrad:clip=0"}


def clipped_halves() -> float:
    layer = nn.Linear(300, 300, bias=False).half()
    ddp = make_ddp(layer)
    wirepress.torch.compress(ddp, "dgc:ratio=0.5", momentum=0.0, clip=10.0)
    (10 * ddp(torch.full((1, 300), 100.0, dtype=torch.float16))).sum().backward()
    return float(layer.weight.grad.float().norm())


def test_float16_is_clipped_by_a_norm_that_it_cannot_hold(on_ranks: Callable[..., Any]) -> None:
    (norm,) = on_ranks(clipped_halves, 1)  # of the gradient: 300,000
    assert 5 < norm < 10


class AnnouncedLetters:
    """Letters whose sizes are told first, in collective calls: what a stage waits for is sent when
    it waits."""

    def __init__(self, post: Post) -> None:
        self.post, self.flags = post, 0
        self.parts = [torch.empty(0, dtype=torch.uint8)] * post.size

    def send(self, to: int, letter: torch.Tensor, flags: int) -> None:
        self.parts[to], self.flags = letter[HEAD:], flags

    def send_all(self, letter: torch.Tensor, flags: int) -> None:
        for to in range(self.post.size):
            self.send(to, letter, flags)

    def wait(self) -> tuple[list[torch.Tensor], list[int]]:
        sizes = [part.numel() for part in self.parts]
        return self.post.all_to_all(torch.cat(self.parts), sizes, self.flags)

    def finish(self) -> None:
        pass


def same_bits_by_letters(runs: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """Whether gradients that came by letters have the bits of those in collective calls, where all
    jobs pass all stages in one order."""
    expect, submit = Mail.expect, Stages.submit

    def submit_in_order(stages: Stages, job: Any) -> None:
        job.skips = ()
        submit(stages, job)

    found = {}
    for method, knobs in runs.items():
        ends = []
        for announced in (False, True):
            if announced:
                Mail.expect = lambda mail, bounds: AnnouncedLetters(mail._post)
                Stages.submit = submit_in_order
            mean, state = one_step(method, steps=4, **knobs)
            ends.append((mean, state.state_dict()["residuals"]))
            Mail.expect, Stages.submit = expect, submit
        (mean, left), (other_mean, other_left) = ends
        found[method] = torch.equal(mean, other_mean) and same_on_all(mean)
        assert left.keys() == other_left.keys()
        for name, kept in left.items():
            if "residual" in kept:
                found[method] &= torch.equal(kept["residual"], other_left[name]["residual"])
    return found


@pytest.mark.parametrize("n", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_letters_bring_the_bits_of_collective_calls(on_ranks: Callable[..., Any], n: int) -> None:
    runs: dict[str, dict[str, Any]] = {
        "int8": {},
        "terngrad": {"partition": 4096},
        "onebit:block=7": {"algorithm": "scatter", "feedback_decay": 0.5},
        "topk:ratio=0.05": {"rules": {"2.*": "int4", "4.*": "planes"}, "min_values": 100},
        "dgc:ratio=0.01": {"algorithm": "gather"},
    }
    for found in on_ranks(same_bits_by_letters, n, runs, timeout=120):
        assert found == dict.fromkeys(runs, True)


def with_zstd(methods: list[str]) -> list[bool]:
    same = []
    for method in methods:
        mean, _ = one_step(method, steps=3)
        shorter, _ = one_step(f"{method}+zstd:1", steps=3)
        same.append(torch.equal(mean, shorter))
    return same


def test_zstd_behind_a_method_changes_no_bit(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(with_zstd, 2, ["terngrad", "int4", "onebit"]) == [[True] * 3] * 2


def low_rank_means() -> dict[str, bool]:
    """Whether means of shares by their owners have the bits of those that every rank makes."""
    found, own = {}, wirepress.torch.powersgd.is_direct
    for method, rules in (("powersgd:rank=2", {"0.*": "onebit"}), ("powersgd:rank=40", {})):
        ends = []
        for direct in (True, False, None):
            wirepress.torch.powersgd.is_direct = lambda n, wires, d=direct: (
                own(n, wires) if d is None else d
            )
            mean, state = one_step(method, steps=4, rules=rules)
            kept = state.state_dict()["residuals"].values()
            left = [k[key].flatten() for k in kept for key in ("residual", "q") if key in k]
            ends.append(torch.cat([mean, *left]))
        found[method] = all(torch.equal(end, ends[0]) for end in ends) and same_on_all(mean)
    return found


@pytest.mark.parametrize("n", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_low_rank_means_have_the_same_bits_by_any_way(on_ranks: Callable[..., Any], n: int) -> None:
    for found in on_ranks(low_rank_means, n):
        assert found == {"powersgd:rank=2": True, "powersgd:rank=40": True}


def drawn_timeline(folder: str) -> tuple[int, int]:
    ddp = make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "int8", algorithm="scatter")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, range(2))
    with state.timeline(f"{folder}/steps.json"):
        train(ddp, optimizer, range(2))
    n_buckets = len(ddp.reducer._get_zeros_like_grad_buckets())
    train(ddp, optimizer, range(1))
    return n_buckets, state._stages._shared.log is None


def test_a_timeline_has_every_bucket_in_every_stage(
    on_ranks: Callable[..., Any], tmp_path: Path
) -> None:
    for rank, (n_buckets, ended) in enumerate(on_ranks(drawn_timeline, 2, str(tmp_path))):
        events = json.loads((tmp_path / f"steps-{rank}.json").read_text())["traceEvents"]
        assert ended and all(event["pid"] == rank for event in events)
        ready = {e["id"]: e for e in events if e["ph"] == "b"}
        ends = {e["id"]: e for e in events if e["ph"] == "e"}
        assert len(ready) == len(ends) == 2 * n_buckets > 2
        rows = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
        assert list(rows) == ["bucket", "encode", "send", "sum", "gather", "decode"]
        spans = [e for e in events if e["ph"] == "X"]
        for id_, bucket in ready.items():
            own = [e for e in spans if e["name"].startswith(f"{bucket['name']}, part")]
            assert {e["tid"] for e in own} == {1, 2, 3, 4, 5}
            assert all(bucket["ts"] <= e["ts"] <= ends[id_]["ts"] for e in own)


def two_levels() -> dict[str, Any]:
    socket.gethostname = lambda: f"host{dist.get_rank() // 2}"
    plain, _ = one_step("plain", steps=3)
    found = {}
    for memory in (True, False):
        if not memory:
            wirepress.torch.shared._FOLDER = "/no/such/folder"
        for method in ("int8", "onebit", "planes"):
            mean, state = one_step(method, steps=3)
            statistics = state.statistics()
            assert (statistics["sent_bytes_in_host"] == 0) is memory
            assert statistics["adds_in_host"] == ("memory" if memory else "messages")
            found[method, memory] = mean
    for method in ("int8", "onebit", "planes"):
        assert torch.equal(found.pop((method, True)), found[method, False])
        found[method] = (relative(found.pop((method, False)), plain), same_on_all(mean))
    with pytest.raises(wirepress.ParameterError, match="one level"):
        one_step("powersgd", levels=2)
    low_rank, _ = one_step("powersgd:rank=4", steps=3)
    found["powersgd"] = (relative(low_rank, plain), same_on_all(low_rank))
    socket.gethostname = lambda: f"host{min(dist.get_rank(), 1)}"
    with pytest.raises(wirepress.ParameterError, match="1, 3"):
        one_step("int8", levels=2)
    uneven, state = one_step("int8", steps=3)
    assert state.statistics()["sent_bytes_in_host"] == 0
    found["uneven"] = (relative(uneven, plain), same_on_all(uneven))
    return found


def test_hosts_with_several_ranks(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(two_levels, 4):
        bounds = {"int8": 0.02, "onebit": 0.9, "planes": 1e-6, "powersgd": 1.0, "uneven": 0.02}
        for method, (error, same) in found.items():
            assert same and error < bounds[method], method


# ---- training ----


def restarts(methods: list[tuple[str, dict[str, Any]]]) -> list[bool]:
    """Whether a training that is saved and loaded after 3 of 6 steps ends with the same bits,
    whatever passes the pipeline at once."""
    equal = []
    for method, knobs in methods:
        ends = []
        for stop in (False, True):
            ddp = make_ddp(make_model())
            state = wirepress.torch.compress(ddp, method, **knobs)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
            train(ddp, optimizer, range(3))
            if stop:
                file = io.BytesIO()
                torch.save(
                    [ddp.module.state_dict(), optimizer.state_dict(), state.state_dict()], file
                )
                file.seek(0)
                saved = torch.load(file, weights_only=True)
                ddp = make_ddp(make_model(seed=5))
                state = wirepress.torch.compress(ddp, method, partition=8192, **knobs)
                optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
                ddp.module.load_state_dict(saved[0])
                optimizer.load_state_dict(saved[1])
                state.load_state_dict(saved[2])
            train(ddp, optimizer, range(3, 6))
            ends.append(weights(ddp))
        equal.append(torch.equal(*ends))
    return equal


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_restart_gives_the_same_bits(on_ranks: Callable[..., Any], n: int) -> None:
    methods = [("onebit", {"warmup_steps": 1} if n == 2 else {}),
               ("topk:ratio=0.05", {"rules": {"2.*": "planes"}}),
               ("dgc:ratio=0.01", {"clip": 1.0, "ramp_steps": 4}), ("powersgd:rank=2", {}),
               ("int4", {"on_nonfinite": "skip"})]  # fmt: skip
    if n == 3:
        methods += [(method, {"on_expansion": "plain"}) for method in LOSSY]
    for equal in on_ranks(restarts, n, methods, timeout=240):
        assert dict(zip([m for m, _ in methods], equal, strict=True)) == {
            m: True for m, _ in methods
        }


def other_states() -> None:
    ddp = make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "onebit")
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(2))
    saved = state.state_dict()
    other = wirepress.torch.compress(make_ddp(make_model()), "onebit", seed=1)
    with pytest.raises(wirepress.ParameterError, match="settings"):
        other.load_state_dict(saved)
    other.load_state_dict(saved, strict=False)
    assert other.step == 2 and not other.state_dict()["residuals"]
    fresh = wirepress.torch.compress(make_ddp(make_model()), "onebit").state_dict()
    state.load_state_dict(fresh)  # what that has not is not kept
    assert state.step == 0 and not state.state_dict()["residuals"]
    state.load_state_dict(saved)
    saved["residuals"]["0.weight"]["residual"] = torch.zeros(3)
    with pytest.raises(wirepress.ParameterError, match=r'another shape of "0.weight"'):
        state.load_state_dict(saved)
    saved["step"] += dist.get_rank()
    with pytest.raises(wirepress.ParameterError, match="ranks differ in the saved step"):
        state.load_state_dict(saved, strict=False)
    with pytest.raises(wirepress.ParameterError, match="version"):
        other.load_state_dict({"format": 0})


def test_a_state_that_does_not_fit(on_ranks: Callable[..., Any]) -> None:
    on_ranks(other_states, 2)


def saved_on_one_rank() -> list[bool]:
    """As accelerate and others do: rank 0 writes a file, which all ranks read."""
    found = []
    for method in ("int4", "powersgd:rank=2"):
        ddp = make_ddp(make_model())
        state = wirepress.torch.compress(ddp, method)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(2))
        for wrong in ([state.state_dict()], [wirepress.torch.FullState(state).state_dict()]):
            dist.broadcast_object_list(wrong)
            if "ranks" not in wrong[0]:
                with pytest.raises(
                    wirepress.ParameterError, match=r"full_state_dict\(\) on rank 0"
                ):
                    state.load_state_dict(wrong[0])
        right = wrong[0]
        weight = {k: v.clone() for k, v in ddp.module.state_dict().items()}
        ends = []
        for _ in range(2):
            ddp.module.load_state_dict(weight)
            wirepress.torch.FullState(state).load_state_dict(right)
            train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(2, 4))
            ends.append(weights(ddp))
        found.append(torch.equal(*ends) and same_on_all(ends[0]))
        right["ranks"].pop()
        with pytest.raises(wirepress.ParameterError, match=r"world_size|empty"):
            state.load_state_dict({**right, "ranks": []} if dist.get_rank() else right)
    return found


def test_a_state_of_all_ranks(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(saved_on_one_rank, 2) == [[True, True]] * 2


def accumulation() -> tuple[bool, bool, int]:
    sums = []
    for method in ("plain", "planes"):
        ddp = make_ddp(make_model())
        state = wirepress.torch.compress(ddp, method) if method != "plain" else None
        for step in range(4):
            with ddp.no_sync() if step % 2 == 0 else nullcontext():
                x, y = batch(step)
                nn.functional.cross_entropy(ddp(x), y).backward()
        sums.append(gradients(ddp))
    return relative(*sums) < 1e-6, same_on_all(sums[1]), state.statistics()["steps"]


def test_gradient_accumulation(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(accumulation, 2) == [(True, True, 2)] * 2


def kinds_of_models() -> dict[str, Any]:
    found = {}
    half = make_ddp(make_model(dtype=torch.bfloat16))
    wirepress.torch.compress(half, "int8")
    losses = train(half, torch.optim.SGD(half.parameters(), lr=0.1), range(3))
    found["bfloat16"] = losses[-1] < 4 and same_on_all(weights(half))
    double = make_ddp(make_model(dtype=torch.float64))
    state = wirepress.torch.compress(double, "int8")
    train(double, torch.optim.SGD(double.parameters(), lr=0.1), range(2))
    found["float64 goes plain"] = (
        state.statistics()["plain_bytes"] > 0 and state.statistics()["raw_bytes"] == 0
    )

    class Words(nn.Module):
        def __init__(self, sparse: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.embedding = nn.Embedding(500, 64, sparse=sparse)
            self.unused = nn.Linear(64, 64)
            self.rest = make_model()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rest(self.embedding((x[:, 0].abs() * 100).long().clamp(max=499)))

    for sparse in (False, True):
        words = make_ddp(Words(sparse), find_unused_parameters=True)
        wirepress.torch.compress(words, "int8", rules={"embedding*": "planes"})
        train(words, torch.optim.SGD(words.parameters(), lr=0.1), range(3))
        found[f"unused, sparse={sparse}"] = same_on_all(weights(words))
    return found


def test_kinds_of_models(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(kinds_of_models, 2):
        assert all(found.values()), found


def counted_bytes(method: str) -> list[int]:
    found = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        ddp = make_ddp(make_model(dtype=dtype))
        state = wirepress.torch.compress(ddp, method, min_values=1)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(2))
        found.append(state.statistics()["raw_bytes"])
        state.close()
    return found


@pytest.mark.parametrize("method", ["int8", "dgc:ratio=0.1", "powersgd:rank=4"])
def test_bytes_of_gradients_are_those_of_their_type(
    on_ranks: Callable[..., Any], method: str
) -> None:
    whole = 2 * 4 * sum(p.numel() for p in make_model().parameters())
    assert on_ranks(counted_bytes, 2, method) == [[whole, whole // 2, whole // 2]] * 2


def sharded_optimizer() -> bool:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    ddp = make_ddp(make_model())
    wirepress.torch.compress(ddp, "onebit")
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1)
    train(ddp, optimizer, range(4))
    return same_on_all(weights(ddp))


def test_zero_redundancy_optimizer(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(sharded_optimizer, 2) == [True, True]


def recreated(part: bool) -> list[bool]:
    """Whether a program holds nothing of models that nobody closes."""
    # All make both groups, in the same order.
    group = [dist.new_group([0, 1]), dist.new_group([2])][dist.get_rank() == 2] if part else None
    train(
        make_ddp(make_model(), process_group=group),
        torch.optim.SGD(make_model().parameters(), 0.1),
        range(1),
    )
    before, found = held(), []
    for _ in range(3):
        ddp = make_ddp(make_model(), process_group=group)
        wirepress.torch.compress(ddp, "onebit", min_values=100)
        train(ddp, torch.optim.SGD(ddp.parameters(), 0.1), range(2))
        assert held()[:2] > before[:2]
        del ddp
        end = time.monotonic() + 10
        while not (less := all(a <= b for a, b in zip(held(), before, strict=True))):
            if time.monotonic() > end:
                break
            time.sleep(0.05)  # threads need time to end
        found.append(less)
        dist.barrier()
    return found


@pytest.mark.parametrize("part", [False, True])
def test_recreated_models_leave_nothing(on_ranks: Callable[..., Any], part: bool) -> None:
    assert on_ranks(recreated, 3 if part else 2, part) == [[True] * 3] * (3 if part else 2)


def goes_with_the_model() -> bool:
    """Threads, groups and residuals would be left behind by every model of a program."""
    ddp = make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "int8", min_values=100)
    train(ddp, torch.optim.SGD(ddp.parameters(), 0.1), range(3))
    there = weakref.ref(state)
    del ddp, state
    end = time.monotonic() + 10
    while there() is not None and time.monotonic() < end:
        time.sleep(0.01)  # the last thread may still be about to put its job down
        gc.collect()
    return there() is None


def test_goes_with_the_model(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(goes_with_the_model, 2) == [True, True]


def held() -> tuple[int, int, int]:
    """Threads, descriptors and groups of this process."""
    gc.collect()
    groups = len(dist.distributed_c10d._world.pg_map)
    return threading.active_count(), len(os.listdir("/proc/self/fd")), groups


def closed(levels: int | None) -> bool:
    ddp = make_ddp(make_model())
    before = held()
    state = wirepress.torch.compress(ddp, "onebit", min_values=100, levels=levels)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    train(ddp, optimizer, range(3))
    assert held()[:2] > before[:2]
    counted = state.statistics()["raw_bytes"]
    for _ in range(2):
        state.close()
    assert held() == before
    for forbidden in (
        lambda: train(ddp, optimizer, range(3, 4)),
        state.state_dict,
        lambda: state.load_state_dict({}),
    ):
        with pytest.raises((RuntimeError, wirepress.ParameterError), match="was closed"):
            forbidden()
    again = make_ddp(make_model())  # the module's next one
    wirepress.torch.compress(again, "onebit", min_values=100, levels=levels)
    train(again, torch.optim.SGD(again.parameters(), 0.1), range(2))
    return 0 < counted == state.statistics()["raw_bytes"]


@pytest.mark.parametrize("levels", [None, 2])
def test_closed(on_ranks: Callable[..., Any], levels: int | None) -> None:
    assert on_ranks(closed, 2, levels) == [True, True]


def compiled() -> tuple[bool, bool]:
    ends = []
    for compiled in (False, True):
        ddp = DistributedDataParallel(make_model())
        state = wirepress.torch.compress(ddp, "int8")
        model = torch.compile(ddp, backend="eager") if compiled else ddp
        train(model, torch.optim.SGD(ddp.parameters(), lr=0.1), range(4))
        ends.append(weights(ddp))
    return relative(*ends) < 1e-3, state.statistics()["raw_bytes"] > 0


@pytest.mark.slow
def test_torch_compile(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(compiled, 2, timeout=240) == [(True, True)] * 2


# ---- what goes wrong ----


def refusals() -> None:
    ddp = make_ddp(make_model())
    for words, arguments, knobs in (
        ("wants a DistributedDataParallel", (make_model(), "int8"), {}),
        ("no knob 'feedback'", (ddp, "int8"), {"feedback": True}),
        ("nosuch", (ddp, "nosuch"), {}),
        ("one of", (ddp, "int8"), {"algorithm": "tree"}),
        ("negative", (ddp, "int8"), {"warmup_steps": -1}),
        ("above 0", (ddp, "onebit"), {"feedback_decay": 0.0}),
        ("votes", (ddp, "signsgd:scale=none"), {}),
        ("momentum", (ddp, "dgc"), {"momentum": 1.0}),
        ("without", (ddp, "dgc"), {"error_feedback": False}),
        ("ramp_steps", (ddp, "dgc"), {"warmup_steps": 5}),
        ("at least 1", (ddp, "powersgd:rank=0"), {}),
        ("one setting", (ddp, "powersgd:ranks=3"), {}),
        ("nosuch", (ddp, "nosuch"), {"min_values": 10**9}),
        ("nosuch", (ddp, "int8"), {"rules": {"0.*": "nosuch"}}),
        ('fits no parameter; there are "0.weight"', (ddp, "int8"), {"rules": {"nn.*": "none"}}),
        ("whole model", (ddp, "int8"), {"rules": {"0.*": "noop"}}),
    ):
        with pytest.raises(wirepress.ParameterError, match=words):
            wirepress.torch.compress(*arguments, **knobs)
    with pytest.raises(wirepress.ParameterError, match="ranks differ in seed: 0 on rank 0, 1 on"):
        wirepress.torch.compress(ddp, "int8", seed=dist.get_rank())
    odd = "int9" if dist.get_rank() == 1 else "int8"
    with pytest.raises(wirepress.ParameterError, match="int9"):  # on all ranks
        wirepress.torch.compress(ddp, odd)
    wirepress.torch.compress(torch.compile(ddp), "int8")
    with pytest.raises(wirepress.ParameterError, match="cannot take a hook"):
        wirepress.torch.compress(ddp, "int8")


def of_other_block_sizes(method: str) -> str:
    os.environ["WIREPRESS_BLOCK_SIZE"] = "1MiB" if dist.get_rank() else "16KiB"
    try:
        wirepress.torch.compress(make_ddp(make_model()), method)
    except wirepress.ParameterError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("method", "coder"), [("int4", "int4"), ("auto", "bf16"), ("none", "")])
def test_ranks_whose_frames_have_other_sizes(
    on_ranks: Callable[..., Any], method: str, coder: str
) -> None:
    expected = f"ranks differ in the largest frame of {coder}, as by WIREPRESS_BLOCK_SIZE"
    for said in on_ranks(of_other_block_sizes, 2, method):
        assert said.startswith(expected) if coder else not said


def dgc_of_small_parameters() -> tuple[float, bool]:
    """The momentum of SGD, by the hook; sent values are not masked there."""
    ends = []
    for method in ("plain", "dgc"):
        ddp = make_ddp(make_model())
        state = None
        if method == "dgc":
            state = wirepress.torch.compress(ddp, method, momentum=0.9, min_values=10**6)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.0 if state else 0.9)
        train(ddp, optimizer, range(5))
        ends.append(weights(ddp))
    names = {name for name, _ in ddp.module.named_parameters()}
    return relative(*ends), state.with_momentum() == names


def test_dgc_corrects_momentum(on_ranks: Callable[..., Any]) -> None:
    for error, all_of_them in on_ranks(dgc_of_small_parameters, 2):
        assert all_of_them
        assert error < 1e-6


def alone() -> str:
    if dist.get_rank() == 0:
        ddp = make_ddp(make_model(), process_group=dist.new_group([0]))
        ddp.process_group = dist.group.WORLD  # as if the others had one, and do not compress
        with pytest.raises(wirepress.ParameterError) as error:
            wirepress.torch.compress(ddp, "int8")
        return str(error.value)
    dist.new_group([0])
    return ""


def test_compress_on_one_rank_only(on_ranks: Callable[..., Any]) -> None:
    said, _, _ = on_ranks(alone, 3, timeout_of_group=3)
    assert "ranks [1, 2] of 3 have not made it in 3 s" in said


def silent() -> str:
    """A rank that is alive but does not take part."""
    ddp = make_ddp(make_model())
    wirepress.torch.compress(ddp, "int8", algorithm="scatter")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, range(2))
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 1:
        store.wait(["done"])
        return ""
    try:
        train(ddp, optimizer, range(2, 3))
    except RuntimeError as error:
        return str(error)
    finally:
        store.set("done", "")
    return "no error"


def test_the_timeout_of_the_group_holds(on_ranks: Callable[..., Any]) -> None:
    said, _ = on_ranks(silent, 2, timeout_of_group=5)
    assert "5000ms" in said


def sparse_statistics() -> dict[str, Any]:
    model = nn.Sequential(nn.Embedding(5000, 16, sparse=True), nn.Linear(16, 16).double())
    model[1].register_forward_pre_hook(lambda _, x: x[0].double())
    ddp = DistributedDataParallel(model)
    state = wirepress.torch.compress(ddp, "dgc", min_values=1, momentum=0.9)
    ddp(torch.tensor([1, 2, 3])).sum().backward()
    return {**state.statistics(), **state.choices(), "momentum": state.with_momentum()}


def test_what_goes_plain_is_counted_and_named_as_such(on_ranks: Callable[..., Any]) -> None:
    for found in on_ranks(sparse_statistics, 2):
        assert found["plain_bytes"] == 3 * (8 + 16 * 4) + (16 * 16 + 16) * 8
        assert (found["0.weight"], found["1.weight"], found["1.bias"]) == ("none",) * 3
        assert not found["momentum"]


_UNCAUGHT = """
import datetime, os, sys, torch, wirepress.torch
from torch.nn.parallel import DistributedDataParallel
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0,
                                     world_size=1)
model = DistributedDataParallel(torch.nn.Linear(100, 100))
state = wirepress.torch.compress(model, "onebit", on_nonfinite="raise")
model(torch.full((2, 100), float("inf"))).sum().backward()
"""


def test_an_error_that_nobody_catches(tmp_path: Any) -> None:
    command = [sys.executable, "-c", _UNCAUGHT, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert 'FloatingPointError: the gradient of "weight" is not finite on rank 0' in done.stderr
    assert "nanobind" not in done.stderr


def test_refusals(on_ranks: Callable[..., Any]) -> None:
    on_ranks(refusals, 2)


def poison(ddp: nn.Module, step: int, bad: int) -> None:
    """A backward pass; in step `bad` rank 1 has an infinite gradient in one place."""
    x, y = batch(step)
    loss = nn.functional.cross_entropy(ddp(x), y)
    hook = ddp.module[2].weight.register_hook(
        lambda g: (
            g.index_fill(0, torch.tensor([7]), float("inf"))
            if step == bad and dist.get_rank() == 1
            else g
        )
    )
    ddp.zero_grad()
    try:
        loss.backward()
    finally:
        hook.remove()


def not_finite(algorithm: str) -> dict[str, Any]:
    found = {}
    for method in ("onebit", "topk:ratio=0.1", "int8", "powersgd:rank=2"):
        ddp = make_ddp(make_model())
        wirepress.torch.compress(ddp, method, algorithm=algorithm)
        for step in range(4):
            poison(ddp, step, 1)
            finite = gradients(ddp).isfinite().all().item()
            found[f"{method} {step}"] = finite == (step != 1) and same_on_all(gradients(ddp))
    ddp, twin = make_ddp(make_model()), make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "onebit", on_nonfinite="skip", algorithm=algorithm)
    wirepress.torch.compress(twin, "onebit", algorithm=algorithm)
    for step in range(4):
        poison(ddp, step, 1)
        found[f"skip {step}"] = gradients(ddp).isfinite().all().item() == (step != 1)
        if step != 1:  # as if the step had not been
            poison(twin, step, -1)
            found[f"twin {step}"] = torch.equal(gradients(ddp), gradients(twin))
    found["counted"] = state.statistics()["skipped_steps"] == 1
    ddp = make_ddp(make_model())
    wirepress.torch.compress(ddp, "int8", on_nonfinite="raise", algorithm=algorithm)
    poison(ddp, 0, 1)
    with pytest.raises(FloatingPointError, match=r'"2.weight" is not finite on rank 1'):
        poison(ddp, 1, 1)
    poison(ddp, 2, 1)  # who catches that may go on
    found["after an error"] = bool(gradients(ddp).isfinite().all())
    return found


def skipped_steps() -> list[str]:
    """A step that is skipped leaves nothing behind, the first one too: what is saved after it is
    what would have been saved before."""
    wrong = []
    for method in ("int4", "onebit", "topk:ratio=0.1", "dgc:ratio=0.1", "powersgd:rank=2"):
        ddp = make_ddp(make_model())
        state = wirepress.torch.compress(ddp, method, on_nonfinite="skip")
        for step in range(4):
            before = state.state_dict()["residuals"]
            poison(ddp, step, step // 2 * 2)  # steps 0 and 2
            after = state.state_dict()["residuals"]
            if gradients(ddp).isfinite().all().item() == (step % 2 == 0):
                wrong.append(f"{method}: the gradient of step {step}")
            if same(before, after) == (step % 2 == 1):
                wrong.append(f"{method}: the residuals after step {step}")
        if state.statistics()["skipped_steps"] != 2:
            wrong.append(f"{method}: the count")
        if not same_on_all(gradients(ddp)):
            wrong.append(f"{method}: ranks differ")
    ddp = make_ddp(make_model())
    state = wirepress.torch.compress(ddp, "onebit", on_nonfinite="raise", warmup_steps=1)
    with pytest.raises(FloatingPointError, match=r'"2.weight".* is not finite on a rank'):
        poison(ddp, 0, 0)
    return wrong


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return torch.equal(a, b)


def test_a_skipped_step_leaves_nothing_behind(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(skipped_steps, 2) == [[], []]


@pytest.mark.parametrize("algorithm", ["gather", "scatter"])
def test_gradients_that_are_not_finite(on_ranks: Callable[..., Any], algorithm: str) -> None:
    for found in on_ranks(not_finite, 2, algorithm):
        assert all(found.values()), [key for key, good in found.items() if not good]


def expansion() -> bool:
    # Noise as a gradient: zfp's transform does nothing for it, and 2 bits a value are too few.
    for knobs in ({}, {"on_expansion": "plain"}):
        ddp = make_ddp(make_model())
        state = wirepress.torch.compress(ddp, "zfp:rate=3", **knobs)
        if knobs:
            train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(3))
        else:
            with pytest.raises(wirepress.ParameterError, match="makes the residual of"):
                train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), range(3))
    return "none" in {c for name, c in state.choices().items() if name.endswith("weight")}


def test_a_codec_that_is_no_contraction_is_refused(on_ranks: Callable[..., Any]) -> None:
    assert on_ranks(expansion, 2) == [True, True]


def test_ranks_agree_on_one_of_several_flags() -> None:
    from wirepress.torch.exchange import EXPANDS, NOT_FINITE, Flags

    ranks = [Flags(0), Flags(1), Flags(2)]
    ranks[0].found(EXPANDS, 0)
    ranks[1].found(EXPANDS, 1)
    ranks[2].found(EXPANDS, 2)
    ranks[2].found(NOT_FINITE, 1)
    values = [rank.value for rank in ranks]
    for n in (2, 3):
        for rank in ranks[:n]:
            rank.note(values[:n])
        found = {rank.error(["a", "b", "c"]).args for rank in ranks[:n]}
        assert found == {(EXPANDS, "a", 0) if n == 2 else (NOT_FINITE, "b", 2)}


def death() -> str:
    ddp = make_ddp(make_model())
    wirepress.torch.compress(ddp, "int8", algorithm="scatter")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, range(2))
    if dist.get_rank() == 2:
        os._exit(3)
    try:
        train(ddp, optimizer, range(2, 6))
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_rank_that_dies_leaves_an_error(on_ranks: Callable[..., Any]) -> None:
    first, second, _ = on_ranks(death, 3, dying=[2])
    for said in (first, second):
        assert "onnection" in said and "cast" not in said, said
