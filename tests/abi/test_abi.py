# SPDX-License-Identifier: Apache-2.0
"""The public headers compile as they promise, and the library exports what they declare."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
C_COMPILERS = ("gcc", "clang", *(f"clang-{version}" for version in range(14, 23)))
CXX_COMPILERS = tuple(
    name.replace("gcc", "g++").replace("clang", "clang++") for name in C_COMPILERS
)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror")


def found(compilers: tuple[str, ...]) -> list[str]:
    return [name for name in compilers if shutil.which(name)]


def compile_source(
    compiler: str, standard: str, source: str, path: Path, root: Path, *flags: str
) -> Path:
    path.write_text(source)
    command = [compiler, f"-std={standard}", *WARNINGS, "-I", str(root / "include"), str(path)]
    result = path.with_suffix(".out")
    subprocess.run([*command, "-o", str(result), *flags], check=True)
    return result


@pytest.mark.parametrize("standard", ["c99", "c11", "c17"])
@pytest.mark.parametrize("header", ["wirepress.h", "store.h"])
@pytest.mark.parametrize("compiler", found(C_COMPILERS))
def test_c_header(compiler: str, header: str, standard: str, tmp_path: Path, root: Path) -> None:
    source = f"#include <wirepress/{header}>\nint main(void) {{ return WPR_OK; }}\n"
    compile_source(compiler, standard, source, tmp_path / "use.c", root, "-pedantic-errors")


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("header", ["wirepress.h", "wirepress.hpp", "store.h"])
@pytest.mark.parametrize("compiler", found(CXX_COMPILERS))
def test_cxx_headers(compiler: str, header: str, standard: str, tmp_path: Path, root: Path) -> None:
    source = f"#include <wirepress/{header}>\nint other();\n"
    compile_source(compiler, standard, source, tmp_path / "use.cpp", root, "-fsyntax-only")


def test_a_c_and_a_cxx_compiler_are_here() -> None:
    assert found(C_COMPILERS)
    assert found(CXX_COMPILERS)


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", found(CXX_COMPILERS))
def test_cxx_door(
    compiler: str, standard: str, tmp_path: Path, root: Path, shared_library: Path
) -> None:
    program = compile_source(
        compiler,
        standard,
        (HERE / "door.cpp").read_text(),
        tmp_path / "door.cpp",
        root,
        str(shared_library),
        f"-Wl,-rpath,{shared_library.parent}",
    )
    assert subprocess.run([program], check=True, capture_output=True).stdout == b"ok\n"


def exported(library: Path) -> list[str]:
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(line.split()[0] for line in lines)


def test_exported_symbols(shared_library: Path) -> None:
    assert exported(shared_library) == (HERE / "symbols.txt").read_text().split()


def test_symbols_are_the_headers(root: Path) -> None:
    headers = "".join(path.read_text() for path in (root / "include/wirepress").glob("*.h"))
    declared = re.findall(r"^WPR_API [^(]*?\b(wpr_\w+)\(", headers, re.MULTILINE)
    assert sorted(declared) == (HERE / "symbols.txt").read_text().split()
