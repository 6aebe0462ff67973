#include "evidence/lab/train/probe.h"

#include <gtest/gtest.h>

#include <vector>

#include "evidence/lab/train/parameters.h"

namespace posenc::lab {
namespace {

constexpr std::int64_t rows = 400, width = 3;

std::vector<float> noise() {
  Random random(1);
  std::vector<float> made;
  for (std::int64_t i = 0; i < rows * width; ++i)
    made.push_back(static_cast<float>(random.normal()));
  return made;
}

TEST(LabProbe, ExplainsAllOfWhatIsLinear) {
  const std::vector<float> features = noise();
  std::vector<double> wanted;
  for (std::size_t i = 0; i < rows; ++i)
    wanted.push_back(5 + 2 * static_cast<double>(features[width * i]) -
                     static_cast<double>(features[width * i + 2]));
  EXPECT_GT(ridge_r2(features, width, wanted), 0.9999);
}

TEST(LabProbe, ExplainsNothingOfWhatIsUnrelated) {
  std::vector<double> wanted;
  for (std::size_t i = 0; i < rows; ++i) wanted.push_back(static_cast<double>(i % 64));
  EXPECT_LT(ridge_r2(noise(), width, wanted), 0.05);
}

TEST(LabProbe, FindsNothingInFeaturesThatStandStill) {
  const std::vector<float> features(rows * width, 3.0F);
  std::vector<double> wanted;
  for (std::size_t i = 0; i < rows; ++i) wanted.push_back(static_cast<double>(i % 64));
  EXPECT_NEAR(ridge_r2(features, width, wanted), 0, 0.01);
}

}  // namespace
}  // namespace posenc::lab
