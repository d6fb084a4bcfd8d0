# SPDX-License-Identifier: Apache-2.0
"""Which MPI library a job will load, and which module serves it: on libraries made for the test,
so that no MPI need be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from wirepress.launch import mpi_libraries
from wirepress.launch.mpi_libraries import FEATURES, Library, RunError, find_library, module_for

MPI_4 = FEATURES[:4]


@pytest.fixture(scope="module")
def cc():
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc)")
    return compiler


@pytest.fixture
def make(cc, tmp_path):
    """make(PATH, functions, needed, soname): a shared library that defines these functions."""

    def library(
        path: str, functions: tuple[str, ...] = (), needed: Path | None = None, soname: str = ""
    ) -> Path:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source = tmp_path / "source.c"
        source.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in functions))
        command = [cc, "-shared", "-fPIC", "-o", target, source, "-Wl,--no-as-needed"]
        command += [f"-Wl,-soname,{soname or target.name}", *([needed] if needed else [])]
        subprocess.run(command, check=True)
        return target

    return library


@pytest.fixture
def program(cc, tmp_path):
    """program(library, *flags): one that is linked with it."""

    def linked(library: Path, *flags: str) -> Path:
        target = tmp_path / "app"
        (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
        command = [cc, "-o", target, tmp_path / "main.c", "-Wl,--no-as-needed", library, *flags]
        subprocess.run(command, check=True)
        return target

    return linked


def make_launcher(prefix: Path) -> str:
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    launcher = prefix / "bin" / "mpirun"
    launcher.touch(mode=0o755)
    return str(launcher)


def test_features_are_those_that_a_library_exports(make):
    library = make("libmpi.so.12", ("MPI_Send", "PMPI_Send_c", *MPI_4[1:]))
    assert mpi_libraries.features_of(library) == set(MPI_4[1:])
    assert mpi_libraries.features_of(make("libempty.so")) == set()


def test_what_is_no_library(tmp_path):
    file = tmp_path / "file"
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + bytes(100)):
        file.write_bytes(content)
        mpi_libraries.read_elf.cache_clear()
        elf = mpi_libraries.read_elf(file)
        assert elf is None or (elf.needed == () and not elf.exports("MPI_Send"))
    assert mpi_libraries.read_elf(tmp_path) is None


def test_every_prefix_of_a_library_is_refused_or_read(make, tmp_path):
    whole = make("libmpi.so.12", MPI_4).read_bytes()
    file = tmp_path / "cut"
    for size in range(0, len(whole), 97):
        file.write_bytes(whole[:size])
        mpi_libraries.read_elf.cache_clear()
        if elf := mpi_libraries.read_elf(file):
            assert elf.exports("MPI_Send_c") in (True, False)


def test_the_programs_own_library_comes_first(make, program, tmp_path):
    launcher = make_launcher(tmp_path / "theirs")
    make("theirs/lib/libmpi.so.12", MPI_4)
    own = make("own/lib/libmpi.so.12", MPI_4)
    app = program(own, f"-Wl,-rpath,{own.parent}")
    assert find_library(launcher, ["-n", "2", str(app)], "mpich").path == own
    assert find_library(launcher, ["-n", "2", "env", "A=1", str(app)], "mpich").path == own
    script = find_library(launcher, ["-n", "2", "sh", "script"], "mpich").path
    assert script == tmp_path / "theirs/lib/libmpi.so.12"


def test_a_program_linked_with_the_other_name(make, program, tmp_path):
    launcher = make_launcher(tmp_path / "theirs")
    theirs = make("theirs/lib/libmpich.so.12", MPI_4)
    elsewhere = make("gone/libmpi.so.12", MPI_4)
    app = program(elsewhere, "-Wl,-z,nodefaultlib")  # some systems have one in their folders
    elsewhere.unlink()
    assert find_library(launcher, [str(app)], "mpich") == Library("libmpich.so.12", theirs)


def test_a_library_is_known_by_its_own_soname(make, program, tmp_path):
    """Not by that of a link to it: the loader would load a second one for programs of the link."""
    whole = make("theirs/lib/libmpich.so.12", MPI_4)
    link = whole.with_name("libmpi.so.12")
    link.symlink_to(whole.name)
    launcher = make_launcher(tmp_path / "theirs")
    assert find_library(launcher, [], "mpich") == Library("libmpich.so.12", link)
    named = make("other_names/libmpi.so.12")
    app = program(named, f"-Wl,-rpath,{link.parent}")
    library = find_library(launcher, [str(app)], "mpich")
    assert library == Library("libmpich.so.12", link)
    assert mpi_libraries.other_names(library, [tmp_path]) == [named]


def test_a_program_of_another_mpi(make, program, tmp_path):
    launcher = make_launcher(tmp_path / "theirs")
    own = make("own/lib/libmpi.so.40")
    app = program(own, f"-Wl,-rpath,{own.parent}")
    with pytest.raises(RunError, match=r"linked with Open MPI .*libmpi.so.40.* of MPICH"):
        find_library(launcher, [str(app)], "mpich")


def test_the_standard_abi_is_found_by_the_program(make, program, tmp_path):
    launcher = make_launcher(tmp_path / "theirs")
    make("theirs/lib/libmpi.so.12", FEATURES)
    own = make("theirs/lib/libmpi_abi.so.1", FEATURES)
    app = program(own, f"-Wl,-rpath,{own.parent}")
    assert find_library(launcher, [str(app)], "mpich").family == "abi"
    assert find_library(launcher, ["python"], "abi").path == own


def test_mpi4py_beside_an_interpreter(make, tmp_path):
    own = make("own/lib/libmpi_abi.so.1", FEATURES)
    (tmp_path / "venv/bin").mkdir(parents=True)
    python = tmp_path / "venv/bin/python3"
    shutil.copy(shutil.which("env") or "", python)
    make("venv/lib/python3.12/site-packages/mpi4py/MPI.cpython.so", needed=own)
    os.environ["LD_LIBRARY_PATH"] = str(own.parent)
    try:
        assert find_library(make_launcher(tmp_path / "x"), [str(python)], "mpich").path == own
    finally:
        del os.environ["LD_LIBRARY_PATH"]


def test_the_module_has_the_functions_that_the_library_has(make, tmp_path):
    old = Library("libmpi.so.12", make("old/lib/libmpi.so.12", MPI_4))
    new = Library("libmpi.so.12", make("new/lib/libmpi.so.12", FEATURES))
    folder = tmp_path / "modules"
    first = make("modules/libwirepress_mpi_mpich.so", MPI_4, needed=old.path)
    assert module_for(old, [folder]) == first
    with pytest.raises(
        RunError, match=r"for other versions of it\. This command builds one, once: "
    ):
        module_for(new, [folder])
    second = make("modules/libwirepress_mpi_mpich5.so", FEATURES, needed=new.path)
    assert module_for(old, [folder]) == first and module_for(new, [folder]) == second
    assert module_for(Library("libmpi.so.12"), [folder]) == first  # nothing else is known


@pytest.mark.parametrize("error", [PermissionError, RuntimeError])
def test_a_home_that_cannot_be_used(error, monkeypatch):
    """One without a ticket, or of a user that the system does not know: it has but a cache."""

    def no_home():
        raise error

    monkeypatch.delenv("WIREPRESS_LIB_DIR", raising=False)
    monkeypatch.setattr(mpi_libraries, "cache_dir", no_home)
    assert mpi_libraries.library_dirs() == mpi_libraries.shipped_dirs()


def test_no_module_at_all(make, tmp_path):
    path = make("usr/lib/libmpi_abi.so.1", FEATURES)
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/mpicc_abi").touch(mode=0o755)
    with pytest.raises(RunError, match=r"serves .*libmpi_abi.* setup-mpi --mpicc .*/mpicc_abi$"):
        module_for(Library("libmpi_abi.so.1", path), [tmp_path / "usr"])
    with pytest.raises(RunError, match=r"serves MPICH\. .*--mpicc PATH"):
        module_for(Library("libmpich.so.12"), [tmp_path / "usr"])


def test_the_library_is_preloaded_by_path_and_under_its_other_name(make, tmp_path):
    """So that the loader looks beside the library for what that needs, and programs find it."""
    library = Library("libmpi.so.12", make("usr/lib/libmpi.so.12", MPI_4))
    module = make("modules/libwirepress_mpi_mpich.so", MPI_4, needed=library.path)
    other = make("modules/other_names/libmpich.so.12")
    make("modules/other_names/libmpi.so.12")
    found = mpi_libraries.preloaded(library, [module.parent])
    assert found == [module, library.path, other]
    assert mpi_libraries.preloaded(Library("libmpi.so.12"), [module.parent]) == [module]


def test_a_path_that_the_loader_would_split_is_refused(make):
    library = Library("libmpi.so.12", make("my mpi/lib/libmpi.so.12", MPI_4))
    module = make("modules/libwirepress_mpi_mpich.so", MPI_4, needed=library.path)
    with pytest.raises(RunError, match=r"my mpi/lib/libmpi.so.12 cannot be preloaded"):
        mpi_libraries.preloaded(library, [module.parent])
