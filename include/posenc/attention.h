// Attention that hosts every scheme.
#pragma once

#include <cstdint>
#include <functional>

#include "posenc/apply.h"

namespace [[gnu::visibility("default")]] posenc {

// Which keys a query sees. Six queries (rows) of six keys (columns), all at positions 0 to 5:
//
//   causal    window 3   window 3,      chunk 3    chunk 3,       chunk 4,       window 2, prefix 1
//                        not causal                not causal     prefix 2       not causal
//   #.....    #.....     ###...         #.....     ###...         ##....         ##....
//   ##....    ##....     ####..         ##....     ###...         ##....         ###...
//   ###...    ###...     #####.         ###...     ###...         ###...         ####..
//   ####..    .###..     .#####         ...#..     ...###         ####..         #.###.
//   #####.    ..###.     ..####         ...##.     ...###         ##..#.         #..###
//   ######    ...###     ...###         ...###     ...###         ##..##         #...##
//
// A key is seen where causal, window and chunk all let it be, or where it belongs to the prefix
// or to the query's own block, which overrule these three; `keep`, `keys` and the bounds of
// packed sequences overrule both. Causal, window, chunk and prefix compare positions, wherever
// in memory a token stands and however many queries there are. Padding counts by the position
// that it has, -1 of from_mask() as one that is in no prefix and in no token's chunk: `keep` is
// what hides it. With positions of several axes (pictures among text) order stands for position:
// keys count from 0, and the last query stands at the last key.
struct Mask {
  bool causal = true;       // hides keys behind the query
  std::int64_t window = 0;  // 0: none; w: hides keys that are w or more away
  std::int64_t chunk = 0;   // 0: none; c: hides keys with another ⌊position / c⌋ (Llama 4)
  std::int64_t prefix = 0;  // keys at positions 0 to prefix - 1 are seen by all (prefix LM)
  // [batch][key], zero hides a key (padding); null: none hidden
  const std::uint8_t* keep = nullptr;
  // [batch][key], the block of each token, such as the picture that it is of (Gemma 3 and 4); below
  // 0: none. Tokens of a block see each other both ways. Queries are the last of the keys. Null: no
  // blocks.
  //   causal, blocks −1 0 0 0 −1 −1: #..... ####.. ####.. ####.. #####. ######
  const std::int32_t* blocks = nullptr;
  // [batch][query], those of the queries, where these are not the last of the keys. Null: they are.
  const std::int32_t* query_blocks = nullptr;
  // [batch][query][key_count], ids of the keys that each query may see, as an indexer (2512.02556),
  // NSA (2502.11089) or MoBA (2502.13189) picks them: counted from 0 in the order of k, in any
  // order, each once; below 0: none, where a list is shorter than others. Of those it sees what the
  // rest of the mask shows. Heads that pick on their own stand as a batch. Null: all keys.
  const std::int32_t* keys = nullptr;
  std::int64_t key_count = 0;

  bool sees(std::int64_t query, std::int64_t key) const {
    if (0 <= key && key < prefix) return true;
    if (causal && key > query) return false;
    if (chunk > 0 && chunk_of(query) != chunk_of(key)) return false;
    return window == 0 || (query - key < window && key - query < window);
  }
  // ⌊position / chunk⌋, where there are chunks.
  std::int64_t chunk_of(std::int64_t position) const {
    return position >= 0 ? position / chunk : -1 - (-1 - position) / chunk;
  }
};

// What a plan's tables by distance meet in place of q and k (Relative::profiles, u of them): small
// tensors made of the tokens beside q and k, of any dtype and strides.
struct ProfileTensors {
  Tensor query = {};  // [batch, heads, queries, u], where the plan has a key table
  Tensor key = {};  // [batch, heads, keys, u], one for each query head, where it has a query table
};

// How an attention computes.
struct AttendOptions {
  // On processors that multiply bfloat16 numbers (AMX, AVX512-BF16, NEON's bfmmla), tensors of
  // bfloat16 are multiplied as such, several times faster: rotated queries and keys are then
  // rounded once to bfloat16, and so are the weights that values are multiplied by, by 2^-8 of each
  // at most; see docs/speed.md. false: in float, as everywhere else. Gradients are always computed
  // in float.
  bool allow_bfloat16_products = true;
};

// What every attention takes. Of any strides, one dtype of the four; heads is a multiple of
// kv_heads. k and v may be of 8 bits each in attend(), as engines cache them, where the plan has no
// vectors by distance; while decoding they are read where they lie.
struct AttentionInputs {
  Tensor q;                 // [batch, heads, queries, head_dim]
  Tensor k;                 // [batch, kv_heads, keys, head_dim]
  Tensor v;                 // [batch, kv_heads, keys, value_dim], any value_dim
  Positions queries, keys;  // of the tokens of q, and of those of k and v
  Mask mask = {};
  Threads threads = {};
  // Logits of a key that is nowhere: the softmax counts it, and it has no value (gpt-oss calls it a
  // sink):
  //   α_ij = e^logit_ij / (Σ_l e^logit_il + e^sink_i)
  // [heads], or [batch, heads, queries], of any dtype; neither scaled nor masked; −∞ is none.
  // Absent: none.
  Tensor sink_logits = {};
  // Of a plan with profiles, and only then.
  ProfileTensors profiles = {};
  // What k and v of 8 bits are multiplied by (k_scale and v_scale of vLLM's caches); else 1.
  double key_scale = 1, value_scale = 1;
  // Called by the caller's own thread while it computes, about every millisecond, so that messages
  // arrive meanwhile. It must neither throw nor touch the tensors.
  std::function<void()> meanwhile = {};
  AttendOptions options = {};
};

// softmax(logits) v, for any plan; out [batch, heads, queries, value_dim] of q's dtype, or float32
// where that is one of 16 bits. q and k come unrotated: rotation, bias, relative terms, logit
// scales and the values' rotation are all taken from the plan. A query that sees no key gives
// zeros, with a sink logit too. What a mask hides is of no effect, whatever it holds: NaN,
// infinities, memory that nobody wrote. A NaN in a query, in a key that it sees or in a value that
// it gives weight to makes its output NaN; of a value whose weight has rounded to 0 the NaN may
// reach the output or not. The logits stand in blocks, never all at once (online softmax: Milakov
// 2018, Dao 2022): memory beyond the arguments grows with the length, not with its square, in every
// dtype and with any angles. Float, bfloat16 and half are computed in float, but for bfloat16's
// products (AttendOptions), the rotation's angles in double. The same bits for any number of
// threads. Which other queries come with a query changes none of its bits either, as long as
// queries · heads/kv_heads is 12 or more, or less each time.
//
// log_sums [batch, heads, queries] of float32 or float64, if given, receives ln Σ e^logit, the
// sink's included; −∞ where there is none. Attention over some of the keys is merged with that over
// others by it:
//   out = Σ_part out_part · e^(log_sum_part − log_sum),  log_sum = ln Σ_part e^log_sum_part
// Errors: shapes, positions, learned tables not given, distances that a table does not reach.
Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                      const Tensor& log_sums = {});

// The same in plain double loops on one thread, the truth for attend: softmax(logits) v with an L x
// L matrix of a head at a time.
// `logits`, if given, receives the masked logits [batch, heads, queries, keys] (-inf where hidden).
// Errors: shapes, positions, learned tables not given.
Expected<void> attend_reference(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                const Tensor& logits = {});

}  // namespace posenc
