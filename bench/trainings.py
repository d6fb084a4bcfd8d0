# SPDX-License-Identifier: Apache-2.0
"""The trainings of examples/, for torch_steps.py and convergence.py."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from typing import Any

from results import ROOT

EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))


def why_not(name: str = "") -> str:
    """Why this Python cannot train, "" if it can."""
    if importlib.util.find_spec("torch") is None:
        return "needs PyTorch (pip install torch)"
    if name == "cnn" and importlib.util.find_spec("sklearn") is None:
        return "needs scikit-learn (pip install scikit-learn)"
    return ""


def missing(program: str, name: str) -> bool:
    """Whether an example cannot be trained; says why."""
    if reason := why_not(name):
        print(f"{program}: {name}: {reason}", file=sys.stderr)
    return bool(reason)


def without_hook() -> bool:
    import wirepress

    spec = importlib.machinery.PathFinder.find_spec("wirepress.torch", wirepress.__path__)
    return spec is None


def version() -> str:
    return importlib.metadata.version("torch")


def program(name: str) -> str:
    return str(EXAMPLES / f"{name}_ddp" / "train.py")


def task_type(name: str) -> Any:
    """The class of an example, a ddp_common.training.Task."""
    spec = importlib.util.spec_from_file_location(f"{name}_ddp", program(name))
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, f"{name.capitalize()}Task")
