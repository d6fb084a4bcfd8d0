# SPDX-License-Identifier: Apache-2.0
"""The frozen vectors of the codecs (codecs/*/vectors) that a core can take: float32."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

CODECS = Path(__file__).resolve().parent.parent / "codecs"
ROUNDS = ["nearest", "truncate", "midpoint"]


class Setting(NamedTuple):
    m: int = 5
    round: int = 0
    flush: int = 0
    ways: int = 1


def whole_values(codec: str) -> Iterator[tuple[dict[str, str], bytes, bytes]]:
    """Parameters, raw and coded, of float32; bytes behind the last value are not the cores'
    business."""
    folder = CODECS / codec / "vectors"
    for line in (folder / "index.txt").read_text().splitlines():
        name, recipe, *rest = line.split()
        raw = folder / f"{name}.raw"
        if "ok" not in rest or {"bfloat16", "float16", "float64"} & set(rest) or not raw.exists():
            continue
        parameters = dict(text.split("=") for text in recipe.partition(":")[2].split(",") if text)
        content, code = raw.read_bytes(), raw.with_suffix(".enc").read_bytes()
        tail = len(content) % 4
        if len(content) >= 4:
            yield parameters, content[: len(content) - tail], code[: len(code) - tail]


def by_setting(codec: str, ways: int = 1) -> dict[Setting, list[tuple[bytes, bytes]]]:
    found: dict[Setting, list[tuple[bytes, bytes]]] = {}
    for parameters, raw, code in whole_values(codec):
        values = {key: ROUNDS.index(text) if key == "round" else int(text)
                  for key, text in parameters.items()}  # fmt: skip
        values["m"] = values.get("m", 5) or 23
        setting = Setting(**values)
        if setting.ways == ways:
            found.setdefault(setting, []).append((raw, code))
    assert found
    return found


def decoded(codec: str, setting: Setting, code: bytes, raw_size: int) -> bytes:
    """By the independent decoder of the specification."""
    parameters = list(setting if codec == "fre" else setting[:3])
    return reference(codec).decode(code, parameters, raw_size, "float32")


def reference(codec: str) -> ModuleType:
    path = CODECS / codec / "reference.py"
    spec = importlib.util.spec_from_file_location(f"{codec}_reference", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
