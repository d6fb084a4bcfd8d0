// SPDX-License-Identifier: Apache-2.0
// What a data type looks like in memory.
#include "messages/types.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <mutex>
#include <vector>

#include "job/job.hpp"
#include "messages/devices.hpp"

namespace wirepress {
namespace {

// Predefined types, by handle. Filled once by MPI_Init, read without locks afterwards.
struct Named {
  uint64_t bits;
  Type type;
};
std::vector<Named>& table() {
  static auto* named = new std::vector<Named>(1024, Named{UINT64_MAX, {}});
  return *named;
}

size_t slot_of(uint64_t bits) { return ((bits * 0x9E3779B97F4A7C15u) >> 54) & 1023; }

Named* find_named(uint64_t bits) {
  std::vector<Named>& named = table();
  for (size_t i = slot_of(bits);; i = (i + 1) & 1023) {
    if (named[i].bits == bits || named[i].bits == UINT64_MAX) return &named[i];
  }
}

// size and extent as the library has them; pair types with gaps are not contiguous.
bool measure(MPI_Datatype handle, Type* type) {
  MPI_Count lower, extent;
  if (PMPI_Type_size_x(handle, &type->size) != MPI_SUCCESS) return false;
  if (PMPI_Type_get_extent_x(handle, &lower, &extent) != MPI_SUCCESS) return false;
  type->contiguous = lower == 0 && extent == type->size && type->size > 0;
  return true;
}

void add(MPI_Datatype handle, wpr_dtype dtype, Arithmetic arithmetic) {
  if (handle == MPI_DATATYPE_NULL) return;
  Named* named = find_named(handle_bits(handle));
  if (named->bits != UINT64_MAX) return;
  Type type;
  type.named = true;
  if (!measure(handle, &type)) return;
  type.arithmetic = type.contiguous ? arithmetic : Arithmetic::kNone;
  type.dtype = dtype;
  type.element = static_cast<uint8_t>(wpr_dtype_size(dtype));
  if (type.size != type.element * (arithmetic == Arithmetic::kComplex ? 2 : 1)) {
    type.forget_elements();
  }
  *named = {handle_bits(handle), type};
}

wpr_dtype integer(MPI_Datatype handle, bool is_signed) {
  static constexpr wpr_dtype kSigned[] = {WPR_INT8, WPR_INT16, WPR_INT32, WPR_INT64};
  static constexpr wpr_dtype kUnsigned[] = {WPR_UINT8, WPR_UINT16, WPR_UINT32, WPR_UINT64};
  int size = 0;
  if (handle != MPI_DATATYPE_NULL) PMPI_Type_size(handle, &size);
  for (int i = 0; i < 4; ++i) {
    if (size == 1 << i) return is_signed ? kSigned[i] : kUnsigned[i];
  }
  return WPR_BYTES;
}

wpr_dtype real(MPI_Datatype handle) {
  int size = 0;
  if (handle != MPI_DATATYPE_NULL) PMPI_Type_size(handle, &size);
  return size == 4 ? WPR_FLOAT32 : size == 8 ? WPR_FLOAT64 : WPR_BYTES;
}

// Combiners whose blocks follow each other in memory: such a type has no gaps if what it is made
// of has none and it spans no more than its bytes.
bool in_order(int combiner) {
  for (const int known : {MPI_COMBINER_DUP, MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR,
                          MPI_COMBINER_HVECTOR, MPI_COMBINER_SUBARRAY, MPI_COMBINER_RESIZED}) {
    if (combiner == known) return true;
  }
  return false;
}

bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

bool look_up_predefined(MPI_Datatype handle, int combiner, Type* type) {
  const Named* known = find_named(handle_bits(handle));
  if (known->bits != UINT64_MAX) {
    *type = known->type;
    return true;
  }
  type->named = true;
  if (!measure(handle, type)) return false;
  wpr_dtype dtype = WPR_BYTES;
  if (combiner == MPI_COMBINER_F90_REAL) dtype = real(handle);
  if (combiner == MPI_COMBINER_F90_INTEGER) dtype = integer(handle, true);
  if (dtype == WPR_BYTES) return true;
  type->dtype = dtype;
  type->element = static_cast<uint8_t>(type->size);
  return true;
}

// What a type was made of. What large-count functions made, only such functions tell of.
struct Envelope {
  LargestCount n_integers = 0, n_addresses = 0, n_counts = 0, n_types = 0;
  int combiner = MPI_COMBINER_NAMED;
};

int open_envelope(MPI_Datatype handle, Envelope* made) {
#ifdef WPR_MPI_LARGE
  return PMPI_Type_get_envelope_c(handle, &made->n_integers, &made->n_addresses, &made->n_counts,
                                  &made->n_types, &made->combiner);
#else
  return PMPI_Type_get_envelope(handle, &made->n_integers, &made->n_addresses, &made->n_types,
                                &made->combiner);
#endif
}

int get_parts(MPI_Datatype handle, const Envelope& made, std::vector<MPI_Datatype>* parts) {
  std::vector<int> integers(static_cast<size_t>(made.n_integers) + 1);
  std::vector<MPI_Aint> addresses(static_cast<size_t>(made.n_addresses) + 1);
#ifdef WPR_MPI_LARGE
  if (made.n_counts > 0) {
    std::vector<MPI_Count> counts(static_cast<size_t>(made.n_counts));
    return PMPI_Type_get_contents_c(handle, made.n_integers, made.n_addresses, made.n_counts,
                                    made.n_types, integers.data(), addresses.data(), counts.data(),
                                    parts->data());
  }
#endif
  return PMPI_Type_get_contents(handle, static_cast<int>(made.n_integers),
                                static_cast<int>(made.n_addresses), static_cast<int>(made.n_types),
                                integers.data(), addresses.data(), parts->data());
}

bool look_into(MPI_Datatype handle, Type* type, int depth, bool* predefined);

// What a derived type is made of: its dtype is that of all its leaves, if they have the same.
void look_at_parts(MPI_Datatype handle, Type* type, int depth, const Envelope& made) {
  std::vector<MPI_Datatype> parts(static_cast<size_t>(made.n_types), MPI_DATATYPE_NULL);
  if (made.n_types < 1 || get_parts(handle, made, &parts) != MPI_SUCCESS) return;
  bool alike = true, whole = in_order(made.combiner);
  for (size_t i = 0; i < parts.size(); ++i) {
    Type part;
    bool predefined = false;
    const bool known = look_into(parts[i], &part, depth + 1, &predefined);
    whole = whole && known && part.contiguous;
    alike = alike && known && (i == 0 || part.dtype == type->dtype);
    if (i == 0) type->dtype = part.dtype;
    if (i == 0) type->element = part.element;
    if (!predefined) PMPI_Type_free(&parts[i]);
  }
  type->contiguous = type->contiguous && whole;
  if (!alike) type->forget_elements();
}

bool look_into(MPI_Datatype handle, Type* type, int depth, bool* predefined) {
  constexpr int kDeepest = 16;
  Envelope made;
  *predefined = true;  // until known, so that nothing is freed that must not be
  if (open_envelope(handle, &made) != MPI_SUCCESS) return false;
  *predefined = is_predefined(made.combiner);
  if (*predefined) return look_up_predefined(handle, made.combiner, type);
  if (!measure(handle, type)) return false;
  if (depth < kDeepest) {
    look_at_parts(handle, type, depth, made);
  } else {
    type->contiguous = false;
  }
  return true;
}

// Derived types remember what was found in an attribute, which ends with them: handles come back.
int g_type_key = MPI_KEYVAL_INVALID;

int forget_type(MPI_Datatype, int, void* value, void*) {
  delete static_cast<Type*>(value);
  return MPI_SUCCESS;
}

const Type* remembered(MPI_Datatype handle) {
  void* value = nullptr;
  int found = 0;
  if (PMPI_Type_get_attr(handle, g_type_key, &value, &found) != MPI_SUCCESS || !found) {
    return nullptr;
  }
  return static_cast<const Type*>(value);
}

void remember(MPI_Datatype handle, const Type& type) {
  static auto* lock = new std::mutex;  // harmless across these calls: they wait for nobody
  std::lock_guard hold(*lock);
  if (remembered(handle)) return;
  auto* kept = new Type(type);
  if (PMPI_Type_set_attr(handle, g_type_key, kept) != MPI_SUCCESS) delete kept;
}

}  // namespace

void learn_types() {
  using A = Arithmetic;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_type, &g_type_key, nullptr);
  for (MPI_Datatype type : {MPI_BYTE, MPI_PACKED}) {
    add(type, WPR_BYTES, type == MPI_BYTE ? A::kByte : A::kNone);
  }
  add(MPI_CHAR, WPR_INT8, A::kNone);
  add(MPI_C_BOOL, WPR_BOOL, A::kLogical);
  for (MPI_Datatype type :
       {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
        MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1,
        MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8}) {
    add(type, integer(type, true), A::kInteger);
  }
  add(MPI_WCHAR, integer(MPI_WCHAR, true), A::kNone);
  for (MPI_Datatype type :
       {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    add(type, integer(type, false), A::kInteger);
  }
  for (MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_REAL4, MPI_REAL8,
                            MPI_DOUBLE_PRECISION}) {
    add(type, real(type), A::kFloat);
  }
  for (MPI_Datatype type :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX}) {
    int size = 0;
    if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
    add(type, size == 8 ? WPR_FLOAT32 : WPR_FLOAT64, A::kComplex);  // two a value
  }
  for (MPI_Datatype type : {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_2INT,
                            MPI_LONG_DOUBLE_INT, MPI_CHARACTER, MPI_LOGICAL}) {
    add(type, WPR_BYTES, A::kNone);
  }
}

bool look_up(MPI_Datatype handle, Type* type) {
  if (handle == MPI_DATATYPE_NULL) return false;
  const Named* named = find_named(handle_bits(handle));
  if (named->bits != UINT64_MAX) {
    *type = named->type;
    return true;
  }
  if (const Type* known = remembered(handle)) {
    *type = *known;
    return true;
  }
  *type = {};
  bool predefined;
  if (!look_into(handle, type, 0, &predefined)) return false;
  if (!predefined) remember(handle, *type);
  return true;
}

void keep_type(MPI_Datatype* type, bool* owns) {
  // The user may free the type before the request completes. Not dup: that would run the user's
  // attribute callbacks.
  PMPI_Type_contiguous(1, *type, type);
  PMPI_Type_commit(type);
  *owns = true;
}

ByteRoom::ByteRoom(size_t size) : count(static_cast<int>(size)), type(MPI_BYTE) {
  if (size <= INT_MAX) return;
  // One element of two blocks: whole GiB, and the rest.
  constexpr size_t kGiB = size_t{1} << 30;
  MPI_Datatype gib;
  PMPI_Type_contiguous(static_cast<int>(kGiB), MPI_BYTE, &gib);
  int lengths[2] = {static_cast<int>(size / kGiB), static_cast<int>(size % kGiB)};
  MPI_Aint places[2] = {0, static_cast<MPI_Aint>(size / kGiB * kGiB)};
  MPI_Datatype types[2] = {gib, MPI_BYTE};
  PMPI_Type_create_struct(2, lengths, places, types, &type);
  PMPI_Type_commit(&type);
  PMPI_Type_free(&gib);
  count = 1;
}

ByteRoom::~ByteRoom() {
  if (type != MPI_BYTE) PMPI_Type_free(&type);
}

namespace {

// A message to oneself lets MPI do what sending and receiving do, partial elements and absolute
// addresses included; MPI_Unpack does not do the one and MPICH's not the other. The tag keeps
// threads apart.
template <typename Body>
int to_myself(MPI_Count count, Body body) {
  static std::atomic<int> next{0};
  const int tag = kTagDeliver + (next.fetch_add(1, std::memory_order_relaxed) & kTagMask);
#ifndef WPR_MPI_LARGE
  if (count > INT_MAX) return MPI_ERR_COUNT;
#else
  (void)count;
#endif
  return body(tag);
}

}  // namespace

int deliver(const void* packed, size_t size, void* buffer, MPI_Count count, MPI_Datatype type) {
  return on_device(buffer) ? deliver_there(packed, size, buffer, count, type)
                           : deliver_on_cores(packed, size, buffer, count, type);
}

int deliver_on_cores(const void* packed, size_t size, void* buffer, MPI_Count count,
                     MPI_Datatype type) {
  Type known;
  if (buffer && size <= INT_MAX && look_up(type, &known) && known.size > 0 &&
      size % static_cast<size_t>(known.size) == 0) {
    const int n = static_cast<int>(size / static_cast<size_t>(known.size));
    int place = 0;
    return PMPI_Unpack(packed, static_cast<int>(size), &place, buffer, n, type, job().self);
  }
  const ByteRoom room(size);
  return to_myself(count, [&](int tag) {
    return WPR_LARGEST(PMPI_Sendrecv)(packed, room.count, room.type, 0, tag, buffer,
                                      static_cast<LargestCount>(count), type, 0, tag, job().self,
                                      MPI_STATUS_IGNORE);
  });
}

int collect(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed, size_t size) {
  return on_device(buffer) ? collect_there(buffer, count, type, packed, size)
                           : collect_on_cores(buffer, count, type, packed, size);
}

int collect_on_cores(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed,
                     size_t size) {
  if (buffer && size <= INT_MAX && count <= INT_MAX) {
    int place = 0;
    return PMPI_Pack(buffer, static_cast<int>(count), type, packed, static_cast<int>(size), &place,
                     job().self);
  }
  const ByteRoom room(size);
  return to_myself(count, [&](int tag) {
    return WPR_LARGEST(PMPI_Sendrecv)(buffer, static_cast<LargestCount>(count), type, 0, tag,
                                      packed, room.count, room.type, 0, tag, job().self,
                                      MPI_STATUS_IGNORE);
  });
}

int copy(const void* from, MPI_Count count, MPI_Datatype type, void* to, MPI_Count to_count,
         MPI_Datatype to_type) {
  return to_myself(std::max(count, to_count), [&](int tag) {
    return WPR_LARGEST(PMPI_Sendrecv)(from, static_cast<LargestCount>(count), type, 0, tag, to,
                                      static_cast<LargestCount>(to_count), to_type, 0, tag,
                                      job().self, MPI_STATUS_IGNORE);
  });
}

}  // namespace wirepress
