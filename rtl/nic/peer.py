# SPDX-License-Identifier: Apache-2.0
"""The library on the other side of the wire, by its C door (build/dev), and what a host sends."""

from __future__ import annotations

import ctypes
import math
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LIBRARY = Path(__file__).resolve().parents[2] / "build" / "dev" / "pipeline" / "libwirepress.so"
BYTES, FLOAT32 = 0, 11
NEAREST = 1 << 5


def wave(drawn: random.Random, n_bytes: int) -> bytes:
    """float32, as far as they are whole."""
    phase, n_values = drawn.random(), n_bytes // 4
    values = (math.sin(phase + i / 40) for i in range(n_values))
    return struct.pack(f"<{n_values}f", *values) + bytes(n_bytes % 4)


def noise(drawn: random.Random, n_bytes: int) -> bytes:
    return drawn.randbytes(n_bytes)


def repeated(drawn: random.Random, n_bytes: int) -> bytes:
    """A byte, or seven where there is room for them, again and again."""
    return (drawn.randbytes(7 if n_bytes > 64 else 1) * n_bytes)[:n_bytes]


def not_finite(drawn: random.Random, n_bytes: int) -> bytes:
    """A wave with a NaN, an infinity, or a value that may come back as one."""
    word = struct.pack("<I", drawn.choice((0x7FC00000, 0xFF800000, 0x77800000)))
    at = 4 * drawn.randrange(n_bytes // 4)
    found = wave(drawn, n_bytes)
    return found[:at] + word + found[at + 4 :]


def tiny(drawn: random.Random, n_bytes: int) -> bytes:
    """Below 2^-98, with noise in the other bits."""
    words = (drawn.getrandbits(27) | 1 for _ in range(n_bytes // 4))
    return struct.pack(f"<{n_bytes // 4}I", *words) + bytes(n_bytes % 4)


def not_for_zfp(drawn: random.Random, n_bytes: int) -> bytes:
    return drawn.choice((not_finite, tiny))(drawn, n_bytes)


class Codec(NamedTuple):
    """One of wpr_nic_pkg, by its number."""

    recipe: str
    control: int  # bits 8 to 15 of the register
    other: str  # a recipe with another frame header of the same size
    small: Callable[[random.Random, int], bytes]  # payloads that the box codes
    large: Callable[[random.Random, int], bytes] = noise  # and stores
    reversible: bool = False  # the library may code so (zfp), which the box leaves to the host
    dtype: int = FLOAT32
    unit: int = 4  # bytes of a value
    engine: str = "cpu"  # which makes the codes that the box makes


def codec(number: int, m: int = 5) -> Codec:
    """m: of fre, whose codes of noise do not shrink with 23."""
    return {
        0: Codec(f"fre:m={m}", m | NEAREST, "fre:m=6", wave),
        4: Codec("zfp:rate=8", 8, "zfp:rate=9", wave, not_for_zfp, reversible=True),
        3: Codec("lz4:1", 0, "lz4:2", repeated, dtype=BYTES, unit=1, engine="rtl"),
    }[number]


class Peer:
    """Frames of UDP payloads: streamed, one block, no checksum (the datagram has one)."""

    def __init__(self, recipe: str, dtype: int = FLOAT32, engine: str = "cpu") -> None:
        self.library = ctypes.CDLL(os.environ.get("WPR_LIBRARY", str(LIBRARY)))
        self.library.wpr_error.restype = ctypes.c_char_p
        self.dtype = dtype
        self.writer, self.reader = self.context(recipe, engine), self.context(recipe, "cpu")
        self.header = self.stream("begin", dtype)

    def context(self, recipe: str, engine: str) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        assert self.library.wpr_create(ctypes.byref(made)) == 0
        options = {"recipe": recipe, "checksum": "off", "probe": "off", "engine": engine}
        for key, value in options.items():
            self.call("wpr_set", made, key.encode(), value.encode())
        return made

    def call(self, name: str, context: ctypes.c_void_p, *arguments: object) -> None:
        status = getattr(self.library, name)(context, *arguments)
        if status:
            raise ValueError(self.library.wpr_error(context).decode())

    def stream(self, step: str, *arguments: object) -> bytes:
        room, written = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t()
        self.call(f"wpr_stream_{step}", self.writer, *arguments, room, ctypes.c_size_t(len(room)),
                  ctypes.byref(written))  # fmt: skip
        return room.raw[: written.value]

    def compress(self, payload: bytes) -> bytes:
        begin = self.stream("begin", self.dtype)
        update = self.stream("update", payload, ctypes.c_size_t(len(payload)))
        return begin + update + self.stream("end")

    def decompress(self, frame: bytes) -> bytes:
        room, written = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t()
        self.call("wpr_decompress", self.reader, frame, ctypes.c_size_t(len(frame)), room,
                  ctypes.c_size_t(len(room)), ctypes.byref(written))  # fmt: skip
        return room.raw[: written.value]


def ones_sum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def udp_frame(payload: bytes, port: int, checksum: bool = True, flags: int = 0x4000) -> bytes:
    """Ethernet, IPv4, UDP, as a host's stack makes them; padded to 60 bytes."""
    source, target = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 7, flags, 64, 17, 0) + source + target
    ip = ip[:10] + struct.pack(">H", 0xFFFF - ones_sum(ip)) + ip[12:]
    udp = struct.pack(">HHHH", 4000, port, 8 + len(payload), 0)
    pseudo = source + target + struct.pack(">HH", 17, 8 + len(payload))
    check = (0xFFFF - ones_sum(pseudo + udp + payload) or 0xFFFF) if checksum else 0
    udp = udp[:6] + struct.pack(">H", check)
    frame = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp + payload
    return frame + bytes(max(0, 60 - len(frame)))


def payload_of(frame: bytes) -> bytes:
    """A datagram's payload, after all that a stack checks: lengths and both checksums."""
    assert frame[12:14] == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17
    ip_size, udp_size = struct.unpack(">H", frame[16:18])[0], struct.unpack(">H", frame[38:40])[0]
    assert ip_size + 14 == len(frame) and udp_size + 34 == len(frame)
    assert ones_sum(frame[14:34]) == 0xFFFF
    if frame[40:42] != b"\x00\x00":
        assert ones_sum(frame[26:34] + struct.pack(">HH", 17, udp_size) + frame[34:]) == 0xFFFF
    return frame[42:]
