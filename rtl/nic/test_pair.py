# SPDX-License-Identifier: Apache-2.0
"""Boxes back to back and against the library (pair/), over UDP sockets on loopback. The program
checks every packet; here is looked at what it counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BX = ("--recipe", "bx:m=5")
LZ4 = ("--recipe", "lz4", "--data", "copies:0.95,noise")
ZFP = ("--recipe", "zfp:rate=8")
TBQ = ("--recipe", "tbq:tau=1,of=one", "--data", "sparse,sparse:0.9,noise")


def rtl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "scripts" / "rtl"), *words], capture_output=True, text=True)


WITHOUT = rtl("simulator").stderr.strip()
pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return rtl("nic", *options)


def flows(tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    path = tmp_path / "pair.json"
    done = run("--packets", "20", "--json", str(path), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [flow for row in json.loads(path.read_text())["rows"] for flow in row["flows"]]
    assert all(flow["sent"] == 20 for flow in found)
    return found


def total(found: list[dict[str, Any]], key: str) -> int:
    return sum(flow[key] for flow in found)


@pytest.mark.parametrize(
    "options", [(), TBQ, BX, LZ4, ZFP, ("--off",), ("--pause", "0.5")], ids=" ".join
)
@pytest.mark.parametrize("end", ["box", "software"])
def test_everything_arrives(tmp_path: Path, end: str, options: tuple[str, ...]) -> None:
    sizes = () if not options else ("--sizes", "64,66,306,1518,9594")
    found = flows(tmp_path, "--against", end, *options, *sizes)
    assert all(flow["delivered"] == flow["sent"] for flow in found)
    assert total(found, "refused") == total(found, "dropped_by_end") == 0
    assert total(found, "passed") > 0
    if "--off" in options:
        assert total(found, "passed") == total(found, "sent")
    else:
        assert min(total(found, "coded"), total(found, "stored")) > 0
        assert total(found, "code_bytes") < total(found, "coded_bytes") / 2


@pytest.mark.parametrize("options", [(), TBQ, BX, LZ4, ZFP], ids=["fre", "tbq", "bx", "lz4", "zfp"])
@pytest.mark.parametrize("end", ["box", "software"])
def test_a_bad_network(tmp_path: Path, end: str, options: tuple[str, ...]) -> None:
    faults = ("--drop", "0.1", "--reorder", "0.2", "--corrupt", "0.3", "--pause", "0.2")
    found = flows(
        tmp_path, "--against", end, "--sizes", "66,306,1074,9018", *faults, *options, "--seed", "3"
    )
    for kind in ("dropped_on_wire", "reordered", "corrupted", "refused", "dropped_by_end"):
        assert total(found, kind) > 0, kind
    lost = sum(total(found, k) for k in ("dropped_on_wire", "refused", "dropped_by_end"))
    assert total(found, "delivered") == total(found, "sent") - lost
    assert total(found, "refused") + total(found, "dropped_by_end") <= total(found, "corrupted")


def test_a_wire_of_100_gbps(tmp_path: Path) -> None:
    """Plain packets go as fast as the wire; compressed ones as fast as the box, which is faster."""
    sizes = ("--sizes", "1518", "--data", "wave", "--other", "0", "--line", "100")
    plain = flows(tmp_path, *sizes, "--off")
    assert all(0.99 * 98.4 < flow["gbps"] <= 1.01 * 98.4 for flow in plain)
    assert all(flow["gbps"] > 100 for flow in flows(tmp_path, *sizes))


@pytest.mark.parametrize(
    ("lanes", "codec"),
    [(lanes, (*TBQ[:2], "--data", "sparse,noise")) for lanes in (1, 2, 8, 64)]
    + [(lanes, codec) for codec in (LZ4, (*ZFP, "--data", "wave,noise")) for lanes in (1, 4)],
    ids=str,
)
def test_lanes(tmp_path: Path, lanes: int, codec: tuple[str, ...]) -> None:
    """Order is kept in each lane, nothing is lost, and the wire is shared to the last bit."""
    packets = ("--lanes", str(lanes), "--packets", str(10 * lanes), *codec, "--other", "0.2")
    mixed = ("--sizes", "64,66,1518,9594", "--pause", "0.3")
    path = tmp_path / "lanes.json"
    done = run(*packets, *mixed, "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    found = [row["flows"][0] for row in json.loads(path.read_text())["rows"]]
    assert all(flow["delivered"] == flow["sent"] == 10 * lanes for flow in found)
    assert min(total(found, kind) for kind in ("coded", "stored", "passed")) > 0


def test_lanes_fill_the_wire(tmp_path: Path) -> None:
    options = ("--lanes", "4", "--off", "--sizes", "9018", "--data", "noise", "--line", "100")
    path = tmp_path / "lanes.json"
    done = run(*TBQ[:2], *options, "--packets", "60", "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    (flow, _) = json.loads(path.read_text())["rows"][0]["flows"]
    assert 0.99 * 99.7 < flow["gbps"] < 1.01 * 99.7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--drop", "2"), "0 to 1"),
        (("--sizes", "10"), "60 to 9600"),
        (("--recipe", "zstd:1"), "as the boxes take them"),
        (("--data", "text"), "none of wave"),
        (("--speed", "1"), "is no option"),
        (("--seed",), "wants a value"),
        (("--lanes", "4"), "they have tbq, lz4 or zfp"),
    ],
)
def test_wrong_options(options: tuple[str, ...], said: str) -> None:
    done = run(*options)
    assert done.returncode == 2 and said in done.stderr
