// Layouts: who holds which token, at which position, and how much each rank has to do.
#include "posenc/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace posenc {
namespace {

using Tokens = std::vector<std::int64_t>;

std::string picture(const Layout& layout) {
  std::string owners(static_cast<std::size_t>(layout.tokens()), ' ');  // of nobody
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank)
    for (const std::int64_t token : layout.tokens_of(rank))
      owners[static_cast<std::size_t>(token)] = static_cast<char>('0' + rank);
  return owners;
}

TEST(Layout, PicturesOfTheHeader) {
  EXPECT_EQ(picture(*Layout::contiguous(16, 2)), "0000000011111111");
  EXPECT_EQ(picture(*Layout::zigzag(16, 2)), "0000111111110000");
  EXPECT_EQ(picture(*Layout::striped(16, 2)), "0101010101010101");
  EXPECT_EQ(picture(*Layout::striped(16, 2, 2)), "0011001100110011");
  EXPECT_EQ(picture(*Layout::by_document(Tokens{0, 8, 11, 12, 16}, 2)), "0011110000010110");
  EXPECT_EQ(picture(*Layout::balanced(Tokens{0, 16}, 2)), "0110011001100110");
}

TEST(Layout, EveryTokenIsOfOneRank) {
  for (const std::int64_t tokens : {0, 1, 5, 16, 37, 100})
    for (const std::int64_t ranks : {1, 2, 3, 7, 64})
      for (const std::string_view name : Layout::names())
        for (const std::int64_t block : {1, 3, 200}) {
          const auto layout = Layout::named(name, Tokens{0, tokens / 3, tokens}, ranks, {}, block);
          ASSERT_TRUE(layout) << layout.error().message();
          EXPECT_EQ(layout->ranks(), ranks);
          EXPECT_EQ(picture(*layout).find(' '), std::string::npos) << name << " " << tokens;
          std::int64_t sum = 0;
          for (std::int64_t rank = 0; rank < ranks; ++rank) sum += layout->size(rank);
          EXPECT_EQ(sum, tokens) << name;
        }
}

TEST(Layout, TokenIsAnEntryOfTokensOf) {
  const Layout layout = *Layout::by_document(Tokens{0, 9, 20, 50}, 3);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const Tokens all = layout.tokens_of(rank);
    for (std::size_t n = 0; n < all.size(); ++n)
      EXPECT_EQ(layout.token(rank, static_cast<std::int64_t>(n)), all[n]);
  }
}

TEST(Layout, ChunksDifferByOneTokenAtMost) {
  const Layout layout = *Layout::contiguous(17, 5);
  for (std::int64_t rank = 0; rank < 5; ++rank) {
    EXPECT_GE(layout.size(rank), 3);
    EXPECT_LE(layout.size(rank), 4);
  }
}

// vLLM's decode context parallelism: token p on rank ⌊p / interleave⌋ mod ranks, where it is the
// ⌊p / (interleave · ranks)⌋ · interleave + p mod interleave-th of the rank's cache.
TEST(Layout, AnInterleavedCacheKeepsATokenWhereAnEngineLooksForIt) {
  for (const std::int64_t interleave : {1, 4, 16})
    for (const std::int64_t ranks : {1, 2, 3, 8}) {
      const Layout layout = *Layout::striped(1000, ranks, interleave);
      for (std::int64_t p = 0; p < 1000; ++p) {
        const auto place = layout.place(p);
        ASSERT_TRUE(place);
        EXPECT_EQ(place->rank, p / interleave % ranks);
        EXPECT_EQ(place->index, p / (interleave * ranks) * interleave + p % interleave);
        EXPECT_EQ(layout.held_before(place->rank, p), place->index);
      }
    }
}

TEST(Layout, APlaceIsThatOfTokensOf) {
  for (const std::string_view name : Layout::names()) {
    const Layout layout = *Layout::named(name, Tokens{0, 9, 20, 50}, 3, {}, 2);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const Tokens all = layout.tokens_of(rank);
      for (std::size_t n = 0; n < all.size(); ++n)
        EXPECT_EQ(*layout.place(all[n]), (Layout::Place{rank, static_cast<std::int64_t>(n)}))
            << name;
      EXPECT_EQ(layout.held_before(rank, 50), layout.size(rank)) << name;
    }
  }
  EXPECT_FALSE(Layout::zigzag(8, 2)->place(8));
  EXPECT_FALSE(Layout::zigzag(8, 2)->place(-1));
}

// Megatron-LM #5243: rank 0 of 2 has ids 0, 3, 4, 7 of a text of 8, not 0, 3, 0, 3.
TEST(Layout, ZigzagKeepsThePositionsOfTheText) {
  const Layout layout = *Layout::zigzag(8, 2);
  EXPECT_EQ(*layout.positions(0, Positions::range(0, 8)), *Positions::ids(Tokens{0, 1, 6, 7}));
  EXPECT_EQ(*layout.positions(1, Positions::range(0, 8)), Positions::range(2, 4));
}

// Packed texts of 4 and 8 tokens: positions restart, and a token stays in its text.
TEST(Layout, PackedTextsKeepTheirPositionsAndTexts) {
  const Tokens bounds = {0, 4, 12};
  const Layout layout = *Layout::by_document(bounds, 2);
  const Positions own = *layout.positions(0, *Positions::packed(bounds));
  ASSERT_EQ(own.size(), 6);
  const Tokens expected = {0, 3, 0, 1, 6, 7}, texts = {0, 0, 1, 1, 1, 1};
  for (std::int64_t t = 0; t < 6; ++t) {
    EXPECT_EQ(own.at(t), expected[static_cast<std::size_t>(t)]);
    EXPECT_EQ(own.segment(t), texts[static_cast<std::size_t>(t)]);
  }
}

// Automodel #1482: tokens are dealt out, never the axes t, h, w.
TEST(Layout, EveryAxisIsDealtOutAlike) {
  const Positions whole = *Positions::ids(Tokens{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, 3);
  const Positions own = *Layout::zigzag(4, 2)->positions(0, whole);
  EXPECT_EQ(own.axes(), 3);
  EXPECT_EQ(own.at(1, 0, 2), 23);
  EXPECT_EQ(own.order(1), 3);
}

TEST(Layout, PositionsOfARankAreNoText) {
  const auto own = Layout::zigzag(8, 2)->positions(0, Positions::range(0, 4));
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().message(),
            "layout: positions must be of all 8 tokens, got 4; give those of the whole text, not a "
            "rank's");
}

TEST(Layout, ATokenOfTwoRanksOrOfNoneIsAnError) {
  const auto message = [](std::vector<std::vector<Layout::Range>> ranges) {
    const auto layout = Layout::ranges(ranges);
    return layout ? "" : layout.error().message();
  };
  EXPECT_EQ(message({{{0, 4}}, {{4, 8}}}), "");
  EXPECT_NE(message({{{0, 4}}, {{3, 8}}}).find("two have 3"), std::string::npos);
  EXPECT_NE(message({{{0, 4}}, {{5, 8}}}).find("nobody has 4"), std::string::npos);
  EXPECT_NE(message({{{4, 0}}}).find("got 4:0"), std::string::npos);
}

TEST(Layout, ANameNearAKnownOneIsSuggested) {
  const auto layout = Layout::named("zig-zag", Tokens{0, 8}, 2);
  ASSERT_FALSE(layout);
  EXPECT_NE(layout.error().message().find("did you mean 'zigzag'"), std::string::npos);
}

TEST(Layout, AMaskChooses) {
  const Tokens one = {0, 64}, packed = {0, 20, 64};
  EXPECT_EQ(*Layout::for_mask({}, one, 4), *Layout::zigzag(64, 4));
  EXPECT_EQ(*Layout::for_mask({.window = 16}, one, 4), *Layout::contiguous(64, 4));
  EXPECT_EQ(*Layout::for_mask({.window = 17}, one, 4), *Layout::zigzag(64, 4));
  EXPECT_EQ(*Layout::for_mask({.chunk = 8}, one, 4), *Layout::contiguous(64, 4));
  EXPECT_EQ(*Layout::for_mask({.causal = false}, one, 4), *Layout::contiguous(64, 4));
  EXPECT_EQ(*Layout::for_mask({}, packed, 4), *Layout::by_document(packed, 4));
}

// --- what each has to do -------------------------------------------------------------------------

TEST(Pairs, AreThoseThatTheMaskShows) {
  for (const Mask& mask :
       {Mask{}, Mask{.causal = false}, Mask{.window = 5},
        Mask{.causal = false, .window = 4, .prefix = 3}, Mask{.chunk = 6},
        Mask{.causal = false, .chunk = 7}, Mask{.window = 3, .chunk = 8, .prefix = 2}}) {
    for (const Positions& whole :
         {Positions::range(0, 23), *Positions::packed(Tokens{0, 3, 4, 15, 23})}) {
      const Layout layout = *Layout::zigzag(23, 3);
      const auto counted = pairs_per_rank(layout, mask, whole);
      ASSERT_TRUE(counted);
      std::int64_t sum = 0;
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        std::int64_t expected = 0;
        for (const std::int64_t i : layout.tokens_of(rank))
          for (std::int64_t j = 0; j < 23; ++j)
            expected += whole.segment(i) == whole.segment(j) && mask.sees(whole.at(i), whole.at(j));
        EXPECT_EQ((*counted)[static_cast<std::size_t>(rank)], expected);
        sum += expected;
      }
      EXPECT_GT(sum, 0);
    }
  }
}

TEST(Pairs, OfHiddenKeysAreNone) {
  const std::vector<std::uint8_t> keep = {1, 0, 1, 1};
  const auto pairs =
      pairs_per_rank(*Layout::contiguous(4, 2), {.keep = keep.data()}, Positions::range(0, 4));
  EXPECT_EQ(*pairs, (Tokens{2, 5}));
}

TEST(Balance, OfZigzagAndStripedIsNearOneAtAnyNumberOfRanks) {
  constexpr std::int64_t tokens = 8192;
  for (std::int64_t ranks = 2; ranks <= 64; ++ranks) {
    const auto of = [&](const Layout& layout) {
      return balance(*pairs_per_rank(layout, {}, Positions::range(0, tokens)));
    };
    EXPECT_GE(of(*Layout::zigzag(tokens, ranks)), 0.98) << ranks;
    EXPECT_GE(of(*Layout::striped(tokens, ranks)), 0.98) << ranks;
    const auto p = static_cast<double>(ranks);
    EXPECT_NEAR(of(*Layout::contiguous(tokens, ranks)), p / (2 * p - 1), 0.01) << ranks;
  }
}

TEST(Balance, OfPackedTextsIsThatOfTheirDocuments) {
  Tokens bounds = {0};
  for (std::int64_t n = 1; n <= 60; ++n) bounds.push_back(bounds.back() + (n * n * 37) % 400 + 1);
  const Positions whole = *Positions::packed(bounds);
  for (const std::int64_t ranks : {2, 4, 8, 16})
    EXPECT_GE(balance(*pairs_per_rank(*Layout::by_document(bounds, ranks), {}, whole)), 0.93)
        << ranks;
}

// Blocks by counted pairs: within 5 % of even under each kind of mask, with as many tokens a rank.
TEST(Balance, OfBlocksByTheirPairsIsNearOneUnderEveryMask) {
  Tokens packed = {0};
  for (std::int64_t n = 1; packed.back() < 16384; ++n)
    packed.push_back(std::min<std::int64_t>(packed.back() + (n * n * 37) % 2500 + 1, 16384));
  for (const Tokens& bounds : {Tokens{0, 16384}, packed})
    for (const Mask& mask : {Mask{}, Mask{.window = 1000}, Mask{.chunk = 1536},
                             Mask{.causal = false}, Mask{.window = 300, .prefix = 64}})
      for (const std::int64_t ranks : {2, 3, 4, 8, 16, 64}) {
        const Layout layout = *Layout::balanced(bounds, ranks, mask);
        EXPECT_GE(balance(*pairs_per_rank(layout, mask, *Positions::packed(bounds))), 1 / 1.05)
            << ranks << " " << mask.window << " " << mask.chunk << " " << bounds.size();
        if (ranks != 3) {  // whose blocks do not come out even
          EXPECT_EQ(layout.size(0), layout.size(ranks - 1));
        }
      }
  EXPECT_FALSE(Layout::balanced(Tokens{0, 8}, 2, {}, -1));
}

TEST(Balance, WithoutPairsIsOne) { EXPECT_EQ(balance(Tokens{0, 0}), 1); }

}  // namespace
}  // namespace posenc
