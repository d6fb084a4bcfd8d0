# SPDX-License-Identifier: Apache-2.0
"""The command line as its users meet it: processes, files, pipes, full disks, signals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import wirepress

if TYPE_CHECKING:
    from conftest import Command

COMMAND = [sys.executable, "-m", "wirepress"]


def one_line(output: bytes) -> str:
    """stderr of a failed command: one line that begins with the program's name."""
    text = output.decode()
    assert text.startswith("wirepress: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def data(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / "data"
    path.write_bytes(text)
    return path


# ---- files ----------------------------------------------------------------------------------


def test_file_and_back(wirepress_in: Command, data: Path, text: bytes) -> None:
    os.chmod(data, 0o640)
    os.utime(data, (10**9, 10**9))
    done = wirepress_in("compress", "data")
    assert done.returncode == 0
    assert re.search(r"data -> data\.wpr: 3,000,000 raw, .*x\) in", done.stderr.decode())
    frame = data.with_name("data.wpr")
    assert wirepress.decompress(frame.read_bytes()) == text
    assert (frame.stat().st_mode & 0o777, frame.stat().st_mtime) == (0o640, 10**9)
    assert wirepress_in("decompress", "-q", "data.wpr", "-o", "again").stderr == b""
    assert (data.parent / "again").read_bytes() == text
    assert names(data.parent) == {"data", "data.wpr", "again"}


def test_nothing_is_overwritten(wirepress_in: Command, data: Path) -> None:
    frame = data.with_name("data.wpr")
    frame.write_bytes(b"precious")
    refused = wirepress_in("compress", "data")
    assert refused.returncode == 1
    assert "data.wpr exists; -f overwrites it" in one_line(refused.stderr)
    assert frame.read_bytes() == b"precious"
    assert wirepress_in("compress", "-qf", "data").returncode == 0
    assert frame.read_bytes() != b"precious"
    assert wirepress_in("decompress", "data.wpr").returncode == 1


def test_rm(wirepress_in: Command, data: Path, text: bytes) -> None:
    wirepress_in("compress", "--rm", "data", check=True)
    assert names(data.parent) == {"data.wpr"}
    wirepress_in("decompress", "--rm", "data.wpr", check=True)
    assert names(data.parent) == {"data"}
    assert data.read_bytes() == text
    assert wirepress_in("compress", "--rm", "-k", "data").returncode == 2


def test_several_files(wirepress_in: Command, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode() * 5000)
    done = wirepress_in("compress", "--json", "a", "missing", "b", "c", "-r", "lz4")
    assert done.returncode == 1
    assert "missing: No such file" in one_line(done.stderr)
    rows = json.loads(done.stdout)
    assert [(row["input"], row["raw_size"], row["recipe"]) for row in rows] == [
        (name, 5000, "lz4") for name in "abc"
    ]
    assert wirepress_in("compress", "a", "b", "-o", "x").returncode == 2
    assert wirepress_in("compress", "-", "-").returncode == 2


def test_options_reach_the_library(wirepress_in: Command, data: Path) -> None:
    flags = ("--block-size", "4KiB", "--checksum", "off", "-r", "shuffle:2+lz4:9")
    wirepress_in("compress", "data", *flags, check=True)
    info = wirepress.inspect(data.with_name("data.wpr").read_bytes())
    assert (info.block_size, info.checksum) == (4096, False)
    assert info.recipe == "shuffle:2+lz4:9"
    text = wirepress_in("compress", "--help", check=True).stdout.decode()
    for option in wirepress.options():
        named = bool(option.flag) and option.flag in text
        assert named != option.key.startswith(("mpi_", "torch_"))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-r", "zpaq"), r'unknown codec "zpaq"; known: .*zstd'),
        (("-r", "zstd:99"), r"-50\.\.22"),
        (("--block-size", "7"), r"block_size.*7"),
        (("--threads", "many"), r"threads"),
        (("--engine", "cpu:sse9"), r"known: .*cpu:scalar"),
        (("--dtype", "float31"), r"known: .*float32"),
        (("-r", "fre", "--dtype", "int8"), r"fre"),
    ],
)
def test_wrong_requests(
    flags: tuple[str, ...], sentence: str, wirepress_in: Command, data: Path
) -> None:
    refused = wirepress_in("compress", "data", *flags)
    assert refused.returncode == 2
    assert re.search(sentence, one_line(refused.stderr))
    assert names(data.parent) == {"data"}


def test_wrong_files(wirepress_in: Command, data: Path) -> None:
    assert "does not end in .wpr" in one_line(wirepress_in("decompress", "data").stderr)
    assert "folder" in one_line(wirepress_in("compress", ".").stderr)
    assert "not a" in one_line(wirepress_in("decompress", "data", "-o", "x").stderr)
    data.with_name("empty.wpr").write_bytes(b"")
    assert "empty" in one_line(wirepress_in("decompress", "empty.wpr").stderr)
    assert names(data.parent) == {"data", "empty.wpr"}


@pytest.mark.parametrize("damage", ["cut", "flip", "more"])
def test_damaged_frames_leave_no_file(damage: str, wirepress_in: Command, data: Path) -> None:
    wirepress_in("compress", "-q", "--block-size", "64KiB", "data", check=True)
    frame = data.with_name("data.wpr")
    whole = frame.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
    frame.write_bytes({"cut": whole[:-5], "flip": flipped, "more": whole + b"x"}[damage])
    for command in (("decompress", "data.wpr", "-o", "out"), ("inspect", "--verify", "data.wpr")):
        failed = wirepress_in(*command)
        assert failed.returncode == 1
        text = one_line(failed.stderr)
        assert re.search(
            {"cut": "ends|needs", "flip": r"block \d+", "more": "after the end"}[damage], text
        )
    assert names(data.parent) == {"data", "data.wpr"}


# ---- arrays ---------------------------------------------------------------------------------


def test_npy(wirepress_in: Command, tmp_path: Path, field: np.ndarray) -> None:
    np.save(tmp_path / "field.npy", field)
    wirepress_in("compress", "-r", "shuffle+zstd", "field.npy", check=True)
    frame = (tmp_path / "field.npy.wpr").read_bytes()
    assert np.array_equal(wirepress.decompress(frame), field)
    wirepress_in("decompress", "field.npy.wpr", "-o", "again.npy", check=True)
    assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "field.npy").read_bytes()
    wirepress_in("decompress", "--no-npy", "field.npy.wpr", "-o", "raw", check=True)
    assert (tmp_path / "raw").read_bytes() == field.tobytes()
    piped = wirepress_in("compress", "--npy", "-", input=(tmp_path / "field.npy").read_bytes())
    assert wirepress.decompress(piped.stdout).shape == field.shape
    back = wirepress_in("decompress", "--npy", "-", input=piped.stdout)
    assert np.array_equal(np.load(io.BytesIO(back.stdout)), field)


@pytest.mark.parametrize("dtype", "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 ? c8 c16".split())
@pytest.mark.parametrize("shape", [(), (0, 3), (70_000,), (2, 3, 4, 5)], ids=str)
def test_npy_header(dtype: str, shape: tuple[int, ...]) -> None:
    from wirepress.commands import npy

    file = io.BytesIO()
    np.save(file, np.zeros(shape, dtype))
    file.seek(0)
    header = npy.parse(file.read).header
    assert header == (np.dtype(dtype).name, shape)
    assert file.getvalue()[: file.tell()] == npy.make_header(header)


def test_damaged_npy(wirepress_in: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(100))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-8])
    assert "792 bytes" in one_line(wirepress_in("compress", "x.npy").stderr)
    (tmp_path / "x.npy").write_bytes(whole[:20])
    assert "damaged" in one_line(wirepress_in("compress", "--npy", "x.npy").stderr)
    assert names(tmp_path) == {"x.npy"}


def test_text_is_never_changed(wirepress_in: Command, data: Path, text: bytes) -> None:
    """A lossy recipe takes elements whose type is said, never bytes that may be anything."""
    for recipe in "bx:m=6", "fre", "topk", "sz3:abs=1", "zfp:rate=8", "int8", "bf16":
        for source in "data", "-":
            refused = wirepress_in("compress", "-r", recipe, source, input=text[:5000])
            assert refused.returncode == 1
            assert "--dtype" in one_line(refused.stderr)
            assert refused.stdout == b""
    assert names(data.parent) == {"data"}
    for recipe in "bx:m=0", "auto:rel=1e-2":  # these change nothing
        wirepress_in("compress", "-f", "-r", recipe, "data", check=True)
        assert wirepress.decompress(data.with_name("data.wpr").read_bytes()) == text
    os.unlink(data.with_name("data.wpr"))
    wirepress_in("compress", "-r", "bx:m=6", "--dtype", "float32", "data", check=True)


def test_damaged_npy_header(wirepress_in: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(100))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole.replace(b"descr", b"desc,"))
    refused = wirepress_in("compress", "-r", "bx:m=6", "x.npy")
    assert "damaged" in one_line(refused.stderr)
    assert names(tmp_path) == {"x.npy"}


def test_dtype_of_a_raw_file(wirepress_in: Command, tmp_path: Path, field: np.ndarray) -> None:
    (tmp_path / "raw").write_bytes(field.tobytes())
    wirepress_in("compress", "--dtype", "float32", "-r", "fre:m=5", "raw", check=True)
    wirepress_in("decompress", "raw.wpr", "-o", "out", check=True)
    restored = np.fromfile(tmp_path / "out", np.float32).reshape(field.shape)
    assert np.all(np.abs(restored - field) <= np.abs(field) * 2.0**-6)


# ---- pipes, devices, signals ----------------------------------------------------------------


def test_pipes(wirepress_in: Command, text: bytes) -> None:
    frame = wirepress_in("compress", "-q", "-", input=text).stdout
    assert wirepress.decompress(frame) == text
    done = wirepress_in("decompress", "--json", "-", input=frame)
    assert done.stdout == text
    assert json.loads(done.stderr)[0]["raw_size"] == len(text)


@pytest.mark.parametrize("command", ["compress", "decompress", "inspect"])
def test_pipes_that_do_not_block(command: str, text: bytes) -> None:
    """Programs share pipes with others that have set them so; no bytes yet is not the end."""
    given = text if command == "compress" else wirepress.compress(text)
    begin, ours = os.pipe()
    theirs, end = os.pipe()
    for pipe in begin, end:
        os.set_blocking(pipe, False)
    out = ["-o", "-"] if command != "inspect" else []
    with subprocess.Popen([*COMMAND, command, *out, "-"], stdin=begin, stdout=end) as process:
        os.close(begin)
        os.close(end)

        def write() -> None:
            with open(ours, "wb", buffering=0) as file:
                for at in range(0, len(given), 50_000):
                    time.sleep(0.02)
                    file.write(given[at : at + 50_000])

        writer = threading.Thread(target=write)
        writer.start()
        result = b""
        while piece := os.read(theirs, 10_000):
            result += piece
        writer.join()
    os.close(theirs)
    assert process.returncode == 0
    if command == "inspect":
        assert str(len(text)).encode() in result.replace(b",", b"").replace(b" ", b"")
    else:
        assert (wirepress.decompress(result) if command == "compress" else result) == text


def test_binary_is_not_written_to_a_terminal(data: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        command = [*COMMAND, "compress", "-o", "-", str(data)]
        done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode != 0
    assert "terminal" in one_line(done.stderr)


@pytest.mark.parametrize("command", ["compress -r store data -o -", "codecs", "options --json"])
def test_full_device(command: str, data: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=data.parent,
            timeout=60,
        )
    assert done.returncode == 1
    assert "No space left" in one_line(done.stderr)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "wirepress-test", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_full_disk(small_disk: Path, wirepress_in: Command, data: Path) -> None:
    failed = wirepress_in("compress", "-r", "store", "data", "-o", small_disk / "data.wpr")
    assert failed.returncode == 1
    assert "No space left" in one_line(failed.stderr)
    assert names(small_disk) == set()
    wirepress_in("compress", "-q", "data", check=True)
    (small_disk / "out").write_bytes(b"precious")
    failed = wirepress_in("decompress", "-f", "data.wpr", "-o", small_disk / "out")
    assert failed.returncode == 1
    assert names(small_disk) == {"out"}
    assert (small_disk / "out").read_bytes() == b"precious"


def test_closed_pipe(data: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "compress", "-r", "store", "-o", "-", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1000)
        process.stdout.close()
        assert "closed" in one_line(process.stderr.read())
        assert process.wait(60) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_no_file(number: signal.Signals, tmp_path: Path, text: bytes) -> None:
    with subprocess.Popen(
        [*COMMAND, "compress", "-r", "store", "-", "-o", "out"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        # These tests may run under nohup or in the background, where some are ignored.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(text)
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while not any(p.name.endswith(".tmp") for p in tmp_path.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        if process.poll() is None:
            # CPython may miss a signal that comes just before it blocks; users press ^C again.
            process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert b"Traceback" not in process.stderr.read()
        process.stdin.close()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_one_long_call(number: signal.Signals, tmp_path: Path, text: bytes) -> None:
    """The frame of an array is made by one call, which takes ten seconds and more."""
    np.save(tmp_path / "array.npy", np.frombuffer(text * 12, np.uint8))
    with subprocess.Popen(
        [*COMMAND, "compress", "-r", "zstd:19", "array.npy", "-o", "out"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        assert process.stderr
        while not any(p.name.endswith(".tmp") for p in tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.3)  # into the call
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert b"Traceback" not in process.stderr.read()
    assert names(tmp_path) == {"array.npy"}


@pytest.mark.parametrize("command", ["compress", "decompress"])
def test_constant_memory(command: str, tmp_path: Path, text: bytes) -> None:
    """256 MB pass through a process that has far less."""
    n_times, source = 80, tmp_path / "source"
    if command == "compress":
        source.write_bytes(text * n_times)
    else:
        with open(source, "wb") as file:
            stream = wirepress.StreamCompressor()
            for _ in range(n_times):
                file.write(stream.update(text))
            file.write(stream.finish())
    program = (
        "import re, sys; from wirepress.commands.cli import main; code = main(sys.argv[1:]);"
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, command, "-q", str(source), "-o", "/dev/null"],
        check=True,
        stdout=subprocess.PIPE,
    )
    assert int(done.stdout) < 100_000  # kB


# ---- inspect and lists ----------------------------------------------------------------------


def test_inspect(wirepress_in: Command, tmp_path: Path, text: bytes) -> None:
    noise = os.urandom(65536)
    frame = wirepress.compress(text[:130_000] + noise, "zstd:1", block_size=65536)
    (tmp_path / "x.wpr").write_bytes(frame)
    shown = wirepress_in("inspect", "--verify", "x.wpr", check=True).stdout.decode()
    assert re.search(r"recipe +zstd:1\n", shown)
    assert re.search(r"blocks +3 of 65,536 raw bytes, [01] stored raw", shown)
    for source, kwargs in (("x.wpr", {}), ("-", {"input": frame})):
        (report,) = json.loads(
            wirepress_in("inspect", "--json", source, check=True, **kwargs).stdout
        )
        assert (report["raw_size"], report["frame_size"]) == (195_536, len(frame))
        assert sum(block["raw_size"] for block in report["blocks"]) == 195_536
        last = report["blocks"][-1]
        assert last["offset"] + 8 + last["stored_size"] == len(frame)


def test_inspect_a_stream(wirepress_in: Command, tmp_path: Path, text: bytes) -> None:
    stream = wirepress.StreamCompressor(block_size=65536)
    frame = stream.update(text) + stream.finish()
    (tmp_path / "x.wpr").write_bytes(frame)
    (report,) = json.loads(wirepress_in("inspect", "--json", "x.wpr", check=True).stdout)
    assert (report["raw_size"], report["frame_size"]) == (len(text), len(frame))
    assert report["streamed"]
    shown = wirepress_in("inspect", "--blocks", "3", "x.wpr", check=True).stdout.decode()
    assert "... and 43 more" in shown


def test_lists(wirepress_in: Command) -> None:
    codecs = json.loads(wirepress_in("codecs", "--json", check=True).stdout)
    assert [codec["name"] for codec in codecs] == [codec.name for codec in wirepress.codecs()]
    table = wirepress_in("codecs", check=True).stdout.decode()
    assert all(codec.sentence in table for codec in wirepress.codecs())
    engines = json.loads(wirepress_in("engines", "--json", check=True).stdout)
    assert "cpu" in {engine["name"] for engine in engines}
    environment = os.environ | {"WIREPRESS_THREADS": "3"}
    options = json.loads(wirepress_in("options", "--json", env=environment, check=True).stdout)
    (threads,) = (row for row in options if row["key"] == "threads")
    assert (threads["value"], threads["origin"]) == ("3", "environment")
    assert (threads["flag"], threads["variable"]) == ("--threads", "WIREPRESS_THREADS")
    bad = wirepress_in("options", env=environment | {"WIREPRESS_CHECKSUM": "perhaps"})
    assert re.search("WIREPRESS_.*perhaps", one_line(bad.stderr))


def test_help_has_examples(wirepress_in: Command) -> None:
    top = wirepress_in("--help", check=True).stdout.decode()
    commands = (
        "compress decompress inspect codecs engines options bench explain plan reproduce simulate"
    )
    for command in [*commands.split(), "run", "completion"]:
        assert re.search(rf"^    {command}\s", top, re.MULTILINE)
        if command != "run":
            shown = wirepress_in(command, "--help", check=True).stdout.decode()
            assert f"examples:\n  {'' if command != 'completion' else 'eval '}" in shown
    assert wirepress_in().returncode == 2
    assert wirepress.__version__ in wirepress_in("--version").stdout.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, wirepress_in: Command) -> None:
    script = wirepress_in("completion", shell, check=True).stdout
    assert re.search(b"decompress.*block-size", script, re.DOTALL)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script, check=True)


# ---- bench ----------------------------------------------------------------------------------


def test_bench(wirepress_in: Command, tmp_path: Path, text: bytes, field: np.ndarray) -> None:
    (tmp_path / "text").write_bytes(text[:200_000])
    np.save(tmp_path / "field.npy", field)
    done = wirepress_in(
        "bench", "text", "field.npy", "--seconds", "0", "--plain", "--json", "out.json"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out.json").read_text())
    rows = {(row["file"], row["recipe"], row["kernel"]): row for row in report["rows"]}
    for codec in wirepress.codecs():
        if "float32" not in codec.dtypes:
            continue
        kernels = [
            f"{k.engine}:{k.variant}" for k in codec.kernels if k.usable and k.engine == "cpu"
        ]
        found = [
            key for key in rows if key[1].split("+")[0] == codec.name and key[0] == "field.npy"
        ]
        assert set(kernels) <= {kernel for _, _, kernel in found}
    assert ("text", "fre", "cpu:scalar") not in rows
    assert ("text", "lz4", "plain lz4") in rows
    frame = wirepress.compress(text[:200_000], "zstd")
    assert rows["text", "zstd", "cpu:libzstd"]["ratio"] == pytest.approx(200_000 / len(frame))
    for row in report["rows"]:
        assert row["compress_gbps"] > 0
        assert row["decompress_per_memcpy"] == pytest.approx(
            row["decompress_gbps"] / report["memcpy_gbps"]
        )
        assert "memcpy_gbps" not in row  # there is one, of all
    for way in ("compress", "decompress"):
        by_speed = sorted(report["rows"], key=lambda row: row[f"{way}_gbps"])
        ratios = [row[f"{way}_per_memcpy"] for row in by_speed]
        assert ratios == sorted(ratios)
    assert report["machine"]["cores"] == os.cpu_count()
    table = done.stdout.decode().splitlines()
    assert len(table) == 1 + len(rows) + 1
    assert table[-1] == f"memcpy: {report['memcpy_gbps']:.3f} GB/s, one figure for all rows"


def test_bench_of_an_engine(wirepress_in: Command, tmp_path: Path, field: np.ndarray) -> None:
    np.save(tmp_path / "field.npy", field)
    assert "known:" in one_line(wirepress_in("bench", "field.npy", "--engine", "abacus").stderr)
    if not next(engine for engine in wirepress.engines() if engine.name == "rtl").available:
        pytest.skip("built without Verilator")
    command = "bench field.npy --engine rtl --recipes fre:5 --seconds 0 --json out.json".split()
    done = wirepress_in(*command)
    assert done.returncode == 0, done.stderr
    assert b"B/clock" in done.stdout
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["kernel"] == "rtl:verilator"
    for clocks in (row["compress_clocks"], row["decompress_clocks"]):
        assert field.nbytes / 4 <= clocks <= 1.05 * field.nbytes / 4 + 100
    # The larger cores.
    command = "bench field.npy --engine rtl:verilator16 --recipes lz4 --seconds 0 --json out.json"
    assert b"B/clock" in wirepress_in(*command.split(), check=True).stdout
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["compress_clocks"] > field.nbytes / 8
    assert row["decompress_clocks"] > field.nbytes / 16
    # Without recipes those codecs that have it; a codec that lacks it is not measured as if it had.
    command = "bench field.npy --engine rtl:verilator16 --seconds 0 --limit 1 --json out.json"
    wirepress_in(*command.split(), check=True)
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {(row["recipe"], row["kernel"]) for row in rows} >= {("lz4", "rtl:verilator16")}
    assert {row["kernel"] for row in rows} == {"rtl:verilator16"}
    done = wirepress_in("bench", "field.npy", "--engine", "rtl:verilator16", "--recipes", "zstd")
    assert "zstd:1 has no kernel rtl:verilator16; it has rtl:verilator" in one_line(done.stderr)


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_bench_plot(suffix: str, magic: bytes, wirepress_in: Command, data: Path) -> None:
    pytest.importorskip("matplotlib")
    flags = ("--recipes", "lz4", "zstd:3", "--seconds", "0", "--plot", f"out.{suffix}")
    wirepress_in("bench", "data", *flags, check=True)
    assert data.with_name(f"out.{suffix}").read_bytes().startswith(magic)


def test_bench_of_nonsense(wirepress_in: Command, data: Path) -> None:
    assert "known:" in one_line(wirepress_in("bench", "data", "--recipes", "zpaq").stderr)
    data.write_bytes(b"")
    assert "empty" in one_line(wirepress_in("bench", "data").stderr)
