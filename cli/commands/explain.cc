#include "posenc/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/lines.h"
#include "cli/arguments/model.h"
#include "cli/arguments/position.h"
#include "cli/command.h"
#include "cli/pages/explain_page.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "cli/playground/explain_link.h"
#include "cli/playground/link.h"
#include "posenc/reuse.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct Options {
  std::vector<std::string> models;
  Ask ask;
  bool pairs = false, values = false, csv = false, strict = false, json = false;
  bool position_json = false, reuse = false, jsonl = false;
  int threads = 0;
};

// Whether anything that it warns of is more than a note.
bool is_grave(const Explanation& explanation) {
  return std::ranges::any_of(explanation.warnings, [](const Warning& warning) {
    return severity_of(warning) != Severity::note;
  });
}

// "layers 0–31", as the explanation names them.
std::string layers_of(const Explanation& explanation, const ReuseGroup& group) {
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& of = explanation.model.groups[facts.group];
    if (of.stack == group.stack && of.layers == group.layers)
      return facts.heading.substr(0, facts.heading.find(':'));
  }
  return "";
}

std::string reuse_page(const Explanation& explanation, const std::vector<ReuseGroup>& groups,
                       const Terminal& term) {
  std::string out = term.bold(explanation.model.name) + "\n\n";
  for (const ReuseGroup& group : groups) {
    const std::string verdict(name(group.verdict));
    out += fmt::format("  {}  {}\n",
                       group.verdict == Reuse::exact ? term.blue(padded(verdict, 14))
                                                     : term.yellow(padded(verdict, 14)),
                       layers_of(explanation, group));
    out += fmt::format("    {}\n", wrapped(group.why, 4, 4));
    for (const std::string& each : group.moves)
      out += fmt::format("    with them: {}\n", wrapped(each, 4, 15));
  }
  return out;
}

int print(const Explanation& explanation, const Options& options, const Terminal& term) {
  if (options.reuse) {
    const std::vector<ReuseGroup> groups = reuse(explanation.model);
    if (options.json) {
      const std::string json = to_json(explanation);
      write_out("{},\"reuse\":{}}}\n", json.substr(0, json.size() - 1), to_json(groups));
    } else {
      write_out("{}", reuse_page(explanation, groups, term));
    }
  } else if (options.position_json) {
    write_out("{}\n", to_json(position_of(explanation)));
  } else if (options.json) {
    write_out("{}\n", to_json(explanation));
  } else if (options.csv) {
    write_out("{}", csv(explanation));
  } else {
    write_out("{}", page(explanation, {options.pairs, options.values}, term));
  }
  return options.strict && is_grave(explanation) ? 1 : 0;
}

// The values can be told where the plan cannot be made; then something is wrong, and the code is 1.
Expected<int> print_link(const std::string& link, const Options& options, const Terminal& term) {
  POSENC_TRY(read, read_link(link));
  if (options.ask.layer)
    return fail("--layer", "a link shows one scheme and no layers",
                std::to_string(*options.ask.layer), "drop the flag");
  Expected<Linked> linked = linked_model(read.view, read.notes);
  const std::int64_t at = options.ask.at > 0 || !linked ? options.ask.at : linked->length;
  Expected<Explanation> explanation =
      linked ? explain(std::move(linked->model), {.at = at}) : std::unexpected(linked.error());
  // There is no file that should say how long the context is.
  if (explanation && explanation->model.context == 0) explanation->words.clear();
  if (options.csv) {
    if (!explanation) return std::unexpected(explanation.error());
    return print(*explanation, options, term);
  }
  if (options.json) {
    std::string notes;
    for (const std::string& note : read.notes)
      notes += (notes.empty() ? "" : ",") + json_string(note);
    write_out("{{\"link\":{{{},\"notes\":[{}],\"error\":{}}},{}\n", view_json(read.view), notes,
              explanation ? "null" : json_string(explanation.error().message()),
              explanation ? to_json(*explanation).substr(1) : "\"groups\":[]}");
  } else {
    write_out("{}\n", link_page(read, term));
    if (explanation) return print(*explanation, options, term);
    write_out("{}  {}\n", term.yellow("no plan"), wrapped(explanation.error().message(), 9, 9));
  }
  if (!explanation) return 1;
  return options.strict && is_grave(*explanation) ? 1 : 0;
}

Expected<int> print_model(const std::string& name, const Options& options, const Terminal& term) {
  if (is_link(name)) return print_link(name, options, term);
  POSENC_TRY(position, named_position(name));
  if (position)
    return fail(name, "has plans, and nothing to explain them by", "a position.json",
                "compare it with a model: posenc diff MODEL " + name);
  POSENC_TRY(model, named_model(name));
  POSENC_TRY(explanation, explain(std::move(model), options.ask));
  return print(explanation, options, term);
}

// {"line", "file", …} with what --json prints behind, or "error".
LineAnswer of_line(const Line& line, const Ask& ask) {
  const bool is_text = line.text.starts_with('{');
  const std::string file(is_text ? std::string_view() : line.text);
  const std::string head =
      fmt::format("{{\"line\":{},\"file\":{},", line.number, is_text ? "null" : json_string(file));
  Expected<Model> model = is_text       ? read_model_bytes(std::as_bytes(std::span(line.text)),
                                                           fmt::format("line {}", line.number))
                          : file == "-" ? fail("explain", "a line must be a model", file,
                                               "write the text of a configuration, or a path")
                                        : named_model(file);
  const Expected<Explanation> explanation =
      model ? explain(*std::move(model), ask) : std::unexpected(model.error());
  if (!explanation)
    return {head + "\"error\":" + json_string(explanation.error().message()) + "}", true};
  return {head + to_json(*explanation).substr(1)};
}

Expected<int> stream(const std::vector<std::string>& sources, const Options& options) {
  bool bad = false;
  for (const std::string& source : sources) {
    POSENC_TRY(answered,
               answer_lines(
                   source, "explain", options.threads,
                   [&](const Line& line) { return of_line(line, options.ask); },
                   [&](const Line& line) -> LineAnswer {
                     return {fmt::format("{{\"line\":{},\"file\":null,\"error\":\"a line must "
                                         "have 16 MiB or less\"}}",
                                         line.number),
                             true};
                   }));
    bad |= answered.bad > 0;
  }
  return bad ? 1 : 0;
}

Run define_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->models,
                 "A config.json, params.json or .gguf file, a .safetensors of pictures or videos, "
                 "- for one on standard input, the "
                 "model's folder, a bundled name (posenc models), or a link of the playground; "
                 "several are explained one after another")
      ->type_name("MODEL")
      ->required();
  app.add_option("--at,--length", options->ask.at,
                 "Explain for positions 0 to LENGTH-1 (131072, 128k, 1e6); default: the model as "
                 "constructed")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--layer", options->ask.layer, "Only what holds for this layer");
  app.add_flag("--pairs", options->pairs, "The whole table of pairs");
  app.add_flag("--values", options->values, "A line for each value, with the key it came from");
  CLI::Option* csv_flag = app.add_flag("--csv", options->csv)->description("The pairs as CSV");
  app.add_flag("--json", options->json)
      ->description("All of it as JSON (docs/json.md), a line a model")
      ->excludes(csv_flag);
  app.add_flag("--position_json", options->position_json)
      ->description(
          "What it comes down to, for another program (spec/position.md), a line a model");
  app.add_flag("--reuse", options->reuse)
      ->description(
          "Whether cached keys may be moved to other positions, and what moves with them");
  app.add_flag("--jsonl", options->jsonl)
      ->description(
          "MODEL is a file of lines, or - for standard input: each is a path or the text of a "
          "configuration, and is answered by a line of JSON in its order, on all cores; a broken "
          "one by {\"line\", \"file\", \"error\"}")
      ->excludes(csv_flag);
  app.add_option("--threads", options->threads, "Of --jsonl; default: as many as there are cores")
      ->check(CLI::Range(0, 1024))
      ->default_str("");
  app.add_flag("--strict", options->strict)
      ->description("Exit with 1 if there are warnings (notes are none)");
  app.footer(
      "Examples:\n"
      "  posenc explain llama-3.1-8b\n"
      "  posenc explain ./my-model --at 128k --strict\n"
      "  curl -s https://.../config.json | posenc explain -\n"
      "  posenc explain llama-3.1-8b-Q4_K_M.gguf\n"
      "  posenc explain gemma-3-4b --layer 5 --pairs\n"
      "  posenc explain '#/rope?v=1&m=30&n=4'\n"
      "  posenc explain deepseek-v3 --json | jq '.groups[0].plan.logits'\n"
      "  posenc explain ./my-model --position-json\n"
      "  posenc explain ./my-model --reuse --json | jq '.reuse[].verdict'\n"
      "  zcat configs.jsonl.gz | posenc explain --jsonl - > explained.jsonl");
  return [options, &app]() -> Expected<int> {
    const Terminal term = terminal(no_color(app));
    if (options->jsonl) return stream(options->models, *options);
    if (options->csv && options->models.size() > 1)
      return fail("--csv", "one model makes a table",
                  std::to_string(options->models.size()) + " models", "call posenc once for each");
    int code = 0;
    for (const std::string& name : options->models) {
      if (&name != &options->models.front() && !options->json) write_out("\n");
      POSENC_TRY(printed, print_model(name, *options, term));
      code = std::max(code, printed);
    }
    return code;
  };
}

}  // namespace

extern const Command explain_command{
    "explain", "what a model does about position, in words and numbers", define_explain};

}  // namespace posenc::cli
