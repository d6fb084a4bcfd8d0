# SPDX-License-Identifier: Apache-2.0
"""A forked child has no threads of its parent's: nothing may wait for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: a child that hangs must not take the tests with it.
HEAD = """
import gc, os, signal, sys, threading
import numpy as np
import wirepress

field = np.sin(np.arange(100_000, dtype=np.float32) / 50)
options = dict(recipe="shuffle:4+lz4", threads=3, block_size="4KiB")

def in_child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            work()
        except Exception:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)  # the interpreter's own end: whatever lives is destroyed
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"the child ended with {status}"

def same(compressor):
    frame = compressor.compress(field)
    assert np.array_equal(compressor.decompress(frame), field)
    return frame
"""

CASES = {
    "compressor": """
shared = wirepress.Compressor(**options)
frame = same(shared)
def work():
    assert same(shared) == frame
    assert same(shared) == frame
in_child(work)
assert same(shared) == frame
""",
    "compressor_deleted": """
shared = wirepress.Compressor(**options)
same(shared)
def work():
    global shared
    del shared
    gc.collect()
    same(wirepress.Compressor(**options))
in_child(work)
""",
    "nothing_done": """
shared = wirepress.Compressor(**options)
same(shared)
in_child(lambda: None)
""",
    "child_of_child": """
shared = wirepress.Compressor(**options)
same(shared)
def work():
    same(shared)
    in_child(lambda: same(shared))
    same(shared)
in_child(work)
""",
    "functions": """
frame = wirepress.compress(field, **options)
def work():
    assert wirepress.compress(field, **options) == frame
    assert np.array_equal(wirepress.decompress(frame, threads=3), field)
in_child(work)
""",
    "streams": """
data = field.tobytes()
stream, back = wirepress.StreamCompressor(**options), wirepress.StreamDecompressor(threads=3)
begun = stream.update(data[:200_000])
out = back.update(begun)
def end():
    rest = stream.update(data[200_000:]) + stream.finish()
    assert out + back.update(rest) == data and back.done
in_child(end)
end()
""",
    "auto": """
shared = wirepress.Compressor("auto", threads=3, block_size="4KiB")
same(shared)
in_child(lambda: same(shared))
in_child(lambda: same(wirepress.Compressor("auto:goal=ratio", threads=3)))
""",
    "busy": """
shared = wirepress.Compressor(**options)
frame = same(shared)
stop = threading.Event()
def loop(own):
    while not stop.is_set():
        assert same(own) == frame
busy = [threading.Thread(target=loop, args=[c])
        for c in (shared, shared, wirepress.Compressor(**options))]
for thread in busy:
    thread.start()
def work():
    assert same(shared) == frame
    assert same(wirepress.Compressor(**options)) == frame
for _ in range(10):
    in_child(work)
stop.set()
for thread in busy:
    thread.join()
""",
    "multiprocessing": """
import multiprocessing
shared = wirepress.Compressor(**options)
frame = same(shared)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(shared.compress, [field] * 4) == [frame] * 4
""".replace("shared.compress", "compress").replace(
        "with multi", "def compress(array):\n    return shared.compress(array)\nwith multi"
    ),
    "numcodecs": """
from wirepress.numcodecs import Wirepress
codec = Wirepress(recipe="shuffle+lz4", threads=3, block_size="4KiB")
code = bytes(codec.encode(field))
def work():
    assert bytes(codec.encode(field)) == code
    assert np.array_equal(np.frombuffer(codec.decode(code), np.float32), field)
in_child(work)
""",
    "frame_store": """
with wirepress.FrameStore("frames", field.shape, "float32", servants=2) as store:
    for step in range(3):
        store.put(step, field)
    def work():
        for call in (lambda: store.put(9, field), lambda: store.get(0), lambda: 0 in store,
                     store.sync, store.close, store.stats, lambda: len(store), store.steps):
            try:
                call()
            except wirepress.ParameterError as error:
                assert "process that opened it" in str(error), error
            else:
                raise AssertionError("not refused")
    for _ in range(5):
        in_child(work)
    def delete():
        global store
        store = None
        gc.collect()
    in_child(delete)
    store.put(3, field)
def read():
    with wirepress.FrameStore("frames") as again:
        assert all(np.array_equal(frame, field) for _, frame in reversed(again))
        assert again.steps() == [0, 1, 2, 3]
in_child(read)
read()
""",
    "frame_store_lock": """
first = wirepress.FrameStore("frames", field.shape, "float32")
first.put(0, field)
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(w)
    os.read(r, 1)  # lives on, and has the file's descriptor
    os._exit(0)
first.close()
with wirepress.FrameStore("frames", mode="a") as second:
    second.put(1, field)
os.close(w)
os.waitpid(pid, 0)
""",
}


@pytest.mark.parametrize("name", CASES)
def test_fork(name: str, tmp_path: Path) -> None:
    if name == "numcodecs":
        pytest.importorskip("numcodecs")
    program = HEAD + CASES[name]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
