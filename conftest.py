# SPDX-License-Identifier: Apache-2.0
"""Files with the most slow tests begin: with two files at a time, none is left alone at the end."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])  # which keeps the order within a file
