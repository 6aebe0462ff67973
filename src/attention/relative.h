// Vectors by distance (Shaw, DeBERTa) in the loop of attention: what they add to logits and to outputs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/attention/arguments.h"
#include "src/attention/row_bias.h"

namespace posenc::detail {

// Products of the tables with queries and keys as they came, formed once for each row of a table and looked
// up by distance. Nothing of it is asked where the plan has no such vectors.
template <class T>
class RelativeTerms {
 public:
  RelativeTerms(const AttendArguments& in, const Plan& plan, std::int64_t most_queries,
                std::int64_t most_keys)
      : rows_(in.relative.rows), group_(in.q.shape[1] / in.k.shape[1]), most_keys_(most_keys) {
    if (!present()) return;
    listed_ = plan.relative->row_count;
    query_ = vectors(in.relative.query);
    key_ = vectors(in.relative.key);
    value_ = vectors(in.relative.value);
    const std::int64_t rows = group_ * most_queries;
    if (key_) key_products_ = scratch_.take<T>(rows * listed_);
    if (value_) weights_ = scratch_.take<T>(rows * listed_);
    if (query_) query_products_ = scratch_.take<T>(group_ * most_keys * listed_);
    row_window_ = scratch_.take<std::int32_t>(most_queries + most_keys);
    run_end_ = scratch_.take<std::int64_t>(most_queries + most_keys);
  }

  bool present() const { return rows_ != nullptr; }
  bool meets_keys() const { return static_cast<bool>(query_); }
  bool adds_values() const { return static_cast<bool>(value_); }

  // `q` [head of the group][query][step]: queries as they came, times the logits' scale.
  void begin_queries(std::int64_t first_head, std::int64_t queries, const T* q, std::int64_t step) {
    first_head_ = first_head;
    queries_ = queries;
    const std::int64_t rows = group_ * queries;
    if (value_) std::fill_n(weights_, rows * listed_, T{0});
    for (std::int64_t row = 0; row < rows && key_; ++row) {
      for (std::int64_t r = 0; r < listed_; ++r)
        key_products_[row * listed_ + r] =
            dot(q + row * step, key_.at(first_head + row / queries, r), key_.step);
    }
  }
  // `k` [key][step]: keys as they came.
  void begin_keys(const BiasBlock& block, const T* k, std::int64_t step) {
    block_ = &block;
    find_window();
    for (std::int64_t g = 0; g < group_ && query_; ++g) {
      for (std::int64_t j = 0; j < block.key_count; ++j) {
        for (std::int64_t r = 0; r < listed_; ++r)
          query_products_[(g * most_keys_ + j) * listed_ + r] =
              dot(k + j * step, query_.at(block.first_head + g, r), query_.step);
      }
    }
  }

  // Adds to `bias` [key] what the vectors add to a query's logits, for the keys that it sees.
  void add_to(std::int64_t g, std::int64_t query, T scale, const VisibleRange& seen,
              T* bias) const {
    const std::int64_t row = g * queries_ + query;
    for_runs(query, seen.begin, seen.end,
             [&](std::int64_t begin, std::int64_t end, std::int64_t r) {
               const T of_query = key_ ? key_products_[row * listed_ + r] : T{0};
               for (std::int64_t j = begin; j < end; ++j) {
                 bias[j] += of_query;
                 if (query_) bias[j] += query_products_[(g * most_keys_ + j) * listed_ + r] * scale;
               }
             });
  }

  // Counts a row's weights of a block, Σ of them `sum`, by the row of the table; `correction` shrinks those
  // of older blocks.
  void count(std::int64_t g, std::int64_t query, const VisibleRange& seen, const T* weights, T sum,
             T correction) {
    T* const to = weights_ + (g * queries_ + query) * listed_;
    if (correction != 1) scale_row(to, listed_, correction);
    for_runs(query, seen.begin, seen.end,
             [&](std::int64_t begin, std::int64_t end, std::int64_t r) {
               T part = 0;
               if (begin == seen.begin && end == seen.end) {
                 part = sum;
               } else {
                 for (std::int64_t j = begin; j < end; ++j) part += weights[j];
               }
               to[r] += part;
             });
  }
  // Adds Σ weights · vectors / sum to a row of the output.
  void add_values(std::int64_t g, std::int64_t query, T sum, T* out) const {
    const std::int64_t row = g * queries_ + query;
    for (std::int64_t r = 0; r < listed_; ++r) {
      const T weight = weights_[row * listed_ + r];
      if (weight == 0) continue;
      const T* const value = value_.at(first_head_ + g, r);
      for (std::int64_t c = 0; c < value_.step; ++c) out[c] += weight / sum * value[c];
    }
  }

 private:
  // A table [head or 1][row][step], its vectors padded with zeros; absent by default.
  struct Vectors {
    const T* numbers = nullptr;
    std::int64_t heads = 0, rows = 0, step = 0;
    explicit operator bool() const { return numbers != nullptr; }
    const T* at(std::int64_t head, std::int64_t row) const {
      return numbers + ((heads == 1 ? 0 : head) * rows + row) * step;
    }
  };
  Vectors vectors(const Tensor& table) {
    if (!table) return {};
    const Tensor view = table.with_rank(4);
    const std::int64_t heads = view.shape[1], step = padded(view.shape[3]);
    T* const numbers = scratch_.take<T>(heads * listed_ * step);
    for (std::int64_t h = 0; h < heads; ++h)
      load_rows(view, view.offset(0, h), listed_, numbers + h * listed_ * step, step);
    return {numbers, heads, listed_, step};
  }

  // Where queries and keys both follow each other, one window of rows serves all: see PlanBias.
  void find_window() {
    windowed_ = block_->queries.consecutive && block_->keys.consecutive;
    if (!windowed_) return;
    const std::int64_t size = block_->query_count + block_->key_count - 1;
    const std::int64_t longest =
        block_->queries.position(block_->query_count - 1) - block_->keys.position(0);
    for (std::int64_t x = size - 1; x >= 0; --x) {
      row_window_[x] = static_cast<std::int32_t>(row_at(*rows_, longest - x));
      const bool goes_on = x + 1 < size && row_window_[x] == row_window_[x + 1];
      run_end_[x] = goes_on ? run_end_[x + 1] : x + 1;
    }
  }
  // Calls act(begin, end, row of the tables) for the runs of keys at one such row.
  template <class Act>
  void for_runs(std::int64_t query, std::int64_t begin, std::int64_t end, const Act& act) const {
    const std::int64_t x0 = block_->query_count - 1 - query;
    for (std::int64_t j = begin, next; j < end; j = next) {
      if (windowed_) {
        next = std::min(end, run_end_[x0 + j] - x0);
        act(j, next, row_window_[x0 + j]);
      } else {
        next = j + 1;
        act(j, next, row_at(*rows_, block_->queries.position(query) - block_->keys.position(j)));
      }
    }
  }

  Scratch scratch_;
  const DistanceRows* const rows_;
  const std::int64_t group_, most_keys_;
  std::int64_t listed_ = 0, first_head_ = 0, queries_ = 0;
  const BiasBlock* block_ = nullptr;
  bool windowed_ = false;
  Vectors query_, key_, value_;
  T* key_products_ = nullptr;    // q·a^K · scale, [row of the block][listed]
  T* query_products_ = nullptr;  // k·a^Q, [head of the group][key][listed]
  T* weights_ = nullptr;         // [row of the block][listed]
  std::int32_t* row_window_ = nullptr;
  std::int64_t* run_end_ = nullptr;
};

}  // namespace posenc::detail
