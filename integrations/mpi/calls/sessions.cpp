// SPDX-License-Identifier: Apache-2.0
// Sessions, and the functions that make communicators.
#include "job/sessions.hpp"

#include "calls/wrap.hpp"

#ifdef WPR_MPI_SESSIONS

using namespace wirepress;

WPR_WRAP(MPI_Session_init, MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  begin_session();
  const int error = PMPI_Session_init(info, handler, session);
  if (error != MPI_SUCCESS) {
    end_session();
  } else {
    note_threads(*session);
  }
  return error;
}
WPR_WRAP(MPI_Session_finalize, MPI_Session* session) {
  const int error = PMPI_Session_finalize(session);
  if (error == MPI_SUCCESS) end_session();
  return error;
}

WPR_WRAP(MPI_Comm_create_from_group, MPI_Group group, const char* tag, MPI_Info info,
         MPI_Errhandler handler, MPI_Comm* made) {
  return mark_session(PMPI_Comm_create_from_group(group, tag, info, handler, made), made);
}
WPR_WRAP(MPI_Intercomm_create_from_groups, MPI_Group local, int local_leader, MPI_Group remote,
         int remote_leader, const char* tag, MPI_Info info, MPI_Errhandler handler,
         MPI_Comm* made) {
  return mark_session(PMPI_Intercomm_create_from_groups(local, local_leader, remote, remote_leader,
                                                        tag, info, handler, made),
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
