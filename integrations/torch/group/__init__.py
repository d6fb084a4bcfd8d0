# SPDX-License-Identifier: Apache-2.0
"""Process groups whose tensors are smaller on the wire: the backend "wirepress"."""

from __future__ import annotations

import collections
import weakref
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from wirepress.errors import ParameterError
from wirepress.torch.group.collectives import CompressedGroup, stay_uncompiled
from wirepress.torch.group.options import NAME, GroupOptions, Numbered, Traffic
from wirepress.torch.transport import timeout_of

__all__ = ["CompressedGroup", "GroupOptions", "Traffic", "register", "statistics", "wrap_group"]


def _create(options: Any, group_options: Any) -> CompressedGroup:
    if not isinstance(group_options, (GroupOptions, type(None))):
        raise ParameterError(
            f"pg_options of the backend wirepress: wirepress.torch.GroupOptions, not "
            f"{type(group_options).__name__}"
        )
    stay_uncompiled()
    return CompressedGroup(
        options.store, options.group_rank, options.group_size, options.timeout, group_options
    )


def register() -> None:
    """Makes the backend "wirepress" known to PyTorch."""
    if NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])


def wrap_group(
    group: dist.ProcessGroup | None = None,
    recipe: str = "",
    *,
    threshold: int = -1,
    adaptive: bool = True,
    threads: int = 1,
    timeout: timedelta | None = None,
) -> dist.ProcessGroup:
    """A group of the same ranks that compresses; call it on all of them.

    It has connections of its own; `group` (None: all ranks) is used no more than before. `timeout`:
    None: the group's. See `GroupOptions` for the settings; "" and -1: from the environment.
    """
    register()
    ranks = dist.get_process_group_ranks(group)
    made = _MADE.setdefault(dist.group.WORLD, collections.Counter())
    made[tuple(ranks)] += 1
    return dist.new_group(
        ranks,
        backend=NAME,
        timeout=timeout or timeout_of(group or dist.group.WORLD),
        pg_options=Numbered(recipe, threshold, adaptive, threads, made[tuple(ranks)]),
        use_local_synchronization=len(ranks) < dist.get_world_size(),
    )


# How many groups of some ranks were made. PyTorch gives a group of not all ranks the name of an
# older one that is gone, whose addresses are still in the store.
_MADE: Any = weakref.WeakKeyDictionary()


def statistics(group: dist.ProcessGroup | None = None) -> dict[str, Traffic]:
    """What a group sent, by kind of operation ("all_reduce", "broadcast" ...).

    Raises:
        ParameterError: not a group of the backend wirepress.
    """
    found = group if group is not None else dist.group.WORLD
    if not isinstance(found, CompressedGroup):
        raise ParameterError('not a group of the backend "wirepress": nothing was counted')
    return found.statistics
