#include "src/tools/dotted.h"

#include <algorithm>
#include <utility>

#include "src/core/try.h"
#include "src/text/json_writer.h"

namespace posenc::detail {
namespace {

Json& member_of(Json::Object& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &JsonMember::key);
  if (found != members.end()) return found->value;
  members.push_back({std::string(key), {}});
  return members.back().value;
}

void merge(Json& into, const Json& from) {
  const auto* members = from.get<Json::Object>();
  auto* mine = std::get_if<Json::Object>(&into.value);
  if (!members || !mine) {
    into = from;
    return;
  }
  for (const JsonMember& member : *members) merge(member_of(*mine, member.key), member.value);
}

void write(JsonWriter& out, const Json& json) {
  if (const auto* members = json.get<Json::Object>()) {
    out.object();
    for (const JsonMember& member : *members) write(out.key(member.key), member.value);
    out.end();
  } else if (const auto* list = json.get<Json::Array>()) {
    out.array();
    for (const Json& each : *list) write(out, each);
    out.end();
  } else if (const auto* word = json.get<std::string>()) {
    out.value(*word);
  } else if (const auto* number = json.get<double>()) {
    out.value(*number);
  } else {
    out.json(json.is_null() ? "null" : json.text());
  }
}

}  // namespace

void DottedObject::put(std::string_view path, std::string_view value) {
  Expected<Json> parsed = parse_json(value, "value");
  Json json = parsed ? *std::move(parsed) : Json{std::string(value)};
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    const std::size_t key = dot == path.npos ? 0 : dot + 1;
    json = Json{Json::Object{{std::string(path.substr(key)), std::move(json)}}};
    path = path.substr(0, dot == path.npos ? 0 : dot);
  }
  Json all{std::move(members_)};
  merge(all, json);
  members_ = std::get<Json::Object>(std::move(all.value));
}

Expected<void> DottedObject::put_below(std::string_view object, std::string_view name) {
  POSENC_TRY(json, parse_json(object, name));
  if (!json.get<Json::Object>()) return fail(name, "must be a JSON object", json.kind());
  Json all = std::move(json);
  merge(all, Json{std::move(members_)});
  members_ = std::get<Json::Object>(std::move(all.value));
  return {};
}

std::string DottedObject::text() const {
  JsonWriter out;
  write(out, Json{members_});
  return std::move(out.text);
}

}  // namespace posenc::detail
