// Vectors by distance (Shaw, DeBERTa, ViTDet, profiles) in the loop of attention: what they add to
// logits and to outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/attention/arguments.h"
#include "src/attention/row_bias.h"
#include "src/attention/summed_rows.h"
#include "src/kernels/gemm.h"

namespace posenc::detail {

// Two ways to what the key table gives a query. Few rows: products with each, looked up by
// distance. Many, where queries and keys both follow each other: a strip, the tile's product with
// the vectors of all its distances in their order, which a row of the tile reads from one number
// further on (PlanBias). Both sum in one order and give the same bits. Where distances name rows in
// several lists, it is always products (SummedRows).
// Nothing of it is asked where the plan has no such vectors.
template <class T>
class RelativeTerms {
 public:
  // What the tables meet, [row][step], as they came or a plan's profiles: queries times what their
  // logits are scaled by.
  struct Side {
    const T* rows = nullptr;
    std::int64_t step = 0;
  };

  // short_rows: so few queries that nothing is worth transposing for them.
  RelativeTerms(const AttendArguments& in, const Plan& plan, std::int64_t most_queries,
                std::int64_t most_keys, bool short_rows)
      : part_(in.relative.part),
        group_(in.group()),
        most_queries_(most_queries),
        most_keys_(most_keys),
        panel_(panel_columns<T>()),
        short_(short_rows) {
    if (!present()) return;
    listed_ = plan.relative->row_count;
    profiles_ = plan.relative->profiles > 0;
    const bool one_list = part_->lists() == 1;
    key_ = vectors(in.relative.key, false, !one_list);
    shares_vector_ = same_vector(in.relative.query);
    query_ = vectors(in.relative.query, shares_vector_);
    value_ = vectors(in.relative.value);
    row_window_ = scratch_.take<std::int32_t>(most_queries + most_keys);
    run_end_ = scratch_.take<std::int64_t>(most_queries + most_keys);
    if (key_ && !one_list) summed_.emplace(*part_, most_keys);
    if (value_) weights_ = scratch_.take<T>(group_ * most_queries * listed_);
    if (query_ && !profiles_) query_products_ = scratch_.take<T>(group_ * most_keys * query_.rows);
    if (query_ && profiles_) {
      by_channel_ = scratch_.take_zeros<T>(group_ * query_.columns * channel_step());
      window_vectors_ = scratch_.take_zeros<T>(group_ * query_.columns * channel_step());
    }
    if ((query_ && profiles_) || summed_) sums_ = scratch_.take_zeros<T>(most_keys + row_lanes);
    // A strip has as many columns as there are keys, whatever the rows.
    const bool many = listed_ > 64 && 4 * listed_ > in.k.shape[2];
    if (!key_ || !one_list || short_ || !(profiles_ || many)) return;
    strip_step_ =
        (most_keys + tile_rows + 3 * row_lanes + 2 * panel_) / row_lanes * row_lanes + row_lanes;
    strips_ = scratch_.take_zeros<T>(tile_rows * strip_step_);
    const std::int64_t columns = most_queries + most_keys + row_lanes + 2 * panel_;
    gathered_ = scratch_.take_zeros<T>(columns * key_.step);
    panels_step_ = (columns + panel_) * key_.columns;
    strip_panels_ = scratch_.take<T>((key_.heads == 1 ? 1 : group_) * panels_step_);
  }

  bool present() const { return part_ != nullptr; }
  bool meets_queries() const { return static_cast<bool>(key_); }
  bool meets_keys() const { return static_cast<bool>(query_); }
  bool adds_values() const { return static_cast<bool>(value_); }

  // q: of [head of the group][query].
  void begin_queries(std::int64_t first_head, std::int64_t queries, const Side& q) {
    if (first_head != first_head_) transposed_ = false;
    first_head_ = first_head;
    queries_ = queries;
    q_ = q;
    multiplied_ = false;
    if (value_) std::fill_n(weights_, group_ * queries * listed_, T{0});
  }
  // k: of [key], of profiles of [head of the group][key].
  void begin_keys(const BiasBlock& block, const Side& k) {
    block_ = &block;
    k_ = k;
    find_window();
    if (!adds()) return;
    if (query_ && !profiles_) multiply_keys();
    if (query_ && profiles_) lay_out_keys();
    if (summed_) summed_->begin(block);
    if (stripped()) lay_out_distances();
  }

  // Whether any logit of the block gets something.
  bool adds() const { return !windowed_ || some_row_; }

  // Before the rows of a tile are asked for: [first, first + rows) of [head of the group][query],
  // and the keys that some of them see.
  void begin_tile(std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end) {
    if (!stripped()) return;
    tile_ = first;
    for (std::int64_t r = 0, count = 0; r < rows; r += count) {
      const std::int64_t g = (first + r) / queries_, query = (first + r) % queries_;
      count = std::min(rows - r, queries_ - query);
      // The panels of keys in which they lie hold numbers whole, as products of the keys have them.
      const std::int64_t least = queries_ - query - count + begin / panel_ * panel_;
      const std::int64_t most = queries_ - 1 - query + padded(end);
      const std::int64_t from = least / panel_ * panel_;
      const std::int64_t whole = std::min(panel_, row_lanes);
      for (std::int64_t each = r; each < r + count; ++each) strip_from_[each] = from;
      gemm(Gemm<T>{
          .c = strips_ + r * strip_step_,
          .c_step = strip_step_,
          .rows = count,
          .columns = (most - from + whole - 1) / whole * whole,
          .a = q_.rows + (first + r) * q_.step,
          .a_row = q_.step,
          .b = strip_panels_ + (key_.heads == 1 ? 0 : g) * panels_step_ + from * key_.columns,
          .b_step = panel_,
          .depth = key_.columns,
          .panel_step = panel_ * key_.columns});
    }
  }
  // What a query of the tile gets, by key, where its own products alone say it: in a strip, or in
  // `buffer` [key, padded]. Else null.
  const T* alone(std::int64_t g, std::int64_t query, const VisibleRange& seen, T* buffer) {
    if (query_) return nullptr;
    if (stripped()) return strip(g, query);
    if (!summed_) return nullptr;
    summed_->write(products(g, query), query, seen, buffer);
    return buffer;
  }
  // Adds it to `bias` [key], for the keys that the query sees. factor: what keys' products are
  // multiplied by.
  void add_to(std::int64_t g, std::int64_t query, T factor, const VisibleRange& seen, T* bias) {
    if (stripped()) {
      const T* const by_key = strip(g, query);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) bias[j] += by_key[j];
    }
    if (summed_) {
      summed_->write(products(g, query), query, seen, sums_);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) bias[j] += sums_[j];
    }
    if (query_ && profiles_) add_by_channel(g, query, factor, seen, bias);
    const bool of_query = key_ && !stripped() && !summed_, of_keys = query_ && !profiles_;
    if (of_query) {
      const T* const by_row = products(g, query);
      for_runs(query, seen.begin, seen.end,
               [&](std::int64_t begin, std::int64_t end, std::int64_t r) {
                 for (std::int64_t j = begin; j < end; ++j) bias[j] += by_row[r];
               });
    }
    if (!of_keys) return;
    const T* const by_key = query_products_ + g * most_keys_ * query_.rows;
    if (shares_vector_) {
      for (std::int64_t j = seen.begin; j < seen.end; ++j) bias[j] += by_key[j] * factor;
      return;
    }
    for_runs(query, seen.begin, seen.end,
             [&](std::int64_t begin, std::int64_t end, std::int64_t r) {
               for (std::int64_t j = begin; j < end; ++j)
                 bias[j] += by_key[j * query_.rows + r] * factor;
             });
  }

  // Counts a row's weights of a block, Σ of them `sum`, by the row of the table; `correction`
  // shrinks those of older blocks.
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
  // A table [head or 1][row][step], its vectors padded with zeros; absent by default. With one row
  // it serves for all.
  struct Vectors {
    const T* numbers = nullptr;
    std::int64_t heads = 0, rows = 0, columns = 0, step = 0;
    explicit operator bool() const { return numbers != nullptr; }
    std::int64_t at_row(std::int64_t row) const { return rows == 1 ? 0 : row; }
    const T* at(std::int64_t head, std::int64_t row) const {
      return numbers + ((heads == 1 ? 0 : head) * rows + at_row(row)) * step;
    }
  };
  // backwards: from the last row to the first.
  Vectors vectors(const Tensor& table, bool one_row = false, bool backwards = false) {
    if (!table) return {};
    const Tensor view = table.with_rank(4);
    const std::int64_t heads = view.shape[1], step = padded(view.shape[3]);
    const std::int64_t rows = one_row ? 1 : listed_;
    Tensor walked = view;
    if (backwards) walked.stride[2] = -view.stride[2];
    T* const numbers = scratch_.take<T>(heads * rows * step);
    for (std::int64_t h = 0; h < heads; ++h)
      load_rows(walked, view.offset(0, h, backwards ? rows - 1 : 0), rows,
                numbers + h * rows * step, step);
    return {numbers, heads, rows, view.shape[3], step};
  }
  // One vector for every distance, as Transformer-XL's u is given.
  bool same_vector(const Tensor& table) const {
    return table && !profiles_ && table.stride[1] == 0 && part_->lists() == 1 &&
           std::ranges::find(part_->rows.row, no_row) == part_->rows.row.end();
  }

  bool stripped() const { return strips_ != nullptr && windowed_; }
  const T* strip(std::int64_t g, std::int64_t query) const {
    const std::int64_t r = g * queries_ + query - tile_;
    return strips_ + r * strip_step_ - strip_from_[r] + queries_ - 1 - query;
  }
  // Whole vectors may be read from any of them on.
  std::int64_t product_step() const { return padded(listed_) + std::max(panel_, row_lanes); }
  std::int64_t channel_step() const { return padded(most_queries_ + most_keys_) + row_lanes; }

  // The vectors of a window's distances in their order, transposed, row_lanes zeros behind them.
  void lay_out_distances() {
    const std::int64_t size = block_->query_count + block_->key_count - 1;
    for (std::int64_t h = 0; h < (key_.heads == 1 ? 1 : group_); ++h) {
      for (std::int64_t x = 0; x < size; ++x) {
        T* const to = gathered_ + x * key_.step;
        if (row_window_[x] == no_row)
          std::fill_n(to, key_.step, T{0});
        else
          std::copy_n(key_.at(first_head_ + h, row_window_[x]), key_.step, to);
      }
      std::fill_n(gathered_ + size * key_.step, (row_lanes + panel_) * key_.step, T{0});
      transpose_to_panels(gathered_, key_.step, size + row_lanes + panel_, key_.columns,
                          strip_panels_ + h * panels_step_);
    }
  }
  // A query's q · the table's rows, as they lie in key_.
  const T* products(std::int64_t g, std::int64_t query) {
    multiply_queries();
    return key_products_ + (g * queries_ + query) * product_step();
  }
  // Those of all queries, once one of them is asked for.
  void multiply_queries() {
    if (multiplied_) return;
    multiplied_ = true;
    const std::int64_t rows = group_ * queries_;
    if (key_products_ == nullptr)
      key_products_ = scratch_.take_zeros<T>(group_ * most_queries_ * product_step());
    if (short_) {
      for (std::int64_t row = 0; row < rows; ++row)
        dots(q_.rows + row * q_.step, key_.at(first_head_ + row / queries_, 0), key_.step, listed_,
             key_.step, nullptr, 0, key_products_ + row * product_step());
      return;
    }
    if (table_panels_ == nullptr)
      table_panels_ =
          scratch_.take<T>((key_.heads == 1 ? 1 : group_) * product_step() * key_.columns);
    for (std::int64_t g = 0; g < group_; ++g) {
      T* const panels = table_panels_ + (key_.heads == 1 ? 0 : g) * product_step() * key_.columns;
      if (!transposed_ && (g == 0 || key_.heads != 1))
        transpose_to_panels(key_.at(first_head_ + g, 0), key_.step, listed_, key_.columns, panels);
      const std::int64_t whole = std::min(panel_, row_lanes);
      gemm(Gemm<T>{.c = key_products_ + g * queries_ * product_step(),
                   .c_step = product_step(),
                   .rows = queries_,
                   .columns = (listed_ + whole - 1) / whole * whole,
                   .a = q_.rows + g * queries_ * q_.step,
                   .a_row = q_.step,
                   .b = panels,
                   .b_step = panel_,
                   .depth = key_.columns,
                   .panel_step = panel_ * key_.columns});
    }
    transposed_ = true;
  }
  // k · the table's rows.
  void multiply_keys() {
    for (std::int64_t g = 0; g < group_ && query_.rows == 1; ++g)
      dots(query_.at(block_->first_head + g, 0), k_.rows, k_.step, block_->key_count, query_.step,
           nullptr, 0, query_products_ + g * most_keys_);
    for (std::int64_t g = 0; g < group_ && query_.rows > 1; ++g)
      for (std::int64_t j = 0; j < block_->key_count; ++j)
        dots(k_.rows + j * k_.step, query_.at(block_->first_head + g, 0), query_.step, query_.rows,
             query_.step, nullptr, 0, query_products_ + (g * most_keys_ + j) * query_.rows);
  }
  // Keys' profiles and, in a window, the vectors that they meet: channel by channel.
  void lay_out_keys() {
    const std::int64_t columns = query_.columns, size = block_->query_count + block_->key_count - 1;
    for (std::int64_t g = 0; g < group_; ++g) {
      for (std::int64_t j = 0; j < block_->key_count; ++j)
        for (std::int64_t c = 0; c < columns; ++c)
          by_channel_[(g * columns + c) * channel_step() + j] =
              k_.rows[(g * most_keys_ + j) * k_.step + c];
      for (std::int64_t x = 0; x < size && windowed_; ++x)
        for (std::int64_t c = 0; c < columns; ++c)
          window_vectors_[(g * columns + c) * channel_step() + x] = channel(g, row_window_[x], c);
    }
  }
  T channel(std::int64_t g, std::int64_t row, std::int64_t c) const {
    return row == no_row ? T{0} : query_.at(block_->first_head + g, row)[c];
  }
  T summed_channel(std::int64_t g, std::int64_t distance, std::int64_t c) const {
    T sum = 0;
    for (std::int64_t list = 0; list < part_->lists(); ++list)
      sum += channel(g, row_at(part_->list(list), distance), c);
    return sum;
  }
  void add_by_channel(std::int64_t g, std::int64_t query, T factor, const VisibleRange& seen,
                      T* bias) {
    const std::int64_t columns = query_.columns, x0 = block_->query_count - 1 - query;
    const std::int64_t position = block_->queries.position(query), count = seen.end - seen.begin;
    std::fill_n(sums_, count, T{0});
    for (std::int64_t c = 0; c < columns; ++c) {
      T* const vectors =
          window_vectors_ + (g * columns + c) * channel_step() + (windowed_ ? x0 : 0);
      for (std::int64_t j = seen.begin; j < seen.end && !windowed_; ++j)
        vectors[j] = summed_channel(g, position - block_->keys.position(j), c);
      add_products(by_channel_ + (g * columns + c) * channel_step() + seen.begin,
                   vectors + seen.begin, count, sums_);
    }
    // What is hidden between may hold anything, and nothing may be added to −∞ but a number.
    for (std::int64_t j = 0; j < count; ++j) bias[seen.begin + j] += sums_[j] * factor;
  }

  // Where queries and keys both follow each other, one window of rows serves all: see PlanBias.
  void find_window() {
    windowed_ = block_->queries.consecutive && block_->keys.consecutive && part_->lists() == 1;
    some_row_ = false;
    if (!windowed_) return;
    const std::int64_t size = block_->query_count + block_->key_count - 1;
    const std::int64_t longest =
        block_->queries.position(block_->query_count - 1) - block_->keys.position(0);
    for (std::int64_t x = size - 1; x >= 0; --x) {
      row_window_[x] = static_cast<std::int32_t>(row_at(part_->rows, longest - x));
      const bool goes_on = x + 1 < size && row_window_[x] == row_window_[x + 1];
      run_end_[x] = goes_on ? run_end_[x + 1] : x + 1;
      some_row_ = some_row_ || row_window_[x] != no_row;
    }
  }
  // Calls act(begin, end, row of the tables) for the runs of keys at one such row, list by list.
  template <class Act>
  void for_runs(std::int64_t query, std::int64_t begin, std::int64_t end, const Act& act) const {
    const std::int64_t x0 = block_->query_count - 1 - query;
    for (std::int64_t j = begin, next; j < end && windowed_; j = next) {
      next = std::min(end, run_end_[x0 + j] - x0);
      if (row_window_[x0 + j] != no_row) act(j, next, row_window_[x0 + j]);
    }
    if (windowed_) return;
    const std::int64_t position = block_->queries.position(query);
    for (std::int64_t list = 0; list < part_->lists(); ++list) {
      for (std::int64_t j = begin; j < end; ++j) {
        const std::int64_t row = row_at(part_->list(list), position - block_->keys.position(j));
        if (row != no_row) act(j, j + 1, row);
      }
    }
  }

  Scratch scratch_;
  const Relative* const part_;
  const std::int64_t group_, most_queries_, most_keys_, panel_;
  const bool short_;
  bool profiles_ = false, shares_vector_ = false;
  std::int64_t listed_ = 0, first_head_ = -1, queries_ = 0;
  const BiasBlock* block_ = nullptr;
  bool windowed_ = false, some_row_ = false;
  std::optional<SummedRows<T>> summed_;  // of the key table, where there are several lists
  Vectors query_, key_, value_;
  Side q_, k_;
  // [row of the block][listed], q·a^K · scale; and the table's transposes of the heads at work
  T *key_products_ = nullptr, *table_panels_ = nullptr;
  bool multiplied_ = false, transposed_ = false;
  T* query_products_ = nullptr;  // k·a^Q, [head of the group][key][row]
  // Of keys' profiles: they and the vectors of a window, [head of the group][channel][key or
  // distance]
  T *by_channel_ = nullptr, *window_vectors_ = nullptr;
  T* sums_ = nullptr;  // by key, of some queries' terms
  // Strips: vectors by distance, their transposes [head or 1], and products [row of the
  // tile][distance]
  T *gathered_ = nullptr, *strip_panels_ = nullptr, *strips_ = nullptr;
  std::int64_t panels_step_ = 0, strip_step_ = 0, tile_ = 0;
  std::int64_t strip_from_[tile_rows] = {};
  T* weights_ = nullptr;  // [row of the block][listed]
  std::int32_t* row_window_ = nullptr;
  std::int64_t* run_end_ = nullptr;
};

}  // namespace posenc::detail
