# SPDX-License-Identifier: Apache-2.0
"""PyTorch: gradients and other tensors, smaller on the wire.

    model = DistributedDataParallel(model)
    state = wirepress.torch.compress(model, "int8")

or, for everything that a process group carries, `torch.distributed.init_process_group("wirepress")`
after this import. Needs PyTorch and NumPy. See `compress` for the methods, `GroupOptions` for the
settings of groups.
"""

from wirepress.torch.ddp import Settings, State, compress
from wirepress.torch.group import GroupOptions, Traffic, register, statistics, wrap_group

__all__ = [
    "GroupOptions",
    "Settings",
    "State",
    "Traffic",
    "compress",
    "statistics",
    "wrap_group",
]

register()
