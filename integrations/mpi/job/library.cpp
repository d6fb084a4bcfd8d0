// SPDX-License-Identifier: Apache-2.0
// Which MPI library runs below, and whether this module is for it. A module is built for one ABI
// and for the functions that its library had; preloaded by hand it may meet another.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "job/interposer.hpp"

namespace wirepress {
namespace {

#if defined(OPEN_MPI)
constexpr char kAbi[] = "openmpi";
#elif defined(MPI_ABI_VERSION) && !defined(MPICH_NUMVERSION)
constexpr char kAbi[] = "abi";
#else
constexpr char kAbi[] = "mpich";
#endif

struct Soname {
  const char *name, *abi;
};
constexpr Soname kSonames[] = {{"libmpi.so.40", "openmpi"},
                               {"libmpi.so.12", "mpich"},
                               {"libmpich.so.12", "mpich"},
                               {"libmpi_abi.so.1", "abi"}};

struct Function {
  const char* name;
  bool wrapped;
};
constexpr Function kNewer[] = {
#ifdef WPR_MPI_LARGE
    {"MPI_Send_c", true},
#else
    {"MPI_Send_c", false},
#endif
#ifdef WPR_MPI_ISENDRECV
    {"MPI_Isendrecv", true},
#else
    {"MPI_Isendrecv", false},
#endif
#ifdef WPR_MPI_PERSISTENT
    {"MPI_Bcast_init", true},
#else
    {"MPI_Bcast_init", false},
#endif
#ifdef WPR_MPI_SESSIONS
    {"MPI_Session_init", true},
#else
    {"MPI_Session_init", false},
#endif
#ifdef WPR_MPI_GET_STATUS_ALL
    {"MPI_Request_get_status_all", true},
#else
    {"MPI_Request_get_status_all", false},
#endif
#ifdef WPR_MPI_GET_STATUS_ANY
    {"MPI_Request_get_status_any", true},
#else
    {"MPI_Request_get_status_any", false},
#endif
#ifdef WPR_MPI_GET_STATUS_SOME
    {"MPI_Request_get_status_some", true},
#else
    {"MPI_Request_get_status_some", false},
#endif
};

const char* abi_of(const char* name) {
  for (const Soname& soname : kSonames) {
    if (std::strcmp(soname.name, name) == 0) return soname.abi;
  }
  return "";
}

// The name of a loaded MPI library of another ABI; "" if there is none.
const char* other_abi() {
  const char* found = "";
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const char* slash = info->dlpi_name ? std::strrchr(info->dlpi_name, '/') : nullptr;
        for (const Soname& soname : kSonames) {
          const size_t n = std::strlen(soname.name);
          // libmpi.so.40.30.4 is libmpi.so.40; so is not libmpi.so.401
          if (slash && std::strncmp(slash + 1, soname.name, n) == 0 &&
              (slash[1 + n] == 0 || slash[1 + n] == '.') && std::strcmp(soname.abi, kAbi) != 0) {
            *static_cast<const char**>(out) = soname.name;
          }
        }
        return 0;
      },
      &found);
  return found;
}

}  // namespace

bool is_open_mpi() {
#if defined(OPEN_MPI)
  return true;
#else
  static const bool is = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int size = 0;
    return PMPI_Get_library_version(text, &size) == MPI_SUCCESS && std::strstr(text, "Open MPI");
  }();
  return is;
#endif
}

void require_abi() {
  const char* other = other_abi();
  if (!*other) return;
  // Handles of one ABI would reach functions of another: nothing that the program calls is safe.
  std::fprintf(stderr,
               "wirepress: this program loads %s, and the module that is preloaded is for another "
               "MPI (%s): give wirepress run the option --mpi %s\n",
               other, kAbi, abi_of(other));
  _exit(1);
}

std::string unfit_library() {
  for (const Function& function : kNewer) {
    const std::string inner = std::string("P") + function.name;
    const bool there = dlsym(RTLD_DEFAULT, inner.c_str()) != nullptr;
    if (there != function.wrapped) {
      return std::string("this module of wirepress was built for an MPI ") +
             (there ? "without " : "with ") + function.name +
             ", and here it is otherwise: `wirepress setup-mpi` builds the module for this MPI";
    }
  }
  return "";
}

}  // namespace wirepress
