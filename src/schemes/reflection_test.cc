// Names, fields and messages of the type lists.
#include <gtest/gtest.h>

#include "posenc/schemes.h"

namespace posenc {
namespace {

std::string message(const Expected<void>& result) { return result ? "" : result.error().message(); }

TEST(Reflection, FindsSchemesByAlias) {
  const auto scheme = make_scheme("rotary");
  ASSERT_TRUE(scheme);
  EXPECT_TRUE(std::holds_alternative<Rope>(*scheme));
}

TEST(Reflection, OldSpellingsOfScalings) {
  EXPECT_TRUE(std::holds_alternative<LongRope>(make_scaling("su").value_or(Scaling{})));
  EXPECT_TRUE(std::holds_alternative<Yarn>(make_scaling("deepseek_yarn").value_or(Scaling{})));
}

TEST(Reflection, MisspeltNameGetsASuggestion) {
  const auto scaling = make_scaling("yarm");
  ASSERT_FALSE(scaling);
  EXPECT_EQ(scaling.error().message(), "rope_type: unknown name, got 'yarm'; did you mean 'yarn'?");
}

TEST(Reflection, RopeAnswersForItsScalingsFields) {
  Scheme scheme = Rope{};
  EXPECT_EQ(message(set_field(scheme, "rope_type", std::string("yarn"))), "");
  EXPECT_EQ(message(set_field(scheme, "factor", 4.0)), "");
  EXPECT_EQ(std::get<Yarn>(std::get<Rope>(scheme).scaling).factor, 4.0);
}

TEST(Reflection, PartialFactorOfProportionalIsTheScalings) {
  Scheme scheme = Rope{.scaling = Proportional{}};
  EXPECT_EQ(message(set_field(scheme, "partial_rotary_factor", 0.25)), "");
  EXPECT_EQ(std::get<Rope>(scheme).partial_rotary_factor, 1.0);
}

TEST(Reflection, FieldsComeInAnyOrder) {
  Scheme scheme = Rope{};
  const std::vector<FieldSetting> fields = {{"factor", 4.0}, {"rope_type", std::string("linear")}};
  EXPECT_EQ(message(set_fields(scheme, fields)), "");
  EXPECT_EQ(scheme, Scheme(Rope{.scaling = Linear{.factor = 4}}));
}

TEST(Reflection, WrongKindIsRefused) {
  Scheme scheme = Rope{};
  EXPECT_EQ(message(set_field(scheme, "mrope_interleaved", 1.0)),
            "rope: mrope_interleaved: must be true or false");
}

TEST(Reflection, FractionalIntegerIsRefused) {
  Scheme scheme = T5{};
  EXPECT_EQ(message(set_field(scheme, "num_buckets", 31.5)),
            "t5: num_buckets: must be a whole number, got 31.5");
}

TEST(Reflection, OutOfRangeNamesTheRange) {
  Scheme scheme = Rope{};
  EXPECT_EQ(message(set_field(scheme, "rope_theta", 1.0)),
            "rope: rope_theta: must be a number above 1, got 1");
}

TEST(Reflection, NanIsRefused) {
  Scheme scheme = Rope{};
  EXPECT_NE(message(set_field(scheme, "rope_theta", std::numeric_limits<double>::quiet_NaN())), "");
}

TEST(Reflection, NullRestoresTheDefault) {
  Scaling scaling = Yarn{.beta_fast = 64};
  EXPECT_EQ(message(set_field(scaling, "beta_fast", FieldValue{})), "");
  EXPECT_EQ(std::get<Yarn>(scaling).beta_fast, 32);
}

TEST(Reflection, CompileChecksFieldsSetByHand) {
  const auto plan = compile(Scheme{Rope{.rope_theta = -1}}, {.head_dim = 64});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("rope_theta"), std::string::npos);
}

TEST(Reflection, RequiredFieldsAreAskedFor) {
  const auto plan = compile(Scheme{Learned{}}, {.width = 8});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("learned: rows"), std::string::npos);
}

}  // namespace
}  // namespace posenc
