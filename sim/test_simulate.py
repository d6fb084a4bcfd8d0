# SPDX-License-Identifier: Apache-2.0
"""`wirepress simulate`: against closed forms, SimGrid's own replay, and what must be refused."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wirepress.errors import ParameterError
from wirepress.sim import calls, models, plan, simulate
from wirepress.sim.calls import Call, Workload

try:
    simulate.interpreter()
    HAVE_SIMGRID = True
except simulate.SimulationError:
    HAVE_SIMGRID = False
needs_simgrid = pytest.mark.skipif(not HAVE_SIMGRID, reason="SimGrid is not installed")

NET = simulate.Network(1e9, 1e-3)
STAGE = models.Stage(2.0, compress=1.5e9, decompress=3e9, latency=2e-3)


def seconds(*jobs: simulate.Job) -> list[float]:
    return [outcome.seconds for outcome in simulate.run(jobs)]


def one(call: Call, n: int = 4) -> Workload:
    return Workload("test", n, [[call]])


# ---- against closed forms ---------------------------------------------------------------------


@needs_simgrid
@pytest.mark.parametrize("n", [1, 3, 8])
def test_allreduce_is_the_closed_form(n: int) -> None:
    """Every algorithm, without and with a codec: to 1e-6 (SimGrid rounds sizes to bytes)."""
    jobs, expected = [], []
    for algorithm in ("ring", "flow", "doubling", "halving", "tree", "ps"):
        for codec in (None, STAGE):
            jobs.append(simulate.Job(one(Call("allreduce", 1e8), n), NET, codec, algorithm))
            scheme = models.SCHEMES[simulate.CLOSED_FORM[algorithm]]
            expected.append(scheme(n, 1e8, models.Network(NET.rate, NET.latency, codec)))
    assert seconds(*jobs) == pytest.approx(expected, rel=1e-6)


@needs_simgrid
def test_a_flow_is_coded_where_a_rings_messages_are() -> None:
    """Its own bytes are 2(n-1) times as many, and would pay where those of a ring do not."""
    stage = models.Stage(2.0, 40e9, 40e9, 50e-6)
    times = {}
    for size in (8 * 10e3, 8 * 100e6):
        for algorithm in ("ring", "flow"):
            jobs = [
                simulate.Job(one(Call("allreduce", size), 8), NET, codec, algorithm)
                for codec in (None, stage)
            ]
            times[size, algorithm] = seconds(*jobs)
    for (size, algorithm), (raw, coded) in times.items():
        assert (coded == pytest.approx(raw, rel=1e-9)) == (size < 1e6), (size, algorithm)


@needs_simgrid
def test_other_collectives() -> None:
    """Sizes that every collective must move: n = 4, messages of 1e8 B at 1e9 B/s."""
    net = simulate.Network(1e9, 0.0)
    cases = {
        "bcast": 2 * 0.1,
        "reduce": 2 * 0.1,
        "allgather": 3 * 0.1,
        "reducescatter": 3 * 0.025,
        "alltoall": 3 * 0.1,
        "gather": 3 * 0.1,
        "scatter": 3 * 0.1,
    }
    jobs = [simulate.Job(one(Call(op, 1e8)), net) for op in cases]
    assert seconds(*jobs) == pytest.approx(list(cases.values()), rel=1e-6)
    roots = [simulate.Job(one(Call(op, 1e8, peer=2)), net) for op in ("bcast", "reduce", "gather")]
    assert seconds(*roots) == pytest.approx([0.2, 0.2, 0.3], rel=1e-6)
    (barrier,) = seconds(simulate.Job(one(Call("barrier")), simulate.Network(1e9, 1.0)))
    assert barrier == pytest.approx(2, rel=1e-6)


@needs_simgrid
def test_messages_meet() -> None:
    """A message begins when both are there; others of its rank go on meanwhile."""
    sender = [Call("compute", seconds=1), Call("send", 1e9, peer=1)]
    receiver = [Call("compute", seconds=2), Call("recv", 1e9, peer=0)]
    early = [Call("irecv", 1e9, peer=0), Call("compute", seconds=5), Call("waitall")]
    net = simulate.Network(1e9, 0.0)
    jobs = [simulate.Job(Workload("", 2, [sender, p]), net) for p in (receiver, early)]
    assert seconds(*jobs) == pytest.approx([3, 5])
    named = [Call("isend", 1e9, peer=1, tag=7), Call("wait", peer=0, target=1, tag=7)]
    wait = Workload("", 2, [named, [Call("recv", 1e9, peer=0, tag=7)]])
    assert seconds(simulate.Job(wait, net)) == pytest.approx([1])


@needs_simgrid
def test_small_messages_bypass_the_codec() -> None:
    """A message whose start-up costs more than it saves goes raw; without bypass it does not."""
    least = simulate.bypass_below(STAGE, NET)
    assert models.Network(NET.rate, NET.latency).message(least) == pytest.approx(
        STAGE.message(least, NET.latency, NET.rate)
    )
    job = simulate.Job(one(Call("allreduce", least), 4), NET, STAGE)  # messages of a quarter of it
    forced = simulate.Job(job.workload, NET, STAGE, bypass=False)
    raw, coded = simulate.run([job, forced])
    assert (raw.bypassed, coded.bypassed) == (raw.messages, 0)
    assert raw.wire_bytes == pytest.approx(2 * coded.wire_bytes)
    assert raw.seconds < coded.seconds
    slow = models.Stage(2.0, compress=0.9e9)
    outcome = next(simulate.run([simulate.Job(one(Call("allreduce", 1e8)), NET, slow)]))
    assert outcome.bypassed == outcome.messages


@needs_simgrid
def test_each_message_has_a_ratio_of_its_own() -> None:
    """400 messages of 1e6 B, half of them 10 times smaller coded: 400 (0.5 + 0.05) ms. Smaller ones
    have the ratio of their own class."""
    ratios = ((1 << 10, (4.0,)), (1 << 19, (1.0, 10.0)))
    codec = models.Stage(2.0)
    net = simulate.Network(1e9, 0.0)
    jobs = []
    for size in (1e6, 1e4):
        ends = [[Call("send", size, peer=1)] * 400, [Call("recv", size, peer=0)] * 400]
        jobs.append(
            simulate.Job(Workload("test", 2, ends), net, codec, bypass=False, ratios=ratios)
        )
    large, small = seconds(*jobs)
    assert large == pytest.approx(400 * 0.55e-3, rel=0.1)
    assert small == pytest.approx(400 * 1e4 / 4 / 1e9, rel=1e-3)


@needs_simgrid
def test_a_rank_that_codes_on_its_core_hears_of_nothing() -> None:
    """Two ranks send 0.2 and 0.1 s to each other at once, on a transport whose answers wait behind
    data. One codes for 2 ms, the other for 1: both announce when they are done, so that messages
    go both at once, not one after the other."""
    transport = simulate.Transport(handshake=1e-4, buffer=float("inf"), block=1e9)
    net = simulate.Network(1e9, 1e-5, transport=transport)
    codec = models.Stage(1.0, compress=1e11, decompress=1e11, block=1e9)
    programs = [
        [Call("irecv", size, peer=1 - rank, request=1), Call("send", 3e8 - size, peer=1 - rank),
         Call("complete", request=1)]
        for rank, size in ((0, 1e8), (1, 2e8))
    ]  # fmt: skip
    job = simulate.Job(Workload("test", 2, programs), net, codec, bypass=False, one_core=True)
    assert seconds(job)[0] == pytest.approx(0.2 + 2e-3 + 2e-3, rel=0.02)


@needs_simgrid
def test_contention() -> None:
    """A fabric of half the links' sum halves their speed; a codec takes its load off."""
    full = simulate.Network(1e9, 0.0)
    half = simulate.Network(1e9, 0.0, fabric=2e9)
    call = one(Call("allreduce", 1e8))
    plain, narrow, coded = seconds(
        simulate.Job(call, full),
        simulate.Job(call, half),
        simulate.Job(call, half, models.Stage(4.0)),
    )
    assert narrow == pytest.approx(2 * plain)
    assert coded == pytest.approx(narrow / 4)


@needs_simgrid
@pytest.mark.parametrize("local", [2, 3])
def test_nodes_of_several_ranks(local: int) -> None:
    """Hierarchical Allreduce is the closed form; a plain ring crosses links at the nodes' ends
    only, and inside nodes nothing is coded."""
    network = simulate.Network(1e9, 1e-3, local=local, intra=2e10, intra_latency=1e-4)
    inside = models.Network(2e10, 1e-4)
    call = one(Call("allreduce", 1.2e8), 3 * local)
    for codec in (None, STAGE):
        job = simulate.Job(call, network, codec, "hierarchical", bypass=False)
        outcome = next(simulate.run([job]))
        between = models.Network(1e9, 1e-3, codec)
        expected = models.hierarchical_allreduce(3, local, 1.2e8, between, inside)
        assert outcome.seconds == pytest.approx(expected, rel=1e-6)
        assert outcome.messages == 3 * local * 2 * 2
    ring = next(simulate.run([simulate.Job(call, network, None, "ring")]))
    n = 3 * local
    assert ring.seconds == pytest.approx(
        models.ring_allreduce(n, 1.2e8, models.Network(1e9, 1e-3)), rel=1e-6
    )
    assert ring.messages == 3 * 2 * (n - 1)
    with pytest.raises(ParameterError, match="ranks do not fill nodes of"):
        simulate.Job(one(Call("barrier"), 3 * local + 1), network)


@needs_simgrid
def test_overlap() -> None:
    """Buckets travel while the next is computed: the closed form of that, and no better."""
    for compute in (0.05, 0.4):
        job = calls.training(4, 1e8, compute, 2.5e7, True, 2)
        request = plan.Request(1e8, 4, NET.rate, NET.latency, "ring", compute, True, 2.5e7)
        for codec in (None, STAGE):
            (found,) = seconds(simulate.Job(job, NET, codec, bypass=False))
            assert found == pytest.approx(2 * request.step(codec, False), rel=1e-6)


def _random_case(rng: random.Random) -> tuple[simulate.Job, plan.Request, models.Stage | None]:
    algorithm = rng.choice(["ring", "flow", "doubling", "tree", "ps"])
    n, overlap = rng.randint(2, 12), rng.random() < 0.5
    size, compute = 10 ** rng.uniform(6, 9), 10 ** rng.uniform(-3, 0)
    bucket = size / rng.choice([1, 1, 2.5, 4, 7])
    network = simulate.Network(10 ** rng.uniform(7.5, 10.5), 10 ** rng.uniform(-6, -4))
    codec = None
    if rng.random() < 0.8:
        codec = models.Stage(
            10 ** rng.uniform(0.05, 1.5),
            10 ** rng.uniform(8, 11),
            10 ** rng.uniform(8, 11),
            10 ** rng.uniform(-7, -5),
        )
    job = calls.training(n, size, compute, bucket, overlap, 1)
    scheme = simulate.CLOSED_FORM[algorithm]
    request = plan.Request(size, n, network.rate, network.latency, scheme, compute, overlap, bucket)
    return simulate.Job(job, network, codec, algorithm, bypass=False), request, codec


@needs_simgrid
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_plan_agrees_on_random_configurations(count: int) -> None:
    """Within 10 % without contention; in fact within rounding, but for what reaches a parameter
    server from workers that are not at once ready."""
    rng = random.Random(count)
    cases = [_random_case(rng) for _ in range(count)]
    found = seconds(*(job for job, _, _ in cases))
    for value, (job, request, codec) in zip(found, cases, strict=True):
        expected = request.step(codec, False)
        assert value == pytest.approx(expected, rel=0.1), f"{job.allreduce} {request} {codec}"
    errors = sorted(
        abs(v / r.step(c, False) - 1) for v, (_, r, c) in zip(found, cases, strict=True)
    )
    assert errors[len(errors) // 2] < 1e-4


# ---- against SimGrid's own replay -------------------------------------------------------------


@needs_simgrid
@pytest.mark.skipif(shutil.which("smpirun") is None, reason="smpirun is not installed")
def test_smpirun_replays_the_same(tmp_path: Path) -> None:
    """Another simulator of the same job: SMPI with its own ring, from the traces that we write."""
    n, rate, latency = 4, 1e8, 1e-4
    program = [Call("compute", seconds=0.25), Call("allreduce", 4e7), Call("allreduce", 1e7)]
    job = Workload("ring", n, [program], repeat=2)
    calls.write_ti(job, tmp_path)
    (tmp_path / "platform.xml").write_text(
        '<?xml version="1.0"?>\n'
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-{n - 1}" '
        f'speed="1Gf" bw="{rate}Bps" lat="{latency / 2}s" sharing_policy="SPLITDUPLEX"/>\n'
        "</platform>\n"
    )
    (tmp_path / "hosts").write_text("".join(f"n{rank}\n" for rank in range(n)))
    options = "smpi/bw-factor:0:1 smpi/lat-factor:0:1 network/TCP-gamma:0 network/crosstraffic:0 "
    options += "network/weight-S:0 smpi/allreduce:lr"
    command = ["smpirun", "-np", str(n), "-platform", "platform.xml", "-hostfile", "hosts",
               "-replay", "traces", *(f"--cfg={x}" for x in options.split()),
               "--log=smpi_kernel.thresh:warning"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    theirs = next(
        float(line.rsplit(maxsplit=1)[-1])
        for line in text.splitlines()
        if "Simulation time" in line
    )
    (ours,) = seconds(simulate.Job(job, simulate.Network(rate, latency)))
    assert theirs == pytest.approx(ours, rel=1e-3)


def test_traces_come_back(tmp_path: Path) -> None:
    ring = [Call("isend", 8, peer=1, tag=3), Call("recv", 8, peer=1, tag=4), Call("waitall")]
    other = [Call("irecv", 8, peer=0, tag=3), Call("send", 8, peer=0, tag=4),
             Call("wait", peer=0, target=1, tag=3)]  # fmt: skip
    same = [Call("compute", seconds=0.5), Call("allreduce", 80), Call("bcast", 8, peer=1),
            Call("reduce", 8, peer=1), Call("gather", 8, peer=1), Call("alltoall", 8),
            Call("allgather", 8), Call("barrier"), Call("sleep", seconds=0.25)]  # fmt: skip
    job = Workload("job", 2, [ring + same, other + same])
    job.check()
    calls.write_ti(job, tmp_path)
    (tmp_path / "traces").unlink()
    assert calls.read_ti(tmp_path).programs == job.programs
    with pytest.raises(ParameterError, match="no form"):
        calls.write_ti(calls.training(2, 8, 1, 4, True, 1), tmp_path)


def test_default_types_of_traces(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0 init 1\n0 allreduce 10 0\n0 allreduce 10 0 5\n0 finalize\n")
    assert [c.size for c in calls.read_ti(tmp_path).programs[0]] == [80, 40]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 allreduce\n", r':1: "0 allreduce": the count is missing: is the file cut\?'),
        ("0 init\n0 frobnicate 3\n", r":2: .*unknown call; known: compute"),
        ("0 send 1 0 x\n", r'the count is "x", no number'),
        ("0 send 1 0 -4\n", r"finite and not negative"),
        ("0 send 1 0 4 99\n", r"type 99 is not known"),
        ("allreduce 4 0\n", r':1: "allreduce 4 0" does not begin with a rank'),
        ("0\n", r"RANK CALL"),
        ("", r"no trace in it"),
        ("0 barrier\n2 barrier\n", r"none of \[1\]"),
        ("0 send 1 0 4\n1 barrier\n", r"1 sends without a receive from rank 0 to 1, tag 0"),
        ("0 barrier\n1 allreduce 4 0\n", r"collective 0 is barrier on rank 0 and allreduce on"),
        ("0 allreduce 4 0\n0 barrier\n1 allreduce 4 0\n", r"barrier on rank 0 and none on rank 1"),
        ("0 bcast 4 7\n", r"bcast names rank 7, there are 1"),
    ],
)
def test_wrong_traces_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "trace.ti").write_text(text)
    with pytest.raises(ParameterError, match=said):
        calls.read_ti(tmp_path)


def test_traces_of_two_jobs_are_refused(tmp_path: Path) -> None:
    for name in ("a.ti", "b.ti"):
        (tmp_path / name).write_text("0 barrier\n")
    with pytest.raises(ParameterError, match=r"rank 0 is already in .*a\.ti: traces of two jobs"):
        calls.read_ti(tmp_path)
    (tmp_path / "a.ti").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match=r"a\.ti: no text trace"):
        calls.read_ti(tmp_path)


@needs_simgrid
def test_a_deadlock_is_said() -> None:
    """Both send first: with messages that wait for their receiver nobody goes on."""
    programs = [[Call("send", 8, peer=1 - r), Call("recv", 8, peer=1 - r)] for r in range(2)]
    with pytest.raises(
        simulate.SimulationError,
        match=r"wait for each other forever: rank 0 in send \(call 0\), rank 1",
    ):
        seconds(simulate.Job(Workload("job", 2, programs), NET))


# ---- the papers' headline, the command, size ----------------------------------------------------


@needs_simgrid
@pytest.mark.slow
def test_headline_of_fpga_mpi() -> None:
    from wirepress.sim.papers import fpga_mpi

    jobs = fpga_mpi.replayed()
    assert sum(c.op == "allreduce" for c in jobs[0].workload.programs[0]) == fpga_mpi.ITERATIONS
    outcomes = list(simulate.run(jobs))
    times = [outcome.exchange[0] for outcome in outcomes]
    assert times == pytest.approx([13399.01, 8757.52, 8873.52, 7282.07], rel=2e-6)
    gains = [outcomes[0].seconds / outcome.seconds for outcome in outcomes[1:]]
    assert gains == pytest.approx([1.34, 1.32, 1.50], abs=5e-3)


@needs_simgrid
def test_the_ranking_flips_as_described() -> None:
    from wirepress.sim.papers import fpga_mpi

    raw, *coded = (outcome.seconds for outcome in simulate.run(fpga_mpi.described(25e9 / 8)))
    assert [raw / c for c in coded] == pytest.approx([1.3357, 1.3246, 1.2764], abs=1e-3)


@needs_simgrid
def test_command(wirepress_in, tmp_path: Path) -> None:
    flags = (
        "--ranks",
        4,
        "--size",
        "395MB",
        "--compute",
        "72ms",
        "--engine",
        "fpga:lz4=32c4d,zstd",
    )
    done = wirepress_in("simulate", *flags, "--sweep", "10Gbps", "100Gbps", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["codec"] for row in rows] == [None, "lz4", "zstd"] * 2
    for row in rows:
        assert row["seconds"] == pytest.approx(row["closed_form_seconds"], rel=1e-4)
    assert rows[5]["speed_up"] == 1  # bypassed
    calls.write_ti(one(Call("allreduce", 4e8)), tmp_path)
    (tmp_path / "traces").unlink()
    folder = tmp_path / "ti"
    folder.mkdir()
    for path in tmp_path.glob("*.ti"):
        path.rename(folder / path.name)
    text = wirepress_in("simulate", "ti", "--link", "10Gbps", "--plot", "out.png").stdout
    assert re.search(r"zstd on fpga, \d+c\d+d is 1\.84x as fast as raw", text), text
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a folder of traces, or --ranks and --size"),
        (("nowhere",), "nowhere: No such file"),
        (("--ranks", "4", "--size", "0B"), "--size must be more than 0"),
        (("--ranks", "4", "--size", "1MB", "--bucket", "0B"), "--bucket must be more than 0"),
        (("--ranks", "4", "--size", "1TB", "--bucket", "1B"), "1e+12 buckets: a step has at most"),
        (("--ranks", "4", "--size", "1MB", "--ratio", "lz=2"), "no codec lz here; known: lz4"),
        (("--ranks", "4", "--size", "1MB", "--flops", "0"), "no number of operations a second"),
        (("--ranks", "1", "--size", "1GB"), "takes no time"),
        (("--ranks", "4", "--size", "1GB", "--engine", "bf2:lz4"), "no speed is known"),
        (("--ranks", "4", "--size", "1GB", "--sweep", "0Gbps"), "faster than 0"),
        (("--ranks", "4", "--size", "1GB", "--local", "3"), "4 ranks do not fill nodes of 3"),
        (("--ranks", "4", "--size", "1GB", "--partial"), "--partial is for traces"),
        (("--ranks", "4", "--size", "1GB", "--flops", "1e9"), "--flops is for traces"),
        (("nowhere", "--ranks", "4"), "--ranks is for made-up trainings"),
        (("nowhere", "--compute", "1ms"), "--compute is for made-up trainings"),
    ],
)
def test_nonsense_is_refused(wirepress_in, arguments: tuple[str, ...], said: str) -> None:
    done = wirepress_in("simulate", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr and "Traceback" not in done.stderr


@needs_simgrid
@pytest.mark.slow
def test_1024_workers() -> None:
    """One step of 4 buckets with a codec, a flow a rank and bucket: the closed form."""
    job = calls.training(1024, 1e8, 0.3, 2.5e7, True, 1)
    request = plan.Request(1e8, 1024, NET.rate, NET.latency, "ring", 0.3, True, 2.5e7)
    (found,) = seconds(simulate.Job(job, NET, STAGE, "flow", bypass=False))
    assert found == pytest.approx(request.step(STAGE, False), rel=1e-3)


# ---- trees of switches ------------------------------------------------------------------------


@needs_simgrid
def test_fat_tree_is_as_fast_as_its_tightest_switch() -> None:
    """1e8 bytes at 1e9 B/s each: within a switch, and out of it by both nodes at once."""

    def exchange(pairs: dict[int, int]) -> Workload:
        programs: list[list[Call]] = [[] for _ in range(8)]
        for source, target in pairs.items():
            programs[source].append(Call("send", 1e8, peer=target))
            programs[target].append(Call("recv", 1e8, peer=source))
        return Workload("test", 8, programs)

    def jobs(text: str) -> list[simulate.Job]:
        net = simulate.Network(1e9, 0.0, tree=simulate.topology(text))
        inside, out, far = {0: 1, 2: 3}, {0: 2, 1: 3}, {0: 4, 1: 5, 2: 6, 3: 7}
        return [simulate.Job(exchange(pairs), net) for pairs in (inside, out, far)]

    assert seconds(*jobs("fat-tree:2x2x2")) == pytest.approx([0.1, 0.1, 0.1], rel=1e-6)
    assert seconds(*jobs("fat-tree:2x2x2:2,1")) == pytest.approx([0.1, 0.2, 0.2], rel=1e-6)
    assert seconds(*jobs("fat-tree:2x2x2:1,4")) == pytest.approx([0.1, 0.1, 0.4], rel=1e-6)
    assert seconds(*jobs("fat-tree:4x2:8")) == pytest.approx([0.1, 0.1, 0.8], rel=1e-6)


@needs_simgrid
def test_codec_in_a_fat_tree_saves_up_links() -> None:
    tree = simulate.topology("fat-tree:2x2:4")
    net = simulate.Network(1e9, 0.0, tree=tree)
    fast = models.Stage(2.0, compress=1e10, decompress=1e10)
    pattern = [Call("alltoall", 1e8)]
    raw, coded = seconds(*(simulate.Job(Workload("t", 4, [pattern]), net, c) for c in (None, fast)))
    assert coded == pytest.approx(raw / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("torus:4x4", "'torus:4x4' is not star, or like fat-tree:16x8"),
        ("fat-tree:16", "is not star"),
        ("fat-tree:4x4:1,2", "2 levels need groups of 1 or more, and 1 oversubscriptions"),
        ("fat-tree:0x4", "groups of 1 or more"),
        ("fat-tree:4x4:0", "more than 0"),
    ],
)
def test_topology_refuses(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        simulate.topology(text)


def test_tree_that_cannot_hold_the_ranks() -> None:
    net = simulate.Network(1e9, 0.0, tree=simulate.topology("fat-tree:4x2"))
    simulate.Job(one(Call("barrier"), 8), net)
    with pytest.raises(ParameterError, match=r"4x2 holds 8 nodes; 9 ranks, 1 a node, need 9"):
        simulate.Job(one(Call("barrier"), 9), net)
    with pytest.raises(ParameterError, match="need 9"):  # the head of a parameter server is a node
        simulate.Job(one(Call("allreduce", 1e6), 8), net, None, "ps")
