# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` gives others find_package(wirepress); the wheel imports where it lies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CONSUMER = Path(__file__).parent / "consumer"


def version(root: Path) -> str:
    header = (root / "include/wirepress/wirepress.h").read_text()
    match = re.search(r'#define WPR_VERSION "(.*)"', header)
    assert match
    return match[1]


def quietly(*command: object, **kwargs: object) -> None:
    done = subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **kwargs,
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def prefix(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    quietly("cmake", "--install", build_dir, "--prefix", folder)
    return folder


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config(prefix: Path, tmp_path: Path, root: Path) -> None:
    """Of an installation that was moved after it was made, too."""
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    (file,) = moved.rglob("wirepress.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(file.parent)}

    def ask(*words: str) -> str:
        command = ["pkg-config", *words, "wirepress"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.strip()

    flags = ask("--cflags", "--libs")
    assert ask("--modversion") == version(root) and str(prefix) not in flags
    program = tmp_path / "program"
    quietly("cc", CONSUMER / "main.c", "-o", program, *flags.split())
    environment["LD_LIBRARY_PATH"] = str(file.parent.parent)
    done = subprocess.run([program], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == version(root)


def test_find_package(prefix: Path, tmp_path: Path, root: Path) -> None:
    headers = {path.name for path in prefix.glob("include/wirepress/*")}
    assert headers == {"store.h", "wirepress.h", "wirepress.hpp"}
    build = tmp_path / "consumer"
    quietly("cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    quietly("cmake", "--build", build)
    for program in ("consumer_c", "consumer_cxx"):
        done = subprocess.run([build / program], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == version(root)


@pytest.mark.slow
def test_wheel(tmp_path: Path, root: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    # spelled out: pip before 23.1 has no -C
    settings = [f"--config-settings=build-dir={root / 'build' / 'python'}", "-w", tmp_path]
    quietly(*command, *settings, root)
    (wheel,) = tmp_path.glob("wirepress-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    here = {str(p.relative_to(site / "wirepress")) for p in (site / "wirepress").rglob("*")}
    assert {"py.typed", "_core.pyi", "commands/cli.py", "launch/run.py"} <= here
    plugins = site / "wirepress" / "hdf5" / "plugin"  # HDF5 loads all that lies there
    assert [path.name for path in plugins.iterdir()] == ["libwirepress_hdf5.so"]
    (entries,) = site.glob("wirepress-*.dist-info/entry_points.txt")
    assert "[zarr.codecs]" in entries.read_text() and "[numcodecs.codecs]" in entries.read_text()
    program = (
        "import sys, wirepress\n"
        "assert wirepress.__file__.startswith(sys.argv[1]), wirepress.__file__\n"
        "assert wirepress.decompress(wirepress.compress(b'x' * 99)) == b'x' * 99\n"
        "print(wirepress.__version__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(site)],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(site)},
        cwd=tmp_path,
    )
    assert done.stdout.strip() == version(root)
