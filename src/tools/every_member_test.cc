// Whatever differs in a plan, `==`, its JSON and a diff see.
#include <gtest/gtest.h>

#include <string>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/perturbed_test.h"

namespace posenc {
namespace {

using detail::fitted, detail::Perturbed, detail::whole_plans;

TEST(EveryMemberOfAPlan, IsSeenByEqualityAndJson) {
  int changes = 0;
  for (const Plan& plan : whole_plans()) {
    EXPECT_EQ(to_json(plan), to_json(Plan(plan)));
    Perturbed(plan, [&](const std::string& path, const Plan& changed) {
      ++changes;
      EXPECT_FALSE(changed == plan) << path;
      EXPECT_NE(to_json(fitted(changed)), to_json(plan)) << path;
    });
  }
  EXPECT_GT(changes, 150);
}

// Of lists that do not fit too: sizes are compared before what they count.
TEST(EveryMemberOfAPlan, IsSeenByADiffFromBothSides) {
  for (const Plan& plan : whole_plans()) {
    EXPECT_TRUE(differences(plan, plan)->empty());
    Perturbed(plan, [&](const std::string& path, const Plan& changed) {
      for (const Plan& other : {changed, fitted(changed)}) {
        const auto found = differences(plan, other), back = differences(other, plan);
        ASSERT_TRUE(found && back) << path;
        EXPECT_FALSE(found->empty()) << path;
        EXPECT_EQ(found->size(), back->size()) << path;
        for (const Finding& finding : *found) EXPECT_FALSE(finding.message.empty()) << path;
      }
    });
  }
}

}  // namespace
}  // namespace posenc
