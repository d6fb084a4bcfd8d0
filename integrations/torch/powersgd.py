# SPDX-License-Identifier: Apache-2.0
"""PowerSGD (Vogels, Karimireddy, Jaggi; NeurIPS 2019): gradients as products of thin matrices.

A gradient M of shape (n, m) becomes P Q^T of rank r by one step of subspace iteration from the Q of
the last step: P = mean(M Q), made orthonormal, then Q = mean(M^T P). Both means are all-reduces,
together of r (n + m) values; what P Q^T lacks of M stays in the residual. Each rank makes P
orthonormal for itself, so ranks get the same bits where their processors and libraries are alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from wirepress.torch.exchange import Counts
from wirepress.torch.stages import Job
from wirepress.torch.transport import Post
from wirepress.torch.wires import Wires


@dataclasses.dataclass
class Matrix:
    """A gradient as a matrix, what is left of the last ones, and the last Q."""

    values: torch.Tensor  # (n, m), a view of the bucket
    residual: torch.Tensor | None  # (n, m)
    q: torch.Tensor  # (m, r)


def shape_of(parameter: torch.Tensor, rank: int) -> tuple[int, int] | None:
    """(n, m) of its matrix; None where rank r would send no less than the gradient has."""
    if parameter.dim() < 2:
        return None
    n = parameter.shape[0]
    m = parameter.numel() // max(n, 1)
    return (n, m) if rank * (n + m) < n * m else None


def first_q(m: int, rank: int, seed: int) -> torch.Tensor:
    """The Q of step 0: random, the same on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(m, rank, generator=generator))[0]


class LowRankMean(Job):
    """Replaces each matrix by the mean over ranks of its low-rank part."""

    def __init__(
        self,
        wires: Wires,
        matrices: list[Matrix],
        counts: Counts,
        finished: Callable[[BaseException | None], None],
    ) -> None:
        self._wires, self._matrices, self._counts = wires, matrices, counts
        self._finished = finished
        self._ps: list[torch.Tensor] = []
        self._qs: list[torch.Tensor] = []
        self._flat = torch.empty(0)

    def done(self, error: BaseException | None) -> None:
        self._finished(error)

    def encode(self) -> None:
        for matrix in self._matrices:
            if matrix.residual is not None:
                matrix.values.add_(matrix.residual)
            self._counts.raw_bytes += 4 * matrix.values.numel()
        self._flat, self._ps = _flat([m.values @ m.q for m in self._matrices])

    def send(self) -> None:
        self._mean(self._wires.send)

    def sum(self) -> None:
        for i, p in enumerate(self._ps):
            self._ps[i] = torch.linalg.qr(p)[0]
        pairs = zip(self._matrices, self._ps, strict=True)
        self._flat, self._qs = _flat([m.values.T @ p for m, p in pairs])

    def gather(self) -> None:
        self._mean(self._wires.gather)

    def decode(self) -> None:
        for matrix, p, q in zip(self._matrices, self._ps, self._qs, strict=True):
            product = p @ q.T
            finite = bool(product.sum().isfinite())  # else the step is lost, but not those after it
            if matrix.residual is not None:
                torch.sub(matrix.values, product, out=matrix.residual)
                if not finite:
                    matrix.residual.zero_()
            matrix.values.copy_(product)
            if finite:
                matrix.q.copy_(q)

    def _mean(self, post: Post) -> None:
        post.all_reduce(self._flat)
        self._flat.div_(self._wires.n_ranks)
        self._counts.coded_bytes += 4 * self._flat.numel()


def _flat(tensors: list[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """One tensor with the values of all, and them as views of it."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    parts = flat.split([tensor.numel() for tensor in tensors])
    return flat, [part.view_as(t) for part, t in zip(parts, tensors, strict=True)]
