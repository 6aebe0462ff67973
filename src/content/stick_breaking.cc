// Stick-breaking attention. In logarithms, from the query backwards, `left` the stick that is left:
//   ln A_ij = left + ln σ(z_ij),   left ← left + ln(1 − σ(z_ij))
// A product of many numbers below 1 would reach 0 where its logarithm is still exact.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/attention/reference.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::block_keys;
using detail::most_queries;

template <class T>
class StickTile {
 public:
  StickTile(const Tensor& remainder, std::int64_t b, std::int64_t h, std::int64_t first)
      : remainder_(&remainder), sequence_(b), head_(h), first_(first) {}

  T weigh(std::int64_t row, std::int64_t, std::uint64_t, T* scores) {
    left_[row] = break_off(left_[row], scores);
    return 1;
  }
  T finish(std::int64_t row) const {
    if (*remainder_) {
      remainder_->set(remainder_->offset(sequence_, head_, first_ + row), std::exp(left_[row]));
    }
    return 1;
  }

 protected:
  // A block's scores to weights, `left` being what its last key finds; what it leaves. What is
  // hidden has z = −∞: σ = 0, a weight of 0 that leaves the stick as it is.
  static double break_off(double left, T* scores) {
    return left - static_cast<double>(detail::break_off(scores, static_cast<T>(left)));
  }

  const Tensor* remainder_;
  std::int64_t sequence_, head_, first_;
  double left_[most_queries] = {};  // ln of it
};

// With a_ij = A_ij g_i·v_j, the gradient by ln A_ij, and r_i R_i that by the remainder's logarithm:
//   ∂z_ij = a_ij (1 − σ(z_ij)) − σ(z_ij) (r_i R_i + Σ_{l<j} a_il)
// The sum runs forwards, so what each block found of the stick is kept from the way back.
template <class T>
class StickGradientTile : public StickTile<T> {
 public:
  StickGradientTile(const Tensor& none, const Tensor& remainder_gradient,
                    const detail::TileOf& tile, std::int64_t blocks)
      : StickTile<T>(none, tile.b, tile.h, tile.first),
        found_(static_cast<std::size_t>(blocks * most_queries)),
        remainder_gradient_(&remainder_gradient) {}

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t seen, T* scores) {
    found(block, row) = this->left_[row];
    return StickTile<T>::weigh(row, block, seen, scores);
  }
  T finish(std::int64_t row) {
    if (const Tensor& by = *remainder_gradient_) {
      const double rest = std::exp(this->left_[row]);
      const double given = by.get(by.offset(this->sequence_, this->head_, this->first_ + row));
      behind_[row] = rest == 0 ? 0 : given * rest;
    }
    return 1;
  }
  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t, const T* by_weight, T,
                     T* scores, T* by_score) {
    T shares[block_keys];
    detail::sigmoids(scores, shares);
    this->break_off(found(block, row), scores);
    double behind = behind_[row];
    for (std::int64_t j = 0; j < block_keys; ++j) {
      const double share = static_cast<double>(shares[j]);
      const double a =
          scores[j] == 0 ? 0 : static_cast<double>(scores[j]) * static_cast<double>(by_weight[j]);
      by_score[j] = share == 0 ? T{0} : static_cast<T>(a * (1 - share) - share * behind);
      behind += a;
    }
    behind_[row] = behind;
  }

 private:
  double& found(std::int64_t block, std::int64_t row) {
    return found_[static_cast<std::size_t>(block * most_queries + row)];
  }

  std::vector<double> found_;  // [block][row]
  double behind_[most_queries] = {};
  const Tensor* remainder_gradient_;
};

// A number for each query, [batch, heads, queries].
Expected<Tensor> remainder_of(std::string_view where, std::string_view name, const Tensor& given,
                              const Tensor& q) {
  if (!given) return Tensor{};
  const auto view = detail::viewed(where, name, given, 3);
  if (!view) return view;
  if (std::equal(view->shape.begin(), view->shape.begin() + 3, q.shape.begin())) return view;
  return fail(where,
              std::string(name) + " must be [" + std::to_string(q.shape[0]) + ", " +
                  std::to_string(q.shape[1]) + ", " + std::to_string(q.shape[2]) + "]",
              shape_text(*view), "one number for each sequence, head and query");
}

}  // namespace

Expected<void> detail::attend_with(const StickBreaking& stick, const ContentCall& call,
                                   const Tensor& remainder) {
  POSENC_CHECK(check_counted(call));
  POSENC_TRY(rest, remainder_of(call.where, "remainder", remainder, call.checked.q));
  if (rest) POSENC_CHECK(check_distinct(call.where, rest));
  return stream(call, MaskWords(call, !stick.attend_current), false,
                [&]<class T>(const Streamed<T>&) {
                  return [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t) {
                    return StickTile<T>(rest, b, h, first);
                  };
                });
}

Expected<void> detail::reference_with(const StickBreaking& stick, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_CHECK(check_counted(call));
  const MaskWords seen(call, !stick.attend_current);
  const auto break_off = [&](const ReferenceRow& row) {
    double left = 0;  // ln of it
    for (std::int64_t j = call.in.keys.size() - 1; j >= 0; --j) {
      double& z = row.logits[static_cast<std::size_t>(j)];
      const bool takes = seen.word(row.sequence, row.query, j / block_keys) >> (j % block_keys) & 1;
      if (!takes) z = -std::numeric_limits<double>::infinity();
      const double tail = std::log1p(std::exp(-std::abs(z)));
      const double log_share = left + (std::min(z, 0.0) - tail);
      left -= std::max(z, 0.0) + tail;
      z = log_share;
    }
  };
  return attend_by_rows(call.checked, call.plan,
                        {.change = break_off, .leaves_log_weights = true, .weights = weights});
}

Expected<void> detail::backward_with(const StickBreaking& stick, const BackwardCall& call,
                                     const Tensor& remainder_gradient) {
  POSENC_CHECK(check_counted(call));
  POSENC_TRY(given,
             remainder_of(call.where, "remainder_gradient", remainder_gradient, call.checked.q));
  const Tensor none;
  return stream_backward(call, MaskWords(call, !stick.attend_current), false,
                         [&]<class T>(const Streamed<T>& streamed, StreamedGradients<T>&) {
                           return [&](const TileOf& tile) {
                             return StickGradientTile<T>(none, given, tile, streamed.blocks);
                           };
                         });
}

}  // namespace posenc
