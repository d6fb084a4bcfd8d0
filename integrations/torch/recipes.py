# SPDX-License-Identifier: Apache-2.0
"""What recipes mean for gradients."""

from __future__ import annotations

import functools

from wirepress import api
from wirepress.errors import ParameterError

# Unbiased codecs, whose error averages out over steps and workers, and fine ones, whose error is
# far below the noise of a gradient: error feedback costs memory and time and gains nothing.
_NEEDS_NO_FEEDBACK = {"bf16", "fp16", "fp8", "int8", "qsgd", "terngrad"}
_SPARSE = {"topk", "dgc", "graddrop"}  # send some values, as they are
SPARSE_BYTES = 5.0  # about, for a value that a sparse codec sends, with its index


def first_codec(recipe: str) -> str:
    """The name of the codec that sees the values; "topk:ratio=0.01+zstd" -> "topk"."""
    return recipe.split("+")[0].split(":")[0].strip()


def is_sparse(recipe: str) -> bool:
    """Whether some values are sent as they are, and the others not at all."""
    return first_codec(recipe) in _SPARSE


def needs_feedback(recipe: str) -> bool:
    """Whether a lossy recipe trains worse without error feedback."""
    return first_codec(recipe) not in _NEEDS_NO_FEEDBACK


def settled(recipe: str) -> str:
    """With what a method's paper has and the codec's defaults have not: `terngrad` clips at 2.5
    standard deviations (Wen et al. 2017, section 4), unless the recipe says `clip=`."""
    first, plus, rest = recipe.partition("+")
    if first_codec(first) == "terngrad" and ":" not in first:
        first = f"{first.strip()}:clip=2.5"
    return first + plus + rest


@functools.cache
def _defaults() -> dict[tuple[str, str], float]:
    """By codec and parameter."""
    return {(codec.name, p.name): p.default for codec in api.codecs() for p in codec.params}


def parameter(recipe: str, name: str) -> float:
    """A number of the first codec, "ratio" of "topk:ratio=0.01"; a lone number is its first."""
    words = recipe.split("+")[0].partition(":")[2]
    for word in filter(None, words.split(",")):
        key, equals, value = word.rpartition("=")
        if key == name or not equals:
            return float(value)
    return _defaults()[first_codec(recipe), name]


def sparse_share(recipe: str) -> float:
    """The share of values that a sparse recipe sends."""
    return parameter(recipe, "ratio")


def check_recipe(recipe: str) -> None:
    """Says what is wrong with a recipe for gradients that other data may have, if something is."""
    if first_codec(recipe) == "signsgd" and "none" in recipe:
        raise ParameterError(
            f'"{recipe}": signs without a scale are votes, not gradients; leave out scale=none'
        )
