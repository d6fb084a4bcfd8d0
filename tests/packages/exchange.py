# SPDX-License-Identifier: Apache-2.0
"""Rank 0 sends large messages to rank 1, which checks every value."""

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
assert world.size == 2, world.size
values = numpy.arange(1 << 20, dtype=numpy.float32) // 64
received = numpy.empty_like(values)
for time in range(8):
    if world.rank == 0:
        world.Send(values + numpy.float32(time), dest=1, tag=time)
    else:
        world.Recv(received, source=0, tag=time)
        assert (received == values + numpy.float32(time)).all()
