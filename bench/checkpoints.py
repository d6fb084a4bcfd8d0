#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint: size, speed, a slow disk, other numbers of ranks.

    bench/checkpoints.py [--zipnn FOLDER]   all of it; some minutes
    bench/checkpoints.py --quick --out FILE a smoke test; no page
    bench/checkpoints.py --page             the page from the last results

zipnn is compared where FOLDER has it; it is no part of what `make setup` installs:

    pip install --no-deps --target FOLDER zipnn

A transformer for bytes (that of gradients.py) is trained with AdamW; its weights, their bfloat16
copy and the moments are the data. Coding: processor seconds of one thread, codecs in turns, the
best of all rounds. The slow disk is that of store.py, an ext4 on a loop device that the block
layer throttles; saves with fsync, in turns, the median. Without root it is left out. Resharding:
bytes that ranks read, saved by 4, loaded by 2 and 8. Steps: medians with and without an
asynchronous save beside them, and beside a process that only counts, in turns.

Writes bench/results/checkpoints.json and the section of docs/results/torch.md.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import torch
except ImportError:
    sys.exit("checkpoints: there is no PyTorch in this Python; make setup puts it into .venv")

import gradients
import results
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from torch.distributed.tensor import Shard, distribute_tensor

import store
import wirepress
import wirepress.torch as wt

PAGE = results.ROOT / "docs" / "results" / "torch.md"
WORK = results.ROOT / "build" / "bench" / "checkpoints"
MB = 10**6
DISK = 500 * MB  # bytes a second
RECIPES = ("planes", "bx:m=0", "shuffle+zstd:1")
Row = dict[str, Any]
Tensors = dict[str, torch.Tensor]


# ---- data -----------------------------------------------------------------------------------


def trained(steps: int) -> dict[str, list[torch.Tensor]]:
    """Weights and moments of a trained model, by kind."""
    torch.manual_seed(1)
    model = gradients.Bytes()
    text = torch.tensor(list(gradients.sample_data.text()))
    loss = gradients.next_token_loss(model, text, 8, 128)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    weights = [p.detach().clone() for p in model.parameters()]
    moments = {
        key: [s[key].clone() for s in optimizer.state.values()] for key in ("exp_avg", "exp_avg_sq")
    }
    return {"weights": weights, "weights bf16": [w.bfloat16() for w in weights], **moments}


def state_of(kinds: dict[str, list[torch.Tensor]], copies: int) -> Tensors:
    """What a job saves: weights and moments; several copies stand for more layers."""
    return {
        f"{copy}.{kind}.{i}": tensor.clone()
        for copy in range(copies)
        for kind in ("weights", "exp_avg", "exp_avg_sq")
        for i, tensor in enumerate(kinds[kind])
    }


# ---- coding ---------------------------------------------------------------------------------


class Codec:
    """A recipe of ours, or zipnn: bytes of a tensor to fewer and back."""

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.name, self._dtype = name, str(dtype).removeprefix("torch.")
        if name == "zipnn":
            from zipnn import ZipNN

            self._zipnn = ZipNN(input_format="byte", bytearray_dtype=self._dtype, threads=1)
        else:
            self._own = wirepress.Compressor(name, threads=1, checksum=True)

    def encode(self, data: bytearray) -> bytes:
        if self.name == "zipnn":
            return self._zipnn.compress(data)
        return self._own.compress(data, dtype=self._dtype)

    def decode(self, code: bytes) -> Any:
        if self.name == "zipnn":
            return self._zipnn.decompress(code)
        return self._own.decompress(code, raw=True)


def processor_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def code(codec: Codec, raw: bytes) -> tuple[float, float, int]:
    """Seconds of both ways and the size; zipnn reorders the memory that it is given."""
    memory = bytearray(raw)
    encode, made = processor_seconds(lambda: codec.encode(memory))
    decode, back = processor_seconds(lambda: codec.decode(made))
    if bytes(back) != raw:
        raise RuntimeError(f"{codec.name} did not give back what it was given")
    return encode, decode, len(made)


def coding(kinds: dict[str, list[torch.Tensor]], names: list[str], rounds: int) -> list[Row]:
    rows = []
    for kind, tensors in kinds.items():
        raw = b"".join(t.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for t in tensors)
        codecs = [Codec(name, tensors[0].dtype) for name in names]
        runs = [[code(codec, raw) for codec in codecs] for _ in range(rounds)]
        for i, name in enumerate(names):
            encode, decode = (min(turn[i][way] for turn in runs) for way in (0, 1))
            size = runs[0][i][2]
            rows.append(
                {
                    "part": "coding", "kind": kind, "codec": name, "raw": len(raw), "size": size,
                    "encode_s": round(encode, 5), "decode_s": round(decode, 5),
                }
            )  # fmt: skip
            print(f"{kind}, {name}: {len(raw) / size:.3f}, {len(raw) / encode / 1e9:.2f} GB/s")
    return rows


# ---- a slow disk ----------------------------------------------------------------------------


def writer(name: str, folder: str, threads: int) -> Any:
    return dcp.FileSystemWriter(folder) if name == "plain" else wt.CheckpointWriter(
        folder, name, threads=threads
    )  # fmt: skip


def bytes_in(folder: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def slow_disk(state: Tensors, rounds: int, threads: int) -> list[Row]:
    raw = sum(tensor.nbytes for tensor in state.values())
    args = argparse.Namespace(folder=WORK, bucket=False)
    names = ["plain", "store", *RECIPES[:2]]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    sizes = {}
    with store.slow_disk(args, 2 * raw + 256 * store.MIB) as disk:
        if not isinstance(disk, store.SlowDisk):
            print(f"the slow disk is left out: {disk.how}", file=sys.stderr)
            return []
        with disk.limits(DISK, 0):
            for name in ["plain", *names * rounds]:  # what is first makes the file system's files
                folder = str(disk.folder / "checkpoint")
                began = time.perf_counter()
                dcp.save(state, storage_writer=writer(name, folder, threads))
                seconds[name].append(time.perf_counter() - began)
                sizes[name] = bytes_in(folder)
                shutil.rmtree(folder)
    del seconds["plain"][0]
    return [
        {
            "part": "disk", "codec": name, "raw": raw, "size": sizes[name], "threads": threads,
            "rate": DISK, "seconds": round(statistics.median(runs), 4),
            "all": [round(run, 4) for run in runs],
        }
        for name, runs in seconds.items()
    ]  # fmt: skip


# ---- resharding -----------------------------------------------------------------------------


def sharded(rows: int) -> Tensors:
    """Matrices of many sizes of normal numbers, which are coded like weights."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    generator = torch.Generator().manual_seed(2)
    shapes = [(rows, 1024), (rows // 4, 1024), (rows // 16, 1024), (rows // 64, 256)]
    return {
        str(i): distribute_tensor(torch.randn(shape, generator=generator), mesh, [Shard(0)])
        for i, shape in enumerate(shapes)
    }


def reshard_rank(rank: int, n: int, folder: str, rows: int, save: bool) -> None:
    """Life of a rank; leaves what it read in a file."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    init = f"file://{folder}/store{n}{save}"
    dist.init_process_group("gloo", init_method=init, rank=rank, world_size=n)
    state = sharded(rows)
    if save:
        dcp.save(state, storage_writer=wt.CheckpointWriter(f"{folder}/own", threads=1))
    else:
        reader = wt.CheckpointReader(f"{folder}/own", threads=1)
        dcp.load({name: torch.zeros_like(t) for name, t in state.items()}, storage_reader=reader)
        Path(f"{folder}/read{n}.{rank}").write_text(str(reader.bytes_read))
    dist.destroy_process_group()


def resharding(rows: int) -> list[Row]:
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (4, 2, 8):
            arguments = (n, folder, rows, n == 4)
            processes.start_processes(reshard_rank, arguments, nprocs=n, start_method="fork")
            if n == 4:
                stored = bytes_in(f"{folder}/own")
                continue
            read = [int(Path(f"{folder}/read{n}.{rank}").read_text()) for rank in range(n)]
            row = {"part": "resharding", "saved_by": 4, "loaded_by": n, "stored": stored}
            measured.append(row | {"read": read, "most": max(read) * n / stored})
            print(f"4 ranks to {n}: {measured[-1]['most']:.3f} of the share, at most")
    return measured


# ---- steps while saving ---------------------------------------------------------------------


def steps_meanwhile(state: Tensors, seconds: float, rounds: int) -> list[Row]:
    """Median seconds of a training step: alone, while another thread saves, and beside a process
    that shares nothing with it but the machine."""
    model = gradients.Bytes()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    tokens = torch.randint(256, (2, 65))

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        guess = model(tokens[:, :-1])
        torch.nn.functional.cross_entropy(guess.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        return time.perf_counter() - began

    def alone() -> list[float]:
        end = time.perf_counter() + seconds
        return [step() for _ in iter(lambda: time.perf_counter() < end, False)]

    def saving(name: str) -> list[float]:
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            found: list[float] = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                save = dcp.async_save(state, storage_writer=writer(name, folder, 1))
                while not save.done():
                    found.append(step())
                save.result()
        return found

    def beside_counting() -> list[float]:
        with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                              stdout=subprocess.PIPE) as other:  # fmt: skip
            try:
                assert other.stdout
                other.stdout.readline()  # it runs
                return alone()
            finally:
                other.kill()

    turns: dict[str, Callable[[], list[float]]] = {
        **{name: functools.partial(saving, name) for name in ("plain", "planes")},
        "a process that only counts": beside_counting,
    }
    found: dict[str, list[float]] = {"alone": [], **{name: [] for name in turns}}
    for _ in range(rounds):
        for name, turn in turns.items():
            found["alone"] += alone()
            found[name] += turn()
    return [
        {
            "part": "step", "beside": name, "steps": len(times),
            "seconds": round(statistics.median(times), 5),
        }
        for name, times in found.items()
    ]  # fmt: skip


# ---- the page -------------------------------------------------------------------------------


def of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def coding_table(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(row["codec"] for row in rows))
    lines = [f"| | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---:|" * len(names)]
    for kind, group in itertools.groupby(rows, lambda row: row["kind"]):
        cells = [
            f"{row['raw'] / row['size']:.3f} ({row['raw'] / row['encode_s'] / 1e9:.2f}, "
            f"{row['raw'] / row['decode_s'] / 1e9:.2f})"
            for row in group
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def disk_table(rows: list[Row]) -> list[str]:
    plain = rows[0]
    lines = [
        "| | seconds: fastest, median | of plain's | bytes of plain's |",
        "|---|---:|---:|---:|",
    ]
    for row in rows:
        fastest, median = min(row["all"]), row["seconds"]
        shares = f"{fastest / min(plain['all']):.2f}, {median / plain['seconds']:.2f}"
        size = row["size"] / plain["size"]
        lines.append(f"| {row['codec']} | {fastest:.2f}, {median:.2f} | {shares} | {size:.3f} |")
    return lines


def paragraph(*sentences: str) -> list[str]:
    return ["", *textwrap.wrap(" ".join(sentences), 100)]


def page(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    lines = [
        "## Checkpoints",
        *paragraph(
            f"By `{measured['command']}` on {measured['date'][:10]}, {measured['machine']['cpu']}, "
            f"{measured['machine']['cores']} cores, PyTorch {measured['torch']}; raw:",
            "[checkpoints.json](../../bench/results/checkpoints.json). A transformer for bytes",
            f"after {measured['steps']} steps of AdamW. {measured['load']}",
        ),
        *paragraph(
            "Ratio, and GB/s of processor time of one thread to encode and to decode, with",
            "checksums (zipnn has none):",
        ),
        "",
        *coding_table(of(rows, "coding")),
    ]
    if disk := of(rows, "disk"):
        lines += paragraph(
            f"Saving {disk[0]['raw'] / 1e6:.0f} MB of weights and moments, fsync included, on a",
            f"disk of {DISK / 1e9} GB/s, threads: {disk[0]['threads']}, {len(disk[0]['all'])} runs",
            "in turns; plain is FileSystemWriter, `store` our writer without compression:",
        )
        lines += ["", *disk_table(disk)]
    shares = [f"{row['most']:.3f} by {row['loaded_by']} ranks" for row in of(rows, "resharding")]
    lines += paragraph(
        "Saved by 4 ranks, along the first dimension; the most that a rank reads, of its share of",
        f"the stored bytes: {', '.join(shares)}.",
    )
    if steps := of(rows, "step"):
        alone = steps[0]["seconds"]
        shares = [f"{row['seconds'] / alone:.2f} beside {row['beside']}" for row in steps[1:]]
        lines += paragraph(
            "A step of training (one thread) while `async_save` saves again and again, median, of",
            f"a step alone: {', '.join(shares)}.",
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zipnn", type=Path, help="a folder that has zipnn")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of the saves on the slow disk")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.page:
        measure(args)
    if args.out is None:
        measured = json.loads((results.FOLDER / "checkpoints.json").read_text())
        results.put(PAGE, "checkpoints", page(measured), "# PyTorch\n")


def measure(args: argparse.Namespace) -> None:
    if args.zipnn:
        sys.path.append(str(args.zipnn))
    WORK.mkdir(parents=True, exist_ok=True)
    quick = args.quick
    torch.set_num_threads(1)
    rows = resharding(256 if quick else 8192)  # first: it forks
    steps = 1 if quick else args.steps
    kinds = trained(steps)
    names = [*RECIPES, *(["zipnn"] if args.zipnn else [])]
    rows += coding(kinds, names, 1 if quick else args.rounds)
    if not quick:
        rows += slow_disk(state_of(kinds, 6), args.rounds, args.threads)
    rows += steps_meanwhile(state_of(kinds, 1), 0.2 if quick else 2, 1 if quick else args.rounds)
    load = f"Load of the machine at the end: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores."
    measured = {"steps": steps, "load": load, "torch": torch.__version__, "rows": rows}
    results.write("checkpoints", measured, args.out)


if __name__ == "__main__":
    main()
