# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate: compressed gradients, whose state goes into its checkpoints.

from wirepress.torch.accelerate import compress
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
state = compress(accelerator, model, "int8")
...                                             # train, save_state and load_state as always
state.close()
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from wirepress.errors import ParameterError
from wirepress.torch import checkpoints
from wirepress.torch import compress as compress_ddp
from wirepress.torch.checkpoints import metrics, summary
from wirepress.torch.ddp import State

try:
    import accelerate as hugging
except ImportError:
    raise ImportError(
        "wirepress.torch.accelerate needs Hugging Face Accelerate: pip install accelerate"
    ) from None

__all__ = ["compress", "metrics", "summary"]

_log = logging.getLogger(__name__)
_SHARDED = ("FSDP", "TP")
_OTHERS = ("DEEPSPEED", "MEGATRON_LM", "XLA")


def compress(
    accelerator: hugging.Accelerator,
    model: nn.Module,
    method: str = "int8",
    *,
    strict: bool = True,
    **knobs: Any,
) -> State:
    """Sends the gradients of a prepared model in compressed form, as `wirepress.torch.compress`.

    A collective call, after `accelerator.prepare` and before the first backward pass. From then on
    `accelerator.save_state` writes a file for each rank beside accelerate's own, and
    `accelerator.load_state` reads it: call both on all ranks, which is what accelerate asks for.

    Args:
        model: what `accelerator.prepare` returned for it.
        method: of `wirepress.torch.compress`.
        strict: refuse a checkpoint without the state of each rank, or with one of other settings or
            ranks. False: error feedback begins anew then.
        **knobs: of `wirepress.torch.compress`.

    Returns:
        The state; `close` it on all ranks before `accelerator.end_training()`.

    Raises:
        ParameterError: one process, another strategy than DDP, a model that was not prepared; what
            `wirepress.torch.compress` raises.
    """
    kind = accelerator.distributed_type.name
    if kind in _SHARDED:
        raise ParameterError(f"accelerate's {kind}: {checkpoints.SHARDED}")
    if kind in _OTHERS:
        raise ParameterError(
            f"accelerate's {kind} exchanges gradients itself; wirepress compresses those of "
            f"DistributedDataParallel"
        )
    if accelerator.num_processes == 1:
        raise ParameterError(checkpoints.SINGLE)
    ddp = getattr(model, "_orig_mod", model)
    if not isinstance(ddp, DistributedDataParallel) or _number(accelerator._models, ddp) is None:
        raise ParameterError(
            f"accelerator.prepare did not return this {type(model).__name__}; compress what it did"
        )
    state = compress_ddp(ddp, method, **knobs)
    _Saver(accelerator, ddp, state, strict)
    return state


def _number(models: Sequence[nn.Module], ddp: DistributedDataParallel) -> int | None:
    """Which of accelerate's models it is: they are what was wrapped, or the wrapped."""
    for number, each in enumerate(models):
        if getattr(each, "_orig_mod", each) in (ddp, getattr(ddp.module, "_orig_mod", ddp.module)):
            return number
    return None


class _Saver:
    """Hooks of save_state and load_state. They hold neither the model nor its state, which end
    with the program's own references."""

    def __init__(
        self,
        accelerator: hugging.Accelerator,
        model: DistributedDataParallel,
        state: State,
        strict: bool,
    ) -> None:
        self._model, self._state = weakref.ref(model), weakref.ref(state)
        self._strict = strict
        self._handles = [
            accelerator.register_save_state_pre_hook(self._save),
            accelerator.register_load_state_pre_hook(self._load),
        ]

    def _found(self, models: list[nn.Module]) -> tuple[State, Any, int] | None:
        """The state, the model's group and its number among accelerate's; None: it is gone."""
        model, state = self._model(), self._state()
        number = _number(models, model) if model is not None else None
        if model is None or state is None or number is None:
            for handle in self._handles:
                handle.remove()
            return None
        return state, model.process_group, number

    def _save(self, models: list[nn.Module], weights: Any, folder: str | os.PathLike[str]) -> None:
        if (found := self._found(models)) is None:
            return
        state, group, number = found
        try:
            checkpoints.save_file(state, folder, group, number)
        except ParameterError as error:
            if not _is_closed(state):
                raise
            _log.warning("%s is saved without wirepress's state: %s", folder, error)

    def _load(self, models: list[nn.Module], folder: str | os.PathLike[str]) -> None:
        if (found := self._found(models)) is not None:
            state, group, number = found
            checkpoints.load_file(state, folder, group, number, self._strict)


def _is_closed(state: State) -> bool:
    try:
        state.state_dict()
    except ParameterError:
        return True
    return False
