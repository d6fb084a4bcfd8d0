# SPDX-License-Identifier: Apache-2.0
"""What stands on process groups, on the backend "wirepress" and on gloo: DistributedDataParallel,
FSDP1 and 2, DTensor, ZeroRedundancyOptimizer, checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (  # noqa: E402
    fp16_compress_hook,
)
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.fsdp import (  # noqa: E402
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.tensor import (  # noqa: E402
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)

OnRanks = Callable[..., list[Any]]
PATIENCE = timedelta(seconds=60)
WAYS = {
    "raw": {"threshold": 1 << 40},
    "compressed": {"threshold": 1000, "adaptive": False},
    "adaptive": {"threshold": 1000},
}
Way = Callable[[Any], list[torch.Tensor]]
ABOVE: list[Way] = []


def above(way: Way) -> Way:
    ABOVE.append(way)
    return way


def model() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Linear(32, 60), nn.BatchNorm1d(60), nn.ReLU(), nn.Linear(60, 60), nn.Linear(60, 6)
    )


def data(step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(16, 32, generator=generator)


def train(trained: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        trained(data(step)).square().mean().backward()
        optimizer.step()


def weights(trained: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in trained.state_dict().values()]


@above
def ddp(group: Any) -> list[torch.Tensor]:
    trained = nn.parallel.DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.01)
    train(trained, torch.optim.SGD(trained.parameters(), lr=0.1))
    with trained.no_sync():
        trained(data(7)).sum().backward()
    return weights(trained)


@above
def ddp_with_uneven_inputs(group: Any) -> list[torch.Tensor]:
    trained = nn.parallel.DistributedDataParallel(model(), process_group=group)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    with trained.join():
        train(trained, optimizer, 2 + dist.get_rank())
    return [p.detach().clone() for p in trained.parameters()]


@above
def ddp_with_a_hook_that_sends_halves(group: Any) -> list[torch.Tensor]:
    trained = nn.parallel.DistributedDataParallel(model(), process_group=group)
    trained.register_comm_hook(group, fp16_compress_hook)
    train(trained, torch.optim.SGD(trained.parameters(), lr=0.1))
    return weights(trained)


def fsdp1(group: Any, **how: Any) -> list[torch.Tensor]:
    trained = FullyShardedDataParallel(
        model(),
        process_group=group,
        device_id=torch.device("cpu"),
        auto_wrap_policy=torch.distributed.fsdp.wrap.ModuleWrapPolicy({nn.Linear}),
        **how,
    )
    train(trained, torch.optim.SGD(trained.parameters(), lr=0.1))
    trained.clip_grad_norm_(1.0)
    with FullyShardedDataParallel.summon_full_params(trained, writeback=False):
        return [p.detach().clone() for p in trained.parameters()]


@above
def fsdp1_full_shard(group: Any) -> list[torch.Tensor]:
    return fsdp1(group)


@above
def fsdp1_with_original_parameters(group: Any) -> list[torch.Tensor]:
    return fsdp1(group, use_orig_params=True, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)


@above
def fsdp1_in_halves(group: Any) -> list[torch.Tensor]:
    halves = MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    return fsdp1(group, mixed_precision=halves)


@above
def fsdp2(group: Any) -> list[torch.Tensor]:
    mesh = DeviceMesh.from_group(group, "cpu")
    trained = model()
    for layer in trained:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(trained, mesh=mesh)
    train(trained, torch.optim.SGD(trained.parameters(), lr=0.1))
    return [p.full_tensor().detach().clone() for p in trained.parameters()]


@above
def dtensors(group: Any) -> list[torch.Tensor]:
    mesh = DeviceMesh.from_group(group, "cpu")
    whole = torch.arange(61 * 43, dtype=torch.float32).view(61, 43) % 11
    found = []
    for dtype in torch.float32, torch.bfloat16, torch.int64:
        first = distribute_tensor(whole.to(dtype), mesh, [Shard(0)])
        second = first.redistribute(mesh, [Shard(1)])
        third = second.redistribute(mesh, [Replicate()])
        found += [second.to_local(), third.to_local(), first.full_tensor()]
        shares = torch.distributed.tensor.DTensor.from_local(
            whole.to(dtype) + dist.get_rank(), mesh, [Partial()]
        )
        found.append(shares.redistribute(mesh, [Replicate()]).to_local())
        found.append(shares.redistribute(mesh, [Shard(0)]).to_local())
    product = distribute_tensor(whole, mesh, [Shard(0)]).t() @ distribute_tensor(
        whole, mesh, [Shard(0)]
    )
    return [each.detach().clone() for each in [*found, product.full_tensor()]]


@above
def zero(group: Any) -> list[torch.Tensor]:
    from torch.distributed.optim import ZeroRedundancyOptimizer  # warns, and slow to import

    trained = nn.parallel.DistributedDataParallel(model(), process_group=group)
    optimizer = ZeroRedundancyOptimizer(
        trained.parameters(), torch.optim.SGD, process_group=group, lr=0.1, momentum=0.9
    )
    train(trained, optimizer)
    optimizer.consolidate_state_dict()
    found = weights(trained)
    if dist.get_rank() == 0:
        states = optimizer.state_dict()["state"].values()
        found += [state["momentum_buffer"].clone() for state in states]
    return found


@above
def checkpoints(group: Any) -> list[torch.Tensor]:
    mesh = DeviceMesh.from_group(group, "cpu")
    trained = fully_shard(model(), mesh=mesh)
    names = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, 0, group=group)
    dcp.save(trained.state_dict(), checkpoint_id=names[0], process_group=group)
    before = [p.full_tensor().clone() for p in trained.parameters()]
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.zero_()
    state = trained.state_dict()
    dcp.load(state, checkpoint_id=names[0], process_group=group)
    trained.load_state_dict(state)
    after = [p.full_tensor().detach().clone() for p in trained.parameters()]
    assert all(map(torch.equal, before, after))
    return after


def differing(ways: list[str], groups: list[str], exactly: bool) -> list[str]:
    """What differs from gloo."""
    gloo = dist.new_group(backend="gloo", timeout=PATIENCE)
    wrong = []
    for way in [globals()[name] for name in ways] or ABOVE:
        expected = way(gloo)
        for name in groups:
            group = wt.wrap_group(timeout=PATIENCE, **WAYS[name])
            got = way(group)
            for at, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
                near = 1e-3 if "halves" in way.__name__ else 1e-6
                if not (
                    torch.equal(mine, theirs)
                    if exactly
                    else torch.allclose(mine, theirs, rtol=10 * near, atol=near)
                ):
                    wrong.append(f"{way.__name__}, {name}: {at}: {mine} not {theirs}"[:300])
            counted = wt.statistics(group).values()
            if name == "compressed" and not any(each.compressed_calls for each in counted):
                wrong.append(f"{way.__name__}, {name}: nothing was compressed")
    return wrong


def test_training_and_tensors_of_two_ranks(on_ranks: OnRanks) -> None:
    """The sum of two is the same in any order."""
    ways = ["ddp", "fsdp1_full_shard", "dtensors"]
    for wrong in on_ranks(differing, 2, ways, ["compressed"], True):
        assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_everything_above(on_ranks: OnRanks, n: int) -> None:
    for wrong in on_ranks(differing, n, [], list(WAYS), n == 2, timeout=300):
        assert not wrong, "\n".join(wrong)
