# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a real Revolver: a wave forward in time, and its adjoint that needs every step."""

from __future__ import annotations

import numpy as np
import pytest

import wirepress

pytest.importorskip("pyrevolve", reason="pyrevolve is not installed")
import pyrevolve
from wirepress.pyrevolve import compression, use_storage

SHAPE, STEPS, CHECKPOINTS = (60, 70), 40, 5


class Wave:
    """u(t+1) = 2 u(t) - u(t-1) + c laplace(u(t)), with a source in the middle."""

    def __init__(self, dtype: type = np.float32, extra: int = 0) -> None:
        self.fields = [np.zeros(SHAPE, dtype) for _ in range(2)]
        self.extra = [np.random.default_rng(i).random(SHAPE).astype(dtype) for i in range(extra)]
        self.dtype, self.size = dtype, (2 + extra) * SHAPE[0] * SHAPE[1]
        self.nbytes = self.size * np.dtype(dtype).itemsize

    def get_data(self, _timestep: int) -> list[np.ndarray]:
        return [*self.fields, *self.extra]

    get_data_location = get_data

    def apply(self, t_start: int, t_end: int) -> None:
        old, new = self.fields
        for t in range(t_start, t_end):
            laplace = -4 * new
            for axis in 0, 1:
                laplace += np.roll(new, 1, axis) + np.roll(new, -1, axis)
            old[:] = 2 * new - old + 0.2 * laplace
            old[30, 35] += np.float32(np.sin(t / 3))
            old[:], new[:] = new.copy(), old.copy()


class Gather:
    """The adjoint: sees the field of every step, in reverse."""

    def __init__(self, wave: Wave) -> None:
        self.wave, self.seen = wave, {}

    def apply(self, t_start: int, t_end: int) -> None:
        assert t_end == t_start + 1
        self.seen[t_start] = self.wave.fields[1].copy()


def run(params: dict | str, dtype: type = np.float32, extra: int = 0) -> dict[int, np.ndarray]:
    """The fields seen; `params` may be a recipe for a Storage of ours."""
    ours, params = (params, None) if isinstance(params, str) else (None, params)
    wave = Wave(dtype, extra)
    gather = Gather(wave)
    revolver = pyrevolve.Revolver(wave, wave, gather, CHECKPOINTS, STEPS, compression_params=params)
    if ours:
        storage = use_storage(revolver, ours)
    revolver.apply_forward()
    if ours:
        assert 0 < storage.nbytes < CHECKPOINTS * wave.size * np.dtype(dtype).itemsize
    revolver.apply_reverse()
    return gather.seen


def test_steps_come_back_bit_for_bit() -> None:
    expected = run({"scheme": None})
    assert len(expected) == STEPS
    for params in compression("bx:m=0"), "bx:m=0":
        found = run(params)
        for step, field in expected.items():
            np.testing.assert_array_equal(found[step], field)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (30, 21), (2, 3, 2, 3, 2)], ids=str)
def test_every_shape_comes_back(shape: tuple[int, ...]) -> None:
    for dtype in "? i1 i4 f2 f4 f8 c16 >f4 M8[ns]".split():
        for recipe in "shuffle+zstd:1", "store":
            params = compression(recipe)
            array = np.full(shape, 1).astype(dtype)
            for order in "CF":
                there = params["compressor"](None, np.asarray(array, order=order))
                back = params["decompressor"](None, there)
                assert (back.shape, back.dtype) == (array.shape, array.dtype)
                assert back.tobytes() == array.tobytes()


def test_the_scheme_is_used_and_lossy_ones_hold_their_bound() -> None:
    params = compression("bx:m=9")
    field = np.linspace(1, 2, 5000, dtype=np.float32).reshape(50, 100)
    stored = params["compressor"]({}, field)
    assert wirepress.inspect(stored.data).shape == (50, 100)
    assert len(stored.data) < field.nbytes / 2
    back = params["decompressor"]({}, stored)
    assert np.all(np.abs(back - field) <= field * 2**-10)
    expected, found = run({"scheme": None}), run(params)
    scale = max(np.abs(field).max() for field in expected.values())
    error = max(np.abs(found[step] - expected[step]).max() for step in expected)
    assert 0 < error < 0.02 * scale


def test_what_does_not_shrink_stays_in_its_place() -> None:
    class Noise(Wave):
        def apply(self, t_start: int, t_end: int) -> None:
            for t in range(t_start, t_end):
                rng = np.random.default_rng(t)
                for field in self.fields:
                    field[:] = (
                        rng.integers(0, 256, field.nbytes, np.uint8)
                        .view(field.dtype)
                        .reshape(SHAPE)
                    )

    def run_noise(params: dict) -> dict[int, bytes]:
        noise = Noise()
        gather = Gather(noise)
        revolver = pyrevolve.Revolver(
            noise, noise, gather, CHECKPOINTS, STEPS, compression_params=params
        )
        revolver.apply_forward()
        revolver.apply_reverse()
        return {step: field.tobytes() for step, field in gather.seen.items()}

    assert run_noise(compression("zstd:1")) == run_noise({"scheme": None})


def test_checkpoints_written_over_are_an_error() -> None:
    # pyrevolve 2.2.8 places the arrays of a checkpoint with growing gaps, beyond its end.
    with pytest.raises((wirepress.FrameError, ValueError, AssertionError)):
        run(compression("zstd:1"), extra=4)
    assert run("zstd:1", extra=4).keys() == run({"scheme": None}).keys()


def test_bad_input() -> None:
    with pytest.raises(wirepress.ParameterError, match='"zpaq"'):
        compression("zpaq")
    with pytest.raises(wirepress.ParameterError, match="text, not dict"):
        compression({})
    with pytest.raises(wirepress.ParameterError, match="fre cannot code float64"):
        run(compression("fre"), np.float64)
