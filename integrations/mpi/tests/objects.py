# SPDX-License-Identifier: Apache-2.0
"""mpi4py: pickled objects (Mprobe and Mrecv), arrays, and collectives of both kinds."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size


def check(good: bool) -> None:
    if not good:
        comm.Abort(1)
        raise AssertionError


for i in range(6):
    there = {"from": rank, "round": i, "list": list(range(20000 * i)), "text": "x" * 100000}
    request = comm.isend(there, right, tag=i)
    back = comm.recv(source=left if i % 2 else MPI.ANY_SOURCE, tag=i)
    request.wait()
    check(back == there | {"from": left})
back = comm.sendrecv(["y" * 200000, rank], right, source=left)
check(back == ["y" * 200000, left])
check(comm.bcast("z" * 300000 if rank == 0 else None) == "z" * 300000)
check([len(part) for part in comm.allgather("a" * 100000)] == [100000] * size)

array = np.arange(300000, dtype=np.float32) // 50 + rank
into = np.empty_like(array)
requests = [comm.Irecv(into, left), comm.Isend(array, right)]
MPI.Request.Waitall(requests)
check(np.array_equal(into, array - rank + left))
status = MPI.Status()
comm.Sendrecv(array, right, recvbuf=into, source=left, status=status)
check(status.Get_count(MPI.FLOAT) == array.size and status.Get_elements(MPI.FLOAT) == array.size)
comm.Allreduce(array, into)
check(np.array_equal(into, (np.arange(300000) // 50) * size + sum(range(size))))
comm.Allreduce(MPI.IN_PLACE, array, MPI.MAX)
check(np.array_equal(array, np.arange(300000, dtype=np.float32) // 50 + size - 1))
comm.Bcast(array, root=size - 1)
gathered = np.empty((size, 50000), np.int64)
comm.Allgather(np.arange(50000) // 9 + rank, gathered)
check(all(np.array_equal(gathered[r], np.arange(50000) // 9 + r) for r in range(size)))
part = np.empty(50000, np.int64)
comm.Reduce_scatter_block(gathered, part)
check(np.array_equal(part, (np.arange(50000) // 9 + rank) * size))
matrix = np.arange(400 * 500, dtype=np.float64).reshape(400, 500)
column = MPI.DOUBLE.Create_vector(400, 250, 500).Commit()
other = np.zeros_like(matrix)
comm.Sendrecv([matrix, 1, column], right, recvbuf=[other, 1, column], source=left)
check(np.array_equal(other[:, :250], matrix[:, :250]) and not other[:, 250:].any())
if rank == 0:
    print("ok mpi4py")
