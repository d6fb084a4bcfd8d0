# SPDX-License-Identifier: Apache-2.0
"""The bound that each codec's document promises, on data that are hard to keep it for."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import wirepress

F4, F8, F2 = np.float32, np.float64, np.float16
Array = np.ndarray
Check = Callable[[Array, Array], None]


# ---- data ------------------------------------------------------------------------------------


def words(rng: np.random.Generator, n: int, dtype: type) -> Array:
    """Any bits."""
    size = np.dtype(dtype).itemsize
    return rng.integers(0, 256, n * size, dtype=np.uint8).view(dtype)


def wide(rng: np.random.Generator, n: int, dtype: type) -> Array:
    """Magnitudes of the whole range, denormals too."""
    low, high = np.log10(float(np.finfo(dtype).smallest_subnormal)), float(np.finfo(dtype).maxexp)
    with np.errstate(all="ignore"):
        sizes = 10.0 ** rng.uniform(low, high * 0.30102, n)
        return (sizes * rng.choice([-1, 1], n)).astype(dtype)


KINDS: dict[str, Callable[[np.random.Generator, int, type], Array]] = {
    "normal": lambda rng, n, t: rng.normal(size=n).astype(t),
    "wave": lambda rng, n, t: np.sin(np.arange(n) / 30 + rng.uniform()).astype(t),
    "constant": lambda rng, n, t: np.full(n, rng.normal()).astype(t),
    "zeros": lambda rng, n, t: (rng.choice([0.0, -0.0], n)).astype(t),
    "denormals": lambda rng, n, t: (
        rng.integers(-99, 99, n).astype(F8) * float(np.finfo(t).smallest_subnormal)
    ).astype(t),
    "wide": wide,
    "words": words,
    "largest": lambda rng, n, t: (
        rng.choice([-1.0, 1.0], n) * float(np.finfo(t).max) * rng.uniform(0.9, 1, n)
    ).astype(t),
    "one_large": lambda rng, n, t: np.where(
        np.arange(n) == n // 2, float(np.finfo(t).max) / 2, rng.normal(size=n)
    ).astype(t),
    "offset": lambda rng, n, t: (1000 + rng.normal(size=n) / 8).astype(t),
}
ROUNDING = 2.0**-50  # encoders compare in float64
NOT_FINITE = [np.nan, -np.nan, np.inf, -np.inf]


def spoilt(rng: np.random.Generator, values: Array, part: float) -> Array:
    values = values.copy()
    bad = rng.uniform(size=values.shape) < part
    values[bad] = rng.choice(NOT_FINITE, np.count_nonzero(bad))
    return values


@functools.cache
def cases(seed: int, dtype: type, sizes: tuple[int, ...] = (1, 7, 3000)) -> list[Array]:
    """The same for all recipes."""
    made = list(make_cases(seed, dtype, sizes))
    for values in made:
        values.flags.writeable = False
    return made


def make_cases(seed: int, dtype: type, sizes: tuple[int, ...]) -> Iterator[Array]:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for make, n in itertools.product(KINDS.values(), sizes):
            values = make(rng, n, dtype)
            yield values
            for part in (0.01, 0.6, 0.999):
                yield spoilt(rng, values, part)
            if n >= 2880:
                yield values[:2880].reshape(24, 8, 15)
                yield spoilt(rng, values[:2880], 0.01).reshape(120, 24)


# ---- bounds ----------------------------------------------------------------------------------


def as_f8(values: Array) -> Array:
    if values.dtype == F8:
        return values
    with np.errstate(invalid="ignore"):
        return values.astype(F8)


def same_kind(x: Array, y: Array) -> None:
    """What is not finite stays what it is, and what is finite stays finite."""
    a, b = as_f8(x), as_f8(y)
    assert np.array_equal(np.isnan(a), np.isnan(b))
    infinite = np.isinf(a)
    assert np.array_equal(infinite, np.isinf(b))
    assert np.array_equal(a[infinite], b[infinite])


def finite(x: Array, y: Array) -> tuple[Array, Array]:
    a, b = as_f8(x), as_f8(y)
    both = np.isfinite(a)
    return a[both], b[both]


def within(bound: Callable[[Array], Array | float]) -> Check:
    def check(x: Array, y: Array) -> None:
        same_kind(x, y)
        a, b = finite(x, y)
        error = np.abs(a.astype(np.longdouble) - b)  # in float64 it may overflow
        assert np.all(error <= np.asarray(bound(a)) * (1 + ROUNDING))

    return check


def spread(a: Array) -> float:
    with np.errstate(over="ignore"):  # as the document has it, in float64
        return min(float(a.max() - a.min()), np.finfo(F8).max) if a.size else 0.0


def psnr(db: float) -> Check:
    def check(x: Array, y: Array) -> None:
        same_kind(x, y)
        a, b = finite(x, y)
        if spread(a) == 0:
            assert np.array_equal(a, b)
            return
        noise = np.mean(((a.astype(np.longdouble) - b) / spread(a)) ** 2)
        assert noise <= 10 ** (-db / 10) * (1 + ROUNDING), f"{-10 * np.log10(noise)} dB"

    return check


def tiny(dtype: type) -> float:
    return float(np.finfo(dtype).smallest_normal)


def exponent_codes(rel: float, dtype: type, flush: bool) -> Check:
    def check(x: Array, y: Array) -> None:
        same_kind(x, y)
        a, b = finite(x, y)
        small = np.abs(a) < tiny(dtype)
        assert np.all(np.abs(b[~small] - a[~small]) <= rel * np.abs(a[~small]))
        assert np.all((b[small] == a[small]) | (flush & (b[small] == 0)))  # raw blocks keep them
        assert np.array_equal(np.signbit(a[~small]), np.signbit(b[~small]))

    return check


def blocks(size: int, check: Check) -> Check:
    """A code whose blocks with something that is not finite are all NaN."""

    def each(x: Array, y: Array) -> None:
        x, y = x.reshape(-1), y.reshape(-1)
        for at in range(0, x.size, size):
            a, b = x[at : at + size], y[at : at + size]
            if np.isfinite(a).all() and a.tobytes() != b.tobytes():
                check(a, b)
            elif not np.isfinite(a).all():
                assert np.isnan(b).all() or a.tobytes() == b.tobytes()  # or stored raw

    return each


def integers(levels: int, part: float) -> Check:
    def check(x: Array, y: Array) -> None:
        a, b = as_f8(x), as_f8(y)
        m = np.abs(a).max()
        if m < 2.0**-100:
            assert np.all(b == 0)
            return
        s = min(m / levels * (1 + 2.0**-15), 2.0**128 / levels)
        assert np.all(np.abs(b - a) <= s * part)

    return check


def fp8(fraction: int, least: int, most: float) -> Check:
    def check(x: Array, y: Array) -> None:
        a, b = as_f8(x), as_f8(y)
        m = np.abs(a).max()
        k = max(-108, int(np.ceil(np.log2(m / most)))) if m > 0 else -108
        inside = np.abs(a) <= 1.75 * 2.0**127
        bound = np.maximum(2.0**-fraction * np.abs(a), 2.0 ** (k + least))
        assert np.all(np.abs(b - a)[inside] <= bound[inside])

    return check


def halves(rel: float, least: float, normal: float, most: float, strict: bool) -> Check:
    """bf16 and fp16: beyond `most` a value may become infinite."""

    def check(x: Array, y: Array) -> None:
        assert np.array_equal(np.isnan(x), np.isnan(y))
        a, b = finite(x, y)
        kept = np.isfinite(b)
        assert np.all(np.abs(a[~kept]) >= most)
        a, b = a[kept], b[kept]
        bound = np.where(np.abs(a) >= normal, rel * np.abs(a), least)
        error = np.abs(b - a)
        assert np.all((error < bound) | (error == 0) if strict else error <= bound)

    return check


def exponents() -> Iterator[tuple[str, type, Check]]:
    for dtype, digits in ((F4, 23), (F8, 52), (F2, 10)):
        for m, (mode, more), flush in itertools.product(
            sorted({1, 5, digits - 1, digits}),
            (("nearest", 1), ("truncate", 0), ("midpoint", 1)),
            (0, 1),
        ):
            rel = 0.0 if m == digits else 2.0 ** -(m + more)
            check = exponent_codes(rel, dtype, bool(flush))
            for codec in ("bx", "fre") if dtype is F4 else ("bx",):
                yield f"{codec}:m={m},round={mode},flush={flush}", dtype, check
    yield "fre:m=6,ways=4", F4, exponent_codes(2.0**-7, F4, False)
    yield "fre:m=6,ways=0", F4, exponent_codes(2.0**-7, F4, False)


def absolute() -> Iterator[tuple[str, type, Check]]:
    for dtype in (F4, F8):
        for text in ("1e-30", "1e-6", "1e-2", "10", "1e30"):
            for name in ("zfp:accuracy", "sz3:abs", "auto:abs"):
                yield f"{name}={text}", dtype, within(lambda a, e=float(text): e)
        for rel in (1e-6, 1e-2, 0.5):
            yield f"sz3:rel={rel:g}", dtype, within(lambda a, r=rel: r * spread(a))
            yield f"sz3:pw={rel:g}", dtype, within(lambda a, r=rel: r * np.abs(a))
            yield f"auto:rel={rel:g}", dtype, within(lambda a, r=rel: r * np.abs(a))
        for db in (20, 40, 90):
            yield f"sz3:psnr={db}", dtype, psnr(db)


def quantisers() -> Iterator[tuple[str, type, Check]]:
    for levels, codec, block in ((127, "int8", 8), (7, "int4", 9)):
        for mode, part in (("nearest", 0.5 + 2.0**-14), ("stochastic", 1.0)):
            for b in (block, 7, 12):
                yield f"{codec}:block={b},round={mode}", F4, blocks(2**b, integers(levels, part))
    yield "fp8", F4, blocks(4096, fp8(4, -10, 448))
    yield "fp8:format=e5m2", F4, blocks(4096, fp8(3, -17, 57344))
    for saturate in (0, 1):
        most = np.inf if saturate else 2.0**128 - 2.0**119
        more = f",saturate={saturate}"
        yield "bf16:round=nearest" + more, F4, halves(2**-8, 2**-134, tiny(F4), most, False)
        most = np.inf if saturate else float.fromhex("0x1.fep127")
        yield "bf16:round=stochastic" + more, F4, halves(2**-7, 2**-133, tiny(F4), most, True)
    yield "fp16", F4, halves(2**-11, 2**-25, 2**-14, 65520, False)
    yield "fp16:round=stochastic", F4, halves(2**-10, 2**-24, 2**-14, 65504, True)


ALL = [*exponents(), *absolute(), *quantisers()]


def holds(recipe: str, x: Array, check: Check, **options: object) -> None:
    frame = wirepress.compress(x, recipe, threads=1, **options)  # type: ignore[arg-type]
    y = wirepress.decompress(frame)
    assert y.dtype == x.dtype and y.shape == x.shape
    if x.size:
        check(x, y)


@pytest.mark.parametrize(
    ("recipe", "dtype", "check"), ALL, ids=[f"{r}-{t.__name__}" for r, t, _ in ALL]
)
def test_bounds(recipe: str, dtype: type, check: Check) -> None:
    for x in cases(1, dtype):
        holds(recipe, x, check, probe=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "dtype", "check"), ALL, ids=[f"{r}-{t.__name__}" for r, t, _ in ALL]
)
def test_bounds_long(recipe: str, dtype: type, check: Check) -> None:
    for seed in range(2, 5):
        for x in cases(seed, dtype, (2, 16, 513, 6000)):
            holds(recipe, x, check, seed=seed)
            # Of what is smaller they make one block, too. Blocks of 1024 bytes are whole blocks of
            # int4 and of fp8 no longer.
            if x.nbytes > 1024 and not recipe.startswith(("int", "fp8")):
                holds(recipe, x, check, block_size="1KiB")


@pytest.mark.parametrize(
    "recipe",
    [
        "bf16:round=nearest,saturate=0",
        "bf16:round=stochastic,saturate=0",
        "fp16",
        "fp16:round=stochastic",
        "bx:m=7,round=nearest,flush=0",
    ],
)
def test_every_upper_half(recipe: str) -> None:
    """All upper halves of float32, with the lower halves at which rounding turns."""
    checks = {r: c for r, _, c in ALL}
    check = checks.get(recipe, exponent_codes(2.0**-8, F4, False))
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    rng = np.random.default_rng(5)
    lows = [0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    for low in [*lows, rng.integers(0, 1 << 16, 1 << 16, dtype=np.uint32)]:
        holds(recipe, (high | low).astype(np.uint32).view(F4), check)


def test_the_bound_of_bf16_is_reached() -> None:
    x = np.array([1.00390625], F4)
    y = wirepress.decompress(wirepress.compress(np.repeat(x, 256), "bf16"))[:1]
    assert 2.0**-9 < float(abs(y - x)[0] / x[0]) < 2.0**-8
