# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the fre cores, with cocotb's AXI4-Stream models (bench_*.py). What they compute is
compared in bulk by the conformance suite over engine rtl."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_fre_enc", "wpr_fre_dec", "wpr_fre_enc4", "wpr_fre_dec4"])
def test_streams(core: str) -> None:
    simulate.run(core, "fre", f"bench_{core.removeprefix('wpr_fre_').removesuffix('4')}")
