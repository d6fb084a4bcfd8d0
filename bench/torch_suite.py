#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of gloo over wirepress: what they find that ours did not think of.

    pip install expecttest
    bench/torch_suite.py [--ranks 3] [-k WORDS]    writes bench/results/torch_suite.json

PyTorch ships them as torch.testing._internal.distributed.distributed_test. They run

plain   as they are;
group   with process groups of the backend `wirepress`, which code by `planes` from the first byte;
hook    with `wirepress.torch.compress(model, "planes")` on each DistributedDataParallel model.

What passes plain and fails otherwise is listed with its last words. Tests for GPUs are skipped.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import results

WAYS = ("plain", "group", "hook")
WORDS = "not cuda and not nccl"
OF_DDP = "ddp or Distributed or accumulate"


def by_wirepress(make: Callable[..., Any]) -> Callable[..., Any]:
    """Where the tests say gloo, wirepress does it."""

    @functools.wraps(make)
    def made(*arguments: Any, **named: Any) -> Any:
        words = ["wirepress" if word == "gloo" else word for word in arguments]
        if named.get("backend") == "gloo":
            named["backend"] = "wirepress"
        return make(*words, **named)

    return made


def tests(way: str) -> type:
    """The class of PyTorch's tests, for pytest."""
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d
    from torch.nn.parallel import DistributedDataParallel

    import wirepress.torch

    if way == "group":
        for name in ("init_process_group", "new_group"):
            made = by_wirepress(getattr(c10d, name))
            for module in (dist, c10d):
                setattr(module, name, made)
    if way == "hook":
        plain, states = DistributedDataParallel.__init__, []

        def hooked(model: Any, *arguments: Any, **named: Any) -> None:
            plain(model, *arguments, **named)
            states.append(wirepress.torch.compress(model, "planes", min_values=1))

        DistributedDataParallel.__init__ = hooked  # type: ignore[method-assign]
    import torch.multiprocessing
    from torch.testing._internal.distributed import distributed_test

    class TestGloo(  # type: ignore[misc]
        distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase
    ):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return TestGloo


def run(way: str, ranks: int, words: str) -> dict[str, str]:
    """What became of each test: passed, skipped, or the last words of the rank that failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "test_torch_suite.py")
        with open(file, "w") as out:
            out.write(
                f"import sys; sys.path.insert(0, {str(results.ROOT / 'bench')!r})\n"
                f"import torch_suite; TestGloo = torch_suite.tests({way!r})\n"
            )
        environment = os.environ | {
            "BACKEND": "gloo",
            "WORLD_SIZE": str(ranks),
            "TEMP_DIR": folder,
            "MASTER_ADDR": "127.0.0.1",
            "WIREPRESS_TORCH_RECIPE": "planes",
            "WIREPRESS_TORCH_THRESHOLD": "1",
        }
        options = ["-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore", "-k", words]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, file],
            cwd=folder, env=environment, capture_output=True, text=True,
        )  # fmt: skip
    found: dict[str, str] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) .*::(\w+)", done.stdout, re.M):
        found[name] = outcome.lower()
    blocks = re.findall(r"^_+ TestGloo\.(\w+) _+$(.*?)(?=^___|\Z)", done.stdout, re.M | re.S)
    for name, text in blocks:
        said = re.findall(r"^E +(\w*(?:Error|Exception)\b.*)$", text, re.M)
        if said and found[name] != "passed":
            found[name] = said[-1][:200]
    if not found:
        raise SystemExit(f"{way}: no test ran:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("-k", default=WORDS, help=f"which, as for pytest; else {WORDS!r}")
    options = parser.parse_args()
    rows = {}
    for way in WAYS:
        words = options.k if way != "hook" else f"({options.k}) and ({OF_DDP})"
        rows[way] = run(way, options.ranks, words)
        passed = sum(outcome == "passed" for outcome in rows[way].values())
        print(f"{way}: {passed} of {len(rows[way])} pass")
        for name, outcome in rows[way].items():
            if outcome != "passed":
                print(f"  {name}: {outcome}")
    results.write("torch_suite", {"ranks": options.ranks, "ways": rows})


if __name__ == "__main__":
    main()
