# SPDX-License-Identifier: Apache-2.0
"""What all ranks of a group must agree on, and states of all ranks in one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import torch.distributed as dist
from wirepress.errors import ParameterError
from wirepress.torch.transport import store_of, timeout_of

_SILENCE = timedelta(seconds=30)  # of a wait, before it is told


def await_everyone(call: str, group: dist.ProcessGroup) -> None:
    """Waits until all ranks of `group` make the same call.

    By the store: a collective would wait without a word for a rank that does not call, or would
    meet another collective of that rank.

    Raises:
        ParameterError: some did not within the group's timeout; it names them.
    """
    store, rank, limit = store_of(group), dist.get_rank(group), timeout_of(group)
    calls = f"wirepress/{call}/{rank}/calls"
    number = store.add(calls, 1)
    keys = [f"wirepress/{call}/{other}/{number}" for other in range(dist.get_world_size(group))]
    store.set(keys[rank], "here")
    try:
        store.wait(keys, min(limit, _SILENCE))
        return
    except RuntimeError:  # DistStoreError is one
        absent = [other for other, key in enumerate(keys) if not store.check([key])]
    missing = f"{call} is a collective call, and ranks {absent} of {len(keys)} have not made it"
    if limit > _SILENCE:
        warnings.warn(f"{missing} in {_SILENCE.seconds} s: waiting for them", stacklevel=3)
        try:
            store.wait(keys, limit - _SILENCE)
            return
        except RuntimeError:
            pass
    store.add(calls, -1)
    store.delete_key(keys[rank])
    raise ParameterError(f"{missing} in {limit.total_seconds():g} s, the timeout of the group")


def gathered(mine: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """What every rank gives, pickled on its way, by rank. A collective call."""
    everyone: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, mine, group=group)
    return everyone


def check_alike(mine: Mapping[str, Any], group: dist.ProcessGroup | None = None) -> None:
    """Raises ParameterError on all ranks where the values of a key differ. A collective call."""
    everyone = gathered(dict(mine), group)
    for rank, other in enumerate(everyone):
        for key, value in everyone[0].items():
            if other.get(key) != value:
                raise ParameterError(
                    f"ranks differ in {key}: {value!r} on rank 0, {other.get(key)!r} on rank {rank}"
                )


def first_problem(mine: str, group: dist.ProcessGroup | None = None) -> str:
    """What the first rank with a problem says ("": none has one), on all ranks. A collective
    call."""
    everyone: list[str] = gathered(mine, group)
    for rank, said in enumerate(everyone):
        if said:
            return said if said == mine else f"rank {rank}: {said}"
    return ""


def full(mine: Mapping[str, Any], group: dist.ProcessGroup | None = None) -> dict[str, Any]:
    """The states of all ranks in one, on rank 0; {} on the others. A collective call."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    states: list[Any] | None = [None] * size if rank == 0 else None
    first = 0 if group is None else dist.get_global_rank(group, 0)
    dist.gather_object(dict(mine), states, dst=first, group=group)
    return {"format": mine["format"], "ranks": states} if states else {}


def own_part(saved: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    """What a state, of one rank or of all, has for this rank; of the last one where it lacks it."""
    if "ranks" not in saved:
        return saved
    states = saved["ranks"]
    part: Mapping[str, Any] = states[min(rank, len(states) - 1)] if states else {}
    return part


class _Saveable(Protocol):
    def full_state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, saved: Mapping[str, Any], *, strict: bool = True) -> None: ...


class FullState:
    """A state whose `state_dict` holds all ranks, for programs that save on rank 0 only.

        state = wirepress.torch.compress(model, "int4")
        accelerator.register_for_checkpointing(wirepress.torch.FullState(state))

    Args:
        state: what `compress` or `compress_fsdp` returned.
        strict: as of `load_state_dict`.

    Both methods are collective calls: every rank makes them, in between steps.
    """

    def __init__(self, state: _Saveable, *, strict: bool = True) -> None:
        self.state, self.strict = state, strict

    def state_dict(self) -> dict[str, Any]:
        """The states of all ranks, on rank 0; {} on the others, which save nothing."""
        return self.state.full_state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what rank 0 saved, which every rank has read. Raises ParameterError."""
        self.state.load_state_dict(saved, strict=self.strict)
