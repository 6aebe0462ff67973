// PaTH attention: between key and query stand the factors H_l = I − β_l w_l w_lᵀ of the tokens
// behind the key up to the query (path_rows.h); and the keys of a cache that those factors have
// been applied to.
#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "src/attention/reference.h"
#include "src/content/path_rows.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::block_keys;
using detail::multiply;
using detail::PathArguments;
using detail::PathFactors;
using detail::PathKeys;
using detail::PathRows;
using detail::PathTile;

}  // namespace

Expected<void> detail::attend_with(const Path& path, const ContentCall& call) {
  POSENC_TRY(arguments, PathArguments::of(path, call));
  return stream(call, MaskWords(call), false, [&]<class T>(const Streamed<T>& streamed) {
    PathKeys<T> keys(streamed, arguments.factors, call);
    keys.join(call.in.threads);
    return [&, keys = std::move(keys)](std::int64_t b, std::int64_t h, std::int64_t first,
                                       std::int64_t rows) {
      return PathTile<T>(PathRows<T>(keys, b, h, first, rows, arguments.own_of(b, first)),
                         arguments.softmax<T>(call, b, h, first, rows));
    };
  });
}

Expected<void> detail::reference_with(const Path& path, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_TRY(arguments, PathArguments::of(path, call));
  const std::int64_t dim = call.head_dim(), group = call.heads() == 0 ? 1 : call.checked.group();
  const auto along = [&](const ReferenceRow& row) {
    std::vector<double> q(row.rotated_q, row.rotated_q + dim), w(q.size());
    double forgotten = 0;
    for (std::int64_t j = *arguments.own_of(row.sequence, row.query); j >= 0; --j) {
      double& logit = row.logits[static_cast<std::size_t>(j)];
      if (logit != -std::numeric_limits<double>::infinity()) {
        double sum = 0;
        for (std::int64_t c = 0; c < dim; ++c)
          sum += q[static_cast<std::size_t>(c)] * row.rotated_keys[j * dim + c];
        logit =
            path.gates_before_scale ? (sum + forgotten) * row.scale : sum * row.scale + forgotten;
      }
      if (!call.keeps(row.sequence, j)) continue;
      // q ← H_j q
      const PathFactors& factors = arguments.factors;
      const std::int64_t head = row.head / group, at = factors.w.offset(row.sequence, head, j);
      double sum = 0;
      for (std::size_t c = 0; c < w.size(); ++c) {
        w[c] = factors.w.get(at + static_cast<std::int64_t>(c) * factors.w.stride[3]);
        sum += w[c] * q[c];
      }
      sum *= factors.beta.get(factors.beta.offset(row.sequence, head, j));
      for (std::size_t c = 0; c < w.size(); ++c) q[c] -= sum * w[c];
      if (arguments.gates)
        forgotten += arguments.gates.get(arguments.gates.offset(row.sequence, row.head, j));
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = along, .weights = weights});
}

Expected<void> path_keys(const Tensor& keys, const Tensor& w, const Tensor& beta, Threads threads) {
  constexpr std::string_view where = "path_keys";
  POSENC_TRY(k, detail::viewed(where, "keys", keys, 4));
  POSENC_CHECK(detail::check_distinct(where, k));
  const std::int64_t tokens = w ? w.shape[static_cast<std::size_t>(w.rank - 2)] : 0;
  if (w && (w.rank < 2 || tokens > k.shape[2]))
    return fail(where, "the newest tokens must be among the keys", shape_text(w),
                "append their keys first");
  POSENC_TRY(factors, PathFactors::of(where, w, beta, k, tokens));
  const std::int64_t heads = k.shape[0] * k.shape[1], older = k.shape[2] - tokens;
  detail::with_compute_type(keys.dtype, [&]<class T>(T*) {
    const std::int64_t dim = detail::padded(k.shape[3]), rows = k.shape[2];
    const std::int64_t bytes = heads * rows * dim * static_cast<std::int64_t>(sizeof(T));
    const auto all = [](std::int64_t) { return true; };
    constexpr std::int64_t few = 8;  // fewer are cheaper one after the other
    detail::share_out(
        heads, detail::thread_count(threads, bytes), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t n = begin; n < end; ++n) {
            const std::int64_t b = n / k.shape[1], h = n % k.shape[1];
            Aligned<T> moved((rows + block_keys) * dim), next((tokens < few ? 0 : rows) * dim),
                columns(block_keys * dim), transposed(dim * dim);
            detail::load_rows(k, k.offset(b, h), rows, moved.data(), dim);
            if (tokens < few) {
              for (std::int64_t t = 0; t < tokens; ++t) {
                detail::load_rows(factors.w, factors.w.offset(b, h, t), 1, columns.data(), dim);
                const T strength = static_cast<T>(factors.beta.get(factors.beta.offset(b, h, t)));
                for (std::int64_t j = 0; j < older + t; ++j) {
                  T* const key = moved.data() + j * dim;
                  const T by = -strength * detail::dot(key, columns.data(), dim);
                  for (std::int64_t c = 0; c < dim; ++c) key[c] += by * columns.data()[c];
                }
              }
            } else {
              for (std::int64_t t = 0; t < tokens; t += block_keys) {
                // The new keys of the block move to its end, those before it across.
                T* const own = moved.data() + (older + t) * dim;
                detail::transpose(own, dim, block_keys, dim, columns.data(), block_keys);
                const auto block = factors.block<T>(b, h, t, dim, columns.data(), all);
                detail::transpose(block.across.data(), dim, dim, dim, transposed.data(), dim);
                multiply(moved.data(), dim, 1, transposed.data(), older + t, dim, dim, next.data());
                std::copy_n(next.data(), (older + t) * dim, moved.data());
                detail::transpose(block.moved.data(), block_keys, dim, block_keys, columns.data(),
                                  dim);
                std::copy_n(columns.data(), std::min(block_keys, tokens - t) * dim, own);
              }
            }
            detail::store_rows(moved.data(), dim, rows, T{1}, k, k.offset(b, h));
          }
        });
  });
  return {};
}

}  // namespace posenc
