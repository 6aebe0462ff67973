// Real models with their weights, which `make models` fetches. Without them these tests are
// skipped, and with POSENC_NEED_MODELS in the environment they fail.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "posenc/posenc.h"
#include "tests/paths.h"

namespace posenc {
namespace {

class FetchedModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(path())) return;
    if (std::getenv("POSENC_NEED_MODELS")) FAIL() << path() << " is missing: run make models";
    GTEST_SKIP() << "run make models to fetch it";
  }
  std::string path() const { return test::data_path("../../models/fetched/") + GetParam(); }
};

using Bert = FetchedModel;
INSTANTIATE_TEST_SUITE_P(AllMiniLm, Bert, testing::Values("all-minilm-l6-v2"));

TEST_P(Bert, AddsRowsOfALearnedTable) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_EQ(model->groups.size(), 1u);
  EXPECT_EQ(std::get<Learned>(model->groups[0].schemes[0]).rows, 512);
  EXPECT_EQ(model->groups[0].geometry.width, 384);
  EXPECT_TRUE(explain(*model, {.at = 512}));
}

TEST_P(Bert, BringsItsTable) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->warnings.empty());
  const Tensor& rows = std::get<Learned>(model->groups[0].schemes[0]).table.values;
  EXPECT_EQ(shape_text(rows), "[512, 384]");
  EXPECT_EQ(rows.dtype, DType::f32);
}

TEST_P(Bert, HasNoRowForTheNextPosition) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(explain(*model, {.at = 513}));
}

using SmolLm = FetchedModel;
INSTANTIATE_TEST_SUITE_P(SmolLm2, SmolLm, testing::Values("smollm2-135m"));

// What its runs show (posenc lab reuse, docs/cache.md): moved keys of its first layer are a fresh
// prefill's.
TEST_P(SmolLm, MayHaveItsKeysMoved) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  const auto verdicts = reuse(*model);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].verdict, Reuse::exact);
  EXPECT_EQ(verdicts[0].layers.size(), 30u);
}

TEST_P(SmolLm, TurnsNeighboursInEveryLayer) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_EQ(model->groups.size(), 1u);
  const LayerGroup& group = model->groups[0];
  EXPECT_EQ(group.layers.size(), 30u);
  const auto& rope = std::get<Rope>(group.schemes.at(0));
  EXPECT_EQ(rope.pairing, Pairing::interleaved);  // converted: config.json says halves
  EXPECT_EQ(rope.rope_theta, 100000);
  EXPECT_TRUE(std::holds_alternative<Unscaled>(rope.scaling));
}

TEST_P(SmolLm, SaysItsSizes) {
  const auto model = read_model(path());
  ASSERT_TRUE(model) << model.error().message();
  const Geometry& geometry = model->groups.at(0).geometry;
  EXPECT_EQ(geometry.heads, 9);
  EXPECT_EQ(geometry.kv_heads, 3);
  EXPECT_EQ(geometry.head_dim, 64);
  EXPECT_EQ(model->context, 8192);
}

}  // namespace
}  // namespace posenc
