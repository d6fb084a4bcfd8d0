# SPDX-License-Identifier: Apache-2.0
"""The frame store by tiles, from Python threads, and the options of those who compress."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import wirepress
from wirepress import FrameStore

SHAPE = (12, 20, 30)
TILE = (5, 8, 30)
STEPS = 10


def frame(step: int) -> np.ndarray:
    values = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    return np.sin(values / 40 + step).astype(np.float32) * (step + 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frames"


@pytest.mark.parametrize("policy", ["memory", "disk", "compressed", "in-worker"])
def test_threads_put_and_get_tiles(policy: str, path: Path) -> None:
    where = None if policy == "memory" else path
    with FrameStore(where, SHAPE, policy=policy, recipe="bx:m=23", tile=TILE) as store:
        places = store.tiles()
        assert len(places) == 9 and places[4] == (slice(5, 10), slice(8, 16), slice(0, 30))
        barrier = threading.Barrier(3)
        wrong: list[int] = []

        def work(worker: int) -> None:
            for step in range(STEPS):
                whole = frame(step)
                for tile in range(worker, len(places), 3):
                    store.put_tile(step, tile, whole[places[tile]])
                barrier.wait()
            for step in reversed(range(STEPS)):
                whole = frame(step)
                for tile in range(worker, len(places), 3):
                    if (store.get_tile(step, tile) != whole[places[tile]]).any():
                        wrong.append(step)
                barrier.wait()

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and len(store) == STEPS
        assert all((array == frame(step)).all() for step, array in reversed(store))
        stats = store.stats()
        assert stats.longest_get_wait_seconds <= stats.get_wait_seconds
        assert stats.compress_seconds > 0 or policy in ("memory", "disk")
    if where:
        with FrameStore(path) as store:
            assert all((array == frame(step)).all() for step, array in store)


def test_a_lossy_in_worker_store_keeps_its_bound(path: Path) -> None:
    with FrameStore(path, SHAPE, policy="in-worker", recipe="bx:m=5", tile=TILE) as store:
        store.put(3, frame(3))
        errors = np.abs(store.get(3) - frame(3))
        assert errors.max() > 0 and (errors <= 2**-6 * np.abs(frame(3))).all()
        out = np.empty((5, 8, 30), np.float32)
        assert store.get_tile(3, 0, out) is out and (out == store.get(3)[:5, :8]).all()
        assert store.stats().ratio > 2


def test_options(path: Path) -> None:
    for options, match in [
        ({"engine": "abacus"}, "abacus"),
        ({"engine": "cpu:scalar", "recipe": "lz4"}, "lz4:1 has no kernel cpu:scalar; it has cpu:"),
        ({"options": {"block_size": "3"}}, "block_size"),
        ({"options": {"no_such": 1}}, "no_such"),
        ({"tile": (1, 2)}, "differ in length"),
        ({"tile": (13, 20, 30)}, "13"),
        ({"nodes": [4000]}, "NUMA node 4000"),
    ]:
        with pytest.raises(wirepress.ParameterError, match=match):
            FrameStore(path, SHAPE, **options)  # type: ignore[arg-type]
        assert not path.exists()
    more = {"engine": "cpu:scalar", "options": {"block_size": "4KiB"}}
    more["recipe"] = "shuffle:4+lz4"
    with FrameStore(path, SHAPE, **more) as store:  # type: ignore[arg-type]
        store.put(0, frame(0))
        assert (store.get(0) == frame(0)).all()


def test_wrong_tiles(path: Path) -> None:
    store = FrameStore(path, SHAPE, policy="in-worker", recipe="lz4", tile=TILE)
    with pytest.raises(wirepress.ParameterError, match="a frame of this store has 9"):
        store.put_tile(0, 9, np.zeros(3, np.float32))
    with pytest.raises(wirepress.ParameterError, match=r"shape \(3,\), not float32 of shape"):
        store.put_tile(0, 1, np.zeros(3, np.float32))
    with pytest.raises(wirepress.ParameterError, match="4800 bytes, not 8"):
        store.get_tile(0, 0, bytearray(8))
    store.put_tile(0, 0, frame(0)[store.tiles()[0]])
    with pytest.raises(wirepress.ParameterError, match="step 0 is lost: 1 of its 9 tiles"):
        store.close()
