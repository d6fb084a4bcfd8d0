# SPDX-License-Identifier: Apache-2.0
"""Scripts about engine compressdev, each in a process of its own: a process has one device."""

import subprocess
import sys

HEAD = """
import os, re, sys, wirepress
data = bytes(range(64)) * 4096
def loaded():
    return "libwirepress_compressdev" in open("/proc/self/maps").read()
def state(field="state"):
    return next(getattr(e, field) for e in wirepress.engines() if e.name == "compressdev")
def done():
    "Bytes that the device compressed and expanded."
    found = re.search(r"\\((\\d+) bytes compressed, (\\d+) expanded", state())
    return [int(n) for n in found.groups()]
def round_trip(engine, recipe="zlib", **more):
    frame = wirepress.compress(data, recipe, engine=engine, block_size="32KiB", **more)
    assert wirepress.decompress(frame, raw=True) == data
    assert wirepress.Compressor(engine=engine).decompress(frame, raw=True) == data
"""


def run(script: str, **more: object) -> None:
    """The script behind HEAD, which must end well and be silent."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script], capture_output=True, text=True, check=False, **more
    )
    said = (done.returncode, done.stdout, done.stderr)
    assert said == (0, "", ""), "{}\n{}{}".format(*said)
