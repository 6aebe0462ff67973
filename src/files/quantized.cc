#include "src/files/quantized.h"

#include <algorithm>

namespace posenc::detail {
namespace {

// Nibble i of a block of 32 numbers: the lower ones first, then the upper ones.
unsigned nibble(Block block, int first, int i) {
  const unsigned both = block.byte(first + i % 16);
  return i < 16 ? both & 15 : both >> 4;
}

void q4_0(Block block, float* out) {
  const float step = block.half(0);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int>(nibble(block, 2, i)) - 8) * step;
}

void q4_1(Block block, float* out) {
  const float step = block.half(0), least = block.half(2);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(nibble(block, 4, i)) * step + least;
}

// The fifth bits of 32 numbers stand in a word of their own.
unsigned five_bits(Block block, int bits, int nibbles, int i) {
  return nibble(block, nibbles, i) | (block.word(bits) >> i & 1) << 4;
}

void q5_0(Block block, float* out) {
  const float step = block.half(0);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int>(five_bits(block, 2, 6, i)) - 16) * step;
}

void q5_1(Block block, float* out) {
  const float step = block.half(0), least = block.half(2);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(five_bits(block, 4, 8, i)) * step + least;
}

void q8_0(Block block, float* out) {
  const float step = block.half(0);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(block.signed_byte(2 + i)) * step;
}

// Of the eight runs of 32 numbers in a block of Q4_K or Q5_K: a scale and a least value of six bits each, packed into
// the twelve bytes behind the block's own two.
struct Run {
  float step, least;
};
Run run_of(Block block, int j) {
  constexpr int packed = 4;
  const auto at = [&](int i) { return block.byte(packed + i); };
  const unsigned scale = j < 4 ? at(j) & 63 : (at(j + 4) & 15) | at(j - 4) >> 6 << 4,
                 least = j < 4 ? at(j + 4) & 63 : at(j + 4) >> 4 | at(j) >> 6 << 4;
  return {block.half(0) * static_cast<float>(scale), block.half(2) * static_cast<float>(least)};
}

// Runs 2c and 2c + 1 are the lower and the upper nibbles of the same 32 bytes.
unsigned nibble_of_run(Block block, int first, int j, int i) {
  const unsigned both = block.byte(first + j / 2 * 32 + i);
  return j % 2 == 0 ? both & 15 : both >> 4;
}

void q4_k(Block block, float* out) {
  for (int j = 0; j < 8; ++j) {
    const Run run = run_of(block, j);
    for (int i = 0; i < 32; ++i)
      *out++ = run.step * static_cast<float>(nibble_of_run(block, 16, j, i)) - run.least;
  }
}

// Bit j of byte i is the fifth bit of number i of run j.
void q5_k(Block block, float* out) {
  for (int j = 0; j < 8; ++j) {
    const Run run = run_of(block, j);
    for (int i = 0; i < 32; ++i) {
      const unsigned fifth = block.byte(16 + i) >> j & 1;
      *out++ =
          run.step * static_cast<float>(nibble_of_run(block, 48, j, i) | fifth << 4) - run.least;
    }
  }
}

// Two halves of 128 numbers, each of four runs of 32: 64 bytes of nibbles, 32 of upper pairs of bits, eight scales for 16
// numbers each.
void q6_k(Block block, float* out) {
  constexpr int upper = 128, scales = 192, whole = 208;
  for (int half = 0; half < 2; ++half) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 32; ++i) {
        const unsigned both = block.byte(half * 64 + j % 2 * 32 + i);
        const unsigned low = j < 2 ? both & 15 : both >> 4;
        const unsigned high = block.byte(upper + half * 32 + i) >> 2 * j & 3;
        const auto scale =
            static_cast<float>(block.signed_byte(scales + half * 8 + j * 2 + i / 16));
        *out++ =
            block.half(whole) * scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
      }
    }
  }
}

constexpr Quantized kinds[] = {{"Q4_0", 32, 18, q4_0},   {"Q4_1", 32, 20, q4_1},
                               {"Q5_0", 32, 22, q5_0},   {"Q5_1", 32, 24, q5_1},
                               {"Q8_0", 32, 34, q8_0},   {"Q4_K", 256, 144, q4_k},
                               {"Q5_K", 256, 176, q5_k}, {"Q6_K", 256, 210, q6_k}};

}  // namespace

const Quantized* quantized(std::string_view type) {
  const auto* found = std::ranges::find(kinds, type, &Quantized::name);
  return found == std::end(kinds) ? nullptr : found;
}

}  // namespace posenc::detail
