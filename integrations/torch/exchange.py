# SPDX-License-Identifier: Apache-2.0
"""Jobs that average gradients over ranks in compressed form.

Two algorithms, over the ranks of `Wires.send`:

gather   every rank encodes its gradient once and sends it to all, who decode and add: one error,
         traffic that grows with the number of ranks.
scatter  every rank sends each owner its part, encoded; the owner adds what came and sends the mean,
         encoded again, to all: two errors (the second has its own feedback), constant traffic.

Every rank decodes the same frames and adds in the order of ranks, so all get the same bits, in
every run.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

import torch
from wirepress.errors import CorruptError
from wirepress.torch import memory
from wirepress.torch.coder import AnyCoder, Begun, Row, wait_for
from wirepress.torch.memory import as_array
from wirepress.torch.shared import Rooms
from wirepress.torch.stages import Job
from wirepress.torch.transport import HEAD, Letters
from wirepress.torch.wires import Wires

NOT_FINITE, EXPANDS = 1, 2  # kinds of flags


class Flagged(Exception):
    """A rank found something about a piece that all ranks must act upon."""

    def __init__(self, kind: int, name: str, rank: int) -> None:
        super().__init__(kind, name, rank)
        self.kind, self.name, self.rank = kind, name, rank


class Flags:
    """What ranks found, in one number that travels with the sizes: kind, index and rank."""

    def __init__(self, rank: int) -> None:
        self._rank, self.value = rank, 0

    def found(self, kind: int, index: int) -> None:
        """This rank found something (0: nothing) about the piece of that index."""
        if kind:
            mine = kind | index << 8 | self._rank << 40
            self.value = _worst([self.value, mine])

    def note(self, everyone: Sequence[int]) -> None:
        """Values of all ranks, in one order on all: of several all ranks take the same."""
        self.value = _worst(everyone)

    def error(self, names: Sequence[str]) -> Flagged | None:
        """For the first that was found; `names` of the pieces by index."""
        if not self.value:
            return None
        index = self.value >> 8 & 0xFFFFFFFF
        return Flagged(self.value & 0xFF, names[index], self.value >> 40)


def _worst(flags: Sequence[int]) -> int:
    """The first of the lowest kind; 0: none. A gradient that is not finite comes before all."""
    return min(filter(None, flags), key=lambda flag: flag & 0xFF, default=0)


@dataclasses.dataclass
class Counts:
    """What this rank did; sizes are bytes."""

    steps: int = 0
    skipped_steps: int = 0  # with a gradient that is not finite, where on_nonfinite="skip"
    raw_bytes: int = 0  # of gradients that were encoded ...
    coded_bytes: int = 0  # ... and of the frames that this rank made of them
    plain_bytes: int = 0  # of gradients that went by PyTorch's own all-reduce


@dataclasses.dataclass
class Piece:
    """A part of one parameter's gradient; alike on all ranks but for the numbers in it.

    `values` (1-D, of `memory.GRADIENTS`) holds the gradient, then the mean over ranks. Inside hosts
    they are added as float32 alone, of which a value of the gradient may have had `itemsize` bytes.
    """

    name: str
    values: torch.Tensor
    coder: AnyCoder
    owner: int = 0  # rank of `Wires.send`: adds the parts, in scatter ...
    sum_coder: AnyCoder | None = None  # ... and encodes the mean with this
    local_owner: int = 0  # rank of `Wires.local_in`
    seed: int = 0
    itemsize: int = 4

    def total(self) -> torch.Tensor | None:
        """A number that is finite where all values are, but for sums too large; None: nobody
        wants to know. Asked before it is encoded."""
        return None

    def encode(self, out: torch.Tensor) -> int | Begun:
        """Writes a frame of `values` to `out`: its size, or what says it when it is there."""
        return self.coder.begin_encode(self.values, out, None, self.seed)

    def encode_sum(self, mean: torch.Tensor, out: torch.Tensor) -> int | Begun:
        """Writes a frame of the mean; called on the owner."""
        assert self.sum_coder
        return self.sum_coder.begin_encode(mean, out, None, self.seed)

    def verdict(self, finite: bool) -> int:
        """A kind of flag, or 0; asked when its frame is there. `finite`: its total was."""
        return 0


class _Floats(threading.local):
    """A thread's float32 values, of one piece at a time: means are added up as float32 and rounded
    once, whatever the gradient has, in memory that stays in the caches."""

    def __init__(self) -> None:
        self._room = torch.empty(0, dtype=torch.float32, device="cpu")

    def beside(self, values: torch.Tensor) -> torch.Tensor:
        """Room for as many as `values` are; these themselves where they are float32."""
        if values.dtype == torch.float32:
            return values
        if self._room.numel() < values.numel():
            self._room = torch.empty(values.numel(), dtype=torch.float32, device="cpu")
        return self._room[: values.numel()]


FLOATS = _Floats()


class CodedMean(Job):
    """Replaces the values of `pieces` by their mean over all ranks.

    `gather` chooses the algorithm. `finished` is called with the error, None if there was none;
    a `Flagged` is the same on all ranks, and the values hold means nevertheless.
    """

    def __init__(
        self,
        wires: Wires,
        pieces: Sequence[Piece],
        counts: Counts,
        *,
        gather: bool,
        finished: Callable[[BaseException | None], None],
    ) -> None:
        self._wires, self._counts, self._by_gather = wires, counts, gather
        self._pieces = self._mine = list(pieces)
        self._finished = finished
        self._flags = Flags(wires.rank)
        self._parts: Letters | None = None  # for the owners, in scatter
        self._all: Letters | None = None  # for everybody
        self._frames: list[list[torch.Tensor]] = []
        # Ranks of a host take turns with their shared memory, so jobs must not overtake others.
        if gather and not wires.local_out:
            self.skips = ("send", "sum")

    def done(self, error: BaseException | None) -> None:
        self._finished(error or self._flags.error([piece.name for piece in self._pieces]))

    # ---- stages ----

    def local_sum(self) -> None:
        """Each rank of the host gets the sum over the host of the pieces it owns."""
        post = self._wires.local_in
        assert post
        if self._wires.rooms_in:
            self._sum_in_memory(self._wires.rooms_in, post.rank)
            return
        parts = [[p.values for p in self._of_local(rank)] for rank in range(post.size)]
        sizes = [4 * sum(values.numel() for values in part) for part in parts]
        message = _joined(values for part in parts for values in part)
        came, _ = post.all_to_all(message.view(torch.uint8), sizes)
        total = torch.empty(sizes[post.rank] // 4, dtype=torch.float32, device="cpu")
        addend = torch.empty_like(total)
        total.view(torch.uint8).copy_(came[0])
        for part in came[1:]:
            addend.view(torch.uint8).copy_(part)
            total.add_(addend)
        self._mine = self._of_local(post.rank)
        sums = total.split([piece.values.numel() for piece in self._mine])
        for piece, values in zip(self._mine, sums, strict=True):
            piece.values.copy_(values)

    def encode(self) -> None:
        wires = self._wires
        n = wires.send.size
        if self._by_gather:
            self._all = wires.gather_mail.expect([_bound(self._mine, _own_coder)] * n)
            self._all.send_all(self._encoded(self._mine), self._flags.value)
        else:
            own = self._of_owner(wires.send.rank)
            self._parts = wires.send_mail.expect([_bound(own, _own_coder)] * n)
            self._all = wires.gather_mail.expect(
                [_bound(self._of_owner(rank), _sum_coder) for rank in range(n)]
            )
            for step in range(n):  # the own part last: nobody waits for it
                owner = (wires.send.rank + step + 1) % n
                part = self._encoded(self._of_owner(owner))
                self._parts.send(owner, part, self._flags.value)
        self._counts.raw_bytes += sum(p.itemsize * p.values.numel() for p in self._mine)

    def send(self) -> None:
        """The owner waits for its parts."""
        if self._parts:
            parts, flags = self._parts.wait()
            self._flags.note(flags)
            n_own = len(self._of_owner(self._wires.send.rank))
            self._frames = [cut(part, n_own) for part in parts]

    def sum(self) -> None:
        """The owner adds what came, and sends the mean, encoded."""
        if not self._parts:
            return
        assert self._all
        own = self._of_owner(self._wires.send.rank)
        frames = _frames(own, _sum_coder)
        for piece, mean in self._means(own):
            frames.add(
                lambda out, piece=piece, mean=mean: piece.encode_sum(mean, out),
                _sum_coder(piece).bound(mean.numel()),
            )
        message = frames.message()
        self._all.send_all(message, self._flags.value)
        self._counts.coded_bytes += message.numel() - HEAD

    def gather(self) -> None:
        """Everybody waits for what all send."""
        assert self._all
        messages, flags = self._all.wait()
        self._flags.note(flags)
        self._frames = [
            cut(message, len(self._mine if self._by_gather else self._of_owner(rank)))
            for rank, message in enumerate(messages)
        ]

    def decode(self) -> None:
        if self._by_gather:
            for piece, mean in self._means(self._mine):
                put(mean, piece.values)
        else:
            left = [iter(frames) for frames in self._frames]
            begun = []
            for piece in self._mine:
                mean = FLOATS.beside(piece.values)
                begun.append(_sum_coder(piece).begin_decode(next(left[piece.owner]), mean))
                put(mean, piece.values)
            wait_for(begun)
        for letters in filter(None, (self._parts, self._all)):
            letters.finish()

    def local_gather(self) -> None:
        """Each rank of the host gets the finished pieces of the others."""
        post = self._wires.local_out
        assert post
        if self._wires.rooms_out:
            self._gather_in_memory(self._wires.rooms_out, post.rank)
            return
        message = _joined(piece.values for piece in self._mine)
        messages, flags = post.all_gather(message.view(torch.uint8), self._flags.value)
        self._flags.note(flags)
        for rank, part in enumerate(messages):
            pieces = self._of_local(rank)
            sizes = [4 * piece.values.numel() for piece in pieces]
            for piece, values in zip(pieces, part.split(sizes), strict=True):
                if rank != post.rank:
                    piece.values.view(torch.uint8).copy_(values)

    # ---- parts of them ----

    def _sum_in_memory(self, rooms: Rooms, me: int) -> None:
        for start, piece in self._placed():
            rooms.values(me)[start : start + piece.values.numel()] = piece.values
        rooms.wait()
        self._mine = self._of_local(me)
        for start, piece in self._placed():
            if piece.local_owner == me:
                end = start + piece.values.numel()
                piece.values.copy_(rooms.values(0)[start:end])
                for rank in range(1, rooms.n_ranks):
                    piece.values.add_(rooms.values(rank)[start:end])
        rooms.next_turn()

    def _gather_in_memory(self, rooms: Rooms, me: int) -> None:
        for start, piece in self._placed():
            if piece.local_owner == me:
                rooms.values(me)[start : start + piece.values.numel()] = piece.values
        flags = rooms.wait(self._flags.value)
        for start, piece in self._placed():
            if piece.local_owner != me:
                end = start + piece.values.numel()
                piece.values.copy_(rooms.values(piece.local_owner)[start:end])
        self._flags.note(flags)
        rooms.next_turn()

    def _placed(self) -> Iterator[tuple[int, Piece]]:
        """Every piece, and where its values begin when all stand in a row."""
        start = 0
        for piece in self._pieces:
            yield start, piece
            start += piece.values.numel()

    def _of_local(self, rank: int) -> list[Piece]:
        return [piece for piece in self._pieces if piece.local_owner == rank]

    def _of_owner(self, rank: int) -> list[Piece]:
        return [piece for piece in self._mine if piece.owner == rank]

    def _encoded(self, pieces: list[Piece]) -> torch.Tensor:
        frames = _frames(pieces, _own_coder)
        totals = []
        for piece in pieces:
            totals.append(piece.total())
            frames.add(piece.encode, piece.coder.bound(piece.values.numel()))
        message = frames.message()
        for piece, finite in zip(pieces, memory.finite(totals), strict=True):
            self._look(piece, piece.verdict(finite))
        self._counts.coded_bytes += message.numel() - HEAD
        return message

    def _means(self, pieces: list[Piece]) -> Iterator[tuple[Piece, torch.Tensor]]:
        """Each piece, with the mean of what all ranks sent of it: in its values if they are
        float32, else in memory that the thread's next piece takes."""
        factor = 1 / self._wires.n_ranks
        if all(memory.on_device(piece.values) for piece in pieces):
            self._add_there(pieces)
            yield from ((piece, piece.values.mul_(factor)) for piece in pieces)
            return
        for number, piece in enumerate(pieces):
            mean = FLOATS.beside(piece.values)
            first, *others = (part[number] for part in self._frames)
            piece.coder.decode(first, mean)
            for frame in others:
                piece.coder.decode_add(frame, mean)
            yield piece, mean.mul_(factor)

    def _add_there(self, pieces: list[Piece]) -> None:
        """The sums in the pieces' values, on a device: all that a rank sent goes side by side. Of a
        piece one frame follows the other only when that is there, whoever expanded it."""
        for rank, part in enumerate(self._frames):
            begun = []
            for piece, frame in zip(pieces, part, strict=True):
                begin = piece.coder.begin_decode_add if rank else piece.coder.begin_decode
                begun.append(begin(frame, piece.values))
            wait_for(begun)

    def _look(self, piece: Piece, kind: int) -> None:
        if kind:
            self._flags.found(kind, next(i for i, p in enumerate(self._pieces) if p is piece))


class Frames:
    """Frames one behind the other, after a table of their sizes (int64, little endian), and before
    that `head` bytes of whoever sends them."""

    def __init__(
        self, bound: int, n: int, head: int = 0, *, beside: torch.Tensor | None = None
    ) -> None:
        self._head, first = head, head + 8 * n
        self._room = memory.room_on_cpu(first + bound, beside)
        self._row = Row(self._room[first:])
        self.add = self._row.add

    def message(self) -> torch.Tensor:
        """Waits for all frames."""
        sizes = self._row.close()
        table = torch.from_numpy(np.array(sizes, dtype="<i8").view(np.uint8))
        first = self._head + table.numel()
        self._room[self._head : first] = table
        return self._room[: first + sum(sizes)]


def cut(message: torch.Tensor, n: int) -> list[torch.Tensor]:
    """The `n` frames of a message that `Frames` made."""
    if message.numel() >= 8 * n:
        sizes = np.frombuffer(as_array(message[: 8 * n]).tobytes(), dtype="<i8").tolist()
        if all(size >= 0 for size in sizes) and 8 * n + sum(sizes) == message.numel():
            return list(message[8 * n :].split(sizes)) if n else []
    raise CorruptError(f"a message of {message.numel()} bytes does not hold {n} frames")


def _joined(values: Iterable[torch.Tensor]) -> torch.Tensor:
    parts = list(values)
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.float32, device="cpu")


def put(mean: torch.Tensor, values: torch.Tensor) -> None:
    """Rounds a mean to the gradient's type, where it is not in its place already."""
    if mean.data_ptr() != values.data_ptr():
        values.copy_(mean)


def _own_coder(piece: Piece) -> AnyCoder:
    return piece.coder


def _sum_coder(piece: Piece) -> AnyCoder:
    assert piece.sum_coder
    return piece.sum_coder


def _bound(
    pieces: Sequence[Piece], coder: Callable[[Piece], AnyCoder], *, tables: bool = True
) -> int:
    """The most bytes that frames of pieces take, with their table."""
    return sum(coder(p).bound(p.values.numel()) + 8 * tables for p in pieces)


def _frames(pieces: Sequence[Piece], coder: Callable[[Piece], AnyCoder]) -> Frames:
    """Room for frames of pieces, in a letter."""
    bound = _bound(pieces, coder, tables=False)
    return Frames(bound, len(pieces), HEAD, beside=pieces[0].values if pieces else None)
