// What FIRE's attention and its gradients share: the network as lines, ψ as a table, tiles, checks.
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
#include "src/attention/stream.h"

namespace posenc::detail {

constexpr double fire_epsilon = 1e-6;  // as the authors' listing has it

inline Expected<void> check_fire(std::string_view where, const Fire& fire, std::int64_t heads) {
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
  return {};
}

inline Expected<void> check_fire_axes(std::string_view where, const Positions& queries,
                                      const Positions& keys) {
  if (queries.axes() == 1 && keys.axes() == 1) return {};
  return fail(where, "positions must have one axis",
              std::to_string(std::max(queries.axes(), keys.axes())),
              "FIRE divides a distance by where the query stands, which is one number");
}

// What x is divided by.
inline double fire_normalizer(const Fire& fire, std::int64_t query) {
  return fire.psi(std::max(static_cast<double>(query), fire.threshold())) + fire_epsilon;
}

// f of every head as its lines: line s holds beyond turn[s − 1], up to turn[s].
struct FireLines {
  std::vector<double> turn;           // ascending
  std::vector<double> slope, height;  // [head][turn + 1]

  FireLines(const Fire& fire, std::int64_t heads) {
    const std::size_t units = fire.hidden_weight.size();
    for (std::size_t u = 0; u < units; ++u) {
      if (fire.hidden_weight[u] != 0) turn.push_back(-fire.hidden_bias[u] / fire.hidden_weight[u]);
    }
    std::ranges::sort(turn);
    turn.erase(std::ranges::unique(turn).begin(), turn.end());
    for (std::int64_t h = 0; h < heads; ++h) {
      const double* const weight = fire.output_weight.data() + static_cast<std::size_t>(h) * units;
      for (std::size_t line = 0; line <= turn.size(); ++line) {
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
  // Whether a hidden unit is above 0 on a line: one that turns on at turn[t] is so beyond it, one that
  // turns off up to it.
  bool active(const Fire& fire, std::size_t unit, std::size_t line) const {
    const double w = fire.hidden_weight[unit], b = fire.hidden_bias[unit];
    if (w == 0) return b > 0;
    return (line > rank(-b / w)) == (w > 0);
  }
  std::size_t rank(double x) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(turn, x) - turn.begin());
  }
  std::span<const double> of(const std::vector<double>& numbers, std::int64_t head) const {
    return std::span(numbers).subspan(static_cast<std::size_t>(head) * (turn.size() + 1),
                                      turn.size() + 1);
  }
};

// ψ by key − query position, as long as positions lie so close that a table pays.
class PsiTable {
 public:
  PsiTable(const Fire& fire, const Positions& queries, const Positions& keys)
      : fire_(&fire), rows_(queries.contiguous() && keys.contiguous()) {
    const auto [query_low, query_high] = ends(queries);
    const auto [key_low, key_high] = ends(keys);
    const std::int64_t most = 8 * (queries.size() + keys.size());
    if (key_high - key_low >= most || query_high - query_low >= most) return;
    const std::int64_t count = key_high - key_low + query_high - query_low + 1;
    if (count > most) return;
    first_ = key_low - query_high;
    psi_.resize(static_cast<std::size_t>(count));
    for (std::int64_t n = 0; n < count; ++n) {
      psi_[static_cast<std::size_t>(n)] = fire.psi(std::abs(static_cast<double>(first_ + n)));
    }
  }
  // ψ of the keys from j on, where keys and queries are ranges; null elsewhere. Then x goes one way up
  // to the query and the other way behind it.
  const double* row(const Positions& keys, std::int64_t query, std::int64_t j) const {
    if (!rows_ || psi_.empty()) return nullptr;
    return psi_.data() + (keys.at(j) - query - first_);
  }
  // x of the `count` keys from j on: ψ · reciprocal.
  void interpolated(const Positions& keys, std::int64_t b, std::int64_t query, double reciprocal,
                    std::int64_t j, std::int64_t count, double* x) const {
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t ahead = keys.at(j + n, b) - query;
      x[n] = reciprocal * (psi_.empty() ? fire_->psi(std::abs(static_cast<double>(ahead)))
                                        : psi_[static_cast<std::size_t>(ahead - first_)]);
    }
  }

 private:
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
  bool rows_;
  std::int64_t first_ = 0;
  std::vector<double> psi_;
};

// A tile of queries, for attention and its gradients.
template <class T>
class FireTile {
 public:
  FireTile(const Fire& fire, const FireLines& lines, const PsiTable& table,
           const Positions& queries, const Positions& keys, std::int64_t b, std::int64_t h,
           std::int64_t first, std::int64_t rows)
      : table_(&table),
        keys_(&keys),
        turn_(lines.turn),
        slope_(lines.of(lines.slope, h)),
        height_(lines.of(lines.height, h)),
        sequence_(b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      query_[r] = queries.at(first + r, b);
      reciprocal_[r] = 1 / fire_normalizer(fire, query_[r]);
    }
  }

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    add_bias(row, block, scores);
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 protected:
  void add_bias(std::int64_t row, std::int64_t block, T* scores) const {
    const std::int64_t start = block * block_keys;
    const std::int64_t count = std::min(block_keys, keys_->size() - start);
    const std::int64_t query = query_[row];
    const double reciprocal = reciprocal_[row];
    const double* const psi = table_->row(*keys_, query, start);
    const bool one_way =
        psi != nullptr && (keys_->at(start) >= query || keys_->at(start + count - 1) <= query);
    if (one_way) {
      const std::size_t line = line_of(psi[0] * reciprocal);
      if (line == line_of(psi[count - 1] * reciprocal)) {
        const double slope = slope_[line] * reciprocal, height = height_[line];
        for (std::int64_t n = 0; n < count; ++n)
          scores[n] += static_cast<T>(slope * psi[n] + height);
        return;
      }
    }
    double x[block_keys];
    table_->interpolated(*keys_, sequence_, query, reciprocal, start, count, x);
    std::size_t line = line_of(x[0]);
    for (std::int64_t n = 0; n < count; ++n) {
      line = line_near(line, x[n]);
      scores[n] += static_cast<T>(slope_[line] * x[n] + height_[line]);
    }
  }
  std::size_t line_near(std::size_t line, double x) const {
    while (line < turn_.size() && x > turn_[line]) ++line;
    while (line > 0 && x <= turn_[line - 1]) --line;
    return line;
  }
  std::size_t line_of(double x) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(turn_, x) - turn_.begin());
  }

  const PsiTable* table_;
  const Positions* keys_;
  std::span<const double> turn_, slope_, height_;
  std::int64_t sequence_;
  std::int64_t query_[most_queries] = {};
  double reciprocal_[most_queries] = {};  // of the normalizer
  OnlineSoftmax<T> softmax_;
};

}  // namespace posenc::detail
