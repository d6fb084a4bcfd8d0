# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with gradients in compressed form."""

from wirepress.torch.ddp.hook import State, compress
from wirepress.torch.ddp.settings import Settings

__all__ = ["Settings", "State", "compress"]
