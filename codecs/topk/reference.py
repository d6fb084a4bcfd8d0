# SPDX-License-Identifier: Apache-2.0
"""topk: the largest values of a block."""

from pathlib import Path
from runpy import run_path

PARAMS = ((1e-9, 1.0),)  # ratio
TYPES = ("float32",)
SHARED = Path(__file__).parents[1] / "common" / "sparse" / "reference.py"

decode = run_path(str(SHARED))["decode"]
