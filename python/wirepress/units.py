# SPDX-License-Identifier: Apache-2.0
"""Quantities as people write them, and back: "25Gbps", "222 MB/s", "10 us", "97.5 MB".

Inside, everything is in bytes, seconds, bytes a second, hertz and watts. k, M, G, T are powers of
1000, Ki, Mi, Gi, Ti of 1024; b is a bit (links), B a byte (engines, sizes).
"""

from __future__ import annotations

import math
import re

from wirepress.errors import ParameterError

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {f"{p}i": 1024.0**n for n, p in enumerate("KMGT", 1)}
_SIZES = {f"{p}B": f for p, f in (_PREFIXES | _BINARY).items()}
_BITS = {
    f"{p}{unit}": f / 8 for p, f in _PREFIXES.items() for unit in ("bps", "bit/s", "b/s", "bit")
}
_UNITS = {
    "size": _SIZES,
    "rate": {f"{unit}/s": f for unit, f in _SIZES.items()} | _BITS,
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "frequency": {f"{p}Hz": f for p, f in _PREFIXES.items()},
    "power": {"mW": 1e-3, "W": 1.0, "kW": 1e3},
}
_EXAMPLES = {
    "size": "25MiB or 97.5MB",
    "rate": "25Gbps or 222MB/s",
    "time": "10us or 0.3s",
    "frequency": "300MHz",
    "power": "18.3W",
}
_QUANTITY = re.compile(r"\s*([+-]?[0-9][0-9_,]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*\Z")


def parse(text: object, kind: str) -> float:
    """The quantity in SI units (bytes for sizes); `kind` is a key of _UNITS.

    Raises ParameterError for what is no number, negative, infinite, or without a known unit.
    """
    match = _QUANTITY.match(text) if isinstance(text, str) else None
    if match is None or match[2] not in _UNITS[kind]:
        missing = (match and not match[2]) or isinstance(text, (int, float))
        raise ParameterError(
            f'"{text}" {"has no unit" if missing else f"is not a {kind}"}: write {_EXAMPLES[kind]}'
        )
    value = float(match[1].replace(",", "").replace("_", "")) * _UNITS[kind][match[2]]
    if value < 0 or not math.isfinite(value):
        raise ParameterError(f'"{text}" is not a {kind}: it must be finite and not negative')
    return value


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    factor, unit = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    number = value / factor
    return f"{number:.0f}{unit}" if abs(number) >= 100 else f"{number:.{digits}g}{unit}"


def rate(value: float, digits: int = 3) -> str:
    """An engine's speed: "6.36 GB/s"."""
    steps = ((1e12, " TB/s"), (1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1, " B/s"))
    return _scaled(value, steps, digits)


def link(value: float, digits: int = 3) -> str:
    """A link's speed, which people know in bits: "25 Gb/s"."""
    steps = ((1e12, " Tb/s"), (1e9, " Gb/s"), (1e6, " Mb/s"), (1e3, " kb/s"), (1, " b/s"))
    return _scaled(8 * value, steps, digits)


def size(value: float, digits: int = 3) -> str:
    steps = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1, " B"))
    return _scaled(value, steps, digits)


def seconds(value: float, digits: int = 3) -> str:
    if value == 0:
        return "0 s"
    return _scaled(value, ((1, " s"), (1e-3, " ms"), (1e-6, " us"), (1e-9, " ns")), digits)
