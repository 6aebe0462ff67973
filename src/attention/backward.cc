// With α_ij the weights, û_i = Σ_j α_ij v̂_j, ĝ_i the turned gradient by the output i, g_i the plain one,
// and s_i = query scale/√head_dim:
//   e_ij = ∂L/∂α_ij = ĝ_i·v̂_j + g_i·a^V_d        δ_ij = ∂L/∂logit_ij = α_ij (e_ij − Σ_k α_ik e_ik)
//   ∂q̂_i = Σ_j s_i δ_ij k̂_j     ∂k̂_j = Σ_i s_i δ_ij q̂_i     ∂v̂_j = Σ_i α_ij ĝ_i
//   ∂q_i += Σ_j s_i δ_ij a^K_d   ∂k_j += Σ_i s_i δ_ij a^Q_d
//   ∂a^K_d = Σ s_i δ_ij q_i      ∂a^Q_d = Σ s_i δ_ij k_j     ∂a^V_d = Σ α_ij g_i      d = i − j
//   ∂bias_d = Σ δ_ij             ∂slope = −Σ δ_ij·distance   (before_scale: s_i δ_ij)
// A few queries at a time meet all keys that any of them sees, so that the sums over j stand before
// what needs them.
#include "src/attention/backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/attention/arguments.h"
#include "src/attention/products.h"
#include "src/attention/visible.h"
#include "src/attention/weights.h"

namespace posenc::detail {
namespace {

constexpr std::int64_t query_block = 32;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::int64_t whole_blocks(std::int64_t keys) {
  return (keys + key_block - 1) / key_block * key_block;
}

template <class T>
class Backward {
 public:
  Backward(const BackwardInputs<T>& in, const BackwardTask<T>& task)
      : in_(in),
        task_(task),
        b_(task.sequence),
        dim_(in.q.dim()),
        keys_(in.k.seq()),
        stride_(whole_blocks(keys_)),
        weight_(block_of<T>()),
        delta_(block_of<T>()),
        hide_(block_of<T>()),
        bias_(at(stride_)) {
    key_position_.resize(at(stride_));
    for (std::int64_t j = 0; j < keys_; ++j) key_position_[at(j)] = in.keys->at(j, b_);
    if (in.plan->bias) {
      slopes_ = std::get_if<Slopes>(&*in.plan->bias);
      before_scale_ = slopes_ != nullptr && slopes_->before_scale;
      steps_.resize(bias_.size());
    }
    if (in.bias) bias_row_ = block_of<std::int32_t>();
    if (in.plan->relative) {
      relative_row_ = block_of<std::int32_t>();
      const std::size_t rows = at(in.plan->relative->row_count);
      key_product_.resize(rows);
      value_product_.resize(rows);
      row_delta_.resize(rows);
      row_weight_.resize(rows);
    }
  }

  Expected<void> run() {
    Expected<void> done;
    each_tile_of(task_.part, task_.parts, in_.q.seq(), query_block, [&](std::int64_t first) {
      if (done) done = block(first);
    });
    return done;
  }

 private:
  Expected<void> block(std::int64_t first) {
    const std::int64_t group = in_.q.heads() / in_.k.heads();
    first_query_ = first;
    queries_ = std::min(query_block, in_.q.seq() - first_query_);
    if (auto ok = find_keys(); !ok || first_key_ == last_key_) return ok;
    for (std::int64_t h = 0; h < std::ssize(task_.tables); ++h) {
      key_head_ = task_.first_key_head + h;
      k_columns_ = in_.k_columns[at(b_ * in_.k.heads() + key_head_)].data();
      v_columns_ = in_.v_columns[at(b_ * in_.k.heads() + key_head_)].data();
      tables_ = &task_.tables[at(h)];
      for (std::int64_t g = 0; g < group; ++g) {
        head_ = key_head_ * group + g;
        products_of_rows();
        for (std::int64_t i = 0; i < queries_; ++i) finish(i, g);
        products_of_deltas();
      }
    }
    return {};
  }

  template <class Number>
  std::vector<Number> block_of() const {
    return std::vector<Number>(at(query_block * stride_));
  }

  // Which keys each query of the block sees, and the tables' rows for them.
  Expected<void> find_keys() {
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    std::fill(hide_.begin(), hide_.end(), hidden);
    std::int64_t first = keys_, last = 0;
    for (std::int64_t i = 0; i < queries_; ++i) {
      const std::int64_t query = first_query_ + i;
      const std::int64_t position = in_.queries->at(query, b_);
      for (std::int64_t j = 0; j < keys_; ++j) {
        const auto here = at(i * stride_ + j);
        if (!visible(*in_.mask, *in_.queries, *in_.keys, b_, query, j)) continue;
        hide_[here] = 0;
        first = std::min(first, j);
        last = std::max(last, j + 1);
        if (!in_.bias && relative_row_.empty()) continue;
        const std::int64_t distance = position - key_position_[at(j)];
        if (in_.bias) {
          const auto row = std::get<BiasTable>(*in_.plan->bias).rows.at(distance);
          if (!row) return std::unexpected(row.error());
          bias_row_[here] = static_cast<std::int32_t>(*row);
        }
        if (!relative_row_.empty()) {
          const auto row = in_.plan->relative->rows.at(distance);
          if (!row) return std::unexpected(row.error());
          relative_row_[here] = static_cast<std::int32_t>(*row);
        }
      }
    }
    // Whole blocks of keys; none where no query of the block sees one.
    first_key_ = last == 0 ? 0 : first / key_block * key_block;
    last_key_ = (last + key_block - 1) / key_block * key_block;
    return {};
  }

  // q̂_i·k̂_j into weight_, ĝ_i·v̂_j into delta_.
  void products_of_rows() {
    const T* const q = in_.q.row(b_, head_, first_query_);
    const T* const g = in_.out_gradient.row(b_, head_, first_query_);
    for (std::int64_t j = first_key_; j < last_key_; j += key_block) {
      for (std::int64_t i = 0; i < queries_; ++i) {
        std::fill_n(weight_.data() + i * stride_ + j, key_block, T{0});
        std::fill_n(delta_.data() + i * stride_ + j, key_block, T{0});
      }
      const auto dots = [&](std::vector<T>& to, const T* rows, const T* columns) {
        add_product({.y = to.data() + j,
                     .y_step = stride_,
                     .rows = queries_,
                     .columns = key_block,
                     .weight = rows,
                     .weight_row = dim_,
                     .weight_step = 1,
                     .x = columns + j * dim_,
                     .x_step = key_block,
                     .terms = dim_});
      };
      dots(weight_, q, k_columns_);
      dots(delta_, g, v_columns_);
    }
  }

  // What remains once weight_ holds α_ij and delta_ holds s_i δ_ij, both zero for hidden keys.
  void products_of_deltas() {
    for (std::int64_t j = first_key_; j < last_key_; j += key_block) {
      const std::int64_t keys = std::min(key_block, keys_ - j);
      const auto by_query = [&](Dense<T>& to, const std::vector<T>& weights, const Dense<T>& x) {
        add_product({.y = to.row(b_, head_, first_query_),
                     .y_step = dim_,
                     .rows = queries_,
                     .columns = dim_,
                     .weight = weights.data() + j,
                     .weight_row = stride_,
                     .weight_step = 1,
                     .x = x.row(b_, key_head_, j),
                     .x_step = dim_,
                     .terms = keys,
                     .skips_zeros = !in_.finite});
      };
      const auto by_key = [&](Dense<T>& to, const std::vector<T>& weights, const Dense<T>& x) {
        add_product({.y = to.row(b_, key_head_, j),
                     .y_step = dim_,
                     .rows = keys,
                     .columns = dim_,
                     .weight = weights.data() + j,
                     .weight_row = 1,
                     .weight_step = stride_,
                     .x = x.row(b_, head_, first_query_),
                     .x_step = dim_,
                     .terms = queries_,
                     .skips_zeros = !in_.finite});
      };
      by_query(task_.queries->q, delta_, in_.k);
      by_key(task_.keys->k, delta_, in_.q);
      by_key(task_.keys->v, weight_, in_.out_gradient);
      if (task_.queries->turned_out) by_query(task_.queries->turned_out, weight_, in_.v);
    }
  }

  // One query's row: from products to α_ij and s_i δ_ij, and what the tables get of it.
  void finish(std::int64_t i, std::int64_t group_head) {
    const std::int64_t query = first_query_ + i;
    T* const weight = weight_.data() + i * stride_;
    T* const delta = delta_.data() + i * stride_;
    const double scale = in_.plan->logits.query_scale(in_.queries->at(query, b_)) /
                         std::sqrt(static_cast<double>(dim_));
    if (!relative_row_.empty()) meet_tables(i, weight, delta);
    find_bias(i);
    find_weights({.keys = last_key_ - first_key_,
                  .hide = hide_.data() + i * stride_ + first_key_,
                  .bias = in_.plan->bias ? bias_.data() + first_key_ : nullptr,
                  .bias_before_scale = before_scale_,
                  .scale = static_cast<T>(scale),
                  .weight = weight + first_key_,
                  .delta = delta + first_key_});
    if (!before_scale_) sum_bias(i, group_head, delta);
    for (std::int64_t j = first_key_; j < last_key_; ++j) delta[j] *= static_cast<T>(scale);
    if (before_scale_) sum_bias(i, group_head, delta);
    if (!relative_row_.empty()) sum_tables(i, group_head, weight, delta);
  }

  // What is added to a query's logits; what hidden keys get is of no account.
  void find_bias(std::int64_t i) {
    if (in_.bias) {
      const T* const table = in_.bias.row(0, 0, in_.bias.seq() == 1 ? 0 : head_);
      const std::int32_t* const row = bias_row_.data() + i * stride_;
      for (std::int64_t j = first_key_; j < last_key_; ++j) bias_[at(j)] = table[row[j]];
    } else if (slopes_ != nullptr) {
      find_steps(in_.queries->at(first_query_ + i, b_));
      const double slope = slopes_->slope[at(head_)];
      for (std::int64_t j = first_key_; j < last_key_; ++j) {
        bias_[at(j)] = static_cast<T>(-slope * steps_[at(j)]);
      }
    }
  }

  // Distances of a query as the slopes count them.
  void find_steps(std::int64_t position) {
    const bool both_ways = slopes_->bidirectional;
    for (std::int64_t j = first_key_; j < last_key_; ++j) {
      const std::int64_t distance = position - key_position_[at(j)];
      steps_[at(j)] = static_cast<double>(both_ways ? std::abs(distance) : distance);
    }
  }

  void sum_bias(std::int64_t i, std::int64_t group_head, const T* delta) {
    if (tables_->slopes) {
      double sum = 0;
      for (std::int64_t j = first_key_; j < last_key_; ++j) {
        sum -= static_cast<double>(delta[j]) * steps_[at(j)];
      }
      *tables_->slopes.of(group_head) += sum;
    }
    if (tables_->bias) {
      const std::int32_t* const row = bias_row_.data() + i * stride_;
      double* const sum = tables_->bias.of(group_head);
      for (std::int64_t j = first_key_; j < last_key_; ++j) {
        if (delta[j] != 0) sum[row[j]] += static_cast<double>(delta[j]);
      }
    }
  }

  // --- vectors by distance ----------------------------------------------------------------------

  static const T* vector(const Dense<T>& table, std::int64_t head, std::int64_t row) {
    return table.row(0, table.heads() == 1 ? 0 : head, row);
  }

  // The rows that a query meets: [least_row_, most_row_].
  void find_rows(std::int64_t i) {
    least_row_ = std::numeric_limits<std::int32_t>::max();
    most_row_ = -1;
    for (std::int64_t j = first_key_; j < last_key_; ++j) {
      const auto here = at(i * stride_ + j);
      if (hide_[here] != 0) continue;
      least_row_ = std::min(least_row_, relative_row_[here]);
      most_row_ = std::max(most_row_, relative_row_[here]);
    }
  }

  // Adds q_i·a^K + k_j·a^Q to the products of queries and keys, g_i·a^V to those of values. What meets
  // the query is formed once for each row, not for each key.
  void meet_tables(std::int64_t i, T* product, T* delta) {
    const std::int64_t query = first_query_ + i;
    find_rows(i);
    for (std::int64_t r = least_row_; r <= most_row_; ++r) {
      if (in_.relative_key) {
        key_product_[at(r)] =
            dot(in_.plain_q.row(b_, head_, query), vector(in_.relative_key, head_, r), dim_);
      }
      if (in_.relative_value) {
        value_product_[at(r)] = dot(in_.plain_out_gradient.row(b_, head_, query),
                                    vector(in_.relative_value, head_, r), dim_);
      }
    }
    for (std::int64_t j = first_key_; j < last_key_; ++j) {
      const auto here = at(i * stride_ + j);
      if (hide_[here] != 0) continue;
      const auto row = at(relative_row_[here]);
      if (in_.relative_key) product[j] += key_product_[row];
      if (in_.relative_value) delta[j] += value_product_[row];
      if (in_.relative_query) {
        product[j] += dot(in_.plain_k.row(b_, key_head_, j),
                          vector(in_.relative_query, head_, relative_row_[here]), dim_);
      }
    }
  }

  void sum_tables(std::int64_t i, std::int64_t group_head, const T* weight, const T* delta) {
    const std::int64_t query = first_query_ + i;
    for (std::int64_t r = least_row_; r <= most_row_; ++r) {
      row_delta_[at(r)] = row_weight_[at(r)] = 0;
    }
    for (std::int64_t j = first_key_; j < last_key_; ++j) {
      if (weight[j] == 0) continue;  // hidden keys have no row
      const std::int32_t r = relative_row_[at(i * stride_ + j)];
      row_delta_[at(r)] += static_cast<double>(delta[j]);
      row_weight_[at(r)] += static_cast<double>(weight[j]);
      if (!in_.relative_query) continue;
      add_multiple(task_.keys->plain_k.row(b_, key_head_, j), delta[j],
                   vector(in_.relative_query, head_, r));
      if (tables_->query) {
        add_multiple(tables_->query.of(group_head) + r * dim_, static_cast<double>(delta[j]),
                     in_.plain_k.row(b_, key_head_, j));
      }
    }
    for (std::int64_t r = least_row_; r <= most_row_; ++r) {
      const double row_delta = row_delta_[at(r)];
      if (in_.relative_key && row_delta != 0) {
        add_multiple(task_.queries->plain_q.row(b_, head_, query), static_cast<T>(row_delta),
                     vector(in_.relative_key, head_, r));
        if (tables_->key) {
          add_multiple(tables_->key.of(group_head) + r * dim_, row_delta,
                       in_.plain_q.row(b_, head_, query));
        }
      }
      const double row_weight = row_weight_[at(r)];
      if (tables_->value && row_weight != 0) {
        add_multiple(tables_->value.of(group_head) + r * dim_, row_weight,
                     in_.plain_out_gradient.row(b_, head_, query));
      }
    }
  }

  template <class Number>
  void add_multiple(Number* to, Number factor, const T* x) const {
    for (std::int64_t c = 0; c < dim_; ++c) to[c] += factor * static_cast<Number>(x[c]);
  }

  const BackwardInputs<T>& in_;
  const BackwardTask<T>& task_;
  const std::int64_t b_, dim_, keys_;
  const std::int64_t stride_;  // from one query's row to the next, whole blocks of keys
  const Slopes* slopes_ = nullptr;
  bool before_scale_ = false;

  std::vector<T> weight_, delta_;  // [query of the block][key]
  std::vector<T> hide_;  // the same, shared by all heads: 0 or −inf, also behind the last key
  std::vector<std::int32_t> bias_row_, relative_row_;
  std::vector<T> bias_;                     // [key], of one query; zero without a bias
  std::vector<double> steps_;               // the same, where there are slopes
  std::vector<std::int64_t> key_position_;  // [key]
  std::int64_t key_head_ = 0, head_ = 0;    // at work
  const T *k_columns_ = nullptr, *v_columns_ = nullptr;
  TableSums* tables_ = nullptr;
  std::int64_t first_query_ = 0, queries_ = 0;  // the block
  std::int64_t first_key_ = 0, last_key_ = 0;   // whole blocks, of all that any query of it sees
  std::vector<T> key_product_, value_product_;  // [row], of one query
  std::vector<double> row_delta_, row_weight_;  // the same
  std::int32_t least_row_ = 0, most_row_ = -1;
};

}  // namespace

template <class T>
void find_columns(BackwardInputs<T>& in, std::int64_t index) {
  const std::int64_t keys = in.k.seq(), dim = in.k.dim();
  const auto turn_over = [&](const T* row, std::vector<T>& to) {
    to.resize(at(whole_blocks(keys) * dim));
    for (std::int64_t j = 0; j < keys; ++j, row += dim) {
      T* const column = to.data() + j / key_block * key_block * dim + j % key_block;
      for (std::int64_t c = 0; c < dim; ++c) column[c * key_block] = row[c];
    }
  };
  turn_over(in.k.row(index / in.k.heads(), index % in.k.heads()), in.k_columns[at(index)]);
  turn_over(in.v.row(index / in.k.heads(), index % in.k.heads()), in.v_columns[at(index)]);
}

template <class T>
Expected<void> add_backward_of(const BackwardInputs<T>& in, const BackwardTask<T>& task) {
  return Backward<T>(in, task).run();
}

template void find_columns(BackwardInputs<float>&, std::int64_t);
template void find_columns(BackwardInputs<double>&, std::int64_t);
template Expected<void> add_backward_of(const BackwardInputs<float>&, const BackwardTask<float>&);
template Expected<void> add_backward_of(const BackwardInputs<double>&, const BackwardTask<double>&);

}  // namespace posenc::detail
