# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need hosts: network namespaces with links of real rates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import hosts as hosts_module


@pytest.fixture(scope="session", autouse=True)
def _can_have_hosts() -> None:
    if reason := hosts_module.why_not():
        pytest.skip(f"no hosts in network namespaces: {reason}")
