// SPDX-License-Identifier: Apache-2.0
// What the frame costs: liblz4, libzstd and libdeflate called through wirepress and called plainly.
//
//   frame_cost DATA [turns]    prints JSON; DATA is repeated or cut to 64 MiB
//
// Per codec: the plain library over the same blocks with one reused context and buffer ("plain"),
// the plain library over the whole buffer at once ("whole"), and wirepress with one thread, with
// one thread and no checksum, and with two threads. All of them take turns, so that whatever else
// the machine does hits all; the best turn of each counts. Every result is expanded and compared.
#include <libdeflate.h>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <wirepress/wirepress.hpp>

namespace {

constexpr size_t kSize = size_t{64} << 20;

using Buffer = std::vector<std::byte>;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

// A plain library: one block or buffer in, one out; both return the size written.
struct Plain {
  virtual ~Plain() = default;
  virtual size_t bound(size_t n) = 0;
  virtual size_t compress(const std::byte* src, size_t n, std::byte* dst, size_t cap) = 0;
  virtual size_t decompress(const std::byte* src, size_t n, std::byte* dst, size_t cap) = 0;
};

class Lz4 : public Plain {
 public:
  explicit Lz4(int level) : level_(level), state_(state_size(level)) {}
  size_t bound(size_t n) override { return LZ4_COMPRESSBOUND(n); }
  size_t compress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    const auto* in = reinterpret_cast<const char*>(src);
    auto* out = reinterpret_cast<char*>(dst);
    const int size = level_ < LZ4HC_CLEVEL_MIN
                         ? LZ4_compress_fast_extState(state_.data(), in, out, static_cast<int>(n),
                                                      static_cast<int>(cap), 1)
                         : LZ4_compress_HC_extStateHC(state_.data(), in, out, static_cast<int>(n),
                                                      static_cast<int>(cap), level_);
    return static_cast<size_t>(size);
  }
  size_t decompress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    return static_cast<size_t>(LZ4_decompress_safe(reinterpret_cast<const char*>(src),
                                                   reinterpret_cast<char*>(dst),
                                                   static_cast<int>(n), static_cast<int>(cap)));
  }

 private:
  static size_t state_size(int level) {
    return static_cast<size_t>(level < LZ4HC_CLEVEL_MIN ? LZ4_sizeofState() : LZ4_sizeofStateHC());
  }
  int level_;
  Buffer state_;
};

class Zstd : public Plain {
 public:
  explicit Zstd(int level) : level_(level) {}
  size_t bound(size_t n) override { return ZSTD_compressBound(n); }
  size_t compress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    const size_t size = ZSTD_compressCCtx(packer_.get(), dst, cap, src, n, level_);
    return ZSTD_isError(size) ? 0 : size;
  }
  size_t decompress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    const size_t size = ZSTD_decompressDCtx(unpacker_.get(), dst, cap, src, n);
    return ZSTD_isError(size) ? 0 : size;
  }

 private:
  int level_;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> packer_{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> unpacker_{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

class Deflate : public Plain {
 public:
  explicit Deflate(int level)
      : packer_(libdeflate_alloc_compressor(level), libdeflate_free_compressor) {}
  size_t bound(size_t n) override { return libdeflate_deflate_compress_bound(packer_.get(), n); }
  size_t compress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    return libdeflate_deflate_compress(packer_.get(), src, n, dst, cap);
  }
  size_t decompress(const std::byte* src, size_t n, std::byte* dst, size_t cap) override {
    size_t size = 0;
    const auto result = libdeflate_deflate_decompress(unpacker_.get(), src, n, dst, cap, &size);
    return result == LIBDEFLATE_SUCCESS ? size : 0;
  }

 private:
  std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> packer_;
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> unpacker_{
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor};
};

// Something to time: its buffers are made, and touched, before.
struct Subject {
  std::string name;
  std::function<size_t()> compress;  // returns the size of all that is stored
  std::function<void()> decompress;  // to out
  std::shared_ptr<Buffer> out;
  size_t stored_size = 0;
  double compress_seconds = std::numeric_limits<double>::infinity();
  double decompress_seconds = std::numeric_limits<double>::infinity();
};

Subject plain_subject(std::string name, const std::shared_ptr<Plain>& plain, const Buffer& data,
                      size_t block_size) {
  auto out = std::make_shared<Buffer>(data.size());
  const size_t slot = plain->bound(block_size);
  const size_t n_blocks = (data.size() + block_size - 1) / block_size;
  auto packed = std::make_shared<Buffer>(slot * n_blocks);
  auto sizes = std::make_shared<std::vector<size_t>>(n_blocks);
  auto compress = [=, &data] {
    size_t stored = 0;
    for (size_t i = 0; i < n_blocks; ++i) {
      const size_t n = std::min(block_size, data.size() - i * block_size);
      (*sizes)[i] = plain->compress(&data[i * block_size], n, &(*packed)[i * slot], slot);
      require((*sizes)[i] != 0, "the plain library failed to compress");
      stored += (*sizes)[i];
    }
    return stored;
  };
  auto decompress = [=] {
    for (size_t i = 0; i < n_blocks; ++i) {
      const size_t n = std::min(block_size, out->size() - i * block_size);
      const size_t size =
          plain->decompress(&(*packed)[i * slot], (*sizes)[i], &(*out)[i * block_size], n);
      require(size == n, "the plain library failed to expand");
    }
  };
  return {std::move(name), compress, decompress, out};
}

Subject frame_subject(std::string name, const std::string& recipe, const char* threads,
                      const char* checksum, const Buffer& data) {
  auto context = std::make_shared<wirepress::Context>();
  context->set("recipe", recipe);
  context->set("threads", threads);
  context->set("checksum", checksum);
  auto out = std::make_shared<Buffer>(data.size());
  auto frame = std::make_shared<Buffer>(context->bound(data.size()));
  auto size = std::make_shared<size_t>(0);
  auto compress = [=, &data] {
    *size = context->compress(data.data(), data.size(), frame->data(), frame->size());
    return *size;
  };
  auto decompress = [=] { context->decompress(frame->data(), *size, out->data(), out->size()); };
  return {std::move(name), compress, decompress, out};
}

template <class Call>
void time(double* best, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  *best = std::min(*best, spent.count());
}

size_t default_block_size(const Buffer& data) {
  wirepress::Context context;
  const auto frame = context.compress(data.data(), data.size());
  return static_cast<size_t>(context.inspect(frame.data(), frame.size()).block_size);
}

void measure(std::vector<Subject>& subjects, const Buffer& data, int turns) {
  for (Subject& subject : subjects) {
    subject.stored_size = subject.compress();
    subject.decompress();
    require(*subject.out == data, "expanded to something else");
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (Subject& subject : subjects) time(&subject.compress_seconds, subject.compress);
    for (Subject& subject : subjects) time(&subject.decompress_seconds, subject.decompress);
  }
}

void print(const std::string& recipe, const std::vector<Subject>& subjects, bool* first) {
  for (const Subject& subject : subjects) {
    std::printf(
        "%s    {\"recipe\": \"%s\", \"subject\": \"%s\", \"stored_size\": %zu, "
        "\"compress_gbps\": %.4f, \"decompress_gbps\": %.4f}",
        *first ? "" : ",\n", recipe.c_str(), subject.name.c_str(), subject.stored_size,
        kSize / subject.compress_seconds / 1e9, kSize / subject.decompress_seconds / 1e9);
    *first = false;
  }
}

Buffer read_data(const char* path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot open DATA");
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  require(!content.empty(), "DATA is empty");
  Buffer data(kSize);
  for (size_t at = 0; at < kSize; at += content.size()) {
    std::memcpy(&data[at], content.data(), std::min(content.size(), kSize - at));
  }
  return data;
}

void run(const char* path, int turns) {
  const Buffer data = read_data(path);
  const size_t block_size = default_block_size(data);
  struct Case {
    const char* recipe;
    std::function<std::shared_ptr<Plain>()> make;
  };
  const Case cases[] = {
      {"lz4:1", [] { return std::make_shared<Lz4>(1); }},
      {"lz4:9", [] { return std::make_shared<Lz4>(9); }},
      {"zstd:1", [] { return std::make_shared<Zstd>(1); }},
      {"zstd:3", [] { return std::make_shared<Zstd>(3); }},
      {"deflate:1", [] { return std::make_shared<Deflate>(1); }},
      {"deflate:6", [] { return std::make_shared<Deflate>(6); }},
  };
  std::printf("{\n  \"raw_size\": %zu,\n  \"block_size\": %zu,\n  \"turns\": %d,\n  \"rows\": [\n",
              kSize, block_size, turns);
  bool first = true;
  for (const Case& each : cases) {
    std::vector<Subject> subjects;
    subjects.push_back(plain_subject("plain", each.make(), data, block_size));
    subjects.push_back(plain_subject("whole", each.make(), data, kSize));
    subjects.push_back(frame_subject("frame", each.recipe, "1", "on", data));
    subjects.push_back(frame_subject("frame, no checksum", each.recipe, "1", "off", data));
    subjects.push_back(frame_subject("frame, 2 threads", each.recipe, "2", "on", data));
    measure(subjects, data, turns);
    print(each.recipe, subjects, &first);
  }
  std::printf("\n  ]\n}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: frame_cost DATA [turns]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "frame_cost: %s\n", error.what());
    return 1;
  }
  return 0;
}
