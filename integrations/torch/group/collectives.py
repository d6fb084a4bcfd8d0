# SPDX-License-Identifier: Apache-2.0
"""The collectives of a process group whose tensors are smaller on the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from wirepress.torch.group.line import CARRIED, Call, Line
from wirepress.torch.group.options import NAME
from wirepress.torch.group.tensors import (
    check_dimensions,
    deal_out,
    flat_of,
    in_memory_order,
    method_of,
    n_bytes,
    results_of,
    settled_options,
    tensor_list,
    tensor_lists,
    usual,
)
from wirepress.torch.group.works import CopiedBack, Works
from wirepress.torch.memory import Pairs, in_a_row


class CompressedGroup(Line):
    """Made by `init_process_group`, `new_group` and `wrap_group`."""

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

    # Collectives. Each asks first whether gloo would take these tensors; if not, gloo itself says
    # so, in the caller and before anything is sent. What gloo reads and writes as if it lay in one
    # row goes by rooms that do.

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> dist.Work:
        tensors, opts = tensor_list(tensors), settled_options(opts, dist.AllreduceOptions)
        if len(tensors) != 1 or not usual(tensors):  # gloo adds up several tensors of a rank
            return self._raw("all_reduce", 0, "allreduce", tensors, opts)
        return self._all_reduced(tensors, opts, "allreduce")

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = list(tensors), settled_options(opts, c10d.AllreduceCoalescedOptions)
        if not usual(tensors):
            return self._raw("all_reduce", 0, "allreduce_coalesced", tensors, opts)
        return self._all_reduced(tensors, opts, "allreduce_coalesced")

    def _all_reduced(self, tensors: list[torch.Tensor], opts: Any, method: str) -> dist.Work:
        size, op = n_bytes(tensors), opts.reduceOp
        rooms, copies = results_of("all_reduce", tensors)

        def raw(group: Any) -> Any:
            return getattr(group, method)(rooms, opts)

        def pressed() -> None:
            flat = flat_of(rooms)
            self._all_reduce(flat, op)
            if len(rooms) > 1:
                deal_out(flat, rooms)

        suits = self._suits_sum(op, size, *tensors)
        sent = self._share_of(2 * size)
        return self._do(Call("all_reduce", tensors, size, sent, suits, raw, pressed, copies))

    def broadcast(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = tensor_list(tensors), settled_options(opts, dist.BroadcastOptions)
        if len(tensors) != 1 or not usual(tensors) or not 0 <= opts.rootRank < self._size:
            return self._raw("broadcast", 0, "broadcast", tensors, opts)
        at_root = opts.rootRank == self._rank
        if at_root:
            rooms, copies = [in_a_row(tensors[0])], []
        else:
            rooms, copies = results_of("broadcast", tensors)

        def raw(group: Any) -> Any:
            return group.broadcast(rooms, opts)

        def pressed() -> None:
            self._spread(rooms[0].view(-1), opts.rootRank)

        size = n_bytes(tensors)
        sent = size * (self._size - 1) if at_root else 0
        suits = self._suits(size, *tensors)
        return self._do(Call("broadcast", tensors, size, sent, suits, raw, pressed, copies))

    def _spread(self, flat: torch.Tensor, root: int) -> None:
        at_root = self._rank == root
        message = self._pack_all([flat], lossy=False)[0] if at_root else None
        size = torch.tensor([message.numel() if at_root else 0], device="cpu")
        opts = dist.BroadcastOptions()
        opts.rootRank = root
        self._line.broadcast([size], opts).wait()
        if not at_root:
            message = self._room("in", int(size), flat)[: int(size)]
        self._line.broadcast([message], opts).wait()
        if at_root:
            self._post.sent += (message.numel() + size.nbytes) * (self._size - 1)
        else:
            self._packer.unpack(message, flat)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, c10d.AllgatherOptions)
        lists, tensors = tensor_lists(outputs), tensor_list(inputs)
        outs = lists[0] if lists else []
        alike = usual([*tensors, *outs]) and all(out.shape == tensors[0].shape for out in outs)
        if not alike or (len(tensors), len(lists), len(outs)) != (1, 1, self._size):
            return self._raw("all_gather", 0, "allgather", lists, tensors, opts)
        rooms, copies = results_of("all_gather", outs)
        mine = in_a_row(tensors[0])

        def raw(group: Any) -> Any:
            return group.allgather([rooms], [mine], opts)

        def flats() -> Sequence[torch.Tensor]:
            return [room.view(-1) for room in rooms]

        return self._all_gathered(mine, flats, lists, raw, copies)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, c10d.AllgatherOptions)
        if not usual([output, input]) or not self._is_whole(output, input):
            return self._raw("all_gather", 0, "all_gather_single", output, input, opts)
        (room,), copies = results_of("all_gather", [output])
        mine = in_a_row(input)

        def raw(group: Any) -> Any:
            return method_of(group, "all_gather_single")(room, mine, opts)

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
        return self._do(Call("all_gather", result, size, sent, suits, raw, pressed, copies))

    def _is_whole(self, whole: torch.Tensor, part: torch.Tensor) -> bool:
        """Whether `whole` has a `part` for every rank, one after the other."""
        if not part.dim():
            return False
        return whole.shape == (part.shape[0] * self._size, *part.shape[1:])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        pairs = list(zip(outputs, inputs, strict=True))
        if not all(usual(pair) and self._is_whole(*pair) for pair in pairs):
            method = "all_gather_single_coalesced"
            return self._raw(
                "all_gather",
                0,
                method,
                list(outputs),
                list(inputs),
                opts or c10d.AllgatherOptions(),
            )
        return Works([self.all_gather_single(*pair, opts) for pair in pairs], outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, c10d.AllgatherOptions)
        lists, tensors = tensor_lists(outputs), tensor_list(inputs)
        rows = [[outs[i] for outs in lists if i < len(outs)] for i in range(len(tensors))]
        alike = all(
            usual([tensor, *row]) and all(out.shape == tensor.shape for out in row)
            for tensor, row in zip(tensors, rows, strict=True)
        )
        if not (alike and tensors and all(len(row) == self._size for row in rows)):
            return self._raw("all_gather", 0, "allgather_coalesced", lists, tensors, opts)
        pairs = zip(rows, tensors, strict=True)
        return Works([self.allgather([row], [tensor], opts) for row, tensor in pairs], lists)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, dist.ReduceScatterOptions)
        outs, lists = tensor_list(outputs), tensor_lists(inputs)
        parts = lists[0] if lists else []
        alike = usual([*outs, *parts]) and all(part.shape == outs[0].shape for part in parts)
        if not alike or (len(outs), len(lists), len(parts)) != (1, 1, self._size):
            return self._raw("reduce_scatter", 0, "reduce_scatter", outs, lists, opts)
        parts = [in_a_row(part) for part in parts]
        rooms, copies = results_of("reduce_scatter", outs)

        def raw(group: Any) -> Any:
            return group.reduce_scatter(rooms, [parts], opts)

        def flats() -> Sequence[torch.Tensor]:
            return [part.view(-1) for part in parts]

        return self._reduce_scattered(rooms[0], flats, opts.reduceOp, outs, raw, copies)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, dist.ReduceScatterOptions)
        check_dimensions("reduce_scatter", output, input)
        if not usual([output, input]) or not self._is_whole(input, output):
            return self._raw("reduce_scatter", 0, "reduce_scatter_single", output, input, opts)
        whole = in_a_row(input)
        (room,), copies = results_of("reduce_scatter", [output])

        def raw(group: Any) -> Any:
            return method_of(group, "reduce_scatter_single")(room, whole, opts)

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
        return self._do(Call("reduce_scatter", result, size, sent, suits, raw, pressed, copies))

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> dist.Work:
        opts = settled_options(opts, dist.ReduceScatterOptions)
        pairs = list(zip(outputs, inputs, strict=True))
        check_dimensions("reduce_scatter", *outputs, *inputs)
        if not all(usual(pair) and self._is_whole(*reversed(pair)) for pair in pairs):
            method = "reduce_scatter_single_coalesced"
            return self._raw("reduce_scatter", 0, method, list(outputs), list(inputs), opts)
        return Works([self.reduce_scatter_single(*pair, opts) for pair in pairs], outputs)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> dist.Work:
        opts = settled_options(opts, dist.AllToAllOptions)
        coming, going = list(output_splits or []), list(input_splits or [])
        pair = [output, input]
        cuts = [self._cuts(output, coming), self._cuts(input, going)] if usual(pair) else [None]
        if not all(cuts) or not all(map(in_memory_order, pair)):
            return self._raw(
                "all_to_all", 0, "all_to_all_single", output, input, coming, going, opts
            )
        (room,), copies = results_of("all_to_all", [output])
        flat, flat_out = in_a_row(input).view(-1), room.view(-1)

        def raw(group: Any) -> Any:
            return method_of(group, "all_to_all_single")(flat_out, flat, *cuts, opts)

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
        opts = settled_options(opts, dist.AllToAllOptions)
        outs, tensors = tensor_list(outputs), tensor_list(inputs)
        if not usual([*outs, *tensors]) or not len(outs) == len(tensors) == self._size:
            return self._raw("all_to_all", 0, "alltoall", outs, tensors, opts)
        rooms, copies = results_of("all_to_all", outs)
        parts = [in_a_row(tensor) for tensor in tensors]

        def raw(group: Any) -> Any:
            return group.alltoall(rooms, parts, opts)

        def flats() -> tuple[Sequence[torch.Tensor], ...]:
            return [part.view(-1) for part in parts], [room.view(-1) for room in rooms]

        size = n_bytes(parts)
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
            self._put_all(messages, parts[self._rank], outs)

        suits = self._size > 1 and dtype in CARRIED
        call = Call("all_to_all", result, -1, sent, suits, raw, pressed, copies, size)
        return self._do(call)

    def reduce(self, tensors: Any, opts: Any = None) -> dist.Work:
        tensors, opts = tensor_list(tensors), settled_options(opts, dist.ReduceOptions)
        op, root = opts.reduceOp, opts.rootRank
        if len(tensors) != 1 or not usual(tensors) or not 0 <= root < self._size:
            return self._raw("reduce", 0, "reduce", tensors, opts)
        if self._rank == root:
            rooms, copies = results_of("reduce", tensors)
        else:
            rooms, copies = [in_a_row(tensors[0])], []

        def raw(group: Any) -> Any:
            return group.reduce(rooms, opts)

        def pressed() -> None:
            chunks = self._chunks(rooms[0].view(-1))
            mine = chunks[self._rank].clone()
            self._sum_mine(chunks, mine, op)
            self._to_root(mine, chunks, root)

        size = n_bytes(tensors)
        sent = self._share_of(size) + (0 if self._rank == root else size / self._size)
        suits = self._suits_sum(op, size, *tensors)
        return self._do(Call("reduce", tensors, size, sent, suits, raw, pressed, copies))

    def _to_root(
        self, mine: torch.Tensor, outs: Sequence[torch.Tensor], root: int, lossy: bool = True
    ) -> None:
        parts = [mine if rank == root else None for rank in range(self._size)]
        messages = self._swap(parts, lossy)
        if self._rank == root:
            self._put_all(messages, mine, outs)

    def _put_all(
        self, messages: Sequence[torch.Tensor], mine: torch.Tensor, outs: Sequence[torch.Tensor]
    ) -> None:
        """Puts what came where it belongs. This rank's part goes first: it may lie in the place of
        another one."""
        outs[self._rank].copy_(mine)
        for rank, message in enumerate(messages):
            if rank != self._rank:
                self._packer.unpack(message, outs[rank])

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, dist.GatherOptions)
        lists, tensors, root = tensor_lists(outputs), tensor_list(inputs), opts.rootRank
        outs = [out for some in lists for out in some]
        if not self._is_rooted(tensors, lists, root):
            return self._raw("gather", 0, "gather", lists, tensors, opts)
        rooms, copies = results_of("gather", outs)
        mine = in_a_row(tensors[0])

        def raw(group: Any) -> Any:
            return group.gather([rooms] if rooms else [], [mine], opts)

        def pressed() -> None:
            self._to_root(mine.view(-1), [room.view(-1) for room in rooms], root, lossy=False)

        sent = 0 if self._rank == root else mine.nbytes
        suits = self._suits(mine.nbytes, mine)
        call = Call("gather", lists, mine.nbytes, sent, suits, raw, pressed, copies, given=mine)
        return self._do(call)

    def _is_rooted(self, one: list[Any], lists: list[list[Any]], root: int) -> bool:
        """Whether a rank has one tensor, and the root another like it for every rank."""
        if not 0 <= root < self._size or len(one) != 1 or len(lists) != (self._rank == root):
            return False
        many = lists[0] if lists else []
        alike = usual([*one, *many]) and all(each.shape == one[0].shape for each in many)
        return alike and len(many) == (self._size if lists else 0)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        opts = settled_options(opts, dist.ScatterOptions)
        outs, lists, root = tensor_list(outputs), tensor_lists(inputs), opts.rootRank
        if not self._is_rooted(outs, lists, root):
            return self._raw("scatter", 0, "scatter", outs, lists, opts)
        (room,), copies = results_of("scatter", outs)
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
        return self._do(Call("scatter", outs, room.nbytes, sent, suits, raw, pressed, copies))

    def send(self, tensors: Any, dst: int, tag: int = 0) -> dist.Work:
        tensors = tensor_list(tensors)
        return self._raw("send", n_bytes(tensors), "send", tensors, dst, tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> dist.Work:
        return self._received("recv", tensors, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> dist.Work:
        return self._received("recv_anysource", tensors, tag)

    def _received(self, method: str, tensors: Any, *args: Any) -> dist.Work:
        tensors = tensor_list(tensors)
        if not usual(tensors) or not all(tensor.is_contiguous() for tensor in tensors):
            return self._raw("recv", 0, method, tensors, *args)
        rooms, copies = results_of("recv", tensors)
        work = self._raw("recv", 0, method, rooms, *args)
        return CopiedBack(work, tensors, copies) if copies else work

    def barrier(self, opts: Any = None) -> dist.Work:
        """Waits for what is in the queue, and for what went raw, too."""
        opts = settled_options(opts, dist.BarrierOptions)

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


def stay_uncompiled() -> None:
    """torch.compile would look into what PyTorch calls here, and fail."""
    for name in [*_ENTRIES]:
        setattr(CompressedGroup, name, torch.compiler.disable(getattr(CompressedGroup, name)))
        _ENTRIES.remove(name)


_ENTRIES = [
    name
    for name, method in {**vars(Line), **vars(CompressedGroup)}.items()
    if (name[0] != "_" or name.endswith("_base")) and callable(method)
]
