# SPDX-License-Identifier: Apache-2.0
"""What FSDP2's all-gather sends where all ranks keep what they gathered last: the steps of the
words that changed since then (codec `sparse`), so nothing at all where none did.

A rank compares its shard with its own copy each time. So it does not matter what changed it: an
optimizer, a checkpoint that was loaded, an assignment.
"""

from __future__ import annotations

import torch
from wirepress.errors import CorruptError
from wirepress.torch.coder import LibraryCoder, check_size
from wirepress.torch.memory import as_array, as_bytes
from wirepress.torch.transport import Post

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32}
_SAME, _STEPS, _PLAIN = 0, 1, 2  # the low byte of a flag; above it the number of the call

_EMPTY = torch.empty(0, dtype=torch.uint8, device="cpu")


class Copies(LibraryCoder):
    """The shards of all ranks of one unit, as they were gathered last; the same on all ranks."""

    def __init__(self, threads: int) -> None:
        super().__init__("sparse", threads)
        self._encoder = self._new_encoder("sparse")
        self._held: torch.Tensor | None = None  # integers, a row for each rank
        self._calls = 0

    @staticmethod
    def takes(dtype: torch.dtype) -> bool:
        return dtype.itemsize in _WORDS

    def close(self) -> None:
        super().close()
        self._encoder = None
        self.forget()

    def forget(self) -> None:
        """Frees the copies; the next call sends everything, if it is so on all ranks."""
        self._held, self._calls = None, 0

    def gather(self, outs: torch.Tensor, mine: torch.Tensor, post: Post) -> None:
        """Fills `outs`, a row for each rank, with the shards; `mine` (CPU) is that of this rank.

        Raises:
            CorruptError: the copies of the ranks are not of the same call.
        """
        try:
            self._gather(outs, mine, post)
        except BaseException:
            self.forget()
            raise
        self._calls += 1

    def take(self, outs: torch.Tensor) -> None:
        """Keeps what was gathered in another way."""
        words = outs.detach().cpu().view(_WORDS[outs.dtype.itemsize])
        if self._fits(words):
            self._held.copy_(words)
        else:
            self._held = words.clone()
        self._calls += 1

    def _fits(self, like: torch.Tensor) -> bool:
        held = self._held
        return held is not None and (held.shape, held.dtype) == (like.shape, like.dtype)

    def _gather(self, outs: torch.Tensor, mine: torch.Tensor, post: Post) -> None:
        words = mine.view(-1).view(_WORDS[mine.dtype.itemsize])
        kind, message = _PLAIN, as_bytes(words)
        if self._fits(words.expand(post.size, -1)):
            kind, message = self._changes(words, self._held[post.rank])
        else:
            self._held = words.new_empty(post.size, words.numel())
        messages, flags = post.all_gather(message, kind | self._calls << 8)
        for rank, flag in enumerate(flags):
            if flag >> 8 != self._calls:
                raise CorruptError(
                    f"rank {rank} has copies of the parameters of {flag >> 8} gathers, rank "
                    f"{post.rank} of {self._calls}: one of them failed in between"
                )
        for rank, (message, flag) in enumerate(zip(messages, flags, strict=True)):
            row = self._held[rank]
            if rank == post.rank:
                if kind != _SAME:
                    row.copy_(words)
                if outs[rank].data_ptr() == mine.data_ptr():
                    continue
            else:
                self._receive(message, flag & 0xFF, row)
            outs[rank].view(row.dtype).copy_(row)

    def _changes(self, words: torch.Tensor, before: torch.Tensor) -> tuple[int, torch.Tensor]:
        if torch.equal(words, before):
            return _SAME, _EMPTY
        frame = self._encoder.compress_steps(as_array(before), as_array(words))
        if len(frame) >= words.nbytes:
            return _PLAIN, as_bytes(words)
        return _STEPS, torch.frombuffer(bytearray(frame), dtype=torch.uint8)

    def _receive(self, message: torch.Tensor, kind: int, row: torch.Tensor) -> None:
        if kind == _SAME:
            check_size("message", message.numel(), 0)
        elif kind == _STEPS:
            self._decoder.take_steps(as_array(message), as_array(row))
        elif kind == _PLAIN:
            check_size("message", message.numel(), row.nbytes)
            as_bytes(row).copy_(message)
        else:
            raise CorruptError(f"a message of the unknown kind {kind}")


class Turns:
    """Finds out whether deltas gain: some calls go plainly, some by deltas, and the way that took
    less time stays.

    Calls are in pairs, as a unit is gathered for the forward and for the backward pass, and pairs
    in the order of Thue and Morse, in which neither way meets more of the steps' rhythm.
    """

    _ORDER = (True, False, False, True, False, True, True, False)  # plainly?
    _FIRST = 4  # calls that fill copies and memory

    def __init__(self, trials: bool) -> None:
        self._seconds = {True: 0.0, False: 0.0}
        self._call = 0 if trials else self._FIRST + 2 * len(self._ORDER)

    @property
    def over(self) -> bool:
        """No call is tried any more."""
        return self._call >= self._FIRST + 2 * len(self._ORDER)

    @property
    def plain(self) -> bool:
        """How the next call goes, in the trials."""
        if self._call < self._FIRST or self.over:
            return False
        return self._ORDER[(self._call - self._FIRST) // 2]

    def note(self, seconds: float) -> None:
        """What the call took."""
        if self._call >= self._FIRST:
            self._seconds[self.plain] += seconds
        self._call += 1

    def slower(self, post: Post) -> bool:
        """Whether deltas took longer, all ranks together. A collective call."""
        everyone = post.all_gather_object((self._seconds[False], self._seconds[True]))
        return sum(delta for delta, _ in everyone) > sum(plain for _, plain in everyone)
