# SPDX-License-Identifier: Apache-2.0
"""What DDP can do, with every method: the same bits on all ranks, close to DDP without a hook."""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import wirepress.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from wirepress.torch.coder import Coder  # noqa: E402

OnRanks = Callable[..., list[Any]]

METHODS = {  # relative error that the mean of one step may have
    "none": 0.0,
    "planes": 0.0,
    "bx:m=0": 0.0,
    "zeros": 0.0,
    "bf16": 0.005,
    "fp16": 0.002,
    "fp8": 0.1,
    "int8": 0.03,
    "int4": 0.3,
    "onebit": 0.95,
    "onebit:block=7": 0.9,
    "signsgd": 2.0,
    "terngrad": 6.0,
    "terngrad+zstd": 6.0,
    "terngrad+trits": 6.0,
    "tbq": 1.01,
    "qsgd:bits=8": 0.1,
    "topk:ratio=0.1": 0.95,
    "topq:k=400": 0.98,
    "graddrop:ratio=0.1": 0.98,
    "dgc:ratio=0.1": 0.98,
    "powersgd:rank=2": 1.0,
    "zfp:accuracy=1e-3": 0.3,
    "fre:m=5": 0.03,
    "bx:m=5": 0.03,
    "sz3:rel=1e-3": 0.3,
    "auto": 0.5,
}
QUICK = ("int8", "planes", "onebit", "powersgd:rank=2", "dgc:ratio=0.1")
STEPS = 3


class Model(nn.Module):
    """Two layers, and what a feature puts between them."""

    def __init__(self, between: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 24), nn.Linear(24, 10)
        self.between = between or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.between(self.first(x).tanh()))


class Complex(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(24, 24, dtype=dtype) / 5)
        self.b = nn.Parameter(torch.randn(24, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(self.a.dtype) @ self.a + self.b).abs().to(x.dtype)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 24, sparse=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # DDP divides sparse gradients in place: a sum alone would have the same memory for x.
        return x + 2 * self.table((x.detach()[:, 0].abs() * 99).long())


class Branches(nn.Module):
    """One that rank 0 alone uses, and one that nobody does."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(24, 24), nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x) if dist.get_rank() == 0 else x


class Idle(Branches):
    """One branch is used on all ranks, the other nowhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x)


class Scalars(nn.Module):
    """Parameters of one value, of no shape and of none at all."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.zero_d = nn.Parameter(torch.ones(1)), nn.Parameter(torch.tensor(1.5))
        self.empty = nn.Parameter(torch.empty(0, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.one + self.zero_d + self.empty.sum()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(24, 24), nn.Linear(24, 24)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).tanh())


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 8, 3, padding=1)
        self.back = nn.Linear(48, 24)
        self.to(memory_format=torch.channels_last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.back(self.convolution(x.view(-1, 4, 2, 3)).flatten(1))


class Recomputed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.inner, self.reentrant = nn.Linear(24, 24), reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self.inner, x, use_reentrant=self.reentrant)


class Run:
    """One training, with a method or (None) without a hook."""

    def __init__(self, feature: str, method: str | None) -> None:
        torch.manual_seed(0)
        self.method, self.feature = method, feature
        make, self.options = FEATURES[feature]
        self.module = make()
        self.knobs: dict[str, Any] = {"min_values": 20, "on_expansion": "plain"}
        if feature == "one value":
            self.knobs["min_values"] = 1
        self.gradient = torch.empty(0)
        self.wrap()

    def wrap(self) -> None:
        module = self.module
        if self.feature == "compiled before":
            module = torch.compile(module, backend="eager")
        cap = {"one value": 1e-6, "compiled before": 25, "compiled after": 25}.get(
            self.feature, 0.004
        )
        self.ddp = DistributedDataParallel(module, bucket_cap_mb=cap, **self.options)
        self.model: Any = self.ddp
        if self.feature == "compiled after":
            self.model = torch.compile(self.ddp, backend="eager")
        if self.feature == "frozen between":
            self.module.between.bias.requires_grad_(False)
        if self.method is not None:
            self.state = wirepress.torch.compress(self.model, self.method, **self.knobs)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=0.05)

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
        dtype = self.module.first.weight.dtype
        x = torch.randn(8, 16, generator=generator).to(dtype)
        return x, torch.randint(0, 10, (8,), generator=generator)

    def loss(self, step: int) -> torch.Tensor:
        x, y = self.batch(step)
        return nn.functional.cross_entropy(self.model(x).float(), y)

    def train(self) -> None:
        kind = self.feature.split(" ")[0]
        for step in range(STEPS):
            self.optimizer.zero_grad(set_to_none=step % 2 == 0)
            getattr(self, f"step_{kind}", self.step)(step)
            if step == 0:
                self.gradient = numbers(p.grad for p in self.ddp.parameters())
            self.optimizer.step()

    def step(self, step: int) -> None:
        self.loss(step).backward()

    def step_no_sync(self, step: int) -> None:
        for part in range(3):
            with self.ddp.no_sync() if part < 2 else nullcontext():
                self.loss(3 * step + part).backward()

    def step_accumulated(self, step: int) -> None:
        for part in range(2):
            self.loss(2 * step + part).backward()

    def step_frozen(self, step: int) -> None:
        if self.feature == "frozen later" and step == 1:
            self.module.between.requires_grad_(False)
        self.loss(step).backward()

    def step_recreated(self, step: int) -> None:
        if step:
            del self.ddp, self.model
            self.wrap()
        self.loss(step).backward()

    def step_saved(self, step: int) -> None:
        """The model is one that was saved whole, and read."""
        if step:
            file = io.BytesIO()
            torch.save(self.ddp, file)
            file.seek(0)
            with warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("always")
                self.ddp = self.model = torch.load(file, weights_only=False)
            said = [
                str(n.message) for n in noted if "call wirepress.torch.compress again" in str(n)
            ]
            assert len(said) == (self.method is not None), [str(n.message) for n in noted]
            if self.method is not None:
                self.state = wirepress.torch.compress(self.model, self.method, **self.knobs)
            self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=0.05)
        self.loss(step).backward()

    def step_between(self, step: int) -> None:
        """Passes that end without a backward one."""
        self.loss(step)
        with torch.no_grad():
            self.loss(step)
        self.loss(step).backward()

    def step_bf16(self, step: int) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.loss(step)
        loss.backward()


class Joined(Run):
    """Ranks have different numbers of batches."""

    def train(self) -> None:
        with self.ddp.join(divide_by_initial_world_size=self.feature == "join"):
            for step in range(STEPS + dist.get_rank()):
                self.optimizer.zero_grad()
                self.loss(step).backward()
                if step == 0:
                    self.gradient = numbers(p.grad for p in self.ddp.parameters())
                self.optimizer.step()


class Scaled(Run):
    """Half precision; the first scale is too large."""

    def __init__(self, feature: str, method: str | None) -> None:
        super().__init__(feature, method)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120, backoff_factor=2.0**-112)
        if method is not None:
            assert self.state.settings.on_nonfinite == "skip"

    def wrap(self) -> None:
        self.knobs["on_nonfinite"] = "skip"
        super().wrap()

    def train(self) -> None:
        for step in range(STEPS + 1):
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = self.loss(max(step - 1, 0))
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            if step == 1:
                self.gradient = numbers(p.grad for p in self.ddp.parameters())
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.method is not None:
            assert self.state.statistics()["skipped_steps"] == 1


def layer() -> nn.Module:
    return nn.Linear(24, 24)


FEATURES: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "no feature": (lambda: Model(layer()), {}),
    "unused": (lambda: Model(Branches()), {"find_unused_parameters": True}),
    "static graph": (lambda: Model(layer()), {"static_graph": True}),
    "no_sync": (lambda: Model(layer()), {}),
    "accumulated": (lambda: Model(layer()), {}),
    "join": (lambda: Model(layer()), {}),
    "join of those with data": (lambda: Model(layer()), {}),
    "bf16 autocast": (lambda: Model(layer()), {}),
    "fp16 autocast": (lambda: Model(layer()), {}),
    "complex64": (lambda: Model(Complex(torch.complex64)), {}),
    "complex128": (lambda: Model(Complex(torch.complex128)), {}),
    "sparse": (lambda: Model(Words()), {}),
    "float64": (lambda: Model(layer()).double(), {}),
    "bfloat16": (lambda: Model(layer()).bfloat16(), {}),
    "float16": (lambda: Model(layer()).half(), {}),
    "frozen": (lambda: Model(layer().requires_grad_(False)), {}),
    "frozen later": (lambda: Model(layer()), {"find_unused_parameters": True}),
    "frozen between": (lambda: Model(layer()), {"find_unused_parameters": True}),
    "recreated": (lambda: Model(layer()), {}),
    "gradient_as_bucket_view": (lambda: Model(layer()), {"gradient_as_bucket_view": True}),
    "tied": (lambda: Model(Tied()), {}),
    "one value": (lambda: Model(Scalars()), {}),
    "channels last": (lambda: Model(Image()), {}),
    "recomputed": (lambda: Model(Recomputed(False)), {}),
    "reentrant": (lambda: Model(Recomputed(True)), {"static_graph": True}),
    "batch norm": (lambda: Model(nn.BatchNorm1d(24)), {}),
    "saved": (lambda: Model(layer()), {}),
    "between": (lambda: Model(layer()), {}),
    "unused skipped": (
        lambda: Model(Idle()),
        {"find_unused_parameters": True, "skip_all_reduce_unused_params": True},
    ),
    "no first sync": (lambda: Model(layer()), {"init_sync": False}),
    "batched copies": (lambda: Model(layer()), {"batched_grad_copy": True}),
}
COMPILED: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "compiled before": (lambda: Model(layer()), {}),
    "compiled after": (lambda: Model(layer()), {}),
}
FEATURES |= COMPILED
KNOWN = inspect.signature(DistributedDataParallel.__init__).parameters  # options come with versions
FEATURES = {name: f for name, f in FEATURES.items() if f[1].keys() <= KNOWN.keys()}
ROUNDED = {"bfloat16": 0.02, "float16": 0.01, "bf16 autocast": 0.05, "fp16 autocast": 0.05}
KINDS = {"join": Joined, "join of those with data": Joined, "fp16 autocast": Scaled}


def numbers(tensors: Iterable[torch.Tensor | None]) -> torch.Tensor:
    """All values in a row, as float64."""
    parts = [torch.zeros(0, dtype=torch.float64)]
    for tensor in tensors:
        if tensor is not None:
            dense = (tensor.to_dense() if tensor.is_sparse else tensor).detach()
            real = torch.view_as_real(dense) if dense.is_complex() else dense
            parts.append(real.double().reshape(-1))
    return torch.cat(parts)


def same_on_all(values: torch.Tensor) -> bool:
    others = [torch.empty_like(values) for _ in range(dist.get_world_size())]
    dist.all_gather(others, values)
    return all(torch.equal(values, other) for other in others)


def trained(feature: str, method: str | None) -> Run:
    run = KINDS.get(feature, Run)(feature, method)
    run.train()
    return run


def wrong(feature: str, methods: Iterable[str]) -> Iterator[str]:
    """What is not as it should be."""
    torch._dynamo.reset()
    plain = trained(feature, None)
    for method in methods:
        what = f"{feature}, {method}"
        try:
            ours = trained(feature, method)
        except BaseException as error:
            raise AssertionError(what) from error
        apart = (ours.gradient - plain.gradient).norm() / plain.gradient.norm()
        exact = METHODS[method] == 0 and dist.get_world_size() <= 2 and feature not in ROUNDED
        if not apart <= METHODS[method] + ROUNDED.get(feature, 1e-6 * (not exact)):
            yield f"{what}: the gradient is {apart:.3g} from DDP's"
        ends = [numbers(run.ddp.parameters()) for run in (ours, plain)]
        if not same_on_all(ends[0]):
            yield f"{what}: ranks differ"
        if not ends[0].isfinite().all():
            yield f"{what}: parameters are not finite"
        if exact and not torch.equal(*ends):
            yield f"{what}: other bits than DDP's"
        ours.state.close()


def scan(features: list[str], methods: list[str]) -> list[str]:
    return [word for feature in features for word in wrong(feature, methods)]


def check(on_ranks: OnRanks, n: int, features: Iterable[str], methods: Iterable[str]) -> None:
    found = on_ranks(scan, n, list(features), list(methods), timeout=900)
    assert not any(found), "\n".join(sorted({word for words in found for word in words}))


@pytest.mark.quick
def test_every_feature(on_ranks: OnRanks) -> None:
    check(on_ranks, 2, FEATURES.keys() - COMPILED.keys(), ["int8", "onebit"])


@pytest.mark.slow
def test_every_feature_with_every_method(on_ranks: OnRanks) -> None:
    check(on_ranks, 2, FEATURES.keys() - COMPILED.keys(), METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5])
def test_more_ranks(on_ranks: OnRanks, n: int) -> None:
    some = ("no feature", "unused", "join", "fp16 autocast", "complex64", "sparse", "one value")
    check(on_ranks, n, FEATURES if n == 3 else some, QUICK)


class Square(nn.Module):
    """Of the few that DDP lets through with create_graph=True."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(1.0))

    def forward(self) -> torch.Tensor:
        return self.p.pow(2)


def differentiate_twice(method: str) -> list[float]:
    model = DistributedDataParallel(Square())
    wirepress.torch.compress(model, method, min_values=1)
    gradients = []
    for _ in range(3):
        model.zero_grad()
        model().backward(create_graph=True)
        gradients.append(float(model.module.p.grad))
    return gradients


def test_create_graph(on_ranks: OnRanks) -> None:
    for method in ("planes", "none"):
        assert on_ranks(differentiate_twice, 2, method) == [[2.0] * 3] * 2


def test_a_recipe_without_the_simulated_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names a kernel: another one does not code gradients in its place."""
    if not any(engine.name == "rtl" and engine.available for engine in wirepress.engines()):
        pytest.skip("built without the simulated cores")
    monkeypatch.setenv("WIREPRESS_ENGINE", "rtl:verilator16")
    with pytest.raises(wirepress.ParameterError, match="fre has no kernel rtl:verilator16"):
        Coder("fre")
