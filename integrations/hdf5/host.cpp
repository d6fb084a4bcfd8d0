// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <dlfcn.h>

namespace wirepress::hdf5 {
namespace {

// Of H5Tpublic.h; frozen, because files hold them.
enum TypeClass {
  kInteger = 0,
  kFloat = 1,
  kBits = 4,
  kCompound = 6,
  kEnum = 8,
  kArray = 10,
  kComplex = 11
};
constexpr int kLittleEndian = 0, kUnsigned = 0;
constexpr int kMostRank = 32;

wpr_dtype unsigned_of(size_t size) {
  switch (size) {
    case 2:
      return WPR_UINT16;
    case 4:
      return WPR_UINT32;
    case 8:
      return WPR_UINT64;
    default:
      return WPR_UINT8;
  }
}

wpr_dtype signed_of(size_t size) {
  return static_cast<wpr_dtype>(unsigned_of(size) - 1);  // wpr_dtype has them side by side
}

bool is_power_of_two(size_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

}  // namespace

Host::Host(void* inside) {
  Dl_info info;
  if (dladdr(inside, &info) && info.dli_fname)
    library_ = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

template <class Function>
Function* Host::find(const char* name) const {
  void* symbol = library_ ? dlsym(library_, name) : nullptr;
  // A program that holds the library itself is no file that dlopen finds.
  if (!symbol) symbol = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Function*>(symbol);
}

bool Host::settings(Id list, int filter, unsigned* flags, std::vector<unsigned>* values,
                    bool* first) const {
  auto* get = find<int(Id, int, unsigned*, size_t*, unsigned*, size_t, char*, unsigned*)>(
      "H5Pget_filter_by_id2");
  auto* get_at = find<int(Id, unsigned, unsigned*, size_t*, unsigned*, size_t, char*, unsigned*)>(
      "H5Pget_filter2");
  if (!get || !get_at) return false;
  size_t n = 0;
  if (get(list, filter, flags, &n, nullptr, 0, nullptr, nullptr) < 0) return false;
  values->resize(n);
  if (n > 0 && get(list, filter, flags, &n, values->data(), 0, nullptr, nullptr) < 0) return false;
  unsigned other_flags = 0;
  size_t none = 0;
  *first = get_at(list, 0, &other_flags, &none, nullptr, 0, nullptr, nullptr) == filter;
  return true;
}

bool Host::modify(Id list, int filter, unsigned flags, const std::vector<unsigned>& values) const {
  auto* modify = find<int(Id, int, unsigned, size_t, const unsigned*)>("H5Pmodify_filter");
  return modify && modify(list, filter, flags, values.size(), values.data()) >= 0;
}

std::vector<uint64_t> Host::chunk(Id list) const {
  auto* get = find<int(Id, int, uint64_t*)>("H5Pget_chunk");
  uint64_t extents[kMostRank];
  const int rank = get ? get(list, kMostRank, extents) : 0;
  if (rank <= 0) return {};
  return {extents, extents + rank};
}

std::vector<Kind> Host::kinds(Id type) const {
  auto* get_class = find<int(Id)>("H5Tget_class");
  auto* get_size = find<size_t(Id)>("H5Tget_size");
  if (!get_class || !get_size) return {};
  const int type_class = get_class(type);
  const size_t size = get_size(type);
  if (size == 0) return {};
  std::vector<Kind> found;
  if (type_class == kArray) found = array_kinds(type);
  if (type_class == kCompound) found = compound_kinds(type);
  if (type_class == kComplex || type_class == kEnum) found = super_kinds(type);
  if (!found.empty()) return found;
  const bool number = type_class == kInteger || type_class == kFloat || type_class == kBits;
  if (number && is_power_of_two(size)) return {{this->number(type, type_class), 1}};
  return {{WPR_UINT8, size}};
}

wpr_dtype Host::number(Id type, int type_class) const {
  auto* get_size = find<size_t(Id)>("H5Tget_size");
  auto* get_order = find<int(Id)>("H5Tget_order");
  auto* get_sign = find<int(Id)>("H5Tget_sign");
  const size_t size = get_size(type);
  // What is no number of this machine is an unsigned integer, which no lossy float codec takes.
  if (!get_order || !get_sign || (size > 1 && get_order(type) != kLittleEndian))
    return unsigned_of(size);
  if (type_class == kFloat) return float_type(type, size);
  return type_class == kBits || get_sign(type) == kUnsigned ? unsigned_of(size) : signed_of(size);
}

wpr_dtype Host::float_type(Id type, size_t size) const {
  auto* get_fields = find<int(Id, size_t*, size_t*, size_t*, size_t*, size_t*)>("H5Tget_fields");
  size_t sign, exponent_at, exponent, fraction_at, fraction;
  if (!get_fields ||
      get_fields(type, &sign, &exponent_at, &exponent, &fraction_at, &fraction) < 0 ||
      sign != 8 * size - 1 || fraction_at != 0 || exponent_at != fraction ||
      exponent + fraction + 1 != 8 * size)
    return unsigned_of(size);
  if (size == 8 && exponent == 11) return WPR_FLOAT64;
  if (size == 4 && exponent == 8) return WPR_FLOAT32;
  if (size == 2 && exponent == 8) return WPR_BFLOAT16;
  if (size == 2 && exponent == 5) return WPR_FLOAT16;
  return unsigned_of(size);
}

std::vector<Kind> Host::super_kinds(Id type) const {
  auto* get_super = find<Id(Id)>("H5Tget_super");
  auto* get_class = find<int(Id)>("H5Tget_class");
  auto* close = find<int(Id)>("H5Tclose");
  if (!get_super || !close) return {};
  const Id super = get_super(type);
  if (super < 0) return {};
  auto found = get_class(type) == kComplex ? complex_kinds(super) : kinds(super);
  close(super);
  return found;
}

std::vector<Kind> Host::array_kinds(Id type) const {
  auto* get_size = find<size_t(Id)>("H5Tget_size");
  std::vector<Kind> found = super_kinds(type);
  for (Kind& kind : found) {
    const size_t element = wpr_dtype_size(kind.dtype);
    if (get_size(type) % element != 0) return {};
    kind.count = get_size(type) / element;
  }
  return found;
}

// h5py's complex numbers: a real and an imaginary part, of one float type.
std::vector<Kind> Host::compound_kinds(Id type) const {
  auto* n_members = find<int(Id)>("H5Tget_nmembers");
  auto* member_type = find<Id(Id, unsigned)>("H5Tget_member_type");
  auto* member_offset = find<size_t(Id, unsigned)>("H5Tget_member_offset");
  auto* get_size = find<size_t(Id)>("H5Tget_size");
  auto* equal = find<int(Id, Id)>("H5Tequal");
  auto* close = find<int(Id)>("H5Tclose");
  if (!n_members || !member_type || !member_offset || !equal || !close || n_members(type) != 2)
    return {};
  const Id real = member_type(type, 0), imaginary = member_type(type, 1);
  std::vector<Kind> found;
  if (real >= 0 && imaginary >= 0 && equal(real, imaginary) > 0 && member_offset(type, 0) == 0 &&
      member_offset(type, 1) == get_size(real) && get_size(type) == 2 * get_size(real))
    found = complex_kinds(real);
  if (real >= 0) close(real);
  if (imaginary >= 0) close(imaginary);
  return found;
}

std::vector<Kind> Host::complex_kinds(Id part) const {
  const std::vector<Kind> parts = kinds(part);
  if (parts.size() != 1 || parts[0].count != 1) return {};
  const wpr_dtype dtype = parts[0].dtype;
  if (dtype == WPR_FLOAT32) return {{WPR_COMPLEX64, 1}, {dtype, 2}};
  if (dtype == WPR_FLOAT64) return {{WPR_COMPLEX128, 1}, {dtype, 2}};
  return {};
}

void Host::complain(const std::string& sentence) const {
  auto* push =
      find<int(Id, const char*, const char*, unsigned, Id, Id, Id, const char*, ...)>("H5Epush2");
  const auto* error_class = find<Id>("H5E_ERR_CLS_g");
  const auto* major = find<Id>("H5E_PLINE_g");
  const auto* minor = find<Id>("H5E_CANTFILTER_g");
  if (push && error_class && major && minor)
    push(0, __FILE__, "wirepress", __LINE__, *error_class, *major, *minor, "wirepress: %s",
         sentence.c_str());
}

}  // namespace wirepress::hdf5
