// What FIRE's attention and its gradients share: the network as lines, ψ as a table, the provider
// of biases, checks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/row_bias.h"

namespace posenc::detail {

constexpr double fire_epsilon = 1e-6;  // as the authors' listing has it

inline Expected<void> check_fire(std::string_view where, const Fire& fire, std::int64_t heads,
                                 const Positions& queries, const Positions& keys) {
  const auto units = static_cast<std::int64_t>(fire.hidden_weight.size());
  for (const auto& [name, numbers, count] :
       {std::tuple{"hidden_weight", &fire.hidden_weight, units},
        {"hidden_bias", &fire.hidden_bias, units},
        {"output_weight", &fire.output_weight, heads * units},
        {"output_bias", &fire.output_bias, heads}}) {
    if (static_cast<std::int64_t>(numbers->size()) != count) {
      return fail(where,
                  "fire." + std::string(name) + " must have " + std::to_string(count) + " numbers",
                  std::to_string(numbers->size()),
                  "for " + std::to_string(heads) + " heads and " + std::to_string(units) +
                      " hidden units, output_weight being [heads][hidden]");
    }
    const auto wrong =
        std::ranges::find_if_not(*numbers, [](double x) { return std::isfinite(x); });
    if (wrong != numbers->end()) {
      return fail(where, "fire." + std::string(name) + " must be finite", number_text(*wrong),
                  "check the checkpoint");
    }
  }
  for (const auto& [name, number] : {std::pair{"c", fire.c},
                                     {"initial_length", fire.initial_length},
                                     {"length_multiplier", fire.length_multiplier}}) {
    if (!std::isfinite(number)) {
      return fail(where, "fire." + std::string(name) + " must be finite", number_text(number),
                  "check the checkpoint");
    }
  }
  if (queries.axes() == 1 && keys.axes() == 1) return {};
  return fail(where, "positions must have one axis",
              std::to_string(std::max(queries.axes(), keys.axes())),
              "FIRE divides a distance by where the query stands, which is one number");
}

// What x is divided by.
inline double fire_normalizer(const Fire& fire, std::int64_t query) {
  return fire.psi(std::max(static_cast<double>(query), fire.threshold())) + fire_epsilon;
}

// f of every head as its lines: line s holds beyond breakpoint[s − 1], up to breakpoint[s].
struct FireLines {
  std::vector<double> breakpoint;     // ascending
  std::vector<double> slope, height;  // [head][breakpoint + 1]

  FireLines(const Fire& fire, std::int64_t heads) {
    const std::size_t units = fire.hidden_weight.size();
    for (std::size_t u = 0; u < units; ++u) {
      if (fire.hidden_weight[u] != 0)
        breakpoint.push_back(-fire.hidden_bias[u] / fire.hidden_weight[u]);
    }
    std::ranges::sort(breakpoint);
    breakpoint.erase(std::ranges::unique(breakpoint).begin(), breakpoint.end());
    for (std::int64_t h = 0; h < heads; ++h) {
      const double* const weight = fire.output_weight.data() + static_cast<std::size_t>(h) * units;
      for (std::size_t line = 0; line <= breakpoint.size(); ++line) {
        double rise = 0, start = fire.output_bias[static_cast<std::size_t>(h)];
        for (std::size_t u = 0; u < units; ++u) {
          if (active(fire, u, line)) {
            rise += weight[u] * fire.hidden_weight[u];
            start += weight[u] * fire.hidden_bias[u];
          }
        }
        slope.push_back(rise);
        height.push_back(start);
      }
    }
  }
  // Whether a hidden unit is above 0 on a line: one that turns on at breakpoint[t] is so beyond it,
  // one that turns off up to it.
  bool active(const Fire& fire, std::size_t unit, std::size_t line) const {
    const double w = fire.hidden_weight[unit], b = fire.hidden_bias[unit];
    if (w == 0) return b > 0;
    return (line > rank(-b / w)) == (w > 0);
  }
  std::size_t rank(double x) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(breakpoint, x) - breakpoint.begin());
  }
  std::span<const double> of(const std::vector<double>& numbers, std::int64_t head) const {
    return std::span(numbers).subspan(static_cast<std::size_t>(head) * (breakpoint.size() + 1),
                                      breakpoint.size() + 1);
  }
};

// ψ and its derivative by |c|, n/(|c|n + 1), by key − query position, as long as positions lie so
// close that a table pays.
class PsiTable {
 public:
  PsiTable(const Fire& fire, const Positions& queries, const Positions& keys) : fire_(&fire) {
    const auto [query_low, query_high] = ends(queries);
    const auto [key_low, key_high] = ends(keys);
    const std::int64_t most = 8 * (queries.size() + keys.size());
    if (key_high - key_low >= most || query_high - query_low >= most) return;
    const std::int64_t count = key_high - key_low + query_high - query_low + 1;
    if (count > most) return;
    first_ = key_low - query_high;
    for (std::int64_t n = 0; n < count; ++n) {
      const double distance = std::abs(static_cast<double>(first_ + n));
      psi_.push_back(fire.psi(distance));
      by_c_.push_back(derivative(distance));
    }
  }
  // Of keys one after the other, the first `ahead` of the query; null where there is no table.
  const double* psi(std::int64_t ahead) const {
    return psi_.empty() ? nullptr : psi_.data() + (ahead - first_);
  }
  const double* by_c(std::int64_t ahead) const { return by_c_.data() + (ahead - first_); }

  // Of one key.
  double psi_at(std::int64_t ahead) const {
    return psi_.empty() ? fire_->psi(std::abs(static_cast<double>(ahead))) : *psi(ahead);
  }
  double by_c_at(std::int64_t ahead) const {
    return derivative(std::abs(static_cast<double>(ahead)));
  }

 private:
  double derivative(double n) const { return n / (std::abs(fire_->c) * n + 1); }
  static std::pair<std::int64_t, std::int64_t> ends(const Positions& positions) {
    if (positions.size() == 0) return {0, 0};
    std::int64_t low = positions.at(0), high = low;
    if (positions.contiguous()) return {low, low + positions.size() - 1};
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < positions.size(); ++t) {
        low = std::min(low, positions.at(t, b));
        high = std::max(high, positions.at(t, b));
      }
    }
    return {low, high};
  }

  const Fire* fire_;
  std::int64_t first_ = 0;
  std::vector<double> psi_, by_c_;
};

// f_h as the provider of a row's biases.
template <class T>
class FireBias : public RowBias<T> {
 public:
  FireBias(const Fire& fire, const FireLines& lines, const PsiTable& table)
      : fire_(fire), lines_(lines), table_(table) {}

  void begin(const BiasBlock& block) override { block_ = &block; }

  RowBias<T>::Row row(std::int64_t g, std::int64_t query, T, VisibleRange& seen,
                      T* buffer) override {
    const std::int64_t position = block_->queries.position(query);
    const double reciprocal = 1 / fire_normalizer(fire_, position);
    const auto slope = lines_.of(lines_.slope, block_->first_head + g);
    const auto height = lines_.of(lines_.height, block_->first_head + g);
    std::fill(buffer + std::max<std::int64_t>(seen.begin - row_lanes, 0), buffer + seen.begin,
              T{0});
    std::fill(buffer + seen.end, buffer + seen.end + row_lanes, T{0});
    for_lines(position, reciprocal, seen,
              [&](std::int64_t begin, std::int64_t end, std::size_t line, const double* psi) {
                line_of_doubles(psi, slope[line] * reciprocal, height[line], end - begin,
                                buffer + begin);
              });
    return {buffer, 1};
  }

 protected:
  // Calls act(begin, end, line, ψ of the keys) for the runs of keys on one line. Keys one after the
  // other come nearer up to the query and go away behind it, so a line's end is found by halving;
  // others are looked at one by one.
  template <class Act>
  void for_lines(std::int64_t position, double reciprocal, const VisibleRange& seen,
                 const Act& act) const {
    const std::int64_t first = block_->keys.position(0) - position;
    const double* const psi = block_->keys.consecutive ? table_.psi(first) : nullptr;
    if (psi == nullptr) {
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        const double one = table_.psi_at(block_->keys.position(j) - position);
        act(j, j + 1, lines_.rank(one * reciprocal), &one);
      }
      return;
    }
    const std::vector<double>& breakpoint = lines_.breakpoint;
    // Behind the key at the query's own position.
    const std::int64_t middle = std::clamp(1 - first, seen.begin, seen.end);
    for (std::int64_t j = seen.begin, next; j < seen.end; j = next) {
      const std::size_t line = lines_.rank(psi[j] * reciprocal);
      const bool nearer = j < middle;
      next = nearer ? middle : seen.end;
      if (nearer && line > 0) {
        next =
            std::partition_point(psi + j, psi + next,
                                 [&](double x) { return x * reciprocal > breakpoint[line - 1]; }) -
            psi;
      } else if (!nearer && line < breakpoint.size()) {
        next = std::partition_point(psi + j, psi + next,
                                    [&](double x) { return x * reciprocal <= breakpoint[line]; }) -
               psi;
      }
      act(j, next, line, psi + j);
    }
  }

  const Fire& fire_;
  const FireLines& lines_;
  const PsiTable& table_;
  const BiasBlock* block_ = nullptr;
};

}  // namespace posenc::detail
