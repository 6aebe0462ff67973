#include "cli/pages/terminal.h"
#include "posenc/claims.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/claims_page.h"
#include "cli/pages/progress.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {
Run define_verify(CLI::App& app) {
  struct Options {
    Wanted wanted;
    bool json = false, markdown = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--claim", options->wanted.claim, "One claim in full (4b), or a row of them (4)");
  app.add_option("--text", options->wanted.text, "Only what this text says")
      ->type_name("{S0,S1,S2,S3,S4}");
  app.add_option("--group", options->wanted.group, "Only one subject, by a part of its name");
  CLI::Option* json =
      app.add_flag("--json", options->json)->description("All of it as JSON (docs/json.md)");
  app.add_flag("--markdown", options->markdown)
      ->description("As docs/claims.md, by text")
      ->excludes(json);
  app.footer(
      "What five public introductions to positional encodings claim; each claim is computed anew,\n"
      "in double, and compared with our verdict: true, sloppy, wrong, measured in small (by "
      "training, "
      "docs/lab.md)\n"
      "or not checkable here. Exit code 1 says that a computation does not support its verdict.\n\n"
      "Examples:\n"
      "  posenc verify                 # all of them\n"
      "  posenc verify --claim 4b      # one in full: what holds, formula, paper, how to "
      "reproduce\n"
      "  posenc verify --text S2\n"
      "  posenc verify --group scaling --json | jq '.[].verdict'");
  return [options, &app]() -> Expected<int> {
    POSENC_TRY(claims, chosen(all_claims(), options->wanted));
    std::vector<Verified> results;
    {
      Progress progress("verify", claims.size());
      results = verified(claims, [&](std::size_t at, const Claim& claim) {
        progress.tell(at, fmt::format("{} {}", claim.number(), claim.statement));
      });
    }
    const Terminal term = terminal(no_color(app));
    if (options->json) {
      write_out("{}\n", to_json(results));
    } else if (options->markdown) {
      write_out("{}", to_markdown(results));
    } else if (!options->wanted.claim.empty()) {
      for (const Verified& result : results)
        write_out("{}{}", &result == results.data() ? "" : "\n", in_full(result, term));
    } else {
      write_out("{}", table(results, term));
    }
    return exit_code(results);
  };
}

}  // namespace

extern const Command verify_command{
    "verify", "claims about positional encodings, each computed anew", define_verify};

}  // namespace posenc::cli
