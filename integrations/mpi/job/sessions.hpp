// SPDX-License-Identifier: Apache-2.0
// Communicators that come from a session: their messages stay raw.
#pragma once

#include <mpi.h>

namespace wirepress {

#ifdef WPR_MPI_SESSIONS
bool comes_from_session(MPI_Comm comm);
// After a function made a communicator of `parent`, or of a session. Both return `error`.
int inherit_session(int error, MPI_Comm parent, MPI_Comm* made);
int mark_session(int error, MPI_Comm* made);
void begin_session();                    // before MPI_Session_init
void note_threads(MPI_Session session);  // after it
void end_session();                      // after MPI_Session_finalize
#else
inline bool comes_from_session(MPI_Comm) { return false; }
#endif

}  // namespace wirepress
