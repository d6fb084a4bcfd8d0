# SPDX-License-Identifier: Apache-2.0
"""Engine compressdev in processes of its own, over DPDK's software drivers."""

import os
import subprocess
import sys

import pytest

import wirepress

ENGINE = {engine.name: engine for engine in wirepress.engines()}.get("compressdev")
if ENGINE is None or not ENGINE.available:
    pytest.skip(ENGINE.reason if ENGINE else "no engine compressdev", allow_module_level=True)

HEAD = """
import os, sys, wirepress
data = bytes(range(64)) * 4096
def loaded():
    return "libwirepress_compressdev" in open("/proc/self/maps").read()
def state():
    return next(e.state for e in wirepress.engines() if e.name == "compressdev")
def round_trip(engine, recipe="zlib", **more):
    frame = wirepress.compress(data, recipe, engine=engine, block_size="32KiB", **more)
    assert wirepress.decompress(frame, raw=True) == data
    assert wirepress.Compressor(engine=engine).decompress(frame, raw=True) == data
"""


def run(script: str, **more: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script], capture_output=True, text=True, check=False, **more
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("driver", ["isal", "zlib"])
def test_silent_and_affinity_kept(driver: str) -> None:
    run(
        f"""
round_trip("cpu")
assert not loaded() and state() == ""
cores, threads = os.sched_getaffinity(0), len(os.listdir("/proc/self/task"))
for recipe in ("deflate", "zlib", "gzip", "shuffle:4+gzip"):
    round_trip("compressdev:{driver}", recipe, verify=True, threads=1)
assert loaded() and os.sched_getaffinity(0) == cores
assert len(os.listdir("/proc/self/task")) <= threads + 1
assert state().startswith("{driver} (compress_{driver})") and ", 0 expanded" not in state()
"""
    )


def test_a_child_uses_the_cores() -> None:
    run(
        """
compressor = wirepress.Compressor("gzip", engine="compressdev", block_size="32KiB", threads=1)
frame = compressor.compress(data)
child = os.fork()
if child == 0:
    good = compressor.decompress(compressor.compress(data), raw=True) == data
    os._exit(0 if good and "belongs to the parent" in state() else 1)
assert os.waitpid(child, 0)[1] == 0
assert compressor.decompress(frame, raw=True) == data and "parent" not in state()
"""
    )


def test_bad_input_is_one_sentence() -> None:
    run(
        """
def sentence(engine):
    try:
        wirepress.Compressor(engine=engine)
    except wirepress.ParameterError as error:
        return str(error)
assert "no driver compress_none" in sentence("compressdev:none")
round_trip("compressdev:zlib")
assert "has device zlib" in sentence("compressdev:isal")
"""
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user takes root")
def test_three_processes_of_an_ordinary_user() -> None:
    script = (
        HEAD
        + """
round_trip("cpu")  # what is loaded late may lie where only root reads
os.setgid(65534)
os.setuid(65534)
round_trip("compressdev:isal")
"""
    )
    several = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [process.wait() for process in several] == [0, 0, 0]
