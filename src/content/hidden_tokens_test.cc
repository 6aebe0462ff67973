// What the tokens that a mask hides say is of no effect in any scheme, whatever their memory holds,
// and a token that is hidden from some queries alone spoils only the others.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "src/content/content_test.h"

namespace posenc::hidden_tokens_tests {
namespace {

// Queries 100 to 129 of 160 tokens with a window of 40: they see keys 61 to 129.
constexpr std::int64_t tokens = 160, first_query = 100, queries = 30, window = 40,
                       first_seen = first_query - window + 1, end_seen = first_query + queries;

Call decoding(DType dtype) {
  Call call{
      .heads = 2, .kv_heads = 1, .queries = queries, .keys = tokens, .dim = 8, .dtype = dtype};
  call.query_positions = Positions::range(first_query, queries);
  call.key_positions = Positions::range(0, tokens);
  call.mask.window = window;
  call.fill();
  return call;
}

// A scheme, tensors of its own by token [batch][heads][token][...], and where their gradients go.
struct Subjects {
  std::string name;
  std::vector<Numbers> said;
  std::function<ContentScheme(const std::vector<Numbers>&)> scheme;
  std::vector<Tensor posenc::ContentGradients::*> gradients = {};
};

std::vector<Subjects> all(DType dtype) {
  const auto made = [&](std::int64_t heads, std::int64_t width, unsigned seed, bool gates) {
    std::vector<double> numbers = random(heads * tokens * width, seed, 0.5);
    for (double& x : numbers)
      if (gates) x = -std::abs(x);
    return Numbers(dtype, {1, heads, tokens, width}, numbers);
  };
  const auto scalar = [&](std::int64_t heads, unsigned seed, bool gates) {
    Numbers x = made(heads, 1, seed, gates);
    x.view.rank = 3;
    return x;
  };
  using Said = std::vector<Numbers>;
  std::vector<Subjects> subjects;
  subjects.push_back({"forgetting",
                      {},
                      [](const Said& of) { return Forgetting{{of[0].view}}; },
                      {&posenc::ContentGradients::log_gates}});
  subjects.back().said.push_back(scalar(2, 51, true));
  subjects.push_back(
      {"wall",
       {},
       [](const Said& of) {
         return Wall{.channel_gates = {of[0].view}, .log_gates = {of[1].view}};
       },
       {&posenc::ContentGradients::channel_gates, &posenc::ContentGradients::log_gates}});
  subjects.back().said.push_back(made(2, 8, 52, true));
  subjects.back().said.push_back(scalar(2, 53, true));
  subjects.push_back({"path",
                      {},
                      [](const Said& of) {
                        return Path{
                            .w = {of[0].view}, .beta = {of[1].view}, .log_gates = {of[2].view}};
                      },
                      {&posenc::ContentGradients::w, &posenc::ContentGradients::beta,
                       &posenc::ContentGradients::log_gates}});
  subjects.back().said.push_back(made(1, 8, 54, false));
  subjects.back().said.push_back(scalar(1, 55, false));
  subjects.back().said.push_back(scalar(2, 56, true));
  // Of the queries' p nothing is hidden.
  const auto p_queries = std::make_shared<Numbers>(
      dtype, std::initializer_list<std::int64_t>{1, 2, queries, 3}, random(2 * queries * 3, 58));
  subjects.push_back(
      {"grape_ap",
       {},
       [p_queries](const Said& of) { return GrapeAp{{p_queries->view}, {of[0].view}, {0.5}}; },
       {&posenc::ContentGradients::p_keys}});
  subjects.back().said.push_back(made(2, 3, 59, false));
  return subjects;
}

struct Found {
  std::vector<double> numbers;  // of the output and the gradients by what was said
};

Found run(const Subjects& subject, Call& call) {
  const ContentScheme scheme = subject.scheme(subject.said);
  const auto done = attend(call.inputs(), scheme, {}, call.out.view);
  EXPECT_TRUE(done) << done.error().message();
  Found found;
  for (std::int64_t e = 0; e < call.out.view.size(); ++e)
    found.numbers.push_back(call.out.view.get(e));
  const Numbers g(call.dtype, {1, call.heads, queries, call.dim},
                  random(call.heads * queries * call.dim, 57));
  std::vector<Numbers> to = subject.said;
  posenc::ContentGradients wanted;
  for (std::size_t n = 0; n < to.size(); ++n) {
    to[n].view.data = to[n].memory.data();
    wanted.*subject.gradients[n] = to[n].view;
  }
  const auto back = attend_backward(call.inputs(), scheme, {}, g.view, wanted);
  EXPECT_TRUE(back) << back.error().message();
  for (const Numbers& x : to)
    for (std::int64_t e = 0; e < x.view.size(); ++e) found.numbers.push_back(x.view.get(e));
  return found;
}

void spoil_token(const Tensor& x, std::int64_t token) {
  const std::int64_t width = x.rank == 3 ? 1 : x.shape[3];
  for (std::int64_t h = 0; h < x.shape[1]; ++h)
    for (std::int64_t c = 0; c < width; ++c)
      spoil(x, x.offset(0, h, token, x.rank == 3 ? 0 : c), token + c);
}

// Sums of gates may start at another token, and round otherwise.
void expect_same(const Found& got, const Found& clean, DType dtype) {
  ASSERT_EQ(got.numbers.size(), clean.numbers.size());
  for (std::size_t n = 0; n < clean.numbers.size(); ++n)
    ASSERT_NEAR(got.numbers[n], clean.numbers[n], tolerance(dtype)) << "number " << n;
}

TEST(HiddenTokens, SayNothing) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (Subjects& subject : all(dtype)) {
      SCOPED_TRACE(subject.name + " " + std::string(name(dtype)));
      Call call = decoding(dtype);
      const Found clean = run(subject, call);
      for (const Numbers& x : subject.said)
        for (std::int64_t j = 0; j < tokens; ++j)
          if (j < first_seen || j >= end_seen) spoil_token(x.view, j);
      expect_same(run(subject, call), clean, dtype);
    }
  }
}

// Queries that see their own key alone.
TEST(HiddenTokens, SayNothingToQueriesThatSeeThemselves) {
  for (Subjects& subject : all(DType::f32)) {
    SCOPED_TRACE(subject.name);
    Call call = decoding(DType::f32);
    call.mask.window = 1;
    const Found clean = run(subject, call);
    for (const Numbers& x : subject.said)
      for (std::int64_t j = 0; j < tokens; ++j)
        if (j < first_query || j >= end_seen) spoil_token(x.view, j);
    expect_same(run(subject, call), clean, DType::f32);
  }
}

// Query 119 and those behind it see no key before 80, so that token 80 stands between no key and
// them.
TEST(HiddenTokens, FromSomeQueriesAloneSpoilTheOthers) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Subjects path = std::move(all(dtype)[2]);
    Call call = decoding(dtype);
    run(path, call);
    const std::vector<double> clean = call.out.memory;
    constexpr std::int64_t spoiled = 80, unharmed = spoiled + window - 1 - first_query;
    spoil_token(path.said[0].view, spoiled);
    run(path, call);
    Call other = decoding(dtype);
    other.out.memory = clean;
    other.out.view.data = other.out.memory.data();
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t h = 0; h < call.heads; ++h) {
        if (i < unharmed) {
          EXPECT_TRUE(std::isnan(call.out.at(0, h, i, 0))) << "query " << i;
        } else {
          EXPECT_EQ(call.out.at(0, h, i, 0), other.out.at(0, h, i, 0)) << "query " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace posenc::hidden_tokens_tests
