// SPDX-License-Identifier: Apache-2.0
#include "pipeline/jobs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include "pipeline/context.hpp"

namespace wirepress {
namespace {

constexpr size_t up(size_t size) {
  constexpr size_t kAligned = 256;
  return (size + kAligned - 1) / kAligned * kAligned;
}

// Parts of a job's memory, one behind the other.
class Layout {
 public:
  size_t add(size_t size) {
    const size_t at = size_;
    size_ += up(size);
    return at;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// Whether kernels reach blocks of these bytes where they lie.
bool fits_kernels(const void* at, const Header& header) {
  constexpr size_t kAligned = 16;
  return reinterpret_cast<uintptr_t>(at) % kAligned == 0 &&
         (header.block_size() % kAligned == 0 || header.raw_size <= header.block_size());
}

// Of blocks that a device has at once.
constexpr size_t kMostScratch = 256 << 20;

constexpr const char* kFailed = "the device failed a job on a stream";

// Whether a stream that ended so has lost a job, and why; nullptr: it did it, or it is none for it.
const char* why_lost(const Status& status) {
  if (status.code() == Code::kDevice) return kFailed;
  return status.code() == Code::kNoMemory ? "no memory for a job on a stream" : nullptr;
}

// The kernel that does a recipe on a stream of the place; nullptr: none does.
const StreamKernel* stream_kernel(const Recipe& recipe, const Place& place, const char* engine) {
  const Kernel* kernel = nullptr;
  if (recipe.n_steps != 1 || why_on_cores(recipe, place, engine, &kernel) != nullptr)
    return nullptr;
  return kernel->on_stream;
}

// Scratch memory for a block of any size that the frame has.
size_t scratch_size(const StreamKernel& kernel, const Args& args, const Header& header,
                    bool expands) {
  const uint64_t last = header.n_blocks() - 1;
  return std::max(kernel.scratch(args, header.block_raw_size(0), expands),
                  kernel.scratch(args, header.block_raw_size(last), expands));
}

// Blocks that go side by side, with scratch memory each.
size_t side_by_side(size_t scratch, size_t n_blocks) {
  return scratch == 0 ? n_blocks : std::clamp<size_t>(kMostScratch / up(scratch), 1, n_blocks);
}

// What addresses are counted from in a draft of a plan, where no memory is yet.
std::byte* nowhere() { return reinterpret_cast<std::byte*>(uintptr_t{1} << 32); }

Args for_block(const Recipe& recipe, const Header& header, const Place& place, uint64_t seed,
               uint64_t i) {
  Args args = recipe.step[0].args;
  const size_t size = header.dtype == DType::kBytes ? 4 : dtype_size(header.dtype);
  args.seed = seed;
  args.first = i * header.block_size() / size;  // as BlockMaker::draw
  args.device = place.device;
  return args;
}

}  // namespace

Status DeviceBuffer::prepare(const Place& place, bool pinned, size_t size) {
  if (data_ != nullptr && size <= room_ && place == place_ && pinned == pinned_) return {};
  release();
  void* at = nullptr;
  const size_t room = size + size / 4;
  WPR_TRY(pinned ? place.memory->streams->pin(room, &at)
                 : place.memory->allocate(place.device, room, &at));
  place_ = place;
  pinned_ = pinned;
  data_ = static_cast<std::byte*>(at);
  room_ = room;
  return {};
}

void DeviceBuffer::release() {
  if (data_ != nullptr && pinned_)
    place_.memory->streams->unpin(data_);
  else if (data_ != nullptr)
    static_cast<void>(place_.memory->release(place_.device, data_));
  data_ = nullptr;
  room_ = 0;
}

// A device may still read and write what the jobs have.
Jobs::~Jobs() {
  for (const auto& job : all_) {
    if (job->mark == nullptr) continue;
    const DeviceStreams& streams = *job->place.memory->streams;
    if (job->state == Job::State::kOnStream || job->state == Job::State::kLater)
      static_cast<void>(streams.await(job->place.device, job->mark));
    streams.drop_mark(job->place.device, job->mark);
  }
}

bool Jobs::knows(const Job* job) const {
  return std::ranges::any_of(
      all_, [job](const auto& own) { return own.get() == job && own->state != Job::State::kFree; });
}

bool Jobs::any() const {
  return std::ranges::any_of(all_, [](const auto& own) { return own->state != Job::State::kFree; });
}

void* Jobs::stream() const {
  const bool none = reinterpret_cast<uintptr_t>(context_.stream) == Context::kNoStream;
  return none ? nullptr : context_.stream;
}

Status Jobs::take(const Place& place, Job** job) {
  *job = nullptr;
  if (place.on_device() && place.memory->streams != nullptr)
    WPR_TRY(place.memory->streams->check(place.device, stream()));
  for (const auto& own : all_)
    if (own->state == Job::State::kFree && own->place == place) *job = own.get();
  if (*job == nullptr) {
    auto made = std::make_unique<Job>();
    made->place = place;
    if (place.on_device() && place.memory->streams != nullptr)
      WPR_TRY(place.memory->streams->make_mark(place.device, &made->mark));
    all_.push_back(std::move(made));
    *job = all_.back().get();
  }
  (*job)->written = 0;
  (*job)->made = nullptr;
  (*job)->lost = nullptr;
  (*job)->uses_memory = false;
  return {};
}

Status Jobs::prepare(Job* job, size_t there, size_t pinned) {
  if (!any()) outgrown_.clear();
  job->uses_memory = true;
  WPR_TRY(prepare(job, &Job::there, false, there));
  return prepare(job, &Job::pinned, true, pinned);
}

// Of jobs that use none the smallest memory that suffices, else the largest, which grows: jobs that
// have been on their way together find enough in whatever order they come. To release memory may
// wait for the device, so that it is kept as long as other jobs are on their way.
Status Jobs::prepare(Job* job, DeviceBuffer Job::*buffer, bool pinned, size_t size) {
  DeviceBuffer* best = &(job->*buffer);
  const auto room = [&](const DeviceBuffer& of) { return of.room(job->place, pinned); };
  for (const auto& own : all_) {
    DeviceBuffer& other = own.get()->*buffer;
    if (own->state != Job::State::kFree && own->uses_memory) continue;
    const bool better = room(*best) >= size ? room(other) >= size && room(other) < room(*best)
                                            : room(other) > room(*best);
    if (better) best = &other;
  }
  (job->*buffer).swap(*best);
  if (room(job->*buffer) < size && any() && (job->*buffer).get() != nullptr) {
    outgrown_.push_back(std::make_unique<DeviceBuffer>());
    outgrown_.back()->swap(job->*buffer);
  }
  return (job->*buffer).prepare(job->place, pinned, size);
}

Status Jobs::compress(ConstBytes src, const Header& header, Bytes dst, Job** job) {
  const Place from = place_of(src.data()), to = place_of(dst.data());
  Job* own;
  WPR_TRY(take(from.on_device() ? from : to, &own));
  own->expands = false;
  own->src = src;
  own->dst = dst;
  own->header = header;
  bool on_stream = false;
  if (from.on_device() && own->mark != nullptr && (!to.on_device() || to == from))
    WPR_TRY(begin_compress(own, &on_stream));
  WPR_TRY(go(own, on_stream));
  *job = own;
  return {};
}

Status Jobs::decompress(ConstBytes frame, Bytes dst, Job** job) {
  const Place from = place_of(frame.data()), to = place_of(dst.data());
  Job* own;
  WPR_TRY(take(to.on_device() ? to : from, &own));
  own->expands = true;
  own->src = frame;
  own->dst = dst;
  bool on_stream = false;
  if (to.on_device() && own->mark != nullptr && !from.on_device())
    WPR_TRY(begin_decompress(own, &on_stream));
  WPR_TRY(go(own, on_stream));
  *job = own;
  return {};
}

Status Jobs::go(Job* job, bool on_stream) {
  if (job->mark != nullptr) {
    const Status status =
        job->place.memory->streams->set_mark(job->place.device, stream(), job->mark);
    if (status.ok()) {
      job->state = on_stream ? Job::State::kOnStream : Job::State::kLater;
      return {};
    }
    if (on_stream) job->lost = why_lost(status);
    // What was put there has the job's memory until it ends.
    static_cast<void>(job->place.memory->wait(job->place.device, stream()));
  }
  WPR_TRY(do_now(job));
  job->state = Job::State::kDone;
  return {};
}

Status Jobs::poll(Job* job, bool waits, bool* done, size_t* written) {
  *done = false;
  Status status;
  if (job->state == Job::State::kOnStream || job->state == Job::State::kLater) {
    const DeviceStreams& streams = *job->place.memory->streams;
    bool yes = true;
    status = waits ? streams.await(job->place.device, job->mark)
                   : streams.passed(job->place.device, job->mark, &yes);
    if (status.ok() && !yes) return {};
    status = end(job, status);
  }
  job->state = Job::State::kFree;
  *done = true;
  if (status.ok()) *written = job->written;
  return status;
}

// `status` is that of the stream. The job is no more, whatever happens here.
Status Jobs::end(Job* job, Status status) {
  try {
    bool elsewhere = job->state == Job::State::kLater || !status.ok();
    if (job->state == Job::State::kOnStream && !status.ok()) job->lost = why_lost(status);
    if (!elsewhere) status = conclude(job, &elsewhere);
    return elsewhere ? do_now(job) : status;
  } catch (const std::exception& error) {
    return fail(Code::kNoMemory, "no memory (%s)", error.what());
  }
}

// The buffers are ready. The device gets another chance by the calls that wait, which know how the
// cores take over. A job that its stream has lost is counted once, whoever does it now.
Status Jobs::do_now(Job* job) {
  struct NoStream {
    explicit NoStream(Context& of, bool is) : context(of) {
      if (is) context.stream = reinterpret_cast<void*>(Context::kNoStream);
    }
    ~NoStream() { context.stream = before; }
    NoStream(const NoStream&) = delete;
    NoStream& operator=(const NoStream&) = delete;
    Context& context;
    void* const before = context.stream;
  };
  const NoStream ready(context_, job->mark != nullptr);
  const uint64_t before = all_work().cores_size;
  const Status status = job->expands
                            ? context_.decompress(job->src, job->dst, &job->written)
                            : context_.compress(job->src, job->header, job->dst, &job->written);
  if (job->lost != nullptr) {
    const uint64_t size = job->expands ? job->frame.header.raw_size : job->src.size();
    const uint64_t counted = all_work().cores_size - before;
    job->place.memory->note(0, size - std::min(size, counted), job->lost);
  }
  return status;
}

// ---- frames that a device makes ----

Status Jobs::begin_compress(Job* job, bool* on_stream) {
  Settings& settings = context_.settings;
  Header& header = job->header;
  if (settings.wants_auto() || job->src.empty()) return {};
  std::array<std::byte, kMaxHeader> head;
  ChainPointer chain;
  const Header plain = header;  // a call that waits completes its own
  WPR_TRY(context_.writer.begin_plain(&header, &chain, head, true));
  const Header full = header;
  header = plain;
  const Recipe& recipe = chain->recipe();
  const Place& place = job->place;
  const BlockSettings& blocks = settings.blocks();
  job->kernel = stream_kernel(recipe, place, settings.engine());
  // The probe of what loses nothing is the cores' look at a sample.
  if (job->kernel == nullptr || (blocks.probe && recipe.lossless()) ||
      !fits_kernels(job->src.data(), full))
    return {};
  const StreamKernel& kernel = *job->kernel;
  const uint64_t n = job->n_blocks = full.n_blocks();
  const auto args = [&](uint64_t i) { return for_block(recipe, full, place, blocks.seed, i); };
  const size_t slot = up(code_limit(full.block_raw_size(0)));
  const bool staged = !place_of(job->dst.data()).on_device();
  const size_t bound = context_.writer.bound(job->src.size());
  const size_t room = std::min(job->dst.size(), bound);
  // What the kernel refuses takes no memory. A code that may not fit is a block's own matter.
  for (uint64_t i = 0; i < n; ++i) {
    const size_t size = full.block_raw_size(i);
    const Status status = kernel.check_encode(args(i), size, code_limit(size));
    if (!status.ok() && status.code() != Code::kDstTooSmall) return {};
  }

  const DeviceStreams& streams = *place.memory->streams;
  const int device = place.device;
  const size_t each = scratch_size(kernel, args(0), full, false), at_once = side_by_side(each, n);
  Layout there, pinned;
  const size_t reports = there.add(n * sizeof(Report));
  const size_t header_at = there.add(kMaxHeader), result = there.add(sizeof(Sealed));
  size_t scratch = 0, codes = 0;
  // Blocks whose code cannot fit are left out.
  const auto note = [&](bool draft, std::byte* d) -> Status {
    job->plan.begin(draft);
    size_t noted = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const size_t size = full.block_raw_size(i);
      if (!kernel.check_encode(args(i), size, code_limit(size)).ok()) continue;
      const size_t turn = noted++ % at_once;
      if (turn == 0) job->plan.begin_round();
      job->plan.begin_block();
      const StreamTask task = {const_cast<std::byte*>(job->src.data()) + i * full.block_size(),
                               size,
                               d + codes + i * slot,
                               code_limit(size),
                               d + scratch + turn * up(each),
                               kernel.scratch(args(i), size, false),
                               reinterpret_cast<Report*>(d + reports) + i};
      WPR_TRY(kernel.encode(device, stream(), args(i), task, &job->plan));
    }
    return {};
  };
  if (!note(true, nowhere()).ok()) return {};
  const size_t tables = there.add(job->plan.table_size()), inputs = there.size();
  scratch = there.add(at_once * up(each));
  const size_t sealed = there.add(n * sizeof(SealedBlock));
  codes = there.add(n * slot);
  pinned.add(inputs);
  job->results = pinned.add(sizeof(Sealed));
  const size_t frame = pinned.add(staged ? bound : 0);

  const auto launch = [&]() -> Status {
    WPR_TRY(prepare(job, there.size(), pinned.size()));
    std::byte* const d = job->there.get();
    std::byte* const h = job->pinned.get();
    std::memset(h, 0, tables);
    std::memcpy(h + header_at, head.data(), full.size);
    auto* const begun = reinterpret_cast<Report*>(h + reports);
    for (uint64_t i = 0; i < n; ++i) {
      begun[i] = kNoReport;
      const size_t size = full.block_raw_size(i);
      begun[i].full = !kernel.check_encode(args(i), size, code_limit(size)).ok();
    }
    WPR_TRY(note(false, d));
    job->plan.put_tables(h + tables);
    WPR_TRY(streams.copy(device, stream(), d, h, inputs));
    WPR_TRY(job->plan.launch(device, stream(), d + tables));
    const Sealing sealing = {job->src.data(),
                             job->src.size(),
                             full.block_size(),
                             n,
                             d + codes,
                             slot,
                             reinterpret_cast<const Report*>(d + reports),
                             d + header_at,
                             full.size,
                             full.checksum,
                             staged ? h + frame : job->dst.data(),
                             room,
                             reinterpret_cast<SealedBlock*>(d + sealed),
                             reinterpret_cast<Sealed*>(d + result)};
    WPR_TRY(streams.seal(device, stream(), sealing));
    return streams.copy(device, stream(), h + job->results, d + result, sizeof(Sealed));
  };
  const Status status = launch();
  *on_stream = status.ok();
  job->lost = why_lost(status);
  job->made = staged ? job->pinned.get() + frame : nullptr;
  return {};
}

Status Jobs::conclude(Job* job, bool* elsewhere) {
  return job->expands ? conclude_decompress(job, elsewhere) : conclude_compress(job, elsewhere);
}

Status Jobs::conclude_compress(Job* job, bool* elsewhere) {
  Sealed result;
  std::memcpy(&result, job->pinned.get() + job->results, sizeof(result));
  *elsewhere = result.elsewhere != 0;
  if (*elsewhere) return {};
  if (result.full != 0)
    return fail(Code::kDstTooSmall, "the frame needs %llu bytes, dst has %zu",
                static_cast<unsigned long long>(result.size), job->dst.size());
  // As a kernel's code that is larger than its room: the device's fault.
  if (result.size > std::min(job->dst.size(), context_.writer.bound(job->src.size()))) {
    job->lost = kFailed;
    return *elsewhere = true, Status();
  }
  if (job->made != nullptr) std::memcpy(job->dst.data(), job->made, result.size);
  job->written = result.size;
  job->place.memory->note(job->src.size(), 0, "");
  Stats& stats = context_.stats;
  stats.raw_bytes += job->src.size();
  stats.wire_bytes += result.size;
  stats.blocks += job->n_blocks;
  stats.bypassed_size += result.n_raw;
  return {};
}

// ---- frames that a device expands ----

Status Jobs::begin_decompress(Job* job, bool* on_stream) {
  ParsedFrame& parsed = job->frame;
  Header& header = parsed.header;
  FrameReader& reader = context_.reader;
  parsed.place = job->place;
  WPR_TRY(read_header(job->src, &header));
  if (header.streamed || header.raw_size == 0) return {};
  if (header.raw_size > job->dst.size())
    return fail(Code::kDstTooSmall, "the frame holds %llu bytes, dst has %zu",
                static_cast<unsigned long long>(header.raw_size), job->dst.size());
  WPR_TRY(reader.parse(job->src, &parsed));
  const std::vector<Block>& blocks = parsed.blocks;
  for (const Block& block : blocks) WPR_TRY(verify_block(header, block));
  const Recipe& recipe = parsed.chain->recipe();
  const Place& place = job->place;
  job->kernel = stream_kernel(recipe, place, context_.settings.engine());
  if (job->kernel == nullptr || !fits_kernels(job->dst.data(), header) ||
      std::ranges::any_of(blocks, &Block::own))
    return {};
  const StreamKernel& kernel = *job->kernel;
  const Args args = for_block(recipe, header, place, 0, 0);
  const DeviceStreams& streams = *place.memory->streams;
  const int device = place.device;
  Layout there, pinned;
  const size_t n = blocks.size(), reports = there.add(n * sizeof(Report));
  const size_t payloads = there.size();
  for (const Block& block : blocks) {
    if (block.raw) continue;
    const Status status = kernel.check_decode(args, block.payload.size(), block.raw_size);
    if (status.code() == Code::kUnsupported) return {};
    if (!status.ok()) return in_block(block.index, status);
    there.add(block.payload.size());
  }
  const size_t each = scratch_size(kernel, args, header, true), at_once = side_by_side(each, n);
  size_t scratch = 0;
  const auto note = [&](bool draft, std::byte* d) -> Status {
    job->plan.begin(draft);
    size_t noted = 0, at = payloads;
    for (size_t i = 0; i < n; ++i) {
      const Block& block = blocks[i];
      if (block.raw) continue;
      const size_t turn = noted++ % at_once;
      if (turn == 0) job->plan.begin_round();
      job->plan.begin_block();
      const StreamTask task = {job->dst.data() + i * header.block_size(),
                               block.raw_size,
                               d + at,
                               block.payload.size(),
                               d + scratch + turn * up(each),
                               kernel.scratch(args, block.raw_size, true),
                               reinterpret_cast<Report*>(d + reports) + i};
      WPR_TRY(kernel.decode(device, stream(), args, task, &job->plan));
      at += up(block.payload.size());
    }
    return {};
  };
  if (!note(true, nowhere()).ok()) return {};
  const size_t tables = there.add(job->plan.table_size()), inputs = there.size();
  scratch = there.add(at_once * up(each));
  pinned.add(inputs);
  job->results = pinned.add(n * sizeof(Report));
  const size_t stored = pinned.size();
  for (const Block& block : blocks)
    if (block.raw) pinned.add(block.payload.size());
  // Room for the longest codes, so that a frame of other data finds memory that is as large.
  const size_t n_raw = static_cast<size_t>(std::ranges::count_if(blocks, &Block::raw));
  const size_t more_tables = n_raw < n ? job->plan.table_size() * n_raw / (n - n_raw) : 0;
  there.add(more_tables);
  pinned.add(more_tables);
  for (const Block& block : blocks) {
    const size_t most = up(block.raw_size), has = up(block.payload.size());
    there.add(block.raw ? most : most - std::min(most, has));
    pinned.add(most - std::min(most, has));
  }

  const auto launch = [&]() -> Status {
    WPR_TRY(prepare(job, there.size(), pinned.size()));
    std::byte* const d = job->there.get();
    std::byte* const h = job->pinned.get();
    std::fill_n(reinterpret_cast<Report*>(h + reports), n, kNoReport);
    size_t coded_at = payloads, stored_at = stored;
    for (const Block& block : blocks) {
      size_t& at = block.raw ? stored_at : coded_at;
      std::memcpy(h + at, block.payload.data(), block.payload.size());
      at += up(block.payload.size());
    }
    WPR_TRY(note(false, d));
    job->plan.put_tables(h + tables);
    WPR_TRY(streams.copy(device, stream(), d, h, inputs));
    stored_at = stored;
    for (size_t i = 0; i < n;
         ++i) {  // runs of stored blocks, where they lie side by side here, too
      const size_t first = i, from = stored_at;
      size_t size = 0;
      for (; i < n && blocks[i].raw && stored_at == from + size; ++i) {
        size += blocks[i].raw_size;
        stored_at += up(blocks[i].raw_size);
      }
      if (size == 0) continue;
      WPR_TRY(streams.copy(device, stream(), job->dst.data() + first * header.block_size(),
                           h + from, size));
      --i;
    }
    WPR_TRY(job->plan.launch(device, stream(), d + tables));
    return streams.copy(device, stream(), h + job->results, d + reports, n * sizeof(Report));
  };
  const Status status = launch();
  *on_stream = status.ok();
  job->lost = why_lost(status);
  return {};
}

Status Jobs::conclude_decompress(Job* job, bool* elsewhere) {
  const ParsedFrame& frame = job->frame;
  size_t n_device = 0;
  for (size_t i = 0; i < frame.blocks.size(); ++i) {
    const Block& block = frame.blocks[i];
    if (block.raw) continue;
    Report report;
    std::memcpy(&report, job->pinned.get() + job->results + i * sizeof(report), sizeof(report));
    const Status status = job->kernel->outcome(report, block.raw_size, block.raw_size);
    *elsewhere = cores_take_over(status);
    if (*elsewhere) return job->lost = why_lost(status), Status();
    if (!status.ok()) return in_block(block.index, status);
    n_device += block.raw_size;
  }
  job->written = frame.raw_size;
  job->place.memory->note(n_device, 0, "");
  context_.stats.expanded_bytes += frame.raw_size;
  return {};
}

}  // namespace wirepress
