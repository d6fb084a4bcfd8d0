# SPDX-License-Identifier: Apache-2.0
"""`wirepress explain FILE...`: what recipe=auto would choose, and the table it decides from."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from typing import Any

from wirepress import api, arrays
from wirepress.commands import bench, files, paths, show

_BYPASS = "store"
_SURE = 1.15  # auto itself looks no further at recipes that take longer
_SAME = 0.99  # auto takes the faster recipe of two that finish at about the same time


@dataclasses.dataclass
class Group:
    """Blocks that were decided about together, and the rows about them."""

    offset: int
    size: int
    reused: bool
    rows: list[api.Choice]

    @property
    def chosen(self) -> api.Choice:
        return next(row for row in self.rows if row.chosen)


def _groups(rows: list[api.Choice]) -> list[Group]:
    groups: list[Group] = []
    for row in rows:
        if not groups or groups[-1].offset != row.offset:
            groups.append(Group(row.offset, row.size, row.reused, []))
        groups[-1].rows.append(row)
    return groups


def finish(
    ratio: float, size: int, block_size: int, compress: float, expand: float, link: float
) -> float:
    """Seconds until `size` bytes lie expanded on the other side of a link, when compressing,
    sending and expanding overlap block by block; rates are bytes a second."""
    n = max(1, math.ceil(size / block_size))
    stages = (1 / compress, 1 / ratio / link, 1 / expand)
    return size * (sum(stages) / n + max(stages) * (n - 1) / n)


def _gib(rate: float) -> str:
    return f"{rate / 1e9:.2f}" if rate else "-"


def _tried(row: api.Choice) -> str:
    return f"{row.tried >> 10} KiB" if row.tried >= 1024 else f"{row.tried} B" if row.tried else "-"


def _table(group: Group) -> str:
    head = ("", "recipe", "ratio", "of", "comp GB/s", "exp GB/s", "prior ms", "finish ms", "")
    cells = []
    for row in sorted(group.rows, key=lambda r: (bool(r.why), r.finish)):
        tried = not row.why
        cells.append(
            (
                "->" if row.chosen else "",
                row.recipe if row.recipe != _BYPASS else f"{_BYPASS} (bypass)",
                f"{row.ratio:.3f}" if tried else "-",
                _tried(row),
                _gib(row.compress_rate),
                _gib(row.expand_rate),
                f"{1e3 * row.prior * group.size:.2f}" if tried else "-",
                f"{1e3 * row.finish * group.size:.2f}" if tried else "-",
                f"not tried: {row.why}" if row.why else "timed on a block" if row.timed else "",
            )
        )
    return show.table(cells, head, right=head[2:8])


def _confidence(group: Group) -> str:
    """How far behind the next recipe is, and what that is worth; "" where time is not the goal."""
    others = [row for row in group.rows if not row.why and not row.chosen]
    if not others:
        return ""
    next_best = min(others, key=lambda row: row.finish)
    times = next_best.finish / group.chosen.finish
    if times < _SAME:
        return ""
    sure = "" if times >= _SURE else "; close: samples and calibrated speeds are no surer than that"
    return f"next: {next_best.recipe}, {times:.2f}x the time{sure}"


def _looks(row: api.Choice) -> str:
    parts = [
        f"{row.zero_lines:.0%} zero lines",
        f"{row.byte_entropy:.2f} bits a byte",
        f"{row.matches:.0%} repeated words",
    ]
    if row.exponent_entropy or row.roughness:
        parts[2:2] = [
            f"{row.exponent_entropy:.2f} bits an exponent",
            f"roughness {row.roughness:.2f}",
        ]
    return ", ".join(parts)


def _measured(view: arrays.View, groups: list[Group], args: argparse.Namespace) -> str:
    """Every recipe that was tried, and auto itself, on the whole data."""
    recipes = {row.recipe: None for group in groups for row in group.rows if not row.why}
    rate, data = api.rate(args.link), memoryview(view.buffer)
    block_size = api.inspect(api.compress(b"", block_size=args.block_size)).block_size
    rows = []
    for recipe in [*recipes, args.recipe]:
        options: dict[str, Any] = {"threads": 1, "link": args.link, "block_size": args.block_size}
        subject = bench.frame_subject(data, view, recipe, **options)
        if recipe == args.recipe or not all(c.lossless for c in bench.codecs_of(recipe)):
            subject.check = lambda: None  # within a bound, which the codecs' own tests prove
        row = bench.measure("", data, subject, args.seconds)
        speeds = row.compress_gbps * 1e9, row.decompress_gbps * 1e9
        rows.append((finish(row.ratio, len(data), block_size, *speeds, rate), row))
    rows.sort(key=lambda pair: pair[0])
    head = ("recipe", "ratio", "comp GB/s", "exp GB/s", "finish ms", "of the best")
    cells = [
        (
            row.recipe,
            f"{row.ratio:.3f}",
            f"{row.compress_gbps:.2f}",
            f"{row.decompress_gbps:.2f}",
            f"{1e3 * seconds:.2f}",
            f"{seconds / rows[0][0]:.2f}x",
        )
        for seconds, row in rows
    ]
    return show.table(cells, head, right=head[1:])


def explain_file(name: str, args: argparse.Namespace) -> dict[str, Any]:
    if args.recipe != "auto" and not args.recipe.startswith("auto:"):
        raise files.UsageError(f"explain is about auto and auto:GOAL, not {args.recipe}")
    view = files.read_sample(name, args.dtype, args.limit << 20)
    rows = api.Compressor(args.recipe, link=args.link, block_size=args.block_size).explain_view(
        view
    )
    groups = _groups(rows)
    result = {
        "file": name,
        "recipe": args.recipe,
        "link": args.link,
        "groups": [
            {"offset": g.offset, "size": g.size, "reused": g.reused}
            | {"rows": [dataclasses.asdict(row) for row in g.rows]}
            for g in groups
        ],
    }
    if args.json:
        return result
    size = sum(group.size for group in groups)
    print(
        f"{os.path.basename(name)}: {size:,} bytes of {arrays.DTYPES[view.dtype]}; "
        f"{args.recipe} over {args.link}"
    )
    paces = {row.pace for group in groups for row in group.rows if not row.why}
    if paces - {1.0}:
        print(f"  the machine takes {min(paces):.2f} to {max(paces):.2f} of its calibrated times")
    shares: dict[str, int] = {}
    for group in groups:
        shares[group.chosen.recipe] = shares.get(group.chosen.recipe, 0) + group.size
    for recipe, share in sorted(shares.items(), key=lambda pair: -pair[1]):
        print(f"  {share / size:4.0%}  {recipe}")
    shown = [group for group in groups if not group.reused]
    for group in shown[: args.groups or None]:
        print(f"\nbytes {group.offset:,} to {group.offset + group.size:,}: {_looks(group.rows[0])}")
        print(_table(group))
        if said := _confidence(group):
            print(said)
    if args.groups and len(shown) > args.groups:
        more = len(shown) - args.groups
        print(f"\n{more} more decision{'s' * (more > 1)}: --groups 0 shows all")
    if args.measure:
        print("\nmeasured on all of it, one thread:")
        print(_measured(view, groups, args))
    return result


def main(args: argparse.Namespace) -> int:
    results = [explain_file(name, args) for name in args.files]
    if args.json:
        show.print_json(results)
    elif sys.stdout.isatty():
        print(
            "\nratio: of so many bytes of the group; speeds: one thread, calibrated on this machine"
        )
        print("and corrected by its pace, or timed on a block; prior: by the calibration alone;")
        print("finish: until a group is expanded on the other side, all steps overlapping (model)")
    return 0


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "explain",
        "print what recipe=auto would choose for files, and why",
        main,
        "  wirepress explain field.npy --link 10Gbps\n"
        "  wirepress explain gradient.f32 --dtype float32 --recipe auto:rel=1e-2 --measure\n"
        "  wirepress explain log.txt --recipe auto:min-speed=500MB/s --json\n",
    )
    parser.add_argument("files", nargs="+", type=paths.file_name, metavar="FILE", help="- is stdin")
    parser.add_argument("-r", "--recipe", default="auto", help="auto, or auto:GOAL (auto)")
    parser.add_argument("--link", default="10Gbps", metavar="RATE", help="10Gbps, 1.2GB/s (10Gbps)")
    parser.add_argument("--dtype", metavar="NAME", help="what the elements of raw files are")
    parser.add_argument("--block-size", default="512KiB", metavar="SIZE", help="(512KiB)")
    parser.add_argument(
        "--limit",
        type=files.whole(1),
        default=256,
        metavar="MIB",
        help="of each file at most (256)",
    )
    parser.add_argument(
        "--groups",
        type=files.whole(0),
        default=3,
        metavar="N",
        help="decisions to print (3); 0 is all",
    )
    parser.add_argument(
        "--measure", action="store_true", help="also time every recipe that was tried, on all of it"
    )
    parser.add_argument(
        "--seconds",
        type=files.duration,
        default=0.3,
        metavar="S",
        help="that each timing may take (0.3)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
