// T5's and DeBERTa's buckets of relative positions, as stairs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_bucket_stairs {

struct Options {
  std::string which = "both";
  std::int64_t num_buckets = 32, max_distance = 128, position_buckets = 256,
               max_relative_positions = 512;
};

Expected<Panel> t5(const Options& options) {
  Panel panel;
  panel.title =
      fmt::format("T5: {} buckets, to distance {}", options.num_buckets, options.max_distance);
  panel.x = {.label = "key − query (tokens)", .column = "relative_position_tokens"};
  panel.y = {.label = "bucket", .column = "bucket"};
  const std::int64_t reach = options.max_distance + options.max_distance / 4;
  for (const bool both : {false, true}) {
    Series steps{.name = both ? "T5, both directions" : "T5, causal",
                 .colour = line_colour(both ? 2 : 1)};
    steps.mark = Mark::steps;
    for (std::int64_t r = -reach; r <= reach; r++) {
      POSENC_TRY(bucket, t5_bucket(r, options.num_buckets, options.max_distance, both));
      steps.add(static_cast<double>(r), static_cast<double>(bucket));
    }
    panel.series.push_back(std::move(steps));
  }
  return panel;
}

Expected<Panel> deberta(const Options& options) {
  Panel panel{.title = fmt::format("DeBERTa: {} a side, to distance {}", options.position_buckets,
                                   options.max_relative_positions),
              .x = {.label = "key − query (tokens)", .column = "relative_position_tokens"},
              .y = {.label = "bucket", .column = "bucket"}};
  Series steps{.name = "DeBERTa", .colour = line_colour(3)};
  steps.mark = Mark::steps;
  const std::int64_t rows =
      options.position_buckets > 0 ? options.position_buckets : options.max_relative_positions;
  const std::int64_t reach = options.max_relative_positions + options.max_relative_positions / 4;
  for (std::int64_t r = -reach; r <= reach; r++) {
    POSENC_TRY(bucket,
               deberta_bucket(-r, options.position_buckets, options.max_relative_positions));
    steps.x.push_back(static_cast<double>(r));
    // The attention clips to the rows there are.
    steps.y.push_back(static_cast<double>(std::clamp(bucket, -rows, rows - 1)));
  }
  panel.series.push_back(std::move(steps));
  return panel;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--kind", options->which, "Whose buckets")
      ->check(CLI::IsMember({"both", "t5", "deberta"}));
  const CLI::Range distances(2, 1 << 16);
  app.add_option("--num_buckets", options->num_buckets, "T5: rows of the table");
  app.add_option("--max_distance", options->max_distance, "T5: distance of the last bucket")
      ->check(distances);
  app.add_option("--position_buckets", options->position_buckets, "DeBERTa: buckets on each side");
  app.add_option("--max_relative_positions", options->max_relative_positions,
                 "DeBERTa: distance of the last bucket")
      ->check(distances);
  return [options]() -> Expected<Figure> {
    Figure figure{.title = "Buckets of relative positions", .height = 240};
    figure.caption =
        "Near distances have a bucket each; farther ones share, more and more of them on a "
        "logarithmic scale, and beyond the last step all distances are one. Keys before the query "
        "are at the left.";
    for (const auto& [name, make] : {std::pair{"t5", &t5}, std::pair{"deberta", &deberta}}) {
      if (options->which != "both" && options->which != name) continue;
      POSENC_TRY(panel, make(*options));
      figure.panels.push_back(std::move(panel));
    }
    figure.columns = static_cast<std::int64_t>(figure.panels.size());
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "buckets.png --num_buckets 32 --max_distance 128",
};

}  // namespace of_bucket_stairs

extern const Kind bucket_stairs{"buckets", "The stairs of T5's and DeBERTa's buckets",
                                of_bucket_stairs::define, of_bucket_stairs::examples};

}  // namespace posenc::cli
