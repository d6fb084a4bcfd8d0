# SPDX-License-Identifier: Apache-2.0
"""Checks JSON against what a kind of file must have, and says where it differs."""

from __future__ import annotations

import math
from typing import Any

from wirepress.report.parts import Unexpected


class Maybe:
    """A field that may be absent or null."""

    def __init__(self, expected: Any) -> None:
        self.expected = expected


class Either:
    """One of two forms of an object: the first if it has the field, else the second."""

    def __init__(self, field: str, first: Any, second: Any) -> None:
        self.field, self.first, self.second = field, first, second

    def of(self, value: Any) -> Any:
        return self.first if isinstance(value, dict) and self.field in value else self.second


class Positive(float):
    """A number above 0."""


NUMBER = float  # finite, or an integer; true and false are none
ANY = object
_CALLED = {
    float: "a number",
    Positive: "a number above 0",
    int: "a whole number",
    str: "text",
    bool: "true or false",
}
_DIGITS = 18  # an integer with more cannot be a size or a count


def _named(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "true or false"),
        (str, "text"),
        (dict, "an object"),
        (list, "a list"),
    ):
        if isinstance(value, kind):
            return name
    return f"{value:.20g}" if isinstance(value, float) else f"{str(value)[: _DIGITS + 2]}"


def _fits(value: object, expected: type) -> bool:
    if expected is object:
        return True
    if expected is Positive:
        return _fits(value, float) and value > 0  # type: ignore[operator]
    if expected in (float, int):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or abs(value) >= 10**_DIGITS:  # type: ignore[arg-type]
            return False
        return expected is float or isinstance(value, int)
    return isinstance(value, expected)


def check(value: Any, expected: Any, place: str = "") -> None:
    """`expected`: a type, {field: expected}, {str: expected} for any field, [expected], Maybe(...),
    Either(...).

    Raises Unexpected with the place, such as "ranks[2].calls: expected an object, found null".
    """
    if isinstance(expected, Maybe):
        if value is not None:
            check(value, expected.expected, place)
    elif isinstance(expected, Either):
        check(value, expected.of(value), place)
    elif isinstance(expected, dict):
        _require(value, dict, "an object", place)
        for field, inner in expected.items():
            if field is str:
                for name, item in value.items():
                    check(item, inner, f"{place}.{name}" if place else name)
            elif field in value:
                check(value[field], inner, f"{place}.{field}" if place else field)
            elif not isinstance(inner, Maybe):
                raise Unexpected(f'{place or "the file"}: expected a field "{field}", found none')
    elif isinstance(expected, list):
        _require(value, list, "a list", place)
        for i, item in enumerate(value):
            check(item, expected[0], f"{place}[{i}]")
    elif not _fits(value, expected):
        raise Unexpected(f"{place}: expected {_CALLED[expected]}, found {_named(value)}")


def _require(value: Any, kind: type, name: str, place: str) -> None:
    if not isinstance(value, kind):
        raise Unexpected(f"{place or 'the file'}: expected {name}, found {_named(value)}")
