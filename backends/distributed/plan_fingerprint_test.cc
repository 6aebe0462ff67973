#include "backends/distributed/plan_fingerprint.h"

#include <gtest/gtest.h>

#include <string>

#include "src/core/perturbed_test.h"

namespace posenc {
namespace {

std::uint64_t print_of(const Plan& plan) {
  mpi::Fingerprint print;
  mpi::PlanFingerprint(print).add(plan);
  return print.sum();
}

TEST(PlanFingerprint, TellsEveryMemberThatAttentionReads) {
  for (const Plan& plan : detail::whole_plans()) {
    EXPECT_EQ(print_of(plan), print_of(Plan(plan)));
    detail::Perturbed(plan, [&](const std::string& path, const Plan& changed) {
      if (path.starts_with("plan.add")) return;
      EXPECT_NE(print_of(changed), print_of(plan)) << path;
    });
  }
}

}  // namespace
}  // namespace posenc
