// posenc bench: its flags, its page, its JSON, its exit codes. What it measures is no test's
// matter.
#include "cli/pages/bench_page.h"

#include <sstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using posenc::BenchCase;
using posenc::BenchMachine;
using posenc::BenchOp;
using posenc::BenchRow;
using posenc::DType;
using posenc::test::has;
using posenc::test::Outcome;
namespace cli = posenc::cli;

class Bench : public posenc::test::CommandTest {};

const std::string tiny = " --heads 2 --head_dim 8 --length 16 --quick";
const BenchMachine machine{
    .processors = 2, .last_level_cache = 1 << 20, .memory_available = 1 << 30};

const BenchRow slow{.what = {.name = "cache", .goal = 0.6}, .seconds = 4e-3, .limit_seconds = 2e-3};
const BenchRow fast{.what = {.name = "cache", .goal = 0.6}, .seconds = 4e-3, .limit_seconds = 3e-3};

TEST_F(Bench, GivenSizesAreOneRowWithTheOthersByDefault) {
  const auto list = nlohmann::json::parse(
      posenc("bench rotate --kv_heads 1 --dtype float16 --pairing interleaved --json" + tiny).out);
  ASSERT_EQ(list.size(), 1u);
  const auto& row = list[0];
  EXPECT_EQ(row["case"], "given");
  EXPECT_EQ(row["op"], "rotate");
  EXPECT_EQ(row["dtype"], "float16");
  EXPECT_EQ(row["pairing"], "interleaved");
  EXPECT_EQ(row["heads"], 2);
  EXPECT_EQ(row["kv_heads"], 1);
  EXPECT_EQ(row["head_dim"], 8);
  EXPECT_EQ(row["length"], 16);
  EXPECT_EQ(row["threads"], 1);
  EXPECT_EQ(row["memory"], "cache");
  EXPECT_EQ(row["bytes"], 16 * 3 * 8 * 2 * 2);
}

TEST_F(Bench, TheFiguresOfARowAgreeWithEachOther) {
  const auto row = nlohmann::json::parse(posenc("bench add --json" + tiny).out).at(0);
  const double bytes = row["bytes"], seconds = row["seconds"], ratio = row["ratio"];
  EXPECT_DOUBLE_EQ(row["gbps"].get<double>(), bytes / seconds * 1e-9);
  EXPECT_NEAR(ratio, row["gbps"].get<double>() / row["limit_gbps"].get<double>(), 1e-9 * ratio);
}

TEST_F(Bench, DashesInFlagsAreUnderscores) {
  EXPECT_EQ(posenc("bench rotate --kv-heads 1 --head-dim 8 --length 4 --quick --json").code, 0);
}

TEST_F(Bench, AFarPositionIsOneRowToo) {
  EXPECT_EQ(posenc("bench table --position 10000000" + tiny).code, 0);
}

TEST_F(Bench, BadInputExitsWithTwo) {
  const std::pair<const char*, const char*> bad[] = {
      {"bench spin", "bench: OP: not known, got spin; one of: rotate rekey add table"},
      {"bench rotate --length 0", "--length"},
      {"bench rotate --length -4", "--length"},
      {"bench rotate --heads x", "--heads"},
      {"bench rotate --dtype float31", "did you mean 'float32'?"},
      {"bench rotate --pairing half", "--pairing: not known, got half"},
      {"bench rotate --threads 0 --length 4", "--threads"},
      {"bench rotate --head_dim 7 --length 4", "head_dim"},
      {"bench add --kv_heads 2 --length 4", "bench: only rotate has kv_heads, got 2"},
      {"bench rotate --length 4000000000000", "must fit the available memory"},
      {"bench rotate --position -1", "--position"},
      {"bench --dtype float64", "the sweep has no such row"},
      {"bench rotate --lenght 4", "did you mean --length?"},
  };
  for (const auto& [arguments, part] : bad) {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
}

TEST_F(Bench, NothingIsWrittenBesideThePage) { EXPECT_EQ(posenc("bench add" + tiny).err, ""); }

TEST_F(Bench, TheHelpHasExamples) {
  const std::string help = posenc("bench --help").out;
  EXPECT_TRUE(has(help, "posenc bench rotate --dtype bfloat16 --quick")) << help;
}

TEST_F(Bench, WithoutSizesTheSweepIsFilteredByOpDtypeAndPairing) {
  const auto all = cli::chosen({}, machine);
  const auto some =
      cli::chosen({.op = "rotate", .dtype = "bfloat16", .pairing = "halves"}, machine);
  ASSERT_TRUE(all && some);
  EXPECT_LT(some->size(), all->size());
  for (const BenchCase& what : *some) {
    EXPECT_EQ(what.op, BenchOp::rotate);
    EXPECT_EQ(what.dtype, DType::bf16);
  }
}

TEST_F(Bench, ARowBelowItsGoalIsMarked) {
  EXPECT_TRUE(has(cli::bench_page({&slow, 1}, machine, {}), "0.50 <0.60"));
  EXPECT_FALSE(has(cli::bench_page({&fast, 1}, machine, {}), "<0.60"));
}

TEST_F(Bench, OnlyStrictFailsBelowAGoal) {
  EXPECT_EQ(cli::strict_exit_code({&slow, 1}), 1);
  EXPECT_EQ(cli::strict_exit_code({&fast, 1}), 0);
}

TEST_F(Bench, ThePageIsAtMost100ColumnsWide) {
  std::vector<BenchRow> rows;
  for (const BenchCase& what : posenc::bench_cases(posenc::bench_machine()))
    rows.push_back({.what = what, .seconds = 0.123456, .limit_seconds = 0.02, .peak_bytes = 0});
  std::istringstream page(cli::bench_page(rows, machine, {}));
  for (std::string line; std::getline(page, line);) EXPECT_LE(cli::columns(line), 100u) << line;
}

}  // namespace
