# SPDX-License-Identifier: Apache-2.0
"""The library on the other side of the wire, by its C door (build/dev), and what a host sends."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "build" / "dev" / "pipeline" / "libwirepress.so"
FLOAT32 = 11


class Peer:
    """Frames of UDP payloads: streamed, one block, no checksum (the datagram has one)."""

    def __init__(self, recipe: str) -> None:
        self.library = ctypes.CDLL(os.environ.get("WPR_LIBRARY", str(LIBRARY)))
        self.library.wpr_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        assert self.library.wpr_create(ctypes.byref(self.context)) == 0
        options = {"recipe": recipe, "checksum": "off", "probe": "off", "engine": "cpu"}
        for key, value in options.items():
            self.call("wpr_set", key.encode(), value.encode())
        self.header = self.stream("begin", FLOAT32)

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(self.context, *arguments)
        if status:
            raise ValueError(self.library.wpr_error(self.context).decode())

    def stream(self, step: str, *arguments: object) -> bytes:
        room, written = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t()
        self.call(f"wpr_stream_{step}", *arguments, room, ctypes.c_size_t(len(room)),
                  ctypes.byref(written))  # fmt: skip
        return room.raw[: written.value]

    def compress(self, payload: bytes) -> bytes:
        begin = self.stream("begin", FLOAT32)
        update = self.stream("update", payload, ctypes.c_size_t(len(payload)))
        return begin + update + self.stream("end")

    def decompress(self, frame: bytes) -> bytes:
        room, written = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t()
        self.call("wpr_decompress", frame, ctypes.c_size_t(len(frame)), room,
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
