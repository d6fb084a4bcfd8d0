#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills writers of frame stores and cuts the power of their disks; looks what is left.

    tests/store/store_crash.py --kills 1000 --power-cuts 50 --full 20

--kills       SIGKILL, at a random time or at a named point of a file's life (before, half through
              or after a certain open, write, truncate or sync, or a tile that a worker puts)
--power-cuts  the file system, ext4 on a loop device of its own, is shut down without flushing its
              log, and mounted again; needs root, and says so where it is missing
--full        the file system has no room, and the writer is killed or stopped by that

A writer (tests/store/store_crash.cpp) says which steps a sync acknowledged. After each death every
such step must be there, and every frame be right; then the next writer goes on with the file, ten
lives long. Ends with status 1 where a frame was lost or wrong, or a process hung.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402

LIVES = 10  # of one file
PATIENCE = 60  # seconds; who takes longer hangs
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
NO_LOG_FLUSH = 2
POINTS = {  # calls of a life that are worth dying at, and how many there are
    "open": (1, ("before", "after")),
    "write": (60, ("before", "half", "after")),
    "sync": (20, ("before", "after")),
    "folder": (1, ("before", "after")),
    "truncate": (1, ("before", "after")),
    "tile": (400, ("before", "after")),  # of a writer that puts frames by tiles
}
POLICIES = ("disk", "compressed", "in-worker")


class Found(Exception):
    """A frame was lost or wrong, or a process hung."""


class Writer:
    """A process that puts frames, and what it said."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        self.complaint = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=self.said, stderr=self.complaint)

    def _lines(self) -> list[str]:
        return os.pread(self.said.fileno(), 1 << 24, 0).decode().splitlines(keepends=True)

    def acknowledged(self) -> int:
        """The steps below this are."""
        numbers = [int(line.split()[1]) for line in self._lines() if line.endswith("\n")]
        return max(numbers, default=0)

    def wait_for_a_sync(self, after: int = 0) -> None:
        """So that a random time later is one of its life. after: steps that are to be synced."""
        deadline = time.monotonic() + PATIENCE
        while self.acknowledged() <= after:
            if self.process.poll() is not None or time.monotonic() > deadline:
                return
            time.sleep(0.001)

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> tuple[int, str]:
        try:
            status = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
            raise Found(f"the writer hangs: {self.command}") from None
        return status, os.pread(self.complaint.fileno(), 4096, 0).decode().strip()


class Chain:
    """One file, and the writers that come after one another to it."""

    def __init__(
        self, program: Path, folder: Path, rng: random.Random, policies: Sequence[str]
    ) -> None:
        self.program, self.folder, self.rng, self.policies = program, folder, rng, policies
        self.counts: collections.Counter[str] = collections.Counter()
        self.file, self.n_files = folder / "frames0", 0
        self.begin()

    def begin(self) -> None:
        """With another file: that the old one is gone may not have reached the disk."""
        self.file.unlink(missing_ok=True)
        self.n_files += 1
        self.file = self.folder / f"frames{self.n_files}"
        self.life = self.acknowledged = 0
        rng = self.rng
        values = rng.choice((100, 1000, 3000, 40000))
        self.options: dict[str, Any] = {
            "policy": rng.choice(self.policies),
            "servants": rng.choice((1, 1, 2, 3)),
            "values": values,
            "direct": rng.choice((0, 0, 1)),
            "reserve": rng.choice((0, 0, 1 << 20)),
            "workers": rng.choice((0, 1, 2, 3)),  # 0: frames are put whole
            "tile": rng.choice((0, values, values // 7 + 1)),
        }

    def write(self, **more: object) -> Writer:
        options = self.options | {"life": self.life, "seed": self.rng.randrange(10**9)} | more
        words = [w for name, value in options.items() for w in (f"--{name}", str(value))]
        return Writer([str(self.program), "write", str(self.file), *words])

    def end(self, writer: Writer, acknowledged: int | None = None) -> int:
        """Waits for the dead or dying writer; its status. acknowledged: in time."""
        status, complaint = writer.end()
        if acknowledged is None:
            acknowledged = writer.acknowledged()
        self.acknowledged = max(self.acknowledged, acknowledged)
        if status in (1, 3) or (status < 0 and status != -9):
            raise Found(f"status {status}: {complaint}: {writer.command}")
        return status

    def verify(self) -> None:
        command = [self.program, "verify", self.file, str(self.acknowledged), str(self.life)]
        if self.file.exists() or self.acknowledged:
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                raise Found(f"the reader hangs: {command}") from None
            if done.returncode:
                raise Found(f"{done.stderr.strip()} ({' '.join(map(str, command))})")
            if done.stdout:
                n_frames, torn = map(int, done.stdout.split())
                self.counts["frames verified"] += n_frames
                self.counts["of them acknowledged"] += self.acknowledged
                self.counts["torn tails"] += torn > 0
        self.life += 1
        if self.life == LIVES or self.acknowledged >= 200:
            self.begin()


def kill_at_random(chain: Chain) -> None:
    writer = chain.write(frames=10**6)
    if chain.rng.random() < 0.8:
        writer.wait_for_a_sync()
    time.sleep(chain.rng.random() ** 2 * 0.05)
    writer.kill()
    chain.end(writer)
    chain.counts["at a random time"] += 1


def kill_at_a_point(chain: Chain) -> None:
    while True:
        call = chain.rng.choice([c for c in POINTS if c != "tile" or chain.options["workers"]])
        n, phases = POINTS[call]
        number, phase = chain.rng.randrange(n), chain.rng.choice(phases)
        if chain.end(chain.write(frames=200, die=f"{call}:{number}:{phase}")) == -9:
            chain.counts["at a named point"] += 1
            return
        chain.counts["ended before their point"] += 1
        chain.verify()


def run(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Disk:
    """ext4 on a loop device of its own. Only this device is ever mounted, cut or detached."""

    def __init__(self, device: str, mount: Path) -> None:
        self.device, self.mount = device, mount

    def cut_power(self) -> None:
        """Nothing more reaches the device: neither data nor what the log holds."""
        descriptor = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def start_again(self) -> None:
        run("umount", self.mount)
        run("mount", self.device, self.mount)


@contextlib.contextmanager
def disk(size: int) -> Iterator[Disk]:
    with (
        tempfile.TemporaryDirectory(prefix="wirepress-crash") as name,
        contextlib.ExitStack() as undo,
    ):
        image, mount = Path(name) / "image", Path(name) / "mount"
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-F", image)
        device = run("losetup", "--find", "--show", image).strip()
        undo.callback(run, "losetup", "--detach", device)
        run("mount", device, mount)
        undo.callback(run, "umount", mount)
        yield Disk(device, mount)


def cut(chain: Chain, device: Disk) -> None:
    writer = chain.write(frames=10**6)
    # How far it gets in a time depends on what else runs: where it stands is drawn by steps, too.
    writer.wait_for_a_sync(after=chain.acknowledged + chain.rng.randrange(40))
    time.sleep(chain.rng.random() * 0.1)
    # What is said from here on nobody hears where power really fails; a sync that runs into the
    # shutdown may still say that it is done.
    before = writer.acknowledged()
    device.cut_power()
    chain.end(writer, before)  # its calls fail, and it ends
    device.start_again()


def fill(chain: Chain, device: Disk) -> None:
    """Room for some frames only; half of the writers get it back while they run."""
    ballast = device.mount / "ballast"
    stat = os.statvfs(device.mount)
    room = stat.f_bavail * stat.f_frsize
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(room - chain.rng.randrange(10**6), 1))
    writer = chain.write(frames=10**6, **{"on-error": chain.rng.choice(("stop", "spill"))})
    time.sleep(chain.rng.random() * 0.3)
    if chain.rng.random() < 0.5:
        ballast.unlink()
        time.sleep(chain.rng.random() * 0.1)
        writer.kill()
    elif chain.rng.random() < 0.5:
        writer.kill()
    chain.end(writer)
    ballast.unlink(missing_ok=True)


def build(folder: Path) -> Path:
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "--preset", folder.name], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "store_crash"], check=True)
    return folder / "tests" / "store_crash"


def page(path: Path) -> str:
    """What the documents say of a run."""
    measured = json.loads(path.read_text())
    names = sorted({name for row in measured["rows"] for name in row} - {"part", "n", "seconds"})
    names.sort(key=lambda name: (name != "deaths", name))
    lines = [
        f"{measured['date'][:10]}, `{measured['command']}`, {measured['machine']['system']}: "
        f"{len(measured['found'])} acknowledged frames lost, wrong frames or hangs.",
        "",
        f"| | {' | '.join(names)} | seconds |",
        f"|---|{'---:|' * (len(names) + 1)}",
    ]
    for row in measured["rows"]:
        cells = " | ".join(str(row.get(name, "")) for name in names)
        lines.append(f"| {row['part']} | {cells} | {row['seconds']} |")
    return "\n".join([*lines, *(f"\nNot run: {why}" for why in measured["not_run"])])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--power-cuts", type=int, default=50)
    parser.add_argument("--full", type=int, default=20)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    parser.add_argument("--program", type=Path, help="store_crash; without it, it is built")
    parser.add_argument("--out", type=Path, help="instead of bench/results/store_crash.json")
    args = parser.parse_args()
    from tqdm import tqdm

    program = args.program or build(args.build)
    rng, found, rows, skipped = random.Random(args.seed), [], [], []
    root = os.geteuid() == 0

    def part(name: str, n: int, chain: Chain, die: object) -> None:
        began = time.time()
        for _ in tqdm(range(n), desc=name, unit="death", disable=None):
            try:
                die()  # type: ignore[operator]
                chain.counts["deaths"] += 1
                chain.counts[f"policy {chain.options['policy']}"] += 1
                chain.counts["put by tiles"] += chain.options["workers"] > 0
                chain.verify()
            except Found as bad:
                found.append(f"{name}: {bad}")
                chain.begin()
        seconds = round(time.time() - began, 1)
        rows.append({"part": name, "n": n, "seconds": seconds, **chain.counts})

    if args.kills:
        with tempfile.TemporaryDirectory(prefix="wirepress-crash") as folder:
            chain = Chain(program, Path(folder), rng, args.policies)
            part(
                "kill -9",
                args.kills,
                chain,
                lambda: rng.choice((kill_at_random, kill_at_a_point))(chain),
            )
    for name, n, die, size in (
        ("power cut", args.power_cuts, cut, 256 << 20),
        ("full", args.full, fill, 32 << 20),
    ):
        if n and not root:
            skipped.append(f"{name}: needs root (loop devices)")
        elif n:
            with disk(size) as device:
                chain = Chain(program, device.mount, rng, args.policies)
                part(name, n, chain, lambda die=die, chain=chain, device=device: die(chain, device))
    for line in skipped:
        print(f"NOT RUN: {line}", file=sys.stderr)
    measured = {"seed": args.seed, "found": found, "not_run": skipped, "rows": rows}
    path = results.write("store_crash", measured, args.out)
    if not args.out:
        results.put(ROOT / "docs" / "results" / "store-crashes.md", "store-crash", page(path), "")
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    print("\n".join(found) or "0 acknowledged frames lost, 0 wrong frames, 0 hangs")
    print(f"written: {path}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
