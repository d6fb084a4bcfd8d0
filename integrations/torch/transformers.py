# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer: compressed gradients, whose state goes into its checkpoints.

from wirepress.torch.transformers import compress
trainer = Trainer(model, arguments, train_dataset=data)
compress(trainer, "int8")
trainer.train()
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wirepress.errors import ParameterError
from wirepress.torch import checkpoints
from wirepress.torch import compress as compress_ddp
from wirepress.torch.ddp import State

try:
    import transformers as hugging
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint
except ImportError:
    raise ImportError(
        "wirepress.torch.transformers needs the Trainer of Hugging Face Transformers: "
        "pip install transformers accelerate"
    ) from None


def compress(
    trainer: hugging.Trainer,
    method: str = "int8",
    *,
    summary: bool = True,
    strict: bool = True,
    **knobs: Any,
) -> Compress:
    """Makes a Trainer, of any class derived from it, exchange gradients in compressed form.

    Call it on all ranks before `trainer.train()`. Each checkpoint gets a file for each rank, and
    `trainer.train(resume_from_checkpoint=...)` reads it.

    Args:
        method: of `wirepress.torch.compress`.
        summary: give `trainer.log` at the end of training how much smaller gradients were.
        strict: refuse a checkpoint without the state of each rank, or with one of other settings or
            ranks. False: error feedback begins anew then.
        **knobs: of `wirepress.torch.compress`.

    Returns:
        The callback; its `state` has `statistics()`.

    Raises:
        ParameterError: one process, FSDP, DeepSpeed; from `train` what `wirepress.torch.compress`
            raises.
    """
    if trainer.is_fsdp_enabled:
        raise ParameterError(checkpoints.SHARDED)
    if trainer.is_deepspeed_enabled:
        raise ParameterError(
            "DeepSpeed exchanges gradients itself; wirepress compresses those of "
            "DistributedDataParallel"
        )
    if trainer.args.world_size == 1:
        raise ParameterError(checkpoints.SINGLE)
    if any(isinstance(each, Compress) for each in trainer.callback_handler.callbacks):
        raise ParameterError("this Trainer has been given to wirepress already")
    callback = Compress(trainer, method, summary, strict, knobs)
    trainer.add_callback(callback)
    others = trainer.callback_handler.callbacks
    others.insert(0, others.pop())  # at the end it logs, before loggers close
    return callback


class Compress(hugging.TrainerCallback):
    """The callback that `compress` adds."""

    def __init__(
        self,
        trainer: hugging.Trainer,
        method: str,
        summary: bool,
        strict: bool,
        knobs: dict[str, Any],
    ) -> None:
        self.state: State | None = None
        self._trainer, self._method, self._knobs = trainer, method, knobs
        self._summary, self._strict = summary, strict
        self._model: Any = None
        self._resume: Any = None
        self._train = trainer.train
        # A callback is not told which checkpoint training goes on from.
        trainer.train = self._begin  # type: ignore[method-assign]

    def _begin(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        self._resume = resume_from_checkpoint
        try:
            return self._train(resume_from_checkpoint, *args, **kwargs)
        finally:
            self._model = None  # after an error other ranks may not come to close

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After the model was wrapped."""
        if state.is_hyper_param_search:
            raise ParameterError("wirepress is not made for a Trainer's hyperparameter search")
        wrapped = checkpoints.ddp_model(self._trainer.model_wrapped)
        if wrapped is self._model:
            return
        if self.state and self._model is not None:  # training began anew with smaller batches
            self.state.close()
        self._model = wrapped
        self.state = compress_ddp(wrapped, self._method, **self._knobs)
        if self._resume not in (None, False):
            folder = get_last_checkpoint(args.output_dir) if self._resume is True else self._resume
            checkpoints.load_file(self.state, folder, wrapped.process_group, strict=self._strict)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if args.save_only_model or self._model is None or self.state is None:
            return
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        checkpoints.save_file(self.state, folder, self._model.process_group)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ends threads and process groups; `state.statistics()` still answers."""
        if self._model is None or self.state is None:
            return
        if self._summary:
            self._trainer.log(checkpoints.metrics(self.state))
        self.state.close()
        self._model = None
        self._trainer.model_wrapped = self._trainer.model  # which train() wraps anew
