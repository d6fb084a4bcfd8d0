# SPDX-License-Identifier: Apache-2.0
"""Every call beside MPI's own on the same arguments: tests/matrix.c, in worlds of many kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

LOSSLESS = [("lz4", "none"), ("auto", "none")]
BOUNDED = [
    ("auto", "bits:10"),
    ("bx", "bits:8"),
    ("bx", "rel:1e-8"),  # floats in 23 bits: exact
    ("bx", "bits:52"),
    ("bx", "rel:0.9"),
    ("fre", "rel:0.01"),
    ("auto", "abs:1e-3"),
    ("zfp", "abs:0.001"),
    ("sz3", "abs:1e-3"),
    ("zfp", "abs:2"),
    ("sz3", "abs:5e2"),
    ("zfp", "abs:1e100"),
    ("sz3", "abs:1e-40"),
    ("sz3", "abs:1e-100"),
]
# The node of each rank.
WORLDS = [[0, 1], [0, 1, 0], [0, 0, 1], [0, 1, 2]]
WORLDS += [[0, 1, 2, 1, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4]]


def words_for(error: str) -> list[str]:
    """What the program is to hold results to."""
    if error == "none":
        return []
    kind, number = error.split(":")
    if kind == "bits":
        return ["rel", repr(2.0 ** -int(number))]
    return [kind, number]


def compare(
    mpi: Any,
    rendezvous_class: Any,
    nodes: list[int],
    codec: str,
    error: str,
    seed: int,
    steps: int,
    **more: str,
) -> None:
    settings = {
        "WIREPRESS_MPI_CODEC": codec,
        "WIREPRESS_MPI_ERROR": error,
        "WIREPRESS_MPI_THRESHOLD": "1",
        "WIREPRESS_MPI_CHUNK": "32KiB",
        "WIREPRESS_MPI_PIECES": "128KiB",
        "WIREPRESS_MPI_LINK": "100Mbps",
        **more,
    }
    program = [mpi.build("matrix.c"), str(seed), str(steps), *words_for(error)]
    with rendezvous_class(len(nodes), nodes) as server:
        out = mpi.run(len(nodes), program, server.settings | settings, seconds=600)
        report = json.loads(server.reports[0])
    assert "ok matrix" in out
    assert report["state"] == "on" and report["events"]["corrupt"] == 0
    assert sum(call["compressed_messages"] for call in report["calls"].values()) > 10


@pytest.mark.quick
@pytest.mark.parametrize(
    ("nodes", "codec", "error", "nonblocking"),
    [
        ([0, 1], "lz4", "none", "on"),
        ([0, 1, 0], "bx", "bits:8", "off"),
        ([0, 1], "auto", "abs:5", "off"),
    ],
)
def test_matrix_is_quick(mpi, rendezvous_class, nodes, codec, error, nonblocking):
    more = {"WIREPRESS_MPI_NONBLOCKING": nonblocking}
    compare(mpi, rendezvous_class, nodes, codec, error, 11, 400, **more)


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "error"), LOSSLESS + BOUNDED)
def test_matrix(mpi, rendezvous_class, codec, error):
    """Each in another world: all of them with MPICH, which spins, would take very long."""
    worlds = WORLDS if mpi.name == "openmpi" else WORLDS[:4]
    number = (LOSSLESS + BOUNDED).index((codec, error))
    nodes = worlds[number % len(worlds)]
    compare(mpi, rendezvous_class, nodes, codec, error, 100 + number, 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"WIREPRESS_MPI_NONBLOCKING": "on"},
        {"WIREPRESS_MPI_DETERMINISTIC": "on"},
        {"WIREPRESS_MPI_COLLECTIVES": "off"},
        {"WIREPRESS_MPI_CONTEST": "on"},
    ],
)
@pytest.mark.parametrize(("codec", "error"), [("lz4", "none"), ("bx", "bits:9")])
def test_matrix_of_options(mpi, rendezvous_class, codec, error, more):
    compare(mpi, rendezvous_class, [0, 1, 0], codec, error, 200, 200, **more)


@pytest.mark.slow
def test_matrix_without_it(mpi):
    """Else the tests above would say nothing about the interposer."""
    done = mpi.start([{}] * 3, [mpi.build("matrix.c"), "11", "400"], seconds=300)
    assert done.returncode == 0, done.stdout + done.stderr
