# SPDX-License-Identifier: Apache-2.0
"""examples/rtm on small grids: policies agree, images are where the earth reflects, errors hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "rtm"
SMALL = ["--size", "40x32x48", "--sponge", "12", "--every", "3", "--frequency", "22"]


@pytest.fixture(scope="session")
def rtm(build_dir: Path) -> Path:
    return build_dir / "examples" / "rtm" / "rtm"


def run(rtm: Path, folder: Path, *words: str | Path) -> dict[str, Any]:
    file = folder / "run.json"
    command = [rtm, *words, "--folder", folder, "--json", file]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=280)
    assert not list(folder.glob("*.frames*"))
    return json.loads(file.read_text())


def test_lossless_policies_agree_bit_for_bit(rtm: Path, tmp_path: Path) -> None:
    report = run(rtm, tmp_path, *SMALL, "--steps", "60", "--threads", "1,3", "--servants", "2",
                 "--policies", "none,memory,disk,compressed,in-worker", "--recipe", "bx:m=23",
                 "--recipe", "lz4", "--shots", "2", "--memory", "20MiB")  # fmt: skip
    assert len(report["runs"]) == 2 * (3 + 2 * 2)
    for one in report["runs"]:
        if one["policy"] == "none":
            assert "image" not in one
            continue
        assert one["image"]["equal"], (one["policy"], one["threads"])
        assert one["store"]["puts"] == 2 * 20 and len(one["frames"]) == 20
        assert one["store"]["buffer_bytes"] <= 20 << 20
    assert report["frame_size"] == 4 * 40 * 32 * 48


@pytest.fixture(scope="module")
def migrated(rtm: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Flat beds, and what recipes make of their image."""
    folder = tmp_path_factory.mktemp("rtm")
    recipes = ["bx:m=6,round=truncate", "fre:m=6,round=truncate", "bx:m=6", "bx:m=5", "bf16"]
    words = [word for recipe in recipes for word in ("--recipe", recipe)]
    report = run(rtm, folder, *SMALL, "--model", "flat", "--policies", "disk,compressed,in-worker",
                 *words, "--image", str(folder / "image.png"),
                 "--gather", str(folder / "gather.png"))  # fmt: skip
    report["folder"] = folder
    report["by"] = {(one["policy"], one["recipe"]): one for one in report["runs"]}
    return report


@pytest.mark.parametrize("depth", [18, 27, 36])
def test_the_image_is_where_the_earth_reflects(rtm: Path, tmp_path: Path, depth: int) -> None:
    velocity = np.full((48, 32, 40), 1800, np.float32)
    velocity[depth:] = 2600
    velocity.tofile(tmp_path / "velocity")
    report = run(rtm, tmp_path, *SMALL, "--velocity", tmp_path / "velocity", "--smooth", "2",
                 "--policies", "in-worker")  # fmt: skip
    assert report["reflectors"] == [depth]
    column = np.abs(report["column"])[10:]  # below the mark of the source
    assert abs(10 + column.argmax() - depth) <= 1


def test_errors_of_the_image(migrated: dict[str, Any]) -> None:
    by = migrated["by"]
    assert by["disk", ""]["image"]["equal"]
    for policy in ("compressed", "in-worker"):
        cut = by[policy, "bx:m=6,round=truncate"]["image"]
        near = by[policy, "bx:m=6"]["image"]
        bf16 = by[policy, "bf16"]["image"]
        # Truncation makes all magnitudes smaller: source and receivers' product once, the square
        # of the source by which it is divided twice. To the nearest, errors cancel.
        assert 0.004 < cut["bias"] < 0.009 and abs(near["bias"]) < 0.001
        assert 43 < cut["snr_db"] < 46 and near["snr_db"] > 54
        assert cut["snr_amplitude_db"] > 1.8 * cut["snr_db"]  # the same, said otherwise
        assert near["snr_db"] > by[policy, "bx:m=5"]["image"]["snr_db"] > cut["snr_db"]
        assert bf16["snr_db"] > 50
        shares = cut["histogram"]
        assert sum(shares.values()) == pytest.approx(1)
        assert sum(shares[name] for name in list(shares)[:5]) > 0.9  # of the points err < 2 %
        ratios = [frame["ratio"] for frame in by[policy, "bx:m=5"]["frames"]]
        assert ratios[1] > 2 * ratios[-1] > 4  # an early frame is mostly zeros
    same = [by[policy, "bx:m=6,round=truncate"]["image"] for policy in ("compressed", "in-worker")]
    assert same[0] == same[1] == by["compressed", "fre:m=6,round=truncate"]["image"]


def test_rivals_at_equal_size(rtm: Path, tmp_path: Path) -> None:
    report = run(rtm, tmp_path, "--size", "32x24x32", "--sponge", "8", "--every", "12",
                 "--policies", "memory", "--rivals", "bf16,int8,topk:ratio=1e-3", "--direct",
                 "--reserve", "1MiB")  # fmt: skip
    bf16, int8, topk = report["equal_size"]
    assert topk["rival"]["recipe"] == "topk:ratio=1e-3" and topk["ours"] == []  # far smaller
    sizes = {one["recipe"]: one["store"]["stored_bytes"] for one in report["runs"]}
    for pair, recipe in (bf16, "bf16"), (int8, "int8"):
        assert pair["rival"]["recipe"] == recipe
        assert [one["recipe"].split("=")[0] for one in pair["ours"]] == ["bx:m", "zfp:precision"]
        for one in pair["ours"]:
            name, n = one["recipe"].split("=")
            assert one["stored_bytes"] == sizes[one["recipe"]] <= sizes[recipe]
            # With one more it would be larger: that was tried.
            assert sizes[f"{name}={int(n) + 1}"] > sizes[recipe]
        assert pair["ours"][1]["snr_db"] > pair["rival"]["snr_db"] + 6
    assert report["direct_asked"] and report["reserve"] == 1 << 20


def test_pictures(migrated: dict[str, Any]) -> None:
    folder = migrated["folder"]
    for name in ("image.png", "gather.png"):
        data = (folder / name).read_bytes()
        assert data.startswith(b"\x89PNG\r\n") and data.endswith(b"IEND\xaeB`\x82")
    image = np.load(folder / "image.npy")
    assert image.shape == (48, 32, 40) and np.isfinite(image).all() and np.abs(image).max() > 0


def test_help_and_wrong_requests(rtm: Path, tmp_path: Path) -> None:
    shown = subprocess.run([rtm, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--policies" in shown and "examples:" in shown
    for words, sentence in [
        (["--polices", "memory"], "unknown option --polices"),
        (["--policies", "memory,tape"], '"tape" is not one of none memory disk'),
        (["--size", "3"], "3"),
        (["--threads", "90", "--size", "32"], "90 threads for 32 rows"),
        (["--steps"], "--steps needs a value"),
        (["--recipe", "zpaq", *SMALL], "zpaq"),
        (["--model", "cheese", *SMALL], "cheese"),
        (["--velocity", "/dev/null", *SMALL], "has not the 245760 bytes"),
        (["--policies", "disk", "--folder", str(tmp_path / "none"), *SMALL], "No such file"),
        (["--rivals", "bf16", "--match", "zfp:accuracy", *SMALL], "is not one of bx:m fre:m zfp:"),
        (["--reserve", "1 MB"], "--reserve"),
        (["--memory", "10KiB", *SMALL, "--policies", "compressed"], "10240"),
    ]:
        done = subprocess.run([rtm, *words], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode in (1, 2) and sentence in done.stderr, (words, done.stderr)
        assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_roofline_is_measured(rtm: Path, tmp_path: Path) -> None:
    report = run(rtm, tmp_path, "--size", "96", "--steps", "20", "--policies", "none", "--roofline")
    (roofline,) = report["roofline"]
    assert roofline["copy_rate"] > 1e9 and 0.05 < roofline["reached"] < 3


@pytest.mark.slow
def test_a_frame_of_a_wave_by_truncation_and_rounding(rtm: Path, tmp_path: Path) -> None:
    """What 2^-6 does to a frame: about 44.7 dB cut, 6 dB more rounded with as many bits."""
    wirepress = pytest.importorskip("wirepress")
    command = [
        rtm,
        "--size",
        "48",
        "--steps",
        "300",
        "--policies",
        "disk",
        "--keep",
        "--folder",
        tmp_path,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=280)
    (file,) = tmp_path.glob("*.frames")
    with wirepress.FrameStore(file) as store:
        frame = store.get(store.steps()[-1]).astype(np.float64)

    def snr(recipe: str) -> float:
        values = frame.astype(np.float32)
        back = wirepress.decompress(wirepress.compress(values, recipe=recipe))
        return float(10 * np.log10((frame**2).sum() / ((back - frame) ** 2).sum()))

    cut = snr("fre:m=6,round=truncate")
    assert cut == pytest.approx(44.7, abs=1.2)  # if mantissas are spread evenly
    assert snr("fre:m=6") - cut == pytest.approx(6.02, abs=0.4)
    assert snr("fre:m=5") == pytest.approx(cut, abs=0.4)


@pytest.mark.slow
def test_plot(migrated: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "run.png"
    command = [sys.executable, EXAMPLE / "plot.py", migrated["folder"] / "run.json", picture]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert picture.read_bytes().startswith(b"\x89PNG")
