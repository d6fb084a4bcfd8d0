# SPDX-License-Identifier: Apache-2.0
"""PyTorch Lightning: a callback that compresses the gradients of a DDP strategy.

    from wirepress.torch.lightning import Compress
    trainer = Trainer(strategy="ddp", devices=4, callbacks=[Compress("int8")])

For everything that a process group carries, `import wirepress.torch` and take
`DDPStrategy(process_group_backend="wirepress")`. Works with the packages lightning and
pytorch_lightning: of both, the one that the program has imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from wirepress.errors import ParameterError
from wirepress.torch import checkpoints
from wirepress.torch.ddp import State, compress

if TYPE_CHECKING:
    from lightning import pytorch as pl
elif sys.modules.get("pytorch_lightning") and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as pl
else:
    try:
        from lightning import pytorch as pl
    except ImportError:
        try:
            import pytorch_lightning as pl
        except ImportError:
            raise ImportError(
                "wirepress.torch.lightning needs PyTorch Lightning: pip install lightning"
            ) from None

_KEY = "wirepress"  # in a checkpoint


class Compress(pl.Callback):
    """Sends gradients in compressed form, as `wirepress.torch.compress`, while `Trainer.fit` runs.

    Args:
        method: of `wirepress.torch.compress`.
        summary: say at the end how much smaller gradients were, and give the numbers to the
            Trainer's loggers.
        strict: refuse a checkpoint without the state of each rank, or with one of other settings or
            ranks. False: error feedback begins anew then.
        **knobs: of `wirepress.torch.compress`.

    Checkpoints hold the states of all ranks, which rank 0 gathers: about 4 bytes for each value of
    the gradient and rank, with codecs that have error feedback.

    Raises (from `fit`):
        ParameterError: the strategy is none of DDP; there is one process; what
            `wirepress.torch.compress` raises.
    """

    def __init__(
        self, method: str = "int8", *, summary: bool = True, strict: bool = True, **knobs: Any
    ) -> None:
        self.method, self.knobs = method, knobs
        self.summary, self.strict = summary, strict
        self.state: State | None = None
        self._group: Any = None
        self._open = False
        self._saved: list[Any] | None = None  # of the checkpoint that fit goes on from

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """After the strategy wrapped the model."""
        strategy = trainer.strategy
        if trainer.world_size == 1:
            raise ParameterError(f"{type(strategy).__name__}: {checkpoints.SINGLE}")
        assert strategy.model is not None
        try:
            model = checkpoints.ddp_model(strategy.model)
        except ParameterError as error:
            raise ParameterError(f"{type(strategy).__name__}: {error}") from None
        self._group = model.process_group
        self.state = compress(model, self.method, **self.knobs)
        self._open = True
        if trainer.ckpt_path is not None:
            self._restore(trainer.ckpt_path)

    def _restore(self, path: Any) -> None:
        assert self.state
        saved: Any = (
            f"{path} holds no state of wirepress: it was saved without this callback, or after fit "
            f"had ended. Compress(strict=False) begins with nothing remembered"
        )
        if self._saved is not None:
            saved = checkpoints.own_of(self._saved, self._group, self.strict)
        self._saved = None
        checkpoints.load(self.state, saved, self._group, self.strict)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """On all ranks; rank 0 writes the file."""
        if not self._open:
            if self.state:
                pl.utilities.rank_zero_warn(
                    "wirepress: this checkpoint is saved after fit has ended, and holds no "
                    "residuals: training cannot go on from it with the same bits"
                )
            return
        assert self.state
        states = checkpoints.gather(self.state, self._group)
        if states is not None:
            checkpoint[_KEY] = states

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Before the strategy wraps the model: kept until it has."""
        self._saved = checkpoint.get(_KEY)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self.summary or not self.state:
            return
        pl.utilities.rank_zero_info(checkpoints.summary(self.state))
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.log_metrics(checkpoints.metrics(self.state), step=trainer.global_step)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Ends threads and process groups; `state.statistics()` still answers."""
        if self._open and self.state:
            self._open = False
            self.state.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Other ranks may not come to close with this one: what is open ends with the model."""
        self._open, self.state = False, None
