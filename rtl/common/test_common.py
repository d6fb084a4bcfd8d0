# SPDX-License-Identifier: Apache-2.0
"""Streams through the parts that cores share, with pauses, losses and damage (bench_common.py), and
numbers through those that have multipliers (bench_mult.py)."""

from rtl import simulate


def test_streams() -> None:
    simulate.run("wpr_common_tb", "common", "bench_common", extra=("tb/wpr_common_tb.sv",))


def test_multipliers() -> None:
    simulate.run("wpr_mult_tb", "common", "bench_mult", extra=("tb/wpr_mult_tb.sv",))
