#include "cli/playground/explain_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/playground/link_fields.h"
#include "posenc/content.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// A scheme being put together from a view.
class Linking {
 public:
  Linking(const View& view, std::vector<std::string>& notes) : view_(view), notes_(notes) {}

  Expected<Scheme> scheme() {
    if (make_content_scheme(view_["scheme"]))
      return fail("link", view_["scheme"] + " reads what tokens say, so no plan explains it", "",
                  "posenc plot scores computes with it");
    POSENC_TRY(made, make_scheme(view_["scheme"]));
    scheme_ = std::move(made);
    rope_ = std::holds_alternative<Rope>(scheme_);
    if (rope_) POSENC_CHECK(set_field(scheme_, "rope_type", FieldValue(view_["scaling"])));
    take_shared();
    for (const LinkSetting& setting : view_.scheme) take("scheme.", info(scheme_), setting);
    for (const LinkSetting& setting : view_.scaling) {
      if (const Rope* rope = std::get_if<Rope>(&scheme_))
        take("scaling.", info(rope->scaling), setting);
      else
        note("scaling." + setting.name + " is left out: only RoPE is scaled");
    }
    fill();
    return scheme_;
  }

 private:
  void note(std::string text) { notes_.push_back(std::move(text)); }

  // Fields that the link keeps for every scheme. Their default is the scheme's own.
  void take_shared() {
    for (const std::string& key : link_rules().shared)
      if (const FieldInfo* field = find_field(info(scheme_), key); field && !view_.is_default(key))
        take("", info(scheme_), {key, view_[key]});
  }

  void take(const std::string& group, const SchemeInfo& of, const LinkSetting& setting) {
    const std::string name = group + setting.name;
    const FieldInfo* field = find_field(of, setting.name);
    if (!field) {
      note(fmt::format("{} is left out: {} has no such field", printable(name, 60), of.name));
      return;
    }
    const Expected<FieldValue> value = field_value(*field, setting.value, name);
    Expected<void> set{};
    if (value) {
      set = set_own(of, field->name, *value);
    } else {
      set = std::unexpected(value.error());
    }
    if (!set) {
      note("left out: " + set.error().message());
      return;
    }
    given_.push_back(field);
  }

  // A field of the scheme itself, where the scaling may have one of the same name; or the other way
  // round.
  Expected<void> set_own(const SchemeInfo& of, std::string_view name, const FieldValue& value) {
    Rope* rope = std::get_if<Rope>(&scheme_);
    if (!rope) return set_field(scheme_, name, value);
    if (&of == &info(rope->scaling)) return set_field(rope->scaling, name, value);
    Scheme alone = *rope;
    std::get<Rope>(alone).scaling = Unscaled{};
    POSENC_CHECK(set_field(alone, name, value));
    std::get<Rope>(alone).scaling = rope->scaling;
    scheme_ = std::move(alone);
    return {};
  }

  bool is_given(const SchemeInfo& of, std::string_view name) const {
    const FieldInfo* field = find_field(of, name);
    return field && std::find(given_.begin(), given_.end(), field) != given_.end();
  }

  void rule(const SchemeInfo& of, std::string_view name, double value, std::string_view why) {
    const FieldInfo* field = find_field(of, name);
    if (!field || is_given(of, name)) return;
    const FieldValue number = field->kind == FieldKind::integer
                                  ? FieldValue(static_cast<std::int64_t>(value))
                                  : FieldValue(value);
    if (set_own(of, field->name, number))
      note(fmt::format("{} is not in the link: {}, {}", name, script_number(value), why));
  }

  // What has no default follows from the link's lengths.
  void fill() {
    const double trained = view_.number("trained"), target = view_.number("target");
    if (const Rope* rope = std::get_if<Rope>(&scheme_)) {
      const SchemeInfo& of = info(rope->scaling);
      const double longest = std::max(trained, target);
      for (const FieldInfo& field : of.fields) {
        const std::string_view what = what_follows(of.name, field.name);
        if (what == "ratio")
          rule(of, field.name, longest / trained, "target over trained");
        else if (what == "trained")
          rule(of, field.name, trained, "the trained length");
        else if (what == "longest")
          rule(of, field.name, longest, "the longer of the two lengths");
        else if (const std::optional<double> number = read_script_number(what))
          rule(of, field.name, *number, "as the playground takes it");
      }
    }
    if (std::holds_alternative<Learned>(scheme_))
      rule(info(scheme_), "rows", view_.number("length"), "the tokens shown");
  }

  const View& view_;
  std::vector<std::string>& notes_;
  Scheme scheme_;
  bool rope_ = false;
  std::vector<const FieldInfo*> given_;
};

}  // namespace

Expected<Linked> linked_model(const View& view, std::vector<std::string>& notes) {
  POSENC_TRY(scheme, Linking(view, notes).scheme());
  const auto whole = [&](std::string_view key) {
    return static_cast<std::int64_t>(view.number(key));
  };
  const Rope* rope = std::get_if<Rope>(&scheme);
  const bool scaled = rope && !std::holds_alternative<Unscaled>(rope->scaling);
  Linked linked;
  linked.model.name = "this link";
  // Lengths belong to a scaling; elsewhere a view shows some tokens.
  const bool lengths = scaled || view.panel == "extend";
  if (lengths) {
    linked.model.trained_context = whole("trained");
    linked.model.context = whole(scaled ? "target" : "trained");
  }
  linked.length =
      lengths ? whole("target") : std::max({whole("length"), whole("m") + 1, whole("n") + 1});
  LayerGroup group;
  group.layers = {0};
  group.geometry.head_dim = group.geometry.width = whole("d");
  group.geometry.heads = group.geometry.kv_heads = whole("heads");
  group.geometry.grid_height = whole("tall");
  group.geometry.grid_width = whole("wide");
  group.schemes = {std::move(scheme)};
  linked.model.groups = {std::move(group)};
  return linked;
}

std::string link_page(const ReadLink& read, const Terminal& term) {
  const View& view = read.view;
  struct Row {
    std::string name, value, doc;
  };
  std::vector<Row> rows;
  for (const std::string& key : read.stated) {
    const LinkField& field = link_fields()[*find_link_field(key)];
    std::string value = view[key];
    if (field.kind == LinkKind::boolean) value = value == "1" ? "yes" : "no";
    if (field.kind == LinkKind::number && field.least >= 0 && field.most >= 10000)
      value = grouped(static_cast<std::int64_t>(view.number(key)));
    if (!field.unit.empty()) value += " " + std::string(field.unit);
    rows.push_back({key, value, std::string(field.doc)});
  }
  const auto settings = [&](const char* group, const std::vector<LinkSetting>& list,
                            std::span<const SchemeInfo> infos, std::string_view of) {
    for (const LinkSetting& setting : list) {
      const FieldInfo* field = nullptr;
      for (const SchemeInfo& candidate : infos)
        if (candidate.name == of) field = find_field(candidate, setting.name);
      rows.push_back({group + setting.name, setting.value, field ? std::string(field->doc) : ""});
    }
  };
  settings("scheme.", view.scheme, all_schemes(), view["scheme"]);
  settings("scaling.", view.scaling, all_scalings(), view["scaling"]);
  constexpr std::size_t most_rows = 64, widest_name = 40, widest_value = 32;
  const std::size_t hidden = rows.size() - std::min(rows.size(), most_rows);
  rows.resize(rows.size() - hidden);

  std::size_t name_width = 0, value_width = 0;
  for (Row& row : rows) {
    row.name = cut(row.name, widest_name);
    row.value = cut(row.value, widest_value);
    name_width = std::max(name_width, columns(row.name));
    value_width = std::max(value_width, columns(row.value));
  }
  std::string out = fmt::format("{} of the playground, link version {}\n",
                                term.bold("Panel " + view.panel), link_version());
  for (const Row& row : rows) {
    const std::size_t margin = name_width + value_width + 6;
    std::string line = "  " + term.blue(padded(row.name, name_width)) + "  " +
                       (row.doc.empty() ? row.value
                                        : padded(row.value, value_width) + "  " +
                                              term.dim(wrapped(row.doc, margin, margin)));
    out += line + "\n";
  }
  if (hidden > 0) out += fmt::format("  … and {} more\n", hidden);
  out += fmt::format("{} {} keys have their defaults; posenc link --help lists them.\n",
                     rows.empty() ? "All" : "The other", link_fields().size() - read.stated.size());
  for (const std::string& note : read.notes)
    out += term.yellow("note") + "  " + wrapped(note, 6, 6) + "\n";
  return out;
}

}  // namespace posenc::cli
