# SPDX-License-Identifier: Apache-2.0
"""Files of every kind that `wirepress report` takes: small, made here or from bench/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
NASTY = '</script><script>fail()</script><img src=x onerror="fail()"><b>&lt;</b>%{x} "q" \'s\''


def call(raw: int, wire: int, wait: float, **more: Any) -> dict[str, Any]:
    return {
        "messages": 10,
        "compressed_messages": 8,
        "raw_bytes": raw,
        "wire_bytes": wire,
        "ratio": raw / wire if wire else 1.0,
        "received_messages": 10,
        "received_compressed_messages": 8,
        "received_raw_bytes": raw,
        "received_wire_bytes": wire,
        "compress_seconds": 0.25,
        "decompress_seconds": 0.25,
        "wait_seconds": wait,
        "bypasses": {"small": 2},
    } | more


def site(call_name: str, size: int, node: int, raw: int, wire: int, text: str) -> dict[str, Any]:
    return {
        "caller": f"/opt/{text}/app+0x1290",
        "function": "",
        "call": call_name,
        "type": "float32",
        "bytes_from": size,
        "node": node,
        "messages": 5,
        "compressed_messages": 4,
        "raw_bytes": raw,
        "wire_bytes": wire,
        "sample_seconds": 0.001,
        "choice": "bx:m=23",
        "why": f"link 0.8 Gb/s: raw 41.5 ms; bx:m=23 4.17 ms {text}",
    }


def mpi_job(seconds: float = 10.0, text: str = "") -> dict[str, Any]:
    """Four ranks on two nodes; 100 MB/s links; rank 3 waits a second less than the others."""
    ranks = []
    for rank in range(4):
        ranks.append(
            {
                "rank": rank,
                "host": f"h{rank // 2}{text}",
                "state": "on",
                "reason": "",
                "options": {"mpi_codec": f"auto{text}", "mpi_threshold": 65536},
                "link_bytes_per_second": 100_000_000,
                "calls": {
                    f"MPI_Send{text}": call(300_000_000, 100_000_000, 4.0 if rank < 3 else 3.0),
                    "MPI_Recv": call(0, 0, 0.0, bypasses={}),
                },
                "sites": [
                    site("MPI_Send", 1 << 20, 1 - rank // 2, 200_000_000, 50_000_000, text),
                    site("MPI_Send", 1 << 16, -1, 100_000_000, 50_000_000, text),
                ],
                "contests": [
                    {
                        "call": "MPI_Allreduce",
                        "type": "float32",
                        "bytes_from": 4096,
                        "ranks": 4,
                        "winner": "own",
                        "plain_seconds": 0.04,
                        "own_seconds": 0.01,
                        "trials": 1,
                        "plain_calls": 3,
                        "own_calls": 3,
                    }
                ],
                "events": {"corrupt": 0},
            }
        )
    return {
        "version": 1,
        "command": ["mpirun", f"./app{text}"],
        "mpi": "openmpi",
        "started": "2026-11-21T19:26:43Z",
        "exit_code": 0,
        "seconds": seconds,
        "state": "on",
        "reason": "",
        "size": 4,
        "nodes": [0, 0, 1, 1],
        "totals": {},
        "ranks": ranks,
    }


def bench(speed: float = 1.0, text: str = "") -> dict[str, Any]:
    rows = [
        {
            "file": f"{file}{text}",
            "recipe": recipe,
            "kernel": "cpu:scalar",
            "raw_size": 1_000_000,
            "frame_size": round(1_000_000 / ratio),
            "ratio": ratio,
            "compress_gbps": speed * fast,
            "decompress_gbps": 2 * speed * fast,
            "turns": 3,
        }
        for file in ("field.npy", "log.txt")
        for recipe, ratio, fast in (("lz4", 1.5, 4.0), ("zstd:1", 2.5, 1.0), ("store", 1.0, 16.0))
    ]
    return {"date": "2026-11-22", "machine": {"cpu": "EPYC", "cores": 2}, "memcpy_gbps": 20.0,
            "rows": rows}  # fmt: skip


def simulation() -> dict[str, Any]:
    """Two link rates, raw and one codec, with intervals of two ranks."""
    rows = []
    for link, raw, coded in ((125e6, 4.0, 2.0), (1.25e9, 2.0, 2.1)):
        for codec, seconds in ((None, raw), ("lz4", coded)):
            rows.append(
                {
                    "link": link,
                    "engine": codec and "fpga",
                    "codec": codec,
                    "compress_engines": codec and 8,
                    "decompress_engines": codec and 4,
                    "ratio": 2.0 if codec else 1.0,
                    "speed_up": raw / seconds,
                    "closed_form_seconds": None,
                    "seconds": seconds,
                    "computing": [1.0, 1.0],
                    "exchange": [seconds - 1, seconds - 1],
                    "messages": 12,
                    "bypassed": 3 if codec else 0,
                    "raw_bytes": 6e8,
                    "wire_bytes": 3e8 if codec else 6e8,
                    "intervals": [[["compute", 0.0, 1.0], ["allreduce", 1.0, seconds]]] * 2,
                    "simgrid": "3.32.0",
                }
            )
    body = {"workload": "training", "ranks": 2, "iterations": 1, "collective": "ring"}
    return body | {"latency": 1e-5, "fabric": None, "rows": rows}


def write(folder: Path, name: str, value: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(value))
    return str(path)
