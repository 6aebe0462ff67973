// posenc lab shift: the same text far out, and what the arithmetic of angles makes of it.
#include "evidence/lab/model/shift.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/commands/lab.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_shift(CLI::App& app) {
  struct ShiftFlags {
    std::int64_t tokens = 512;
    std::vector<std::int64_t> at = {0, 131072, 1000000};
    std::vector<std::string> angles = {"exact", "hf_float", "ggml_float"};
  };
  auto real = std::make_shared<RealModelFlags>();
  auto flags = std::make_shared<ShiftFlags>();
  add_real_model(app, real);
  app.add_option("--tokens", flags->tokens, "Tokens of the text to run")->transform(token_count());
  app.add_option("--at", flags->at, "Positions of the first token (0,131072,1000000)")
      ->delimiter(',')
      ->transform(position_count());
  app.add_option("--angles", flags->angles, "How angles are formed")
      ->delimiter(',')
      ->check(CLI::IsMember({"exact", "hf_float", "ggml_float"}));
  app.footer(
      "RoPE's scores depend on distances alone: a text that stands at 1,000,000 has the losses it "
      "has at 0. Exact "
      "angles\n"
      "keep that to the rounding of float; engines that form position·frequency in float do not, "
      "token by token, "
      "while\n"
      "the mean hardly moves.\n\n"
      "Examples:\n"
      "  posenc lab shift smollm2.gguf book.txt\n"
      "  posenc lab shift smollm2.gguf book.txt --tokens 2048 --at 0,8192,16000000 --json");
  return [real, flags, &app]() -> Expected<int> {
    POSENC_TRY(model, real_model(*real));
    if (flags->tokens < 2 || flags->tokens > std::ssize(model.tokens))
      return fail("--tokens", "must be from 2 to what the text has", std::to_string(flags->tokens),
                  "the text has " + grouped(std::ssize(model.tokens)));
    model.tokens.resize(static_cast<std::size_t>(flags->tokens));
    std::vector<Angles> angles;
    for (const std::string& text : flags->angles)
      for (const Angles known : {Angles::exact, Angles::hf_float, Angles::ggml_float})
        if (name(known) == text) angles.push_back(known);
    POSENC_TRY(rows, lab::shifted_losses(model.llama, model.tokens, angles, flags->at));
    if (real->json) {
      std::string list;
      for (const lab::ShiftedLoss& row : rows)
        list += fmt::format("{}{{\"angles\":{},\"first\":{},\"mean\":{},\"rms\":{},\"most\":{}}}",
                            list.empty() ? "" : ",", json_string(name(row.angles)), row.first,
                            json_number(row.mean, "{:.3e}"), json_number(row.rms, "{:.3e}"),
                            json_number(row.most, "{:.3e}"));
      write_out("{{\"tokens\":{},\"rows\":[{}]}}\n", flags->tokens, list);
      return 0;
    }
    const Terminal term = terminal(no_color(app));
    write_out("{}: losses of {} tokens minus those of exact angles at position 0, nats\n\n",
              term.bold(model.llama.about().name), grouped(flags->tokens));
    write_out("{}\n", term.bold(fmt::format("{:<12}{:>14}{:>14}{:>14}{:>14}", "angles",
                                            "first token at", "mean", "rms", "most")));
    for (const lab::ShiftedLoss& row : rows)
      write_out("{:<12}{:>14}{:>14.6f}{:>14.6f}{:>14.6f}\n", name(row.angles), grouped(row.first),
                row.mean, row.rms, row.most);
    return 0;
  };
}

}  // namespace

extern const Command lab_shift{"shift", "the same text far out: what float angles do to its losses",
                               define_shift};

}  // namespace posenc::cli
