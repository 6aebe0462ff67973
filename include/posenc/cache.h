// Keys and values of the tokens so far, kept in pages, together with where each token stands and by
// which rotation its key was turned: neither can go stale unseen. One cache serves one layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "posenc/attention.h"

namespace posenc {

// How keys (and values, where the plan rotates them) are kept.
enum class KeptKeys {
  unrotated,  // as they came, and rotated in every attend: any plan may follow any other
  rotated,    // by the plan they were appended with: attend rotates the queries alone
};

// What becomes of rotated keys when another plan comes (dynamic NTK, LongRoPE's switch). They are
// never mixed. Each time they are turned again they are rounded again (twice where the plans differ
// in more than frequency and amplitude), and a turn by less than half a step of the dtype is lost:
// 16-bit keys whose plan changes often are better kept unrotated.
enum class NewPlan {
  rerotate,  // every key of the sequence is turned from the old plan's angle to the new one's
  refuse,    // an error
};

// The sizes of a cache, and how it keeps keys.
struct KvCacheOptions {
  std::int64_t kv_heads = 0, head_dim = 0;
  DType dtype = DType::f32;
  std::int64_t page_size = 16;  // tokens
  std::int64_t max_pages = 0;   // reserved at once, and never more; 0: grows, moving what there is
  KeptKeys keys = KeptKeys::unrotated;
  NewPlan new_plan = NewPlan::rerotate;
};

// A batch of sequences of any lengths. A call that fails leaves the sequences as they were, but for
// keys that attend had turned to its plan already: they and the plan on record agree. Not for
// several threads at once.
//
// Memory: 2 · pages · page_size · kv_heads · head_dim numbers, and 8 bytes a token and axis.
// attend() reads a sequence where it lies if its pages are neighbours; otherwise they are gathered,
// one sequence at a time, into a scratch as large as the longest sequence gathered, which stays
// with the cache.
class KvCache {
 public:
  using Sequence = std::int64_t;  // never used twice: that of a removed sequence stays unknown

  // Errors: sizes below 1, or pages that do not fit in memory.
  static Expected<KvCache> make(const KvCacheOptions& options);
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  Sequence add();                            // an empty sequence
  Expected<void> remove(Sequence sequence);  // its pages serve others. Errors: unknown

  // Appends `tokens` tokens to each sequence: k, v [sequence, kv_heads, tokens, head_dim],
  // unrotated whatever the cache keeps. They stand at `positions`, of one sequence or of all, by
  // default behind the largest position of each. The plan must hold for the length that each
  // sequence reaches (Plan::valid).
  // Errors: unknown or repeated sequences, shapes, dtype, positions, no token, a plan that does not
  // hold or that kept keys refuse, no page left; for keys kept rotated also a rotation with vectors
  // by distance beside, which meet unrotated keys.
  Expected<void> append(std::span<const Sequence> sequences, const Tensor& k, const Tensor& v,
                        const Plan& plan, const std::optional<Positions>& positions = {},
                        Threads threads = {});

  // The attention of the newest tokens of each sequence over all its tokens, as posenc::attend: one
  // token each while decoding, or a chunk of a prefill. q and out [sequence, heads, tokens,
  // head_dim], q unrotated; where the queries stand is known from append(). `mask` goes by
  // position, without keep. 16-bit queries are rounded once more where keys are kept rotated, and
  // so are outputs whose values the plan rotates.
  // Errors: those of append and of posenc::attend, fewer tokens than queries.
  Expected<void> attend(std::span<const Sequence> sequences, const Tensor& q, const Plan& plan,
                        const Mask& mask, const Tensor& out, Threads threads = {});

  // Adds `offset` to the position of tokens [first, last) of a sequence, counted as they were
  // appended and survived, on every axis. Rotated keys are turned along: exact but for rounding, as
  // by NewPlan.
  // Errors: unknown, tokens that are not there, positions below 0 or beyond 2^62, positions of 2^24
  // and beyond for keys that an engine's angles turned.
  Expected<void> shift(Sequence sequence, std::int64_t first, std::int64_t last,
                       std::int64_t offset);

  // What becomes of the tokens behind a hole.
  enum class Gap {
    keep,   // they stay where they stand
    close,  // they are shifted so that the first of them stands where the first evicted one stood
  };
  // Drops tokens [first, last): attention sinks are tokens [0, first) (StreamingLLM, 2309.17453).
  // Whole pages become free.
  // Errors: those of shift; closing a gap between positions of several axes.
  Expected<void> evict(Sequence sequence, std::int64_t first, std::int64_t last, Gap gap);

  Expected<std::int64_t> tokens(Sequence sequence) const;
  Expected<std::int64_t> length(Sequence sequence) const;  // largest position + 1
  Expected<Positions> positions(Sequence sequence) const;  // of the tokens that are kept

  std::int64_t pages() const;       // reserved
  std::int64_t free_pages() const;  // of them
  std::int64_t bytes() const;       // of pages and scratch

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace posenc
