# SPDX-License-Identifier: Apache-2.0
"""What a job's reports add up to, and what the summary and the explanation say of it."""

from __future__ import annotations

from typing import Any

import pytest

from wirepress.launch.job_report import call_totals, explanation, job_report, short_name, summary
from wirepress.launch.rendezvous import Job


def call(raw: int, wire: int, modelled: int = 0) -> dict[str, Any]:
    return {"messages": 1, "compressed_messages": int(wire < raw), "raw_bytes": raw,
            "wire_bytes": wire, "modelled_bytes": modelled, "bypasses": {}}  # fmt: skip


def a_job(ranks: list[dict[str, Any]], nodes: list[int] | None = None) -> Job:
    job = Job(deadline=0.0, cookie="")
    job.size = len(ranks)
    job.state = "on"
    job.nodes = nodes if nodes is not None else list(range(len(ranks)))
    job.reports = dict(enumerate(ranks))
    return job


def nic(sent: int, packets: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "eth0", "sent_bytes": sent, "sent_packets": packets, "received_bytes": 0} | more


def a_rank(tcp: int | None, nics: list[dict[str, Any]], resent: int = 0, **calls: Any) -> Any:
    network = {"nics": nics}
    if tcp is not None:
        network |= {"tcp_sent_bytes": tcp, "tcp_resent_bytes": resent}  # type: ignore[dict-item]
    return {"calls": calls, "network": network}


MB = 10**6


def test_what_mpi_sent_by_itself_is_in_the_totals():
    """Of 40 MB that left, 20 were compressed from 40: the job sent two thirds, not half."""
    ranks = [a_rank(40 * MB, [], MPI_Send=call(40 * MB, 20 * MB), MPI_Bcast=call(5 * MB, 5 * MB,
                                                                                  5 * MB)),
             a_rank(0, [])]  # fmt: skip
    totals = call_totals([a_job(ranks)])
    assert totals["other_bytes"] == 15 * MB
    assert (totals["raw_bytes"], totals["wire_bytes"]) == (60 * MB, 40 * MB)
    assert totals["ratio"] == pytest.approx(1.5)


def test_a_model_that_says_too_much_is_put_right():
    ranks = [a_rank(12 * MB, [], MPI_Bcast=call(20 * MB, 20 * MB, 20 * MB)), a_rank(0, [])]
    totals = call_totals([a_job(ranks)])
    assert (totals["wire_bytes"], totals["other_bytes"]) == (12 * MB, -8 * MB)


@pytest.mark.parametrize("tcp", [None, 0, 1000])
def test_connections_that_carry_no_messages_say_nothing(tcp):
    """With InfiniBand a rank's TCP connections carry a few words of MPI's start."""
    ranks = [a_rank(tcp, [], MPI_Send=call(40 * MB, 20 * MB)), a_rank(tcp, [])]
    totals = call_totals([a_job(ranks)])
    assert (totals["wire_bytes"], totals["other_bytes"]) == (20 * MB, 0)


def difference(*ranks: Any, nodes: list[int] | None = None) -> str:
    job = a_job(list(ranks), nodes)
    said = job_report(job, {})["network"]["difference"]
    assert said in summary(job, 0)
    return str(said)


def sends(n: int) -> dict[str, Any]:
    return {"MPI_Send": call(n, n)}


def test_nics_that_agree():
    headers = 66 * 1000
    assert not difference(a_rank(None, [nic(20 * MB + headers, 1000)], **sends(20 * MB)),
                          a_rank(None, [nic(0)]))  # fmt: skip


@pytest.mark.parametrize(
    ("tcp", "resent", "bytes_seen", "words"),
    [
        (20 * MB, 0, 25 * MB, "25.0 MB besides packet headers, 25 % more: MPI's own headers and"),
        (22 * MB, 0, 25 * MB, "14 % more: the rest is not of the ranks' connections"),
        (22 * MB, 3 * MB, 25 * MB, "14 % more: TCP sent 3.0 MB again"),
        (None, 0, 20.7 * MB, "3.5 % more: MPI's own headers and messages, or other programs"),
        (None, 0, 100 * MB, "80.0 MB more: MPI's own headers and messages, or other programs"),
        (None, 0, 2 * MB, "90 % less: MPI has a way between hosts that these counters do not see"),
    ],
)
def test_nics_that_differ(tcp, resent, bytes_seen, words):
    rank = a_rank(tcp, [nic(int(bytes_seen))], resent, **sends(20 * MB))
    assert words in difference(rank, a_rank(tcp and 0, [nic(0)]))


def test_nics_of_infiniband_have_other_headers():
    ib = nic(20 * MB + 24 * 10_000, 10_000, infiniband=True)
    assert not difference(a_rank(None, [ib], **sends(20 * MB)), a_rank(None, [nic(0)]))


def test_a_job_of_one_host_is_not_compared():
    assert not difference(a_rank(None, [nic(MB)]), a_rank(None, []), nodes=[0, 0])


def a_site(i: int, **more: Any) -> dict[str, Any]:
    return {"caller": f"app+0x{i:x}", "function": "", "call": "MPI_Isend", "type": "float64",
            "bytes_from": 65536, "messages": 1, "compressed_messages": 1, "raw_bytes": 100_000,
            "wire_bytes": 50_000, "choice": "lz4:1", "why": "so"} | more  # fmt: skip


@pytest.mark.parametrize(("n", "last"), [(1, ""), (6, ""), (12, ""), (13, "and 1 more site:"),
                                         (20, "and 8 more sites:")])  # fmt: skip
def test_sites_that_are_left_out_are_counted(n, last):
    lines = explanation(a_job([{"calls": {}, "sites": [a_site(i) for i in range(n)]}]))
    assert len(lines) == 1 + 2 * min(n, 12) + bool(last)
    assert lines[-1].startswith(last) and not any("-" in line[:9] for line in lines[1:])


def test_bounds_are_said_with_what_they_ask_for():
    rank = {"calls": sends(MB), "options": {"mpi_error": "rel:1e-3"}}
    said = summary(a_job([rank]), 0)
    assert "floats were allowed to differ (rel:1e-3)" in said and "--verify" in said
    rank["options"]["mpi_error"] = "none"
    assert "differ" not in summary(a_job([rank]), 0)


@pytest.mark.parametrize(
    ("function", "short"),
    [
        ("main", "main"),
        ("LAMMPS_NS::CommBrick::forward_comm(int)", "LAMMPS_NS::CommBrick::forward_comm"),
        ("void a::b<std::vector<int> >::push<int>(int) const", "a::b<>::push<>"),
        ("(anonymous namespace)::send(int (*)(int))", "{anonymous}::send"),
        ("Foam::operator<<(Foam::Ostream&, Foam::List<int> const&)", "Foam::operator<<"),
        ("std::function<void (int)>::operator()(int) const", "std::function<>::operator()"),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"),
        ("__fft_parallel_MOD_scatter", "fft_parallel::scatter"),
        ("exchange_", "exchange_"),
    ],
)
def test_short_names(function, short):
    assert short_name(function) == short


def test_a_device_is_named_with_its_bytes_and_why_the_cores_did_the_rest():
    state = "isal (compress_isal): 9 jobs by the device; 1 by the cores: the job is too large"
    device = {"name": "compressdev:isal", "state": state, "refusal": ""}
    none = {"name": "compressdev:isal", "state": "", "refusal": "no driver compress_isal here"}
    work = call(4 * MB, 2 * MB) | {"device_bytes": 3 * MB, "cores_bytes": MB}
    ranks = [
        a_rank(None, [], MPI_Send=work) | {"engine": device},
        a_rank(None, []) | {"engine": none},
    ]
    job = a_job(ranks)
    assert (
        "compressdev:isal did 3.0 MB, the cores 1.0 MB for it; no driver compress_isal here: "
        in (summary(job, 0))
    )
    assert explanation(job)[1:] == [
        "MPI_Send: 3.0 MB by the device, 1.0 MB by the cores for it",
        f"rank 0, compressdev:isal: {state}",
        "rank 1, compressdev:isal: no driver compress_isal here; the cores do its jobs",
    ]


def test_without_a_device_nothing_is_said_of_one():
    job = a_job([a_rank(None, [], MPI_Send=call(4 * MB, 2 * MB)), a_rank(None, [])])
    assert "cores" not in summary(job, 0) and len(explanation(job)) == 1
