# SPDX-License-Identifier: Apache-2.0
"""Modules of tests are named after their folders here, whether or not what they test can be loaded.

An `__init__.py` in these folders becomes one of `wirepress`, such as `wirepress.torch`, and imports
the host, such as PyTorch. pytest would run it to name the modules beside it. Where the host is not
installed pytest would then take the folder for the host itself: `import torch` would find it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

for _init in Path(__file__).parent.glob("*/__init__.py"):
    _name = f"integrations.{_init.parent.name}"
    _spec = importlib.util.spec_from_file_location(_name, _init)
    sys.modules.setdefault(_name, importlib.util.module_from_spec(_spec))  # and is never run
