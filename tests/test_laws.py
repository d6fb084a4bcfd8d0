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
        ("codecs/fre/fre.cpp", '"codecs/common/simd/lanes.hpp"', True),
        ("codecs/common/random.hpp", '"codecs/common/simd/lanes.hpp"', True),
        ("codecs/common/random.hpp", '"codecs/fre/fre.hpp"', False),
        ("codecs/fre/rtl.cpp", '"engines/rtl/core.hpp"', True),
        ("engines/rtl/core.hpp", '"codecs/common/random.hpp"', False),
        ("engines/rtl/rtl.cpp", '"engines/cpu/cpu.hpp"', False),
        ("integrations/mpi/mpi.cpp", '"integrations/common/mpi.hpp"', False),
        ("engines/cpu/cpu.cpp", '"frame/frame.hpp"', False),
        ("pipeline/blocks.cpp", '"frame/frame.hpp"', True),
        ("pipeline/c_api.cpp", "<wirepress/wirepress.h>", True),
        ("store/format.hpp", '"base/kernel.hpp"', True),
        ("store/codec.cpp", '"pipeline/context.hpp"', False),
        ("base/buffer.hpp", '"store/file.hpp"', False),
        ("integrations/mpi/calls/p2p.cpp", "<wirepress/wirepress.h>", True),
        ("integrations/mpi/calls/p2p.cpp", '"pipeline/context.hpp"', False),
        ("python/src/module.cpp", '"base/status.hpp"', False),
        ("bench/frame_cost.cpp", "<wirepress/wirepress.hpp>", True),
        ("include/wirepress/wirepress.hpp", "<vector>", True),
        ("tests/conformance/suite.cpp", '"base/kernel.hpp"', True),
    ],
)
def test_includes(laws: ModuleType, path: str, include: str, kept: bool) -> None:
    assert (not list(laws.include_law(Path(path), ["", f"#  include {include}"]))) == kept


@pytest.mark.parametrize(
    ("path", "line", "kept"),
    [
        ("python/wirepress/api.py", "from wirepress import _core, arrays", True),
        ("python/wirepress/api.py", "from wirepress.commands import show", False),
        ("python/wirepress/api.py", "def f():\n    from .commands import show", False),
        ("python/wirepress/launch/run.py", "from . import slurm", True),
        ("python/wirepress/launch/run.py", "import wirepress.sim.plan", False),
        ("python/wirepress/commands/show.py", "from wirepress.report import page", False),
        ("python/wirepress/commands/cli.py", "from wirepress.report import page", True),
        ("sim/plan.py", "from wirepress.commands import show", True),
        ("sim/plan.py", "from wirepress import report", False),
        ("sim/plan.py", "import wirepress.torch", False),
        ("integrations/torch/ddp/plan.py", "from wirepress.torch.ddp import settings", True),
        ("integrations/torch/tracer.py", "from wirepress.sim import plan", True),
        ("integrations/torch/tracer.py", "from wirepress.commands import show", False),
        ("integrations/torch/tracer.py", "import wirepress.hdf5", False),
        ("spec/decode.py", "import wirepress", False),
        ("examples/x/x.py", "import wirepress.torch", True),
        ("examples/x/x.py", "from wirepress.sim import plan", False),
        ("bench/x.py", "from wirepress.sim import plan", True),
        ("python/wirepress/api.py", "import numpy.linalg", True),
    ],
)
def test_imports(laws: ModuleType, path: str, line: str, kept: bool) -> None:
    others = """python/wirepress/__init__.py python/wirepress/arrays.py python/wirepress/api.py
        python/wirepress/commands/show.py python/wirepress/commands/__init__.py
        python/wirepress/launch/slurm.py python/wirepress/report/__init__.py
        python/wirepress/report/page.py sim/plan.py integrations/torch/__init__.py
        integrations/torch/ddp/settings.py integrations/hdf5/__init__.py"""
    sources = {Path(name): "" for name in others.split()}
    assert (not list(laws.python_laws({**sources, Path(path): line}))) == kept


@pytest.mark.parametrize("line", ["from wirepress.sim import b", "def f():\n    from . import b"])
def test_circles(laws: ModuleType, line: str) -> None:
    sources = {
        Path("sim/__init__.py"): "",
        Path("sim/a.py"): line,
        Path("sim/b.py"): "from wirepress.sim.c import x",
        Path("sim/c.py"): "",
    }
    assert not list(laws.python_laws(sources))
    (broken,) = laws.python_laws({**sources, Path("sim/c.py"): "import wirepress.sim.a"})
    assert broken.endswith(
        "wirepress.sim.a -> wirepress.sim.b -> wirepress.sim.c -> wirepress.sim.a"
    )


def test_spdx_lines(laws: ModuleType) -> None:
    line = "# SPDX-License-Identifier: Apache-2.0"
    assert not list(laws.spdx_law(Path("a.py"), [line]))
    assert not list(laws.spdx_law(Path("scripts/a"), ["#!/bin/sh", line]))
    assert list(laws.spdx_law(Path("a.py"), ["import os", line]))
    assert list(laws.spdx_law(Path("scripts/a"), ["#!/bin/sh"]))
    assert list(laws.spdx_law(Path("x/CMakeLists.txt"), ["project(x)"]))
    assert not list(laws.spdx_law(Path("README.md"), ["# wirepress"]))


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        ("a.py", '# SPDX\n"""What it is for."""\nimport os', True),
        ("a.py", "# SPDX\nimport os", False),
        ("pkg/__init__.py", "# SPDX", True),
        ("a.hpp", "// SPDX\n// What it is for.\n#pragma once", True),
        ("a.hpp", "// SPDX\n#pragma once\n// Of the first function.", False),
        ("a.c", "/* SPDX\n * What it is for. */\nint a;", True),
        ("a.c", "/* SPDX */\nint a;", False),
        ("codecs/lz4/liblz4.cpp", "// SPDX\n#include <lz4.h>", True),
        ("base/options.cpp", "// SPDX\n#include <x>", True),
        ("base/none_such.cpp", "// SPDX\n#include <x>", False),
    ],
)
def test_files_say_what_they_are_for(laws: ModuleType, path: str, text: str, kept: bool) -> None:
    assert bool(list(laws.purpose_law(Path(path), text.split("\n")))) != kept


def test_the_laws_are_kept(laws: ModuleType) -> None:
    assert laws.main() == 0


def test_long_headers(laws: ModuleType) -> None:
    head = ["// SPDX-License-Identifier: Apache-2.0", "// What it is for."]
    reason = "// Long because its parts are compiled together."
    assert not list(laws.length_law(Path("base/a.hpp"), head * 150))
    assert len(list(laws.length_law(Path("base/a.hpp"), head * 151))) == 1
    assert not list(laws.length_law(Path("base/a.hpp"), [*head, reason, *head * 150]))
    assert not list(laws.length_law(Path("base/a.cpp"), head * 151))
