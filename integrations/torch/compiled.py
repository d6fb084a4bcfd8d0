# SPDX-License-Identifier: Apache-2.0
"""Models and names as they are without torch.compile."""

from __future__ import annotations

from typing import Any

import torch


def own_name(name: str) -> str:
    """Of a parameter or module, without what torch.compile puts into it."""
    return ".".join(word for word in name.split(".") if word != "_orig_mod")


def uncompiled(model: Any) -> Any:
    """What torch.compile made the model of, or the model itself."""
    while isinstance(model, torch.nn.Module) and "_orig_mod" in model._modules:
        model = model._modules["_orig_mod"]
    return model
