// Text as llama-eval-callback prints it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "posenc/identify.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr int dim = 8, heads = 2, tokens = 40;

// What it prints of [token][head][channel], whose numbers `at` gives.
template <class At>
std::string block(const std::string& operation, At at) {
  std::string text = "common_debug_cb_eval:   Kcur-3 = (f32)   " + operation +
                     "(Kcur-3{8, 2, 40, 1}, inp_pos{40, 1, 1, 1}}) = {8, 2, 40, 1}\n    [\n";
  for (int t = 0; t < tokens; ++t) {
    if (t == 3) {
      text += "        ..., \n";
      t = tokens - 3;
    }
    text += "        [\n";
    for (int h = 0; h < heads; ++h) {
      text += "            [";
      for (int c = 0; c < dim; ++c) {
        if (c == 3) {
          text += "   ..., ";
          c = dim - 3;
        }
        char number[32];
        std::snprintf(number, sizeof number, "%12.4f%s", at(t, h, c), c + 1 < dim ? ", " : "");
        text += number;
      }
      text += "  ],\n";
    }
    text += "        ],\n";
  }
  return text + "    ]\n    sum = 1.000000\n";
}

// Rotated in neighbours, or in halves.
std::string printed_rope(bool neighbours) {
  const std::vector<double> numbers = random(tokens * heads * dim);
  const auto x = [&](int t, int h, int c) {
    return numbers[static_cast<std::size_t>((t * heads + h) * dim + c)];
  };
  const auto rotated = [&](int t, int h, int c) {
    const int half = dim / 2;
    const bool first = neighbours ? c % 2 == 0 : c < half;
    const int other = neighbours ? c ^ 1 : (c + half) % dim, pair = neighbours ? c / 2 : c % half;
    const double angle = t * std::pow(1e4, -2.0 * pair / dim);
    return x(t, h, c) * std::cos(angle) + (first ? -1 : 1) * x(t, h, other) * std::sin(angle);
  };
  return block("RESHAPE", x) + block("ROPE", rotated);
}

Identified of_text(const std::string& text) {
  const auto printed = read_eval_callback(text, "x");
  EXPECT_TRUE(printed) << printed.error().message();
  return *identify(printed->front());
}

TEST(PrintedRotation, HasWhatWasPrinted) {
  const auto printed = read_eval_callback(printed_rope(true), "x");
  ASSERT_TRUE(printed);
  ASSERT_EQ(printed->size(), 1U);
  EXPECT_EQ(printed->front().layer, 3);
  EXPECT_EQ(printed->front().channels, (std::vector<std::int64_t>{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(printed->front().tokens.back(), tokens - 1);
}

TEST(PrintedRotation, NeighboursAreTold) {
  const Identified found = of_text(printed_rope(true));
  EXPECT_EQ(found.verdict, Rotated::rotation);
  EXPECT_EQ(found.pairing, Pairing::interleaved);
  EXPECT_NEAR(found.pairs.front().frequency, 1, 1e-3);
}

TEST(PrintedRotation, HalvesAreNotShown) {
  const Identified found = of_text(printed_rope(false));
  EXPECT_EQ(found.verdict, Rotated::cannot_tell);
  ASSERT_FALSE(found.cannot_tell.empty());
  EXPECT_TRUE(found.cannot_tell.front().contains("not interleaved"));
}

TEST(PrintedRotation, TextWithoutRopeIsRefused) {
  EXPECT_FALSE(read_eval_callback("", "x"));
  EXPECT_FALSE(read_eval_callback(block("ADD", [](int, int, int) { return 1.0; }), "x"));
}

TEST(PrintedRotation, NumbersMustBeFinite) {
  const auto nan = [](int, int, int) { return NAN; };
  EXPECT_FALSE(read_eval_callback(block("RESHAPE", nan) + block("ROPE", nan), "x"));
}

}  // namespace
}  // namespace posenc
