# SPDX-License-Identifier: Apache-2.0
"""PyTorch: gradients and other tensors, smaller on the wire.

    model = DistributedDataParallel(model)
    state = wirepress.torch.compress(model, "int8")

Needs PyTorch and NumPy. See `compress` for the methods.
"""

from wirepress.torch.ddp import Settings, State, compress

__all__ = ["Settings", "State", "compress"]
