# SPDX-License-Identifier: Apache-2.0
"""Ethernet packets through the NIC box, with the library as peer (bench_nic.py), and through it as
OpenNIC's user box (bench_opennic.py)."""

import pytest

from rtl import simulate
from rtl.nic import peer

pytestmark = pytest.mark.skipif(
    not peer.LIBRARY.exists(), reason="make build: there is no library yet"
)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"CodeBlockRam": 1}, {"Codec": 3}, {"Codec": 4}],
    ids=["fre", "ecp5", "lz4", "zfp"],
)
def test_packets(parameters: dict[str, int]) -> None:
    tops = ("tb/wpr_nic_tb.sv",)
    simulate.run("wpr_nic_tb", "nic", "bench_nic", parameters, extra=tops, inside=False)


def test_opennic() -> None:
    shell = ("generic_reset", "axi_lite_clock_converter", "wpr_nic_250mhz_tb")
    files = ("opennic/wpr_nic_250mhz.sv", *(f"tb/{name}.sv" for name in shell))
    simulate.run("wpr_nic_250mhz_tb", "nic", "bench_opennic", extra=files)
