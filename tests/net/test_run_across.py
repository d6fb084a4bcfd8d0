# SPDX-License-Identifier: Apache-2.0
"""`wirepress run` across hosts: the same results, and as few bytes as the report claims.

The NIC is the judge: its counters know nothing of wirepress. They also count headers, the
launcher's own traffic and acknowledgements, all together well under 5 % here.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import Hosts, namespaces
from installed import libraries_of

from wirepress.launch import run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
WIREPRESS = [sys.executable, "-m", "wirepress", "run"]
AGREEMENT = 0.05
WAVE = ["--nx", "96", "--ny", "96", "--nz", "96", "--steps", "60", "--every", "10"]
MODEL = ["--words", "4000", "--text", "400000", "--steps", "8"]


@pytest.fixture(scope="module")
def pair():
    with Hosts(2, "1gbit") as hosts:
        yield hosts


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, monkeypatch):
    """An MPI that is installed, with the environment in which mpi4py finds it."""
    flavour: str = request.param
    _, *libraries = libraries_of(flavour)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if flavour == "mpich":  # for mpi4py, which asks for it by another name than Debian's
        monkeypatch.setenv("LD_PRELOAD", ":".join(map(str, libraries)))
    return flavour


def job(hosts: Hosts, words: list[str], program: list[str], mpi: str) -> tuple[str, int]:
    """What the job printed, and the bytes that the NICs sent meanwhile."""
    before = sum(hosts.sent_bytes())
    command = hosts.on(0, [*words, *hosts.mpirun(mpi, 2), *program])
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, sum(hosts.sent_bytes()) - before


def result(output: str, word: str = "result") -> str:
    match = re.search(rf"^{word} (\S+)$", output, re.M)
    assert match, output
    return match[1]


def with_report(*options: str, path: Path) -> list[str]:
    return [*WIREPRESS, "--quiet", *options, "--report", str(path), "--"]


def test_wave(pair, mpi, tmp_path):
    """Point to point in C: bit-identical, and the NIC agrees with the report both ways."""
    program = tmp_path / "wave"
    subprocess.run(
        ["make", "-s", "-C", EXAMPLES / "wave_mpi", f"MPICC=mpicc.{mpi}", f"OUT={program}"],
        check=True,
        capture_output=True,
    )
    plain, plain_bytes = job(pair, [], [str(program), *WAVE], mpi)
    # Frames of a rank are 0.9 MB: these go in pieces, which are to be counted too.
    words = with_report("--codec", "zstd:1", "--pieces", "256KiB", path=tmp_path / "r.json")
    pressed, pressed_bytes = job(pair, words, [str(program), *WAVE], mpi)
    report = json.loads((tmp_path / "r.json").read_text())
    totals = report["totals"]
    assert result(pressed) == result(plain)
    assert report["state"] == "on"
    assert report["mpi"] == mpi
    assert report["nodes"] == [0, 0, 1, 1]
    assert len(report["ranks"]) == 4
    assert sum(rank["events"]["in_pieces"] for rank in report["ranks"]) > 0
    assert pressed_bytes < plain_bytes / 2
    assert pressed_bytes == pytest.approx(totals["wire_bytes"], rel=AGREEMENT)
    assert plain_bytes == pytest.approx(totals["raw_bytes"], rel=AGREEMENT)


def test_model(pair, mpi, tmp_path):
    """Collectives under mpi4py: runs agree to the bit, whatever the lossless codec."""
    program = [sys.executable, str(EXAMPLES / "lm_mpi" / "lm_mpi.py"), *MODEL]
    plain, _ = job(pair, [], program, mpi)
    results, used = set(), {}
    for codec in ("shuffle:4+zstd:1", "store"):
        # MPI's own algorithm adds in another order, and its bytes are not counted.
        words = with_report("--codec", codec, "--contest", "off", path=tmp_path / "r.json")
        output, nic_bytes = job(pair, words, program, mpi)
        totals = json.loads((tmp_path / "r.json").read_text())["totals"]
        assert nic_bytes == pytest.approx(totals["wire_bytes"], rel=AGREEMENT)
        results.add(result(output))
        used[codec] = nic_bytes
        loss = float(result(output, "loss"))
        assert loss == pytest.approx(float(result(plain, "loss")), rel=1e-4)
    assert len(results) == 1
    assert used["shuffle:4+zstd:1"] < 0.8 * used["store"]


def test_a_file_of_hosts(pair, mpi, tmp_path):
    """As PBS and LSF leave one for the launcher, where nothing else knows of the hosts."""
    words, file = pair.mpirun(mpi, 1), tmp_path / "hosts"
    addresses = [pair.address(i) for i in range(pair.n)]
    if mpi == "openmpi":
        file.write_text("".join(f"{address} slots=1\n" for address in addresses))
        words[words.index("--host") : words.index("--host") + 2] = ["--hostfile", str(file)]
    else:
        file.write_text("".join(f"{address}\n" for address in addresses))
        words[words.index("-hosts") : words.index("-hosts") + 2] = ["-f", str(file)]
    program = tmp_path / "crossed"
    source = ROOT / "integrations" / "mpi" / "tests" / "crossed.c"
    options = ["-std=gnu99", "-w", "-lm", "-pthread", "-DHAS_ISENDRECV"]
    subprocess.run([f"mpicc.{mpi}", source, "-o", program, *options], check=True)
    report = tmp_path / "r.json"
    command = [*with_report("--codec", "lz4", path=report), *words, str(program), "1"]
    done = subprocess.run(pair.on(0, command), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout.count("ok 1") == 2, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert (found["state"], found["nodes"]) == ("on", [0, 1])
    assert found["totals"]["compressed_messages"] == 8


def test_the_token_is_in_no_command_line(pair, mpi):
    """Nor in those of the agents by which launchers reach other hosts."""
    code = (
        "import os, pathlib; from mpi4py import MPI\n"
        "token, seen, agents = os.environ['WIREPRESS_RENDEZVOUS'].split(';')[1], 0, 0\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "    try: line = path.read_bytes()\n"
        "    except OSError: continue\n"
        "    seen, agents = seen + (token.encode() in line), agents + (b'netns' in line)\n"
        "MPI.COMM_WORLD.Barrier(); print(f'seen {seen} agents {agents > 0}\\n', end='')"
    )
    launcher = pair.mpirun(mpi, 1)
    words = [*WIREPRESS, "--", *launcher, sys.executable, "-c", code]
    done = subprocess.run(pair.on(0, words), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("seen 0 agents True") == 2, done.stdout


def test_exit_code_of_a_failing_rank(pair, mpi):
    code = "from mpi4py import MPI; import sys; sys.exit(3 * (MPI.COMM_WORLD.rank == 2))"
    words = [*WIREPRESS, "--", *pair.mpirun(mpi, 2), sys.executable, "-c", code]
    plain = subprocess.run(
        pair.on(0, words[words.index("--") + 1 :]), capture_output=True, timeout=100
    )
    done = subprocess.run(pair.on(0, words), capture_output=True, text=True, timeout=100)
    assert done.returncode == plain.returncode != 0, done.stderr


def test_a_signal_ends_the_whole_job(pair, mpi, tmp_path):
    code = (
        "from mpi4py import MPI; import time, pathlib, sys\n"
        "pathlib.Path(sys.argv[1], str(MPI.COMM_WORLD.rank)).touch(); time.sleep(1000)"
    )
    launcher = pair.mpirun(mpi, 2)
    words = [sys.executable, run.__file__, "--", *launcher, sys.executable, "-c", code]
    process = subprocess.Popen(
        pair.on(0, [*words, str(tmp_path)]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len([p for p in tmp_path.iterdir() if p.name.isdigit()]) == 4)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    wait_until(lambda: not processes_on(pair))


def wait_until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_on(hosts: Hosts) -> list[str]:
    own = [name for name in namespaces() if name.startswith(hosts.prefix)]
    return [
        pid
        for name in own
        for pid in subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True
        ).stdout.split()
        if os.path.exists(f"/proc/{pid}")
    ]
