# SPDX-License-Identifier: Apache-2.0
"""No command loses the only copy of anything, whatever its files are called."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepress import cli

Main = Callable[..., tuple[int, str]]

CONTENT = b"the only copy " * 1000


@pytest.fixture
def main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Main:
    """Runs a command in tmp_path, within this process; returns its status and its stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: object) -> tuple[int, str]:
        capfd.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        return status, capfd.readouterr().err

    return run


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
    from wirepress import files

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
    from wirepress import files

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
        monkeypatch.setattr("sys.stdout", open(end.fileno(), "w", closefd=False))
        status, error = main("compress", "a", "-o", "-")
    assert (status, "stdout is the source itself" in error) == (1, True)
    assert only.read_bytes() == CONTENT
