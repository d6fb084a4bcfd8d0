// SPDX-License-Identifier: Apache-2.0
// graddrop sends what spec.md says, computed again in the plainest way.
#include "codecs/common/testing/sampled.hpp"

namespace wirepress::sparse {
namespace {

TEST(GradDrop, FollowsItsRule) {
  follows_its_rule("graddrop", [](size_t n, const Shares&) { return n; });
}

TEST(GradDrop, TheSeedChangesTheSample) { the_seed_changes_the_sample("graddrop"); }

TEST(GradDrop, SendsAboutItsShare) {
  EXPECT_NEAR(sent_of_a_thousandth("graddrop", 20, 400), 132, 20);
}

TEST(GradDrop, EqualValuesAreAllSent) {
  const Floats x(1000, -1.5f);
  for (Coder& coder : coders("graddrop")) {
    const Data code = coder.encode(x);
    EXPECT_EQ(code.size(), 4004u);
    EXPECT_EQ(coder.decode(code, 1000), x);
  }
}

}  // namespace
}  // namespace wirepress::sparse
