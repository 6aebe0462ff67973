// Where tokens of a cache really stand, when the model's rotation is known.
#include <cmath>
#include <numeric>

#include "posenc/rekey.h"
#include "src/identify/shown_test.h"

namespace posenc {
namespace {

Model small_llama() {
  const auto model = read_config(R"({"model_type": "llama", "hidden_size": 128, "head_dim": 64,
      "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 4096,
      "rope_theta": 1000000.0})");
  EXPECT_TRUE(model) << model.error().message();
  return *model;
}

// Keys of one token, rotated by the model for positions that only the cache knows.
std::string slip(std::vector<std::int64_t> at) {
  const Model model = small_llama();
  const auto plan = compile(model.groups.front());
  EXPECT_TRUE(plan);
  const std::int64_t tokens = std::ssize(at), dim = 64, heads = 2;
  std::vector<float> keys(static_cast<std::size_t>(heads * tokens * dim));
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t c = 0; c < dim; ++c)
        keys[static_cast<std::size_t>((h * tokens + t) * dim + c)] =
            static_cast<float>(std::sin(1.0 + static_cast<double>(7 * h + 3 * c)));
  const Tensor rows = Tensor::dense(keys.data(), {heads, tokens, dim});
  const auto stand = Positions::signed_ids(at);
  EXPECT_TRUE(stand);
  EXPECT_TRUE(rotate(*plan, rows, *stand, Side::key, rows));
  const auto solved = solve_positions(
      {.after = rows, .positions = Positions::range(at.front(), tokens), .repeated = true}, model);
  EXPECT_TRUE(solved) << solved.error().message();
  if (!solved || !*solved) return "";
  EXPECT_EQ((*solved)->at, at);
  return (*solved)->slip.code;
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<std::int64_t> from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

TEST(SolvePositions, TokensThatStandWhereTheyAreSaidToAreSilent) {
  EXPECT_EQ(slip(from(0, 40)), "");
}

TEST(SolvePositions, TwoCachesPutTogether) {
  EXPECT_EQ(slip(joined(from(0, 24), from(0, 16))), "positions_restart");
}

TEST(SolvePositions, ARingBuffer) {
  EXPECT_EQ(slip(joined(from(40, 8), from(8, 32))), "positions_wrapped");
}

TEST(SolvePositions, ARingBufferBehindTokensThatAreKept) {
  EXPECT_EQ(slip(joined(joined(from(0, 4), from(64, 36)), from(40, 24))), "positions_wrapped");
}

TEST(SolvePositions, NewTokensCountedByWhatAnEvictionKept) {
  EXPECT_EQ(slip(joined(joined(from(0, 4), from(180, 60)), from(64, 32))), "positions_jump");
}

TEST(SolvePositions, SlotsOfZerosAreNoTokens) {
  Shown shown{.heads = 2, .tokens = 40, .dim = 64};
  shown.fill(3, true).rotate_by({.rope_theta = 1e6});
  for (std::int64_t h = 0; h < shown.heads; ++h)
    for (std::int64_t t = 0; t < 5; ++t)
      for (std::int64_t c = 0; c < shown.dim; ++c) shown.after.set(shown.after.offset(h, t, c), 0);
  const RotationDump dump{
      .after = shown.after, .positions = Positions::range(0, 40), .repeated = true};
  const auto solved = solve_positions(dump, small_llama());
  ASSERT_TRUE(solved);
  EXPECT_FALSE(*solved);  // the others stand where they are said to
  const auto found = identify(dump);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->verdict, Rotated::rotation);
  EXPECT_TRUE(found->cannot_tell.front().starts_with("tokens 0–4 are zeros"));
}

// A cache that holds them by the mask, and the slots that are counted instead.
TEST(SolvePositions, ZerosInFrontLeaveTheOthersBehindTheirSlots) {
  Shown shown{.heads = 2, .tokens = 25, .dim = 64};
  shown.fill(3).rotate_by({.rope_theta = 1e6});
  const auto padded = [](const Tensor& from, std::vector<float>& memory) {
    memory.assign(std::size_t{2} * 30 * 64, 0);
    const Tensor to = Tensor::dense(memory.data(), {2, 30, 64});
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t t = 0; t < 25; ++t)
        for (std::int64_t c = 0; c < 64; ++c)
          to.set(to.offset(h, t + 5, c), from.get(from.offset(h, t, c)));
    return to;
  };
  std::vector<float> keys, rows;
  const Tensor before = padded(shown.before, keys), after = padded(shown.after, rows);
  const RotationDump dump{.after = after, .before = before, .positions = Positions::range(0, 30)};
  const auto solved = solve_positions(dump, small_llama());
  ASSERT_TRUE(solved && *solved);
  const Finding& slip = (*solved)->slip;
  EXPECT_EQ(slip.code, "padding");
  EXPECT_EQ(slip.severity, Severity::note);
  EXPECT_EQ(slip.found, "slots 5–29 hold positions 0–24");
  EXPECT_TRUE(slip.message.contains("belongs at 25, not at 30")) << slip.message;
  EXPECT_EQ((*solved)->at.size(), 30u);
  const auto found = identify(dump);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->cannot_tell.front().starts_with("tokens 0–4 are zeros"));
}

TEST(SolvePositions, ARingOfAWindowIsNoFault) {
  Model model = small_llama();
  for (LayerGroup& group : model.groups) group.window = 40;
  Shown shown{.heads = 2, .tokens = 40, .dim = 64};
  std::vector<std::int64_t> at = joined(from(40, 16), from(16, 24));
  shown.fill(3, true);
  const auto plan = compile(model.groups.front());
  const auto stand = Positions::signed_ids(at);
  ASSERT_TRUE(plan && stand);
  ASSERT_TRUE(rotate(*plan, shown.before, *stand, Side::key, shown.after));
  const auto solved = solve_positions(
      {.after = shown.after, .positions = Positions::range(0, 40), .repeated = true}, model);
  ASSERT_TRUE(solved && *solved);
  EXPECT_EQ((*solved)->slip.code, "positions_wrapped");
  EXPECT_EQ((*solved)->slip.severity, Severity::note);
  // Of repeated tokens distances alone are seen: the oldest counts as the first.
  EXPECT_EQ((*solved)->slip.found, "tokens 0–15 at 24–39, tokens 16–39 at 0–23");
}

TEST(SolvePositions, PaddingBeforeATextThatStandsRightlyIsNoFault) {
  Shown shown{.heads = 2, .tokens = 25, .dim = 64};
  shown.fill(4, true);
  const auto plan = compile(small_llama().groups.front());
  const std::vector<std::int64_t> at = joined({1, 1, 1, 1, 1}, from(0, 20));
  const auto stand = Positions::signed_ids(at);
  ASSERT_TRUE(plan && stand);
  ASSERT_TRUE(rotate(*plan, shown.before, *stand, Side::key, shown.after));
  const auto solved = solve_positions(
      {.after = shown.after, .before = shown.before, .positions = Positions::range(0, 25)},
      small_llama());
  ASSERT_TRUE(solved && *solved);
  EXPECT_EQ((*solved)->slip.severity, Severity::note);
  EXPECT_TRUE((*solved)->slip.message.contains("stands at 0 to 19"));
}

TEST(SolvePositions, PaddingOnTheLeft) {
  EXPECT_EQ(slip(joined({1, 1, 1, 1, 1}, from(0, 20))), "padding");
}

TEST(SolvePositions, APositionThatStandsStillWhileDecoding) {
  EXPECT_EQ(slip(joined(from(0, 20), std::vector<std::int64_t>(8, 19))), "positions_constant");
}

TEST(SolvePositions, TokensThatWereDropped) {
  EXPECT_EQ(slip(joined(from(0, 12), from(300, 12))), "positions_gap");
}

TEST(SolvePositions, ChunksWhoseStartWasAddedTwice) {
  EXPECT_EQ(slip(joined(joined(from(0, 16), from(32, 16)), from(64, 16))), "chunk_starts");
}

TEST(SolvePositions, AnotherRotationIsNotSolvedFor) {
  Shown shown{.heads = 2, .tokens = 40, .dim = 64};
  shown.fill(3).rotate_by({.rope_theta = 500});
  const auto solved = solve_positions(
      {.after = shown.after, .before = shown.before, .positions = Positions::range(0, 40)},
      small_llama());
  ASSERT_TRUE(solved);
  EXPECT_FALSE(*solved);
}

// --- caches that were moved -----------------------------------------------------------------------

// Keys of one token that the model has rotated for `stood`, rekeyed to `stand`; what identify says
// of them where positions are said to count from the first, and the token where they jump.
struct Confirmed {
  std::string code = {};  // "": positions are those
  std::int64_t token = -1;
};
Confirmed moved(const std::vector<std::int64_t>& stood, const std::vector<std::int64_t>& stand,
                const std::string& model_name = "", DType dtype = DType::f32) {
  const Model model =
      model_name.empty() ? small_llama() : *read_config(*bundled_config(model_name));
  const auto plan = compile(model.groups.front());
  EXPECT_TRUE(plan);
  const std::int64_t tokens = std::ssize(stood), heads = 2,
                     dim = model.groups.front().geometry.head_dim;
  std::vector<float> memory(static_cast<std::size_t>(heads * tokens * dim));
  const Tensor keys = Tensor::dense(memory.data(), dtype, {heads, tokens, dim});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t c = 0; c < dim; ++c)
        keys.set(keys.offset(h, t, c), std::sin(1.0 + static_cast<double>(7 * h + 3 * c)));
  const auto from = Positions::signed_ids(stood), to = Positions::signed_ids(stand);
  EXPECT_TRUE(rotate(*plan, keys, *from, Side::key, keys));
  const auto done = rekey({&*plan, *from}, {&*plan, *to}, keys, keys);
  EXPECT_TRUE(done) << done.error().message();
  const auto solved = solve_positions(
      {.after = keys, .positions = Positions::range(stand.front(), tokens), .repeated = true},
      model);
  EXPECT_TRUE(solved) << solved.error().message();
  if (!solved || !*solved) return {};
  EXPECT_EQ((*solved)->at, stand);
  return {(*solved)->slip.code, (*solved)->slip.position.value_or(-1)};
}

const std::vector<std::string> moved_models = {"",         "llama-3.1-8b", "qwen2.5-7b-yarn4",
                                               "gpt-j-6b", "glm-4-9b",     "phi-3.5-mini"};

TEST(SolvePositions, ConfirmsMergedCaches) {
  for (const std::string& model : moved_models) {
    const auto two = joined(from(0, 24), from(0, 16));
    const Confirmed wrong = moved(two, two, model), right = moved(two, from(0, 40), model);
    EXPECT_EQ(wrong.code, "positions_restart") << model;
    EXPECT_EQ(wrong.token, 24) << model;
    EXPECT_EQ(right.code, "") << model;
  }
}

TEST(SolvePositions, ConfirmsShiftedAndCroppedCaches) {
  for (const std::string& model : moved_models) {
    EXPECT_EQ(moved(from(500, 40), from(0, 40), model).code, "") << model;
    EXPECT_EQ(moved(from(0, 40), from(700, 40), model).code, "") << model;
    // With sinks: what stays behind a gap is told, and not once it is closed.
    const auto with_gap = joined(from(0, 4), from(100, 36));
    const Confirmed gap = moved(from(0, 40), with_gap, model);
    EXPECT_EQ(gap.code, "positions_gap") << model;
    EXPECT_EQ(gap.token, 4) << model;
    EXPECT_EQ(moved(with_gap, from(0, 40), model).code, "") << model;
  }
}

TEST(SolvePositions, ConfirmsKeysOf16Bits) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto two = joined(from(0, 24), from(0, 16));
    EXPECT_EQ(moved(two, two, "llama-3.1-8b", dtype).token, 24);
    EXPECT_EQ(moved(two, from(0, 40), "llama-3.1-8b", dtype).code, "");
  }
}

}  // namespace
}  // namespace posenc
