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

// Of the eight runs of 32 numbers in a block of Q4_K or Q5_K: a scale and a least value of six bits
// each, packed into the twelve bytes behind the block's own two.
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

// Two halves of 128 numbers, each of four runs of 32: 64 bytes of nibbles, 32 of upper pairs of
// bits, eight scales for 16 numbers each.
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

// Numbers missing here were retired (4, 5, 31 to 33, 36 to 38) or are newer.
constexpr GgmlType ggml_types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18}};

constexpr Quantized kinds[] = {{"Q4_0", 32, 18, q4_0},   {"Q4_1", 32, 20, q4_1},
                               {"Q5_0", 32, 22, q5_0},   {"Q5_1", 32, 24, q5_1},
                               {"Q8_0", 32, 34, q8_0},   {"Q4_K", 256, 144, q4_k},
                               {"Q5_K", 256, 176, q5_k}, {"Q6_K", 256, 210, q6_k}};

}  // namespace

const GgmlType* ggml_type(std::uint32_t id) {
  const auto* found = std::ranges::find(ggml_types, id, &GgmlType::id);
  return found == std::end(ggml_types) ? nullptr : found;
}

const Quantized* quantized(std::string_view type) {
  const auto* found = std::ranges::find(kinds, type, &Quantized::name);
  return found == std::end(kinds) ? nullptr : found;
}

}  // namespace posenc::detail
