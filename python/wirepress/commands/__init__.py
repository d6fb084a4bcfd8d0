# SPDX-License-Identifier: Apache-2.0
"""The command `wirepress`, but for `run` (launch/), `report` and what stands in sim/."""
