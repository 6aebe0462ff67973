// One pass of the runner. Queries and keys are rotated here, by the plan, the places and the
// rounding of the hypothesis, and attention then gets a plan without a rotation.
#include "evidence/lab/endpoint/score.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "posenc/attention.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

std::size_t index(std::int64_t count) { return static_cast<std::size_t>(count); }

// Rows [first, first + count) of the third axis.
Tensor rows_of(Tensor tensor, std::int64_t first, std::int64_t count) {
  tensor.data = static_cast<float*>(tensor.data) + first * tensor.stride[2];
  tensor.shape[2] = count;
  return tensor;
}

double rounded(double angle, Rounding rounding) {
  switch (rounding) {
    case Rounding::half: return half_to_float(double_to_half(angle));
    case Rounding::bfloat16: return bfloat16_to_float(double_to_bfloat16(angle));
    case Rounding::none: break;
  }
  return angle;
}

class HypotheticalAttention : public PassageAttention {
 public:
  HypotheticalAttention(const Llama& model, const ServerHypothesis& hypothesis, std::int64_t tokens,
                        std::int64_t prompt)
      : model_(model),
        hypothesis_(hypothesis),
        tokens_(tokens),
        prompt_(prompt),
        layers_(model.layers().size()) {}

  Expected<void> attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Plan& plan, const Positions& positions, const Mask& /*mask*/,
                        const Tensor& out) override {
    const std::int64_t count = positions.size(), first = positions.at(0);
    Cached& cached = layers_[index(layer)];
    const Tensor keys = whole(cached.k, k), values = whole(cached.v, v);
    queries_.resize(index(q.size()));
    const Tensor rotated = Tensor::dense(queries_.data(), {1, q.shape[1], count, q.shape[3]});
    POSENC_CHECK(turn(plan, q, first, Side::query, rotated));
    POSENC_CHECK(turn(plan, k, first, Side::key, rows_of(keys, first, count)));
    const Tensor kept = rows_of(values, first, count);
    for (std::int64_t head = 0; head < v.shape[1]; ++head)
      for (std::int64_t t = 0; t < count; ++t) {
        const float* from = static_cast<const float*>(v.data) + v.offset(0, head, t);
        std::copy_n(from, v.shape[3], static_cast<float*>(kept.data) + kept.offset(0, head, t));
      }
    Plan bare = plan;
    bare.rotate.reset();
    const LayerGroup* group = find_group(hypothesis_.model, layer, Stack::text);
    const std::int64_t window = group != nullptr ? group->window.value_or(0) : 0;
    return posenc::attend({.q = rotated,
                           .k = rows_of(keys, 0, first + count),
                           .v = rows_of(values, 0, first + count),
                           .queries = Positions::range(first, count),
                           .keys = Positions::range(0, first + count),
                           .mask = {.window = window},
                           .threads = model_.threads()},
                          bare, out);
  }
  Expected<void> evict(std::int64_t /*first*/, std::int64_t /*last*/) override {
    return fail("probe", "keeps all of a text", "an eviction");  // Kept is empty: never asked
  }

 private:
  struct Cached {
    std::vector<float> k, v;
  };

  Tensor whole(std::vector<float>& numbers, const Tensor& like) const {
    numbers.resize(index(like.shape[1] * tokens_ * like.shape[3]));
    return Tensor::dense(numbers.data(), {1, like.shape[1], tokens_, like.shape[3]});
  }

  Expected<void> turn(const Plan& plan, const Tensor& x, std::int64_t first, Side side,
                      const Tensor& out) {
    const std::int64_t count = x.shape[2];
    std::vector<std::int64_t> ids(index(count));
    for (std::int64_t t = 0; t < count; ++t)
      ids[index(t)] = hypothesis_.placement.at(first + t, prompt_) +
                      (side == Side::key ? hypothesis_.placement.keys : 0);
    POSENC_TRY(placed, Positions::signed_ids(ids));
    if (hypothesis_.other_order) {
      const Tensor moved = in_halves(x);
      POSENC_CHECK(rotate(plan, moved, placed, side, moved, model_.threads()));
      for_each_channel(out, [&](float* row, std::int64_t head, std::int64_t t, std::int64_t c) {
        row[paired(c, x.shape[3]) * out.stride[3]] =
            static_cast<const float*>(moved.data)[moved.offset(0, head, t, c)];
      });
      return {};
    }
    if (!plan.rotate || hypothesis_.rounding == Rounding::none)
      return rotate(plan, x, placed, side, out, model_.threads());
    const std::int64_t pairs = plan.rotate->pairs();
    std::vector<double> angles(index(plan.rotate->frequencies.heads * count * pairs));
    const Tensor table =
        Tensor::dense(angles.data(), {1, plan.rotate->frequencies.heads, count, pairs});
    POSENC_CHECK(rotation_angles(plan, placed, table, model_.threads()));
    for (double& angle : angles) angle = rounded(angle, hypothesis_.rounding);
    return rotate_by(plan, x, table, side, out, model_.threads());
  }

  // Where a channel of Hugging Face's order stands among those whose pairs are neighbours.
  static std::int64_t paired(std::int64_t channel, std::int64_t head_dim) {
    const std::int64_t half = head_dim / 2;
    return channel < half ? 2 * channel : 2 * (channel - half) + 1;
  }
  template <class Each>
  static void for_each_channel(const Tensor& x, Each&& each) {
    for (std::int64_t head = 0; head < x.shape[1]; ++head)
      for (std::int64_t t = 0; t < x.shape[2]; ++t)
        for (std::int64_t c = 0; c < x.shape[3]; ++c)
          each(static_cast<float*>(x.data) + x.offset(0, head, t), head, t, c);
  }
  Tensor in_halves(const Tensor& x) {
    moved_.resize(index(x.size()));
    const Tensor made = Tensor::dense(moved_.data(), {1, x.shape[1], x.shape[2], x.shape[3]});
    for_each_channel(x, [&](const float* row, std::int64_t head, std::int64_t t, std::int64_t c) {
      moved_[index(made.offset(0, head, t, c))] = row[paired(c, x.shape[3]) * x.stride[3]];
    });
    return made;
  }

  const Llama& model_;
  const ServerHypothesis& hypothesis_;
  std::int64_t tokens_, prompt_;
  std::vector<Cached> layers_;
  std::vector<float> queries_, moved_ = {};
};

// Of one row of logits.
void tell(std::span<const float> row, const Seen& seen, std::vector<float>& out) {
  const float most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit - most));
  const double norm = std::log(sum) + most;
  for (const Chance& chance : seen.chances)
    out.push_back(static_cast<float>(row[index(chance.token)] - norm));
}

}  // namespace

Expected<std::vector<float>> log_probabilities(const Llama& model,
                                               const ServerHypothesis& hypothesis,
                                               const Observed& text, bool late, const GoOn& go_on) {
  const std::int64_t later = late ? 1 : 0;
  std::int64_t length = 0;
  for (const Seen& seen : text.seen) {
    length = std::max(length, seen.read + later);
    for (const Chance& chance : seen.chances)
      if (chance.token < 0 || chance.token >= model.vocabulary())
        return fail("probe", "a token must be of the model's vocabulary",
                    std::to_string(chance.token), "is FILE the model that the server runs?");
  }
  if (length > std::ssize(text.tokens) || (!text.seen.empty() && text.seen.front().read < 1))
    return fail("probe", "what is said must be of tokens that were read",
                std::to_string(length) + " of " + std::to_string(text.tokens.size()));
  const auto rule = [&](const LayerGroup& group, std::int64_t) -> Expected<Plan> {
    const LayerGroup* meant =
        find_group(hypothesis.model, group.layers.empty() ? 0 : group.layers.front(), Stack::text);
    return compile(meant != nullptr ? *meant : group, length);
  };
  POSENC_TRY(passage, Passage::begin(model, rule, 0, {}, [&](const Llama& of) {
               return Expected<std::unique_ptr<PassageAttention>>(
                   std::make_unique<HypotheticalAttention>(of, hypothesis, length, text.prompt));
             }));
  const std::int64_t chunk = go_on ? 32 : 512;
  constexpr std::size_t most_rows = 64;  // of logits at once, as Llama::losses has them
  const auto width = index(model.width());
  std::vector<float> made;
  std::size_t next = 0;
  for (std::int64_t at = 0; at < length; at += chunk) {
    const std::int64_t count = std::min(chunk, length - at);
    POSENC_TRY(hidden, passage.read(std::span(text.tokens).subspan(index(at), index(count))));
    while (next < text.seen.size() && text.seen[next].read + later <= at + count) {
      std::vector<float> rows;
      const std::size_t from = next;
      for (; next < text.seen.size() && next - from < most_rows &&
             text.seen[next].read + later <= at + count;
           ++next) {
        const auto row =
            hidden.subspan(index(text.seen[next].read + later - 1 - at) * width, width);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      const std::vector<float> logits = model.logits(rows);
      const auto vocabulary = index(model.vocabulary());
      for (std::size_t i = from; i < next; ++i)
        tell(std::span(logits).subspan((i - from) * vocabulary, vocabulary), text.seen[i], made);
    }
    if (go_on && at + count < length && !go_on(made)) break;
  }
  return made;
}

}  // namespace posenc::lab
