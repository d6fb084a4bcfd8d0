# SPDX-License-Identifier: Apache-2.0
"""Process groups whose tensors are smaller on the wire: the backend "wirepress".

A group has two gloo groups. What never is compressed, and what gloo does not take, is called on the
first by the thread that asks, as with gloo itself. What may be compressed goes to the second, in
the order in which it is asked for, so that messages have the same order on all ranks: through one
queue and one thread, or, where it is agreed to go raw and nothing else is waiting, by the thread
that asks.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import wirepress
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch import memory
from wirepress.torch.group.contest import Contest
from wirepress.torch.group.options import NAME, GroupOptions, Traffic
from wirepress.torch.group.tensors import CPU, gloo_group, method_of
from wirepress.torch.group.works import (
    CopiedBack,
    Jobs,
    Staged,
    Work,
    behind,
    has_device,
    serve,
)
from wirepress.torch.memory import FLOATS, Pairs, copy_back
from wirepress.torch.packer import Packer
from wirepress.torch.transport import Post, all_gather_into

SUMS = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
# The types that gloo takes for whatever is moved. Others (int16, float8 ...) go to it as they are:
# what it says, it says on all ranks, and before anything is sent.
CARRIED = (*FLOATS, torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64)
_NOTHING = torch.empty(0, dtype=torch.float32, device="cpu")
_ALIGN = 4096  # values; codecs work in chunks of so many
_NOTE_SIZE = 512  # bytes of a rank's settings in the handshake
KINDS = (
    "all_reduce all_gather reduce_scatter all_to_all broadcast reduce gather scatter "
    "send recv barrier other"
).split()


@dataclasses.dataclass
class Call:
    """A collective that may be compressed."""

    kind: str
    result: Any
    size: int
    """Bytes, by which ranks know that they do the same; -1 where ranks differ in that."""
    sent: float
    """Bytes that this rank sends where it goes raw."""
    suits: bool
    """Whether it may be compressed; the same on all ranks."""
    raw: Callable[[Any], Any]
    """Begins it on a group, and returns its work."""
    pressed: Callable[[], None]
    copies: Pairs
    """Rooms of results and the tensors that get a copy of them in the end."""
    own_size: int = -1
    """Bytes here, where ranks differ in that."""
    given: Any = None
    """What it was given, where there may be no result."""

    @property
    def weight(self) -> int:
        return self.own_size if self.size < 0 else self.size


class Line(dist.ProcessGroup):
    """The two groups of gloo, the queue before the second one, and what is agreed on it."""

    def __init__(
        self,
        store: dist.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        options: GroupOptions | None = None,
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        number = getattr(options, "number", 0)
        self._direct = gloo_group(store, f"direct{number}", rank, size, timeout)
        self._line = gloo_group(store, f"line{number}", rank, size, timeout)
        kind = dist.ProcessGroup.BackendType.GLOO
        self._register_backend(CPU, kind, self._direct._get_backend(CPU))
        self._set_default_backend(kind)
        self._timeout = timeout
        self._post = Post(self._line)
        self.statistics = {kind: Traffic() for kind in KINDS}
        self._counting = threading.Lock()
        self._contests: dict[Any, Contest] = {}
        self.options, self._packer = self._shake_hands(options or GroupOptions())
        self._jobs = Jobs()
        weakref.finalize(self, self._jobs.queue.put, None)
        self._is_alone = False  # no other backend was asked for in the same group
        self._turn = 0  # kind and size of the operation that the thread is at
        self._thread: threading.Thread | None = None
        self._rooms: dict[str, torch.Tensor] = {}
        self._streams: dict[torch.device, Any] = {}
        self.device_work = wirepress.device_work()
        """What devices have done in the group's thread, and the CPU in their place."""

    def _shake_hands(self, options: GroupOptions) -> tuple[GroupOptions, Packer]:
        """Settles the settings; raises on all ranks where they are wrong or differ on any."""
        packer, note = None, ""
        try:
            options = options.settled()
            packer = Packer(
                options.recipe, threads=options.threads, seed=self._rank, seed_step=self._size
            )
            note = json.dumps(
                {
                    "wirepress": wirepress.__version__,
                    "recipe": options.recipe,
                    "threshold": options.threshold,
                    "adaptive": options.adaptive,
                }
            )
        except (WirepressError, ValueError) as error:
            note = f"! {error}"
        notes = self._notes(note)
        for rank, text in enumerate(notes):
            if text.startswith("!"):
                raise ParameterError(f"wirepress: rank {rank}: {text[2:]}")
        odd = next((rank for rank in range(self._size) if notes[rank] != notes[0]), None)
        if odd is not None:
            raise ParameterError(
                f"wirepress: settings differ between ranks: rank 0 has {notes[0]}, rank {odd} has "
                f"{notes[odd]}"
            )
        return options, packer

    def _notes(self, note: str) -> list[str]:
        mine = torch.zeros(_NOTE_SIZE, dtype=torch.uint8, device="cpu")
        text = note.encode()[:_NOTE_SIZE]
        mine[: len(text)] = torch.tensor(list(text), dtype=torch.uint8, device="cpu")
        everyone = torch.empty(_NOTE_SIZE * self._size, dtype=torch.uint8, device="cpu")
        all_gather_into(everyone, mine, self._line)
        rooms = everyone.view(self._size, -1)
        return [bytes(room.tolist()).rstrip(b"\0").decode(errors="replace") for room in rooms]

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        for group in self._direct, self._line:
            group._get_backend(CPU)._set_default_timeout(timeout)

    # Raw, by the thread that asks.

    def _raw(self, kind: str, sent: float, method: str, *args: Any) -> Any:
        """By gloo as it is, which also says what it does not take."""
        self._check_alone()
        self._count(kind, sent, sent)
        group = Staged(self._direct) if has_device(args) else self._direct
        return method_of(group, method)(*args)

    def _check_alone(self) -> None:
        """PyTorch drops other backends of such a group without a word."""
        if self._is_alone:
            return
        known = dist.distributed_c10d._world.pg_backend_config
        config = str(known[self]) if self in known else NAME
        others = {each.split(":")[-1] for each in config.split(",")} - {NAME}
        if others:
            raise ParameterError(
                f'"{config}": a group of the backend {NAME} carries the tensors of all devices, '
                f'and PyTorch drops {" and ".join(sorted(others))}: use "{NAME}" alone; another '
                "backend has a group of its own (torch.distributed.new_group)"
            )
        self._is_alone = True

    def _count(self, kind: str, raw: float, wire: float, compressed: bool = False) -> None:
        with self._counting:
            traffic = self.statistics[kind]
            traffic.calls += 1
            traffic.compressed_calls += compressed
            traffic.raw_bytes += int(raw)
            traffic.wire_bytes += int(wire)

    def _suits(self, size: int, *tensors: torch.Tensor) -> bool:
        """Whether to compress, of usual tensors; must come out the same on all ranks."""
        large = self._size > 1 and size >= max(self.options.threshold, 1)
        return large and tensors[0].dtype in CARRIED

    def _suits_sum(self, op: Any, size: int, *tensors: torch.Tensor) -> bool:
        # (`in` would ask the wrong side: the constants do not know how to compare.)
        is_sum = any(op == each for each in SUMS)
        return is_sum and tensors[0].dtype in FLOATS and self._suits(size, *tensors)

    # What may be compressed.

    def _begin_raw(self, call: Call, group: Any) -> Any:
        return call.raw(Staged(group) if has_device(call.result, call.given) else group)

    def _submit(self, result: Any, run: Callable[[], None]) -> Work:
        """To the group's thread; with the lock of the jobs held."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=serve, args=(self._jobs,), name="wirepress", daemon=True
            )
            self._thread.start()
        work = Work(result)
        self._jobs.put(work, run)
        return work

    def _do(self, call: Call) -> Any:
        """A call whose tensors gloo would take."""
        self._check_alone()
        if not call.suits:
            work = self._begin_raw(call, self._direct)
            self._count(call.kind, call.sent, call.sent)
            return CopiedBack(work, call.result, call.copies) if call.copies else work
        self._keep_timeout()
        contest = self._contests.setdefault((call.kind, call.size.bit_length()), Contest())
        with self._jobs.lock:
            # The thread being idle, the contest is this thread's. Which of them begins an operation
            # of the line does not matter to other ranks: the order is the same.
            if not (self._jobs.idle and contest.granted and contest.raw):
                tensors = (call.result, call.given)
                run = behind(tensors, self._streams, lambda: self._take_turn(contest, call))
                return self._submit(call.result, run)
            work = self._begin_raw(call, self._line)
            contest.granted -= 1
        self._count(call.kind, call.sent, call.sent)
        return CopiedBack(work, call.result, call.copies) if call.copies else work

    def _take_turn(self, contest: Contest, call: Call) -> None:
        self._turn = KINDS.index(call.kind) << 48 | (call.size + 1)
        own = self._own_contest(contest, call)
        if not contest.granted:
            self._vote(contest, *self._plan(contest, own, call))
        contest.granted -= 1
        contest.last = own
        sent, began = self._post.sent, time.perf_counter()
        if contest.raw:
            self._begin_raw(call, self._line).wait()
            wire = call.sent
        else:
            call.pressed()
            wire = self._post.sent - sent
        copy_back(call.copies)
        self.device_work = wirepress.device_work()
        own.note(contest.raw, (time.perf_counter() - began) / max(call.weight, 1))
        self._count(call.kind, call.sent, wire, not (contest.raw or self._is_small(call)))

    def _is_small(self, call: Call) -> bool:
        return call.weight < self.options.threshold

    def _own_contest(self, contest: Contest, call: Call) -> Contest:
        """The one that this rank measures for. Where ranks differ in the size, they share one which
        says what is agreed, and each has others by its own size."""
        if call.size >= 0:
            return contest
        about = 0 if self._is_small(call) else call.weight.bit_length()
        return self._contests.setdefault((call.kind, "own", about), Contest())

    def _plan(self, contest: Contest, own: Contest, call: Call) -> tuple[bool, int]:
        """Whether this call and some more shall go raw, as this rank sees it."""
        if not self.options.adaptive:
            return False, 256
        most = 256 if contest.last in (own, None) else 1  # sizes vary: ask each time
        return (True, most) if self._is_small(call) else own.plan(most)

    def _keep_timeout(self) -> None:
        """`torch.distributed` knows one of the two groups, and may have set its timeout."""
        timeout = self._direct._get_backend(CPU).options._timeout
        if timeout != self._timeout:
            self.set_timeout(timeout)

    def _vote(self, contest: Contest, raw: bool, calls: int) -> None:
        """All do what rank 0 wants, for as many calls as it says: to ask takes as long as a small
        operation does."""
        rows = self._post._announce([self._turn, calls if raw else -calls])
        self._check_same(rows[:, 0].tolist())
        agreed = int(rows[0, 1])
        contest.raw, contest.granted = agreed > 0, abs(agreed)

    def _check_same(self, turns: Sequence[int]) -> None:
        """Raises where ranks, by their turns, are in different operations."""
        odd = next((rank for rank, turn in enumerate(turns) if turn != turns[0]), None)
        if odd is not None:
            words = [words_of(turn) for turn in (turns[0], turns[odd])]
            raise RuntimeError(
                f"wirepress: collectives differ between ranks: rank 0 is in {words[0]}, rank "
                f"{odd} in {words[1]}"
            )

    def _room(self, name: str, size: int, beside: torch.Tensor) -> torch.Tensor:
        """Memory for messages of such tensors, which the next call of this name gets again."""
        name = f"{name} {beside.device.type}"
        if name not in self._rooms or self._rooms[name].numel() < size:
            self._rooms[name] = memory.room_on_cpu(size, beside)
        return self._rooms[name]

    def _pack_all(
        self, parts: Sequence[torch.Tensor | None], lossy: bool, plain: bool = False
    ) -> tuple[torch.Tensor, list[int]]:
        """Messages of the parts, one after the other; None: no message. `plain`: as they are."""
        bounds = [0 if part is None else self._packer.bound(part) for part in parts]
        near = next((part for part in parts if part is not None), _NOTHING)
        room = self._room("out", sum(bounds), near)
        sizes = self._packer.pack_all(parts, room, lossy=lossy, plain=plain)
        return room[: sum(sizes)], sizes

    def _swap(
        self, parts: Sequence[torch.Tensor | None], lossy: bool, plain: bool = False
    ) -> list[torch.Tensor]:
        """Sends a part to every rank; returns the messages from every rank."""
        others = [None if rank == self._rank else part for rank, part in enumerate(parts)]
        messages, turns = self._post.all_to_all(*self._pack_all(others, lossy, plain), self._turn)
        self._check_same(turns)
        return messages

    def _sum_mine(self, parts: Sequence[torch.Tensor], mine: torch.Tensor, op: Any) -> None:
        """Sums this rank's part over the ranks, into `mine`: its own, then by rank."""
        dtype = mine.dtype
        total = mine if dtype == torch.float64 else memory.as_type(mine, torch.float32)
        messages = self._swap(parts, lossy=True)
        del messages[self._rank]
        self._packer.add_all(messages, total, dtype)
        if op == dist.ReduceOp.AVG:
            total.div_(self._size)
        if total is not mine:
            mine.copy_(total)

    def _share(self, mine: torch.Tensor, outs: Sequence[torch.Tensor], lossy: bool) -> None:
        """Gathers `mine` of every rank; with loss, this rank too gets what the others get."""
        message, _ = self._pack_all([mine], lossy)
        exact = not lossy or self._packer.lossless(mine.dtype)
        messages, turns = self._post.all_gather(message, self._turn)
        self._check_same(turns)
        own = outs[self._rank]
        places = [None if exact and out is own else out for out in outs]
        if exact and own.data_ptr() != mine.data_ptr():  # first: it may lie in another rank's place
            own.copy_(mine)
        self._packer.unpack_all(messages, places)

    def _chunks(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """`flat` in a chunk for every rank; the last ones may be empty."""
        step = -(-flat.numel() // (self._size * _ALIGN)) * _ALIGN
        ends = [min(rank * step, flat.numel()) for rank in range(self._size + 1)]
        return [flat[begin:end] for begin, end in itertools.pairwise(ends)]

    def _all_reduce(self, flat: torch.Tensor, op: Any) -> None:
        chunks = self._chunks(flat)
        self._sum_mine(chunks, chunks[self._rank], op)
        self._share(chunks[self._rank], chunks, lossy=True)

    def _share_of(self, size: float) -> float:
        return size * (self._size - 1) / self._size


def words_of(turn: int) -> str:
    """What a rank is in, by its turn."""
    kind, size = KINDS[turn >> 48], (turn & (1 << 48) - 1) - 1
    return kind if size < 0 else f"{kind} of {size} bytes"
