# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the int8 cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("mult18", [0, 1])
def test_encoder(mult18: int) -> None:
    simulate.run("wpr_int8_enc", "int8", "bench_enc", {"Mult18": mult18})


def test_decoder() -> None:
    simulate.run("wpr_int8_dec", "int8", "bench_dec")
