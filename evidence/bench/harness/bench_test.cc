#include "posenc/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <nlohmann/json.hpp>

#include "evidence/bench/harness/limits.h"
#include "evidence/bench/harness/products16.h"
#include "posenc/apply.h"

namespace {

using namespace posenc;

const BenchMachine small{.processors = 2, .last_level_cache = 1 << 20, .memory_available = 1 << 30};
constexpr BenchEffort once{.least_runs = 1, .seconds = 0};

TEST(BenchValue, ARotationReadsAndWritesEveryElementOfQueriesAndKeys) {
  const BenchCase what{.dtype = DType::bf16, .heads = 3, .kv_heads = 2, .head_dim = 4, .length = 7};
  EXPECT_EQ(what.elements(), 7 * 5 * 4);
  EXPECT_EQ(what.working_set(), 7 * 5 * 4 * 2);
  EXPECT_EQ(what.bytes(), 7 * 5 * 4 * 2 * 2);
}

TEST(BenchValue, ATableIsOnlyWrittenAndASumReadAndWritten) {
  BenchCase what{.op = BenchOp::table, .heads = 2, .head_dim = 8, .length = 10};
  EXPECT_EQ(what.bytes(), 10 * 16 * 4);
  what.op = BenchOp::add;
  EXPECT_EQ(what.bytes(), 2 * 10 * 16 * 4);
}

TEST(BenchValue, RatioIsTheLimitsTimeOverTheKernels) {
  const BenchRow row{.what = {.heads = 1, .head_dim = 1000, .length = 1000, .goal = 0.5},
                     .seconds = 0.008,
                     .limit_seconds = 0.002};
  EXPECT_DOUBLE_EQ(row.ratio(), 0.25);
  EXPECT_DOUBLE_EQ(row.gbps(), 1.0);
  EXPECT_DOUBLE_EQ(row.limit_gbps(), 4.0);
  EXPECT_TRUE(row.below_goal());
}

TEST(BenchValue, ARowWithoutAGoalIsNeverBelowIt) {
  EXPECT_FALSE((BenchRow{.what = {}, .seconds = 1, .limit_seconds = 1e-9}.below_goal()));
}

TEST(BenchValue, FromMemoryMeansFourTimesTheLastLevelCache) {
  EXPECT_FALSE(from_memory((4 << 20) - 1, small));
  EXPECT_TRUE(from_memory(4 << 20, small));
}

TEST(BenchValue, TheSweepIsTheSameEachTime) {
  const auto a = bench_cases(small), b = bench_cases(small);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].bytes(), b[i].bytes());
    EXPECT_EQ(a[i].threads, b[i].threads);
  }
}

TEST(BenchValue, EveryCaseNamedMemoryIsFromMemory) {
  int found = 0;
  for (const BenchCase& what : bench_cases(small)) {
    if (!what.name.starts_with("memory")) continue;
    ++found;
    EXPECT_TRUE(from_memory(what.working_set(), small)) << what.name << name(what.dtype);
    EXPECT_EQ(what.name.find("capped"), std::string::npos);
  }
  EXPECT_GE(found, 8);
}

TEST(BenchValue, AMemoryCaseTakesAQuarterOfTheMemoryAtMostAndSaysSo) {
  const BenchMachine tight{.last_level_cache = 256 << 20, .memory_available = 512 << 20};
  for (const BenchCase& what : bench_cases(tight)) {
    if (!what.name.starts_with("memory")) continue;
    EXPECT_LE(what.working_set(), tight.memory_available / 4);
    EXPECT_TRUE(what.name.ends_with(", capped")) << what.name;
  }
}

TEST(BenchValue, TheSweepHasEveryDtypeAndPairingFromMemoryAndFromCache) {
  std::set<std::string> memory, cache;
  for (const BenchCase& what : bench_cases(small)) {
    if (what.op != BenchOp::rotate) continue;
    const std::string key = std::string(name(what.dtype)) + " " + std::string(name(what.pairing));
    if (what.name == "memory") memory.insert(key);
    if (what.name == "cache") cache.insert(key);
  }
  EXPECT_EQ(memory.size(), 6u);
  EXPECT_EQ(cache.size(), 6u);
}

TEST(BenchValue, GivenThreadsAreThoseOfEveryRow) {
  for (const BenchCase& what : bench_cases(small, 3)) EXPECT_EQ(what.threads, 3);
}

TEST(BenchValue, EveryOpIsMeasuredInEveryDtype) {
  for (const BenchOp op : {BenchOp::rotate, BenchOp::rekey, BenchOp::add, BenchOp::table})
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const BenchCase what{.op = op, .dtype = dtype, .heads = 2, .head_dim = 6, .length = 5};
      const auto row = measure(what, small, once);
      ASSERT_TRUE(row.has_value()) << row.error().message();
      EXPECT_GT(row->seconds, 0);
      EXPECT_GT(row->limit_seconds, 0);
      EXPECT_GE(row->runs, 1);
      EXPECT_FALSE(row->ram);
    }
}

TEST(BenchValue, QueriesAndKeysOfADecodeBatchAreMeasured) {
  const auto row =
      measure({.heads = 4, .kv_heads = 1, .head_dim = 8, .length = 3, .decode = true}, small, once);
  ASSERT_TRUE(row.has_value()) << row.error().message();
  EXPECT_EQ(row->what.bytes(), 2 * 3 * 5 * 8 * 4);
}

TEST(BenchValue, BadSizesAreErrorsThatNameThem) {
  const std::pair<BenchCase, const char*> bad[] = {
      {{.heads = 0}, "heads must be 1 or more, got 0"},
      {{.head_dim = 3}, "head_dim"},
      {{.length = -1}, "length must be 1 or more, got -1"},
      {{.threads = 0}, "threads must be 1 or more"},
      {{.op = BenchOp::add, .kv_heads = 1}, "only rotate has kv_heads"},
      {{.length = std::int64_t{1} << 60}, "must fit the available memory"},
      {{.first_position = -1}, "position must be from 0"},
  };
  for (const auto& [what, part] : bad) {
    const auto row = measure(what, small, once);
    ASSERT_FALSE(row.has_value()) << part;
    EXPECT_NE(row.error().message().find(part), std::string::npos) << row.error().message();
  }
}

// A table of cos and sin up to position 10 million would be 5 GB, one of these tokens 2 MB.
TEST(BenchValue, RotatingAtTenMillionTakesNoMoreMemoryThanAtZero) {
  const BenchMachine machine = bench_machine();
  BenchCase what{.heads = 1};
  const auto here = measure(what, machine, once);
  what.first_position = 10'000'000;
  const auto far = measure(what, machine, once);
  ASSERT_TRUE(here && far);
  if (far->peak_bytes < 0) GTEST_SKIP() << "the system does not tell the memory in use";
  EXPECT_LT(far->peak_bytes, 1 << 20);
}

TEST(BenchValue, NotesCompareThreadsAndPositions) {
  const BenchCase one{.name = "cache"};
  BenchCase two = one, far = one;
  two.threads = 2;
  far.first_position = 10'000'000;
  const BenchRow rows[] = {
      {.what = one, .seconds = 4, .limit_seconds = 2, .peak_bytes = 0},
      {.what = two, .seconds = 2.5, .limit_seconds = 1, .peak_bytes = 0},
      {.what = far, .seconds = 4.4, .limit_seconds = 2, .peak_bytes = 2048},
  };
  const auto notes = bench_notes(rows);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].text,
            "2 threads against 1: 1.60 times as fast, the limit 2.00 (rotate, cache, float32)");
  EXPECT_TRUE(notes[0].below_goal);
  EXPECT_EQ(notes[1].text,
            "from position 10000000: 1.10 times the time of position 0, memory 2 KiB against 0 KiB "
            "(rotate, cache, float32)");
}

TEST(BenchValue, HalfPrecisionFromMemoryIsHeldAgainstFloatsLimitInBytesToo) {
  const BenchCase floats{.name = "memory"};
  BenchCase halves = floats;
  halves.dtype = DType::f16;
  halves.length *= 2;
  const BenchRow rows[] = {{.what = floats, .ram = true, .seconds = 2, .limit_seconds = 1},
                           {.what = halves, .ram = true, .seconds = 4, .limit_seconds = 2}};
  ASSERT_EQ(bench_notes(rows).size(), 1u);
  EXPECT_EQ(bench_notes(rows)[0].text,
            "float16 moves its bytes at 0.25 of float32's limit, its own limit at 0.50 (rotate, "
            "memory, halves, threads: 1)");
}

TEST(BenchValue, TwoThreadsMissNothingWhereTheLimitItselfDoesNotScale) {
  BenchCase two;
  two.threads = 2;
  const BenchRow rows[] = {{.what = {}, .seconds = 4, .limit_seconds = 2},
                           {.what = two, .seconds = 4, .limit_seconds = 2}};
  EXPECT_FALSE(bench_notes(rows).at(0).below_goal);
}

TEST(BenchValue, JsonHasTheDocumentedKeysInOrder) {
  const BenchRow row{.what = {}, .ram = true, .seconds = 2, .limit_seconds = 1, .runs = 3};
  const auto list = nlohmann::ordered_json::parse(to_json(std::span(&row, 1)));
  std::vector<std::string> keys;
  for (const auto& [key, value] : list.at(0).items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"case", "op", "dtype", "pairing", "heads", "kv_heads",
                                            "head_dim", "length", "threads", "memory", "bytes",
                                            "seconds", "gbps", "limit_gbps", "ratio"}));
  EXPECT_EQ(list[0]["memory"], "ram");
  EXPECT_EQ(list[0]["ratio"], 0.5);
}

// --- the limits themselves ----------------------------------------------------------------------

// Vectors and a rest that fills none.
constexpr std::int64_t odd_count = 261;

TEST(BenchAttend, PackedTextsSeeThemselvesAlone) {
  EXPECT_EQ((AttendCase{.length = 8, .packed = 4}.visible_pairs()), 20);
}

TEST(BenchAttend, OfBFloat16IsHeldAgainstTheProcessorsOwnProduct) {
  const AttendCase what{.name = "packed",
                        .heads = 1,
                        .kv_heads = 1,
                        .length = 64,
                        .packed = 32,
                        .long_length = 64,
                        .dtype = DType::bf16};
  const auto row = measure_attend(what, small, once);
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_GT(row->of_long(), 0);
  EXPECT_EQ(row->gemm16_ratio() > 0, detail::AttentionProducts16(64, 64).present());
}

TEST(BenchAttend, DoesNotDecodePackedTexts) {
  const auto row = measure_attend({.packed = 4, .decode = true}, small);
  ASSERT_FALSE(row);
  EXPECT_NE(row.error().message().find("packed"), std::string::npos);
}

TEST(Limits, ScalingMultipliesEveryElementAndNothingBeyond) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<double> memory(odd_count + 1);
    Tensor all = Tensor::dense(memory.data(), dtype, {odd_count + 1});
    for (std::int64_t i = 0; i <= odd_count; ++i) all.set(i, static_cast<double>(i % 64));
    detail::scale_in_place(memory.data(), dtype, odd_count, 2, 1);
    for (std::int64_t i = 0; i < odd_count; ++i)
      ASSERT_EQ(all.get(i), static_cast<double>(i % 64 * 2)) << name(dtype) << " " << i;
    EXPECT_EQ(all.get(odd_count), static_cast<double>(odd_count % 64)) << name(dtype);
  }
}

TEST(Limits, FillingWritesEveryElementAndNothingBeyond) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<double> memory(odd_count + 1);
    Tensor all = Tensor::dense(memory.data(), dtype, {odd_count + 1});
    detail::fill(memory.data(), dtype, odd_count, 1.5, 2);
    for (std::int64_t i = 0; i < odd_count; ++i) ASSERT_EQ(all.get(i), 1.5) << name(dtype);
    EXPECT_EQ(all.get(odd_count), 0) << name(dtype);
  }
}

}  // namespace
