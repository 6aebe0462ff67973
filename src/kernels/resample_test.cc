// What other libraries make of a table is in tests/conformance/added_test.cc.
#include "posenc/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/core/random.h"

namespace posenc {
namespace {

std::vector<double> randoms(std::int64_t count, std::uint64_t seed) {
  detail::SplitMix64 engine(seed);
  std::vector<double> out(static_cast<std::size_t>(count));
  for (double& x : out) x = detail::normal(engine);
  return out;
}

std::vector<double> resampled(std::vector<double> table, GridSize from, GridSize to,
                              const Resampling& how, std::int64_t channels) {
  std::vector<double> out(
      static_cast<std::size_t>((how.kept_rows + to.height * to.width) * channels));
  const auto done = resample_grid(
      Tensor::dense(table.data(), {how.kept_rows + from.height * from.width, channels}), from, to,
      how, Tensor::dense(out.data(), {how.kept_rows + to.height * to.width, channels}));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

std::vector<Resampling> ways() {
  std::vector<Resampling> all;
  for (const Interpolation each : {Interpolation::bilinear, Interpolation::bicubic}) {
    all.push_back({.interpolation = each});
    all.push_back({.interpolation = each, .align_corners = true, .kept_rows = 1});
    all.push_back({.interpolation = each, .antialias = true});
    all.push_back({.interpolation = each, .zeros_outside = true, .spatial_merge_size = 2});
  }
  all.push_back({.interpolation = Interpolation::repeated, .spatial_merge_size = 2});
  return all;
}

TEST(ResampleGrid, OfTheSameSizeIsTheTable) {
  const auto table = randoms(3 * 5 * 2, 1);
  for (const Interpolation each : {Interpolation::bilinear, Interpolation::bicubic}) {
    EXPECT_EQ(resampled(table, {3, 5}, {3, 5}, {.interpolation = each}, 2), table);
    EXPECT_EQ(resampled(table, {3, 5}, {3, 5}, {.interpolation = each, .align_corners = true}, 2),
              table);
  }
}

TEST(ResampleGrid, OfOneNumberEverywhereKeepsIt) {
  for (const Resampling& how : ways()) {
    if (how.zeros_outside) continue;
    const std::vector<double> ones(static_cast<std::size_t>(how.kept_rows + 6 * 7), 1);
    for (const double x : resampled(ones, {6, 7}, {4, 10}, how, 1)) EXPECT_NEAR(x, 1, 1e-14);
  }
}

// Away from the edges a slope stays one between two taps, and between four only of the kernel with
// a = −0.5.
TEST(ResampleGrid, BilinearKeepsASlopeAndBicubicDoesNot) {
  std::vector<double> slope;
  for (int x = 0; x < 8; ++x) slope.push_back(x);
  const auto worst = [&](const Resampling& how) {
    const auto out = resampled(slope, {1, 8}, {1, 16}, how, 1);
    double off = 0;
    for (std::size_t x = 5; x < 11; ++x)
      off = std::max(off, std::abs(out[x] - (static_cast<double>(x) / 2 - 0.25)));
    return off;
  };
  EXPECT_LT(worst({}), 1e-14);
  EXPECT_LT(worst({.interpolation = Interpolation::bicubic, .antialias = true}), 1e-14);
  EXPECT_NEAR(worst({.interpolation = Interpolation::bicubic}), 3.0 / 64, 1e-14);
}

TEST(ResampleGrid, MergedPatchesStandInBlocks) {
  const auto table = randoms(16, 2);
  const auto plain = resampled(table, {4, 4}, {4, 4}, {}, 1);
  const auto blocks = resampled(table, {4, 4}, {4, 4}, {.spatial_merge_size = 2}, 1);
  EXPECT_EQ((std::vector{blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]}),
            (std::vector{plain[0], plain[1], plain[4], plain[5], plain[2]}));
}

TEST(ResampleGrid, RepeatedStandsAgainAndAgain) {
  const std::vector<double> table = {0, 1, 2, 3, 4, 5};
  const Resampling how{.interpolation = Interpolation::repeated};
  EXPECT_EQ(resampled(table, {2, 3}, {3, 4}, how, 1),
            (std::vector<double>{0, 1, 2, 0, 3, 4, 5, 3, 0, 1, 2, 0}));
}

TEST(ResampleGrid, InterpolationsAreFoundByName) {
  EXPECT_EQ(find_interpolation("repeated"), Interpolation::repeated);
  EXPECT_EQ(find_interpolation("bicubic"), Interpolation::bicubic);
  EXPECT_FALSE(find_interpolation("nearest"));
}

// Σ out·w = Σ table·(transpose of w), for any table and any w.
TEST(ResampleGrid, ItsGradientIsTheTranspose) {
  constexpr std::int64_t channels = 3;
  for (const Resampling& how : ways()) {
    for (const GridSize to : {GridSize{4, 10}, GridSize{8, 2}}) {
      const std::int64_t rows = how.kept_rows + 6 * 7, news = how.kept_rows + to.height * to.width;
      const auto table = randoms(rows * channels, 3);
      auto w = randoms(news * channels, 4);
      const auto out = resampled(table, {6, 7}, to, how, channels);
      std::vector<double> gradient(table.size(), NAN);
      ASSERT_TRUE(resample_grid_gradient(Tensor::dense(w.data(), {news, channels}), {6, 7}, to, how,
                                         Tensor::dense(gradient.data(), {rows, channels})));
      double forward = 0, backward = 0;
      for (std::size_t i = 0; i < out.size(); ++i) forward += out[i] * w[i];
      for (std::size_t i = 0; i < table.size(); ++i) backward += table[i] * gradient[i];
      EXPECT_NEAR(forward, backward, 1e-11);
    }
  }
}

TEST(ResampleGrid, RefusesWhatDoesNotFit) {
  std::vector<double> table(16), out(16);
  const Tensor from = Tensor::dense(table.data(), {16, 1}), to = Tensor::dense(out.data(), {16, 1});
  const auto rule = [&](GridSize old, GridSize size, const Resampling& how) {
    const auto done = resample_grid(from, old, size, how, to);
    return done ? std::string("no error") : done.error().message();
  };
  EXPECT_NE(rule({4, 5}, {4, 4}, {}).find("table"), std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 5}, {}).find("out"), std::string::npos);
  EXPECT_NE(rule({0, 4}, {4, 4}, {}).find("1 to 2^28 patches"), std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.spatial_merge_size = 3}).find("whole number of blocks of 3"),
            std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.spatial_merge_size = 0}).find("at least 1"), std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.align_corners = true, .antialias = true}).find("leave one out"),
            std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.align_corners = true, .offset = 0.1}).find("leave one out"),
            std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.interpolation = Interpolation::repeated, .antialias = true})
                .find("is not stretched, got antialias"),
            std::string::npos);
  EXPECT_NE(rule({4, 4}, {4, 4}, {.offset = 1}).find("0 to below 1"), std::string::npos);
}

}  // namespace
}  // namespace posenc
