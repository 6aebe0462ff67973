// What went wrong with positions in published context parallelism, each as a test: the slip would show, and posenc's way
// does not make it.
#include <algorithm>
#include <cmath>

#include "distributed/whole_text_test.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

Plan plan_for(const Scheme& scheme, std::int64_t length) {
  return *compile(scheme, {.heads = 8, .kv_heads = 8, .head_dim = 16, .length = length});
}

// How far a ring over this layout is from the whole, relative to the largest output; more than 1 where it failed.
double ring_error(WholeText& text, const Layout& layout) {
  if (!attend(text.inputs(), text.plan, text.out.view())) return 9;
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, Strategy::ring);
  if (!distributed) return 9;
  const auto tokens = layout.tokens_of(test_rank());
  WholeText own = text.part(tokens);
  if (!distributed->attend(own.inputs(), text.plan, own.out.view())) return 9;
  return largest_of_ranks(own.out.error(text.out, tokens));
}

// Megatron-LM #560 and #1612, sglang #28463, Megatron-DeepSpeed #392: local ids, or a table of tokens/ranks rows.
TEST(PublishedBugs, IdsOfARankAreThoseOfTheText) {
  const Layout layout = *Layout::zigzag(40, test_ranks());
  const auto text = DistributedText::make(MPI_COMM_WORLD, layout, Positions::range(0, 40));
  ASSERT_TRUE(text);
  const auto tokens = layout.tokens_of(test_rank());
  for (std::size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ(text->positions().at(static_cast<std::int64_t>(t)), tokens[t]);
  EXPECT_EQ(text->length(), 40);
}

// Megatron-LM #5243, #1473 and #4495, TransformerEngine #2077, prime-rl #2392: packed texts on several ranks that reuse
// the first text's positions, or its bounds.
TEST(PublishedBugs, EveryTextOfAPackCountsFromItsOwnStart) {
  const std::vector<std::int64_t> bounds = {0, 8, 16, 19, 41};
  WholeText text{.positions = *Positions::packed(bounds), .plan = plan_for(Rope{}, 64)};
  text.filled();
  EXPECT_LT(ring_error(text, *Layout::by_document(bounds, test_ranks())), 2e-6);
}

// TransformerEngine #1046, ring-flash-attention: biases by distance are refused, or go by a chunk's own distances.
TEST(PublishedBugs, DistancesAreThoseOfTheText) {
  WholeText text{.positions = Positions::range(0, 64), .plan = plan_for(Alibi{}, 64)};
  text.filled();
  EXPECT_LT(ring_error(text, *Layout::zigzag(64, test_ranks())), 2e-6);
}

// accelerate #4177, MaxText #1133: sliding and chunked layers are refused on several ranks.
TEST(PublishedBugs, WindowsAndChunksMayCrossRanks) {
  for (const Mask mask : {Mask{.window = 20}, Mask{.chunk = 24}}) {
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

// EasyContext #47, torch #159706 and #183968: tokens that do not come out even among ranks.
TEST(PublishedBugs, ALastPartMayBeShorter) {
  for (const std::int64_t tokens : {1, 7, 33, 63}) {
    WholeText text{.positions = Positions::range(0, tokens), .plan = plan_for(Rope{}, 64)};
    text.filled();
    EXPECT_LT(ring_error(text, *Layout::contiguous(tokens, test_ranks())), 2e-6) << tokens;
    EXPECT_LT(ring_error(text, *Layout::zigzag(tokens, test_ranks())), 2e-6) << tokens;
  }
}

// ring-flash-attention's README and #67, OpenRLHF #801: parts rounded to 16 bits before they are merged. Rounded once, a
// ring is within one rounding of the exact result at any number of ranks.
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

}  // namespace
}  // namespace posenc
