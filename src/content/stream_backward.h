// The gradients of the schemes that stream over their keys (stream.h), given g, that of the output.
// With weights A and scaled products z:
//   ∂v_j = Σ_i A_ij g_i,   ∂q_i = Σ_j ∂z_ij k_j/√d,   ∂k_j = Σ_i ∂z_ij q_i/√d
// The scheme says A and ∂z of a block. The weights are formed twice: once for what a row sums to,
// from the last block to the first, and again, from the first to the last, for what follows from
// it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/content/stream.h"

namespace posenc::detail {

template <class T>
bool finite(const T* x, std::int64_t count) {
  return all_finite(x, count, 1, count);
}

// What the loop adds to.
template <class T>
struct StreamedGradients {
  Aligned<T> q, raw_q;  // as Streamed has them: by rotated queries, and by queries as they came
  Aligned<T> k, v;      // [part][batch][kv_heads][block][block_keys][dim], and [v_step]
  std::int64_t key_numbers = 0, value_numbers = 0;  // of a part

  StreamedGradients(const Streamed<T>& in, std::int64_t parts, bool with_raw)
      : q(in.batch * in.heads * in.queries * in.dim),
        raw_q(with_raw ? in.batch * in.heads * in.queries * in.dim : 0),
        k(parts * in.batch * in.kv_heads * in.blocks * block_keys * in.dim),
        v(parts * in.batch * in.kv_heads * in.blocks * block_keys * in.v_step),
        key_numbers(in.batch * in.kv_heads * in.blocks * block_keys * in.dim),
        value_numbers(in.batch * in.kv_heads * in.blocks * block_keys * in.v_step) {}
};

// Which queries of which head; `share` counts parts, sequences and heads.
struct TileOf {
  std::int64_t b, h, first, rows, share, part;
};

// A tile of the scheme: made by make(tile), it has weigh and finish (stream.h), then
//   void differentiate(row, block, seen, by_weight, mean, scores, by_score)
//     by_weight: g·v of a block's keys; mean: Σ A g·v of the row; scores: products, −∞ where
//       hidden, to
//     weights; by_score: ∂z. Both are 0 where hidden.
// and, if it wants to be told, void end() after the last block. Where its scores are no products of
// q and k, it has
//   void products(block, scores), void products_again(block, scores)   as in stream.h; the second
//                                                                      on the way back
//   void take(block, by_score)   adds what q, k and the rest get
// and what makes it has void finish(gradients) for what follows once all tiles are done, before
// parts are summed up.
template <class T, class Make>
void differentiate_tile(const Streamed<T>& in, const MaskWords& seen, const Aligned<T>& g,
                        const TileOf& at, StreamedGradients<T>& to, std::int64_t part,
                        const Make& make) {
  constexpr std::int64_t tile =
      most_queries;  // a block's weights are square, to be transposed in one piece
  const std::int64_t count = at.rows, dim = in.dim, v_step = in.v_step;
  const std::int64_t row = (at.b * in.heads + at.h) * in.queries + at.first, from = row * dim;
  Aligned<T> q(tile * dim), gradient(tile * v_step), sums(tile * v_step),
      transposed(tile * block_keys);
  Aligned<T> scores(tile * block_keys), by_weight(tile * block_keys), by_score(tile * block_keys);
  Aligned<T> other(block_keys * std::max(dim, v_step));
  std::copy_n(in.q.data() + from, count * dim, q.data());
  std::copy_n(g.data() + row * v_step, count * v_step, gradient.data());
  const bool q_finite = finite(q.data(), count * dim);
  const bool g_finite = finite(gradient.data(), count * v_step);
  auto scheme = make(at);
  std::uint64_t words[tile];
  // The products of a block, −∞ where hidden; false where all are.
  constexpr bool own_products = requires { scheme.products(0, scores.data()); };
  const auto find_scores = [&](std::int64_t block, [[maybe_unused]] bool again) {
    std::uint64_t any = 0;
    for (std::int64_t r = 0; r < count; ++r) any |= words[r] = seen.word(at.b, at.first + r, block);
    if (any == 0) return false;
    if constexpr (own_products) {
      again ? scheme.products_again(block, scores.data()) : scheme.products(block, scores.data());
    } else {
      block_products(q.data(), in.k.data() + in.block(at.b, at.h, block) * dim * block_keys, count,
                     dim, scores.data());
    }
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::uint64_t hidden = ~words[r]; hidden != 0; hidden &= hidden - 1) {
        scores.data()[r * block_keys + std::countr_zero(hidden)] =
            -std::numeric_limits<T>::infinity();
      }
    }
    return true;
  };

  for (std::int64_t block = in.blocks - 1; block >= 0; --block) {
    if (!find_scores(block, false)) continue;
    for (std::int64_t r = 0; r < count; ++r) {
      T* const score = scores.data() + r * block_keys;
      if (words[r] == 0) {
        std::fill_n(score, block_keys, T{0});
        continue;
      }
      const T correction = scheme.weigh(r, block, words[r], score);
      if (correction != 1) scale_row(sums.data() + r * v_step, v_step, correction);
    }
    const std::int64_t values = in.block(at.b, at.h, block);
    accumulate(scores.data(), in.v.data() + values * block_keys * v_step,
               in.finite[static_cast<std::size_t>(values)] != 0, count, v_step, sums.data());
  }
  T mean[tile];
  for (std::int64_t r = 0; r < count; ++r) {
    const T sum = dot(gradient.data() + r * v_step, sums.data() + r * v_step, v_step);
    mean[r] = sum * scheme.finish(r);
  }

  for (std::int64_t block = 0; block < in.blocks; ++block) {
    if (!find_scores(block, true)) continue;
    const std::int64_t of = in.block(at.b, at.h, block);
    transpose(in.v.data() + of * block_keys * v_step, v_step, block_keys, v_step, other.data(),
              block_keys);
    block_products(gradient.data(), other.data(), count, v_step, by_weight.data());
    for (std::int64_t r = 0; r < count; ++r) {
      T* const score = scores.data() + r * block_keys;
      T* const by = by_score.data() + r * block_keys;
      if (words[r] == 0) {
        std::fill_n(score, block_keys, T{0});
        std::fill_n(by, block_keys, T{0});
        continue;
      }
      scheme.differentiate(r, block, words[r], by_weight.data() + r * block_keys, mean[r], score,
                           by);
    }
    T* const v = to.v.data() + part * to.value_numbers + of * block_keys * v_step;
    // Rows behind the last query stay zero in both.
    transpose(scores.data(), block_keys, tile, block_keys, transposed.data(), tile);
    accumulate(transposed.data(), gradient.data(), g_finite, block_keys, v_step, v);
    if constexpr (own_products) {
      scheme.take(block, by_score.data());
    } else {
      T* const k = to.k.data() + part * to.key_numbers + of * block_keys * dim;
      const T* const columns = in.k.data() + of * block_keys * dim;
      transpose(by_score.data(), block_keys, tile, block_keys, transposed.data(), tile);
      accumulate(transposed.data(), q.data(), q_finite, block_keys, dim, k);
      transpose(columns, block_keys, dim, block_keys, other.data(), dim);
      accumulate(by_score.data(), other.data(), finite(columns, block_keys * dim), count, dim,
                 to.q.data() + from);
    }
  }
  if constexpr (requires { scheme.end(); }) scheme.end();
}

// The gradients of an attention by q, k and v, written. bind(streamed, gradients) gives `make`.
// Errors: an axis or a length that the plan does not cover. Then nothing is written.
template <class T, class Bind>
Expected<void> stream_backward_in(const BackwardCall& call, const MaskWords& seen, bool with_raw,
                                  const Bind& bind) {
  const BackwardArguments& arguments = call.backward;
  const Plan& plan = call.plan;
  const Positions &queries = call.in.queries, &keys = call.in.keys;
  const Threads threads = call.in.threads;
  POSENC_TRY(in, Streamed<T>::of(call, with_raw));
  const std::int64_t dim = in.dim, key_rows = in.blocks * block_keys, parts = arguments.parts;
  Aligned<T> g = loaded_rows<T>(arguments.out_gradient, in.queries);
  const auto view_of = [&](Aligned<T>& rows, std::int64_t heads, std::int64_t seq,
                           std::int64_t columns) {
    return padded_view(rows.data(), in.batch, heads, seq, columns, padded(columns));
  };
  const bool rotates_values = plan.rotate && plan.rotate->rotates_values();
  // The output was rotated back by the inverse of the values' rotation, whose transpose is that
  // rotation.
  const Tensor out_rows = view_of(g, in.heads, in.queries, in.value_dim);
  if (rotates_values && plan.rotate->rotates_outputs())
    POSENC_CHECK(rotate(plan, out_rows, queries, Side::value, out_rows, threads));

  StreamedGradients<T> to(in, parts, with_raw);
  auto make = bind(in, to);
  const std::int64_t groups = in.heads == 0 ? 0 : in.batch * in.kv_heads;
  const std::int64_t group = groups == 0 ? 0 : in.heads / in.kv_heads;
  const std::int64_t bytes =
      in.batch * in.heads * in.queries * in.keys * static_cast<std::int64_t>(sizeof(T));
  share_out(
      groups * parts, thread_count(threads, bytes), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t part = task % parts, b = task / parts / in.kv_heads;
          for (std::int64_t h = task / parts % in.kv_heads * group, n = 0; n < group; ++n, ++h) {
            each_tile_of(part, parts, in.queries, most_queries, [&](std::int64_t first) {
              const TileOf at{.b = b,
                              .h = h,
                              .first = first,
                              .rows = std::min(most_queries, in.queries - first),
                              .share = (part * in.batch + b) * in.heads + h,
                              .part = part};
              differentiate_tile(in, seen, g, at, to, part, make);
            });
          }
        }
      });
  if constexpr (requires { make.finish(to); }) make.finish(to);
  for (std::int64_t part = 1; part < parts; ++part) {
    for (std::int64_t n = 0; n < to.key_numbers; ++n)
      to.k.data()[n] += to.k.data()[part * to.key_numbers + n];
    for (std::int64_t n = 0; n < to.value_numbers; ++n)
      to.v.data()[n] += to.v.data()[part * to.value_numbers + n];
  }

  for (std::int64_t row = 0; row < in.batch * in.heads * in.queries; ++row) {
    const std::int64_t b = row / (in.heads * in.queries);
    const double position_scale =
        plan.logits.query_scale(queries.at(row % in.queries, b), row / in.queries % in.heads);
    const T scale = static_cast<T>(position_scale / std::sqrt(static_cast<double>(in.head_dim)));
    scale_row(to.q.data() + row * dim, dim, scale);
  }
  // Back through the rotations, all of them before anything is written.
  Tensor k_rows = view_of(to.k, in.kv_heads, key_rows, in.head_dim),
         v_rows = view_of(to.v, in.kv_heads, key_rows, in.value_dim);
  k_rows.shape[2] = v_rows.shape[2] = in.keys;
  const Tensor q_rows = view_of(to.q, in.heads, in.queries, in.head_dim);
  POSENC_CHECK(rotate_transpose(plan, q_rows, queries, Side::query, q_rows, threads));
  POSENC_CHECK(rotate_transpose(plan, k_rows, keys, Side::key, k_rows, threads));
  if (rotates_values)
    POSENC_CHECK(rotate_transpose(plan, v_rows, keys, Side::value, v_rows, threads));
  if (with_raw) {
    for (std::int64_t n = 0; n < in.batch * in.heads * in.queries * dim; ++n)
      to.q.data()[n] += to.raw_q.data()[n];
  }
  if (arguments.q) write_rows(to.q, in.queries, arguments.q);
  if (arguments.k) write_rows(to.k, key_rows, arguments.k);
  if (arguments.v) write_rows(to.v, key_rows, arguments.v);
  return {};
}

template <class Bind>
Expected<void> stream_backward(const BackwardCall& call, const MaskWords& seen, bool with_raw,
                               const Bind& bind) {
  return with_compute_type(call.in.q.dtype, [&]<class T>(T*) {
    return stream_backward_in<T>(call, seen, with_raw, bind);
  });
}

}  // namespace posenc::detail
