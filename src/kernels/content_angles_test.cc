// Angles by the forms of models: what they are of equal steps, what a logit depends on, decoding,
// gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "posenc/angles.h"
#include "posenc/apply.h"
#include "posenc/gradients.h"
#include "tests/random.h"

namespace posenc::content_angles_test {
namespace {

constexpr std::int64_t batch = 2, heads = 3, seq = 7, dim = 8;

// A form, and as many numbers as its tokens say.
struct Case {
  std::string name;
  AngleForm form;
  std::int64_t said_heads = heads, said_pairs = 0;  // 0: as many as the plan has
  std::int64_t gate_heads = heads, gate_pairs = 1;

  std::int64_t pairs() const { return form.plan.rotate->pairs(); }
  std::int64_t columns() const { return said_pairs == 0 ? pairs() : said_pairs; }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> forms() {
  AngleForm gated = selective_rope(dim).value();
  gated.gate = AngleGate::sigmoid;
  AngleForm of_heads = grape_m(dim).value();
  of_heads.plan.rotate->frequencies.heads = heads;
  of_heads.plan.rotate->frequencies.radians = random(heads * dim / 2, 9);
  return {{.name = "selective_rope", .form = selective_rope(dim).value()},
          {.name = "selective_rope_gated", .form = gated},
          {.name = "selective_rope_gated_by_pair", .form = gated, .gate_pairs = dim / 2},
          {.name = "carope", .form = carope(dim).value(), .said_pairs = 1},
          {.name = "mamba3", .form = mamba3(dim).value(), .said_heads = 1},
          {.name = "mamba3_whole", .form = mamba3(dim, 1).value(), .said_heads = 1},
          {.name = "mamba3_halves",
           .form = mamba3(dim, 0.5, Pairing::halves).value(),
           .said_heads = 1,
           .said_pairs = dim / 4},
          {.name = "grape_m", .form = grape_m(dim).value(), .said_heads = 1, .said_pairs = 1},
          {.name = "grape_m_of_heads", .form = of_heads, .said_pairs = 1},
          {.name = "repo", .form = repo(dim).value(), .said_pairs = 1}};
}

struct Numbers {
  std::vector<double> x;
  Tensor view;
  Numbers(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, unsigned seed = 0)
      : x(seed == 0 ? std::vector<double>(static_cast<std::size_t>(a * b * c * d))
                    : random(a * b * c * d, seed)),
        view(Tensor::dense(x.data(), {a, b, c, d})) {}
  // Tokens from `first` on.
  Tensor tokens(std::int64_t first, std::int64_t count) const {
    Tensor some = view;
    some.data = static_cast<double*>(some.data) + first * some.stride[2];
    some.shape[2] = count;
    return some;
  }
  Tensor rows() const {  // [batch, head, pair]
    Tensor three = view.swapped(2, 3);
    three.rank = 3;
    return three;
  }
};

class OfForms : public testing::TestWithParam<Case> {
 protected:
  const Case& c = GetParam();
  Numbers said{batch, c.said_heads, seq, c.columns(), 1};
  Numbers gate{batch, c.gate_heads, seq, c.gate_pairs, 2};
  bool gated = c.form.gate != AngleGate::none;

  SaidAngles in() const { return {.said = said.view, .gate = gated ? gate.view : Tensor{}}; }
  Numbers angles(const SaidAngles& of) const {
    Numbers out(batch, heads, of.said.shape[2], c.pairs());
    const auto done = content_angles(c.form, of, out.view);
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }
};

// The formula, once more, of a token's number at a time.
TEST_P(OfForms, AreTheSumsOfTheirSteps) {
  const Numbers got = angles(in());
  const auto softplus = [](double x) { return std::log(1 + std::exp(x)); };
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t r = 0; r < c.pairs(); ++r) {
        double sum = 0;
        for (std::int64_t t = 0; t < seq; ++t) {
          const auto of = [&](const Tensor& from) {
            return from.get(
                from.offset(b, from.shape[1] == 1 ? 0 : h, t, from.shape[3] == 1 ? 0 : r));
          };
          if (c.form.turning > 0 && r >= c.form.turning) {
            EXPECT_EQ(got.view.get(got.view.offset(b, h, t, r)), 0);
            continue;
          }
          const double x = of(said.view);
          double step = x;
          if (c.form.step == AngleStep::tanh) step = std::tanh(x);
          if (c.form.step == AngleStep::softplus) step = softplus(x);
          if (c.form.step == AngleStep::powers)
            step = std::pow(1 / (1 + softplus(x)), static_cast<double>(r));
          if (c.form.gate == AngleGate::sigmoid) step *= 1 / (1 + std::exp(-of(gate.view)));
          if (c.form.gate == AngleGate::softplus) step *= softplus(of(gate.view));
          if (!c.form.sums) sum = 0;
          if (c.form.own_step) sum += step;
          EXPECT_NEAR(got.view.get(got.view.offset(b, h, t, r)),
                      c.form.plan.rotate->at(h, 0, r) * sum, 1e-13);
          if (!c.form.own_step) sum += step;
        }
      }
}

TEST_P(OfForms, OfATokenAtATimeAreThoseOfAText) {
  const Numbers whole = angles(in());
  Numbers next(batch, heads, 1, c.pairs()), out(batch, heads, 1, c.pairs());
  for (std::int64_t t = 0; t < seq; ++t) {
    const SaidAngles one{.said = said.tokens(t, 1),
                         .gate = gated ? gate.tokens(t, 1) : Tensor{},
                         .start = t == 0 ? Tensor{} : next.rows()};
    ASSERT_TRUE(content_angles(c.form, one, out.view, next.rows()));
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t r = 0; r < c.pairs(); ++r)
          EXPECT_NEAR(out.view.get(out.view.offset(b, h, 0, r)),
                      whole.view.get(whole.view.offset(b, h, t, r)), 1e-13);
  }
}

// Other tokens before both change no logit of two.
TEST_P(OfForms, GiveALogitTheStepsBetweenAlone) {
  const Numbers q(batch, heads, seq, dim, 3), k(batch, heads, seq, dim, 4);
  const auto logit = [&] {
    const Numbers by = angles(in());
    Numbers turned_q(batch, heads, seq, dim), turned_k(batch, heads, seq, dim);
    EXPECT_TRUE(rotate_by(c.form.plan, q.view, by.view, Side::query, turned_q.view));
    EXPECT_TRUE(rotate_by(c.form.plan, k.view, by.view, Side::key, turned_k.view));
    double sum = 0;
    for (std::int64_t e = 0; e < dim; ++e)
      sum += turned_q.view.get(turned_q.view.offset(1, 2, 6, e)) *
             turned_k.view.get(turned_k.view.offset(1, 2, 4, e));
    return sum;
  };
  const double before = logit();
  // the last token that does not count: where nothing is summed, the one before the key
  const std::int64_t first = c.form.own_step && c.form.sums ? 4 : 3;
  for (std::int64_t t = 0; t <= first; ++t)
    for (std::int64_t h = 0; h < c.said_heads; ++h)
      for (std::int64_t r = 0; r < c.columns(); ++r) said.view.set(said.view.offset(1, h, t, r), 5);
  EXPECT_NEAR(logit(), before, 1e-12);
  for (std::int64_t h = 0; h < c.said_heads; ++h) {
    for (std::int64_t r = 0; r < c.columns(); ++r)
      said.view.set(said.view.offset(1, h, first + 1, r), -0.3);
  }
  EXPECT_GT(std::abs(logit() - before), 1e-4);
}

// Of a loss Σ weight · angle, by differences.
TEST_P(OfForms, HaveTheirGradients) {
  AngleForm form = c.form;
  const Numbers weight(batch, heads, seq, c.pairs(), 5);
  Numbers start(batch, heads, 1, c.pairs(), 6);
  SaidAngles given = in();
  given.start = start.rows();
  const auto loss = [&] {
    Numbers out(batch, heads, seq, c.pairs());
    EXPECT_TRUE(content_angles(form, given, out.view));
    double sum = 0;
    for (std::size_t e = 0; e < out.x.size(); ++e) sum += weight.x[e] * out.x[e];
    return sum;
  };
  Numbers by_said(batch, c.said_heads, seq, c.columns()),
      by_gate(batch, c.gate_heads, seq, c.gate_pairs), by_start(batch, heads, 1, c.pairs());
  std::vector<double>& frequency = form.plan.rotate->frequencies.radians;
  std::vector<double> by_frequency(frequency.size());
  const auto done = content_angles_gradient(
      form, given, weight.view,
      {.said = by_said.view,
       .gate = gated ? by_gate.view : Tensor{},
       .start = by_start.rows(),
       .frequency =
           Tensor::dense(by_frequency.data(), {form.plan.rotate->frequencies.heads, c.pairs()})});
  ASSERT_TRUE(done) << done.error().message();
  const auto expect = [&](std::vector<double>& numbers, const std::vector<double>& gradient,
                          const char* what) {
    for (std::size_t e = 0; e < numbers.size(); ++e) {
      const double at = numbers[e], step = 1e-5;
      numbers[e] = at + step;
      const double more = loss();
      numbers[e] = at - step;
      const double less = loss();
      numbers[e] = at;
      ASSERT_NEAR(gradient[e], (more - less) / (2 * step), 1e-7) << what << " " << e;
    }
  };
  expect(said.x, by_said.x, "said");
  if (gated) expect(gate.x, by_gate.x, "gate");
  expect(start.x, by_start.x, "start");
  expect(frequency, by_frequency, "frequency");
}

INSTANTIATE_TEST_SUITE_P(ContentAngles, OfForms, testing::ValuesIn(forms()),
                         [](const auto& each) { return each.param.name; });

// x rotated by the angles of one number at every token of every head.
Numbers turned(const AngleForm& form, double number, std::int64_t columns = 1) {
  Numbers said(1, 1, seq, columns), angles(1, heads, seq, form.plan.rotate->pairs()),
      x(1, heads, seq, dim, 7);
  for (double& each : said.x) each = number;
  EXPECT_TRUE(content_angles(form, {.said = said.view}, angles.view));
  EXPECT_TRUE(rotate_by(form.plan, x.view, angles.view, Side::key, x.view));
  return x;
}

TEST(ContentAngles, OfEqualStepsAreRopesATokenFurtherOn) {
  const AngleForm form = selective_rope(dim, 10000).value();
  const Numbers got = turned(form, 1), x(1, heads, seq, dim, 7);
  Numbers rope(1, heads, seq, dim);
  ASSERT_TRUE(rotate(form.plan, x.view, Positions::range(1, seq), Side::key, rope.view));
  for (std::size_t e = 0; e < x.x.size(); ++e) EXPECT_NEAR(got.x[e], rope.x[e], 1e-13);
}

// Without its own step a token stands where it stands, and the pairs turn backwards.
TEST(ContentAngles, WithoutTheOwnStepAreThePlansPositions) {
  const AngleForm form = grape_m(dim).value();
  const Numbers got = turned(form, std::log(std::expm1(1))), x(1, heads, seq, dim, 7);
  Numbers plan(1, heads, seq, dim), back(1, heads, seq, dim);
  ASSERT_TRUE(rotate(form.plan, x.view, Positions::range(0, seq), Side::key, plan.view));
  ASSERT_TRUE(rotate_inverse(selective_rope(dim, 10000)->plan, x.view, Positions::range(0, seq),
                             Side::key, back.view));
  for (std::size_t e = 0; e < x.x.size(); ++e) {
    EXPECT_NEAR(got.x[e], plan.x[e], 1e-13);
    EXPECT_NEAR(got.x[e], back.x[e], 1e-13);
  }
}

// 1/(1 + softplus(x)) is RoPE's first ratio, 10000^(−2/d).
TEST(ContentAngles, PowersOfOneRootAreRopes) {
  const double root = std::pow(10000, -2.0 / dim);
  const Numbers got = turned(carope(dim).value(), std::log(std::expm1(1 / root - 1))),
                x(1, heads, seq, dim, 7);
  Numbers rope(1, heads, seq, dim);
  ASSERT_TRUE(rotate(selective_rope(dim, 10000)->plan, x.view, Positions::range(1, seq), Side::key,
                     rope.view));
  for (std::size_t e = 0; e < x.x.size(); ++e) EXPECT_NEAR(got.x[e], rope.x[e], 1e-12);
}

TEST(ContentAngles, OfTokensThatSayWhereTheyStandAreRopes) {
  const AngleForm form = repo(dim, 10000).value();
  const std::vector<std::int64_t> at = {7, 0, -3, 1'000'003, 12, 12, 5};
  Numbers said(1, 1, seq, 1), angles(1, heads, seq, dim / 2), got(1, heads, seq, dim, 7);
  std::ranges::copy(at, said.x.begin());
  ASSERT_TRUE(content_angles(form, {.said = said.view}, angles.view));
  ASSERT_TRUE(rotate_by(form.plan, got.view, angles.view, Side::key, got.view));
  const Numbers x(1, heads, seq, dim, 7);
  Numbers rope(1, heads, seq, dim);
  const Positions positions = Positions::signed_ids(at).value();
  ASSERT_TRUE(rotate(form.plan, x.view, positions, Side::key, rope.view));
  for (std::size_t e = 0; e < x.x.size(); ++e) EXPECT_NEAR(got.x[e], rope.x[e], 1e-9);
}

// Sums of a million and more, of which a float would keep an eighth.
TEST(ContentAngles, OfLongTextsKeepTheirDifferences) {
  const std::int64_t tokens = 1 << 17;
  std::vector<float> said(static_cast<std::size_t>(tokens), 9.7F);
  std::vector<double> angles(said.size());
  AngleForm form = selective_rope(2).value();
  ASSERT_TRUE(content_angles(form, {.said = Tensor::dense(said.data(), {1, 1, tokens, 1})},
                             Tensor::dense(angles.data(), {1, 1, tokens, 1})));
  const double step = static_cast<double>(9.7F);
  EXPECT_NEAR(angles.back(), step * static_cast<double>(tokens), 1e-6);
  EXPECT_NEAR(angles.back() - angles[angles.size() - 2], step, 1e-9);
}

std::string refusal(const AngleForm& form, const SaidAngles& in, std::int64_t pairs = dim / 2) {
  Numbers out(1, heads, seq, pairs);
  const auto done = content_angles(form, in, out.view);
  return done ? "" : done.error().message();
}

TEST(ContentAngles, BehindASteepStepKeepTheirDifferences) {
  const AngleForm form = selective_rope(4).value();
  std::vector<double> said(2 * 40), angles(said.size());
  for (std::size_t n = 0; n < said.size(); ++n) said[n] = n < 2 ? -3.4e38 : 0.25;
  const Tensor in = Tensor::dense(said.data(), {1, 1, 40, 2});
  ASSERT_TRUE(content_angles(form, {.said = in}, Tensor::dense(angles.data(), {1, 1, 40, 2})));
  for (std::size_t n = 2; n < said.size(); ++n)
    EXPECT_NEAR(angles[n] - angles[n - 2], form.plan.rotate->frequencies.radians[n % 2] * 0.25,
                1e-12);
}

TEST(ContentAnglesErrors, AFormHasAStepAtLeast) {
  AngleForm form = repo(dim).value();
  form.own_step = false;
  const Numbers said(1, 1, seq, 1);
  EXPECT_NE(refusal(form, {.said = said.view}).find("own_step or sums"), std::string::npos);
}

TEST(ContentAnglesErrors, SayWhatDoesNotFit) {
  const AngleForm form = selective_rope(dim).value();
  const Numbers said(1, 1, seq, dim / 2), few(1, 2, seq, 1), start(1, 2, 1, dim / 2);
  EXPECT_EQ(refusal(form, {.said = said.view}), "");
  EXPECT_EQ(
      refusal(form, {.said = said.view}, 3),
      "content_angles: out must be [batch, head, seq, 4], got [1, 3, 7, 3]; an angle for each "
      "pair of the form's plan");
  EXPECT_NE(refusal(form, {.said = few.view}).find("said must be [1, 3 or 1, 7, 4 or 1], got"),
            std::string::npos);
  EXPECT_NE(
      refusal(carope(dim).value(), {.said = said.view}).find("said must be [1, 3 or 1, 7, 1]"),
      std::string::npos);
  EXPECT_NE(refusal(form, {.said = said.view, .gate = said.view}).find("the form has no gate"),
            std::string::npos);
  EXPECT_NE(refusal(mamba3(dim, 1).value(), {.said = said.view}).find("gate must be given"),
            std::string::npos);
  EXPECT_NE(refusal(form, {.said = said.view, .start = start.rows()}).find("start"),
            std::string::npos);
  EXPECT_NE(refusal({}, {.said = said.view}).find("must have a rotation"), std::string::npos);
}

TEST(ContentAnglesErrors, FormsAreOfEvenHeads) {
  EXPECT_EQ(selective_rope(7).error().message(),
            "selective_rope: head_dim must be even, got 7; pairs are of two channels");
  EXPECT_NE(grape_m(8, 1).error().message().find("theta must be above 1"), std::string::npos);
  EXPECT_NE(mamba3(8, 1.5).error().message().find("at most 1, got 1.5"), std::string::npos);
  EXPECT_NE(mamba3(2, 0.5).error().message().find("must leave a pair"), std::string::npos);
}

TEST(ContentAnglesErrors, AGradientIsOfWhatWasGiven) {
  const AngleForm form = selective_rope(dim).value();
  const Numbers said(1, 1, seq, dim / 2, 1), by(1, heads, seq, dim / 2, 2);
  const auto done =
      content_angles_gradient(form, {.said = said.view}, by.view, {.gate = said.view});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the gradient of gate was not given");
}

}  // namespace
}  // namespace posenc::content_angles_test
