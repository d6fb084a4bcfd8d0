# SPDX-License-Identifier: Apache-2.0
"""Messages of any size between real ranks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from wirepress.torch.transport import Post  # noqa: E402


def message(source: int, target: int) -> torch.Tensor:
    return torch.full(((source * 7 + target * 3) % 10,), source * 16 + target, dtype=torch.uint8)


def post_all() -> tuple[list[list[int]], list[list[int]]]:
    post = Post(dist.group.WORLD)
    parts = [message(post.rank, target) for target in range(post.size)]
    scattered, _ = post.all_to_all(torch.cat(parts), [part.numel() for part in parts])
    gathered, _ = post.all_gather(message(post.rank, 0))
    return [part.tolist() for part in scattered], [part.tolist() for part in gathered]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_parts_of_all_sizes_arrive(on_ranks: Callable[..., list[Any]], n: int) -> None:
    for rank, (scattered, gathered) in enumerate(on_ranks(post_all, n)):
        assert scattered == [message(source, rank).tolist() for source in range(n)]
        assert gathered == [message(source, 0).tolist() for source in range(n)]


def die_or_wait() -> str:
    dist.barrier()  # a rank may leave init_process_group() while others still connect to it
    if dist.get_rank() == 1:
        os._exit(3)
    try:
        Post(dist.group.WORLD).all_gather(torch.zeros(10, dtype=torch.uint8))
    except RuntimeError as error:
        return str(error)
    return "no error"


def test_a_dead_rank_is_an_error_of_torch(on_ranks: Callable[..., list[Any]]) -> None:
    [said, _] = on_ranks(die_or_wait, 2, dying={1})
    assert "closed by peer" in said or "Connection" in said
