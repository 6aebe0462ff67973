#include "cli/bench.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/progress.h"

namespace posenc::cli {

Run define_bench(CLI::App& app) {
  struct Options {
    BenchWanted wanted;
    bool json = false, quick = false, strict = false;
  };
  auto options = std::make_shared<Options>();
  BenchWanted& wanted = options->wanted;
  app.add_option("OP", wanted.op, "rotate, add or table; all of them without");
  const auto size = [&](const char* flag, auto& value, const char* about) {
    app.add_option(flag, value, about)->check(above_zero());
  };
  size("--heads", wanted.heads, "Query heads (8)");
  app.add_option("--kv_heads", wanted.kv_heads, "Heads of keys turned in the same call (0)")
      ->check(CLI::NonNegativeNumber);
  size("--head_dim", wanted.head_dim, "Channels of a head (128); add, table: width/heads");
  size("--length", wanted.length, "Tokens (4096)");
  app.add_option("--position", wanted.position, "Position of the first token (0)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--dtype", wanted.dtype, "float32, float64, float16 or bfloat16");
  app.add_option("--pairing", wanted.pairing,
                 "halves or interleaved, the sines of add and table too");
  app.add_option("--threads", wanted.threads, "Threads of kernel and limit (1)")
      ->check(above_zero());
  app.add_flag("--json", options->json)->description("An array, an object a row (docs/speed.md)");
  app.add_flag("--quick", options->quick)->description("Fewer runs of each: a first impression");
  app.add_flag("--strict", options->strict)->description("Exit with 1 where a goal is missed");
  app.footer(
      "Each kernel is measured in turns with what limits it, on the same memory: scaling in place\n"
      "by a constant, or, for a table, a plain fill. Without sizes a sweep is measured, of which\n"
      "--dtype, --pairing and --threads take a part. It needs up to a quarter of the free memory\n"
      "and two minutes. One thread is timed by its own processor time, so that other programs\n"
      "count little; several by the clock.\n\n"
      "Examples:\n"
      "  posenc bench\n"
      "  posenc bench rotate --dtype bfloat16 --quick\n"
      "  posenc bench rotate --heads 32 --kv_heads 8 --length 8192 --dtype float16 --threads 2\n"
      "  posenc bench rotate --length 4096 --position 10000000\n"
      "  posenc bench table --length 32768 --head_dim 128 --json");
  return [options, &app]() -> Expected<int> {
    const BenchMachine machine = bench_machine();
    const Expected<std::vector<BenchCase>> cases = chosen(options->wanted, machine);
    if (!cases) return std::unexpected(cases.error());
    const BenchEffort effort = options->quick
                                   ? BenchEffort{.least_runs = 3, .seconds = 0.2, .settled = 0.02}
                                   : BenchEffort{};
    std::vector<BenchRow> rows;
    {
      Progress progress("bench", cases->size());
      for (const BenchCase& what : *cases) {
        progress.tell(rows.size(), fmt::format("{} {} {} {}", name(what.op), what.name,
                                               name(what.dtype), name(what.pairing)));
        Expected<BenchRow> row = measure(what, machine, effort);
        if (!row) return std::unexpected(row.error());
        rows.push_back(std::move(*row));
      }
    }
    if (options->json)
      fmt::print("{}\n", to_json(rows));
    else
      fmt::print("{}", bench_page(rows, machine, terminal(no_color(app))));
    return options->strict ? strict_exit_code(rows) : 0;
  };
}

}  // namespace posenc::cli
