# SPDX-License-Identifier: Apache-2.0
"""What the cores' cocotb tests share: building a core with Verilator, and streams with pauses."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

RTL = Path(__file__).resolve().parent
BUILD = RTL.parent / "build" / "rtl" / "cocotb"
# Which side pauses, and in how many of 16 clocks.
PAUSES = {"none": (0, 0), "source": (8, 0), "sink": (0, 8), "both": (6, 10)}


def run(
    core: str,
    folder: str,
    bench: str,
    parameters: dict[str, int] | None = None,
    extra: tuple[str, ...] = (),
    inside: bool = True,
) -> None:
    """Builds module `core` of rtl/`folder`, with files `extra` of that folder, and runs the cocotb
    tests of module `bench`. inside: they see signals within the core, not its ports alone. A core
    whose arrays have both wires and registers cannot show them (Verilator)."""
    from cocotb_tools.runner import get_runner

    runner = get_runner("verilator")
    # A model of several files has a precompiled header, for which the package of Verilator does not
    # know the compiler's option.
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_SLOW=-O0"
    if shutil.which("ccache"):
        os.environ.setdefault("OBJCACHE", "ccache")
    build = BUILD / "-".join(
        [core, *(f"{key}{value}" for key, value in (parameters or {}).items())]
    )
    names = (RTL / folder / "files.f").read_text().split()
    runner.build(
        sources=[*(RTL / name for name in names), *(RTL / folder / name for name in extra)],
        hdl_toplevel=core,
        parameters=parameters or {},
        build_dir=build,
        # One file each: the wheel's make rules for several want a precompiled header that they
        # do not find.
        build_args=[
            "-Wno-fatal",
            "-O1",
            "-CFLAGS",
            "-O1",
            "--output-split",
            "0",
            *(() if inside else ("--no-public-flat-rw", "--public-depth", "1")),
        ],
    )
    results = runner.test(
        hdl_toplevel=core,
        test_module=f"rtl.{folder}.{bench}",
        build_dir=build,
        test_dir=build,
        extra_env={"PYTHONPATH": str(RTL.parent)},
    )
    from cocotb_tools.check_results import get_results

    n_tests, n_failed = get_results(results)
    assert n_tests > 0 and n_failed == 0, f"{n_failed} of {n_tests} failed"


def pauses(seed: int, of_16: int) -> Iterator[bool]:
    """True in the clocks in which a side pauses."""
    drawn = random.Random(seed)
    return (drawn.randrange(16) < of_16 for _ in itertools.count())
