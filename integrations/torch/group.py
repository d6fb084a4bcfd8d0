# SPDX-License-Identifier: Apache-2.0
"""Process groups whose tensors are smaller on the wire: the backend "wirepress".

A group has two gloo groups. What never is compressed is called on the first by the thread that
asks, as with gloo itself. What may be goes to the second, in the order in which it is asked for, so
that messages have the same order on all ranks: through one queue and one thread, or, where it is
agreed to go raw and nothing else is waiting, by the thread that asks.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
import wirepress
from torch.distributed import distributed_c10d as c10d
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch.packer import AUTO, FLOATS, Packer, as_bytes
from wirepress.torch.transport import Post, all_gather_into, all_to_all_into

NAME = "wirepress"
_SUMS = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
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
            threshold = _size(library.option("torch_threshold")[0])
        return dataclasses.replace(self, recipe=recipe, threshold=threshold)


def _size(text: str) -> int:
    """Bytes of an option that the library has checked; "64KiB" -> 65536."""
    words = re.fullmatch(r"(\d+) *(?:([KMG])(I?B)?|B)?", text.upper())
    assert words, text
    exponent = " KMG".index(words[2] or " ")
    return int(words[1]) * (1000 if words[3] == "B" else 1024) ** exponent


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
        self._future: torch.futures.Future[Any] = torch.futures.Future()
        self._done = threading.Event()
        self._error: Exception | None = None

    def finish(self, error: Exception | None) -> None:
        self._error = error
        self._done.set()
        if error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(error)

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
        return self._future


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
    with torch.inference_mode():  # results are written to whatever tensors the user has
        while (job := jobs.queue.get()) is not None:
            work, run = job
            error = jobs.failed
            if error is None:
                try:
                    run()
                except Exception as caught:
                    error = caught
                    if not isinstance(caught, ParameterError):
                        jobs.failed = caught
            with jobs.lock:
                jobs.left -= 1
            work.finish(error)
            del job, work, run


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
        self._direct = _gloo(store, "direct", rank, size, timeout)
        self._line = _gloo(store, "line", rank, size, timeout)
        cpu = torch.device("cpu")
        self._register_backend(cpu, dist.ProcessGroup.BackendType.GLOO, self._direct)
        self._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self._post = Post(self._line)
        self.statistics = {kind: Traffic() for kind in _KINDS}
        self._counting = threading.Lock()
        self._contests: dict[Any, _Contest] = {}
        self.options, self._packer = self._shake_hands(options or GroupOptions())
        self._jobs = _Jobs()
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
        self._direct._set_default_timeout(timeout)
        self._line._set_default_timeout(timeout)

    # Raw, by the thread that asks.

    def _raw(self, kind: str, sent: float, tensor: torch.Tensor, method: str, *args: Any) -> Any:
        self._count(kind, sent, sent)
        device = tensor.device
        backend = self._direct if device.type == "cpu" else self._get_backend(device)
        return getattr(backend, method)(*args)

    def _count(self, kind: str, raw: float, wire: float, compressed: bool = False) -> None:
        with self._counting:
            traffic = self.statistics[kind]
            traffic.calls += 1
            traffic.compressed_calls += compressed
            traffic.raw_bytes += int(raw)
            traffic.wire_bytes += int(wire)

    def _suits(self, size: int, *tensors: torch.Tensor) -> bool:
        """Whether to compress; must come out the same on all ranks."""
        return (
            self._size > 1
            and size >= max(self.options.threshold, 1)
            and all(t.device.type == "cpu" and t.layout == torch.strided for t in tensors)
            and all(t.dtype == tensors[0].dtype and not t.is_quantized for t in tensors)
        )

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

    def _compressed(
        self,
        kind: str,
        result: Any,
        size: int,
        raw_sent: float,
        raw: Callable[[Any], Any],
        pressed: Callable[[], None],
        waits: bool = False,
    ) -> Any:
        """An operation on `size` bytes, -1 where ranks differ in that.

        `raw` begins it on a group and returns its work; if it `waits`, it returns when all is done.
        """
        contest = self._contests.setdefault((kind, size.bit_length()), _Contest())
        with self._jobs.lock:
            # The thread being idle, the contest is this thread's. Which of them begins an operation
            # of the line does not matter to other ranks: the order is the same.
            if waits or not (self._jobs.idle and contest.granted and contest.raw):
                return self._submit(
                    result, lambda: self._take_turn(contest, kind, size, raw_sent, raw, pressed)
                )
            work = raw(self._line)
            contest.granted -= 1
        self._count(kind, raw_sent, raw_sent)
        return work

    def _take_turn(
        self,
        contest: _Contest,
        kind: str,
        size: int,
        raw_sent: float,
        raw: Callable[[Any], Any],
        pressed: Callable[[], None],
    ) -> None:
        self._turn = _KINDS.index(kind) << 48 | (size + 1)
        if not contest.granted:
            self._vote(contest)
        contest.granted -= 1
        sent, began = self._post.sent, time.perf_counter()
        if contest.raw:
            work = raw(self._line)
            if work is not None:
                work.wait()
            wire = raw_sent
        else:
            pressed()
            wire = self._post.sent - sent
        contest.note(contest.raw, (time.perf_counter() - began) / abs(size))
        self._count(kind, raw_sent, wire, not contest.raw)

    def _vote(self, contest: _Contest) -> None:
        """All do what rank 0 wants, for as many calls as it says: to ask takes as long as a small
        operation does."""
        raw, calls = contest.plan() if self.options.adaptive else (False, 256)
        rows = self._post._announce([self._turn, calls if raw else -calls])
        self._check_same(rows[:, 0].tolist())
        agreed = int(rows[0, 1])
        contest.raw, contest.granted = agreed > 0, abs(agreed)

    def _check_same(self, turns: Sequence[int]) -> None:
        """Raises where ranks, by their turns, are in different operations."""
        odd = next((rank for rank, turn in enumerate(turns) if turn != turns[0]), None)
        if odd is not None:
            words = [
                f"{_KINDS[turn >> 48]} of {(turn & (1 << 48) - 1) - 1} bytes"
                for turn in (turns[0], turns[odd])
            ]
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
        self, parts: Sequence[torch.Tensor | None], lossy: bool
    ) -> tuple[torch.Tensor, list[int]]:
        """Messages of the parts, one after the other; None: no message."""
        bounds = [0 if part is None else self._packer.bound(part) for part in parts]
        room = self._room("out", sum(bounds))
        sizes, at = [], 0
        for part in parts:
            size = 0 if part is None else self._packer.pack(part, room[at:], lossy=lossy)
            sizes.append(size)
            at += size
        return room[:at], sizes

    def _swap(self, parts: Sequence[torch.Tensor | None], lossy: bool) -> list[torch.Tensor]:
        """Sends a part to every rank; returns the messages from every rank."""
        others = [None if rank == self._rank else part for rank, part in enumerate(parts)]
        messages, turns = self._post.all_to_all(*self._pack_all(others, lossy), self._turn)
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

    # Collectives.

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.AllreduceOptions)
        size = sum(t.nbytes for t in tensors)
        sent = self._share_of(2 * size)
        op = opts.reduceOp
        if not self._suits_sum(op, size, *tensors):
            return self._raw("all_reduce", sent, tensors[0], "allreduce", tensors, opts)

        def raw(group: Any) -> Any:
            return group.allreduce(tensors, opts)

        def pressed() -> None:
            flat = _flat(tensors)
            self._all_reduce(flat, op)
            _scatter_back(flat, tensors)

        return self._compressed("all_reduce", tensors, size, sent, raw, pressed)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        plain = dist.AllreduceOptions()
        if opts is not None:
            plain.reduceOp, plain.timeout = opts.reduceOp, opts.timeout
        if self._suits_sum(plain.reduceOp, sum(t.nbytes for t in tensors), *tensors):
            return self.allreduce(tensors, plain)
        return _Works([self.allreduce([tensor], plain) for tensor in tensors], tensors)

    def broadcast(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.BroadcastOptions)
        tensor = tensors[0]
        at_root = opts.rootRank == self._rank
        sent = tensor.nbytes * (self._size - 1) if at_root else 0
        if not self._suits(tensor.nbytes, tensor):
            return self._raw("broadcast", sent, tensor, "broadcast", tensors, opts)

        def raw(group: Any) -> Any:
            return group.broadcast(tensors, opts)

        def pressed() -> None:
            flat = _flat(tensors)
            self._spread(flat, opts.rootRank)
            if not at_root:
                _scatter_back(flat, tensors)

        return self._compressed("broadcast", tensors, tensor.nbytes, sent, raw, pressed)

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
        outs, tensor = lists[0], tensors[0]
        sent = tensor.nbytes * (self._size - 1)
        even = all(out.nbytes == tensor.nbytes for out in outs)
        if not even or not self._suits(sum(out.nbytes for out in outs), tensor, *outs):
            return self._raw("all_gather", sent, tensor, "allgather", lists, tensors, opts)

        def raw(group: Any) -> Any:
            return group.allgather(lists, tensors, opts)

        def pressed() -> None:
            rooms = [_flat([out]) for out in outs]
            self._share(_flat(tensors), rooms, lossy=False)
            for room, out in zip(rooms, outs, strict=True):
                _scatter_back(room, [out])

        size = tensor.nbytes * self._size
        return self._compressed("all_gather", lists, size, sent, raw, pressed)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, c10d.AllgatherOptions)
        sent = input.nbytes * (self._size - 1)
        whole = output.is_contiguous() and output.numel() == input.numel() * self._size
        if not whole or not self._suits(output.nbytes, input, output):
            return self._raw("all_gather", sent, input, "_allgather_base", output, input, opts)

        def raw(group: Any) -> Any:
            return group._allgather_base(output, input, opts)

        def pressed() -> None:
            self._share(_flat([input]), output.view(-1).chunk(self._size), lossy=False)

        return self._compressed("all_gather", output, output.nbytes, sent, raw, pressed)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        pairs = zip(outputs, inputs, strict=True)
        return _Works([self.all_gather_single(out, tensor) for out, tensor in pairs], outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        works = [
            self.allgather([[outs[i] for outs in outputs]], [tensor])
            for i, tensor in enumerate(inputs)
        ]
        return _Works(works, outputs)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ReduceScatterOptions)
        outs, lists = _list(outputs), _lists(inputs)
        return self._reduce_scatter(
            outs[0], lists[0], opts.reduceOp, outs, "reduce_scatter", (outs, lists, opts)
        )

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ReduceScatterOptions)
        parts = input.reshape(-1).chunk(self._size) if input.numel() else [input] * self._size
        return self._reduce_scatter(
            output, parts, opts.reduceOp, output, "_reduce_scatter_base", (output, input, opts)
        )

    def _reduce_scatter(
        self, out: Any, parts: Any, op: Any, result: Any, method: str, args: tuple[Any, ...]
    ) -> dist.Work:
        size = sum(part.nbytes for part in parts)
        sent = size - parts[self._rank].nbytes
        even = len(parts) == self._size and all(part.numel() == out.numel() for part in parts)
        if not even or not self._suits_sum(op, size, out, *parts):
            return self._raw("reduce_scatter", sent, out, method, *args)

        def raw(group: Any) -> Any:
            return getattr(group, method)(*args)

        def pressed() -> None:
            flats = [_flat([part]) for part in parts]
            mine = flats[self._rank].clone()
            self._sum_mine(flats, mine, op)
            _scatter_back(mine, [out])

        return self._compressed("reduce_scatter", result, size, sent, raw, pressed)

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> dist.Work:
        pairs = zip(outputs, inputs, strict=True)
        works = [self.reduce_scatter_single(out, tensor, opts) for out, tensor in pairs]
        return _Works(works, outputs)

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
        # With splits, sizes differ between ranks: all of them go one way, and vote on it.
        splits = bool(coming or going)
        size = self.options.threshold + 1 if splits else input.nbytes
        whole = input.is_contiguous() and output.is_contiguous()
        even = bool(splits or (input.dim() and input.shape[0] % self._size == 0))
        if not (whole and even) or not self._suits(size, output, input):
            return self._raw(
                "all_to_all",
                input.nbytes,
                input,
                "alltoall_base",
                output,
                input,
                coming,
                going,
                opts,
            )
        parts, outs = self._rows(input, going), self._rows(output, coming)
        sent = input.nbytes - parts[self._rank].nbytes

        def raw(group: Any) -> Any:
            return group.alltoall_base(output, input, coming, going, opts)

        def pressed() -> None:
            self._deal(parts, outs)

        agreed = -1 if splits else input.nbytes
        return self._compressed("all_to_all", output, agreed, sent, raw, pressed)

    def _rows(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[torch.Tensor]:
        """A tensor cut along its first dimension: so many rows each, or evenly."""
        if splits:
            return list(tensor.split(list(splits)))
        return list(tensor.split(tensor.shape[0] // self._size))

    def _deal(self, parts: Sequence[torch.Tensor], outs: Sequence[torch.Tensor]) -> None:
        for rank, message in enumerate(self._swap(parts, lossy=False)):
            if rank == self._rank:
                as_bytes(outs[rank]).copy_(as_bytes(parts[rank]))
            else:
                self._packer.unpack(message, outs[rank])

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        """Gloo has no such thing: raw, too, by `all_to_all_single` of one tensor."""
        outs, tensors = _list(outputs), _list(inputs)
        size = sum(t.nbytes for t in tensors)
        sent = size - tensors[self._rank].nbytes
        if tensors[0].device.type != "cpu":
            return self._raw("all_to_all", sent, tensors[0], "alltoall", outs, tensors, opts)

        def raw(group: Any) -> None:
            parts = [_flat([t]) for t in tensors]
            coming, going = [out.numel() for out in outs], [t.numel() for t in tensors]
            room = parts[0].new_empty(sum(coming))
            all_to_all_into(room, torch.cat(parts), coming, going, group)
            _scatter_back(room, outs)

        def pressed() -> None:
            rooms = [_flat([out]) for out in outs]
            self._deal([_flat([t]) for t in tensors], rooms)
            for room, out in zip(rooms, outs, strict=True):
                _scatter_back(room, [out])

        return self._compressed("all_to_all", outs, -1, sent, raw, pressed, waits=True)

    def reduce(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = _list(tensors), _options(opts, dist.ReduceOptions)
        tensor, op, root = tensors[0], opts.reduceOp, opts.rootRank
        sent = self._share_of(tensor.nbytes) + (
            0 if self._rank == root else tensor.nbytes / self._size
        )
        if not self._suits_sum(op, tensor.nbytes, tensor):
            return self._raw("reduce", sent, tensor, "reduce", tensors, opts)

        def raw(group: Any) -> Any:
            return group.reduce(tensors, opts)

        def pressed() -> None:
            flat = _flat(tensors)
            chunks = self._chunks(flat)
            mine = chunks[self._rank].clone()
            self._sum_mine(chunks, mine, op)
            self._to_root(mine, chunks, root)
            if self._rank == root:
                _scatter_back(flat, tensors)

        return self._compressed("reduce", tensors, tensor.nbytes, sent, raw, pressed)

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
        lists, tensors = _lists(outputs), _list(inputs)
        tensor, root = tensors[0], opts.rootRank
        sent = 0 if self._rank == root else tensor.nbytes
        if not self._suits(tensor.nbytes, tensor):
            return self._raw("gather", sent, tensor, "gather", lists, tensors, opts)

        def raw(group: Any) -> Any:
            return group.gather(lists, tensors, opts)

        def pressed() -> None:
            outs = lists[0] if self._rank == root else []
            rooms = [_flat([out]) for out in outs]
            self._to_root(_flat(tensors), rooms, root, lossy=False)
            for room, out in zip(rooms, outs, strict=True):
                _scatter_back(room, [out])

        return self._compressed("gather", lists, tensor.nbytes, sent, raw, pressed)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = _options(opts, dist.ScatterOptions)
        outs, lists = _list(outputs), _lists(inputs)
        out, root = outs[0], opts.rootRank
        sent = out.nbytes * (self._size - 1) if self._rank == root else 0
        if not self._suits(out.nbytes, out):
            return self._raw("scatter", sent, out, "scatter", outs, lists, opts)

        def raw(group: Any) -> Any:
            return group.scatter(outs, lists, opts)

        def pressed() -> None:
            at_root = self._rank == root
            parts = [_flat([t]) for t in lists[0]] if at_root else [None] * self._size
            messages = self._swap(parts, lossy=False)
            if at_root:
                out.copy_(lists[0][root])
            else:
                room = _flat([out])
                self._packer.unpack(messages[root], room)
                _scatter_back(room, [out])

        return self._compressed("scatter", outs, out.nbytes, sent, raw, pressed)

    def send(self, tensors: Any, dst: int, tag: int = 0) -> dist.Work:
        tensors = _list(tensors)
        return self._raw("send", tensors[0].nbytes, tensors[0], "send", tensors, dst, tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> dist.Work:
        tensors = _list(tensors)
        return self._raw("recv", 0, tensors[0], "recv", tensors, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> dist.Work:
        tensors = _list(tensors)
        return self._raw("recv", 0, tensors[0], "recv_anysource", tensors, tag)

    def barrier(self, opts: Any = None) -> dist.Work:
        """Waits for what is in the queue, too."""
        opts = _options(opts, dist.BarrierOptions)

        def run() -> None:
            self._count("barrier", 0, 0)
            self._line.barrier(opts).wait()

        with self._jobs.lock:
            return self._submit([], run)

    # The names that other versions of PyTorch call.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single

    def _share_of(self, size: float) -> float:
        return size * (self._size - 1) / self._size


class _Works(_Work):
    """Several operations as one."""

    def __init__(self, works: Sequence[dist.Work], result: Any) -> None:
        super().__init__(result)
        self._works = works

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        for work in self._works:
            work.wait()
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def get_future(self) -> torch.futures.Future[Any]:
        futures = torch.futures.collect_all([work.get_future() for work in self._works])
        return futures.then(lambda _: self._result)


def _gloo(store: dist.Store, name: str, rank: int, size: int, timeout: timedelta) -> Any:
    return dist.ProcessGroupGloo(dist.PrefixStore(f"{name}/", store), rank, size, timeout)


def _options(given: Any, kind: type) -> Any:
    """What was given, or the default; PyTorch lets a caller give an operation instead."""
    if given is None or isinstance(given, kind):
        return given or kind()
    made = kind()
    made.reduceOp = given
    return made


def _list(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _lists(tensors: Any) -> list[list[torch.Tensor]]:
    if tensors and isinstance(tensors[0], torch.Tensor):
        return [list(tensors)]
    return [list(each) for each in tensors or []]


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The values in one dimension: the tensor's own memory where that can be, else a copy."""
    parts = [t.detach().reshape(-1) for t in tensors]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _scatter_back(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copies values of `flat` to the tensors, where that is not their memory."""
    for part, tensor in zip(flat.split([t.numel() for t in tensors]), tensors, strict=True):
        if part.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(part.view(tensor.shape))


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

    It has connections of its own; `group` (None: all ranks) is used no more than before. See
    `GroupOptions` for the settings; "" and -1: from the environment.
    """
    register()
    return dist.new_group(
        dist.get_process_group_ranks(group),
        backend=NAME,
        timeout=timeout,
        pg_options=GroupOptions(recipe, threshold, adaptive, threads),
        use_local_synchronization=True,
    )


def statistics(group: dist.ProcessGroup | None = None) -> dict[str, Traffic]:
    """What a group sent, by kind of operation ("all_reduce", "broadcast" ...).

    Raises:
        ParameterError: not a group of the backend wirepress.
    """
    found = group if group is not None else dist.group.WORLD
    if not isinstance(found, CompressedGroup):
        raise ParameterError('not a group of the backend "wirepress": nothing was counted')
    return found.statistics
