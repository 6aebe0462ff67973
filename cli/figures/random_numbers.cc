// Random numbers of a seed: queries are the normal numbers of the seed itself, keys those of the next one,
// and learned tables those of the one after it.
#include "cli/figures/random_numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/tools.h"

namespace posenc::cli {
namespace {

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : seed_(seed + 2) {}
  std::vector<double> next(std::int64_t count) {
    taken_ += count;
    return normals(seed_, count, taken_ - count);
  }
  void fill(Table& table, std::int64_t rows, std::int64_t columns) {
    if (!table) table = Table::own(next(rows * columns), rows, columns);
  }
  void fill(std::vector<double>& numbers, std::int64_t count) {
    if (numbers.empty()) numbers = next(count);
  }

 private:
  std::uint64_t seed_;
  std::int64_t taken_ = 0;
};

}  // namespace

Words words_named(std::string_view name) {
  return name == "alike"   ? Words::alike
         : name == "same"  ? Words::same
         : name == "equal" ? Words::equal
                           : Words::random;
}

std::vector<double> random_vectors(Words words, bool keys, std::uint64_t seed, std::int64_t heads,
                                   std::int64_t length, std::int64_t head_dim) {
  if (words == Words::equal)
    return std::vector<double>(static_cast<std::size_t>(heads * length * head_dim), 1.0);
  if (keys && words != Words::same) seed++;
  if (words == Words::random) return normals(seed, heads * length * head_dim);
  const std::vector<double> word = normals(seed, heads * head_dim);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(heads * length * head_dim));
  for (std::int64_t h = 0; h < heads; h++)
    for (std::int64_t t = 0; t < length; t++)
      out.insert(out.end(), word.begin() + h * head_dim, word.begin() + (h + 1) * head_dim);
  return out;
}

void fill_learned(Plan& plan, std::uint64_t seed, std::int64_t heads, std::int64_t head_dim) {
  Numbers numbers(seed);
  if (Rows* rows = plan.add ? std::get_if<Rows>(&plan.add->kind) : nullptr)
    numbers.fill(rows->table, rows->rows, rows->width);
  if (BiasTable* bias = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr)
    numbers.fill(bias->values, heads, bias->row_count);
  if (!plan.relative) return;
  Relative& relative = *plan.relative;
  for (const auto& [used, table] : {std::pair{relative.uses_query, &relative.query},
                                    {relative.uses_key, &relative.key},
                                    {relative.uses_value, &relative.value}})
    if (used) numbers.fill(*table, relative.row_count, head_dim);
}

void fill_learned(ContentScheme& scheme, Words words, std::uint64_t seed, std::int64_t heads,
                  std::int64_t length, std::int64_t head_dim) {
  constexpr std::int64_t units = 16, positions = 16;
  Numbers numbers(seed);
  if (Fire* fire = std::get_if<Fire>(&scheme)) {
    numbers.fill(fire->hidden_weight, units);
    const auto hidden = static_cast<std::int64_t>(fire->hidden_weight.size());
    numbers.fill(fire->hidden_bias, hidden);
    numbers.fill(fire->output_weight, heads * hidden);
    numbers.fill(fire->output_bias, heads);
  }
  if (Cope* cope = std::get_if<Cope>(&scheme)) numbers.fill(cope->embeddings, positions, head_dim);
  Forgetting* forgetting = std::get_if<Forgetting>(&scheme);
  if (forgetting == nullptr || forgetting->log_gates || !forgetting->gate_bias.empty()) return;
  const std::int64_t gates = words == Words::random ? length : 1;
  const std::vector<double> x = numbers.next(heads * gates);
  std::vector<double> log_gates;
  for (std::int64_t h = 0; h < heads; h++)
    for (std::int64_t t = 0; t < length; t++)
      log_gates.push_back(
          -std::log1p(std::exp(-2 - x[static_cast<std::size_t>(h * gates + t % gates)])));
  forgetting->log_gates = Table::own(std::move(log_gates), heads, length);
}

}  // namespace posenc::cli
