// posenc lab perplexity: loss by position of a real model, under scalings of its rotation.
#include "lab/model/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/commands/lab.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"

namespace posenc::cli {
namespace {

struct PerplexityFlags {
  std::vector<std::string> scalings = {"none"};
  double factor = 2;
  std::int64_t length = 0, block = 0, windows = 1;
};

// "dynamic:1" has a factor of its own, "yarn" the one that all have; none has none.
Expected<lab::Stretch> stretch_of(const std::string& text, double factor) {
  const std::size_t colon = text.find(':');
  lab::Stretch made{.scaling = text.substr(0, colon), .factor = factor};
  const Expected<Scaling> known = make_scaling(made.scaling);
  if (!known) return std::unexpected(known.error());
  if (std::get_if<Unscaled>(&*known) != nullptr) made = {.scaling = "none", .factor = 1};
  if (colon == std::string::npos) return made;
  try {
    std::size_t used = 0;
    made.factor = std::stod(text.substr(colon + 1), &used);
    if (used == text.size() - colon - 1 && std::isfinite(made.factor) && made.factor > 0)
      return made;
  } catch (const std::exception&) {
  }
  return fail("--scalings", "a factor must be a number above 0", text, "write it like dynamic:2");
}

std::string page(const lab::Perplexity& result, const Terminal& term) {
  constexpr std::size_t rows = 18;
  const auto right = [](const std::string& text, std::size_t column) {
    return std::string(column - std::min(column, columns(text)), ' ') + text;
  };
  const auto width = [](const lab::LossCurve& curve) {
    return std::max<std::size_t>(16, columns(lab::title(curve.stretch)) + 2);
  };
  const auto positions = [](std::int64_t from, std::int64_t to) {
    return padded(grouped(from) + "–" + grouped(to), rows);
  };
  std::string out = fmt::format(
      "{}: nats a token by position, {} of {} tokens{}\n\n", term.bold(result.model),
      result.windows == 1 ? "one context" : fmt::format("{} contexts", result.windows),
      grouped(result.length), result.trained > 0 ? ", trained to " + grouped(result.trained) : "");
  std::string head = padded("positions", rows);
  for (const lab::LossCurve& curve : result.curves)
    head += right(lab::title(curve.stretch), width(curve));
  out += term.bold(head) + "\n";
  const lab::LossCurve& reference = result.curves.front();
  for (std::size_t i = 0; i < reference.blocks.size(); ++i) {
    const lab::LossBlock& block = reference.blocks[i];
    std::string line = positions(block.from, block.to);
    for (const lab::LossCurve& curve : result.curves)
      line += right(fmt::format("{:.3f}", curve.blocks[i].nats), width(curve));
    const bool beyond = result.trained > 0 && block.from >= result.trained;
    out += (beyond ? term.yellow(line) : line) + "\n";
  }
  if (result.curves.size() < 2) return out;
  out += "\n" +
         term.bold(fmt::format("minus {}, with its 95 % interval", lab::title(reference.stretch))) +
         "\n";
  const std::int64_t edge =
      result.trained > 0 && result.trained < result.length ? result.trained : result.length;
  for (const auto& [from, to] :
       {std::pair{std::int64_t{0}, edge}, std::pair{edge, result.length}}) {
    if (from == to) continue;
    std::string line = positions(from, to) + right("", width(reference));
    for (std::size_t i = 1; i < result.curves.size(); ++i) {
      const lab::PairedDifference d =
          lab::paired_difference(reference, result.curves[i], result.length, from, to);
      line += right(d.n < 2 ? fmt::format("{:+.3f}", d.mean)
                            : fmt::format("{:+.3f} ±{:.3f}", d.mean, d.half_width),
                    width(result.curves[i]));
    }
    out += line + "\n";
  }
  return out + "\n" +
         wrapped(
             "Differences are paired token by token and averaged over runs of 128: other texts "
             "shift all columns "
             "alike. One model, one text: nothing here says how another does.",
             0, 0) +
         "\n";
}

Run define_perplexity(CLI::App& app) {
  auto real = std::make_shared<RealModelFlags>();
  auto flags = std::make_shared<PerplexityFlags>();
  add_real_model(app, real);
  app.add_option("--scalings", flags->scalings,
                 "Scalings to compare, the first is the reference: none, linear, ntk, "
                 "ntk_by_parts, yarn, dynamic, "
                 "llama3; dynamic:1 has a factor of its own")
      ->delimiter(',')
      ->type_name("NAME[:FACTOR],…");
  app.add_option("--factor", flags->factor, "s of those that are given none")
      ->check(CLI::PositiveNumber);
  app.add_option("--length", flags->length,
                 "Tokens of a context (16384, 16k); default: the model's context, or the text")
      ->transform(token_count())
      ->type_name("LENGTH")
      ->default_str("");
  app.add_option("--block", flags->block, "Positions of a row; default: an eighth of the length")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--windows", flags->windows, "Contexts, spread evenly over the text")
      ->transform(above_zero());
  app.footer(
      "Every token's loss given all that stand before it, under each scaling, zero-shot. Keys are "
      "cached unrotated, "
      "so\n"
      "that one pass a scaling is exact; dynamic scalings take the length that a chunk of 1024 "
      "tokens reaches.\n"
      "Weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, restored to "
      "float.\n\n"
      "Examples:\n"
      "  posenc lab perplexity smollm2.gguf book.txt --length 2k\n"
      "  posenc lab perplexity smollm2.gguf book.txt --scalings none,linear,ntk,yarn,dynamic:1 "
      "--length 12k\n"
      "  posenc lab perplexity llama.gguf book.txt --windows 4 --json | jq '.curves[0].blocks'");
  return [real, flags, &app]() -> Expected<int> {
    std::vector<lab::Stretch> stretches;
    for (const std::string& text : flags->scalings) {
      const Expected<lab::Stretch> stretch = stretch_of(text, flags->factor);
      if (!stretch) return std::unexpected(stretch.error());
      stretches.push_back(*stretch);
    }
    const Expected<RealModel> model = real_model(*real);
    if (!model) return std::unexpected(model.error());
    const Model& about = model->llama.about();
    lab::Perplexity result{
        .model = about.name,
        .tokens = std::ssize(model->tokens),
        .windows = flags->windows,
        .length = flags->length > 0
                      ? flags->length
                      : std::min<std::int64_t>(about.context, std::ssize(model->tokens)),
        .trained = about.trained_context > 0 ? about.trained_context : about.context};
    const Expected<std::vector<std::int64_t>> windows =
        lab::windows_of(result.tokens, result.length, result.windows);
    if (!windows) return std::unexpected(windows.error());
    const std::int64_t block =
        flags->block > 0 ? flags->block : std::max<std::int64_t>(1, (result.length + 7) / 8);
    const auto all = static_cast<double>(result.length * result.windows);
    {
      Progress progress("perplexity", stretches.size());
      for (const lab::Stretch& stretch : stretches) {
        Expected<lab::LossCurve> curve = lab::loss_curve(
            model->llama, model->tokens, *windows, result.length, block, stretch,
            [&](std::int64_t done) {
              progress.tell(result.curves.size(),
                            fmt::format("{}, {:.0f} % of {} tokens", lab::title(stretch),
                                        100 * static_cast<double>(done) / all, all));
            });
        if (!curve) return std::unexpected(curve.error());
        result.curves.push_back(std::move(*curve));
      }
    }
    if (real->json)
      fmt::print("{}\n", to_json(result));
    else
      fmt::print("{}", page(result, terminal(no_color(app))));
    return 0;
  };
}

}  // namespace

extern const Command lab_perplexity{
    "perplexity", "a real model's loss by position, under scalings of its rotation",
    define_perplexity};

}  // namespace posenc::cli
