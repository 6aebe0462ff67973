// Distance maps: every logit is that of plain RoPE at the distance that the pair is taken for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t map_tokens = 70, map_dim = 6;

Plan map_plan(const Rope& rope) {
  const auto plan = compile(rope, {.head_dim = map_dim});
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan : Plan{};
}

// [query][key], causal: −∞ behind the query.
std::vector<double> map_logits(const Plan& plan, std::vector<double>& q, std::vector<double>& k,
                               const Positions& queries, const Positions& keys) {
  std::vector<double> out(q.size()), logits(static_cast<std::size_t>(queries.size() * keys.size()));
  const auto view = [](std::vector<double>& x, const Positions& at) {
    return Tensor::dense(x.data(), {1, 1, at.size(), map_dim});
  };
  const auto done = attend_reference(
      {view(q, queries), view(k, keys), view(k, keys), queries, keys, {.causal = false}}, plan,
      view(out, queries), Tensor::dense(logits.data(), {1, 1, queries.size(), keys.size()}));
  EXPECT_TRUE(done) << done.error().message();
  return logits;
}

struct Map {
  const char* name;
  Rope rope;
  std::function<double(std::int64_t, std::int64_t)> distance;  // a multiple of 1/8
};
void PrintTo(const Map& map, std::ostream* out) { *out << map.name; }

class DistanceMaps : public testing::TestWithParam<Map> {};

INSTANTIATE_TEST_SUITE_P(
    Every, DistanceMaps,
    testing::Values(Map{"rerope",
                        {.distance_map = ReRope{.window = 9}},
                        [](std::int64_t i, std::int64_t j) {
                          return std::min<double>(static_cast<double>(i - j), 9);
                        }},
                    Map{"leaky_rerope",
                        {.distance_map = ReRope{.window = 9, .growth = 8}},
                        [](std::int64_t i, std::int64_t j) {
                          const auto d = static_cast<double>(i - j);
                          return d < 9 ? d : 9 + (d - 9) / 8;
                        }},
                    Map{"self_extend",
                        {.distance_map = SelfExtend{.window = 10, .group = 4}},
                        [](std::int64_t i, std::int64_t j) {
                          return static_cast<double>(i - j < 10 ? i - j
                                                                : i / 4 + 10 - 10 / 4 - j / 4);
                        }},
                    Map{"dual_chunk",
                        {.distance_map = DualChunk{.chunk_size = 17, .local_size = 5}},
                        [](std::int64_t i, std::int64_t j) {
                          const std::int64_t c = 12, behind = i / c - j / c;
                          const std::int64_t at = behind <= 0 ? i % c
                                                  : behind == 1
                                                      ? std::min<std::int64_t>(i % c + c, 17)
                                                      : std::min<std::int64_t>(2 * c - 1, 17);
                          return static_cast<double>(at - j % c);
                        }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(DistanceMaps, GiveTheLogitOfTheirDistance) {
  std::vector<double> q = random(map_tokens * map_dim, 1), k = random(map_tokens * map_dim, 2);
  const Positions at = Positions::range(0, map_tokens);
  const std::vector<double> logits = map_logits(map_plan(GetParam().rope), q, k, at, at);
  // Eighths of a position, at frequencies divided by 8.
  Plan fine = map_plan(Rope{});
  for (double& frequency : fine.rotate->frequencies.radians) frequency /= 8;
  for (std::int64_t i = 0; i < map_tokens; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const auto token = [](const std::vector<double>& x, std::int64_t t) {
        return std::vector<double>(x.begin() + t * map_dim, x.begin() + (t + 1) * map_dim);
      };
      std::vector<double> one = token(q, i), other = token(k, j);
      const std::int64_t distance = std::lround(8 * GetParam().distance(i, j));
      const auto wanted = map_logits(fine, one, other, *Positions::signed_ids({{distance}}),
                                     Positions::range(0, 1));
      ASSERT_NEAR(logits[static_cast<std::size_t>(i * map_tokens + j)], wanted[0], 1e-12)
          << i << " and " << j;
    }
  }
}

TEST_P(DistanceMaps, ARotationOfTokensRefusesThem) {
  std::vector<double> x = random(map_dim, 1);
  const Tensor view = Tensor::dense(x.data(), {1, 1, 1, map_dim});
  const auto done =
      rotate(map_plan(GetParam().rope), view, Positions::range(3, 1), Side::query, view);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("use attend()"), std::string::npos);
}

TEST(DistanceMap, ChunksAreLargerThanWhatIsLocal) {
  const auto plan =
      compile(Rope{.distance_map = DualChunk{.chunk_size = 8, .local_size = 8}}, {.head_dim = 8});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("above local_size"), std::string::npos);
}

TEST(PositionMaps, RoundDownBelowZeroToo) {
  EXPECT_EQ((PositionMap{.divisor = 4}.at(-1)), -1);
  EXPECT_EQ((PositionMap{.modulus = 5}.at(-1)), 4);
  EXPECT_EQ((PositionMap{.offset = 3, .most = 4}.at(2)), 4);
}

}  // namespace
}  // namespace posenc
