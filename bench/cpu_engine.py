#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sim/engines/cpu.toml from bench/results/codecs.json: one core, real gradients.

Lossless and float codecs are those of the gradients of an LSTM language model (98.8 million
parameters), the gradient codecs those of one of its layers; of each the fastest kernel.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "codecs.json"
TARGET = ROOT / "sim" / "engines" / "cpu.toml"
WHOLE, LAYER = "lstm_all", "lstm_out"
NAMES = {WHOLE: "gradients of an LSTM language model", LAYER: "its output layer's gradients"}
PEERS = ("plain", "libsz3", "libzfp")  # those libraries without a frame
LOSSY = ("onebit", "signsgd", "terngrad", "tbq", "qsgd", "graddrop", "topk", "dgc", "bf16", "fp16",
         "fp8", "int8", "int4", "fre", "zfp", "sz3")  # fmt: skip


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The fastest kernel of every recipe, on all gradients where it was measured there."""
    best: dict[str, dict[str, Any]] = {}
    for data in (LAYER, WHOLE):
        for row in report["rows"]:
            runs = (f"{data}-float32-whole", f"{data}-float32-32768k")
            if row["run"] not in runs or row["variant"] in PEERS or " " in row["subject"]:
                continue
            old = best.get(row["subject"])
            if old is None or old["data"] != data or row["encode"] > old["encode"]:
                best[row["subject"]] = row
    return sorted(best.values(), key=lambda row: (row["data"] != WHOLE, row["subject"]))


def _lossless(recipe: str) -> bool:
    return not recipe.startswith(LOSSY) and (not recipe.startswith("bx") or recipe == "bx:m=23")


def engine() -> str:
    report = json.loads(RESULTS.read_text())
    cpu = report["machine"]["cpu"]
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Made by bench/cpu_engine.py from bench/results/codecs.json: do not edit.",
        f'title = "one core of the machine that measured docs/results/benchmarks.md ({cpu})"',
        'kind = "cpu"',
        f'device = "{cpu}"',
        f'source = "bench/results/codecs.json, {report["date"]}"',
        'note = "your own: wirepress bench FILE --json here.json, then --engine here.json"',
        "contends = true",
    ]
    for row in _rows(report):
        name = row["subject"]
        lines += [
            "",
            f'[codec."{name}"]',
            f'recipe = "{name}"',
            f"lossless = {str(_lossless(name)).lower()}",
            f"ratio = {row['ratio']}",
            f'ratio_data = "{NAMES[row["data"]]}"',
            f'compress = {{ rate = "{row["encode"]} GB/s", where = "{row["variant"]}" }}',
            f'decompress = {{ rate = "{row["decode"]} GB/s", where = "{row["variant"]}" }}',
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(engine())
    print(f"wrote {TARGET}")
