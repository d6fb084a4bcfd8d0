# SPDX-License-Identifier: Apache-2.0
"""Ethernet packets through the NIC box, with the library as peer (bench_nic.py)."""

import pytest

from rtl import simulate
from rtl.nic import peer


@pytest.mark.skipif(not peer.LIBRARY.exists(), reason="make build: there is no library yet")
def test_packets() -> None:
    simulate.run("wpr_nic_tb", "nic", "bench_nic", extra=("tb/wpr_nic_tb.sv",))
