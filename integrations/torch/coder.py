# SPDX-License-Identifier: Apache-2.0
"""Recipes on tensors: float32 values in CPU memory to frames and back."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import torch
import wirepress
from wirepress.errors import CorruptError, ParameterError
from wirepress.torch.memory import as_array

# Unbiased codecs, whose error averages out over steps and workers, and fine ones, whose error is
# far below the noise of a gradient: error feedback costs memory and time and gains nothing.
_NEEDS_NO_FEEDBACK = {"bf16", "fp16", "fp8", "int8", "qsgd", "terngrad"}
SPARSE = {"topk", "dgc", "graddrop"}  # send some values, as they are


def own_name(name: str) -> str:
    """Of a parameter or module, without what torch.compile puts into it."""
    return ".".join(word for word in name.split(".") if word != "_orig_mod")


def uncompiled(model: Any) -> Any:
    """What torch.compile made the model of, or the model itself."""
    while isinstance(model, torch.nn.Module) and "_orig_mod" in model._modules:
        model = model._modules["_orig_mod"]
    return model


def first_codec(recipe: str) -> str:
    """The name of the codec that sees the values; "topk:ratio=0.01+zstd" -> "topk"."""
    return recipe.split("+")[0].split(":")[0].strip()


def settled(recipe: str) -> str:
    """With what a method's paper has and the codec's defaults have not: `terngrad` clips at 2.5
    standard deviations (Wen et al. 2017, section 4), unless the recipe says `clip=`."""
    first, plus, rest = recipe.partition("+")
    if first_codec(first) == "terngrad" and ":" not in first:
        first = f"{first.strip()}:clip=2.5"
    return first + plus + rest


def parameter(recipe: str, name: str, fallback: float) -> float:
    """A number of the first codec, "ratio" of "topk:ratio=0.01"; a lone number is its first."""
    words = recipe.split("+")[0].partition(":")[2]
    for word in filter(None, words.split(",")):
        key, equals, value = word.rpartition("=")
        if key == name or not equals:
            return float(value)
    return fallback


_ALIVE: weakref.WeakSet[Coder] = weakref.WeakSet()


@atexit.register
def _let_go() -> None:
    """A thread that waits for a dead rank outlives Python; the library's objects must not."""
    for coder in list(_ALIVE):
        coder.close()


class Coder:
    """A recipe, with its settings and its memory; calls from several threads wait for each other.

    Args:
        recipe: codecs in order, "int8" or "terngrad+zstd"; see `wirepress.codecs`.
        threads: that encode and decode.
        checksum: of every block; the transports below have their own.

    Raises:
        ParameterError: no such recipe, or it does not take float32.
    """

    def __init__(self, recipe: str, *, threads: int = 1, checksum: bool = False) -> None:
        self.recipe = recipe
        _ALIVE.add(self)
        self._encoder: Any = wirepress.Compressor(recipe, threads=threads, checksum=checksum)
        self._decoder: Any = wirepress.Compressor(threads=threads)
        self._encoder.compress(as_array(torch.zeros(1)))  # what parsing cannot see is said now
        self.lossless = self._encoder.lossless("float32")
        self.sparse = first_codec(recipe) in SPARSE

    def close(self) -> None:
        """Frees memory; the coder cannot be used any more."""
        self._encoder = self._decoder = None

    @property
    def wants_feedback(self) -> bool:
        """Whether error feedback is used unless the user says otherwise."""
        return not self.lossless and first_codec(self.recipe) not in _NEEDS_NO_FEEDBACK

    def bound(self, n: int) -> int:
        """The largest frame of `n` values, in bytes."""
        return self._encoder.bound(4 * n)

    def encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int:
        """Writes a frame of `values` (1-D float32) to `out` (uint8); returns its size.

        With a `residual`, of `values + residual`; what the frame does not carry is left there.
        `seed`: what codecs that round at random draw from.
        """
        self._encoder.set("seed", seed)
        source, target = as_array(values), as_array(out)
        if residual is None:
            return self._encoder.compress_into(source, target)
        return self._encoder.compress_feedback_into(source, as_array(residual), target)

    def decode(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Expands a frame of as many float32 values as `out` has."""
        info = self._decoder.inspect(as_array(frame))
        if info.raw_size != 4 * out.numel():
            raise CorruptError(f"the frame holds {info.raw_size} bytes, not {4 * out.numel()}")
        self._decoder.decompress(as_array(frame), as_array(out))

    def decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Adds what a frame holds to `out`."""
        n = self._decoder.decompress_add(as_array(frame), as_array(out))
        if n != out.numel():
            raise CorruptError(f"the frame holds {n} values, not {out.numel()}")


class PlainCoder:
    """float32 values as they are, for tensors that are too small to be worth a frame."""

    recipe, lossless, sparse, wants_feedback = "none", True, False, False

    def bound(self, n: int) -> int:
        return 4 * n

    def encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int:
        size = 4 * values.numel()
        out[:size].copy_(values.view(torch.uint8))
        return size

    def decode(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        out.view(torch.uint8).copy_(_sized(frame, out))

    def decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        values = torch.empty_like(out)
        values.view(torch.uint8).copy_(_sized(frame, out))
        out.add_(values)


def _sized(frame: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    if frame.numel() != 4 * out.numel():
        raise CorruptError(f"{frame.numel()} bytes came for {out.numel()} values")
    return frame


def second_coder(coder: Coder | PlainCoder, n_ranks: int, threads: int) -> Coder | PlainCoder:
    """What the sum of `n_ranks` frames is sent with.

    The sum of sparse ones holds at most so many times their values: top-k with that share sends all
    of them as they are. Where that would take more than 2 bytes a value, the sum is dense: bf16.
    """
    if isinstance(coder, PlainCoder):
        return coder
    if not coder.sparse:
        return Coder(coder.recipe, threads=threads)
    share = n_ranks * sparse_share(coder.recipe)
    if share * SPARSE_BYTES > 2:
        return Coder("bf16", threads=threads)
    return Coder(f"topk:ratio={1.001 * share:.4g}", threads=threads)  # recipes have 4 digits


def sparse_share(recipe: str) -> float:
    """The share of values that a sparse recipe sends."""
    return parameter(recipe, "ratio", 0.01 if first_codec(recipe) == "graddrop" else 0.001)


def gather_is_smaller(coder: Coder | PlainCoder, n_ranks: int) -> bool:
    """Which algorithm of `exchange` sends fewer bytes; gather where they are equal: fewer errors.

    With frames of c bytes, a rank sends (n - 1) c in gather, and (n - 1) / n (c + c') in scatter,
    c' being the frames of sums: as large as c for dense formats, n times c for sparse ones up to
    where these become dense.
    """
    if not coder.sparse:
        return n_ranks <= 2
    frame = sparse_share(coder.recipe) * SPARSE_BYTES
    return n_ranks * frame <= frame + min(n_ranks * frame, 2)


SPARSE_BYTES = 5.0  # about, for a value that a sparse codec sends, with its index


def check_recipe(recipe: str) -> None:
    """Says what is wrong with a recipe for gradients that other data may have, if something is."""
    if first_codec(recipe) == "signsgd" and "none" in recipe:
        raise ParameterError(
            f'"{recipe}": signs without a scale are votes, not gradients; leave out scale=none'
        )
