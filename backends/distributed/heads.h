// Tensors dealt out by heads in place of tokens, and back (Ulysses), and what a scheme says of some
// of the heads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backends/distributed/block.h"
#include "backends/distributed/communicator.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/layout.h"
#include "src/core/some_heads.h"

namespace posenc::mpi {

// Heads [first, first + count).
using detail::Heads;

// Of [batch, heads, ...], or of any tensor along an axis.
Tensor some_heads(Tensor x, Heads heads, std::size_t axis = 1);

// The scheme of `all` query heads as these have it.
Expected<ContentScheme> scheme_of(const ContentScheme& scheme, std::int64_t all, Heads heads);

// What tokens say to a scheme, [batch][heads][own tokens]; absent where nobody gave it.
struct TokenTable {
  std::string_view name = {};
  Tensor values = {};

  // Errors: more than one such table, or one of another shape, which no block has room for.
  static Expected<TokenTable> of(const ContentScheme* scheme);
};

class HeadShares {
 public:
  HeadShares(Communicator& ranks, const Layout& layout, std::int64_t heads, std::int64_t kv_heads)
      : ranks_(ranks), layout_(layout), heads_(heads), kv_heads_(kv_heads) {}

  Heads key_heads(int rank) const;
  Heads query_heads(int rank) const;
  // Of a tensor with as many heads as q or k.
  Heads share(std::int64_t heads, int rank) const;

  // Each [batch, heads, own tokens, width] becomes [batch, own heads, all tokens, width].
  Expected<std::vector<Owned>> by_heads(std::span<const Tensor> of_tokens);
  // And back, into `to`.
  Expected<void> by_tokens(std::span<const Tensor> of_heads, std::span<const Tensor> to);

 private:
  Communicator& ranks_;
  const Layout& layout_;
  const std::int64_t heads_, kv_heads_;
};

}  // namespace posenc::mpi
