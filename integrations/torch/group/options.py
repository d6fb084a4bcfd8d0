# SPDX-License-Identifier: Apache-2.0
"""Settings of process groups, and what they count."""

from __future__ import annotations

import dataclasses

import wirepress
from wirepress.torch.packer import AUTO

NAME = "wirepress"  # of the backend


@dataclasses.dataclass(frozen=True)
class GroupOptions:
    """Settings of a process group, the same on all its ranks: `pg_options` of PyTorch.

    Attributes:
        recipe: codecs, as elsewhere. "auto": without loss, by the type of the data. A lossy one
            holds for sums of floats; what is only moved (broadcast, all_gather ...) never loses.
        threshold: tensors below so many bytes go raw.
        adaptive: go raw where that was faster, for each kind and size of operation. Sums of more
            than two ranks may then be added in another order, as raw ones are.
        threads: that encode and decode.
    """

    recipe: str = ""
    threshold: int = -1
    adaptive: bool = True
    threads: int = 1

    def settled(self) -> GroupOptions:
        """With what is open from the library's options torch_recipe and torch_threshold, which
        WIREPRESS_TORCH_RECIPE and WIREPRESS_TORCH_THRESHOLD set."""
        library = wirepress.Compressor()
        recipe = self.recipe or library.option("torch_recipe")[0] or AUTO
        threshold = self.threshold
        if threshold < 0:
            threshold = int(library.number("torch_threshold"))
        return dataclasses.replace(self, recipe=recipe, threshold=threshold)


@dataclasses.dataclass(frozen=True)
class Numbered(GroupOptions):
    number: int = 0


@dataclasses.dataclass
class Traffic:
    """What one kind of operation sent from this rank, as seen above gloo; sizes are bytes."""

    calls: int = 0
    compressed_calls: int = 0
    raw_bytes: int = 0
    """What would have been sent without compression."""
    wire_bytes: int = 0
    """What was sent."""

    @property
    def ratio(self) -> float:
        return self.raw_bytes / self.wire_bytes if self.wire_bytes else 1.0
