// Forgetting attention: Σ_{l=j+1..i} log f_l = c_i − c_j, c the running sum of log gates. The sums grow
// with the length while their differences need not, so they are kept in double. A gate of 0 (−∞) stays
// out of the sum; it hides every key before it.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/stream_backward.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::block_keys;
using detail::most_queries;

// Of every head and key: the running sum, and the last key up to it that forgets all before it.
struct Sums {
  std::int64_t heads = 0, row = 0;
  std::vector<double> sum;           // [batch][head][row], keys rounded up to blocks
  std::vector<std::int64_t> oldest;  // the same: no key before this one counts

  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return static_cast<std::size_t>((b * heads + h) * row + j);
  }

  static Expected<Sums> of(std::string_view where, const Tensor& gates, const Positions& keys,
                           const Mask& mask) {
    Sums sums;
    sums.heads = gates.shape[1];
    sums.row = (gates.shape[2] + block_keys - 1) / block_keys * block_keys;
    sums.sum.resize(sums.at(gates.shape[0], 0, 0));
    sums.oldest.resize(sums.sum.size());
    for (std::int64_t b = 0; b < gates.shape[0]; ++b) {
      for (std::int64_t h = 0; h < gates.shape[1]; ++h) {
        double sum = 0;
        std::int64_t oldest = 0;
        for (std::int64_t j = 0; j < gates.shape[2]; ++j) {
          // Padding may hold anything.
          const bool counts = detail::kept(mask, keys, b, j);
          const double gate = counts ? gates.get(gates.offset(b, h, j)) : 0;
          if (!(gate <= 0)) {
            return fail(where, "forgetting.log_gates must be at most 0",
                        number_text(gate) + " at key " + std::to_string(j),
                        "pass the logarithm of the gate, log σ(w·x + b)");
          }
          if (gate == -std::numeric_limits<double>::infinity()) {
            oldest = j;
          } else {
            sum += gate;
          }
          sums.sum[sums.at(b, h, j)] = sum;
          sums.oldest[sums.at(b, h, j)] = oldest;
        }
      }
    }
    return sums;
  }
};

template <class T>
class ForgettingTile {
 public:
  ForgettingTile(const Sums& sums, const std::int64_t* own, std::int64_t b, std::int64_t h,
                 std::int64_t rows)
      : sum_(sums.sum.data() + sums.at(b, h, 0)) {
    for (std::int64_t r = 0; r < rows; ++r) {
      if (own[r] < 0) continue;  // sees nothing
      own_key_[r] = own[r];
      own_[r] = sum_[own[r]];
      oldest_[r] = sums.oldest[sums.at(b, h, own[r])];
    }
  }

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    forget(row, block, scores);
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 protected:
  void forget(std::int64_t row, std::int64_t block, T* scores) const {
    const std::int64_t start = block * block_keys;
    const double* const sum = sum_ + start;
    const double own = own_[row];
    for (std::int64_t j = 0; j < block_keys; ++j) scores[j] += static_cast<T>(own - sum[j]);
    const std::int64_t forgotten = std::clamp<std::int64_t>(oldest_[row] - start, 0, block_keys);
    std::fill_n(scores, forgotten, -std::numeric_limits<T>::infinity());
  }

  const double* sum_;
  double own_[most_queries] = {};
  std::int64_t own_key_[most_queries] = {}, oldest_[most_queries] = {};
  detail::OnlineSoftmax<T> softmax_;
};

template <class T>
class ForgettingGradientTile : public ForgettingTile<T> {
 public:
  // by_sum: what the running sums of the keys get.
  ForgettingGradientTile(const ForgettingTile<T>& tile, double* by_sum)
      : ForgettingTile<T>(tile), by_sum_(by_sum) {}

  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    this->forget(row, block, scores);
    this->softmax_.differentiate(row, by_weight, mean, scores, by_score);
    double whole = 0;
    double* const by_sum = by_sum_ + block * block_keys;
    for (std::int64_t j = 0; j < block_keys; ++j) {
      by_sum[j] -= static_cast<double>(by_score[j]);
      whole += static_cast<double>(by_score[j]);
    }
    by_sum_[this->own_key_[row]] += whole;
  }

 private:
  double* by_sum_;
};

// What both functions ask, once q, k and v are known to fit.
struct Gates {
  Tensor view;
  Sums sums;
  std::vector<std::int64_t> own;

  static Expected<Gates> of(std::string_view where, const Forgetting& forgetting,
                            const detail::AttendArguments& in, const Positions& queries,
                            const Positions& keys, const Mask& mask) {
    const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1];
    if (auto ok = detail::check_counted(where, keys, mask, batch); !ok)
      return std::unexpected(ok.error());
    const auto gates = detail::viewed(where, "forgetting.log_gates", forgetting.log_gates, 3);
    if (!gates) return std::unexpected(gates.error());
    if (gates->shape[0] != batch || gates->shape[1] != heads || gates->shape[2] != keys.size()) {
      return fail(where,
                  "forgetting.log_gates must be [" + std::to_string(batch) + ", " +
                      std::to_string(heads) + ", " + std::to_string(keys.size()) + "]",
                  shape_text(*gates), "one for each sequence, query head and key");
    }
    auto sums = Sums::of(where, *gates, keys, mask);
    if (!sums) return std::unexpected(sums.error());
    return Gates{*gates, std::move(*sums), detail::own_keys(mask, queries, keys, batch)};
  }
};

}  // namespace

Expected<void> attend_forgetting(const AttentionInputs& in, const Forgetting& forgetting,
                                 const Plan& plan, const Tensor& out) {
  constexpr std::string_view where = "attend_forgetting";
  const auto checked = detail::attend_arguments(where, in, plan, out);
  if (!checked) return std::unexpected(checked.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return ok;
  const auto gates = Gates::of(where, forgetting, *checked, in.queries, in.keys, in.mask);
  if (!gates) return std::unexpected(gates.error());
  return detail::with_compute_type(in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*checked, plan, in.queries, in.keys, false, in.threads);
    if (!streamed) return std::unexpected(streamed.error());
    const detail::Seen seen(in.mask, in.queries, in.keys, checked->q.shape[0]);
    detail::stream(*streamed, seen, in.threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
                     return ForgettingTile<T>(gates->sums,
                                              gates->own.data() + b * in.queries.size() + first, b,
                                              h, rows);
                   });
    return streamed->write(plan, in.queries, checked->out, in.threads);
  });
}

Expected<void> attend_forgetting_backward(const AttentionInputs& in, const Forgetting& forgetting,
                                          const Plan& plan, const Tensor& out_gradient,
                                          const Tensor& q_gradient, const Tensor& k_gradient,
                                          const Tensor& v_gradient,
                                          const Tensor& log_gates_gradient) {
  constexpr std::string_view where = "attend_forgetting_backward";
  const auto checked =
      detail::backward_arguments(where, in, plan, out_gradient, q_gradient, k_gradient, v_gradient);
  if (!checked) return std::unexpected(checked.error());
  const auto gates = Gates::of(where, forgetting, checked->in, in.queries, in.keys, in.mask);
  if (!gates) return std::unexpected(gates.error());
  const auto wanted =
      detail::gradient_like(where, "log_gates_gradient", log_gates_gradient, gates->view);
  if (!wanted) return std::unexpected(wanted.error());
  const std::int64_t batch = checked->in.q.shape[0], heads = checked->in.q.shape[1];
  const Sums& sums = gates->sums;
  std::vector<double> by_sum(static_cast<std::size_t>(checked->shares() * sums.row));
  const detail::Seen seen(in.mask, in.queries, in.keys, batch);
  const auto done = detail::with_compute_type(in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    const auto bind = [&](const detail::Streamed<T>&, detail::StreamedGradients<T>&) {
      return [&](const detail::TileOf& at) {
        return ForgettingGradientTile<T>(
            ForgettingTile<T>(sums, gates->own.data() + at.b * in.queries.size() + at.first, at.b,
                              at.h, at.rows),
            by_sum.data() + at.share * sums.row);
      };
    };
    return detail::stream_backward<T>(*checked, plan, in.queries, in.keys, seen, false, in.threads,
                                      bind);
  });
  if (!done || !*wanted) return done;
  // A gate is in the sums of its own key and of all behind it.
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      double gradient = 0;
      for (std::int64_t j = in.keys.size() - 1; j >= 0; --j) {
        for (std::int64_t part = 0; part < checked->parts; ++part) {
          gradient +=
              by_sum[static_cast<std::size_t>(((part * batch + b) * heads + h) * sums.row + j)];
        }
        // Read just before it is written, as both may have one memory.
        const double gate = gates->view.get(gates->view.offset(b, h, j));
        const bool learns = detail::kept(in.mask, in.keys, b, j) && std::isfinite(gate);
        wanted->set(wanted->offset(b, h, j), learns ? gradient : 0);
      }
    }
  }
  return {};
}

}  // namespace posenc
