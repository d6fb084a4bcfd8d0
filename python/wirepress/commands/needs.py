# SPDX-License-Identifier: Apache-2.0
"""Packages that only some commands need."""

from __future__ import annotations

import importlib

_INSTALL = {
    "matplotlib": "matplotlib: pip install matplotlib (or wirepress[plot])",
    "numpy": "NumPy: pip install numpy",
    "plotly": "plotly: pip install plotly (or wirepress[report])",
}


def need(package: str, what: str) -> None:
    """Raises ImportError with what to install where `what` cannot work without the package."""
    try:
        importlib.import_module(package)
    except ImportError:
        raise ImportError(f"{what} needs {_INSTALL[package]}") from None
