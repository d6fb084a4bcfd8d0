# SPDX-License-Identifier: Apache-2.0
"""Every call of torch.distributed on groups of the backend "wirepress" and on a gloo group of the
same processes: the same bits, the same refusals, and a group that works afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as funcol  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from torch.distributed import distributed_c10d as c10d  # noqa: E402

OnRanks = Callable[..., list[Any]]
N = 1500  # values; more bytes than THRESHOLD in every type, and a multiple of 2, 3 and 5
THRESHOLD = 1000
PATIENCE = timedelta(seconds=30)
GROUPS = {
    "raw": {"threshold": 1 << 40},
    "compressed": {"threshold": THRESHOLD, "adaptive": False},
    "adaptive": {"threshold": THRESHOLD},
}
CARRIED = ["float32", "bfloat16", "int64", "bool", "complex64", "uint8", "int8", "int32"]
CARRIED += ["float16", "float64", "complex128"]
REFUSED = ["int16", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]  # by gloo
SHORT = ["float32", "bfloat16", "int64", "int16"]
OPS = ["SUM", "AVG", "MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR"]


class Cell:
    """One combination on one group, as a rank sees it."""

    def __init__(self, group: Any, dtype: str, op: str, wait: str) -> None:
        self.group, self.dtype, self.wait_how = group, getattr(torch, dtype), wait
        self.op = getattr(dist.ReduceOp, op)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.how = {"group": group, "async_op": wait != "no"}

    def make(self, salt: int = 0, n: int = N) -> torch.Tensor:
        """Small whole numbers of which sums are exact in any order, other ones on every rank."""
        generator = torch.Generator().manual_seed(100 * self.rank + salt)
        return torch.randint(0, 3, (n,), generator=generator).to(self.dtype)

    def room(self, n: int = N) -> torch.Tensor:
        return torch.zeros(n, dtype=self.dtype)

    def rooms(self) -> list[torch.Tensor]:
        return [self.room() for _ in range(self.size)]

    def parts(self) -> list[torch.Tensor]:
        return [self.make(part) for part in range(self.size)]

    def finish(self, work: Any) -> None:
        if work is None:
            return
        if self.wait_how == "future":
            work.get_future().wait()
        work.wait()


Case = Callable[[Cell], Any]
REDUCING: list[Case] = []
MOVING: list[Case] = []
OTHER: list[Case] = []


def into(cases: list[Case]) -> Callable[[Case], Case]:
    def add(case: Case) -> Case:
        cases.append(case)
        return case

    return add


@into(REDUCING)
def all_reduce(cell: Cell) -> Any:
    mine = cell.make()
    cell.finish(dist.all_reduce(mine, cell.op, **cell.how))
    return mine


@into(REDUCING)
def all_reduce_coalesced(cell: Cell) -> Any:
    some = [cell.make(0), cell.make(1), cell.make(2, 77)]
    cell.finish(dist.all_reduce_coalesced(some, cell.op, **cell.how))
    return some


@into(REDUCING)
def coalescing_all_reduce(cell: Cell) -> Any:
    some = [cell.make(0), cell.make(1), cell.make(2, 77)]
    with c10d._coalescing_manager(cell.group, async_ops=cell.how["async_op"]) as manager:
        for each in some:
            dist.all_reduce(each, cell.op, group=cell.group)
    manager.wait()
    return some


@into(REDUCING)
def reduce(cell: Cell) -> Any:
    mine = cell.make()
    cell.finish(dist.reduce(mine, group_dst=cell.size - 1, op=cell.op, **cell.how))
    return mine if cell.rank == cell.size - 1 else None


@into(REDUCING)
def reduce_scatter(cell: Cell) -> Any:
    out = cell.room()
    work = dist.reduce_scatter(out, cell.parts(), cell.op, **cell.how)
    if work is not None:
        work.wait()
    return out


@into(REDUCING)
def reduce_scatter_tensor(cell: Cell) -> Any:
    out = cell.room()
    work = dist.reduce_scatter_tensor(out, torch.cat(cell.parts()), cell.op, **cell.how)
    if work is not None:
        work.wait()
    return out


@into(REDUCING)
def coalescing_reduce_scatter(cell: Cell) -> Any:
    outs = [cell.room(), cell.room(60)]
    with c10d._coalescing_manager(cell.group, async_ops=cell.how["async_op"]) as manager:
        for out in outs:
            whole = cell.make(0, out.numel() * cell.size)
            dist.reduce_scatter_tensor(out, whole, cell.op, group=cell.group)
    manager.wait()
    return outs


@into(MOVING)
def broadcast(cell: Cell) -> Any:
    mine = cell.make()
    cell.finish(dist.broadcast(mine, group_src=cell.size - 1, **cell.how))
    return mine


@into(MOVING)
def all_gather(cell: Cell) -> Any:
    rooms = cell.rooms()
    cell.finish(dist.all_gather(rooms, cell.make(), **cell.how))
    return rooms


@into(MOVING)
def all_gather_into_tensor(cell: Cell) -> Any:
    room = cell.room(N * cell.size)
    cell.finish(dist.all_gather_into_tensor(room, cell.make(), **cell.how))
    return room


@into(MOVING)
def all_gather_coalesced(cell: Cell) -> Any:
    rooms = [[cell.room(), cell.room(60)] for _ in range(cell.size)]
    cell.finish(dist.all_gather_coalesced(rooms, [cell.make(), cell.make(1, 60)], **cell.how))
    return rooms


@into(MOVING)
def coalescing_all_gather(cell: Cell) -> Any:
    rooms = [cell.room(n * cell.size) for n in (N, 60)]
    with c10d._coalescing_manager(cell.group, async_ops=cell.how["async_op"]) as manager:
        for room in rooms:
            part = cell.make(0, room.numel() // cell.size)
            dist.all_gather_into_tensor(room, part, group=cell.group)
    manager.wait()
    return rooms


@into(MOVING)
def all_to_all(cell: Cell) -> Any:
    rooms = cell.rooms()
    cell.finish(dist.all_to_all(rooms, cell.parts(), **cell.how))
    return rooms


@into(MOVING)
def all_to_all_single(cell: Cell) -> Any:
    room = cell.room()
    cell.finish(dist.all_to_all_single(room, cell.make(), **cell.how))
    return room


@into(MOVING)
def all_to_all_by_rows(cell: Cell) -> Any:
    """Rank a gives rank b 10 + a + 3 b rows of 20 values."""
    coming = [10 + other + 3 * cell.rank for other in range(cell.size)]
    going = [10 + cell.rank + 3 * other for other in range(cell.size)]
    room = cell.room(20 * sum(coming)).view(-1, 20)
    rows = cell.make(0, 20 * sum(going)).view(-1, 20)
    cell.finish(dist.all_to_all_single(room, rows, coming, going, **cell.how))
    return room


@into(MOVING)
def all_to_all_with_splits_on_one_rank(cell: Cell) -> Any:
    """Rank 0 keeps more for itself than it gives away, and has to say so."""
    splits = [40 if cell.rank == other == 0 else 20 for other in range(cell.size)]
    given = splits if cell.rank == 0 else None
    room = cell.room(5 * sum(splits)).view(-1, 5)
    rows = cell.make(0, 5 * sum(splits)).view(-1, 5)
    cell.finish(dist.all_to_all_single(room, rows, given, given, **cell.how))
    return room


@into(MOVING)
def all_to_all_with_splits_of_the_input(cell: Cell) -> Any:
    even = [N // cell.size] * cell.size
    room = cell.room()
    cell.finish(dist.all_to_all_single(room, cell.make(), None, even, **cell.how))
    return room


@into(MOVING)
def gather(cell: Cell) -> Any:
    rooms = cell.rooms() if cell.rank == 0 else None
    cell.finish(dist.gather(cell.make(), rooms, group_dst=0, **cell.how))
    return rooms


@into(MOVING)
def scatter(cell: Cell) -> Any:
    room = cell.room()
    parts = cell.parts() if cell.rank == cell.size - 1 else None
    cell.finish(dist.scatter(room, parts, group_src=cell.size - 1, **cell.how))
    return room


def neighbours(cell: Cell) -> tuple[int, int]:
    return (cell.rank + 1) % cell.size, (cell.rank - 1) % cell.size


@into(MOVING)
def send_and_receive(cell: Cell) -> Any:
    to, source = neighbours(cell)
    room = cell.room()
    if cell.how["async_op"]:
        works = [
            dist.irecv(room, group_src=source, group=cell.group, tag=3),
            dist.isend(cell.make(), group_dst=to, group=cell.group, tag=3),
        ]
        for work in works:
            work.wait()
        return room
    for turn in range(2):
        if (cell.rank + turn) % 2 == 0 and not (turn == 0 and cell.rank == cell.size - 1 > 1):
            dist.send(cell.make(), group_dst=to, group=cell.group)
        elif (source + turn) % 2 == 0 and not (turn == 0 and source == cell.size - 1 > 1):
            dist.recv(room, group_src=source, group=cell.group)
    return room


@into(MOVING)
def receive_from_anybody(cell: Cell) -> Any:
    if cell.rank:
        dist.send(cell.make(), group_dst=0, group=cell.group)
        return None
    rooms = {}
    for _ in range(1, cell.size):
        room = cell.room()
        rooms[dist.recv(room, group=cell.group)] = room
    return [rooms[source] for source in sorted(rooms)]


@into(MOVING)
def batch(cell: Cell) -> Any:
    to, source = neighbours(cell)
    room = cell.room()
    mine = cell.make()
    pair = [
        dist.P2POp(dist.isend, mine, group=cell.group, group_peer=to),
        dist.P2POp(dist.irecv, room, group=cell.group, group_peer=source),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return room


def functional(name: str) -> Any:
    """A functional collective, by the name that this PyTorch has for it."""
    older = {
        "all_gather_single": "all_gather_tensor",
        "reduce_scatter_single": "reduce_scatter_tensor",
        "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
        "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    }
    return getattr(funcol, name, None) or getattr(funcol, older[name])


@into(REDUCING)
def functional_sums(cell: Cell) -> Any:
    op = str(cell.op).rsplit(".", 1)[-1].lower()
    whole = torch.cat(cell.parts())
    return [
        funcol.all_reduce(cell.make(), op, cell.group) + 0,
        functional("reduce_scatter_single")(whole, op, 0, cell.group) + 0,
        *[t + 0 for t in funcol.all_reduce_coalesced([cell.make(), whole], op, cell.group)],
        *[
            t + 0
            for t in functional("reduce_scatter_single_coalesced")(
                [whole, whole], op, [0, 0], cell.group
            )
        ],
    ]


@into(MOVING)
def functional_moves(cell: Cell) -> Any:
    mine = cell.make()
    coming = [10 + other + 3 * cell.rank for other in range(cell.size)]
    going = [10 + cell.rank + 3 * other for other in range(cell.size)]
    ring = [(rank + 1) % cell.size for rank in range(cell.size)]
    return [
        functional("all_gather_single")(mine, 0, cell.group) + 0,
        functional("all_gather_single")(mine.view(30, -1), 1, cell.group) + 0,
        *[t + 0 for t in functional("all_gather_single_coalesced")([mine, mine], cell.group)],
        funcol.broadcast(mine, 0, cell.group) + 0,
        funcol.all_to_all_single(mine, None, None, cell.group) + 0,
        funcol.all_to_all_single(cell.make(0, sum(going)), coming, going, cell.group) + 0,
        funcol.permute_tensor(mine, ring, cell.group) + 0,
    ]


@into(OTHER)
def barriers(cell: Cell) -> Any:
    cell.finish(dist.barrier(**cell.how))


@into(OTHER)
def objects(cell: Cell) -> Any:
    mine = {"rank": cell.rank, "text": "x" * 3000}
    everyone: list[Any] = [None] * cell.size
    dist.all_gather_object(everyone, mine, group=cell.group)
    spread = [mine, 7] if cell.rank == 0 else [None, None]
    dist.broadcast_object_list(spread, group_src=0, group=cell.group)
    gathered = [None] * cell.size if cell.rank == 0 else None
    dist.gather_object(mine, gathered, group_dst=0, group=cell.group)
    part: list[Any] = [None]
    parts = [["y" * 2000, rank] for rank in range(cell.size)] if cell.rank == 0 else None
    dist.scatter_object_list(part, parts, group_src=0, group=cell.group)
    came: list[Any] = [None]
    if cell.rank == 0:
        dist.send_object_list([mine], group_dst=1, group=cell.group)
    elif cell.rank == 1:
        dist.recv_object_list(came, group_src=0, group=cell.group)
    return [everyone, spread, gathered, part, came]


# What gloo refuses in the caller, on all ranks.


@into(OTHER)
def several_tensors_at_once(cell: Cell) -> Any:
    """gloo adds up the tensors of a rank; only programs that call a group's methods get there."""
    some = [cell.make(0), cell.make(1)]
    cell.group.allreduce(some, dist.AllreduceOptions()).wait()
    return some


@into(OTHER)
def mixed_types(cell: Cell) -> Any:
    some = [cell.make(), cell.make().to(torch.float64)]
    dist.all_reduce_coalesced(some, group=cell.group)
    return some


@into(OTHER)
def mixed_shapes(cell: Cell) -> Any:
    rooms = [cell.room().view(2, -1) for _ in range(cell.size)]
    dist.all_gather(rooms, cell.make(), group=cell.group)
    return rooms


@into(OTHER)
def a_room_that_is_too_small(cell: Cell) -> Any:
    room = cell.room(N * cell.size - 1)
    dist.all_gather_into_tensor(room, cell.make(), group=cell.group)
    return room


@into(OTHER)
def parts_of_other_sizes(cell: Cell) -> Any:
    parts = [cell.make(0, N + part) for part in range(cell.size)]
    room = cell.room(N + cell.rank)
    dist.reduce_scatter(room, parts, group=cell.group)
    return room


@into(OTHER)
def a_sum_that_cannot_be_cut(cell: Cell) -> Any:
    room = cell.room(N)
    dist.reduce_scatter_tensor(room, cell.make(0, N * cell.size + 1), group=cell.group)
    return room


@into(OTHER)
def splits_that_do_not_add_up(cell: Cell) -> Any:
    room = cell.room()
    dist.all_to_all_single(room, cell.make(), None, [1] * cell.size, group=cell.group)
    return room


@into(OTHER)
def too_few_rooms(cell: Cell) -> Any:
    rooms = cell.rooms()[1:]
    dist.all_gather(rooms, cell.make(), group=cell.group)
    return rooms


def cells(n_ops: int) -> Iterator[tuple[Case, str, str, str]]:
    """Case, type, operation, and the way of waiting: each in turn, and all with float32. `n_ops`
    of 0: fewer types."""
    turns = itertools.cycle(["no", "work", "future"])

    def waits(dtype: str) -> list[str]:
        return ["no", "work", "future"] if n_ops and dtype == "float32" else [next(turns)]

    dtypes = [*CARRIED, *REFUSED] if n_ops else SHORT
    for case, dtype in itertools.product(REDUCING, dtypes):
        few = ["SUM", "AVG" if dtype in CARRIED else "MAX"]
        for op in OPS[:n_ops] if n_ops and dtype in CARRIED else few:
            for wait in waits(dtype):
                yield case, dtype, op, wait
    for case, dtype in itertools.product(MOVING, dtypes):
        for wait in waits(dtype):
            yield case, dtype, "SUM", wait
    for case in OTHER:
        for wait in waits("float32"):
            yield case, "float32", "SUM", wait


def outcome(case: Case, group: Any, *combination: str) -> tuple[str, Any]:
    try:
        return "ok", case(Cell(group, *combination))
    except Exception as error:
        c10d._world.pg_coalesce_state.pop(group, None)
        return type(error).__name__, str(error)


def anywhere(said: bool) -> bool:
    flag = torch.tensor([int(said)])
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def works(group: Any) -> bool:
    """Whether a group can still do what goes raw, and what may be compressed."""
    size = dist.get_world_size(group)
    for n in 1, N:
        ones = torch.ones(n)
        dist.all_reduce(ones, group=group)
        if not torch.equal(ones, torch.full((n,), float(size))):
            return False
    return True


def matrix(n_ops: int) -> tuple[list[str], int]:
    """What differs, in words, and how many combinations there were."""
    gloo = dist.new_group(backend="gloo", timeout=PATIENCE)
    ours = {name: wt.wrap_group(timeout=PATIENCE, **how) for name, how in GROUPS.items()}
    wrong, count = [], 0
    for case, *combination in cells(n_ops):
        count += 1
        expected = outcome(case, gloo, *combination)
        for name, group in ours.items():
            # adaptive: one way, then the other
            for turn in range(2 if name == "adaptive" else 1):
                got = outcome(case, group, *combination)
                fine = got[0] == expected[0] and (got[0] != "ok" or same(got[1], expected[1]))
                if anywhere(got[0] != "ok") and not works(group):
                    fine = False
                if not fine:
                    words = [str(each)[:120] for each in (got, expected)]
                    wrong.append(f"{case.__name__} {combination} {name} {turn}: {words}")
    for name, group in ours.items():
        traffic = wt.statistics(group).values()
        if any(each.compressed_calls for each in traffic) != (name != "raw"):
            wrong.append(f"{name}: {wt.statistics(group)}")
    return wrong, count


def check(on_ranks: OnRanks, n: int, n_ops: int) -> None:
    for rank, (wrong, count) in enumerate(on_ranks(matrix, n, n_ops, timeout=900)):
        assert not wrong, f"rank {rank}, {len(wrong)} of {count}:\n" + "\n".join(wrong[:40])
        assert count > 100


@pytest.mark.quick
def test_calls_do_what_gloo_does(on_ranks: OnRanks) -> None:
    check(on_ranks, 2, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_ops"), [(2, 8), (3, 3), (5, 1)])
def test_every_call_does_what_gloo_does(on_ranks: OnRanks, n: int, n_ops: int) -> None:
    check(on_ranks, n, n_ops)
