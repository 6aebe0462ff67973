// A text's queries, keys and values for tests of the key-value cache, what attention makes of all
// of it at once in double, and what a cache makes of it piece by piece.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "posenc/cache.h"
#include "posenc/schemes.h"
#include "tests/kernel_memory.h"

namespace posenc::kv {

using Numbers = std::vector<double>;  // [head][token][channel]

inline Numbers numbers(const Tensor& view) {
  Numbers all;
  for_each_index(view, [&](auto b, auto h, auto t, auto c) {
    all.push_back(view.get(view.offset(b, h, t, c)));
  });
  return all;
}

// Tokens [first, first + count) of [1, head, token, channel].
inline Tensor tokens_of(Tensor view, std::int64_t first, std::int64_t count) {
  view.data = static_cast<char*>(view.data) +
              first * view.stride[2] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape[2] = count;
  return view;
}

struct Text {
  std::int64_t tokens = 21, heads = 8, kv_heads = 2, dim = 8, value_dim = dim;
  DType dtype = DType::f64;
  unsigned seed = 1;
  Memory q = memory(dtype, MemoryLayout::heads_first, 1, heads, tokens, dim, seed),
         k = memory(dtype, MemoryLayout::tokens_first, 1, kv_heads, tokens, dim, seed + 1),
         v = memory(dtype, MemoryLayout::every_third, 1, kv_heads, tokens, value_dim, seed + 2);

  Geometry geometry(std::int64_t length = 0) const {
    return {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .length = length};
  }
  KvCacheOptions options(CachedKeys keys, std::int64_t page_size = 3) const {
    return {.kv_heads = kv_heads,
            .head_dim = dim,
            .value_dim = value_dim,
            .dtype = dtype,
            .page_size = page_size,
            .keys = keys};
  }

  // Attention over all of it, of the same numbers in double.
  Numbers at_once(const Plan& plan, const Positions& positions, const Mask& mask = {}) {
    Numbers wide_q = numbers(q.view()), wide_k = numbers(k.view()), wide_v = numbers(v.view());
    Numbers out(static_cast<std::size_t>(heads * tokens * value_dim));
    const auto view = [&](Numbers& x, std::int64_t n, std::int64_t width) {
      return Tensor::dense(x.data(), {1, n, tokens, width});
    };
    const auto done =
        attend_reference({view(wide_q, heads, dim), view(wide_k, kv_heads, dim),
                          view(wide_v, kv_heads, value_dim), positions, positions, mask},
                         plan, view(out, heads, value_dim));
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }
  Numbers at_once(const Plan& plan, const Mask& mask = {}) {
    return at_once(plan, Positions::range(0, tokens), mask);
  }

  // The largest that rounding to the dtype can change an output by: u is half the step at 1.
  //   |δlogit| ≤ 2u·|q||k|/√d (a rotated query and key are rounded), |δα| ≤ 2·|δlogit|·α, and
  //     values
  // and outputs are rounded, at most twice each. In double: sums of a hundred products besides.
  double rounding(double amplitude = 1) {
    const auto longest = [&](const Tensor& x) {
      double most = 0;
      for_each_index(x, [&](auto b, auto h, auto t, auto c) {
        if (c != 0) return;
        double sum = 0;
        for (std::int64_t i = 0; i < x.shape[3]; ++i)
          sum += std::pow(x.get(x.offset(b, h, t, i)), 2);
        most = std::max(most, std::sqrt(sum));
      });
      return most;
    };
    const double u = std::max(step(dtype) / 2, 0x1p-46), value = longest(v.view());
    const double logit = 2 * u * longest(q.view()) * longest(k.view()) * amplitude * amplitude /
                         std::sqrt(static_cast<double>(dim));
    return 2 * logit * value + 4 * u * value;
  }
};

inline double largest_difference(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= most)) most = difference;  // a NaN is the largest
  }
  return most;
}

inline double rms_difference(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::pow(a[i] - b[i], 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

inline KvCache made(const KvCacheOptions& options) {
  auto cache = KvCache::make(options);
  EXPECT_TRUE(cache) << cache.error().message();
  return *std::move(cache);
}

inline Plan compiled(const Scheme& scheme, const Geometry& geometry) {
  const auto plan = compile(scheme, geometry);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan.value_or(Plan{});
}

inline std::string message(const Expected<void>& result) {
  return result ? "" : result.error().message();
}

// Tokens [first, last) of the text in pieces of these sizes, over and over; positions by default
// 0, 1, ... The outputs go to `out`, [1, heads, tokens, value_dim].
inline void fed(KvCache& cache, KvCache::Sequence sequence, Text& text, std::int64_t first,
                std::int64_t last, const std::vector<std::int64_t>& pieces,
                const std::function<Plan(std::int64_t length)>& plan, const Tensor& out,
                const Mask& mask = {}) {
  for (std::size_t i = 0; first < last; ++i) {
    const std::int64_t count = std::min(pieces[i % pieces.size()], last - first);
    const auto piece = [&](Memory& x) { return tokens_of(x.view(), first, count); };
    const Plan now = plan(cache.length(sequence).value_or(0) + count);
    const auto kept = cache.append({{sequence}}, piece(text.k), piece(text.v), now);
    ASSERT_TRUE(kept) << kept.error().message();
    const auto done =
        cache.attend({{sequence}}, piece(text.q), now, mask, tokens_of(out, first, count));
    ASSERT_TRUE(done) << done.error().message();
    first += count;
  }
}

// All of it through a new cache: what it gives for every token.
inline Numbers through_cache(const KvCacheOptions& options, Text& text,
                             const std::vector<std::int64_t>& pieces,
                             const std::function<Plan(std::int64_t length)>& plan,
                             const Mask& mask = {}) {
  KvCache cache = made(options);
  Memory out =
      memory(text.dtype, MemoryLayout::tokens_first, 1, text.heads, text.tokens, text.value_dim, 9);
  fed(cache, cache.add(), text, 0, text.tokens, pieces, plan, out.view(), mask);
  return numbers(out.view());
}

}  // namespace posenc::kv
