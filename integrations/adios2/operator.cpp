// SPDX-License-Identifier: Apache-2.0
// ADIOS2's plug-in operator (2.12 and later): a block of a variable is a frame.
#include <adios2/plugin/PluginOperatorInterface.h>
#include <strings.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "wirepress/wirepress.h"

namespace wirepress::adios2 {
namespace {

using ::adios2::DataType;
using ::adios2::Dims;
using ::adios2::Params;

constexpr const char* kDefaultRecipe = "shuffle+zstd:1";
constexpr size_t kMostHeader = 1024;  // beside the parameters; 2.12 has some 50 bytes

// How elements can be described to codecs: `count` of a type each.
struct Kind {
  wpr_dtype dtype;
  uint64_t count;
};

// Best first; complex numbers are pairs to a codec that takes only floats. Empty: not supported.
std::vector<Kind> kinds(DataType type) {
  switch (type) {
    case DataType::Int8:
      return {{WPR_INT8, 1}};
    case DataType::Int16:
      return {{WPR_INT16, 1}};
    case DataType::Int32:
      return {{WPR_INT32, 1}};
    case DataType::Int64:
      return {{WPR_INT64, 1}};
    case DataType::Char:
    case DataType::UInt8:
      return {{WPR_UINT8, 1}};
    case DataType::UInt16:
      return {{WPR_UINT16, 1}};
    case DataType::UInt32:
      return {{WPR_UINT32, 1}};
    case DataType::UInt64:
      return {{WPR_UINT64, 1}};
    case DataType::Float:
      return {{WPR_FLOAT32, 1}};
    case DataType::Double:
      return {{WPR_FLOAT64, 1}};
    case DataType::LongDouble:
      return {{WPR_UINT8, sizeof(long double)}};
    case DataType::FloatComplex:
      return {{WPR_COMPLEX64, 1}, {WPR_FLOAT32, 2}};
    case DataType::DoubleComplex:
      return {{WPR_COMPLEX128, 1}, {WPR_FLOAT64, 2}};
    default:
      return {};
  }
}

// Parameters that are ADIOS2's own.
bool is_host_word(const std::string& key) {
  for (const char* word : {"PluginName", "PluginLibrary", "EngineName", "EngineVersion"})
    if (strcasecmp(key.c_str(), word) == 0) return true;
  return false;
}

class Operator final : public ::adios2::plugin::PluginOperatorInterface {
 public:
  // An exception here would end the process: one that cannot be used supports no type, so that
  // ADIOS2 says that it is left out.
  explicit Operator(const Params& parameters) : PluginOperatorInterface(parameters) {
    usable_ = wpr_create(&context_) == WPR_OK;
    const char* const warning = wpr_take_warning();
    if (*warning) std::fprintf(stderr, "wirepress: %s\n", warning);
    if (usable_ && std::strcmp(wpr_origin(context_, "recipe"), "default") == 0)
      usable_ = wpr_set(context_, "recipe", kDefaultRecipe) == WPR_OK;
    for (const auto& [key, value] : parameters)
      if (usable_ && !is_host_word(key))
        usable_ = wpr_set(context_, key.c_str(), value.c_str()) == WPR_OK;
  }
  ~Operator() override { wpr_free(context_); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  size_t Operate(const char* data, const Dims& /*start*/, const Dims& count, const DataType type,
                 char* buffer) override {
    const Kind kind = choose(type);
    if (kind.count == 0) throw std::invalid_argument("wirepress: the type is not supported");
    std::vector<uint64_t> shape(count.begin(), count.end());
    if (kind.count > 1) shape.push_back(kind.count);
    while (shape.size() > WPR_MAX_DIMS) {  // a frame remembers no more: the outermost become one
      shape[1] *= shape[0];
      shape.erase(shape.begin());
    }
    const size_t size = ::adios2::GetTotalSize(count, ::adios2::GetDataTypeSize(type));
    size_t written = 0;
    check(wpr_compress_array(context_, data, kind.dtype, static_cast<int>(shape.size()),
                             shape.data(), buffer, wpr_bound(context_, size), &written));
    return written;
  }

  // ADIOS2 says neither how much room there is nor for what type and shape, and nothing that it
  // hands over holds them: they are in its metadata, this block is in its data file. It takes no
  // notice of the size that comes back either. So the frame's own size is believed: its checksums
  // find damage, not a whole frame that belongs elsewhere.
  size_t InverseOperate(const char* buffer, const size_t size, char* data) override {
    if (!context_) throw std::runtime_error("wirepress: no memory");
    wpr_info info;
    check(wpr_inspect(context_, buffer, size, &info));
    size_t written = 0;
    if (info.raw_size == WPR_UNKNOWN) throw std::runtime_error("wirepress: a streamed frame");
    check(wpr_decompress(context_, buffer, size, data, info.raw_size, &written));
    return written;
  }

  // Asked before anything is written: an exception of Operate leaves BP5 writers of 2.12 in a state
  // in which closing them ends the process.
  bool IsDataTypeValid(const DataType type) const override { return choose(type).count > 0; }

  // Of the room that is made for this ADIOS2 takes a part before it calls Operate: for a header of
  // its own, with the parameters.
  size_t GetEstimatedSize(const size_t n, const size_t element_size, const size_t /*n_dims*/,
                          const size_t* /*dims*/) const override {
    size_t header = kMostHeader;
    for (const auto& [key, value] : m_Parameters) header += key.size() + value.size();
    return wpr_bound(context_, n * element_size) + header;
  }

 private:
  // The best description that the recipe's codecs take; of count 0 where there is none.
  Kind choose(DataType type) const {
    if (!usable_) return {WPR_BYTES, 0};
    const std::string recipe = wpr_get(context_, "recipe");
    for (const Kind& kind : kinds(type)) {
      int lossless = 0;
      if (wpr_lossless(context_, recipe.c_str(), kind.dtype, &lossless) == WPR_OK) return kind;
    }
    return {WPR_BYTES, 0};
  }

  void check(wpr_status status) const {
    if (status == WPR_OK) return;
    throw std::runtime_error(std::string("wirepress: ") + wpr_error(context_));
  }

  wpr_ctx* context_ = nullptr;
  bool usable_ = false;
};

}  // namespace
}  // namespace wirepress::adios2

// The names are ADIOS2's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
WPR_API adios2::plugin::PluginOperatorInterface* OperatorCreate(const adios2::Params& parameters) {
  return new wirepress::adios2::Operator(parameters);
}
WPR_API void OperatorDestroy(adios2::plugin::PluginOperatorInterface* object) { delete object; }
}
// NOLINTEND(readability-identifier-naming)
