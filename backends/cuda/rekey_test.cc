// Keys that move over an emulated grid, beside rekey() of the host in double.
#include "posenc/rekey.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/tensors_test.h"
#include "posenc/cuda.h"
#include "posenc/schemes.h"

namespace posenc::cuda {
namespace {

constexpr std::int64_t kv_heads = 3;

Plan plan_of(const Scheme& scheme, std::int64_t dim) {
  const auto made = compile(scheme, {.heads = kv_heads, .kv_heads = kv_heads, .head_dim = dim});
  EXPECT_TRUE(made) << made.error().message();
  return made.value_or(Plan{});
}

struct Move {
  DType dtype = DType::f32;
  Rope before = {}, after = {};
  std::int64_t batch = 2, tokens = 7, dim = 64;
  std::int64_t padding = 0, begin = 0;
  bool in_place = true;
  Side side = Side::key;
  int heads_at_once = 4;
};

std::vector<std::int64_t> drawn(std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000);
  return ids;
}

// How far the device's keys are from the host's.
double off(const Move& move) {
  const Plan plans[] = {plan_of(Scheme(move.before), move.dim),
                        plan_of(Scheme(move.after), move.dim)};
  const auto rotations = Rotations::make(plans, emulated());
  EXPECT_TRUE(rotations) << rotations.error().message();
  const std::int64_t axes = plans[0].rotate->frequencies.axes;
  const auto old_ids = drawn(axes * move.batch * move.tokens, 1),
             new_ids = drawn(axes * move.batch * move.tokens, 2);
  Numbers x(move.dtype, {move.batch, kv_heads, move.tokens, move.dim}, move.padding, move.begin),
      apart(move.dtype, x.view.shape, move.padding), wide(DType::f64, x.view.shape);
  x.fill(7);
  x.each([&](std::int64_t) {});
  std::vector<double> numbers;
  x.each([&](std::int64_t at) { numbers.push_back(x.view.get(at)); });
  std::size_t i = 0;
  wide.each([&](std::int64_t at) { wide.view.set(at, numbers[i++]); });
  const auto host = posenc::rekey({&plans[0], *Positions::signed_ids(old_ids, axes, move.batch)},
                                  {&plans[1], *Positions::signed_ids(new_ids, axes, move.batch)},
                                  wide.view, wide.view, move.side);
  EXPECT_TRUE(host) << host.error().message();
  const Numbers& out = move.in_place ? x : apart;
  const auto done =
      rekey(*rotations, x.view, {.ids = old_ids.data()}, {.ids = new_ids.data()}, out.view,
            {.from = 0, .to = 1, .side = move.side, .heads_at_once = move.heads_at_once});
  EXPECT_TRUE(done) << done.error().message();
  double worst = 0;
  std::vector<double> wanted;
  wide.each([&](std::int64_t at) { wanted.push_back(wide.view.get(at)); });
  i = 0;
  out.each([&](std::int64_t at) {
    const double w = wanted[i++];
    worst = std::max(worst, std::abs(out.view.get(at) - w) / std::max(1.0, std::abs(w)));
  });
  return worst;
}

class RekeyOnDevice : public testing::TestWithParam<DType> {
 protected:
  void expect_exact(Move move) const {
    move.dtype = GetParam();
    EXPECT_LE(off(move), tolerance(move.dtype));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, RekeyOnDevice, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

const Rope neighbours{.pairing = Pairing::interleaved};

TEST_P(RekeyOnDevice, HalvesAndNeighbours) {
  expect_exact({});
  expect_exact({.before = neighbours, .after = neighbours});
}
TEST_P(RekeyOnDevice, ToOtherFrequenciesAndAmplitudes) {
  const Rope yarn{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 64}};
  expect_exact({.after = Rope{.rope_theta = 5e5}});
  expect_exact({.after = yarn});
  expect_exact({.before = yarn, .after = yarn});
}
TEST_P(RekeyOnDevice, PartsOfAHead) {
  const Rope part{.partial_rotary_factor = 0.5}, odd{.partial_rotary_factor = 0.375};
  expect_exact({.before = part, .after = part, .in_place = false});
  expect_exact({.before = odd, .after = odd, .dim = 48, .in_place = false});
}
TEST_P(RekeyOnDevice, SeveralAxes) {
  const Rope axes{.mrope_section = {8, 12, 12}};
  expect_exact({.before = axes, .after = axes});
}
TEST_P(RekeyOnDevice, RowsThatAreNotAligned) { expect_exact({.padding = 3, .begin = 1}); }
TEST_P(RekeyOnDevice, OneHeadOfAThread) { expect_exact({.heads_at_once = 1}); }
TEST_P(RekeyOnDevice, NoTokens) { expect_exact({.tokens = 0}); }

TEST(RekeyOnDevice, WordsAndElementsHaveTheSameBits) {
  for (const DType dtype : dtypes)
    for (const Rope& rope : {Rope{}, neighbours}) {
      const Plan plan = plan_of(Scheme(rope), 64);
      const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
      Numbers words(dtype, {1, kv_heads, 5, 64}), elements(dtype, {1, kv_heads, 5, 64}, 1);
      words.fill(4), elements.fill(4);
      for (const Numbers* x : {&words, &elements})
        ASSERT_TRUE(rekey(*rotations, x->view, {.first = 9}, {.first = 4}, x->view));
      std::vector<double> bits;
      words.each([&](std::int64_t at) { bits.push_back(words.view.get(at)); });
      std::size_t i = 0;
      elements.each([&](std::int64_t at) { EXPECT_EQ(elements.view.get(at), bits[i++]); });
    }
}

// Where a token does not move, no bit of it does.
TEST(RekeyOnDevice, NoMoveIsNoChange) {
  const Plan plan = plan_of(
      Scheme(Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 64}}), 64);
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  Numbers x(DType::bf16, {1, kv_heads, 5, 64});
  x.fill(4);
  const std::vector<double> before = x.memory;
  ASSERT_TRUE(rekey(*rotations, x.view, {.first = 77}, {.first = 77}, x.view));
  EXPECT_EQ(x.memory, before);
}

// HND and NHD; slots that there are not have no key, and what is in no slot stays.
TEST(RekeyOnDevice, KeysInPagesAsApart) {
  constexpr std::int64_t pages = 5, size = 4, dim = 64;
  const Plan plan = plan_of(Scheme(Rope{}), dim);
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const std::vector<std::int64_t> slots{9, 3, -1, 17, 4, 20};  // [2, 3]
  const std::vector<std::int64_t> old_ids = drawn(6, 3), new_ids = drawn(6, 4);
  for (const bool heads_first : {true, false}) {
    Numbers pool(DType::f64, {pages, kv_heads, size, dim});
    if (heads_first) {
      pool.view.stride = {kv_heads * size * dim, size * dim, dim, 1};
    }
    pool.fill(6);
    Numbers before(DType::f64, pool.view.shape);
    before.view.stride = pool.view.stride;
    before.fill(6);
    ASSERT_TRUE(rekey_pages(*rotations, pool.view, slots.data(), 2, 3, {.ids = old_ids.data()},
                            {.ids = new_ids.data()}));
    for (std::int64_t slot = 0; slot < pages * size; ++slot) {
      const auto at = std::ranges::find(slots, slot) - slots.begin();
      std::vector<double> key;
      for (std::int64_t h = 0; h < kv_heads; ++h)
        for (std::int64_t c = 0; c < dim; ++c)
          key.push_back(before.view.get(before.view.offset(slot / size, h, slot % size, c)));
      const Tensor x = Tensor::dense(key.data(), {1, kv_heads, 1, dim});
      if (at < std::ssize(slots)) {
        const std::int64_t stood[] = {old_ids[static_cast<std::size_t>(at)]},
                           stands[] = {new_ids[static_cast<std::size_t>(at)]};
        ASSERT_TRUE(posenc::rekey({&plan, *Positions::signed_ids(stood)},
                                  {&plan, *Positions::signed_ids(stands)}, x, x));
      }
      std::size_t i = 0;
      for (std::int64_t h = 0; h < kv_heads; ++h)
        for (std::int64_t c = 0; c < dim; ++c)
          EXPECT_NEAR(pool.view.get(pool.view.offset(slot / size, h, slot % size, c)), key[i++],
                      1e-13)
              << slot;
    }
  }
}

TEST(RekeyOnDevice, WhatCannotMoveIsRefused) {
  const auto refused = [](const Expected<void>& done, const std::string& word) {
    ASSERT_FALSE(done) << word;
    EXPECT_NE(done.error().message().find(word), std::string::npos) << done.error().message();
  };
  const Plan rope = plan_of(Scheme(Rope{}), 64), xpos = plan_of(Scheme(XPos{}), 64);
  const auto rotations = Rotations::make(std::span(&rope, 1), emulated()),
             growing = Rotations::make(std::span(&xpos, 1), emulated());
  Numbers x(DType::f32, {1, kv_heads, 2, 64}), narrow(DType::f32, {1, kv_heads, 2, 32});
  const double real[] = {0.5, 1.5};
  refused(rekey(*growing, x.view, {}, {.first = 1}, x.view), "xPos' growth");
  refused(rekey(*rotations, x.view, {.real_ids = real}, {}, x.view), "real ids");
  refused(rekey(*rotations, x.view, {}, {}, x.view, {.to = 1}), "it has 1");
  refused(rekey(*rotations, x.view, {}, {}, x.view, {.side = Side::query}), "queries");
  refused(rekey(*rotations, x.view, {}, {}, narrow.view), "out must have");
  refused(rekey_pages(*rotations, x.view, nullptr, 1, 2, {}, {}), "no slots");
}

}  // namespace
}  // namespace posenc::cuda
