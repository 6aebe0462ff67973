// Which tokens of a text each of several machines (ranks) holds, where a text is too long for one:
// context parallelism. A rank's tokens keep the positions that they have in the whole text,
// whatever their place in its memory. 16 tokens of one text, or of four of 8, 3, 1 and 4 tokens,
// among 2 ranks:
//
//   contiguous   0000000011111111     each rank's queries see keys of its own and of those before
//   zigzag       0000111111110000     chunks r and 2·ranks − 1 − r: under a causal mask all have
//                                     the same to do
//   striped      0101010101010101     tokens r, r + ranks, ... (2311.09431); by blocks of 2:
//                                     0011001100110011
//   by document  0011110000010110     each of the texts in zigzag, short ones whole to the rank
//                                     that has the least to do
//   balanced     0110011001100110     blocks (here of 1), those that see the most pairs first, each
//                                     to whom has the least to do; all have as many blocks
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/attention.h"

namespace [[gnu::visibility("default")]] posenc {

// Every token of a text belongs to one rank, and has an index among that rank's own.
class Layout {
 public:
  // Errors of all: fewer than 1 rank, more than 2^20, fewer than 0 tokens, more than 2^62.
  // Chunks differ by one token at most where they do not come out even; a rank may have none.
  static Expected<Layout> contiguous(std::int64_t tokens, std::int64_t ranks);
  static Expected<Layout> zigzag(std::int64_t tokens, std::int64_t ranks);
  // Errors besides: a block below 1.
  static Expected<Layout> striped(std::int64_t tokens, std::int64_t ranks, std::int64_t block = 1);

  // Packed texts, cu_seqlens as of Positions::packed. Those of 2·ranks tokens or more in zigzag;
  // the mask tells how many keys the queries of the others see.
  // Errors besides: those of Positions::packed.
  static Expected<Layout> by_document(std::span<const std::int64_t> cu_seqlens, std::int64_t ranks,
                                      const Mask& mask = {});

  // Blocks of `block` tokens dealt out by the pairs that their queries see, counted: the mask's, in
  // one text or in packed ones. Each rank has as many blocks as the others, or one less, as masks
  // in blocks (FlexAttention's BlockMask) and torch's equal shards want it; PTRR of torch does the
  // like. block 0: the largest power of two up to 128 that leaves each rank 16 blocks. Takes a step
  // a token. Errors besides: those of Positions::packed, a negative block.
  static Expected<Layout> balanced(std::span<const std::int64_t> cu_seqlens, std::int64_t ranks,
                                   const Mask& mask = {}, std::int64_t block = 0);

  // Any: a rank's tokens in the order given.
  // Errors besides: a token that nobody has, or two.
  struct Range {
    std::int64_t first = 0, last = 0;  // [first, last)
    bool operator==(const Range&) const = default;
  };
  static Expected<Layout> ranges(std::span<const std::vector<Range>> of_ranks);

  // What suits a mask: by document where there are several; contiguous where a window or chunk is
  // no longer than a rank's share, so that only neighbours talk, or where all see all; else zigzag.
  static Expected<Layout> for_mask(const Mask& mask, std::span<const std::int64_t> cu_seqlens,
                                   std::int64_t ranks);

  // By name: contiguous, zigzag, striped, by-document, balanced, auto (for_mask). `block` is that of
  // striped and balanced.
  static Expected<Layout> named(std::string_view name, std::span<const std::int64_t> cu_seqlens,
                                std::int64_t ranks, const Mask& mask = {}, std::int64_t block = 1);
  static std::span<const std::string_view> names();

  std::int64_t tokens() const { return tokens_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(shares_.size()); }
  std::int64_t size(std::int64_t rank) const { return share(rank).size; }

  // The place in the text of token `index` of a rank.
  std::int64_t token(std::int64_t rank, std::int64_t index) const;
  std::vector<std::int64_t> tokens_of(std::int64_t rank) const;  // of all of its tokens

  // Who holds a token of the text, and where among its own: where a cache that is shared out so
  // keeps it (decode context parallelism is striped by the interleave). Errors: no such token.
  struct Place {
    std::int64_t rank = 0, index = 0;
    bool operator==(const Place&) const = default;
  };
  Expected<Place> place(std::int64_t token) const;
  // How many of the tokens before `end` a rank holds: its length of a text that has come so far.
  std::int64_t held_before(std::int64_t rank, std::int64_t end) const;

  // A rank's part of the positions of the whole text. Errors: positions of another number of
  // tokens.
  Expected<Positions> positions(std::int64_t rank, const Positions& whole) const;

  // `count` tokens from `first` on: `run` beside each other, then `step` from where they began.
  struct Stretch {
    std::int64_t first = 0, count = 0, run = 0, step = 0;
    std::int64_t at(std::int64_t index) const { return first + index / run * step + index % run; }
    bool operator==(const Stretch&) const = default;
  };
  // A rank's tokens as such pieces, in the order of its memory.
  std::span<const Stretch> stretches(std::int64_t rank) const { return share(rank).stretches; }

  bool operator==(const Layout&) const = default;

 private:
  struct Share {
    std::int64_t size = 0;
    std::vector<Stretch> stretches = {};
    void add(std::int64_t first, std::int64_t last);
    void sort();
    bool operator==(const Share&) const = default;
  };
  const Share& share(std::int64_t rank) const { return shares_[static_cast<std::size_t>(rank)]; }
  void deal_zigzag(std::int64_t first, std::int64_t last);

  std::int64_t tokens_ = 0;
  std::vector<Share> shares_;
};

// How many pairs of a query and a key that it sees each rank computes, its queries meeting the keys
// of all: counted, not measured. Every head has as many. Text of one axis without keep and blocks
// takes a step a token, else one a pair. Errors: positions of another number of tokens.
Expected<std::vector<std::int64_t>> pairs_per_rank(const Layout& layout, const Mask& mask,
                                                   const Positions& whole);

// The mean over the largest: 1 where all have the same to do, the share of time that ranks work. 1
// without any.
double balance(std::span<const std::int64_t> pairs);

}  // namespace posenc
