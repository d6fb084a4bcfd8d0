# SPDX-License-Identifier: Apache-2.0
"""Modules of tests are named after their folders here, whether or not what they test can be loaded.

An `__init__.py` in these folders becomes one of `wirepress`, such as `wirepress.torch`, and imports
the host, such as PyTorch. pytest would run it to name the modules beside it. Where the host is not
installed pytest would then take the folder for the host itself: `import torch` would find it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

for _init in Path(__file__).parent.glob("*/__init__.py"):
    _package = ModuleType(f"integrations.{_init.parent.name}")
    _package.__path__ = [str(_init.parent)]
    sys.modules.setdefault(_package.__name__, _package)
