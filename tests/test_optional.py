# SPDX-License-Identifier: Apache-2.0
"""Where an optional package is not installed, tests that need it are skipped; no other fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = (
    "accelerate",
    "cramjam",
    "h5netcdf",
    "h5py",
    "hypothesis",
    "lightning",
    "lz4",
    "matplotlib",
    "ml_dtypes",
    "mpi4py",
    "netCDF4",
    "numcodecs",
    "playwright",
    "plotly",
    "pyrevolve",
    "simgrid",
    "sklearn",
    "snappy",
    "torch",
    "transformers",
    "xarray",
    "zarr",
    "zstandard",
)
# Python does not find these packages; what pytest seeks in a folder of its own it still finds.
WITHOUT = """
import importlib.machinery, sys
hidden, find = sys.argv[1].split(","), importlib.machinery.PathFinder.find_spec
def find_spec(cls, name, path=None, target=None):
    return None if path is None and name in hidden else find(name, path, target)
importlib.machinery.PathFinder.find_spec = classmethod(find_spec)
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""


def without(packages: str, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """pytest where these packages are not installed."""
    # plug-ins come from such packages, too
    settings = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, packages, *words],
        cwd=root,
        env=settings,
        capture_output=True,
        text=True,
    )


def check_collected(packages: str, root: Path) -> None:
    done = without(packages, root, "--collect-only", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_without_any(root):
    check_collected(",".join(PACKAGES), root)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["h5py", "ml_dtypes", "numcodecs", "plotly", "torch"])
def test_without_one(package, root):
    """Others that stand on it are there."""
    check_collected(package, root)


def test_a_folder_is_not_taken_for_the_package(root):
    """That integrations/torch was collected before does not make an `import torch` succeed."""
    tests = ["integrations/torch/test_ddp.py", "integrations/zarr/test_zarr.py"]
    tests.append("python/tests/test_refusals.py::test_tensors_that_are_no_memory")
    done = without("torch,zarr", root, "-rs", "-p", "no:cacheprovider", *tests)
    assert "3 skipped" in done.stdout and "failed" not in done.stdout, done.stdout + done.stderr
