// Whether a model's cached keys may be moved (posenc/reuse.h). A key may where it depends on its
// position through a rotation alone; what enters elsewhere is in its content for good.
#include "posenc/reuse.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "posenc/features.h"
#include "src/explain/text.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

bool is_text(Stack stack) {
  return stack == Stack::text || stack == Stack::encoder || stack == Stack::decoder;
}

std::string tokens(std::int64_t count) { return std::to_string(count) + " tokens"; }

// What rotates so that it cannot be moved; "" where it can.
std::string no_inverse(const Plan& plan) {
  std::string words;
  const FeatureSet refused = rooms::rekey.refused(features(plan));
  for (const FeatureInfo& feature : feature_list())
    if (refused.has(feature.feature))
      words += (words.empty() ? "" : ", ") + std::string(feature.words);
  return words;
}

// A part of the plan that is in the content of keys: added to embeddings, in this stack or before
// each layer.
const Plan* adding(const std::vector<std::pair<const LayerGroup*, Plan>>& plans, Stack stack) {
  for (const auto& [group, plan] : plans)
    if (group->stack == stack && plan.add) return &plan;
  return nullptr;
}

ReuseGroup judged(const LayerGroup& group, const Plan& plan, bool added, bool recurrent_before) {
  ReuseGroup out{group.stack, group.layers, Reuse::exact, {}, {}};
  if (group.mixer != Mixer::attention) {
    out.verdict = Reuse::never;
    out.why = "no keys: " + std::string(name(group.mixer)) + " carries the order in a state";
    return out;
  }
  if (added) {
    out.verdict = Reuse::never;
    out.why = "vectors of absolute positions were added to the embeddings, and are in every key";
    return out;
  }
  if (group.compressed > 0) {
    out.verdict = Reuse::never;
    out.why = "a key behind the window stands for " + tokens(group.compressed) +
              ", counted from the first of the text";
    return out;
  }
  if (group.chunked && group.window) {
    out.verdict = Reuse::never;
    out.why = "chunks begin at multiples of " + tokens(*group.window) +
              ": at another place a token belongs with others; a step of whole chunks is exact";
  }
  if (const std::string words = no_inverse(plan); !words.empty()) {
    out.verdict = Reuse::unrotated_only;
    out.why = "its rotation cannot be taken back: " + words;
    return out;
  }
  if (out.verdict == Reuse::exact) {
    if (!plan.rotate)
      out.why = plan.bias || plan.relative
                    ? "position enters by distance when keys are read: keys move as they are"
                    : "keys hold no position, and move as they are";
    else
      out.why = "keys rotate by their position alone: rekey() turns them by the difference";
  }
  if (plan.rotate) {
    if (plan.rotate->rotates_values()) out.moves.push_back("values, which rotate as keys do");
    if (plan.rotate->frequencies.axes > 1)
      out.moves.push_back("ids on every axis: pictures and the text behind them by one step");
    if (const std::string scaling = detail::scaling_by_length(group); !scaling.empty())
      out.moves.push_back("the rotation itself, where the length changes it (" + scaling +
                          "): rekey() from the plan of one length to that of the other");
  }
  if (group.picked) out.moves.push_back("the indexer's keys, which have a rotation of their own");
  if (group.window && !group.chunked)
    out.moves.push_back("nothing behind the window of " + tokens(*group.window) +
                        ": such keys are not kept");
  if (recurrent_before)
    out.moves.push_back(
        "states of the recurrent layers, which cannot be moved: without them the "
        "text must be read again");
  return out;
}

}  // namespace

std::vector<ReuseGroup> reuse(const Model& model) {
  std::vector<std::pair<const LayerGroup*, Plan>> plans;
  bool recurrent = false;
  for (const LayerGroup& group : model.groups) {
    if (!is_text(group.stack)) continue;
    recurrent |= group.mixer == Mixer::recurrence || group.mixer == Mixer::convolution;
    plans.emplace_back(&group, compile(group).value_or(Plan{}));
  }
  std::vector<ReuseGroup> out;
  out.reserve(plans.size());
  for (const auto& [group, plan] : plans)
    out.push_back(judged(*group, plan, adding(plans, group->stack) != nullptr,
                         recurrent && group->mixer == Mixer::attention));
  return out;
}

std::string to_json(const std::vector<ReuseGroup>& groups) {
  detail::JsonWriter out;
  out.array();
  for (const ReuseGroup& group : groups) {
    out.object().member("stack", name(group.stack)).member("layers", group.layers);
    out.member("verdict", name(group.verdict)).member("why", group.why);
    out.member("moves", group.moves).end();
  }
  out.end();
  return std::move(out.text);
}

}  // namespace posenc
