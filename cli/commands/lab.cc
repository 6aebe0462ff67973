// posenc lab KIND: the table of kinds, and what those that run a real model have in common.
#include "cli/commands/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {

// Each in a file lab_NAME.cc; waves and watch in lab_heads.cc, collect in lab_report.cc, run and
// again in lab_cells.cc.
extern const Command lab_again, lab_base, lab_cells, lab_collect, lab_dump, lab_perplexity,
    lab_picture, lab_report, lab_reuse, lab_run, lab_say, lab_shift, lab_tokens, lab_watch,
    lab_waves;

namespace {

// The table is filled when first asked for: the order in which other files' constants are made is
// not known.
std::span<const Command> lab_kinds() {
  static const std::array kinds{lab_perplexity, lab_picture, lab_shift,  lab_reuse,   lab_waves,
                                lab_watch,      lab_dump,    lab_tokens, lab_base,    lab_cells,
                                lab_run,        lab_say,     lab_again,  lab_collect, lab_report};
  return kinds;
}

Run define_lab(CLI::App& app) {
  std::string text = "Kinds:\n";
  for (const Command& kind : lab_kinds())
    text += fmt::format("  {:<13}{}\n", kind.name, kind.about);
  app.footer(text +
             "\n`posenc lab KIND --help` shows a kind's flags. MODEL is a GGUF of the Llama "
             "family; `make models` "
             "fetches one.\n"
             "Matrix products are OpenBLAS's (Debian: libopenblas0-pthread).\n\n"
             "Examples:\n"
             "  posenc lab perplexity model.gguf book.txt --scalings none,yarn,dynamic --factor 2 "
             "--length 16k\n"
             "  posenc lab shift model.gguf book.txt --at 0,1e6");
  return [&app]() -> Expected<int> {
    const Terminal term = terminal(no_color(app));
    for (const Command& kind : lab_kinds())
      write_out("{}  {}\n", term.bold(padded(kind.name, 12)), kind.about);
    write_out("\nposenc lab KIND --help shows a kind's flags.\n");
    return 0;
  };
}

}  // namespace

void add_text_of_model(CLI::App& app, const std::shared_ptr<RealModelFlags>& flags) {
  app.add_option("MODEL", flags->model,
                 "A GGUF file of the Llama family, or a folder, with its tokenizer")
      ->type_name("MODEL")
      ->required();
  app.add_option("TEXT", flags->text, "A text file, - for standard input")
      ->type_name("TEXT")
      ->required();
  app.add_flag("--json", flags->json)->description("All of it as JSON (docs/json.md)");
}

void add_real_model(CLI::App& app, const std::shared_ptr<RealModelFlags>& flags) {
  add_text_of_model(app, flags);
  app.add_option("--skip", flags->skip, "Tokens of the text to pass over first")
      ->transform(position_count());
  app.add_option("--threads", flags->threads, "Threads; default: as many as there are processors")
      ->check(CLI::Range(1, 1024))
      ->default_str("");
}

Expected<ReadText> read_text(const RealModelFlags& flags) {
  constexpr std::size_t longest_text = std::size_t{1} << 30;
  POSENC_TRY(text, named_text(flags.text, longest_text));
  POSENC_TRY(tokenizer, lab::Tokenizer::read(flags.model));
  std::vector<std::int32_t> tokens = tokenizer.encode(text);
  return ReadText{std::move(tokenizer), std::move(tokens)};
}

Expected<RealModel> real_model(const RealModelFlags& flags) {
  POSENC_TRY(text, read_text(flags));
  std::vector<std::int32_t>& tokens = text.tokens;
  if (tokens.empty())
    return fail("TEXT", "must have tokens", flags.text + " with none", "give a text");
  if (flags.skip >= std::ssize(tokens))
    return fail("--skip", "must leave tokens of the text",
                fmt::format("{} of {}", flags.skip, tokens.size()), "skip fewer");
  tokens.erase(tokens.begin(), tokens.begin() + flags.skip);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  POSENC_TRY(llama,
             lab::Llama::read(flags.model, {flags.threads > 0 ? flags.threads : processors}));
  return RealModel{std::move(llama), std::move(tokens)};
}

extern const Command lab_command{
    "lab", "what only a real model shows: loss by position, shifts, waves in use", define_lab,
    lab_kinds};

}  // namespace posenc::cli
