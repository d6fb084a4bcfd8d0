# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the cast cores, with cocotb's AXI4-Stream models (bench_*.py). What they compute is
compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_cast_enc", "wpr_cast_dec"])
def test_streams(core: str) -> None:
    simulate.run(core, "cast", f"bench_{core.removeprefix('wpr_cast_')}")
