# SPDX-License-Identifier: Apache-2.0
"""Messages of any size between real ranks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from wirepress import CorruptError  # noqa: E402
from wirepress.torch.transport import HEAD, PIECE, Mail, Post  # noqa: E402


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


SIZES = (0, 1, 1000, PIECE - HEAD, PIECE - HEAD + 1, 3 * PIECE + 5)


def letter(rank: int, number: int, to: int) -> torch.Tensor:
    """What rank says in its letter of that number, behind room for the head."""
    draw = torch.Generator().manual_seed(1000 * number + 10 * rank + to)
    size = HEAD + SIZES[(number + rank) % len(SIZES)]
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=draw)


def letters_of_all_sizes() -> tuple[list[bool], int, int]:
    """Letters to each rank its own, or one to all, asked for all at once and read backwards."""
    post = Post(dist.group.WORLD)
    mail, n = Mail(post), post.size
    asked = [mail.expect([max(SIZES)] * n) for _ in range(12)]
    for number, letters in enumerate(asked):
        if number % 2:
            letters.send_all(letter(post.rank, number, 0), 7 * number + post.rank)
        else:
            for to in range(n):
                letters.send(to, letter(post.rank, number, to), 7 * number + post.rank)
    same = []
    for number, letters in reversed(list(enumerate(asked))):
        came, flags = letters.wait()
        to = 0 if number % 2 else post.rank
        expected = [letter(rank, number, to)[HEAD:] for rank in range(n)]
        same.append(all(map(torch.equal, came, expected)))
        same.append(flags == [7 * number + rank for rank in range(n)])
        letters.finish()
    return same, post.sent, sum(letter(post.rank, k, 0).numel() for k in range(12)) * (n - 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_letters_of_all_sizes_arrive(on_ranks: Callable[..., list[Any]], n: int) -> None:
    for same, sent, expected in on_ranks(letters_of_all_sizes, n):
        assert all(same) and sent == expected


def a_letter_that_lies() -> str:
    post = Post(dist.group.WORLD)
    letters = Mail(post).expect([100] * post.size)
    said = torch.zeros(HEAD + 50, dtype=torch.uint8)
    letters.send_all(said, 0)
    letters.finish()
    letters._coming[1 - post.rank].wait()
    sizes = []
    for size in (-1, HEAD - 1, HEAD + 101, 1 << 62):
        letters._rooms[1 - post.rank][:8].view(torch.int64)[0] = size
        letters._coming[1 - post.rank] = Done()
        try:
            letters.wait()
        except CorruptError as error:
            sizes.append(f"it has {size} bytes" in str(error))
    return f"{len(sizes)} {all(sizes)}"


class Done:
    def wait(self) -> None:
        pass


def test_letters_of_sizes_that_cannot_be_are_refused(on_ranks: Callable[..., list[Any]]) -> None:
    assert on_ranks(a_letter_that_lies, 2) == ["4 True", "4 True"]


def small_letters_of_huge_bounds() -> bool:
    post = Post(dist.group.WORLD)
    letters = Mail(post).expect([1 << 50] * post.size)  # more than any process can ask for
    letters.send_all(torch.cat([torch.zeros(HEAD), torch.full((2 * PIECE,), 7)]).byte(), 3)
    came, flags = letters.wait()
    letters.finish()
    return flags == [3] * post.size and all(bool((part == 7).all()) for part in came)


def test_memory_is_taken_by_the_size_of_letters(on_ranks: Callable[..., list[Any]]) -> None:
    assert on_ranks(small_letters_of_huge_bounds, 2) == [True, True]


def dropped_before_it_came() -> float:
    """The processor's seconds in one second in which nothing is to be done."""
    post = Post(dist.group.WORLD)
    mail, store = Mail(post), dist.distributed_c10d._get_default_store()
    if post.rank == 0:
        mail.expect([PIECE] * 2)  # the job fails
        store.set("dropped", "")
    else:
        letters = mail.expect([PIECE] * 2)
        store.wait(["dropped"])
        letters.send(0, torch.zeros(PIECE, dtype=torch.uint8), 0)
    time.sleep(0.2)
    before = time.process_time()
    time.sleep(1)
    spent = time.process_time() - before
    dist.barrier()
    return spent


def test_a_letter_that_nobody_waits_for_keeps_no_thread_busy(
    on_ranks: Callable[..., list[Any]],
) -> None:
    assert max(on_ranks(dropped_before_it_came, 2)) < 0.3


def die_or_wait_for_a_letter(when: str) -> str:
    post = Post(dist.group.WORLD)
    mail = Mail(post)
    letters = mail.expect([100, 100])
    dist.barrier()
    if dist.get_rank() == 1:
        os._exit(3)
    try:
        if when == "later":
            letters = mail.expect([100, 100])
        letters.send_all(torch.zeros(50, dtype=torch.uint8), 0)
        letters.wait()
        letters.finish()
    except RuntimeError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize("when", ["before", "later"])
def test_a_letter_of_a_dead_rank_is_an_error_of_torch(
    on_ranks: Callable[..., list[Any]], when: str
) -> None:
    [said, _] = on_ranks(die_or_wait_for_a_letter, 2, when, dying={1})
    assert "closed by peer" in said or "Connection" in said
