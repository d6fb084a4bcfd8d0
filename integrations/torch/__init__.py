# SPDX-License-Identifier: Apache-2.0
"""PyTorch: gradients and other tensors, smaller on the wire.

    model = DistributedDataParallel(model)
    state = wirepress.torch.compress(model, "int8")

or `compress_fsdp(model)` for a model that `fully_shard` wrapped, or, for everything that a process
group carries, `torch.distributed.init_process_group("wirepress")` after this import. Needs PyTorch
and NumPy. See `compress` for the methods, `GroupOptions` for the settings of groups.
"""

from typing import TYPE_CHECKING

from wirepress.torch.agreement import FullState
from wirepress.torch.ddp import Settings, State, compress
from wirepress.torch.fsdp import FsdpState, compress_fsdp
from wirepress.torch.group import GroupOptions, Traffic, register, statistics, wrap_group
from wirepress.torch.outer import OuterStep
from wirepress.torch.publish import WeightPublisher, WeightSubscriber
from wirepress.torch.torchft import CodedManager, manager
from wirepress.torch.tracer import Tracer, trace_buckets
from wirepress.torch.weights import load_file, save_file

if TYPE_CHECKING:
    from wirepress.torch.dcp import CheckpointReader, CheckpointWriter, register_dcp

__all__ = [
    "CheckpointReader",
    "CheckpointWriter",
    "CodedManager",
    "FsdpState",
    "FullState",
    "GroupOptions",
    "OuterStep",
    "Settings",
    "State",
    "Tracer",
    "Traffic",
    "WeightPublisher",
    "WeightSubscriber",
    "compress",
    "compress_fsdp",
    "load_file",
    "manager",
    "register_dcp",
    "save_file",
    "statistics",
    "trace_buckets",
    "wrap_group",
]

_OF_DCP = ("CheckpointReader", "CheckpointWriter", "register_dcp")


def __getattr__(name: str) -> object:
    """Loads torch.distributed.checkpoint, which takes as long as all else, when it is needed."""
    if name not in _OF_DCP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wirepress.torch import dcp

    return globals().setdefault(name, getattr(dcp, name))


register()
