# SPDX-License-Identifier: Apache-2.0
"""Traces of DDP's buckets, on real ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def train_traced(folder: str) -> Any:
    """Some steps with the tracer, and the same without: the gradients must be equal."""
    import wirepress.torch

    results = []
    for traced in (True, False):
        torch.manual_seed(0)
        layers = (nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8))
        model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.5)
        tracer = wirepress.torch.trace_buckets(model, folder, sample="1MiB") if traced else None
        for step in range(4):
            torch.manual_seed(step + 100 * dist.get_rank())
            model.zero_grad()
            model(torch.randn(16, 64)).square().mean().backward()
        results.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        if tracer is not None:
            tracer.close()
            model(torch.randn(16, 64)).square().mean().backward()  # the model goes on
            tracer.close()
            with pytest.raises(wirepress.ParameterError, match="no DistributedDataParallel"):
                wirepress.torch.trace_buckets(model.module, folder)
    return torch.equal(*results), sum(p.numel() for p in model.parameters())


def test_buckets_are_traced(on_ranks, tmp_path: Path) -> None:
    from wirepress.sim import trace_calls, trace_reader

    (same, n), _ = on_ranks(train_traced, 2, str(tmp_path))
    assert same
    job = trace_reader.read(tmp_path)
    for rank, begin, end in zip(job.ranks, job.begin, job.end, strict=True):
        calls = np.array([rank.calls[i] for i in rank.records["call"]])
        sums, waits = calls == "MPI_Iallreduce", calls == "MPI_Waitall"
        assert waits.sum() == 4 and (calls == "completion").sum() == sums.sum() > 4
        assert rank.records["sent"][sums].sum() == 4 * 4 * n
        assert (begin <= end).all()
        data = np.frombuffer(b"".join(sample.data for sample in rank.samples), "f4")
        assert rank.meta["sample_bytes"] == 1 << 19  # of this rank, of two
        assert len(data) and np.isfinite(data).all() and data.nbytes <= 1 << 19
    made, left = trace_calls.workload(job)
    ops = [call.op for call in made.programs[0]]
    assert ops.count("iallreduce") == ops.count("complete") > 4 and not left.counts
    assert made.overlaps and sum(call.seconds for call in made.programs[0]) > 0
    profile = trace_calls.profile(job)
    assert (profile.scheme, profile.workers, profile.size) == ("ring", 2, 4 * 4 * n)
