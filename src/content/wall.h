// Wall attention: Σ_c q_ic k_jc e^{G_c}, G_c the sum of channel c's log gates behind key j up to
// query i. Split at an anchor a between the two, e^G is a product of a factor of the query and one
// of the key, both at most 1:
//   a block of keys before the tile of queries has its last key as anchor, whoever asks, so its
//     keys are gated once;
//   16 queries have the first of their own keys as theirs, and one factor e^D leads from there to
//     each block's;
//   the few pairs that both stand behind that anchor are formed one by one.
// No exponent is above 0, and none is the difference of two long sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/content/log_gates.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc::detail {

inline constexpr std::string_view channel_gates_name = "wall.channel_gates",
                                  wall_log_gates_name = "wall.log_gates";

// x ← e^x of `count` numbers and of what else their last word holds.
template <class T>
void wall_exponentials(T* x, std::int64_t count) {
  for (std::int64_t n = 0; n < count; n += block_keys) exponentials(x + n, T{0});
}

// What the functions ask, once q, k and v are known to fit.
struct WallGates {
  Tensor channels;  // [batch, heads, keys, head_dim]
  Tensor scalar;    // [batch, heads, keys]; absent: none
  GateSums sums;    // of scalar
  std::vector<std::uint8_t>
      counts;  // [batch][keys]: tokens whose channel gates are read; empty: all that are kept
  std::vector<std::int64_t> own;  // [batch][queries]
  std::int64_t queries = 0;

  static Expected<WallGates> of(const Wall& wall, const ContentCall& call) {
    const std::int64_t batch = call.batch(), heads = call.heads(), dim = call.head_dim(),
                       keys = call.in.keys.size();
    POSENC_CHECK(check_counted(call));
    if (!wall.channel_gates)
      return fail(call.where, "wall.channel_gates must be given", "none",
                  "log σ(W x + b) of each token and channel");
    POSENC_TRY(channels, viewed(call.where, channel_gates_name, wall.channel_gates.values, 4));
    if (channels.shape != std::array{batch, heads, keys, dim}) {
      return fail(call.where,
                  std::string(channel_gates_name) + " must be [" + std::to_string(batch) + ", " +
                      std::to_string(heads) + ", " + std::to_string(keys) + ", " +
                      std::to_string(dim) + "]",
                  shape_text(channels), "one for each sequence, query head, key and channel");
    }
    WallGates gates{.channels = channels, .queries = call.in.queries.size()};
    POSENC_CHECK(gates.check_channels(call));
    if (wall.log_gates) {
      POSENC_TRY(scalar, gates_view(call, wall_log_gates_name, wall.log_gates.values));
      POSENC_TRY(sums, GateSums::of(call, wall_log_gates_name, scalar));
      gates.scalar = scalar;
      gates.sums = std::move(sums);
    }
    gates.own = own_keys(call);
    return gates;
  }

  // What is of no effect may hold anything, and is not read.
  Expected<void> check_channels(const ContentCall& call) {
    TokensInReach reach(call);
    for (std::int64_t b = 0; b < channels.shape[0]; ++b)
      for (std::int64_t j = 0; j < channels.shape[2]; ++j)
        if (call.keeps(b, j))
          for (std::int64_t h = 0; h < channels.shape[1]; ++h)
            POSENC_CHECK(check_token(call.where, reach, b, h, j));
    return {};
  }
  Expected<void> check_token(std::string_view where, TokensInReach& reach, std::int64_t b,
                             std::int64_t h, std::int64_t j) {
    for (std::int64_t c = 0; c < channels.shape[3]; ++c) {
      const double gate = channels.get(channels.offset(b, h, j, c));
      if (gate <= 0) continue;
      if (reach.has(b, j)) POSENC_CHECK(checked_gate(where, channel_gates_name, gate, j));
      counts.resize(static_cast<std::size_t>(channels.shape[0] * channels.shape[2]), 1);
      counts[static_cast<std::size_t>(b * channels.shape[2] + j)] = 0;
    }
    return {};
  }
  bool reads(std::int64_t b, std::int64_t j) const {
    return counts.empty() || counts[static_cast<std::size_t>(b * channels.shape[2] + j)] != 0;
  }

  const GateSums* scalar_sums() const { return scalar ? &sums : nullptr; }
  const std::int64_t* own_of(std::int64_t b, std::int64_t i) const {
    return own.data() + b * queries + i;
  }
};

// WallGates and gated keys of each query head, as blocks.
template <class T>
struct GatedKeys {
  const Streamed<T>* in;
  std::int64_t dim, size;  // of a block
  Aligned<T> gates;        // [batch][heads][block][block_keys][dim], 0 of padding
  Aligned<T>
      // [batch][heads][block][dim][block_keys], times e^ of the gates behind up to the block's end
      keys;
  std::vector<double> totals;  // [batch][heads][block][dim]: the sum of a block's gates

  GatedKeys(const Streamed<T>& streamed, const WallGates& of, const ContentCall& call)
      : in(&streamed),
        dim(streamed.dim),
        size(block_keys * streamed.dim),
        gates(streamed.batch * streamed.heads * streamed.blocks * size),
        keys(streamed.batch * streamed.heads * streamed.blocks * size),
        totals(static_cast<std::size_t>(streamed.batch * streamed.heads * streamed.blocks * dim)) {
    const std::int64_t each = streamed.batch * streamed.heads * streamed.blocks;
    share_out(each,
              thread_count(call.in.threads, each * size * static_cast<std::int64_t>(sizeof(T))),
              [&](std::int64_t begin, std::int64_t end) {
                Aligned<T> after(size), transposed(size);
                for (std::int64_t n = begin; n < end; ++n)
                  fill(n, of, call, after.data(), transposed.data());
              });
  }
  std::int64_t block(std::int64_t b, std::int64_t h, std::int64_t n) const {
    return (b * in->heads + h) * in->blocks + n;
  }
  const T* gates_of(std::int64_t block) const { return gates.data() + block * size; }
  const T* keys_of(std::int64_t block) const { return keys.data() + block * size; }
  const double* totals_of(std::int64_t block) const { return totals.data() + block * dim; }

  // to[key] = e^ of the gates behind a key up to key `last` of its block, 0 of keys behind that
  // one. The sum over all keys up to `last` is left in `sum` [dim].
  void after(const T* of, std::int64_t last, T* to, double* sum) const {
    std::fill_n(sum, dim, 0.0);
    for (std::int64_t j = block_keys - 1; j >= 0; --j) {
      T* const row = to + j * dim;
      if (j > last) {
        std::fill_n(row, dim, -std::numeric_limits<T>::infinity());
        continue;
      }
      for (std::int64_t c = 0; c < dim; ++c) {
        row[c] = static_cast<T>(sum[c]);
        sum[c] += static_cast<double>(of[j * dim + c]);
      }
    }
    wall_exponentials(to, size);
  }

 private:
  void fill(std::int64_t n, const WallGates& of, const ContentCall& call, T* factors,
            T* transposed) {
    const std::int64_t b = n / in->blocks / in->heads, h = n / in->blocks % in->heads,
                       block = n % in->blocks;
    const std::int64_t first = block * block_keys, count = std::min(block_keys, in->keys - first);
    T* const g = gates.data() + n * size;
    for (std::int64_t j = 0; j < count; ++j) {
      if (!call.keeps(b, first + j) || !of.reads(b, first + j)) continue;
      load_rows(of.channels, of.channels.offset(b, h, first + j), 1, g + j * dim, dim);
    }
    after(g, block_keys - 1, factors, totals.data() + n * dim);
    transpose(factors, dim, block_keys, dim, transposed, block_keys);
    const T* const k = in->k.data() + in->block(b, h, block) * size;
    for (std::int64_t e = 0; e < size; ++e) keys.data()[n * size + e] = k[e] * transposed[e];
  }
};

// Up to 16 queries of a head beside blocks of keys that come from the last to the first.
template <class T>
class WallRows {
 public:
  // own: their own keys; −1 sees nothing. `keeps` factors for the way back.
  WallRows(const GatedKeys<T>& keys, std::int64_t b, std::int64_t h, std::int64_t first,
           std::int64_t rows, const std::int64_t* own, bool keeps = false)
      : keys_(&keys),
        b_(b),
        h_(h),
        rows_(rows),
        dim_(keys.dim),
        own_(own),
        q_(keys.in->query(b, h, first)),
        to_anchor_(query_tile * dim_),
        anchored_(query_tile * dim_),
        gated_(query_tile * dim_),
        near_(keys.size),
        near_keys_(keys.size),
        pairs_(keys.size),
        to_block_(static_cast<std::size_t>(dim_)),
        factor_((dim_ + block_keys - 1) / block_keys * block_keys) {
    anchor_ = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t r = 0; r < rows; ++r)
      if (own[r] >= 0) anchor_ = std::min(anchor_, own[r]);
    if (anchor_ == std::numeric_limits<std::int64_t>::max()) {
      anchor_ = -1;
      return;
    }
    home_ = anchor_ / block_keys;
    std::vector<double> sum(static_cast<std::size_t>(dim_));
    for (std::int64_t r = 0; r < rows; ++r) {
      std::ranges::fill(sum, 0.0);
      for (std::int64_t l = own[r]; l > anchor_; --l) add_gate(l, sum);
      for (std::int64_t c = 0; c < dim_; ++c)
        to_anchor_.data()[r * dim_ + c] = static_cast<T>(sum[static_cast<std::size_t>(c)]);
    }
    wall_exponentials(to_anchor_.data(), query_tile * dim_);
    for (std::int64_t e = 0; e < rows * dim_; ++e)
      anchored_.data()[e] = q_[e] * to_anchor_.data()[e];
    // From the anchor to what stands before its block, and the keys of that block up to the anchor.
    keys.after(keys.gates_of(keys.block(b, h, home_)), anchor_ % block_keys, near_.data(),
               to_block_.data());
    Aligned<T> transposed(keys.size);
    transpose(near_.data(), dim_, block_keys, dim_, transposed.data(), block_keys);
    const T* const k = columns(home_);
    for (std::int64_t c = 0; c < dim_; ++c) {
      for (std::int64_t j = 0; j <= anchor_ % block_keys; ++j) {
        const std::int64_t e = c * block_keys + j;
        near_keys_.data()[e] = k[e] * transposed.data()[e];
      }
    }
    at_ = home_ - 1;
    if (keeps) kept_.resize(static_cast<std::size_t>(home_));
  }

  // scores [row][block_keys]
  void products(std::int64_t block, T* scores) {
    if (anchor_ < 0) {
      std::fill_n(scores, rows_ * block_keys, T{0});
      return;
    }
    if (block < home_) {
      find_factor(block);
      whole_block(block, scores);
    } else {
      block_near(block, scores);
    }
  }
  void products_again(std::int64_t block, T* scores) {
    if (anchor_ >= 0 && block < home_) {
      std::copy_n(kept_[static_cast<std::size_t>(block)].data(), dim_, factor_.data());
      whole_block(block, scores);
    } else {
      products(block, scores);
    }
  }

  // by_q [row][dim] and, of the head's keys, by_gated and by_key [key][dim] get their shares of
  // by_score [row][block_keys]: by_gated by keys as GatedKeys has them, by_key by keys as they are.
  // Behind products_again.
  void take(std::int64_t block, const T* by_score, T* by_q, T* by_gated, T* by_key) {
    if (anchor_ < 0) return;
    Aligned<T> sums(query_tile * dim_), rows(keys_->size);
    const auto by_product = [&](const T* queries, const T* key_columns, T* by_keys) {
      transpose(key_columns, block_keys, dim_, block_keys, rows.data(), dim_);
      accumulate(by_score, rows.data(), finite(rows.data(), keys_->size), rows_, dim_, sums.data());
      gemm(Gemm<T>{.c = by_keys,
                   .c_step = dim_,
                   .rows = block_keys,
                   .columns = dim_,
                   .a = by_score,
                   .a_row = 1,
                   .a_step = block_keys,
                   .b = queries,
                   .b_step = dim_,
                   .depth = rows_,
                   .adds = true,
                   .skips_zeros = !finite(queries, rows_ * dim_)});
    };
    if (block < home_) {
      by_product(gated_.data(), keys_->keys_of(keys_->block(b_, h_, block)),
                 by_gated + block * keys_->size);
      for (std::int64_t r = 0; r < rows_; ++r)
        for (std::int64_t c = 0; c < dim_; ++c)
          by_q[r * dim_ + c] +=
              sums.data()[r * dim_ + c] * factor_.data()[c] * to_anchor_.data()[r * dim_ + c];
      return;
    }
    if (block == home_) {
      Aligned<T> by_near(keys_->size);
      by_product(anchored_.data(), near_keys_.data(), by_near.data());
      for (std::int64_t e = 0; e < rows_ * dim_; ++e)
        by_q[e] += sums.data()[e] * to_anchor_.data()[e];
      for (std::int64_t e = 0; e < keys_->size; ++e)
        by_key[block * keys_->size + e] += by_near.data()[e] * near_.data()[e];
    }
    const T* const k = columns(block);
    each_pair(block, [&](std::int64_t r, std::int64_t j, const T* factor) {
      const T by = by_score[r * block_keys + j];
      if (by == 0) return;
      T* const key = by_key + (block * block_keys + j) * dim_;
      for (std::int64_t c = 0; c < dim_; ++c) {
        by_q[r * dim_ + c] += by * factor[c] * k[c * block_keys + j];
        key[c] += by * factor[c] * q_[r * dim_ + c];
      }
    });
  }

 private:
  const T* columns(std::int64_t block) const {  // the head's keys, [dim][block_keys]
    return keys_->in->k.data() + keys_->in->block(b_, h_, block) * keys_->size;
  }
  void add_gate(std::int64_t key, std::vector<double>& sum) const {
    const T* const gate =
        keys_->gates_of(keys_->block(b_, h_, key / block_keys)) + key % block_keys * dim_;
    for (std::int64_t c = 0; c < dim_; ++c)
      sum[static_cast<std::size_t>(c)] += static_cast<double>(gate[c]);
  }

  // e^ of the gates behind a block before the anchor's, up to the anchor.
  void find_factor(std::int64_t block) {
    for (; at_ > block; --at_) {
      const double* const total = keys_->totals_of(keys_->block(b_, h_, at_));
      for (std::int64_t c = 0; c < dim_; ++c) to_block_[static_cast<std::size_t>(c)] += total[c];
    }
    for (std::int64_t c = 0; c < dim_; ++c)
      factor_.data()[c] = static_cast<T>(to_block_[static_cast<std::size_t>(c)]);
    wall_exponentials(factor_.data(), dim_);
    if (kept_.empty()) return;
    kept_[static_cast<std::size_t>(block)] = Aligned<T>(dim_);
    std::copy_n(factor_.data(), dim_, kept_[static_cast<std::size_t>(block)].data());
  }
  void whole_block(std::int64_t block, T* scores) {
    const T *const factor = factor_.data(), *from = anchored_.data();
    T* to = gated_.data();
    for (std::int64_t r = 0; r < rows_; ++r, from += dim_, to += dim_)
      for (std::int64_t c = 0; c < dim_; ++c) to[c] = from[c] * factor[c];
    block_products(gated_.data(), keys_->keys_of(keys_->block(b_, h_, block)), rows_, dim_, scores);
  }
  void block_near(std::int64_t block, T* scores) {
    if (block == home_) {
      block_products(anchored_.data(), near_keys_.data(), rows_, dim_, scores);
    } else {
      std::fill_n(scores, rows_ * block_keys, T{0});
    }
    const T* const k = columns(block);
    each_pair(block, [&](std::int64_t r, std::int64_t j, const T* factor) {
      T score = 0;
      for (std::int64_t c = 0; c < dim_; ++c)
        score += q_[r * dim_ + c] * k[c * block_keys + j] * factor[c];
      scores[r * block_keys + j] = score;
    });
  }

  // act(row, key of the block, e^ of the gates between) of the pairs behind the anchor.
  template <class Act>
  void each_pair(std::int64_t block, const Act& act) {
    const std::int64_t first = std::max(block * block_keys, anchor_ + 1);
    std::vector<double> sum(static_cast<std::size_t>(dim_));
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::int64_t last = std::min(own_[r], block * block_keys + block_keys - 1);
      if (last < first) continue;
      std::ranges::fill(sum, 0.0);
      for (std::int64_t l = own_[r]; l > last; --l) add_gate(l, sum);
      std::int64_t count = 0;
      for (std::int64_t j = last; j >= first; --j, ++count) {
        for (std::int64_t c = 0; c < dim_; ++c)
          pairs_.data()[count * dim_ + c] = static_cast<T>(sum[static_cast<std::size_t>(c)]);
        add_gate(j, sum);
      }
      wall_exponentials(pairs_.data(), count * dim_);
      for (std::int64_t n = 0; n < count; ++n)
        act(r, (last - n) % block_keys, pairs_.data() + n * dim_);
    }
  }

  const GatedKeys<T>* keys_;
  std::int64_t b_, h_, rows_, dim_;
  const std::int64_t* own_;
  std::int64_t anchor_ = -1, home_ = 0;  // the first of the own keys, and its block
  std::int64_t at_ = 0;                  // the block that to_block_ leads to
  const T* q_;
  Aligned<T> to_anchor_;         // e^ of the gates behind the anchor up to each row's own key
  Aligned<T> anchored_, gated_;  // queries times that, and times factor_ too
  Aligned<T> near_,
      // e^ of the gates behind each key of the anchor's block up to it, and the keys times that
      near_keys_;
  Aligned<T> pairs_;
  std::vector<double> to_block_;
  Aligned<T> factor_;
  std::vector<Aligned<T>> kept_;
};

}  // namespace posenc::detail
