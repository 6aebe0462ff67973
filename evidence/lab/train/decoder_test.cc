#include "evidence/lab/train/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace posenc::lab {
namespace {

constexpr DecoderShape small{
    .vocabulary = 7, .width = 8, .layers = 2, .heads = 2, .hidden = 12, .trained_length = 10};

Expected<Decoder> decoder(std::string_view scheme, const DecoderShape& shape = small) {
  Expected<AnyScheme> parsed = parse_scheme(scheme);
  if (!parsed) return std::unexpected(parsed.error());
  return Decoder::make(shape, std::move(*parsed), 3);
}

Batch some_texts(std::int64_t texts = 3, std::int64_t length = 10) {
  Batch batch{.texts = texts, .length = length};
  Random random(5);
  for (std::int64_t i = 0; i < texts * length; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(small.vocabulary)));
    batch.targets.push_back(static_cast<std::int32_t>(random.below(small.vocabulary + 1)) - 1);
  }
  return batch;
}

bool without_blas(const Expected<Decoder>& made) {
  return !made && made.error().rule.find("OpenBLAS") != std::string::npos;
}

class EveryScheme : public testing::TestWithParam<const char*> {};

// A float's loss is rounded by 1e-7, which a central difference divides by its step, and curvature
// counts with the step's square, a relu's bend with the step: of four steps one is short and long
// enough. A wrong gradient agrees with none.
TEST_P(EveryScheme, GradientsAreThoseOfFiniteDifferences) {
  Expected<Decoder> made = decoder(GetParam());
  if (without_blas(made)) GTEST_SKIP() << made.error().message();
  ASSERT_TRUE(made) << made.error().message();
  const Batch batch = some_texts();
  // A few steps first, so that nothing is 0 or the same for all heads.
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(made->learn(batch));
    made->parameters().step(0.02);
  }
  ASSERT_TRUE(made->learn(batch));
  for (Parameter& parameter : made->parameters().all()) {
    const std::vector<float> gradient = parameter.gradient;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const float kept = parameter.value[i];
      const auto at = [&](float step) {
        parameter.value[i] = kept + step;
        const double loss = made->loss(batch).value();
        parameter.value[i] = kept;
        return loss;
      };
      const double bound = 2e-4 + 1e-4 * std::abs(static_cast<double>(gradient[i]));
      double apart = 1;
      for (const float h : {0.003F, 0.0005F, 0.02F, 0.0002F}) {
        const double found = (at(h) - at(-h)) / (2 * static_cast<double>(h));
        apart = std::min(apart, std::abs(static_cast<double>(gradient[i]) - found));
        if (apart < bound) break;
      }
      EXPECT_LT(apart, bound) << parameter.name << "[" << i << "] " << gradient[i];
    }
  }
}

TEST_P(EveryScheme, TrainsToTheSameBitsTwice) {
  std::vector<double> seen[2];
  for (std::vector<double>& losses : seen) {
    Expected<Decoder> made = decoder(GetParam());
    if (without_blas(made)) GTEST_SKIP() << made.error().message();
    ASSERT_TRUE(made) << made.error().message();
    for (int i = 0; i < 4; ++i) {
      losses.push_back(made->learn(some_texts()).value());
      made->parameters().step(0.01);
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_LT(seen[0].back(), seen[0].front());
}

INSTANTIATE_TEST_SUITE_P(
    Lab, EveryScheme,
    testing::Values(
        "nope", "sinusoidal scale_embedding=true", "learned", "t5 num_buckets=6 max_distance=8",
        "alibi", "kerple", "kerple kernel=power", "sandwich", "rope",
        "rope rope_type=linear factor=2", "rope rope_type=ntk factor=2",
        "rope rope_type=dynamic factor=2 max_position_embeddings=5",
        "rope rope_type=ntk_by_parts factor=2 original_max_position_embeddings=5",
        "rope rope_type=yarn factor=2 original_max_position_embeddings=5",
        "rope rope_type=llama3 factor=2 original_max_position_embeddings=5",
        "rope rope_type=proportional partial_rotary_factor=0.5", "rope rotary_dim=2",
        "xpos scale_base=16", "fire initial_length=6", "cope", "forgetting", "stick_breaking",
        "wall", "path", "selective_rope", "carope", "mamba3", "grape_m", "repo", "repo first=1",
        "grape_ap", "profiles curves=ramp profiles=1", "profiles profiles=3 extent=4",
        "transformer_xl bidirectional=false", "pope", "fope max_position_embeddings=10",
        "rope imaginary_heads=alternating", "rope distance_map=rerope map_window=3 map_group=2",
        "rope distance_map=self_extend map_window=4 map_group=2",
        "rope distance_map=dual_chunk chunk_size=5 local_size=2"),
    [](const testing::TestParamInfo<const char*>& param) {
      std::string name = param.param;
      for (char& letter : name)
        if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
      return name;
    });

TEST(LabDecoder, ModelsOfASeedShareWhatTheyHaveInCommon) {
  Expected<Decoder> a = decoder("rope"), b = decoder("t5 max_distance=64");
  if (without_blas(a)) GTEST_SKIP() << a.error().message();
  for (const Parameter& mine : a->parameters().all())
    for (const Parameter& other : b->parameters().all())
      if (mine.name == other.name) {
        EXPECT_EQ(mine.value, other.value) << mine.name;
      }
}

TEST(LabDecoder, ALayerWithoutPositionSeesBeyondTheWindow) {
  DecoderShape shape = small;
  shape.window = 2;
  shape.layers = 1;
  const auto last_loss = [&](std::int64_t without_every, std::int32_t first_token) {
    shape.without_every = without_every;
    Expected<Decoder> made = decoder("rope", shape);
    Batch batch = some_texts(1);
    batch.tokens[0] = first_token;
    batch.targets.back() = 1;
    made->loss(batch).value();
    return made->losses().back();
  };
  if (without_blas(decoder("rope"))) GTEST_SKIP() << "no OpenBLAS";
  EXPECT_EQ(last_loss(0, 1), last_loss(0, 2));
  EXPECT_NE(last_loss(1, 1), last_loss(1, 2));
}

TEST(LabDecoder, SeesLaterTokensWhereItIsNotCausal) {
  if (without_blas(decoder("rope"))) GTEST_SKIP() << "no OpenBLAS";
  const auto first_loss = [](bool causal, std::int32_t last_token) {
    DecoderShape shape = small;
    shape.causal = causal;
    Expected<Decoder> made = decoder("rope", shape);
    Batch batch = some_texts(1);
    batch.targets.front() = 1;
    batch.tokens.back() = last_token;
    made->loss(batch).value();
    return made->losses().front();
  };
  EXPECT_EQ(first_loss(true, 1), first_loss(true, 2));
  EXPECT_NE(first_loss(false, 1), first_loss(false, 2));
}

TEST(LabDecoder, AFieldThatAPartlyReadNumberWouldSetIsRefused) {
  EXPECT_FALSE(parse_scheme("rope rope_theta=10k"));
  EXPECT_FALSE(parse_scheme("rope factor"));
  EXPECT_EQ(parse_scheme("roppe").error().cure, make_scheme("roppe").error().cure);
}

}  // namespace
}  // namespace posenc::lab
