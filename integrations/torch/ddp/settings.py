# SPDX-License-Identifier: Apache-2.0
"""What `compress` is called with."""

from __future__ import annotations

import dataclasses

from wirepress.errors import ParameterError

ALIGN = 4096  # values; gradient codecs have a scale for so many
ON_CPU, ON_DEVICE = 2 << 20, 8 << 20  # partitions; each of a device is waited for


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `compress` was called with. All ranks must have the same."""

    method: str
    rules: tuple[tuple[str, str], ...] = ()
    error_feedback: bool | None = None
    feedback_decay: float = 1.0
    warmup_steps: int = 0
    min_values: int = 4096
    algorithm: str = "auto"
    levels: int | None = None
    partition: int | None = None  # None: ON_CPU or ON_DEVICE
    on_nonfinite: str = "pass"
    on_expansion: str = "raise"
    error_budget: float = 0.15
    momentum: float = 0.9
    clip: float | None = None
    ramp_steps: int = 0
    seed: int = 0
    checksum: bool = False

    def check(self) -> None:
        """Raises ParameterError for what cannot be."""
        for name, known in (
            ("algorithm", ("auto", "gather", "scatter")),
            ("levels", (None, 1, 2)),
            ("on_nonfinite", ("pass", "skip", "raise")),
            ("on_expansion", ("raise", "plain")),
        ):
            if getattr(self, name) not in known:
                words = ", ".join(repr(word) for word in known)
                raise ParameterError(f"{name}={getattr(self, name)!r}: one of {words}")
        for name in ("warmup_steps", "min_values", "ramp_steps", "seed"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name}={getattr(self, name)} is negative")
        if self.partition is not None and self.partition < ALIGN:
            raise ParameterError(f"partition={self.partition}: at least {ALIGN} values")
        if not 0 <= self.momentum < 1:
            raise ParameterError(f"momentum={self.momentum}: from 0 to below 1")
        if not 0 < self.feedback_decay <= 1:
            raise ParameterError(f"feedback_decay={self.feedback_decay}: above 0, at most 1")
        if not 0 <= self.error_budget < 1:
            raise ParameterError(f"error_budget={self.error_budget}: from 0 to below 1")
        if self.clip is not None and not self.clip > 0:
            raise ParameterError(f"clip={self.clip}: above 0, or None")
