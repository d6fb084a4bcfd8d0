# SPDX-License-Identifier: Apache-2.0
"""torchft's DiLoCo, with outer gradients that travel coded.

A replica codes a gradient and what earlier codes lacked; all replicas get all codes and add in the
order of the group, so that all have the same bits. The work of a gradient begins with `allreduce`
and ends where DiLoCo waits, so that fragments that have a `fragment_sync_delay` travel meanwhile.
"""

from __future__ import annotations

import dataclasses
import warnings
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

import torch
import torch.distributed as dist
import wirepress
from torch.distributed.distributed_c10d import AllgatherOptions
from wirepress.errors import CorruptError, ParameterError
from wirepress.torch.coder import PLAIN, AnyCoder, Coder
from wirepress.torch.memory import all_finite
from wirepress.torch.outer import Method
from wirepress.uncopied import Uncopied

_SMALL = 1024  # values; tensors with fewer are averaged as they are
_FRAGMENT = "StreamingDiLoCoFragment_"  # what torchft calls them where it saves them
_HEAD = 8  # bytes before a frame: its size, int64
_ABSENT, _NOT_FINITE = 0, -1  # instead of a size
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclasses.dataclass
class ManagerCounts:
    """What this replica did; sizes are bytes."""

    rounds: int = 0  # that were committed
    dropped: int = 0  # that were not
    raw_bytes: int = 0  # of the tensors that it coded ...
    coded_bytes: int = 0  # ... and of their frames, once for all
    plain_bytes: int = 0  # of what torchft averaged as it was


class CodedManager(Uncopied):
    """A torchft manager for `DiLoCo`; all but `allreduce` is the manager's own.

    Calls that the class does not name go to the manager: `start_quorum`, `current_step`,
    `state_dict` and the others.

    Args:
        manager: a `torchft.Manager`, with `use_async_quorum=False` as DiLoCo wants it.
        method: "int4", "int8", another recipe for float32, "none", or "sparseloco:k=64". The outer
            optimizer is the one that DiLoCo gets: for sparseloco `SGD(lr=1)`, without momentum.
        threads: that encode and decode.

    What codes lacked is kept for the next round of a fragment when torchft commits the round, and
    stays as it was when torchft drops it. A replica that takes another one's state begins without,
    as does one that starts from a checkpoint. Tensors of fewer than 1024 values, or of other types
    than float32, bfloat16 and float16, are averaged by torchft.

    With torchft's buckets (`use_bucketization`) nothing overlaps; torchft 0.2 leaves out tensors
    that are larger than a bucket.

    Raises:
        ParameterError: no such method; from `allreduce`: nothing of DiLoCo's has this manager, a
            tensor has another size than in the last round, or this replica has other settings than
            most. Where half of the replicas have others, all raise.
    """

    def __init__(self, manager: Any, method: str = "int4", *, threads: int = 1) -> None:
        self._manager, self._method = manager, Method.of(method, None)
        recipe = self._method.recipe
        self._coder: AnyCoder = PLAIN
        if recipe != "none":
            self._coder = Coder(recipe, threads=threads, checksum=True)
        self._share = self._measured_share()
        self._name = str(getattr(manager, "_replica_id", ""))
        self.counts = ManagerCounts()
        self._fragments = 0
        self._kept: dict[tuple[int, int], torch.Tensor] = {}
        """What codes lacked, by fragment and number of the tensor in it."""
        self._new: dict[tuple[int, int], torch.Tensor] = {}
        """The same, if this round is committed."""
        self._calls = 0  # of allreduce in this round
        self._agreed = False  # all replicas have the settings of this one
        manager.register_state_dict_fn("wirepress", self._taken_over, dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    # ---- what DiLoCo calls ----

    def register_state_dict_fn(
        self, key: str, load: Callable[[Any], None], save: Callable[[], Any]
    ) -> None:
        self._fragments += key.startswith(_FRAGMENT)
        self._manager.register_state_dict_fn(key, load, save)

    def start_quorum(self, *args: Any, **options: Any) -> None:
        self._new.clear()
        self._calls, self._agreed = 0, False
        self._manager.start_quorum(*args, **options)

    def should_commit(self, *args: Any, **options: Any) -> bool:
        commits = self._manager.should_commit(*args, **options)
        if commits:
            self._kept.update(self._new)
        self._new.clear()
        self.counts.rounds += commits
        self.counts.dropped += not commits
        return commits

    def allreduce(
        self,
        tensor: torch.Tensor,
        should_quantize: bool = False,
        reduce_op: Any = dist.ReduceOp.AVG,
    ) -> Any:
        """Averages `tensor` over the replicas, in place, as `torchft.Manager.allreduce` does.

        `should_quantize` is torchft's own code, and is not looked at.
        """
        if not self._fragments:
            raise ParameterError(
                "wirepress.torch.manager is for torchft's DiLoCo, which averages differences of "
                "weights; give anything else the manager itself"
            )
        number = self._calls
        self._calls += 1
        average = reduce_op == dist.ReduceOp.AVG
        if not average or tensor.dtype not in _FLOATS or tensor.numel() < _SMALL:
            self.counts.plain_bytes += tensor.nbytes
            return self._manager.allreduce(tensor, False, reduce_op)
        work = _Work(self, tensor)
        if self._manager.errored():  # as the manager: this round is lost
            return work
        try:
            self._manager.wait_quorum()
            if not self._agreed:
                self._agree()
            key = (self._manager.current_step() % self._fragments, number)
            work.begin(self._message(tensor, key))
        except ParameterError:
            raise
        except Exception as error:
            self.failed(error)
        return work

    def failed(self, error: Exception) -> None:
        """Makes torchft drop the round."""
        warnings.warn(f"the outer step fails here: {error}", stacklevel=3)
        self._manager.report_error(error)

    # ---- messages ----

    def _agree(self) -> None:
        """Once a round: replicas with other settings would not understand each other."""
        words = f"{wirepress.__version__} {self._method} {self._share} {self._fragments}"
        mine = torch.tensor([zlib.crc32(words.encode())], device="cpu")
        found = [bool(one == mine) for one in gathered(self._manager, mine).wait()]
        self._agreed = all(found)
        if self._agreed:
            return
        problem = f"a replica has another method, version or number of fragments than {words}"
        if 2 * sum(found) > len(found):  # the others are wrong: they stop, and this round is lost
            raise RuntimeError(problem)
        raise ParameterError(problem)

    def room(self, n: int) -> int:
        """Bytes of a frame of `n` values that travel at once; the few that are larger send their
        rest when all replicas know of it."""
        return int(n * self._share) + 256

    def _measured_share(self) -> float:
        """Bytes a value that noise takes, and an eighth more; the same on all machines."""
        noise = np.random.default_rng(1).standard_normal(1 << 16).astype(np.float32)
        values = torch.from_numpy(noise)
        out = torch.empty(self._coder.bound(values.numel()), dtype=torch.uint8, device="cpu")
        return round(1.125 * self._coder.encode(values, out) / values.numel(), 4)

    def _message(self, tensor: torch.Tensor, key: tuple[int, int]) -> torch.Tensor:
        """A head, and the frame; or the head alone."""
        values = tensor.detach().reshape(-1).to("cpu", torch.float32)
        room = torch.empty(
            _HEAD + self._coder.bound(values.numel()), dtype=torch.uint8, device="cpu"
        )
        size = _ABSENT
        if self._manager.is_participating():
            size = self._encoded(values, key, room[_HEAD:])
        if size > 0:
            self.counts.raw_bytes += tensor.nbytes
            self.counts.coded_bytes += size
        room[:_HEAD] = torch.tensor([size], device="cpu").view(torch.uint8)
        return room[: _HEAD + max(size, 0)]

    def _encoded(self, values: torch.Tensor, key: tuple[int, int], out: torch.Tensor) -> int:
        if not all_finite(values):
            return _NOT_FINITE
        who = f"{self._name} {self._manager.participating_rank()}"
        words = f"{who} {self._manager.current_step()} {key[1]}"
        seed = zlib.crc32(words.encode())
        if self._coder.lossless:
            size = self._coder.encode(values, out, None, seed)
        else:
            kept = self._kept.get(key)
            if kept is not None and kept.numel() != values.numel():
                raise ParameterError(
                    f"tensor {key[1]} of fragment {key[0]} had {kept.numel()} values in the last "
                    f"round and has {values.numel()} in this one"
                )
            left = torch.zeros_like(values) if kept is None else kept * self._method.decay
            size = self._coder.encode(values, out, left, seed)
            self._new[key] = left
        return size

    def mean(self, messages: list[torch.Tensor], n: int) -> torch.Tensor:
        """Of `n` values, over all who take part, in the order of the group."""
        total = torch.zeros(n, dtype=torch.float32, device="cpu")
        for message in messages:
            if message.numel() > _HEAD:
                self._coder.decode_add(message[_HEAD:], total)
        return total.mul_(1 / self._manager.num_participants())

    def _taken_over(self, _: Any) -> None:
        """This replica has the state of another one, for which its own rest means nothing."""
        self._kept.clear()
        self._new.clear()


def manager(manager: Any, method: str = "int4", *, threads: int = 1) -> CodedManager:
    """A torchft manager for its DiLoCo, with outer gradients that travel coded.

        manager = wirepress.torch.manager(torchft.Manager(..., use_async_quorum=False), "int4")
        with DiLoCo(manager, [model], inner, outer, sync_every=30):
            ...

    See `CodedManager`.
    """
    return CodedManager(manager, method, threads=threads)


class _Gathered:
    """Tensors of one size from all replicas, on their way."""

    def __init__(self, tensors: list[torch.Tensor], work: Any) -> None:
        self.tensors, self._work = tensors, work

    def wait(self) -> list[torch.Tensor]:
        self._work.wait()
        return [tensor.cpu() for tensor in self.tensors]


def gathered(manager: Any, tensor: torch.Tensor) -> _Gathered:
    group = manager._pg
    # NCCL takes what is on a device only.
    if "nccl" in group.getBackendName().lower():
        tensor = tensor.cuda()
    tensors = [torch.empty_like(tensor) for _ in range(group.size())]
    return _Gathered(tensors, group.allgather([tensors], [tensor], AllgatherOptions()))


class _Work(dist.Work):
    """The mean of a tensor over the replicas, once somebody has waited for it. Errors are told the
    manager, which drops the round."""

    def __init__(self, coded: CodedManager, tensor: torch.Tensor) -> None:
        super().__init__()
        self._coded, self._tensor = coded, tensor
        self._message = self._firsts = None
        self._future: torch.futures.Future = torch.futures.Future()
        self._ended = False

    def begin(self, message: torch.Tensor) -> None:
        """Sends as much of the message as a frame of this size has as a rule."""
        self._message = message
        first = torch.zeros(
            _HEAD + self._coded.room(self._tensor.numel()), dtype=torch.uint8, device="cpu"
        )
        part = message[: first.numel()]
        first[: part.numel()] = part
        self._firsts = gathered(self._coded._manager, first)

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._ended:
            return True
        self._ended = True
        try:
            if self._firsts is not None:
                self._end(self._firsts.wait())
        except Exception as error:
            self._coded.failed(error)
        self._message = self._firsts = None  # this object may live as long as its round
        self._future.set_result(self._tensor)
        return self._coded.errored() is None

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self, timeout: timedelta | None = None) -> None:
        self.wait(timeout)

    def get_future(self) -> torch.futures.Future:
        """Ends the work: torchft's buckets share the variables that their callbacks read, so that
        each must have been called before the next bucket is made."""
        self.wait()
        return self._future

    def _end(self, firsts: list[torch.Tensor]) -> None:
        sizes = [int(first[:_HEAD].view(torch.int64)) for first in firsts]
        bound = self._coded._coder.bound(self._tensor.numel())
        if not all(_NOT_FINITE <= size <= bound for size in sizes):
            raise CorruptError(f"frames of {sizes} bytes, for {self._tensor.numel()} values")
        if _NOT_FINITE in sizes:
            raise RuntimeError("the outer gradient of a replica is not finite")
        room = firsts[0].numel() - _HEAD
        messages = [f[: _HEAD + size] for f, size in zip(firsts, sizes, strict=True)]
        if max(sizes) > room:
            rest = torch.zeros(max(sizes) - room, dtype=torch.uint8, device="cpu")
            own = self._message[_HEAD + room :]
            rest[: own.numel()] = own
            rests = gathered(self._coded._manager, rest).wait()
            messages = [
                torch.cat([message, rest[: max(size - room, 0)]])
                for message, rest, size in zip(messages, rests, sizes, strict=True)
            ]
        mean = self._coded.mean(messages, self._tensor.numel())
        self._tensor.copy_(mean.view(self._tensor.shape))
