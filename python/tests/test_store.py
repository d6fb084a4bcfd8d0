# SPDX-License-Identifier: Apache-2.0
"""The frame store from Python: policies, crashes of a process, full file systems, the command."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import wirepress
from wirepress import FrameStore

if TYPE_CHECKING:
    from conftest import Command

SHAPE = (20, 30, 10)
# a link is named: without one auto may leave raw what a fast machine's memory takes sooner
RECIPES = ["shuffle+lz4", "zstd:1", "bx:m=23", "auto:link=100Mbps"]


def frame(step: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return np.round(np.sin(values / 50 + step) * 100) / 8 * (step + 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frames"


def make(path: Path, n: int, **options: object) -> None:
    with FrameStore(path, SHAPE, **options) as store:  # type: ignore[arg-type]
        for step in range(n):
            store.put(step, frame(step))


def expect_reversed(store: FrameStore, n: int) -> None:
    steps = []
    for step, array in reversed(store):
        assert (array == frame(step)).all()
        steps.append(step)
    assert steps == list(range(n))[::-1]


@pytest.mark.parametrize("policy", ["memory", "disk", *RECIPES])
def test_reverse(policy: str, path: Path) -> None:
    options = {"policy": policy} if policy in ("memory", "disk") else {"recipe": policy}
    where = None if policy == "memory" else path
    with FrameStore(where, SHAPE, np.float32, servants=2, **options) as store:  # type: ignore[arg-type]
        for step in range(25):
            store.put(step, frame(step))
        assert len(store) == 25 and 24 in store and 25 not in store
        expect_reversed(store, 25)
        stats = store.stats()
        assert (stats.puts, stats.gets, stats.raw_bytes) == (25, 25, 25 * 4 * 6000)
        assert policy in ("memory", "disk") or stats.ratio > 1.1
        assert policy == "memory" or stats.read_ahead >= 20
    if where:
        with FrameStore(path) as store:
            assert (store.shape, store.dtype, store.torn_bytes) == (SHAPE, "float32", 0)
            expect_reversed(store, 25)
            assert [step for step, _ in store] == list(range(25))


def test_lossy_is_the_same_whenever_it_is_read(path: Path) -> None:
    with FrameStore(path, SHAPE, recipe="bx:m=6") as store:
        values = np.cos(frame(0))
        store.put(0, values)
        now = store.get(0)
        assert 0 < np.abs(now - values).max() <= 2**-6
    with FrameStore(path) as store:
        assert (store.get(0) == now).all()
        out = np.empty(SHAPE, np.float32)
        assert store.get(0, out) is out and (out == now).all()


def test_outputs_of_another_shape_are_refused() -> None:
    """Their rows would get parts of others; the rest of a larger one would stay as it was."""
    with FrameStore(None, (3, 4), policy="memory", tile=(2, 4)) as store:
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        store.put(0, values)
        for shape in (4, 3), (3, 5), (1, 3, 4):
            out = np.zeros(shape, np.float32)
            with pytest.raises(wirepress.ParameterError, match=r"out has shape .*hold \(3, 4\)"):
                store.get(0, out)
            with pytest.raises(wirepress.ParameterError, match=r"out has shape .*hold \(2, 4\)"):
                store.get_tile(0, 0, out)
            assert not out.any()
        flat = np.zeros(12, np.float32)
        assert (store.get(0, flat) == values.ravel()).all()
        assert store.get(0, bytearray(48)) == values.tobytes()


def test_budget_and_waits(path: Path) -> None:
    size = 6000 * 4
    with pytest.raises(wirepress.ParameterError, match="memory is 50000 bytes"):
        FrameStore(path, SHAPE, memory=50000)
    assert not path.exists()
    with FrameStore(path, SHAPE, recipe="zstd:19", memory=5 * size) as store:
        for step in range(40):
            store.put(step, frame(step))
        stats = store.stats()
        assert stats.buffer_bytes <= 5 * size
        assert stats.put_wait_seconds > 0  # level 19 is slower than the loop above
        waits = [f.put_wait_seconds for f in store.frames()]
        assert sum(waits) == pytest.approx(stats.put_wait_seconds)
        expect_reversed(store, 40)


def test_wrong_requests_name_the_numbers(path: Path) -> None:
    make(path, 3)
    before = path.read_bytes()
    with pytest.raises(wirepress.StoreError, match="exists"):
        FrameStore(path, SHAPE)
    with FrameStore(path, mode="a") as store:
        with pytest.raises(wirepress.StoreError, match="another writer"):
            FrameStore(path, mode="a")
        with pytest.raises(wirepress.ParameterError, match=r"float32 of shape \(2,\).*20, 30, 10"):
            store.put(3, np.zeros(2, np.float32))
        with pytest.raises(wirepress.ParameterError, match="float64"):
            store.put(3, np.zeros(SHAPE))
        with pytest.raises(wirepress.ParameterError, match="step 1 is in the store already"):
            store.put(1, frame(1))
        with pytest.raises(KeyError, match="step 9 is not in the store, which has 3"):
            store.get(9)
    with FrameStore(path) as store, pytest.raises(wirepress.ParameterError, match="reading only"):
        store.put(3, frame(3))
    for mode in "ra":
        with pytest.raises(wirepress.ParameterError, match="holds float32, not float64"):
            FrameStore(path, dtype="float64", mode=mode)
        with FrameStore(path, dtype="float32", mode=mode) as store:
            assert store.dtype == "float32"
    assert path.read_bytes() == before
    newer = bytearray(before)
    newer[8] = 2
    path.write_bytes(newer)
    with pytest.raises(wirepress.UnsupportedError, match="store version 2"):
        FrameStore(path)
    path.write_bytes(b"not a store at all")
    with pytest.raises(wirepress.CorruptError, match="WPRSTORE"):
        FrameStore(path)
    with pytest.raises(wirepress.StoreError, match="No such file"):
        FrameStore(path.parent / "none" / "frames", SHAPE)
    os.remove(path)
    os.mkfifo(path)
    with pytest.raises(wirepress.StoreError, match="not a regular file"):
        FrameStore(path)


def test_stores_at_once(tmp_path: Path) -> None:
    def channel(number: int) -> None:
        make(tmp_path / str(number), 20)

    threads = [threading.Thread(target=channel, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        with FrameStore(tmp_path / str(number)) as store:
            expect_reversed(store, 20)


# ---- crashes --------------------------------------------------------------------------------

WRITER = """
import sys, numpy as np
from wirepress import FrameStore
sys.path.insert(0, sys.argv[1])
from test_store import SHAPE, frame
store = FrameStore(sys.argv[2], SHAPE)
for step in range(10**6):
    store.put(step, frame(step))
    if step % 3 == 2:
        store.sync()
        print(step, flush=True)
"""


@pytest.mark.parametrize("after", [0, 1, 4, 9, 17])
def test_a_killed_writer_loses_nothing_that_was_synced(after: int, path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        synced = [int(writer.stdout.readline()) for _ in range(after + 1)][-1]
        writer.send_signal(signal.SIGKILL)
    size = path.stat().st_size
    with FrameStore(path) as store:
        n = len(store)
        assert n > synced
        expect_reversed(store, n)
    assert path.stat().st_size == size
    with FrameStore(path, mode="a") as store:
        store.put(n, frame(n))
    with FrameStore(path) as store:
        assert store.torn_bytes == 0
        expect_reversed(store, n + 1)


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """Behind the head: bytes changed, zeroed, copied from elsewhere, or cut off."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 6)):
        at, size, kind = rng.randrange(72, len(data)), rng.randrange(1, 80), rng.random()
        if kind < 0.4:
            data[at] = rng.randrange(256)
        elif kind < 0.6:
            data[at : at + size] = bytes(size)
        elif kind < 0.8:
            source = rng.randrange(72, len(data))
            data[at : at + size] = data[source : source + size]
        else:
            del data[max(73, at) :]
    return bytes(data)


def test_no_mutation_makes_a_wrong_frame(path: Path) -> None:
    frames = [np.arange(40, dtype=np.float32) * step for step in range(6)]
    with FrameStore(path, (40,), recipe="lz4") as store:
        for step, array in enumerate(frames):
            store.put(step, array)
    whole, rng, n_read = path.read_bytes(), random.Random(3), 0
    for _ in range(500):
        path.write_bytes(mutated(whole, rng))
        with FrameStore(path) as store:
            for step in store.steps():
                with contextlib.suppress(wirepress.FrameError):
                    assert (store.get(step) == frames[step]).all()
                    n_read += 1
    assert 500 < n_read < 3000  # some are lost, and what is whole is found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "wirepress-test", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted (needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(store: FrameStore) -> None:
    for step in range(30):
        store.put(step, frame(step))
    store.sync()


def test_a_full_disk_stops(small_disk: Path) -> None:
    path = small_disk / "frames"
    store = FrameStore(path, SHAPE, policy="disk")
    with pytest.raises(wirepress.StoreError, match=r"step \d+.*No space left"):
        fill(store)
    steps = store.steps()
    assert 8 <= len(steps) <= 10 and steps == list(range(len(steps)))
    expect_reversed(store, len(steps))
    with pytest.raises(wirepress.StoreError, match="No space left"):
        store.close()
    with FrameStore(path) as again:
        expect_reversed(again, len(steps))


def test_a_full_disk_drops_or_spills(small_disk: Path) -> None:
    blocker = small_disk / "blocker"
    for on_error in ("drop", "spill"):
        path = small_disk / on_error
        blocker.write_bytes(bytes(100_000))
        with FrameStore(path, SHAPE, policy="disk", on_error=on_error) as store:
            if on_error == "drop":
                fill(store)
                stats = store.stats()
                assert stats.dropped == 30 - len(store) > 15
                assert all((array == frame(step)).all() for step, array in store)
                blocker.unlink()
                store.put(30, frame(30))  # later ones are tried
                store.sync()
                assert 30 in store
            else:
                for step in range(9):
                    store.put(step, frame(step))
                with pytest.raises(wirepress.StoreError, match="No space left"):
                    store.sync()
                assert store.stats().spilled > 0
                expect_reversed(store, 9)
                blocker.unlink()
                store.sync()
        with FrameStore(path) as store:
            assert len(store) >= 5
            if on_error == "spill":
                expect_reversed(store, 9)
        path.unlink()


def test_a_file_size_limit(path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = FrameStore(path, SHAPE, policy="disk")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(wirepress.StoreError, match="File too large"):
            fill(store)
        expect_reversed(store, 4)
        with pytest.raises(wirepress.StoreError):
            store.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with FrameStore(path) as again:
        expect_reversed(again, 4)


# ---- the command ----------------------------------------------------------------------------


def open_files(process: subprocess.Popen[bytes]) -> list[str]:
    found = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return found


def test_a_signal_ends_a_check(path: Path) -> None:
    """One call reads all of a file; here half a minute's worth of zeros stand behind the frames."""
    make(path, 3)
    os.truncate(path, 60 << 30)
    command = [sys.executable, "-m", "wirepress", "store", "check", str(path)]
    with subprocess.Popen(
        command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ) as process:
        while str(path) not in open_files(process):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


def test_ls_check_repair_cat(wirepress_in: Command, path: Path) -> None:
    make(path, 3)
    listed = wirepress_in("store", "ls", path)
    assert listed.returncode == 0 and b"3 frames of 24000 bytes" in listed.stdout
    assert wirepress_in("store", "check", path).returncode == 0
    got = wirepress_in("store", "cat", path, 1, "--npy").stdout
    (path.parent / "one.npy").write_bytes(got)
    assert (np.load(path.parent / "one.npy") == frame(1)).all()
    assert wirepress_in("store", "cat", path, -1).stdout == frame(2).tobytes()
    wrong = wirepress_in("store", "cat", path, 8)
    assert wrong.returncode == 2 and b"step 8 is not in" in wrong.stderr

    whole = path.read_bytes()
    path.write_bytes(whole[:-200])  # the index, and the end of the last frame
    checked = wirepress_in("store", "check", path)
    assert checked.returncode == 1 and b"2 good frames" in checked.stdout
    assert path.read_bytes() == whole[:-200]
    repaired = wirepress_in("store", "repair", path)
    assert repaired.returncode == 0 and b"wrote an index" in repaired.stdout
    assert wirepress_in("store", "check", path).returncode == 0
    with FrameStore(path) as store:
        expect_reversed(store, 2)
