# SPDX-License-Identifier: Apache-2.0
"""Runs a function on ranks: real processes with a real process group between them."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

OnRanks = Callable[..., list[Any]]

# What every rank would import is imported once, in the process that the ranks are forked from: it
# has no threads.
_PRELOAD = [
    "torch",
    "torch._dynamo",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "torch.distributed._functional_collectives",
    "wirepress.torch",
    "pytest",
]


def _module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for pickle, dataclasses
    spec.loader.exec_module(module)
    return module


def rank_main(
    path: str, name: str, args: tuple[Any, ...], rank: int, n: int, group: dict[str, Any], out: Any
) -> None:
    """The life of a rank: joins the group, calls the function, sends what it returns."""
    gc.freeze()  # of all modules: to look at them for what is not needed any more takes 0.3 s

    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # keeps the group for ever if DDP imports it later

    torch.set_num_threads(1)
    try:
        function = getattr(_module(path), name)
        if group["backend"]:
            if "wirepress" in group["backend"]:
                import wirepress.torch  # noqa: F401  (registers the backend)
            dist.init_process_group(rank=rank, world_size=n, **group)
        result = function(*args)
        out.send_bytes(pickle.dumps((True, result)))  # send() would share tensors by descriptors
        if dist.is_initialized():
            gc.collect()  # a DDP model holds the group, by a cycle of references
            dist.destroy_process_group()
    except BaseException:
        out.send_bytes(pickle.dumps((False, traceback.format_exc())))
        raise SystemExit(1) from None


_START = "import runpy; runpy.run_path(conftest)['rank_main'](*arguments)"


def run_on_ranks(
    function: Callable[..., Any],
    n: int,
    *args: Any,
    backend: str = "gloo",
    timeout: float = 60,
    dying: Collection[int] = (),
    timeout_of_group: float | None = None,
    **group: Any,
) -> list[Any]:
    """What `function(*args)` returns on each of `n` ranks, by rank.

    Args:
        function: of a test module, on its first level. It finds a process group of this backend
            with one thread for computing; arguments and results are pickled.
        timeout: in seconds; then all ranks are killed, and the test fails.
        dying: ranks that end without a result; theirs is None.
        timeout_of_group: in seconds, instead of PyTorch's.
        **group: further arguments of `init_process_group`. backend="": no group is made.
    """
    if timeout_of_group is not None:
        group["timeout"] = timedelta(seconds=timeout_of_group)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    with tempfile.TemporaryDirectory() as folder:
        if backend:
            group["init_method"] = f"file://{folder}/store"
        path, name = function.__code__.co_filename, function.__name__
        processes, pipes = [], []
        for rank in range(n):
            mine, theirs = context.Pipe(duplex=False)
            arguments = (path, name, args, rank, n, {"backend": backend, **group}, theirs)
            process = context.Process(
                target=exec, args=(_START, {"conftest": __file__, "arguments": arguments})
            )
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(mine)
        try:
            return _results(pipes, monotonic() + timeout, dying)
        finally:
            for process in processes:
                process.join(5)
                process.kill()


def _results(pipes: list[Connection], end: float, dying: Collection[int]) -> list[Any]:
    results: dict[int, Any] = dict.fromkeys(dying)
    errors = {}
    waiting = {pipe: rank for rank, pipe in enumerate(pipes) if rank not in dying}
    while waiting:
        # Where one rank failed the others may wait for it for long.
        ready = wait(list(waiting), 5 if errors else max(0, end - monotonic()))
        for pipe in ready:
            rank = waiting.pop(pipe)
            try:
                good, value = pickle.loads(pipe.recv_bytes())
            except EOFError:
                good, value = False, "it ended without a word"
            (results if good else errors)[rank] = value
        if not ready:
            errors |= dict.fromkeys(waiting.values(), "no result in time")
            break
    if errors:
        raise AssertionError("\n".join(f"rank {r}: {errors[r]}" for r in sorted(errors)))
    return [results[rank] for rank in range(len(pipes))]


@pytest.fixture(scope="session")
def on_ranks() -> OnRanks:
    """`run_on_ranks`, or a skip where PyTorch is missing."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return run_on_ranks
