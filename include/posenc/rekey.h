// Cached keys that move: to other positions, to another plan's rotation, or both. Whether a model's
// keys may is said by reuse.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "posenc/apply.h"

namespace [[gnu::visibility("default")]] posenc {

// A rotation and where tokens stand in it.
struct Stand {
  const Plan* plan = nullptr;
  Positions at = Positions::range(0, 0);
};

// Keys x [batch, kv_head, seq, head_dim] that stand rotated by `from` become keys rotated by `to`,
// as if the unrotated ones had been rotated anew: out is x itself, or memory apart. Where the two
// plans rotate alike, each token is rotated once by the difference of its positions; where
// frequencies or the amplitude differ, once by the difference of the two angles; else back and anew
// in double. Each is rounded once. side: Side::value for the values of a plan that rotates them.
// Errors: those of rotate(); a rotation without an inverse or that depends on the query (mixtures,
// polar pairs, two angles, regions), which is named; heads or axes that differ.
Expected<void> rekey(const Stand& from, const Stand& to, const Tensor& x, const Tensor& out,
                     Side side = Side::key, Threads threads = {});

// Keys of several sequences in pages of a pool, [page, kv_head, token of the page, head_dim] in any
// order in memory: HND as it lies, NHD with two axes swapped. Token t of sequence s is token
// t % page_size of page table[s][t / page_size], a block table as engines have it; what stands
// behind a sequence's last page is not read.
struct KeyPages {
  Tensor keys = {};
  std::span<const std::int32_t> table = {};   // [sequence][column]
  std::span<const std::int64_t> tokens = {};  // of each sequence
};

// The same in place, in pages. Positions are as many as the longest sequence has tokens, a row for
// each sequence or one for all. Errors besides: pages that the pool does not have, a page of two
// sequences (its tokens would move twice: copy it first), more tokens than pages.
Expected<void> rekey(const Stand& from, const Stand& to, const KeyPages& pages,
                     Side side = Side::key, Threads threads = {});

// How a number of 8 bits is written: a float of OCP's e4m3 (without infinities, up to 448), or an
// integer from -127 to 127.
enum class KeyCode { e4m3, int8 };

// Keys of 8 bits, [batch, kv_head, seq, head_dim]: a number is its code times the scale of its
// block of channels.
struct CodedKeys {
  KeyCode code = KeyCode::e4m3;
  std::byte* codes = nullptr;
  std::array<std::int64_t, 4> shape = {};
  std::array<std::int64_t, 4> stride = {};  // bytes; that of channels is within a block
  std::int64_t block = 0;                   // channels that share a scale; 0: all of a head
  std::int64_t block_stride = 0;            // bytes between blocks; 0: block · stride[3]
  Tensor scales = {};  // [batch, kv_head, seq, block], an extent of 1 shared; absent: all are 1
  // false: each is made anew, so that the largest of its numbers has the largest code.
  bool keep_scales = true;

  // llama.cpp's rows of q8_0: for each token [kv_head][head_dim], in blocks of 32 with a float16 in
  // front, whose scales are made anew. head_dim must be a multiple of 32.
  static CodedKeys q8_0(void* blocks, std::int64_t batch, std::int64_t kv_heads, std::int64_t seq,
                        std::int64_t head_dim);
};

// The same in place: read as floats, turned, and written once, to nearest even. Beside keys that
// are turned exactly a number is off by half a step of its code: of e4m3 by 2^-4 of itself, or by
// 2^-10 scales below 2^-6 of them; of int8 by half a scale. Scales that are made anew are rounded
// first. A scale that is kept may be too small, as turning lengthens a channel by up to √2: what is
// beyond the largest code becomes that. Errors besides: blocks that do not divide head_dim, scales
// of another shape, scales anew that several tokens share, codes that several tokens share.
Expected<void> rekey(const Stand& from, const Stand& to, const CodedKeys& keys,
                     Side side = Side::key, Threads threads = {});

// A pool of pages of 8 bits: `keys` is [page, kv_head, token of the page, head_dim], and so are its
// scales; table and tokens are those of KeyPages.
struct CodedPages {
  CodedKeys keys = {};
  std::span<const std::int32_t> table = {};
  std::span<const std::int64_t> tokens = {};
};

// The same in place, in pages. Errors: those of both.
Expected<void> rekey(const Stand& from, const Stand& to, const CodedPages& pages,
                     Side side = Side::key, Threads threads = {});

}  // namespace posenc
