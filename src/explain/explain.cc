// Puts the facts of a model together: plans, pairs, sentences, warnings of the length asked.
#include "posenc/explain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/core/saturating.h"
#include "src/core/try.h"
#include "src/explain/pairs.h"
#include "src/explain/text.h"
#include "src/explain/words.h"

namespace posenc {
namespace {

// What stands for several tokens counts for a token by its share.
std::int64_t bytes_per_token(const Model& model, const LayerGroup& group) {
  const std::int64_t each =
      detail::product(bytes_of_number(model), static_cast<std::int64_t>(group.layers.size()));
  std::int64_t bytes = detail::product(group.cache_elements, each);
  for (const CachePart& part : group.cache_beside)
    bytes = detail::sum(bytes, detail::product(part.elements, each) / part.every);
  return bytes;
}

bool holds(const LayerGroup& group, std::int64_t layer) {
  return std::binary_search(group.layers.begin(), group.layers.end(), layer);
}

Expected<void> check(const Model& model, const Ask& ask) {
  if (ask.at < 0)
    return fail("explain", "the length must be positive", std::to_string(ask.at),
                "ask for the number of positions, or 0 for the model as constructed");
  if (!ask.layer) return {};
  std::int64_t last = -1;
  for (const LayerGroup& group : model.groups) {
    if (holds(group, *ask.layer)) return {};
    if (!group.layers.empty()) last = std::max(last, group.layers.back());
  }
  return fail("explain", "the model has no such layer", std::to_string(*ask.layer),
              "layers run from 0 to " + std::to_string(last));
}

// Warns of keys that go stale on the way to the length asked. Only a rotation that holds for some
// lengths alone can differ from the one as constructed, so no other group is compiled again.
void warn_of_length(const LayerGroup& group, const Plan& plan, std::int64_t asked,
                    std::vector<Warning>& warnings) {
  if (!plan.rotate || !plan.valid) return;
  const Expected<Plan> first = compile(group);
  if (!first || !first->valid || first->valid->contains(asked) || first->rotate == plan.rotate)
    return;
  const std::string limit = detail::grouped(first->valid->to);
  Warning warning{"stale_keys",
                  "at length " + detail::grouped(asked) + " the frequencies are not those up to " +
                      limit + ": keys cached before the length passed " + limit +
                      " must be rotated again, or the cache must keep keys unrotated"};
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    warnings.push_back(std::move(warning));
}

// The length that the model is made for: its context, or as far as a scaling stretches the trained
// length where the file promises less (Qwen's documented YaRN leaves the context as it was).
std::int64_t reach(const Model& model) {
  double longest = static_cast<double>(model.context);
  for (const LayerGroup& group : model.groups) {
    for (const Scheme& scheme : group.schemes) {
      const auto* rope = std::get_if<Rope>(&scheme);
      if (!rope) continue;
      const auto factor = number_of(rope->scaling, "factor"),
                 trained = number_of(rope->scaling, "original_max_position_embeddings");
      if (factor && trained) longest = std::max(longest, *factor * *trained);
    }
  }
  return static_cast<std::int64_t>(std::min(longest, 0x1p62));
}

}  // namespace

Expected<std::vector<Warning>> detail::warnings_at(const Model& model, const Ask& ask) {
  POSENC_CHECK(check(model, ask));
  std::vector<Warning> warnings = model.warnings;
  if (ask.at == 0) return warnings;
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack) || (ask.layer && !holds(group, *ask.layer))) continue;
    POSENC_TRY(plan, compile(group, ask.at));
    warn_of_length(group, plan, ask.at, warnings);
  }
  if (const std::int64_t made_for = reach(model); model.context > 0 && ask.at > made_for)
    warnings.push_back(
        {"beyond_context",
         "length " + grouped(ask.at) + " is beyond the " + grouped(made_for) +
             " positions the model is made for; expect worse text, or add a scaling"});
  return warnings;
}

Expected<Explanation> explain(Model model, const Ask& ask) {
  POSENC_TRY(warnings, detail::warnings_at(model, ask));
  Explanation explanation;
  explanation.asked = ask.at;
  explanation.warnings = std::move(warnings);
  const std::int64_t trained = model.trained_context > 0 ? model.trained_context : model.context;
  for (std::size_t i = 0; i < model.groups.size(); i++) {
    const LayerGroup& group = model.groups[i];
    if (ask.layer && !holds(group, *ask.layer)) continue;
    // A vision tower counts patches of a picture, not tokens of the text.
    const std::int64_t length = is_tower(group.stack) ? 0 : ask.at;
    POSENC_TRY(plan, compile(group, length));

    GroupExplanation facts;
    facts.group = i;
    facts.plan = std::move(plan);
    if (const auto indexer = indexer_group(group)) {
      POSENC_TRY(own, compile(*indexer, length));
      facts.indexer = std::move(own);
    }
    if (facts.plan.rotate) {
      const std::optional<Rotate> unscaled = detail::unscaled_rotation(group);
      facts.pairs = detail::pair_facts(*facts.plan.rotate, unscaled, trained,
                                       length > 0 ? length : model.context);
      if (unscaled) facts.bands = detail::scaling_bands(facts.pairs);
    }
    facts.cache_bytes_per_token = bytes_per_token(model, group);
    facts.cache_bytes = cached_bytes(model, group, ask.at > 0 ? ask.at : model.context);
    const detail::Subject subject{model, group, facts, length};
    facts.heading = detail::heading(subject);
    facts.words = detail::sentences(subject);
    facts.amplitude_note = detail::amplitude_note(subject);
    facts.formulas = detail::formula_lines(subject);
    explanation.cache_bytes_per_token =
        detail::sum(explanation.cache_bytes_per_token, facts.cache_bytes_per_token);
    explanation.cache_bytes = detail::sum(explanation.cache_bytes, facts.cache_bytes);
    explanation.groups.push_back(std::move(facts));
  }
  explanation.model = std::move(model);
  explanation.words = detail::model_words(explanation);
  return explanation;
}

}  // namespace posenc
