#include "cli/figures/common.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/arguments/parse.h"
#include "cli/figures/draw/layout.h"
#include "cli/pages/terminal.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {

Encoding::Encoding(CLI::App& app, std::string_view kind, std::string_view scheme,
                   const Geometry& extents, bool takes_content)
    : app_(app),
      source_(app, std::string(kind), takes_content),
      scheme_(scheme),
      extents_(extents) {
  // A scheme of another kind compiles too, so that the kind can say what the scheme lacks.
  for (auto [extent, usual] :
       {std::pair{&Geometry::width, 128}, {&Geometry::heads, 8}, {&Geometry::head_dim, 128}})
    if (extents_.*extent == 0) extents_.*extent = usual;
}

bool Encoding::of_model() const { return app_.count("--model") > 0; }

Expected<Plan> Encoding::plan(Geometry of_tensor) {
  source_.otherwise(scheme_);
  if (!of_model()) {
    const auto fill = [&](const char* flag, std::int64_t Geometry::* extent) {
      if (app_.count(flag) == 0 && of_tensor.*extent == 0) of_tensor.*extent = extents_.*extent;
    };
    fill("--width", &Geometry::width);
    fill("--heads", &Geometry::heads);
    fill("--head_dim", &Geometry::head_dim);
  }
  return source_.plan(of_tensor);
}

void add_positions(CLI::App& app, std::string& into, std::string_view doc) {
  app.add_option("--positions", into, std::string(doc) + ": FIRST:END (END not included) or a list")
      ->type_name("IDS");
}

Expected<Positions> one_row(const std::string& text, std::string_view kind, bool several_axes) {
  Expected<Positions> where = positions(text);
  if (where && ((where->axes() != 1 && !several_axes) || where->batch() != 1))
    return fail(kind, "takes one row of positions",
                fmt::format("{} axes of {} rows", where->axes(), where->batch()),
                "give FIRST:END or a list");
  return where;
}

Expected<std::vector<std::int64_t>> indices(const std::string& text, std::string_view flag,
                                            std::int64_t end) {
  POSENC_TRY(list, integers(text, flag));
  if (list.empty()) return fail(flag, "must name at least one", "none", "write it like 0,8,16");
  if (list.size() > 64) return fail(flag, "at most 64 in a picture", std::to_string(list.size()));
  for (const std::int64_t value : list)
    if (value < 0 || value >= end)
      return fail(flag, fmt::format("must lie in 0 to {}", end - 1), std::to_string(value));
  return std::move(list);
}

Expected<void> check_cells(std::int64_t rows, std::int64_t columns, std::string_view kind) {
  std::int64_t cells = 0;
  if (__builtin_mul_overflow(rows, columns, &cells) || cells > 1 << 25)
    return fail(kind, "at most 2^25 numbers in a picture", fmt::format("{} × {}", rows, columns),
                "ask for fewer positions");
  return {};
}

Expected<std::vector<double>> vectors(const Plan& plan, const Positions& positions,
                                      std::int64_t width, std::string_view kind) {
  if (!plan.add)
    return fail(kind, "this encoding adds no vectors to the embeddings", "",
                "take sinusoidal, learned or a model that has them");
  if (width == 0) return fail(kind, "the width must be known", "", "say --width");
  POSENC_CHECK(check_table(plan, kind));
  POSENC_CHECK(check_cells(positions.size(), width, kind));
  std::vector<double> out(static_cast<std::size_t>(positions.size() * width));
  const Tensor rows = Tensor::dense(out.data(), {1, positions.size(), width});
  POSENC_CHECK(position_vectors(plan, positions, rows));
  return out;
}

std::string wavelength_text(double frequency) {
  if (frequency == 0) return "endless";
  const double wavelength = 2 * std::numbers::pi / std::abs(frequency);
  if (wavelength >= 1e6) return fmt::format("{:.3g} million", wavelength / 1e6);
  if (wavelength >= 1000) return grouped(std::llround(wavelength));
  return fmt::format("{:.3g}", wavelength);
}

std::string base_text(double base) {
  const bool whole = base == std::floor(base) && base < 1e15;
  return whole ? grouped(std::llround(base)) : fmt::format("{:g}", base);
}

double square_height(std::int64_t panels, std::int64_t columns, double beside) {
  const auto across = static_cast<double>(columns);
  const double side = std::min(330.0, (504 - 15 - beside - 18 * (across - 1)) / across);
  return 70 + std::ceil(static_cast<double>(panels) / across) * (side + 21);
}

Figure of_squares(std::size_t count, double beside) {
  const auto panels = static_cast<std::int64_t>(count);
  const std::int64_t columns = std::min<std::int64_t>(panels, 4);
  return {.columns = columns,
          .shared_axes = true,
          .square = true,
          .height = square_height(panels, columns, beside)};
}

Panel angle_errors(double least, std::int64_t most) {
  return {.x = {.label = "position (tokens)",
                .column = "position_tokens",
                .least = least,
                .most = static_cast<double>(most),
                .log = true},
          .y = {.label = "error of the angle (radians)", .column = "angle_error_rad", .log = true},
          .rules = {{bfloat16_rounding, "bfloat16 rounds cos and sin by up to 2⁻⁹"}}};
}

std::string listed(const std::vector<std::int64_t>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); i++)
    out += (i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") + grouped(values[i]);
  return out;
}

}  // namespace posenc::cli
