# SPDX-License-Identifier: Apache-2.0
"""PyTorch: gradients and other tensors, smaller on the wire."""
