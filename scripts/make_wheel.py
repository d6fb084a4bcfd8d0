#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds dist/wirepress-*.whl, a wheel that runs on other machines, and says what is in it.

    scripts/make_wheel.py [-DNAME=VALUE...]      (`make wheel`, which makes the machine ready first)

Codec libraries are inside the modules, hidden from the program that loads them (WPR_PORTABLE).
MPI's library is never inside: a job has its own. auditwheel takes in whatever else is needed and
gives the newest manylinux tag that this machine's C library allows. The simulated FPGA cores are
left out: they make the library many times larger, and nobody's program runs on them.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
BUILD = ROOT / "build"
DIST = ROOT / "dist"
# Never taken in: a program brings its own, and two of them in one process do not work.
EXCLUDED = [
    "libmpi.so.*", "libmpi_abi.so.*", "libmpich.so.*", "libopen-*", "libpmix*", "libadios2*",
    "libhdf5*",
]  # fmt: skip
MPI = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1")
# What every Linux with glibc has (the manylinux policies).
SYSTEM = (
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
    "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
)  # fmt: skip


def say(text: str) -> None:
    print(f"wheel: {text}", flush=True)


def call(*command: object, **environment: str) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, check=True, cwd=ROOT, env={**os.environ, **environment})


def build(definitions: list[str]) -> Path:
    """The wheel as scikit-build-core makes it, with these settings of CMake; not yet portable."""
    made = BUILD / "wheel-made"
    shutil.rmtree(made, ignore_errors=True)
    defined = ["WPR_PORTABLE=ON", "WPR_RTL=OFF", *definitions]
    settings = [f"build-dir={BUILD / 'wheel'}", *(f"cmake.define.{item}" for item in defined)]
    # spelled out: pip before 23.1 has no -C
    words = [f"--config-settings={setting}" for setting in settings]
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
         *words, "-w", made, ROOT,
         CC=os.environ.get("CC", "cc"), CXX=os.environ.get("CXX", "c++"))  # fmt: skip
    (wheel,) = made.glob("wirepress-*.whl")
    return wheel


def repair(wheel: Path) -> Path:
    """Takes in what is needed, and gives the tag of the oldest systems that it runs on."""
    repaired = BUILD / "wheel-repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    words = [f"--exclude={pattern}" for pattern in EXCLUDED]
    call(SCRIPTS / "auditwheel", "repair", *words, "-w", repaired, wheel,
         PATH=f"{SCRIPTS}:{os.environ['PATH']}")  # fmt: skip
    (result,) = repaired.glob("wirepress-*.whl")
    return result


# ---- what is in it ---------------------------------------------------------------------------


@dataclass
class Module:
    """A shared library of the wheel: what the loader reads of it."""

    name: str
    n_bytes: int
    soname: str
    needed: list[str]
    runpath: list[str]


def read_module(name: str, data: bytes) -> Module:
    dynamic = ELFFile(io.BytesIO(data)).get_section_by_name(".dynamic")
    tags = dynamic.iter_tags() if isinstance(dynamic, DynamicSection) else []
    module = Module(name, len(data), "", [], [])
    for tag in tags:
        if tag.entry.d_tag == "DT_NEEDED":
            module.needed.append(tag.needed)
        elif tag.entry.d_tag == "DT_SONAME":
            module.soname = tag.soname
        elif tag.entry.d_tag == "DT_RUNPATH":
            module.runpath += tag.runpath.split(":")
        elif tag.entry.d_tag == "DT_RPATH":
            module.runpath += tag.rpath.split(":")
    return module


def read_modules(wheel: Path) -> list[Module]:
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            data = archive.read(name)
            if data[:4] == b"\x7fELF":
                found.append(read_module(name, data))
    return found


def problems(modules: list[Module]) -> list[str]:
    """What would keep these modules from loading on another machine."""
    inside = {Path(module.name).name for module in modules if ".libs/" in module.name}
    found = []
    for module in modules:
        for name in module.needed:
            if name not in SYSTEM and name not in MPI and name not in inside:
                found.append(f"{module.name} needs {name}, which is not in the wheel")
        for folder in module.runpath:
            if not folder.startswith("$ORIGIN"):
                found.append(f"{module.name} looks for libraries in {folder}, of this machine")
    return found


def describe(wheel: Path, modules: list[Module]) -> None:
    tag = wheel.stem.split("-", 2)[2]
    say(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB, tag {tag}")
    say(f"glibc here: {platform.libc_ver()[1]}")
    for module in modules:
        others = [name for name in module.needed if name not in SYSTEM]
        needs = f", needs {', '.join(others)}" if others else ""
        print(f"  {module.n_bytes / 1e6:6.2f} MB  {module.name}{needs}")
    with zipfile.ZipFile(wheel) as archive:
        licences = [Path(n).stem for n in archive.namelist() if "wirepress/licenses/" in n
                    and not n.endswith("/")]  # fmt: skip
    say(f"inside the modules, with their licences: {', '.join(sorted(licences))}")
    taken = [Path(module.name).name for module in modules if ".libs/" in module.name]
    say(f"taken in by auditwheel: {', '.join(taken) or 'nothing'}")


def main() -> int:
    words = sys.argv[1:]
    if any(not word.startswith("-D") or "=" not in word for word in words):
        print(__doc__)
        return 0 if words[0] in ("-h", "--help") else 2
    try:
        wheel = repair(build([word.removeprefix("-D") for word in words]))
    except subprocess.CalledProcessError as error:
        say(f"failed: {' '.join(error.cmd[:5])} ...")
        return 1
    modules = read_modules(wheel)
    if found := problems(modules):
        print("\n".join(f"wheel: {problem}" for problem in found))
        return 1
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob(f"{'-'.join(wheel.name.split('-')[:3])}-*.whl"):
        old.unlink()
    describe(wheel.replace(DIST / wheel.name), modules)
    return 0


if __name__ == "__main__":
    sys.exit(main())
