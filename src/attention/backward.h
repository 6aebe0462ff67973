// The loop behind attend_backward: all that happens between rotated queries, keys and values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "posenc/gradients.h"
#include "src/attention/arguments.h"
#include "src/attention/head_rows.h"
#include "src/attention/row_bias.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

// What the loop reads: rotated as the plan says, queries times the logits' scale.
template <class T>
struct BackwardInputs {
  const AttendArguments* in = nullptr;
  const Plan* plan = nullptr;
  HeadRows<T> q, k, v, out_gradient;
  // What the vectors by distance meet: q and k as they came, or a plan's profiles, the queries'
  // times what their logits are scaled by. Absent without such.
  HeadRows<T> plain_q, plain_k, plain_out_gradient;
  HeadRows<T> relative_query, relative_key, relative_value;  // [1][head or 1][row][columns]
  const void* caller = this_thread();
  WholeRows whole = {};  // absent: the keys are all that the queries see
  bool finite = true;    // all of q, k, v and out_gradient; else what is hidden needs care
  // The transposes of k and v of every key head of every sequence (gemm.h).
  std::vector<Aligned<T>> k_panels = {}, v_panels = {};

  std::int64_t key_heads() const { return in->k.shape[0] * in->k.shape[1]; }
  bool profiles() const { return plan->relative && plan->relative->profiles > 0; }
  T scale(std::int64_t b, std::int64_t head, std::int64_t query) const;  // of the query's logits
  T temperature(std::int64_t b, std::int64_t head, std::int64_t query) const;  // of it alone
};

template <class T>
BackwardInputs<T> backward_inputs(const AttendArguments& arguments, const Plan& plan,
                                  const Tensor& out_gradient);

// Gradients by what the loop read, of zeros to begin with. Those by queries are not yet times their
// scale.
template <class T>
struct QuerySums {
  HeadRows<T> q, plain_q;   // the second: what the vectors by distance add
  HeadRows<T> rotated_out;  // Σ_j α_ij v̂_j, for the gradient by the frequencies; else absent
  // [batch][head][query], by the sinks' logits and by the temperatures; empty: not wanted
  std::vector<double> sinks = {}, temperatures = {};
};
template <class T>
struct KeySums {
  HeadRows<T> k, v, plain_k;
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

// What is done at once: a part of the queries of the query heads of one key head. Its sums are its
// own.
template <class T>
struct BackwardTask {
  std::int64_t sequence = 0, key_head = 0, part = 0, parts = 1;
  QuerySums<T>* queries = nullptr;
  KeySums<T>* keys = nullptr;   // of the part
  TableSums* tables = nullptr;  // of vectors by distance; null: none
};

// The bias is this task's own, and takes the gradient by its logits.
template <class T>
void add_backward(const BackwardInputs<T>& in, const BackwardTask<T>& task, RowBias<T>& bias);

// Runs run(task, index of the task) for all tasks, on as many threads as their work deserves. They
// are counted [sequence][part][key head], and add to the sums of their part.
template <class T, class Run>
void run_backward(const BackwardInputs<T>& in, QuerySums<T>& by_query,
                  std::vector<KeySums<T>>& of_part, const Run& run) {
  const std::int64_t kv_heads = in.k.heads(), parts = std::ssize(of_part);
  const double work = static_cast<double>(in.in->q.size()) * static_cast<double>(in.k.seq());
  const auto bytes = static_cast<std::int64_t>(std::min(work, 1e15));
  share_out(in.key_heads() * parts, thread_count(in.in->threads, bytes),
            [&](std::int64_t first, std::int64_t last) {
              for (; first < last; ++first) {
                const std::int64_t part = first / kv_heads % parts;
                run(BackwardTask<T>{.sequence = first / kv_heads / parts,
                                    .key_head = first % kv_heads,
                                    .part = part,
                                    .parts = parts,
                                    .queries = &by_query,
                                    .keys = &of_part[static_cast<std::size_t>(part)]},
                    first);
              }
            });
  for (std::size_t part = 1; part < of_part.size(); ++part) {
    of_part[0].k.add(of_part[part].k);
    of_part[0].v.add(of_part[part].v);
    of_part[0].plain_k.add(of_part[part].plain_k);
  }
}

// The gradients by a plan's profiles, where they are wanted.
template <class T>
void write_profiles(const BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                    const ProfileTensors& to);

// Back through scale and rotation, and what never was rotated added: gradients by q, k, v, written
// where they are wanted.
template <class T>
void write_backward(const BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                    const Tensor& q_gradient, const Tensor& k_gradient, const Tensor& v_gradient);

// The gradients by the sinks' logits, [batch, heads, queries] or [heads], which is the sum of
// theirs.
void write_sinks(const AttendArguments& in, const std::vector<double>& by_row, const Tensor& to);
// Those by a learned temperature's numbers, [heads], of the gradients by the temperatures
// themselves.
void write_temperatures(const AttendArguments& in, const Plan& plan,
                        const std::vector<double>& by_row, const Tensor& to_scale,
                        const Tensor& to_bias);
// How many numbers by row it takes: none where the gradient is not wanted.
inline std::size_t rows_wanted(const AttendArguments& in, bool wanted) {
  return static_cast<std::size_t>(wanted ? in.q.shape[0] * in.q.shape[1] * in.q.shape[2] : 0);
}

// The gradients of an attention whose bias a provider gives: bias_of(first share) makes one for a
// task, whose query heads are counted from that share on, [sequence][part][head].
template <class T, class Arguments, class BiasOf>
void biased_backward(const Arguments& arguments, const Plan& plan, const BiasOf& bias_of) {
  const AttendArguments& in = arguments.in;
  const auto inputs = backward_inputs<T>(in, plan, arguments.out_gradient);
  QuerySums<T> by_query{.q = HeadRows<T>::zeros(in.q)};
  by_query.sinks.resize(rows_wanted(in, bool(arguments.sink_logits)));
  std::vector<KeySums<T>> of_part(static_cast<std::size_t>(query_parts(in)));
  for (KeySums<T>& sums : of_part) {
    sums.k = HeadRows<T>::zeros(in.k);
    sums.v = HeadRows<T>::zeros(in.v);
  }
  if (in.out.size() != 0 && in.k.size() != 0) {
    run_backward(inputs, by_query, of_part, [&](const BackwardTask<T>& task, std::int64_t index) {
      auto bias = bias_of(index * in.group());
      add_backward(inputs, task, bias);
    });
  }
  write_sinks(in, by_query.sinks, arguments.sink_logits);
  write_backward(inputs, by_query, of_part[0], arguments.q, arguments.k, arguments.v);
}

}  // namespace posenc::detail
