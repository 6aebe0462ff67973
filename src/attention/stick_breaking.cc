// Stick-breaking attention. In logarithms, from the query backwards, `left` the stick that is left:
//   ln A_ij = left + ln σ(z_ij),   left ← left + ln(1 − σ(z_ij))
// A product of many numbers below 1 would reach 0 where its logarithm is still exact.
#include <algorithm>
#include <cmath>

#include "posenc/content.h"
#include "src/attention/stream.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::block_keys;
using detail::query_tile;

template <class T>
class StickTile {
 public:
  StickTile(const Tensor& remainder, std::int64_t b, std::int64_t h, std::int64_t first)
      : remainder_(&remainder), sequence_(b), head_(h), first_(first) {}

  T weigh(std::int64_t row, std::int64_t, std::uint64_t, T* scores) {
    T tails[block_keys];
    detail::softplus_tails(scores, tails);
    double left = left_[row];
    // What is hidden has z = −∞: σ = 0, a weight of 0 that leaves the stick as it is.
    for (std::int64_t j = block_keys - 1; j >= 0; --j) {
      const double z = static_cast<double>(scores[j]), tail = static_cast<double>(tails[j]);
      scores[j] = static_cast<T>(left + (std::min(z, 0.0) - tail));
      left -= std::max(z, 0.0) + tail;
    }
    left_[row] = left;
    detail::exponentials(scores, T{0});
    return 1;
  }
  T finish(std::int64_t row) const {
    if (*remainder_) {
      remainder_->set(remainder_->offset(sequence_, head_, first_ + row), std::exp(left_[row]));
    }
    return 1;
  }

 private:
  const Tensor* remainder_;
  std::int64_t sequence_, head_, first_;
  double left_[query_tile] = {};  // ln of it
};

}  // namespace

Expected<void> attend_stick_breaking(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const StickBreaking& stick_breaking, const Plan& plan,
                                     const Positions& queries, const Positions& keys,
                                     const Mask& mask, const Tensor& out, const Tensor& remainder,
                                     Threads threads) {
  constexpr std::string_view where = "attend_stick_breaking";
  const auto in = detail::attend_arguments(where, q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return ok;
  const std::int64_t batch = in->q.shape[0], heads = in->q.shape[1];
  if (auto ok = detail::check_counted(where, keys, mask, batch); !ok) return ok;
  Tensor rest;
  if (remainder) {
    const auto view = detail::viewed(where, "remainder", remainder, 3);
    if (!view) return std::unexpected(view.error());
    if (auto ok = detail::check_distinct(where, *view); !ok) return ok;
    if (view->shape[0] != batch || view->shape[1] != heads || view->shape[2] != queries.size()) {
      return fail(where,
                  "remainder must be [" + std::to_string(batch) + ", " + std::to_string(heads) +
                      ", " + std::to_string(queries.size()) + "]",
                  shape_text(*view), "one number for each sequence, head and query");
    }
    rest = *view;
  }
  return detail::with_compute_type(q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*in, plan, queries, keys, false, threads);
    if (!streamed) return std::unexpected(streamed.error());
    const detail::Seen seen(mask, queries, keys, batch, !stick_breaking.attend_current);
    detail::stream(*streamed, seen, threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t) {
                     return StickTile<T>(rest, b, h, first);
                   });
    return streamed->write(plan, queries, in->out, threads);
  });
}

}  // namespace posenc
