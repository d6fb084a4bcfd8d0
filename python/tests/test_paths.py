# SPDX-License-Identifier: Apache-2.0
"""No command loses the only copy of anything, whatever its files are called."""

from __future__ import annotations

import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepress.commands import paths

Main = Callable[..., tuple[int, str]]

CONTENT = b"the only copy " * 1000


@pytest.fixture
def only(tmp_path: Path, main: Main) -> Path:
    """A file of which there is one copy, and its frame in a folder of its own."""
    path = tmp_path / "a"
    path.write_bytes(CONTENT)
    (tmp_path / "frames").mkdir()
    assert main("compress", "a", "-o", "frames/a.wpr")[0] == 0
    return path


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"frames"}


@pytest.mark.parametrize("command", ["compress", "decompress"])
@pytest.mark.parametrize("way", ["itself", "other name", "symlink", "hard link", "by a link"])
@pytest.mark.parametrize("rm", [("--rm",), ()], ids=["rm", "keep"])
def test_a_result_never_takes_its_sources_place(
    command: str, way: str, rm: tuple[str, ...], only: Path, main: Main
) -> None:
    if command == "decompress":
        os.replace(only.parent / "frames" / "a.wpr", only)
    before = only.read_bytes()
    source, output = "a", "a"
    if way == "other name":
        output = f"../{only.parent.name}/./a"
    elif way == "symlink":
        output = "b"
        (only.parent / "b").symlink_to("a")
    elif way == "hard link":
        output = "b"
        os.link(only, only.parent / "b")
    elif way == "by a link":
        source = "b"
        (only.parent / "b").symlink_to("a")
    there = _names(only.parent)
    status, error = main(command, "-f", *rm, "-o", output, source)
    assert status == 1
    assert "is the source itself" in error
    assert _names(only.parent) == there
    assert only.read_bytes() == before


@pytest.mark.parametrize("output", ["-", "/dev/null", "fifo", "socket"])
def test_rm_wants_a_result_that_stays(output: str, only: Path, main: Main) -> None:
    if output == "fifo":
        os.mkfifo(only.parent / "fifo")
        reader = os.open(only.parent / "fifo", os.O_RDWR)
    if output == "socket":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("socket")
    for command, source in ("compress", "a"), ("decompress", "frames/a.wpr"):
        status, error = main(command, "-f", "--rm", "-o", output, source)
        assert status == 1
        assert "--rm needs a result in a regular file" in error
        assert (only.parent / source).exists()
    if output == "fifo":
        os.close(reader)
    if output == "socket":
        listening.close()


@pytest.mark.parametrize("source", ["-", "fifo", "device"])
def test_rm_removes_regular_files_only(source: str, only: Path, main: Main) -> None:
    if source == "fifo":
        os.mkfifo(only.parent / "fifo")
    if source == "device":  # a link to it: a failure here must not cost the machine its device
        (only.parent / "device").symlink_to("/dev/null")
    status, error = main("compress", "--rm", source, "-o", "out")
    assert status == 1
    assert "--rm" in error
    assert "out" not in _names(only.parent)
    assert source == "-" or (only.parent / source).exists()


def test_rm_of_a_source_that_changes(
    only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirepress.commands import files

    convert = files._compress_to

    def slow(name: str, *arguments: object) -> object:
        result = convert(name, *arguments)  # type: ignore[arg-type]
        with only.open("ab") as file:
            file.write(b"one line more")
        return result

    monkeypatch.setattr(files, "_compress_to", slow)
    status, error = main("compress", "--rm", "a")
    assert status == 1
    assert "changed while it was read; it is kept" in error
    assert only.read_bytes().endswith(b"one line more")


@pytest.mark.parametrize("failing", ["fsync", "link"])
def test_rm_keeps_the_source_when_the_result_is_not_stored(
    failing: str, only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, failing, fail)
    if failing == "link":
        monkeypatch.setattr(os, "replace", fail)
    status, error = main("compress", "--rm", "a")
    assert status == 1
    assert "Input/output error" in error
    assert _names(only.parent) == {"a"}


def test_rm_syncs_file_and_folder_first(
    only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    sync, unlink = os.fsync, os.unlink
    monkeypatch.setattr(
        os, "fsync", lambda f: (calls.append(stat.S_ISDIR(os.fstat(f).st_mode)), sync(f))
    )
    monkeypatch.setattr(os, "unlink", lambda name: (calls.append(str(name)), unlink(name)))
    assert main("compress", "--rm", "a")[0] == 0
    assert calls[0] is False and calls[-2:] == [True, "a"]
    assert _names(only.parent) == {"a.wpr"}


def test_no_result_takes_anothers_place(only: Path, main: Main) -> None:
    folder = only.parent
    (folder / "b").write_bytes(b"another copy" * 500)
    (folder / "a.wpr").symlink_to("both")
    (folder / "b.wpr").symlink_to("both")
    status, error = main("compress", "-f", "--rm", "a", "b")
    assert status == 1
    assert "b.wpr holds the result of a already" in error
    assert _names(folder) == {"a.wpr", "b.wpr", "b", "both"}
    # a file that is still to be read
    (folder / "c").write_bytes(b"1")
    (folder / "c.wpr").write_bytes(b"precious")
    status, error = main("compress", "-f", "--rm", "c", "c.wpr")
    assert status == 1
    assert "c.wpr is also to be read" in error
    assert (folder / "c").exists()


def test_links_are_followed_and_nothing_is_overwritten(only: Path, main: Main) -> None:
    folder = only.parent
    (folder / "there").write_bytes(b"precious")
    (folder / "out").symlink_to("there")
    status, error = main("compress", "a", "-o", "out")
    assert (status, "exists; -f overwrites it" in error) == (1, True)
    assert (folder / "there").read_bytes() == b"precious"
    assert main("compress", "-f", "a", "-o", "out")[0] == 0
    assert (folder / "out").is_symlink()
    assert (folder / "there").read_bytes()[:3] == b"WPR"


def test_what_comes_meanwhile_is_not_overwritten(
    only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirepress.commands import files

    convert = files._compress_to

    def slow(*arguments: object) -> object:
        (only.parent / "a.wpr").write_bytes(b"precious")
        return convert(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "_compress_to", slow)
    status, error = main("compress", "--rm", "a")
    assert (status, "exists; -f overwrites it" in error) == (1, True)
    assert (only.parent / "a.wpr").read_bytes() == b"precious"
    assert _names(only.parent) == {"a", "a.wpr"}


def test_a_result_gets_no_special_rights(only: Path, main: Main) -> None:
    for mode in 0o4755, 0o2750, 0o1640, 0o600:
        os.chmod(only, mode)
        assert main("compress", "-f", "a")[0] == 0
        assert stat.S_IMODE((only.parent / "a.wpr").stat().st_mode) == mode & 0o777


def _acl(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("mode", "entries", "expected"),
    [
        (0o640, (), 0o640),
        # user::rw-,user:7:rw-,group::---,mask::rw-,other::---
        (
            0o660,
            ((1, 6, NOBODY), (2, 6, 7), (4, 0, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY)),
            0o600,
        ),
        # user::rw-,group::rw-,group:9:---,mask::rw-,other::r--: group 9 may nothing
        (
            0o664,
            ((1, 6, NOBODY), (4, 6, NOBODY), (8, 0, 9), (16, 6, NOBODY), (32, 4, NOBODY)),
            0o600,
        ),
        (
            0o664,
            ((1, 6, NOBODY), (2, 4, 7), (4, 6, NOBODY), (16, 6, NOBODY), (32, 4, NOBODY)),
            0o644,
        ),
    ],
)
def test_permissions_without_an_acl_give_no_more(
    mode: int, entries: tuple[tuple[int, int, int], ...], expected: int
) -> None:
    assert paths._without_acl(mode, _acl(*entries) if entries else b"") == expected


def test_an_acl_stays_where_it_means_the_same(
    only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    acl = _acl((1, 6, NOBODY), (2, 4, 1234), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
    try:
        os.setxattr(only, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("this file system has no ACLs")
    assert main("compress", "a", "-o", "same.wpr")[0] == 0
    same = only.parent / "same.wpr"
    assert os.getxattr(same, "system.posix_acl_access") == acl

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    assert main("compress", "a", "-o", "other.wpr")[0] == 0
    other = only.parent / "other.wpr"
    assert "system.posix_acl_access" not in os.listxattr(other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o600


def test_long_names(main: Main, tmp_path: Path) -> None:
    name = "\N{CJK UNIFIED IDEOGRAPH-4E00}" * 83  # with .wpr 253 bytes of at most 255
    (tmp_path / name).write_bytes(CONTENT)
    assert main("compress", "--rm", name)[0] == 0
    assert main("decompress", "--rm", name + ".wpr")[0] == 0
    assert (tmp_path / name).read_bytes() == CONTENT


def test_appending_to_the_source_is_refused(
    only: Path, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only.open("ab") as end:
        monkeypatch.setattr("sys.stdout", os.fdopen(end.fileno(), "w", closefd=False))
        status, error = main("compress", "a", "-o", "-")
    assert (status, "stdout is the source itself" in error) == (1, True)
    assert only.read_bytes() == CONTENT


# ---- bad input ------------------------------------------------------------------------------

COMMANDS = [
    "compress -f -o out",
    "compress -f -o out -r bx:m=6",
    "compress -f -o out --format npy",
    "compress -f -o out --format pt",
    "compress -f -o out --format safetensors",
    "decompress -f -o out",
    "inspect --verify",
    "bench --recipes lz4 --seconds 0.001",
    "explain",
    "explain -r lz4",
    "plan --link 1Gbps --workers 4 --compute 1s",
    "report -f -o out",
    "simulate",
    "store ls",
    "store check",
    "trace show",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_ends_in_one_sentence(command: str, main: Main, tmp_path: Path) -> None:
    rubbish = bytes(i * i % 251 for i in range(5000))
    for name in "rubbish", "rubbish.npy", "rubbish.pt", "rubbish.json", "x\udcff":
        (tmp_path / name).write_bytes(rubbish)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for name in "missing", "folder", "empty", "rubbish", "rubbish.npy", "rubbish.json", "x\udcff":
        status, error = main(*command.split(), name)
        assert status in (0, 1, 2), name
        assert "Traceback" not in error
        if name in ("missing", "folder"):
            assert status in (1, 2), name
            assert error.startswith("wirepress: ") and error.count("\n") <= 7, error


@pytest.mark.parametrize(
    ("command", "closed", "status", "sentence"),
    [
        ("compress -", 0, 1, "stdin is closed"),
        ("compress - -o out", 0, 1, "stdin is closed"),
        ("inspect -", 0, 1, "stdin is closed"),
        ("explain -", 0, 2, "stdin is closed"),
        ("compress a -o -", 1, 1, "stdout is closed"),
        ("decompress frames/a.wpr -o -", 1, 1, "stdout is closed"),
        ("codecs", 1, 1, "stdout is closed"),
        ("inspect --json frames/a.wpr", 1, 1, "stdout is closed"),
        ("compress --help", 1, 1, "stdout is closed"),
        ("compress a", 1, 0, "a -> a.wpr"),
        ("compress a", 2, 0, ""),
        ("compress missing", 2, 1, ""),
    ],
)
def test_closed_standard_files(
    command: str, closed: int, status: int, sentence: str, only: Path
) -> None:
    script = f"exec {sys.executable} -m wirepress {command} {closed}>&-"
    done = subprocess.run(["sh", "-c", script], cwd=only.parent, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr


def test_elements_of_any_npy_file_are_measured(main: Main, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    values = np.arange(6000, dtype="f4").reshape(60, 100)
    for array in values, np.asfortranarray(values), values.astype(">f4"), values.reshape(3, 2, -1):
        np.save("x.npy", array)
        assert main("explain", "x.npy") == (0, "")
        assert main("bench", "--recipes", "lz4", "--seconds", "0.001", "-q", "x.npy")[0] == 0
    np.save("x.npy", np.zeros((0, 3)))
    status, error = main("explain", "x.npy")
    assert (status, "is empty" in error) == (2, True)


def test_steps_of_a_store(main: Main, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    import wirepress

    for name, n in ("three", 3), ("none", 0):
        with wirepress.FrameStore(tmp_path / name, (3, 4), "float32") as store:
            for step in range(n):
                store.put(step, np.full((3, 4), step, "f4"))
    for step in 0, 2, -1, -3:
        assert main("store", "cat", "three", step)[0] == 0
    for name, step in ("three", 3), ("three", -4), ("none", -1), ("none", 0):
        status, error = main("store", "cat", name, step)
        assert (status, f"step {step} is not in {name}" in error) == (2, True)
