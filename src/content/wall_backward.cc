// The gradients of Wall attention: by queries and keys along the way of the products, by gates as
// what follows from both.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "src/content/wall.h"

namespace posenc {
namespace {

using detail::Aligned;
using detail::BackwardCall;
using detail::block_keys;
using detail::GatedKeys;
using detail::query_tile;
using detail::WallGates;
using detail::WallRows;

// With S the gradient by a logit and P_l the sum of a channel's gates up to l, of which the query
// has +, the key −:
//   ∂q_ic = Σ_j S_ij k_jc e^G,   ∂k_jc = Σ_i S_ij q_ic e^G,   ∂P_ic = q_ic ∂q_ic,   ∂P_jc = −k_jc
//                                ∂k_jc
template <class T>
class WallGradientTile : public detail::ForgetfulSoftmax<T> {
 public:
  WallGradientTile(const GatedKeys<T>& keys, const WallGates& gates, const detail::TileOf& at,
                   T* by_q, T* by_gated, T* by_key, double* by_gates)
      : detail::ForgetfulSoftmax<T>(gates.scalar_sums(), at.b, at.h, at.rows,
                                    gates.own_of(at.b, at.first), by_gates),
        by_q_(by_q),
        by_gated_(by_gated),
        by_key_(by_key),
        dim_(keys.dim) {
    for (std::int64_t r = 0; r < at.rows; r += query_tile)
      rows_.emplace_back(keys, at.b, at.h, at.first + r, std::min(query_tile, at.rows - r),
                         gates.own_of(at.b, at.first + r), true);
  }

  void products(std::int64_t block, T* scores) {
    for (std::size_t n = 0; n < rows_.size(); ++n)
      rows_[n].products(block, scores + row_of(n) * block_keys);
  }
  void products_again(std::int64_t block, T* scores) {
    for (std::size_t n = 0; n < rows_.size(); ++n)
      rows_[n].products_again(block, scores + row_of(n) * block_keys);
  }
  void take(std::int64_t block, const T* by_score) {
    for (std::size_t n = 0; n < rows_.size(); ++n)
      rows_[n].take(block, by_score + row_of(n) * block_keys, by_q_ + row_of(n) * dim_, by_gated_,
                    by_key_);
  }

 private:
  static std::int64_t row_of(std::size_t n) { return static_cast<std::int64_t>(n) * query_tile; }

  std::vector<WallRows<T>> rows_;
  T *by_q_, *by_gated_, *by_key_;
  std::int64_t dim_;
};

// Where gates are to get their gradients; absent where not wanted.
struct WallWanted {
  Tensor channels, scalar;
};

template <class T>
class WallGradients {
 public:
  WallGradients(const detail::Streamed<T>& in, detail::StreamedGradients<T>& to,
                const WallGates& gates, const BackwardCall& call, const WallWanted& wanted)
      : in_(&in),
        to_(&to),
        gates_(&gates),
        call_(&call),
        wanted_(&wanted),
        parts_(call.backward.parts),
        keys_(in, gates, call),
        head_(in.blocks * keys_.size),
        by_gated_(parts_ * in.batch * in.heads * head_),
        by_key_(parts_ * in.batch * in.heads * head_),
        by_gates_(gates.scalar
                      ? static_cast<std::size_t>(parts_ * in.batch * in.heads * gate_numbers())
                      : 0) {}

  WallGradientTile<T> operator()(const detail::TileOf& at) const {
    // Who adds to a share is one thread.
    auto& mine = const_cast<WallGradients&>(*this);
    return WallGradientTile<T>(
        keys_, *gates_, at, to_->q.data() + (in_->query(at.b, at.h, at.first) - in_->q.data()),
        mine.by_gated_.data() + at.share * head_, mine.by_key_.data() + at.share * head_,
        gates_->scalar ? mine.by_gates_.data() + at.share * gate_numbers() : nullptr);
  }

  // From gated keys to keys, and from both to gates.
  void finish(detail::StreamedGradients<T>& to) {
    const std::int64_t heads = in_->batch * in_->kv_heads,
                       group = heads == 0 ? 0 : in_->heads / in_->kv_heads;
    detail::share_out(heads,
                      detail::thread_count(call_->in.threads,
                                           heads * head_ * static_cast<std::int64_t>(sizeof(T))),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n)
                          for (std::int64_t g = 0; g < group; ++g)
                            head(n / in_->kv_heads, n % in_->kv_heads * group + g,
                                 to.k.data() + n * head_);
                      });
    if (wanted_->scalar)
      detail::write_gate_gradients(*call_, wanted_->scalar, gates_->scalar, by_gates_,
                                   [&](std::int64_t part, std::int64_t b, std::int64_t h) {
                                     return (part * in_->batch + b) * in_->heads + h;
                                   });
  }

 private:
  std::int64_t gate_numbers() const { return detail::GateGradients::size(gates_->sums.row); }

  void head(std::int64_t b, std::int64_t h, T* to) {
    const std::int64_t dim = in_->dim, share = (b * in_->heads + h) * head_,
                       next = in_->batch * in_->heads * head_;
    Aligned<T> after(keys_.size), rows(keys_.size);
    std::vector<double> sum(static_cast<std::size_t>(dim));
    std::vector<double> by_prefix(static_cast<std::size_t>(wanted_->channels ? head_ : 0));
    for (std::int64_t block = 0; block < in_->blocks; ++block) {
      keys_.after(keys_.gates_of(keys_.block(b, h, block)), block_keys - 1, after.data(),
                  sum.data());
      detail::transpose(in_->k.data() + in_->block(b, h, block) * keys_.size, block_keys, dim,
                        block_keys, rows.data(), dim);
      for (std::int64_t e = 0; e < keys_.size; ++e) {
        T by = 0;
        for (std::int64_t part = 0; part < parts_; ++part) {
          const std::int64_t at = part * next + share + block * keys_.size + e;
          by += by_gated_.data()[at] * after.data()[e] + by_key_.data()[at];
        }
        to[block * keys_.size + e] += by;
        // A hidden key may hold anything.
        if (wanted_->channels && by != 0)
          by_prefix[static_cast<std::size_t>(block * keys_.size + e)] =
              -static_cast<double>(by) * static_cast<double>(rows.data()[e]);
      }
    }
    if (!wanted_->channels) return;
    for (std::int64_t i = 0; i < in_->queries; ++i) {
      const std::int64_t own = *gates_->own_of(b, i);
      if (own < 0) continue;
      const T* const q = in_->query(b, h, i);
      const T* const by = to_->q.data() + (q - in_->q.data());
      for (std::int64_t c = 0; c < dim; ++c)
        by_prefix[static_cast<std::size_t>(own * dim + c)] +=
            static_cast<double>(q[c]) * static_cast<double>(by[c]);
    }
    // A gate is in the sums of its own key and of all behind it. Of one that lets nothing through
    // they come to nothing.
    constexpr double closed = sizeof(T) == sizeof(double) ? -746 : -104;  // e^ of it is 0
    std::ranges::fill(sum, 0.0);
    for (std::int64_t j = in_->keys - 1; j >= 0; --j) {
      const bool kept = call_->keeps(b, j);
      for (std::int64_t c = 0; c < in_->head_dim; ++c) {
        double& gradient = sum[static_cast<std::size_t>(c)];
        gradient += by_prefix[static_cast<std::size_t>(j * dim + c)];
        const double gate = gates_->channels.get(gates_->channels.offset(b, h, j, c));
        if (kept && gate < closed) gradient = 0;
        const bool learns = kept && std::isfinite(gate);
        wanted_->channels.set(wanted_->channels.offset(b, h, j, c), learns ? gradient : 0);
      }
    }
  }

  const detail::Streamed<T>* in_;
  detail::StreamedGradients<T>* to_;
  const WallGates* gates_;
  const BackwardCall* call_;
  const WallWanted* wanted_;
  std::int64_t parts_;
  GatedKeys<T> keys_;
  std::int64_t head_;             // numbers of a head's keys
  Aligned<T> by_gated_, by_key_;  // [share][block][block_keys][dim]
  std::vector<double> by_gates_;  // [share][gate_numbers()]
};

}  // namespace

Expected<void> detail::backward_with(const Wall& wall, const BackwardCall& call) {
  POSENC_TRY(gates, WallGates::of(wall, call));
  POSENC_TRY(channels, gradient_like(call.where, "the gradient of the channel gates",
                                     call.gradients.channel_gates, gates.channels));
  POSENC_TRY(scalar, optional_gate_gradient(call, gates.scalar));
  const WallWanted wanted{.channels = channels, .scalar = scalar};
  return stream_backward(call, MaskWords(call), false,
                         [&]<class T>(const Streamed<T>& streamed, StreamedGradients<T>& to) {
                           return WallGradients<T>(streamed, to, gates, call, wanted);
                         });
}

}  // namespace posenc
