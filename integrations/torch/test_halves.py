# SPDX-License-Identifier: Apache-2.0
"""Gradients of 16 bits: coded as they lie, to what their values in float32 would be coded to."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from wirepress.torch.coder import PLAIN, Coder  # noqa: E402
from wirepress.torch.ddp.buckets import on_host  # noqa: E402
from wirepress.torch.exchange import FLOATS, put  # noqa: E402
from wirepress.torch.packer import Packer  # noqa: E402

N = 150_001  # more than a block
HALVES = [torch.bfloat16, torch.float16]


def gradient(dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(N, generator=torch.Generator().manual_seed(3)) * 1e-2).to(dtype)


def test_buckets_of_halves_stay_where_they_may() -> None:
    for dtype in HALVES:
        bucket = gradient(dtype)
        assert on_host(bucket, halves=True).values is bucket
        place = on_host(bucket)
        assert place.values.dtype == torch.float32
        place.values.mul_(2)
        place.fetch()
        assert torch.equal(bucket, gradient(dtype) * 2)
    doubles = torch.zeros(3, dtype=torch.float64)
    assert on_host(doubles, halves=True).values.dtype == torch.float32


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("recipe", ["onebit", "tbq", "topk:0.01", "int8", "terngrad", "planes"])
def test_halves_make_the_frames_of_their_floats(recipe: str, dtype: torch.dtype) -> None:
    coder = Coder(recipe)
    values, out = gradient(dtype), torch.empty(coder.bound(N), dtype=torch.uint8)
    floats, expected = values.float(), torch.empty_like(out)
    before = values.clone()
    left, kept = (torch.full((N,), 1e-4) for _ in range(2))
    for residual, other in ((None, None), (left, kept), (left, kept)):
        size = coder.encode(values, out, residual, seed=7)
        assert size == coder.encode(floats, expected, other, seed=7)
        assert torch.equal(out[:size], expected[:size])
    assert torch.equal(left, kept) and torch.equal(values, before)

    mean = FLOATS.beside(values)
    coder.decode(out[:size], mean)
    coder.decode_add(out[:size], mean)
    put(mean.mul_(0.5), values)
    whole = torch.empty(N)
    coder.decode(out[:size], whole)
    assert torch.equal(values, whole.to(dtype))  # rounded once: twice a value, halved, is exact


def test_small_ones_go_as_floats() -> None:
    for dtype in (*HALVES, torch.float32):
        values, out = gradient(dtype)[:1000], torch.empty(4000, dtype=torch.uint8)
        assert PLAIN.encode(values, out) == 4000
        assert torch.equal(out.view(torch.float32), values.float())


@pytest.mark.parametrize("dtype", HALVES)
def test_packers_keep_what_halves_lose(dtype: torch.dtype) -> None:
    """FSDP2's way: as the same values in float32."""
    frames = []
    for values in gradient(dtype), gradient(dtype).float():
        packer, residual = Packer("int4"), torch.zeros(N)
        out = torch.empty(packer.bound(values), dtype=torch.uint8)
        for _ in range(2):
            size = packer.pack(values, out, lossy=True, residual=residual)
        frames.append((out[:size].clone(), residual))
        total = torch.zeros(N)
        packer.add_all([out[:size]], total, dtype)
        assert torch.allclose(total, values.float(), atol=1e-2)
        packer.close()
    assert torch.equal(frames[0][0], frames[1][0]) and torch.equal(frames[0][1], frames[1][1])
