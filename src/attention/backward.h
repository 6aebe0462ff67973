// The loop behind attend_backward: all that happens between turned queries, keys and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/attention.h"
#include "src/attention/dense.h"

namespace posenc::detail {

// What the loop reads. `q`, `k`, `v` and `out_gradient` are turned as the plan says.
template <class T>
struct BackwardInputs {
  const Plan* plan;
  const Positions* queries;
  const Positions* keys;
  const Mask* mask;
  Dense<T> q, k, v, out_gradient;
  // As they came, for the tables by distance that meet them so; absent without such a table.
  Dense<T> plain_q, plain_k, plain_out_gradient;
  // [1][1][head or 1][row] and [1][head or 1][row][head_dim]; absent where the plan has none.
  Dense<T> bias, relative_query, relative_key, relative_value;
  bool finite = true;  // q, k, v and out_gradient are; else what is hidden needs care
  // Of every key head of every sequence k and v once more, [block of keys][channel][key].
  std::vector<std::vector<T>> k_columns = {}, v_columns = {};
};

// The columns of the key head at `index`, counted through all sequences.
template <class T>
void find_columns(BackwardInputs<T>& in, std::int64_t index);

// Gradients by what the loop read, of zeros to begin with. Different key heads of a sequence touch
// different rows, and so do different queries of these:
template <class T>
struct QuerySums {
  Dense<T> q, plain_q;  // the second: what the tables by distance add
  Dense<T> turned_out;  // Σ_j α_ij v̂_j, for the gradient by the frequencies; else absent
};
template <class T>
struct KeySums {
  Dense<T> k, v, plain_k;
};

// Sums for a table over all tokens of a sequence, [head or 1][number]; empty where not wanted.
struct TableSum {
  std::int64_t heads = 0, size = 0;
  std::vector<double> numbers;

  TableSum() = default;
  TableSum(std::int64_t table_heads, std::int64_t table_size)
      : heads(table_heads),
        size(table_size),
        numbers(static_cast<std::size_t>(table_heads * table_size)) {}
  explicit operator bool() const { return heads > 0; }
  double* of(std::int64_t head) { return numbers.data() + (heads == 1 ? 0 : head) * size; }
};

// The tables' sums over the query heads of one key head, counted from the first of them.
struct TableSums {
  TableSum slopes, bias, query, key, value;
};

// What is done at once: a part of the queries, of all query heads of the key heads [first_key_head,
// first_key_head + tables.size()) of one sequence, which share the work of finding out who sees whom.
// The bits of a head do not depend on the others.
template <class T>
struct BackwardTask {
  std::int64_t sequence, first_key_head, part, parts;
  QuerySums<T>* queries;
  KeySums<T>* keys;  // of the part
  std::span<TableSums> tables;
};

// Errors: a distance a table does not reach.
template <class T>
Expected<void> add_backward_of(const BackwardInputs<T>& in, const BackwardTask<T>& task);

}  // namespace posenc::detail
