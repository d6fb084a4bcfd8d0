// SPDX-License-Identifier: Apache-2.0
// dgc sends what spec.md says, computed again in the plainest way.
#include "codecs/common/testing/sampled.hpp"

namespace wirepress::sparse {
namespace {

TEST(Dgc, FollowsItsRule) {
  follows_its_rule("dgc", [](size_t n, const Shares& shares) {
    return ceil_of(static_cast<double>(n) * shares.ratio);
  });
}

TEST(Dgc, TheSeedChangesTheSample) { the_seed_changes_the_sample("dgc"); }

TEST(Dgc, SendsAtMostItsShare) { EXPECT_NEAR(sent_of_a_thousandth("dgc", 20, 132), 113, 20); }

}  // namespace
}  // namespace wirepress::sparse
