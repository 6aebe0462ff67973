// The loop that schemes with a position term of their own share: a tile of queries meets the keys
// block by block, from the last to the first, and the scheme turns the scores of a block into
// weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/attention/fused.h"
#include "src/attention/head_rows.h"
#include "src/attention/softmax.h"
#include "src/content/verbs.h"
#include "src/core/try.h"
#include "src/kernels/gemm.h"
#include "src/kernels/rows.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

constexpr std::int64_t query_tile = 16;  // queries that meet a block of keys together
constexpr std::int64_t most_queries =
    block_keys;  // the same for gradients; a scheme's tile takes both

// c [rows][columns] = a · b, dense but for what the strides of a say.
template <class T>
void multiply(const T* a, std::int64_t a_row, std::int64_t a_step, const T* b, std::int64_t rows,
              std::int64_t depth, std::int64_t columns, T* c, bool adds = false,
              bool finite = true) {
  gemm(Gemm<T>{.c = c,
               .c_step = columns,
               .rows = rows,
               .columns = columns,
               .a = a,
               .a_row = a_row,
               .a_step = a_step,
               .b = b,
               .b_step = columns,
               .depth = depth,
               .adds = adds,
               .skips_zeros = !finite});
}

// scores[row][key] = q[row]·k[key], q [rows][dim] and keys transposed, kt [dim][block_keys].
template <class T>
void block_products(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) {
  multiply(q, dim, 1, kt, rows, dim, block_keys, scores);
}

// out[row] += Σ_key weights[row][key] v[key], v [block_keys][dim], out [rows][dim]. Where v is not
// all finite a weight of 0 adds nothing still.
template <class T>
void accumulate(const T* weights, const T* v, bool finite, std::int64_t rows, std::int64_t dim,
                T* out) {
  multiply(weights, block_keys, 1, v, rows, block_keys, dim, out, true, finite);
}

// Which keys of a block a query sees, as bits; the first key of the block is bit 0.
class MaskWords {
 public:
  // past_only hides a query's own key too, and whatever stands where the query stands.
  explicit MaskWords(const ContentCall& call, bool past_only = false);
  std::uint64_t word(std::int64_t b, std::int64_t i, std::int64_t block) const;

 private:
  const Mask* mask_;
  const Positions *queries_, *keys_;
  std::int64_t blocks_;
  bool past_only_, interval_;
  std::vector<std::uint64_t> kept_;  // [batch or 1][block]
};

// What the schemes that count keys ask of mask and positions.
Expected<void> check_counted(const ContentCall& call);

// [batch][query]: the last key that stands no later than the query and belongs to its sequence; −1:
// none. Several axes: by the order of the tokens. The keys have been checked to stand in order.
std::vector<std::int64_t> own_keys(const ContentCall& call);

// Which tokens stand at a key that some query sees, or behind one up to that query's own key: what
// a scheme sums up between the two is theirs. What the others say is of no effect, and may be
// anything. Found out when it is first asked for.
class TokensInReach {
 public:
  explicit TokensInReach(const ContentCall& call) : call_(&call) {}
  bool has(std::int64_t b, std::int64_t j);

 private:
  void find();

  const ContentCall* call_;
  std::vector<std::uint8_t> in_reach_;  // [batch][key]; empty: not yet asked
};

// The arguments in the number computed with, rotated. Rows of head_dim and value_dim are padded
// with zeros to `dim` and `v_step`.
template <class T>
struct Streamed {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  std::int64_t head_dim = 0, value_dim = 0, dim = 0, v_step = 0, blocks = 0;
  Aligned<T> q;    // [batch][heads][queries][dim], rotated, times the logits' scale
  Aligned<T> raw;  // the same as it came, for callers that ask
  Aligned<T> k;    // [batch][kv_heads][block][dim][block_keys], rotated
  Aligned<T>
      v;  // [batch][kv_heads][block][block_keys][v_step], rotated where the plan rotates values
  Aligned<T> outputs;                // [batch][heads][queries][v_step], to be made
  std::vector<std::uint8_t> finite;  // [batch][kv_heads][block]: the values; else 0 · v is no 0

  static Expected<Streamed> of(const ContentCall& call, bool with_raw);
  // Rows that the loop has made, rotated back where the plan rotates values, rounded to out.
  Expected<void> write(const ContentCall& call);

  const T* query(std::int64_t b, std::int64_t h, std::int64_t i) const {
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

// The running softmax of a tile's rows.
template <class T>
class OnlineSoftmax {
 public:
  // Scores to e^(score − row_max), −∞ where hidden; what older sums are to be multiplied by.
  T fold(std::int64_t row, T* scores) { return fold_word(scores, rows_[row]); }
  // Once all are folded: scores to weights, and by_score, their gradient, given that by the weights
  // and `mean`, the sum of weights times it. A weight of 0 has none.
  void differentiate(std::int64_t row, const T* by_weight, T mean, T* scores, T* by_score) const {
    const T row_max = rows_[row].row_max;
    exponentials(scores, row_max == -std::numeric_limits<T>::infinity() ? T{0} : row_max);
    const T factor = finish(row);
    for (std::int64_t j = 0; j < block_keys; ++j) {
      scores[j] *= factor;
      by_score[j] = scores[j] == 0 ? T{0} : scores[j] * (by_weight[j] - mean);
    }
  }
  // What the sum of weighted values is multiplied by.
  T finish(std::int64_t row) const {
    const double sum = rows_[row].sum();
    return sum == 0 ? T{0} : static_cast<T>(1 / sum);
  }

 private:
  SoftmaxOfWords<T> rows_[most_queries];
};

// A tile of the scheme: made by make(b, h, first, rows), it has
//   T weigh(row, block, seen, scores)   scores of a block, −∞ where hidden, to weights; what the
//                                       sums of later keys are to be multiplied by
//   T finish(row)                       what the sum of weighted values is multiplied by, at the
//                                       end
// and, if its scores are no products of q and k,
//   void products(block, scores)        the scores of all rows, whatever is hidden
// Blocks come from the last to the first; those of which no row sees anything are left out. Where
// the mask is what check_counted takes, they are behind a row's own key, before all that it sees,
// or hidden by Mask::keep.
template <class T, class Make>
void stream_tile(Streamed<T>& in, const MaskWords& seen, std::int64_t b, std::int64_t h,
                 std::int64_t first, const Make& make) {
  const std::int64_t rows = std::min(query_tile, in.queries - first);
  auto tile = make(b, h, first, rows);
  alignas(64) T scores[query_tile * block_keys];
  T* const sums = in.outputs.data() + ((b * in.heads + h) * in.queries + first) * in.v_step;
  const T* const q = in.query(b, h, first);
  for (std::int64_t block = in.blocks - 1; block >= 0; --block) {
    std::uint64_t words[query_tile], any = 0;
    for (std::int64_t r = 0; r < rows; ++r) any |= words[r] = seen.word(b, first + r, block);
    if (any == 0) continue;
    const std::int64_t at = in.block(b, h, block);
    if constexpr (requires { tile.products(block, scores); }) {
      tile.products(block, scores);
    } else {
      block_products(q, in.k.data() + at * in.dim * block_keys, rows, in.dim, scores);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      T* const score = scores + r * block_keys;
      if (words[r] == 0) {
        std::fill_n(score, block_keys, T{0});
        continue;
      }
      for (std::uint64_t hidden = ~words[r]; hidden != 0; hidden &= hidden - 1) {
        score[std::countr_zero(hidden)] = -std::numeric_limits<T>::infinity();
      }
      const T correction = tile.weigh(r, block, words[r], score);
      if (correction != 1) scale_row(sums + r * in.v_step, in.v_step, correction);
    }
    accumulate(scores, in.v.data() + at * block_keys * in.v_step,
               in.finite[static_cast<std::size_t>(at)] != 0, rows, in.v_step, sums);
  }
  for (std::int64_t r = 0; r < rows; ++r)
    scale_row(sums + r * in.v_step, in.v_step, tile.finish(r));
}

template <class T, class Make>
void stream_tiles(Streamed<T>& in, const MaskWords& seen, Threads threads, const Make& make) {
  const std::int64_t tiles = (in.queries + query_tile - 1) / query_tile;
  const std::int64_t tasks = in.batch * in.heads * tiles;
  // A score costs about a row of values; threads are worth it from a few thousand of them on.
  const std::int64_t bytes =
      in.batch * in.heads * in.queries * in.keys * static_cast<std::int64_t>(sizeof(T));
  share_out(tasks, thread_count(threads, bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      // Tiles alternately from both ends: under a causal mask the first have less to do than the
      // last.
      const std::int64_t order = task % tiles;
      const std::int64_t tile = order % 2 == 0 ? order / 2 : tiles - 1 - order / 2;
      stream_tile(in, seen, task / tiles / in.heads, task / tiles % in.heads, tile * query_tile,
                  make);
    }
  });
}

// The attention of a scheme; bind(streamed) gives `make`.
// Errors: an axis or a length that the plan does not cover.
template <class Bind>
Expected<void> stream(const ContentCall& call, const MaskWords& seen, bool with_raw,
                      const Bind& bind) {
  return with_compute_type(call.in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    POSENC_TRY(streamed, Streamed<T>::of(call, with_raw));
    stream_tiles(streamed, seen, call.in.threads, bind(streamed));
    return streamed.write(call);
  });
}

}  // namespace posenc::detail
