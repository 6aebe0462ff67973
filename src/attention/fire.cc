// FIRE: logit_ij += f_h(x_ij), x_ij = ψ(|i − j|)/(ψ(max(i, L)) + 10⁻⁶), ψ(n) = ln(|c|n + 1).
// f_h is a network with one input and one layer of max(0, ·): a chain of straight lines, which meet
// where a hidden unit turns on or off. The units of all heads are the same, so the places where the
// lines meet are too; a logit then costs a product and a sum, whatever the number of hidden units.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/attention/stream.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::block_keys;
using detail::query_tile;

constexpr double epsilon = 1e-6;  // as the authors' listing has it

Expected<void> check(std::string_view where, const Fire& fire, std::int64_t heads) {
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

Expected<void> check_axes(std::string_view where, const Positions& queries, const Positions& keys) {
  if (queries.axes() == 1 && keys.axes() == 1) return {};
  return fail(where, "positions must have one axis",
              std::to_string(std::max(queries.axes(), keys.axes())),
              "FIRE divides a distance by where the query stands, which is one number");
}

// What x is divided by.
double normalizer(const Fire& fire, std::int64_t query) {
  return fire.psi(std::max(static_cast<double>(query), fire.threshold())) + epsilon;
}

// f of every head as its lines: line s holds beyond turn[s − 1], up to turn[s].
struct Lines {
  std::vector<double> turn;           // ascending
  std::vector<double> slope, height;  // [head][turn + 1]

  Lines(const Fire& fire, std::int64_t heads) {
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
          const double w = fire.hidden_weight[u], b = fire.hidden_bias[u];
          // A unit that turns on at turn[t] works on the lines beyond it, one that turns off on the others.
          const bool beyond = w != 0 && line > rank(-b / w);
          if (w > 0 ? beyond : w < 0 ? !beyond : b > 0) {
            rise += weight[u] * w;
            start += weight[u] * b;
          }
        }
        slope.push_back(rise);
        height.push_back(start);
      }
    }
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
    first_ = key_low - query_high;
    const std::int64_t count = key_high - query_low - first_ + 1;
    if (count <= 0 || count > 8 * (queries.size() + keys.size())) return;
    psi_.resize(static_cast<std::size_t>(count));
    for (std::int64_t n = 0; n < count; ++n) {
      psi_[static_cast<std::size_t>(n)] = fire.psi(std::abs(static_cast<double>(first_ + n)));
    }
  }
  // x of the `count` keys from j on: ψ · reciprocal. True where x goes one way from first to last.
  bool interpolated(const Positions& keys, std::int64_t b, std::int64_t query, double reciprocal,
                    std::int64_t j, std::int64_t count, double* x) const {
    if (rows_ && !psi_.empty()) {
      const std::int64_t ahead = keys.at(j, b) - query;
      const double* const from = psi_.data() + (ahead - first_);
      for (std::int64_t n = 0; n < count; ++n) x[n] = from[n] * reciprocal;
      return ahead >= 0 || ahead + count <= 1;
    }
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t ahead = keys.at(j + n, b) - query;
      x[n] = reciprocal * (psi_.empty() ? fire_->psi(std::abs(static_cast<double>(ahead)))
                                        : psi_[static_cast<std::size_t>(ahead - first_)]);
    }
    return false;
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

template <class T>
class FireTile {
 public:
  FireTile(const Fire& fire, const Lines& lines, const PsiTable& table, const Positions& queries,
           const Positions& keys, std::int64_t b, std::int64_t h, std::int64_t first,
           std::int64_t rows)
      : table_(&table),
        keys_(&keys),
        turn_(lines.turn),
        slope_(lines.of(lines.slope, h)),
        height_(lines.of(lines.height, h)),
        sequence_(b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      query_[r] = queries.at(first + r, b);
      reciprocal_[r] = 1 / normalizer(fire, query_[r]);
    }
  }

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    const std::int64_t start = block * block_keys;
    const std::int64_t count = std::min(block_keys, keys_->size() - start);
    double x[block_keys];
    const bool monotone =
        table_->interpolated(*keys_, sequence_, query_[row], reciprocal_[row], start, count, x);
    std::size_t line = line_of(x[0]);
    if (monotone && line == line_of(x[count - 1])) {
      const double slope = slope_[line], height = height_[line];
      for (std::int64_t n = 0; n < count; ++n) scores[n] += static_cast<T>(slope * x[n] + height);
    } else {
      for (std::int64_t n = 0; n < count; ++n) {
        while (line < turn_.size() && x[n] > turn_[line]) ++line;
        while (line > 0 && x[n] <= turn_[line - 1]) --line;
        scores[n] += static_cast<T>(slope_[line] * x[n] + height_[line]);
      }
    }
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 private:
  std::size_t line_of(double x) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(turn_, x) - turn_.begin());
  }

  const PsiTable* table_;
  const Positions* keys_;
  std::span<const double> turn_, slope_, height_;
  std::int64_t sequence_;
  std::int64_t query_[query_tile] = {};
  double reciprocal_[query_tile] = {};
  detail::OnlineSoftmax<T> softmax_;
};

}  // namespace

double Fire::interpolated(std::int64_t query, std::int64_t key) const {
  return psi(std::abs(static_cast<double>(query - key))) / normalizer(*this, query);
}

Expected<void> attend_fire(const Tensor& q, const Tensor& k, const Tensor& v, const Fire& fire,
                           const Plan& plan, const Positions& queries, const Positions& keys,
                           const Mask& mask, const Tensor& out, Threads threads) {
  constexpr std::string_view where = "attend_fire";
  const auto in = detail::attend_arguments(where, q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return ok;
  if (auto ok = check(where, fire, in->q.shape[1]); !ok) return ok;
  if (auto ok = check_axes(where, queries, keys); !ok) return ok;
  const Lines lines(fire, in->q.shape[1]);
  const PsiTable table(fire, queries, keys);
  return detail::with_compute_type(q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*in, plan, queries, keys, false, threads);
    if (!streamed) return std::unexpected(streamed.error());
    const detail::Seen seen(mask, queries, keys, in->q.shape[0]);
    detail::stream(*streamed, seen, threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
                     return FireTile<T>(fire, lines, table, queries, keys, b, h, first, rows);
                   });
    return streamed->write(plan, queries, in->out, threads);
  });
}

Expected<void> fire_bias(const Fire& fire, const Positions& queries, const Positions& keys,
                         const Tensor& out) {
  constexpr std::string_view where = "fire_bias";
  const auto view = detail::viewed(where, "out", out, 3);
  if (!view) return std::unexpected(view.error());
  if (auto ok = detail::check_distinct(where, *view); !ok) return ok;
  if (auto ok = check(where, fire, view->shape[0]); !ok) return ok;
  if (auto ok = check_axes(where, queries, keys); !ok) return ok;
  if (queries.batch() != 1 || keys.batch() != 1) {
    return fail(where, "positions must be of one sequence",
                std::to_string(std::max(queries.batch(), keys.batch())),
                "ask sequence by sequence");
  }
  if (view->shape[1] != queries.size() || view->shape[2] != keys.size()) {
    return fail(where,
                "out must be [head, " + std::to_string(queries.size()) + ", " +
                    std::to_string(keys.size()) + "]",
                shape_text(*view), "one number for each head, query and key");
  }
  const std::size_t units = fire.hidden_weight.size();
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      const double x = fire.interpolated(queries.at(i), keys.at(j));
      for (std::int64_t h = 0; h < view->shape[0]; ++h) {
        double sum = fire.output_bias[static_cast<std::size_t>(h)];
        for (std::size_t u = 0; u < units; ++u) {
          sum += fire.output_weight[static_cast<std::size_t>(h) * units + u] *
                 std::max(0.0, fire.hidden_weight[u] * x + fire.hidden_bias[u]);
        }
        view->set(view->offset(h, i, j), sum);
      }
    }
  }
  return {};
}

}  // namespace posenc
