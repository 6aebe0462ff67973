// Which keys a query sees, by attend_reference: what visible.h decides for every kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "src/attention/reference_test.h"

namespace posenc {
namespace {

using namespace reference_test;

constexpr double never = -std::numeric_limits<double>::infinity();

// Which keys each query sees, as text: "1" seen.
std::string seen(const Mask& mask, const Positions& positions) {
  Attention a{.heads = 1};
  a.run(Plan{}, mask, positions);
  std::string text;
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) text += a.logit(0, i, j) == never ? '.' : '1';
    text += i < 5 ? " " : "";
  }
  return text;
}
std::string seen(const Mask& mask) { return seen(mask, Positions::range(0, 6)); }

TEST(AttendMask, CausalHidesTheFuture) {
  EXPECT_EQ(seen({}), "1..... 11.... 111... 1111.. 11111. 111111");
}

TEST(AttendMask, WindowOfThreeSeesItselfAndTwoBefore) {
  EXPECT_EQ(seen({.window = 3}), "1..... 11.... 111... .111.. ..111. ...111");
}

TEST(AttendMask, WindowWithoutCausalReachesBothWays) {
  EXPECT_EQ(seen({.causal = false, .window = 2}), "11.... 111... .111.. ..111. ...111 ....11");
}

TEST(AttendMask, ChunkOfThreeStartsAnewAtEachMultiple) {
  EXPECT_EQ(seen({.chunk = 3}), "1..... 11.... 111... ...1.. ...11. ...111");
}

TEST(AttendMask, ChunksAreCountedFromPositionZero) {
  EXPECT_EQ(seen({.chunk = 4}, Positions::range(2, 6)),
            "1..... 11.... ..1... ..11.. ..111. ..1111");
}

TEST(AttendMask, ChunkWithoutCausalIsABlock) {
  EXPECT_EQ(seen({.causal = false, .chunk = 4}), "1111.. 1111.. 1111.. 1111.. ....11 ....11");
}

TEST(AttendMask, PrefixIsSeenByAll) {
  EXPECT_EQ(seen({.prefix = 3}), "111... 111... 111... 1111.. 11111. 111111");
}

TEST(AttendMask, PrefixIsSeenThroughAWindow) {
  EXPECT_EQ(seen({.window = 2, .prefix = 1}), "1..... 11.... 111... 1.11.. 1..11. 1...11");
}

TEST(AttendMask, PrefixIsSeenThroughAChunk) {
  EXPECT_EQ(seen({.chunk = 4, .prefix = 2}), "11.... 11.... 111... 1111.. 11..1. 11..11");
}

TEST(AttendMask, WindowWithoutCausalHidesNoPrefix) {
  EXPECT_EQ(seen({.causal = false, .window = 2, .prefix = 1}),
            "11.... 111... 1111.. 1.111. 1..111 1...11");
}

TEST(AttendMask, MarkedPaddingIsOfNoTokensChunk) {
  const std::vector<std::uint8_t> tokens = {0, 0, 1, 1, 1, 1};
  EXPECT_EQ(seen({.causal = false, .chunk = 4}, *Positions::from_mask(tokens, 1, 0, -1)),
            "11.... 11.... ..1111 ..1111 ..1111 ..1111");
}

TEST(AttendMask, MarkedPaddingIsOfNoPrefix) {
  const std::vector<std::uint8_t> tokens = {0, 0, 1, 1, 1, 1};
  EXPECT_EQ(seen({.window = 1, .prefix = 1}, *Positions::from_mask(tokens, 1, 0, -1)),
            "111... 111... ..1... ..11.. ..1.1. ..1..1");
}

TEST(AttendMask, KeepHidesKeys) {
  const std::vector<std::uint8_t> keep = {0, 1, 1, 0, 1, 1};
  EXPECT_EQ(seen({.causal = false, .keep = keep.data()}),
            ".11.11 .11.11 .11.11 .11.11 .11.11 .11.11");
}

TEST(AttendMask, TokensOfABlockSeeEachOtherBothWays) {
  const std::vector<std::int32_t> blocks = {-1, 0, 0, 0, -1, -1};
  EXPECT_EQ(seen({.blocks = blocks.data()}), "1..... 1111.. 1111.. 1111.. 11111. 111111");
}

TEST(AttendMask, BlocksAreSeenThroughAWindow) {
  const std::vector<std::int32_t> blocks = {-1, 4, 4, 4, 4, -1};
  EXPECT_EQ(seen({.window = 1, .blocks = blocks.data()}),
            "1..... .1111. .1111. .1111. .1111. .....1");
}

TEST(AttendMask, KeepHidesKeysOfABlock) {
  const std::vector<std::int32_t> blocks = {0, 0, 0, -1, -1, -1};
  const std::vector<std::uint8_t> keep = {1, 1, 0, 1, 1, 1};
  EXPECT_EQ(seen({.window = 1, .keep = keep.data(), .blocks = blocks.data()}),
            "11.... 11.... 11.... ...1.. ....1. .....1");
}

TEST(AttendMask, BlocksNeedTheKeysOfTheirQueries) {
  const std::vector<std::int32_t> blocks(6, 0);
  std::vector<double> x(6 * 4);
  const Tensor six = Tensor::dense(x.data(), {1, 1, 6, 4}),
               five = Tensor::dense(x.data(), {1, 1, 5, 4});
  const auto done = attend(
      {six, five, five, Positions::range(0, 6), Positions::range(0, 5), {.blocks = blocks.data()}},
      Plan{}, six);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "with blocks the queries must be the last of the keys");
}

TEST(AttendMask, GoesByPositionNotByPlaceInMemory) {
  const std::vector<std::int64_t> backwards = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(seen({}, *Positions::ids(backwards)), "111111 .11111 ..1111 ...111 ....11 .....1");
}

TEST(AttendMask, PackedSequencesDoNotSeeEachOther) {
  const std::vector<std::int64_t> cu_seqlens = {0, 2, 6};
  EXPECT_EQ(seen(no_order, *Positions::packed(cu_seqlens)),
            "11.... 11.... ..1111 ..1111 ..1111 ..1111");
}

// A picture's patches all stand at one moment; causal attention still compares the order of tokens.
TEST(AttendMask, WithSeveralAxesGoesByTheOrderOfTokens) {
  const std::vector<std::int64_t> ids = {0, 1, 1, 1, 1, 3, 0, 1, 1, 2, 2, 3, 0, 1, 2, 1, 2, 3};
  EXPECT_EQ(seen({}, *Positions::ids(ids, 3)), seen({}));
}

TEST(AttendMask, QueryThatSeesNothingGivesZeros) {
  const std::vector<std::uint8_t> keep = {0, 1, 1, 1, 1, 1};
  Attention a;
  a.run(rotating_plan(), {.keep = keep.data()});
  EXPECT_EQ(a.out_at(1, 0), std::vector<double>(4));
}

TEST(AttendMask, HiddenKeysMayHoldNaN) {
  Attention a;
  a.v[5 * 4] = a.k[5 * 4] = NAN;
  const std::vector<std::uint8_t> keep = {1, 1, 1, 1, 1, 0};
  a.run(rotating_plan(), {.keep = keep.data()});
  for (const double x : a.out) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttendMask, LeftPaddingChangesNothing) {
  Plan plan = rotating_plan();
  plan.bias = sloping_plan().bias;
  Attention padded, plain{.seq = 4};
  for (const auto& [to, from, heads] :
       {std::tuple{&plain.q, &padded.q, 2}, {&plain.k, &padded.k, 1}, {&plain.v, &padded.v, 1}}) {
    for (std::ptrdiff_t h = 0; h < heads; ++h) {
      std::copy_n(from->begin() + h * 24 + 8, 16, to->begin() + h * 16);
    }
  }
  const std::vector<std::uint8_t> keep = {0, 0, 1, 1, 1, 1};
  padded.run(plan, {.keep = keep.data()}, *Positions::from_mask(keep, 1));
  plain.run(plan);
  for (std::int64_t t = 0; t < 4; ++t) expect_near(padded.out_at(1, t + 2), plain.out_at(1, t));
}

TEST(AttendMask, PackedEqualsSeparate) {
  Attention packed, first{.seq = 2}, second{.seq = 4};
  for (auto& [part, start] : {std::pair<Attention&, std::ptrdiff_t>{first, 0}, {second, 8}}) {
    const std::ptrdiff_t length = part.seq * 4;
    for (const auto& [to, from, heads] :
         {std::tuple{&part.q, &packed.q, 2}, {&part.k, &packed.k, 1}, {&part.v, &packed.v, 1}}) {
      for (std::ptrdiff_t h = 0; h < heads; ++h) {
        std::copy_n(from->begin() + h * 24 + start, length, to->begin() + h * length);
      }
    }
    part.run(rotating_plan());
  }
  const std::vector<std::int64_t> cu_seqlens = {0, 2, 6};
  packed.run(rotating_plan(), {}, *Positions::packed(cu_seqlens));
  for (std::int64_t t = 0; t < 6; ++t) {
    expect_near(packed.out_at(1, t), t < 2 ? first.out_at(1, t) : second.out_at(1, t - 2));
  }
}

TEST(AttendMask, EverySequenceOfABatchHasItsPaddingAndPositions) {
  Attention both{.batch = 2};
  const std::vector<std::uint8_t> keep = {1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1};
  both.run(rotating_plan(), {.keep = keep.data()}, *Positions::from_mask(keep, 2));
  Attention second;
  std::copy_n(both.q.begin() + 48, 48, second.q.begin());
  std::copy_n(both.k.begin() + 24, 24, second.k.begin());
  std::copy_n(both.v.begin() + 24, 24, second.v.begin());
  const std::span alone(keep.data() + 6, 6);
  second.run(rotating_plan(), {.keep = alone.data()}, *Positions::from_mask(alone, 1));
  EXPECT_EQ(std::vector<double>(both.out.begin() + 48, both.out.end()), second.out);
}

// The last two queries over all six keys give what they give among all six.
TEST(AttendMask, DecodingEqualsTheWholeText) {
  Attention whole;
  whole.run(rotating_plan());
  std::vector<double> q = whole.q_at(0, 4), out(8);
  q.insert(q.end(), whole.q.begin() + 5 * 4, whole.q.begin() + 6 * 4);
  ASSERT_TRUE(attend_reference(
      {Tensor::dense(q.data(), {2, 4}), Tensor::dense(whole.k.data(), {6, 4}),
       Tensor::dense(whole.v.data(), {6, 4}), Positions::range(4, 2), Positions::range(0, 6)},
      rotating_plan(), Tensor::dense(out.data(), {2, 4})));
  EXPECT_EQ(out, std::vector<double>(whole.out.begin() + 16, whole.out.begin() + 24));
}

}  // namespace
}  // namespace posenc
