# SPDX-License-Identifier: Apache-2.0
"""shuffle: byte transposition by element size."""

PARAMS = ((1, 64),)  # size
KEEPS_SIZE = True


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    size = params[0]
    n = len(data) // size
    out = bytearray(data)  # the tail is as it is
    for j in range(size):
        out[j : n * size : size] = data[j * n : (j + 1) * n]
    return bytes(out)
