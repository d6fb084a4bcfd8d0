// SPDX-License-Identifier: Apache-2.0
#include "pipeline/context.hpp"

#include <cstring>

namespace wirepress {

Status Context::add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats.compress_seconds);
  ParsedFrame terms[2];
  Header& header = terms[0].header;
  WPR_TRY(read_header(a, &header));
  WPR_TRY(read_header(b, &terms[1].header));
  if (header.size != terms[1].header.size || std::memcmp(a.data(), b.data(), header.size) != 0)
    return fail(Code::kParameter, "the two frames differ in recipe, type, shape or block size");
  if (header.streamed || !can_add_values(header.dtype))
    return fail(
        Code::kParameter,
        "only frames of float32 or of integers of at most 32 bits that are no streams can be "
        "added");
  const size_t bound = writer.bound(header.raw_size);
  if (dst.size() < bound)
    return fail(Code::kDstTooSmall, "the sum needs a dst of bound() = %zu bytes, not %zu", bound,
                dst.size());
  const int threads = settings.blocks().threads;
  WPR_TRY(reader.find_chain(threads, &terms[0]));
  if (!terms[0].chain->can_add())
    return fail(Code::kUnsupported, "%s: codes of it cannot be added",
                terms[0].chain->recipe().step[0].entry->codec->name);
  for (const int t : {0, 1}) {
    WPR_TRY(reader.parse(t ? b : a, &terms[t]));
    WPR_TRY(reader.find_own_chains(threads, &terms[t]));
  }
  return writer.sum(terms[0], terms[1], dst, written);
}

}  // namespace wirepress
