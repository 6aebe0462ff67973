// Two position.json compared, layer by layer.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/tools.h"
#include "src/tools/plan_diff.h"

namespace posenc {
namespace {

using Layer = std::pair<Stack, std::int64_t>;

std::map<Layer, std::size_t> by_layer(const PositionFile& file) {
  std::map<Layer, std::size_t> at;
  for (std::size_t g = 0; g < file.groups.size(); ++g)
    for (const std::int64_t layer : file.groups[g].layers) at[{file.groups[g].stack, layer}] = g;
  return at;
}

std::string window_text(const PositionGroup& group) {
  if (!group.window) return "none";
  return (group.chunked ? "chunks of " : "") + std::to_string(*group.window) + " tokens";
}

}  // namespace

Expected<std::vector<Finding>> differences(const PositionFile& expected, const PositionFile& found,
                                           std::int64_t length) {
  if (length < 0) return fail("diff", "length must be 0 or more", std::to_string(length));
  const std::int64_t longer = std::max(expected.context, found.context);
  const std::int64_t asked = length > 0 ? length : longer > 0 ? longer : detail::usual_length;
  const std::map<Layer, std::size_t> left = by_layer(expected), right = by_layer(found);
  // Layers that meet in the same two groups are told of together.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> meet;
  std::map<Stack, std::vector<std::int64_t>> missing, more;
  for (const auto& [layer, group] : left) {
    const auto other = right.find(layer);
    if (other == right.end())
      missing[layer.first].push_back(layer.second);
    else
      meet[{group, other->second}].push_back(layer.second);
  }
  for (const auto& [layer, group] : right)
    if (!left.contains(layer)) more[layer.first].push_back(layer.second);

  std::vector<Finding> all;
  const auto of_layers = [&](Finding finding, Stack stack, std::vector<std::int64_t> layers) {
    finding.stack = stack;
    finding.layers = std::move(layers);
    all.push_back(std::move(finding));
  };
  for (const auto& [groups, layers] : meet) {
    const PositionGroup& a = expected.groups[groups.first];
    const PositionGroup& b = found.groups[groups.second];
    for (Finding& each : detail::plan_differences(a.plan, b.plan, a.head_dim, asked))
      of_layers(std::move(each), a.stack, layers);
    const auto either = [&](std::string_view code, bool one, bool other, std::string_view yes,
                            std::string_view no, std::string_view message, std::string_view cure) {
      if (one != other)
        of_layers({.code = std::string(code),
                   .expected = std::string(one ? yes : no),
                   .found = std::string(other ? yes : no),
                   .message = std::string(message),
                   .cure = std::string(cure)},
                  a.stack, layers);
    };
    either("causal", a.causal, b.causal, "causal", "both ways",
           "what comes later is hidden in one of them alone", "mask as the first of the two does");
    if (window_text(a) != window_text(b))
      of_layers({.code = "window",
                 .position = std::min(a.window.value_or(asked), b.window.value_or(asked)),
                 .expected = window_text(a),
                 .found = window_text(b),
                 .message = "tokens see back to another one",
                 .cure = "give the layers the window of the first of the two"},
                a.stack, layers);
    either("sink_logits", a.sink_logits, b.sink_logits, "learned sinks", "none",
           "the softmax counts a learned logit in one of them alone",
           "count it where the weights have one");
  }
  for (const auto& [lacking, words] :
       {std::pair{&missing, std::pair{"attention", "none"}}, {&more, {"none", "attention"}}})
    for (const auto& [stack, layers] : *lacking)
      of_layers({.code = "layers",
                 .expected = words.first,
                 .found = words.second,
                 .message = "these layers have attention in one of them alone",
                 .cure = "number layers from 0 in each stack"},
                stack, layers);
  std::ranges::stable_sort(all, {}, &Finding::severity);
  return all;
}

}  // namespace posenc
