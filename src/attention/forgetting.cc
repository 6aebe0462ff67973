// Forgetting attention: Σ_{l=j+1..i} log f_l = c_i − c_j, c the running sum of log gates. The sums grow
// with the length while their differences need not, so they are kept in double. A gate of 0 (−∞) stays
// out of the sum; it hides every key before it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/attention/stream.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::block_keys;
using detail::query_tile;

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
      own_[r] = sum_[own[r]];
      oldest_[r] = sums.oldest[sums.at(b, h, own[r])];
    }
  }

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    const std::int64_t start = block * block_keys;
    const double* const sum = sum_ + start;
    const double own = own_[row];
    for (std::int64_t j = 0; j < block_keys; ++j) scores[j] += static_cast<T>(own - sum[j]);
    const std::int64_t forgotten = std::clamp<std::int64_t>(oldest_[row] - start, 0, block_keys);
    std::fill_n(scores, forgotten, -std::numeric_limits<T>::infinity());
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 private:
  const double* sum_;
  double own_[query_tile] = {};
  std::int64_t oldest_[query_tile] = {};
  detail::OnlineSoftmax<T> softmax_;
};

}  // namespace

Expected<void> attend_forgetting(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Forgetting& forgetting, const Plan& plan,
                                 const Positions& queries, const Positions& keys, const Mask& mask,
                                 const Tensor& out, Threads threads) {
  constexpr std::string_view where = "attend_forgetting";
  const auto in = detail::attend_arguments(where, q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return ok;
  const std::int64_t batch = in->q.shape[0], heads = in->q.shape[1];
  if (auto ok = detail::check_counted(where, keys, mask, batch); !ok) return ok;
  const auto gates = detail::viewed(where, "forgetting.log_gates", forgetting.log_gates, 3);
  if (!gates) return std::unexpected(gates.error());
  if (gates->shape[0] != batch || gates->shape[1] != heads || gates->shape[2] != keys.size()) {
    return fail(where,
                "forgetting.log_gates must be [" + std::to_string(batch) + ", " +
                    std::to_string(heads) + ", " + std::to_string(keys.size()) + "]",
                shape_text(*gates), "one for each sequence, query head and key");
  }
  const auto sums = Sums::of(where, *gates, keys, mask);
  if (!sums) return std::unexpected(sums.error());
  const std::vector<std::int64_t> own = detail::own_keys(mask, queries, keys, batch);
  return detail::with_compute_type(q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*in, plan, queries, keys, false, threads);
    if (!streamed) return std::unexpected(streamed.error());
    const detail::Seen seen(mask, queries, keys, batch);
    detail::stream(*streamed, seen, threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
                     return ForgettingTile<T>(*sums, own.data() + b * queries.size() + first, b, h,
                                              rows);
                   });
    return streamed->write(plan, queries, in->out, threads);
  });
}

}  // namespace posenc
