# SPDX-License-Identifier: Apache-2.0
"""The trainings of examples/ learn, on two ranks, with every hook, and write what they measured."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs PyTorch (pip install torch)", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WITH_SKLEARN = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn"
)
WITH_HOOK = pytest.mark.skipif(
    importlib.util.find_spec("wirepress.torch") is None, reason="needs wirepress.torch"
)
MODELS = ["lstm", "gpt", pytest.param("cnn", marks=WITH_SKLEARN)]
STEPS = 20
# One start of PyTorch for many trainings: it takes longer than all of them.
RANK = """
import json, os, runpy, sys
for port, program, *words in json.loads(sys.argv[1]):
    os.environ["MASTER_PORT"], sys.argv = port, [program, *words]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as done:
        if done.code:
            raise
"""


def free_ports(n: int) -> list[str]:
    """Not of the range that the kernel gives to others' connections meanwhile, gloo's above all."""
    last = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]) - 1
    ports: list[str] = []
    while len(ports) < n:
        port = random.randint(last // 2, last)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            ports.append(str(port))
    return ports


def run(trainings: list[list[str]], folder: Path, ranks: int = 2) -> None:
    """Runs train.py of an example with arguments, one after the other."""
    ports = free_ports(len(trainings))
    jobs = [
        [port, str(EXAMPLES / f"{name}_ddp" / "train.py"), *words]
        for port, (name, *words) in zip(ports, trainings, strict=True)
    ]
    everywhere = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                  "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
    logs = [folder / f"rank{rank}.log" for rank in range(ranks)]
    running = []
    for rank, log in enumerate(logs):
        with log.open("w") as file:
            running.append(subprocess.Popen(
                [sys.executable, "-c", RANK, json.dumps(jobs)], stdout=file, stderr=file,
                env={**everywhere, "RANK": str(rank), "LOCAL_RANK": str(rank)}))  # fmt: skip
    try:
        codes = wait_for_all(running, 600)
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert codes == [0] * ranks, "\n".join(log.read_text() for log in logs)


def wait_for_all(running: list[subprocess.Popen[bytes]], seconds: float) -> list[int | None]:
    """Exit codes; ends early when one has failed, for the others would wait for it."""
    end = time.monotonic() + seconds
    while True:
        codes = [process.poll() for process in running]
        if None not in codes or any(codes) or time.monotonic() > end:
            return codes
        time.sleep(0.1)


def training(name: str, file: Path, *words: str) -> list[str]:
    size = ["--size", "tiny", "--steps", str(STEPS), "--json", str(file)]
    return [name, *size, *words]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What each example wrote without compression, and the transformer with two methods."""
    wanted: dict[str, list[str]] = {"lstm": [], "gpt": []}
    if importlib.util.find_spec("sklearn"):
        wanted["cnn"] = []
    if importlib.util.find_spec("wirepress.torch"):
        rule = ["--rule", "embedding*=planes", "--set", "min_values=1000"]
        wanted["gpt int8"] = ["--compress", "int8", *rule]
        wanted["gpt dgc"] = ["--compress", "dgc:ratio=0.1", "--set", "ramp_steps=4"]
    files = {key: tmp_path_factory.mktemp("run") / "run.json" for key in wanted}
    run([training(key.split()[0], files[key], *words) for key, words in wanted.items()],
        tmp_path_factory.mktemp("logs"))  # fmt: skip
    return {key: json.loads(file.read_text()) for key, file in files.items()}


@pytest.mark.parametrize("name", MODELS)
def test_learns(runs, name):
    run = runs[name]
    assert run["ranks"] == 2 and run["method"] == "plain"
    assert len(run["loss"]) == len(run["step_seconds"]) == len(run["nic_bytes"]) == STEPS
    first, last = run["held_out"][0], run["held_out"][-1]
    assert (first["step"], last["step"]) == (STEPS // 2, STEPS) and last["loss"] < first["loss"]
    # each rank sends at least half of the gradient in a ring, in every step
    assert run["nic_bytes"][-1] > STEPS * 4 * run["parameters"]


@WITH_HOOK
@pytest.mark.parametrize(("method", "tolerance"), [("int8", 0.01), ("dgc", 0.3)])
def test_compressed(runs, method, tolerance):
    """int8, one parameter otherwise; DGC, whose momentum is not the optimizer's."""
    plain, run = runs["gpt"]["loss"], runs[f"gpt {method}"]
    # the first step is taken with the same weights, the second not with the same bits
    assert run["loss"][0] == plain[0] and run["loss"][1:] != plain[1:]
    assert run["loss"][-1] == pytest.approx(plain[-1], rel=tolerance)
    assert run["loss"][-1] < 0.8 * plain[0]
    assert run["statistics"]["ratio"] > 1.5


@pytest.mark.slow
@WITH_HOOK
@pytest.mark.parametrize("name", MODELS)
def test_compressed_learn(runs, name, tmp_path):
    methods = [
        ["int4"],
        ["onebit", "--warmup", "5"],
        ["terngrad", "--no-error-feedback"],
        ["topk:ratio=0.05"],
        ["powersgd:rank=4"],
        ["auto"],
    ]
    files = [tmp_path / f"{i}.json" for i in range(len(methods))]
    run([training(name, file, "--compress", *words)
         for file, words in zip(files, methods, strict=True)], tmp_path)  # fmt: skip
    for file, (method, *_) in zip(files, methods, strict=True):
        loss = json.loads(file.read_text())["loss"]
        assert loss[0] == runs[name]["loss"][0], method
        assert loss[-1] == pytest.approx(runs[name]["loss"][-1], rel=0.2), method


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_hooks(runs, name, tmp_path):
    hooks = ["fp16", "bf16", "powersgd:2", "noop"]
    files = [tmp_path / f"{hook.partition(':')[0]}.json" for hook in hooks]
    run([training(name, file, "--hook", hook)
         for hook, file in zip(hooks, files, strict=True)], tmp_path)  # fmt: skip
    for hook, file in zip(hooks, files, strict=True):
        loss = json.loads(file.read_text())["loss"]
        assert loss[-1] == pytest.approx(runs[name]["loss"][-1], rel=0.2)
        assert loss[0] == runs[name]["loss"][0], hook
        assert loss[1:] != runs[name]["loss"][1:], hook


@pytest.mark.slow
def test_by_torchrun_with_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "gpt.png"
    program = str(EXAMPLES / "gpt_ddp" / "train.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               "2", program, "--size", "tiny", "--steps", "12", "--plot", str(picture)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "step    12" in done.stdout


@pytest.mark.slow
def test_says_what_is_wrong(tmp_path):
    program = str(EXAMPLES / "gpt_ddp" / "train.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "torchrun" in done.stderr
