// SPDX-License-Identifier: Apache-2.0
// Communicators that come from a session, and all that is made of them, outlive MPI_Finalize, and
// with it this library, which then expands nothing. Their messages stay raw from the beginning: a
// sender cannot know whether the receiver has finalized. Every member knows where a communicator
// comes from, so all agree. The mark is an attribute, which duplicates inherit by themselves.
#include "job/sessions.hpp"

#include <atomic>
#include <cstring>
#include <mutex>

#include "job/job.hpp"

#ifdef WPR_MPI_SESSIONS

namespace wirepress {
namespace {

std::atomic<int> g_end_key{MPI_KEYVAL_INVALID}, g_n_sessions{0};

// Keys end where MPI does: with the last session, unless the program called MPI_Init.
int find_key() {
  static auto* lock = new std::mutex;  // harmless across this call: it waits for nobody
  std::lock_guard hold(*lock);
  int key = g_end_key.load();
  if (key == MPI_KEYVAL_INVALID) {
    PMPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    g_end_key = key;
  }
  return key;
}

}  // namespace

int mark_session(int error, MPI_Comm* made) {
  static std::atomic<bool> marked{true};
  if (error == MPI_SUCCESS && made && *made != MPI_COMM_NULL) {
    PMPI_Comm_set_attr(*made, find_key(), &marked);
  }
  return error;
}

bool comes_from_session(MPI_Comm comm) {
  const int key = g_end_key.load(std::memory_order_acquire);
  void* value;
  int found = 0;
  return key != MPI_KEYVAL_INVALID && comm != MPI_COMM_NULL &&
         PMPI_Comm_get_attr(comm, key, &value, &found) == MPI_SUCCESS && found;
}

int inherit_session(int error, MPI_Comm parent, MPI_Comm* made) {
  return error == MPI_SUCCESS && comes_from_session(parent) ? mark_session(error, made) : error;
}

namespace {

// Where no session is open: keys have ended, and their numbers may be others' later.
void forget_key() {
  int begun = 0, ended = 0;
  PMPI_Initialized(&begun);
  PMPI_Finalized(&ended);
  if (!begun || ended) g_end_key = MPI_KEYVAL_INVALID;
}

}  // namespace

void begin_session() {
  if (g_n_sessions.fetch_add(1) == 0) forget_key();
}

// Before any thread can call MPI with what is made of the session. Locks that a call of another
// thread does without are not needed yet: it ends before this session has a communicator.
void note_threads(MPI_Session session) {
  char level[32] = "";
  int size = sizeof level, found = 0;
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Session_get_info(session, &info) == MPI_SUCCESS) {
    PMPI_Info_get_string(info, "thread_level", &size, level, &found);
    PMPI_Info_free(&info);
  }
  if (!found || std::strcmp(level, "MPI_THREAD_MULTIPLE") == 0) job().multiple = true;
}

void end_session() {
  if (g_n_sessions.fetch_sub(1) == 1) forget_key();
}

}  // namespace wirepress

#endif  // WPR_MPI_SESSIONS
