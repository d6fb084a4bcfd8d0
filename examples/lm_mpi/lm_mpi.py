#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model on several ranks: data parallel, gradients by MPI_Allreduce.

An ordinary mpi4py program; it knows nothing of wirepress.

The model predicts the next word from the last four: an embedding of a large vocabulary, one hidden
layer, a softmax over the vocabulary (Bengio et al. 2003). As in language models of any size, most
of the gradient is the embedding's, nearly all rows of which are zero (words not in the batch), and
the output layer's, which is dense. The text is made from a seed (examples/prose.py): the same on
every machine.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from prose import prose

CONTEXT = 4  # words that predict the next one
WORD = re.compile(r"[A-Za-z_]+|[0-9]+|[^\sA-Za-z_0-9]")


def to_ids(words: list[str], n_words: int) -> np.ndarray:
    """Word numbers by falling frequency, ties by the alphabet; 0 stands for all others."""
    counts = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
    number = {word: i + 1 for i, (word, _) in enumerate(counts[: n_words - 1])}
    return np.array([number.get(word, 0) for word in words], np.int64)


class Model:
    """Parameters and their gradients, all float32."""

    def __init__(self, n_words: int, dims: int, hidden: int, seed: int) -> None:
        rng = np.random.default_rng(seed)

        def matrix(rows: int, columns: int, scale: float) -> np.ndarray:
            return (rng.standard_normal((rows, columns)) * scale).astype(np.float32)

        self.embedding = matrix(n_words, dims, 0.1)
        self.inner = matrix(CONTEXT * dims, hidden, (CONTEXT * dims) ** -0.5)
        self.outer = matrix(n_words, hidden, 0.1 * hidden**-0.5)
        self.bias = np.zeros(n_words, np.float32)

    def parameters(self) -> list[np.ndarray]:
        return [self.embedding, self.inner, self.outer, self.bias]

    def gradients(self, words: np.ndarray, target: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """Mean cross entropy of a batch (words: batch x CONTEXT), and its gradients."""
        n = len(target)
        x = self.embedding[words].reshape(n, -1)
        h = np.tanh(x @ self.inner)
        logits = h @ self.outer.T + self.bias
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        loss = -np.log(logits[np.arange(n), target]).mean()
        delta = logits  # softmax - one-hot
        delta[np.arange(n), target] -= 1
        delta /= np.float32(n)
        d_outer = delta.T @ h
        d_inner_out = (delta @ self.outer) * (1 - h * h)
        d_x = (d_inner_out @ self.inner.T).reshape(n * CONTEXT, -1)
        d_embedding = np.zeros_like(self.embedding)
        np.add.at(d_embedding, words.reshape(-1), d_x)
        return float(loss), [d_embedding, x.T @ d_inner_out, d_outer, delta.sum(axis=0)]


def train(options: argparse.Namespace, comm: MPI.Comm) -> tuple[Model, float]:
    ids = to_ids(WORD.findall(prose(options.text).decode()), options.words)
    windows = np.lib.stride_tricks.sliding_window_view(ids, CONTEXT + 1)
    mine = np.random.default_rng([options.seed, comm.rank])
    model = Model(options.words, options.dims, options.hidden, options.seed)
    n_parameters = sum(p.size for p in model.parameters())
    if comm.rank == 0:
        print(
            f"lm_mpi: {len(ids):,} words of text, {n_parameters:,} parameters "
            f"({model.embedding.size / n_parameters:.0%} embedding), {comm.size} ranks"
        )
    loss, total = 0.0, np.zeros(1)
    comm.Barrier()
    start = time.perf_counter()
    for step in range(1, options.steps + 1):
        batch = windows[mine.integers(len(windows), size=options.batch)]
        loss, gradients = model.gradients(batch[:, :CONTEXT], batch[:, CONTEXT])
        for gradient in gradients:
            comm.Allreduce(MPI.IN_PLACE, gradient, MPI.SUM)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            gradient *= np.float32(options.rate / comm.size)
            parameter -= gradient
        comm.Allreduce(np.array([loss]), total)
        loss = float(total[0]) / comm.size
        if comm.rank == 0 and (step % options.print == 0 or step == options.steps):
            pace = step / (time.perf_counter() - start)
            print(f"step {step:4d}  loss {loss:.4f}  {pace:.1f} steps/s", flush=True)
    if comm.rank == 0:
        print(f"seconds {time.perf_counter() - start:.3f}")
    return model, loss


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: mpirun -n 4 python lm_mpi.py --steps 100",
    )
    for name, default, text in (
        ("words", 20000, "vocabulary"),
        ("dims", 64, "embedding dimensions"),
        ("hidden", 64, "units of the hidden layer"),
        ("batch", 64, "examples per rank and step"),
        ("steps", 100, "training steps"),
        ("text", 1_000_000, "bytes of text"),
        ("seed", 1, "of parameters and batches"),
        ("print", 20, "steps between lines"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N",
                            help=f"{text} (%(default)s)")  # fmt: skip
    parser.add_argument("--rate", type=float, default=2.0, help="learning rate (%(default)s)")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    model, loss = train(options, comm)
    digest = hashlib.sha256(b"".join(p.tobytes() for p in model.parameters())).hexdigest()
    same = len(set(comm.allgather(digest))) == 1
    if comm.rank == 0:
        print(f"loss {loss!r}\nresult {digest[:16]}")
        if not same:
            print("lm_mpi: the ranks' parameters differ", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
