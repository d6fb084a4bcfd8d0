# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the frame store runs as it does without root, and says so."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_a_slow_disk_of_the_test_kit(root: Path, build_dir: Path, tmp_path: Path) -> None:
    program = build_dir / "bench" / "store_bench"
    command = ["cmake", "--build", build_dir, "--target", "store_bench"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("bench is not built here")
    out = tmp_path / "store.json"
    command = [sys.executable, root / "bench" / "store.py", "--quick", "--bucket", "--rates", "20"]
    command += ["--program", program, "--folder", tmp_path / "work", "--out", out]
    command += [
        "--reserve",
        str(1 << 20),
        "--policies",
        "memory",
        "disk",
        "bx:m=6",
        "in-worker bx:m=6",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "token bucket" in done.stdout and "4 of 4, 0.0 min left" in done.stderr
    assert "of 2 met" in done.stdout
    rows = {row["policy"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["disk"]["snr_db"] is None and rows["bx:m=6"]["snr_db"] > 40
    seconds = rows["disk"]["raw_bytes"] / 20e6  # each way
    assert rows["disk"]["forward"] > 0.7 * seconds and rows["disk"]["backward"] > 0.7 * seconds
    for packed in rows["bx:m=6"], rows["in-worker bx:m=6"]:
        assert packed["raw_bytes"] / packed["stored_bytes"] > 2
    # What was stopped goes on: the file of one that was, less its last run.
    kept = [dict(row, totals=None) for row in rows.values()]
    sha = hashlib.sha256(program.read_bytes()).hexdigest()
    unfinished = {"program": sha, "direct": True, "reserve": 1 << 20, "bucket": True}
    unfinished["out"] = str(out)
    unfinished["rows"] = [row | {"how": "token bucket"} for row in kept[:3]]
    (tmp_path / "work" / "unfinished.json").write_text(json.dumps(unfinished))
    done = subprocess.run([*command, "--again"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "goes on after 3 runs" in done.stderr and "1 of 1, 0.0 min" in done.stderr
    again = {row["policy"]: row for row in json.loads(out.read_text())["rows"]}
    assert again.keys() == rows.keys() and not list(tmp_path.glob("work/unfinished.json"))
    assert again["disk"]["forward"] == rows["disk"]["forward"]


def store_bench(root: Path) -> Any:
    """bench/store.py as a module."""
    sys.path.insert(0, str(root / "bench"))
    spec = importlib.util.spec_from_file_location("store_bench", root / "bench" / "store.py")
    assert spec and spec.loader
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path, **files: str) -> Path:
    """A folder with the files that a control group hierarchy has at its root."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("cgroup_", "cgroup.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def empty(group: Any) -> None:
    """In a real one files go with their folder."""
    for file in group.folder.iterdir():
        file.unlink()


def test_control_groups_of_version_2(root: Path, tmp_path: Path) -> None:
    """In a tree of the same shape: what is written where."""
    bench = store_bench(root)
    tree(tmp_path, cgroup_controllers="cpuset cpu io memory pids\n", cgroup_subtree_control="cpu\n")
    with contextlib.ExitStack() as undo:
        group = bench.Group(undo, tmp_path)
        assert group.two and (tmp_path / "cgroup.subtree_control").read_text() == "+memory +io"
        (group.folder / "memory.swap.max").write_text("max")
        group.limit_memory(256 << 20)
        assert (group.folder / "memory.max").read_text() == str(256 << 20)
        assert (group.folder / "memory.swap.max").read_text().startswith("0")
        group.limit_device("7:3", 200_000_000)
        assert (group.folder / "io.max").read_text() == "7:3 rbps=200000000 wbps=200000000"
        child = subprocess.Popen(["true"], preexec_fn=group.join)
        assert child.wait() == 0
        assert (group.folder / "cgroup.procs").read_text() == str(child.pid)
        empty(group)
        group.limit_memory(0)
        group.limit_device("7:3", 0)
        assert (group.folder / "memory.max").read_text() == "max"
        assert (group.folder / "io.max").read_text() == "7:3 rbps=max wbps=max"
        empty(group)
    assert not group.folder.exists()


def test_control_groups_of_version_1_beside_version_2(root: Path, tmp_path: Path) -> None:
    bench = store_bench(root)
    tree(tmp_path, memory__cgroup_procs="", blkio__cgroup_procs="", unified__cgroup_controllers="")
    with contextlib.ExitStack() as undo:
        group = bench.Group(undo, tmp_path)
        group.limit_memory(1 << 20)
        group.limit_device("7:0", 5)
        assert not group.two and group.folder.parent == tmp_path / "memory"
        assert (group.folder / "memory.limit_in_bytes").read_text() == str(1 << 20)
        for way in ("read", "write"):
            limit = tmp_path / "blkio" / f"blkio.throttle.{way}_bps_device"
            assert limit.read_text() == "7:0 5"
        empty(group)


def test_control_groups_that_cannot_be_had(root: Path, tmp_path: Path) -> None:
    """Each says why, and leaves no folder."""
    bench = store_bench(root)
    without = tree(tmp_path / "a", cgroup_controllers="cpu memory pids\n")
    held = tree(tmp_path / "b", cgroup_controllers="io memory\n")
    (held / "cgroup.subtree_control").mkdir()  # cannot be written, as where processes are in it
    nothing = tmp_path / "c"
    nothing.mkdir()
    for folder, said in (
        (without, "no controller io"),
        (held, "subtree_control"),
        (nothing, "blkio"),
    ):
        with contextlib.ExitStack() as undo, pytest.raises(bench.Unavailable, match=said):
            bench.Group(undo, folder)
        assert not list(folder.glob("wirepress-store-*"))


def test_what_is_asked_of_a_cell(root: Path) -> None:
    bench = store_bench(root)

    def row(rate: int, policy: str, seconds: float, stored: float) -> dict[str, Any]:
        return {"side": 128, "workers": 1, "rate": rate, "policy": policy, "kernel_gbps": 1.0,
                "raw_bytes": 4e9, "stored_bytes": stored, "forward": seconds / 2,
                "backward": seconds / 2, "read": 0.0, "write": 0.0}  # fmt: skip

    def said(rate: int, seconds: float, raw: float) -> tuple[bool, str]:
        rows = [row(200, "memory", 8, 4e9), row(rate, "disk", raw, 4e9)]
        rows.append(row(rate, "bx:m=6", seconds, 1e9))
        return bench.verdict({bench.key_of(one): one for one in rows}, rows[-1])

    assert said(500, 8.7, 16)[0] and not said(500, 8.9, 16)[0]  # 4 x 0.5 GB/s >= 1: 1.1 x memory
    assert said(200, 11.0, 40)[0] and not said(200, 11.2, 40)[0]  # 0.8 < 1: 0.9 x 4 x disk
    assert "1.10 x the time of memory" in said(500, 8.8, 16)[1]
    assert "4.00 x as fast as disk, 3.60 asked" in said(200, 10, 40)[1]
    assert said(0, 8.7, 8.1)[0]  # unlimited: what disk saw, 4e9 / 4.05 s
