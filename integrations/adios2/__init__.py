# SPDX-License-Identifier: Apache-2.0
"""ADIOS2 (2.12 and later): an operator that stores blocks of variables as frames.

    import wirepress.adios2
    variable.add_operation_string("plugin", wirepress.adios2.parameters("bx:m=6"))

The import adds the operator's folder to ADIOS2_PLUGIN_PATH, for reading, too.
"""

from __future__ import annotations

import os
from pathlib import Path

from wirepress.api import Compressor, Value

__all__ = ["parameters", "plugin_path"]

_LIBRARY = "wirepress_adios2"


def plugin_path() -> str:
    """The folder of the operator, for ADIOS2_PLUGIN_PATH."""
    here = Path(__file__).resolve().parent
    build = here.parent.parent / "build"  # run from a source tree
    folders = [here, *(build / preset / "integrations" / "adios2" for preset in ("dev", "release"))]
    for folder in folders:
        if (folder / f"lib{_LIBRARY}.so").is_file():
            return str(folder)
    raise ImportError(
        f"lib{_LIBRARY}.so is not in {', '.join(map(str, folders))}: this wirepress was built "
        f"without ADIOS2 2.12 or later"
    )


def parameters(recipe: str = "", **options: Value) -> dict[str, str]:
    """Parameters of an operation of the type "plugin".

    Args:
        recipe: codecs with their parameters, lossless or with an error bound: `"bx:m=6"`. "":
            that of WIREPRESS_RECIPE, or `"shuffle+zstd:1"`.
        **options: of wirepress: `threads=2`, `block_size="256KiB"`.

    Raises:
        ParameterError: there is no such recipe or option. (ADIOS2 would only warn, and write raw.)
    """
    Compressor(recipe or None, **options)
    found = {"PluginName": "wirepress", "PluginLibrary": _LIBRARY}
    if recipe:
        found["recipe"] = recipe
    return found | {key: str(value) for key, value in options.items()}


def _add_to_path() -> None:
    paths = [path for path in os.environ.get("ADIOS2_PLUGIN_PATH", "").split(":") if path]
    if plugin_path() not in paths:
        os.environ["ADIOS2_PLUGIN_PATH"] = ":".join([plugin_path(), *paths])


_add_to_path()
