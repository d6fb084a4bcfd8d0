# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the onebit cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate
from rtl.nic import peer


@pytest.mark.skipif(not peer.LIBRARY.exists(), reason="make build: there is no library yet")
@pytest.mark.parametrize("parameters", [{}, {"Mult18": 1, "RamBits": 4}], ids=["", "ecp5"])
def test_encoder(parameters: dict[str, int]) -> None:
    simulate.run("wpr_onebit_enc", "onebit", "bench_enc", parameters)


def test_decoder() -> None:
    simulate.run("wpr_onebit_dec", "onebit", "bench_dec")
