// Which cases `posenc bench` measures, and its page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/pages/terminal.h"
#include "posenc/bench.h"

namespace posenc::cli {

// What was asked for; what is left out is as in BenchCase, or all of the sweep.
struct BenchWanted {
  std::string op;  // "" : all
  std::optional<std::int64_t> heads, kv_heads, head_dim, length, position, grid, packed;
  std::string dtype, pairing;
  std::string set;                   // of instructions; "": the widest
  std::string softmax;               // of attend
  std::vector<std::string> schemes;  // of attend
  bool decode = false;
  std::optional<DType> cache;  // of attend
  int threads = 0;
  // One case of one's own, instead of rows of the sweep.
  bool sized() const {
    return heads || kv_heads || head_dim || length || position || grid || packed;
  }
};

// Errors: an unknown op, dtype or pairing.
Expected<std::vector<BenchCase>> chosen(const BenchWanted& wanted, const BenchMachine& machine);

std::vector<AttendCase> chosen_attend(const BenchWanted& wanted);
std::string attend_page(std::span<const AttendRow> rows, const BenchMachine& machine,
                        const Terminal& term);

// "float16" and the like. Errors: none of them.
Expected<DType> dtype_named(const std::string& text);

// "12.3 µs", "12.30 ms", "12.30 s"
std::string seconds_text(double seconds);

// "8 x 4096 x 128", "32+8 x 64 x 128": heads of queries and keys, tokens, channels.
std::string shape_text(const BenchCase& what);

std::string bench_page(std::span<const BenchRow> rows, const BenchMachine& machine,
                       const Terminal& term);

// 1 if a row or a note is below its goal, else 0.
int strict_exit_code(std::span<const BenchRow> rows);

}  // namespace posenc::cli
