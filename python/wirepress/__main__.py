# SPDX-License-Identifier: Apache-2.0
"""Where the command `wirepress` begins."""

import sys


def main() -> int:
    """Runs the command of sys.argv; the exit status. Every job waits for `run`: it loads no more
    than it needs."""
    if sys.argv[1:2] == ["run"]:
        from wirepress.launch import run

        return run.standalone(sys.argv[2:])
    from wirepress.commands import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
