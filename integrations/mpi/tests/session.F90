! SPDX-License-Identifier: Apache-2.0
! session.c in small for mpi_f08, whose functions that make communicators call no C function.
program sessions
  use mpi_f08
  implicit none
  integer, parameter :: n = 300000
  type(MPI_Session) :: session
  type(MPI_Group) :: group
  type(MPI_Comm) :: comms(3)
  type(MPI_Request) :: requests(2)
  integer, allocatable :: sent(:), got(:)
  integer :: rank, i
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
  call MPI_Group_from_session_pset(session, "mpi://WORLD", group)
  call MPI_Comm_create_from_group(group, "session.F90", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comms(1))
  call MPI_Comm_split(comms(1), 0, rank, comms(2))
  call MPI_Cart_create(comms(1), 1, [2], [.true.], .false., comms(3))
  allocate (sent(n), got(n))
  sent = rank
  do i = 1, 3
    got = -1
    call MPI_Irecv(got, n, MPI_INTEGER, 1 - rank, i, comms(i), requests(1))
    call MPI_Isend(sent, n, MPI_INTEGER, 1 - rank, i, comms(i), requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    if (any(got /= 1 - rank)) call MPI_Abort(MPI_COMM_WORLD, 1)
  end do
  do i = 3, 1, -1
    call MPI_Comm_free(comms(i))
  end do
  call MPI_Group_free(group)
  call MPI_Session_finalize(session)
  if (rank == 0) print '(a)', "ok session"
  call MPI_Finalize()
end program
