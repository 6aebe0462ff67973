#include "posenc/position.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/core/try.h"
#include "src/explain/plan_json.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

using detail::Json;

constexpr std::int64_t version = 1;
constexpr std::string_view marker = "position_json";

std::optional<std::int64_t> counted(std::int64_t number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::unexpected<Error> wrong(std::string_view where, std::string_view rule, const Json& got) {
  return fail(where, rule, got.text(), "write it as spec/position.md has it");
}

Expected<std::int64_t> count(std::string_view where, const Json& of, std::string_view key) {
  const Json* found = of.find(key);
  if (!found || found->is_null()) return 0;
  const auto* number = found->get<std::int64_t>();
  if (!number || *number < 0)
    return wrong(where, std::string(key) + " must be null or a count", *found);
  return *number;
}

Expected<bool> truth(std::string_view where, const Json& of, std::string_view key, bool otherwise) {
  const Json* found = of.find(key);
  if (!found) return otherwise;
  if (const auto* said = found->get<bool>()) return *said;
  return wrong(where, std::string(key) + " must be true or false", *found);
}

Expected<PositionGroup> read_group(std::string_view where, const Json& of) {
  PositionGroup group;
  constexpr std::array stacks{Stack::text, Stack::encoder, Stack::decoder, Stack::vision,
                              Stack::audio};
  const Json* stack = of.find("stack");
  const auto* word = stack ? stack->get<std::string>() : nullptr;
  const auto named =
      std::ranges::find_if(stacks, [&](Stack s) { return word && name(s) == *word; });
  if (named == stacks.end())
    return wrong(where, "stack must be text, encoder, decoder, vision or audio",
                 stack ? *stack : Json{});
  group.stack = *named;
  const Json* layers = of.find("layers");
  const auto* list = layers ? layers->get<Json::Array>() : nullptr;
  if (!list || list->empty())
    return wrong(where, "layers must be their numbers", layers ? *layers : Json{});
  for (const Json& each : *list) {
    const auto* number = each.get<std::int64_t>();
    if (!number || *number < 0 || (!group.layers.empty() && *number <= group.layers.back()))
      return wrong(where, "layers must ascend from 0", each);
    group.layers.push_back(*number);
  }
  POSENC_TRY(heads, count(where, of, "heads"));
  POSENC_TRY(kv_heads, count(where, of, "kv_heads"));
  POSENC_TRY(head_dim, count(where, of, "head_dim"));
  POSENC_TRY(window, count(where, of, "window"));
  POSENC_TRY(causal, truth(where, of, "causal", true));
  POSENC_TRY(chunked, truth(where, of, "chunked", false));
  POSENC_TRY(sinks, truth(where, of, "sink_logits", false));
  group.heads = heads, group.kv_heads = kv_heads, group.head_dim = head_dim;
  group.window = counted(window);
  group.causal = causal, group.chunked = chunked, group.sink_logits = sinks;
  return group;
}

}  // namespace

PositionFile position_of(const Explanation& explanation) {
  const Model& model = explanation.model;
  PositionFile file{model.name, explanation.asked, model.context, model.trained_context, {}};
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& group = model.groups[facts.group];
    if (group.mixer != Mixer::attention) continue;
    file.groups.push_back({.stack = group.stack,
                           .layers = group.layers,
                           .heads = group.geometry.heads,
                           .kv_heads = group.geometry.kv_heads,
                           .head_dim = group.geometry.head_dim,
                           .causal = group.causal,
                           .window = group.window,
                           .chunked = group.chunked,
                           .sink_logits = group.sink_logits,
                           .plan = facts.plan});
  }
  return file;
}

std::string to_json(const PositionFile& file) {
  detail::JsonWriter out;
  out.object().member(marker, version).member("model", file.model);
  out.member("length", counted(file.length)).member("context", counted(file.context));
  out.member("trained_context", counted(file.trained_context)).key("groups").array();
  for (const PositionGroup& group : file.groups) {
    out.object().member("stack", name(group.stack)).member("layers", group.layers);
    out.member("heads", counted(group.heads)).member("kv_heads", counted(group.kv_heads));
    out.member("head_dim", counted(group.head_dim)).member("causal", group.causal);
    out.member("window", group.window).member("chunked", group.chunked);
    out.member("sink_logits", group.sink_logits);
    detail::write_plan(out.key("plan"), group.plan);
    out.end();
  }
  out.end().end();
  return std::move(out.text);
}

bool is_position(std::string_view text) {
  // Its first key, so that a file of many megabytes is not read for it.
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == text.npos || text[start] != '{') return false;
  const std::size_t key = text.find_first_not_of(" \t\r\n", start + 1);
  return key != text.npos && text.substr(key).starts_with("\"position_json\"");
}

Expected<PositionFile> read_position(std::string_view text, std::string_view name) {
  POSENC_TRY(json, detail::parse_json(text, name));
  const Json* marked = json.find(marker);
  const auto* number = marked ? marked->get<std::int64_t>() : nullptr;
  if (!number || *number != version)
    return wrong(name, "position_json must be 1", marked ? *marked : Json{});
  PositionFile file;
  if (const Json* model = json.find("model"))
    if (const auto* word = model->get<std::string>()) file.model = *word;
  POSENC_TRY(length, count(name, json, "length"));
  POSENC_TRY(context, count(name, json, "context"));
  POSENC_TRY(trained, count(name, json, "trained_context"));
  file.length = length, file.context = context, file.trained_context = trained;
  const Json* groups = json.find("groups");
  const auto* list = groups ? groups->get<Json::Array>() : nullptr;
  if (!list) return wrong(name, "groups must be a list", groups ? *groups : Json{});
  for (const Json& each : *list) {
    const std::string where =
        std::string(name) + ": groups[" + std::to_string(file.groups.size()) + "]";
    POSENC_TRY(group, read_group(where, each));
    const Json* plan = each.find("plan");
    if (!plan) return wrong(where, "plan must be there", each);
    POSENC_TRY(read, detail::read_plan(*plan, group.head_dim));
    group.plan = std::move(read);
    file.groups.push_back(std::move(group));
  }
  return file;
}

}  // namespace posenc
