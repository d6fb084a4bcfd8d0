# SPDX-License-Identifier: Apache-2.0
"""lz4: one raw LZ4 block."""

PARAMS = ((-65, 12),)  # level
NEEDS_SIZE = False


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    out = bytearray()
    at = 0

    def take(n: int) -> bytes:
        nonlocal at
        if at + n > len(data):
            raise ValueError(f"lz4: ends at byte {len(data)}, inside a sequence")
        at += n
        return data[at - n : at]

    def length(nibble: int) -> int:
        if nibble < 15:
            return nibble
        while (byte := take(1)[0]) == 255:
            nibble += 255
        return nibble + byte

    while True:
        token = take(1)[0]
        out += take(length(token >> 4))
        if at == len(data):
            break
        offset = int.from_bytes(take(2), "little")
        if not 1 <= offset <= len(out):
            raise ValueError(f"lz4: offset {offset} at {len(out)} bytes of output")
        for _ in range(length(token & 15) + 4):
            out.append(out[-offset])
    return bytes(out)
