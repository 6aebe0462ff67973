#include "cli/pages/bench_page.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <span>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/commands/bench_exactness.h"
#include "cli/mpi/ranks.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

BenchEffort effort_of(bool quick) {
  return quick ? BenchEffort{.least_runs = 3, .seconds = 0.2, .settled = 0.02} : BenchEffort{};
}

// Attention over the ranks of mpirun.
Expected<int> bench_ring(const BenchWanted& asked, bool json, bool quick) {
  if (ranks_of_mpi == nullptr) return become_posenc_mpi();
  RingWanted wanted{.quick = quick, .json = json};
  if (asked.heads) wanted.heads = *asked.heads;
  if (asked.kv_heads) wanted.kv_heads = *asked.kv_heads;
  if (asked.head_dim) wanted.head_dim = *asked.head_dim;
  if (asked.length) wanted.length = *asked.length;
  POSENC_TRY(page, ranks_of_mpi->bench(wanted));
  write_out("{}", page);
  return 0;
}

Run define_bench(CLI::App& app) {
  struct Options {
    BenchWanted wanted;
    bool json = false, quick = false, strict = false;
    std::string python = "python3";
  };
  auto options = std::make_shared<Options>();
  BenchWanted& asked = options->wanted;
  app.add_option("OP", asked.op,
                 "rotate, rekey, add, table or attend; the first four without. ring: under mpirun; "
                 "exactness: how far cosines are off, on every backend here");
  const auto size = [&](const char* flag, auto& value, const char* about) {
    app.add_option(flag, value, about)->transform(above_zero());
  };
  size("--heads", asked.heads, "Query heads (8; attend: 16)");
  app.add_option("--kv_heads", asked.kv_heads,
                 "Heads of keys: rotated in the same call (0); attend: (--heads)")
      ->check(CLI::NonNegativeNumber);
  size("--head_dim", asked.head_dim,
       "Channels of a head (128; attend: 64); add, table: width/heads");
  size("--length", asked.length, "Tokens (4096)");
  app.add_option("--position", asked.position, "Position of the first token (0)")
      ->transform(position_count());
  app.add_option("--dtype", asked.dtype, "float32, float64, float16 or bfloat16");
  app.add_option("--pairing", asked.pairing,
                 "halves or interleaved, the sines of add and table too");
  app.add_option("--scheme", asked.schemes,
                 "attend: schemes, those that read the content too\n"
                 "(nope, rope, alibi, t5, kerple, shaw)")
      ->delimiter(',');
  app.add_option("--softmax", asked.softmax, "attend: what else the softmax knows")
      ->check(CLI::IsMember({"sinks", "softcap", "temperature"}));
  size("--grid", asked.grid, "attend: side of a picture, of patches that all see each other");
  size("--packed", asked.packed, "attend: tokens of each of the texts that share the call");
  app.add_flag("--decode", asked.decode,
               "attend: one query, the last, against --length keys (32768)");
  app.add_option("--cache", asked.cache, "attend: keys and values in 8 bits")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, DType>{
              {"q8_0", DType::q8_0}, {"e4m3", DType::e4m3}, {"e5m2", DType::e5m2}},
          CLI::ignore_case))
      ->type_name("{q8_0,e4m3,e5m2}")
      ->default_str("");
  app.add_option("--set", asked.set,
                 "Instruction set of kernel and limit, such as AVX2 (the widest)")
      ->type_name("NAME");
  app.add_option("--threads", asked.threads, "Threads of kernel and limit (1)")
      ->transform(above_zero());
  app.add_flag("--json", options->json)->description("An array, an object a row (docs/speed.md)");
  app.add_option("--python", options->python, "exactness: the one that has triton, torch and jax")
      ->type_name("PROGRAM");
  app.add_flag("--quick", options->quick)->description("Fewer runs of each: a first impression");
  app.add_flag("--strict", options->strict)->description("Exit with 1 where a goal is missed");
  app.footer(
      "Each kernel is measured in turns with what limits it, on the same memory: scaling in place\n"
      "by a constant, for a table a plain fill, for rekey a rotation. Without sizes a sweep is\n"
      "measured, of which --dtype, --pairing and --threads take a part. It needs up to a quarter "
      "of\n"
      "the free memory and two minutes. One thread is timed by its own processor time, so that\n"
      "other programs count little; several by the clock.\n\n"
      "Examples:\n"
      "  posenc bench\n"
      "  posenc bench rotate --dtype bfloat16 --quick\n"
      "  posenc bench rotate --heads 32 --kv_heads 8 --length 8192 --dtype float16 --threads 2\n"
      "  posenc bench rotate --length 4096 --position 10000000\n"
      "  posenc bench rekey --heads 8 --length 65536\n"
      "  posenc bench table --length 32768 --head_dim 128 --json\n"
      "  posenc bench attend\n"
      "  posenc bench exactness --json\n"
      "  mpirun -n 2 posenc bench ring --length 8192\n"
      "  posenc bench attend --scheme rope,alibi --heads 8 --length 1024 --quick\n"
      "  posenc bench attend --scheme grid_bias,decomposed --grid 64\n"
      "  posenc bench attend --decode --heads 32 --kv_heads 8 --head_dim 128 --dtype bfloat16\n"
      "  posenc bench attend --decode --cache q8_0 --scheme nope");
  return [options, &app]() -> Expected<int> {
    const BenchWanted& wanted = options->wanted;
    if (wanted.op == "exactness") return bench_exactness(options->python, options->json);
    if (wanted.op == "ring") return bench_ring(wanted, options->json, options->quick);
    if (!wanted.set.empty()) POSENC_CHECK(use_instruction_set(wanted.set));
    const BenchMachine machine = bench_machine();
    if (wanted.op != "attend" &&
        (wanted.decode || wanted.grid || wanted.packed || !wanted.schemes.empty() ||
         !wanted.softmax.empty() || wanted.cache))
      return fail("bench",
                  "--scheme, --softmax, --grid, --packed, --decode and --cache are attend's",
                  wanted.op.empty() ? "none" : wanted.op, "posenc bench attend");
    if (wanted.op == "attend" && (!wanted.pairing.empty() || wanted.position))
      return fail("bench attend", "takes no --pairing and no --position", "", "name a --scheme");
    const auto page = [&](const auto& rows, const auto& write) {
      write_out("{}{}",
                options->json ? to_json(rows) : write(rows, machine, terminal(no_color(app))),
                options->json ? "\n" : "");
    };
    if (wanted.op == "attend") {
      if (!wanted.dtype.empty()) {
        POSENC_CHECK(dtype_named(wanted.dtype));
      }
      const std::vector<AttendCase> cases = chosen_attend(wanted);
      std::vector<AttendRow> rows;
      {
        Progress progress("bench", cases.size());
        for (const AttendCase& what : cases) {
          progress.tell(rows.size(), fmt::format("attend {} {}", what.name, what.scheme));
          POSENC_TRY(row, measure_attend(what, machine, effort_of(options->quick)));
          rows.push_back(std::move(row));
        }
      }
      page(std::span<const AttendRow>(rows), attend_page);
      return 0;
    }
    POSENC_TRY(cases, chosen(wanted, machine));
    const BenchEffort effort = effort_of(options->quick);
    std::vector<BenchRow> rows;
    {
      Progress progress("bench", cases.size());
      for (const BenchCase& what : cases) {
        progress.tell(rows.size(), fmt::format("{} {} {} {}", name(what.op), what.name,
                                               name(what.dtype), name(what.pairing)));
        POSENC_TRY(row, measure(what, machine, effort));
        rows.push_back(std::move(row));
      }
    }
    page(std::span<const BenchRow>(rows), bench_page);
    return options->strict ? strict_exit_code(rows) : 0;
  };
}

}  // namespace

extern const Command bench_command{
    "bench", "how fast the kernels are beside what this machine's memory allows", define_bench};

}  // namespace posenc::cli
