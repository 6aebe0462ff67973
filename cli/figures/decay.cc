// What a logit makes of distance: rotations that turn content, and biases that are added to it.
#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_decay {

struct Options {
  std::int64_t distance = 512, head_dim = 128, heads = 8, head = 3;
  double rope_theta = 10000;
  std::uint64_t seed = 42;
  std::string table;
};

std::vector<double> distances(const Options& options) {
  std::vector<double> out;
  for (std::int64_t n = 0; n <= options.distance; n++) out.push_back(static_cast<double>(n));
  return out;
}

// q·k of a query at each distance from a key at 0, as a share of |q||k|.
Expected<Series> rotated(const Options& options, const Scheme& scheme, std::vector<double> q,
                         std::vector<double> k, std::string name, std::size_t colour) {
  POSENC_TRY(plan, compile(scheme, {.head_dim = options.head_dim}));
  const auto d = static_cast<std::size_t>(options.head_dim);
  double qq = 0, kk = 0;
  for (std::size_t i = 0; i < d; i++) qq += q[i] * q[i], kk += k[i] * k[i];
  const std::int64_t count = options.distance + 1;
  std::vector<double> queries;
  for (std::int64_t n = 0; n < count; n++) queries.insert(queries.end(), q.begin(), q.end());
  const Tensor view = Tensor::dense(queries.data(), {1, 1, count, options.head_dim});
  const Tensor key = Tensor::dense(k.data(), {1, 1, 1, options.head_dim});
  POSENC_CHECK(rotate(plan, view, Positions::range(0, count), Side::query, view));
  POSENC_CHECK(rotate(plan, key, Positions::range(0, 1), Side::key, key));
  Series out{
      .name = std::move(name), .colour = line_colour(colour), .width = 1, .x = distances(options)};
  for (std::size_t n = 0; n < out.x.size(); n++) {
    double dot = 0;
    for (std::size_t i = 0; i < d; i++) dot += queries[n * d + i] * k[i];
    out.y.push_back(dot / std::sqrt(qq * kk));
  }
  return out;
}

// RoFormer's section 3.4.3: (1/(d/2)) Σ_i |Σ_{r<i} e^{i·n·f_r}|, over its value at distance 0. Its
// bound is this times the largest difference between neighbouring pairs of q·k: alone it bounds
// nothing.
Expected<Series> bound(const Options& options) {
  POSENC_TRY(plan, compile(Rope{.rope_theta = options.rope_theta}, {.head_dim = options.head_dim}));
  Series out{.name = "RoFormer's Σ|S|, no bound by itself",
             .colour = line_colour(0),
             .dashed = true,
             .x = distances(options)};
  double first = 0;
  for (const double n : out.x) {
    std::complex<double> sum = 0;
    double total = 0;
    for (const double f : plan.rotate->frequencies.radians) {
      sum += std::polar(1.0, n * f);
      total += std::abs(sum);
    }
    if (out.y.empty()) first = total;
    out.y.push_back(total / first);
  }
  return out;
}

Expected<Series> biased(const Options& options, const Plan& plan, std::string name, Colour colour) {
  const std::int64_t count = options.distance + 1;
  POSENC_CHECK(check_cells(options.heads, count, "plot decay"));
  std::vector<double> values(static_cast<std::size_t>(options.heads * count));
  const Tensor out = Tensor::dense(values.data(), {options.heads, count, 1});
  POSENC_CHECK(bias(plan, Positions::range(0, count), Positions::range(0, 1), out));
  Series line{.name = std::move(name), .colour = colour, .x = distances(options)};
  const auto begin = values.begin() + options.head * count;
  line.y.assign(begin, begin + count);
  return line;
}

Expected<Figure> draw(const Options& options) {
  if (options.head >= options.heads)
    return fail("--head", fmt::format("must lie in 0 to {}", options.heads - 1),
                std::to_string(options.head));
  Figure figure{.title = fmt::format("What distance does to a logit: {} channels, head {} of {}",
                                     options.head_dim, options.head, options.heads),
                .columns = 2,
                .height = 290};
  Panel turned, added;
  turned.title = "rotations turn the content";
  added.title = "biases are added, whatever the content";
  turned.x = {.label = "distance (tokens)", .column = "distance_tokens"};
  turned.y = {.label = "q·k / (|q| |k|)", .column = "score_share"};
  added.x = turned.x;
  added.y = {.label = "bias (added to the logit)", .column = "bias_logits"};

  const auto d = static_cast<std::size_t>(options.head_dim);
  const std::vector<double> ones(d, 1.0), random = normals(options.seed, d),
                                          other = normals(options.seed + 1, d);
  const Rope rope{.rope_theta = options.rope_theta};
  Expected<Series> lines[] = {
      rotated(options, rope, ones, ones, "RoPE, q = k = 1", 1),
      rotated(options, rope, random, random, "RoPE, q = k random", 5),
      rotated(options, rope, random, other, "RoPE, q and k random", 4),
      rotated(options, XPos{.rope_theta = options.rope_theta}, ones, ones, "xPos, q = k = 1", 2),
      bound(options)};
  for (Expected<Series>& line : lines) {
    if (!line) return std::unexpected(line.error());
    turned.series.push_back(std::move(*line));
  }

  const auto add = [&](const Scheme& scheme, std::string name, Colour colour) -> Expected<void> {
    POSENC_TRY(plan, compile(scheme, {.heads = options.heads,
                                      .head_dim = options.head_dim,
                                      .length = options.distance + 1}));
    POSENC_TRY(line, biased(options, plan, std::move(name), colour));
    added.series.push_back(std::move(line));
    return {};
  };
  POSENC_CHECK(add(Alibi{}, "ALiBi", line_colour(6)));
  POSENC_CHECK(add(Kerple{}, "KERPLE, logarithm, p = a = 1", line_colour(3)));
  POSENC_CHECK(
      add(Sandwich{.dim = options.head_dim, .base = options.rope_theta}, "Sandwich", pale));
  if (!options.table.empty()) {
    POSENC_TRY(table, table_named(options.table));
    const T5 t5{.num_buckets = table.values.shape[0], .table = table};
    POSENC_CHECK(add(t5, "T5, the table given", line_colour(0)));
  }
  figure.caption =
      "Left: q·k of two vectors as they move apart. For RoPE it falls on average but goes up and "
      "down on the way, and for vectors that do not match it has no decay at all. Right: what a "
      "bias adds, which never depends on the content.";
  if (options.table.empty()) figure.caption += " T5's biases are learned: --table adds them.";
  figure.panels = {std::move(turned), std::move(added)};
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--distance", options->distance, "Largest distance, tokens")
      ->transform(position_count())
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--head_dim", options->head_dim, "Channels of a head")
      ->check(CLI::Range(2, 65536));
  app.add_option("--rope_theta", options->rope_theta, "Base of the frequencies");
  app.add_option("--heads", options->heads, "Heads of the biases")->check(CLI::Range(1, 4096));
  app.add_option("--head", options->head, "Which of them is drawn")->check(CLI::NonNegativeNumber);
  app.add_option("--table", options->table, "T5's learned biases, .npy [buckets][heads]");
  app.add_option("--seed", options->seed, "Of the random vectors");
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "decay.png --distance 512 --head_dim 128",
};

}  // namespace of_decay

extern const Kind decay{
    "decay", "Score against distance: RoPE and xPos beside ALiBi, KERPLE, Sandwich and T5",
    of_decay::define, of_decay::examples};

}  // namespace posenc::cli
