// How far angles formed in float are off, by position, and where that exceeds bfloat16's rounding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_phase {

struct Options {
  std::int64_t to = 1 << 20, head_dim = 128;
  double rope_theta = 10000;
};

struct Engine {
  std::string_view name;
  Angles angles;
};
constexpr Engine engines[] = {{"float product (Hugging Face)", Angles::hf_float},
                              {"float, pair after pair (ggml)", Angles::ggml_float},
                              {"double (posenc)", Angles::exact}};

// Largest error of an angle of any pair at these positions.
Expected<double> worst(const Plan& plan, const std::vector<std::int64_t>& positions,
                       const std::vector<long double>& frequency) {
  const auto count = static_cast<std::int64_t>(positions.size());
  std::vector<double> angles(positions.size() * frequency.size());
  POSENC_TRY(where, Positions::ids(positions));
  POSENC_CHECK(rotation_angles(
      plan, where,
      Tensor::dense(angles.data(), {1, 1, count, static_cast<std::int64_t>(frequency.size())})));
  long double most = 0;
  for (std::size_t i = 0; i < angles.size(); i++) {
    const long double exact =
        static_cast<long double>(positions[i / frequency.size()]) * frequency[i % frequency.size()];
    most = std::max(most, std::abs(static_cast<long double>(angles[i]) - exact));
  }
  return static_cast<double>(most);
}

// To two digits: the samples are no closer.
std::string about(double position) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(position)) - 1));
  return grouped(std::llround(std::round(position / unit) * unit));
}

Expected<Figure> draw(const Options& options) {
  const Rope rope{.rope_theta = options.rope_theta};
  const Geometry geometry{.head_dim = options.head_dim};
  POSENC_TRY(exact, rope_frequencies<long double>(rope, geometry));
  Plan plans[std::size(engines)];
  Series lines[std::size(engines)];
  for (std::size_t i = 0; i < std::size(engines); i++) {
    POSENC_TRY(plan, compile(rope, geometry, engines[i].angles));
    plans[i] = plan;
    lines[i].name = engines[i].name;
    lines[i].colour = line_colour(i + 1);
  }
  // The worst of up to 32 positions in each step of 1/24 of an octave.
  const auto steps = static_cast<int>(std::ceil(24 * std::log2(static_cast<double>(options.to))));
  const double ratio = std::pow(static_cast<double>(options.to), 1.0 / std::max(1, steps));
  double from = 1;
  for (int step = 0; step < steps; step++, from *= ratio) {
    const auto begin = static_cast<std::int64_t>(std::ceil(from - 1e-9));
    const auto end = std::min<std::int64_t>(
        options.to + 1, static_cast<std::int64_t>(std::ceil(from * ratio - 1e-9)));
    if (end <= begin) continue;
    const std::int64_t stride = std::max<std::int64_t>(1, (end - begin) / 32);
    std::vector<std::int64_t> positions;
    for (std::int64_t p = begin; p < end; p += stride) positions.push_back(p);
    for (std::size_t i = 0; i < std::size(engines); i++) {
      POSENC_TRY(error, worst(plans[i], positions, exact.frequency));
      lines[i].add(static_cast<double>(begin), error > 0 ? error : from_data);
    }
  }

  Figure figure{.title = fmt::format("Error of the angle, worst pair: base {}, {} channels",
                                     base_text(options.rope_theta), options.head_dim),
                .height = 300};
  Panel panel = angle_errors(1, options.to);
  std::string exceeds;
  for (std::size_t i = 0; i < 2; i++) {
    const Series& line = lines[i];
    const auto over =
        std::find_if(line.y.begin(), line.y.end(), [&](double y) { return y > bfloat16_rounding; });
    if (over == line.y.end()) continue;
    const double at = line.x[static_cast<std::size_t>(over - line.y.begin())];
    panel.rules.push_back(
        {at, fmt::format("{}: {}", i == 0 ? "Hugging Face" : "ggml", about(at)), true});
    exceeds += fmt::format("{}{} passes bfloat16's own rounding at about position {}",
                           exceeds.empty() ? " " : ", ", i == 0 ? "the product" : "the iteration",
                           about(at));
  }
  // From left to right, so that their names keep clear of each other.
  std::sort(panel.rules.begin() + 1, panel.rules.end(),
            [](const Rule& a, const Rule& b) { return a.at < b.at; });
  if (!exceeds.empty()) exceeds += ".";
  figure.caption =
      "Angles formed in float are off by more the farther out a token stands, whatever is done "
      "with them afterwards." +
      exceeds + " In double they stay right.";
  panel.series.assign(std::begin(lines), std::end(lines));
  figure.panels.push_back(std::move(panel));
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--to", options->to, "Last position, below 2^24")
      ->transform(position_count())
      ->check(CLI::Range(std::int64_t{2}, float_positions - 1));
  app.add_option("--rope_theta", options->rope_theta, "Base of the frequencies");
  app.add_option("--head_dim", options->head_dim, "Channels of a head")
      ->check(CLI::Range(2, 65536));
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "phase.png --rope_theta 10000 --head_dim 128 --to 1048576",
    "phase-500k.png --rope_theta 500000 --head_dim 128 --to 1048576",
};

}  // namespace of_phase

extern const Kind phase{"phase", "How far angles formed in float are off, by position",
                        of_phase::define, of_phase::examples};

}  // namespace posenc::cli
