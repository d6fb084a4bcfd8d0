// SPDX-License-Identifier: Apache-2.0
// Every call of wirepress.hpp once; prints "ok".
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <wirepress/wirepress.hpp>

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

template <class Call>
void require_error(wpr_status status, const char* part, Call call) {
  try {
    call();
  } catch (const wirepress::Error& error) {
    require(error.status() == status, error.what());
    require(std::strstr(error.what(), part) != nullptr, error.what());
    return;
  }
  throw std::runtime_error(std::string("no error: ") + part);
}

void whole_buffers(wirepress::Context& context, const std::vector<float>& values) {
  const size_t size = values.size() * sizeof(float);
  const std::vector<std::byte> frame = context.compress(values.data(), size);
  require(frame.size() < size, "not smaller");
  require(wirepress::Context::raw_size(frame.data(), frame.size()) == size, "raw_size");
  const std::vector<std::byte> again = context.decompress(frame.data(), frame.size());
  require(again.size() == size, "size");
  require(std::memcmp(again.data(), values.data(), size) == 0, "content");
  const auto part = context.decompress_range(frame.data(), frame.size(), 40, 8);
  require(std::memcmp(part.data(), values.data() + 10, 8) == 0, "range");
  require(context.lossless("bx:m=23", WPR_FLOAT32), "lossless");
  require(!context.lossless("bx:m=23", WPR_FLOAT64), "not lossless");
  std::vector<std::byte> small(10);
  require_error(WPR_DST_TOO_SMALL, "", [&] {
    context.decompress(frame.data(), frame.size(), small.data(), small.size());
  });
  require_error(WPR_TRUNCATED, "", [&] { context.decompress(frame.data(), frame.size() - 1); });
#if __cplusplus >= 202002L
  const auto spanned = context.compress(std::span(values));
  require(spanned == frame, "span");
  require(context.decompress(std::span<const std::byte>(frame)) == again, "span back");
  require(context.inspect(std::span<const std::byte>(frame)).raw_size == size, "span inspect");
#endif
}

void devices(wirepress::Context& context, const std::vector<float>& values) {
  const size_t size = values.size() * sizeof(float);
  void* memory = context.device_alloc("cuda:emulated", 0, size);
  const wpr_place place = wirepress::place_of(memory);
  require(std::string(place.engine) == "cuda:emulated" && place.device == 0, "place");
  require(wirepress::place_of(values.data()).device == -1, "place on the cores");
  context.set_stream(WPR_NO_STREAM);
  context.copy(memory, values.data(), size);
  const uint64_t before = wirepress::device_work().cores_bytes;
  const auto frame = context.compress_array(memory, WPR_FLOAT32, {values.size()});
  require(frame == context.compress_array(values.data(), WPR_FLOAT32, {values.size()}), "device");
  require(wirepress::device_work().cores_bytes + wirepress::device_work().device_bytes > before,
          "work");
  std::vector<std::byte> made(context.bound(size));
  wpr_job* job =
      context.compress_async(memory, WPR_FLOAT32, {values.size()}, made.data(), made.size());
  made.resize(context.wait(job));
  require(made == frame, "job");
  job = context.decompress_async(made.data(), made.size(), memory, size);
  size_t written = 0;
  while (!context.poll(job, &written)) continue;
  require(written == size, "job back");
  const std::vector<float> zeros(values.size());
  void* rest = context.device_alloc("cuda:emulated", 0, size);
  context.copy(rest, zeros.data(), size);
  std::vector<std::byte> coded(context.bound(size));
  job = context.compress_feedback_async(memory, WPR_FLOAT32, static_cast<float*>(rest),
                                        values.size(), coded.data(), coded.size());
  coded.resize(context.wait(job));
  job =
      context.decompress_add_async(coded.data(), coded.size(), memory, WPR_FLOAT32, values.size());
  require(context.wait(job) == values.size(), "job that adds");
  wpr_piece piece = {memory, values.size(), nullptr, coded.data(), coded.capacity(), 0, 0};
  job = context.compress_pieces_async(&piece, 1, WPR_FLOAT32);
  require(context.wait(job) == piece.written && piece.written > 0, "job of pieces");
  piece = {coded.data(), piece.written, nullptr, memory, size, 0, 0};
  job = context.decompress_pieces_async(&piece, 1, false);
  require(context.wait(job) == size, "job of pieces back");
  context.device_free(rest);
  context.device_free(memory);
  require_error(WPR_PARAMETER, "memory of its own", [&] { context.device_alloc("cpu", 0, size); });
}

void arrays(wirepress::Context& context, const std::vector<float>& values) {
  const auto frame = context.compress_array(values.data(), WPR_FLOAT32, {10, values.size() / 10});
  const wpr_info info = context.inspect(frame.data(), frame.size());
  require(info.n_dims == 2 && info.shape[0] == 10, "shape");
  require(info.dtype == WPR_FLOAT32, "dtype");
  require(std::string(info.recipe) == "shuffle:4+lz4:1", info.recipe);
}

void streams(wirepress::Context& context, const std::vector<float>& values) {
  std::vector<std::byte> frame;
  context.stream_begin(WPR_FLOAT32, frame);
  for (const float& value : values) context.stream_update(&value, sizeof value, frame);
  context.stream_end(frame);
  std::vector<std::byte> out(values.size() * sizeof(float) + 1);
  context.expand_begin();
  const auto progress = context.expand_update(frame.data(), frame.size(), out.data(), out.size());
  require(progress.done && progress.consumed == frame.size(), "consumed");
  require(progress.written == out.size() - 1, "written");
  require(std::memcmp(out.data(), values.data(), progress.written) == 0, "stream content");
}

void settings(wirepress::Context& context) {
  require(context.get("recipe") == "shuffle:4+lz4", "get");
  require(context.origin("recipe") == "set", "origin");
  require_error(WPR_PARAMETER, "known", [&] { context.set("colour", "blue"); });
  require_error(WPR_PARAMETER, "known", [&] { context.set("recipe", "zpaq"); });
  const std::string cut("zstd\0+lz4", 9);  // C would take the part before the NUL
  require_error(WPR_PARAMETER, "NUL", [&] { context.set("recipe", cut); });
  require_error(WPR_PARAMETER, "NUL", [&] { context.set(cut, "1"); });
  require_error(WPR_PARAMETER, "NUL", [&] { wirepress::parse_rate(std::string("1Gbps\0x", 7)); });
  require_error(WPR_PARAMETER, "colour", [&] { context.get("colour"); });
}

void interrupts(wirepress::Context& context, const std::vector<float>& values) {
  const auto yes = [](void*) { return 1; };
  context.set("block_size", "1KiB");
  context.set_interrupt(yes, nullptr);
  require_error(WPR_INTERRUPTED, "interrupted",
                [&] { context.compress(values.data(), values.size() * sizeof(float)); });
  context.set_interrupt(nullptr, nullptr);
  context.compress(values.data(), values.size() * sizeof(float));
}

void run() {
  wirepress::Context first;
  first.set("recipe", "shuffle:4+lz4");
  wirepress::Context context = std::move(first);
  std::vector<float> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 8;
  settings(context);
  whole_buffers(context, values);
  require(context.stats().raw_bytes > 0, "stats");
  context.reset_stats();
  require(context.stats().raw_bytes == 0, "reset");
  arrays(context, values);
  devices(context, values);
  streams(context, values);
  interrupts(context, values);
  require(wirepress::version() == WPR_VERSION, "version");
  wirepress::take_warning();
  require(wirepress::take_warning().empty(), "a warning is given once");
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::puts("ok");
  return 0;
}
