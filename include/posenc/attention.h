// Attention that hosts every scheme.
#pragma once

#include <cstdint>

#include "posenc/apply.h"

namespace posenc {

// Which keys a query sees, by position: a key in the query's future is hidden when causal, one
// `window` or more away when a window is set, one of another chunk when a chunk is. Packed
// sequences never see each other. With positions of several axes (pictures among text) the order is
// that of the tokens, the last query at the last key.
struct Mask {
  bool causal = true;
  std::int64_t window = 0;  // 0: no window; w: the query sees itself and w - 1 before it
  std::int64_t chunk = 0;   // 0: none; c: positions with one ⌊p/c⌋ see each other (Llama 4)
  std::int64_t prefix = 0;  // keys at positions below it are seen by all (prefix LM)
  // [batch][key], zero hides a key (padding); null: none hidden
  const std::uint8_t* keep = nullptr;

  bool sees(std::int64_t query, std::int64_t key) const {
    if (key < prefix) return true;
    if (causal && key > query) return false;
    if (chunk > 0 && query / chunk != key / chunk) return false;
    return window == 0 || (query - key < window && key - query < window);
  }
};

// What every attention takes. Of any strides, one dtype of the four; heads is a multiple of kv_heads.
struct AttentionInputs {
  Tensor q;                 // [batch, heads, queries, head_dim]
  Tensor k;                 // [batch, kv_heads, keys, head_dim]
  Tensor v;                 // [batch, kv_heads, keys, value_dim], any value_dim
  Positions queries, keys;  // of the tokens of q, and of those of k and v
  Mask mask = {};
  Threads threads = {};
};

// softmax(logits) v, for any plan; out [batch, heads, queries, value_dim]. q and k come unrotated:
// rotation, bias, relative terms, logit scales and the values' rotation are all taken from the plan.
// A query that sees no key gives zeros; a NaN in what a query sees gives NaN. The logits stand in
// blocks, never all at once (online softmax: Milakov 2018, Dao 2022): memory beyond the arguments
// grows with the length, not with its square, in every dtype and with any angles. Float, bfloat16
// and half are computed in float, the rotation's angles in double. The same bits for any number of
// threads.
// Errors: shapes, positions, learned tables not given, distances that a table does not reach.
Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out);

// The same in plain double loops on one thread, the truth for attend: softmax(logits) v with an L x L
// matrix of a head at a time.
// `logits`, if given, receives the masked logits [batch, heads, queries, keys] (-inf where hidden).
// Errors: shapes, positions, learned tables not given.
Expected<void> attend_reference(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                const Tensor& logits = {});

}  // namespace posenc
