// Arithmetic that was meant to be a rotation, and dumps of several axes.
#include <cmath>
#include <functional>

#include "src/identify/shown_test.h"

namespace posenc {
namespace {

// Channel c turns by angle(c), with the partner of another layout.
Shown& turn_channels(Shown& shown, bool halves,
                     const std::function<double(std::int64_t token, std::int64_t channel)>& angle) {
  for (std::int64_t h = 0; h < shown.heads; ++h)
    for (std::int64_t t = 0; t < shown.tokens; ++t)
      for (std::int64_t c = 0; c < shown.dim; ++c) {
        const std::int64_t half = shown.dim / 2;
        const std::int64_t other = halves ? (c + half) % shown.dim : c ^ 1;
        const double x = shown.before.get(shown.before.offset(h, t, c)),
                     y = shown.before.get(shown.before.offset(h, t, other));
        shown.after.set(shown.after.offset(h, t, c),
                        x * std::cos(angle(t, c)) + (c < other ? -y : y) * std::sin(angle(t, c)));
      }
  return shown;
}

double wave_of(std::int64_t pair, double base = 1e4) {
  return std::pow(base, -static_cast<double>(pair) / 32);
}

std::string code_of(const Identified& found) {
  return found.findings.empty() ? "" : found.findings.front().code;
}

TEST(IdentifyKin, ATableForNeighboursAppliedToHalves) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Shown shown{.dtype = dtype};
    const Identified found = turn_channels(shown.fill(31), true, [](auto t, auto c) {
                               return static_cast<double>(t) * wave_of(c / 2);
                             }).identified();
    EXPECT_EQ(found.verdict, Rotated::not_a_rotation);
    EXPECT_EQ(code_of(found), "interleaved_table") << name(dtype);
    EXPECT_TRUE(found.findings.front().message.contains("base 10000")) << name(dtype);
  }
}

TEST(IdentifyKin, ATableForHalvesAppliedToNeighbours) {
  Shown shown{};
  const Identified found = turn_channels(shown.fill(32), false, [](auto t, auto c) {
                             return static_cast<double>(t) * wave_of(c % 32, 5e5);
                           }).identified();
  EXPECT_EQ(code_of(found), "halves_table");
}

// One head does not give the angles of its channels: usual bases are tried.
TEST(IdentifyKin, ATableForHalvesOfOneHead) {
  Shown shown{.heads = 1};
  const Identified found = turn_channels(shown.fill(39), false, [](auto t, auto c) {
                             return static_cast<double>(t) * wave_of(c % 32, 1e6);
                           }).identified();
  EXPECT_EQ(code_of(found), "halves_table");
  EXPECT_TRUE(found.findings.front().message.contains("base 1000000"));
}

TEST(IdentifyKin, ByTheHeadsIndex) {
  Shown shown{.heads = 8};
  const Identified found = shown.fill(33).rotate_heads().identified();
  EXPECT_EQ(code_of(found), "head_index");
}

TEST(IdentifyKin, RandomNumbersAreNoneOfThem) {
  Shown shown{};
  shown.fill(34);
  const std::vector<double> numbers = random(shown.heads * shown.tokens * shown.dim, 35);
  for (std::int64_t i = 0; i < std::ssize(numbers); ++i)
    shown.after.set(i, numbers[static_cast<std::size_t>(i)]);
  const Identified found = shown.identified();
  EXPECT_EQ(found.verdict, Rotated::not_a_rotation);
  EXPECT_EQ(code_of(found), "");
}

TEST(IdentifyKin, RotatedTwice) {
  Shown shown{};
  shown.fill(36).rotate_by({.rope_theta = 5e5});
  shown.rotate_again({.rope_theta = 5e5});
  const Identified found = shown.identified();
  EXPECT_EQ(found.verdict, Rotated::rotation);
  EXPECT_EQ(code_of(found), "rotated_twice");
  EXPECT_EQ(base_of(found), 5e5);
}

TEST(IdentifyKin, ProportionalPairsThatStandStill) {
  Shown shown{.tokens = 512, .dim = 256};
  const Identified found =
      shown.fill(37)
          .rotate_by({.rope_theta = 1e4, .scaling = Proportional{.partial_rotary_factor = 0.25}})
          .identified();
  EXPECT_EQ(found.rotary_dim, 256);
  EXPECT_EQ(scaling_of(found), "proportional");
  EXPECT_EQ(base_of(found), 1e4);
  EXPECT_EQ(std::get<Proportional>(found.frequencies->scaling).partial_rotary_factor, 0.25);
}

TEST(IdentifyKin, TrailingNeighbours) {
  const Identified found =
      Shown{.tokens = 512, .dim = 96}
          .fill(38)
          .rotate_by(
              {.pairing = Pairing::interleaved, .rotary_dim = 32, .slice = SliceEnd::trailing})
          .identified();
  EXPECT_EQ(found.first_dim, 64);
  EXPECT_EQ(found.rotary_dim, 32);
  EXPECT_EQ(base_of(found), 1e4);
}

// A grid of 12 rows of 16 behind 8 tokens of text: time, row, column.
std::vector<std::int64_t> grid_ids() {
  std::vector<std::int64_t> time, row, column;
  for (std::int64_t t = 0; t < 8; ++t) time.push_back(t), row.push_back(t), column.push_back(t);
  for (std::int64_t y = 0; y < 12; ++y)
    for (std::int64_t x = 0; x < 16; ++x)
      time.push_back(8), row.push_back(8 + y), column.push_back(8 + x);
  time.insert(time.end(), row.begin(), row.end());
  time.insert(time.end(), column.begin(), column.end());
  return time;
}

Identified of_grid(const Rope& rope) {
  Shown shown{.tokens = 200};
  shown.fill(39);
  const auto at = Positions::ids(grid_ids(), 3);
  const auto plan = compile(Scheme(rope), {.head_dim = shown.dim});
  EXPECT_TRUE(plan && rotate(*plan, shown.before, *at, Side::key, shown.after));
  const auto found = identify({.after = shown.after, .before = shown.before, .positions = *at});
  EXPECT_TRUE(found);
  return found.value_or(Identified{});
}

TEST(IdentifyAxes, SectionsOfMrope) {
  const Identified found = of_grid({.rope_theta = 1e6, .mrope_section = {8, 12, 12}});
  EXPECT_EQ(found.verdict, Rotated::rotation);
  EXPECT_EQ(found.axis_layout, AxisLayout::sections);
  EXPECT_EQ(found.pairs.front().axis, 0);
  EXPECT_EQ(found.pairs[9].axis, 1);
  EXPECT_EQ(base_of(found), 1e6);
}

TEST(IdentifyAxes, InterleavedMrope) {
  const Identified found =
      of_grid({.rope_theta = 1e6, .mrope_section = {12, 10, 10}, .mrope_interleaved = true});
  EXPECT_EQ(found.axis_layout, AxisLayout::interleaved);
  EXPECT_EQ(found.pairs[1].axis, 1);
  EXPECT_EQ(found.pairs[2].axis, 2);
  EXPECT_EQ(base_of(found), 1e6);
}

// Row and column by turns, or half of the pairs each, with frequencies of their own.
Identified of_picture(bool interleaved) {
  Shown shown{.tokens = 144};
  shown.fill(40);
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < 2; ++axis)
    for (std::int64_t i = 0; i < 144; ++i) ids.push_back(axis == 0 ? i / 12 : i % 12);
  turn_channels(shown, true, [&](std::int64_t t, std::int64_t c) {
    const std::int64_t r = c % 32, axis = interleaved ? r % 2 : r / 16;
    const std::int64_t own = interleaved ? r / 2 : r % 16;
    return static_cast<double>(ids[static_cast<std::size_t>(axis * 144 + t)]) *
           std::pow(1e4, -static_cast<double>(own) / 16);
  });
  const auto found = identify(
      {.after = shown.after, .before = shown.before, .positions = *Positions::ids(ids, 2)});
  EXPECT_TRUE(found);
  return found.value_or(Identified{});
}

// Row in place of row and column.
TEST(IdentifyAxes, OneAxisThatTurnsBothHalves) {
  Shown shown{.tokens = 144};
  shown.fill(40);
  turn_channels(shown, true, [](std::int64_t t, std::int64_t c) {
    return static_cast<double>(t / 12) * std::pow(1e4, -static_cast<double>(c % 16) / 16);
  });
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < 144; ++t) rows.push_back(t / 12);
  const auto found =
      identify({.after = shown.after, .before = shown.before, .positions = *Positions::ids(rows)});
  ASSERT_TRUE(found);
  EXPECT_EQ(code_of(*found), "axis_repeated");
  EXPECT_EQ(base_of(*found), 1e4);
}

TEST(IdentifyAxes, PicturesWithFrequenciesOfTheirOwn) {
  for (const bool interleaved : {false, true}) {
    const Identified found = of_picture(interleaved);
    EXPECT_EQ(found.axis_layout, interleaved ? AxisLayout::interleaved : AxisLayout::sections);
    EXPECT_TRUE(found.axes_restart) << interleaved;
    EXPECT_EQ(base_of(found), 1e4) << interleaved;
  }
}

TEST(IdentifyAxes, BlocksThatArePairedByThemselves) {
  Shown shown{.tokens = 144};
  shown.fill(42);
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < 2; ++axis)
    for (std::int64_t i = 0; i < 144; ++i) ids.push_back(axis == 0 ? i / 12 : i % 12);
  const Positions positions = *Positions::ids(ids, 2);
  const auto plan = compile(Scheme(Axial{.pairing = Pairing::halves, .blocks = true}),
                            {.heads = shown.heads, .kv_heads = shown.heads, .head_dim = shown.dim});
  ASSERT_TRUE(plan && rotate(*plan, shown.before, positions, Side::key, shown.after));
  const auto found =
      identify({.after = shown.after, .before = shown.before, .positions = positions});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->blocks, 2);
  EXPECT_EQ(found->pairing, Pairing::halves);
  EXPECT_EQ(base_of(*found), 100);
}

TEST(IdentifyAxes, TextShowsNoAxis) {
  Shown shown{.tokens = 64};
  shown.fill(41).rotate_by({});
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < 3; ++axis)
    for (std::int64_t t = 0; t < 64; ++t) ids.push_back(t);
  const auto found = identify(
      {.after = shown.after, .before = shown.before, .positions = *Positions::ids(ids, 3)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pairs.front().axis, -1);
  EXPECT_FALSE(found->cannot_tell.empty());
}

}  // namespace
}  // namespace posenc
