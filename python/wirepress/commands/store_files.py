# SPDX-License-Identifier: Apache-2.0
"""`wirepress store ls | check | repair | cat`: the files of frame stores."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any

from wirepress import _core, arrays
from wirepress.commands import npy, show
from wirepress.errors import of_status
from wirepress.store import FrameStore, path_text

_KINDS = {1: "raw", 2: "frame", 3: "index", 4: "tiles"}
_REPORT = ("file_size", "frames", "damaged", "good_size", "torn_bytes", "index")
_RECORD = ("offset", "sequence", "step", "stored_size", "kind", "status")


def _read(path: str, *, repair: bool = False) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    report, records = _core.store_check(path_text(path), repair)
    rows = [dict(zip(_RECORD, record, strict=True)) for record in records]
    for row in rows:
        row["kind"] = _KINDS[row["kind"]]
        row["status"] = of_status(row["status"]).status if row["status"] else "ok"
    return dict(zip(_REPORT, report, strict=True)), rows


def _sentence(path: str, report: dict[str, Any]) -> str:
    return (
        f"{path}: {report['frames']} good frames, {report['damaged']} damaged, "
        f"{report['torn_bytes']} torn bytes, {'an' if report['index'] else 'no'} index"
    )


def _is_whole(report: dict[str, Any]) -> bool:
    return not report["damaged"] and not report["torn_bytes"]


def _ls(args: argparse.Namespace) -> int:
    with FrameStore(args.file, mode="r") as store:
        raw_size = arrays.n_bytes(arrays.dtype_code(store.dtype), store.shape)
        frames = store.frames()
        if args.json:
            rows = [{"step": f.step, "offset": f.offset, "stored": f.stored_size} for f in frames]
            show.print_json({"dtype": store.dtype, "shape": store.shape, "frames": rows})
            return 0
        print(f"{args.file}: {store.dtype} {store.shape}, {len(frames)} frames of {raw_size} bytes")
        cells = [
            (f.step, f.offset, f.stored_size, f"{raw_size / f.stored_size:.2f}") for f in frames
        ]
        head = ("step", "offset", "stored", "ratio")
        if cells:
            print(show.table(cells, head, right=head))
        if store.torn_bytes:
            print(f"and {store.torn_bytes} torn bytes: `wirepress store repair` cuts them")
    return 0


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """The library reads all of a store in one call. A signal may end that: nothing is written."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    for number in old:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _check(args: argparse.Namespace) -> int:
    with _ended_at_once():
        report, records = _read(args.file)
    if args.json:
        show.print_json(report | {"records": records})
    else:
        for row in records:
            if row["status"] != "ok":
                print(f"step {row['step']} at {row['offset']}: {row['status']}")
        print(_sentence(args.file, report))
    return 0 if _is_whole(report) else 1


def _repair(args: argparse.Namespace) -> int:
    report, _ = _read(args.file, repair=True)
    if args.json:
        show.print_json(report)
        return 0
    print(f"found {_sentence(args.file, report)}")
    if report["torn_bytes"]:
        print(f"cut it to {report['good_size']} bytes, and wrote an index")
    elif not report["index"]:
        print("wrote an index")
    return 0


def _cat(args: argparse.Namespace) -> int:
    with FrameStore(args.file, mode="r") as store:
        step, steps = args.step, store.steps()
        if -len(steps) <= step < 0:
            step = steps[step]
        if step not in store:
            raise of_status(20)(f"step {step} is not in {args.file}, which has {len(store)} frames")
        memory = bytearray(arrays.n_bytes(arrays.dtype_code(store.dtype), store.shape))
        store.get(step, memory)
        if args.npy:
            sys.stdout.buffer.write(npy.make_header(npy.Header(store.dtype, store.shape)))
        sys.stdout.buffer.write(memory)
        sys.stdout.buffer.flush()
    return 0


def add_parser(parsers: Any) -> None:
    """Adds `store` and its own commands."""
    parser = parsers.add(
        "store",
        "list, check, repair and read frame stores",
        _ls,
        "  wirepress store ls frames\n"
        "  wirepress store check frames            reads all of it; status 1 where it is damaged\n"
        "  wirepress store repair frames           cuts a torn tail, writes an index\n"
        "  wirepress store cat frames 7 --npy > step7.npy\n",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, sentence, handler in (
        ("ls", "list the frames", _ls),
        ("check", "read everything and say what is damaged", _check),
        ("repair", "cut a torn tail, write an index where there is none", _repair),
        ("cat", "write a frame to stdout", _cat),
    ):
        command = commands.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        command.set_defaults(handler=handler)
        command.add_argument("file", metavar="FILE", help="a frame store")
        if name == "cat":
            command.add_argument("step", metavar="STEP", type=int, help="-1 is the last one")
            command.add_argument("--npy", action="store_true", help="as a .npy file")
        else:
            command.add_argument("--json", action="store_true", help="print JSON")
