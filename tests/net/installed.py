# SPDX-License-Identifier: Apache-2.0
"""The MPIs of this machine, for tests that run on hosts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wirepress.launch.mpi_libraries import RunError, library_dirs, library_of_launcher, preloaded


def libraries_of(flavour: str) -> list[Path]:
    """What ranks preload with wirepress: its module, and the libraries of the MPI. Skips the test
    where the MPI or the module is not here."""
    for tool in (f"mpirun.{flavour}", f"mpicc.{flavour}"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    try:
        return preloaded(library_of_launcher(f"mpirun.{flavour}", flavour), library_dirs())
    except RunError as error:
        pytest.skip(str(error))
