# SPDX-License-Identifier: Apache-2.0
"""Pieces of gradients on their way: what is added before they are encoded, and kept after."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from wirepress.torch import memory
from wirepress.torch.coder import Begun
from wirepress.torch.ddp.plan import Parameter
from wirepress.torch.ddp.settings import Settings
from wirepress.torch.exchange import EXPANDS, NOT_FINITE, Piece


@dataclasses.dataclass(kw_only=True)
class GradientPiece(Piece):
    """A piece with error feedback, momentum and what is looked for in its values."""

    parameter: Parameter
    start: int  # in the parameter
    settings: Settings
    watches: bool  # whether the residual is compared with the gradient
    may_miss: bool = False  # whether DDP may leave the gradient as it is
    norm: float = 0.0
    missed: bool = False  # nothing here is not zero: this rank may not have used the parameter

    def total(self) -> torch.Tensor | None:
        return None if self.settings.on_nonfinite == "pass" else self.values.sum()

    def _residual(self) -> torch.Tensor | None:
        owned = self.parameter
        if not owned.feedback:
            return None
        owned.residual = memory.beside(self.values, owned.residual, owned.n)
        return self._part(owned.residual)

    def _part(self, whole: torch.Tensor) -> torch.Tensor:
        """What belongs to this piece, of something that the parameter has for each value."""
        return whole[self.start : self.start + self.values.numel()]

    def encode(self, out: torch.Tensor) -> int | Begun:
        owned, values = self.parameter, self.values
        self.missed = self.may_miss and not bool(values.any())
        if self.missed:  # DDP may throw away what is sent: nothing that is kept goes into it
            return self.coder.begin_encode(values, out, None, self.seed)
        residual = self._residual()
        if residual is None and owned.residual is not None:  # left by another codec
            owned.residual = memory.beside(values, owned.residual, owned.n)
            rest = self._part(owned.residual)
            values = values + rest
            rest.zero_()
        if residual is not None and self.settings.feedback_decay != 1:
            residual.mul_(self.settings.feedback_decay)
        if owned.momentum:
            self._accumulate(owned)  # values are float32 then
        if self.watches and residual is not None:
            self.norm = float(torch.linalg.vector_norm(self.values + residual))
        return self.coder.begin_encode(values, out, residual, self.seed)

    def _accumulate(self, owned: Parameter) -> None:
        """Momentum correction of DGC (Lin et al., ICLR 2018, algorithm 4): the velocity is what is
        accumulated, in the residual, and sent."""
        owned.velocity = memory.beside(self.values, owned.velocity, owned.n)
        velocity, finite = self._part(owned.velocity), self.values.sum().isfinite()
        if memory.on_device(self.values):  # of which nobody waits for the answer
            velocity.mul_(owned.momentum).add_(self.values).masked_fill_(~finite, 0)
            torch.where(finite, velocity, self.values, out=self.values)
        elif finite:
            velocity.mul_(owned.momentum).add_(self.values)
            self.values.copy_(velocity)
        else:  # what is not finite is passed on once and not remembered
            velocity.zero_()

    def verdict(self, finite: bool) -> int:
        if self.missed:
            return 0
        owned = self.parameter
        residual = self._residual()
        if owned.momentum and owned.velocity is not None and residual is not None:
            # momentum factor masking: what was sent starts anew
            self._part(owned.velocity).mul_(residual != 0)
        if not finite and not bool(self.values.isfinite().all()):
            return NOT_FINITE
        if not self.watches or residual is None or owned.coder.sparse:
            return 0
        left = float(torch.linalg.vector_norm(residual))
        return EXPANDS if left >= self.norm > 0 else 0

    def encode_sum(self, mean: torch.Tensor, out: torch.Tensor) -> int | Begun:
        owned = self.parameter
        residual = None
        if owned.feedback and not (self.may_miss and not bool(mean.any())):
            kept = owned.sum_residuals.get(self.start)
            residual = owned.sum_residuals[self.start] = memory.beside(mean, kept, mean.numel())
            if self.settings.feedback_decay != 1:
                residual.mul_(self.settings.feedback_decay)
        assert self.sum_coder
        return self.sum_coder.begin_encode(mean, out, residual, self.seed ^ 1)


def partitions(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Runs of pieces of at most so many values, a larger piece alone."""
    parts: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        n = piece.values.numel()
        if not parts or n > room:
            parts.append([])
            room = most
        parts[-1].append(piece)
        room -= n
    return parts


def seed_of(*numbers: int) -> int:
    """63 bits that depend on all numbers (SplitMix64)."""
    mixed = 0
    for number in numbers:
        mixed = (mixed ^ number) + 0x9E3779B97F4A7C15 & (1 << 64) - 1
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
        mixed ^= mixed >> 31
    return mixed >> 1
