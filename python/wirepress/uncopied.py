# SPDX-License-Identifier: Apache-2.0
"""Objects that hold work in progress."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Uncopied:
    """Cannot be copied or pickled: two objects would go on with one stream, job or file."""

    _instead = "make a new one"

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: {self._instead}")
