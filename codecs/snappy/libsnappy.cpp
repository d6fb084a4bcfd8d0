// SPDX-License-Identifier: Apache-2.0
#include <snappy.h>

#include <cstring>
#include <new>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

// libsnappy writes up to MaxCompressedLength bytes whatever the code's size is, so a smaller dst
// needs this buffer. It grows to the largest block seen and is then reused.
struct State {
  char* scratch = nullptr;
  size_t size = 0;
};

Status open(const Args&, void** state) noexcept {
  *state = new (std::nothrow) State;
  return *state == nullptr ? fail(Code::kNoMemory, "snappy: no memory for its state") : Status();
}

void close(void* state) noexcept {
  auto* own = static_cast<State*>(state);
  if (own != nullptr) delete[] own->scratch;
  delete own;
}

Status grow(State* state, size_t size) {
  if (state->size >= size) return {};
  delete[] state->scratch;
  state->size = 0;
  state->scratch = new (std::nothrow) char[size];
  if (state->scratch == nullptr)
    return fail(Code::kNoMemory, "snappy: no memory for %zu bytes", size);
  state->size = size;
  return {};
}

Status compress(State* state, ConstBytes src, Bytes dst, size_t* written) {
  const auto* in = reinterpret_cast<const char*>(src.data());
  auto* out = reinterpret_cast<char*>(dst.data());
  const size_t most = snappy::MaxCompressedLength(src.size());
  size_t size = 0;
  if (dst.size() >= most) {
    snappy::RawCompress(in, src.size(), out, &size);
  } else {
    WPR_TRY(grow(state, most));
    snappy::RawCompress(in, src.size(), state->scratch, &size);
    if (size > dst.size())
      return fail(Code::kDstTooSmall, "snappy: needs %zu bytes, has %zu", size, dst.size());
    std::memcpy(out, state->scratch, size);
  }
  *written = size;
  return {};
}

Status encode(void* state, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
  if (src.size() > UINT32_MAX)
    return fail(Code::kParameter, "snappy: %zu bytes, at most %u in a block", src.size(),
                UINT32_MAX);
  try {
    return compress(static_cast<State*>(state), src, dst, written);
  } catch (const std::bad_alloc&) {  // libsnappy allocates its hash table
    return fail(Code::kNoMemory, "snappy: no memory to compress %zu bytes", src.size());
  }
}

Status decode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const auto* in = reinterpret_cast<const char*>(src.data());
  size_t size = 0;
  if (!snappy::GetUncompressedLength(in, src.size(), &size))
    return fail(Code::kCorrupt, "snappy: no length at the head of %zu bytes", src.size());
  if (size > dst.size())
    return fail(Code::kCorrupt, "snappy: says %zu raw bytes, room for %zu", size, dst.size());
  char nothing = 0;
  auto* out = dst.empty() ? &nothing : reinterpret_cast<char*>(dst.data());
  try {
    if (!snappy::RawUncompress(in, src.size(), out))
      return fail(Code::kCorrupt, "snappy: %zu bytes do not expand to the %zu they say", src.size(),
                  size);
  } catch (const std::bad_alloc&) {
    return fail(Code::kNoMemory, "snappy: no memory to expand %zu bytes", src.size());
  }
  *written = size;
  return {};
}

}  // namespace

extern const Kernel snappy_libsnappy;
const Kernel snappy_libsnappy = {
    .engine = "cpu",
    .variant = "libsnappy",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
