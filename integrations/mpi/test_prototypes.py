# SPDX-License-Identifier: Apache-2.0
"""The wrappers compile against every mpi.h whose functions are called as the standard says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# All of MPI 4.1, which not every MPI here has yet; MPICH 4.2 declares them without const.
HEADER = """
#include_next <mpi.h>
#define MPI_Request_get_status_all tested_all
#define MPI_Request_get_status_any tested_any
#define MPI_Request_get_status_some tested_some
extern "C" int MPI_Request_get_status_all(int, @ MPI_Request[], int*, MPI_Status[]);
extern "C" int MPI_Request_get_status_any(int, @ MPI_Request[], int*, int*, MPI_Status*);
extern "C" int MPI_Request_get_status_some(int, @ MPI_Request[], int*, int[], MPI_Status[]);
extern "C" int PMPI_Request_get_status_any(int, @ MPI_Request[], int*, int*, MPI_Status*);
extern "C" int PMPI_Request_get_status_some(int, @ MPI_Request[], int*, int[], MPI_Status[]);
"""
NAMES = [f"MPI_Request_get_status_{which}" for which in ("all", "any", "some")]


def compiled(mpi, folder: Path, header: str) -> subprocess.CompletedProcess[str]:
    """integrations/mpi/calls/completion.cpp with this text as mpi.h, checked only."""
    (folder / "mpi.h").write_text(header)
    shown = subprocess.run(
        [f"mpicc.{mpi.name}", "-show"], capture_output=True, text=True, check=True
    )
    includes = [f"-isystem{path}" for path in re.findall(r"-I(\S+)", shown.stdout)]
    macros = [f"-DWPR_MPI_GET_STATUS_{which}" for which in ("ALL", "ANY", "SOME")]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Iinclude",
               "-Iintegrations/mpi", f"-I{folder}", *includes, *macros, "-DOMPI_SKIP_MPICXX",
               "-DMPICH_SKIP_MPICXX", "integrations/mpi/calls/completion.cpp"]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("const", ["const", ""])
def test_const_or_not(mpi, tmp_path, const):
    done = compiled(mpi, tmp_path, HEADER.replace("@", const))
    assert done.returncode == 0, done.stderr


def test_refuses_other_parameters(mpi, tmp_path):
    done = compiled(mpi, tmp_path, HEADER.replace("@ MPI_Request[], int*", "MPI_Request[], long*"))
    assert done.returncode != 0
    for name in NAMES[:2]:
        assert f"{name} has other parameters in this mpi.h" in done.stderr
