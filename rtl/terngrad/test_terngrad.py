# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the terngrad cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("mult18", [0, 1])
def test_encoder(mult18: int) -> None:
    simulate.run("wpr_terngrad_enc", "terngrad", "bench_enc", {"Mult18": mult18})


def test_decoder() -> None:
    simulate.run("wpr_terngrad_dec", "terngrad", "bench_dec")


def test_random_bits() -> None:
    simulate.run("wpr_hash_tb", "terngrad", "bench_hash", extra=("tb/wpr_hash_tb.sv",))
