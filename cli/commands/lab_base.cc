// posenc lab base: the least base of RoPE for a length.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// What `posenc extend` computes for a model whose heads are so wide.
Expected<std::optional<double>> least_base(std::int64_t head_dim, std::int64_t length) {
  POSENC_TRY(
      model,
      read_config(fmt::format(
          R"({{"model_type": "llama", "hidden_size": {0}, "num_attention_heads": 1, "num_hidden_layers": 1,
          "max_position_embeddings": {1}, "rope_theta": 10000.0}})",
          head_dim, length)));
  POSENC_TRY(plan, extend(model, {.to = length}));
  return plan.least_base;
}

Run define_base(CLI::App& app) {
  struct BaseFlags {
    std::int64_t head_dim = 128;
    std::vector<std::int64_t> lengths = {1024, 4096, 8192, 16384, 32768, 65536, 131072};
    bool json = false;
  };
  auto flags = std::make_shared<BaseFlags>();
  app.add_option("--head_dim", flags->head_dim, "Channels of a head, all of which rotate")
      ->check(CLI::Range(2, 1024))
      ->check(CLI::Validator(
          [](const std::string& text) {
            return std::strtoll(text.c_str(), nullptr, 10) % 2 == 0 ? std::string()
                                                                    : "must be even, got " + text;
          },
          "EVEN"));
  app.add_option("--length", flags->lengths, "Lengths (8192, 128k), separated by commas")
      ->delimiter(',')
      ->transform(token_count());
  app.add_flag("--json", flags->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "The least base for which a key like the query outweighs a random one on average at every "
      "distance below the\n"
      "length (2405.14591): Σ_r cos(m·base^(−2r/d)) ≥ 0. The paper's fit for 128 channels is "
      "0.0424·L^1.628; 64 channels,\n"
      "half as many terms, need 2 to 8 times as much. A bound on what heads can tell apart, not on "
      "the loss.\n\n"
      "Examples:\n"
      "  posenc lab base\n"
      "  posenc lab base --head_dim 64 --length 8192");
  return [flags, &app]() -> Expected<int> {
    const Terminal term = terminal(no_color(app));
    std::string page, rows;
    for (const std::int64_t length : flags->lengths) {
      POSENC_TRY(base, least_base(flags->head_dim, length));
      page += fmt::format("{:>13}{:>16}\n", grouped(length),
                          base ? grouped(static_cast<std::int64_t>(*base)) : "not searched");
      rows += fmt::format("{}{{\"length\":{},\"least_base\":{}}}", rows.empty() ? "" : ",", length,
                          base ? json_number(*base) : "null");
    }
    if (flags->json)
      write_out("{{\"head_dim\":{},\"bases\":[{}]}}\n", flags->head_dim, rows);
    else
      write_out("RoPE's least base for a length, heads of {} channels\n\n{}\n{}", flags->head_dim,
                term.bold(fmt::format("{:>13}{:>16}", "length", "least base")), page);
    return 0;
  };
}

}  // namespace

extern const Command lab_base{"base", "the least base of RoPE for a length", define_base};

}  // namespace posenc::cli
