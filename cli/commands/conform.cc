// posenc conform: an engine's answers to the test vectors, judged.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/conform/adapter.h"
#include "cli/conform/judge.h"
#include "cli/conform/unknown.h"
#include "cli/conform/vectors.h"
#include "cli/pages/conform_page.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace conform {
namespace {

struct ConformOptions {
  std::vector<std::string> program;
  std::string vectors, only, junit;
  double timeout = 60;
  bool json = false;
};

// "rotate" or the beginning of a test's name behind it: "rotate/halves".
bool is_asked(const ConformOptions& options, const std::string& operation, const std::string& id) {
  const std::string name = operation + "/" + id;
  return options.only.empty() || options.only == operation || name.starts_with(options.only);
}

Expected<std::vector<JudgedFile>> judged(const ConformOptions& options, const Vectors& vectors,
                                         Adapter& adapter) {
  std::vector<JudgedFile> files;
  std::size_t all = 0, at = 0;
  for (const VectorFile& file : vectors.files) all += file.tests.size();
  Progress progress("conform", all);
  for (const VectorFile& file : vectors.files) {
    std::vector<JudgedTest> tests;
    for (const VectorTest& test : file.tests) {
      progress.tell(at++, file.operation + " " + test.id);
      if (!is_asked(options, file.operation, test.id)) continue;
      POSENC_TRY(answer, adapter.ask(file.operation, test));
      tests.push_back(judge(test, file.of(adapter.dtype), answer));
      if (tests.back().outcome == Outcome::wrong && tests.back().parts.front().shows.empty())
        tests.back().why = said_of_unknown(file.operation, test, answer);
    }
    if (!tests.empty()) files.push_back(judge(file, std::move(tests)));
  }
  if (files.empty())
    return fail("--only", "must be an operation, or the beginning of a test's name behind it",
                options.only, "one of frequencies, cos_sin, rotate, model/llama …");
  return files;
}

Run define_conform(CLI::App& app) {
  auto options = std::make_shared<ConformOptions>();
  app.add_option("PROGRAM", options->program, "An adapter and its arguments, behind --")
      ->required()
      ->type_name("");
  app.add_flag("--json", options->json, "The card as JSON (docs/schemas/conform.schema.json)");
  app.add_option("--junit", options->junit, "Write JUnit's XML to this file, too")
      ->type_name("FILE");
  app.add_option("--only", options->only,
                 "An operation, or the beginning of a test's name behind it: model/llama")
      ->type_name("NAME");
  app.add_option("--vectors", options->vectors, "Vectors of this folder (those of this posenc)")
      ->type_name("FOLDER");
  app.add_option("--timeout", options->timeout, "Seconds that an answer may take")
      ->check(CLI::Range(0.1, 86400.0));
  app.footer(
      "An adapter stands for an engine: it reads a request a line from its standard input and\n"
      "answers with numbers, a line each. docs/conformance.md has the protocol and adapters of a\n"
      "page. A wrong answer is compared with those of known mistakes, so that the card says\n"
      "'you pair neighbours' and not 'differs'.\n"
      "Exit codes: 0 all right but for precision, 1 something is wrong, 2 no answer.\n\n"
      "Examples:\n"
      "  posenc conform -- python3 vectors/adapters/adapter.py\n"
      "  posenc conform --only rotate --json -- ./my_adapter\n"
      "  posenc conform --junit report.xml -- node adapter.mjs");
  return [options, &app]() -> Expected<int> {
    POSENC_TRY(vectors, read_vectors(options->vectors));
    POSENC_TRY(adapter, Adapter::start(options->program, options->timeout));
    POSENC_TRY(files, judged(*options, vectors, adapter));
    const Card card{adapter.name, adapter.version, adapter.dtype, files, &vectors};
    if (!options->junit.empty()) POSENC_CHECK(write_whole(options->junit, {conform_junit(card)}));
    write_out("{}",
              options->json ? conform_json(card) : conform_page(card, terminal(no_color(app))));
    if (adapter.ignored > 0)
      write_error("posenc: {} lines of its output were no answers\n", adapter.ignored);
    return exit_code(card);
  };
}

}  // namespace
}  // namespace conform

extern const Command conform_command{"conform", "an engine's answers to test vectors, judged",
                                     conform::define_conform};

}  // namespace posenc::cli
