# SPDX-License-Identifier: Apache-2.0
"""Standard files that a command can rely on. Standard library only, as run.py, which uses it."""

import os
import sys


def open_standard_files() -> None:
    """Gives a process that was started without stdin, stdout or stderr ones that fail when used;
    else the next file that it opens would become them."""
    for number, name, wrong in ((0, "stdin", os.O_WRONLY), (1, "stdout", os.O_RDONLY)):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, wrong)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in sys.stdout, sys.stderr:
        if hasattr(stream, "reconfigure"):  # names of files may be no text
            stream.reconfigure(errors="backslashreplace")
