# SPDX-License-Identifier: Apache-2.0
"""What the three trainings by torchrun have in common: text, hooks, the loop, plots."""
