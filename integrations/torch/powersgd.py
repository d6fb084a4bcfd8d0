# SPDX-License-Identifier: Apache-2.0
"""PowerSGD (Vogels, Karimireddy, Jaggi; NeurIPS 2019): gradients as products of thin matrices.

A gradient M of shape (n, m) becomes P Q^T of rank r by one step of subspace iteration from the Q of
the last step: P = mean(M Q), made orthonormal, then Q = mean(M^T P). Both means are of all ranks,
together of r (n + m) values; what P Q^T lacks of M stays in the residual. Each rank makes P
orthonormal for itself, so ranks get the same bits where their processors and libraries are alike.
Matrices of a CUDA device stay there, and P and Q alone are copied: their means, and the orthonormal
P, are made on the CPU.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Sequence

import torch
from wirepress.errors import ParameterError
from wirepress.torch import memory
from wirepress.torch.exchange import NOT_FINITE, Counts, Flags
from wirepress.torch.memory import all_finite
from wirepress.torch.stages import Job
from wirepress.torch.transport import HEAD, Letters
from wirepress.torch.wires import Wires


@dataclasses.dataclass
class Matrix:
    """A gradient as a matrix, what is left of the last ones, and the last Q."""

    name: str
    values: torch.Tensor  # (n, m), a view of the bucket
    residual: torch.Tensor | None  # (n, m)
    q: torch.Tensor  # (m, r)
    watched: bool = False  # whether a value that is not finite is a flag
    itemsize: int = 4  # bytes of a value of the gradient, which `values` have as float32
    may_miss: bool = False  # whether DDP may leave the gradient as it is
    decay: float = 1.0  # of the residual
    missed: bool = False  # all zero: this rank may not have used the parameter


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
    start = torch.randn(m, rank, generator=generator, dtype=torch.float32, device="cpu")
    return torch.linalg.qr(start)[0]


_BLOCK = 1 << 16  # values of a matrix that stay in a core's cache from one operation to the next


def _blocks(matrix: Matrix) -> Iterator[slice]:
    """Rows of a matrix, some at a time. The passes over memory, not the products, are what a step
    takes; on a device the launches."""
    n, m = matrix.values.shape
    rows = max(1, n if memory.on_device(matrix.values) else _BLOCK // m)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def first_product(matrix: Matrix) -> tuple[torch.Tensor, bool]:
    """Adds the residual; returns M Q, and whether a watched M is finite."""
    values, residual = matrix.values, matrix.residual
    matrix.missed = matrix.may_miss and not bool(values.any())
    if matrix.missed:  # DDP may throw away what is sent: nothing that is kept goes into it
        residual = None
    elif residual is not None and matrix.decay != 1:
        residual.mul_(matrix.decay)
    p = torch.empty(len(values), matrix.q.shape[1], dtype=torch.float32, device=values.device)
    for rows in _blocks(matrix):
        block = values[rows]
        if residual is not None:
            block.add_(residual[rows])
        torch.mm(block, matrix.q, out=p[rows])
    # A row of M that is not finite makes one of M Q; so may a sum that is too large. M has the
    # residual: finite gradients with which that overflows are not finite, too.
    is_finite = not matrix.watched or bool(p.isfinite().all()) or all_finite(values)
    return p, is_finite


def put_product(matrix: Matrix, p: torch.Tensor, q: torch.Tensor) -> None:
    """Makes the values P Q^T; what that lacks of them becomes the residual. P is orthonormal. P and
    Q lie in memory of the CPU.

    A product that is not finite loses this step, but not those after it.
    """
    is_finite = bool(p.isfinite().all()) and bool(q.abs().sum().isfinite())
    p, q_t = p.to(matrix.values.device), q.T.contiguous().to(matrix.values.device)
    minus = -q_t
    # Of rank 1 the element-wise kernels are twice as fast as those of matrices.
    by_element = len(q_t) == 1
    product = torch.mul if by_element else torch.mm
    add_product = torch.addcmul if by_element else torch.addmm
    for rows in _blocks(matrix):
        block, part = matrix.values[rows], p[rows]
        if matrix.residual is not None:
            kept = matrix.residual[rows]
            add_product(kept if matrix.missed else block, part, minus, out=kept)
        product(part, q_t, out=block)
    if is_finite and bool(q.any()):  # of nothing but zeros the last one is worth more
        matrix.q.copy_(q)
    elif not is_finite and matrix.residual is not None:
        matrix.residual.zero_()


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
        self._flags = Flags(wires.rank)
        shapes = [(*matrix.values.shape, matrix.q.shape[1]) for matrix in matrices]
        self._n_p = sum(n * rank for n, _, rank in shapes)
        self._n_q = sum(m * rank for _, m, rank in shapes)
        self._p_mean: Mean | None = None
        self._q_mean: Mean | None = None
        if is_direct(self._n_p, wires) and is_direct(self._n_q, wires):
            self.skips = ("send", "gather")

    def done(self, error: BaseException | None) -> None:
        self._finished(error or self._flags.error([matrix.name for matrix in self._matrices]))

    def encode(self) -> None:
        self._p_mean, self._q_mean = Mean(self._n_p, self._wires), Mean(self._n_q, self._wires)
        ps = []
        for index, matrix in enumerate(self._matrices):
            p, is_finite = first_product(matrix)
            if not is_finite:
                self._flags.found(NOT_FINITE, index)
            ps.append(p)
            self._counts.raw_bytes += matrix.itemsize * matrix.values.numel()
        self._give(self._p_mean, ps)

    def send(self) -> None:
        assert self._p_mean
        self._p_mean.hand_on(self._flags)

    def sum(self) -> None:
        assert self._p_mean and self._q_mean
        shapes = [(matrix.values.shape[0], matrix.q.shape[1]) for matrix in self._matrices]
        means = self._p_mean.wait(shapes, self._flags)
        self._ps = [torch.linalg.qr(p)[0] for p in means]
        pairs = zip(self._matrices, self._ps, strict=True)
        # MKL takes 10 to 30 times as long for M^T P.
        qs = [(p.T.to(m.values.device) @ m.values).T for m, p in pairs]
        self._give(self._q_mean, qs)

    def gather(self) -> None:
        assert self._q_mean
        self._q_mean.hand_on(self._flags)

    def decode(self) -> None:
        assert self._p_mean and self._q_mean
        qs = self._q_mean.wait([tuple(matrix.q.shape) for matrix in self._matrices], self._flags)
        for matrix, p, q in zip(self._matrices, self._ps, qs, strict=True):
            put_product(matrix, p, q)
        self._p_mean.finish()
        self._q_mean.finish()

    def _give(self, mean: Mean, tensors: list[torch.Tensor]) -> None:
        mean.give(torch.cat([tensor.reshape(-1) for tensor in tensors]), self._flags)
        self._counts.coded_bytes += sum(tensor.nbytes for tensor in tensors)


class Mean:
    """The mean over ranks of so many float32 values, on its way.

    Where that is no more, every rank sends all of them to all others; else a share to its owner,
    who adds, and sends on the mean. All add in the order of ranks: both give the same bits.
    """

    def __init__(self, n: int, wires: Wires) -> None:
        self._n, self._wires = n, wires
        size = wires.send.size
        self._shares = [n // size + (rank < n % size) for rank in range(size)]
        self._parts: Letters | None = None
        if is_direct(n, wires):
            self._all = wires.gather_mail.expect([4 * n] * size)
        else:
            own = self._shares[wires.send.rank]
            self._parts = wires.send_mail.expect([4 * own] * size)
            self._all = wires.gather_mail.expect([4 * share for share in self._shares])

    def give(self, values: torch.Tensor, flags: Flags) -> None:
        """The values of this rank."""
        if not self._parts:
            self._all.send_all(_letter(values), flags.value)
            return
        for owner, share in enumerate(values.split(self._shares)):
            self._parts.send(owner, _letter(share), flags.value)

    def hand_on(self, flags: Flags) -> None:
        """The owner's part, where there are owners."""
        if self._parts:
            self._all.send_all(_letter(self._mean(self._parts, flags)), flags.value)

    def wait(self, shapes: Sequence[tuple[int, ...]], flags: Flags) -> list[torch.Tensor]:
        """The mean, in tensors of these shapes."""
        if self._parts:
            letters, found = self._all.wait()
            flags.note(found)
            mean = torch.cat(letters).view(torch.float32)
        else:
            mean = self._mean(self._all, flags)
        sizes = [math.prod(shape) for shape in shapes]
        return [part.view(shape) for part, shape in zip(mean.split(sizes), shapes, strict=True)]

    def _mean(self, letters: Letters, flags: Flags) -> torch.Tensor:
        parts, found = letters.wait()
        flags.note(found)
        mean = parts[0].view(torch.float32).clone()
        for part in parts[1:]:
            mean.add_(part.view(torch.float32))
        return mean.div_(self._wires.n_ranks)

    def finish(self) -> None:
        for letters in filter(None, (self._parts, self._all)):
            letters.finish()


_FEW = 1 << 14  # bytes that a rank may send to the others, rather than wait for an owner


def is_direct(n: int, wires: Wires) -> bool:
    """Whether ranks send so many values to all others."""
    return wires.send.size <= 2 or 4 * n * (wires.send.size - 1) <= _FEW


def _letter(values: torch.Tensor) -> torch.Tensor:
    letter = torch.empty(HEAD + values.nbytes, dtype=torch.uint8, device="cpu")
    letter[HEAD:].view(torch.float32).copy_(values)
    return letter
