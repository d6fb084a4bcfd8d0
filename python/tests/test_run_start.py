# SPDX-License-Identifier: Apache-2.0
"""`wirepress run` before its ranks start and after they ended: what it refuses, the causes that it
names where no rank loaded wirepress, signals, and what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

import wirepress
from python.tests.run_site import make_launcher, wirepress_run
from wirepress.launch import causes, mpi_libraries, private, run, settings
from wirepress.launch.launchers import RunError

# ---- refused before the launch ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--codec", "zsdt:3"], ["--codec: unknown codec", "did you mean zstd?"]),
        (["--engine", "rtk"], ["--engine: unknown engine", "did you mean rtl?"]),
        (["--codec", "zstd:99"], ["--codec: zstd: level", "-50..22"]),
        (["--codec", "fre:n=6"], ["--codec: fre: unknown parameter", '"n"']),
        (["--codec", "fre:m=6"], ["--codec: fre:m=6 changes values", "--error"]),
        (["--codec", ""], ["--codec: unknown codec"]),
        (["--codec", "auto:goal=ratio"], ["--codec: auto measures its goal"]),
        (["--codec", "zstd:1", "--error", "rel:1e-3"], ["--error: rel:1e-3 is kept by", "zstd:1"]),
        (["--error", "1e-3"], ["--error:", "rel:1e-3"]),
        (["--error", "bits:70"], ["--error:", "from 1 to 52"]),
        (["--link", "fast"], ["--link:", "not a rate"]),
        (["--threshold", "lots"], ["--threshold:", "size such as 64KiB"]),
        (["--partitions", "65"], ["--partitions: 65 is not in 1..64"]),
        (["--collectives", "of"], ["--collectives:", "on or off"]),
        (["--deterministic", "on", "--collectives", "off"], ["--deterministic:", "is off"]),
    ],
)
def test_wrong_values(site, words, parts):
    parser = run.Parser()
    run.add_arguments(parser)
    args = parser.parse_args([*words, "--", "mpirun", "-n", "2", "./app"])
    with pytest.raises(RunError) as refusal:
        settings.check(run.given_options(args), args.command[2:], "openmpi")
    for part in parts:
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--engine", "rtl"], ["--engine: auto chooses among kernels of the processor"]),
        (["--engine", "rtl", "--codec", "deflate"], ["--codec: deflate: no kernel for engine"]),
        (
            ["--engine", "rtl:verilator16"],
            ["--engine: auto chooses among kernels of the processor"],
        ),
        (
            ["--engine", "rtl:verilator16", "--codec", "zstd"],
            ["--codec: zstd:1 has no kernel rtl:verilator16; it has rtl:verilator"],
        ),
    ],
)
def test_cores_want_a_codec_that_they_have(site, words, parts):
    if not any(engine.name == "rtl" and engine.available for engine in wirepress.engines()):
        pytest.skip("built without the simulated cores")
    test_wrong_values(site, words, parts)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--codec", "zsdt:3"], ["--codec: unknown codec", "did you mean zstd?"]),
        (["--codek", "lz4"], ["--codek", "did you mean --codec?"]),
        (["--repot=x"], ["--repot", "did you mean --report?"]),
        (["--codec=lz4", "--mpi", "openmp"], ["openmp"]),
    ],
)
def test_wrong_flags_end_the_command(site, words, parts):
    refused(wirepress_run(*words, "--", "mpirun", "-n", "2", "./app"), parts)


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("WIREPRESS_MPI_CODEC", "lz5", ["WIREPRESS_MPI_CODEC: unknown codec", "did you mean lz4?"]),
        ("WIREPRESS_MPI_CODEC", "bx:m=6", ["WIREPRESS_MPI_CODEC: bx:m=6 changes values"]),
        ("WIREPRESS_MPI_CODECS", "lz4", ["WIREPRESS_MPI_CODECS", "mean WIREPRESS_MPI_CODEC?"]),
        ("WIREPRESS_MPI_TRESHOLD", "1", ["no such setting", "WIREPRESS_MPI_THRESHOLD?"]),
        ("WIREPRESS_CODEK", "zstd", ["WIREPRESS_CODEK: wirepress", "WIREPRESS_MPI_CODEC?"]),
        ("WIREPRESS_CODEC", "zstd", ["WIREPRESS_CODEC: wirepress", "WIREPRESS_MPI_CODEC?"]),
        ("WIREPRESS_THREAD", "2", ["no such setting", "WIREPRESS_THREADS?"]),
        ("WIREPRESS_PORT", "6000", ["no such setting", "WIREPRESS_PORTS?"]),
        ("WIREPRESS_MPI_LINK", "fast", ["WIREPRESS_MPI_LINK:", "not a rate"]),
        ("WIREPRESS_THREADS", "many", ["WIREPRESS_THREADS:", "whole number"]),
    ],
)
def test_wrong_variables(site, monkeypatch, name, value, parts):
    monkeypatch.setenv(name, value)
    with pytest.raises(RunError) as refusal:
        settings.check({}, ["-n", "2", "./app"], "openmpi")
    for part in parts:
        assert part in str(refusal.value)


def test_wrong_variables_end_the_command(site, monkeypatch):
    monkeypatch.setenv("WIREPRESS_MPI_CODEC", "zstd:99")
    refused(wirepress_run("--", "mpirun", "x"), ["WIREPRESS_MPI_CODEC: zstd: level"])
    monkeypatch.setenv("WIREPRESS_MPI_CODEC", "zstd:9")
    monkeypatch.setenv("WIREPRESS_MPI_GRACE", "soon")
    refused(wirepress_run("--", "mpirun", "x"), ["WIREPRESS_MPI_GRACE", "number of seconds"])


def refused(done: subprocess.CompletedProcess[str], parts: list[str]) -> None:
    assert done.returncode == 2
    assert done.stdout == ""  # the launcher was not started
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("wirepress: ")
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize(
    ("flavour", "words", "part"),
    [
        ("openmpi", "-x WIREPRESS_MPI_CODEC=lz5 ./app", "WIREPRESS_MPI_CODEC: unknown codec"),
        ("mpich", "-genv WIREPRESS_MPI_CODEK lz4 ./app", "WIREPRESS_MPI_CODEC?"),
        ("mpich", "-env WIREPRESS_MPI_CODEC lz5 ./app", "did you mean lz4?"),
    ],
)
def test_variables_that_the_launcher_sets(site, flavour, words, part):
    with pytest.raises(RunError) as refusal:  # the launcher's word counts
        settings.check({"mpi_codec": "lz4"}, words.split(), flavour)
    assert part in str(refusal.value)


@pytest.mark.parametrize("name", ["ROOT", "HOME", "DIR", "VERSION", "LIB", "COLOUR", "HDF5_DIR"])
def test_variables_of_others(site, monkeypatch, name):
    """The job runs, for others may have variables of that prefix."""
    monkeypatch.setenv(f"WIREPRESS_{name}", "/opt/wirepress")
    done = wirepress_run("--", "mpirun", "x")
    assert done.returncode == 0
    assert "WIREPRESS_" not in done.stderr


def test_right_settings_pass(site, monkeypatch):
    monkeypatch.setenv("WIREPRESS_MPI_LINK", "120MB/s")
    monkeypatch.setenv("WIREPRESS_MPI_GRACE", "5")
    for words in (
        ["--codec", "fre", "--error", "rel:1e-3"],
        ["--error", "abs:1e-6"],
        ["--codec", "bx:m=0"],
        ["--codec", "shuffle:4+zstd:1", "--chunk", "1MiB"],
    ):
        parser = run.Parser()
        run.add_arguments(parser)
        args = parser.parse_args([*words, "--", "mpirun", "x"])
        settings.check(run.given_options(args), ["x"], "openmpi")


def test_without_the_extension(monkeypatch):
    """In a source tree that is not built the ranks are the first who could know."""
    monkeypatch.setattr(settings, "extension", lambda: None)
    settings.check({"mpi_codec": "lz5"}, [], "openmpi")
    assert [row[0] for row in settings.option_rows()] == ["mpi_codec", "mpi_threshold"]


def test_report_that_cannot_be_written(site, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    before = folder / "before.json"
    before.touch()
    for path, part in (
        (folder, "is a folder"),
        (folder / "no" / "r.json", "is not a folder"),
        (before / "r.json", "is not a folder"),
        (folder / ("r" * 255), "cannot write"),
        (Path("/proc/r.json"), "cannot write"),
    ):
        done = wirepress_run("--report", str(path), "--", "mpirun", "x")
        refused(done, ["--report", part])
    assert sorted(folder.iterdir()) == [before]


@pytest.mark.parametrize("name", ["my libraries", "lib:1"])
def test_library_in_a_path_that_cuts_the_preload(site, monkeypatch, name):
    (site / "lib").rename(site / name)
    monkeypatch.setenv("WIREPRESS_LIB_DIR", str(site / name))
    refused(wirepress_run("--", "mpirun", "x"), ["a blank or a colon", "WIREPRESS_LIB_DIR"])
    (site / "link").symlink_to(site / name)
    monkeypatch.setenv("WIREPRESS_LIB_DIR", str(site / "link"))
    done = wirepress_run("--", "mpirun", "x")
    assert done.returncode == 0 and f"{site}/link/libwirepress_mpi_openmpi.so" in done.stdout


def test_a_command_that_does_not_start(site):
    script = site / "script"
    script.write_text("echo no first line\n")
    script.chmod(0o755)
    done = wirepress_run("--", str(script))
    assert done.returncode == 2 and f"cannot start {script}: Exec format error" in done.stderr


# ---- why no rank loaded wirepress ------------------------------------------------------------


def functions_of_open_mpi() -> str:
    """Those by which a module knows the versions that it serves."""
    modules = mpi_libraries.modules(mpi_libraries.shipped_dirs())
    served = [path for path in modules if mpi_libraries.module_family(path) == "openmpi"]
    names = (mpi_libraries.features_of(served[0]) or ()) if served else ()
    return "".join(f"void {name}(void) {{}}\n" for name in sorted(names))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """ELF files of several kinds, made by cc: with and without MPI libraries of no content."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    (folder / "empty.c").write_text("int mpi_is_here;\n" + functions_of_open_mpi())
    (folder / "deep.c").write_text("int deep;\n")

    def cc(*words: str) -> None:
        subprocess.run(["cc", "-Wl,--no-as-needed", *words], cwd=folder, check=True)

    cc("-o", "plain", "main.c")
    cc("-static", "-o", "static", "main.c")
    for soname in (
        "libmpi.so.40",
        "libmpich.so.12",
        "libmpi_abi.so.1",
        "libmpi_other.so.3",
        "libmpi.so.12",
    ):
        cc("-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", soname, "empty.c")
        cc("-o", soname.replace(".so.", "-"), "main.c", soname, f"-Wl,-rpath,{folder}")
    cc("-shared", "-fPIC", "-o", "libdeep.so", "deep.c", "libmpi.so.40", f"-Wl,-rpath,{folder}")
    cc("-o", "deep", "main.c", "libdeep.so", f"-Wl,-rpath,{folder}")
    # with none of this machine's folders either: Debian 13 has a libmpi.so.12
    cc("-o", "lost", "main.c", "libmpi.so.12", "-Wl,-z,nodefaultlib")
    return folder


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        ("plain", ["plain is not linked with an MPI library"]),
        ("static", ["static is linked statically"]),
        (
            "libmpich-12",
            ["linked with MPICH (libmpich.so.12)", "mpirun is the launcher of Open MPI"],
        ),
        ("libmpi_abi-1", ["standard ABI of MPI 5 (libmpi_abi.so.1)", "no module"]),
        ("libmpi_other-3", ["libmpi_other.so.3, an MPI that wirepress does not know"]),
        ("libmpi-40", ["linked with libmpi.so.40", "before MPI_Init", "sessions"]),
        ("deep", ["linked with libmpi.so.40", "before MPI_Init"]),
        ("lost", ["libmpi.so.12, which the loader does not find"]),
    ],
)
def test_programs(site, programs, program, parts, monkeypatch):
    own = list((site / "lib").glob("libwirepress_mpi_*.so"))
    monkeypatch.setattr(causes, "modules", lambda: own)
    command = ["mpirun", "-n", "2", str(programs / program)]
    (said,) = causes.causes(command, "openmpi", [], False)
    for part in parts:
        assert part in said


@pytest.mark.parametrize(
    ("flavour", "flags"),
    [
        ("openmpi", "--mca plm_rsh_agent ssh -x LD_PRELOAD=/x.so --host a,b"),
        ("mpich", "-launcher ssh -genv PATH env -f ls"),
    ],
)
def test_values_of_flags_are_no_programs(programs, flavour, flags):
    words = ["mpirun", *flags.split(), "-n", "2", str(programs / "static"), "-i", "ssh"]
    (said,) = causes.causes(words, flavour, [], False)
    assert "static is linked statically" in said


def test_the_cause_is_said(site, programs):
    done = wirepress_run("--", "mpirun", "-n", "2", str(programs / "static"))
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first == "wirepress: no rank loaded wirepress" and "linked statically" in second


def test_program_for_another_machine(programs, monkeypatch):
    monkeypatch.setattr(causes, "modules", lambda: [programs / "libmpi.so.40"])
    data = bytearray((programs / "plain").read_bytes())
    data[18:20] = (183 if data[18] == 62 else 62).to_bytes(2, "little")
    other = programs / "other"
    other.write_bytes(data)
    other.chmod(0o755)
    (said,) = causes.causes(["mpirun", str(other)], "openmpi", [], False)
    assert "which wirepress's modules for MPI are not" in said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["-n", "1", "env", "-i", "PROGRAM"], "`env -i` in the command may keep LD_PRELOAD"),
        (["-n", "1", "sudo", "PROGRAM"], "`sudo` in the command"),
        (["-n", "1", "apptainer", "exec", "x.sif", "PROGRAM"], "`apptainer` in the command"),
        (["-n", "1", "/no/such/program"], "none of the words of the command is a program"),
    ],
)
def test_commands_that_lose_the_environment(programs, words, part):
    words = [str(programs / "libmpi-40") if word == "PROGRAM" else word for word in words]
    (said,) = causes.causes(["mpirun", *words], "openmpi", [], False)
    assert part in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("/usr/bin/mpirun.openmpi -n 1 true", "names the launcher /usr/bin/mpirun.openmpi"),
        ("# /usr/bin/mpirun is not called\ntrue", "called no launcher that it found by PATH"),
        ("ls /usr/lib/mpirunner/x; true", "called no launcher that it found by PATH"),
        ("false && ibrun ./app; true", "ibrun is no launcher that wirepress knows"),
        ("ssh node mpirun a; true", "`ssh` in it may hide one"),
    ],
)
def test_scripts(site, text, part):
    script = site / "job.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    for command in ([str(script)], ["sh", str(script)]):
        (said,) = causes.causes(command, "", [], False)
        assert part in said


def test_a_script_that_called_a_launcher(site, programs):
    script = f"mpirun -n 1 {programs}/plain; mpiexec.mpich -n 1 {programs}/static"
    said = wirepress_run("--", "sh", "-c", script).stderr
    assert "plain is not linked with an MPI library" in said and "static is linked stat" in said


def test_a_program_without_a_launcher(site, programs):
    said = wirepress_run("--", str(programs / "libmpi-40")).stderr
    assert "linked with MPI (libmpi.so.40) and was started without a launcher" in said


def test_a_launcher_that_failed(site, programs):
    """It says itself why; of the program nothing is known but that it could."""
    make_launcher(site, "mpirun", "Open MPI", "exit 3")
    said = wirepress_run("--", "mpirun", str(programs / "libmpi-40")).stderr
    assert len(said.splitlines()) == 1 and "exit code 3" in said


# ---- signals, and what is left ---------------------------------------------------------------

WAITS = "trap 'echo caught; exit 9' TERM; echo $$; while :; do sleep 0.05; done"


def start(words: list[str], **kwargs) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wirepress", "run", "--", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **kwargs)


def test_a_killed_run_ends_its_launcher(site):
    make_launcher(site, "mpirun", "Open MPI", WAITS)
    with start(["mpirun"]) as process:
        process.stdout.readline()
        process.kill()
        assert process.stdout.read() == "caught\n"  # and its end: the launcher has closed it


def test_a_killed_run_signals_its_launcher_once(site, tmp_path):
    """Open MPI's mpirun takes a second SIGTERM for leave to go without its ranks."""
    counts = "trap 'echo caught' TERM; echo $$; for i in 1 2 3 4 5 6; do sleep 0.05; done"
    make_launcher(site, "mpirun", "Open MPI", counts)
    for _ in range(12):
        with start(["mpirun"]) as process:
            process.stdout.readline()
            process.kill()
            assert process.stdout.read() == "caught\n"


def test_a_killed_run_leaves_no_folder(site, monkeypatch, tmp_path):
    """None where none was needed; the next run removes those of runs that were killed."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    make_launcher(site, "mpirun", "Open MPI", WAITS)
    for words, n in ((["mpirun"], 0), (["sh", "-c", "mpirun"], 1)):
        with start(words) as process:
            launcher = int(process.stdout.readline())
            assert len(list(folder.iterdir())) == n
            process.kill()
            process.wait()
            os.kill(launcher, signal.SIGTERM)
    assert len(list(folder.iterdir())) == 1
    other = folder / f"{private.PREFIX}of-another-user"
    other.symlink_to(tmp_path)
    make_launcher(site, "mpirun", "Open MPI", "exit 0")
    assert wirepress_run("--", "mpirun").returncode == 0
    assert list(folder.iterdir()) == [other]


def test_a_sweep_leaves_the_living_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    mine = private.Private()
    (mine / "file").touch()
    private.sweep()
    assert (mine / "file").exists()
    mine.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["no/such/folder", "a:b", "noexec"])
def test_folders_that_programs_cannot_be_found_in(site, monkeypatch, tmp_path, name):
    """A script would find the launchers themselves by PATH, and its ranks were silently plain."""
    folder = tmp_path / name
    if name != "no/such/folder":
        folder.mkdir()
    if name == "noexec":
        flags = os.ST_NOEXEC
        monkeypatch.setattr(os, "statvfs", lambda path: types.SimpleNamespace(f_flag=flags))
        with pytest.raises(RunError, match="set TMPDIR"):
            private.place()
        return
    monkeypatch.setenv("TMPDIR", str(folder))
    assert "LD_PRELOAD" in wirepress_run("--", "sh", "-c", "mpirun x").stdout


def test_a_signal_that_ends_a_script_reaches_its_launchers(site):
    """The run lasts until they have ended: their ranks leave reports."""
    make_launcher(site, "mpirun", "Open MPI", WAITS)
    with start(["sh", "-c", "mpirun & wait"]) as process:
        process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stdout.read() == "caught\n"


def test_launchers_that_a_script_left_behind(site, tmp_path):
    make_launcher(site, "mpirun", "Open MPI", f"echo began; sleep 0.7; touch {tmp_path}/ended")
    script = f"cd {tmp_path}; mpirun >out & until [ -s out ]; do sleep 0.05; done; exit 4"
    assert wirepress_run("--", "sh", "-c", script).returncode == 4
    assert (tmp_path / "ended").exists()


def test_nohup_with_the_whole_command(site):
    """A hang-up that is ignored stays so under the command's own name, too."""
    make_launcher(site, "mpirun", "Open MPI", "echo ready; sleep 0.5; echo done; exit 5")
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    with start(["mpirun"], preexec_fn=ignore) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.read() == "done\n"
    assert process.returncode == 5


def test_a_parent_that_ignores_the_ends_of_children(site):
    """The launcher's status is not lost."""
    make_launcher(site, "mpirun", "Open MPI", "exit 7")
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    with start(["mpirun"], preexec_fn=ignore) as process:
        assert process.wait(30) == 7


def test_without_standard_files(site):
    """The meeting point does not take the place of a file that was closed."""
    words = f"{sys.executable} {run.__file__} -- mpirun x <&- 2>&-"
    done = subprocess.run(["sh", "-c", words], stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "LD_PRELOAD" in done.stdout
