// The gradients of FIRE's attention. With weights P, g the gradient of the output, δ_i = g_i·out_i:
//   ∂v_j = Σ_i P_ij g_i,   S_ij = P_ij (g_i·v_j − δ_i),   ∂q_i = Σ_j S_ij k_j/√d,   ∂k_j = Σ_i S_ij q_i/√d
// and S is the gradient by the bias f_h(x_ij). On each of f's lines (fire.h) f is linear in x, so Σ S and
// Σ S·x of a line are all that the network's weights need of it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/fire.h"
#include "src/attention/stream.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::block_keys;
using detail::query_tile;

constexpr std::int64_t tile =
    block_keys;  // queries; a tile of weights is turned over within itself

// What the parameters get from one head of one sequence.
struct Share {
  std::vector<double> sum, moment;  // Σ S and Σ S·x of each line
  double c = 0, length = 0;
};

// b[column][row] of a[row][column]
template <class T>
void turn_over(const T* a, std::int64_t rows, std::int64_t columns, T* b) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) b[c * rows + r] = a[r * columns + c];
  }
}

template <class T>
bool finite(const T* x, std::int64_t count) {
  return std::all_of(x, x + count, [](T number) { return std::isfinite(number); });
}

// out += weights · rows. A weight of 0 adds nothing, be the row what it may.
template <class T>
void add_rows(const T* weights, const T* rows, bool all_finite, std::int64_t count,
              std::int64_t dim, T* out) {
  if (all_finite) {
    detail::accumulate(weights, rows, count, dim, out);
  } else {
    detail::accumulate_seen(weights, rows, count, dim, out);
  }
}

template <class T>
struct Backward {
  const Fire& fire;
  const detail::FireLines& lines;
  const detail::PsiTable& table;
  const Positions& queries;
  const Positions& keys;
  const detail::Seen& seen;
  detail::Streamed<T>& in;
  const Aligned<T>& g;      // [batch][heads][queries][dim]
  Aligned<T>&dq, &dk, &dv;  // as q, and [batch][kv_heads][block][block_keys][dim]

  // x and line of a block's keys for a query.
  void arguments(std::int64_t b, std::int64_t query, double reciprocal, std::int64_t block,
                 double* x, std::size_t* line) const {
    const std::int64_t start = block * block_keys;
    const std::int64_t count = std::min(block_keys, keys.size() - start);
    table.interpolated(keys, b, query, reciprocal, start, count, x);
    std::fill(x + count, x + block_keys, 0.0);
    std::size_t at = lines.rank(x[0]);
    for (std::int64_t n = 0; n < block_keys; ++n) {
      while (at < lines.turn.size() && x[n] > lines.turn[at]) ++at;
      while (at > 0 && x[n] <= lines.turn[at - 1]) --at;
      line[n] = at;
    }
  }

  void head(std::int64_t b, std::int64_t h, Share& share) const {
    for (std::int64_t first = 0; first < in.queries; first += tile) rows(b, h, first, share);
  }

  void rows(std::int64_t b, std::int64_t h, std::int64_t first, Share& share) const {
    const std::int64_t count = std::min(tile, in.queries - first), dim = in.dim;
    const std::int64_t at = ((b * in.heads + h) * in.queries + first) * dim;
    const auto slope = lines.of(lines.slope, h), height = lines.of(lines.height, h);
    Aligned<T> q(tile * dim), gradient(tile * dim), sums(tile * dim), turned(tile * block_keys);
    Aligned<T> scores(tile * block_keys), products(tile * block_keys), other(block_keys * dim);
    std::copy_n(in.q.data() + at, count * dim, q.data());
    std::copy_n(g.data() + at, count * dim, gradient.data());
    const bool q_finite = finite(q.data(), count * dim);
    const bool g_finite = finite(gradient.data(), count * dim);
    std::uint64_t words[tile];
    double reciprocal[tile], x[block_keys];
    std::size_t line[block_keys];
    detail::OnlineSoftmax<T> softmax[tile / query_tile];
    for (std::int64_t r = 0; r < count; ++r) {
      reciprocal[r] = 1 / detail::fire_normalizer(fire, queries.at(first + r, b));
    }
    // The logits of a block, −∞ where hidden; false where all are.
    const auto logits = [&](std::int64_t block) {
      std::uint64_t any = 0;
      for (std::int64_t r = 0; r < count; ++r) any |= words[r] = seen.word(b, first + r, block);
      if (any == 0) return false;
      detail::products(q.data(), in.k.data() + in.block(b, h, block) * dim * block_keys, count, dim,
                       scores.data());
      for (std::int64_t r = 0; r < count; ++r) {
        T* const score = scores.data() + r * block_keys;
        arguments(b, queries.at(first + r, b), reciprocal[r], block, x, line);
        for (std::int64_t j = 0; j < block_keys; ++j) {
          score[j] += static_cast<T>(slope[line[j]] * x[j] + height[line[j]]);
        }
        for (std::uint64_t hidden = ~words[r]; hidden != 0; hidden &= hidden - 1) {
          score[std::countr_zero(hidden)] = -std::numeric_limits<T>::infinity();
        }
      }
      return true;
    };

    // Once through for the output, whose product with g is δ.
    for (std::int64_t block = in.blocks - 1; block >= 0; --block) {
      if (!logits(block)) continue;
      for (std::int64_t r = 0; r < count; ++r) {
        const T shrink =
            softmax[r / query_tile].fold(r % query_tile, scores.data() + r * block_keys);
        for (std::int64_t c = 0; c < dim; ++c) sums.data()[r * dim + c] *= shrink;
      }
      const std::int64_t values = in.block(b, h, block);
      add_rows(scores.data(), in.v.data() + values * block_keys * dim,
               in.finite[static_cast<std::size_t>(values)] != 0, count, dim, sums.data());
    }
    T delta[tile], factor[tile], peak[tile];
    for (std::int64_t r = 0; r < count; ++r) {
      factor[r] = softmax[r / query_tile].finish(r % query_tile);
      peak[r] = softmax[r / query_tile].peak(r % query_tile);
      T sum = 0;
      for (std::int64_t c = 0; c < dim; ++c)
        sum += gradient.data()[r * dim + c] * sums.data()[r * dim + c];
      delta[r] = sum * factor[r];
    }

    // And again for what follows from it.
    for (std::int64_t block = 0; block < in.blocks; ++block) {
      if (!logits(block)) continue;
      const std::int64_t of = in.block(b, h, block);
      const T* const values = in.v.data() + of * block_keys * dim;
      turn_over(values, block_keys, dim, other.data());
      detail::products(gradient.data(), other.data(), count, dim, products.data());
      std::fill_n(turned.data(), tile * block_keys, T{0});
      for (std::int64_t r = 0; r < count; ++r) {
        T* const weight = scores.data() + r * block_keys;
        if (words[r] == 0) {
          std::fill_n(weight, block_keys, T{0});
          continue;
        }
        detail::exponentials(weight,
                             peak[r] == -std::numeric_limits<T>::infinity() ? T{0} : peak[r]);
        for (std::int64_t j = 0; j < block_keys; ++j) {
          weight[j] *= factor[r];
          turned.data()[j * tile + r] = weight[j];
          weight[j] =
              weight[j] == 0 ? T{0} : weight[j] * (products.data()[r * block_keys + j] - delta[r]);
        }
        arguments(b, queries.at(first + r, b), reciprocal[r], block, x, line);
        parameters(b, queries.at(first + r, b), reciprocal[r], block, words[r], weight, x, line,
                   slope, share);
      }
      add_rows(turned.data(), gradient.data(), g_finite, block_keys, dim,
               dv.data() + of * block_keys * dim);
      const T* const k = in.k.data() + of * block_keys * dim;
      turn_over(k, dim, block_keys, other.data());
      add_rows(scores.data(), other.data(), finite(k, block_keys * dim), count, dim,
               dq.data() + at);
      std::fill_n(turned.data(), tile * block_keys, T{0});
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t j = 0; j < block_keys; ++j) {
          turned.data()[j * tile + r] = scores.data()[r * block_keys + j];
        }
      }
      add_rows(turned.data(), q.data(), q_finite, block_keys, dim,
               dk.data() + of * block_keys * dim);
    }
  }

  // x = ψ(n)/N with n the distance: ∂x/∂c = (ψ′(n) − x ψ′(m))/N, ψ′ by c, m = max(i, L) that N is of.
  void parameters(std::int64_t b, std::int64_t query, double reciprocal, std::int64_t block,
                  std::uint64_t word, const T* s, const double* x, const std::size_t* line,
                  std::span<const double> slope, Share& share) const {
    const double c = std::abs(fire.c), threshold = fire.threshold();
    const double m = std::max(static_cast<double>(query), threshold);
    const double by_c = m / (c * m + 1);
    const double by_length = static_cast<double>(query) < threshold ? c / (c * m + 1) : 0;
    for (std::uint64_t left = word; left != 0; left &= left - 1) {
      const int j = std::countr_zero(left);
      const double gradient = static_cast<double>(s[j]);
      share.sum[line[j]] += gradient;
      share.moment[line[j]] += gradient * x[j];
      const double n = std::abs(static_cast<double>(query - keys.at(block * block_keys + j, b)));
      const double by_x = gradient * slope[line[j]] * reciprocal;
      share.c += by_x * (n / (c * n + 1) - x[j] * by_c);
      share.length -= by_x * x[j] * by_length;
    }
  }
};

// All heads' shares as the gradient of the parameters.
FireGradient gathered(const Fire& fire, const detail::FireLines& lines, std::int64_t heads,
                      const std::vector<Share>& shares) {
  const std::size_t units = fire.hidden_weight.size();
  FireGradient gradient{.hidden_weight = std::vector<double>(units),
                        .hidden_bias = std::vector<double>(units),
                        .output_weight = std::vector<double>(fire.output_weight.size()),
                        .output_bias = std::vector<double>(fire.output_bias.size())};
  double length = 0;
  for (std::size_t each = 0; each < shares.size(); ++each) {
    const std::size_t h = each % static_cast<std::size_t>(heads);
    const Share& share = shares[each];
    gradient.c += share.c;
    length += share.length;
    for (std::size_t line = 0; line < share.sum.size(); ++line) {
      gradient.output_bias[h] += share.sum[line];
      for (std::size_t u = 0; u < units; ++u) {
        if (!lines.active(fire, u, line)) continue;
        const double w = fire.hidden_weight[u], output = fire.output_weight[h * units + u];
        gradient.output_weight[h * units + u] +=
            w * share.moment[line] + fire.hidden_bias[u] * share.sum[line];
        gradient.hidden_weight[u] += output * share.moment[line];
        gradient.hidden_bias[u] += output * share.sum[line];
      }
    }
  }
  if (std::signbit(fire.c)) gradient.c = -gradient.c;
  const double product = fire.length_multiplier * fire.initial_length;
  gradient.length_multiplier = length * (product < 0 ? -fire.initial_length : fire.initial_length);
  return gradient;
}

}  // namespace

Expected<FireGradient> attend_fire_backward(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Fire& fire, const Plan& plan,
                                            const Positions& queries, const Positions& keys,
                                            const Mask& mask, const Tensor& out_gradient,
                                            const Tensor& q_gradient, const Tensor& k_gradient,
                                            const Tensor& v_gradient, Threads threads) {
  constexpr std::string_view where = "attend_fire_backward";
  const auto given = detail::viewed(where, "out_gradient", out_gradient, 4);
  if (!given) return std::unexpected(given.error());
  // A gradient may be broadcast, which an output may not.
  Tensor out = *given;
  for (std::int64_t step = 1, axis = 3; axis >= 0; --axis) {
    out.stride[static_cast<std::size_t>(axis)] = step;
    step *= out.shape[static_cast<std::size_t>(axis)];
  }
  const auto in = detail::attend_arguments(where, q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (auto ok = detail::check_plain(where, plan); !ok) return std::unexpected(ok.error());
  const std::int64_t batch = in->q.shape[0], heads = in->q.shape[1], kv_heads = in->k.shape[1];
  if (auto ok = detail::check_fire(where, fire, heads); !ok) return std::unexpected(ok.error());
  if (auto ok = detail::check_fire_axes(where, queries, keys); !ok)
    return std::unexpected(ok.error());
  Tensor wanted[3];
  for (const auto& [name, to, like, index] : {std::tuple{"q_gradient", &q_gradient, &in->q, 0},
                                              {"k_gradient", &k_gradient, &in->k, 1},
                                              {"v_gradient", &v_gradient, &in->v, 2}}) {
    if (!*to) continue;
    const auto view = detail::viewed(where, name, *to, 4);
    if (!view) return std::unexpected(view.error());
    if (auto ok = detail::check_shape(where, name, *view, *like); !ok)
      return std::unexpected(ok.error());
    if (auto ok = detail::check_distinct(where, *view); !ok) return std::unexpected(ok.error());
    wanted[index] = *view;
  }
  const detail::FireLines lines(fire, heads);
  const detail::PsiTable table(fire, queries, keys);
  std::vector<Share> shares(static_cast<std::size_t>(batch * heads),
                            Share{std::vector<double>(lines.turn.size() + 1),
                                  std::vector<double>(lines.turn.size() + 1)});
  const auto done = detail::with_compute_type(q.dtype, [&]<class T>(T*) -> Expected<void> {
    auto streamed = detail::Streamed<T>::of(*in, plan, queries, keys, false, threads);
    if (!streamed) return std::unexpected(streamed.error());
    const std::int64_t dim = streamed->dim, head_dim = streamed->head_dim;
    const std::int64_t key_rows = streamed->blocks * block_keys;
    Aligned<T> g = detail::padded_rows<T>(*given, queries.size(), dim);
    const Tensor turned =
        detail::padded_view(g.data(), batch, heads, queries.size(), head_dim, dim);
    if (auto ok = rotate(plan, turned, queries, Side::value, turned, threads); !ok) return ok;
    Aligned<T> dq(batch * heads * queries.size() * dim), dk(batch * kv_heads * key_rows * dim),
        dv(batch * kv_heads * key_rows * dim);
    const detail::Seen seen(mask, queries, keys, batch);
    const Backward<T> backward{fire, lines, table, queries, keys, seen, *streamed, g, dq, dk, dv};
    // Heads of a group add to the same keys: one thread has them all.
    const std::int64_t groups = heads == 0 ? 0 : batch * kv_heads;
    const std::int64_t bytes =
        batch * heads * queries.size() * keys.size() * static_cast<std::int64_t>(sizeof(T));
    detail::share_out(groups, detail::thread_count(threads, bytes),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t each = begin; each < end; ++each) {
                          const std::int64_t group = heads / kv_heads, b = each / kv_heads;
                          for (std::int64_t n = 0; n < group; ++n) {
                            const std::int64_t h = each % kv_heads * group + n;
                            backward.head(b, h, shares[static_cast<std::size_t>(b * heads + h)]);
                          }
                        }
                      });
    for (std::int64_t row = 0; row < batch * heads * queries.size(); ++row) {
      const std::int64_t b = row / (heads * queries.size());
      const T scale = static_cast<T>(plan.logits.query_scale(queries.at(row % queries.size(), b)) /
                                     std::sqrt(static_cast<double>(head_dim)));
      for (std::int64_t c = 0; c < dim; ++c) dq.data()[row * dim + c] *= scale;
    }
    // Back through the rotations, all of them before anything is written.
    const Tensor q_rows =
        detail::padded_view(dq.data(), batch, heads, queries.size(), head_dim, dim);
    Tensor k_rows = detail::padded_view(dk.data(), batch, kv_heads, key_rows, head_dim, dim);
    Tensor v_rows = detail::padded_view(dv.data(), batch, kv_heads, key_rows, head_dim, dim);
    k_rows.shape[2] = v_rows.shape[2] = keys.size();
    for (const auto& [rows, positions, side] : {std::tuple{&q_rows, &queries, Side::query},
                                                {&k_rows, &keys, Side::key},
                                                {&v_rows, &keys, Side::value}}) {
      if (auto ok = rotate_transpose(plan, *rows, *positions, side, *rows, threads); !ok) return ok;
    }
    if (wanted[0]) detail::store_rows(dq.data(), queries.size(), dim, wanted[0]);
    if (wanted[1]) detail::store_rows(dk.data(), key_rows, dim, wanted[1]);
    if (wanted[2]) detail::store_rows(dv.data(), key_rows, dim, wanted[2]);
    return {};
  });
  if (!done) return std::unexpected(done.error());
  return gathered(fire, lines, heads, shares);
}

}  // namespace posenc
