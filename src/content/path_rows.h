// What PaTH's attention and its gradients share: the checked arguments, all blocks of keys, and
// queries on their way through them. A tile of queries goes backwards through blocks of keys: what
// a block does to a query on its way across is one matrix, and the block's keys stand ready as the
// block's end sees them (path.h). Where a tile's own keys stand within the block, what is behind
// each row's own key is masked out of Q Wᵀ. Four blocks are crossed at once where there are queries
// enough to pay for their matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/content/log_gates.h"
#include "src/content/path.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc::detail {

// w and β as [batch, kv_heads, keys, head_dim] and [batch, kv_heads, keys].
struct PathFactors {
  Tensor w, beta;

  static Expected<PathFactors> of(std::string_view where, const Tensor& w_given,
                                  const Tensor& beta_given, const Tensor& k, std::int64_t tokens) {
    if (!w_given || !beta_given)
      return fail(where, "path.w and path.beta must be given",
                  w_given      ? "no beta"
                  : beta_given ? "no w"
                               : "neither",
                  "the direction and strength of each token's factor");
    POSENC_TRY(w, viewed(where, "path.w", w_given, 4));
    POSENC_TRY(beta, viewed(where, "path.beta", beta_given, 3));
    const std::string shape = "[" + std::to_string(k.shape[0]) + ", " + std::to_string(k.shape[1]) +
                              ", " + std::to_string(tokens);
    if (w.shape != std::array{k.shape[0], k.shape[1], tokens, k.shape[3]})
      return fail(where, "path.w must be " + shape + ", " + std::to_string(k.shape[3]) + "]",
                  shape_text(w), "one direction for each sequence, key head and token");
    if (beta.shape[0] != k.shape[0] || beta.shape[1] != k.shape[1] || beta.shape[2] != tokens)
      return fail(where, "path.beta must be " + shape + "]", shape_text(beta),
                  "one number for each sequence, key head and token");
    return PathFactors{w, beta};
  }

  // A block from token `first` on; what does not count has β = 0. keys: as PathBlock takes them.
  // spoiled [block_keys], if given, marks factors that are not finite; these are left out of the
  // block.
  template <class T>
  PathBlock<T> block(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t dim,
                     const T* keys, const auto& counts, std::uint8_t* spoiled = nullptr) const {
    Aligned<T> rows(block_keys * dim);
    double strengths[block_keys] = {};
    for (std::int64_t n = 0; n < std::min(block_keys, w.shape[2] - first); ++n) {
      if (!counts(first + n)) continue;
      T* const row = rows.data() + n * dim;
      strengths[n] = beta.get(beta.offset(b, h, first + n));
      load_rows(w, w.offset(b, h, first + n), 1, row, dim);
      if (spoiled == nullptr || (std::isfinite(strengths[n]) && finite(row, dim))) continue;
      spoiled[n] = 1;
      strengths[n] = 0;
      std::fill_n(row, dim, T{0});
    }
    return PathBlock<T>(std::move(rows), strengths, keys, dim);
  }
};

// What the functions of the scheme ask, once q, k and v are known to fit.
struct PathArguments {
  PathFactors factors;
  Tensor gates;                   // [batch, heads, keys]; absent: none
  GateSums sums;                  // of them
  std::vector<std::int64_t> own;  // [batch][queries]
  std::int64_t queries = 0;
  bool before_scale = false;

  static Expected<PathArguments> of(const Path& path, const ContentCall& call) {
    POSENC_CHECK(check_counted(call));
    POSENC_TRY(factors, PathFactors::of(call.where, path.w.values, path.beta.values, call.checked.k,
                                        call.in.keys.size()));
    PathArguments made{.factors = factors,
                       .queries = call.in.queries.size(),
                       .before_scale = path.gates_before_scale};
    if (path.log_gates) {
      constexpr std::string_view name = "path.log_gates";
      POSENC_TRY(gates, gates_view(call, name, path.log_gates.values));
      POSENC_TRY(sums, GateSums::of(call, name, gates));
      made.gates = gates;
      made.sums = std::move(sums);
    }
    made.own = own_keys(call);
    return made;
  }

  const std::int64_t* own_of(std::int64_t b, std::int64_t i) const {
    return own.data() + b * queries + i;
  }

  template <class T>
  ForgetfulSoftmax<T> softmax(const ContentCall& call, std::int64_t b, std::int64_t h,
                              std::int64_t first, std::int64_t rows,
                              double* by_gates = nullptr) const {
    ForgetfulSoftmax<T> made(gates ? &sums : nullptr, b, h, rows, own_of(b, first), by_gates);
    for (std::int64_t r = 0; before_scale && r < rows; ++r)
      made.factor[r] = call.plan.logits.query_scale(call.in.queries.at(first + r, b), h) /
                       std::sqrt(static_cast<double>(call.head_dim()));
    return made;
  }
};

// Blocks in a row as one: their keys as the end of the last one sees them.
template <class T>
struct PathGroup {
  static constexpr std::int64_t blocks = 4;
  Aligned<T> across;         // [dim][dim], of them all
  Aligned<T> moved[blocks];  // [dim][block_keys] of each; of the last one absent, being its own
};

// All blocks of all key heads.
template <class T>
struct PathKeys {
  const Streamed<T>* in;
  std::int64_t size;                                // of a block's keys
  std::vector<std::optional<PathBlock<T>>> blocks;  // as Streamed::block counts
  // [batch][kv_heads][block][block_keys]: factors that are not finite. Blocks are made without
  // them, since 0 · NaN would reach pairs that they do not stand between; PathRows gives those that
  // they do.
  std::vector<std::uint8_t> spoiled;
  bool any_spoiled = false;
  std::vector<PathGroup<T>> groups;  // [batch][kv_heads][group] of whole ones; empty: not joined

  PathKeys(const Streamed<T>& streamed, const PathFactors& factors, const ContentCall& call)
      : in(&streamed), size(block_keys * streamed.dim) {
    const std::int64_t each = streamed.batch * streamed.kv_heads * streamed.blocks;
    blocks.resize(static_cast<std::size_t>(each));
    spoiled.resize(static_cast<std::size_t>(each * block_keys));
    const std::int64_t bytes = each * (size + square) * static_cast<std::int64_t>(sizeof(T));
    share_out(each, thread_count(call.in.threads, bytes),
              [&](std::int64_t begin, std::int64_t end) {
                Aligned<T> keys(size);
                for (std::int64_t n = begin; n < end; ++n) {
                  const std::int64_t b = n / in->blocks / in->kv_heads,
                                     first = n % in->blocks * block_keys;
                  visible_keys(n, call, keys.data());
                  blocks[static_cast<std::size_t>(n)].emplace(factors.block<T>(
                      b, n / in->blocks % in->kv_heads, first, in->dim, keys.data(),
                      [&](std::int64_t token) { return call.keeps(b, token); },
                      spoiled.data() + n * block_keys));
                }
              });
    any_spoiled = std::ranges::find(spoiled, std::uint8_t{1}) != spoiled.end();
  }
  // The keys of a block, 0 where padding may hold anything: [dim][block_keys].
  void visible_keys(std::int64_t n, const ContentCall& call, T* to) const {
    std::copy_n(in->k.data() + n * size, size, to);
    const std::int64_t b = n / in->blocks / in->kv_heads, first = n % in->blocks * block_keys;
    for (std::int64_t j = 0; j < std::min(block_keys, in->keys - first); ++j) {
      if (call.keeps(b, first + j)) continue;
      for (std::int64_t c = 0; c < in->dim; ++c) to[c * block_keys + j] = 0;
    }
  }
  const PathBlock<T>& operator[](std::int64_t block) const {
    return *blocks[static_cast<std::size_t>(block)];
  }

  // Joins blocks to groups if that saves more than it takes: for each block as much as dim + 64
  // queries that cross it, and under a causal mask half of them do.
  void join(Threads threads) {
    constexpr std::int64_t fewest = 512;
    const std::int64_t heads = in->batch * in->kv_heads, each = groups_of_a_head();
    if (each == 0 || in->queries * (in->heads / in->kv_heads) < fewest) return;
    groups.resize(static_cast<std::size_t>(heads * each));
    const std::int64_t bytes =
        heads * each * PathGroup<T>::blocks * size * static_cast<std::int64_t>(sizeof(T));
    share_out(heads * each, thread_count(threads, bytes),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t n = begin; n < end; ++n)
                  join(n / each * in->blocks + n % each * PathGroup<T>::blocks,
                       groups[static_cast<std::size_t>(n)]);
              });
  }
  std::int64_t groups_of_a_head() const { return in->blocks / PathGroup<T>::blocks; }
  // The group of a head's block; null: none was made.
  const PathGroup<T>* group(std::int64_t b, std::int64_t h, std::int64_t block) const {
    const std::int64_t group = block / PathGroup<T>::blocks, each = groups_of_a_head();
    if (groups.empty() || group >= each) return nullptr;
    return &groups[static_cast<std::size_t>(in->block(b, h, 0) / in->blocks * each + group)];
  }

 private:
  void join(std::int64_t first, PathGroup<T>& to) const {
    const std::int64_t dim = in->dim;
    to.across = Aligned<T>(dim * dim);
    const PathBlock<T>& newest = (*this)[first + PathGroup<T>::blocks - 1];
    std::copy_n(newest.across.data(), dim * dim, to.across.data());
    Aligned<T> further(dim * dim);
    for (std::int64_t n = PathGroup<T>::blocks - 2; n >= 0; --n) {
      const PathBlock<T>& block = (*this)[first + n];
      to.moved[n] = Aligned<T>(size);
      multiply(to.across.data(), dim, 1, block.moved.data(), dim, dim, block_keys,
               to.moved[n].data());
      multiply(to.across.data(), dim, 1, block.across.data(), dim, dim, dim, further.data());
      std::swap(to.across, further);
    }
  }
};

// What a part of the queries adds to the gradients of a key head's blocks.
template <class T>
struct PathSums {
  T *moved, *across, *u, *y, *w;  // as in PathBlock, but moved [block_keys][dim]
  static std::int64_t size(std::int64_t dim) { return 3 * block_keys * dim + dim * dim + square; }
  PathSums(T* at, std::int64_t dim)
      : moved(at),
        across(moved + block_keys * dim),
        u(across + dim * dim),
        y(u + square),
        w(y + block_keys * dim) {}
};

// Queries of a head on their way through blocks of keys, from the last to the first, and the
// gradients' on the way back.
template <class T>
class PathRows {
 public:
  PathRows(const PathKeys<T>& keys, std::int64_t b, std::int64_t h, std::int64_t first,
           std::int64_t rows, const std::int64_t* own, bool returns = false)
      : keys_(&keys),
        b_(b),
        h_(h),
        rows_(rows),
        dim_(keys.in->dim),
        own_(own),
        q_(rows * dim_),
        next_(rows * dim_),
        by_w_(rows * block_keys) {
    std::copy_n(keys.in->query(b, h, first), rows * dim_, q_.data());
    find_spoiled();
    if (!returns) return;
    found_.resize(static_cast<std::size_t>(keys.in->blocks));
    by_q_ = Aligned<T>(rows * dim_);
    by_next_ = Aligned<T>(rows * dim_);
    by_by_w_ = Aligned<T>(rows * block_keys);
    turned_ = Aligned<T>(std::max({keys.size, dim_ * dim_, square}));
  }

  // scores [row][block_keys]; afterwards the queries stand before the block, or, within a group,
  // still at its end.
  void products(std::int64_t block, T* scores) {
    if (const PathGroup<T>* const group = keys_->group(b_, h_, block); group != group_) {
      if (group_ != nullptr) cross(group_->across);
      const std::int64_t last = (block / PathGroup<T>::blocks + 1) * PathGroup<T>::blocks - 1;
      group_ = group != nullptr && behind(last) ? group : nullptr;
    }
    if (group_ != nullptr) {
      const Aligned<T>& moved = group_->moved[block % PathGroup<T>::blocks];
      block_products(q_.data(), moved ? moved.data() : of(block).moved.data(), rows_, dim_, scores);
      return spoil(block, scores);
    }
    score(block, q_.data(), scores);
    const PathBlock<T>& at = of(block);
    if (behind(block)) {
      cross(at.across);
    } else {
      std::copy_n(q_.data(), rows_ * dim_, next_.data());
      multiply(by_w_.data(), block_keys, 1, at.y.data(), rows_, block_keys, dim_, next_.data(),
               true, at.finite);
      std::swap(q_, next_);
    }
    if (found_.empty()) return;
    found_[static_cast<std::size_t>(block)] = std::move(next_);
    next_ = Aligned<T>(rows_ * dim_);
  }
  void products_again(std::int64_t block, T* scores) {
    score(block, found_[static_cast<std::size_t>(block)].data(), scores);
  }

  // by_key [key][dim]: of the block's keys as they stand; behind products_again.
  void take(std::int64_t block, const T* by_score, T* by_key, const PathSums<T>& to) {
    const PathBlock<T>& at = of(block);
    const T* const q = found_[static_cast<std::size_t>(block)].data();
    const bool finite = detail::finite(q, rows_ * dim_);
    if (behind(block)) {
      transpose(at.across.data(), dim_, dim_, dim_, turned_.data(), dim_);
      multiply(by_q_.data(), dim_, 1, turned_.data(), rows_, dim_, dim_, by_next_.data());
      transpose(at.moved.data(), block_keys, dim_, block_keys, turned_.data(), dim_);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, dim_, by_next_.data(),
               true, detail::finite(turned_.data(), keys_->size));
      multiply(q, 1, dim_, by_q_.data(), dim_, rows_, dim_, to.across, true);
      multiply(by_score, 1, block_keys, q, block_keys, rows_, dim_, to.moved, true, finite);
    } else {
      // by Q Wᵀ, masked as it was
      transpose(at.u.data(), block_keys, block_keys, block_keys, turned_.data(), block_keys);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, block_keys,
               by_by_w_.data(), false, detail::finite(turned_.data(), square));
      transpose(at.y.data(), dim_, block_keys, dim_, turned_.data(), block_keys);
      multiply(by_q_.data(), dim_, 1, turned_.data(), rows_, dim_, block_keys, by_by_w_.data(),
               true);
      mask(block, by_by_w_.data());
      multiply(by_w_.data(), 1, block_keys, by_score, block_keys, rows_, block_keys, to.u, true);
      multiply(by_w_.data(), 1, block_keys, by_q_.data(), block_keys, rows_, dim_, to.y, true);
      multiply(by_by_w_.data(), 1, block_keys, q, block_keys, rows_, dim_, to.w, true, finite);
      multiply(by_score, 1, block_keys, q, block_keys, rows_, dim_, by_key, true, finite);
      std::copy_n(by_q_.data(), rows_ * dim_, by_next_.data());
      multiply(by_by_w_.data(), block_keys, 1, at.w.data(), rows_, block_keys, dim_,
               by_next_.data(), true, at.finite);
      transpose(columns(block), block_keys, dim_, block_keys, turned_.data(), dim_);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, dim_, by_next_.data(),
               true, detail::finite(turned_.data(), keys_->size));
    }
    std::swap(by_q_, by_next_);
  }
  // By the queries as they came, once they are back.
  const T* by_queries() const { return by_q_.data(); }

 private:
  const PathBlock<T>& of(std::int64_t block) const {
    return (*keys_)[keys_->in->block(b_, h_, block)];
  }
  void cross(const Aligned<T>& across) {
    multiply(q_.data(), dim_, 1, across.data(), rows_, dim_, dim_, next_.data());
    std::swap(q_, next_);
  }
  const T* columns(std::int64_t block) const {
    return keys_->in->k.data() + keys_->in->block(b_, h_, block) * keys_->size;
  }
  // Whether every row has the whole block behind it.
  bool behind(std::int64_t block) const {
    return std::ranges::all_of(
        std::span(own_, static_cast<std::size_t>(rows_)),
        [&](std::int64_t own) { return own >= (block + 1) * block_keys - 1; });
  }
  // Tokens behind a row's own key do nothing to it.
  void mask(std::int64_t block, T* by_token) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::int64_t count =
          std::clamp<std::int64_t>(own_[r] + 1 - block * block_keys, 0, block_keys);
      std::fill(by_token + r * block_keys + count, by_token + (r + 1) * block_keys, T{0});
    }
  }
  void score(std::int64_t block, const T* q, T* scores) {
    const PathBlock<T>& at = of(block);
    if (behind(block)) {
      block_products(q, at.moved.data(), rows_, dim_, scores);
    } else {
      block_products(q, at.w_columns.data(), rows_, dim_, by_w_.data());
      mask(block, by_w_.data());
      block_products(q, columns(block), rows_, dim_, scores);
      multiply(by_w_.data(), block_keys, 1, at.u.data(), rows_, block_keys, block_keys, scores,
               true, at.finite && detail::finite(at.u.data(), square));
    }
    spoil(block, scores);
  }
  void spoil(std::int64_t block, T* scores) const {
    for (std::int64_t r = 0; r < std::ssize(spoiled_); ++r) {
      const std::int64_t last = spoiled_[static_cast<std::size_t>(r)] - block * block_keys;
      std::fill_n(scores + r * block_keys, std::clamp<std::int64_t>(last, 0, block_keys),
                  std::numeric_limits<T>::quiet_NaN());
    }
  }
  // The last factor that is not finite, of those that a row's queries meet.
  void find_spoiled() {
    if (!keys_->any_spoiled) return;
    const std::uint8_t* const of = keys_->spoiled.data() + keys_->in->block(b_, h_, 0) * block_keys;
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::int64_t last = own_[r];
      while (last >= 0 && of[last] == 0) --last;
      spoiled_.push_back(last);
    }
  }

  const PathKeys<T>* keys_;
  std::int64_t b_, h_, rows_, dim_;
  const std::int64_t* own_;
  std::vector<std::int64_t> spoiled_;    // [row], as find_spoiled() leaves them; empty: none
  Aligned<T> q_, next_;                  // as they stand, [row][dim]
  const PathGroup<T>* group_ = nullptr;  // at whose end they stand
  Aligned<T> by_w_;                      // Q Wᵀ of the block at hand, masked
  std::vector<Aligned<T>> found_;        // the queries that each block met
  Aligned<T> by_q_, by_next_, by_by_w_;
  Aligned<T> turned_;
};

template <class T>
class PathTile : public ForgetfulSoftmax<T> {
 public:
  PathTile(PathRows<T> rows, ForgetfulSoftmax<T> softmax)
      : ForgetfulSoftmax<T>(std::move(softmax)), rows_(std::move(rows)) {}
  void products(std::int64_t block, T* scores) { rows_.products(block, scores); }

 protected:
  PathRows<T> rows_;
};

}  // namespace posenc::detail
