#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the headers of SZ3 for codecs/sz3 into build/third_party/sz3; quick when they are there.
With "zfp" also the sources of zfp, for wheels (build/third_party/zfp), from the same archive.

SZ3 is a header-only C++ library that neither Debian nor PyPI packages by itself. The source
distribution of the Python package hdf5plugin carries it, so that one (75 MB) is taken from the
index that pip is configured with, its SHA-256 is checked, and the headers and their licences are
kept. SZ3 is under a BSD licence (UChicago Argonne, LLC), zfp under another (Lawrence Livermore
National Security, LLC); this repository holds nothing of them.

    scripts/get_sz3.py [zfp]
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE, RELEASE = "hdf5plugin", "7.1.0"
SHA256 = "dc4aa9576bf5770d773be9309a060ccf2f0ce2f0031f2b369f566d2662ec2fb3"
SZ3_VERSION = "3.1.7"
LICENCE = "copyright-and-BSD-license.txt"
# By folder of build/third_party: the folder in the archive, and what is kept of it.
PARTS = {
    "sz3": ("lib/SZ3/", ("include/", LICENCE)),
    "zfp": ("lib/c-blosc2-zfp/", ("include/", "src/", "LICENSE")),
}

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "third_party"
STAMP = "sha256"


def say(text: str) -> None:
    print(f"get_sz3: {text}", file=sys.stderr)


def fetch(path: Path) -> None:
    """The source distribution, from where `pip download` would take it. That command itself also
    runs the package's build, which is not wanted here."""
    from pip._internal.commands import create_command

    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "--no-binary", PACKAGE, f"{PACKAGE}=={RELEASE}"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        links = [
            found.link
            for found in finder.find_all_candidates(PACKAGE)
            if str(found.version) == RELEASE and not found.link.is_wheel
        ]
        if not links:
            raise LookupError(f"pip finds no source distribution of {PACKAGE} {RELEASE}")
        response = session.get(links[0].url_without_fragment, stream=True)
        response.raise_for_status()
        with path.open("wb") as out:
            for piece in response.iter_content(1 << 20):
                out.write(piece)


def check(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256:
        raise ValueError(f"SHA-256 of {path.name} is {digest} instead of {SHA256}")


def extract(path: Path, part: str, target: Path) -> None:
    folder, wanted = PARTS[part]
    inside = f"{PACKAGE}-{RELEASE}/{folder}"
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.removeprefix(inside)
            if not (member.isfile() and member.name.startswith(inside) and name.startswith(wanted)):
                continue
            content = archive.extractfile(member)
            out = target / name
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(content.read() if content else b"")
    if part == "sz3":
        write_version(target)
    (target / STAMP).write_text(SHA256 + "\n")


def write_version(target: Path) -> None:
    """version.hpp, which SZ3's own build would make."""
    major, minor, patch = SZ3_VERSION.split(".")
    values = {"PROJECT_NAME": "SZ3", "PROJECT_VERSION": SZ3_VERSION}
    values |= {"PROJECT_VERSION_MAJOR": major, "PROJECT_VERSION_MINOR": minor}
    values |= {"PROJECT_VERSION_PATCH": patch, "PROJECT_VERSION_TWEAK": "0"}
    template = target / "include" / "SZ3" / "version.hpp.in"
    text = template.read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    template.with_suffix("").write_text(text)


def is_there(part: str) -> bool:
    stamp = TARGET / part / STAMP
    return stamp.exists() and stamp.read_text().strip() == SHA256


def main() -> int:
    if sys.argv[1:] not in ([], ["zfp"]):
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    parts = [part for part in ("sz3", *sys.argv[1:]) if not is_there(part)]
    if not parts:
        return 0
    venv = ROOT / ".venv"
    python = venv / "bin" / "python"
    if Path(sys.prefix).resolve() != venv.resolve() and python.exists():
        os.execv(python, [str(python), *sys.argv])  # its pip is there for certain
    say(f"{' and '.join(parts)}, out of the source distribution of {PACKAGE} {RELEASE}")
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        archive = Path(folder) / f"{PACKAGE}-{RELEASE}.tar.gz"
        try:
            fetch(archive)
            say(f"{archive.stat().st_size} bytes downloaded")
            check(archive)
            for part in parts:
                extract(archive, part, Path(folder) / part)
        except Exception as error:  # pip's own, the network's, the disk's: all end here
            say(f"not fetched: {error}")
            say("it needs the package index that pip is configured with; run it again with one,")
            say(f"or put SZ3's headers somewhere and give cmake -DWPR_SZ3_DIR=, see {__file__}")
            return 1
        for part in parts:
            shutil.rmtree(TARGET / part, ignore_errors=True)
            (Path(folder) / part).rename(TARGET / part)
    say(f"in {TARGET.relative_to(ROOT)}, with the licences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
