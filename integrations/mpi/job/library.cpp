// SPDX-License-Identifier: Apache-2.0
// Which MPI library runs below, and whether this module is for it. A module is built for one ABI
// and for the functions that its library had; preloaded by hand it may meet another.
#include "job/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

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

// A macro that is defined is 1.
#define WPR_TEXT(macro) #macro
#define WPR_NEWER(function, macro) \
  { function, WPR_TEXT(macro)[0] == '1' }
struct Function {
  const char* name;
  bool wrapped;
};
constexpr Function kNewer[] = {
    WPR_NEWER("MPI_Send_c", WPR_MPI_LARGE),
    WPR_NEWER("MPI_Isendrecv", WPR_MPI_ISENDRECV),
    WPR_NEWER("MPI_Bcast_init", WPR_MPI_PERSISTENT),
    WPR_NEWER("MPI_Session_init", WPR_MPI_SESSIONS),
    WPR_NEWER("MPI_Request_get_status_all", WPR_MPI_GET_STATUS_ALL),
    WPR_NEWER("MPI_Request_get_status_any", WPR_MPI_GET_STATUS_ANY),
    WPR_NEWER("MPI_Request_get_status_some", WPR_MPI_GET_STATUS_SOME),
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

// Open MPI's Fortran calls pass through no C function; where its INTEGER is not a C int fortran.cpp
// is not built.
bool has_foreign_fortran() {
#ifndef WPR_MPI_FORTRAN
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void*) {
               return info->dlpi_name && std::strstr(info->dlpi_name, "libmpi_mpifh") ? 1 : 0;
             },
             nullptr) != 0;
#else
  return false;
#endif
}

// The dynamic symbols of this library.
class Symbols {
 public:
  Symbols() {
    Dl_info info;
    link_map* map = nullptr;
    if (!dladdr1(reinterpret_cast<void*>(require_abi), &info, reinterpret_cast<void**>(&map),
                 RTLD_DL_LINKMAP)) {
      return;
    }
    base_ = map->l_addr;
    const uint32_t* hash = nullptr;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) value = entry->d_un.d_ptr;
      const ElfW(Addr) at = value < base_ ? base_ + value : value;  // not every libc adds the base
      if (entry->d_tag == DT_SYMTAB) first_ = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(at);
    }
    if (first_ && names_ && hash) size_ = count(hash);
  }
  size_t size() const { return size_; }
  bool defined(size_t i) const { return first_[i].st_shndx != SHN_UNDEF; }
  const char* name(size_t i) const { return names_ + first_[i].st_name; }
  const void* address(size_t i) const {
    return reinterpret_cast<const void*>(base_ + first_[i].st_value);
  }

 private:
  // Its chains end with the last symbol; nothing else tells how many there are.
  static size_t count(const uint32_t* hash) {
    const uint32_t n_buckets = hash[0], first = hash[1], n_words = hash[2];
    const uint32_t* buckets = hash + 4 + n_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chains = buckets + n_buckets;
    uint32_t last = *std::max_element(buckets, chains);
    if (last < first) return first;
    while (!(chains[last - first] & 1)) ++last;
    return last + 1;
  }

  ElfW(Addr) base_ = 0;
  const ElfW(Sym) * first_ = nullptr;
  const char* names_ = nullptr;
  size_t size_ = 0;
};

// A program that is not position-independent and takes a function's address has a stub for it,
// which is the address for everybody and leads to the function.
bool is_stub(const void* function) {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  return dladdr1(function, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
                 RTLD_DL_SYMENT) &&
         symbol && symbol->st_shndx == SHN_UNDEF;
}

// A tool that is part of the program, or preloaded before this library, has MPI functions of its
// own, which call PMPI: messages would be compressed on one side only. Fortran's names may be
// anybody's, for the PMPI names of Fortran lead here too.
std::string foreign_function() {
  const Symbols symbols;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const char* name = symbols.name(i);
    if (!symbols.defined(i) || std::strncmp(name, "MPI_", 4) != 0 || !std::islower(name[5])) {
      continue;
    }
    const void* found = dlsym(RTLD_DEFAULT, name);
    if (found && found != symbols.address(i) && !is_stub(found)) return name;
  }
  return "";
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

std::string unseen_calls() {
  if (has_foreign_fortran()) return "its Fortran calls cannot be seen";
  const std::string foreign = foreign_function();
  if (foreign.empty()) return "";
  return "there is another " + foreign + ", in the program or preloaded before this library";
}

}  // namespace wirepress
