// The kernel over an emulated grid, beside rotate() of the host in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/tensors_test.h"
#include "posenc/cuda.h"
#include "posenc/schemes.h"
#include "tests/guarded_memory.h"

namespace posenc::cuda {
namespace {

struct Problem {
  DType dtype = DType::f32;
  Rope rope = {};
  std::int64_t batch = 1, heads = 2, kv_heads = 1, tokens = 5, dim = 64;
  std::int64_t padding = 0, begin = 0;  // of rows; elements before the first
  Action action = Action::forward;
  bool in_place = true;
  int heads_at_once = 4;

  Plan plan() const {
    const auto made =
        compile(Scheme(rope), {.heads = heads, .kv_heads = kv_heads, .head_dim = dim});
    EXPECT_TRUE(made) << made.error().message();
    return made.value_or(Plan{});
  }
};

Expected<void> on_host(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                       const Tensor& out, Action action) {
  switch (action) {
    case Action::forward: return posenc::rotate(plan, x, positions, side, out);
    case Action::transpose: return rotate_transpose(plan, x, positions, side, out);
    case Action::inverse: return rotate_inverse(plan, x, positions, side, out);
  }
  return {};
}

// The same numbers, rotated by the host in double.
std::vector<double> expected(const Problem& problem, const Numbers& x, const Positions& positions,
                             Side side) {
  Numbers wide(DType::f64, x.view.shape);
  std::vector<double> list;
  x.each([&](std::int64_t at) { list.push_back(x.view.get(at)); });
  std::size_t i = 0;
  wide.each([&](std::int64_t at) { wide.view.set(at, list[i++]); });
  const auto done = on_host(problem.plan(), wide.view, positions, side, wide.view, problem.action);
  EXPECT_TRUE(done) << done.error().message();
  list.clear();
  wide.each([&](std::int64_t at) { list.push_back(wide.view.get(at)); });
  return list;
}

double distance(const Numbers& found, const std::vector<double>& wanted) {
  double worst = 0;
  std::size_t i = 0;
  found.each([&](std::int64_t at) {
    const double w = wanted[i++];
    worst = std::max(worst, std::abs(found.view.get(at) - w) / std::max(1.0, std::abs(w)));
  });
  return worst;
}

// The largest difference, of queries and keys.
double off(const Problem& problem, const Positions& positions, const DevicePositions& there) {
  Numbers q(problem.dtype, {problem.batch, problem.heads, problem.tokens, problem.dim},
            problem.padding, problem.begin);
  Numbers k(problem.dtype, {problem.batch, problem.kv_heads, problem.tokens, problem.dim},
            problem.padding, problem.begin);
  q.fill(1), k.fill(2);
  const auto wanted_q = expected(problem, q, positions, Side::query),
             wanted_k = expected(problem, k, positions, Side::key);
  Numbers q_out(problem.dtype, q.view.shape, problem.padding),
      k_out(problem.dtype, k.view.shape, problem.padding);
  const Plan plan = problem.plan();
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  EXPECT_TRUE(rotations) << rotations.error().message();
  const Numbers &q_end = problem.in_place ? q : q_out, &k_end = problem.in_place ? k : k_out;
  const auto done = rotate(*rotations, q.view, k.view, there, q_end.view, k_end.view,
                           {.action = problem.action, .heads_at_once = problem.heads_at_once});
  EXPECT_TRUE(done) << done.error().message();
  return std::max(distance(q_end, wanted_q), distance(k_end, wanted_k));
}

double off(const Problem& problem, std::int64_t first = 100) {
  return off(problem, Positions::range(first, problem.tokens), {.first = first});
}

class OnDevice : public testing::TestWithParam<DType> {
 protected:
  void expect_exact(Problem problem, std::int64_t first = 100) const {
    problem.dtype = GetParam();
    EXPECT_LE(off(problem, first), tolerance(problem.dtype));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, OnDevice, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(OnDevice, HalvesAsOnTheHost) { expect_exact({}); }
TEST_P(OnDevice, NeighboursAsOnTheHost) {
  expect_exact({.rope = {.pairing = Pairing::interleaved}});
}
TEST_P(OnDevice, ManyHeadsAndTokens) {
  expect_exact({.batch = 2, .heads = 9, .kv_heads = 3, .tokens = 37, .dim = 128});
}
TEST_P(OnDevice, OneHeadOfAThreadAsMany) {
  expect_exact({.heads = 5, .tokens = 9, .heads_at_once = 1});
}
TEST_P(OnDevice, OddSizesGoByElements) { expect_exact({.heads = 3, .tokens = 7, .dim = 6}); }
TEST_P(OnDevice, RowsThatAreNotAlignedGoByElements) { expect_exact({.padding = 3, .begin = 1}); }
TEST_P(OnDevice, AlignedRowsWithRoomBetween) { expect_exact({.tokens = 9, .padding = 8}); }
TEST_P(OnDevice, AHeadOfManyChannels) { expect_exact({.tokens = 2, .dim = 4096}); }
TEST_P(OnDevice, AHeadOfManyChannelsByElements) {
  expect_exact({.tokens = 2, .dim = 1032, .padding = 1});
}
TEST_P(OnDevice, APartRotates) { expect_exact({.rope = {.partial_rotary_factor = 0.5}}); }
TEST_P(OnDevice, APartOfAHeadIsCopiedToOtherMemory) {
  expect_exact({.rope = {.partial_rotary_factor = 0.5}, .in_place = false});
}
TEST_P(OnDevice, AnOddPartIsCopiedToOtherMemory) {
  expect_exact({.rope = {.partial_rotary_factor = 0.375}, .dim = 48, .in_place = false});
}
TEST_P(OnDevice, OtherMemoryHasTheWholeHead) { expect_exact({.in_place = false}); }
TEST_P(OnDevice, TheTransposeHasTheAmplitude) {
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 64};
  expect_exact({.rope = {.scaling = yarn}, .action = Action::transpose});
}
TEST_P(OnDevice, TheInverseDividesByIt) {
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 64};
  expect_exact({.rope = {.scaling = yarn}, .action = Action::inverse});
}
TEST_P(OnDevice, NoTokensAreNoWork) { expect_exact({.tokens = 0}); }
TEST_P(OnDevice, OneTokenAsInDecoding) {
  expect_exact({.batch = 3, .tokens = 1, .dim = 128}, 77'777);
}
TEST_P(OnDevice, AMillionTokensOn) { expect_exact({.dim = 128}, 1'000'000); }

TEST(RotateOnDevice, IdsOfBothWidths) {
  const std::vector<std::int64_t> ids{5, 0, 1'000'000, -3, 77};
  const std::vector<std::int32_t> short_ids(ids.begin(), ids.end());
  const Positions positions = *Positions::signed_ids(ids);
  EXPECT_LE(off({}, positions, {.ids = ids.data()}), 1e-6);
  EXPECT_LE(off({}, positions, {.short_ids = short_ids.data()}), 1e-6);
}

TEST(RotateOnDevice, SeveralAxes) {
  const Problem problem{.rope = {.mrope_section = {8, 12, 12}}};
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 3 * problem.tokens; ++i) ids.push_back(i * 7 % 11);
  EXPECT_LE(off(problem, *Positions::ids(ids, 3), {.ids = ids.data()}), 1e-6);
}

TEST(RotateOnDevice, TokensOfOneCallGoByPlansOfTheirOwn) {
  const Geometry geometry{.heads = 1, .kv_heads = 1, .head_dim = 64};
  const Plan plans[] = {
      *compile(Scheme(Rope{}), geometry),
      *compile(Scheme(Rope{.rope_theta = 5e5, .scaling = Linear{.factor = 8}}), geometry)};
  const auto rotations = Rotations::make(plans, emulated());
  ASSERT_TRUE(rotations) << rotations.error().message();
  Numbers x(DType::f64, {1, 1, 4, 64}), both(DType::f64, x.view.shape);
  x.fill(3);
  const std::vector<std::int32_t> plan_ids{0, 1, 1, 0};
  ASSERT_TRUE(
      rotate(*rotations, x.view, {}, {.first = 10}, both.view, {}, {.plan_ids = plan_ids.data()}));
  for (const std::size_t plan : {0UL, 1UL}) {
    Numbers one(DType::f64, x.view.shape);
    ASSERT_TRUE(
        posenc::rotate(plans[plan], x.view, Positions::range(10, 4), Side::query, one.view));
    for (std::int64_t t = 0; t < 4; ++t)
      for (std::int64_t c = 0; c < 64; ++c)
        if (plan_ids[static_cast<std::size_t>(t)] == static_cast<std::int32_t>(plan)) {
          const std::int64_t at = x.view.offset(0, 0, t, c);
          EXPECT_NEAR(both.view.get(at), one.view.get(at), 1e-14);
        }
  }
}

TEST(RotateOnDevice, WordsAndElementsHaveTheSameBits) {
  for (const DType dtype : dtypes)
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
      const Rope rope{.pairing = pairing};
      const Plan plan = *compile(Scheme(rope), {.heads = 3, .kv_heads = 3, .head_dim = 64});
      const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
      Numbers words(dtype, {1, 3, 5, 64}), elements(dtype, {1, 3, 5, 64}, 1);
      words.fill(4), elements.fill(4);
      for (const Numbers* x : {&words, &elements})
        ASSERT_TRUE(rotate(*rotations, x->view, {}, {.first = 9}, x->view, {}));
      std::vector<double> bits;
      words.each([&](std::int64_t at) { bits.push_back(words.view.get(at)); });
      std::size_t i = 0;
      elements.each([&](std::int64_t at) { EXPECT_EQ(elements.view.get(at), bits[i++]); });
    }
}

// The norm is kept at positions far beyond what a double resolves, and a score depends on the
// distance alone.
TEST(RotateOnDevice, AScoreDependsOnTheDistanceAtAnyPosition) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 128});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const auto score = [&](std::int64_t q_at, std::int64_t k_at) {
    Numbers q(DType::f64, {1, 1, 1, 128}), k(DType::f64, {1, 1, 1, 128});
    q.fill(5), k.fill(6);
    EXPECT_TRUE(rotate(*rotations, q.view, {}, {.first = q_at}, q.view, {}));
    EXPECT_TRUE(rotate(*rotations, k.view, {}, {.first = k_at}, k.view, {}));
    double sum = 0;
    for (std::int64_t c = 0; c < 128; ++c) sum += q.view.get(c) * k.view.get(c);
    return sum;
  };
  const double near = score(7, 0);
  for (const std::int64_t far : {1'000'000LL, 1LL << 53, (1LL << 62) - 9, -(1LL << 62)})
    EXPECT_NEAR(score(far + 7, far), near, 1e-13) << far;
}

TEST(RotateOnDevice, PackedTextsCountFromTheirOwnBegin) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 2, .kv_heads = 2, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const std::vector<std::int32_t> bounds{0, 3, 3, 4, 9}, cached{10, 0, 5, 0};
  const std::vector<std::int64_t> ids{10, 11, 12, 5, 0, 1, 2, 3, 4};
  Numbers packed(DType::f32, {1, 2, 9, 64}), listed(DType::f32, packed.view.shape);
  packed.fill(7), listed.fill(7);
  ASSERT_TRUE(rotate(*rotations, packed.view, {},
                     {.cu_seqlens = bounds.data(), .cached = cached.data(), .texts = 4},
                     packed.view, {}));
  ASSERT_TRUE(rotate(*rotations, listed.view, {}, {.ids = ids.data()}, listed.view, {}));
  packed.each([&](std::int64_t at) { EXPECT_EQ(packed.view.get(at), listed.view.get(at)); });
}

// Keys and values in pages, beside keys that were rotated by themselves.
class AppendOnDevice : public testing::TestWithParam<DType> {
 protected:
  static constexpr std::int64_t tokens = 5, pages = 3, page_size = 4, kv_heads = 2;
  const std::vector<std::int64_t> slots{5, -1, 0, 11, 12};  // the second and the last are padding

  void expect_appended(const Rope& rope, std::int64_t dim, bool heads_first, bool keys_out) const {
    const DType dtype = GetParam();
    const Plan plan = *compile(Scheme(rope), {.heads = 4, .kv_heads = kv_heads, .head_dim = dim});
    const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
    Numbers q(dtype, {1, 4, tokens, dim}), k(dtype, {1, kv_heads, tokens, dim}),
        v(dtype, k.view.shape), q_alone(dtype, q.view.shape), k_alone(dtype, k.view.shape);
    q.fill(1), k.fill(2), v.fill(3), q_alone.fill(1), k_alone.fill(2);
    ASSERT_TRUE(
        rotate(*rotations, q_alone.view, k_alone.view, {.first = 40}, q_alone.view, k_alone.view));
    const std::array<std::int64_t, 4> shape{pages, kv_heads, page_size, dim};
    Numbers key_pages(dtype, shape), value_pages(dtype, shape);
    for (Numbers* cache : {&key_pages, &value_pages}) {
      if (heads_first) cache->view.stride = {kv_heads * page_size * dim, page_size * dim, dim, 1};
      cache->each([&](std::int64_t at) { cache->view.set(at, 77); });
    }
    const Tensor k_out = keys_out ? k.view : Tensor{};
    const auto done = rotate_and_append(
        *rotations, q.view, k.view, v.view, {.first = 40}, q.view, k_out,
        {.keys = key_pages.view, .values = value_pages.view, .slots = slots.data()});
    ASSERT_TRUE(done) << done.error().message();
    q.each([&](std::int64_t at) { EXPECT_EQ(q.view.get(at), q_alone.view.get(at)); });
    if (keys_out) k.each([&](std::int64_t at) { EXPECT_EQ(k.view.get(at), k_alone.view.get(at)); });
    expect_pages(key_pages.view, k_alone.view);
    expect_pages(value_pages.view, v.view);
  }

  // What a slot has is its token's row; a slot of none is as it was.
  void expect_pages(const Tensor& cache, const Tensor& rows) const {
    for (std::int64_t slot = 0; slot < pages * page_size; ++slot) {
      const auto token = std::ranges::find(slots, slot) - slots.begin();
      for (std::int64_t h = 0; h < kv_heads; ++h)
        for (std::int64_t c = 0; c < cache.shape[3]; ++c)
          EXPECT_EQ(cache.get(cache.offset(slot / page_size, h, slot % page_size, c)),
                    token < tokens ? rows.get(rows.offset(0, h, token, c)) : 77);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, AppendOnDevice, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(AppendOnDevice, TokensBeforeHeads) { expect_appended({}, 64, false, false); }
TEST_P(AppendOnDevice, HeadsBeforeTokens) { expect_appended({}, 64, true, false); }
TEST_P(AppendOnDevice, KeysAreHandedOutToo) { expect_appended({}, 64, false, true); }
TEST_P(AppendOnDevice, NeighboursWithoutWholeWords) {
  expect_appended({.pairing = Pairing::interleaved}, 6, true, true);
}
TEST_P(AppendOnDevice, WhatDoesNotRotateGoesToThePagesAsWell) {
  expect_appended({.partial_rotary_factor = 0.5}, 64, false, true);
}

TEST(RotateOnDevice, RefusesPagesThatDoNotMatch) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const Numbers x(DType::f32, {1, 1, 4, 64}), pages(DType::f32, {2, 1, 4, 64}),
      wide(DType::f32, {2, 1, 4, 128});
  const std::vector<std::int64_t> slots{0, 1, 2, 3};
  const auto appended = [&](const Tensor& keys, const Tensor& values, const std::int64_t* there) {
    return rotate_and_append(*rotations, x.view, x.view, x.view, {}, x.view, x.view,
                             {.keys = keys, .values = values, .slots = there});
  };
  EXPECT_TRUE(appended(pages.view, pages.view, slots.data()));
  EXPECT_FALSE(appended(wide.view, pages.view, slots.data()));
  EXPECT_FALSE(appended(pages.view, {}, slots.data()));
  EXPECT_FALSE(appended(pages.view, pages.view, nullptr));
}

// --- ids that are ready, and a kernel before that is not -----------------------------------------

class BeforeTheKernelIsDone : public testing::TestWithParam<DType> {
 protected:
  // Queries that the kernel before this one writes, after this one has begun; with and without
  // waiting for all of it.
  static std::vector<double> rotated(Pairing pairing, bool ids_ready, bool late, bool append) {
    const Plan plan = *compile(Scheme(Rope{.pairing = pairing, .partial_rotary_factor = 0.5}),
                               {.heads = 4, .kv_heads = 4, .head_dim = 64});
    const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
    Numbers x(GetParam(), {1, 4, 5, 64}), v(GetParam(), x.view.shape),
        out(GetParam(), x.view.shape), keys(GetParam(), {2, 4, 4, 64}),
        values(GetParam(), keys.view.shape);
    v.fill(2);
    if (late)
      emulate_kernel_before([&] { x.fill(1); });
    else
      x.fill(1);
    const std::vector<std::int64_t> slots{5, -1, 0, 7, 3};
    const RotateOptions options{.ids_ready = ids_ready};
    const auto done =
        append ? rotate_and_append(
                     *rotations, x.view, x.view, v.view, {.first = 9}, out.view, {},
                     {.keys = keys.view, .values = values.view, .slots = slots.data()}, options)
               : rotate(*rotations, x.view, {}, {.first = 9}, out.view, {}, options);
    EXPECT_TRUE(done) << done.error().message();
    emulate_kernel_before(nullptr);
    std::vector<double> all;
    for (const Numbers* one : {&out, &keys, &values})
      one->each([&](std::int64_t at) { all.push_back(one->view.get(at)); });
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, BeforeTheKernelIsDone, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(BeforeTheKernelIsDone, AnglesHaveTheSameBits) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved})
    for (const bool append : {false, true})
      EXPECT_EQ(rotated(pairing, true, false, append), rotated(pairing, false, false, append));
}
TEST_P(BeforeTheKernelIsDone, NoTensorIsRead) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved})
    for (const bool append : {false, true})
      EXPECT_EQ(rotated(pairing, true, true, append), rotated(pairing, false, false, append));
}

TEST(RotateOnDevice, KeysRotateWhereQueriesHaveNoHead) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 2, .kv_heads = 2, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  Numbers none(DType::f32, {1, 0, 3, 64}), both(DType::f32, {1, 2, 3, 64}),
      alone(DType::f32, {1, 2, 3, 64});
  both.fill(1), alone.fill(1);
  ASSERT_TRUE(rotate(*rotations, none.view, both.view, {.first = 7}, none.view, both.view));
  ASSERT_TRUE(rotate(*rotations, alone.view, {}, {.first = 7}, alone.view, {}));
  both.each([&](std::int64_t at) { EXPECT_EQ(both.view.get(at), alone.view.get(at)); });
}

// As frameworks hand them over: without memory.
TEST(RotateOnDevice, AnEmptyTensorNeedsNoMemory) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 2, .kv_heads = 2, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const Tensor x = Tensor::dense(nullptr, DType::f32, {1, 2, 0, 64});
  EXPECT_TRUE(rotate(*rotations, x, x, {}, x, x));
}

TEST(RotateOnDevice, RefusesItsOwnMemoryFurtherOn) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  std::vector<float> memory(5 * 64);
  const Tensor x = Tensor::dense(memory.data(), DType::f32, {1, 1, 4, 64}),
               on = Tensor::dense(memory.data() + 64, DType::f32, {1, 1, 4, 64});
  Tensor same = x, other = x;
  other.stride[2] = 32;
  same.stride[2] = 0;
  EXPECT_FALSE(rotate(*rotations, x, {}, {}, on, {}));
  EXPECT_FALSE(rotate(*rotations, x, {}, {}, other, {}));
  EXPECT_FALSE(rotate(*rotations, same, {}, {}, same, {}));
  EXPECT_FALSE(rotate(*rotations, x, x, {}, x, on));
}

TEST(RotateOnDevice, NothingBesideATensorIsTouched) {
  for (const auto beside : {GuardedMemory::Beside::start, GuardedMemory::Beside::end})
    for (const DType dtype : dtypes)
      for (const std::int64_t dim : {64, 6}) {
        const GuardedMemory memory(3 * 2 * static_cast<std::size_t>(dim) * size_of(dtype), beside);
        const Tensor x = Tensor::dense(memory.data(), dtype, {1, 2, 3, dim});
        const Plan plan = *compile(Scheme(Rope{}), {.heads = 2, .kv_heads = 2, .head_dim = dim});
        const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
        EXPECT_TRUE(rotate(*rotations, x, {}, {}, x, {}));
      }
}

std::string refusal(const Plan& plan) {
  const auto made = Rotations::make(std::span(&plan, 1), emulated());
  return made ? "" : made.error().rule;
}

TEST(RotateOnDevice, RefusesPhasesAndPolarPairs) {
  const Geometry geometry{.heads = 2, .head_dim = 64};
  for (const Scheme& scheme :
       {Scheme(Rope{.imaginary_heads = ImaginaryHeads::all}), Scheme(Pope{})})
    EXPECT_TRUE(refusal(*compile(scheme, geometry)).contains("the plan must not have "));
}

TEST(RotateOnDevice, RefusesAPlanThatDoesNotRotate) {
  const Geometry geometry{.heads = 1, .kv_heads = 1, .head_dim = 64};
  EXPECT_TRUE(refusal(*compile(Scheme(NoPe{}), geometry)).contains("must rotate"));
}

TEST(RotateOnDevice, RefusesPlansOfTwoGeometries) {
  const Plan plans[] = {*compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 64}),
                        *compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 128})};
  EXPECT_FALSE(Rotations::make(plans, emulated()));
}

TEST(RotateOnDevice, RefusesTensorsThatDoNotMatch) {
  const Plan plan = *compile(Scheme(Rope{}), {.heads = 1, .kv_heads = 1, .head_dim = 64});
  const auto rotations = Rotations::make(std::span(&plan, 1), emulated());
  const Numbers x(DType::f32, {1, 1, 4, 64}), narrow(DType::f32, {1, 1, 4, 32}),
      fewer(DType::f32, {1, 1, 3, 64}), half(DType::f16, {1, 1, 4, 64});
  for (const Numbers* out : {&narrow, &fewer, &half})
    EXPECT_FALSE(rotate(*rotations, x.view, {}, {}, out->view, {}));
  EXPECT_FALSE(rotate(*rotations, x.view, fewer.view, {}, x.view, fewer.view));
  EXPECT_FALSE(rotate(*rotations, narrow.view, {}, {}, narrow.view, {}));
}

}  // namespace
}  // namespace posenc::cuda
