# SPDX-License-Identifier: Apache-2.0
"""XXH3, 64 bits, seeded, in plain Python: from the specification of xxHash 0.8.

About 1 MB/s: for checking the specification, not for work.
"""

from __future__ import annotations

import struct

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

# The default secret of the XXH3 specification.
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & MASK64) ^ (product >> 64)


def _rotl(h: int, n: int) -> int:
    return (h << n | h >> (64 - n)) & MASK64


def _avalanche(h: int) -> int:
    h ^= h >> 37
    h = h * MX1 & MASK64
    return h ^ h >> 32


def _avalanche64(h: int) -> int:
    h ^= h >> 33
    h = h * P64_2 & MASK64
    h ^= h >> 29
    h = h * P64_3 & MASK64
    return h ^ h >> 32


def _short(data: bytes, seed: int) -> int:
    n = len(data)
    if n > 8:
        lo = _u64(data, 0) ^ ((_u64(SECRET, 24) ^ _u64(SECRET, 32)) + seed & MASK64)
        hi = _u64(data, n - 8) ^ ((_u64(SECRET, 40) ^ _u64(SECRET, 48)) - seed & MASK64)
        swapped = int.from_bytes(lo.to_bytes(8, "little"), "big")
        return _avalanche(n + swapped + hi + _fold(lo, hi) & MASK64)
    if n >= 4:
        seed ^= int.from_bytes((seed & MASK32).to_bytes(4, "little"), "big") << 32
        h = _u32(data, n - 4) + (_u32(data, 0) << 32)
        h ^= (_u64(SECRET, 8) ^ _u64(SECRET, 16)) - seed & MASK64
        h ^= _rotl(h, 49) ^ _rotl(h, 24)
        h = h * MX2 & MASK64
        h ^= (h >> 35) + n
        h = h * MX2 & MASK64
        return h ^ h >> 28
    if n:
        word = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return _avalanche64(word ^ ((_u32(SECRET, 0) ^ _u32(SECRET, 4)) + seed & MASK64))
    return _avalanche64(seed ^ _u64(SECRET, 56) ^ _u64(SECRET, 64))


def _mix(data: bytes, at: int, secret_at: int, seed: int) -> int:
    lo = _u64(data, at) ^ (_u64(SECRET, secret_at) + seed & MASK64)
    hi = _u64(data, at + 8) ^ (_u64(SECRET, secret_at + 8) - seed & MASK64)
    return _fold(lo, hi)


def _middle(data: bytes, seed: int) -> int:
    n = len(data)
    acc = n * P64_1
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            acc += _mix(data, 16 * i, 32 * i, seed)
            acc += _mix(data, n - 16 * (i + 1), 32 * i + 16, seed)
        return _avalanche(acc & MASK64)
    for i in range(8):
        acc += _mix(data, 16 * i, 16 * i, seed)
    acc = _avalanche(acc & MASK64)
    for i in range(8, n // 16):
        acc += _mix(data, 16 * i, 16 * (i - 8) + 3, seed)
    return _avalanche(acc + _mix(data, n - 16, 136 - 17, seed) & MASK64)


def _seeded_secret(seed: int) -> bytes:
    parts = []
    for at in range(0, 192, 16):
        parts.append((_u64(SECRET, at) + seed & MASK64).to_bytes(8, "little"))
        parts.append((_u64(SECRET, at + 8) - seed & MASK64).to_bytes(8, "little"))
    return b"".join(parts)


def _accumulate(acc: list[int], data: bytes, at: int, secret: bytes, secret_at: int) -> None:
    words = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", secret, secret_at)
    for i in range(8):
        key = words[i] ^ keys[i]
        acc[i ^ 1] += words[i]
        acc[i] = acc[i] + (key & MASK32) * (key >> 32)
    for i in range(8):
        acc[i] &= MASK64


def _long(data: bytes, seed: int) -> int:
    n, secret = len(data), _seeded_secret(seed)
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    last_key = struct.unpack_from("<8Q", secret, 128)
    for stripe in range((n - 1) // 64):
        _accumulate(acc, data, 64 * stripe, secret, 8 * (stripe % 16))
        if stripe % 16 == 15:
            acc = [((a ^ a >> 47) ^ k) * P32_1 & MASK64 for a, k in zip(acc, last_key, strict=True)]
    _accumulate(acc, data, n - 64, secret, 192 - 64 - 7)
    result = n * P64_1
    for i in range(4):
        result += _fold(
            acc[2 * i] ^ _u64(secret, 11 + 16 * i), acc[2 * i + 1] ^ _u64(secret, 19 + 16 * i)
        )
    return _avalanche(result & MASK64)


def xxh3_64(data: bytes, seed: int = 0) -> int:
    """XXH3_64bits_withSeed(data, seed)."""
    if len(data) <= 16:
        return _short(data, seed)
    return _middle(data, seed) if len(data) <= 240 else _long(data, seed)
