// What a sequence of a cache should hold, beside it as plain numbers, and what attention in
// double makes of all of it for its newest token.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "posenc/attention.h"
#include "src/core/random.h"

namespace posenc::soak {

constexpr std::int64_t heads = 4, kv_heads = 2, head_dim = 32;
constexpr std::int64_t kv_size = kv_heads * head_dim, q_size = heads * head_dim;

// Random numbers of [sequence, head, token, head_dim] as a dtype holds them.
class Numbers {
 public:
  Numbers(DType dtype, std::int64_t sequences, std::int64_t head_count, std::int64_t tokens)
      : memory_(static_cast<std::size_t>(sequences * head_count * tokens * head_dim)),
        view_(Tensor::dense(memory_.data(), dtype, {sequences, head_count, tokens, head_dim})) {}
  Numbers(const Numbers&) = delete;

  void draw(std::mt19937_64& engine) {
    for (std::int64_t i = 0; i < view_.size(); ++i) view_.set(i, detail::normal(engine));
  }
  const Tensor& view() const { return view_; }

  // All heads of one token, [head][channel], behind `to`.
  void copy(std::int64_t sequence, std::int64_t token, std::vector<double>& to) const {
    for (std::int64_t h = 0; h < view_.shape[1]; ++h)
      for (std::int64_t c = 0; c < head_dim; ++c)
        to.push_back(view_.get(view_.offset(sequence, h, token, c)));
  }

 private:
  std::vector<double> memory_;  // room for any dtype
  Tensor view_;
};

struct History {
  std::vector<double> k, v;             // [token][kv_head][channel], unrotated
  std::vector<std::int64_t> positions;  // of each token
  std::int64_t turns = 0;               // times that its rotated keys were rotated further

  std::int64_t tokens() const { return static_cast<std::int64_t>(positions.size()); }
  std::int64_t next() const {
    return positions.empty() ? 0 : *std::ranges::max_element(positions) + 1;
  }

  void append(const Numbers& keys, const Numbers& values, std::int64_t sequence,
              std::int64_t count) {
    for (std::int64_t t = 0; t < count; ++t) {
      keys.copy(sequence, t, k);
      values.copy(sequence, t, v);
      positions.push_back(next());
    }
  }
  void shift(std::int64_t first, std::int64_t last, std::int64_t offset) {
    for (std::int64_t t = first; t < last; ++t) positions[static_cast<std::size_t>(t)] += offset;
  }
  void drop(std::int64_t first, std::int64_t last, bool close) {
    if (close && last < tokens()) {
      const auto at = [&](std::int64_t t) { return positions[static_cast<std::size_t>(t)]; };
      shift(last, tokens(), at(first) - at(last));
    }
    positions.erase(positions.begin() + first, positions.begin() + last);
    for (std::vector<double>* numbers : {&k, &v})
      numbers->erase(numbers->begin() + first * kv_size, numbers->begin() + last * kv_size);
  }

  // The largest difference of `out` from the attention of query `token` of `q`, the newest of all.
  // NaN where either has one or the reference refuses.
  double error(const Numbers& q, const Numbers& out, std::int64_t sequence, std::int64_t token,
               const Plan& plan, const Mask& mask, std::int64_t misplaced) {
    std::vector<double> query, got, want(q_size);
    q.copy(sequence, token, query);
    out.copy(sequence, token, got);
    const auto all = [&](std::vector<double>& numbers) {
      return Tensor::dense(numbers.data(), {1, tokens(), kv_heads, head_dim}).swapped(1, 2);
    };
    const auto one = [](std::vector<double>& numbers) {
      return Tensor::dense(numbers.data(), {1, heads, 1, head_dim});
    };
    std::vector<std::int64_t> places = positions;
    places.front() += misplaced;
    const auto keys = Positions::ids(places);
    if (!keys || !attend_reference({one(query), all(k), all(v),
                                    Positions::range(positions.back(), 1), *keys, mask},
                                   plan, one(want)))
      return std::nan("");
    double most = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double off = std::abs(got[i] - want[i]);
      if (!(off <= most)) most = off;
    }
    return most;
  }
};

}  // namespace posenc::soak
