// PaTH attention: between key and query stand the factors H_l = I − β_l w_l w_lᵀ of the tokens behind the key up to the
// query. A tile of queries goes backwards through blocks of keys: what a block does to a query on its way across is one
// matrix, and the block's keys stand ready as the block's end sees them (path.h). Where a tile's own keys stand within
// the block, what is behind each row's own key is masked out of Q Wᵀ.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/reference.h"
#include "src/content/log_gates.h"
#include "src/content/path.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::block_keys;
using detail::most_queries;
using detail::multiply;
using detail::square;

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
    POSENC_TRY(w, detail::viewed(where, "path.w", w_given, 4));
    POSENC_TRY(beta, detail::viewed(where, "path.beta", beta_given, 3));
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
  template <class T>
  detail::PathBlock<T> block(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t dim,
                             const T* keys, const auto& counts) const {
    Aligned<T> rows(block_keys * dim);
    double strengths[block_keys] = {};
    for (std::int64_t n = 0; n < std::min(block_keys, w.shape[2] - first); ++n) {
      if (!counts(first + n)) continue;
      strengths[n] = beta.get(beta.offset(b, h, first + n));
      detail::load_rows(w, w.offset(b, h, first + n), 1, rows.data() + n * dim, dim);
    }
    return detail::PathBlock<T>(std::move(rows), strengths, keys, dim);
  }
};

// What the functions of the scheme ask, once q, k and v are known to fit.
struct PathArguments {
  PathFactors factors;
  Tensor gates;                   // [batch, heads, keys]; absent: none
  detail::GateSums sums;          // of them
  std::vector<std::int64_t> own;  // [batch][queries]
  std::int64_t queries = 0;
  bool before_scale = false;

  static Expected<PathArguments> of(std::string_view where, const Path& path,
                                    const detail::AttendArguments& in,
                                    const AttentionInputs& given) {
    const std::int64_t batch = in.q.shape[0];
    POSENC_CHECK(detail::check_counted(where, given.keys, given.mask, batch));
    POSENC_TRY(factors,
               PathFactors::of(where, path.w.values, path.beta.values, in.k, given.keys.size()));
    PathArguments made{.factors = factors,
                       .queries = given.queries.size(),
                       .before_scale = path.gates_before_scale};
    if (path.log_gates) {
      constexpr std::string_view name = "path.log_gates";
      POSENC_TRY(gates, detail::gates_view(where, name, path.log_gates.values, batch, in.q.shape[1],
                                           given.keys.size()));
      POSENC_TRY(sums, detail::GateSums::of(where, name, gates, given.keys, given.mask));
      made.gates = gates;
      made.sums = std::move(sums);
    }
    made.own = detail::own_keys(given.mask, given.queries, given.keys, batch);
    return made;
  }

  const std::int64_t* own_of(std::int64_t b, std::int64_t i) const {
    return own.data() + b * queries + i;
  }

  template <class T>
  detail::ForgetfulSoftmax<T> softmax(const AttentionInputs& in, const Plan& plan,
                                      std::int64_t head_dim, std::int64_t b, std::int64_t h,
                                      std::int64_t first, std::int64_t rows,
                                      double* by_sum = nullptr) const {
    detail::ForgetfulSoftmax<T> made(gates ? &sums : nullptr, b, h, own_of(b, first), by_sum);
    for (std::int64_t r = 0; before_scale && r < rows; ++r)
      made.factor[r] = plan.logits.query_scale(in.queries.at(first + r, b), h) /
                       std::sqrt(static_cast<double>(head_dim));
    return made;
  }
};

// All blocks of all key heads.
template <class T>
struct PathKeys {
  const detail::Streamed<T>* in;
  std::int64_t size;                                        // of a block's keys
  std::vector<std::optional<detail::PathBlock<T>>> blocks;  // as Streamed::block counts

  PathKeys(const detail::Streamed<T>& streamed, const PathFactors& factors,
           const AttentionInputs& given)
      : in(&streamed), size(block_keys * streamed.dim) {
    const std::int64_t each = streamed.batch * streamed.kv_heads * streamed.blocks;
    blocks.resize(static_cast<std::size_t>(each));
    const std::int64_t bytes = each * (size + square) * static_cast<std::int64_t>(sizeof(T));
    detail::share_out(each, detail::thread_count(given.threads, bytes),
                      [&](std::int64_t begin, std::int64_t end) {
                        Aligned<T> keys(size);
                        for (std::int64_t n = begin; n < end; ++n) {
                          const std::int64_t b = n / in->blocks / in->kv_heads,
                                             first = n % in->blocks * block_keys;
                          visible_keys(n, given, keys.data());
                          blocks[static_cast<std::size_t>(n)].emplace(factors.block<T>(
                              b, n / in->blocks % in->kv_heads, first, in->dim, keys.data(),
                              [&](std::int64_t token) {
                                return detail::kept(given.mask, given.keys, b, token);
                              }));
                        }
                      });
  }
  // The keys of a block, 0 where padding may hold anything: [dim][block_keys].
  void visible_keys(std::int64_t n, const AttentionInputs& given, T* to) const {
    std::copy_n(in->k.data() + n * size, size, to);
    const std::int64_t b = n / in->blocks / in->kv_heads, first = n % in->blocks * block_keys;
    for (std::int64_t j = 0; j < std::min(block_keys, in->keys - first); ++j) {
      if (detail::kept(given.mask, given.keys, b, first + j)) continue;
      for (std::int64_t c = 0; c < in->dim; ++c) to[c * block_keys + j] = 0;
    }
  }
  const detail::PathBlock<T>& operator[](std::int64_t block) const {
    return *blocks[static_cast<std::size_t>(block)];
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

// Queries of a head on their way through blocks of keys, from the last to the first, and the gradients' on the way back.
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
    if (!returns) return;
    found_.resize(static_cast<std::size_t>(keys.in->blocks));
    by_q_ = Aligned<T>(rows * dim_);
    by_next_ = Aligned<T>(rows * dim_);
    by_by_w_ = Aligned<T>(rows * block_keys);
    turned_ = Aligned<T>(std::max({keys.size, dim_ * dim_, square}));
  }

  // scores [row][block_keys]; afterwards the queries stand before the block.
  void products(std::int64_t block, T* scores) {
    score(block, q_.data(), scores);
    const detail::PathBlock<T>& at = of(block);
    if (behind(block)) {
      multiply(q_.data(), dim_, 1, at.across.data(), rows_, dim_, dim_, next_.data());
    } else {
      std::copy_n(q_.data(), rows_ * dim_, next_.data());
      multiply(by_w_.data(), block_keys, 1, at.y.data(), rows_, block_keys, dim_, next_.data(),
               true, at.finite);
    }
    std::swap(q_, next_);
    if (found_.empty()) return;
    found_[static_cast<std::size_t>(block)] = std::move(next_);
    next_ = Aligned<T>(rows_ * dim_);
  }
  void products_again(std::int64_t block, T* scores) {
    score(block, found_[static_cast<std::size_t>(block)].data(), scores);
  }

  // by_key [key][dim]: of the block's keys as they stand; behind products_again.
  void take(std::int64_t block, const T* by_score, T* by_key, const PathSums<T>& to) {
    const detail::PathBlock<T>& at = of(block);
    const T* const q = found_[static_cast<std::size_t>(block)].data();
    const bool finite = detail::finite(q, rows_ * dim_);
    if (behind(block)) {
      detail::transpose(at.across.data(), dim_, dim_, dim_, turned_.data(), dim_);
      multiply(by_q_.data(), dim_, 1, turned_.data(), rows_, dim_, dim_, by_next_.data());
      detail::transpose(at.moved.data(), block_keys, dim_, block_keys, turned_.data(), dim_);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, dim_, by_next_.data(),
               true, detail::finite(turned_.data(), keys_->size));
      multiply(q, 1, dim_, by_q_.data(), dim_, rows_, dim_, to.across, true);
      multiply(by_score, 1, block_keys, q, block_keys, rows_, dim_, to.moved, true, finite);
    } else {
      // by Q Wᵀ, masked as it was
      detail::transpose(at.u.data(), block_keys, block_keys, block_keys, turned_.data(),
                        block_keys);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, block_keys,
               by_by_w_.data(), false, detail::finite(turned_.data(), square));
      detail::transpose(at.y.data(), dim_, block_keys, dim_, turned_.data(), block_keys);
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
      detail::transpose(columns(block), block_keys, dim_, block_keys, turned_.data(), dim_);
      multiply(by_score, block_keys, 1, turned_.data(), rows_, block_keys, dim_, by_next_.data(),
               true, detail::finite(turned_.data(), keys_->size));
    }
    std::swap(by_q_, by_next_);
  }
  // By the queries as they came, once they are back.
  const T* by_queries() const { return by_q_.data(); }

 private:
  const detail::PathBlock<T>& of(std::int64_t block) const {
    return (*keys_)[keys_->in->block(b_, h_, block)];
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
    const detail::PathBlock<T>& at = of(block);
    if (behind(block)) return detail::block_products(q, at.moved.data(), rows_, dim_, scores);
    detail::block_products(q, at.w_columns.data(), rows_, dim_, by_w_.data());
    mask(block, by_w_.data());
    detail::block_products(q, columns(block), rows_, dim_, scores);
    multiply(by_w_.data(), block_keys, 1, at.u.data(), rows_, block_keys, block_keys, scores, true,
             at.finite && detail::finite(at.u.data(), square));
  }

  const PathKeys<T>* keys_;
  std::int64_t b_, h_, rows_, dim_;
  const std::int64_t* own_;
  Aligned<T> q_, next_;            // as they stand, [row][dim]
  Aligned<T> by_w_;                // Q Wᵀ of the block at hand, masked
  std::vector<Aligned<T>> found_;  // the queries that each block met
  Aligned<T> by_q_, by_next_, by_by_w_;
  Aligned<T> turned_;
};

template <class T>
class PathTile {
 public:
  PathTile(PathRows<T> rows, detail::ForgetfulSoftmax<T> softmax)
      : rows_(std::move(rows)), softmax_(softmax) {}
  void products(std::int64_t block, T* scores) { rows_.products(block, scores); }
  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    return softmax_.fold(row, block, scores);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 protected:
  PathRows<T> rows_;
  detail::ForgetfulSoftmax<T> softmax_;
};

template <class T>
class PathGradientTile : public PathTile<T> {
 public:
  // by_key, sums: of the key head's first block.
  PathGradientTile(PathTile<T> tile, std::int64_t count, std::int64_t dim, T* by_q, T* by_key,
                   T* sums)
      : PathTile<T>(std::move(tile)),
        numbers_(count * dim),
        dim_(dim),
        by_q_(by_q),
        by_key_(by_key),
        sums_(sums) {}
  void products_again(std::int64_t block, T* scores) { this->rows_.products_again(block, scores); }
  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    this->softmax_.differentiate(row, block, by_weight, mean, scores, by_score);
  }
  void take(std::int64_t block, const T* by_score) {
    this->rows_.take(block, by_score, by_key_ + block * block_keys * dim_,
                     PathSums<T>(sums_ + block * PathSums<T>::size(dim_), dim_));
  }
  void end() { std::copy_n(this->rows_.by_queries(), numbers_, by_q_); }

 private:
  std::int64_t numbers_, dim_;
  T *by_q_, *by_key_, *sums_;
};

// Where the gradients of what the tokens say go; absent where not wanted.
struct PathWanted {
  Tensor w, beta, gates;
};

template <class T>
class PathGradients {
 public:
  PathGradients(const detail::Streamed<T>& in, detail::StreamedGradients<T>& to,
                const PathArguments& arguments, const AttentionInputs& given, const Plan& plan,
                std::int64_t parts, const PathWanted& wanted)
      : in_(&in),
        to_(&to),
        arguments_(&arguments),
        given_(&given),
        plan_(&plan),
        wanted_(&wanted),
        parts_(parts),
        keys_(in, arguments.factors, given),
        head_(in.blocks * PathSums<T>::size(in.dim)),
        sums_(parts * in.batch * in.kv_heads * head_),
        by_sum_(arguments.gates
                    ? static_cast<std::size_t>(parts * in.batch * in.heads * arguments.sums.row)
                    : 0) {}

  PathGradientTile<T> operator()(const detail::TileOf& at) const {
    auto& mine =
        const_cast<PathGradients&>(*this);  // who adds to a part's sums of a key head is one thread
    double* const by_sum =
        arguments_->gates ? mine.by_sum_.data() + at.share * arguments_->sums.row : nullptr;
    const std::int64_t block = in_->block(at.b, at.h, 0);
    return PathGradientTile<T>(
        PathTile<T>(PathRows<T>(keys_, at.b, at.h, at.first, at.rows,
                                arguments_->own_of(at.b, at.first), true),
                    arguments_->softmax<T>(*given_, *plan_, in_->head_dim, at.b, at.h, at.first,
                                           at.rows, by_sum)),
        at.rows, in_->dim, to_->q.data() + (in_->query(at.b, at.h, at.first) - in_->q.data()),
        to_->k.data() + at.part * to_->key_numbers + block * keys_.size,
        mine.sums_.data() + at.part * part_size() + block * PathSums<T>::size(in_->dim));
  }

  void finish(detail::StreamedGradients<T>& to) {
    const std::int64_t blocks = in_->batch * in_->kv_heads * in_->blocks;
    const std::int64_t bytes =
        blocks * PathSums<T>::size(in_->dim) * static_cast<std::int64_t>(sizeof(T));
    detail::share_out(blocks, detail::thread_count(given_->threads, bytes),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n)
                          block(n, to.k.data() + n * keys_.size);
                      });
    if (!wanted_->gates) return;
    detail::write_gate_gradients(wanted_->gates, arguments_->gates, given_->mask, given_->keys,
                                 by_sum_, parts_,
                                 [&](std::int64_t part, std::int64_t b, std::int64_t h) {
                                   return (part * in_->batch + b) * in_->heads + h;
                                 });
  }

 private:
  std::int64_t part_size() const { return in_->batch * in_->kv_heads * head_; }

  // Back through PathBlock's constructor; by_key [block_keys][dim] is added to.
  void block(std::int64_t n, T* by_key) {
    const detail::PathBlock<T>& at = keys_[n];
    const std::int64_t dim = in_->dim, size = keys_.size, each = PathSums<T>::size(dim);
    T* const sums = sums_.data() + n * each;
    for (std::int64_t part = 1; part < parts_; ++part)
      for (std::int64_t e = 0; e < each; ++e)
        sums[e] += sums_.data()[part * part_size() + n * each + e];
    const PathSums<T> by(sums, dim);
    Aligned<T> keys(size), rows(size), turned(std::max({size, square, dim * dim})), by_t(square),
        by_products(square), other(square), third(square), u(square);
    std::copy_n(at.u.data(), square, u.data());
    keys_.visible_keys(n, *given_, keys.data());
    forget_unseen(by, keys.data(), u.data());
    detail::transpose(keys.data(), block_keys, dim, block_keys, rows.data(), dim);
    const auto transposed = [&](const T* x, std::int64_t of_rows, std::int64_t of_columns) {
      detail::transpose(x, of_columns, of_rows, of_columns, turned.data(), of_rows);
      return turned.data();
    };
    // moved = keys + Wᵀ u
    for (std::int64_t e = 0; e < size; ++e) by_key[e] += by.moved[e];
    multiply(at.w.data(), dim, 1, transposed(by.moved, block_keys, dim), block_keys, dim,
             block_keys, by.u, true);
    multiply(u.data(), block_keys, 1, by.moved, block_keys, block_keys, dim, by.w, true);
    // across = I + Wᵀ y
    multiply(at.y.data(), dim, 1, transposed(by.across, dim, dim), block_keys, dim, dim, by.w,
             true);
    multiply(at.w.data(), dim, 1, by.across, block_keys, dim, dim, by.y, true);
    // u = −T M, M below the diagonal of W Kᵀ; y = −T W. What follows is by −T.
    at.keys_by_w(keys.data(), dim, other.data());
    multiply(by.u, block_keys, 1, transposed(other.data(), block_keys, block_keys), block_keys,
             block_keys, block_keys, by_t.data());
    multiply(by.y, dim, 1, at.w_columns.data(), block_keys, dim, block_keys, by_t.data(), true);
    detail::keep_lower(by_t.data(), false);
    multiply(at.minus_t.data(), 1, block_keys, by.u, block_keys, block_keys, block_keys,
             by_products.data());
    detail::keep_lower(by_products.data(), true);
    multiply(at.minus_t.data(), 1, block_keys, by.y, block_keys, block_keys, dim, by.w, true);
    multiply(by_products.data(), block_keys, 1, rows.data(), block_keys, block_keys, dim, by.w,
             true);
    multiply(by_products.data(), 1, block_keys, at.w.data(), block_keys, block_keys, dim, by_key,
             true);
    if (!wanted_->w && !wanted_->beta) return;
    for (std::int64_t e = 0; e < square; ++e) by_t.data()[e] = -by_t.data()[e];  // by T
    strengths(n, at, by_t.data(), other.data(), third.data());
    // T⁻¹ = B⁻¹ + N, so ∂N is −Tᵀ ∂T Tᵀ below the diagonal.
    multiply(at.minus_t.data(), 1, block_keys, by_t.data(), block_keys, block_keys, block_keys,
             other.data());
    multiply(other.data(), block_keys, 1, transposed(at.minus_t.data(), block_keys, block_keys),
             block_keys, block_keys, block_keys, by_products.data());
    detail::keep_lower(by_products.data(), true);
    for (std::int64_t e = 0; e < square; ++e) by_products.data()[e] = -by_products.data()[e];
    multiply(by_products.data(), block_keys, 1, at.w.data(), block_keys, block_keys, dim, by.w,
             true);
    multiply(by_products.data(), 1, block_keys, at.w.data(), block_keys, block_keys, dim, by.w,
             true);
    write(n, wanted_->w, [&](const Tensor& to, std::int64_t offset, std::int64_t j) {
      for (std::int64_t c = 0; c < in_->head_dim; ++c)
        to.set(offset + c * to.stride[3], static_cast<double>(by.w[j * dim + c]));
    });
  }

  // Keys that nobody has seen may hold anything.
  void forget_unseen(const PathSums<T>& by, T* keys, T* u) const {
    const std::int64_t dim = in_->dim;
    if (detail::finite(keys, keys_.size)) return;
    for (std::int64_t j = 0; j < block_keys; ++j) {
      bool seen =
          std::any_of(by.moved + j * dim, by.moved + (j + 1) * dim, [](T x) { return x != 0; });
      for (std::int64_t l = 0; l < block_keys; ++l) seen |= by.u[l * block_keys + j] != 0;
      if (seen) continue;
      for (std::int64_t c = 0; c < dim; ++c) keys[c * block_keys + j] = 0;
      for (std::int64_t l = 0; l < block_keys; ++l) u[l * block_keys + j] = 0;
    }
  }

  // ∂β_l = Σ_ab X_al ∂T_ab X′_lb, X = (I + B N)⁻¹ = I − T N and X′ = (I + N B)⁻¹ = I − N T.
  void strengths(std::int64_t n, const detail::PathBlock<T>& at, const T* by_t, T* x, T* products) {
    if (!wanted_->beta) return;
    const std::int64_t dim = in_->dim;
    Aligned<T> below(square), turned(square);
    detail::block_products(at.w.data(), at.w_columns.data(), block_keys, dim, below.data());
    detail::keep_lower(below.data(), true);
    multiply(below.data(), block_keys, 1, at.minus_t.data(), block_keys, block_keys, block_keys, x);
    for (std::int64_t l = 0; l < block_keys; ++l) x[l * block_keys + l] += 1;
    detail::transpose(x, block_keys, block_keys, block_keys, turned.data(), block_keys);
    multiply(by_t, block_keys, 1, turned.data(), block_keys, block_keys, block_keys, products);
    multiply(at.minus_t.data(), block_keys, 1, below.data(), block_keys, block_keys, block_keys, x);
    for (std::int64_t l = 0; l < block_keys; ++l) x[l * block_keys + l] += 1;
    double sum[block_keys] = {};
    for (std::int64_t a = 0; a < block_keys; ++a)
      for (std::int64_t l = 0; l <= a; ++l)
        sum[l] += static_cast<double>(x[a * block_keys + l]) *
                  static_cast<double>(products[a * block_keys + l]);
    write(n, wanted_->beta,
          [&](const Tensor& to, std::int64_t offset, std::int64_t j) { to.set(offset, sum[j]); });
  }

  // put(to, offset of a token, its place in block n); zeros for padding.
  void write(std::int64_t n, const Tensor& to, const auto& put) const {
    if (!to) return;
    const std::int64_t b = n / in_->blocks / in_->kv_heads, h = n / in_->blocks % in_->kv_heads,
                       first = n % in_->blocks * block_keys;
    for (std::int64_t j = 0; j < std::min(block_keys, in_->keys - first); ++j)
      put(to, to.offset(b, h, first + j), j);
  }

  const detail::Streamed<T>* in_;
  detail::StreamedGradients<T>* to_;
  const PathArguments* arguments_;
  const AttentionInputs* given_;
  const Plan* plan_;
  const PathWanted* wanted_;
  std::int64_t parts_;
  PathKeys<T> keys_;
  std::int64_t head_;           // sums of a key head
  Aligned<T> sums_;             // [part][batch][kv_heads][block][PathSums]
  std::vector<double> by_sum_;  // [share][row of GateSums]
};

}  // namespace

Expected<void> Path::attend(const AttentionInputs& in, const Plan& plan, const Tensor& out) const {
  constexpr std::string_view where = "attend";
  POSENC_TRY(checked, detail::attend_arguments(where, in, plan, out));
  POSENC_CHECK(detail::check_plain(where, plan));
  POSENC_TRY(arguments, PathArguments::of(where, *this, checked, in));
  return detail::with_compute_type(in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    POSENC_TRY(streamed,
               detail::Streamed<T>::of(checked, plan, in.queries, in.keys, false, in.threads));
    const PathKeys<T> keys(streamed, arguments.factors, in);
    const detail::MaskWords seen(in.mask, in.queries, in.keys, checked.q.shape[0]);
    detail::stream(streamed, seen, in.threads,
                   [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
                     return PathTile<T>(
                         PathRows<T>(keys, b, h, first, rows, arguments.own_of(b, first)),
                         arguments.softmax<T>(in, plan, streamed.head_dim, b, h, first, rows));
                   });
    return streamed.write(plan, in.queries, checked.out, in.threads);
  });
}

Expected<void> Path::attend_reference(const AttentionInputs& in, const Plan& plan,
                                      const Tensor& out, const Tensor& logits,
                                      const Tensor& weights) const {
  constexpr std::string_view where = "attend";
  POSENC_TRY(checked, detail::attend_arguments(where, in, plan, out, logits));
  POSENC_CHECK(detail::check_plain(where, plan));
  POSENC_TRY(arguments, PathArguments::of(where, *this, checked, in));
  const std::int64_t dim = checked.q.shape[3],
                     group = checked.q.shape[1] == 0 ? 1 : checked.group();
  const auto along = [&](const detail::ReferenceRow& row) {
    std::vector<double> q(row.rotated_q, row.rotated_q + dim), w(q.size());
    double forgotten = 0;
    for (std::int64_t j = *arguments.own_of(row.sequence, row.query); j >= 0; --j) {
      double& logit = row.logits[static_cast<std::size_t>(j)];
      if (logit != -std::numeric_limits<double>::infinity()) {
        double sum = 0;
        for (std::int64_t c = 0; c < dim; ++c)
          sum += q[static_cast<std::size_t>(c)] * row.rotated_keys[j * dim + c];
        logit = gates_before_scale ? (sum + forgotten) * row.scale : sum * row.scale + forgotten;
      }
      if (!detail::kept(in.mask, in.keys, row.sequence, j)) continue;
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
  return detail::attend_by_rows(checked, plan, {.change = along, .weights = weights});
}

Expected<void> Path::attend_backward(const AttentionInputs& in, const Plan& plan,
                                     const Tensor& out_gradient,
                                     const ContentGradients& gradients) const {
  constexpr std::string_view where = "attend_backward";
  POSENC_TRY(checked, detail::backward_arguments(where, in, plan, out_gradient, gradients));
  POSENC_TRY(arguments, PathArguments::of(where, *this, checked.in, in));
  POSENC_TRY(by_w,
             detail::gradient_like(where, "the gradient of w", gradients.w, arguments.factors.w));
  POSENC_TRY(by_beta, detail::gradient_like(where, "the gradient of beta", gradients.beta,
                                            arguments.factors.beta));
  POSENC_TRY(gates, detail::optional_gate_gradient(where, gradients.log_gates, arguments.gates));
  const PathWanted wanted{.w = by_w, .beta = by_beta, .gates = gates};
  const detail::MaskWords seen(in.mask, in.queries, in.keys, checked.in.q.shape[0]);
  return detail::with_compute_type(in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    const auto bind = [&](const detail::Streamed<T>& streamed, detail::StreamedGradients<T>& to) {
      return PathGradients<T>(streamed, to, arguments, in, plan, checked.parts, wanted);
    };
    return detail::stream_backward<T>(checked, plan, in.queries, in.keys, seen, false, in.threads,
                                      bind);
  });
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
