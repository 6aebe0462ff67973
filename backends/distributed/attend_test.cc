// Distributed attention against the whole on one process: every plan, layout, mask and packing, on
// as many ranks as mpirun starts.
#include <array>
#include <functional>

#include "backends/distributed/whole_text_test.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

// --- what is told apart --------------------------------------------------------------------------

struct NamedLayout {
  std::string name;
  Layout layout;
};

std::vector<NamedLayout> layouts_of(std::int64_t tokens, int ranks) {
  // Of any ranges: the first rank has the last token, and then what is left in pieces of 3, dealt
  // out backwards.
  std::vector<std::vector<Layout::Range>> pieces(static_cast<std::size_t>(ranks));
  pieces[0].push_back({tokens - 1, tokens});
  for (std::int64_t first = 0, n = 0; first < tokens - 1; first += 3, ++n)
    pieces[static_cast<std::size_t>(ranks - 1 - n % ranks)].push_back(
        {first, std::min(first + 3, tokens - 1)});
  return {{"contiguous", *Layout::contiguous(tokens, ranks)},
          {"zigzag", *Layout::zigzag(tokens, ranks)},
          {"striped", *Layout::striped(tokens, ranks)},
          {"striped by 4", *Layout::striped(tokens, ranks, 4)},
          {"pieces", *Layout::ranges(pieces)}};
}

struct NamedPlan {
  std::string name;
  Plan plan;
};

Plan compiled(const Scheme& scheme) {
  const auto plan = compile(scheme, {.heads = 8, .kv_heads = 8, .head_dim = 16, .length = 64});
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? *plan : Plan();
}

const std::vector<double>& learned_numbers() {
  static const std::vector<double> numbers = random(8 * 256 * 16, 9);
  return numbers;
}
Table learned(std::initializer_list<std::int64_t> shape) {
  return Table::borrow(Tensor::dense(const_cast<double*>(learned_numbers().data()), shape));
}

// Every part of a plan, alone and together.
std::vector<NamedPlan> plans() {
  std::vector<NamedPlan> all = {{"nope", {}},
                                {"rope", compiled(Rope{})},
                                {"xpos", compiled(XPos{})},
                                {"alibi", compiled(Alibi{})}};
  Plan t5 = compiled(T5{});
  auto& table = std::get<BiasTable>(*t5.bias);
  table.values = learned({8, table.row_count});
  all.push_back({"t5", t5});
  Plan shaw = compiled(Shaw{});
  shaw.relative->uses_key = shaw.relative->uses_value = shaw.relative->uses_query = true;
  shaw.relative->key = learned({shaw.relative->row_count, 16});
  shaw.relative->query = learned({8, shaw.relative->row_count, 16});
  shaw.relative->value = learned({shaw.relative->row_count, 16});
  all.push_back({"vectors by distance", shaw});
  Plan rotates_values = compiled(Rope{});
  rotates_values.rotate->values = Values::rotated_and_back;
  rotates_values.logits.softcap = 3;
  all.push_back({"rotated values, softcap", rotates_values});
  Plan temperature = compiled(Rope{});
  temperature.logits.beta = 0.5;
  temperature.logits.floor = 8;
  temperature.bias = compiled(Alibi{}).bias;
  all.push_back({"temperature, rope and alibi", temperature});
  Plan by_head;
  by_head.logits.temperature = Temperature::heads;
  by_head.logits.head_scale = {1, 0.5, 0.25, 1, 0.5, 0.25, 1, 0.5};
  by_head.logits.head_bias = {0, 1, 2, 3, 0, 1, 2, 3};
  by_head.logits.offset = 1;
  all.push_back({"temperature of heads", by_head});
  return all;
}

struct NamedMask {
  std::string name;
  Mask mask;
};

std::vector<NamedMask> masks() {
  return {{"causal", {}},
          {"all", {.causal = false}},
          {"window", {.window = 7}},
          {"window both ways", {.causal = false, .window = 5}},
          {"chunk", {.chunk = 9}},
          {"prefix", {.window = 6, .prefix = 4}}};
}

// --- what is asserted ----------------------------------------------------------------------------

struct Result {
  double error = 0;  // of the outputs, and of the sums' logarithms
  bool same_bits = true;
  std::string message;  // of an error
  std::int64_t blocks = 0;
};

Result compare(WholeText& text, const Layout& layout, Strategy strategy) {
  const auto whole = attend(text.inputs(), text.plan, text.out.view(), text.log_sums.of_rows());
  if (!whole) return {.error = 1, .message = whole.error().message()};
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, strategy);
  if (!distributed) return {.error = 1, .message = distributed.error().message()};
  const auto tokens = layout.tokens_of(test_rank());
  WholeText own = text.part(tokens);
  own.out = Numbers(text.dtype, text.batch, text.heads, std::ssize(tokens), text.value_dim);
  own.log_sums = Numbers(DType::f64, text.batch, text.heads, std::ssize(tokens), 1);
  const auto done =
      distributed->attend(own.inputs(), text.plan, own.out.view(), own.log_sums.of_rows());
  if (!done) return {.error = 1, .message = done.error().message()};
  Result result{.blocks = distributed->work().blocks};
  // Logarithms of sums may be −∞ on both sides.
  Numbers sums = own.log_sums, expected = text.log_sums;
  for (const Numbers* each : {&sums, &expected})
    for (std::int64_t n = 0; n < each->view().size(); ++n)
      if (std::isinf(each->view().get(n))) each->view().set(n, -99);
  result.error =
      largest_of_ranks(std::max(own.out.error(text.out, tokens), sums.error(expected, tokens)));
  result.same_bits = largest_of_ranks(own.out.same_bits(text.out, tokens) ? 0 : 1) == 0;
  return result;
}

constexpr Strategy strategies[] = {Strategy::gather, Strategy::ring, Strategy::heads};

// `tolerance` for a ring; the others have the same bits.
void expect_whole(WholeText text, const std::string& what, double tolerance = 2e-6) {
  text.filled();
  for (const auto& [name, layout] : layouts_of(text.tokens(), test_ranks())) {
    for (const Strategy strategy : strategies) {
      if (strategy == Strategy::heads && text.kv_heads < test_ranks()) continue;
      const Result result = compare(text, layout, strategy);
      const std::string where = what + ", " + name + ", " + std::string(posenc::name(strategy));
      EXPECT_LT(result.error, tolerance) << where << " " << result.message;
      if (strategy != Strategy::ring) {
        EXPECT_TRUE(result.same_bits) << where;
      }
    }
  }
}

TEST(DistributedAttend, EveryPlanIsThatOfTheWhole) {
  for (const NamedPlan& each : plans()) expect_whole({.plan = each.plan}, each.name);
}

TEST(DistributedAttend, EveryMaskIsThatOfTheWhole) {
  for (const NamedMask& each : masks())
    expect_whole({.plan = compiled(Rope{}), .mask = each.mask}, each.name);
}

TEST(DistributedAttend, PackedTextsSeeThemselvesAlone) {
  const auto packed = Positions::packed(std::vector<std::int64_t>{0, 3, 4, 20, 20, 41});
  for (const NamedMask& each : masks()) {
    WholeText text{.positions = *packed, .plan = compiled(Alibi{}), .mask = each.mask};
    text.plan.rotate = compiled(Rope{}).rotate;
    expect_whole(text, "packed, " + each.name);
  }
}

TEST(DistributedAttend, PaddingIsHiddenWhereverItLies) {
  WholeText text{.plan = compiled(Rope{})};
  for (int n = 0; n < 82; ++n) text.keep.push_back(n % 5 != 0 && (n < 41 || n > 60));
  expect_whole(text, "padding");
}

TEST(DistributedAttend, PicturesAmongTextSeeThemselves) {
  WholeText text{.plan = compiled(Rope{})};
  for (int n = 0; n < 82; ++n) text.blocks.push_back(n % 41 > 10 && n % 41 < 30 ? n % 41 / 15 : -1);
  expect_whole(text, "pictures");
}

TEST(DistributedAttend, SinkLogitsCountOnce) {
  WholeText text{.plan = compiled(Rope{}), .mask = {.window = 9}};
  for (int h = 0; h < 8; ++h) text.sinks.push_back(0.5F * static_cast<float>(h) - 1);
  expect_whole(text, "sinks");
}

TEST(DistributedAttend, PositionsOfSeveralAxesGoByTheOrderOfTokens) {
  std::vector<std::int64_t> ids(3 * 41);
  for (std::size_t t = 0; t < 41; ++t) {
    const bool picture = t >= 8 && t < 24;
    ids[t] = static_cast<std::int64_t>(picture ? 8 : t);
    ids[41 + t] = static_cast<std::int64_t>(picture ? 8 + (t - 8) / 4 : t);
    ids[82 + t] = static_cast<std::int64_t>(picture ? 8 + (t - 8) % 4 : t);
  }
  WholeText text{.positions = *Positions::ids(ids, 3),
                 .plan = compiled(Rope{.mrope_section = {2, 3, 3}})};
  expect_whole(text, "three axes");
}

TEST(DistributedAttend, RowsOfABatchMayStandAnywhere) {
  std::vector<std::int64_t> ids(2 * 41);
  for (std::size_t t = 0; t < 82; ++t) ids[t] = static_cast<std::int64_t>(t < 41 ? t : 2 * t);
  expect_whole({.positions = *Positions::ids(ids, 1, 2), .plan = compiled(Alibi{})}, "ragged");
}

TEST(DistributedAttend, SixteenBitsAreRoundedOnce) {
  for (const DType dtype : {DType::bf16, DType::f16})
    expect_whole({.dtype = dtype, .plan = compiled(Rope{})}, std::string(name(dtype)),
                 dtype == DType::bf16 ? 8e-3 : 1e-3);
}

TEST(DistributedAttend, DoublesStayDoubles) {
  expect_whole({.dtype = DType::f64, .plan = compiled(Alibi{})}, "float64", 1e-13);
}

TEST(DistributedAttend, ValuesMayBeWiderThanKeys) {
  expect_whole({.value_dim = 24, .plan = compiled(Rope{})}, "wide values");
}

TEST(DistributedAttend, MoreRanksThanTokensLeaveSomeWithout) {
  for (const std::int64_t tokens : {1, 2, 3, 5})
    expect_whole(
        {.kv_heads = 8, .positions = Positions::range(0, tokens), .plan = compiled(Rope{})},
        std::to_string(tokens) + " tokens");
}

// --- schemes that read the content ---------------------------------------------------------------

ContentScheme content_scheme(std::string_view name, const Numbers& gates) {
  if (name == "fire") {
    Fire fire;
    fire.hidden_weight = {0.5, -1, 2}, fire.hidden_bias = {0.1, 0.2, -0.3};
    fire.output_weight = random(8 * 3, 5), fire.output_bias = random(8, 6);
    fire.c = 0.7, fire.initial_length = 20, fire.length_multiplier = 1;
    return fire;
  }
  if (name == "cope") return Cope{.embeddings = learned({8, 12, 16})};
  if (name == "forgetting") return Forgetting{.log_gates = Table::borrow(gates.of_rows())};
  return StickBreaking{};
}

TEST(DistributedContent, IsThatOfTheWholeWhereKeysComeInOrder) {
  WholeText text{.plan = compiled(Rope{})};
  text.filled();
  Numbers gates(DType::f64, 2, 8, 41, 1, 7);
  for (std::int64_t n = 0; n < gates.view().size(); ++n)
    gates.view().set(n, -std::abs(gates.view().get(n)));
  for (const std::string_view name : {"fire", "cope", "forgetting", "stick_breaking"}) {
    const auto whole =
        attend(text.inputs(), content_scheme(name, gates), text.plan, text.out.view());
    ASSERT_TRUE(whole) << whole.error().message();
    for (const auto& [of, layout] : layouts_of(41, test_ranks())) {
      const auto tokens = layout.tokens_of(test_rank());
      WholeText own = text.part(tokens);
      const Numbers own_gates = gates.of(tokens);
      for (const Strategy strategy : strategies) {
        if (strategy == Strategy::heads && text.kv_heads < test_ranks()) continue;
        auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, strategy);
        ASSERT_TRUE(distributed);
        const auto done = distributed->attend(own.inputs(), content_scheme(name, own_gates),
                                              text.plan, own.out.view());
        if (strategy == Strategy::ring) {
          ASSERT_FALSE(done);
          EXPECT_NE(done.error().message().find("in the order of the text"), std::string::npos);
          continue;
        }
        ASSERT_TRUE(done) << name << ", " << of << ": " << done.error().message();
        // Sums of gates begin at the first query of a block, and round as these are cut.
        const bool rounds = name == "forgetting" && strategy == Strategy::gather;
        const double off = rounds ? own.out.error(text.out, tokens) / 2e-6
                           : own.out.same_bits(text.out, tokens) ? 0
                                                                 : 1;
        EXPECT_LT(largest_of_ranks(off), 1) << name << ", " << of << ", " << posenc::name(strategy);
      }
    }
  }
}

// One that no block has room for.
TEST(DistributedContent, NamesATableThatIsNotPassedOn) {
  WholeText text{.plan = compiled(Rope{})};
  text.filled();
  const Layout layout = *Layout::zigzag(41, test_ranks());
  WholeText own = text.part(layout.tokens_of(test_rank()));
  for (const auto& [name, table] : {std::pair{"wall", "wall.channel_gates"},
                                    {"path", "path.w"},
                                    {"grape_ap", "grape_ap.p_queries"}}) {
    auto distributed =
        DistributedText::make(MPI_COMM_WORLD, layout, text.positions, Strategy::gather);
    const auto done =
        distributed->attend(own.inputs(), *make_content_scheme(name), text.plan, own.out.view());
    ASSERT_FALSE(done) << name;
    EXPECT_NE(done.error().message().find(table), std::string::npos) << done.error().message();
  }
}

// --- what is not done ----------------------------------------------------------------------------

TEST(DistributedWork, WindowsVisitNeighboursAlone) {
  const int ranks = test_ranks();
  WholeText text{.positions = Positions::range(0, 16 * ranks),
                 .plan = compiled(Rope{}),
                 .mask = {.window = 9}};
  text.filled();
  const Layout layout = *Layout::contiguous(text.tokens(), ranks);
  const Result result = compare(text, layout, Strategy::ring);
  EXPECT_LT(result.error, 2e-6);
  EXPECT_LE(largest_of_ranks(static_cast<double>(result.blocks)), 2);  // its own and the one before
}

// --- errors --------------------------------------------------------------------------------------

TEST(DistributedErrors, ABadArgumentOfOneRankIsAnErrorOnAll) {
  const int ranks = test_ranks();
  WholeText text{.plan = compiled(Rope{})};
  text.filled();
  const Layout layout = *Layout::zigzag(41, ranks);
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  ASSERT_TRUE(distributed);
  WholeText own = text.part(layout.tokens_of(test_rank()));
  AttentionInputs in = own.inputs();
  if (test_rank() == ranks - 1) in.v = {};
  const auto done = distributed->attend(in, text.plan, own.out.view());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where, "rank " + std::to_string(ranks - 1) + ": attend");
  EXPECT_NE(done.error().message().find("v must be given"), std::string::npos)
      << done.error().message();
}

TEST(DistributedErrors, RanksThatDifferAreTold) {
  if (test_ranks() == 1) GTEST_SKIP() << "one rank differs from nobody";
  WholeText text{.plan = compiled(Rope{})};
  text.filled();
  const Layout layout = *Layout::contiguous(41, test_ranks());
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  ASSERT_TRUE(distributed);
  WholeText own = text.part(layout.tokens_of(test_rank()));
  if (test_rank() == 0) own.mask.window = 5;
  const auto done = distributed->attend(own.inputs(), text.plan, own.out.view());
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("ranks that differ"), std::string::npos);
}

TEST(DistributedErrors, ALayoutIsForTheRanksThatThereAre) {
  const auto made = DistributedText::make(MPI_COMM_WORLD, *Layout::contiguous(41, test_ranks() + 1),
                                          Positions::range(0, 41));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("ranks"), std::string::npos);
}

TEST(DistributedErrors, MoreRanksThanKeyHeadsAreNoHeads) {
  if (test_ranks() == 1) GTEST_SKIP() << "one rank takes one head";
  WholeText text{.heads = 2, .kv_heads = 1, .plan = {}};
  text.filled();
  const Result result = compare(text, *Layout::contiguous(41, test_ranks()), Strategy::heads);
  EXPECT_NE(result.message.find("use Strategy::ring"), std::string::npos) << result.message;
}

// As a later posenc writes a plan. One rank's file may be newer than the others'.
TEST(DistributedErrors, WhatNoRankKnowsIsRefusedByAll) {
  WholeText text{.plan = compiled(Rope{})};
  text.filled();
  const Layout layout = *Layout::contiguous(41, test_ranks());
  WholeText own = text.part(layout.tokens_of(test_rank()));
  for (const Strategy strategy : {Strategy::ring, Strategy::gather, Strategy::heads}) {
    auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, strategy);
    ASSERT_TRUE(distributed);
    for (const bool everywhere : {true, false}) {
      Plan plan = text.plan;
      if (everywhere || test_rank() == 0) plan.unknown = {"rotate.hologram"};
      const auto done = distributed->attend(own.inputs(), plan, own.out.view());
      ASSERT_FALSE(done);
      EXPECT_NE(done.error().message().find("rotate.hologram"), std::string::npos)
          << done.error().message();
    }
  }
}

}  // namespace
}  // namespace posenc
