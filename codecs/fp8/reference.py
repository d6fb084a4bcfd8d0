# SPDX-License-Identifier: Apache-2.0
"""fp8: 8-bit floats with a power of two for each 4096."""

import struct

PARAMS = ((0, 1),)  # format
TYPES = ("float32",)
CHUNK = 4096


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    if len(data) != n + -(-n // CHUNK) + tail:
        raise ValueError(f"fp8: {len(data)} bytes for {raw_size}")
    out = []
    for first in range(0, n, CHUNK):
        at = first + first // CHUNK
        codes = data[at + 1 : at + 1 + min(CHUNK, n - first)]
        out.append(decode_chunk(data[at], codes, e5m2=params[0] == 1))
    return b"".join(out) + data[len(data) - tail :]


def decode_chunk(scale: int, codes: bytes, *, e5m2: bool) -> bytes:
    if scale == 255:
        if any(codes):
            raise ValueError("fp8: codes in a chunk of NaNs")
        return struct.pack("<I", 0x7FC00000) * len(codes)
    fraction, bias, top, most = (2, 15, 0x7B, 112) if e5m2 else (3, 7, 0x7E, 119)
    k = scale - 127
    if not -108 <= k <= most:
        raise ValueError(f"fp8: scale {k}")
    values = []
    for code in codes:
        e, f = (code & 127) >> fraction, code & (1 << fraction) - 1
        if code & 127 > top:
            raise ValueError(f"fp8: code {code:02x}")
        size = (f + (1 << fraction if e else 0)) * 2.0 ** (max(e, 1) - bias - fraction + k)
        values.append(-size if code & 128 else size)
    return struct.pack(f"<{len(values)}f", *values)
