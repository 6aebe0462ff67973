// What went wrong with positions in published context parallelism, each as a test: the slip would
// show, and posenc's way does not make it.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/distributed/whole_text_test.h"
#include "posenc/distributed_cache.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

Plan plan_for(const Scheme& scheme, std::int64_t length) {
  return *compile(scheme, {.heads = 8, .kv_heads = 8, .head_dim = 16, .length = length});
}

// How far a ring over this layout is from the whole, relative to the largest output; more than 1
// where it failed.
double ring_error(WholeText& text, const Layout& layout) {
  if (!attend(text.inputs(), text.plan, text.out.view())) return 9;
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, Strategy::ring);
  if (!distributed) return 9;
  const auto tokens = layout.tokens_of(test_rank());
  WholeText own = text.part(tokens);
  if (!distributed->attend(own.inputs(), text.plan, own.out.view())) return 9;
  return largest_of_ranks(own.out.error(text.out, tokens));
}

// Megatron-LM #560 and #1612, sglang #28463, Megatron-DeepSpeed #392: local ids, or a table of
// tokens/ranks rows.
TEST(PublishedBugs, IdsOfARankAreThoseOfTheText) {
  const Layout layout = *Layout::zigzag(40, test_ranks());
  const auto text = DistributedText::make(MPI_COMM_WORLD, layout, Positions::range(0, 40));
  ASSERT_TRUE(text);
  const auto tokens = layout.tokens_of(test_rank());
  for (std::size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ(text->positions().at(static_cast<std::int64_t>(t)), tokens[t]);
  EXPECT_EQ(text->length(), 40);
}

// Megatron-LM #5243, #1473 and #4495, TransformerEngine #2077, prime-rl #2392: packed texts on
// several ranks that reuse the first text's positions, or its bounds.
TEST(PublishedBugs, EveryTextOfAPackCountsFromItsOwnStart) {
  const std::vector<std::int64_t> bounds = {0, 8, 16, 19, 41};
  WholeText text{.positions = *Positions::packed(bounds), .plan = plan_for(Rope{}, 64)};
  text.filled();
  EXPECT_LT(ring_error(text, *Layout::by_document(bounds, test_ranks())), 2e-6);
}

// Automodel #1482: ids [3][batch][tokens] of M-RoPE cut along the 3.
TEST(PublishedBugs, IdsOfThreeAxesAreDealtOutByToken) {
  std::vector<std::int64_t> ids(3 * 24);
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::size_t t = 0; t < 24; ++t)
      ids[axis * 24 + t] = static_cast<std::int64_t>(axis == 0 ? t : t % (axis + 3));
  WholeText text{.positions = *Positions::ids(ids, 3),
                 .plan = plan_for(Rope{.mrope_section = {2, 3, 3}}, 64)};
  const Layout layout = *Layout::zigzag(24, test_ranks());
  const auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  ASSERT_TRUE(distributed);
  const Positions& own = distributed->positions();
  EXPECT_EQ(own.axes(), 3);
  const auto tokens = layout.tokens_of(test_rank());
  for (std::int64_t axis = 0; axis < 3; ++axis)
    for (std::size_t t = 0; t < tokens.size(); ++t)
      EXPECT_EQ(own.at(static_cast<std::int64_t>(t), 0, axis),
                ids[static_cast<std::size_t>(axis * 24 + tokens[t])]);
  text.filled();
  EXPECT_LT(ring_error(text, layout), 2e-6);
}

// mistral.rs #2083: a chunk in the middle of a prefill takes the last ids of the text for its own.
TEST(PublishedBugs, AChunkOfAPrefillHasIdsOfItsOwnPlace) {
  std::vector<std::int64_t> ids(3 * 20);
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<std::int64_t>(100 + n);
  const Positions whole = *Positions::ids(ids, 3);
  const std::vector<std::int64_t> chunk = {5, 6, 7, 8, 9, 10};
  const Layout layout = *Layout::zigzag(6, test_ranks());
  const auto own = layout.positions(test_rank(), *whole.select(chunk));
  ASSERT_TRUE(own);
  const auto tokens = layout.tokens_of(test_rank());
  for (std::int64_t axis = 0; axis < 3; ++axis)
    for (std::size_t t = 0; t < tokens.size(); ++t)
      EXPECT_EQ(own->at(static_cast<std::int64_t>(t), 0, axis), 100 + axis * 20 + 5 + tokens[t]);
}

// TransformerEngine #1046, ring-flash-attention: biases by distance are refused, or depend on a
// chunk's own distances.
TEST(PublishedBugs, DistancesAreThoseOfTheText) {
  WholeText text{.positions = Positions::range(0, 64), .plan = plan_for(Alibi{}, 64)};
  text.filled();
  EXPECT_LT(ring_error(text, *Layout::zigzag(64, test_ranks())), 2e-6);
}

// accelerate #4177, MaxText #1133: sliding and chunked layers are refused on several ranks.
TEST(PublishedBugs, WindowsAndChunksMayCrossRanks) {
  for (const Mask& mask : {Mask{.window = 20}, Mask{.chunk = 24}}) {
    WholeText text{
        .positions = Positions::range(0, 64), .plan = plan_for(Rope{}, 64), .mask = mask};
    text.filled();
    EXPECT_LT(ring_error(text, *Layout::contiguous(64, test_ranks())), 2e-6);
  }
}

// llama.cpp #24875, uzu #604: scalings by length from the length of a part.
TEST(PublishedBugs, AScalingByLengthIsCompiledForTheWholeText) {
  const Scheme dynamic = Rope{.scaling = DynamicNtk{.factor = 2, .max_position_embeddings = 16}};
  WholeText text{.positions = Positions::range(0, 64), .plan = plan_for(dynamic, 64)};
  text.filled();
  const Layout layout = *Layout::contiguous(64, test_ranks());
  EXPECT_LT(ring_error(text, layout), 2e-6);
  if (test_ranks() == 1) return;
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  WholeText own = text.part(layout.tokens_of(test_rank()));
  const auto done =
      distributed->attend(own.inputs(), plan_for(dynamic, own.positions.size()), own.out.view());
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("whole text's length 64"), std::string::npos)
      << done.error().message();
}

// torch #189902: each document head and tail by itself, and then cut into equal parts, leaves ranks
// without work.
TEST(PublishedBugs, DocumentsOfDifferentLengthsAreBalanced) {
  const std::vector<std::int64_t> bounds = {0, 1000, 1400, 3000, 3100, 4096};
  const Positions whole = *Positions::packed(bounds);
  const auto share = [&](const Layout& layout) {
    return balance(*pairs_per_rank(layout, {}, whole));
  };
  EXPECT_GE(share(*Layout::by_document(bounds, test_ranks())), 0.98);
  if (test_ranks() > 2) {
    EXPECT_LT(share(*Layout::zigzag(4096, test_ranks())), 0.9);
  }
}

// EasyContext #47, torch #159706 and #183968: tokens that do not come out even among ranks.
TEST(PublishedBugs, ALastPartMayBeShorter) {
  for (const std::int64_t tokens : {1, 7, 33, 63}) {
    WholeText text{.positions = Positions::range(0, tokens), .plan = plan_for(Rope{}, 64)};
    text.filled();
    EXPECT_LT(ring_error(text, *Layout::contiguous(tokens, test_ranks())), 2e-6) << tokens;
    EXPECT_LT(ring_error(text, *Layout::zigzag(tokens, test_ranks())), 2e-6) << tokens;
  }
}

// ring-flash-attention's README and #67, OpenRLHF #801: parts rounded to 16 bits before they are
// merged. Rounded once, a ring is within one rounding of the exact result at any number of ranks.
TEST(PublishedBugs, PartsAreMergedBeforeTheyAreRounded) {
  WholeText text{
      .dtype = DType::bf16, .positions = Positions::range(0, 64), .plan = plan_for(Rope{}, 64)};
  text.filled();
  const Layout layout = *Layout::striped(64, test_ranks());
  WholeText exact = text;
  ASSERT_TRUE(attend_reference(text.inputs(), text.plan, exact.out.view()));
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  const auto tokens = layout.tokens_of(test_rank());
  WholeText own = text.part(tokens);
  ASSERT_TRUE(distributed->attend(own.inputs(), text.plan, own.out.view()));
  const Numbers expected = exact.out.of(tokens);
  double steps = 0;  // of bfloat16, which has 8 bits
  for (std::int64_t n = 0; n < expected.view().size(); ++n) {
    const double x = expected.view().get(n), step = std::ldexp(1.0, std::ilogb(x) - 7);
    if (std::abs(x) > 1e-3) steps = std::max(steps, std::abs(own.out.view().get(n) - x) / step);
  }
  EXPECT_LE(largest_of_ranks(steps), 1);
}

// vLLM #57260 and #51031: a token that one step puts on one rank is looked for on another by the
// next. Here tokens that stay are found by every step where append() put them, whatever their
// positions have become.
TEST(PublishedBugs, ATokenStaysWithTheRankThatKeepsIt) {
  constexpr std::int64_t block = 3, tokens = 24;
  auto cache = *DistributedKvCache::make(
      MPI_COMM_WORLD, {.kv_heads = 1, .head_dim = 16, .dtype = DType::f32, .page_size = 4}, block);
  const std::array<KvCache::Sequence, 1> sequence = {cache.add()};
  const Numbers k(DType::f32, 1, 1, tokens, 16, 1);
  ASSERT_TRUE(cache.append(sequence, k.view(), k.view(), {}));
  const auto owner = [](std::int64_t position) {
    return static_cast<int>(position / block % test_ranks());
  };
  const auto kept = [&](std::int64_t first, std::int64_t last) {
    std::int64_t own = 0;
    for (std::int64_t t = first; t < last; ++t) own += owner(t) == test_rank();
    return own;
  };
  EXPECT_EQ(*cache.own().tokens(0), kept(0, tokens));
  ASSERT_TRUE(cache.shift(0, 10, tokens, 1));  // of another owner, were they asked for by position
  EXPECT_EQ(*cache.own().tokens(0), kept(0, tokens));
  ASSERT_TRUE(cache.evict(0, 4, 11, KvCache::Gap::close));
  EXPECT_EQ(*cache.own().tokens(0), kept(0, 4) + kept(11, tokens));
  EXPECT_EQ(*cache.tokens(0), tokens - 7);
}

}  // namespace
}  // namespace posenc
