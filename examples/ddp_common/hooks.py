# SPDX-License-Identifier: Apache-2.0
"""How gradients travel: plain, by PyTorch's own hooks, or by wirepress."""

# No `from __future__ import annotations`: DDP compares the hooks' annotations with its types.
import argparse
import math
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

HOOKS = "fp16, bf16, powersgd:RANK or noop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("gradients")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--compress", metavar="METHOD", help="by wirepress: int8, onebit, auto, ...")
    which.add_argument("--hook", help=f"PyTorch's own: {HOOKS} (sends nothing, learns apart)")
    group.add_argument(
        "--bucket-mb",
        type=float,
        metavar="MB",
        help="DDP's bucket_cap_mb; small ones are on their way sooner (25)",
    )
    group.add_argument("--warmup", type=int, default=0, metavar="N",
                       help="steps at the start without compression (%(default)s)")  # fmt: skip
    group.add_argument("--no-error-feedback", action="store_true",
                       help="drop what a code leaves out; default: as it wants")  # fmt: skip
    group.add_argument("--rule", action="append", default=[], metavar="PATTERN=METHOD",
                       help="another method for parameters of that name")  # fmt: skip
    group.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                       help="a knob of the method")  # fmt: skip


def bucket_cap(options: argparse.Namespace) -> float | None:
    """DDP's bucket_cap_mb. PyTorch's PowerSGD starts collectives when others have ended; with two
    buckets under way on gloo, ranks can start them in another order, and fail. So it gets one."""
    return 1 << 20 if (options.hook or "").startswith("powersgd") else options.bucket_mb


def name(options: argparse.Namespace) -> str:
    return options.compress or options.hook or "plain"


def register(ddp: DistributedDataParallel, options: argparse.Namespace, task: Any) -> Any:
    """Registers what the command line says; returns wirepress's state, None for all others."""
    if options.hook:
        register_torch(ddp, options.hook)
    if not options.compress:
        return None
    import wirepress.torch

    knobs: dict[str, Any] = {key: value(text) for key, text in pairs(options.set)}
    if options.compress.startswith("dgc"):
        knobs = {"momentum": task.momentum, "clip": task.clip, **knobs}
        if knobs["clip"] == math.inf:
            del knobs["clip"]
    return wirepress.torch.compress(
        ddp,
        options.compress,
        error_feedback=False if options.no_error_feedback else None,
        warmup_steps=options.warmup,
        rules=dict(pairs(options.rule)),
        **knobs,
    )


def has_momentum(state: Any) -> set[str]:
    """Names of the parameters whose gradients have momentum when they arrive, by DGC, so that the
    optimizer must not add any."""
    return state.with_momentum() if state is not None else set()


def register_torch(ddp: DistributedDataParallel, hook: str) -> None:
    kind, _, rank = hook.partition(":")
    if kind == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif kind == "bf16":
        ddp.register_comm_hook(None, bf16_hook)
    elif kind == "noop":
        ddp.register_comm_hook(None, noop_hook)
    elif kind == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(rank or 1), start_powerSGD_iter=2
        )
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        raise SystemExit(f"there is no hook {hook!r}; known: {HOOKS}")


def bf16_hook(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """As PyTorch's bf16_compress_hook, which asks for NCCL."""
    small = bucket.buffer().to(torch.bfloat16).div_(dist.get_world_size())
    future = dist.all_reduce(small, async_op=True).get_future()
    return future.then(lambda done: bucket.buffer().copy_(done.value()[0]))


def noop_hook(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Sends nothing: what a step costs without communication. Ranks learn apart."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def pairs(words: list[str]) -> list[tuple[str, str]]:
    """ "a=b" as (a, b); what follows the first = belongs to b."""
    if wrong := [word for word in words if "=" not in word]:
        raise SystemExit(f"{wrong[0]!r} is not like NAME=VALUE")
    return [(word.partition("=")[0], word.partition("=")[2]) for word in words]


def value(text: str) -> Any:
    """A number or a truth value where the text is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)
