// Vectors by distance in the gradients of attention: what they add to products, and what they get
// of a row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/attention/backward.h"

namespace posenc::detail {

// What meets the query is formed once for each row of a table; the query's own table is met key by
// key. Where the plan has profiles, they stand for queries and keys (BackwardInputs::plain_q,
// plain_k).
template <class T>
class RelativeGradient {
 public:
  RelativeGradient(const BackwardInputs<T>& in, const BackwardTask<T>& task)
      : in_(in), task_(task), part_(in.in->relative.part) {
    if (!present()) return;
    const std::int64_t count = in.plan->relative->row_count;
    key_product_ = scratch_.take<T>(count);
    value_product_ = scratch_.take<T>(count);
    row_delta_ = scratch_.take<double>(count);
    row_weight_ = scratch_.take<double>(count);
    row_of_ = scratch_.take<std::int32_t>(part_->lists() * in.k.seq());
  }

  bool present() const { return part_ != nullptr; }
  void begin(const BiasBlock& block) { block_ = &block; }

  // Adds s_i (q_i·a^K + k_j·a^Q) to a row of products of queries and keys, g_i·a^V to those of
  // values.
  void add_products(std::int64_t head, std::int64_t query, T scale, const VisibleRange& seen,
                    T* product, T* delta) {
    const std::int64_t b = task_.sequence;
    find_rows(query, seen);
    if (in_.relative_key && least_ <= most_)
      dots(in_.plain_q.row(b, head, query), vector(in_.relative_key, head, least_),
           in_.relative_key.step(), most_ + 1 - least_, in_.relative_key.step(), nullptr, 0,
           key_product_ + least_);
    for (std::int64_t r = least_; r <= most_ && in_.relative_value; ++r)
      value_product_[r] = dot(in_.plain_out_gradient.row(b, head, query),
                              vector(in_.relative_value, head, r), in_.relative_value.step());
    each_row(seen, [&](std::int64_t j, std::int32_t row) {
      if (in_.relative_key) product[j] += key_product_[row];
      if (in_.relative_value) delta[j] += value_product_[row];
      if (in_.relative_query)
        product[j] +=
            scale * dot(key(head, j), vector(in_.relative_query, head, row), in_.plain_k.step());
    });
  }

  // Weights and gradients by logits of a row, 0 where hidden; `g` counts the head within its group.
  // The row's products have been asked for last.
  void take_gradient(std::int64_t head, std::int64_t g, std::int64_t query, T scale,
                     const VisibleRange& seen, const T* weight, const T* delta) {
    const std::int64_t b = task_.sequence;
    if (least_ > most_) return;
    std::fill(row_delta_ + least_, row_delta_ + most_ + 1, 0.0);
    std::fill(row_weight_ + least_, row_weight_ + most_ + 1, 0.0);
    each_row(seen, [&](std::int64_t j, std::int32_t r) {
      if (weight[j] == 0) return;
      row_delta_[r] += static_cast<double>(delta[j]);
      row_weight_[r] += static_cast<double>(weight[j]);
      if (!in_.relative_query) return;
      add_multiple(task_.keys->plain_k.row(b, key_head(head), j), delta[j] * scale,
                   vector(in_.relative_query, head, r), in_.plain_k.columns());
      if (sums().query)
        add_multiple(sums().query.of(g) + r * in_.plain_k.columns(),
                     static_cast<double>(delta[j] * scale), key(head, j), in_.plain_k.columns());
    });
    for (std::int64_t r = least_; r <= most_; ++r) {
      const double row_delta = row_delta_[r];
      if (in_.relative_key && row_delta != 0) {
        add_multiple(task_.queries->plain_q.row(b, head, query), static_cast<T>(row_delta),
                     vector(in_.relative_key, head, r), in_.plain_q.columns());
        if (sums().key)
          add_multiple(sums().key.of(g) + r * in_.plain_q.columns(), row_delta,
                       in_.plain_q.row(b, head, query), in_.plain_q.columns());
      }
      if (sums().value && row_weight_[r] != 0)
        add_multiple(sums().value.of(g) + r * in_.plain_out_gradient.columns(), row_weight_[r],
                     in_.plain_out_gradient.row(b, head, query), in_.plain_out_gradient.columns());
    }
  }

 private:
  TableSums& sums() const { return *task_.tables; }
  static const T* vector(const HeadRows<T>& table, std::int64_t head, std::int64_t row) {
    return table.row(0, table.heads() == 1 ? 0 : head, row);
  }
  // Keys are shared by a group, their profiles are not.
  std::int64_t key_head(std::int64_t head) const { return in_.profiles() ? head : task_.key_head; }
  const T* key(std::int64_t head, std::int64_t j) const {
    return in_.plain_k.row(task_.sequence, key_head(head), j);
  }
  template <class Number>
  static void add_multiple(Number* to, Number factor, const T* x, std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; ++c) to[c] += factor * static_cast<Number>(x[c]);
  }
  // The tables' rows of the keys that a query sees: [least_, most_]; none: empty.
  void find_rows(std::int64_t query, const VisibleRange& seen) {
    const std::int64_t position = block_->queries.position(query);
    least_ = in_.plan->relative->row_count, most_ = -1;
    for (std::int64_t list = 0; list < part_->lists(); ++list)
      for (std::int64_t j = seen.begin; j < seen.end; ++j)
        row_of_[list * in_.k.seq() + j] = static_cast<std::int32_t>(
            row_at(part_->list(list), position - block_->keys.position(j)));
    each_row(seen, [this](std::int64_t, std::int32_t row) {
      least_ = std::min<std::int64_t>(least_, row);
      most_ = std::max<std::int64_t>(most_, row);
    });
  }
  // Calls act(key, row) for the rows that have been found.
  template <class Act>
  void each_row(const VisibleRange& seen, const Act& act) const {
    for (std::int64_t list = 0; list < part_->lists(); ++list)
      for (std::int64_t j = seen.begin; j < seen.end; ++j)
        if (const std::int32_t row = row_of_[list * in_.k.seq() + j]; row != no_row) act(j, row);
  }

  Scratch scratch_;
  const BackwardInputs<T>& in_;
  const BackwardTask<T>& task_;
  const Relative* const part_;
  const BiasBlock* block_ = nullptr;
  std::int64_t least_ = 0, most_ = -1;
  T *key_product_ = nullptr, *value_product_ = nullptr;  // [row], of one query
  double *row_delta_ = nullptr, *row_weight_ = nullptr;  // the same
  std::int32_t* row_of_ = nullptr;                       // [list][key], of one query
};

}  // namespace posenc::detail
