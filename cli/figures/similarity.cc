// How alike the vectors of any two positions are.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/kind.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_similarity {

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0:128", measure = "cosine";
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "Rows and columns of the map");
  app.add_option("--measure", options->measure,
                 "cosine: of the angle between them; dot: their product")
      ->check(CLI::IsMember({"cosine", "dot"}));
  options->encoding.emplace(app, "plot similarity", "sinusoidal", Geometry{.width = 128});
  return [options]() -> Expected<Figure> {
    POSENC_TRY(where, one_row(options->positions, "plot similarity", true));
    const std::int64_t count = where.size();
    POSENC_CHECK(check_cells(count, count, "plot similarity"));
    POSENC_TRY(plan, options->encoding->plan());
    const std::int64_t width = options->encoding->width();
    POSENC_TRY(rows, vectors(plan, where, width, "plot similarity"));

    Matrix matrix;
    matrix.rows = matrix.columns = count;
    matrix.values.resize(static_cast<std::size_t>(count * count));
    if (where.contiguous()) matrix.first_x = matrix.first_y = static_cast<double>(where.at(0));
    const auto row = [&](std::int64_t p) { return rows.data() + p * width; };
    const auto dot = [&](std::int64_t p, std::int64_t q) {
      double sum = 0;
      for (std::int64_t d = 0; d < width; d++) sum += row(p)[d] * row(q)[d];
      return sum;
    };
    std::vector<double> norm;
    norm.reserve(static_cast<std::size_t>(count));
    for (std::int64_t p = 0; p < count; p++) norm.push_back(std::sqrt(dot(p, p)));
    const bool cosine = options->measure == "cosine";
    double most = cosine ? 1 : 0;
    for (std::int64_t p = 0; p < count; p++)
      for (std::int64_t q = 0; q <= p; q++) {
        const double norms = norm[static_cast<std::size_t>(p)] * norm[static_cast<std::size_t>(q)];
        // A row of zeros points nowhere.
        const double value = !cosine ? dot(p, q) : norms > 0 ? dot(p, q) / norms : from_data;
        if (!cosine) most = std::max(most, std::abs(value));
        matrix.values[static_cast<std::size_t>(p * count + q)] = value;
        matrix.values[static_cast<std::size_t>(q * count + p)] = value;
      }
    Figure figure{.square = true, .height = square_height(1, 1, 110)};
    figure.title =
        fmt::format("How alike two positions are: {}, width {}", options->encoding->name(), width);
    const bool waves = std::holds_alternative<Waves>(plan.add->kind);
    const bool patches = where.axes() > 1;
    figure.caption =
        patches
            ? "How alike two places are that have several coordinates, one after the other as they "
              "are listed: those of one row of a picture are a square on the diagonal."
        : waves
            ? "The same along every diagonal: sinusoidal vectors are as alike as their positions "
              "are apart, wherever they stand."
            : "Learned vectors: where the diagonals are not of one colour, how alike two positions "
              "are depends on where they stand.";
    figure.scale = {.label = cosine ? "cosine similarity" : "dot product",
                    .column = cosine ? "cosine_similarity" : "dot_product",
                    .least = most > 0 ? -most : -1,
                    .most = most > 0 ? most : 1,
                    .diverging = true};
    Panel panel;
    const std::string what = where.contiguous() ? "position (tokens)" : patches ? "place" : "row";
    panel.x = {.label = what, .column = "position_a_tokens"};
    panel.y = {.label = what, .column = "position_b_tokens", .down = true};
    panel.matrix = std::move(matrix);
    figure.panels.push_back(std::move(panel));
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "similarity.png --scheme sinusoidal --width 128 --positions 0:128",
};

}  // namespace of_similarity

extern const Kind similarity{"similarity",
                             "How alike the vectors of any two positions are, as a map",
                             of_similarity::define, of_similarity::examples};

}  // namespace posenc::cli
