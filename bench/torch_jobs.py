# SPDX-License-Identifier: Apache-2.0
"""Jobs of PyTorch ranks on hosts, for torch_steps.py and torch_groups.py.

A job is a dictionary. Every rank runs `PROGRAM --worker JOB` and ends by `finish`; the first one's
rows come back. `Progress` shows how far all jobs are and what is left, in about seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PORT = "29511"
Row = dict[str, Any]


# ---- a rank --------------------------------------------------------------------------------------


def work(job: Row, measure: Callable[[Row], list[Row]]) -> None:
    """The life of a rank: joins the group of all, measures; the first one writes the rows."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        rows = measure(job)
    except BaseException:  # the others may wait for this rank: let them be killed
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    dist.barrier()
    dist.destroy_process_group()
    if os.environ["RANK"] == "0":
        Path(job["out"]).write_text(json.dumps(rows))


def tell(job: Row, share: float) -> None:
    """How much of the job is done, 0 to 1."""
    if os.environ["RANK"] == "0":
        Path(job["out"] + ".done").write_text(f"{share:.4f}")


def rounds_of(job: Row, most: Iterable[int], one: Callable[[int], None]) -> None:
    """Calls `one` (with the round's number) at least and at most so many times, as long as the
    seconds of the job last; as often on every rank."""
    import torch
    import torch.distributed as dist

    least, highest = most
    began, total = time.perf_counter(), torch.tensor(float(least))
    done = 0
    while done < int(total):
        one(done)
        done += 1
        if done == 1:  # all ranks must agree on how many there is time for
            fit = job["seconds"] / (time.perf_counter() - began)
            total = torch.tensor(min(max(fit, least), highest))
            dist.broadcast(total, 0)
        tell(job, 0.3 + 0.7 * done / max(int(total), 1))


# ---- all ranks -----------------------------------------------------------------------------------


class Progress:
    """A line over jobs, whose lengths are known only about; once a minute where nobody watches."""

    def __init__(self, weights: list[float]) -> None:
        from tqdm import tqdm

        watched = sys.stderr.isatty()
        self._bar = tqdm(
            total=max(round(sum(weights)), 1),
            mininterval=0.5 if watched else 60,
            ascii=None if watched else True,
            bar_format="{desc}: {percentage:3.0f} % after {elapsed}, {remaining} left",
            desc=f"0 of {len(weights)} jobs",
        )
        self._weights, self._done, self._n = weights, 0.0, 0

    def at(self, share: float) -> None:
        """So much of the job under way is done."""
        now = self._done + share * self._weights[self._n]
        self._bar.update(max(now - self._bar.n, 0))

    def next(self, words: str) -> None:
        """It is done, with this to say."""
        self.at(1)
        self._done += self._weights[self._n]
        self._n += 1
        self._bar.set_description_str(f"{self._n} of {len(self._weights)} jobs", refresh=False)
        self._bar.write(words, file=sys.stdout)
        sys.stdout.flush()

    def close(self) -> None:
        self._bar.close()


def run(
    program: str,
    hosts: Any,
    ranks: int,
    job: Row,
    limit: float,
    told: Callable[[float], None] = lambda share: None,
) -> list[Row]:
    """Runs a job on `ranks` ranks, as many on each host; SystemExit with what they said if one
    fails, or after `limit` seconds. `told` is called with how much of it is done."""
    with tempfile.TemporaryDirectory() as folder:
        job = {**job, "out": f"{folder}/rows.json"}
        a_host = ranks // hosts.n
        common = {
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": hosts.address(0),
            "MASTER_PORT": PORT,
            "GLOO_SOCKET_IFNAME": "eth0",
            "LOCAL_WORLD_SIZE": str(ranks),  # the hosts share this machine's cores
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, program, "--worker", json.dumps(job)]
        said = open(f"{folder}/said", "w+")  # noqa: SIM115
        running = [
            subprocess.Popen(
                hosts.on(rank // a_host, command),
                env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank % a_host)},
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            for rank in range(ranks)
        ]
        try:
            _wait_for(running, limit, lambda: told(_done(job)))
        finally:
            for process in running:
                process.kill()
                process.wait()
            said.seek(0)
            text = said.read()[-4000:]
            said.close()
        if any(process.returncode for process in running):
            raise SystemExit(f"{Path(program).stem}: {job} failed:\n{text}")
        return json.loads(Path(job["out"]).read_text())


def _done(job: Row) -> float:
    try:
        return float(Path(job["out"] + ".done").read_text())
    except (OSError, ValueError):  # not yet, or just being written
        return 0.0


def _wait_for(
    running: list[subprocess.Popen[bytes]], limit: float, now_and_then: Callable[[], None]
) -> None:
    """Until all have ended, or one with an error, or the time is over."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        codes = [process.poll() for process in running]
        if None not in codes or any(codes):
            return
        now_and_then()
        time.sleep(0.1)
