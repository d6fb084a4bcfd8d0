// SPDX-License-Identifier: Apache-2.0
// Fortran bindings that call PMPI functions, where a C interposer does not see them: all of Open
// MPI's, and those of MPICH's mpi_f08 that take no buffer (the rest of MPICH's call the C form).
// For every such function that this library has in C there is the Fortran form here, which turns
// the arguments into those of C and calls the C form.
//
// Over Open MPI mpif.h and `use mpi` call mpi_send_; `use mpi_f08` calls ompi_send_f or, where a
// LOGICAL is to be turned, pmpi_test_. All of these are one function, as they are in Open MPI.
// MPICH's mpi_f08 calls mpi_test_f08_. An INTEGER is a C int (CMakeLists.txt asks). Nothing here
// needs the Fortran libraries to be there.
#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "calls/wrap.hpp"
#include "job/sessions.hpp"

// Common blocks and module variables: their addresses mean something. Weak: an MPI without Fortran
// has none.
extern "C" {
#ifdef OPEN_MPI
extern __attribute__((weak)) int mpi_fortran_bottom_, mpi_fortran_in_place_;
extern __attribute__((weak)) int mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;
#else
extern __attribute__((weak)) MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
extern __attribute__((weak)) MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
#endif
}

namespace wirepress {
namespace {

bool is(const void* argument, const void* sentinel) { return argument && argument == sentinel; }

// ---- what differs between the libraries ----

// Functions in one, macros in the other.
#define WPR_HANDLE(kind, Name)                                               \
  MPI_##Name c_##kind(MPI_Fint handle) { return PMPI_##Name##_f2c(handle); } \
  MPI_Fint fortran_##kind(MPI_##Name handle) { return PMPI_##Name##_c2f(handle); }
WPR_HANDLE(comm, Comm)
WPR_HANDLE(request, Request)
WPR_HANDLE(message, Message)

constexpr size_t kStatusSize = sizeof(MPI_Status) / sizeof(MPI_Fint);

#ifdef OPEN_MPI
constexpr char kInitialized[] = "ompi_initialized_f";
bool ignored(const MPI_Fint* status) {
  return is(status, &mpi_fortran_status_ignore_) || is(status, &mpi_fortran_statuses_ignore_);
}
void status_to_c(const MPI_Fint* from, MPI_Status* to) { PMPI_Status_f2c(from, to); }
void status_to_fortran(const MPI_Status* from, MPI_Fint* to) { PMPI_Status_c2f(from, to); }
int first_index() { return 1; }
#else
constexpr char kInitialized[] = "mpi_initialized_f08_";
bool ignored(const MPI_Fint* status) {
  return is(status, &MPIR_F08_MPI_STATUS_IGNORE_OBJ) ||
         is(status, &MPIR_F08_MPI_STATUSES_IGNORE_OBJ);
}
static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status));
void status_to_c(const MPI_Fint* from, MPI_Status* to) { std::memcpy(to, from, sizeof *to); }
void status_to_fortran(const MPI_Status* from, MPI_Fint* to) {
  std::memcpy(to, from, sizeof *from);
}

// MPICH 4.0 counts from 0 where Fortran counts from 1, and programs may rely on what they saw: the
// library's own answer to a request that is complete tells.
int first_index() {
  static const int first = [] {
    using Testany = void (*)(int*, MPI_Request*, int*, MPI_Fint*, MPI_Status*, int*);
    const auto ask = reinterpret_cast<Testany>(dlsym(RTLD_NEXT, "mpi_testany_f08_"));
    MPI_Request request;
    if (!ask || PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request) !=
                    MPI_SUCCESS) {
      return 1;
    }
    int n = 1, index = 1, flag, error;
    MPI_Status status{};
    ask(&n, &request, &index, &flag, &status, &error);
    if (request != MPI_REQUEST_NULL) PMPI_Wait(&request, &status);
    return index == 0 ? 0 : 1;
  }();
  return first;
}
#endif

// The value of .TRUE. is the compiler's that built the library: its own answer to a question that
// has only one tells.
MPI_Fint true_value() {
  static const MPI_Fint value = [] {
    MPI_Fint flag = 0, error;
    using Initialized = void (*)(MPI_Fint*, MPI_Fint*);
    const auto ask = reinterpret_cast<Initialized>(dlsym(RTLD_DEFAULT, kInitialized));
    if (ask) ask(&flag, &error);
    return flag ? flag : 1;
  }();
  return value;
}

// ---- arguments that go in: as Fortran passes them, by address ----

#ifdef OPEN_MPI
struct Data {
  void* at;
  operator void*() const {
    if (is(at, &mpi_fortran_bottom_)) return MPI_BOTTOM;
    return is(at, &mpi_fortran_in_place_) ? MPI_IN_PLACE : at;
  }
};
#endif

template <typename Handle, Handle (*to_c)(MPI_Fint)>
struct In {
  const MPI_Fint* at;
  operator Handle() const { return to_c(*at); }
};
using CommIn = In<MPI_Comm, c_comm>;
using RequestIn = In<MPI_Request, c_request>;
#ifdef OPEN_MPI
using TypeIn = In<MPI_Datatype, PMPI_Type_f2c>;
using OpIn = In<MPI_Op, PMPI_Op_f2c>;
#ifdef WPR_MPI_PERSISTENT
using InfoIn = In<MPI_Info, PMPI_Info_f2c>;
#endif
#endif

// ---- arguments that come out: temporaries that write them when the call is over ----

struct Temporary {
  Temporary() = default;
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
};

template <typename Handle, Handle (*to_c)(MPI_Fint), MPI_Fint (*to_fortran)(Handle)>
class Out : Temporary {
 public:
  explicit Out(MPI_Fint* at) : at_(at), handle_(to_c(*at)) {}
  ~Out() {
    if (handle_ != Handle{}) *at_ = to_fortran(handle_);
  }
  operator Handle*() { return &handle_; }

 private:
  MPI_Fint* at_;
  Handle handle_;
};
using CommOut = Out<MPI_Comm, c_comm, fortran_comm>;
using RequestOut = Out<MPI_Request, c_request, fortran_request>;
using MessageOut = Out<MPI_Message, c_message, fortran_message>;

class FlagOut : Temporary {
 public:
  explicit FlagOut(MPI_Fint* at) : at_(at) {}
  ~FlagOut() { *at_ = flag_ ? true_value() : 0; }
  operator int*() { return &flag_; }

 private:
  MPI_Fint* at_;
  int flag_ = 0;
};

class IndexOut : Temporary {
 public:
  explicit IndexOut(MPI_Fint* at) : at_(at) {}
  ~IndexOut() { *at_ = index_ == MPI_UNDEFINED ? MPI_UNDEFINED : index_ + first_index(); }
  operator int*() { return &index_; }

 private:
  MPI_Fint* at_;
  int index_ = MPI_UNDEFINED;
};

class IndicesOut : Temporary {
 public:
  IndicesOut(MPI_Fint* n, MPI_Fint* at) : n_(n), at_(at) { *n_ = 0; }
  ~IndicesOut() {
    for (int i = 0; *n_ != MPI_UNDEFINED && i < *n_; ++i) at_[i] += first_index();
  }
  operator int*() { return at_; }

 private:
  MPI_Fint *n_, *at_;
};

template <typename T>
class Few {
 public:
  explicit Few(int n) {
    if (n > kInline) more_.reset(new T[static_cast<size_t>(n)]);
  }
  T* data() { return more_ ? more_.get() : few_; }

 private:
  static constexpr int kInline = 16;
  T few_[kInline];
  std::unique_ptr<T[]> more_;
};

// Entries that MPI leaves alone stay what the user had there: all go both ways.
class StatusesOut : Temporary {
 public:
  StatusesOut(int n, MPI_Fint* at, MPI_Status* none = MPI_STATUSES_IGNORE)
      : n_(ignored(at) ? 0 : n), at_(at), none_(none), statuses_(n_) {
    for (int i = 0; i < n_; ++i) status_to_c(place(i), statuses_.data() + i);
  }
  ~StatusesOut() {
    for (int i = 0; i < n_; ++i) status_to_fortran(statuses_.data() + i, place(i));
  }
  operator MPI_Status*() { return ignored(at_) ? none_ : statuses_.data(); }

 private:
  MPI_Fint* place(int i) { return at_ + static_cast<size_t>(i) * kStatusSize; }
  int n_;
  MPI_Fint* at_;
  MPI_Status* none_;
  Few<MPI_Status> statuses_;
};
struct StatusOut : StatusesOut {
  explicit StatusOut(MPI_Fint* at) : StatusesOut(1, at, MPI_STATUS_IGNORE) {}
};

class RequestsOut : Temporary {
 public:
  RequestsOut(int n, MPI_Fint* at) : n_(n), at_(at), requests_(n) {
    for (int i = 0; i < n_; ++i) requests_.data()[i] = c_request(at_[i]);
  }
  ~RequestsOut() {
    for (int i = 0; i < n_; ++i) {
      const MPI_Request request = requests_.data()[i];
      if (request != MPI_Request{}) at_[i] = fortran_request(request);
    }
  }
  operator MPI_Request*() { return requests_.data(); }

 private:
  int n_;
  MPI_Fint* at_;
  Few<MPI_Request> requests_;
};

#ifdef OPEN_MPI
// How many there are to send to and to receive from; of neighbours where the call is theirs.
struct Peers {
  int to = 0, from = 0;
};

Peers peers(MPI_Comm comm) {
  Peers n;
  int inter = 0;
  if (!comm || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return n;
  inter ? PMPI_Comm_remote_size(comm, &n.to) : PMPI_Comm_size(comm, &n.to);
  n.from = n.to;
  return n;
}

Peers neighbors(MPI_Comm comm) {
  Peers n;
  int topology = MPI_UNDEFINED, rank, weighted;
  if (!comm || comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &topology) != MPI_SUCCESS) return n;
  if (topology == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &n.from, &n.to, &weighted);
  } else if (topology == MPI_GRAPH) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &n.to);
    n.from = n.to;
  } else if (topology == MPI_CART) {
    PMPI_Cartdim_get(comm, &n.to);
    n.from = n.to *= 2;
  }
  return n;
}

std::vector<MPI_Datatype> types_in(const MPI_Fint* at, int n) {
  std::vector<MPI_Datatype> types(static_cast<size_t>(n));
  for (size_t i = 0; i < types.size(); ++i) types[i] = PMPI_Type_f2c(at[i]);
  return types;
}

// Open MPI looks at the arrays of a non-blocking call again when that completes, and at those of a
// persistent one at each start. Programs have few different ones: they are never freed.
const MPI_Datatype* kept(std::vector<MPI_Datatype> types) {
  static std::mutex lock;
  static auto* all = new std::set<std::vector<MPI_Datatype>>;
  const std::lock_guard guard(lock);
  return all->insert(std::move(types)).first->data();
}

int n_to_read(Data data, int n) {  // with MPI_IN_PLACE there may be nothing
  return data == MPI_IN_PLACE ? 0 : n;
}
#endif

void give(MPI_Fint* to, int error) {
  if (to) *to = error;  // mpi_f08: optional
}

#ifdef WPR_MPI_SESSIONS

// Functions that make a communicator go on to the library's own Fortran form, with the arguments
// that they got.
using Word = void*;
#ifdef OPEN_MPI
#define WPR_NEXT(name) "ompi_" #name "_f"
#else
#define WPR_NEXT(name) "mpi_" #name "_f08_"
#endif

// `parent`: nullptr for a communicator that comes from a session itself.
template <typename Call>
int make_comm(Word made, Word parent, Call call) {
  auto* comm = static_cast<MPI_Fint*>(made);
  int error = MPI_SUCCESS;
  *comm = fortran_comm(MPI_COMM_NULL);
  call(&error);
  MPI_Comm handle = c_comm(*comm);
  if (error != MPI_SUCCESS || handle == MPI_COMM_NULL) return error;
  return parent ? inherit_session(error, c_comm(*static_cast<MPI_Fint*>(parent)), &handle)
                : mark_session(error, &handle);
}

template <typename... Words>
int make_comm_of(const char* next, Word made, Word parent, Words... words) {
  const auto call = reinterpret_cast<void (*)(Word, Words..., Word, int*)>(dlsym(RTLD_NEXT, next));
  return make_comm(made, parent, [&](int* error) { call(parent, words..., made, error); });
}

// A text among the arguments has its length behind all of them.
template <typename... Words>
int make_comm_of_session(const char* next, size_t length, Word made, Words... words) {
  const auto call =
      reinterpret_cast<void (*)(Words..., Word, int*, size_t)>(dlsym(RTLD_NEXT, next));
  return make_comm(made, nullptr, [&](int* error) { call(words..., made, error, length); });
}

int init_session(const char* next, Word info, Word handler, Word session) {
  const auto call = reinterpret_cast<void (*)(Word, Word, Word, int*)>(dlsym(RTLD_NEXT, next));
  int error = MPI_SUCCESS;
  begin_session();
  call(info, handler, session, &error);
  if (error != MPI_SUCCESS) {
    end_session();
  } else {
    note_threads(MPI_Session_f2c(*static_cast<MPI_Fint*>(session)));
  }
  return error;
}
int finalize_session(const char* next, Word session) {
  int error = MPI_SUCCESS;
  reinterpret_cast<void (*)(Word, int*)>(dlsym(RTLD_NEXT, next))(session, &error);
  if (error == MPI_SUCCESS) end_session();
  return error;
}

#endif  // WPR_MPI_SESSIONS

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_ALIAS(other, target, ...) \
  WPR_EXPORT void other(__VA_ARGS__) __attribute__((alias(target)));
#ifdef OPEN_MPI
// Every name that Open MPI gives a function, whichever way a compiler spells it.
#define WPR_FORTRAN(name, NAME, call, ...)                            \
  WPR_EXPORT void ompi_##name##_f(__VA_ARGS__) { give(error, call); } \
  WPR_ALIAS(mpi_##name, "ompi_" #name "_f", __VA_ARGS__)              \
  WPR_ALIAS(mpi_##name##_, "ompi_" #name "_f", __VA_ARGS__)           \
  WPR_ALIAS(mpi_##name##__, "ompi_" #name "_f", __VA_ARGS__)          \
  WPR_ALIAS(MPI_##NAME, "ompi_" #name "_f", __VA_ARGS__)              \
  WPR_ALIAS(pmpi_##name, "ompi_" #name "_f", __VA_ARGS__)             \
  WPR_ALIAS(pmpi_##name##_, "ompi_" #name "_f", __VA_ARGS__)          \
  WPR_ALIAS(pmpi_##name##__, "ompi_" #name "_f", __VA_ARGS__)         \
  WPR_ALIAS(PMPI_##NAME, "ompi_" #name "_f", __VA_ARGS__)
#else
#define WPR_FORTRAN(name, NAME, call, ...)                              \
  WPR_EXPORT void mpi_##name##_f08_(__VA_ARGS__) { give(error, call); } \
  WPR_ALIAS(pmpir_##name##_f08_, "mpi_" #name "_f08_", __VA_ARGS__)
#endif

// ---- init.cpp ----

WPR_FORTRAN(init, INIT, MPI_Init(nullptr, nullptr), int* error)
WPR_FORTRAN(init_thread, INIT_THREAD, MPI_Init_thread(nullptr, nullptr, *required, provided),
            int* required, int* provided, int* error)
WPR_FORTRAN(query_thread, QUERY_THREAD, MPI_Query_thread(provided), int* provided, int* error)
WPR_FORTRAN(finalize, FINALIZE, MPI_Finalize(), int* error)
WPR_FORTRAN(comm_free, COMM_FREE, MPI_Comm_free(CommOut(comm)), int* comm, int* error)
WPR_FORTRAN(comm_disconnect, COMM_DISCONNECT, MPI_Comm_disconnect(CommOut(comm)), int* comm,
            int* error)

// ---- sessions.cpp ----

#ifdef WPR_MPI_SESSIONS
#define WPR_LIST(...) __VA_ARGS__
WPR_FORTRAN(session_init, SESSION_INIT,
            init_session(WPR_NEXT(session_init), info, handler, session), Word info, Word handler,
            Word session, int* error)
WPR_FORTRAN(session_finalize, SESSION_FINALIZE,
            finalize_session(WPR_NEXT(session_finalize), session), Word session, int* error)
#define WPR_MADE(name, NAME, words, ...)                                                       \
  WPR_FORTRAN(name, NAME, make_comm_of(WPR_NEXT(name), made, comm, WPR_LIST words), Word comm, \
              __VA_ARGS__, Word made, int* error)
WPR_MADE(comm_create, COMM_CREATE, (a), Word a)
WPR_MADE(comm_create_group, COMM_CREATE_GROUP, (a, b), Word a, Word b)
WPR_MADE(comm_split, COMM_SPLIT, (a, b), Word a, Word b)
WPR_MADE(comm_split_type, COMM_SPLIT_TYPE, (a, b, c), Word a, Word b, Word c)
WPR_MADE(cart_create, CART_CREATE, (a, b, c, d), Word a, Word b, Word c, Word d)
WPR_MADE(cart_sub, CART_SUB, (a), Word a)
WPR_MADE(graph_create, GRAPH_CREATE, (a, b, c, d), Word a, Word b, Word c, Word d)
WPR_MADE(dist_graph_create, DIST_GRAPH_CREATE, (a, b, c, d, e, f, g), Word a, Word b, Word c,
         Word d, Word e, Word f, Word g)
WPR_MADE(dist_graph_create_adjacent, DIST_GRAPH_CREATE_ADJACENT, (a, b, c, d, e, f, g, h), Word a,
         Word b, Word c, Word d, Word e, Word f, Word g, Word h)
WPR_MADE(intercomm_create, INTERCOMM_CREATE, (a, b, c, d), Word a, Word b, Word c, Word d)
WPR_MADE(intercomm_merge, INTERCOMM_MERGE, (a), Word a)
WPR_FORTRAN(comm_create_from_group, COMM_CREATE_FROM_GROUP,
            make_comm_of_session(WPR_NEXT(comm_create_from_group), length, made, a, b, c, d),
            Word a, Word b, Word c, Word d, Word made, int* error, size_t length)
WPR_FORTRAN(intercomm_create_from_groups, INTERCOMM_CREATE_FROM_GROUPS,
            make_comm_of_session(WPR_NEXT(intercomm_create_from_groups), length, made, a, b, c, d,
                                 e, f, g),
            Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word made, int* error,
            size_t length)
#undef WPR_MADE
#endif

// ---- persistent.cpp ----

WPR_FORTRAN(start, START, MPI_Start(RequestOut(request)), int* request, int* error)
WPR_FORTRAN(startall, STARTALL, MPI_Startall(*n, RequestsOut(*n, requests)), int* n, int* requests,
            int* error)

// ---- probe.cpp ----

WPR_FORTRAN(probe, PROBE, MPI_Probe(*source, *tag, comm, StatusOut(status)), int* source, int* tag,
            CommIn comm, int* status, int* error)
WPR_FORTRAN(iprobe, IPROBE, MPI_Iprobe(*source, *tag, comm, FlagOut(flag), StatusOut(status)),
            int* source, int* tag, CommIn comm, int* flag, int* status, int* error)
WPR_FORTRAN(mprobe, MPROBE, MPI_Mprobe(*source, *tag, comm, MessageOut(message), StatusOut(status)),
            int* source, int* tag, CommIn comm, int* message, int* status, int* error)
WPR_FORTRAN(improbe, IMPROBE,
            MPI_Improbe(*source, *tag, comm, FlagOut(flag), MessageOut(message), StatusOut(status)),
            int* source, int* tag, CommIn comm, int* flag, int* message, int* status, int* error)

// ---- completion.cpp ----

WPR_FORTRAN(wait, WAIT, MPI_Wait(RequestOut(request), StatusOut(status)), int* request, int* status,
            int* error)
WPR_FORTRAN(test, TEST, MPI_Test(RequestOut(request), FlagOut(flag), StatusOut(status)),
            int* request, int* flag, int* status, int* error)
WPR_FORTRAN(waitall, WAITALL, MPI_Waitall(*n, RequestsOut(*n, requests), StatusesOut(*n, statuses)),
            int* n, int* requests, int* statuses, int* error)
WPR_FORTRAN(testall, TESTALL,
            MPI_Testall(*n, RequestsOut(*n, requests), FlagOut(flag), StatusesOut(*n, statuses)),
            int* n, int* requests, int* flag, int* statuses, int* error)
WPR_FORTRAN(waitany, WAITANY,
            MPI_Waitany(*n, RequestsOut(*n, requests), IndexOut(index), StatusOut(status)), int* n,
            int* requests, int* index, int* status, int* error)
WPR_FORTRAN(testany, TESTANY,
            MPI_Testany(*n, RequestsOut(*n, requests), IndexOut(index), FlagOut(flag),
                        StatusOut(status)),
            int* n, int* requests, int* index, int* flag, int* status, int* error)
WPR_FORTRAN(waitsome, WAITSOME,
            MPI_Waitsome(*n, RequestsOut(*n, requests), n_done, IndicesOut(n_done, indices),
                         StatusesOut(*n, statuses)),
            int* n, int* requests, int* n_done, int* indices, int* statuses, int* error)
WPR_FORTRAN(testsome, TESTSOME,
            MPI_Testsome(*n, RequestsOut(*n, requests), n_done, IndicesOut(n_done, indices),
                         StatusesOut(*n, statuses)),
            int* n, int* requests, int* n_done, int* indices, int* statuses, int* error)
WPR_FORTRAN(request_get_status, REQUEST_GET_STATUS,
            MPI_Request_get_status(request, FlagOut(flag), StatusOut(status)), RequestIn request,
            int* flag, int* status, int* error)
#ifdef WPR_MPI_GET_STATUS_ALL
WPR_FORTRAN(request_get_status_all, REQUEST_GET_STATUS_ALL,
            MPI_Request_get_status_all(*n, RequestsOut(*n, requests), FlagOut(flag),
                                       StatusesOut(*n, statuses)),
            int* n, int* requests, int* flag, int* statuses, int* error)
WPR_FORTRAN(request_get_status_any, REQUEST_GET_STATUS_ANY,
            MPI_Request_get_status_any(*n, RequestsOut(*n, requests), IndexOut(index),
                                       FlagOut(flag), StatusOut(status)),
            int* n, int* requests, int* index, int* flag, int* status, int* error)
WPR_FORTRAN(request_get_status_some, REQUEST_GET_STATUS_SOME,
            MPI_Request_get_status_some(*n, RequestsOut(*n, requests), n_done,
                                        IndicesOut(n_done, indices), StatusesOut(*n, statuses)),
            int* n, int* requests, int* n_done, int* indices, int* statuses, int* error)
#endif
WPR_FORTRAN(request_free, REQUEST_FREE, MPI_Request_free(RequestOut(request)), int* request,
            int* error)
WPR_FORTRAN(barrier, BARRIER, MPI_Barrier(comm), CommIn comm, int* error)
WPR_FORTRAN(ibarrier, IBARRIER, MPI_Ibarrier(comm, RequestOut(request)), CommIn comm, int* request,
            int* error)
WPR_FORTRAN(cancel, CANCEL, MPI_Cancel(RequestOut(request)), int* request, int* error)

#ifdef OPEN_MPI

// ---- p2p.cpp ----

#define WPR_SEND(name, NAME, Name)                                                                \
  WPR_FORTRAN(name, NAME, MPI_##Name(buf, *count, type, *dest, *tag, comm), Data buf, int* count, \
              TypeIn type, int* dest, int* tag, CommIn comm, int* error)
WPR_SEND(send, SEND, Send)
WPR_SEND(bsend, BSEND, Bsend)
WPR_SEND(rsend, RSEND, Rsend)
WPR_SEND(ssend, SSEND, Ssend)

#define WPR_ISEND(name, NAME, Name)                                                              \
  WPR_FORTRAN(name, NAME, MPI_##Name(buf, *count, type, *dest, *tag, comm, RequestOut(request)), \
              Data buf, int* count, TypeIn type, int* dest, int* tag, CommIn comm, int* request, \
              int* error)
WPR_ISEND(isend, ISEND, Isend)
WPR_ISEND(ibsend, IBSEND, Ibsend)
WPR_ISEND(irsend, IRSEND, Irsend)
WPR_ISEND(issend, ISSEND, Issend)
WPR_ISEND(send_init, SEND_INIT, Send_init)
WPR_ISEND(bsend_init, BSEND_INIT, Bsend_init)
WPR_ISEND(rsend_init, RSEND_INIT, Rsend_init)
WPR_ISEND(ssend_init, SSEND_INIT, Ssend_init)
WPR_ISEND(irecv, IRECV, Irecv)
WPR_ISEND(recv_init, RECV_INIT, Recv_init)

WPR_FORTRAN(recv, RECV, MPI_Recv(buf, *count, type, *source, *tag, comm, StatusOut(status)),
            Data buf, int* count, TypeIn type, int* source, int* tag, CommIn comm, int* status,
            int* error)
WPR_FORTRAN(sendrecv, SENDRECV,
            MPI_Sendrecv(sendbuf, *sendcount, sendtype, *dest, *sendtag, recvbuf, *recvcount,
                         recvtype, *source, *recvtag, comm, StatusOut(status)),
            Data sendbuf, int* sendcount, TypeIn sendtype, int* dest, int* sendtag, Data recvbuf,
            int* recvcount, TypeIn recvtype, int* source, int* recvtag, CommIn comm, int* status,
            int* error)
WPR_FORTRAN(sendrecv_replace, SENDRECV_REPLACE,
            MPI_Sendrecv_replace(buf, *count, type, *dest, *sendtag, *source, *recvtag, comm,
                                 StatusOut(status)),
            Data buf, int* count, TypeIn type, int* dest, int* sendtag, int* source, int* recvtag,
            CommIn comm, int* status, int* error)
#ifdef WPR_MPI_ISENDRECV
WPR_FORTRAN(isendrecv, ISENDRECV,
            MPI_Isendrecv(sendbuf, *sendcount, sendtype, *dest, *sendtag, recvbuf, *recvcount,
                          recvtype, *source, *recvtag, comm, RequestOut(request)),
            Data sendbuf, int* sendcount, TypeIn sendtype, int* dest, int* sendtag, Data recvbuf,
            int* recvcount, TypeIn recvtype, int* source, int* recvtag, CommIn comm, int* request,
            int* error)
WPR_FORTRAN(isendrecv_replace, ISENDRECV_REPLACE,
            MPI_Isendrecv_replace(buf, *count, type, *dest, *sendtag, *source, *recvtag, comm,
                                  RequestOut(request)),
            Data buf, int* count, TypeIn type, int* dest, int* sendtag, int* source, int* recvtag,
            CommIn comm, int* request, int* error)
#endif
WPR_FORTRAN(mrecv, MRECV, MPI_Mrecv(buf, *count, type, MessageOut(message), StatusOut(status)),
            Data buf, int* count, TypeIn type, int* message, int* status, int* error)
WPR_FORTRAN(imrecv, IMRECV, MPI_Imrecv(buf, *count, type, MessageOut(message), RequestOut(request)),
            Data buf, int* count, TypeIn type, int* message, int* request, int* error)

// ---- collectives, blocking, non-blocking and persistent ----

#define WPR_WORDS(...) __VA_ARGS__
#ifdef WPR_MPI_PERSISTENT
#define WPR_PERSISTENT(name, NAME, Name, arguments, ...)                                      \
  WPR_FORTRAN(name##_init, NAME##_INIT,                                                       \
              MPI_##Name##_init(WPR_WORDS arguments, info, RequestOut(request)), __VA_ARGS__, \
              InfoIn info, int* request, int* error)
#else
#define WPR_PERSISTENT(...)
#endif
#define WPR_COLLECTIVE(name, NAME, Name, arguments, ...)                               \
  WPR_FORTRAN(name, NAME, MPI_##Name(WPR_WORDS arguments), __VA_ARGS__, int* error)    \
  WPR_FORTRAN(i##name, I##NAME, MPI_I##name(WPR_WORDS arguments, RequestOut(request)), \
              __VA_ARGS__, int* request, int* error)                                   \
  WPR_PERSISTENT(name, NAME, Name, arguments, __VA_ARGS__)

#define WPR_REDUCTION(name, NAME, Name)                                                      \
  WPR_COLLECTIVE(name, NAME, Name, (sendbuf, recvbuf, *count, type, op, comm), Data sendbuf, \
                 Data recvbuf, int* count, TypeIn type, OpIn op, CommIn comm)
#define WPR_SENT Data sendbuf, int *sendcount, TypeIn sendtype
#define WPR_SENT_V Data sendbuf, int *sendcounts, int *sdispls, TypeIn sendtype
#define WPR_GOT Data recvbuf, int *recvcount, TypeIn recvtype
#define WPR_GOT_V Data recvbuf, int *recvcounts, int *rdispls, TypeIn recvtype

// The same for neighbours, with the same arguments.
#define WPR_WITH_NEIGHBORS(name, NAME, Name, arguments, ...) \
  WPR_COLLECTIVE(name, NAME, Name, arguments, __VA_ARGS__)   \
  WPR_COLLECTIVE(neighbor_##name, NEIGHBOR_##NAME, Neighbor_##name, arguments, __VA_ARGS__)

WPR_COLLECTIVE(bcast, BCAST, Bcast, (buf, *count, type, *root, comm), Data buf, int* count,
               TypeIn type, int* root, CommIn comm)
WPR_COLLECTIVE(reduce, REDUCE, Reduce, (sendbuf, recvbuf, *count, type, op, *root, comm),
               Data sendbuf, Data recvbuf, int* count, TypeIn type, OpIn op, int* root, CommIn comm)
WPR_REDUCTION(allreduce, ALLREDUCE, Allreduce)
WPR_REDUCTION(scan, SCAN, Scan)
WPR_REDUCTION(exscan, EXSCAN, Exscan)
WPR_REDUCTION(reduce_scatter_block, REDUCE_SCATTER_BLOCK, Reduce_scatter_block)
WPR_COLLECTIVE(reduce_scatter, REDUCE_SCATTER, Reduce_scatter,
               (sendbuf, recvbuf, counts, type, op, comm), Data sendbuf, Data recvbuf, int* counts,
               TypeIn type, OpIn op, CommIn comm)
WPR_WITH_NEIGHBORS(allgather, ALLGATHER, Allgather,
                   (sendbuf, *sendcount, sendtype, recvbuf, *recvcount, recvtype, comm), WPR_SENT,
                   WPR_GOT, CommIn comm)
WPR_WITH_NEIGHBORS(allgatherv, ALLGATHERV, Allgatherv,
                   (sendbuf, *sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
                   WPR_SENT, WPR_GOT_V, CommIn comm)
WPR_COLLECTIVE(gather, GATHER, Gather,
               (sendbuf, *sendcount, sendtype, recvbuf, *recvcount, recvtype, *root, comm),
               WPR_SENT, WPR_GOT, int* root, CommIn comm)
WPR_COLLECTIVE(gatherv, GATHERV, Gatherv,
               (sendbuf, *sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, *root, comm),
               WPR_SENT, WPR_GOT_V, int* root, CommIn comm)
WPR_COLLECTIVE(scatter, SCATTER, Scatter,
               (sendbuf, *sendcount, sendtype, recvbuf, *recvcount, recvtype, *root, comm),
               WPR_SENT, WPR_GOT, int* root, CommIn comm)
WPR_COLLECTIVE(scatterv, SCATTERV, Scatterv,
               (sendbuf, sendcounts, sdispls, sendtype, recvbuf, *recvcount, recvtype, *root, comm),
               WPR_SENT_V, WPR_GOT, int* root, CommIn comm)
WPR_WITH_NEIGHBORS(alltoall, ALLTOALL, Alltoall,
                   (sendbuf, *sendcount, sendtype, recvbuf, *recvcount, recvtype, comm), WPR_SENT,
                   WPR_GOT, CommIn comm)
WPR_WITH_NEIGHBORS(alltoallv, ALLTOALLV, Alltoallv,
                   (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                    comm),
                   WPR_SENT_V, WPR_GOT_V, CommIn comm)

// A type for each peer.
#define WPR_TYPED(Displacement)                                                       \
  Data sendbuf, int *sendcounts, Displacement *sdispls, int *sendtypes, Data recvbuf, \
      int *recvcounts, Displacement *rdispls, int *recvtypes, CommIn comm
#define WPR_TYPES(name, NAME, Name, find, Displacement)                                            \
  WPR_FORTRAN(name, NAME,                                                                          \
              MPI_##Name(sendbuf, sendcounts, sdispls,                                             \
                         types_in(sendtypes, n_to_read(sendbuf, find(comm).to)).data(), recvbuf,   \
                         recvcounts, rdispls, types_in(recvtypes, find(comm).from).data(), comm),  \
              WPR_TYPED(Displacement), int* error)                                                 \
  WPR_FORTRAN(i##name, I##NAME,                                                                    \
              MPI_I##name(sendbuf, sendcounts, sdispls,                                            \
                          kept(types_in(sendtypes, n_to_read(sendbuf, find(comm).to))), recvbuf,   \
                          recvcounts, rdispls, kept(types_in(recvtypes, find(comm).from)), comm,   \
                          RequestOut(request)),                                                    \
              WPR_TYPED(Displacement), int* request, int* error)                                   \
  WPR_PERSISTENT(                                                                                  \
      name, NAME, Name,                                                                            \
      (sendbuf, sendcounts, sdispls, kept(types_in(sendtypes, n_to_read(sendbuf, find(comm).to))), \
       recvbuf, recvcounts, rdispls, kept(types_in(recvtypes, find(comm).from)), comm),            \
      WPR_TYPED(Displacement))
WPR_TYPES(alltoallw, ALLTOALLW, Alltoallw, peers, int)
WPR_TYPES(neighbor_alltoallw, NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, neighbors, MPI_Aint)

#endif  // OPEN_MPI
