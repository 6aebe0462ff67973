#include "backends/distributed/block.h"

#include <algorithm>
#include <cstring>

namespace posenc::mpi {
namespace {

std::byte* element(const Tensor& x, std::int64_t offset) {
  return static_cast<std::byte*>(x.data) + offset * static_cast<std::int64_t>(size_of(x.dtype));
}

// [batch][token] numbers of a block from those of another.
template <class Number>
void copy_numbers(const Number* from, std::int64_t batch, std::int64_t count, Number* to,
                  std::int64_t to_count, std::span<const std::int64_t> tokens) {
  if (from == nullptr || to == nullptr) return;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < count; ++t)
      to[b * to_count + (tokens.empty() ? t : tokens[static_cast<std::size_t>(t)])] =
          from[b * count + t];
}

}  // namespace

void copy_tokens(const Tensor& from, std::span<const std::int64_t> from_tokens, const Tensor& to,
                 std::span<const std::int64_t> to_tokens) {
  const std::int64_t count = !from_tokens.empty() ? std::ssize(from_tokens)
                             : !to_tokens.empty() ? std::ssize(to_tokens)
                                                  : from.shape[2];
  const std::int64_t width = from.shape[3];
  const std::size_t size = size_of(from.dtype);
  const bool dense = from.stride[3] == 1 && to.stride[3] == 1;
  const auto place = [](std::span<const std::int64_t> tokens, std::int64_t t) {
    return tokens.empty() ? t : tokens[static_cast<std::size_t>(t)];
  };
  for (std::int64_t b = 0; b < from.shape[0]; ++b) {
    for (std::int64_t h = 0; h < from.shape[1]; ++h) {
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t at = from.offset(b, h, place(from_tokens, t));
        const std::int64_t into = to.offset(b, h, place(to_tokens, t));
        if (dense) {
          std::memcpy(element(to, into), element(from, at), static_cast<std::size_t>(width) * size);
          continue;
        }
        for (std::int64_t c = 0; c < width; ++c)
          std::memcpy(element(to, into + c * to.stride[3]), element(from, at + c * from.stride[3]),
                      size);
      }
    }
  }
}

Tensor of_width_one(Tensor numbers) {
  numbers.rank = 4;
  numbers.shape[3] = numbers.stride[3] = 1;
  return numbers;
}

Owned::Owned(DType dtype, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
             std::int64_t width)
    : bytes_(bytes_for(std::max<std::int64_t>(batch * heads * tokens * width, 1) *
                       static_cast<std::int64_t>(size_of(dtype)))),
      view_(Tensor::dense(bytes_.data(), dtype, {batch, heads, tokens, width})) {}

BlockShape BlockShape::of(const AttentionInputs& in, const Tensor& token_table) {
  return {.batch = in.q.shape[0],
          .heads = in.q.shape[1],
          .kv_heads = in.k.shape[1],
          .head_dim = in.k.shape[3],
          .value_dim = in.v.shape[3],
          .dtype = in.k.dtype,
          .said_dtype = token_table.dtype,
          .keep = in.mask.keep != nullptr,
          .blocks = in.mask.blocks != nullptr,
          .said = static_cast<bool>(token_table)};
}

void BlockShape::add_to(Fingerprint& fingerprint) const {
  fingerprint.add(batch, heads, kv_heads, head_dim, value_dim, static_cast<int>(dtype),
                  static_cast<int>(said_dtype), keep, blocks, said);
}

std::int64_t BlockShape::bytes(std::int64_t tokens) const {
  const auto size = static_cast<std::int64_t>(size_of(dtype)),
             said_size = static_cast<std::int64_t>(size_of(said_dtype));
  return unit * (units(batch * kv_heads * tokens * head_dim * size) +
                 units(batch * kv_heads * tokens * value_dim * size) +
                 (said ? units(batch * heads * tokens * said_size) : 0) +
                 (blocks ? units(batch * tokens * 4) : 0) + (keep ? units(batch * tokens) : 0));
}

Block::Block(const BlockShape& shape, std::int64_t tokens)
    : bytes(bytes_for(shape.bytes(tokens) + unit)) {
  std::byte* next = bytes.data();
  const auto part = [&](std::int64_t size) {
    std::byte* const start = next;
    next += units(size) * unit;
    return start;
  };
  const auto tensor = [&](DType dtype, std::int64_t heads, std::int64_t width) {
    const std::int64_t count = shape.batch * heads * tokens * width;
    return Tensor::dense(part(count * static_cast<std::int64_t>(size_of(dtype))), dtype,
                         {shape.batch, heads, tokens, width});
  };
  k = tensor(shape.dtype, shape.kv_heads, shape.head_dim);
  v = tensor(shape.dtype, shape.kv_heads, shape.value_dim);
  if (shape.said) said = tensor(shape.said_dtype, shape.heads, 1);
  if (shape.blocks) blocks = reinterpret_cast<std::int32_t*>(part(shape.batch * tokens * 4));
  if (shape.keep) keep = reinterpret_cast<std::uint8_t*>(part(shape.batch * tokens));
}

void Block::take(const Block& from, std::span<const std::int64_t> tokens) {
  copy_tokens(from.k, {}, k, tokens);
  copy_tokens(from.v, {}, v, tokens);
  if (said) copy_tokens(from.said, {}, said, tokens);
  const std::int64_t batch = k.shape[0], count = from.k.shape[2];
  copy_numbers(from.keep, batch, count, keep, k.shape[2], tokens);
  copy_numbers(from.blocks, batch, count, blocks, k.shape[2], tokens);
}

void Block::take(const AttentionInputs& in, const Tensor& token_table) {
  copy_tokens(in.k, {}, k, {});
  copy_tokens(in.v, {}, v, {});
  if (said) copy_tokens(of_width_one(token_table), {}, said, {});
  const std::int64_t batch = k.shape[0], count = k.shape[2];
  copy_numbers(in.mask.keep, batch, count, keep, count, {});
  copy_numbers(in.mask.blocks, batch, count, blocks, count, {});
}

}  // namespace posenc::mpi
