# SPDX-License-Identifier: Apache-2.0
"""`wirepress calibrate`: the fit, the file, and what it does to simulations."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wirepress.commands import cli
from wirepress.errors import ParameterError
from wirepress.sim import calibrate, models, simulate
from wirepress.sim.calls import Call, Workload

try:
    simulate.interpreter()
    HAVE_SIMGRID = True
except simulate.SimulationError:
    HAVE_SIMGRID = False
needs_simgrid = pytest.mark.skipif(not HAVE_SIMGRID, reason="SimGrid is not installed")

RATE, LATENCY, BURST, SOCKET = 125e6, 50e-6, 72_000, 1e6


def found(**more: Any) -> dict[str, Any]:
    """What the ranks would say of links that are known: both ways at once messages take turns."""
    sizes = (128 << 10, 256 << 10, 4 << 20, 16 << 20)
    points = [{"kind": "there and back", "size": 8, "seconds": [LATENCY] * 3}]
    for size in sizes:
        whole = 2 * LATENCY + size / RATE
        points.append({"kind": "one way", "size": size, "seconds": [9 * whole, whole, whole]})
        rested = 2 * LATENCY + (size - BURST) / RATE
        points.append({"kind": "after a pause", "size": size, "seconds": [rested] * 5})
    for size in sizes[2:]:
        turns = 2 * LATENCY + 2 * size / RATE
        points.append({"kind": "both ways", "size": size, "seconds": [turns] * 3})
    sent = LATENCY + (sizes[-1] - SOCKET) / RATE
    points.append({"kind": "until sent", "size": sizes[-1], "seconds": [sent] * 3})
    points.append({"kind": "all at once", "size": 16 << 20, "seconds": [(16 << 20) / 100e6]})
    return {"transport": "Test MPI", "ranks": 4, "hosts": ["a", "b", "c", "d"], "eager": 65536,
            "add": 4e9, "add_together": 2e9, "codec": 1e9, "codec_together": 4e8,
            "machine": 4, "cores": 2,
            "points": points} | more  # fmt: skip


def test_fit_finds_what_the_links_do() -> None:
    fitted = calibrate.fit(found())
    assert fitted.rate == pytest.approx(RATE, rel=1e-6)  # in spite of a time nine times as long
    assert (fitted.latency, fitted.handshake) == (LATENCY, 2 * LATENCY)
    assert fitted.burst == pytest.approx(BURST, rel=1e-6)
    assert fitted.fabric == pytest.approx(4 * 100e6)
    assert math.isinf(fitted.buffer) and fitted.eager == 65536
    assert (fitted.add, fitted.slowdown) == (2e9, 2.5)
    assert fitted.socket == pytest.approx(SOCKET, rel=1e-6)
    assert (fitted.machine, fitted.cores, fitted.spread) == (4, 2, calibrate.SPREAD[0])


def test_fit_of_gloo_and_of_one_host() -> None:
    points = found()["points"]
    single = [p for p in points if p["kind"] not in ("both ways", "all at once")]
    single += [dict(p, kind="both ways") for p in points if p["kind"] == "one way"]
    fitted = calibrate.fit(found(points=single, eager=None))
    assert math.isinf(fitted.eager) and fitted.buffer == fitted.handshake == 0
    assert fitted.fabric is None
    alone = calibrate.fit(found(points=[], ranks=1, hosts=["a"]))
    assert alone.rate is None and alone.burst == 0 and alone.add == 2e9


def test_fit_refuses_nonsense() -> None:
    points = [dict(p) for p in found()["points"]]
    next(p for p in points if p["kind"] == "one way" and p["size"] == 16 << 20)["seconds"] = [1e-3]
    with pytest.raises(ParameterError, match=r"16,777,216 bytes took 0\.001 s"):
        calibrate.fit(found(points=points))


def write(path: Path, body: dict[str, Any]) -> Path:
    path.write_text(json.dumps(body))
    return path


def test_file_comes_back(tmp_path: Path) -> None:
    fitted = calibrate.fit(found(eager=None))
    assert calibrate.read(write(tmp_path / "a.json", calibrate.as_json(fitted))) == fitted


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        (None, "kind", "wirepress bench", '"kind" is not "wirepress calibration"'),
        (None, "version", 1, "version 1; 2 was expected"),
        (None, "messages", None, '"messages" is missing'),
        (None, "points", 3, '"points" must be a list'),
        ("link", "bytes_per_second", "fast", "bytes_per_second is 'fast'; a number, more than 0"),
        ("link", "latency_seconds", -1, "latency_seconds is -1; a number, 0 or more"),
        ("link", "rate", 1e9, "unknown rate; known: bytes_per_second, latency_seconds"),
        ("processor", "codec_slowdown", 0, "codec_slowdown is 0; a number, more than 0"),
        ("processor", "cores_of_machine", 1.5, "cores_of_machine is 1.5; a whole number is due"),
        ("messages", "eager_bytes", True, "eager_bytes is True"),
        ("messages", "burst_bytes", None, "burst_bytes is None"),
    ],
)
def test_file_that_is_wrong_is_refused(
    tmp_path: Path, part: str | None, key: str, value: Any, said: str
) -> None:
    body = calibrate.as_json(calibrate.fit(found()))
    (body[part] if part else body)[key] = value
    path = write(tmp_path / "a.json", body)
    with pytest.raises(ParameterError) as error:
        calibrate.read(path)
    assert said in str(error.value) and str(path) in str(error.value)


def test_missing_key_and_no_json(tmp_path: Path) -> None:
    body = calibrate.as_json(calibrate.fit(found()))
    del body["link"]["latency_seconds"]
    with pytest.raises(ParameterError, match='"link": latency_seconds is missing'):
        calibrate.read(write(tmp_path / "a.json", body))
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(ParameterError, match=r"b\.json: no JSON"):
        calibrate.read(tmp_path / "b.json")


# ---- what it does to simulations ------------------------------------------------------------


def seconds(calls: list[list[Call]], **transport: float) -> float:
    network = simulate.Network(1e9, 0.0, transport=simulate.Transport(**transport))
    job = simulate.Job(Workload("test", len(calls), calls), network)
    (outcome,) = simulate.run([job])
    return outcome.seconds


def exchange(size: float, waited: bool) -> list[list[Call]]:
    """Two ranks that send to each other; the second one comes 0.1 s later. Until then it waited for
    a small message of the first one, or computed."""
    programs = [[Call("irecv", size, peer=1 - rank), Call("isend", size, peer=1 - rank)]
                for rank in range(2)]  # fmt: skip
    late, small = Call("compute", seconds=0.1), Call("recv", 1, peer=0, tag=9)
    first = [*programs[0], late, Call("isend", 1, peer=1, tag=9)]
    second = [small, *programs[1]] if waited else [late, *programs[1], small]
    return [[*first, Call("waitall")], [*second, Call("waitall")]]


@needs_simgrid
def test_who_answered_before_it_announced_takes_turns() -> None:
    """The second rank heard of the first one's message while it waited in a call, and answers it
    before it announces its own: the answer to that one stands behind the first one's data. Who was
    computing meanwhile announces first, and both go at once."""
    waited, computed = exchange(1e8, True), exchange(1e8, False)
    at_once, turns = pytest.approx(0.2, rel=1e-3), pytest.approx(0.3, rel=1e-3)
    own = {"handshake": 2e-6, "eager": 1e3}
    assert seconds(computed, **own, buffer=math.inf) == at_once
    assert seconds(waited, **own, buffer=math.inf) == turns
    assert seconds(waited, **own) == at_once
    assert seconds(waited, **own, buffer=2e7) == pytest.approx(0.22, rel=1e-3)
    own["eager"] = 1e8
    assert seconds(waited, **own, buffer=math.inf) == at_once


@needs_simgrid
def test_who_takes_turns_once_goes_on_so() -> None:
    """Vectors one after the other on two hosts at 200 Mb/s, where messages that begin together do
    not end together: who is first announces while the other one still waits. Open MPI took 2.44 s
    for these six, of which 1.28 are the links' time."""
    step = [[Call("compute", seconds=3e-4 * (rank + 1)), Call("allreduce", 5.12e6)]
            for rank in range(2)]  # fmt: skip
    workload = Workload("test", 2, [part * 6 for part in step])

    def took(spread: float) -> float:
        transport = simulate.Transport(64512, 3e-5, math.inf, 8e5, 6e4, spread, 1e10)
        network = simulate.Network(23.9e6, 15e-6, transport=transport)
        (outcome,) = simulate.run([simulate.Job(workload, network, None, "openmpi")])
        return outcome.seconds

    assert took(0.0) == pytest.approx(1.28, rel=0.03)
    assert took(0.03) == took(0.03) == pytest.approx(2.44, rel=0.15)


@needs_simgrid
def test_handshake_takes_time() -> None:
    send, receive = [Call("send", 1e8, peer=1)], [Call("recv", 1e8, peer=0)]
    assert seconds([send, receive], handshake=0.01) == pytest.approx(0.11, rel=1e-3)
    # announced while the receiver computes: only the answer is left
    late = [Call("compute", seconds=1), *receive]
    assert seconds([send, late], handshake=0.01) == pytest.approx(1.105, rel=1e-3)


@needs_simgrid
def test_send_is_done_when_the_rest_is_in_the_socket() -> None:
    after = Call("compute", seconds=0.1)
    program = [Call("send", 1e8, peer=1), after], [Call("recv", 1e8, peer=0)]
    for socket, due in ((0, 0.2), (4e7, 0.16), (2e8, 0.1)):
        found = seconds(list(map(list, program)), handshake=2e-6, socket=socket)
        assert found == pytest.approx(due, rel=1e-3)
    # and what comes next waits for it
    twice = [Call("send", 1e8, peer=1)] * 2, [Call("recv", 1e8, peer=0)] * 2
    assert seconds(list(map(list, twice)), handshake=2e-6, socket=2e8) == pytest.approx(
        0.2, rel=1e-3
    )


@needs_simgrid
def test_ranks_share_the_cores_of_their_machine() -> None:
    """Four ranks of which two compute 1 s and two compute 2 s, on 2 cores and on 4; and on two
    machines, the long ones on one of them."""
    programs = [[Call("compute", seconds=s), Call("barrier")] for s in (1, 1, 2, 2)]
    assert seconds(programs) == pytest.approx(2, rel=1e-3)
    assert seconds(programs, cores=2, machine=4) == pytest.approx(3, rel=1e-3)
    assert seconds(programs, cores=4, machine=4) == pytest.approx(2, rel=1e-3)
    assert seconds(programs, cores=1, machine=2) == pytest.approx(4, rel=1e-3)


@needs_simgrid
def test_coded_collectives_go_in_chunks() -> None:
    """Chunks that are eager need no handshake, whatever the vector's size."""
    workload = Workload("test", 2, [[Call("allreduce", 1e8)]])
    stage = models.Stage(2.0, 1e15, 1e15)
    times = []
    for chunk in (0, 1000):
        transport = simulate.Transport(eager=1e3, handshake=0.1, chunk=chunk)
        network = simulate.Network(1e9, 0.0, transport=transport)
        times += [o.seconds for o in simulate.run([simulate.Job(workload, network, stage)])]
    assert times == pytest.approx([0.05 + 2 * 0.1, 0.05], rel=1e-3)


@pytest.mark.parametrize(
    ("n", "size", "algorithm"),
    [
        (2, 4, "ring"), (2, 100, "doubling"), (2, 200_000, "ring"), (3, 262_144, "halving"),
        (4, 8191, "doubling"), (4, 5_120_000, "halving"), (200, 100, "tree"),
        (5000, 20_000, "doubling"), (5000, 40_000, "halving"),
    ],
)  # fmt: skip
@needs_simgrid
def test_openmpi_takes_its_algorithm(n: int, size: float, algorithm: str) -> None:
    """As coll/tuned of Open MPI 4.1 decides."""
    if n > 8:  # the table alone: so many ranks take long
        code = f"import replay; print(replay.open_mpi_allreduce({n}, {size}))"
        done = subprocess.run([simulate.interpreter(), "-c", code], capture_output=True, text=True,
                              cwd=simulate.SCRIPT.parent, check=True)  # fmt: skip
        assert done.stdout.strip() == algorithm
        return
    workload = Workload("test", n, [[Call("allreduce", size)]])
    network = simulate.Network(1e9, 1e-6)
    jobs = [simulate.Job(workload, network, None, name) for name in ("openmpi", algorithm)]
    own, named = (outcome.seconds for outcome in simulate.run(jobs))
    assert own == named


@needs_simgrid
def test_eager_messages_travel_before_their_receive() -> None:
    late = [[Call("send", 1e8, peer=1)], [Call("compute", seconds=1), Call("recv", 1e8, peer=0)]]
    assert seconds(late) == pytest.approx(1.1, rel=1e-6)
    assert seconds(late, eager=1e8) == pytest.approx(1.0, rel=1e-6)
    assert seconds(late, eager=1e8 - 1) == pytest.approx(1.1, rel=1e-6)


@needs_simgrid
def test_burst_passes_at_once_after_a_pause() -> None:
    """1e7 of 3e7 bytes at first; then nothing, until the link has rested for 5 ms."""
    send, receive = Call("send", 3e7, peer=1), Call("recv", 3e7, peer=0)
    assert seconds([[send], [receive]], burst=1e7) == pytest.approx(0.02, rel=1e-3)
    assert seconds([[send] * 2, [receive] * 2], burst=1e7) == pytest.approx(0.05, rel=1e-3)
    rest = Call("compute", seconds=0.005)
    program = [send, rest, send], [receive, rest, receive]
    assert seconds(list(map(list, program)), burst=1e7) == pytest.approx(0.05, rel=1e-3)
    assert seconds([[send], [receive]], burst=1e9) < 1e-3


@needs_simgrid
@pytest.mark.parametrize("algorithm", ["ring", "flow", "doubling", "halving", "tree"])
def test_adding_takes_time(algorithm: str) -> None:
    """Bytes that one rank adds one after the other, of 1e8, by four ranks."""
    added = {"ring": 0.75, "flow": 0.75, "halving": 0.75, "doubling": 2, "tree": 2}[algorithm]
    workload = Workload("test", 4, [[Call("allreduce", 1e8)]])
    times = []
    for add in (math.inf, 1e9):
        network = simulate.Network(1e9, 0.0, transport=simulate.Transport(add=add))
        times += [out.seconds for out in simulate.run([simulate.Job(workload, network, None,
                                                                    algorithm)])]  # fmt: skip
    assert times[1] - times[0] == pytest.approx(0.1 * added, rel=1e-6)


@needs_simgrid
def test_simulate_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.json", calibrate.as_json(calibrate.fit(found())))
    words = ["simulate", "--ranks", "4", "--size", "100MB", "--calibration", str(path), "--json",
             "--engine", "cpu:lz4", "--ratio", "lz4=2", "-q"]  # fmt: skip
    assert cli.main(words) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["rows"][0]["link"] == pytest.approx(RATE) and body["latency"] == LATENCY
    assert body["fabric"] == pytest.approx(4e8)
    # a ring of six steps of 25 MB: the fabric's 1e8 bytes a second, in turns
    assert body["rows"][0]["seconds"] > 6 * 25e6 / 100e6
    assert cli.main([*words, "--link", "10Gbps"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["rows"][0]["link"] == 1.25e9 and body["fabric"] is None


def test_simulate_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = calibrate.as_json(calibrate.fit(found(points=[], ranks=1, hosts=["a"])))
    path = write(tmp_path / "a.json", alone)
    words = ["simulate", "--ranks", "4", "--size", "1MB", "--calibration"]
    assert cli.main([*words, str(path)]) == cli.USAGE
    assert "one host without a network: give --link" in capsys.readouterr().err
    with pytest.raises(OSError, match=r"none\.json"):
        calibrate.read(tmp_path / "none.json")
    with pytest.raises(SystemExit):
        cli.main([*words[:-1], "--collective", "ring,star"])
    assert "'ring,star' is not one, or RAW,CODED" in capsys.readouterr().err


# ---- measuring ------------------------------------------------------------------------------


def test_processor_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    words = ["calibrate", "--seconds", "0.02", "-q", "-o", str(path)]
    assert cli.main(words) == 0
    assert "adding vectors" in capsys.readouterr().out
    read = calibrate.read(path)
    assert read.rate is None and read.add > 1e6
    assert cli.main(words) == cli.USAGE
    assert "--force replaces it" in capsys.readouterr().err


def test_launcher_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", "-q", "--", "wirepress-no-such-launcher"]) == cli.FAILED
    assert "wirepress-no-such-launcher cannot be started" in capsys.readouterr().err
    fails = [sys.executable, "-c", "import sys; sys.exit('no hosts')"]
    assert cli.main(["calibrate", "-q", "--", *fails]) == cli.FAILED
    err = capsys.readouterr().err
    assert "exit status 1" in err and "no hosts" in err
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert cli.main(["calibrate", "-q", "--limit", "0.2", "--", *slow]) == cli.FAILED
    assert "not done after 0.2 s" in capsys.readouterr().err
