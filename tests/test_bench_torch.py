# SPDX-License-Identifier: Apache-2.0
"""What the training benchmarks compute with: simulated exchange of gradients, tables of results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import convergence  # noqa: E402
import torch_steps  # noqa: E402

SHAPE = (64, 256)
STEPS = 10


@pytest.fixture
def gradients() -> np.ndarray:
    """Of workers: a common part and noise."""
    draw = np.random.default_rng(1)
    noise = draw.standard_normal((convergence.WORKERS, 64 * 256))
    return (draw.standard_normal(64 * 256) + 0.3 * noise).astype(np.float32)


def encoder(recipe: str, feedback: bool = False, warm: float = 0.0) -> convergence.Encoder:
    method = convergence.Method(recipe, recipe, feedback, warm=warm)
    made = convergence.encoder(method, SHAPE, 3, STEPS)
    assert made is not None
    return made


def test_every_method_encodes(gradients):
    for method in convergence.all_methods():
        made = convergence.encoder(method, SHAPE, 0, STEPS)
        if made is not None:
            mean, sent = made.mean(gradients, STEPS - 1)
            assert np.isfinite(mean).all() and 0 < sent <= 1.1 * gradients[0].nbytes, method.name


def test_lossless_is_the_mean(gradients):
    mean, sent = encoder("planes").mean(gradients, 0)
    assert np.allclose(mean, gradients.mean(axis=0), atol=1e-6)
    assert sent < gradients[0].nbytes


def test_small_parameters_go_as_they_are():
    method = convergence.Method("int8", "int8")
    assert convergence.encoder(method, (64, 63), 0, STEPS) is None
    assert convergence.encoder(method, (64, 64), 0, STEPS) is not None


def test_feedback_sends_what_was_left_out(gradients):
    """Over many steps the gradient arrives, however coarse the code; without, it never does."""
    expected = gradients.mean(axis=0)
    for feedback, right in ((True, True), (False, False)):
        coder = encoder("topk:ratio=0.05", feedback)
        total = sum(coder.mean(gradients, step)[0] for step in range(100)) / 100
        error = np.linalg.norm(total - expected) / np.linalg.norm(expected)
        assert (error < 0.3) == right, (feedback, error)


def test_random_codes_draw_anew(gradients):
    coder = encoder("terngrad")
    assert (coder.mean(gradients, 0)[0] == coder.mean(gradients, 0)[0]).all()
    total = sum(coder.mean(gradients, step)[0] for step in range(200)) / 200
    expected = gradients.mean(axis=0)
    assert np.linalg.norm(total - expected) < 0.15 * np.linalg.norm(expected)


def test_warm_steps_are_not_compressed(gradients):
    coder = encoder("onebit", True, warm=0.2)
    assert coder.mean(gradients, 1)[1] == gradients[0].nbytes
    assert coder.mean(gradients, 2)[1] < gradients[0].nbytes / 20


def test_a_residual_that_decays(gradients):
    method = convergence.Method("", "topk:ratio=0.05", True, decay=0.5)
    coder = convergence.encoder(method, SHAPE, 3, STEPS)
    coder.mean(gradients, 0)
    kept = coder.residuals.copy()
    sent, _ = coder.mean(gradients, 1)
    left = (coder.residuals - 0.5 * kept).mean(axis=0)
    assert np.allclose(sent + left, gradients.mean(axis=0), atol=1e-5)


def summary(name: str, by_seed: dict[int, float]) -> convergence.Summary:
    return convergence.Summary(convergence.Method(name, name), "gpt", by_seed, 1.0, 0.0)


def test_verdicts_compare_the_same_seeds():
    base = summary("none", {1: 2.0, 2: 2.2, 3: 2.1})
    assert convergence.noise(base) == pytest.approx(0.2 / 2.1)
    assert summary("a", {2: 2.2}).worse(base) == pytest.approx(0)
    assert convergence.verdict(summary("a", {1: 2.02, 2: 2.222}), base) == "as good (+1.0 %)"
    assert convergence.verdict(summary("a", {1: 2.4}), base) == "**20 % worse**"
    assert convergence.verdict(summary("a", {1: float("nan")}), base) == "diverges"


def test_dgc_ramps_and_masks_momentum(gradients):
    coder = encoder("dgc:ratio=0.001", warm=0.4)
    first, last = coder.mean(gradients, 0), coder.mean(gradients, STEPS - 1)
    assert first[1] > 10 * last[1]
    sent = coder.residuals == 0
    assert sent.any() and (coder.velocity[sent] == 0).all() and (coder.velocity[~sent] != 0).any()


def test_power_sgd_of_full_rank_is_the_mean(gradients):
    mean, _ = encoder("powersgd:64", True).mean(gradients, 0)
    assert np.allclose(mean, gradients.mean(axis=0), atol=1e-4)
    rank_one = encoder("powersgd:1", True)
    assert rank_one.mean(gradients, 0)[1] == 4 * sum(SHAPE)
    assert 0 < rank_one.error(gradients[0]) < 1


def test_a_code_that_does_not_contract_is_seen(gradients):
    assert encoder("int8").error(gradients[0]) < 0.01
    assert encoder("terngrad").error(gradients[0]) > 1


def row(method: str, seconds: list[float], loss: float) -> list[dict]:
    job = {"model": "gpt", "rate": "1gbit", "ranks": 2, "method": method}
    points = [{"step": 10, "loss": 3.0}, {"step": 20, "loss": loss}]
    return [
        {**job, "what": "steps", "seconds": seconds, "bytes": [2e6, 1e6, 1e6]},
        {**job, "what": "loss", "rate": "none", "held_out": points},
    ]


def test_the_page_of_steps():
    rows = [
        *row("plain", [0.4, 0.8, 0.4], 2.0),
        row("noop", [0.1, 0.2, 0.1], 9.0)[0],
        *row("fp16", [0.25, 0.5, 0.25], 2.001),
        *row("PowerSGD 4", [0.16, 0.32, 0.16], 2.0),
        *row("wp int8", [0.2, 0.4, 0.2], 2.005),
        *row("wp onebit", [0.12, 0.24, 0.12], 2.5),
    ]
    text = torch_steps.page_text(rows)
    # onebit is the fastest and does not hold the loss; int8 is short of two aims
    assert "| gpt | 1gbit | 2 | wp int8 | **0.50** | **1.25** | **0.80** |" in text
    assert "| wp onebit | 120 | 3.33 | 0.83 | 1.00 | 2.500 (!) |  |" in text
    assert "| wp int8 | 200 | 2.00 | 0.50 | 1.00 | 2.005 | 4.0 |" in text


def test_the_page_of_checkpoints():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("wirepress.torch")
    import checkpoints

    raw = np.linspace(0, 1, 5000, dtype=np.float32).tobytes()
    encode, decode, size = checkpoints.code(checkpoints.Codec("planes", torch.float32), raw)
    row = {"part": "coding", "kind": "weights", "codec": "planes", "raw": len(raw), "size": size}
    row |= {"encode_s": encode + 1e-6, "decode_s": decode + 1e-6}
    disk = {"part": "disk", "raw": 4, "threads": 1}
    measured = {
        "date": "2026-01-01T", "machine": {"cpu": "a", "cores": 2}, "steps": 3, "load": "",
        "command": "c", "torch": "2",
        "rows": [
            row,
            disk | {"codec": "plain", "size": 8, "seconds": 2.0, "all": [2.0, 1.0]},
            disk | {"codec": "planes", "size": 4, "seconds": 0.5, "all": [0.5]},
            {"part": "resharding", "loaded_by": 8, "most": 1.25},
            {"part": "step", "beside": "alone", "seconds": 0.5},
            {"part": "step", "beside": "planes", "seconds": 0.6},
            {"part": "step", "beside": "a process that only counts", "seconds": 0.55},
        ],
    }  # fmt: skip
    page = checkpoints.page(measured)
    assert f"| weights | {len(raw) / size:.3f} (" in page
    assert "| planes | 0.50, 0.50 | 0.50, 0.25 | 0.500 |" in page
    assert "1.250 by 8 ranks." in page and "1.20 beside planes" in page
    assert "1.10 beside a process that only counts" in " ".join(page.split())
