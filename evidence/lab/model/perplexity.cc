#include "evidence/lab/model/perplexity.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <variant>

#include "evidence/lab/statistics.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::lab {

std::string title(const Stretch& stretch) {
  char factor[32];
  std::snprintf(factor, sizeof factor, "%g", stretch.factor);
  return stretch.scaling == "none" ? "none" : stretch.scaling + " ×" + factor;
}

Expected<Passage::PlanRule> plans_of(const Model& model, const Stretch& stretch) {
  Expected<Scaling> scaling = make_scaling(stretch.scaling);
  if (!scaling) return std::unexpected(scaling.error());
  for (const FieldInfo& field : info(*scaling).fields) {
    FieldValue value;
    if (field.name == "factor")
      value = stretch.factor;
    else if (field.name == "max_position_embeddings" ||
             field.name == "original_max_position_embeddings")
      value = model.trained_context > 0 ? model.trained_context : model.context;
    else if (field.required && field.kind == FieldKind::numbers)
      return fail("--scalings", "must need no lists of its own", info(*scaling).name,
                  "one list a pair belongs to the model that was trained with it");
    else
      continue;
    POSENC_CHECK(set_field(*scaling, field.name, value));
  }
  return [scaling = *scaling](const LayerGroup& group, std::int64_t length) -> Expected<Plan> {
    LayerGroup scaled = group;
    for (Scheme& scheme : scaled.schemes)
      if (auto* rope = std::get_if<Rope>(&scheme)) rope->scaling = scaling;
    return compile(scaled, length);
  };
}

Expected<std::vector<std::int64_t>> windows_of(std::int64_t tokens, std::int64_t length,
                                               std::int64_t count) {
  if (length < 2)
    return fail("--length", "must be at least 2: a loss needs a token before",
                std::to_string(length));
  if (tokens < length)
    return fail("TEXT", "must have as many tokens as a window",
                std::to_string(tokens) + " of " + std::to_string(length),
                "give a longer text, or a smaller --length");
  if (count < 1 || count > tokens - length + 1)
    return fail(
        "--windows", "each must begin at a token of its own",
        std::to_string(count) + " where " + std::to_string(tokens - length + 1) + " can begin",
        "ask for fewer");
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < count; ++i)
    starts.push_back(count == 1 ? 0 : (tokens - length) * i / (count - 1));
  return starts;
}

Expected<LossCurve> loss_curve(const Llama& model, std::span<const std::int32_t> tokens,
                               std::span<const std::int64_t> windows, std::int64_t length,
                               std::int64_t block, const Stretch& stretch,
                               const std::function<void(std::int64_t)>& told, Kept kept,
                               const AttentionMaker& attention) {
  POSENC_TRY(rule, plans_of(model.about(), stretch));
  LossCurve curve{.stretch = stretch};
  for (const std::int64_t start : windows) {
    const auto before = std::ssize(curve.losses);
    POSENC_TRY(
        more, losses(
                  model,
                  tokens.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(length)),
                  rule, 0,
                  [&](std::int64_t done) {
                    if (told) told(before + done);
                  },
                  kept, attention));
    curve.losses.insert(curve.losses.end(), more.begin(), more.end());
  }
  // The loss of the token at position p stands at p − 1 of its window.
  for (std::int64_t from = 0; from < length; from += block) {
    LossBlock made{.from = from, .to = std::min(from + block, length)};
    for (std::int64_t window = 0; window < std::ssize(windows); ++window)
      for (std::int64_t p = std::max<std::int64_t>(from, 1); p < made.to; ++p, ++made.n)
        made.nats += curve.losses[static_cast<std::size_t>(window * (length - 1) + p - 1)];
    if (made.n == 0) continue;
    made.nats /= static_cast<double>(made.n);
    curve.blocks.push_back(made);
  }
  return curve;
}

PairedDifference paired_difference(const LossCurve& a, const LossCurve& b, std::int64_t length,
                                   std::int64_t from, std::int64_t to) {
  constexpr std::int64_t run = 128;
  std::vector<double> runs;
  for (std::int64_t window = 0; window * (length - 1) < std::ssize(a.losses); ++window) {
    for (std::int64_t first = std::max<std::int64_t>(from, 1); first < to; first += run) {
      const std::int64_t end = std::min(first + run, to);
      double sum = 0;
      for (std::int64_t p = first; p < end; ++p) {
        const auto at = static_cast<std::size_t>(window * (length - 1) + p - 1);
        sum += static_cast<double>(b.losses[at]) - a.losses[at];
      }
      runs.push_back(sum / static_cast<double>(end - first));
    }
  }
  const Interval interval = interval_of(runs);
  return {interval.mean, interval.half_width, interval.n};
}

}  // namespace posenc::lab
