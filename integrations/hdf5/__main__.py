# SPDX-License-Identifier: Apache-2.0
"""python -m wirepress.hdf5 [RECIPE]: what HDF5's own tools need to write with the filter."""

from __future__ import annotations

import sys

import wirepress.hdf5
from wirepress.errors import ParameterError


def main() -> int:
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    try:
        values = wirepress.hdf5.options(*sys.argv[1:])["compression_opts"]
    except ParameterError as error:
        print(f"wirepress.hdf5: {error}", file=sys.stderr)
        return 2
    fields = (wirepress.hdf5.FILTER, 0, len(values), *values)
    print(f"export HDF5_PLUGIN_PATH={wirepress.hdf5.plugin_path()}")
    print(f"h5repack -f UD={','.join(map(str, fields))} IN.h5 OUT.h5")
    return 0


if __name__ == "__main__":
    sys.exit(main())
