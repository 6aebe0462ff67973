// The lists of schemes, scalings and bundled models as JSON, and a scheme read back from its own.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/explain.h"
#include "posenc/features.h"
#include "src/core/try.h"
#include "src/files/field_value.h"
#include "src/text/json.h"

namespace posenc {
namespace {

using detail::Json;
using detail::JsonMember;
using Out = detail::JsonWriter;

// --- reading -------------------------------------------------------------------------------------

constexpr std::string_view where = "scheme";

// Sets the fields of a scheme or scaling; the required ones must be among them.
template <class Words>
Expected<void> set_fields(Words& object, const Json& json, std::string_view but = {}) {
  std::vector<FieldSetting> given;
  for (const JsonMember& member : *json.get<Json::Object>()) {
    if (member.key == "type" || member.key == but) continue;
    const FieldValue value = member.value.is_null() ? FieldValue() : detail::to_field(member.value);
    given.push_back({member.key, value});
  }
  POSENC_CHECK(posenc::set_fields(object, given));
  for (const FieldInfo& field : info(object).fields) {
    const auto says_it = [&](const FieldSetting& setting) {
      return find_field(info(object), setting.name) == &field &&
             !std::holds_alternative<std::monostate>(setting.value);
    };
    if (field.required && std::ranges::none_of(given, says_it))
      return fail(where, std::string(info(object).name) + " needs " + std::string(field.name), "",
                  field.doc);
  }
  return {};
}

Expected<std::string> type_of(const Json& object, std::string_view of) {
  const Json* type = object.find("type");
  if (const auto* word = type ? type->get<std::string>() : nullptr) return *word;
  return fail(where, std::string(of) + " must be an object with a \"type\"",
              type ? type->text() : object.text(), R"(write it like {"type": "rope"})");
}

// --- writing -------------------------------------------------------------------------------------

std::string_view word(FieldKind kind) {
  constexpr std::string_view words[] = {"boolean", "integer", "number",
                                        "choice",  "numbers", "integers"};
  return words[static_cast<std::size_t>(kind)];
}

struct List {
  std::string_view key, kind;
  std::span<const SchemeInfo> infos;
};
std::array<List, 3> lists() {
  return {{{"schemes", "scheme", all_schemes()},
           {"scalings", "scaling", all_scalings()},
           {"content", "content", all_content_schemes()}}};
}

// Of schemes that read the content, into an open object.
void write_holds(Out& out, const Holds& holds) {
  std::vector<std::string_view> axes;
  for (const Axis axis : holds.axes) axes.push_back(name(axis));
  out.member("axes", axes).member("for_all_heads", holds.for_all_heads);
  out.member("learned", holds.learned);
}

void write_table(Out& out, const TableInfo& table) {
  out.object().member("name", table.name).member("doc", table.doc);
  if (table.holds.axes.count > 0) {
    write_holds(out, table.holds);
    out.member("required", table.required()).member("instead", table.holds.instead);
  }
  if (table.holds.axes.of_tokens()) {
    const Projection& made = table.holds.projection;
    out.key("projection").object().member("activation", name(made.activation));
    out.member("biased", made.biased).member("columns", made.columns).member("rank", made.rank);
    out.member("same", made.same).end();
  }
  out.end();
}

void write_infos(Out& out, std::string_view kind, std::span<const SchemeInfo> infos) {
  for (const SchemeInfo& info : infos) {
    out.object().member("name", info.name).member("kind", kind).member("aliases", info.aliases);
    out.member("title", info.title).member("formula", info.formula).member("paper", info.paper);
    out.key("fields").array();
    for (const FieldInfo& field : info.fields) {
      out.object().member("name", field.name).member("kind", word(field.kind));
      out.member("doc", field.doc).member("unit", field.unit);
      // null: no bound.
      const auto bound = [](bool is_stated, double end) {
        return is_stated ? std::optional(end) : std::nullopt;
      };
      const Range& range = field.range;
      out.member("least", bound(range.has_least(), range.least));
      out.member("most", bound(range.has_most(), range.most));
      out.member("open", range.open).member("choices", field.choices);
      out.member("aliases", field.aliases).member("required", field.required);
      out.member("optional", field.optional);
      detail::write(out.key("default"), field.default_value);
      if (info.reads) {
        write_holds(out, field.holds);
        out.member("alibi", field.holds.alibi);
      }
      out.end();
    }
    out.end();
    if (!info.tables.empty()) {
      out.key("tables").array();
      for (const TableInfo& table : info.tables) write_table(out, table);
      out.end();
    }
    if (info.reads) out.member("reads", name(*info.reads));
    out.end();
  }
}

}  // namespace

Expected<Scheme> read_scheme(std::string_view text) {
  POSENC_TRY(json, detail::parse_json(text, where, detail::Constants::refused));
  POSENC_TRY(type, type_of(json, "it"));
  POSENC_TRY(scheme, make_scheme(type));

  Rope* rope = std::get_if<Rope>(&scheme);
  const std::string_view nested = rope ? "scaling" : "";
  if (rope && json.find("rope_type"))
    return fail(where, "a scaling is an object of its own", "rope_type",
                R"(write "scaling": {"type": "yarn", ...})");
  POSENC_CHECK(set_fields(scheme, json, nested));
  const Json* scaling = rope ? json.find(nested) : nullptr;
  if (!scaling || scaling->is_null()) return std::move(scheme);
  POSENC_TRY(scaling_type, type_of(*scaling, nested));
  POSENC_TRY(made, make_scaling(scaling_type));
  POSENC_CHECK(set_fields(made, *scaling));
  rope->scaling = std::move(made);
  return std::move(scheme);
}

Expected<ContentScheme> read_content_scheme(std::string_view text) {
  POSENC_TRY(json, detail::parse_json(text, where, detail::Constants::refused));
  POSENC_TRY(type, type_of(json, "it"));
  POSENC_TRY(scheme, make_content_scheme(type));
  POSENC_CHECK(set_fields(scheme, json));
  return std::move(scheme);
}

std::string schemes_to_json() {
  Out out;
  out.object();
  for (const List& list : lists()) {
    write_infos(out.key(list.key).array(), list.kind, list.infos);
    out.end();
  }
  out.end();
  return std::move(out.text);
}

std::string scheme_list_to_json() {
  Out out;
  out.array();
  for (const List& list : lists()) write_infos(out, list.kind, list.infos);
  for (const FeatureInfo& each : feature_list())
    out.object()
        .member("name", each.name)
        .member("kind", "feature")
        .member("words", each.words)
        .member("cure", each.cure)
        .end();
  for (const Room* room : room_list()) {
    const auto names = [&](std::string_view key, FeatureSet set) {
      out.key(key).array();
      for (const FeatureInfo& each : feature_list())
        if (set.has(each.feature)) out.value(each.name);
      out.end();
    };
    FeatureSet all;
    for (const FeatureInfo& each : feature_list()) all.add(each.feature);
    out.object().member("name", room->name).member("kind", "room");
    names("takes", room->takes);
    names("ignores", room->ignores);
    names("refuses", room->refused(all));
    out.end();
  }
  out.end();
  return std::move(out.text);
}

std::string models_to_json(std::span<const BundledModel> models) {
  Out out;
  out.array();
  for (const BundledModel& model : models)
    out.object()
        .member("name", model.name)
        .member("about", model.about)
        .member("origin", model.origin)
        .member("source", model.source)
        .end();
  out.end();
  return std::move(out.text);
}

}  // namespace posenc
