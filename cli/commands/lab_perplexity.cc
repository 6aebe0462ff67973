// posenc lab perplexity: loss by position of a real model, under scalings of its rotation.
#include "evidence/lab/model/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/parse.h"
#include "cli/commands/lab.h"
#include "cli/mpi/ranks.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t position_columns = 18;

struct PerplexityFlags {
  std::vector<std::string> scalings = {"none"};
  double factor = 2;
  std::int64_t length = 0, block = 0, windows = 1;
  lab::Kept kept = {};
  bool mpi = false;
};

// "dynamic:1" has a factor of its own, "yarn" the one that all have; none has none.
Expected<lab::Stretch> stretch_of(const std::string& text, double factor) {
  const std::size_t colon = text.find(':');
  lab::Stretch made{.scaling = text.substr(0, colon), .factor = factor};
  const Expected<Scaling> known = make_scaling(made.scaling);
  if (!known) {
    Error error = known.error();
    error.where = "--scalings";
    return std::unexpected(error);
  }
  if (std::get_if<Unscaled>(&*known) != nullptr) made = {.scaling = "none", .factor = 1};
  if (colon == std::string::npos) return made;
  const Expected<double> factor_said =
      number(std::string_view(text).substr(colon + 1), "--scalings");
  if (factor_said && *factor_said > 0) {
    made.factor = *factor_said;
    return made;
  }
  return fail("--scalings", "a factor must be a number above 0", text, "write it like dynamic:2");
}

std::string right(const std::string& text, std::size_t column) {
  return std::string(column - std::min(column, columns(text)), ' ') + text;
}

std::size_t width_of(const lab::LossCurve& curve) {
  return std::max<std::size_t>(16, columns(lab::title(curve.stretch)) + 2);
}

// A table of some of the curves, beside the first, which is their reference.
std::string table(const lab::Perplexity& result, std::span<const lab::LossCurve> beside,
                  const Terminal& term) {
  const lab::LossCurve& reference = result.curves.front();
  const auto positions = [](std::int64_t from, std::int64_t to) {
    return padded(grouped(from) + "–" + grouped(to), position_columns);
  };
  std::string head = padded("positions", position_columns) +
                     right(lab::title(reference.stretch), width_of(reference));
  for (const lab::LossCurve& curve : beside)
    head += right(lab::title(curve.stretch), width_of(curve));
  std::string out = term.bold(head) + "\n";
  for (std::size_t i = 0; i < reference.blocks.size(); ++i) {
    const lab::LossBlock& block = reference.blocks[i];
    std::string line = positions(block.from, block.to) +
                       right(fmt::format("{:.3f}", block.nats), width_of(reference));
    for (const lab::LossCurve& curve : beside)
      line += right(fmt::format("{:.3f}", curve.blocks[i].nats), width_of(curve));
    const bool beyond = result.trained > 0 && block.from >= result.trained;
    out += (beyond ? term.yellow(line) : line) + "\n";
  }
  if (beside.empty()) return out;
  out += "\n" +
         term.bold(fmt::format("minus {}, with its 95 % interval", lab::title(reference.stretch))) +
         "\n";
  const std::int64_t edge =
      result.trained > 0 && result.trained < result.length ? result.trained : result.length;
  for (const auto& [from, to] :
       {std::pair{std::int64_t{0}, edge}, std::pair{edge, result.length}}) {
    if (from == to) continue;
    std::string line = positions(from, to) + right("", width_of(reference));
    for (const lab::LossCurve& curve : beside) {
      const lab::PairedDifference d =
          lab::paired_difference(reference, curve, result.length, from, to);
      line += right(d.n < 2 ? fmt::format("{:+.3f}", d.mean)
                            : fmt::format("{:+.3f} ±{:.3f}", d.mean, d.half_width),
                    width_of(curve));
    }
    out += line + "\n";
  }
  return out;
}

std::string page(const lab::Perplexity& result, const Terminal& term) {
  std::string about =
      fmt::format("{}: nats a token by position, {} of {} tokens", result.model,
                  result.windows == 1 ? "one context" : fmt::format("{} contexts", result.windows),
                  grouped(result.length));
  if (result.trained > 0) about += ", trained to " + grouped(result.trained);
  if (result.kept.tokens > 0)
    about += fmt::format(", in a cache of {}", grouped(result.kept.tokens));
  if (result.kept.first > 0)
    about += fmt::format(", the first {} for good", grouped(result.kept.first));
  std::string out = wrapped(about, 0, 0) + "\n";
  // As many tables as the curves take side by side.
  std::span<const lab::LossCurve> left(result.curves.begin() + 1, result.curves.end());
  do {
    std::size_t count = 0, used = position_columns + width_of(result.curves.front());
    while (count < left.size() && (count == 0 || used + width_of(left[count]) <= page_width()))
      used += width_of(left[count++]);
    out += "\n" + table(result, left.first(count), term);
    left = left.subspan(count);
  } while (!left.empty());
  if (result.curves.size() < 2) return out;
  return out + "\n" +
         wrapped(
             "Differences are paired token by token and averaged over runs of 128: other texts "
             "shift all columns "
             "alike. One model, one text: nothing here says how another does.",
             0, 0) +
         "\n";
}

// How much of the work of a window its first tokens are: the matrices cost each alike, attention as
// many keys as it sees.
class Work {
 public:
  Work(const lab::Llama& model, std::int64_t length, lab::Kept kept)
      : kept_(static_cast<double>(kept.tokens > 0 ? kept.tokens : length)) {
    double weights = static_cast<double>(model.vocabulary() * model.width()), channels = 0;
    for (const lab::LlamaLayer& layer : model.layers()) {
      for (const lab::Weights* w :
           {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
        weights += static_cast<double>(w->out * w->in);
      channels += static_cast<double>(layer.q.out);
    }
    keys_ = weights / (2 * channels);  // that cost as much as the matrices
    all_ = of(static_cast<double>(length - 1));
  }
  double share(std::int64_t tokens) const { return of(static_cast<double>(tokens)) / all_; }

 private:
  double of(double tokens) const {
    const double growing = std::min(tokens, kept_);
    return tokens + (growing * growing / 2 + (tokens - growing) * kept_) / keys_;
  }
  double kept_, keys_ = 1, all_ = 1;
};

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
      ->check(CLI::Validator(
          [](const std::string& text) {
            const double number = std::strtod(text.c_str(), nullptr);
            return std::isfinite(number) && number > 0
                       ? std::string()
                       : "must be a number above 0, got '" + text + "'";
          },
          "POSITIVE"));
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
  app.add_option("--keep", flags->kept.tokens,
                 "Tokens that the cache keeps; the oldest make room; default: all")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--sinks", flags->kept.first, "First tokens of --keep that stay for good")
      ->transform(position_count());
  app.add_flag("--mpi", flags->mpi,
               "Under mpirun: the ranks share out the tokens of a context, and its keys");
  app.footer(
      "Every token's loss given all that stand before it, under each scaling, zero-shot. Keys are "
      "cached unrotated, "
      "so\n"
      "that one pass a scaling is exact; dynamic scalings take the length that a chunk of 1024 "
      "tokens reaches. --keep N forgets by chunks of N/8, at most 1024, and closes the gap "
      "(StreamingLLM).\n"
      "Weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, restored to "
      "float.\n\n"
      "Examples:\n"
      "  posenc lab perplexity smollm2.gguf book.txt --length 2k\n"
      "  posenc lab perplexity smollm2.gguf book.txt --scalings none,linear,ntk,yarn,dynamic:1 "
      "--length 12k\n"
      "  mpirun -n 4 posenc lab perplexity llama.gguf book.txt --mpi --length 128k\n"
      "  posenc lab perplexity llama.gguf book.txt --windows 4 --json | jq '.curves[0].blocks'");
  return [real, flags, &app]() -> Expected<int> {
    if (flags->mpi && ranks_of_mpi == nullptr) return become_posenc_mpi();
    std::vector<lab::Stretch> stretches;
    for (const std::string& text : flags->scalings) {
      POSENC_TRY(stretch, stretch_of(text, flags->factor));
      stretches.push_back(stretch);
    }
    const Expected<RealModel> model = real_model(*real);
    if (flags->mpi) {
      const Expected<void> own = model ? Expected<void>() : std::unexpected(model.error());
      POSENC_CHECK(ranks_of_mpi->agree(own));
    }
    if (!model) return std::unexpected(model.error());
    const Model& about = model->llama.about();
    lab::Perplexity result{
        .model = about.name,
        .tokens = std::ssize(model->tokens),
        .windows = flags->windows,
        .length = flags->length > 0
                      ? flags->length
                      : std::min<std::int64_t>(about.context, std::ssize(model->tokens)),
        .trained = about.trained_context > 0 ? about.trained_context : about.context,
        .kept = flags->kept};
    POSENC_TRY(windows, lab::windows_of(result.tokens, result.length, result.windows));
    const std::int64_t block =
        flags->block > 0 ? flags->block : std::max<std::int64_t>(1, (result.length + 7) / 8);
    if (flags->kept.first > 0 && flags->kept.tokens == 0)
      return fail("--sinks", "are the first tokens of those that --keep leaves", "no --keep",
                  "write --keep 8k as well");
    {
      Progress progress("perplexity", stretches.size());
      const Work work(model->llama, result.length, flags->kept);
      for (const lab::Stretch& stretch : stretches) {
        POSENC_TRY(
            curve,
            lab::loss_curve(
                model->llama, model->tokens, windows, result.length, block, stretch,
                [&](std::int64_t done) {
                  const std::int64_t of_window = result.length - 1, whole = done / of_window;
                  const double curves =
                      static_cast<double>(result.curves.size()) +
                      (static_cast<double>(whole) + work.share(done % of_window)) /
                          static_cast<double>(result.windows);
                  progress.tell_share(curves / static_cast<double>(stretches.size()),
                                      fmt::format("{}, {} of {}", lab::title(stretch),
                                                  result.curves.size() + 1, stretches.size()));
                },
                flags->kept, flags->mpi ? ranks_of_mpi->lab_attention() : lab::AttentionMaker()));
        result.curves.push_back(std::move(curve));
      }
    }
    if (real->json)
      write_out("{}\n", to_json(result));
    else
      write_out("{}", page(result, terminal(no_color(app))));
    return 0;
  };
}

}  // namespace

extern const Command lab_perplexity{
    "perplexity", "a real model's loss by position, under scalings of its rotation",
    define_perplexity};

}  // namespace posenc::cli
