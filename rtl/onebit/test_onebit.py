# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the onebit cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate
from rtl.nic import peer


@pytest.mark.skipif(not peer.LIBRARY.exists(), reason="make build: there is no library yet")
def test_encoder() -> None:
    simulate.run("wpr_onebit_enc", "onebit", "bench_enc")


def test_decoder() -> None:
    simulate.run("wpr_onebit_dec", "onebit", "bench_dec")
