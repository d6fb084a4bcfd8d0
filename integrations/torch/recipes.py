# SPDX-License-Identifier: Apache-2.0
"""What recipes mean for gradients."""

from __future__ import annotations

import functools

from wirepress import api
from wirepress.errors import ParameterError

SPARSE_BYTES = 5.0  # about, for a value that a sparse codec sends, with its index


def first_codec(recipe: str) -> str:
    """The name of the codec that sees the values; "topk:ratio=0.01+zstd" -> "topk"."""
    return recipe.split("+")[0].split(":")[0].strip()


def is_sparse(recipe: str) -> bool:
    """Whether some values are sent as they are, and the others not at all."""
    return _codecs()[first_codec(recipe)].sparse


def needs_feedback(recipe: str) -> bool:
    """Whether a lossy recipe trains worse without error feedback."""
    return _codecs()[first_codec(recipe)].wants_feedback


def settled(recipe: str) -> str:
    """With what a method's paper has and the codec's defaults have not: `terngrad` clips at 2.5
    standard deviations (Wen et al. 2017, section 4), unless the recipe says `clip=`."""
    first, plus, rest = recipe.partition("+")
    if first_codec(first) == "terngrad" and ":" not in first:
        first = f"{first.strip()}:clip=2.5"
    return first + plus + rest


@functools.cache
def _codecs() -> dict[str, api.Codec]:
    return {codec.name: codec for codec in api.codecs(kernels=False)}


def parameter(recipe: str, name: str) -> float:
    """A number of the first codec, "ratio" of "topk:ratio=0.01"; a lone number is its first."""
    words = recipe.split("+")[0].partition(":")[2]
    for word in filter(None, words.split(",")):
        key, equals, value = word.rpartition("=")
        if key == name or not equals:
            return float(value)
    return next(p.default for p in _codecs()[first_codec(recipe)].params if p.name == name)


def sparse_share(recipe: str) -> float:
    """The share of values that a sparse recipe sends."""
    return parameter(recipe, "ratio")


def check_recipe(recipe: str) -> None:
    """Says what is wrong with a recipe for gradients that other data may have, if something is."""
    if first_codec(recipe) == "signsgd" and "none" in recipe:
        raise ParameterError(
            f'"{recipe}": signs without a scale are votes, not gradients; leave out scale=none'
        )
