# SPDX-License-Identifier: Apache-2.0
import sys

from wirepress.cli import main

sys.exit(main())
