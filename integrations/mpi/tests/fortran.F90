! SPDX-License-Identifier: Apache-2.0
! Every kind of call from Fortran. Compiled three times: with mpif.h, and with -DUSE_MPI and
! -DUSE_MPI_F08. Ranks 0 and 1 talk; others take part in collectives. Passes with any MPI, with and
! without the interposer.
#if defined(USE_MPI_F08)
#define COMM type(MPI_Comm)
#define OPERATION type(MPI_Op)
#define DATATYPE type(MPI_Datatype)
#define REQUEST type(MPI_Request)
#define MESSAGE type(MPI_Message)
#define STATUS(s) type(MPI_Status) :: s
#define STATUSES(s, n) type(MPI_Status) :: s(n)
#define FIELD(s, f) s%f
#define FIELD_OF(s, f, i) s(i)%f
#define STATUS_OF(s, i) s(i)
! Optional there: half of the calls leave it out.
#define IERR
#else
#define COMM integer
#define OPERATION integer
#define DATATYPE integer
#define REQUEST integer
#define MESSAGE integer
#define STATUS(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define FIELD(s, f) s(f)
#define FIELD_OF(s, f, i) s(f, i)
#define STATUS_OF(s, i) s(:, i)
#define IERR , ierr
#endif

module calls
#if defined(USE_MPI_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#if !defined(USE_MPI_F08) && !defined(USE_MPI)
  include 'mpif.h'
#endif
  integer, parameter :: n = 5000, n_sends = 12, n_receives = 9
  integer :: rank, n_ranks, ierr
  logical :: derived = .false.
  integer, asynchronous, save :: out(4 * n), in(4 * n)
  double precision, asynchronous, save :: outs(4 * n), ins(4 * n)

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    print '(a, i0, 2a)', 'rank ', rank, ' fails: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1 IERR)
  end subroutine

  subroutine passed(what)
    character(*), intent(in) :: what
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(2a)', 'ok ', what
  end subroutine

  ! Element i of message `seed`: runs, which compress.
  elemental integer function element(seed, i)
    integer, intent(in) :: seed, i
    element = seed * 31 + i / 97
  end function

  subroutine fill(data, count, seed)
    integer, intent(out) :: data(*)
    integer, intent(in) :: count, seed
    integer :: i
    do i = 1, count
      data(i) = element(seed, i)
    end do
  end subroutine

  logical function filled(data, count, seed)
    integer, intent(in) :: data(*), count, seed
    integer :: i
    filled = .true.
    do i = 1, count
      filled = filled .and. data(i) == element(seed, i)
    end do
  end function

  ! ---- point-to-point: every send with every receive ----

  subroutine send_as(how, count, to, tag)
    integer, intent(in) :: how, count, to, tag
    REQUEST :: r
    r = MPI_REQUEST_NULL
    select case (how)
    case (1); call MPI_Send(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, ierr)
    case (2); call MPI_Ssend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD IERR)
    case (3); call MPI_Bsend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, ierr)
    case (4); call MPI_Rsend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD IERR)
    case (5); call MPI_Isend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r, ierr)
    case (6); call MPI_Issend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r IERR)
    case (7); call MPI_Ibsend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r, ierr)
    case (8); call MPI_Irsend(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r IERR)
    case (9); call MPI_Send_init(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r, ierr)
    case (10); call MPI_Bsend_init(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r IERR)
    case (11); call MPI_Ssend_init(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r, ierr)
    case (12); call MPI_Rsend_init(out, count, MPI_INTEGER, to, tag, MPI_COMM_WORLD, r IERR)
    end select
    if (how < 5) return
    call check(r /= MPI_REQUEST_NULL, 'a send makes a request')
    if (how >= 9) call MPI_Start(r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE IERR)
    if (how >= 9) call MPI_Request_free(r, ierr)
    call check(r == MPI_REQUEST_NULL, 'a sent request is gone')
  end subroutine

  subroutine receive_as(how, capacity, from, tag, s)
    integer, intent(in) :: how, capacity, from, tag
    STATUS(s)
    REQUEST :: r
    MESSAGE :: m
    logical :: flag
    integer :: dummy(1)
    r = MPI_REQUEST_NULL
    m = MPI_MESSAGE_NULL
    flag = .false.
    select case (how)
    case (1)
      call MPI_Recv(in, capacity, MPI_INTEGER, from, tag, MPI_COMM_WORLD, s, ierr)
    case (2)
      call MPI_Irecv(in, capacity, MPI_INTEGER, from, tag, MPI_COMM_WORLD, r, ierr)
    case (3)
      call MPI_Mprobe(from, tag, MPI_COMM_WORLD, m, s, ierr)
      call check(m /= MPI_MESSAGE_NULL, 'Mprobe gives a message')
      call MPI_Mrecv(in, capacity, MPI_INTEGER, m, s IERR)
    case (4)
      call MPI_Mprobe(from, tag, MPI_COMM_WORLD, m, MPI_STATUS_IGNORE IERR)
      call MPI_Imrecv(in, capacity, MPI_INTEGER, m, r, ierr)
    case (5)
      call MPI_Recv_init(in, capacity, MPI_INTEGER, from, tag, MPI_COMM_WORLD, r, ierr)
      call MPI_Start(r IERR)
    case (6)
      call MPI_Sendrecv(dummy, 0, MPI_INTEGER, MPI_PROC_NULL, 0, in, capacity, MPI_INTEGER, from, &
                        tag, MPI_COMM_WORLD, s, ierr)
    case (7)
      call MPI_Probe(from, tag, MPI_COMM_WORLD, s, ierr)
      call MPI_Recv(in, capacity, MPI_INTEGER, FIELD(s, MPI_SOURCE), FIELD(s, MPI_TAG), &
                    MPI_COMM_WORLD, s IERR)
    case (8)
      do while (.not. flag)
        call MPI_Iprobe(from, tag, MPI_COMM_WORLD, flag, s, ierr)
      end do
      call check(flag .eqv. .true., 'Iprobe gives .true.')
      call MPI_Irecv(in, capacity, MPI_INTEGER, FIELD(s, MPI_SOURCE), FIELD(s, MPI_TAG), &
                     MPI_COMM_WORLD, r IERR)
    case (9)
      do while (.not. flag)
        call MPI_Improbe(from, tag, MPI_COMM_WORLD, flag, m, s IERR)
      end do
      call MPI_Mrecv(in, capacity, MPI_INTEGER, m, s, ierr)
    end select
    call check(m == MPI_MESSAGE_NULL, 'a received message is gone')
    if (r /= MPI_REQUEST_NULL) then
      flag = .false.
      do while (.not. flag)
        call MPI_Test(r, flag, s IERR)
      end do
      if (how == 5) call MPI_Request_free(r, ierr)
      call check(r == MPI_REQUEST_NULL, 'a received request is gone')
    end if
  end subroutine

  subroutine every_send_and_receive
    integer :: how, receive, tag, count, from
    integer, save :: room(40 * n)
    REQUEST :: r
    STATUS(s)
    call MPI_Buffer_attach(room, 160 * n, ierr)
    do how = 1, n_sends
      do receive = 1, n_receives
        tag = 100 * how + receive
        if (rank == 0) then
          call fill(out, n, tag)
          ! A ready send needs its receive posted.
          if (how == 4 .or. how == 8 .or. how == 12) then
            call MPI_Recv(in, 0, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
          end if
          call send_as(how, n, 1, tag)
        else if (rank == 1) then
          in = -1
          if (how == 4 .or. how == 8 .or. how == 12) then
            call MPI_Irecv(in, 2 * n, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, r, ierr)
            call MPI_Send(out, 0, MPI_INTEGER, 0, 1, MPI_COMM_WORLD IERR)
            call MPI_Wait(r, s, ierr)
          else
            from = merge(MPI_ANY_SOURCE, 0, mod(how + receive, 2) == 0)
            call receive_as(receive, 2 * n, from, merge(MPI_ANY_TAG, tag, mod(how, 2) == 0), s)
          end if
          call MPI_Get_count(s, MPI_INTEGER, count, ierr)
          call check(count == n, 'count')
          call check(FIELD(s, MPI_SOURCE) == 0 .and. FIELD(s, MPI_TAG) == tag, 'source and tag')
          call check(filled(in, n, tag), 'data')
          call check(in(n + 1) == -1, 'what is behind the data')
        end if
      end do
    end do
    call MPI_Buffer_detach_all
    call passed('sends and receives')
  end subroutine

  subroutine MPI_Buffer_detach_all
#if defined(USE_MPI_F08)
    use, intrinsic :: iso_c_binding, only : c_ptr
    type(c_ptr) :: buffer
#else
    integer :: buffer(4)
#endif
    integer :: bytes
    call MPI_Buffer_detach(buffer, bytes, ierr)
    call check(bytes == 160 * n, 'size of the buffer')
  end subroutine

  subroutine exchanges
    integer :: peer, count
    STATUS(s)
    if (rank < 2) then
      peer = 1 - rank
      call fill(out, n, rank)
      call MPI_Sendrecv(out, n, MPI_INTEGER, peer, 1, in, 2 * n, MPI_INTEGER, peer, 1, &
                        MPI_COMM_WORLD, s, ierr)
      call MPI_Get_count(s, MPI_INTEGER, count, ierr)
      call check(filled(in, n, peer) .and. count == n, 'Sendrecv')
      call MPI_Sendrecv_replace(out, n, MPI_INTEGER, peer, 2, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, s &
                                IERR)
      call check(filled(out, n, peer) .and. FIELD(s, MPI_SOURCE) == peer, 'Sendrecv_replace')
      call MPI_Sendrecv(out, n, MPI_INTEGER, peer, 1, in, n, MPI_INTEGER, peer, MPI_ANY_TAG, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call check(filled(in, n, rank), 'Sendrecv without status')
    end if
    call passed('exchanges')
  end subroutine

  ! ---- completion ----

  ! Requests 1, 2 and 4 of `r` are receives of messages with those seeds and tags; 3 is none.
  subroutine post(r)
    REQUEST :: r(4)
    integer :: i
    in = -1
    r(3) = MPI_REQUEST_NULL
    do i = 1, 4
      if (i == 3) cycle
      call MPI_Irecv(in((i - 1) * n + 1), n, MPI_INTEGER, 0, i, MPI_COMM_WORLD, r(i), ierr)
    end do
  end subroutine

  logical function arrived(i)
    integer, intent(in) :: i
    arrived = filled(in((i - 1) * n + 1), n, i)
  end function

  ! MPICH 4.0 begins with 0 in mpi_f08, and adds 1 to MPI_UNDEFINED elsewhere.
  integer function index_of(index, expected)
    integer, intent(in) :: index, expected
    index_of = index
#if defined(MPICH)
    if (abs(index - expected) == 1) index_of = expected
#endif
  end function

  subroutine send_in_order(order)
    integer, intent(in) :: order(:)
    integer :: i
    do i = 1, size(order)
      call fill(out, n, order(i))
      call MPI_Send(out, n, MPI_INTEGER, 1, order(i), MPI_COMM_WORLD, ierr)
    end do
  end subroutine

  subroutine completions
    REQUEST :: r(4)
    STATUS(s)
    STATUSES(all, 4)
    integer :: round, i, k, count, indices(4), n_done, total
    logical :: flag
    do round = 1, 8
      call MPI_Barrier(MPI_COMM_WORLD IERR)
      if (rank == 0) call send_in_order([4, 1, 2])
      if (rank /= 1) cycle
      call post(r)
      total = 0
      select case (round)
      case (1)
        call MPI_Waitall(4, r, all, ierr)
        do i = 1, 4
          call MPI_Get_count(STATUS_OF(all, i), MPI_INTEGER, count, ierr)
          call check(count == merge(0, n, i == 3), 'count of Waitall')
          if (i /= 3) call check(FIELD_OF(all, MPI_TAG, i) == i, 'tag of Waitall')
        end do
        total = 3
      case (2)
        call MPI_Waitall(4, r, MPI_STATUSES_IGNORE IERR)
        total = 3
      case (3)
        flag = .false.
        do while (.not. flag)
          call MPI_Testall(4, r, flag, all, ierr)
        end do
        call check(FIELD_OF(all, MPI_TAG, 4) == 4, 'tag of Testall')
        total = 3
      case (4)
        do while (total < 3)
          call MPI_Waitany(4, r, k, s, ierr)
          k = index_of(k, FIELD(s, MPI_TAG))
          call check(FIELD(s, MPI_TAG) == k .and. arrived(k), 'Waitany')
          call check(r(k) == MPI_REQUEST_NULL, 'request of Waitany')
          total = total + 1
        end do
        call MPI_Waitany(4, r, k, MPI_STATUS_IGNORE IERR)
        call check(index_of(k, MPI_UNDEFINED) == MPI_UNDEFINED, 'Waitany of nothing')
      case (5)
        do while (total < 3)
          call MPI_Testany(4, r, k, flag, s, ierr)
          if (.not. flag) k = index_of(k, MPI_UNDEFINED)
          call check(flag .or. k == MPI_UNDEFINED, 'Testany without a result')
          if (.not. flag) cycle
          k = index_of(k, FIELD(s, MPI_TAG))
          call check(FIELD(s, MPI_TAG) == k .and. arrived(k), 'Testany')
          total = total + 1
        end do
        call MPI_Testany(4, r, k, flag, MPI_STATUS_IGNORE IERR)
        k = index_of(k, MPI_UNDEFINED)
        call check(flag .and. k == MPI_UNDEFINED, 'Testany of nothing')
      case (6, 7)
        do while (total < 3)
          if (round == 6) call MPI_Waitsome(4, r, n_done, indices, all, ierr)
          if (round == 7) call MPI_Testsome(4, r, n_done, indices, all IERR)
          do i = 1, n_done
            k = index_of(indices(i), FIELD_OF(all, MPI_TAG, i))
            call check(FIELD_OF(all, MPI_TAG, i) == k .and. arrived(k), 'Waitsome and Testsome')
            call check(r(k) == MPI_REQUEST_NULL, 'requests of Waitsome and Testsome')
          end do
          total = total + n_done
        end do
        if (round == 6) call MPI_Testsome(4, r, n_done, indices, MPI_STATUSES_IGNORE, ierr)
        if (round == 7) call MPI_Waitsome(4, r, n_done, indices, MPI_STATUSES_IGNORE IERR)
        call check(n_done == MPI_UNDEFINED, 'Waitsome and Testsome of nothing')
      case (8)
        do i = 1, 4
          flag = i == 3
          do while (.not. flag)
            call MPI_Request_get_status(r(i), flag, s, ierr)
          end do
          if (i == 3) cycle
          call check(r(i) /= MPI_REQUEST_NULL .and. arrived(i), 'Request_get_status')
          call check(FIELD(s, MPI_TAG) == i, 'tag of Request_get_status')
          call MPI_Wait(r(i), s, ierr)
          call check(FIELD(s, MPI_TAG) == i, 'tag of the Wait behind it')
          total = total + 1
        end do
      end select
      call check(total == 3 .and. arrived(1) .and. arrived(2) .and. arrived(4), 'data')
      do i = 1, 4
        call check(r(i) == MPI_REQUEST_NULL, 'requests')
      end do
    end do
    call passed('completions')
  end subroutine

  subroutine persistent
    REQUEST :: r(2)
    STATUSES(s, 2)
    integer :: round, i
    if (rank == 0) then
      call MPI_Send_init(out, n, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, r(1), ierr)
      call MPI_Send_init(out(n + 1), n, MPI_INTEGER, 1, 2, MPI_COMM_WORLD, r(2) IERR)
    else if (rank == 1) then
      call MPI_Recv_init(in, n, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, r(1), ierr)
      call MPI_Recv_init(in(n + 1), n, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, r(2) IERR)
    end if
    do round = 1, 3
      if (rank > 1) exit
      if (rank == 0) then
        call fill(out, n, round)
        call fill(out(n + 1), n, 10 + round)
      end if
      call MPI_Startall(2, r, ierr)
      call MPI_Waitall(2, r, s, ierr)
      if (rank == 1) then
        call check(filled(in, n, round) .and. filled(in(n + 1), n, 10 + round), 'Startall')
        call check(FIELD_OF(s, MPI_SOURCE, 2) == 0, 'status of a persistent request')
      end if
      do i = 1, 2
        call check(r(i) /= MPI_REQUEST_NULL, 'a persistent request stays')
      end do
    end do
    if (rank < 2) then
      call MPI_Request_free(r(1), ierr)
      call MPI_Request_free(r(2) IERR)
    end if
    call passed('persistent')
  end subroutine

  subroutine freed_and_cancelled
    REQUEST :: r
    STATUS(s)
    logical :: flag
    if (rank == 0) then
      call fill(out, n, 5)
      call MPI_Isend(out, n, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, r, ierr)
      call MPI_Request_free(r, ierr)
      call check(r == MPI_REQUEST_NULL, 'Request_free')
      call MPI_Recv(in, 0, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    else if (rank == 1) then
      call MPI_Irecv(in, n, MPI_INTEGER, 0, 77, MPI_COMM_WORLD, r, ierr)
      call MPI_Cancel(r, ierr)
      call MPI_Wait(r, s, ierr)
      call MPI_Test_cancelled(s, flag, ierr)
      call check(flag, 'Cancel')
      call MPI_Recv(in, n, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, s, ierr)
      call check(filled(in, n, 5), 'a send whose request was freed')
      call MPI_Test_cancelled(s, flag IERR)
      call check(.not. flag, 'Test_cancelled')
      call MPI_Send(out, 0, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, ierr)
    end if
    call passed('freed and cancelled')
  end subroutine

  subroutine errors
    STATUS(s)
    REQUEST :: r
    integer :: class, code
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    if (rank == 0) then
      call fill(out, n, 1)
      call MPI_Send(out, n, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierr)
      call MPI_Send(out, n, MPI_INTEGER, 1, 2, MPI_COMM_WORLD, ierr)
      call check(ierr == MPI_SUCCESS, 'a send whose receive fails')
      call MPI_Isend(out, -1, MPI_INTEGER, 1, 2, MPI_COMM_WORLD, r, code)
      call MPI_Error_class(code, class, ierr)
      call check(class == MPI_ERR_COUNT, 'a negative count')
    else if (rank == 1) then
      call MPI_Recv(in, n - 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, s, code)
      call MPI_Error_class(code, class, ierr)
      call check(class == MPI_ERR_TRUNCATE, 'Recv of what is too large')
      call MPI_Irecv(in, n - 1, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, r, ierr)
      call MPI_Wait(r, s, code)
      call MPI_Error_class(code, class, ierr)
      call check(class == MPI_ERR_TRUNCATE, 'Wait for what is too large')
    end if
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
    call passed('errors')
  end subroutine

  ! ---- data types ----

  subroutine data_types
    double precision, asynchronous, save :: matrix(100, 80), copy(100, 80)
    DATATYPE :: row, rows, column, block, scattered
    STATUS(s)
    integer :: i, j, count
    integer(kind=MPI_ADDRESS_KIND) :: places(2), width
    call MPI_Type_vector(80, 1, 100, MPI_DOUBLE_PRECISION, row, ierr)
    width = 8
    call MPI_Type_create_resized(row, 0_MPI_ADDRESS_KIND, width, rows, ierr)
    call MPI_Type_contiguous(100, MPI_DOUBLE_PRECISION, column, ierr)
    call MPI_Type_create_subarray(2, [100, 80], [60, 50], [20, 10], MPI_ORDER_FORTRAN, &
                                  MPI_DOUBLE_PRECISION, block, ierr)
    call MPI_Get_address(outs, places(1), ierr)
    call MPI_Get_address(matrix, places(2), ierr)
    if (rank == 1) call MPI_Get_address(ins, places(1), ierr)
    if (rank == 1) call MPI_Get_address(copy, places(2), ierr)
    call MPI_Type_create_struct(2, [1000, 2000], places, &
                                [MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION], scattered, ierr)
    call MPI_Type_commit(rows, ierr)
    call MPI_Type_commit(column, ierr)
    call MPI_Type_commit(block, ierr)
    call MPI_Type_commit(scattered, ierr)
    matrix = reshape([((dble(i + j / 7), i = 1, 100), j = 1, 80)], [100, 80])
    copy = 0
    outs = 1.5d0
    ins = 0
    if (rank == 0) then
      call MPI_Send(matrix, 90, rows, 1, 1, MPI_COMM_WORLD, ierr)
      call MPI_Send(matrix(1, 3), 70, column, 1, 2, MPI_COMM_WORLD, ierr)
      call MPI_Send(matrix, 1, block, 1, 3, MPI_COMM_WORLD IERR)
      call MPI_Send(MPI_BOTTOM, 1, scattered, 1, 4, MPI_COMM_WORLD, ierr)
    else if (rank == 1) then
      call MPI_Recv(copy, 100, rows, 0, 1, MPI_COMM_WORLD, s, ierr)
      call MPI_Get_count(s, rows, count, ierr)
      call check(count == 90, 'count of rows')
      call check(all(copy(:90, :) == matrix(:90, :)) .and. all(copy(91:, :) == 0), 'rows')
      copy = 0
      call MPI_Recv(copy(1, 3), 70, column, 0, 2, MPI_COMM_WORLD, s, ierr)
      call MPI_Get_elements(s, column, count, ierr)
      call check(count == 7000 .and. all(copy(:, 3:72) == matrix(:, 3:72)), 'columns')
      copy = 0
      call MPI_Recv(copy, 1, block, 0, 3, MPI_COMM_WORLD, s, ierr)
      call check(all(copy(21:80, 11:60) == matrix(21:80, 11:60)), 'block')
      call check(count_of_zeros(copy) == 8000 - 3000, 'around the block')
      copy = 0
      call MPI_Recv(MPI_BOTTOM, 1, scattered, 0, 4, MPI_COMM_WORLD, s, ierr)
      call check(all(ins(:1000) == 1.5d0) .and. ins(1001) == 0, 'MPI_BOTTOM, first')
      call check(all(copy(:, :20) == matrix(:, :20)) .and. copy(1, 21) == 0, 'MPI_BOTTOM, second')
    end if
    call MPI_Type_free(row, ierr)
    call MPI_Type_free(rows, ierr)
    call MPI_Type_free(column, ierr)
    call MPI_Type_free(block, ierr)
    call MPI_Type_free(scattered, ierr)
    call passed('data types')
  end subroutine

  integer function count_of_zeros(matrix)
    double precision, intent(in) :: matrix(:, :)
    count_of_zeros = count(matrix == 0)
  end function

  ! ---- collectives ----

#if defined(USE_MPI_F08)
  subroutine sum_of_operands(to_add, to_change, length, type)
    use, intrinsic :: iso_c_binding, only : c_ptr, c_f_pointer
    type(c_ptr), value :: to_add, to_change
    double precision, pointer :: a(:), b(:)
    integer :: length
    DATATYPE :: type
    call c_f_pointer(to_add, a, [length])
    call c_f_pointer(to_change, b, [length])
#else
  subroutine sum_of_operands(a, b, length, type)
    integer :: length
    double precision :: a(length), b(length)
    DATATYPE :: type
#endif
    if (type == MPI_DOUBLE_PRECISION) b = a + b
  end subroutine

  subroutine complete(r)
    REQUEST :: r
    call MPI_Wait(r, MPI_STATUS_IGNORE IERR)
    call check(r == MPI_REQUEST_NULL, 'request of a collective')
  end subroutine

  ! What rank k contributes: element i of a vector, exact in any order.
  elemental double precision function given(k, i)
    integer, intent(in) :: k, i
    given = k + 1 + i / 50
  end function

  logical function summed(data, first, count)
    double precision, intent(in) :: data(*)
    integer, intent(in) :: first, count
    integer :: i, k
    double precision :: expected
    summed = .true.
    do i = 1, count
      expected = 0
      do k = 0, n_ranks - 1
        expected = expected + given(k, first + i - 1)
      end do
      summed = summed .and. data(i) == expected
    end do
  end function

  subroutine reductions
    OPERATION :: own
    REQUEST :: r
    integer :: i, each, counts(n_ranks)
    double precision, allocatable, asynchronous :: mine(:), result(:), pairs(:), best(:)
    each = n / n_ranks
    allocate (mine(n), result(n), pairs(2 * n), best(2 * n))
    mine = [(given(rank, i), i = 1, n)]
    call MPI_Op_create(sum_of_operands, .true., own, ierr)
    do i = 1, 2
      result = 0
      if (i == 1) call MPI_Allreduce(mine, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                     MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Iallreduce(mine, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                      MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      call check(summed(result, 1, n), 'Allreduce')
      result = mine
      if (i == 1) call MPI_Allreduce(MPI_IN_PLACE, result, n, MPI_DOUBLE_PRECISION, own, &
                                     MPI_COMM_WORLD IERR)
      if (i == 2) call MPI_Iallreduce(MPI_IN_PLACE, result, n, MPI_DOUBLE_PRECISION, own, &
                                      MPI_COMM_WORLD, r IERR)
      if (i == 2) call complete(r)
      call check(summed(result, 1, n), 'Allreduce in place with an operation of the user')
      result = mine
      if (i == 1) then
        if (rank == 0) then
          call MPI_Reduce(MPI_IN_PLACE, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, &
                          MPI_COMM_WORLD, ierr)
        else
          call MPI_Reduce(mine, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
        end if
      else
        call MPI_Ireduce(mine, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, r, ierr)
        call complete(r)
      end if
      if (rank == 0) call check(summed(result, 1, n), 'Reduce')
      if (rank /= 0) call check(all(result == mine), 'Reduce elsewhere')
      counts = each
      counts(1) = n - each * (n_ranks - 1)
      if (i == 1) call MPI_Reduce_scatter(mine, result, counts, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                          MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Ireduce_scatter(mine, result, counts, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                           MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      call check(summed(result, 1 + sum(counts(:rank)), counts(rank + 1)), 'Reduce_scatter')
      if (i == 1) call MPI_Reduce_scatter_block(mine, result, each, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                                MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Ireduce_scatter_block(mine, result, each, MPI_DOUBLE_PRECISION, &
                                                 MPI_SUM, MPI_COMM_WORLD, r IERR)
      if (i == 2) call complete(r)
      call check(summed(result, 1 + each * rank, each), 'Reduce_scatter_block')
      if (i == 1) call MPI_Scan(mine, result, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Iscan(mine, result, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, &
                                 r, ierr)
      if (i == 2) call complete(r)
      call check(all(result == mine), 'Scan')
      result = -1
      if (i == 1) call MPI_Exscan(mine, result, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, &
                                  ierr)
      if (i == 2) call MPI_Iexscan(mine, result, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, &
                                   r, ierr)
      if (i == 2) call complete(r)
      if (rank > 0) call check(all(result == mine - 1), 'Exscan')
    end do
    pairs(1::2) = mine
    pairs(2::2) = rank
    call MPI_Allreduce(pairs, best, n, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check(all(nint(best(2::2)) == n_ranks - 1), 'place of the maximum')
    call MPI_Op_free(own, ierr)
    call passed('reductions')
  end subroutine

  ! Blocks of ranks have k + n elements for rank k, and lie in order without gaps.
  subroutine gathering
    REQUEST :: r
    integer :: i, k, counts(n_ranks), places(n_ranks), total
    integer, allocatable, asynchronous :: mine(:), every(:), expected(:)
    counts = [(n + k, k = 0, n_ranks - 1)]
    places = [(sum(counts(:k)), k = 0, n_ranks - 1)]
    total = sum(counts)
    allocate (mine(n + rank), every(total), expected(total))
    call fill(mine, n + rank, rank)
    do i = 1, 2
      every = -1
      if (rank == 0) call fill(every, n, 7)
      if (i == 1) call MPI_Bcast(every, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Ibcast(every, n, MPI_INTEGER, 0, MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      call check(filled(every, n, 7), 'Bcast')

      every = -1
      if (i == 1) call MPI_Allgather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, MPI_COMM_WORLD, &
                                     ierr)
      if (i == 2) call MPI_Iallgather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, &
                                      MPI_COMM_WORLD, r IERR)
      if (i == 2) call complete(r)
      do k = 0, n_ranks - 1
        call check(filled(every(k * n + 1:), n, k), 'Allgather')
      end do
      every = -1
      call fill(every(rank * n + 1:), n, rank + 50)
      if (i == 1) call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, every, n, MPI_INTEGER, &
                                     MPI_COMM_WORLD IERR)
      if (i == 2) call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INTEGER, every, n, MPI_INTEGER, &
                                      MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      do k = 0, n_ranks - 1
        call check(filled(every(k * n + 1:), n, k + 50), 'Allgather in place')
      end do

      every = -1
      if (i == 1) call MPI_Allgatherv(mine, n + rank, MPI_INTEGER, every, counts, places, &
                                      MPI_INTEGER, MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Iallgatherv(mine, n + rank, MPI_INTEGER, every, counts, places, &
                                       MPI_INTEGER, MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      do k = 0, n_ranks - 1
        call check(filled(every(places(k + 1) + 1:), n + k, k), 'Allgatherv')
      end do

      every = -1
      if (i == 1) call MPI_Gather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                                  ierr)
      if (i == 2) call MPI_Igather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, 0, &
                                   MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      do k = 0, n_ranks - 1
        if (rank == 0) call check(filled(every(k * n + 1:), n, k), 'Gather')
      end do

      every = -1
      if (rank == 0) call fill(every, n, 0)
      if (rank == 0 .and. i == 1) then
        call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INTEGER, every, counts, places, MPI_INTEGER, 0, &
                         MPI_COMM_WORLD, ierr)
      else if (i == 1) then
        call MPI_Gatherv(mine, n + rank, MPI_INTEGER, every, counts, places, MPI_INTEGER, 0, &
                         MPI_COMM_WORLD, ierr)
      else
        call MPI_Igatherv(mine, n + rank, MPI_INTEGER, every, counts, places, MPI_INTEGER, 0, &
                          MPI_COMM_WORLD, r, ierr)
        call complete(r)
      end if
      do k = 0, n_ranks - 1
        if (rank == 0) call check(filled(every(places(k + 1) + 1:), n + k, k), 'Gatherv')
      end do

      expected = every
      if (rank == 0) then
        do k = 0, n_ranks - 1
          call fill(expected(k * n + 1:), n, 80 + k)
        end do
      end if
      mine = -1
      if (i == 1) call MPI_Scatter(expected, n, MPI_INTEGER, mine, n, MPI_INTEGER, 0, &
                                   MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Iscatter(expected, n, MPI_INTEGER, mine, n, MPI_INTEGER, 0, &
                                    MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      call check(filled(mine, n, 80 + rank), 'Scatter')

      mine = -1
      if (rank == 0 .and. i == 1) then
        call fill(mine, n + rank, rank)
        call MPI_Scatterv(every, counts, places, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, 0, &
                          MPI_COMM_WORLD, ierr)
      else if (i == 1) then
        call MPI_Scatterv(every, counts, places, MPI_INTEGER, mine, n + rank, MPI_INTEGER, 0, &
                          MPI_COMM_WORLD, ierr)
      else
        call MPI_Iscatterv(every, counts, places, MPI_INTEGER, mine, n + rank, MPI_INTEGER, 0, &
                           MPI_COMM_WORLD, r, ierr)
        call complete(r)
      end if
      call check(filled(mine, n + rank, rank), 'Scatterv')
    end do
    call passed('gathering')
  end subroutine

  subroutine everyone_to_everyone
    REQUEST :: r
    DATATYPE :: types(n_ranks), last
    integer :: i, k, counts(n_ranks), places(n_ranks)
    integer, allocatable, asynchronous :: mine(:), every(:)
    allocate (mine(n * n_ranks), every(n * n_ranks))
    do k = 0, n_ranks - 1
      call fill(mine(k * n + 1:), n, 10 * rank + k)
    end do
    counts = n
    places = [(n * k, k = 0, n_ranks - 1)]
    do i = 1, 2
      every = -1
      if (i == 1) call MPI_Alltoall(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, MPI_COMM_WORLD, &
                                    ierr)
      if (i == 2) call MPI_Ialltoall(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, MPI_COMM_WORLD, &
                                     r, ierr)
      if (i == 2) call complete(r)
      call check(transposed(every), 'Alltoall')
      every = -1
      if (i == 1) call MPI_Alltoallv(mine, counts, places, MPI_INTEGER, every, counts, places, &
                                     MPI_INTEGER, MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Ialltoallv(mine, counts, places, MPI_INTEGER, every, counts, places, &
                                      MPI_INTEGER, MPI_COMM_WORLD, r IERR)
      if (i == 2) call complete(r)
      call check(transposed(every), 'Alltoallv')
    end do
    every = mine
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, every, n, MPI_INTEGER, MPI_COMM_WORLD IERR)
    call check(transposed(every), 'Alltoall in place')
    call MPI_Type_contiguous(n, MPI_INTEGER, last, ierr)
    call MPI_Type_commit(last, ierr)
    types = last
    counts = 1
    places = 4 * places
    do i = 1, 2
      every = -1
      ! Open MPI 4.1 alone fails with derived types in the other.
      if (i == 2 .and. .not. derived) then
        types = MPI_INTEGER
        counts = n
      end if
      if (i == 1) call MPI_Alltoallw(mine, counts, places, types, every, counts, places, types, &
                                     MPI_COMM_WORLD, ierr)
      if (i == 2) call MPI_Ialltoallw(mine, counts, places, types, every, counts, places, types, &
                                      MPI_COMM_WORLD, r, ierr)
      if (i == 2) call complete(r)
      call check(transposed(every), 'Alltoallw')
    end do
    every = mine
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types, every, counts, places, types, &
                       MPI_COMM_WORLD IERR)
    call check(transposed(every), 'Alltoallw in place')
    call MPI_Type_free(last, ierr)
    call passed('everyone to everyone')
  end subroutine

  logical function transposed(every)
    integer, intent(in) :: every(:)
    integer :: k
    transposed = .true.
    do k = 0, n_ranks - 1
      transposed = transposed .and. filled(every(k * n + 1:), n, 10 * k + rank)
    end do
  end function

  ! To and from the ranks on both sides in a ring; with two ranks both sides are the same one.
  subroutine neighbors
    COMM :: ring
    REQUEST :: r
    DATATYPE :: types(2)
    integer :: i, counts(2), places(2), sides(2)
    integer(kind=MPI_ADDRESS_KIND) :: bytes(2)
    integer, asynchronous, save :: mine(2 * n), every(2 * n)
    sides = [modulo(rank - 1, n_ranks), modulo(rank + 1, n_ranks)]
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sides, MPI_UNWEIGHTED, 2, sides, &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, ierr)
    call fill(mine, n, rank)
    call fill(mine(n + 1:), n, rank)
    counts = n
    places = [0, n]
    bytes = [0, 4 * n]
    types = MPI_INTEGER
    do i = 1, 10
      every = -1
      select case (i)
      case (1)
        call MPI_Neighbor_allgather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, ring, ierr)
      case (2)
        call MPI_Ineighbor_allgather(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, ring, r, ierr)
      case (3)
        call MPI_Neighbor_allgatherv(mine, n, MPI_INTEGER, every, counts, places, MPI_INTEGER, &
                                     ring IERR)
      case (4)
        call MPI_Ineighbor_allgatherv(mine, n, MPI_INTEGER, every, counts, places, MPI_INTEGER, &
                                      ring, r IERR)
      case (5)
        call MPI_Neighbor_alltoall(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, ring, ierr)
      case (6)
        call MPI_Ineighbor_alltoall(mine, n, MPI_INTEGER, every, n, MPI_INTEGER, ring, r, ierr)
      case (7)
        call MPI_Neighbor_alltoallv(mine, counts, places, MPI_INTEGER, every, counts, places, &
                                    MPI_INTEGER, ring IERR)
      case (8)
        call MPI_Ineighbor_alltoallv(mine, counts, places, MPI_INTEGER, every, counts, places, &
                                     MPI_INTEGER, ring, r IERR)
      case (9)
        call MPI_Neighbor_alltoallw(mine, counts, bytes, types, every, counts, bytes, types, ring, &
                                    ierr)
      case (10)
        call MPI_Ineighbor_alltoallw(mine, counts, bytes, types, every, counts, bytes, types, &
                                     ring, r, ierr)
      end select
      if (mod(i, 2) == 0) call complete(r)
      call check(filled(every, n, sides(1)), 'from the left')
      call check(filled(every(n + 1:), n, sides(2)), 'from the right')
    end do
    call MPI_Comm_free(ring, ierr)
    call passed('neighbors')
  end subroutine

  ! ---- communicators ----

  subroutine communicators
    COMM :: twin, half
    integer :: i
    do i = 1, 3
      call MPI_Comm_dup(MPI_COMM_WORLD, twin, ierr)
      call fill(in, n, 0)
      if (rank == 0) call fill(in, n, i)
      call MPI_Bcast(in, n, MPI_INTEGER, 0, twin, ierr)
      call check(filled(in, n, i), 'Bcast of a copy')
      if (rank == 0) call MPI_Send(in, n, MPI_INTEGER, 1, 1, twin IERR)
      if (rank == 1) call MPI_Recv(in, n, MPI_INTEGER, 0, 1, twin, MPI_STATUS_IGNORE, ierr)
      if (i == 1) call MPI_Comm_disconnect(twin, ierr)
      if (i /= 1) call MPI_Comm_free(twin IERR)
      call check(twin == MPI_COMM_NULL, 'a communicator that was freed')
    end do
    call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, half, ierr)
    call fill(out, n, rank)
    if (rank == 0) call MPI_Send(out, n, MPI_INTEGER, n_ranks - 2, 1, half, ierr)
    if (rank == 1) call MPI_Recv(in, n, MPI_INTEGER, n_ranks - 1, 1, half, MPI_STATUS_IGNORE, ierr)
    if (rank == 1) call check(filled(in, n, 0), 'ranks in reverse')
    call MPI_Comm_free(half, ierr)
    call passed('communicators')
  end subroutine

end module

program main
  use calls
  integer :: provided, i
  logical :: threads = .false.
  character(8) :: word
  do i = 1, command_argument_count()
    call get_command_argument(i, word)
    threads = threads .or. word == 'threads'
    derived = derived .or. word == 'derived'
  end do
  if (threads) call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierr)
  if (.not. threads) call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierr)
  call every_send_and_receive
  call exchanges
  call completions
  call persistent
  call freed_and_cancelled
  call errors
  call data_types
  call reductions
  call gathering
  call everyone_to_everyone
  call neighbors
  call communicators
  call MPI_Finalize(ierr)
end program
