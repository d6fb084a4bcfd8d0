// SPDX-License-Identifier: Apache-2.0
#include "job/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "choosing/candidates.hpp"
#include "job/identity.hpp"
#include "job/job.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

// 0 for a key that the library does not know.
double number(const wpr_ctx* ctx, const char* key) {
  double value = 0;
  wpr_get_number(ctx, key, &value);
  return value;
}

size_t count(const wpr_ctx* ctx, const char* key) { return static_cast<size_t>(number(ctx, key)); }

bool is_on(const wpr_ctx* ctx, const char* key) { return number(ctx, key) != 0; }

// What the library said of the variables, as far as it concerns messages: the default recipe, which
// the engine may not have, is theirs only where no codec is named.
std::string problem_of(wpr_ctx* ctx, const std::string& codec) {
  std::string said = wpr_error(ctx);
  if (codec == "auto" || said.rfind("the default of recipe: ", 0) != 0) return said;
  return wpr_set(ctx, "recipe", codec.c_str()) == WPR_OK
             ? ""
             : std::string("mpi_codec: ") + wpr_error(ctx);
}

}  // namespace

std::string read_options() {
  wpr_ctx* ctx = nullptr;
  const wpr_status status = wpr_create(&ctx);
  if (!ctx) return "no memory";
  Job& j = job();
  j.codec = wpr_get(ctx, "mpi_codec");
  std::string problem = status == WPR_OK ? "" : problem_of(ctx, j.codec);
  j.engine = wpr_get(ctx, "engine");
  const char* wanted = std::getenv("WIREPRESS_ENGINE");
  j.must_end = wanted && *wanted && wanted[std::strlen(wanted) - 1] == '!' && j.engine != wanted;
  j.link = wpr_get(ctx, "mpi_link");
  j.fixed_link = number(ctx, "mpi_link");
  j.error = wpr_get(ctx, "mpi_error");
  wpr_get_error_bound(ctx, "mpi_error", &j.bound.kind, &j.bound.value);
  j.report_file = wpr_get(ctx, "mpi_report");
  j.compress = is_on(ctx, "mpi_compress");
  j.trace = wpr_get(ctx, "mpi_trace");
  j.trace_sample = count(ctx, "mpi_trace_sample");
  j.by_link = std::strcmp(wpr_get(ctx, "mpi_threshold"), "auto") == 0;
  j.threshold = j.by_link ? kUsualThreshold : count(ctx, "mpi_threshold");
  j.block_threshold = j.by_link ? kUsualBlockThreshold : j.threshold;
  j.pieces_from = count(ctx, "mpi_pieces");
  j.chunk = std::max<size_t>(count(ctx, "mpi_chunk") / 64 * 64, 4096);
  j.partitions = count(ctx, "mpi_partitions");
  j.deterministic = is_on(ctx, "mpi_deterministic");
  j.collectives = is_on(ctx, "mpi_collectives");
  j.contest = is_on(ctx, "mpi_contest");
  j.nonblocking = is_on(ctx, "mpi_nonblocking");
  j.same_host = is_on(ctx, "mpi_same_host");
  j.checksum = is_on(ctx, "mpi_checksum");
  j.trust = is_on(ctx, "mpi_trust");
  if (problem.empty()) {
    if (const char* why = prepare_candidates(ctx)) problem = why;
  }
  if (problem.empty() && j.deterministic && !j.collectives) {
    problem =
        "mpi_deterministic: sums have one order only in our collectives, mpi_collectives is off";
  }
  wpr_free(ctx);
  return problem;
}

bool names_device() {
  const std::string& engine = job().engine;
  return !engine.empty() && engine != "auto" && engine.rfind("cpu", 0) != 0;
}

std::string config_hash() {
  const Job& j = job();
  std::string text =
      std::string(wpr_version()) + "|" + j.codec + "|" + j.link + "|" + j.error + "|" +
      std::to_string(j.threshold) + "|" + std::to_string(j.by_link) + "|" +
      std::to_string(j.pieces_from) + "|" + std::to_string(j.chunk) + "|" +
      std::to_string(j.partitions) + "|" +
      std::to_string((j.nonblocking && j.world_multiple) * 32 + j.contest * 16 +
                     j.deterministic * 8 + j.collectives * 4 + j.same_host * 2 + j.checksum) +
      "|" + j.report_file + "|" + std::to_string(j.compress) + "|" +
      std::to_string(j.trace_sample) + "|" + j.trace;
  // A library that was built without a codec could not expand what others send.
  for (size_t i = 0; i < n_candidates(); ++i) {
    text += std::string("|") + candidate_name(static_cast<int>(i));
  }
  return hexadecimal(fnv1a(text.data(), text.size()));
}

bool wants_threads() {
  if (!std::getenv("WIREPRESS_RENDEZVOUS") && !std::getenv("WIREPRESS_MPI_TRUST")) return false;
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);
  const bool wants = ctx && is_on(ctx, "mpi_nonblocking") && is_on(ctx, "mpi_compress");
  wpr_free(ctx);
  return wants;
}

}  // namespace wirepress
