# SPDX-License-Identifier: Apache-2.0
"""Virtual devices of engine compressdev, from the outside: they need no driver library."""

from __future__ import annotations

import pytest

from python.tests.device_scripts import run
from wirepress.sim import engine_files

# PEDAL's table II, as sim/engines has it: the codecs that the device itself does.
TABLE_II = {"bluefield2": "bf2", "bluefield3": "bf3"}


def does(device: str, codec: str, way: str) -> bool:
    model = engine_files.load(TABLE_II[device]).codec(codec)
    return getattr(model, way).where.startswith("engine")


@pytest.mark.parametrize("device", TABLE_II)
def test_table_ii(device: str) -> None:
    """What the device does is what the paper prints; its set-up is slept once."""
    expected = {
        codec: (does(device, codec, "compress"), does(device, codec, "decompress"))
        for codec in ("deflate", "zlib", "lz4")
    }
    run(
        f"""
for codec, expected in {expected}.items():
    before = done() if state() else [0, 0]
    round_trip("compressdev:virtual-{device}!", codec, threads=1)
    assert [now > then for now, then in zip(done(), before)] == list(expected), (codec, state())
assert state().startswith("virtual-{device} (virtual: ")
"""
    )


def test_all_of_them() -> None:
    """Each says that it is virtual, and gives right bytes; unknown ones name the known."""
    run(
        """
try:
    wirepress.Compressor(engine="compressdev:virtual-x!")
except wirepress.ParameterError as error:
    names = sorted(set(re.findall("virtual-[a-z0-9]+", str(error))) - {"virtual-x"})
assert len(names) == 5, names
for name in ["virtual-100", *names]:
    if os.fork() == 0:
        for codec in ("deflate", "zlib", "gzip", "lz4", "shuffle:4+lz4"):
            round_trip("compressdev:" + name + "!", codec, verify=codec == "gzip")
        if not state().startswith(name + " (virtual: ") or done() == [0, 0]:
            print(name, state(), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
for name in ("virtual", "virtual-", "virtual-0", "virtual-1e3", "virtual--1", "virtual-1000001"):
    try:
        wirepress.Compressor(engine="compressdev:" + name + "!")
    except wirepress.ParameterError as error:
        assert "is no virtual device" in str(error)
    else:
        raise AssertionError(name)
"""
    )


def test_devices_side_by_side() -> None:
    """Each does a part of the jobs; what one does not take, the other may."""
    run(
        """
pair = "compressdev:virtual-100,virtual-50"
several = wirepress.Compressor("zlib", engine=pair + "!", block_size="32KiB", threads=4)
for _ in range(3):
    frame = several.compress(data * 4)
    assert several.decompress(frame, raw=True) == data * 4
parts = state().split("; and ")
assert [part.split()[0] for part in parts] == ["virtual-100", "virtual-50"]
jobs = [int(re.search("; ([0-9]+) jobs by the device", part)[1]) for part in parts]
assert all(jobs) and sum(jobs) == 6 * len(data * 4) // (32 << 10), state()
for engine, why in ((pair + ",virtual-20", "no other"), ("compressdev:virtual-100", "no other")):
    try:
        wirepress.Compressor(engine=engine + "!")
    except wirepress.ParameterError as error:
        assert why in str(error)
"""
    )
    run(
        """
many = ",".join(f"virtual-{n}" for n in range(1, 6))
for engine, why in (("virtual-9,virtual-9", "named twice"), ("virtual-9,virtual-x", "virtual-nx"),
                    (many, "4 devices at most")):
    wirepress.Compressor(engine="compressdev:" + engine)
    assert why in state("refusal") and state() == "", state("refusal")
both = "compressdev:virtual-bluefield3,virtual-100!"  # one expands LZ4, the other compresses, too
for codec in ("lz4", "zlib"):
    round_trip(both, codec)
first, second = state().split("; and ")
assert ", 0 expanded" not in first and "(0 bytes compressed" in first
assert "(0 bytes compressed" not in second
"""
    )


def test_device_and_cores_together() -> None:
    """Each side does some blocks."""
    run(
        """
words = b" ".join(b"%d" % (i * i) for i in range(400000))[: 1 << 21]
divided = wirepress.Compressor("zlib", engine="cores+compressdev:virtual-300!", block_size="32KiB")
for _ in range(3):
    frame = divided.compress(words)
    assert divided.decompress(frame, raw=True) == words == wirepress.decompress(frame, raw=True)
assert all(0 < size <= 3 * len(words) for size in done()), state()
"""
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_were_asked_for(threads: int) -> None:
    """None of them waits while there is something to code: small messages are divided, too, and no
    more threads are made."""
    run(
        f"""
words = b" ".join(b"%d" % (i * i) for i in range(40000))[: 83000]
def n_threads():
    return len(os.listdir("/proc/self/task"))
divided = wirepress.Compressor("zlib", engine="cores+compressdev:virtual-300!", block_size="16KiB",
                               threads={threads})
before = n_threads()
for _ in range(40):
    frame = divided.compress(words)
    assert divided.decompress(frame, raw=True) == words == wirepress.decompress(frame, raw=True)
assert 0 < done()[0] < 40 * len(words), state()
assert n_threads() < before + {threads}, n_threads()
"""
    )


def test_divided_frames_of_any_kind() -> None:
    """One codec or several, one thread or all; damage is an error, never other bytes."""
    run(
        """
import random
words = b" ".join(b"%d" % (i * i) for i in range(60000))[: 300000]
chance = random.Random(1)
for recipe in ("zlib", "gzip", "deflate", "lz4", "shuffle:4+zlib", "shuffle:4+lz4"):
    for threads in (1, 0):
        divided = wirepress.Compressor(recipe, engine="cores+compressdev:virtual-2000!",
                                       block_size="16KiB", threads=threads)
        for _ in range(4):
            frame = bytes(divided.compress(words))
            assert divided.decompress(frame, raw=True) == words, (recipe, threads)
        for _ in range(60):
            damaged = bytearray(frame)
            damaged[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            try:
                assert divided.decompress(damaged, raw=True) == words, (recipe, threads)
            except wirepress.WirepressError:
                pass
        assert divided.decompress(frame, raw=True) == words
assert done()[1] > 0, state()
"""
    )
