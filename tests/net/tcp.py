# SPDX-License-Identifier: Apache-2.0
"""One raw TCP stream: tcp.py recv ADDRESS PORT | tcp.py send ADDRESS PORT SECONDS.

The receiver prints Gbit/s of payload, counted from its first byte.
"""

import socket
import sys
import time


def receive(address: str, port: int) -> None:
    with socket.create_server((address, port)) as server:
        server.settimeout(20)
        connection, _ = server.accept()
    connection.settimeout(20)
    buffer = bytearray(1 << 20)
    n = connection.recv_into(buffer)
    began, total = time.monotonic(), 0
    while n := connection.recv_into(buffer):
        total += n
    print(total * 8 / (time.monotonic() - began) / 1e9)


def send(address: str, port: int, seconds: float) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            connection = socket.create_connection((address, port), 1)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    end, data = time.monotonic() + seconds, bytes(1 << 18)
    while time.monotonic() < end:
        connection.sendall(data)
    connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "recv":
        receive(sys.argv[2], int(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
