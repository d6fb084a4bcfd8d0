# SPDX-License-Identifier: Apache-2.0
"""Tensors and options as PyTorch gives them to a group, and gloo's view of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from wirepress.torch.memory import Pairs, copies, in_a_row, shares_elements

CPU = torch.device("cpu")
_OLD_NAMES = {
    "all_gather_single": "_allgather_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "all_to_all_single": "alltoall_base",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}
_PYTHON = torch._C.DispatchKey.Python  # of tensors without memory, as in tracing


def gloo_group(store: dist.Store, name: str, rank: int, size: int, timeout: timedelta) -> Any:
    """A group of PyTorch's own, so that it takes and refuses what any gloo group does."""
    store = dist.PrefixStore(f"{name}/", store)
    group = dist.ProcessGroup(store, rank, size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(CPU, kind, dist.ProcessGroupGloo(store, rank, size, timeout))
    group._set_default_backend(kind)
    return group


def method_of(group: Any, method: str) -> Any:
    """The method, by the name that this PyTorch has for it."""
    return getattr(group, method, None) or getattr(group, _OLD_NAMES[method])


def settled_options(given: Any, kind: type) -> Any:
    """What was given, or the default; PyTorch lets a caller give an operation or a root instead."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    made = kind()
    setattr(made, "reduceOp" if hasattr(made, "reduceOp") else "rootRank", given)
    return made


def tensor_list(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def tensor_lists(tensors: Any) -> list[list[torch.Tensor]]:
    if tensors and isinstance(tensors[0], torch.Tensor):
        return [list(tensors)]
    return [list(each) for each in tensors or []]


def usual(tensors: Sequence[Any]) -> bool:
    """Whether these are tensors of one type and device whose values lie in memory of the CPU or of
    a CUDA device."""
    return bool(tensors) and all(
        (t.is_cpu or t.is_cuda)
        and t.device == tensors[0].device
        and t.layout == torch.strided
        and t.dtype == tensors[0].dtype
        and not t.is_quantized
        and (type(t) is torch.Tensor or not torch._C._dispatch_keys(t).has(_PYTHON))
        for t in tensors
    )


def in_memory_order(tensor: torch.Tensor) -> bool:
    """What gloo calls contiguous; channels may come last."""
    return tensor.is_contiguous() or any(
        tensor.dim() == n and tensor.is_contiguous(memory_format=form)
        for n, form in ((4, torch.channels_last), (5, torch.channels_last_3d))
    )


def n_bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.nbytes for t in tensors if t.layout == torch.strided)


def check_dimensions(kind: str, *tensors: torch.Tensor) -> None:
    """Raises where a tensor has no first dimension: gloo reads it all the same, and may crash."""
    if not all(tensor.dim() for tensor in tensors):
        raise RuntimeError(f"wirepress: {kind}: a tensor without dimensions cannot be cut")


def results_of(kind: str, tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Pairs]:
    """Rooms in one row for tensors that get results, and those that have to be copied back."""
    for tensor in tensors:
        if shares_elements(tensor):
            raise RuntimeError(
                f"wirepress: {kind}: elements of a result share memory (shape "
                f"{list(tensor.shape)}, strides {list(tensor.stride())}): give a clone of it"
            )
    rooms = [in_a_row(tensor) for tensor in tensors]
    return rooms, copies(rooms, tensors)


def flat_of(rooms: Sequence[torch.Tensor]) -> torch.Tensor:
    """The values of all in one dimension: a copy where there are several."""
    parts = [room.view(-1) for room in rooms]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def deal_out(flat: torch.Tensor, rooms: Sequence[torch.Tensor]) -> None:
    for part, room in zip(flat.split([room.numel() for room in rooms]), rooms, strict=True):
        room.view(-1).copy_(part)
