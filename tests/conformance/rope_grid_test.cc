// 373 synthetic RoPE parameter sets, each built twice: field by field, and through a config.json in
// the newer and the older spelling. The expected numbers are Hugging Face's own.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

struct Kind {
  const char* name;
  std::size_t records;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class RopeGrid : public testing::TestWithParam<Kind> {
 protected:
  std::vector<Json> kind_records() const {
    auto chosen = records("rope_grid", "kind", GetParam().name);
    EXPECT_EQ(chosen.size(), GetParam().records);
    return chosen;
  }
};

class RopeGridOlderConfig : public RopeGrid {};

Geometry geometry_of(const Json& record) {
  return {.head_dim = record.at("head_dim").get<std::int64_t>(), .length = length_of(record)};
}

// A config.json around the record's parameters.
std::string config_of(const Json& record, bool flat) {
  const auto head_dim = record.at("head_dim").get<std::int64_t>();
  Json parameters = record.at("rope_parameters");
  const std::string type = parameters.at("rope_type");
  const bool proportional = type == "proportional";
  const char* family = parameters.contains("alpha") ? "hunyuan_v1_dense"
                       : proportional               ? "gemma4_text"
                                                    : "llama";
  Json config = {{"model_type", family},
                 {"hidden_size", 4 * head_dim},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"head_dim", head_dim},
                 {"num_hidden_layers", 2},
                 {"max_position_embeddings", record.at("max_position_embeddings")}};
  if (record.contains("original_max_position_embeddings")) {
    config["original_max_position_embeddings"] = record.at("original_max_position_embeddings");
  }
  if (proportional) {  // Gemma 4 keeps a dictionary for each kind of layer
    config["global_head_dim"] = head_dim;
    config["layer_types"] = {"sliding_attention", "full_attention"};
    config["sliding_window"] = 512;
    parameters = {{"full_attention", parameters},
                  {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
  }
  if (!flat) {
    config["rope_parameters"] = parameters;
    return config.dump();
  }
  for (const char* top : {"rope_theta", "partial_rotary_factor"}) {
    if (!parameters.contains(top)) continue;
    config[top] = parameters.at(top);
    parameters.erase(top);
  }
  config["rope_scaling"] = type == "default" ? Json() : parameters;
  return config.dump();
}

void expect_config_gives(const Json& record, bool flat) {
  const auto model = read_config(config_of(record, flat));
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup* group = find_group(*model, 1, Stack::text);
  ASSERT_NE(group, nullptr);
  const auto plan = compile(*group, length_of(record));
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_TRUE(plan->rotate);
  const Json& expect = record.at("expect");
  expect_relative(pair_frequencies(*plan->rotate), numbers<double>(expect.at("inv_freq_f64")),
                  kFrequencyF64);
  EXPECT_NEAR(plan->rotate->amplitude, expect.at("attention_factor"), 1e-12);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, expect.at("rotary_dim"));
}

TEST_P(RopeGrid, DoubleIsTheTruth) {
  for (const Json& record : kind_records()) {
    SCOPED_TRACE(record.at("id"));
    const Rope rope = rope_of(record);
    const auto scaled = rope_frequencies<double>(rope, geometry_of(record));
    ASSERT_TRUE(scaled) << scaled.error().message();
    const Json& expect = record.at("expect");
    expect_relative(scaled->frequency, numbers<double>(expect.at("inv_freq_f64")), kFrequencyF64);
    EXPECT_NEAR(scaled->amplitude, expect.at("attention_factor"), 1e-12);
  }
}

TEST_P(RopeGrid, FloatIsHuggingFace) {
  for (const Json& record : kind_records()) {
    SCOPED_TRACE(record.at("id"));
    const auto scaled = rope_frequencies<float>(rope_of(record), geometry_of(record));
    ASSERT_TRUE(scaled) << scaled.error().message();
    expect_relative(scaled->frequency, numbers<double>(record.at("expect").at("inv_freq_f32")),
                    kFrequencyF32);
  }
}

TEST_P(RopeGrid, PlanRotatesTheRightChannels) {
  for (const Json& record : kind_records()) {
    SCOPED_TRACE(record.at("id"));
    const auto plan = compile(rope_of(record), geometry_of(record));
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(plan->rotate);
    EXPECT_EQ(plan->rotate->slice.rotary_dim, record.at("expect").at("rotary_dim"));
    EXPECT_EQ(plan->rotate->slice.first_dim, 0);
    EXPECT_EQ(plan->logits.multiplier, 1);
    const std::int64_t length = length_of(record);
    EXPECT_TRUE(!plan->valid || length == 0 || plan->valid->contains(length));
  }
}

TEST_P(RopeGrid, NewerConfigGivesTheSame) {
  for (const Json& record : kind_records()) {
    SCOPED_TRACE(record.at("id"));
    expect_config_gives(record, false);
  }
}

TEST_P(RopeGridOlderConfig, GivesTheSame) {
  for (const Json& record : kind_records()) {
    SCOPED_TRACE(record.at("id"));
    expect_config_gives(record, true);
  }
}

const auto kName = [](const auto& kind) { return test_name(kind.param.name); };

const auto kOldKinds = testing::Values(
    Kind{"default", 69}, Kind{"default-partial-trunc", 3}, Kind{"linear", 24}, Kind{"dynamic", 96},
    Kind{"yarn", 63}, Kind{"yarn-beta-truncate", 16}, Kind{"yarn-mscale", 10},
    Kind{"yarn-clamp", 3}, Kind{"yarn-partial", 1}, Kind{"yarn-factor-null", 1},
    Kind{"yarn-no-original", 1}, Kind{"longrope", 32}, Kind{"longrope-inner-original", 2},
    Kind{"llama3", 48}, Kind{"llama3-equal-factors", 1}, Kind{"ntk-alpha", 1});

INSTANTIATE_TEST_SUITE_P(Kinds, RopeGrid, kOldKinds, kName);
INSTANTIATE_TEST_SUITE_P(Kinds, RopeGridOlderConfig, kOldKinds, kName);

// Came with the newer spelling.
INSTANTIATE_TEST_SUITE_P(NewKinds, RopeGrid, testing::Values(Kind{"proportional", 2}), kName);

TEST(RopeGridFile, EveryRecordIsReplayed) { EXPECT_EQ(records("rope_grid").size(), 373u); }

}  // namespace
}  // namespace posenc::golden
