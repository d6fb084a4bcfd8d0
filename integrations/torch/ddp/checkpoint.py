# SPDX-License-Identifier: Apache-2.0
"""What a rank saves of its hook, and whether what was saved fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from wirepress.torch.ddp.plan import Plan

_FORMAT = 1


def saved(plan: Plan, group: dist.ProcessGroup, step: int) -> dict[str, Any]:
    """What training needs to go on with the same bits; tensors are copies."""
    entries = {p.name: _on_host(p.saved()) for p in plan.parameters}
    return {
        "format": _FORMAT,
        "settings": dataclasses.asdict(plan.settings),
        "rank": dist.get_rank(group),
        "world_size": dist.get_world_size(group),
        "step": step,
        "choices": plan.choices(),
        "residuals": {name: entry for name, entry in entries.items() if entry},
    }


def _on_host(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals in memory of the CPU, wherever the gradients lie."""
    sums = {start: tensor.cpu() for start, tensor in entry.get("sums", {}).items()}
    own = {key: tensor.cpu() for key, tensor in entry.items() if key != "sums"}
    return {**own, "sums": sums} if sums else own


def problem(saved: Mapping[str, Any]) -> str:
    """What makes a saved state unusable; "": nothing."""
    if not saved:
        return "the saved state is empty: full_state_dict gives it on rank 0 only"
    if saved.get("format") != _FORMAT:
        return f"not a state that this version saved: format {saved.get('format')!r}"
    return ""


def difference(saved: Mapping[str, Any], plan: Plan, group: dist.ProcessGroup) -> str:
    """Why its residuals cannot be used here; "": they can."""
    mine = {
        "settings": _deciding(dataclasses.asdict(plan.settings)),
        "world_size": dist.get_world_size(group),
        "rank": dist.get_rank(group),
        "choices": plan.allowed(saved["choices"]),
    }
    saved = {**saved, "settings": _deciding(saved["settings"])}
    differ = [key for key, value in mine.items() if _plain_data(saved[key]) != _plain_data(value)]
    if differ == ["rank"]:
        return (
            f"the state was saved by rank {saved['rank']}, and this is rank {mine['rank']}: "
            f"save state_dict() on every rank, each its own, or full_state_dict() on rank 0"
        )
    if differ:
        return (
            f"saved with other {', '.join(differ)}: "
            + "; ".join(f"{key} {saved[key]!r}, now {mine[key]!r}" for key in differ[:2])
            + ". strict=False drops its residuals"
        )
    for name, entry in saved["residuals"].items():
        if not plan.named[name].takes(entry):
            return f'saved with another shape of "{name}". strict=False drops its residuals'
    return ""


def _deciding(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without the one that changes no bit."""
    return {key: value for key, value in settings.items() if key != "partition"}


def _plain_data(value: Any) -> Any:
    """Tuples as lists, as a checkpoint may have made them."""
    if isinstance(value, Mapping):
        return {key: _plain_data(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain_data(inner) for inner in value]
    return value
