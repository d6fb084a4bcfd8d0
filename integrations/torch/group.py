# SPDX-License-Identifier: Apache-2.0
"""Process groups whose tensors are smaller on the wire: the backend "wirepress".

A group has two gloo groups. What never is compressed, and what gloo does not take, is called on the
first by the thread that asks, as with gloo itself. What may be compressed goes to the second, in
the order in which it is asked for, so that messages have the same order on all ranks: through one
queue and one thread, or, where it is agreed to go raw and nothing else is waiting, by the thread
that asks.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
import wirepress
from torch.distributed import distributed_c10d as c10d
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch.memory import Pairs, copies, copy_back, in_a_row, shares_elements
from wirepress.torch.packer import AUTO, FLOATS, Packer
from wirepress.torch.transport import Post, all_gather_into, timeout_of

NAME = "wirepress"
_SUMS = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
_CPU = torch.device("cpu")
# The types that gloo takes for whatever is moved. Others (int16, float8 ...) go to it as they are:
# what it says, it says on all ranks, and before anything is sent.
_CARRIED = (*FLOATS, torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64)
_ALIGN = 4096  # values; codecs work in chunks of so many
_NOTE_SIZE = 512  # bytes of a rank's settings in the handshake
_KINDS = (
    "all_reduce all_gather reduce_scatter all_to_all broadcast reduce gather scatter "
    "send recv barrier other"
).split()


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


class _Work(dist.Work):
    """An operation that the group's thread does; `wait` raises what went wrong."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result
        self._done = threading.Event()
        self._error: Exception | None = None
        self._ready: torch.futures.Future[None] = torch.futures.Future()

    def _outcome(self, _: torch.futures.Future[None]) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def finish(self, error: Exception | None) -> None:
        self._error = error
        self._done.set()
        self._ready.set_result(None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        if not self._done.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"wirepress: no result after {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        """Its error is PyTorch's RuntimeError, whose text has the type and text of ours: what
        `set_exception` gives is a result for C++, and DDP waits there."""
        return self._ready.then(self._outcome)


@dataclasses.dataclass
class _Call:
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

    @property
    def weight(self) -> int:
        return self.own_size if self.size < 0 else self.size


class _Jobs:
    """What waits for the thread of a group, and what it is at."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.left = 0
        self.failed: Exception | None = None
        """What all later jobs end with: after half an exchange nothing fits any more."""

    def put(self, work: _Work, run: Callable[[], None]) -> None:
        """With the lock held."""
        self.left += 1
        self.queue.put((work, run))

    @property
    def idle(self) -> bool:
        return not self.left and self.failed is None


def _serve(jobs: _Jobs) -> None:
    """The thread of a group. It knows the jobs only, so that a forgotten group can go."""
    while (job := jobs.queue.get()) is not None:
        work, run = job
        error = jobs.failed
        if error is None:
            try:
                with torch.inference_mode():  # results are written to whatever tensors the user has
                    run()
            except Exception as caught:
                error = caught
                if not isinstance(caught, ParameterError):
                    jobs.failed = caught
        with jobs.lock:
            jobs.left -= 1
        work.finish(error)
        del job, work, run, error


class _Contest:
    """Whether operations of one kind and about one size go raw: each way is timed three times, what
    is faster in the middle stays, and the other one is tried again after 8, 16 ... 256 calls."""

    GAIN = 0.95
    """Compressed ones shall take at most this part of the time: a thread does them, whose waking
    is not timed; a raw one is done by the thread that asks."""

    def __init__(self) -> None:
        self._times: dict[bool, list[float]] = {False: [], True: []}  # raw?: the last three
        self._pause = 8
        self._trial = False
        self.raw = False
        self.granted = 0
        """Calls from the next one on that all ranks have agreed to do this way."""
        self.last: _Contest | None = None
        """The contest of the call before."""

    def plan(self) -> tuple[bool, int]:
        """Which way the next calls shall go (raw?), and how many, at least one."""
        pressed, raw = self._times[False], self._times[True]
        if len(raw) < 3:
            return len(raw) < len(pressed), 1
        faster = self.GAIN * median(raw) < median(pressed)
        self._trial = not self._trial
        if not self._trial:
            return not faster, 1
        calls, self._pause = self._pause, min(2 * self._pause, 256)
        return faster, calls

    def note(self, raw: bool, cost: float) -> None:
        """What an operation took, in seconds a byte."""
        self._times[raw] = [*self._times[raw], cost][-3:]


class CompressedGroup(dist.ProcessGroup):
    """See the top. Made by `init_process_group`, `new_group` and `wrap_group`."""

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
        self._direct = _gloo(store, f"direct{number}", rank, size, timeout)
        self._line = _gloo(store, f"line{number}", rank, size, timeout)
        kind = dist.ProcessGroup.BackendType.GLOO
        self._register_backend(_CPU, kind, self._direct._get_backend(_CPU))
        self._set_default_backend(kind)
        self._timeout = timeout
        self._post = Post(self._line)
        self.statistics = {kind: Traffic() for kind in _KINDS}
        self._counting = threading.Lock()
        self._contests: dict[Any, _Contest] = {}
        self.options, self._packer = self._shake_hands(options or GroupOptions())
        self._jobs = _Jobs()
        weakref.finalize(self, self._jobs.queue.put, None)
        self._turn = 0  # kind and size of the operation that the thread is at
        self._thread: threading.Thread | None = None
        self._rooms: dict[str, torch.Tensor] = {}

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
        mine = torch.zeros(_NOTE_SIZE, dtype=torch.uint8)
        text = note.encode()[:_NOTE_SIZE]
        mine[: len(text)] = torch.tensor(list(text), dtype=torch.uint8)
        everyone = torch.empty(_NOTE_SIZE * self._size, dtype=torch.uint8)
        all_gather_into(everyone, mine, self._line)
        rooms = everyone.view(self._size, -1)
        return [bytes(room.tolist()).rstrip(b"\0").decode(errors="replace") for room in rooms]

    # What PyTorch asks a group for.

    def getBackendName(self) -> str:
        return NAME

    def shutdown(self) -> None:
        if self._thread is not None:
            self._jobs.queue.put(None)
            self._thread.join(60)
            self._thread = None
        self._direct.shutdown()
        self._line.shutdown()

    def abort(self) -> None:
        self._direct.abort()
        self._line.abort()

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        for group in self._direct, self._line:
            group._get_backend(_CPU)._set_default_timeout(timeout)

    # Raw, by the thread that asks.

    def _raw(self, kind: str, sent: float, method: str, *args: Any) -> Any:
        """By gloo as it is, which also says what it does not take."""
        self._count(kind, sent, sent)
        return _named(self._direct, method)(*args)

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
        return large and tensors[0].dtype in _CARRIED

    def _suits_sum(self, op: Any, size: int, *tensors: torch.Tensor) -> bool:
        # (`in` would ask the wrong side: the constants do not know how to compare.)
        is_sum = any(op == each for each in _SUMS)
        return is_sum and tensors[0].dtype in FLOATS and self._suits(size, *tensors)

    # What may be compressed.

    def _submit(self, result: Any, run: Callable[[], None]) -> _Work:
        """To the group's thread; with the lock of the jobs held."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_serve, args=(self._jobs,), name="wirepress", daemon=True
            )
            self._thread.start()
        work = _Work(result)
        self._jobs.put(work, run)
        return work

    def _do(self, call: _Call) -> Any:
        """A call whose tensors gloo would take."""
        if not call.suits:
            work = call.raw(self._direct)
            self._count(call.kind, call.sent, call.sent)
            return _CopiedBack(work, call.result, call.copies) if call.copies else work
        self._keep_timeout()
        contest = self._contests.setdefault((call.kind, call.size.bit_length()), _Contest())
        with self._jobs.lock:
            # The thread being idle, the contest is this thread's. Which of them begins an operation
            # of the line does not matter to other ranks: the order is the same.
            if not (self._jobs.idle and contest.granted and contest.raw):
                return self._submit(call.result, lambda: self._take_turn(contest, call))
            work = call.raw(self._line)
            contest.granted -= 1
        self._count(call.kind, call.sent, call.sent)
        return _CopiedBack(work, call.result, call.copies) if call.copies else work

    def _take_turn(self, contest: _Contest, call: _Call) -> None:
        self._turn = _KINDS.index(call.kind) << 48 | (call.size + 1)
        own = self._own_contest(contest, call)
        if not contest.granted:
            self._vote(contest, *self._plan(contest, own, call))
        contest.granted -= 1
        contest.last = own
        sent, began = self._post.sent, time.perf_counter()
        if contest.raw:
            call.raw(self._line).wait()
            wire = call.sent
        else:
            call.pressed()
            wire = self._post.sent - sent
        copy_back(call.copies)
        own.note(contest.raw, (time.perf_counter() - began) / max(call.weight, 1))
        self._count(call.kind, call.sent, wire, not (contest.raw or self._is_small(call)))

    def _is_small(self, call: _Call) -> bool:
        return call.weight < self.options.threshold

    def _own_contest(self, contest: _Contest, call: _Call) -> _Contest:
        """The one that this rank measures for. Where ranks differ in the size, they share one which
        says what is agreed, and each has others by its own size."""
        if call.size >= 0:
            return contest
        about = 0 if self._is_small(call) else call.weight.bit_length()
        return self._contests.setdefault((call.kind, "own", about), _Contest())

    def _plan(self, contest: _Contest, own: _Contest, call: _Call) -> tuple[bool, int]:
        """Whether this call and some more shall go raw, as this rank sees it."""
        if not self.options.adaptive:
            return False, 256
        raw, calls = (True, 256) if self._is_small(call) else own.plan()
        return raw, calls if contest.last in (own, None) else 1  # sizes vary: ask each time

    def _keep_timeout(self) -> None:
        """`torch.distributed` knows one of the two groups, and may have set its timeout."""
        timeout = self._direct._get_backend(_CPU).options._timeout
        if timeout != self._timeout:
            self.set_timeout(timeout)

    def _vote(self, contest: _Contest, raw: bool, calls: int) -> None:
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
            words = [_words(turn) for turn in (turns[0], turns[odd])]
            raise RuntimeError(
                f"wirepress: collectives differ between ranks: rank 0 is in {words[0]}, rank "
                f"{odd} in {words[1]}"
            )

    def _room(self, name: str, size: int) -> torch.Tensor:
        """Memory that the next call of this name gets again."""
        if name not in self._rooms or self._rooms[name].numel() < size:
            self._rooms[name] = torch.empty(size, dtype=torch.uint8)
        return self._rooms[name]

    def _pack_all(
        self, parts: Sequence[torch.Tensor | None], lossy: bool, plain: bool = False
    ) -> tuple[torch.Tensor, list[int]]:
        """Messages of the parts, one after the other; None: no message. `plain`: as they are."""
        bounds = [0 if part is None else self._packer.bound(part) for part in parts]
        room = self._room("out", sum(bounds))
        sizes, at = [], 0
        for part in parts:
            if part is None:
                size = 0
            elif plain:
                size = self._packer.pack_plain(part, room[at:])
            else:
                size = self._packer.pack(part, room[at:], lossy=lossy)
            sizes.append(size)
            at += size
        return room[:at], sizes

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
        total = mine if dtype in (torch.float32, torch.float64) else mine.float()
        for rank, message in enumerate(self._swap(parts, lossy=True)):
            if rank != self._rank:
                self._packer.add(message, total, dtype)
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
        for rank, got in enumerate(messages):
            if rank != self._rank or not exact:
                self._packer.unpack(got, outs[rank])
            elif outs[rank].data_ptr() != mine.data_ptr():
                outs[rank].copy_(mine)

    def _chunks(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """`flat` in a chunk for every rank; the last ones may be empty."""
        step = -(-flat.numel() // (self._size * _ALIGN)) * _ALIGN
        ends = [min(rank * step, flat.numel()) for rank in range(self._size + 1)]
        return [flat[begin:end] for begin, end in itertools.pairwise(ends)]

    def _all_reduce(self, flat: torch.Tensor, op: Any) -> None:
        chunks = self._chunks(flat)
        self._sum_mine(chunks, chunks[self._rank], op)
        self._share(chunks[self._rank], chunks, lossy=True)

    # Collectives. Each asks first whether gloo would take these tensors; if not, gloo itself says
    # so, in the caller and before anything is sent. What gloo reads and writes as if it lay in one
    # row goes by rooms that do.

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.AllreduceOptions)
        if len(tensors) != 1 or not _usual(tensors):  # gloo adds up several tensors of a rank
            return self._raw("all_reduce", 0, "allreduce", tensors, opts)
        return self._all_reduced(tensors, opts, "allreduce")

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = list(tensors), _options(opts, c10d.AllreduceCoalescedOptions)
        if not _usual(tensors):
            return self._raw("all_reduce", 0, "allreduce_coalesced", tensors, opts)
        return self._all_reduced(tensors, opts, "allreduce_coalesced")

    def _all_reduced(self, tensors: list[torch.Tensor], opts: Any, method: str) -> dist.Work:
        size, op = _nbytes(tensors), opts.reduceOp
        rooms, copies = _results("all_reduce", tensors)

        def raw(group: Any) -> Any:
            return getattr(group, method)(rooms, opts)

        def pressed() -> None:
            flat = _flat(rooms)
            self._all_reduce(flat, op)
            if len(rooms) > 1:
                _deal_out(flat, rooms)

        suits = self._suits_sum(op, size, *tensors)
        sent = self._share_of(2 * size)
        return self._do(_Call("all_reduce", tensors, size, sent, suits, raw, pressed, copies))

    def broadcast(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.BroadcastOptions)
        if len(tensors) != 1 or not _usual(tensors) or not 0 <= opts.rootRank < self._size:
            return self._raw("broadcast", 0, "broadcast", tensors, opts)
        at_root = opts.rootRank == self._rank
        if at_root:
            rooms, copies = [in_a_row(tensors[0])], []
        else:
            rooms, copies = _results("broadcast", tensors)

        def raw(group: Any) -> Any:
            return group.broadcast(rooms, opts)

        def pressed() -> None:
            self._spread(rooms[0].view(-1), opts.rootRank)

        size = _nbytes(tensors)
        sent = size * (self._size - 1) if at_root else 0
        suits = self._suits(size, *tensors)
        return self._do(_Call("broadcast", tensors, size, sent, suits, raw, pressed, copies))

    def _spread(self, flat: torch.Tensor, root: int) -> None:
        at_root = self._rank == root
        message = self._pack_all([flat], lossy=False)[0] if at_root else None
        size = torch.tensor([message.numel() if at_root else 0])
        opts = dist.BroadcastOptions()
        opts.rootRank = root
        self._line.broadcast([size], opts).wait()
        if not at_root:
            message = self._room("in", int(size))[: int(size)]
        self._line.broadcast([message], opts).wait()
        if at_root:
            self._post.sent += (message.numel() + size.nbytes) * (self._size - 1)
        else:
            self._packer.unpack(message, flat)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, c10d.AllgatherOptions)
        lists, tensors = _lists(outputs), _list(inputs)
        outs = lists[0] if lists else []
        alike = _usual([*tensors, *outs]) and all(out.shape == tensors[0].shape for out in outs)
        if not alike or (len(tensors), len(lists), len(outs)) != (1, 1, self._size):
            return self._raw("all_gather", 0, "allgather", lists, tensors, opts)
        rooms, copies = _results("all_gather", outs)
        mine = in_a_row(tensors[0])

        def raw(group: Any) -> Any:
            return group.allgather([rooms], [mine], opts)

        def flats() -> Sequence[torch.Tensor]:
            return [room.view(-1) for room in rooms]

        return self._all_gathered(mine, flats, lists, raw, copies)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, c10d.AllgatherOptions)
        if not _usual([output, input]) or not self._is_whole(output, input):
            return self._raw("all_gather", 0, "all_gather_single", output, input, opts)
        (room,), copies = _results("all_gather", [output])
        mine = in_a_row(input)

        def raw(group: Any) -> Any:
            return _named(group, "all_gather_single")(room, mine, opts)

        def flats() -> Sequence[torch.Tensor]:
            return room.view(-1).tensor_split(self._size)

        return self._all_gathered(mine, flats, output, raw, copies)

    def _all_gathered(
        self,
        mine: torch.Tensor,
        flats: Callable[[], Sequence[torch.Tensor]],
        result: Any,
        raw: Callable[[Any], Any],
        copies: Pairs,
    ) -> dist.Work:
        def pressed() -> None:
            self._share(mine.view(-1), flats(), lossy=False)

        size, sent = mine.nbytes * self._size, mine.nbytes * (self._size - 1)
        suits = self._suits(size, mine)
        return self._do(_Call("all_gather", result, size, sent, suits, raw, pressed, copies))

    def _is_whole(self, whole: torch.Tensor, part: torch.Tensor) -> bool:
        """Whether `whole` has a `part` for every rank, one after the other."""
        if not part.dim():
            return False
        return whole.shape == (part.shape[0] * self._size, *part.shape[1:])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        pairs = list(zip(outputs, inputs, strict=True))
        if not all(_usual(pair) and self._is_whole(*pair) for pair in pairs):
            method = "all_gather_single_coalesced"
            return self._raw(
                "all_gather",
                0,
                method,
                list(outputs),
                list(inputs),
                opts or c10d.AllgatherOptions(),
            )
        return _Works([self.all_gather_single(*pair, opts) for pair in pairs], outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, c10d.AllgatherOptions)
        lists, tensors = _lists(outputs), _list(inputs)
        rows = [[outs[i] for outs in lists if i < len(outs)] for i in range(len(tensors))]
        alike = all(
            _usual([tensor, *row]) and all(out.shape == tensor.shape for out in row)
            for tensor, row in zip(tensors, rows, strict=True)
        )
        if not (alike and tensors and all(len(row) == self._size for row in rows)):
            return self._raw("all_gather", 0, "allgather_coalesced", lists, tensors, opts)
        pairs = zip(rows, tensors, strict=True)
        return _Works([self.allgather([row], [tensor], opts) for row, tensor in pairs], lists)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ReduceScatterOptions)
        outs, lists = _list(outputs), _lists(inputs)
        parts = lists[0] if lists else []
        alike = _usual([*outs, *parts]) and all(part.shape == outs[0].shape for part in parts)
        if not alike or (len(outs), len(lists), len(parts)) != (1, 1, self._size):
            return self._raw("reduce_scatter", 0, "reduce_scatter", outs, lists, opts)
        parts = [in_a_row(part) for part in parts]
        rooms, copies = _results("reduce_scatter", outs)

        def raw(group: Any) -> Any:
            return group.reduce_scatter(rooms, [parts], opts)

        def flats() -> Sequence[torch.Tensor]:
            return [part.view(-1) for part in parts]

        return self._reduce_scattered(rooms[0], flats, opts.reduceOp, outs, raw, copies)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ReduceScatterOptions)
        _check_dimensions("reduce_scatter", output, input)
        if not _usual([output, input]) or not self._is_whole(input, output):
            return self._raw("reduce_scatter", 0, "reduce_scatter_single", output, input, opts)
        whole = in_a_row(input)
        (room,), copies = _results("reduce_scatter", [output])

        def raw(group: Any) -> Any:
            return _named(group, "reduce_scatter_single")(room, whole, opts)

        def flats() -> Sequence[torch.Tensor]:
            return whole.view(-1).tensor_split(self._size)

        return self._reduce_scattered(room, flats, opts.reduceOp, output, raw, copies)

    def _reduce_scattered(
        self,
        room: torch.Tensor,
        flats: Callable[[], Sequence[torch.Tensor]],
        op: Any,
        result: Any,
        raw: Callable[[Any], Any],
        copies: Pairs,
    ) -> dist.Work:
        def pressed() -> None:
            parts = flats()
            mine = parts[self._rank].clone()
            self._sum_mine(parts, mine, op)
            room.view(-1).copy_(mine)

        size, sent = room.nbytes * self._size, room.nbytes * (self._size - 1)
        suits = self._suits_sum(op, size, room)
        return self._do(_Call("reduce_scatter", result, size, sent, suits, raw, pressed, copies))

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> dist.Work:
        opts = _options(opts, dist.ReduceScatterOptions)
        pairs = list(zip(outputs, inputs, strict=True))
        _check_dimensions("reduce_scatter", *outputs, *inputs)
        if not all(_usual(pair) and self._is_whole(*reversed(pair)) for pair in pairs):
            method = "reduce_scatter_single_coalesced"
            return self._raw("reduce_scatter", 0, method, list(outputs), list(inputs), opts)
        return _Works([self.reduce_scatter_single(*pair, opts) for pair in pairs], outputs)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> dist.Work:
        opts = _options(opts, dist.AllToAllOptions)
        coming, going = list(output_splits or []), list(input_splits or [])
        pair = [output, input]
        cuts = [self._cuts(output, coming), self._cuts(input, going)] if _usual(pair) else [None]
        if not all(cuts) or not all(map(_in_memory_order, pair)):
            return self._raw(
                "all_to_all", 0, "all_to_all_single", output, input, coming, going, opts
            )
        (room,), copies = _results("all_to_all", [output])
        flat, flat_out = in_a_row(input).view(-1), room.view(-1)

        def raw(group: Any) -> Any:
            return _named(group, "all_to_all_single")(flat_out, flat, *cuts, opts)

        def flats() -> tuple[Sequence[torch.Tensor], ...]:
            return flat.split(cuts[1]), flat_out.split(cuts[0])

        size, mine = flat.nbytes, cuts[1][self._rank] * flat.itemsize
        return self._dealt(flats, flat.dtype, size, size - mine, output, raw, copies)

    def _cuts(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[int] | None:
        """How many values each rank gets: so many rows, or evenly; None: it cannot be cut so."""
        if not splits:
            whole = tensor.numel() % self._size == 0
            return [tensor.numel() // self._size] * self._size if whole else None
        if len(splits) != self._size or not tensor.dim() or sum(splits) != tensor.shape[0]:
            return None
        row = tensor.numel() // max(tensor.shape[0], 1)
        return [n * row for n in splits] if min(splits) >= 0 else None

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.AllToAllOptions)
        outs, tensors = _list(outputs), _list(inputs)
        if not _usual([*outs, *tensors]) or not len(outs) == len(tensors) == self._size:
            return self._raw("all_to_all", 0, "alltoall", outs, tensors, opts)
        rooms, copies = _results("all_to_all", outs)
        parts = [in_a_row(tensor) for tensor in tensors]

        def raw(group: Any) -> Any:
            return group.alltoall(rooms, parts, opts)

        def flats() -> tuple[Sequence[torch.Tensor], ...]:
            return [part.view(-1) for part in parts], [room.view(-1) for room in rooms]

        size = _nbytes(parts)
        sent = size - parts[self._rank].nbytes
        return self._dealt(flats, parts[0].dtype, size, sent, outs, raw, copies)

    def _dealt(
        self,
        flats: Callable[[], tuple[Sequence[torch.Tensor], ...]],
        dtype: torch.dtype,
        size: int,
        sent: float,
        result: Any,
        raw: Callable[[Any], Any],
        copies: Pairs,
    ) -> dist.Work:
        """Ranks may have other sizes than this one, and need not say so: all such calls are voted
        on, small ones too, which `pressed` sends as they are."""

        def pressed() -> None:
            parts, outs = flats()
            messages = self._swap(parts, lossy=False, plain=self._is_small(call))
            for rank, message in enumerate(messages):
                if rank == self._rank:
                    outs[rank].copy_(parts[rank])
                else:
                    self._packer.unpack(message, outs[rank])

        suits = self._size > 1 and dtype in _CARRIED
        call = _Call("all_to_all", result, -1, sent, suits, raw, pressed, copies, size)
        return self._do(call)

    def reduce(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.ReduceOptions)
        op, root = opts.reduceOp, opts.rootRank
        if len(tensors) != 1 or not _usual(tensors) or not 0 <= root < self._size:
            return self._raw("reduce", 0, "reduce", tensors, opts)
        if self._rank == root:
            rooms, copies = _results("reduce", tensors)
        else:
            rooms, copies = [in_a_row(tensors[0])], []

        def raw(group: Any) -> Any:
            return group.reduce(rooms, opts)

        def pressed() -> None:
            chunks = self._chunks(rooms[0].view(-1))
            mine = chunks[self._rank].clone()
            self._sum_mine(chunks, mine, op)
            self._to_root(mine, chunks, root)

        size = _nbytes(tensors)
        sent = self._share_of(size) + (0 if self._rank == root else size / self._size)
        suits = self._suits_sum(op, size, *tensors)
        return self._do(_Call("reduce", tensors, size, sent, suits, raw, pressed, copies))

    def _to_root(
        self, mine: torch.Tensor, outs: Sequence[torch.Tensor], root: int, lossy: bool = True
    ) -> None:
        parts = [mine if rank == root else None for rank in range(self._size)]
        messages = self._swap(parts, lossy)
        if self._rank == root:
            for rank, message in enumerate(messages):
                if rank == root:
                    outs[rank].copy_(mine)
                else:
                    self._packer.unpack(message, outs[rank])

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.GatherOptions)
        lists, tensors, root = _lists(outputs), _list(inputs), opts.rootRank
        outs = [out for some in lists for out in some]
        if not self._is_rooted(tensors, lists, root):
            return self._raw("gather", 0, "gather", lists, tensors, opts)
        rooms, copies = _results("gather", outs)
        mine = in_a_row(tensors[0])

        def raw(group: Any) -> Any:
            return group.gather([rooms] if rooms else [], [mine], opts)

        def pressed() -> None:
            self._to_root(mine.view(-1), [room.view(-1) for room in rooms], root, lossy=False)

        sent = 0 if self._rank == root else mine.nbytes
        suits = self._suits(mine.nbytes, mine)
        return self._do(_Call("gather", lists, mine.nbytes, sent, suits, raw, pressed, copies))

    def _is_rooted(self, one: list[Any], lists: list[list[Any]], root: int) -> bool:
        """Whether a rank has one tensor, and the root another like it for every rank."""
        if not 0 <= root < self._size or len(one) != 1 or len(lists) != (self._rank == root):
            return False
        many = lists[0] if lists else []
        alike = _usual([*one, *many]) and all(each.shape == one[0].shape for each in many)
        return alike and len(many) == (self._size if lists else 0)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ScatterOptions)
        outs, lists, root = _list(outputs), _lists(inputs), opts.rootRank
        if not self._is_rooted(outs, lists, root):
            return self._raw("scatter", 0, "scatter", outs, lists, opts)
        (room,), copies = _results("scatter", outs)
        parts = [in_a_row(tensor) for tensor in lists[0]] if lists else []

        def raw(group: Any) -> Any:
            return group.scatter([room], [parts] if parts else [], opts)

        def pressed() -> None:
            messages = self._swap([p.view(-1) for p in parts] or [None] * self._size, lossy=False)
            if parts:
                room.copy_(parts[root])
            else:
                self._packer.unpack(messages[root], room)

        sent = room.nbytes * (self._size - 1) if parts else 0
        suits = self._suits(room.nbytes, room)
        return self._do(_Call("scatter", outs, room.nbytes, sent, suits, raw, pressed, copies))

    def send(self, tensors: Any, dst: int, tag: int = 0) -> dist.Work:
        tensors = _list(tensors)
        return self._raw("send", _nbytes(tensors), "send", tensors, dst, tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> dist.Work:
        return self._received("recv", tensors, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> dist.Work:
        return self._received("recv_anysource", tensors, tag)

    def _received(self, method: str, tensors: Any, *args: Any) -> dist.Work:
        tensors = _list(tensors)
        if not _usual(tensors) or not all(tensor.is_contiguous() for tensor in tensors):
            return self._raw("recv", 0, method, tensors, *args)
        rooms, copies = _results("recv", tensors)
        work = self._raw("recv", 0, method, rooms, *args)
        return _CopiedBack(work, tensors, copies) if copies else work

    def barrier(self, opts: Any = None) -> dist.Work:
        """Waits for what is in the queue, and for what went raw, too."""
        opts = _options(opts, dist.BarrierOptions)

        def run() -> None:
            self._count("barrier", 0, 0)
            self._line.barrier(opts).wait()
            direct.wait()

        self._keep_timeout()
        with self._jobs.lock:
            direct = self._direct.barrier(opts)  # now: its place among raw ones is the same on all
            return self._submit([], run)

    # The names that other versions of PyTorch call.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single

    def _share_of(self, size: float) -> float:
        return size * (self._size - 1) / self._size


def _words(turn: int) -> str:
    """What a rank is in, by its turn."""
    kind, size = _KINDS[turn >> 48], (turn & (1 << 48) - 1) - 1
    return kind if size < 0 else f"{kind} of {size} bytes"


class _Works(dist.Work):
    """Several operations as one."""

    def __init__(self, works: Sequence[dist.Work], result: Any) -> None:
        super().__init__()
        self._works, self._result = works, result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        for work in self._works:
            work.wait(timeout) if timeout else work.wait()
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> Any:
        return next(filter(None, (work.exception() for work in self._works)), None)

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        done = torch.futures.collect_all([work.get_future() for work in self._works])
        return done.then(self._outcome)

    def _outcome(self, done: torch.futures.Future[Any]) -> Any:
        for each in done.value():  # raises where one of them failed
            each.value()
        return self._result


class _CopiedBack(_Works):
    """A raw operation on rooms, whose tensors get the result when somebody waits for it."""

    def __init__(self, work: dist.Work, result: Any, copies: Pairs) -> None:
        super().__init__([work], result)
        self._copies = copies
        self._once = threading.Lock()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        super().wait(timeout)
        self._copy()
        return True

    def is_completed(self) -> bool:
        done = super().is_completed()
        if done and super().is_success():
            self._copy()
        return done

    def _source_rank(self) -> int:
        return self._works[0]._source_rank()

    def _outcome(self, done: torch.futures.Future[Any]) -> Any:
        result = super()._outcome(done)
        self._copy()
        return result

    def _copy(self) -> None:
        with self._once:
            copy_back(self._copies)
            self._copies = []


def _gloo(store: dist.Store, name: str, rank: int, size: int, timeout: timedelta) -> Any:
    """A group of PyTorch's own, so that it takes and refuses what any gloo group does."""
    store = dist.PrefixStore(f"{name}/", store)
    group = dist.ProcessGroup(store, rank, size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(_CPU, kind, dist.ProcessGroupGloo(store, rank, size, timeout))
    group._set_default_backend(kind)
    return group


_OLD_NAMES = {
    "all_gather_single": "_allgather_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "all_to_all_single": "alltoall_base",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}


def _named(group: Any, method: str) -> Any:
    """The method, by the name that this PyTorch has for it."""
    return getattr(group, method, None) or getattr(group, _OLD_NAMES[method])


def _options(given: Any, kind: type) -> Any:
    """What was given, or the default; PyTorch lets a caller give an operation or a root instead."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    made = kind()
    setattr(made, "reduceOp" if hasattr(made, "reduceOp") else "rootRank", given)
    return made


def _list(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _lists(tensors: Any) -> list[list[torch.Tensor]]:
    if tensors and isinstance(tensors[0], torch.Tensor):
        return [list(tensors)]
    return [list(each) for each in tensors or []]


_PYTHON = torch._C.DispatchKey.Python  # of tensors without memory, as in tracing


def _usual(tensors: Sequence[Any]) -> bool:
    """Whether these are tensors of one type whose values lie in this process's memory."""
    return bool(tensors) and all(
        t.is_cpu
        and t.layout == torch.strided
        and t.dtype == tensors[0].dtype
        and not t.is_quantized
        and (type(t) is torch.Tensor or not torch._C._dispatch_keys(t).has(_PYTHON))
        for t in tensors
    )


def _in_memory_order(tensor: torch.Tensor) -> bool:
    """What gloo calls contiguous; channels may come last."""
    return tensor.is_contiguous() or any(
        tensor.dim() == n and tensor.is_contiguous(memory_format=form)
        for n, form in ((4, torch.channels_last), (5, torch.channels_last_3d))
    )


def _nbytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.nbytes for t in tensors if t.layout == torch.strided)


def _check_dimensions(kind: str, *tensors: torch.Tensor) -> None:
    """Raises where a tensor has no first dimension: gloo reads it all the same, and may crash."""
    if not all(tensor.dim() for tensor in tensors):
        raise RuntimeError(f"wirepress: {kind}: a tensor without dimensions cannot be cut")


def _results(kind: str, tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Pairs]:
    """Rooms in one row for tensors that get results, and those that have to be copied back."""
    for tensor in tensors:
        if shares_elements(tensor):
            raise RuntimeError(
                f"wirepress: {kind}: elements of a result share memory (shape "
                f"{list(tensor.shape)}, strides {list(tensor.stride())}): give a clone of it"
            )
    rooms = [in_a_row(tensor) for tensor in tensors]
    return rooms, copies(rooms, tensors)


def _flat(rooms: Sequence[torch.Tensor]) -> torch.Tensor:
    """The values of all in one dimension: a copy where there are several."""
    parts = [room.view(-1) for room in rooms]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _deal_out(flat: torch.Tensor, rooms: Sequence[torch.Tensor]) -> None:
    for part, room in zip(flat.split([room.numel() for room in rooms]), rooms, strict=True):
        room.view(-1).copy_(part)


def _stay_uncompiled() -> None:
    """torch.compile would look into what PyTorch calls here, and fail."""
    for name in [*_ENTRIES]:
        setattr(CompressedGroup, name, torch.compiler.disable(getattr(CompressedGroup, name)))
        _ENTRIES.remove(name)


_ENTRIES = [
    name
    for name in vars(CompressedGroup)
    if (name[0] != "_" or name.endswith("_base")) and callable(vars(CompressedGroup)[name])
]


def _create(options: Any, group_options: Any) -> CompressedGroup:
    if not isinstance(group_options, (GroupOptions, type(None))):
        raise ParameterError(
            f"pg_options of the backend wirepress: wirepress.torch.GroupOptions, not "
            f"{type(group_options).__name__}"
        )
    _stay_uncompiled()
    return CompressedGroup(
        options.store, options.group_rank, options.group_size, options.timeout, group_options
    )


def register() -> None:
    """Makes the backend "wirepress" known to PyTorch."""
    if NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def wrap_group(
    group: dist.ProcessGroup | None = None,
    recipe: str = "",
    *,
    threshold: int = -1,
    adaptive: bool = True,
    threads: int = 1,
    timeout: timedelta | None = None,
) -> dist.ProcessGroup:
    """A group of the same ranks that compresses; call it on all of them.

    It has connections of its own; `group` (None: all ranks) is used no more than before. `timeout`:
    None: the group's. See `GroupOptions` for the settings; "" and -1: from the environment.
    """
    register()
    ranks = dist.get_process_group_ranks(group)
    made = _MADE.setdefault(dist.group.WORLD, collections.Counter())
    made[tuple(ranks)] += 1
    return dist.new_group(
        ranks,
        backend=NAME,
        timeout=timeout or timeout_of(group or dist.group.WORLD),
        pg_options=_Numbered(recipe, threshold, adaptive, threads, made[tuple(ranks)]),
        use_local_synchronization=len(ranks) < dist.get_world_size(),
    )


# How many groups of some ranks were made. PyTorch gives a group of not all ranks the name of an
# older one that is gone, whose addresses are still in the store.
_MADE: Any = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class _Numbered(GroupOptions):
    number: int = 0


def statistics(group: dist.ProcessGroup | None = None) -> dict[str, Traffic]:
    """What a group sent, by kind of operation ("all_reduce", "broadcast" ...).

    Raises:
        ParameterError: not a group of the backend wirepress.
    """
    found = group if group is not None else dist.group.WORLD
    if not isinstance(found, CompressedGroup):
        raise ParameterError('not a group of the backend "wirepress": nothing was counted')
    return found.statistics
