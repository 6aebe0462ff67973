// The gradients of PaTH attention: back along the blocks, each block's queries as they met it being
// kept, and from a block's sums through T to w and β.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "src/content/path_rows.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::BackwardCall;
using detail::block_keys;
using detail::multiply;
using detail::PathArguments;
using detail::PathKeys;
using detail::PathRows;
using detail::PathSums;
using detail::PathTile;
using detail::square;

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
                const PathArguments& arguments, const BackwardCall& call, const PathWanted& wanted)
      : in_(&in),
        to_(&to),
        arguments_(&arguments),
        call_(&call),
        wanted_(&wanted),
        parts_(call.backward.parts),
        keys_(in, arguments.factors, call),
        head_(in.blocks * PathSums<T>::size(in.dim)),
        sums_(parts_ * in.batch * in.kv_heads * head_),
        by_gates_(arguments.gates
                      ? static_cast<std::size_t>(parts_ * in.batch * in.heads * gate_numbers())
                      : 0) {}

  PathGradientTile<T> operator()(const detail::TileOf& at) const {
    auto& mine =
        const_cast<PathGradients&>(*this);  // who adds to a part's sums of a key head is one thread
    double* const by_gates =
        arguments_->gates ? mine.by_gates_.data() + at.share * gate_numbers() : nullptr;
    const std::int64_t block = in_->block(at.b, at.h, 0);
    return PathGradientTile<T>(
        PathTile<T>(PathRows<T>(keys_, at.b, at.h, at.first, at.rows,
                                arguments_->own_of(at.b, at.first), true),
                    arguments_->softmax<T>(*call_, at.b, at.h, at.first, at.rows, by_gates)),
        at.rows, in_->dim, to_->q.data() + (in_->query(at.b, at.h, at.first) - in_->q.data()),
        to_->k.data() + at.part * to_->key_numbers + block * keys_.size,
        mine.sums_.data() + at.part * part_size() + block * PathSums<T>::size(in_->dim));
  }

  void finish(detail::StreamedGradients<T>& to) {
    const std::int64_t blocks = in_->batch * in_->kv_heads * in_->blocks;
    const std::int64_t bytes =
        blocks * PathSums<T>::size(in_->dim) * static_cast<std::int64_t>(sizeof(T));
    detail::share_out(blocks, detail::thread_count(call_->in.threads, bytes),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n)
                          block(n, to.k.data() + n * keys_.size);
                      });
    if (!wanted_->gates) return;
    detail::write_gate_gradients(*call_, wanted_->gates, arguments_->gates, by_gates_,
                                 [&](std::int64_t part, std::int64_t b, std::int64_t h) {
                                   return (part * in_->batch + b) * in_->heads + h;
                                 });
  }

 private:
  std::int64_t gate_numbers() const { return detail::GateGradients::size(arguments_->sums.row); }
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
    keys_.visible_keys(n, *call_, keys.data());
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
  const BackwardCall* call_;
  const PathWanted* wanted_;
  std::int64_t parts_;
  PathKeys<T> keys_;
  std::int64_t head_;             // sums of a key head
  Aligned<T> sums_;               // [part][batch][kv_heads][block][PathSums]
  std::vector<double> by_gates_;  // [share][gate_numbers()]
};

}  // namespace

Expected<void> detail::backward_with(const Path& path, const BackwardCall& call) {
  POSENC_TRY(arguments, PathArguments::of(path, call));
  POSENC_TRY(by_w,
             gradient_like(call.where, "the gradient of w", call.gradients.w, arguments.factors.w));
  POSENC_TRY(by_beta, gradient_like(call.where, "the gradient of beta", call.gradients.beta,
                                    arguments.factors.beta));
  POSENC_TRY(gates, optional_gate_gradient(call, arguments.gates));
  const PathWanted wanted{.w = by_w, .beta = by_beta, .gates = gates};
  return stream_backward(call, MaskWords(call), false,
                         [&]<class T>(const Streamed<T>& streamed, StreamedGradients<T>& to) {
                           return PathGradients<T>(streamed, to, arguments, call, wanted);
                         });
}

}  // namespace posenc
