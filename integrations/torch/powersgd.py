# SPDX-License-Identifier: Apache-2.0
"""PowerSGD (Vogels, Karimireddy, Jaggi; NeurIPS 2019): gradients as products of thin matrices.

A gradient M of shape (n, m) becomes P Q^T of rank r by one step of subspace iteration from the Q of
the last step: P = mean(M Q), made orthonormal, then Q = mean(M^T P). Both means are all-reduces,
together of r (n + m) values; what P Q^T lacks of M stays in the residual. Each rank makes P
orthonormal for itself, so ranks get the same bits where their processors and libraries are alike.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import torch
from wirepress.errors import ParameterError
from wirepress.torch.exchange import NOT_FINITE, Counts, Flags
from wirepress.torch.stages import Job
from wirepress.torch.transport import Post
from wirepress.torch.wires import Wires


@dataclasses.dataclass
class Matrix:
    """A gradient as a matrix, what is left of the last ones, and the last Q."""

    name: str
    values: torch.Tensor  # (n, m), a view of the bucket
    residual: torch.Tensor | None  # (n, m)
    q: torch.Tensor  # (m, r)
    watched: bool = False  # whether a value that is not finite is a flag


def rank_of(method: str) -> int:
    """4 of "powersgd:rank=4" or "powersgd:4"; 1 of "powersgd"."""
    found = re.fullmatch(r"\s*powersgd\s*(?::\s*(?:rank=)?(\d+)\s*)?", method)
    if not found:
        raise ParameterError(f'"{method}": powersgd has one setting, as in "powersgd:rank=4"')
    rank = int(found[1] or 1)
    if rank < 1:
        raise ParameterError(f'"{method}": rank is at least 1')
    return rank


def shape_of(shape: tuple[int, ...], n_values: int, rank: int) -> tuple[int, int] | None:
    """(n, m) of the matrix of a parameter of so many real numbers; None where rank r would send no
    less than the gradient has."""
    if len(shape) < 2 or not n_values:
        return None
    n = shape[0]
    m = n_values // n
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
        self._flags = Flags(wires.rank)

    def done(self, error: BaseException | None) -> None:
        self._finished(error or self._flags.error([matrix.name for matrix in self._matrices]))

    def encode(self) -> None:
        for index, matrix in enumerate(self._matrices):
            if matrix.watched and not bool(matrix.values.isfinite().all()):
                self._flags.found(NOT_FINITE, index)
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
        """Every rank adds a part of `_flat`, and sends the mean to all."""
        sizes = [part.nbytes for part in self._flat.tensor_split(post.size)]
        parts, flags = post.all_to_all(_bytes(self._flat), sizes, self._flags.value)
        self._flags.note(flags)
        mean = parts[0].view(torch.float32).clone()
        for part in parts[1:]:
            mean.add_(part.view(torch.float32))
        means, _ = post.all_gather(_bytes(mean.div_(self._wires.n_ranks)))
        _bytes(self._flat).copy_(torch.cat(means))
        self._counts.coded_bytes += self._flat.nbytes


def _bytes(values: torch.Tensor) -> torch.Tensor:
    return values.view(torch.uint8)


def _flat(tensors: list[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """One tensor with the values of all, and them as views of it."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    parts = flat.split([tensor.numel() for tensor in tensors])
    return flat, [part.view_as(t) for part, t in zip(parts, tensors, strict=True)]
