// SPDX-License-Identifier: Apache-2.0
// Intel's ISA-L for the levels that it has, 1 to 3: about twice the speed of libdeflate's level 1,
// and codes that are some per cent larger. So it is a choice (engine=cpu:isal) and no default.
// Other levels, and decoding, where libdeflate is faster and refuses more, are libdeflate's.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/kernel.hpp"

namespace wirepress {

extern const Kernel deflate_libdeflate;

namespace {

constexpr size_t kTables[] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT,
                              ISAL_DEF_LVL3_DEFAULT};

struct IsalState {
  void* other = nullptr;  // libdeflate's
  isal_zstream stream;
  std::unique_ptr<uint8_t[]> tables;
};

Status open(const Args& args, void** state) noexcept {
  std::unique_ptr<IsalState> own(new (std::nothrow) IsalState);
  if (own == nullptr) return fail(Code::kNoMemory, "deflate: no memory");
  WPR_TRY(deflate_libdeflate.open(args, &own->other));
  *state = own.release();
  return {};
}

void close(void* state) noexcept {
  auto* own = static_cast<IsalState*>(state);
  if (own == nullptr) return;
  deflate_libdeflate.close(own->other);
  delete own;
}

// The code's size; 0: it does not fit.
size_t code(IsalState* own, uint32_t level, ConstBytes src, Bytes dst) {
  isal_zstream& stream = own->stream;
  isal_deflate_stateless_init(&stream);
  stream.level = level;
  stream.level_buf = own->tables.get();
  stream.level_buf_size = static_cast<uint32_t>(kTables[level]);
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  stream.next_in = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(src.data()));
  stream.avail_in = static_cast<uint32_t>(src.size());
  stream.next_out = reinterpret_cast<uint8_t*>(dst.data());
  stream.avail_out = static_cast<uint32_t>(std::min<size_t>(dst.size(), UINT32_MAX));
  const bool done = isal_deflate_stateless(&stream) == COMP_OK && stream.avail_in == 0;
  return done ? stream.total_out : 0;
}

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  auto* own = static_cast<IsalState*>(state);
  const auto level = static_cast<uint32_t>(args.value[0]);
  if (level >= 1 && level <= 3 && !src.empty() && src.size() < UINT32_MAX) {
    if (own->tables == nullptr) own->tables.reset(new (std::nothrow) uint8_t[kTables[level]]);
    if (own->tables == nullptr) return fail(Code::kNoMemory, "deflate: no memory for tables");
    if (const size_t size = code(own, level, src, dst)) return *written = size, Status();
  }
  return deflate_libdeflate.encode(own->other, args, src, dst, written);
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return deflate_libdeflate.decode(static_cast<IsalState*>(state)->other, args, src, dst, written);
}

}  // namespace

extern const Kernel deflate_isal;
const Kernel deflate_isal = {.engine = "cpu",
                             .variant = "isal",
                             .usable = always_usable,
                             .open = open,
                             .close = close,
                             .encode = encode,
                             .decode = decode};

}  // namespace wirepress
