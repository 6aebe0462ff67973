#include "evidence/lab/model/heads.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "posenc/attention.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

// [head][pair]: the mean length of a pair of channels over the tokens but the first.
std::vector<std::vector<double>> pair_lengths(const Tensor& x, const Rotate& rotate) {
  const std::int64_t tokens = x.shape[2], pairs = rotate.pairs();
  std::vector<std::vector<double>> lengths;
  for (std::int64_t head = 0; head < x.shape[1]; ++head) {
    std::vector<double>& of_head = lengths.emplace_back(static_cast<std::size_t>(pairs));
    for (std::int64_t t = 1; t < tokens; ++t) {
      for (std::int64_t r = 0; r < pairs; ++r) {
        const bool halves = rotate.slice.pairing == Pairing::halves;
        const std::int64_t a = rotate.slice.first_dim + (halves ? r : 2 * r),
                           b = a + (halves ? pairs : 1);
        of_head[static_cast<std::size_t>(r)] +=
            std::hypot(x.get(x.offset(0, head, t, a)), x.get(x.offset(0, head, t, b)));
      }
    }
    for (double& length : of_head) length /= static_cast<double>(tokens - 1);
  }
  return lengths;
}

std::vector<double> shares(const std::vector<double>& q, const std::vector<double>& k) {
  std::vector<double> made(q.size());
  for (std::size_t r = 0; r < q.size(); ++r) made[r] = q[r] * k[r];
  const double all = std::accumulate(made.begin(), made.end(), 0.0);
  for (double& share : made) share /= all > 0 ? all : 1;
  return made;
}

// What the weights [tokens][tokens] of a head come to.
void look_at(std::span<const float> weights, std::int64_t tokens, HeadFacts& facts) {
  for (std::int64_t i = 1; i < tokens; ++i) {
    const auto row =
        weights.subspan(static_cast<std::size_t>(i * tokens), static_cast<std::size_t>(i + 1));
    facts.sink += row[0];
    if (i > 1) facts.previous += row[static_cast<std::size_t>(i - 1)];
    double distance = 0, entropy = 0;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double weight = row[static_cast<std::size_t>(j)];
      distance += weight * static_cast<double>(i - j);
      if (weight > 0) entropy -= weight * std::log(weight);
    }
    facts.distance += distance;
    facts.entropy += entropy / std::log(static_cast<double>(i + 1));
  }
  const auto queries = static_cast<double>(tokens - 1);
  facts.sink /= queries;
  facts.previous /= queries - 1;
  facts.distance /= queries;
  facts.entropy /= queries;
}

}  // namespace

Expected<HeadSurvey> survey_heads(const Llama& model, std::span<const std::int32_t> tokens) {
  const std::int64_t count = std::ssize(tokens);
  if (count < 3 || count > 8192)
    return fail("lab", "a survey of heads needs 3 to 8192 tokens", std::to_string(count),
                "choose --tokens");
  HeadSurvey survey{.tokens = count};
  std::vector<float> unit(static_cast<std::size_t>(count * count)), weights;
  for (std::int64_t i = 0; i < count; ++i) unit[static_cast<std::size_t>(i * count + i)] = 1;
  const auto look = [&](const Glimpse& glimpse) -> Expected<void> {
    const std::int64_t heads = glimpse.q.shape[1], kv_heads = glimpse.k.shape[1];
    std::vector<std::vector<double>> q, k;
    if (glimpse.plan.rotate) {
      q = pair_lengths(glimpse.q, *glimpse.plan.rotate);
      k = pair_lengths(glimpse.k, *glimpse.plan.rotate);
      if (survey.wavelength.empty())
        for (const double f : glimpse.plan.rotate->frequencies.radians)
          survey.wavelength.push_back(2 * std::numbers::pi / f);
    }
    weights.resize(static_cast<std::size_t>(heads * count * count));
    // The same unit matrix for every key head: a stride of 0.
    Tensor values = Tensor::dense(unit.data(), {1, kv_heads, count, count});
    values.stride[1] = 0;
    POSENC_CHECK(attend({.q = glimpse.q,
                         .k = glimpse.k,
                         .v = values,
                         .queries = glimpse.positions,
                         .keys = glimpse.positions,
                         .threads = model.threads()},
                        glimpse.plan, Tensor::dense(weights.data(), {1, heads, count, count})));
    for (std::int64_t head = 0; head < heads; ++head) {
      HeadFacts facts{.layer = glimpse.layer, .head = head};
      if (!q.empty())
        facts.waves = shares(q[static_cast<std::size_t>(head)],
                             k[static_cast<std::size_t>(head / (heads / kv_heads))]);
      look_at(std::span(weights).subspan(static_cast<std::size_t>(head * count * count)), count,
              facts);
      survey.heads.push_back(std::move(facts));
    }
    return {};
  };
  POSENC_TRY(passage, Passage::begin(model, [](const LayerGroup& group, std::int64_t length) {
               return compile(group, length);
             }));
  POSENC_CHECK(passage.read(tokens, look));
  if (survey.wavelength.empty())
    return fail("lab", "the model must turn queries and keys", model.about().name,
                "posenc explain tells what it does");
  return survey;
}

}  // namespace posenc::lab
