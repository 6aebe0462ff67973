// posenc diff: where two models treat position differently.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"

namespace posenc::cli {
namespace {

std::string about(const Model& model) {
  std::string text = model.family;
  if (!model.files.empty())
    text += (text.empty() ? "" : " · ") + std::string(name(model.files.front().format));
  if (!model.origin.empty()) text += " · " + model.origin;
  return text;
}

std::string page(const Model& a, const Model& b, const std::vector<Finding>& findings,
                 const Terminal& term) {
  std::string out;
  for (const auto& [label, model] : {std::pair("expected", &a), std::pair("found", &b)})
    out += term.dim(padded(label, 10)) + term.bold(model->name) + "  " +
           term.dim(cut(about(*model),
                        page_width() - 12 - std::min<std::size_t>(columns(model->name), 40))) +
           "\n";
  return out + "\n" + findings_page(findings, term, "Both treat position alike.");
}

Run define_diff(CLI::App& app) {
  struct Options {
    std::string expected, found;
    std::int64_t at = 0;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  constexpr const char* kinds =
      "a config.json, params.json or .gguf file, - for standard input, a folder, or a bundled name";
  app.add_option("EXPECTED", options->expected, fmt::format("The model as it should be: {}", kinds))
      ->type_name("MODEL")
      ->required();
  app.add_option("FOUND", options->found, "What became of it, of the same kinds")
      ->type_name("MODEL")
      ->required();
  app.add_option("--at,--length", options->at,
                 "Compare for positions 0 to LENGTH-1 (131072, 128k); default: the longer context")
      ->transform(token_count())
      ->default_str("");
  app.add_flag("--json", options->json)->description("The findings as JSON (docs/doctor.md)");
  app.footer(
      "For a model before and after conversion, a target and its draft, an adapter and its base. "
      "What is compared\n"
      "is what the layers compute, not how a file spells it. Exit code 1: something differs that "
      "position goes by.\n\n"
      "Examples:\n"
      "  posenc diff ./llama-3.1-8b llama-3.1-8b-Q4_K_M.gguf\n"
      "  posenc diff target/config.json draft/config.json\n"
      "  posenc diff qwen2.5-7b-yarn4 ./my-checkpoint --at 128k --json | jq '.findings[].code'");
  return [options, &app]() -> Expected<int> {
    const Expected<Model> expected = named_model(options->expected);
    if (!expected) return std::unexpected(expected.error());
    const Expected<Model> found = named_model(options->found);
    if (!found) return std::unexpected(found.error());
    const Expected<std::vector<Finding>> findings = differences(*expected, *found, options->at);
    if (!findings) return std::unexpected(findings.error());
    const bool equal = std::ranges::all_of(
        *findings, [](const Finding& one) { return one.severity == Severity::note; });
    if (options->json)
      fmt::print("{{\"equal\":{},\"expected\":{},\"found\":{},\"findings\":{}}}\n", equal,
                 json_string(expected->name), json_string(found->name), json(*findings));
    else
      fmt::print("{}", page(*expected, *found, *findings, terminal(no_color(app))));
    return equal ? 0 : 1;
  };
}

}  // namespace

extern const Command diff_command{"diff", "where two models treat position differently",
                                  define_diff};

}  // namespace posenc::cli
