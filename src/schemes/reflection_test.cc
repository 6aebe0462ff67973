// Names, fields and messages of the type lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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

TEST(Reflection, FieldsOfAMapAreItsOwn) {
  Scheme scheme = Rope{};
  EXPECT_EQ(message(set_field(scheme, "map_window", 512.0)), "");
  EXPECT_EQ(message(set_field(scheme, "map_window", 9.0)),
            "rope: map_window: belongs to distance_map rerope or self_extend; choose that, or drop "
            "the field");
  EXPECT_EQ(message(set_field(scheme, "map_window", 0.0)),
            "rope: map_window: must be a number of at least 1 and at most 1000000000000, got 0");
  EXPECT_EQ(scheme, Scheme(Rope{}));
}

TEST(Reflection, AnotherMapBeginsAnew) {
  Scheme scheme = Rope{.distance_map = ReRope{.window = 9}};
  EXPECT_EQ(message(set_field(scheme, "distance_map", std::string("rerope"))), "");
  EXPECT_EQ(std::get<Rope>(scheme).distance_map, DistanceMap(ReRope{.window = 9}));
  EXPECT_EQ(message(set_field(scheme, "distance_map", std::string("self_extend"))), "");
  EXPECT_EQ(std::get<Rope>(scheme).distance_map, DistanceMap(SelfExtend{}));
}

TEST(Reflection, FieldsComeInAnyOrder) {
  Scheme scheme = Rope{};
  const std::vector<FieldSetting> fields = {{"chunk_size", 17.0},
                                            {"factor", 4.0},
                                            {"distance_map", std::string("dual_chunk")},
                                            {"local_size", 5.0},
                                            {"rope_type", std::string("linear")}};
  EXPECT_EQ(message(set_fields(scheme, fields)), "");
  EXPECT_EQ(scheme, Scheme(Rope{.distance_map = DualChunk{.chunk_size = 17, .local_size = 5},
                                .scaling = Linear{.factor = 4}}));
}

TEST(Reflection, EveryFieldOfEveryMapIsAmongRopesSettings) {
  const std::map<std::string_view, FieldValue> expected = {{"distance_map", std::string("rerope")},
                                                           {"map_window", std::int64_t{9}},
                                                           {"chunk_size", std::int64_t{0}}};
  const auto all = settings(Scheme(Rope{.distance_map = ReRope{.window = 9}}));
  for (const auto& [name, value] : expected)
    EXPECT_EQ(std::ranges::find(all, name, &FieldSetting::name)->value, value) << name;
  EXPECT_EQ(settings(Scheme(Rope{})).size(), info(Scheme(Rope{})).fields.size());
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
