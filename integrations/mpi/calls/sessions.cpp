// SPDX-License-Identifier: Apache-2.0
// Communicators that come from a session, and all that is made of them, outlive MPI_Finalize, and
// with it this library, which then expands nothing. Their messages stay raw from the beginning: a
// sender cannot know whether the receiver has finalized. Every member knows where a communicator
// comes from, so all agree. The mark is an attribute, which duplicates inherit by themselves.
#include "job/interposer.hpp"
#include "calls/pmpi.hpp"

#ifdef WPR_MPI_SESSIONS

namespace wirepress {
namespace {

std::atomic<int> g_key{MPI_KEYVAL_INVALID}, g_n_sessions{0};

// Keys end where MPI does: with the last session, unless the program called MPI_Init.
int find_key() {
  static auto* lock = new std::mutex;  // harmless across this call: it waits for nobody
  std::lock_guard hold(*lock);
  int key = g_key.load();
  if (key == MPI_KEYVAL_INVALID) {
    PMPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    g_key = key;
  }
  return key;
}

int mark(int error, MPI_Comm* made) {
  static std::atomic<bool> marked{true};
  if (error == MPI_SUCCESS && made && *made != MPI_COMM_NULL) {
    PMPI_Comm_set_attr(*made, find_key(), &marked);
  }
  return error;
}

}  // namespace

bool comes_from_session(MPI_Comm comm) {
  const int key = g_key.load(std::memory_order_acquire);
  void* value;
  int found = 0;
  return key != MPI_KEYVAL_INVALID && comm != MPI_COMM_NULL &&
         PMPI_Comm_get_attr(comm, key, &value, &found) == MPI_SUCCESS && found;
}

int inherit_session(int error, MPI_Comm parent, MPI_Comm* made) {
  return error == MPI_SUCCESS && comes_from_session(parent) ? mark(error, made) : error;
}

int mark_session(MPI_Comm* made) { return mark(MPI_SUCCESS, made); }

void begin_session() {
  int begun = 0, ended = 0;
  if (g_n_sessions.fetch_add(1) > 0) return;
  PMPI_Initialized(&begun);
  PMPI_Finalized(&ended);
  if (!begun || ended) g_key = MPI_KEYVAL_INVALID;
}

void end_session() { g_n_sessions.fetch_sub(1); }

}  // namespace wirepress

using namespace wirepress;

WPR_WRAP(MPI_Session_init, MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  begin_session();
  const int error = PMPI_Session_init(info, handler, session);
  if (error != MPI_SUCCESS) end_session();
  return error;
}
WPR_WRAP(MPI_Session_finalize, MPI_Session* session) {
  const int error = PMPI_Session_finalize(session);
  if (error == MPI_SUCCESS) end_session();
  return error;
}

WPR_WRAP(MPI_Comm_create_from_group, MPI_Group group, const char* tag, MPI_Info info,
         MPI_Errhandler handler, MPI_Comm* made) {
  return mark(PMPI_Comm_create_from_group(group, tag, info, handler, made), made);
}
WPR_WRAP(MPI_Intercomm_create_from_groups, MPI_Group local, int local_leader, MPI_Group remote,
         int remote_leader, const char* tag, MPI_Info info, MPI_Errhandler handler,
         MPI_Comm* made) {
  return mark(PMPI_Intercomm_create_from_groups(local, local_leader, remote, remote_leader, tag,
                                                info, handler, made),
              made);
}

// A communicator made of another one, which is the first of the arguments.
#define WPR_MADE(name, arguments, ...)                               \
  WPR_WRAP(MPI_##name, MPI_Comm comm, __VA_ARGS__, MPI_Comm* made) { \
    return inherit_session(PMPI_##name arguments, comm, made);       \
  }
WPR_MADE(Comm_create, (comm, group, made), MPI_Group group)
WPR_MADE(Comm_create_group, (comm, group, tag, made), MPI_Group group, int tag)
WPR_MADE(Comm_split, (comm, color, key, made), int color, int key)
WPR_MADE(Comm_split_type, (comm, type, key, info, made), int type, int key, MPI_Info info)
WPR_MADE(Cart_create, (comm, n, dims, periods, reorder, made), int n, const int dims[],
         const int periods[], int reorder)
WPR_MADE(Cart_sub, (comm, remain, made), const int remain[])
WPR_MADE(Graph_create, (comm, n, index, edges, reorder, made), int n, const int index[],
         const int edges[], int reorder)
WPR_MADE(Dist_graph_create, (comm, n, sources, degrees, destinations, weights, info, reorder, made),
         int n, const int sources[], const int degrees[], const int destinations[],
         const int weights[], MPI_Info info, int reorder)
WPR_MADE(Dist_graph_create_adjacent,
         (comm, n_from, from, from_weights, n_to, to, to_weights, info, reorder, made), int n_from,
         const int from[], const int from_weights[], int n_to, const int to[],
         const int to_weights[], MPI_Info info, int reorder)
WPR_MADE(Intercomm_create, (comm, leader, peers, remote_leader, tag, made), int leader,
         MPI_Comm peers, int remote_leader, int tag)
WPR_MADE(Intercomm_merge, (comm, high, made), int high)
#undef WPR_MADE

#endif  // WPR_MPI_SESSIONS
