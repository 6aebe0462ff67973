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

TEST(EveryMemberOfAPlan, IsReadBackFromJson) {
  int read = 0;
  for (Plan plan : whole_plans()) {
    const auto back = [&](const std::string& path, const Plan& changed) {
      Plan wanted = fitted(changed);
      if (wanted.logits.temperature != Temperature::heads)
        wanted.logits.head_scale = wanted.logits.head_bias = {};
      if (!checked(wanted)) return;
      ++read;
      const auto found = read_plan(to_json(wanted));
      ASSERT_TRUE(found) << path << ": " << found.error().message();
      EXPECT_TRUE(*found == wanted) << path << "\n" << to_json(wanted) << "\n" << to_json(*found);
    };
    Perturbed(plan, back);
    plan.logits.temperature = Temperature::heads;
    Perturbed(plan, back);
  }
  EXPECT_GT(read, 150);
}

TEST(PlanFromJson, NamesWhatALaterPosencWrote) {
  const auto plan = read_plan(R"({"rotate": {"pairing": "halves", "rotary_dim": 2,
      "frequencies": [[1]], "hologram": {"depth": 3}, "spiral": null}, "warp": 1})");
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->unknown, (std::vector<std::string>{"rotate.hologram", "warp"}));
}

TEST(PlanFromJson, RefusesValuesOfAnotherType) {
  for (
      const char* text :
      {"[]", "{", R"({"rotate": 1})", R"({"rotate": {"pairing": "thirds"}})",
       R"({"rotate": {"rotary_dim": 2.5}})",
       R"({"rotate": {"rotary_dim": 2, "frequencies": [["a"]]}})", R"({"add": {"width": 4}})",
       R"({"logits": {"multiplier": 0}})",
       R"({"rotate": {"rotary_dim": 2, "frequencies": [[1]], "polar": true, "angles": "hf_float"}})",
       R"({"relative": {"key": [[1, 2], [3]]}})"}) {
    EXPECT_FALSE(read_plan(text)) << text;
  }
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
