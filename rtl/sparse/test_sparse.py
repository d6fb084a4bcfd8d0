# SPDX-License-Identifier: Apache-2.0
"""Handshakes of the sparse cores, with cocotb's AXI4-Stream models (bench_*.py). What they
compute is compared in bulk by engines/rtl/rtl_test.cpp."""

import pytest

from rtl import simulate


@pytest.mark.parametrize("core", ["wpr_sparse_enc", "wpr_sparse_dec"])
def test_streams(core: str) -> None:
    bench = f"bench_{core.removeprefix('wpr_sparse_')}"
    simulate.run(core, "sparse", bench, parameters={"LogValues": 9})
