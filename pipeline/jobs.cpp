// SPDX-License-Identifier: Apache-2.0
#include "pipeline/jobs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include "pipeline/context.hpp"
#include "pipeline/device_frames.hpp"

namespace wirepress {
namespace {

// Whether kernels reach blocks of these bytes where they lie.
bool fits_kernels(const void* at, const Header& header) {
  constexpr size_t kAligned = 16;
  return reinterpret_cast<uintptr_t>(at) % kAligned == 0 &&
         (header.block_size() % kAligned == 0 || header.raw_size <= header.block_size());
}

// Data of a call that waits. It takes as much memory of the device and pinned memory.
constexpr size_t kMostWaited = size_t{512} << 20;

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

// What went wrong with one of several.
Status named(size_t i, size_t n, const Status& status) {
  if (status.ok() || n == 1) return status;
  return fail(status.code(), "piece %zu: %s", i, status.text());
}
Status named(std::span<const JobCall> calls, const JobCall& call, const Status& status) {
  return named(static_cast<size_t>(&call - calls.data()), calls.size(), status);
}

}  // namespace

uint64_t Job::raw_size() const {
  uint64_t size = 0;
  for (const auto& part : own()) size += part->raw_size;
  return size;
}

Status DeviceBuffer::prepare(const Place& place, bool pinned, size_t size) {
  if (data_ != nullptr && size <= room_ && place == place_ && pinned == pinned_) return {};
  release();
  void* at = nullptr;
  const size_t room = size + size / 4;
  WPR_TRY(pinned ? place.memory->streams->pin(place.device, room, &at)
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
    if (job->own_stream != nullptr) streams.drop_stream(job->place.device, job->own_stream);
  }
}

bool Jobs::knows(const Job* job) const {
  return std::ranges::any_of(
      all_, [job](const auto& own) { return own.get() == job && own->state != Job::State::kFree; });
}

bool Jobs::any() const {
  return std::ranges::any_of(all_, [](const auto& own) { return own->state != Job::State::kFree; });
}

void* Jobs::caller_stream() const {
  const bool none = reinterpret_cast<uintptr_t>(context_.stream) == Context::kNoStream;
  return none ? nullptr : context_.stream;
}

// What is given to the device, and the work, lie on one; else on that of the other side.
Status Jobs::take(std::span<const JobCall> calls, Job** job) {
  bool all_reachable = true;
  Place place;
  for (size_t i = 0; i < calls.size(); ++i) {
    const JobCall& call = calls[i];
    const Place work = place_of(call.expands() ? call.dst.data() : call.src.data());
    const Place other = place_of(call.expands() ? call.src.data() : call.dst.data());
    const Place own = work.on_device() ? work : other;
    if (i == 0) place = own;
    if (own != place)
      return fail(Code::kParameter, "piece %zu lies on another device than piece 0", i);
    all_reachable &= work.on_device() && (!other.on_device() || (other == work && !call.expands()));
  }
  WPR_TRY(take(place, job));
  Job& own = **job;
  own.reachable = all_reachable && own.mark != nullptr;
  own.n_parts = calls.size();
  while (own.parts.size() < own.n_parts) own.parts.push_back(std::make_unique<JobPart>());
  for (size_t i = 0; i < own.n_parts; ++i) {
    JobPart& part = *own.parts[i];
    part.call = calls[i];
    part.whole = false;
    part.n_blocks = part.raw_size = part.written = 0;
    part.made = nullptr;
  }
  return {};
}

Status Jobs::take(const Place& place, Job** job) {
  *job = nullptr;
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
  Job& own = **job;
  own.lost = nullptr;
  own.failed = {};
  own.uses_memory = own.began = false;
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

Status Jobs::begin(std::span<const JobCall> calls, Job** job) {
  for (const JobCall& call : calls) {
    if (call.kind != JobCall::Kind::kFeedback) continue;
    WPR_TRY(named(calls, call, Context::check_beside(call.src, call.residual)));
    WPR_TRY(
        named(calls, call,
              context_.writer.check_feedback(call.header, call.residual.size(), call.dst.size())));
  }
  Job* own;
  WPR_TRY(take(calls, &own));
  own->stream = caller_stream();
  own->most = SIZE_MAX;
  if (own->mark != nullptr)
    WPR_TRY(own->place.memory->streams->check(own->place.device, own->stream));
  bool on_stream = false;
  WPR_TRY(put(own, &on_stream));
  WPR_TRY(go(own, on_stream));
  *job = own;
  return {};
}

Status Jobs::put(Job* job, bool* on_stream) {
  *on_stream = false;
  if (!job->reachable) return {};
  job->makes.clear();
  job->expands.clear();
  for (size_t i = 0; i < job->n_parts; ++i) {
    JobPart* const part = job->parts[i].get();
    bool can = false;
    WPR_TRY(named(
        i, job->n_parts,
        part->call.expands() ? plan_decompress(job, part, &can) : plan_compress(job, part, &can)));
    part->later = !can;
  }
  if (!job->makes.empty()) launch(job, job->makes, on_stream);
  if (!job->expands.empty()) launch(job, job->expands, on_stream);
  return {};
}

Status Jobs::go(Job* job, bool on_stream) {
  if (job->mark != nullptr) {
    const Status status =
        job->place.memory->streams->set_mark(job->place.device, job->stream, job->mark);
    if (status.ok()) {
      job->state = on_stream ? Job::State::kOnStream : Job::State::kLater;
      return {};
    }
    if (on_stream) lose(job, status);
    // What was put there has the job's memory until it ends.
    static_cast<void>(job->place.memory->wait(job->place.device, job->stream));
  }
  job->state = Job::State::kDone;
  if (!job->failed.ok()) return {};
  const Status status = do_now(job);
  if (!status.ok()) job->state = Job::State::kFree;
  return status;
}

Status Jobs::run(const JobCall& call, bool* done, size_t* written) {
  *done = false;
  const Place place = place_of(call.expands() ? call.dst.data() : call.src.data());
  if (by_blocks_ || !place.on_device() || place.memory->streams == nullptr) return {};
  JobCall now = call;
  now.seed = context_.settings.seed();
  Job* job;
  WPR_TRY(take({&now, 1}, &job));
  if (!job->has_stream) {
    WPR_TRY(place.memory->streams->make_stream(place.device, &job->own_stream));
    job->has_stream = true;
  }
  job->stream = job->own_stream;
  job->most = kMostWaited;
  bool on_stream = false;
  WPR_TRY(put(job, &on_stream));
  if (job->uses_memory) WPR_TRY(end_run(job, on_stream, done));
  if (*done) *written = job->parts[0]->written;
  return {};
}

// What was put on the stream is waited for, whatever became of it.
Status Jobs::end_run(Job* job, bool on_stream, bool* done) {
  Status status = job->place.memory->wait(job->place.device, job->stream);
  bool elsewhere = !on_stream || !status.ok();
  if (on_stream && !status.ok()) lose(job, status);
  if (!elsewhere) status = conclude(job, *job->parts[0], &elsewhere);
  if (!job->failed.ok()) return job->failed;
  if (elsewhere) return {};
  *done = status.ok();
  return status;
}

Status Jobs::poll(Job* job, bool waits, bool* done, size_t* written) {
  *done = false;
  Status status = job->failed;
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
  if (!status.ok()) return status;
  *written = 0;
  for (const auto& part : job->own()) {
    *written += part->written;
    if (part->call.written != nullptr) *part->call.written = part->written;
  }
  return {};
}

// `status` is that of the stream. The job is no more, whatever happens here.
Status Jobs::end(Job* job, const Status& status) {
  const bool later = job->state == Job::State::kLater || !status.ok();
  if (job->state == Job::State::kOnStream && !status.ok()) lose(job, status);
  if (!job->failed.ok()) return job->failed;
  return later ? do_now(job) : conclude(job);
}

// Of a part that the device left to the cores nothing has changed, or the job has failed.
Status Jobs::conclude(Job* job) {
  return each_part(job, [&](JobPart& part) -> Status {
    if (part.later) return do_now(job, &part);
    bool elsewhere = false;
    const Status status = conclude(job, part, &elsewhere);
    if (!job->failed.ok()) return job->failed;
    return elsewhere ? do_now(job, &part) : status;
  });
}

Status Jobs::do_now(Job* job) {
  return each_part(job, [&](JobPart& part) { return do_now(job, &part); });
}

template <class Do>
Status Jobs::each_part(Job* job, Do part_of) {
  try {
    for (size_t i = 0; i < job->n_parts; ++i) {
      const Status status = part_of(*job->parts[i]);
      if (!status.ok()) return named(i, job->n_parts, status);
    }
    return {};
  } catch (const std::exception& error) {
    return fail(Code::kNoMemory, "no memory (%s)", error.what());
  }
}

void Jobs::lose(Job* job, const Status& status) {
  job->lost = why_lost(status);
  if (!job->began) return;
  for (const auto& part : job->own()) {
    if (part->call.changes()) return spoil(job, part->call, job->raw_size(), status);
  }
}

void Jobs::spoil(Job* job, const JobCall& call, size_t raw_size, const Status& status) {
  job->failed = fail(status.code(), "%s; %s is undefined", status.text(), call.changed());
  if (job->lost != nullptr) job->place.memory->note(0, raw_size, job->lost);
}

// The buffers are ready. The device gets another chance by the calls that wait, which know how the
// cores take over. What its stream has lost is counted once, whoever does it now.
Status Jobs::do_now(Job* job, JobPart* part) {
  struct Waits {
    Waits(Context& of, uint64_t own_seed, bool no_stream, bool by_blocks)
        : context(of), seed(of.settings.draw_from(own_seed)) {
      if (no_stream) context.stream = reinterpret_cast<void*>(Context::kNoStream);
      context.jobs.by_blocks_ = by_blocks;
    }
    ~Waits() {
      context.settings.draw_from(seed);
      context.stream = before;
      context.jobs.by_blocks_ = false;
    }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    Context& context;
    const uint64_t seed;
    void* const before = context.stream;
  };
  const Waits waits(context_, part->call.seed, job->mark != nullptr, job->uses_memory);
  const uint64_t before = all_work().cores_size;
  const Status status = context_.perform(part->call, &part->written);
  if (job->lost != nullptr) {
    const uint64_t counted = all_work().cores_size - before;
    job->place.memory->note(0, part->raw_size - std::min(part->raw_size, counted), job->lost);
  }
  return status;
}

template <class Frame>
void Jobs::launch(Job* job, std::vector<Frame>& frames, bool* on_stream) {
  FramesOnStream<Frame> work({nullptr, job->place, job->stream}, frames, job->plan);
  if (!work.lay_out()) return;
  Status status = prepare(job, work.there(), work.pinned());
  if (status.ok()) status = work.launch(job->there.get(), job->pinned.get());
  auto frame = frames.begin();
  for (const auto& part : job->own()) {
    if (part->later) continue;
    part->results = work.results() + frame->results();
    if constexpr (std::is_same_v<Frame, DeviceEncoding>)
      if (part->staged) part->made = job->pinned.get() + frame->frame();
    ++frame;
  }
  job->began = work.began();
  *on_stream = status.ok();
  if (!status.ok()) lose(job, status);
}

OnDevice Jobs::on_device(const Job& job, const Recipe& recipe, const Halves& halves) const {
  const auto* const casts = halves ? halves.on_stream(job.place) : nullptr;
  const bool can = !halves || casts != nullptr;
  return {.kernel = can ? stream_kernel(recipe, job.place, context_.settings.engine()) : nullptr,
          .place = job.place,
          .stream = job.stream,
          .casts = casts};
}

// ---- frames that a device makes ----

Status Jobs::plan_compress(Job* job, JobPart* part, bool* can) {
  const JobCall& call = part->call;
  const bool feedback = call.kind == JobCall::Kind::kFeedback;
  Settings& settings = context_.settings;
  if (settings.wants_auto() || call.src.empty()) return {};
  part->header = call.header;  // a call that waits completes its own
  Header& header = part->header;
  WPR_TRY(context_.writer.begin_plain(&header, &part->chain, part->head, true));
  const Recipe& recipe = part->chain->recipe();
  const OnDevice on = on_device(*job, recipe, call.halves);
  part->n_blocks = header.n_blocks();
  part->raw_size = header.raw_size;
  if (part->raw_size > job->most) return {};
  const bool probed = !feedback && settings.blocks().probe && recipe.lossless();
  if (on.kernel == nullptr ||
      (feedback && on.kernel->encode_feedback == nullptr && on.kernel->decode_made == nullptr) ||
      !fits_kernels(call.src.data(), header) || !fits_kernels(call.residual.data(), header))
    return {};
  part->whole = feedback && on.kernel->encode_feedback == nullptr;
  part->staged = !place_of(call.dst.data()).on_device();
  const size_t bound = context_.writer.bound(header.raw_size);
  job->makes.emplace_back(on, recipe, header, part->head, call.seed,
                          DeviceEncoding::Data{.raw = call.src,
                                               .residual = call.residual,
                                               .dst = call.dst,
                                               .halves = call.halves,
                                               .staged = part->staged,
                                               .probed = probed,
                                               .bound = bound},
                          job->plan);
  WPR_TRY(job->makes.back().check(can));
  if (!*can) job->makes.pop_back();
  return {};
}

// What the device leaves to the cores is theirs, unless it has begun to change something.
Status Jobs::conclude(Job* job, JobPart& part, bool* elsewhere) {
  const Status status = part.call.expands() ? conclude_decompress(job, part, elsewhere)
                                            : conclude_compress(job, part, elsewhere);
  if (!*elsewhere) return status;
  job->lost = why_lost(status);
  if (part.call.changes() && !part.whole) spoil(job, part.call, part.raw_size, status);
  return status;
}

Status Jobs::conclude_compress(Job* job, JobPart& part, bool* elsewhere) {
  const JobCall& call = part.call;
  Sealed result;
  std::memcpy(&result, job->pinned.get() + part.results, sizeof(result));
  *elsewhere = result.elsewhere != 0;
  if (*elsewhere) return fail(Code::kUnsupported, "the device's kernel does not code these data");
  if (result.full != 0)
    return fail(Code::kDstTooSmall, "the frame needs %llu bytes, dst has %zu",
                static_cast<unsigned long long>(result.size), call.dst.size());
  // As a kernel's code that is larger than its room: the device's fault.
  *elsewhere = result.size > std::min(call.dst.size(), context_.writer.bound(part.raw_size));
  if (*elsewhere)
    return fail(Code::kDevice, "the device reports a frame of %llu bytes",
                static_cast<unsigned long long>(result.size));
  if (part.made != nullptr) std::memcpy(call.dst.data(), part.made, result.size);
  part.written = result.size;
  job->place.memory->note(part.raw_size, 0, "");
  Stats& stats = context_.stats;
  stats.raw_bytes += call.src.size();
  stats.wire_bytes += result.size;
  stats.blocks += part.n_blocks;
  stats.bypassed_probe += result.n_noise;
  stats.bypassed_size += result.n_raw - result.n_noise;
  return {};
}

// ---- frames that a device expands ----

Status Jobs::plan_decompress(Job* job, JobPart* part, bool* can) {
  const JobCall& call = part->call;
  const bool adds = call.kind == JobCall::Kind::kAdd;
  ParsedFrame& parsed = part->frame;
  Header& header = parsed.header;
  FrameReader& reader = context_.reader;
  parsed.place = job->place;
  WPR_TRY(read_header(call.src, &header));
  if (adds) WPR_TRY(FrameReader::check_sum(header));
  if (header.streamed || header.raw_size == 0 || header.raw_size > job->most) return {};
  WPR_TRY(FrameReader::check_room(header.raw_size, call.halves.raw_size_of(call.dst.size())));
  WPR_TRY(reader.parse(call.src, &parsed));
  const std::vector<Block>& blocks = parsed.blocks;
  for (const Block& block : blocks) WPR_TRY(verify_block(header, block));
  part->raw_size = parsed.raw_size;
  part->n_blocks = blocks.size();
  const OnDevice on = on_device(*job, parsed.chain->recipe(), call.halves);
  part->kernel = on.kernel;
  if (on.kernel == nullptr || !fits_kernels(call.dst.data(), header) ||
      std::ranges::any_of(blocks, &Block::own))
    return {};
  part->whole = adds && (on.kernel->decode_add == nullptr || call.halves);
  const Bytes dst = call.dst.first(call.halves.size_of(header.raw_size));
  job->expands.emplace_back(on, parsed, dst, call.halves, adds, job->plan);
  WPR_TRY(job->expands.back().check(can));
  if (!*can) job->expands.pop_back();
  return {};
}

Status Jobs::conclude_decompress(Job* job, JobPart& part, bool* elsewhere) {
  const ParsedFrame& frame = part.frame;
  const bool adds = part.call.kind == JobCall::Kind::kAdd;
  size_t n_device = 0;
  for (size_t i = 0; i < frame.blocks.size(); ++i) {
    const Block& block = frame.blocks[i];
    if (block.raw) {
      n_device += adds ? block.raw_size : 0;
      continue;
    }
    Report report;
    std::memcpy(&report, job->pinned.get() + part.results + i * sizeof(report), sizeof(report));
    const Status status = part.kernel->outcome(report, block.raw_size, block.raw_size);
    *elsewhere = cores_take_over(status);
    if (!status.ok()) return in_block(block.index, status);
    n_device += block.raw_size;
  }
  part.written = adds ? frame.raw_size / 4 : frame.raw_size;
  job->place.memory->note(n_device, 0, "");
  context_.stats.expanded_bytes += frame.raw_size;
  return {};
}

}  // namespace wirepress
