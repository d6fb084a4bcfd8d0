# SPDX-License-Identifier: Apache-2.0
"""Outer steps: peers train apart and exchange, every so many steps, how far they came.

DiLoCo (Douillard and others, arXiv:2311.08105): a peer's outer gradient is the way that its weights
went since the last round; an outer optimizer applies the mean over peers. SparseLoCo (Sarfi and
others, arXiv:2508.15706): of 4096 values the largest are sent, the rest is kept for later rounds.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import warnings
import zlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from wirepress import patches
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch.agreement import first_problem
from wirepress.torch.coder import PLAIN, AnyCoder, Coder
from wirepress.torch.compiled import own_name
from wirepress.torch.exchange import Frames, cut
from wirepress.torch.meeting import Meeting, Rounds
from wirepress.torch.memory import all_finite, as_array, as_bytes
from wirepress.torch.packer import Packer
from wirepress.torch.transport import Post, store_of
from wirepress.uncopied import Uncopied

_FORMAT = 1  # of state_dict
_SMALL = 4096  # values; parameters with fewer are coded in one row
_NOT_FINITE = 1  # a flag
_NO_LINK = -1
_NUMBERS = itertools.count(1)  # of trainings of this process


@dataclasses.dataclass(frozen=True)
class Method:
    """What a method's name stands for."""

    recipe: str
    decay: float  # of what was not sent, from round to round
    lr: float
    momentum: float  # Nesterov's; 0: none

    @staticmethod
    def of(method: str, outer: str | None) -> Method:
        first, _, words = method.partition(":")
        if first != "sparseloco":
            return Method(method, 1.0, **_knobs(outer or "nesterov"))
        return Method(f"topq:{words}".rstrip(":"), 0.95, **_knobs(outer or "sgd"))


_OUTERS = {"sgd": {"lr": 1.0, "momentum": 0.0}, "nesterov": {"lr": 0.7, "momentum": 0.9}}


def _knobs(outer: str) -> dict[str, float]:
    kind, _, words = outer.partition(":")
    try:
        knobs = dict(_OUTERS[kind])
        for key, value in (word.split("=") for word in words.split(",") if word):
            if key not in knobs or (kind == "sgd" and key == "momentum"):
                raise KeyError(key)
            knobs[key] = float(value)
        if not (0 < knobs["lr"] < math.inf and 0 <= knobs["momentum"] < 1):
            raise ValueError(outer)
        return knobs
    except (KeyError, ValueError):
        raise ParameterError(
            f'outer="{outer}": it is "sgd:lr=1" or "nesterov:lr=0.7,momentum=0.9", or other '
            "numbers: lr above 0 and finite, momentum from 0 to below 1"
        ) from None


@dataclasses.dataclass
class OuterCounts:
    """What this peer did; sizes are bytes."""

    rounds: int = 0  # that counted
    dropped: int = 0  # that did not
    caught_up: int = 0  # in which it took the others' weights
    members: int = 0  # of the last round
    raw_bytes: int = 0  # of the float32 values that it sent, in dropped rounds too ...
    coded_bytes: int = 0  # ... and of the frames that it made of them, once for all
    wire_bytes: int = 0  # that left it, for each of the others, with all messages


class _New(NamedTuple):
    """What a round would leave."""

    start: torch.Tensor
    momentum: torch.Tensor
    residual: torch.Tensor | None  # None: as it was
    digest: str
    caught_up: bool  # others had made it


class OuterStep(Uncopied):
    """Joins the trainings of several peers, each with its own loop, by rare outer steps.

        outer = wirepress.torch.OuterStep(model, "int4", every=30)
        for batch in data:
            ...
            optimizer.step()
            outer.step()

    Peers that are there in a round are its members. Each sends the way that its weights went, coded
    with what earlier codes lacked; all add what came in the order of the members' names, and get
    the same bits. A round counts on all members or on none: where one fails, the round is dropped,
    what it would have sent is kept for the next one, and training goes on. A peer that comes late,
    or new, takes the weights of the others in the next round, and what it had to send is lost: the
    mean of the others stood for it, so that sending it later would go too far.

    Args:
        model: whose trained parameters are float32, bfloat16 or float16; on all peers alike.
            Frozen parameters must be the same on all. Buffers and the inner optimizer's state stay
            with the peer.
        method: "int4", "int8", another recipe for float32, "none" (float32 as it is), or
            "sparseloco:k=64": 64 of each 4096, at two bits, of 0.95 of what was not sent and the
            way, without outer momentum.
        every: steps from round to round.
        outer: "nesterov:lr=0.7,momentum=0.9" or "sgd:lr=1"; None: as the method's paper.
        store: that all peers reach; None: that of `torch.distributed`'s default group. It is the
            one thing that must stay while peers come and go.
        name: of this peer, another one on each; None: its rank.
        peers: how many the first round waits for; None: the size of the default group. With
            `inside` it must be given: the number of sites.
        label: another one for each training that shares a store; without "/". None: their
            number in this process, with the default group's store; with another one "model".
        patience: seconds that a round waits for a peer that was in the last one, and that a message
            may take. The first round waits as long for `peers`, then warns and goes on with those
            who are there. A peer that reaches the store but not the others makes each round
            that it comes to fail, until it is stopped.
        timeout: seconds after which a peer that no round takes gives up.
        inside: a process group of ranks that train one copy, by DDP for instance: its first rank
            is the peer, the others get its weights. All of them make all calls.
        threads: that encode and decode.

    Raises:
        ParameterError: no such method, outer optimizer or parameter; or, from the first `step`,
            peers have other settings or models. With `inside`, all ranks raise where the first
            one does.
    """

    def __init__(
        self,
        model: nn.Module,
        method: str = "int4",
        *,
        every: int = 30,
        outer: str | None = None,
        store: dist.Store | None = None,
        name: str | None = None,
        peers: int | None = None,
        label: str | None = None,
        patience: float = 60.0,
        timeout: float = 1800.0,
        inside: dist.ProcessGroup | None = None,
        threads: int = 1,
    ) -> None:
        if every < 1:
            raise ParameterError(f"every is {every}; at least 1")
        for word, seconds in (("patience", patience), ("timeout", timeout)):
            if not 0 < seconds < math.inf:
                raise ParameterError(f"{word} is {seconds} seconds; above 0 and finite")
        if peers is not None and peers < 1:
            raise ParameterError(f"peers is {peers}; at least 1")
        self.every, self.counts = every, OuterCounts()
        self._method = Method.of(method, outer)
        if inside is not None and peers is None:
            raise ParameterError("with inside=, say how many sites there are: peers=")
        self._inside, self._patience = inside, patience
        self._parameters = _trained(model)
        self._steps = 0
        self._speaks = inside is None or dist.get_rank(inside) == 0
        self._post: Post | None = None
        self._link = _NO_LINK  # the round in which it was made
        self._members: list[str] = []  # with whom, by their nonces
        self._closed = False
        recipe = self._method.recipe
        self._coder: AnyCoder = PLAIN
        if recipe != "none":
            self._coder = Coder(recipe, threads=threads, checksum=True)
        self._packer = Packer(threads=threads)  # for those who catch up
        self._spans = list(_spans([p.numel() for p in self._parameters.values()]))
        # Parameters of one row stand together: large ones first.
        order = sorted(self._parameters, key=lambda n: self._parameters[n].numel() < _SMALL)
        self._parameters = {name: self._parameters[name] for name in order}
        failure: Exception | None = None
        if self._speaks:
            try:
                self._begin(model, store, name, peers, label, timeout)
            except Exception as error:  # the others of the site wait for a word
                failure = error
        problem = "" if failure is None else str(failure) or repr(failure)
        if inside is not None:
            problem = first_problem(problem, inside)
        if failure is not None:
            raise failure
        if problem:
            raise ParameterError(problem)

    def _begin(
        self,
        model: nn.Module,
        store: dist.Store | None,
        name: str | None,
        peers: int | None,
        label: str | None,
        timeout: float,
    ) -> None:
        """What only the rank has that speaks for its site."""
        self._start = self._now()
        self._began = self._start.clone()
        """The weights as the model got them: `_start` in the parameters' types."""
        n = self._start.numel() if self._method.momentum else 0
        self._momentum = torch.zeros(n, dtype=torch.float32, device="cpu")
        self._residual = torch.zeros_like(self._start)
        if store is None:
            if not dist.is_initialized():
                raise ParameterError("give a store, or initialise torch.distributed first")
            store = store_of(dist.group.WORLD)
            label = f"number {next(_NUMBERS)}" if label is None else label
            peers = dist.get_world_size() if peers is None else peers
            name = f"{dist.get_rank():06}" if name is None else name
        if name is None or peers is None:
            raise ParameterError("with a store of its own it needs a name and the number of peers")
        m = self._method
        settings = (
            f"{m.recipe}, every {self.every} steps, lr {m.lr:g}, momentum {m.momentum:g}, a model "
            f"of digest {_digest_of(model)}"
        )
        if label and "/" in label:
            raise ParameterError(
                f'label="{label}" has a "/", which stands between words of a store'
            )
        self._seed = zlib.crc32(name.encode())
        self._drawn = 0  # seeds; each attempt at a round draws another one
        self._rounds = Rounds(
            dist.PrefixStore(f"wirepress/outer/{label or 'model'}", store),
            name, settings, peers, self._patience, timeout,
        )  # fmt: skip

    # ---- what programs call ----

    def step(self) -> bool:
        """To be called after each step of the inner optimizer. Returns whether it ended a round
        that counted, so that the weights are new."""
        if self._closed:
            raise ParameterError("this OuterStep was closed")
        self._steps += 1
        if self._steps % self.every:
            return False
        with torch.no_grad():
            if self._inside is None:
                return self._round()
            counted, problem = False, None
            if self._speaks:
                try:
                    counted = self._round()
                except Exception as error:  # the others of the site wait for a word
                    problem = error
            return self._tell(counted, problem)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint: what this peer remembers between rounds. Each peer saves its own, along
        with the model and the inner optimizer."""
        if not self._speaks:
            return {"format": _FORMAT, "steps": self._steps}
        return {
            "format": _FORMAT,
            "steps": self._steps,
            "method": dataclasses.asdict(self._method),
            "start": self._start.clone(),
            "began": self._began.clone(),
            "momentum": self._momentum.clone(),
            "residual": self._residual.clone(),
            "drawn": self._drawn,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Takes what `state_dict` gave, after the model took its weights.

        Raises:
            ParameterError: it is of another method or model; nothing has changed.
        """
        if saved.get("format") != _FORMAT:
            raise ParameterError(f"a state of format {saved.get('format')!r}, not {_FORMAT}")
        tensors = ("start", "began", "momentum", "residual") if self._speaks else ()
        if missing := [key for key in ("steps", *tensors) if key not in saved]:
            raise ParameterError(f"the state has no {', '.join(missing)}")
        if self._speaks:
            if saved.get("method") != dataclasses.asdict(self._method):
                raise ParameterError(f"the state was saved with {saved.get('method')}")
            for key in tensors:
                if saved[key].shape != getattr(self, f"_{key}").shape:
                    raise ParameterError(f"the state is of another model: {key} has other sizes")
            for key in tensors:
                getattr(self, f"_{key}").copy_(saved[key])
            self._drawn = saved.get("drawn", 0)
        self._steps = saved["steps"]

    def close(self) -> None:
        """Takes down connections; the others go on without this peer after their patience."""
        self._closed = True
        self._disconnect()
        self._packer.close()
        if isinstance(self._coder, Coder):
            self._coder.close()

    # ---- a round ----

    def _round(self) -> bool:
        way = self._began - self._now()
        meeting = self._rounds.meet(self._digest(self._start, self._momentum), self._link)
        self.counts.members = len(meeting.members)
        new = None
        try:
            new = self._exchange(meeting, way)
        except (RuntimeError, WirepressError, MemoryError) as error:
            self._disconnect()
            counts = self._rounds.give_up(meeting)
            warnings.warn(f"outer round {meeting.number} failed here: {error}", stacklevel=3)
        else:
            counts = self._rounds.vote(meeting, new.digest)
        if not counts or new is None:
            self.counts.dropped += 1
            self._disconnect()
            return False
        self._take(new)
        self.counts.rounds += 1
        return True

    def _exchange(self, meeting: Meeting, way: torch.Tensor) -> _New:
        """What the round leaves if it counts; nothing of this peer has changed yet."""
        post = self._connect(meeting)
        giving = meeting.giving()
        gives = post.rank in giving
        finite = all_finite(way)
        residual = self._residual * self._method.decay if gives else self._residual.clone()
        message = torch.empty(0, dtype=torch.uint8, device="cpu")
        if gives and finite:
            message = self._encoded(way, residual)
        before = post.sent
        messages, flags = post.all_gather(message, 0 if finite else _NOT_FINITE)
        senders = [i for i in giving if flags[i] != _NOT_FINITE]
        new = self._applied(messages, senders) if gives else None
        new = self._handed_on(post, meeting, new)
        self.counts.wire_bytes += post.sent - before
        if not all(all_finite(values) for values in new):
            raise RuntimeError("the new weights would not be finite")
        return _New(*new, residual if finite else None, self._digest(*new), not gives)

    def _applied(
        self, messages: list[torch.Tensor], senders: list[int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights and momentum after the mean of what the senders sent."""
        start, momentum = self._start.clone(), self._momentum.clone()
        if not senders:
            return start, momentum
        mean = torch.zeros_like(start)
        for number in senders:
            frames = cut(messages[number], len(self._spans))
            for (first, end), frame in zip(self._spans, frames, strict=True):
                self._coder.decode_add(frame, mean[first:end])
        # Products and sums apart: no processor joins them to other bits.
        mean.mul_(1 / len(senders))
        if self._method.momentum:
            momentum.mul_(self._method.momentum).add_(mean)
            mean.add_(momentum * self._method.momentum)
        return start.sub_(mean.mul_(self._method.lr)), momentum

    def _encoded(self, way: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Frames of all rows of the sum; what they lack is left in `residual`."""
        rows = self._spans
        frames = Frames(sum(self._coder.bound(end - first) for first, end in rows), len(rows))
        seed = self._seed + self._drawn
        self._drawn += 1
        if self._coder.lossless:
            way = way + residual
            residual.zero_()
        for first, end in rows:
            left = None if self._coder.lossless else residual[first:end]
            row = way[first:end]
            frames.add(
                lambda out, row=row, left=left: self._coder.begin_encode(row, out, left, seed),
                self._coder.bound(row.numel()),
            )
        message = frames.message()
        self.counts.raw_bytes += way.nbytes
        self.counts.coded_bytes += message.numel()
        return message

    def _handed_on(
        self, post: Post, meeting: Meeting, new: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Gives those who have another state the new one, from the first member that has it."""
        giving = meeting.giving()
        if len(giving) == post.size:
            assert new
            return new
        message, sizes = torch.empty(0, dtype=torch.uint8, device="cpu"), [0] * post.size
        if post.rank == giving[0] and new:
            both = torch.cat(new)
            room = torch.empty(self._packer.bound(both), dtype=torch.uint8, device="cpu")
            message = room[: self._packer.pack(both, room)]
            sizes = [0 if i in giving else message.numel() for i in range(post.size)]
            message = message.repeat(post.size - len(giving))
        came, _ = post.all_to_all(message, sizes)
        if new:
            return new
        n = self._start.numel() + self._momentum.numel()
        both = torch.empty(n, dtype=torch.float32, device="cpu")
        self._packer.unpack(came[giving[0]], both)
        start, momentum = both.split([self._start.numel(), self._momentum.numel()])
        return start.clone(), momentum.clone()

    def _connect(self, meeting: Meeting) -> Post:
        """Messages between the members; by new connections unless all have the same ones."""
        members = [peer.nonce for peer in meeting.members]
        kept = self._post is not None and members == self._members
        if kept and all(peer.link == self._link for peer in meeting.members):
            return self._post
        self._disconnect()
        store = dist.PrefixStore(f"{meeting.number}/gloo/", self._rounds.store)
        limit = timedelta(seconds=self._patience)
        me = members.index(self._rounds.nonce)
        self._post = Post(dist.ProcessGroupGloo(store, me, len(members), limit))
        self._link, self._members = meeting.number, members
        return self._post

    def _disconnect(self) -> None:
        if self._post is not None:
            self._post.close()
        self._post, self._link, self._members = None, _NO_LINK, []

    def _take(self, new: _New) -> None:
        self.counts.caught_up += new.caught_up
        self._start.copy_(new.start)
        self._momentum.copy_(new.momentum)
        if new.residual is not None:
            self._residual.copy_(new.residual)
        at = 0
        for parameter in self._parameters.values():
            values = self._start[at : at + parameter.numel()].view(parameter.shape)
            parameter.copy_(values)
            at += parameter.numel()
        self._began.copy_(self._now())

    def _tell(self, counted: bool, problem: Exception | None) -> bool:
        """Gives the ranks of `inside` the weights of their first one, or its problem."""
        first = dist.get_global_rank(self._inside, 0)
        word = [counted, "" if problem is None else f"{type(problem).__name__}: {problem}"]
        dist.broadcast_object_list(word, src=first, group=self._inside)
        if problem is not None:
            raise problem
        if word[1]:
            raise RuntimeError(f"the first rank of this site: {word[1]}")
        if word[0]:
            for parameter in self._parameters.values():
                dist.broadcast(parameter.data, src=first, group=self._inside)
        return word[0]

    # ---- the model ----

    def _now(self) -> torch.Tensor:
        """All values in a row, as float32 on the CPU."""
        rows = [p.detach().reshape(-1).to("cpu", torch.float32) for p in self._parameters.values()]
        return torch.cat(rows) if rows else torch.empty(0, dtype=torch.float32, device="cpu")

    def _digest(self, start: torch.Tensor, momentum: torch.Tensor) -> str:
        hashes = [patches.hash_text(as_array(as_bytes(t))) for t in (start, momentum)]
        return "-".join(hashes)


def _trained(model: nn.Module) -> dict[str, torch.Tensor]:
    found = {own_name(name): p for name, p in model.named_parameters() if p.requires_grad}
    for name, parameter in found.items():
        if type(parameter.data) is not torch.Tensor:
            raise ParameterError(
                f"{name} is a {type(parameter.data).__name__}: a peer must hold whole parameters"
            )
        if parameter.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            raise ParameterError(f"{name} is {parameter.dtype}; float32, bfloat16 or float16")
    if not found:
        raise ParameterError("the model has no parameters that are trained")
    return found


def _digest_of(model: nn.Module) -> str:
    """Of names, shapes and types, and of the values that are not trained."""
    rows = []
    for name, p in model.named_parameters():
        values = p.detach().to("cpu").contiguous()
        frozen = "" if p.requires_grad else patches.hash_text(as_array(as_bytes(values)))
        rows.append([own_name(name), list(p.shape), str(p.dtype), frozen])
    return patches.hash_text(json.dumps(rows).encode())


def _spans(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """The rows of values that are coded for themselves: large parameters, then all small ones."""
    at = 0
    for size in (size for size in sizes if size >= _SMALL):
        yield at, at + size
        at += size
    if rest := sum(size for size in sizes if size < _SMALL):
        yield at, at + rest
