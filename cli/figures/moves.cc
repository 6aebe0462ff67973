// Cached keys that are used at other positions: right, left as they stood, and moved by rekey().
#include "posenc/rekey.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_moves {

using Places = std::vector<std::int64_t>;

Places counted(std::int64_t first, std::int64_t count) {
  Places places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), first);
  return places;
}

Places joined(Places a, const Places& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Every token is the same word; the newest asks. Scores of its query over the keys where they
// stand.
Expected<Panel> panel(const Plan& plan, std::int64_t head_dim, std::uint64_t seed,
                      const std::string& title, const Places& stood, const Places& stands) {
  const auto d = static_cast<std::size_t>(head_dim);
  const std::vector<double> word = normals(seed + 1, d);
  std::vector<double> q = normals(seed, d);
  const std::int64_t count = std::ssize(stands);
  POSENC_TRY(old_ids, Positions::ids(stood));
  POSENC_TRY(new_ids, Positions::ids(stands));
  const Tensor query = Tensor::dense(q.data(), {1, 1, 1, head_dim});
  POSENC_CHECK(rotate(plan, query, Positions::range(stands.back() + 1, 1), Side::query, query));
  std::vector<double> keys(static_cast<std::size_t>(count) * d);
  const Tensor view = Tensor::dense(keys.data(), {1, 1, count, head_dim});
  const auto rotated = [&](const Positions& at) -> Expected<void> {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = word[i % d];
    return rotate(plan, view, at, Side::key, view);
  };
  const auto scored = [&](Series series) {
    for (std::size_t t = 0; t < stands.size(); ++t) {
      double dot = 0;
      for (std::size_t c = 0; c < d; ++c) dot += q[c] * keys[t * d + c];
      series.add(static_cast<double>(stands[t]), dot / std::sqrt(static_cast<double>(head_dim)));
    }
    return series;
  };
  Panel out{.title = title,
            .x = {.label = "position of the key", .column = "position_tokens"},
            .y = {.label = "score of the newest token", .column = "score_logits"}};
  POSENC_CHECK(rotated(new_ids));
  out.series.push_back(scored({.name = "a fresh prefill's", .colour = pale, .width = 2.5}));
  POSENC_CHECK(rotated(old_ids));
  out.series.push_back(
      scored({.name = "left as they stood", .colour = line_colour(2), .mark = Mark::dots}));
  POSENC_CHECK(rekey({&plan, old_ids}, {&plan, new_ids}, view, view));
  out.series.push_back(scored({.name = "moved", .colour = line_colour(1), .mark = Mark::dots}));
  return out;
}

Drawing define(CLI::App& app) {
  struct Options {
    std::int64_t tokens = 48;
    std::uint64_t seed = 1;
  };
  auto options = std::make_shared<Options>();
  auto encoding = std::make_shared<Encoding>(app, "plot moves", "rope", Geometry{.head_dim = 64});
  app.add_option("--tokens", options->tokens, "Tokens of each text, 2 to 4096");
  app.add_option("--seed", options->seed, "Of the word and of the query");
  return [options, encoding]() -> Expected<Figure> {
    if (options->tokens < 2 || options->tokens > 4096)
      return fail("--tokens", "must be 2 to 4096", std::to_string(options->tokens));
    const std::int64_t count = options->tokens;
    POSENC_TRY(plan, encoding->plan(2 * count + 1));
    Figure figure{.title = "Cached keys that are used elsewhere: " + encoding->name(),
                  .caption =
                      "Every token is the same word, so that scores show where keys stand. "
                      "Moved ones lie on the line.",
                  .columns = 2,
                  .height = 290};
    const std::int64_t head_dim = encoding->head_dim();
    const Places twice = joined(counted(0, count), counted(0, count)),
                 whole = counted(0, 2 * count);
    POSENC_TRY(merged,
               panel(plan, head_dim, options->seed, "two caches put together", twice, whole));
    merged.rules.push_back({static_cast<double>(count), "second text", true});
    POSENC_TRY(cropped, panel(plan, head_dim, options->seed, "the first half dropped",
                              counted(count, count), counted(0, count)));
    for (Series& series : cropped.series) series.in_legend = false;
    figure.panels = {std::move(merged), std::move(cropped)};
    return figure;
  };
}

constexpr std::string_view examples[] = {"moves.png"};

}  // namespace of_moves

extern const Kind moves{"moves", "Cached keys used at other positions: as they stood, and moved",
                        of_moves::define, of_moves::examples};

}  // namespace posenc::cli
