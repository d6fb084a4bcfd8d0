# SPDX-License-Identifier: Apache-2.0
"""bf16: the upper halves of float32 values."""

PARAMS = ((0, 1), (0, 1))  # round, saturate
TYPES = ("float32",)


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    if len(data) != 2 * n + tail:
        raise ValueError(f"bf16: {len(data)} bytes for {raw_size}")
    words = (b"\0\0" + data[2 * i : 2 * i + 2] for i in range(n))
    return b"".join(words) + data[2 * n :]
