# SPDX-License-Identifier: Apache-2.0
"""docs/house.svg shows the arrows that the sources make."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.modules import load


@pytest.fixture(scope="module")
def house(root: Path) -> ModuleType:
    return load(root / "scripts" / "house.py")


@pytest.fixture(scope="module")
def found(house: ModuleType) -> set[tuple[str, str, bool]]:
    return set(house.arrows())


@pytest.mark.parametrize(
    ("path", "text", "target"),
    [
        ("frame/block.cpp", '#include "base/status.hpp"', "base"),
        ("frame/block.cpp", '#include "frame/hash.hpp"', None),
        ("frame/block_test.cpp", '#include "pipeline/context.hpp"', None),
        ("store/tests/x.cpp", '#include "base/status.hpp"', None),
        ("frame/block.cpp", '#  include "pipeline/context.hpp"', "pipeline"),
        ("pipeline/c_api.cpp", "for (auto& e : registry()) {}", "codecs (generated)"),
        ("base/kernel.cpp", "for (auto& e : registry()) {}", None),
        ("python/src/module.cpp", "#include <wirepress/wirepress.h>", "include"),
        ("codecs/fre/CMakeLists.txt", "wpr_add_codec(fre CORES wpr_fre_enc)", "rtl (generated)"),
        ("codecs/lz4/CMakeLists.txt", "wpr_add_codec(lz4)", None),
        ("sim/plan.py", "from wirepress import api", "python"),
        ("sim/plan.py", "import wirepress", "python"),
        ("sim/plan.py", "from wirepress.sim import units", None),
        ("bench/x.py", "def f():\n    from wirepress.torch.ddp import State", "integrations"),
        ("python/wirepress/commands/cli.py", "import wirepress.sim.plan", "sim"),
        ("python/wirepress/x.py", "from . import api", None),
    ],
)
def test_arrows_of_a_source(house: ModuleType, path: str, text: str, target: str | None) -> None:
    found = house.arrows_of(Path(path), text, {"torch"})
    said = [f"{a.target} (generated)" if a.generated else a.target for a in found]
    assert said == ([target] if target else [])


def test_an_arrow_without_a_way_is_named(house: ModuleType) -> None:
    with pytest.raises(SystemExit, match="base/ now uses pipeline/"):
        house.drawing({house.Arrow("base", "pipeline", False)})


def test_every_way_is_used_and_hits_its_rooms(
    house: ModuleType, found: set[tuple[str, str, bool]]
) -> None:
    assert {(source, target) for source, target, _ in found} == set(house.WAYS)
    for arrow in found:
        x1, y1, x2, y2 = house._ends(arrow)
        for name, x, y in ((arrow[0], x1, y1), (arrow[1], x2, y2)):
            room = house.ROOMS[name]
            assert room.left <= x <= room.left + room.width
            assert room.top <= y <= room.top + room.height


def test_the_drawing_is_current(house: ModuleType, found: set[tuple[str, str, bool]]) -> None:
    assert house.DRAWING.read_text() == house.drawing(found), (
        "stale: scripts/house.py writes it anew"
    )
