# SPDX-License-Identifier: Apache-2.0
"""What `wirepress bench` measures of one codec: a row of its table and a mark of its plot."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Row:
    """One line of the table. Speeds are 10^9 raw bytes a second."""

    file: str
    recipe: str
    kernel: str
    raw_size: int
    frame_size: int
    ratio: float
    compress_gbps: float
    decompress_gbps: float
    turns: int
    compress_clocks: int = 0  # of an engine that counts them: once over the file
    decompress_clocks: int = 0

    def as_json(self, memcpy_gbps: float) -> dict[str, Any]:
        return dataclasses.asdict(self) | {
            "compress_per_memcpy": self.compress_gbps / memcpy_gbps,
            "decompress_per_memcpy": self.decompress_gbps / memcpy_gbps,
        }

    def bytes_a_clock(self) -> tuple[str, str]:
        clocks = (self.compress_clocks, self.decompress_clocks)
        return tuple(f"{self.raw_size / n:.3f}" if n else "-" for n in clocks)  # type: ignore[return-value]
