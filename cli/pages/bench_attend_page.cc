// `posenc bench attend`: its cases, and its page.
#include <fmt/format.h>

#include <algorithm>

#include "cli/pages/bench_page.h"

namespace posenc::cli {

std::vector<AttendCase> chosen_attend(const BenchWanted& wanted) {
  const int threads = std::max(wanted.threads, 1);
  if (!wanted.sized() && !wanted.decode && wanted.schemes.empty() && wanted.dtype.empty() &&
      wanted.softmax.empty() && !wanted.cache)
    return attend_cases(threads);
  AttendCase own{.softmax = wanted.softmax, .decode = wanted.decode, .threads = threads};
  own.heads = wanted.heads.value_or(own.heads);
  own.kv_heads = wanted.kv_heads.value_or(own.heads);
  own.head_dim = wanted.head_dim.value_or(own.head_dim);
  own.cache_dtype = wanted.cache;
  own.grid = wanted.grid.value_or(0);
  own.packed = wanted.packed.value_or(0);
  const std::int64_t patches = own.grid * own.grid;
  own.length = wanted.length.value_or(own.decode ? 32768 : patches > 0 ? patches : own.length);
  if (!wanted.dtype.empty()) own.dtype = dtype_named(wanted.dtype).value_or(own.dtype);
  std::vector<AttendCase> cases;
  for (const std::string& scheme :
       wanted.schemes.empty()
           ? std::vector<std::string>{"nope", "rope", "alibi", "t5", "kerple", "shaw"}
           : wanted.schemes) {
    cases.push_back(own);
    cases.back().scheme = scheme;
    cases.back().page = scheme.starts_with("axis_buckets");
  }
  return cases;
}

namespace {

std::string dtype_text(const AttendCase& what) {
  if (!what.cache_dtype) return std::string(name(what.dtype));
  constexpr std::string_view prefix = "float8_";
  std::string_view cache = name(*what.cache_dtype);
  if (cache.starts_with(prefix)) cache.remove_prefix(prefix.size());
  return std::string(cache);
}

// What a row is held against besides the same without position.
std::string beside(const AttendRow& row) {
  if (row.what.decode) return fmt::format("{:.2f} rd", row.seconds / row.read_seconds);
  if (row.what.backward) return fmt::format("{:.2f} fw", row.of_forward());
  if (row.what.long_length > 0) return fmt::format("{:.2f} lg", row.of_long());
  if (row.gemm16_seconds > 0) return fmt::format("{:.2f} bf", row.gemm16_ratio());
  return "";
}

}  // namespace

std::string attend_page(std::span<const AttendRow> rows, const BenchMachine& machine,
                        const Terminal& term) {
  std::string page =
      fmt::format("{}, {} processors, {}\n\n", machine.processor, machine.processors,
                  machine.instruction_set.empty() ? "plain loops" : machine.instruction_set);
  page +=
      term.bold(fmt::format("{:<12}{:<15}{:<9}{:<22}{:>3}{:>11}{:>10}{:>9}{:>6}{:>7}{:>10}{:>6}",
                            "attend", "scheme", "dtype", "heads x keys x dim", "thr", "time",
                            "overhead", "GFLOP/s", "gemm", "ratio", "beside", "MiB")) +
      "\n";
  for (const AttendRow& row : rows) {
    const AttendCase& what = row.what;
    const std::string heads = what.kv_heads == what.heads
                                  ? fmt::format("{}", what.heads)
                                  : fmt::format("{}/{}", what.heads, what.kv_heads);
    const bool products = row.gemm_seconds > 0 && !what.decode && !what.backward;
    page +=
        fmt::format("{:<12}{:<15}{:<9}{:<22}{:>3}{:>11}{:>10.2f}{:>9.1f}{:>6}{:>7}{:>10}{:>6}\n",
                    what.name, what.scheme, dtype_text(what),
                    fmt::format("{} x {} x {}", heads, what.length, what.head_dim), what.threads,
                    seconds_text(row.seconds), row.overhead(), row.gflops(),
                    products ? fmt::format("{:.0f}", row.gemm_gflops()) : "",
                    products ? fmt::format("{:.2f}", row.gemm_ratio()) : "", beside(row),
                    row.peak_bytes < 0
                        ? ""
                        : fmt::format("{:.1f}", static_cast<double>(row.peak_bytes) / (1 << 20)));
  }
  return page + "\n" +
         wrapped(
             "Causal attention, all of a row measured in turns. overhead: the time over that of "
             "the same "
             "attention without position. GFLOP/s counts 4 · head_dim for each head and each pair "
             "of a "
             "query and a key that it sees; gemm is OpenBLAS' sgemm on one head's two products, "
             "ratio "
             "the one over the other. beside: of decoding, the time over that of reading keys and "
             "values once (rd); of gradients (10 · head_dim a pair), over that of the same "
             "attention "
             "forwards (fw); of short texts, the GFLOP/s over those at 4096 (lg); of bfloat16, "
             "over those of the processor's own products of it (bf). "
             "MiB: memory beyond the arguments.",
             0, 0) +
         "\n";
}

}  // namespace posenc::cli
