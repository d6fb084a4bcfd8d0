# SPDX-License-Identifier: Apache-2.0
"""A machine's nvcc may be of any age: WPR_CUDA=AUTO takes one that compiles a sample, or says in a
line why not (cmake/cuda.cmake). The compilers here are scripts."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(probe LANGUAGES CXX)
include({root}/cmake/cuda.cmake)
message(STATUS "nvcc is [${{WPR_NVCC}}] [${{WPR_CUDART}}]")
"""
FINDS = """case "$*" in *--dryrun*) echo '#$ TOP={top}' >&2; exit 0;; esac
"""
FAILS = "echo 'nvcc fatal   : broken' >&2; exit 1\n"
OLD = "echo \"nvcc fatal   : Value 'c++20' is not defined for option 'std'\" >&2; exit 1\n"
LIES = "exit 0\n"
WORKS = 'while [ "$1" != -o ]; do shift; done; : > "$2"\n'


def configure(folder: pathlib.Path, script: str, *flags: str) -> str:
    tools = folder / "tools"
    (tools / "lib").mkdir(parents=True, exist_ok=True)
    (tools / "lib" / "libcudart_static.a").touch()
    (tools / "nvcc").write_text("#!/bin/sh\n" + script.format(top=tools))
    (tools / "nvcc").chmod(0o755)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
    done = subprocess.run(
        ["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PROGRAM_PATH={tools}", *flags],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (FAILS, "not found: engine cuda without code"),
        (FINDS + FAILS, "(nvcc fatal   : broken): engine cuda without code"),
        (FINDS + OLD, "(nvcc fatal   : Value 'c++20' is not defined"),
        (FINDS + LIES, "fails on a sample"),
    ],
    ids=["fails", "fails-on-code", "version-11", "lies"],
)
def test_a_compiler_that_fails_is_left_out(tmp_path: pathlib.Path, script: str, said: str) -> None:
    output = configure(tmp_path, script)
    assert said in output
    assert "nvcc is [] []" in output
    later = configure(tmp_path, FINDS + WORKS)  # nothing of the failure is kept
    assert f"nvcc is [{tmp_path}/tools/nvcc]" in later


def test_packages_and_portable_builds_take_none(tmp_path: pathlib.Path) -> None:
    for flag in ("WPR_DEB", "WPR_PORTABLE"):
        assert "nvcc is [] []" in configure(tmp_path, FINDS + WORKS, f"-D{flag}=ON")
        assert "/tools/nvcc]" in configure(tmp_path, FINDS + WORKS, f"-D{flag}=OFF")
