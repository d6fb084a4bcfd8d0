# SPDX-License-Identifier: Apache-2.0
"""`wirepress report FILE...`: a page from any JSON that wirepress writes, and from traces.

parts.py is what pages are made of, page.py writes them, kinds/ turns files into parts: one module
for each kind of file, found by being there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wirepress.commands import files
from wirepress.launch.run import write_atomically
from wirepress.report import expect, kinds, page
from wirepress.report.parts import Input, Section, Unexpected, file_name

TRACE_SUFFIX = ".wpt"
_HEAD = 400  # bytes in which a page of ours says so


def _read(name: str) -> Any:
    """A file's JSON. Raises UsageError that names the file."""
    with files.open_input(name) as file:
        content = b"".join(iter(lambda: file.read(1 << 20), b""))
    what = "stdin" if name == files.PIPE else name
    if not content.strip():
        raise files.UsageError(f"{what} is empty: expected JSON that wirepress wrote")
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise files.UsageError(
            f"{what}: expected JSON, and it stops being that at line {error.lineno}, column "
            f"{error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise files.UsageError(f"{what}: expected JSON that wirepress wrote: {why}") from None


def _read_all(names: Sequence[str]) -> tuple[list[str], list[Any]]:
    """What the inputs are called, and their content: JSON, or traces: a folder is one, and so are
    all .wpt files together."""
    pieces = [name for name in names if name.endswith(TRACE_SUFFIX)]
    found: list[tuple[str, Any]] = []
    for name in names:
        if os.path.isdir(name):
            found.append((name.rstrip("/"), _read_trace([name])))
        elif name not in pieces:
            found.append((name, _read(name)))
        elif name == pieces[0]:
            found.append((str(Path(name).resolve().parent), _read_trace(pieces)))
    return [name for name, _ in found], [value for _, value in found]


def _read_trace(names: Sequence[str]) -> Any:
    from wirepress.sim import trace_reader  # needs numpy

    return trace_reader.read(names, partial=True)


def _labels(names: Sequence[str]) -> list[str]:
    """What the inputs are called: their names, with as many folders as tell them apart."""
    paths = ["stdin" if name == files.PIPE else name for name in names]
    labels = [file_name(path).removesuffix(".json") for path in paths]
    if len(set(labels)) < len(labels):
        labels = [path.removesuffix(".json") for path in paths]
    seen: dict[str, int] = {}
    for i, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            labels[i] = f"{label} ({seen[label]})"
    return labels


def _kind_of(name: str, value: Any) -> kinds.Kind:
    for kind in kinds.known():
        if kind.matches(value):
            try:
                expect.check(value, kind.EXPECTED)
            except Unexpected as error:
                raise files.UsageError(f"{name}: looks like {kind.WHAT}, but {error}") from None
            return kind
    wanted = "\n".join(f"  {kind.WHAT}" for kind in kinds.known())
    raise files.UsageError(f"{name}: not a file that wirepress writes; expected one of\n{wanted}")


def sections(names: Sequence[str], values: Sequence[Any]) -> list[Section]:
    """The page's sections; files of one kind stand side by side. Raises UsageError that names the
    file which is broken, or of no kind."""
    groups: dict[str, tuple[kinds.Kind, list[Input]]] = {}
    for name, label, value in zip(names, _labels(names), values, strict=True):
        kind = _kind_of("stdin" if name == files.PIPE else name, value)
        groups.setdefault(kind.WHAT, (kind, []))[1].append(Input(label, value))
    found: list[Section] = []
    for kind, inputs in groups.values():
        try:
            found += kind.build(inputs)
        except Unexpected as error:
            names = [given.name for given in inputs]
            raise files.UsageError(f"{' or '.join(names)}: {error}") from None
    return found


def _output(args: argparse.Namespace) -> str:
    if args.output:
        return str(args.output)
    one = args.files[0] if len(args.files) == 1 and args.files[0] != files.PIPE else "report"
    return Path(file_name(os.path.abspath(one))).with_suffix(".html").name


def _require_ours(path: Path) -> None:
    """Only a page of before is replaced without asking."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if page.GENERATOR.encode() not in file.read(_HEAD):
            raise files.UsageError(f"{path} exists and is no report; -f overwrites it")


def main(args: argparse.Namespace) -> int:
    page.plotly()  # or it says what to install, before anything is read
    output = _output(args)
    if output == files.PIPE and args.open:
        raise files.UsageError("--open needs a file, not stdout")
    if output != files.PIPE and not args.force:
        _require_ours(Path(output))
    names, values = _read_all(args.files)
    found = sections(names, values)
    title = args.title or f"wirepress: {', '.join(_labels(names))}"
    text = page.write(title, _about(names), found)
    if output == files.PIPE:
        sys.stdout.write(text)
        return 0
    write_atomically(Path(output), text)
    if not args.quiet:
        print(f"wirepress: {output}: {len(text) / 1e6:.1f} MB, opens without a network",
              file=sys.stderr)  # fmt: skip
    if args.open and not webbrowser.open(Path(output).resolve().as_uri()):
        raise files.UsageError(f"no browser could be started; the page is {output}")
    return 0


def _about(names: Sequence[str]) -> str:
    from wirepress import __version__

    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"Made from {shown} by wirepress {__version__}."


def add_parser(parsers: Any) -> None:
    import shtab

    parser = parsers.add(
        "report",
        "make a page to look at from any JSON that wirepress writes, and from traces",
        main,
        "  wirepress run --report job.json -- mpirun -n 4 ./app\n"
        "  wirepress report job.json --open              one HTML file, needs no network\n"
        "  wirepress report before.json after.json -o both.html         side by side\n"
        "  wirepress report app.trace/ -o trace.html     when each rank was in which call\n"
        "  wirepress plan --size 395MB --link 10Gbps --json | wirepress report - -o plan.html\n",
    )
    argument = parser.add_argument(
        "files", nargs="+", metavar="FILE", help="JSON, or a trace: its folder; - is stdin"
    )
    argument.complete = shtab.FILE
    parser.add_argument(
        "-o", "--output", metavar="PAGE",
        help="the page (default FILE.html here, of several files report.html); - is stdout",
    )  # fmt: skip
    parser.add_argument("-f", "--force", action="store_true", help="overwrite what is no report")
    parser.add_argument("--open", action="store_true", help="and show it in the browser")
    parser.add_argument("--title", metavar="TEXT", help="of the page")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say what was written")
