// How far angles formed in float are off, by position, and where that exceeds bfloat16's rounding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/figures/colours.h"
#include "cli/figures/common.h"
#include "cli/figures/kind.h"
#include "cli/terminal.h"

namespace posenc::cli {
namespace {

struct Options {
  std::int64_t to = 1 << 20, head_dim = 128;
  double rope_theta = 10000;
};

constexpr std::int64_t largest = 1 << 24;  // beyond it a float does not hold the position itself

// The angles of all pairs at a position, as the engines form them.
struct Engines {
  std::vector<float> hf_frequency;
  float ggml_step = 0;
  std::vector<long double> exact_frequency;

  double hf_error(std::int64_t p) const {
    double most = 0;
    for (std::size_t r = 0; r < exact_frequency.size(); r++) {
      const float angle = static_cast<float>(p) * hf_frequency[r];
      most = std::max(most, off(angle, p, r));
    }
    return most;
  }
  double ggml_error(std::int64_t p) const {
    double most = 0;
    float angle = static_cast<float>(p);
    for (std::size_t r = 0; r < exact_frequency.size(); r++, angle *= ggml_step)
      most = std::max(most, off(angle, p, r));
    return most;
  }
  double double_error(std::int64_t p, const std::vector<double>& frequency) const {
    double most = 0;
    for (std::size_t r = 0; r < exact_frequency.size(); r++) {
      const double angle = static_cast<double>(p) * frequency[r];
      const long double exact = static_cast<long double>(p) * exact_frequency[r];
      most = std::max(most, static_cast<double>(std::abs(static_cast<long double>(angle) - exact)));
    }
    return most;
  }

 private:
  double off(float angle, std::int64_t p, std::size_t r) const {
    const long double exact = static_cast<long double>(p) * exact_frequency[r];
    return static_cast<double>(std::abs(static_cast<long double>(angle) - exact));
  }
};

// To two digits: the samples are no closer.
std::string about(double position) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(position)) - 1));
  return grouped(std::llround(std::round(position / unit) * unit));
}

Expected<Figure> draw(const Options& options) {
  const Rope rope{.rope_theta = options.rope_theta};
  const Geometry geometry{.head_dim = options.head_dim};
  const Expected<Scaled<float>> hf = rope_frequencies<float>(rope, geometry);
  const Expected<Scaled<double>> own = rope_frequencies<double>(rope, geometry);
  if (!hf) return std::unexpected(hf.error());
  if (!own) return std::unexpected(own.error());
  Engines engines;
  engines.hf_frequency = hf->frequency;
  engines.ggml_step = std::pow(static_cast<float>(options.rope_theta),
                               -2.0f / static_cast<float>(options.head_dim));
  for (std::size_t r = 0; r < own->frequency.size(); r++)
    engines.exact_frequency.push_back(
        std::pow(static_cast<long double>(options.rope_theta),
                 -2.0L * static_cast<long double>(r) / static_cast<long double>(options.head_dim)));

  Series lines[3];
  const char* const names[] = {"float product (Hugging Face)", "float, pair after pair (ggml)",
                               "double (posenc)"};
  const std::size_t colours[] = {1, 2, 3};
  for (std::size_t i = 0; i < 3; i++) {
    lines[i].name = names[i];
    lines[i].colour = line_colour(colours[i]);
  }
  // The worst of up to 32 positions in each step of 1/24 of an octave.
  const double steps = std::ceil(24 * std::log2(static_cast<double>(options.to)));
  const double ratio = std::pow(static_cast<double>(options.to), 1 / std::max(1.0, steps));
  double from = 1;
  for (double step = 0; step < steps; step++, from *= ratio) {
    const auto begin = static_cast<std::int64_t>(std::ceil(from - 1e-9));
    const auto end = std::min<std::int64_t>(
        options.to + 1, static_cast<std::int64_t>(std::ceil(from * ratio - 1e-9)));
    if (end <= begin) continue;
    const std::int64_t stride = std::max<std::int64_t>(1, (end - begin) / 32);
    double worst[3] = {};
    for (std::int64_t p = begin; p < end; p += stride) {
      worst[0] = std::max(worst[0], engines.hf_error(p));
      worst[1] = std::max(worst[1], engines.ggml_error(p));
      worst[2] = std::max(worst[2], engines.double_error(p, own->frequency));
    }
    for (std::size_t i = 0; i < 3; i++) {
      lines[i].x.push_back(static_cast<double>(begin));
      lines[i].y.push_back(worst[i] > 0 ? worst[i] : from_data);
    }
  }

  // Half a unit in the last place of numbers from 1/2 to 1, with 8 bits of significand.
  const double rounding = 0x1p-9;
  Figure figure;
  figure.height = 300;
  figure.title = fmt::format("Error of the angle, worst pair: θ = {}, {} channels",
                             base_text(options.rope_theta), options.head_dim);
  Panel panel;
  panel.x = {.label = "position (tokens)",
             .column = "position_tokens",
             .least = 1,
             .most = static_cast<double>(options.to),
             .log = true};
  panel.y = {.label = "error of the angle (radians)", .column = "angle_error_rad", .log = true};
  panel.rules.push_back({rounding, "bfloat16 rounds cos and sin by up to 2⁻⁹"});
  std::string exceeds;
  for (std::size_t i = 0; i < 2; i++) {
    const Series& line = lines[i];
    const auto over =
        std::find_if(line.y.begin(), line.y.end(), [&](double y) { return y > rounding; });
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
  app.add_option("--to", options->to, "Last position, at most 2^24")
      ->check(CLI::Range(std::int64_t{2}, largest));
  app.add_option("--rope_theta", options->rope_theta, "Base of the frequencies");
  app.add_option("--head_dim", options->head_dim, "Channels of a head")
      ->check(CLI::Range(2, 65536));
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "phase.png --rope_theta 10000 --head_dim 128 --to 1048576",
    "phase-500k.png --rope_theta 500000 --head_dim 128 --to 1048576",
};

}  // namespace

const Kind phase{"phase", "How far angles formed in float are off, by position", define, examples};

}  // namespace posenc::cli
