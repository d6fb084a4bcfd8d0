// SPDX-License-Identifier: Apache-2.0
// The HDF5 filter: a chunk is a frame. HDF5 loads this module from HDF5_PLUGIN_PATH, or a program
// registers what H5PLget_plugin_info returns. README.md has the cd_values.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "host.hpp"
#include "settings.hpp"

namespace wirepress::hdf5 {
namespace {

constexpr unsigned kReverse = 0x0100;  // H5Z_FLAG_REVERSE: decode
constexpr const char* kDefaultRecipe = "shuffle+zstd:1";

// HDF5 2 keeps nothing of what a filter says, so that the last sentence is kept here.
thread_local char last_error[512] = "";

void complain(const Host& host, const std::string& sentence) {
  std::snprintf(last_error, sizeof(last_error), "%s", sentence.c_str());
  host.complain(sentence);
}

// HDF5 has no place for what is no failure.
void say_warning() {
  const char* const warning = wpr_take_warning();
  if (*warning) std::fprintf(stderr, "wirepress: %s\n", warning);
}

// One context for all calls: HDF5 makes one at a time. Never freed, so that the end of a process
// finds no thread of it in the way.
class Coder {
 public:
  static Coder& of_process();

  // An empty recipe is the one of WIREPRESS_RECIPE, or else the default.
  wpr_status use(const std::string& recipe);
  wpr_ctx* context() { return context_; }
  std::string sentence() const { return context_ ? wpr_error(context_) : "no memory"; }
  std::mutex& mutex() { return mutex_; }

 private:
  Coder() : created_(wpr_create(&context_)) {}

  std::mutex mutex_;
  wpr_ctx* context_ = nullptr;
  wpr_status created_;
  std::string given_, recipe_;
  pid_t process_ = getpid();
};

Coder& Coder::of_process() {
  static std::atomic<Coder*> shared{nullptr};
  Coder* coder = shared.load();
  // After a fork the threads of the context are not there.
  if (coder && coder->process_ == getpid()) return *coder;
  auto* made = new Coder;
  if (shared.compare_exchange_strong(coder, made)) return say_warning(), *made;
  wpr_free(made->context_);
  delete made;
  return *coder;
}

wpr_status Coder::use(const std::string& recipe) {
  if (created_ != WPR_OK) return created_;
  if (given_.empty()) {  // the first time
    const bool chosen = std::strcmp(wpr_origin(context_, "recipe"), "default") != 0;
    given_ = chosen ? wpr_get(context_, "recipe") : kDefaultRecipe;
  }
  const std::string& wanted = recipe.empty() ? given_ : recipe;
  if (wanted == recipe_) return WPR_OK;
  const wpr_status status = wpr_set(context_, "recipe", wanted.c_str());
  recipe_ = status == WPR_OK ? wanted : "";
  return status;
}

// What HDF5 allocates and frees; it uses malloc, too.
struct Memory {
  explicit Memory(size_t size) : data(std::malloc(size ? size : 1)), capacity(size) {}
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void give(void** buffer, size_t* buffer_size) {
    std::free(*buffer);
    *buffer = data;
    *buffer_size = capacity;
    data = nullptr;
  }
  void* data;
  size_t capacity;
};

// Both return the size of the result, or 0 and the reason.
size_t encode(Coder& coder, const Settings& settings, size_t size, size_t* buffer_size,
              void** buffer, std::string* error) {
  if (size == 0 || (settings.described && settings.size() != size)) {
    *error = "a chunk has " + std::to_string(size) + " bytes, cd_values say " +
             std::to_string(settings.size());
    return 0;
  }
  if (coder.use(settings.recipe) != WPR_OK) return *error = coder.sentence(), 0;
  Memory frame(wpr_bound(coder.context(), size));
  if (!frame.data) return *error = "no memory", 0;
  const uint64_t n = size;
  const uint64_t* shape = settings.described ? settings.shape.data() : &n;
  const int n_dims = settings.described ? static_cast<int>(settings.shape.size()) : WPR_NO_SHAPE;
  size_t written = 0;
  if (wpr_compress_array(coder.context(), *buffer, settings.dtype, n_dims, shape, frame.data,
                         frame.capacity, &written) != WPR_OK)
    return *error = coder.sentence(), 0;
  frame.give(buffer, buffer_size);
  return written;
}

size_t decode(Coder& coder, const Settings& settings, size_t size, size_t* buffer_size,
              void** buffer, std::string* error) {
  if (!coder.context()) return *error = "no memory", 0;
  uint64_t raw_size = 0;
  wpr_info info;
  if (wpr_inspect(coder.context(), *buffer, size, &info) != WPR_OK)
    return *error = coder.sentence(), 0;
  if (const wpr_status status = wpr_raw_size(*buffer, size, &raw_size); status != WPR_OK)
    return *error = std::string("the chunk's frame is ") + wpr_status_name(status), 0;
  // Before memory is taken: every block has a word at least.
  if (info.n_blocks != WPR_UNKNOWN && info.n_blocks > size / sizeof(uint32_t)) {
    *error = "the chunk's frame has " + std::to_string(info.n_blocks) + " blocks in " +
             std::to_string(size) + " bytes";
    return 0;
  }
  if (raw_size == 0 || (settings.described && raw_size != settings.size())) {
    *error = "the chunk's frame holds " + std::to_string(raw_size) + " bytes, a chunk has " +
             std::to_string(settings.described ? settings.size() : 1);
    return 0;
  }
  Memory chunk(raw_size);
  if (!chunk.data) return *error = "no memory for " + std::to_string(raw_size) + " bytes", 0;
  size_t written = 0;
  if (wpr_decompress(coder.context(), *buffer, size, chunk.data, chunk.capacity, &written) !=
      WPR_OK)
    return *error = coder.sentence(), 0;
  chunk.give(buffer, buffer_size);
  return written;
}

size_t run(unsigned flags, size_t n_values, const unsigned* values, size_t size,
           size_t* buffer_size, void** buffer, std::string* error) try {
  Settings settings;
  if (!settings.read(values, n_values, error)) return 0;
  Coder& coder = Coder::of_process();
  const std::lock_guard<std::mutex> lock(coder.mutex());
  return (flags & kReverse ? decode : encode)(coder, settings, size, buffer_size, buffer, error);
} catch (const std::bad_alloc&) {
  return *error = "no memory", 0;
}

size_t filter(unsigned flags, size_t n_values, const unsigned* values, size_t size,
              size_t* buffer_size, void** buffer) {
  std::string error;
  const size_t result = run(flags, n_values, values, size, buffer_size, buffer, &error);
  if (result == 0) complain(Host(__builtin_return_address(0)), error);
  return result;
}

// The best description that the recipe's codecs take. False: they take none.
bool choose(const std::vector<Kind>& kinds, const std::vector<uint64_t>& chunk, Settings* settings,
            std::string* error) {
  Coder& coder = Coder::of_process();
  const std::lock_guard<std::mutex> lock(coder.mutex());
  if (coder.use(settings->recipe) != WPR_OK) return *error = coder.sentence(), false;
  const std::string recipe = wpr_get(coder.context(), "recipe");
  for (const Kind& kind : kinds) {
    int lossless = 0;
    if (wpr_lossless(coder.context(), recipe.c_str(), kind.dtype, &lossless) == WPR_OK) {
      if (!chunk.empty() && !settings->describe(kind, chunk)) settings->described = false;
      return true;
    }
    if (error->empty()) *error = coder.sentence();
  }
  return false;
}

bool fill_in(const Host& host, Id list, Id type, std::string* error) try {
  unsigned flags = 0;
  std::vector<unsigned> values;
  bool first = false;
  if (!host.settings(list, WPR_HDF5_FILTER_ID, &flags, &values, &first)) return true;
  Settings settings;
  if (!settings.read(values.data(), values.size(), error)) return false;
  settings.described = false;
  // Behind another filter there is no array any more.
  std::vector<Kind> kinds = first ? host.kinds(type) : std::vector<Kind>();
  const std::vector<uint64_t> chunk = kinds.empty() ? std::vector<uint64_t>() : host.chunk(list);
  if (kinds.empty()) kinds = {{WPR_UINT8, 1}};
  if (!choose(kinds, chunk, &settings, error)) {
    if (!first) *error += "; it stands behind another filter, whose output is bytes: put it first";
    return false;
  }
  if (host.modify(list, WPR_HDF5_FILTER_ID, flags, settings.write())) return true;
  return *error = "the cd_values cannot be changed", false;
} catch (const std::bad_alloc&) {
  return *error = "no memory", false;
}

int set_local(Id list, Id type, Id /*space*/) {
  const Host host(__builtin_return_address(0));
  std::string error;
  if (fill_in(host, list, type, &error)) return 0;
  complain(host, error);
  return -1;
}

// H5Z_class2_t of H5Zpublic.h, the same in all versions since 1.8.
struct FilterClass {
  int version;
  int id;
  unsigned encoder_present;
  unsigned decoder_present;
  const char* name;
  int (*can_apply)(Id, Id, Id);
  int (*set_local)(Id, Id, Id);
  size_t (*filter)(unsigned, size_t, const unsigned*, size_t, size_t*, void**);
};

constexpr FilterClass kClass = {1,       WPR_HDF5_FILTER_ID, 1,     1, "wirepress",
                                nullptr, set_local,          filter};

}  // namespace
}  // namespace wirepress::hdf5

// The names are HDF5's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
WPR_API int H5PLget_plugin_type() { return 0; }  // H5PL_TYPE_FILTER
WPR_API const void* H5PLget_plugin_info() { return &wirepress::hdf5::kClass; }
// The last failure of the filter in this thread, "" if there was none.
WPR_API const char* wirepress_hdf5_error() { return wirepress::hdf5::last_error; }
}
// NOLINTEND(readability-identifier-naming)
