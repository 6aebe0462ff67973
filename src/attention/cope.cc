// CoPE: a key's position is the sum of gates σ(z_il) from the query back to it; the logit gets q_i·e at
// that position, between two rows of e by the fraction. q_i·e[n] is formed once for every row n, and the
// sum runs with the blocks, which come from the query backwards.
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

// Position vectors as blocks of keys: [head or 1][block][dim][block_keys].
template <class T>
struct Embeddings {
  std::int64_t heads, count, blocks, dim;
  detail::Aligned<T> turned_over;

  // No more rows than keys can be counted.
  Embeddings(const Tensor& e, std::int64_t keys, std::int64_t padded)
      : heads(e.shape[0]),
        count(std::min(e.shape[1], keys + 1)),
        blocks((count + block_keys - 1) / block_keys),
        dim(padded),
        turned_over(heads * blocks * dim * block_keys) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t n = 0; n < count; ++n) {
        T* const to =
            turned_over.data() + (h * blocks + n / block_keys) * dim * block_keys + n % block_keys;
        for (std::int64_t c = 0; c < e.shape[2]; ++c) {
          to[c * block_keys] = static_cast<T>(e.get(e.offset(h, n, c)));
        }
      }
    }
  }
  const T* block(std::int64_t head, std::int64_t n) const {
    return turned_over.data() + ((heads == 1 ? 0 : head) * blocks + n) * dim * block_keys;
  }
};

template <class T>
class CopeTile {
 public:
  CopeTile(const Embeddings<T>& e, const T* queries, const double* scale, std::int64_t h,
           std::int64_t rows)
      : last_(static_cast<double>(e.count - 1)), row_(e.blocks * block_keys), logits_(rows * row_) {
    T products[query_tile * block_keys];
    for (std::int64_t n = 0; n < e.blocks; ++n) {
      detail::products(queries, e.block(h, n), rows, e.dim, products);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T by = static_cast<T>(scale[r]);
        for (std::int64_t j = 0; j < block_keys; ++j) {
          logits_.data()[r * row_ + n * block_keys + j] = products[r * block_keys + j] * by;
        }
      }
    }
  }

  T weigh(std::int64_t row, std::int64_t, std::uint64_t, T* scores) {
    const T* const at = logits_.data() + row * row_;
    double& counted = counted_[row];
    if (counted >= last_) {
      const T end = at[static_cast<std::int64_t>(last_)];
      for (std::int64_t j = 0; j < block_keys; ++j) scores[j] += end;
      return softmax_.fold(row, scores);
    }
    T gates[block_keys];
    detail::sigmoids(scores, gates);  // 0 of what is hidden
    for (std::int64_t j = block_keys - 1; j >= 0; --j) {
      counted += static_cast<double>(gates[j]);
      const double position = counted < last_ ? counted : last_;  // NaN is no index
      const auto low = static_cast<std::int64_t>(position);
      const T fraction = static_cast<T>(position - static_cast<double>(low));
      const T below = at[low];
      // Where the fraction is 0 there may be no row above.
      scores[j] += fraction == 0 ? below : below * (1 - fraction) + at[low + 1] * fraction;
    }
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 private:
  double last_;  // the largest position
  std::int64_t row_;
  detail::Aligned<T> logits_;  // q·e [row][position]
  double counted_[query_tile] = {};
  detail::OnlineSoftmax<T> softmax_;
};

// e as [head or 1][position][head_dim].
Expected<Tensor> embeddings_of(std::string_view where, const Cope& cope, std::int64_t heads,
                               std::int64_t head_dim) {
  const auto e = detail::viewed(where, "cope.embeddings", cope.embeddings, 3);
  if (!e) return e;
  if ((e->shape[0] == 1 || e->shape[0] == heads) && e->shape[1] > 0 && e->shape[2] == head_dim) {
    return e;
  }
  return fail(where,
              "cope.embeddings must be [positions, " + std::to_string(head_dim) +
                  "], or that for each of " + std::to_string(heads) + " heads",
              shape_text(*e), "the authors store [1, head_dim, positions]: swap the last two axes");
}

}  // namespace

Expected<void> attend_cope(const Tensor& q, const Tensor& k, const Tensor& v, const Cope& cope,
                           const Plan& plan, const Positions& queries, const Positions& keys,
                           const Mask& mask, const Tensor& out, Threads threads) {
  constexpr std::string_view where = "attend_cope";
  const auto in = detail::attend_arguments(where, q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return ok;
  const std::int64_t batch = in->q.shape[0], heads = in->q.shape[1], head_dim = in->q.shape[3];
  if (auto ok = detail::check_counted(where, keys, mask, batch); !ok) return ok;
  const auto e = embeddings_of(where, cope, heads, head_dim);
  if (!e) return std::unexpected(e.error());
  return detail::with_compute_type(q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*in, plan, queries, keys, true, threads);
    if (!streamed) return std::unexpected(streamed.error());
    const Embeddings<T> embeddings(*e, keys.size(), streamed->dim);
    const detail::Seen seen(mask, queries, keys, batch);
    detail::stream(*streamed, seen, threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
                     double scale[query_tile];
                     for (std::int64_t r = 0; r < rows; ++r) {
                       const double whole = plan.logits.query_scale(queries.at(first + r, b)) /
                                            std::sqrt(static_cast<double>(head_dim));
                       scale[r] = cope.before_scale ? whole : 1;
                     }
                     return CopeTile<T>(embeddings, streamed->raw_query(b, h, first), scale, h,
                                        rows);
                   });
    return streamed->write(plan, queries, in->out, threads);
  });
}

}  // namespace posenc
