// GRAPE-AP: to a logit is added a multiple of Σ log σ(p_i·p_l/u) over the tokens behind the key up
// to the query. Gates of a pair of tokens are products, so they are made as the blocks of keys
// come, from the query backwards, and summed up there.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/reference.h"
#include "src/content/stream_backward.h"
#include "src/core/alibi_slope.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/rotation.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::block_keys;
using detail::most_queries;

// What the functions ask, once q, k and v are known to fit.
struct ApArguments {
  Tensor queries, keys;  // p: [batch, heads, queries, u], [batch, heads, keys, u]
  std::vector<double> slope;

  std::int64_t columns() const { return queries.shape[3]; }
  double scale() const { return 1 / static_cast<double>(columns()); }

  static Expected<ApArguments> of(const GrapeAp& scheme, const detail::ContentCall& call) {
    const std::string_view where = call.where;
    const std::int64_t batch = call.batch(), heads = call.heads();
    POSENC_CHECK(detail::check_counted(call));
    if (!scheme.p_queries || !scheme.p_keys)
      return fail(where, "grape_ap.p_queries and grape_ap.p_keys must be given",
                  scheme.p_queries ? "no p_keys"
                  : scheme.p_keys  ? "no p_queries"
                                   : "neither",
                  "p of each token, for queries as it is, for keys normalized and rotated");
    POSENC_TRY(queries, detail::viewed(where, "grape_ap.p_queries", scheme.p_queries.values, 4));
    POSENC_TRY(keys, detail::viewed(where, "grape_ap.p_keys", scheme.p_keys.values, 4));
    const auto expect = [&](std::string_view name, const Tensor& x, std::int64_t tokens,
                            std::int64_t columns) -> Expected<void> {
      if (x.shape == std::array{batch, heads, tokens, columns} && columns > 0) return {};
      return fail(where,
                  "grape_ap." + std::string(name) + " must be [" + std::to_string(batch) + ", " +
                      std::to_string(heads) + ", " + std::to_string(tokens) + ", u]",
                  shape_text(x), "u numbers of each sequence, query head and token, above 0");
    };
    POSENC_CHECK(expect("p_queries", queries, call.in.queries.size(), queries.shape[3]));
    POSENC_CHECK(expect("p_keys", keys, call.in.keys.size(), queries.shape[3]));
    ApArguments made{queries, keys, scheme.slopes};
    for (const double slope : made.slope)
      if (!(slope >= 0) || !std::isfinite(slope))
        return fail(where, "grape_ap.slopes must be at least 0", number_text(slope),
                    "leave them out for ALiBi's");
    if (made.slope.size() == 1) made.slope.resize(static_cast<std::size_t>(heads), made.slope[0]);
    for (std::int64_t h = 0; scheme.slopes.empty() && h < heads; ++h)
      made.slope.push_back(detail::alibi_slope(h, heads));
    if (std::ssize(made.slope) != heads)
      return fail(where, "grape_ap.slopes must have one number, or " + std::to_string(heads),
                  std::to_string(scheme.slopes.size()), "one for each query head, or one for all");
    return made;
  }
};

// p of the keys as blocks, [batch][heads][block][dim][block_keys], and of the queries in rows,
// divided by u.
template <class T>
struct ApRows {
  std::int64_t heads, queries, blocks, dim;
  Aligned<T> q, k;

  ApRows(const ApArguments& of)
      : heads(of.queries.shape[1]),
        queries(of.queries.shape[2]),
        blocks((of.keys.shape[2] + block_keys - 1) / block_keys),
        dim(detail::padded(of.columns())),
        q(detail::loaded_rows<T>(of.queries, queries)),
        k(of.keys.shape[0] * heads * blocks * dim * block_keys) {
    detail::scale_row(q.data(), of.queries.shape[0] * heads * queries * dim,
                      static_cast<T>(of.scale()));
    const Aligned<T> rows = detail::loaded_rows<T>(of.keys, blocks * block_keys);
    for (std::int64_t n = 0; n < of.keys.shape[0] * heads * blocks; ++n)
      detail::transpose(rows.data() + n * dim * block_keys, dim, block_keys, dim,
                        k.data() + n * dim * block_keys, block_keys);
  }
  std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return ((b * heads + h) * queries + i) * dim;
  }
  const T* block(std::int64_t b, std::int64_t h, std::int64_t n) const {
    return k.data() + ((b * heads + h) * blocks + n) * dim * block_keys;
  }
};

template <class T>
class ApTile {
 public:
  ApTile(const ApRows<T>& rows, double slope, std::int64_t b, std::int64_t h, std::int64_t first,
         std::int64_t count)
      : all_(&rows),
        slope_(slope),
        b_(b),
        h_(h),
        count_(count),
        p_(rows.q.data() + rows.row(b, h, first)),
        products_(most_queries * block_keys) {}

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t seen, T* scores) {
    forget(gates(row, block), seen, scores, forgotten_[row]);
    return softmax_.fold(row, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 protected:
  // p_i·p_l/u of a row and the keys of a block, made for all rows at once.
  const T* gates(std::int64_t row, std::int64_t block) {
    if (block != made_)
      detail::block_products(p_, all_->block(b_, h_, block), count_, all_->dim, products_.data());
    made_ = block;
    return products_.data() + row * block_keys;
  }
  // A key's own gate acts on those before it. What is not seen may hold anything.
  void forget(const T* x, std::uint64_t seen, T* scores, double& forgotten) const {
    forgotten += static_cast<double>(
        detail::forget(x, seen, static_cast<T>(slope_), static_cast<T>(forgotten), scores));
  }

  const ApRows<T>* all_;
  double slope_;
  std::int64_t b_, h_, count_;
  const T* p_;
  Aligned<T> products_;
  std::int64_t made_ = -1;
  double forgotten_[most_queries] = {};
  detail::OnlineSoftmax<T> softmax_;
};

// With S the gradient by a logit and x = p_i·p_l/u:   ∂x_il = slope (1 − σ(x_il)) Σ_{j<l} S_ij
// The sum over j runs left to right, so what each block found of the sum is saved on the way back.
template <class T>
class ApGradientTile : public ApTile<T> {
 public:
  // by_p [row][dim]: of the tile's rows of p as ApRows has them; by_keys [key][dim]: of the head's.
  ApGradientTile(ApTile<T> tile, T* by_p, T* by_keys)
      : ApTile<T>(std::move(tile)),
        by_p_(by_p),
        by_keys_(by_keys),
        found_(static_cast<std::size_t>(this->all_->blocks * most_queries)),
        by_product_(most_queries * block_keys) {}

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t seen, T* scores) {
    found(block, row) = this->forgotten_[row];
    return ApTile<T>::weigh(row, block, seen, scores);
  }
  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t seen, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    if (block != pending_) take();
    pending_ = block;
    const T* const x = this->gates(row, block);
    double forgotten = found(block, row);
    this->forget(x, seen, scores, forgotten);
    this->softmax_.differentiate(row, by_weight, mean, scores, by_score);
    T open[block_keys];
    detail::sigmoids(x, open);
    T* const by = by_product_.data() + row * block_keys;
    double& before = before_[row];
    for (std::int64_t j = 0; j < block_keys; ++j) {
      if ((seen >> j & 1) == 0) continue;
      by[j] = static_cast<T>(this->slope_ * (1 - static_cast<double>(open[j])) * before);
      before += static_cast<double>(by_score[j]);
    }
  }
  void end() { take(); }

 private:
  double& found(std::int64_t block, std::int64_t row) {
    return found_[static_cast<std::size_t>(block * most_queries + row)];
  }
  // From a block's products to both factors.
  void take() {
    if (pending_ < 0) return;
    const std::int64_t dim = this->all_->dim, count = this->count_;
    const T* const columns = this->all_->block(this->b_, this->h_, pending_);
    Aligned<T> rows(block_keys * dim);
    detail::transpose(columns, block_keys, dim, block_keys, rows.data(), dim);
    detail::accumulate(by_product_.data(), rows.data(), detail::finite(columns, block_keys * dim),
                       count, dim, by_p_);
    detail::gemm(detail::Gemm<T>{.c = by_keys_ + pending_ * block_keys * dim,
                                 .c_step = dim,
                                 .rows = block_keys,
                                 .columns = dim,
                                 .a = by_product_.data(),
                                 .a_row = 1,
                                 .a_step = block_keys,
                                 .b = this->p_,
                                 .b_step = dim,
                                 .depth = count,
                                 .adds = true,
                                 .skips_zeros = !detail::finite(this->p_, count * dim)});
    std::fill_n(by_product_.data(), count * block_keys, T{0});
  }

  T *by_p_, *by_keys_;
  std::vector<double> found_;  // [block][row]
  Aligned<T> by_product_;      // of the pending block, [row][key]
  std::int64_t pending_ = -1;
  double before_[most_queries] = {};  // Σ S of all keys so far
};

}  // namespace

Expected<void> detail::attend_with(const GrapeAp& grape, const ContentCall& call) {
  POSENC_TRY(arguments, ApArguments::of(grape, call));
  return stream(call, MaskWords(call), false, [&]<class T>(const Streamed<T>&) {
    return [&, rows = ApRows<T>(arguments)](std::int64_t b, std::int64_t h, std::int64_t first,
                                            std::int64_t count) {
      return ApTile<T>(rows, arguments.slope[static_cast<std::size_t>(h)], b, h, first, count);
    };
  });
}

Expected<void> detail::reference_with(const GrapeAp& grape, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_TRY(arguments, ApArguments::of(grape, call));
  const auto add = [&](const ReferenceRow& row) {
    double forgotten = 0;
    for (std::int64_t j = std::ssize(row.logits) - 1; j >= 0; --j) {
      double& logit = row.logits[static_cast<std::size_t>(j)];
      if (logit == -std::numeric_limits<double>::infinity()) continue;
      logit += forgotten;
      double product = 0;
      for (std::int64_t c = 0; c < arguments.columns(); ++c)
        product +=
            arguments.queries.get(arguments.queries.offset(row.sequence, row.head, row.query, c)) *
            arguments.keys.get(arguments.keys.offset(row.sequence, row.head, j, c));
      forgotten += arguments.slope[static_cast<std::size_t>(row.head)] *
                   -softplus(-product * arguments.scale());
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = add, .weights = weights});
}

Expected<void> detail::backward_with(const GrapeAp& grape, const BackwardCall& call) {
  POSENC_TRY(arguments, ApArguments::of(grape, call));
  POSENC_TRY(by_queries, gradient_like(call.where, "the gradient of p_queries",
                                       call.gradients.p_queries, arguments.queries));
  POSENC_TRY(by_keys, gradient_like(call.where, "the gradient of p_keys", call.gradients.p_keys,
                                    arguments.keys));
  const std::int64_t parts = call.backward.parts;
  return with_compute_type(call.in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    const ApRows<T> rows(arguments);
    const std::int64_t of_head = rows.blocks * block_keys * rows.dim,
                       part = call.batch() * rows.heads * of_head,
                       query_numbers = call.batch() * rows.heads * rows.queries * rows.dim;
    Aligned<T> queries(query_numbers), keys(parts * part);
    const auto bind = [&](const Streamed<T>&, StreamedGradients<T>&) {
      return [&](const TileOf& at) {
        return ApGradientTile<T>(ApTile<T>(rows, arguments.slope[static_cast<std::size_t>(at.h)],
                                           at.b, at.h, at.first, at.rows),
                                 queries.data() + rows.row(at.b, at.h, at.first),
                                 keys.data() + at.share * of_head);
      };
    };
    POSENC_CHECK(stream_backward_in<T>(call, MaskWords(call), false, bind));
    for (std::int64_t n = 1; n < parts; ++n)
      for (std::int64_t e = 0; e < part; ++e) keys.data()[e] += keys.data()[n * part + e];
    scale_row(queries.data(), query_numbers, static_cast<T>(arguments.scale()));
    if (by_queries) write_rows(queries, rows.queries, by_queries);
    if (by_keys) write_rows(keys, rows.blocks * block_keys, by_keys);
    return {};
  });
}

}  // namespace posenc
