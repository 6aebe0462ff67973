// Random numbers of a seed: queries are the normal numbers of the seed itself, keys those of the
// next one, and learned tables those of the one after it.
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

 private:
  std::uint64_t seed_;
  std::int64_t taken_ = 0;
};

// A mixture that is the identity, as FoPE compiles without coefficients, becomes one with Xavier
// noise of gain 0.3, as its training begins.
void fill(Numbers& numbers, Mix& mix) {
  const auto own = [](double x) { return x == 0 || x == 1; };
  if (mix.inputs == 0 || !std::ranges::all_of(mix.cosine, own) || mix.cosine != mix.sine) return;
  const double gain = 0.3 / std::sqrt(static_cast<double>(mix.inputs));
  for (std::vector<double>* const each : {&mix.cosine, &mix.sine}) {
    const std::vector<double> noise = numbers.next(std::ssize(*each));
    for (std::size_t i = 0; i < noise.size(); ++i) (*each)[i] += gain * noise[i];
  }
}

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

void fill_learned(Scheme& scheme, std::uint64_t seed, const Geometry& geometry) {
  auto* const xl = std::get_if<TransformerXl>(&scheme);
  const std::int64_t width = geometry.width, rows = geometry.heads * geometry.head_dim;
  if (xl == nullptr || width <= 0 || rows <= 0 || xl->projection) return;
  Numbers numbers(seed);
  std::vector<double> projection = numbers.next(rows * width);
  for (double& x : projection) x /= std::sqrt(static_cast<double>(width));
  xl->projection = Table::own(std::move(projection), rows, width);
  if (!xl->biases) return;
  numbers.fill(xl->content_bias, geometry.heads, geometry.head_dim);
  numbers.fill(xl->position_bias, geometry.heads, geometry.head_dim);
}

void fill_learned(Plan& plan, std::uint64_t seed, std::int64_t heads, std::int64_t head_dim) {
  Numbers numbers(seed);
  if (Rows* rows = plan.add ? std::get_if<Rows>(&plan.add->kind) : nullptr)
    numbers.fill(rows->table, rows->rows, rows->width);
  if (BiasTable* bias = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr)
    numbers.fill(bias->values, heads, bias->row_count);
  if (Mix* mix = plan.rotate ? std::get_if<Mix>(&plan.rotate->kind) : nullptr) fill(numbers, *mix);
  if (!plan.relative) return;
  Relative& relative = *plan.relative;
  for (const auto& [used, table] : {std::pair{relative.uses_query, &relative.query},
                                    {relative.uses_key, &relative.key},
                                    {relative.uses_value, &relative.value}})
    if (used)
      numbers.fill(*table, relative.row_count,
                   table == &relative.value ? head_dim : relative.columns(head_dim));
}

}  // namespace posenc::cli
