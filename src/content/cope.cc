// CoPE: a key's position is the sum of gates σ(z_il) from the query back to it; the logit gets
// q_i·e at that position, between two rows of e by the fraction. q_i·e[n] is formed once for every
// row n, and the sum runs with the blocks, which come from the query backwards.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
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

// Position vectors as blocks of keys: [head or 1][block][dim][block_keys].
template <class T>
struct Embeddings {
  std::int64_t heads, count, blocks, dim;
  detail::Aligned<T> transposed;

  // No more rows than keys can be counted.
  Embeddings(const Tensor& e, std::int64_t keys, std::int64_t padded)
      : heads(e.shape[0]),
        count(std::min(e.shape[1], keys + 1)),
        blocks((count + block_keys - 1) / block_keys),
        dim(padded),
        transposed(heads * blocks * dim * block_keys) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t n = 0; n < count; ++n) {
        T* const to =
            transposed.data() + (h * blocks + n / block_keys) * dim * block_keys + n % block_keys;
        for (std::int64_t c = 0; c < e.shape[2]; ++c) {
          to[c * block_keys] = static_cast<T>(e.get(e.offset(h, n, c)));
        }
      }
    }
  }
  const T* block(std::int64_t head, std::int64_t n) const {
    return transposed.data() + ((heads == 1 ? 0 : head) * blocks + n) * dim * block_keys;
  }
};

template <class T>
class CopeTile {
 public:
  CopeTile(const Embeddings<T>& e, const T* queries, const double* scale, std::int64_t h,
           std::int64_t rows)
      : last_(static_cast<double>(e.count - 1)), row_(e.blocks * block_keys), logits_(rows * row_) {
    T products[most_queries * block_keys];
    for (std::int64_t n = 0; n < e.blocks; ++n) {
      detail::block_products(queries, e.block(h, n), rows, e.dim, products);
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
      const Place place = place_of(counted);
      scores[j] += place.of(at);
    }
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 protected:
  // Between two rows of e.
  struct Place {
    std::int64_t low;
    T fraction;
    // Where the fraction is 0 there may be no row above.
    T of(const T* at) const {
      const T below = at[low];
      return fraction == 0 ? below : below * (1 - fraction) + at[low + 1] * fraction;
    }
  };
  Place place_of(double counted) const {
    const double position = counted < last_ ? counted : last_;  // NaN is no index
    const auto low = static_cast<std::int64_t>(position);
    return {low, static_cast<T>(position - static_cast<double>(low))};
  }

  double last_;  // the largest position
  std::int64_t row_;
  detail::Aligned<T> logits_;  // q·e [row][position]
  double counted_[most_queries] = {};
  detail::OnlineSoftmax<T> softmax_;
};

// With S the gradient by a logit, y_n = q·e[n] and p the position of the lower row:
//   ∂y_n = Σ_j S_ij · the share of row n,   ∂p_ij = S_ij (y_above − y_below),  0 where p is capped
//   ∂z_ij = S_ij + σ′(z_ij) Σ_{l≤j} ∂p_il
// The sum over l runs left to right, so each block's starting count is saved in the right-to-left
// pass.
template <class T>
class CopeGradientTile : public CopeTile<T> {
 public:
  // by_query: the gradient by the queries as they came, [row][dim]; by_embedding: that by the
  // head's e, [position][head_dim].
  CopeGradientTile(CopeTile<T> tile, const Embeddings<T>& e, const T* queries, const double* scale,
                   const detail::TileOf& at, std::int64_t blocks, T* by_query, double* by_embedding,
                   std::int64_t head_dim)
      : CopeTile<T>(std::move(tile)),
        e_(&e),
        queries_(queries),
        head_(at.h),
        rows_(at.rows),
        head_dim_(head_dim),
        by_query_(by_query),
        by_embedding_(by_embedding),
        by_logit_(most_queries * this->row_),
        found_(static_cast<std::size_t>(blocks * most_queries)) {
    std::copy_n(scale, rows_, scale_);
  }

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t seen, T* scores) {
    found(block, row) = this->counted_[row];
    return CopeTile<T>::weigh(row, block, seen, scores);
  }
  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    const T* const at = this->logits_.data() + row * this->row_;
    T* const by_logit = by_logit_.data() + row * this->row_;
    T gates[block_keys], slopes[block_keys];
    typename CopeTile<T>::Place places[block_keys];
    detail::sigmoids(scores, gates);
    double counted = found(block, row);
    for (std::int64_t j = block_keys - 1; j >= 0; --j) {
      counted += static_cast<double>(gates[j]);
      places[j] = this->place_of(counted);
      scores[j] += places[j].of(at);
      slopes[j] = counted < this->last_ ? at[places[j].low + 1] - at[places[j].low] : T{0};
    }
    this->softmax_.differentiate(row, by_weight, mean, scores, by_score);
    double& further = further_[row];
    for (std::int64_t j = 0; j < block_keys; ++j) {
      const T s = by_score[j], gate = gates[j];
      if (s != 0) {
        by_logit[places[j].low] += s * (1 - places[j].fraction);
        if (places[j].fraction != 0) by_logit[places[j].low + 1] += s * places[j].fraction;
        further += static_cast<double>(s * slopes[j]);
      }
      if (gate != 0) by_score[j] += gate * (1 - gate) * static_cast<T>(further);
    }
  }
  // From the products with e to both factors.
  void end() {
    const std::int64_t dim = e_->dim;
    detail::Aligned<T> weights(most_queries * block_keys), transposed(most_queries * block_keys);
    detail::Aligned<T> rows(block_keys * dim), queries(most_queries * dim), sums(block_keys * dim);
    std::copy_n(queries_, rows_ * dim, queries.data());
    const bool queries_finite = detail::finite(queries.data(), rows_ * dim);
    for (std::int64_t n = 0; n < e_->blocks; ++n) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        const T by = static_cast<T>(scale_[r]);
        for (std::int64_t j = 0; j < block_keys; ++j) {
          weights.data()[r * block_keys + j] =
              by_logit_.data()[r * this->row_ + n * block_keys + j] * by;
        }
      }
      detail::transpose(e_->block(head_, n), block_keys, dim, block_keys, rows.data(), dim);
      detail::accumulate(weights.data(), rows.data(), detail::finite(rows.data(), block_keys * dim),
                         rows_, dim, by_query_);
      detail::transpose(weights.data(), block_keys, most_queries, block_keys, transposed.data(),
                        most_queries);
      std::fill_n(sums.data(), block_keys * dim, T{0});
      detail::accumulate(transposed.data(), queries.data(), queries_finite, block_keys, dim,
                         sums.data());
      const std::int64_t count = std::min(block_keys, e_->count - n * block_keys);
      for (std::int64_t j = 0; j < count; ++j) {
        double* const to = by_embedding_ + (n * block_keys + j) * head_dim_;
        for (std::int64_t c = 0; c < head_dim_; ++c) {
          to[c] += static_cast<double>(sums.data()[j * dim + c]);
        }
      }
    }
  }

 private:
  double& found(std::int64_t block, std::int64_t row) {
    return found_[static_cast<std::size_t>(block * most_queries + row)];
  }

  const Embeddings<T>* e_;
  const T* queries_;
  std::int64_t head_, rows_, head_dim_;
  T* by_query_;
  double* by_embedding_;
  double scale_[most_queries];
  detail::Aligned<T> by_logit_;        // by q·e, [row][position]
  std::vector<double> found_;          // [block][row]
  double further_[most_queries] = {};  // Σ ∂p of all keys so far
};

// What q·e is multiplied by.
void find_scales(const Cope& cope, const detail::ContentCall& call, std::int64_t b, std::int64_t h,
                 std::int64_t first, std::int64_t rows, double* scale) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const double whole = call.plan.logits.query_scale(call.in.queries.at(first + r, b), h) /
                         std::sqrt(static_cast<double>(call.head_dim()));
    scale[r] = cope.before_scale ? whole : 1;
  }
}

// e as [head or 1][position][head_dim], and what all three functions ask besides.
Expected<Tensor> embeddings_of(const Cope& cope, const detail::ContentCall& call) {
  const std::string_view where = call.where;
  const std::int64_t heads = call.heads(), head_dim = call.head_dim();
  POSENC_CHECK(detail::check_counted(call));
  if (!cope.embeddings) {
    return fail(where, "cope.embeddings must be given", "none",
                "[positions, " + std::to_string(head_dim) + "], of the checkpoint");
  }
  const auto e = detail::viewed(where, "cope.embeddings", cope.embeddings.values, 3);
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

Expected<void> detail::attend_with(const Cope& cope, const ContentCall& call) {
  POSENC_TRY(e, embeddings_of(cope, call));
  return stream(call, MaskWords(call), true, [&]<class T>(const Streamed<T>& streamed) {
    return [&, learned = Embeddings<T>(e, call.in.keys.size(), streamed.dim)](
               std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
      double scale[most_queries];
      find_scales(cope, call, b, h, first, rows, scale);
      return CopeTile<T>(learned, streamed.raw_query(b, h, first), scale, h, rows);
    };
  });
}

Expected<void> detail::reference_with(const Cope& cope, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_TRY(e, embeddings_of(cope, call));
  const std::int64_t last = e.shape[1] - 1;
  const auto add = [&](const ReferenceRow& row) {
    const auto product = [&](std::int64_t n) {
      double sum = 0;
      for (std::int64_t c = 0; c < e.shape[2]; ++c)
        sum += row.q[static_cast<std::size_t>(c)] *
               e.get(e.offset(e.shape[0] == 1 ? 0 : row.head, n, c));
      return cope.before_scale ? sum * row.scale : sum;
    };
    double counted = 0;
    for (std::size_t j = row.logits.size(); j-- > 0;) {
      double& logit = row.logits[j];
      counted += 1 / (1 + std::exp(-logit));                     // 0 of what is hidden
      const bool between = counted < static_cast<double>(last);  // NaN is no index
      const std::int64_t low = between ? static_cast<std::int64_t>(counted) : last;
      const double w = between ? counted - static_cast<double>(low) : 0;
      logit += (1 - w) * product(low);
      if (w > 0) logit += w * product(low + 1);
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = add, .weights = weights});
}

Expected<void> detail::backward_with(const Cope& cope, const BackwardCall& call) {
  POSENC_TRY(e, embeddings_of(cope, call));
  POSENC_TRY(wanted, gradient_like(call.where, "the gradient of the embeddings",
                                   call.gradients.embeddings, e));
  const std::int64_t head_dim = call.head_dim(), all_shares = call.backward.shares();
  const std::int64_t count =
      std::min(e.shape[1], call.in.keys.size() + 1);  // nobody counts further
  std::vector<double> shares(static_cast<std::size_t>(all_shares * count * head_dim));
  const auto done = stream_backward(
      call, MaskWords(call), true,
      [&]<class T>(const Streamed<T>& streamed, StreamedGradients<T>& to) {
        return
            [&, learned = Embeddings<T>(e, call.in.keys.size(), streamed.dim)](const TileOf& at) {
              double scale[most_queries];
              find_scales(cope, call, at.b, at.h, at.first, at.rows, scale);
              const T* const raw = streamed.raw_query(at.b, at.h, at.first);
              return CopeGradientTile<T>(CopeTile<T>(learned, raw, scale, at.h, at.rows), learned,
                                         raw, scale, at, streamed.blocks,
                                         to.raw_q.data() + (raw - streamed.raw.data()),
                                         shares.data() + at.share * count * head_dim, head_dim);
            };
      });
  if (!done || !wanted) return done;
  for (std::int64_t h = 0; h < e.shape[0]; ++h) {
    for (std::int64_t n = 0; n < e.shape[1]; ++n) {
      for (std::int64_t c = 0; c < head_dim; ++c) {
        double sum = 0;
        for (std::int64_t share = e.shape[0] == 1 ? 0 : h; n < count && share < all_shares;
             share += e.shape[0]) {
          sum += shares[static_cast<std::size_t>((share * count + n) * head_dim + c)];
        }
        wanted.set(wanted.offset(h, n, c), sum);
      }
    }
  }
  return {};
}

}  // namespace posenc
