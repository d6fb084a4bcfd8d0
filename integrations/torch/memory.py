# SPDX-License-Identifier: Apache-2.0
"""The memory of tensors, in one row for whoever sends it."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """The values in contiguous memory, without autograd and lazy signs: the tensor's own memory
    where it is that, else a copy.

    The result has a version counter of its own: writing to it is for autograd as when gloo writes.
    """
    data = tensor.data
    if data.is_contiguous() and not data.is_neg() and not data.is_conj():
        return data
    return data.resolve_conj().resolve_neg().contiguous()


def shares_elements(tensor: torch.Tensor) -> bool:
    """Whether several elements lie at one place, as in an expanded tensor."""
    return not tensor.is_contiguous() and any(
        step == 0 and n > 1 for step, n in zip(tensor.stride(), tensor.shape, strict=True)
    )


Pairs = Sequence[tuple[torch.Tensor, torch.Tensor]]


def copies(rooms: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Pairs:
    """Those tensors, with their rooms, whose room is a copy."""
    return [
        (room, tensor)
        for room, tensor in zip(rooms, tensors, strict=True)
        if room.data_ptr() != tensor.data_ptr()
    ]


def copy_back(pairs: Pairs) -> None:
    """Gives tensors the values of their rooms."""
    with torch.inference_mode():  # the tensors may have been made in it
        for room, tensor in pairs:
            tensor.data.copy_(room)
