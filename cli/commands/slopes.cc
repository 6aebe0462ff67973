#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_slopes(CLI::App& app) {
  struct Options {
    std::int64_t heads = 0;
    double max_bias = 8;
    std::string rounding = "exact";
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--heads", options->heads, "Query heads")->required()->default_str("");
  app.add_option("--max_bias,--alibi_bias_max,--bias_max,--max_alibi_bias", options->max_bias,
                 "The last slope is 2^-max");
  app.add_option("--rounding", options->rounding, "bfloat16: rounded as Falcon keeps them")
      ->check(CLI::IsMember({"exact", "bfloat16"}));
  app.add_flag("--json", options->json, "{\"slopes\":[...]}");
  app.footer(
      "Each head h subtracts slope[h] x distance from its logits.\n\n"
      "Examples:\n"
      "  posenc slopes --heads 12\n"
      "  posenc slopes --heads 32 --max_bias 8 --json\n"
      "  posenc slopes --heads 71 --rounding bfloat16 --json");
  return [options]() -> Expected<int> {
    POSENC_TRY(slopes, alibi_slopes(options->heads, options->max_bias,
                                    options->rounding == "exact" ? SlopeRounding::exact
                                                                 : SlopeRounding::bfloat16));
    if (options->json) {
      write_out("{{\"slopes\":{}}}\n", json_numbers(slopes));
    } else {
      for (std::size_t h = 0; h < slopes.size(); h++) write_out("{:>4}  {}\n", h, slopes[h]);
    }
    return 0;
  };
}

}  // namespace

extern const Command slopes_command{"slopes", "ALiBi's slopes", define_slopes};

}  // namespace posenc::cli
