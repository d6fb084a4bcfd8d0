# SPDX-License-Identifier: Apache-2.0
"""Loading CUDA's driver fixes CUDA_VISIBLE_DEVICES and takes the GPU from forked children: nothing
does it before a program names the engine or asks which ones there are. The driver is one that says
that it was loaded."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

DRIVER = """#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { fputs("driver loaded\\n", stderr); }
/* Of address 0x1000: memory of device 3, which is not managed. */
int cuPointerGetAttribute(void *answer, int what, unsigned long long at) {
  if (at != 0x1000) return 1;
  *(int *)answer = what == 2 ? 2 : what == 9 ? 3 : 0;
  return 0;
}
"""
UNASKED = """
import wirepress
from wirepress.launch import settings
assert wirepress.decompress(wirepress.compress(bytes(1 << 20), "zstd")) == bytes(1 << 20)
assert wirepress.codecs(kernels=False)[0].kernels == ()
assert "fre" in settings.codecs_that_bound(wirepress.api._core, "fraction_bits")
wirepress.api.engine_clocks("cuda")
wirepress.options()
assert wirepress.api._core.place_of(0x1000)[1] == -1
"""
PLACES = """
import ctypes
import time
import wirepress
from wirepress import _core
assert _core.place_of(0x1000)[1] == -1
ctypes.CDLL("libcuda.so.1")
time.sleep(0.05)  # as a driver takes at least before its first memory
found = _core.place_of(0x1000)
if found[1] == -1:
    print(next(engine for engine in wirepress.engines() if engine.name == "cuda").reason)
else:
    assert found == ("cuda:device", 3, 0), found
    assert _core.place_of(0x2000)[1] == -1 and _core.place_of(0)[1] == -1
    print("asked")
"""
STATE = """
import wirepress
cuda = next(engine for engine in wirepress.engines() if engine.name == "cuda")
assert cuda.state == "" and cuda.reason, cuda
print(cuda.reason)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    library: pathlib.Path = folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", folder / "driver.c", "-o", library], check=True)
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def run(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_driver_is_left_alone(driver: dict[str, str]) -> None:
    assert "driver loaded" not in run(UNASKED, driver).stderr


def test_the_driver_is_loaded_where_a_program_asks(driver: dict[str, str]) -> None:
    asked = run(STATE, driver)
    if "no CUDA compiler" in asked.stdout:
        pytest.skip("built without nvcc")
    assert "driver loaded" in asked.stderr


def test_a_driver_that_is_loaded_is_asked_where_a_pointer_lies(driver: dict[str, str]) -> None:
    answer = run(PLACES, driver).stdout
    if "no CUDA compiler" in answer:
        pytest.skip("built without nvcc")
    assert answer == "asked\n"
