// Forget gates of heads, log σ of each token, as running sums: Σ_{l=j+1..i} log f_l = c_i − c_j. The sums grow
// with the length while their differences need not, so they are kept in double. A gate of 0 (−∞) stays out of the
// sum; it hides every key before it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/content.h"
#include "src/content/stream.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc::detail {

// A gate as it is summed up, that of padding being 0. Errors: one above 0, or NaN.
inline Expected<double> checked_gate(std::string_view where, std::string_view name, double gate,
                                     std::int64_t key) {
  if (gate <= 0) return gate;
  return fail(where, std::string(name) + " must be at most 0",
              number_text(gate) + " at key " + std::to_string(key),
              "pass the logarithm of the gate, log σ(w·x + b)");
}

// Of every head and key: the running sum, and the last key up to it that forgets all before it.
struct GateSums {
  std::int64_t heads = 0, row = 0;
  std::vector<double> sum;           // [batch][head][row], keys rounded up
  std::vector<std::int64_t> oldest;  // the same: no key before this one counts

  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return static_cast<std::size_t>((b * heads + h) * row + j);
  }

  static Expected<GateSums> of(std::string_view where, std::string_view name, const Tensor& gates,
                               const Positions& keys, const Mask& mask) {
    GateSums sums;
    sums.heads = gates.shape[1];
    sums.row = padded(gates.shape[2]);
    sums.sum.resize(sums.at(gates.shape[0], 0, 0));
    sums.oldest.resize(sums.sum.size());
    for (std::int64_t b = 0; b < gates.shape[0]; ++b) {
      for (std::int64_t h = 0; h < gates.shape[1]; ++h) {
        double sum = 0;
        std::int64_t oldest = 0;
        for (std::int64_t j = 0; j < gates.shape[2]; ++j) {
          // Padding may hold anything.
          const bool counts = kept(mask, keys, b, j);
          POSENC_TRY(gate,
                     checked_gate(where, name, counts ? gates.get(gates.offset(b, h, j)) : 0, j));
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

// Gates of the schemes that take some beside what they do, as [batch, heads, keys]; absent where none are given.
inline Expected<Tensor> gates_view(std::string_view where, std::string_view name,
                                   const Tensor& given, std::int64_t batch, std::int64_t heads,
                                   std::int64_t keys) {
  POSENC_TRY(gates, viewed(where, name, given, 3));
  if (gates.shape[0] == batch && gates.shape[1] == heads && gates.shape[2] == keys) return gates;
  return fail(where,
              std::string(name) + " must be [" + std::to_string(batch) + ", " +
                  std::to_string(heads) + ", " + std::to_string(keys) + "]",
              shape_text(gates), "one for each sequence, query head and key");
}

// by_sum [share][row of GateSums]: minus what the running sums of the keys get; share_of(part, b, h) of each part, sequence
// and head. A gate is in the sums of its own key and of all behind it.
template <class ShareOf>
void write_gate_gradients(const Tensor& wanted, const Tensor& gates, const Mask& mask,
                          const Positions& keys, const std::vector<double>& by_sum,
                          std::int64_t parts, const ShareOf& share_of) {
  const std::int64_t row = padded(gates.shape[2]);
  for (std::int64_t b = 0; b < gates.shape[0]; ++b) {
    for (std::int64_t h = 0; h < gates.shape[1]; ++h) {
      double gradient = 0;
      for (std::int64_t j = gates.shape[2] - 1; j >= 0; --j) {
        for (std::int64_t part = 0; part < parts; ++part)
          gradient -= by_sum[static_cast<std::size_t>(share_of(part, b, h) * row + j)];
        // Read just before it is written, as both may have one memory.
        const double gate = gates.get(gates.offset(b, h, j));
        const bool learns = kept(mask, keys, b, j) && std::isfinite(gate);
        wanted.set(wanted.offset(b, h, j), learns ? gradient : 0);
      }
    }
  }
}

// Where the gradient of optional gates goes; absent where not wanted. Errors: there are no gates.
inline Expected<Tensor> optional_gate_gradient(std::string_view where, const Tensor& gradient,
                                               const Tensor& gates) {
  if (!gradient) return Tensor{};
  if (!gates)
    return fail(where, "the gradient of the log gates needs log gates", "none",
                "leave that gradient absent");
  return gradient_like(where, "the gradient of the log gates", gradient, gates);
}

// The running softmax of a tile's rows, with (c_i − c_j) times a factor of the row added to the scores, where there are
// gates.
template <class T>
class ForgetfulSoftmax {
 public:
  // own: of the tile's rows. by_sum [row of GateSums]: as write_gate_gradients takes them, null where not wanted.
  ForgetfulSoftmax(const GateSums* sums, std::int64_t b, std::int64_t h, const std::int64_t* own,
                   double* by_sum = nullptr)
      : sums_(sums), at_(sums == nullptr ? 0 : sums->at(b, h, 0)), own_(own), by_sum_(by_sum) {
    std::fill_n(factor, most_queries, 1.0);
  }
  double factor[most_queries];

  T fold(std::int64_t row, std::int64_t block, T* scores) {
    add(row, block, scores);
    return softmax_.fold(row, scores);
  }
  void differentiate(std::int64_t row, std::int64_t block, const T* by_weight, T mean, T* scores,
                     T* by_score) {
    add(row, block, scores);
    softmax_.differentiate(row, by_weight, mean, scores, by_score);
    if (by_sum_ == nullptr || own_[row] < 0) return;
    const std::int64_t first = block * block_keys, count = std::min(block_keys, sums_->row - first);
    double whole = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      const double by = static_cast<double>(by_score[j]) * factor[row];
      by_sum_[first + j] += by;
      whole += by;
    }
    by_sum_[own_[row]] -= whole;
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 private:
  void add(std::int64_t row, std::int64_t block, T* scores) const {
    if (sums_ == nullptr || own_[row] < 0) return;
    const double* const sum = sums_->sum.data() + at_;
    const std::int64_t first = block * block_keys, count = std::min(block_keys, sums_->row - first);
    const double end = sum[own_[row]], by = factor[row];
    for (std::int64_t j = 0; j < count; ++j)
      scores[j] += static_cast<T>((end - sum[first + j]) * by);
    const std::int64_t oldest = sums_->oldest[at_ + static_cast<std::size_t>(own_[row])] - first;
    for (std::int64_t j = 0; j < std::min(oldest, block_keys); ++j)
      scores[j] = -std::numeric_limits<T>::infinity();
  }

  const GateSums* sums_;
  std::size_t at_;
  const std::int64_t* own_;
  double* by_sum_;
  OnlineSoftmax<T> softmax_;
};

}  // namespace posenc::detail
