#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_buckets(CLI::App& app) {
  struct Options {
    std::string kind = "t5";
    std::int64_t num_buckets = 32, max_distance = 128, from = -128, to = 128;
    bool bidirectional = false, json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--kind", options->kind, "Whose buckets")->check(CLI::IsMember({"t5", "deberta"}));
  app.add_option("--num_buckets,--position_buckets,--relative_attention_num_buckets",
                 options->num_buckets, "Rows of the table (deberta: on each side)");
  app.add_option("--max_distance,--max_position,--max_relative_positions", options->max_distance,
                 "Distance that the last bucket stands for");
  app.add_flag("--bidirectional", options->bidirectional, "t5: half of them for keys ahead");
  app.add_option("--from", options->from, "First relative position");
  app.add_option("--to", options->to, "Last relative position, included");
  app.add_flag("--json", options->json, "{\"relative\":[...],\"bucket\":[...]}");
  app.footer(
      "Relative position: t5 key - query, deberta query - key, as their papers count.\n\n"
      "Examples:\n"
      "  posenc buckets --num_buckets 32 --max_distance 128 --from=-300 --to=0\n"
      "  posenc buckets --bidirectional --from=-300 --to=300 --json\n"
      "  posenc buckets --kind deberta --position_buckets 256 --max_position 512 --from=-600 "
      "--to=600");
  return [options]() -> Expected<int> {
    if (options->to < options->from)
      return fail("buckets", "--to must not lie before --from",
                  fmt::format("{} to {}", options->from, options->to));
    std::int64_t span = 0;
    if (__builtin_sub_overflow(options->to, options->from, &span) || span >= 1 << 24)
      return fail("buckets", "at most 2^24 relative positions at once",
                  fmt::format("{} to {}", options->from, options->to));
    std::vector<std::int64_t> relative, bucket;
    for (std::int64_t i = 0; i <= span; i++) {
      const std::int64_t r = options->from + i;
      POSENC_TRY(
          b, options->kind == "t5"
                 ? t5_bucket(r, options->num_buckets, options->max_distance, options->bidirectional)
                 : deberta_bucket(r, options->num_buckets, options->max_distance));
      relative.push_back(r);
      bucket.push_back(b);
    }
    if (options->json) {
      write_out("{{\"relative\":[{}],\"bucket\":[{}]}}\n", fmt::join(relative, ","),
                fmt::join(bucket, ","));
      return 0;
    }
    // A line for each run of equal buckets: the table's shape at a glance.
    write_out("{:>22}  bucket\n", "relative position");
    for (std::size_t i = 0, end; i < bucket.size(); i = end) {
      for (end = i; end < bucket.size() && bucket[end] == bucket[i];) end++;
      const std::string range = end - i == 1
                                    ? fmt::format("{}", relative[i])
                                    : fmt::format("{} to {}", relative[i], relative[end - 1]);
      write_out("{:>22}  {:>6}\n", range, bucket[i]);
    }
    return 0;
  };
}

}  // namespace

extern const Command buckets_command{"buckets", "T5's and DeBERTa's buckets of relative positions",
                                     define_buckets};

}  // namespace posenc::cli
