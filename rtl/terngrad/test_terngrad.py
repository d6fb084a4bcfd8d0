# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the terngrad cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_terngrad_enc", "wpr_terngrad_dec"])
def test_streams(core: str) -> None:
    simulate.run(core, "terngrad", f"bench_{core.removeprefix('wpr_terngrad_')}")
