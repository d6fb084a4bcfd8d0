# SPDX-License-Identifier: Apache-2.0
"""Messages of any size between the ranks of a process group."""

from __future__ import annotations

import dataclasses
import pickle
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from wirepress.errors import CorruptError

# The group's own methods and not the functions of torch.distributed, which know registered groups
# only; by the names that this PyTorch has for them.


def all_gather_into(out: torch.Tensor, tensor: torch.Tensor, group: dist.ProcessGroup) -> None:
    """`all_gather_into_tensor`."""
    gather = getattr(group, "all_gather_single", None) or group._allgather_base
    gather(out, tensor).wait()


def all_reduce_in(
    tensor: torch.Tensor, group: dist.ProcessGroup, operation: Any = dist.ReduceOp.SUM
) -> None:
    """`all_reduce`."""
    group.allreduce([tensor], operation).wait()


PIECE = 1 << 20  # bytes


class Post:
    """Sends bytes between the ranks of `group`, in CPU memory; one call at a time.

    Every call first tells all ranks how much comes, and a number of the caller's (`flags`): one
    round trip, and nobody has to guess. `sent` counts the bytes that left this rank.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = group.rank()
        self.size = group.size()
        self.sent = 0

    def close(self) -> None:
        """No more messages; the group ends where nothing else holds it."""
        del self.group

    def _announce(self, row: Sequence[int]) -> torch.Tensor:
        """The rows of all ranks, by rank."""
        rows = torch.empty(self.size * len(row), dtype=torch.int64, device="cpu")
        all_gather_into(rows, torch.tensor(row, dtype=torch.int64, device="cpu"), self.group)
        self.sent += 8 * len(row) * (self.size - 1)
        return rows.view(self.size, -1)

    def all_to_all(
        self, message: torch.Tensor, sizes: Sequence[int], flags: int = 0
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Sends `message` (uint8), cut into parts of `sizes` bytes, a part to every rank.

        Returns the parts that came and the flags of all, both by rank.
        """
        rows = self._announce([*sizes, flags])
        inbox = torch.empty(int(rows[:, self.rank].sum()), dtype=torch.uint8, device="cpu")
        came = inbox.split(rows[:, self.rank].tolist())
        parts = message.split([*sizes, message.numel() - sum(sizes)])
        self._exchange(parts, came)
        came[self.rank].copy_(parts[self.rank])
        self.sent += sum(sizes) - sizes[self.rank]
        return list(came), rows[:, -1].tolist()

    def all_gather(
        self, message: torch.Tensor, flags: int = 0
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Sends `message` (uint8) to every rank; returns all messages and flags, by rank."""
        rows = self._announce([message.numel(), flags])
        sizes = rows[:, 0].tolist()
        sizes[self.rank] = 0
        got = list(torch.empty(sum(sizes), dtype=torch.uint8, device="cpu").split(sizes))
        self._exchange([message] * self.size, got)
        got[self.rank] = message
        self.sent += message.numel() * (self.size - 1)
        return got, rows[:, -1].tolist()

    def all_gather_object(self, value: Any) -> list[Any]:
        """What every rank gives, pickled on its way, by rank."""
        message = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)
        return [pickle.loads(bytes(each.tolist())) for each in self.all_gather(message)[0]]

    def _exchange(self, going: Sequence[torch.Tensor], coming: Sequence[torch.Tensor]) -> None:
        """Sends a part to every other rank and receives one, of known sizes.

        In pieces: gloo sends or receives one large message at a time on a connection, but both
        directions carry smaller ones at once, which takes half the time.
        """
        works = []
        for step in range(1, self.size):
            to, source = (self.rank + step) % self.size, (self.rank - step) % self.size
            for tag, piece in enumerate(coming[source].split(PIECE)):
                if piece.numel():
                    works.append(self.group.recv([piece], source, tag))
            for tag, piece in enumerate(going[to].split(PIECE)):
                if piece.numel():
                    works.append(self.group.send([piece], to, tag))
        for work in works:
            work.wait()


HEAD = 16  # bytes in front of what a letter says: its size with them, and flags; int64
_FIRST_TAG, _TAGS = 1 << 30, 1 << 12  # of letters; a post's other messages have lower ones
_NUMBERS = 1 << 18  # of letters until they begin again: more than there are on their way


class Mail:
    """Messages whose largest sizes every rank knows, asked for before they are made.

    So a message leaves when it is ready: it waits neither for a word about its size, nor for a
    thread that waits for the messages before it, nor for the other side to ask. Gloo's own thread
    receives it. All ranks call `expect` in one order; what follows may be in any.
    """

    def __init__(self, post: Post) -> None:
        self._post, self._n = post, 0
        self._open: set[Letters] = set()

    def expect(self, bounds: Sequence[int]) -> Letters:
        """Asks for a letter of every other rank, of at most so many bytes, by rank."""
        letters = Letters(self._post, self._n % _NUMBERS, bounds, self._open)
        self._n += 1
        letters.ask()
        return letters

    def close(self) -> None:
        """After the post's: lets go of letters that never came."""
        self._open.clear()


class Letters:
    """A message from every rank to every rank; see `Mail`.

    It is among the `open` ones from when it asks until it is finished, whatever becomes of the job
    that waits: where memory goes while a message is on its way there, gloo's thread tries for ever
    to read that, and nothing else.
    """

    def __init__(self, post: Post, number: int, bounds: Sequence[int], open_: set[Letters]) -> None:
        self._post, self._tag = post, _FIRST_TAG + number * _TAGS
        self._bounds, self._open = bounds, open_
        self._others = [(post.rank - step) % post.size for step in range(1, post.size)]
        self._rooms: dict[int, torch.Tensor] = {}  # of first pieces
        self._coming: dict[int, Any] = {}
        self._rest: list[Any] = []
        self._going: list[Any] = []
        self._sent = 0
        self._own, self._own_flags = _EMPTY, 0

    def ask(self) -> None:
        """Asks for the first pieces. A letter may be far smaller than its bound, and many are asked
        for at once: there is room for the rest when its size is known."""
        self._open.add(self)
        for source in self._others:
            room = torch.empty(
                min(HEAD + self._bounds[source], PIECE), dtype=torch.uint8, device="cpu"
            )
            self._rooms[source] = room
            self._coming[source] = self._receive(source, room, 0)

    def _receive(self, source: int, room: torch.Tensor, piece: int) -> Any:
        return self._post.group.recv([room], source, self._tag + piece)

    def send(self, to: int, letter: torch.Tensor, flags: int) -> None:
        """Sends a letter, which has `HEAD` free bytes in front, or keeps the own one. One that is
        sent to several has the same flags for all."""
        head = letter[:HEAD].view(torch.int64)
        head[0], head[1] = letter.numel(), flags
        if to == self._post.rank:
            self._own, self._own_flags = letter[HEAD:], flags
            return
        for number, piece in enumerate(letter.split(PIECE)):
            self._going.append(self._post.group.send([piece], to, self._tag + number))
        self._sent += letter.numel()

    def send_all(self, letter: torch.Tensor, flags: int) -> None:
        """Sends one letter to every rank."""
        for step in range(self._post.size):
            self.send((self._post.rank + step) % self._post.size, letter, flags)

    def wait(self) -> tuple[list[torch.Tensor], list[int]]:
        """The letters of all ranks, and their flags, by rank."""
        found = [(self._own, self._own_flags)] * self._post.size
        for source in self._others:
            self._coming[source].wait()
            room = self._rooms[source]
            size, flags = room[:HEAD].view(torch.int64).tolist()
            if not HEAD <= size <= HEAD + self._bounds[source]:
                raise CorruptError(f"a letter of rank {source} says that it has {size} bytes")
            if size > PIECE:
                first, room = room, torch.empty(size, dtype=torch.uint8, device="cpu")
                room[:PIECE] = first
                for number, piece in enumerate(room.split(PIECE)[1:]):
                    self._rest.append(self._receive(source, piece, number + 1))
            found[source] = room[HEAD:size], flags
        for work in self._rest:
            work.wait()
        return [letter for letter, _ in found], [flags for _, flags in found]

    def finish(self) -> None:
        """Waits until what was sent has left this process, and counts it."""
        for work in self._going:
            work.wait()
        self._post.sent += self._sent
        self._rest, self._going, self._sent = [], [], 0
        self._open.discard(self)


_EMPTY = torch.empty(0, dtype=torch.uint8, device="cpu")


def timeout_of(group: dist.ProcessGroup) -> timedelta:
    """How long a collective of this group may take."""
    for device in group._device_types:
        options = getattr(group._get_backend(device), "options", None)
        found = getattr(options, "_timeout", None)
        if isinstance(found, timedelta):
            return found
    return dist.default_pg_timeout


def store_of(group: dist.ProcessGroup) -> dist.Store:
    """Where the ranks of a group leave words for each other."""
    store: dist.Store = dist.distributed_c10d._world.pg_map[group][1]
    return store


@dataclasses.dataclass
class Opener:
    """Makes gloo groups of ranks of `group`, with its timeout. A collective call, as `open` is.

    torch.distributed knows nothing of these groups: a group ends, with its connections and
    threads, when nobody holds it any more. One of `dist.new_group` would stay until somebody
    destroyed it.
    """

    group: dist.ProcessGroup

    def __post_init__(self) -> None:
        names = [secrets.token_hex(8)]  # a store may serve many groups, one after the other
        first = dist.get_global_rank(self.group, 0)
        dist.broadcast_object_list(names, src=first, group=self.group)
        self._name = names[0]
        self._store = store_of(self.group)
        self._timeout = timeout_of(self.group)
        self._n = 0

    def open(self, parts: Sequence[Sequence[int]]) -> Post:
        """Messages between the ranks (of `group`) of that part which holds this rank. All ranks
        call it, with the same parts."""
        me = dist.get_rank(self.group)
        number, part = next((i, part) for i, part in enumerate(parts) if me in part)
        prefix = f"wirepress/{self._name}/{self._n}/{number}/"
        self._n += 1
        store = dist.PrefixStore(prefix, self._store)
        return Post(dist.ProcessGroupGloo(store, part.index(me), len(part), self._timeout))
