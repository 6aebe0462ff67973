// Real models with their weights, which `make models` fetches. Without them these tests are skipped, and
// with POSENC_NEED_MODELS in the environment they fail.
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

}  // namespace
}  // namespace posenc
