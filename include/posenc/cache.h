// Cached keys and values of the tokens so far, in pages, together with the position of each token
// and the rotation of its key, so that a change of plan or position is detected. One cache serves
// one layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "posenc/attention.h"

namespace [[gnu::visibility("default")]] posenc {

// How keys (and values, where the plan rotates them) are cached.
enum class CachedKeys {
  unrotated,  // as they came, and rotated in every attend: any plan may follow any other
  rotated,    // by the plan they were appended with: attend rotates the queries alone
};

// What becomes of rotated keys when another plan comes (dynamic NTK, LongRoPE's switch). Keys of
// two plans are never mixed. Each rotation rounds the keys again (twice where the plans differ in
// more than frequency and amplitude), and an angle too small to change a number by half a step of
// the dtype is lost: if the plan changes often, cache 16-bit keys unrotated.
enum class NewPlan {
  rerotate,  // every key of the sequence is rotated from the old plan's angle to the new one's
  refuse,    // an error
};

// The sizes of a cache, and how it holds keys.
struct KvCacheOptions {
  std::int64_t kv_heads = 0, head_dim = 0;
  std::int64_t value_dim = 0;  // 0: head_dim
  DType dtype = DType::f32;
  std::int64_t page_size = 16;  // tokens
  std::int64_t max_pages = 0;   // reserved at once, and never more; 0: grows, moving what there is
  CachedKeys keys = CachedKeys::unrotated;
  NewPlan new_plan = NewPlan::rerotate;
  AttendOptions attend = {};
};

// A batch of sequences of any lengths. A call that fails leaves the sequences as they were, except
// that attend may have rotated keys to its plan already; keys and the plan on record agree. Not
// thread-safe: one call at a time.
//
// Memory: pages · page_size · kv_heads · (head_dim + value_dim) numbers, and 8 bytes a token and
// axis where positions are no range. attend() reads a sequence where it lies if its pages are
// neighbours; otherwise the cache gathers it, one sequence at a time, into memory as large as the
// longest one gathered, which the cache keeps.
// Time: a token costs append() the same at any length, and attend() of a sequence in neighbouring
// pages the attention itself.
class KvCache {
 public:
  using Sequence = std::int64_t;  // never used twice: that of a removed sequence stays unknown

  // Errors: sizes below 1 (value_dim: below 0), more than 2^28 pages, or pages that do not fit in
  // memory.
  static Expected<KvCache> make(const KvCacheOptions& options);
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  Sequence add();                            // an empty sequence
  Expected<void> remove(Sequence sequence);  // its pages serve others. Errors: unknown

  // Appends `tokens` tokens to each sequence: k [sequence, kv_heads, tokens, head_dim] and
  // v [sequence, kv_heads, tokens, value_dim], unrotated whatever is cached. Their positions are
  // `positions`, of one sequence or of all, by default those behind the largest position of each.
  // The plan must hold for the length that each sequence reaches (Plan::valid).
  // Errors: unknown or repeated sequences, shapes, dtype, positions, no token, a plan that does not
  // hold or that NewPlan::refuse forbids, no page left; if keys are cached rotated, also a rotation
  // with vectors by distance beside (profiles aside), since those are multiplied by unrotated keys.
  Expected<void> append(std::span<const Sequence> sequences, const Tensor& k, const Tensor& v,
                        const Plan& plan, const std::optional<Positions>& positions = {},
                        Threads threads = {});

  // The attention of the newest tokens of each sequence over all its tokens, as posenc::attend: one
  // token each while decoding, or a chunk of a prefill. q [sequence, heads, tokens, head_dim],
  // unrotated, and out [sequence, heads, tokens, value_dim]; append() has recorded the queries'
  // positions. `mask` depends on position, without keep; its keys [sequence][token][key_count]
  // count the sequence's tokens in the order of append(), without evicted ones. sink_logits [heads]
  // or [sequence, heads, tokens], as AttentionInputs has them. Of a plan with profiles: those of
  // the queries, [sequence, heads, tokens, u]; those of keys are the caller's to keep, of all
  // cached tokens in their order, [sequence, heads, tokens of the longest, u].
  // Errors: those of append and of posenc::attend, fewer tokens than queries.
  Expected<void> attend(std::span<const Sequence> sequences, const Tensor& q, const Plan& plan,
                        const Mask& mask, const Tensor& out, Threads threads = {},
                        const Tensor& sink_logits = {}, const ProfileTensors& profiles = {});

  // The same where the cache holds some of the tokens that the queries see, as on one of several
  // machines: `queries`, of one sequence or of all, stand anywhere, and the plan must hold for
  // their length too. out may be float32 where the cache holds 16 bits; log_sums [sequence, heads,
  // tokens] as posenc::attend writes them. A sequence that holds nothing gives zeros.
  Expected<void> attend_part(std::span<const Sequence> sequences, const Tensor& q,
                             const Positions& queries, const Plan& plan, const Mask& mask,
                             const Tensor& out, const Tensor& log_sums, Threads threads = {},
                             const Tensor& sink_logits = {}, const ProfileTensors& profiles = {});

  // Adds `offset` to the position of tokens [first, last) of a sequence on every axis; tokens are
  // counted in the order of append(), without evicted ones. Rotated keys are rotated along: exact
  // but for rounding, see NewPlan.
  // Errors: unknown, tokens that are not there, positions below 0 or beyond 2^62, positions of 2^24
  // and beyond for keys rotated by an engine's angles.
  Expected<void> shift(Sequence sequence, std::int64_t first, std::int64_t last,
                       std::int64_t offset);

  // What becomes of the tokens behind a hole.
  enum class Gap {
    keep,   // they keep their positions
    close,  // they are shifted so that the first of them takes the position of the first evicted
  };
  // Drops tokens [first, last): attention sinks are tokens [0, first) (StreamingLLM, 2309.17453).
  // Pages that held nothing else become free.
  // Errors: those of shift; closing a gap between positions of several axes.
  Expected<void> evict(Sequence sequence, std::int64_t first, std::int64_t last, Gap gap);

  Expected<std::int64_t> tokens(Sequence sequence) const;
  Expected<std::int64_t> length(Sequence sequence) const;  // largest position + 1
  Expected<Positions> positions(Sequence sequence) const;  // of the cached tokens

  std::int64_t pages() const;       // reserved
  std::int64_t free_pages() const;  // of them
  std::int64_t bytes() const;       // of pages and of what is gathered

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace posenc
