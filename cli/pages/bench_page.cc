#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/pages/bench_page.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

template <class Known, std::size_t count>
Expected<Known> named(std::string_view text, const std::array<Known, count>& known,
                      std::string_view flag) {
  std::vector<std::string_view> names;
  for (const Known each : known) {
    if (name(each) == text) return each;
    names.push_back(name(each));
  }
  return fail(flag, "not known", text, suggestion(text, names));
}

constexpr std::array ops{BenchOp::rotate, BenchOp::rekey, BenchOp::add, BenchOp::table};
constexpr std::array dtypes{DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr std::array pairings{Pairing::halves, Pairing::interleaved};

std::string row_text(const BenchRow& row, const Terminal& term) {
  const BenchCase& what = row.what;
  // Padded by hand: fmt counts µ as it should, the terminal's colours not.
  std::string text =
      fmt::format("  {:<22}{:<9}{:<12}{:<19}{:>2}{:>10}", cut(what.name, 21), name(what.dtype),
                  name(what.pairing), shape_text(what), what.threads, seconds_text(row.seconds));
  text += fmt::format("{:>6.1f}{:>6.1f}{:>6.2f}", row.gbps(), row.limit_gbps(), row.ratio());
  if (row.below_goal()) text += term.yellow(fmt::format(" <{:.2f}", what.goal));
  return text + "\n";
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

Expected<DType> dtype_named(const std::string& text) { return named(text, dtypes, "--dtype"); }

Expected<std::vector<BenchCase>> chosen(const BenchWanted& wanted, const BenchMachine& machine) {
  BenchCase own;
  std::optional<BenchOp> op;
  std::optional<DType> dtype;
  std::optional<Pairing> pairing;
  if (!wanted.op.empty()) {
    POSENC_TRY(found, named(wanted.op, ops, "bench: OP"));
    op = found;
  }
  if (!wanted.dtype.empty()) {
    POSENC_TRY(found, dtype_named(wanted.dtype));
    dtype = found;
  }
  if (!wanted.pairing.empty()) {
    POSENC_TRY(found, named(wanted.pairing, pairings, "--pairing"));
    pairing = found;
  }

  if (wanted.sized()) {
    own.op = op.value_or(own.op);
    own.dtype = dtype.value_or(own.dtype);
    own.pairing = pairing.value_or(own.pairing);
    own.heads = wanted.heads.value_or(own.heads);
    own.kv_heads = wanted.kv_heads.value_or(own.kv_heads);
    own.head_dim = wanted.head_dim.value_or(own.head_dim);
    own.length = wanted.length.value_or(own.length);
    own.first_position = wanted.position.value_or(own.first_position);
    own.threads = std::max(wanted.threads, 1);
    return std::vector{own};
  }

  std::vector<BenchCase> all = bench_cases(machine, wanted.threads);
  std::erase_if(all, [&](const BenchCase& each) {
    return (op && each.op != *op) || (dtype && each.dtype != *dtype) ||
           (pairing && each.pairing != *pairing);
  });
  if (all.empty())
    return fail("bench", "the sweep has no such row", wanted.dtype, "say sizes, as --length 4096");
  return all;
}

bool of_heads(BenchOp op) { return op == BenchOp::rotate || op == BenchOp::rekey; }

std::string shape_text(const BenchCase& what) {
  if (!of_heads(what.op)) return fmt::format("{} x {}", what.length, what.heads * what.head_dim);
  const std::string keys = what.kv_heads > 0 ? fmt::format("+{}", what.kv_heads) : "";
  return fmt::format("{}{} x {} x {}", what.heads, keys, what.length, what.head_dim);
}

std::string bench_page(std::span<const BenchRow> rows, const BenchMachine& machine,
                       const Terminal& term) {
  std::string page =
      fmt::format("{}, {} processors, {} MiB of last-level cache, {}\n", machine.processor,
                  machine.processors, machine.last_level_cache >> 20,
                  machine.instruction_set.empty() ? "plain loops" : machine.instruction_set);
  const BenchOp* last = nullptr;
  for (const BenchRow& row : rows) {
    if (!last || *last != row.what.op) {
      const std::string op(name(row.what.op));
      page += "\n" +
              term.bold(fmt::format("{:<24}{:<9}{:<12}{:<18}{:>3}{:>10}{:>6}{:>6}{:>6}", op,
                                    "dtype", "pairing",
                                    of_heads(row.what.op) ? "heads x tokens" : "tokens x width",
                                    "thr", "time", "GB/s", "limit", "ratio")) +
              "\n";
    }
    last = &row.what.op;
    page += row_text(row, term);
  }
  page += "\n" +
          wrapped(
              "Ratio: the limit's time over the kernel's. The limit is the same memory "
              "scaled in place by a constant, filled, for a table, or rotated, for rekey, by "
              "the same vectors and threads, in turns with the kernel. < marks a ratio below the "
              "goal beside it.",
              0, 0) +
          "\n";
  for (const std::string& choice : bench_choices()) page += wrapped(choice, 2, 0) + "\n";
  for (const BenchNote& note : bench_notes(rows))
    page += wrapped(note.text, 2, 0) + (note.below_goal ? term.yellow(" < goal") : "") + "\n";
  const auto below = std::ranges::count_if(rows, &BenchRow::below_goal);
  const auto goals = std::ranges::count_if(rows, [](const BenchRow& r) { return r.what.goal > 0; });
  if (goals > 0) page += fmt::format("{} of {} goals met\n", goals - below, goals);
  return page;
}

int strict_exit_code(std::span<const BenchRow> rows) {
  const std::vector<BenchNote> notes = bench_notes(rows);
  return std::ranges::any_of(rows, &BenchRow::below_goal) ||
                 std::ranges::any_of(notes, &BenchNote::below_goal)
             ? 1
             : 0;
}

}  // namespace posenc::cli
