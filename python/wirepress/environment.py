# SPDX-License-Identifier: Apache-2.0
"""Variables WIREPRESS_* of the process that nobody reads."""

from __future__ import annotations

import functools
import warnings

from wirepress import _core


@functools.cache
def check(stacklevel: int) -> None:
    """Warns of them once, where an object that follows the environment is made; `stacklevel` as of
    `warnings.warn`, counted from here."""
    if sentence := _core.take_warning():
        warnings.warn(sentence, RuntimeWarning, stacklevel=stacklevel)
