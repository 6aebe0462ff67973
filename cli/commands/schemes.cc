#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/content.h"
#include "posenc/explain.h"
#include "posenc/model.h"
#include "posenc/schemes.h"

namespace posenc::cli {
namespace {

std::string kind(const FieldInfo& field) {
  switch (field.kind) {
    case FieldKind::boolean: return "true or false";
    case FieldKind::integer: return "integer";
    case FieldKind::number: return "number";
    case FieldKind::choice: return fmt::format("{}", fmt::join(field.choices, "|"));
    case FieldKind::numbers: return "numbers";
    case FieldKind::integers: return "integers";
  }
  return {};
}

std::string default_of(const FieldInfo& field) {
  if (field.required) return "required";
  struct Print {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(const std::vector<double>& values) const {
      return fmt::format("[{}]", fmt::join(values, ", "));
    }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
  };
  return std::visit(Print{}, field.default_value);
}

void print_list(const Terminal& term, const char* title, std::span<const SchemeInfo> list) {
  write_out("{}\n", term.bold(title));
  for (const SchemeInfo& scheme : list)
    write_out("  {}  {}  {}\n", term.blue(padded(scheme.name, 14)), padded(scheme.title, 48),
              term.dim(scheme.paper.empty() ? "" : "arXiv " + std::string(scheme.paper)));
}

void print_one(const Terminal& term, const SchemeInfo& scheme) {
  write_out("{}  {}\n", term.bold(scheme.name), scheme.title);
  write_out("  {}\n", wrapped(scheme.formula, 2, 2));
  if (!scheme.paper.empty()) write_out("  https://arxiv.org/abs/{}\n", scheme.paper);
  if (!scheme.aliases.empty()) write_out("  also named {}\n", fmt::join(scheme.aliases, ", "));
  if (scheme.fields.empty() && scheme.tables.empty()) write_out("  no fields\n");
  for (const FieldInfo& field : scheme.fields) {
    std::string doc(field.doc);
    if (!field.aliases.empty()) doc += fmt::format(" (also {})", fmt::join(field.aliases, ", "));
    if (!field.unit.empty()) doc += fmt::format(" [{}]", field.unit);
    write_out("    {}  {}  {}\n", term.blue(padded(field.name, 32)), padded(default_of(field), 11),
              term.dim(kind(field)));
    write_out("        {}\n", wrapped(doc, 8, 8));
  }
  for (const TableInfo& table : scheme.tables) {
    write_out("    {}  {}  {}\n", term.blue(padded(table.name, 32)), padded("", 11),
              term.dim("a tensor"));
    write_out("        {}\n", wrapped(std::string(table.doc), 8, 8));
  }
}

// Bundled models with a layer that has the scheme, or rotates by the scaling.
std::vector<std::string_view> models_with(std::string_view name) {
  std::vector<std::string_view> found;
  for (const BundledModel& bundled : bundled_models()) {
    const Expected<std::string_view> text = bundled_config(bundled.name);
    const Expected<Model> model = text ? read_config(*text, bundled.name) : fail("models", "none");
    const auto has = [&](const Scheme& scheme) {
      const Rope* const rope = std::get_if<Rope>(&scheme);
      return info(scheme).name == name || (rope && info(rope->scaling).name == name);
    };
    const bool uses = model && std::ranges::any_of(model->groups, [&](const LayerGroup& group) {
                        return std::ranges::any_of(group.schemes, has);
                      });
    if (uses) found.push_back(bundled.name);
  }
  return found;
}

void print_models(const Terminal& term, std::string_view name) {
  const std::vector<std::string_view> models = models_with(name);
  if (models.empty()) return;
  write_out("\n{}\n  {}\n", term.bold("Bundled models that use it: posenc explain NAME"),
            wrapped(fmt::format("{}", fmt::join(models, ", ")), 2, 2));
}

Run define_schemes(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>();
  CLI::Option* one = app.add_option("NAME", *name, "Show this scheme or scaling with its fields")
                         ->type_name("ENCODING");
  app.add_flag("--json", *json)
      ->description("All of them as JSON: name, kind, title, formula, paper, fields (docs/json.md)")
      ->excludes(one);
  app.footer(
      "Examples:\n"
      "  posenc schemes          # list them\n"
      "  posenc schemes rope     # one with its formula, paper and fields\n"
      "  posenc schemes yarn     # a scaling of RoPE\n"
      "  posenc schemes cope     # a scheme that reads the content\n"
      "  posenc schemes --json | jq '.[] | select(.kind == \"scaling\").name'");
  return [name, json, &app]() -> Expected<int> {
    if (*json) {
      write_out("{}\n", scheme_list_to_json());
      return 0;
    }
    const Terminal term = terminal(no_color(app));
    if (name->empty()) {
      print_list(term, "Schemes", all_schemes());
      print_list(term, "Scalings of RoPE", all_scalings());
      print_list(term, "Schemes that read the content", all_content_schemes());
      return 0;
    }
    // A name before another's alias.
    for (const bool by_alias : {false, true})
      for (const auto list : {all_schemes(), all_scalings(), all_content_schemes()})
        for (const SchemeInfo& known : list) {
          const bool is = by_alias ? std::ranges::find(known.aliases, *name) != known.aliases.end()
                                   : known.name == *name;
          if (!is) continue;
          print_one(term, known);
          print_models(term, known.name);
          return 0;
        }
    return fail("schemes", "no such scheme or scaling", "'" + *name + "'",
                "posenc schemes lists them");
  };
}

}  // namespace

extern const Command schemes_command{"schemes", "every scheme and scaling: formula, paper, fields",
                                     define_schemes};

}  // namespace posenc::cli
