// One sequence of the key-value cache: where its tokens lie, where they stand, and what its keys
// are turned by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/attention.h"
#include "src/attention/kept_keys.h"
#include "src/attention/pages.h"

namespace posenc::detail {

// Positions that tokens of a cache can have: those of real tokens of one text.
Expected<void> check_kept_positions(std::string_view where, const Positions& positions);

// Tokens [first, first + count) of one sequence of a batch: of its positions, or of a tensor
// [sequence, head, token, head_dim].
Positions part(const Positions& positions, std::int64_t sequence, std::int64_t first,
               std::int64_t count);
Tensor part(const Tensor& x, std::int64_t sequence, std::int64_t first, std::int64_t count);

// Memory that is used again from call to call, and only grows.
class Scratch {
 public:
  // [1, heads, tokens, head_dim]. Errors: no memory.
  Expected<Tensor> dense(std::string_view where, DType dtype, std::int64_t heads,
                         std::int64_t tokens, std::int64_t head_dim);
  std::int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::int64_t bytes_ = 0;
};

class KeptSequence {
 public:
  std::int64_t tokens() const { return table_.tokens(); }
  std::int64_t length() const { return length_; }  // largest position + 1
  std::int64_t axes() const { return static_cast<std::int64_t>(at_.size()); }
  const Rotation& rotation() const { return rotation_; }
  Positions positions(std::int64_t first, std::int64_t last) const;
  Positions positions() const { return positions(0, tokens()); }
  std::int64_t pages_needed(std::int64_t count, std::int64_t page_size) const {
    return table_.pages_needed(count, page_size);
  }

  // What there is is turned to `rotation`, if it is at another.
  Expected<void> rerotate(Pages& pages, const Rotation& rotation, Threads threads);

  // k, v [1, kv_heads, tokens, head_dim] come unrotated and are kept rotated by `rotation`, like
  // what there is. Arguments are checked and pages reserved.
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
                                           std::int64_t first, Scratch& keys, Scratch& values,
                                           Threads threads) const;

 private:
  Expected<void> check_tokens(std::string_view where, std::int64_t first, std::int64_t last) const;
  Positions positions(const Run& run) const { return positions(run.first, run.first + run.size); }
  void measure();

  BlockTable table_;
  std::vector<std::vector<std::int64_t>> at_ = {{}};  // [axis][token]
  std::int64_t length_ = 0;
  Rotation rotation_;
};

}  // namespace posenc::detail
