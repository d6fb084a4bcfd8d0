# SPDX-License-Identifier: Apache-2.0
"""The text of the examples is the same everywhere: trainings and measurements depend on it."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from prose import prose


def test_is_always_the_same():
    text = prose(1_000_000)
    digest = hashlib.sha256(text).hexdigest()
    assert digest == "312656ef486b1607483cefb13a8b93f4eec16b5c32f6a69eb2cb9c6dcb526e2b"
    assert prose(100_000) == text[:100_000]
    assert prose(1000, seed=2) != text[:1000]


def test_is_like_a_language():
    words = Counter(prose(1_000_000).replace(b".", b"").replace(b",", b"").lower().split())
    frequency = [n for _, n in words.most_common()]
    assert len(words) > 20_000  # the vocabulary of lm_mpi
    assert 0.01 < frequency[0] / words.total() < 0.1  # 7 % in English
    assert frequency[10] > 5 * frequency[200] > 25 * frequency[2000]
    assert frequency.count(1) > len(words) // 4


def test_no_file_of_the_machine_is_read(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError(f"opens {arguments}")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    assert len(prose(1000)) == 1000
