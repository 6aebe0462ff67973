#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/manual.h"
#include "cli/pages/terminal.h"
#include "cli/playground/explain_link.h"
#include "cli/playground/link.h"
#include "cli/playground/link_fields.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct LinkFlags {
  std::string panel, model, stack, base = "http://127.0.0.1:8137/";
  std::optional<std::int64_t> layer;
  bool fragment = false, json = false;
  std::vector<CLI::Option*> keys;                 // as link_fields() are
  std::map<std::string, CLI::Option*> of_scheme;  // by spelling, or group.NAME
};

std::string about(const LinkField& field) {
  const std::string range = range_of(field);
  return std::string(field.doc) + (range.empty() ? "" : ": " + range);
}

// The view being asked for: the link's own keys, then the scheme's fields.
class Asked {
 public:
  explicit Asked(const LinkFlags& flags) : flags_(flags) {}

  Expected<View> view() {
    POSENC_CHECK(take_panel());
    if (!flags_.model.empty()) POSENC_CHECK(take_model());
    POSENC_CHECK(take_keys());
    if (flags_.model.empty()) POSENC_CHECK(take_scheme());
    write_settings();
    return std::move(view_);
  }

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Expected<void> take_panel() {
    const std::vector<std::string_view> panels = link_panels();
    std::string panel = flags_.panel;
    if (panel.empty() && !flags_.model.empty()) panel = "extend";
    if (std::find(panels.begin(), panels.end(), panel) == panels.end())
      return fail("link", panel.empty() ? "needs a panel" : "there is no such panel", panel,
                  panel.empty() ? suggestion("", panels) : suggestion(panel, panels));
    view_.panel = panel;
    return {};
  }

  // A key by what the model says; beyond the link's range a note tells, for the scheme's own field
  // holds it.
  void take_of_model(std::string_view key, double value, std::string_view what) {
    if (value <= 0) return;
    const std::size_t at = *find_link_field(key);
    const std::string text = script_number(value);
    if (Expected<std::string> good = asked_value(link_fields()[at], text, key)) {
      view_.values[at] = *good;
    } else {
      notes_.push_back(fmt::format("{} of the model, {}, is left out: a link holds {}", what, text,
                                   range_of(link_fields()[at])));
    }
  }

  Expected<void> take_model() {
    for (const auto& [spelling, option] : flags_.of_scheme)
      if (option->count() > 0)
        return fail("link", "a model brings its own fields", "--" + spelling,
                    "drop the flag, or say --scheme instead of --model");
    POSENC_TRY(model, named_model(flags_.model));
    POSENC_TRY(group, chosen_group(model, flags_.stack, flags_.layer, {"link", flags_.model}));
    scheme_ = group.schemes.empty() ? Scheme(NoPe{}) : group.schemes.front();
    const auto real = [](std::int64_t number) { return static_cast<double>(number); };
    const bool adds = std::holds_alternative<Sinusoidal>(scheme_) ||
                      std::holds_alternative<Learned>(scheme_) || group.geometry.head_dim == 0;
    view_.values[*find_link_field("scheme")] = info(scheme_).name;
    if (const Rope* rope = std::get_if<Rope>(&scheme_))
      view_.values[*find_link_field("scaling")] = info(rope->scaling).name;
    take_of_model("d", real(adds ? group.geometry.width : group.geometry.head_dim),
                  adds ? "width" : "head_dim");
    take_of_model("heads", real(group.geometry.heads), "heads");
    take_of_model("trained", real(model.trained_context), "trained context");
    // Where no scaling stretches it, the panel shows what lies beyond.
    const std::int64_t beyond = model.trained_context <= (std::int64_t{1} << 40)
                                    ? 4 * model.trained_context
                                    : model.trained_context;
    take_of_model("target", real(model.context > model.trained_context ? model.context : beyond),
                  "context");
    return {};
  }

  Expected<void> take_keys() {
    for (std::size_t i = 0; i < flags_.keys.size(); i++) {
      const CLI::Option* option = flags_.keys[i];
      if (option->count() == 0) continue;
      const LinkField& field = link_fields()[i];
      if (!flags_.model.empty() && (field.key == "scheme" || field.key == "scaling"))
        return fail("link", "a model brings its own scheme", "--" + std::string(field.key),
                    "drop the flag or --model");
      const std::string text = option->results().empty() ? "1" : option->results().back();
      POSENC_TRY(value, asked_value(field, text, "--" + std::string(field.key)));
      view_.values[i] = std::move(value);
    }
    return {};
  }

  bool is_asked(std::string_view key) const {
    return flags_.keys[*find_link_field(key)]->count() > 0;
  }

  Expected<void> set(const std::string& spelling, std::string_view name, const std::string& text) {
    Rope* rope = std::get_if<Rope>(&scheme_);
    const bool scaling_only = spelling.starts_with("scaling.");
    const FieldInfo* field = nullptr;
    bool of_scaling = false;
    if (rope && !spelling.starts_with("scheme.")) {
      field = find_field(info(rope->scaling), name);
      of_scaling = field != nullptr;
    }
    if (!field && !scaling_only) field = find_field(info(scheme_), name);
    if (!field) {
      const std::string of(rope && scaling_only ? info(rope->scaling).name : info(scheme_).name);
      return fail("link", of + " has no such field", "--" + spelling,
                  "posenc schemes " + of + " lists its fields");
    }
    POSENC_TRY(value, field_value(*field, text, "--" + spelling));
    given_.push_back(field);
    (of_scaling ? of_scaling_ : of_scheme_).push_back({field->name, value});
    return {};
  }

  Expected<void> take_scheme() {
    POSENC_TRY(made, make_scheme(view_["scheme"]));
    scheme_ = std::move(made);
    Rope* rope = std::get_if<Rope>(&scheme_);
    if (!rope && !view_.is_default("scaling"))
      return fail("--scaling", "only RoPE is scaled", view_["scheme"], "drop the flag");
    if (rope) POSENC_CHECK(set_field(scheme_, "rope_type", FieldValue(view_["scaling"])));
    // Said once, it holds for the link and for the scheme.
    for (const std::string& key : link_rules().shared)
      if (is_asked(key) && find_field(info(scheme_), key)) POSENC_CHECK(set(key, key, view_[key]));
    for (const auto& [spelling, option] : flags_.of_scheme) {
      if (option->count() == 0) continue;
      const std::string name = spelling.substr(spelling.find('.') + 1);
      const std::string text = option->results().empty() ? "true" : option->results().back();
      POSENC_CHECK(set(spelling, name, text));
    }
    if (Expected<void> good = set_fields(scheme_, of_scheme_); !good || !rope) return good;
    return set_fields(rope->scaling, of_scaling_);
  }

  static std::string text_of(const FieldValue& value) {
    struct Text {
      std::string operator()(std::monostate) const { return "null"; }
      std::string operator()(bool x) const { return x ? "true" : "false"; }
      std::string operator()(const std::string& x) const { return x; }
      std::string operator()(std::int64_t x) const { return std::to_string(x); }
      std::string operator()(double x) const { return script_number(x); }
      std::string operator()(const std::vector<double>& list) const {
        std::string out;
        for (std::size_t i = 0; i < list.size(); i++)
          out += (i == 0 ? "" : ",") + script_number(list[i]);
        return out;
      }
    };
    return std::visit(Text{}, value);
  }

  // What is not at its default, and what has none that one could mean.
  template <class S>
  std::vector<LinkSetting> changed(const S& of) const {
    std::vector<LinkSetting> out;
    const std::vector<FieldSetting> all = settings(of);
    const std::vector<FieldInfo>& fields = info(of).fields;
    for (std::size_t i = 0; i < all.size(); i++)
      if (all[i].value != fields[i].default_value || (fields[i].required && is_said(&fields[i])))
        out.push_back({std::string(all[i].name), text_of(all[i].value)});
    return out;
  }

  bool is_said(const FieldInfo* field) const {
    return !flags_.model.empty() || std::find(given_.begin(), given_.end(), field) != given_.end();
  }

  void write_settings() {
    view_.scheme = changed(scheme_);
    if (const Rope* rope = std::get_if<Rope>(&scheme_)) view_.scaling = changed(rope->scaling);
    // What the link has a key for is there alone, where its slider moves it; the scheme's own field
    // overrides the key, for values that the key cannot hold.
    for (const std::string& key : link_rules().shared) {
      const FieldInfo* field = find_field(info(scheme_), key);
      if (!field) continue;
      const std::size_t at = *find_link_field(key);
      for (const LinkSetting& setting : view_.scheme) {
        if (setting.name != field->name) continue;
        const Expected<std::string> value = asked_value(link_fields()[at], setting.value, key);
        if (!value || *value == default_of(link_fields()[at])) break;
        view_.values[at] = *value;
        view_.scheme.erase(view_.scheme.begin() + (&setting - view_.scheme.data()));
        break;
      }
    }
  }

  const LinkFlags& flags_;
  View view_ = default_view();
  Scheme scheme_;
  std::vector<const FieldInfo*> given_;
  std::vector<FieldSetting> of_scheme_, of_scaling_;
  std::vector<std::string> notes_;
};

Run define_link(CLI::App& app) {
  auto flags = std::make_shared<LinkFlags>();
  const std::string panels = fmt::format("{}", fmt::join(link_panels(), ", "));
  app.add_option("PANEL", flags->panel, panels + "; with --model by default extend")
      ->type_name(fmt::format("{{{}}}", fmt::join(link_panels(), ",")));
  app.add_option(
         "--model", flags->model,
         "A model whose scheme, scaling and lengths the link takes: a config.json, its folder, "
         "or a bundled name (posenc models)")
      ->type_name("MODEL");
  app.add_option("--layer", flags->layer, "Layer of the model; needed where layers differ");
  app.add_option("--stack", flags->stack, "Stack of the model")
      ->type_name("{text,encoder,decoder,vision,audio}");
  app.add_option("--page,--base", flags->base, "The page that the link opens")->type_name("URL");
  CLI::Option* fragment_flag =
      app.add_flag("--fragment", flags->fragment)->description("Only #/PANEL?…, without the page");
  app.add_flag("--json", flags->json)
      ->description("The link with all that it holds as JSON")
      ->excludes(fragment_flag);
  for (const LinkField& field : link_fields()) {
    std::string names = "--" + std::string(field.key);
    if (field.key == "d") names += ",--head_dim,--width";
    if (field.key == "scaling") names = "--rope_type," + names;
    CLI::Option* option = field.kind == LinkKind::boolean
                              ? app.add_flag(names)
                              : app.add_option(names)->default_str(default_of(field));
    flags->keys.push_back(option->description(about(field))->group(std::string(view_group)));
  }
  const auto keep = [&](const std::string& spelling, bool is_switch, const std::string& doc,
                        const std::string& group) {
    if (app.get_option_no_throw("--" + spelling)) return;
    CLI::Option* option =
        is_switch ? app.add_flag("--" + spelling) : app.add_option("--" + spelling);
    flags->of_scheme[spelling] = option->description(doc)->group(group);
  };
  for (const auto& [spelling, flag] : field_flags()) {
    keep(spelling, flag.is_switch, "[" + flag.schemes + "] " + flag.doc,
         flag.canonical ? std::string(fields_group) : "");
    // Where a key of the link has the same name.
    for (const char* prefix : {"scheme.", "scaling."})
      keep(prefix + spelling, flag.is_switch, "", "");
  }
  app.footer(
      "A scheme's field whose name is also a key of the link is --scheme.NAME or --scaling.NAME.\n"
      "Examples:\n"
      "  posenc link rope --m 11 --n 4 --rope_theta 500000\n"
      "  posenc link extend --rope_type yarn --factor 4 --trained 32768 --target 131072\n"
      "  posenc link --model llama-3.1-8b\n"
      "  posenc link compare --with alibi,t5 --fragment\n"
      "  posenc link kv --policy unrotated --page https://example.org/posenc.html");
  return [flags]() -> Expected<int> {
    if (flags->base.contains('#'))
      return fail("--page", "must be a page without #", flags->base, "the link brings its own");
    Asked asked(*flags);
    POSENC_TRY(view, asked.view());
    const std::string fragment = format_link(view);
    if (flags->json)
      write_out("{{\"link\":{},\"fragment\":{},{}}}\n", json_string(flags->base + fragment),
                json_string(fragment), view_json(view));
    else
      write_out("{}\n", flags->fragment ? fragment : flags->base + fragment);
    for (const std::string& note : asked.notes()) write_error("posenc: {}\n", note);
    return 0;
  };
}

}  // namespace

extern const Command link_command{"link", "the playground's link of a view, or of a model's scheme",
                                  define_link};

}  // namespace posenc::cli
