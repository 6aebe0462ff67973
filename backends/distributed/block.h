// Keys and values of some tokens as one message, and tensors copied token by token.
#pragma once

#include <cstdint>
#include <span>

#include "backends/distributed/communicator.h"
#include "posenc/attention.h"

namespace posenc::mpi {

// Copies tokens of [batch, heads, tokens, width] tensors of one dtype, `from` and `to` naming those
// of each; empty: all.
void copy_tokens(const Tensor& from, std::span<const std::int64_t> from_tokens, const Tensor& to,
                 std::span<const std::int64_t> to_tokens);

// A number for each query, [batch, heads, queries], as tokens of width 1.
Tensor of_width_one(Tensor numbers);

// A dense tensor with memory of its own, of zeros.
class Owned {
 public:
  Owned() = default;
  Owned(DType dtype, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
        std::int64_t width);
  const Tensor& view() const { return view_; }

 private:
  Bytes bytes_;
  Tensor view_;
};

// What travels, but for the number of tokens: alike on all ranks.
struct BlockShape {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  DType dtype = DType::f32, said_dtype = DType::f32;
  bool keep = false, blocks = false, said = false;

  // Of arguments seen with four axes. `token_table` [batch][heads][tokens]; absent: none.
  static BlockShape of(const AttentionInputs& in, const Tensor& token_table = {});
  void add_to(Fingerprint& fingerprint) const;
  std::int64_t bytes(std::int64_t tokens) const;
};

struct Block {
  Bytes bytes;
  Tensor k, v, said;             // [batch, heads, tokens, width] within them; said: a token table
  std::uint8_t* keep = nullptr;  // [batch][token]
  std::int32_t* blocks = nullptr;

  Block() = default;
  Block(const BlockShape& shape, std::int64_t tokens);
  // Takes the tokens of `from`, which become `tokens` of this one; empty: all.
  void take(const Block& from, std::span<const std::int64_t> tokens = {});
  void take(const AttentionInputs& in, const Tensor& token_table);
};

}  // namespace posenc::mpi
