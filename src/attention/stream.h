// The loop that schemes with a position term of their own share: a tile of queries meets the keys block
// by block, from the last to the first, and the scheme turns the scores of a block into weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <vector>

#include "posenc/attention.h"
#include "src/attention/arguments.h"
#include "src/attention/blocks.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

constexpr std::int64_t query_tile = 16;  // queries that meet a block of keys together
constexpr std::int64_t most_queries =
    block_keys;  // the same for gradients; a scheme's tile takes both

// Zeros that start on a cache line.
template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::int64_t count)
      : memory_(new (std::align_val_t{64}) T[static_cast<std::size_t>(count)]()) {}
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }

 private:
  struct Delete {
    void operator()(T* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::unique_ptr<T[], Delete> memory_;
};

// Whether the mask keeps a key of a sequence, padding being what it hides.
inline bool kept(const Mask& mask, const Positions& keys, std::int64_t b, std::int64_t j) {
  return mask.keep == nullptr || mask.keep[b * keys.size() + j] != 0;
}

// Which keys of a block a query sees, as bits; the first key of the block is bit 0.
class Seen {
 public:
  // past_only hides a query's own key too, and whatever stands where the query stands.
  Seen(const Mask& mask, const Positions& queries, const Positions& keys, std::int64_t batch,
       bool past_only = false);
  std::uint64_t word(std::int64_t b, std::int64_t i, std::int64_t block) const;

 private:
  const Mask* mask_;
  const Positions *queries_, *keys_;
  std::int64_t blocks_;
  bool past_only_, interval_;
  std::vector<std::uint64_t> kept_;  // [batch or 1][block]
};

// What the schemes that count keys ask of mask and positions.
Expected<void> check_counted(std::string_view where, const Positions& keys, const Mask& mask,
                             std::int64_t batch);

// [batch][query]: the last key that stands no later than the query and belongs to its sequence; −1:
// none. Several axes: by the order of the tokens. The keys have been checked to stand in order.
std::vector<std::int64_t> own_keys(const Mask& mask, const Positions& queries,
                                   const Positions& keys, std::int64_t batch);

// The plan may rotate and scale, no more.
Expected<void> check_plain(std::string_view where, const Plan& plan);

// The arguments in the number computed with, turned. Rows of head_dim are padded with zeros to `dim`.
template <class T>
struct Streamed {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  std::int64_t head_dim = 0, dim = 0, blocks = 0;
  Aligned<T> q;    // [batch][heads][queries][dim], turned, times the logits' scale; then the output
  Aligned<T> raw;  // the same as it came, for who asks
  Aligned<T> k;    // [batch][kv_heads][block][dim][block_keys], turned
  Aligned<T> v;    // [batch][kv_heads][block][block_keys][dim], turned where the plan turns values
  std::vector<std::uint8_t> finite;  // [batch][kv_heads][block]: the values; else 0 · v is no 0

  static Expected<Streamed> of(const AttendArguments& in, const Plan& plan,
                               const Positions& queries, const Positions& keys, bool with_raw,
                               Threads threads);
  // Rows that the loop has made of q, turned back where the plan turns values, rounded to out.
  Expected<void> write(const Plan& plan, const Positions& positions, const Tensor& out,
                       Threads threads);

  T* query(std::int64_t b, std::int64_t h, std::int64_t i) {
    return q.data() + ((b * heads + h) * queries + i) * dim;
  }
  const T* raw_query(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return raw.data() + ((b * heads + h) * queries + i) * dim;
  }
  // Of which block of k, v and finite a head's key block is.
  std::int64_t block(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return (b * kv_heads + h / (heads / kv_heads)) * blocks + j;
  }
};

extern template struct Streamed<float>;
extern template struct Streamed<double>;

// Rows [rows][dim] as a view [batch, heads, seq, columns] of longer rows.
template <class T>
Tensor padded_view(T* rows, std::int64_t batch, std::int64_t heads, std::int64_t seq,
                   std::int64_t columns, std::int64_t dim) {
  Tensor view = Tensor::dense(rows, {batch, heads, seq, dim});
  view.shape[3] = columns;
  return view;
}

// Rows of a tensor [batch, head, seq, head_dim] as [batch][head][seq_rows][dim], zeros behind them.
template <class T>
Aligned<T> padded_rows(const Tensor& x, std::int64_t seq_rows, std::int64_t dim);
// And back, rounded once.
template <class T>
void store_rows(const T* rows, std::int64_t seq_rows, std::int64_t dim, const Tensor& out);

extern template Aligned<float> padded_rows<float>(const Tensor&, std::int64_t, std::int64_t);
extern template Aligned<double> padded_rows<double>(const Tensor&, std::int64_t, std::int64_t);
extern template void store_rows<float>(const float*, std::int64_t, std::int64_t, const Tensor&);
extern template void store_rows<double>(const double*, std::int64_t, std::int64_t, const Tensor&);

// The running softmax of a tile's rows (Milakov 2018).
template <class T>
class OnlineSoftmax {
 public:
  OnlineSoftmax() {
    std::fill_n(peak_, most_queries, -std::numeric_limits<T>::infinity());
    std::fill_n(sum_, most_queries, 0.0);
  }
  // Scores to e^(score − peak), −∞ where hidden; what older sums are to be multiplied by.
  T fold(std::int64_t row, T* scores) {
    const T peak = std::max(peak_[row], largest(scores));
    const T shift = peak == -std::numeric_limits<T>::infinity() ? T{0} : peak;
    const T shrink = std::exp(peak_[row] - shift);
    sum_[row] =
        sum_[row] * static_cast<double>(shrink) + static_cast<double>(exponentials(scores, shift));
    peak_[row] = peak;
    return shrink;
  }
  // Once all are folded: scores to weights, and by_score, their gradient, given that by the weights and
  // `mean`, the sum of weights times it. A weight of 0 has none.
  void differentiate(std::int64_t row, const T* by_weight, T mean, T* scores, T* by_score) const {
    exponentials(scores, peak_[row] == -std::numeric_limits<T>::infinity() ? T{0} : peak_[row]);
    const T factor = finish(row);
    for (std::int64_t j = 0; j < block_keys; ++j) {
      scores[j] *= factor;
      by_score[j] = scores[j] == 0 ? T{0} : scores[j] * (by_weight[j] - mean);
    }
  }
  // What the sum of weighted values is multiplied by.
  T finish(std::int64_t row) const { return sum_[row] == 0 ? T{0} : static_cast<T>(1 / sum_[row]); }

 private:
  T peak_[most_queries];
  double sum_[most_queries];
};

// A tile of the scheme: made by make(b, h, first, rows), it has
//   T weigh(row, block, seen, scores)   scores of a block, −∞ where hidden, to weights; what the sums
//                                       of later keys are to be multiplied by
//   T finish(row)                       what the sum of weighted values is multiplied by, at the end
// Blocks come from the last to the first; those of which a row sees nothing are left out.
template <class T, class Make>
void stream_tile(Streamed<T>& in, const Seen& seen, std::int64_t b, std::int64_t h,
                 std::int64_t first, const Make& make) {
  const std::int64_t rows = std::min(query_tile, in.queries - first);
  auto tile = make(b, h, first, rows);
  alignas(64) T scores[query_tile * block_keys];
  Aligned<T> sums(rows * in.dim);
  T* const q = in.query(b, h, first);
  for (std::int64_t block = in.blocks - 1; block >= 0; --block) {
    std::uint64_t words[query_tile], any = 0;
    for (std::int64_t r = 0; r < rows; ++r) any |= words[r] = seen.word(b, first + r, block);
    if (any == 0) continue;
    const std::int64_t at = in.block(b, h, block);
    products(q, in.k.data() + at * in.dim * block_keys, rows, in.dim, scores);
    for (std::int64_t r = 0; r < rows; ++r) {
      T* const score = scores + r * block_keys;
      if (words[r] == 0) {
        std::fill_n(score, block_keys, T{0});
        continue;
      }
      for (std::uint64_t hidden = ~words[r]; hidden != 0; hidden &= hidden - 1) {
        score[std::countr_zero(hidden)] = -std::numeric_limits<T>::infinity();
      }
      const T shrink = tile.weigh(r, block, words[r], score);
      if (shrink == 1) continue;
      for (std::int64_t c = 0; c < in.dim; ++c) sums.data()[r * in.dim + c] *= shrink;
    }
    accumulate(scores, in.v.data() + at * block_keys * in.dim,
               in.finite[static_cast<std::size_t>(at)] != 0, rows, in.dim, sums.data());
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const T factor = tile.finish(r);
    for (std::int64_t c = 0; c < in.dim; ++c)
      q[r * in.dim + c] = sums.data()[r * in.dim + c] * factor;
  }
}

template <class T, class Make>
void stream(Streamed<T>& in, const Seen& seen, Threads threads, const Make& make) {
  const std::int64_t tiles = (in.queries + query_tile - 1) / query_tile;
  const std::int64_t tasks = in.batch * in.heads * tiles;
  // A score costs about a row of values; threads are worth it from a few thousand of them on.
  const std::int64_t bytes =
      in.batch * in.heads * in.queries * in.keys * static_cast<std::int64_t>(sizeof(T));
  share_out(tasks, thread_count(threads, bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      // Tiles from both ends in turns: under a causal mask the first have less to do than the last.
      const std::int64_t turn = task % tiles;
      const std::int64_t tile = turn % 2 == 0 ? turn / 2 : tiles - 1 - turn / 2;
      stream_tile(in, seen, task / tiles / in.heads, task / tiles % in.heads, tile * query_tile,
                  make);
    }
  });
}

// Calls act with a null pointer to what tensors of the dtype are computed in.
template <class Act>
Expected<void> with_compute_type(DType dtype, const Act& act) {
  return dtype == DType::f64 ? act(static_cast<double*>(nullptr))
                             : act(static_cast<float*>(nullptr));
}

}  // namespace posenc::detail
