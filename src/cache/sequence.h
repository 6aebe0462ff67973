// One sequence of the key-value cache: where its tokens lie, at which positions they stand, and by
// what its keys are rotated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "posenc/attention.h"
#include "src/cache/pages.h"
#include "src/cache/rerotate.h"

namespace posenc::detail {

// Tokens of a cache stand at positions of one text, none of them padding.
Expected<void> check_cached_positions(std::string_view where, const Positions& positions);

// Tokens [first, first + count) of one sequence of a tensor [sequence, head, token, head_dim].
Tensor part(const Tensor& x, std::int64_t sequence, std::int64_t first, std::int64_t count);

// Memory that is used again from call to call, and only grows.
class Gathered {
 public:
  // [1, heads, tokens, width]. Errors: no memory.
  Expected<Tensor> dense(std::string_view where, DType dtype, std::int64_t heads,
                         std::int64_t tokens, std::int64_t width);
  std::int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::int64_t bytes_ = 0;
};

class CachedSequence {
 public:
  std::int64_t tokens() const { return table_.tokens(); }
  std::int64_t length() const { return length_; }  // largest position + 1
  const Rotation& rotation() const { return rotation_; }
  const Positions& positions() const { return positions_; }
  Positions positions(std::int64_t first, std::int64_t last) const {
    return positions_.slice(0, first, last - first);
  }
  std::int64_t pages_needed(std::int64_t count, std::int64_t page_size) const {
    return table_.pages_needed(count, page_size);
  }

  // Rotates the cached keys by `rotation`, if they are rotated by another.
  void rerotate(Pages& pages, const Rotation& rotation, Threads threads);

  // k, v [1, kv_heads, tokens, head_dim] come unrotated and are cached rotated by `rotation`, as
  // all others then are. Arguments have been checked and pages reserved.
  // Errors: more tokens than positions can be listed for; then nothing has changed.
  Expected<void> append(Pages& pages, const Tensor& k, const Tensor& v, const Rotation& rotation,
                        const Positions& positions, Threads threads);

  // Errors: tokens that are not there, positions below 0 or beyond 2^62 or an engine's floats.
  Expected<void> shift(std::string_view where, Pages& pages, std::int64_t first, std::int64_t last,
                       std::int64_t offset);
  Expected<void> evict(std::string_view where, Pages& pages, std::int64_t first, std::int64_t last,
                       bool close_gap);
  void clear(Pages& pages) { table_.drop(pages, 0, tokens()); }

  // The first token that one of the newest `queries` may see, judged by window and chunk: those
  // before need not be read.
  std::int64_t first_seen(const Mask& mask, std::int64_t queries) const;

  // Keys and values of the tokens from `first` on, each as one view: in their pages if those are
  // neighbours, else gathered in the two scratches.
  Expected<std::pair<Tensor, Tensor>> read(std::string_view where, const Pages& pages,
                                           std::int64_t first, Gathered& keys, Gathered& values,
                                           Threads threads) const;

 private:
  Expected<void> check_tokens(std::string_view where, std::int64_t first, std::int64_t last) const;
  Positions positions(const Run& run) const { return positions(run.first, run.first + run.size); }
  // The positions of the survivors of [0, first) and [last, tokens), with `between` in the middle.
  void replace_positions(std::int64_t first, std::int64_t last, const Positions& between);

  BlockTable table_;
  Positions positions_;
  std::int64_t length_ = 0;
  bool ascending_ = true;  // on one axis, no position is below that of the token before it
  Rotation rotation_;
};

}  // namespace posenc::detail
