# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the int8 cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_int8_enc", "wpr_int8_dec"])
def test_streams(core: str) -> None:
    simulate.run(core, "int8", f"bench_{core.removeprefix('wpr_int8_')}")
