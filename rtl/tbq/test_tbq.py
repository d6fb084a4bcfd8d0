# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the tbq cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by engines/rtl/rtl_test.cpp."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_tbq_enc", "wpr_tbq_dec"])
def test_streams(core: str) -> None:
    simulate.run(core, "tbq", f"bench_{core.removeprefix('wpr_tbq_')}")
