# SPDX-License-Identifier: Apache-2.0
"""scripts/laws.py finds what it is there to find."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.modules import load


@pytest.fixture(scope="module")
def laws(root: Path) -> ModuleType:
    return load(root / "scripts" / "laws.py")


@pytest.mark.parametrize(
    ("path", "include", "kept"),
    [
        ("base/kernel.cpp", '"base/kernel.hpp"', True),
        ("base/kernel.cpp", '"frame/frame.hpp"', False),
        ("frame/block.cpp", '"pipeline/context.hpp"', False),
        ("codecs/fre/fre.cpp", '"codecs/fre/bits.hpp"', True),
        ("codecs/fre/fre.cpp", '"codecs/lz4/bits.hpp"', False),
        ("codecs/fre/fre.cpp", '"bits.hpp"', True),
        ("engines/cpu/cpu.cpp", '"frame/frame.hpp"', False),
        ("pipeline/blocks.cpp", '"frame/frame.hpp"', True),
        ("pipeline/c_api.cpp", "<wirepress/wirepress.h>", True),
        ("integrations/mpi/p2p.cpp", "<wirepress/wirepress.h>", True),
        ("integrations/mpi/p2p.cpp", '"pipeline/context.hpp"', False),
        ("python/src/module.cpp", '"base/status.hpp"', False),
        ("bench/frame_cost.cpp", "<wirepress/wirepress.hpp>", True),
        ("include/wirepress/wirepress.hpp", "<vector>", True),
        ("tests/conformance/suite.cpp", '"base/kernel.hpp"', True),
    ],
)
def test_includes(laws: ModuleType, path: str, include: str, kept: bool) -> None:
    assert (not list(laws.include_law(Path(path), ["", f"#  include {include}"]))) == kept


def test_spdx_lines(laws: ModuleType) -> None:
    line = "# SPDX-License-Identifier: Apache-2.0"
    assert not list(laws.spdx_law(Path("a.py"), [line]))
    assert not list(laws.spdx_law(Path("scripts/a"), ["#!/bin/sh", line]))
    assert list(laws.spdx_law(Path("a.py"), ["import os", line]))
    assert list(laws.spdx_law(Path("scripts/a"), ["#!/bin/sh"]))
    assert list(laws.spdx_law(Path("x/CMakeLists.txt"), ["project(x)"]))
    assert not list(laws.spdx_law(Path("README.md"), ["# wirepress"]))


def test_the_laws_are_kept(laws: ModuleType) -> None:
    assert laws.main() == 0
