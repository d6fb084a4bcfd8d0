// SPDX-License-Identifier: Apache-2.0
// Writes, reads and checks the header of a frame (spec/frame.md).
#include "base/bytes.hpp"
#include "frame/frame.hpp"
#include "frame/hash.hpp"

namespace wirepress {
namespace {

constexpr uint8_t kMagic[3] = {'W', 'P', 'R'};
constexpr uint8_t kFlagChecksum = 1, kFlagStreamed = 2, kFlagSlabs = 4, kFlagsReserved = 8;
constexpr int kDimsNoShape = 7;

unsigned long long ull(uint64_t value) { return value; }

void write_stages(const Stages& stages, Writer& writer) {
  for (int i = 0; i < stages.n; ++i) {
    const Stage& stage = stages.stage[i];
    writer.write(static_cast<uint16_t>(stage.id | stage.n_bytes << 12));
    for (int p = 0; p < stage.n_bytes; ++p) writer.write(stage.bytes[p]);
  }
}

Status ends(size_t size) {
  return fail(Code::kTruncated, "header: %zu bytes are not a whole header", size);
}

Status read_fixed(Reader& reader, Header* header) {
  uint8_t magic[3], version_flags, dtype_dims, block_stages;
  size_t n_magic = 0;
  while (n_magic < 3 && reader.read(&magic[n_magic])) {
    if (n_magic == 2 && magic[n_magic] == 'S') {
      return fail(Code::kCorrupt,
                  "header: a series of frames, one file's: `wirepress decompress` expands it");
    }
    if (magic[n_magic] != kMagic[n_magic]) {
      return fail(Code::kCorrupt, "header: not a wirepress frame (magic byte %zu is 0x%02x)",
                  n_magic, magic[n_magic]);
    }
    ++n_magic;
  }
  if (!reader.read(&version_flags)) return ends(reader.position());
  if (version_flags >> 4 != kFrameVersion) {
    return fail(Code::kUnsupported, "header: frame version %d, this library reads version %d",
                version_flags >> 4, kFrameVersion);
  }
  if (!reader.read(&dtype_dims) || !reader.read(&block_stages)) return ends(reader.position());
  header->checksum = version_flags & kFlagChecksum;
  header->streamed = version_flags & kFlagStreamed;
  header->dtype = static_cast<DType>(dtype_dims & 31);
  header->n_dims = dtype_dims >> 5 == kDimsNoShape ? kNoShape : dtype_dims >> 5;
  header->block_log = block_stages & 31;
  header->slabs = version_flags & kFlagSlabs;
  header->stages.n = block_stages >> 5;
  if (version_flags & kFlagsReserved)
    return fail(Code::kUnsupported, "header: reserved flag set (flags 0x%x)", version_flags & 15);
  if (static_cast<int>(header->dtype) >= kDTypeCount)
    return fail(Code::kUnsupported, "header: dtype %d is not known", dtype_dims & 31);
  if (header->n_dims > kMaxDims)
    return fail(Code::kUnsupported, "header: dims %d is reserved", header->n_dims);
  if (header->streamed && header->n_dims != kNoShape)
    return fail(Code::kCorrupt, "header: a streamed frame with %d dimensions", header->n_dims);
  if (header->block_log < kMinBlockLog || header->block_log > kMaxBlockLog) {
    return fail(Code::kUnsupported, "header: block size 2^%d is not in 2^%d..2^%d",
                header->block_log, kMinBlockLog, kMaxBlockLog);
  }
  if (header->stages.n < 1 || header->stages.n > kMaxStages) {
    return fail(Code::kUnsupported, "header: %d stages are not in 1..%d", header->stages.n,
                kMaxStages);
  }
  return {};
}

// kTruncated where the bytes end.
Status read_stages(Reader& reader, Stages* stages) {
  for (int i = 0; i < stages->n; ++i) {
    uint16_t word;
    if (!reader.read(&word)) return ends(reader.position());
    Stage& stage = stages->stage[i];
    stage.id = word & 0xFFF;
    stage.n_bytes = static_cast<uint8_t>(word >> 12);
    if (stage.n_bytes > kMaxParamBytes) {
      return fail(Code::kUnsupported,
                  "header: stage %d has %d bytes of parameters, at most %zu are allowed", i,
                  stage.n_bytes, kMaxParamBytes);
    }
    for (int p = 0; p < stage.n_bytes; ++p) {
      if (!reader.read(&stage.bytes[p])) return ends(reader.position());
    }
  }
  return {};
}

Status read_size(Reader& reader, const char* field, uint64_t* value) {
  switch (read_varint(reader, value)) {
    case Varint::kOk:
      return {};
    case Varint::kEnds:
      return ends(reader.position());
    case Varint::kInvalid:
      break;
  }
  return fail(Code::kCorrupt, "header: %s is not a shortest varint", field);
}

Status no_rows() {
  return fail(Code::kCorrupt, "header: blocks of whole rows, but the shape has no such rows");
}

Status read_shape(Reader& reader, Header* header) {
  if (header->streamed) {
    header->raw_size = kUnknownSize;
    return header->slabs ? no_rows() : Status();
  }
  uint64_t extent[kMaxDims] = {};
  const int n = header->n_dims == kNoShape ? 1 : header->n_dims;
  for (int i = 0; i < n; ++i) {
    WPR_TRY(read_size(reader, header->n_dims == kNoShape ? "raw size" : "shape", &extent[i]));
  }
  if (header->n_dims == kNoShape) {
    const size_t element = dtype_size(header->dtype);
    if (extent[0] % element != 0) {
      return fail(Code::kCorrupt, "header: raw size %llu is no multiple of %zu (%s)",
                  ull(extent[0]), element, dtype_name(header->dtype));
    }
    extent[0] /= element;
  }
  if (!set_shape(header, header->dtype, header->n_dims, extent).ok())
    return fail(Code::kCorrupt, "header: the raw size passes 2^48 bytes");
  return header->slabs && !can_be_slabs(*header) ? no_rows() : Status();
}

// Four rows of the outermost dimension.
uint64_t four_rows(const Header& header) {
  uint64_t size = 4 * dtype_size(header.dtype);
  for (int i = 1; i < header.n_dims; ++i) size *= header.shape[i];
  return size;
}

}  // namespace

bool can_be_slabs(const Header& header) {
  return !header.streamed && header.n_dims >= 2 && header.raw_size > 0 &&
         four_rows(header) <= uint64_t{1} << kMaxBlockLog;
}

uint64_t Header::slab_size() const {
  const uint64_t step = four_rows(*this), most = uint64_t{1} << block_log;
  return step > most ? step : most / step * step;
}

Status read_own_stages(const Block& block, Stages* stages, ConstBytes* code) {
  Reader reader(block.payload);
  uint8_t n = 0;
  Stages result;
  if (reader.read(&n)) result.n = n;
  Status status = result.n < 1 || result.n > kMaxStages
                      ? fail(Code::kCorrupt, "%d stages are not in 1..%d", result.n, kMaxStages)
                      : read_stages(reader, &result);
  if (!status.ok() || reader.left() == 0) {
    return fail(Code::kCorrupt, "block %llu: its own recipe: %s", ull(block.index),
                status.ok() ? "nothing behind it" : status.text());
  }
  *stages = result;
  *code = block.payload.subspan(reader.position());
  return {};
}

bool same(const Stages& a, const Stages& b) {
  const auto equal = [](const Stage& x, const Stage& y) {
    return x.id == y.id && x.n_bytes == y.n_bytes && std::memcmp(x.bytes, y.bytes, x.n_bytes) == 0;
  };
  return a.n == b.n && std::equal(a.stage, a.stage + a.n, b.stage, equal);
}

size_t write_own_stages(const Stages& stages, Bytes dst) {
  Writer writer(dst);
  writer.write(static_cast<uint8_t>(stages.n));
  write_stages(stages, writer);
  return writer.full() ? 0 : writer.position();
}

Status set_shape(Header* header, DType dtype, int n_dims, const uint64_t* shape) {
  uint64_t size = dtype_size(dtype);
  const int n = n_dims == kNoShape ? 1 : n_dims;
  bool overflow = false, empty = false;
  for (int i = 0; i < n; ++i) {
    empty |= shape[i] == 0;
    overflow |= shape[i] > kMaxRawSize;
    if (shape[i] != 0) overflow |= __builtin_mul_overflow(size, shape[i], &size);
  }
  if (overflow || size > kMaxRawSize)
    return fail(Code::kParameter, "shape: more than 2^48 bytes in a frame");
  header->dtype = dtype;
  header->n_dims = n_dims;
  for (int i = 0; i < kMaxDims; ++i) header->shape[i] = i < n_dims ? shape[i] : 0;
  header->raw_size = empty ? 0 : size;
  return {};
}

Status write_header(Header* header, Bytes dst, size_t* written) {
  std::byte bytes[128];
  Writer writer(bytes);
  for (uint8_t byte : kMagic) writer.write(byte);
  writer.write(static_cast<uint8_t>(kFrameVersion << 4 | (header->checksum ? kFlagChecksum : 0) |
                                    (header->streamed ? kFlagStreamed : 0) |
                                    (header->slabs ? kFlagSlabs : 0)));
  const int dims = header->n_dims == kNoShape ? kDimsNoShape : header->n_dims;
  writer.write(static_cast<uint8_t>(dims << 5 | static_cast<int>(header->dtype)));
  writer.write(static_cast<uint8_t>(header->stages.n << 5 | header->block_log));
  write_stages(header->stages, writer);
  if (!header->streamed) {
    if (header->n_dims == kNoShape) writer.write_varint(header->raw_size);
    for (int i = 0; i < header->n_dims; ++i) writer.write_varint(header->shape[i]);
  }
  writer.write(short_hash({bytes, writer.position()}, 0));
  const size_t size = writer.position();
  if (writer.full() || size + (header->streamed ? 4 : 0) > kMaxHeader) {
    return fail(Code::kParameter, "recipe and shape need a header of %zu bytes, at most %zu fit",
                size, kMaxHeader);
  }
  if (size > dst.size())
    return fail(Code::kDstTooSmall, "the header needs %zu bytes, dst has %zu", size, dst.size());
  std::memcpy(dst.data(), bytes, size);
  header->size = size;
  *written = size;
  return {};
}

Status read_header(ConstBytes src, Header* header) {
  Reader reader(src.first(src.size() < kMaxHeader ? src.size() : kMaxHeader));
  Header result;
  Status status = read_fixed(reader, &result);
  if (status.ok()) status = read_stages(reader, &result.stages);
  if (status.ok()) status = read_shape(reader, &result);
  if (!status.ok()) {
    if (status.code() == Code::kTruncated && src.size() >= kMaxHeader)
      return fail(Code::kCorrupt, "header: longer than %zu bytes", kMaxHeader);
    return status;
  }
  const size_t covered = reader.position();
  uint32_t checksum;
  if (!reader.read(&checksum)) {
    if (src.size() < kMaxHeader) return ends(src.size());
    return fail(Code::kCorrupt, "header: longer than %zu bytes", kMaxHeader);
  }
  const uint32_t expected = short_hash(src.first(covered), 0);
  if (checksum != expected) {
    return fail(Code::kChecksum, "header: checksum is %08x, its bytes hash to %08x", checksum,
                expected);
  }
  result.size = reader.position();
  *header = result;
  return {};
}

}  // namespace wirepress
