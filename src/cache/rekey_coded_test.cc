#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/files.h"
#include "posenc/rekey.h"
#include "posenc/schemes.h"
#include "src/core/float8.h"

namespace posenc::rekey_coded {
namespace {

constexpr std::int64_t heads = 2, tokens = 5, dim = 64;
constexpr std::int64_t size = heads * tokens * dim;

Plan plan_of(const Scheme& scheme) {
  return compile(scheme, {.heads = heads, .kv_heads = heads, .head_dim = dim}).value();
}

const Positions old_ids = Positions::range(4000, tokens), new_ids = Positions::range(17, tokens);

TEST(Float8, EveryCodeReadsBack) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const float value = detail::e4m3_to_float(byte);
    if ((code & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(value));
    else
      EXPECT_EQ(detail::float_to_e4m3(value), byte) << value;
  }
  EXPECT_EQ(detail::e4m3_to_float(0x7e), 448);
  EXPECT_EQ(detail::e4m3_to_float(0x08), 0x1p-6F);
  EXPECT_EQ(detail::e4m3_to_float(0x81), -0x1p-9F);
}

// Between two neighbours the nearer one, and the even one in the middle; nothing overflows.
TEST(Float8, RoundsToNearestEven) {
  for (std::uint8_t code = 0; code < 0x7e; ++code) {
    const auto above = static_cast<std::uint8_t>(code + 1);
    const float a = detail::e4m3_to_float(code), b = detail::e4m3_to_float(above);
    const float middle = (a + b) / 2;
    EXPECT_EQ(detail::float_to_e4m3(middle), code % 2 == 0 ? code : above) << middle;
    EXPECT_EQ(detail::float_to_e4m3(std::nextafter(middle, a)), code);
    EXPECT_EQ(detail::float_to_e4m3(std::nextafter(middle, b)), above);
    EXPECT_EQ(detail::float_to_e4m3(-std::nextafter(middle, b)), above | 0x80);
  }
  EXPECT_EQ(detail::float_to_e4m3(1e30F), 0x7e);
  EXPECT_EQ(detail::float_to_e4m3(-INFINITY), 0xfe);
  EXPECT_EQ(detail::float_to_e4m3(NAN), 0x7f);
}

// Codes at random, as a cache has them, with a scale for each token and head, or one for all.
struct Cache {
  KeyCode code;
  std::vector<std::byte> codes = std::vector<std::byte>(size);
  std::vector<float> scales;
  CodedKeys keys;
  Cache(KeyCode how, std::int64_t scale_heads, std::int64_t scale_tokens, bool keep) : code(how) {
    std::mt19937 random(5);
    for (std::byte& each : codes) {
      // Small enough that what is turned does not leave the range of a scale that is kept.
      auto value = static_cast<std::uint8_t>(random());
      if (how == KeyCode::e4m3)
        value &= 0xf7;  // not the largest exponents
      else
        value = static_cast<std::uint8_t>(static_cast<std::int8_t>(value) / 2);
      if ((value & 0x7f) > 0x70 && how == KeyCode::e4m3) value &= 0x8f;
      each = std::byte{value};
    }
    for (std::int64_t i = 0; i < scale_heads * scale_tokens; ++i)
      scales.push_back(0.01F * static_cast<float>(i + 1));
    keys = {.code = how,
            .codes = codes.data(),
            .shape = {1, heads, tokens, dim},
            .stride = {size, tokens * dim, dim, 1},
            .scales = Tensor::dense(scales.data(), {1, scale_heads, scale_tokens, 1}),
            .keep_scales = keep};
  }
  std::vector<double> numbers() const {
    std::vector<double> out;
    const Tensor& s = keys.scales;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t d = 0; d < dim; ++d) {
          const auto byte = std::to_integer<std::uint8_t>(
              codes[static_cast<std::size_t>((h * tokens + t) * dim + d)]);
          out.push_back((code == KeyCode::e4m3 ? detail::e4m3_to_float(byte)
                                               : static_cast<std::int8_t>(byte)) *
                        s.get(s.offset(0, s.shape[1] > 1 ? h : 0, s.shape[2] > 1 ? t : 0)));
        }
    return out;
  }
  double scale_of(std::size_t number) const {
    const auto at = static_cast<std::int64_t>(number) / dim;
    const Tensor& s = keys.scales;
    return s.get(s.offset(0, s.shape[1] > 1 ? at / tokens : 0, s.shape[2] > 1 ? at % tokens : 0));
  }
};

// What is read afterwards is within half a step of the exact keys.
void expect_half_a_step(Cache& cache, const Plan& from, const Plan& to) {
  std::vector<double> exact = cache.numbers();
  const Tensor x = Tensor::dense(exact.data(), {1, heads, tokens, dim});
  ASSERT_TRUE(rekey({&from, old_ids}, {&to, new_ids}, x, x));
  const auto done = rekey({&from, old_ids}, {&to, new_ids}, cache.keys);
  ASSERT_TRUE(done) << done.error().message();
  const std::vector<double> moved = cache.numbers();
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const double scale = cache.scale_of(i);
    const double step = cache.code == KeyCode::int8
                            ? scale / 2
                            : std::max(std::abs(exact[i]) * 0x1p-4, scale * 0x1p-10);
    EXPECT_LE(std::abs(moved[i] - exact[i]), step * (1 + 1e-4)) << i << " " << exact[i];
  }
}

TEST(RekeyCoded, ANumberIsOffByHalfAStepOfItsCode) {
  const Plan rope = plan_of(Rope{}), other = plan_of(Rope{.rope_theta = 500}),
             part = plan_of(Rope{.pairing = Pairing::interleaved, .rotary_dim = 32});
  for (const KeyCode code : {KeyCode::e4m3, KeyCode::int8})
    for (const auto& [a, b] : {std::pair{&rope, &rope}, {&rope, &other}, {&part, &part}}) {
      Cache anew(code, heads, tokens, false), of_token(code, 1, tokens, false),
          kept(code, 1, 1, true);
      expect_half_a_step(anew, *a, *b);
      expect_half_a_step(of_token, *a, *b);
      expect_half_a_step(kept, *a, *b);
    }
}

TEST(RekeyCoded, ScalesMadeAnewUseTheWholeRange) {
  const Plan rope = plan_of(Rope{});
  Cache cache(KeyCode::int8, heads, tokens, false);
  ASSERT_TRUE(rekey({&rope, old_ids}, {&rope, new_ids}, cache.keys));
  for (std::int64_t row = 0; row < heads * tokens; ++row) {
    int most = 0;
    for (std::int64_t d = 0; d < dim; ++d)
      most = std::max(most, std::abs(std::to_integer<std::int8_t>(
                                cache.codes[static_cast<std::size_t>(row * dim + d)])));
    EXPECT_EQ(most, 127);
  }
}

// Blocks as ggml writes them, read back by the reader of its files.
TEST(RekeyCoded, RowsOfLlamaCpp) {
  constexpr std::int64_t blocks = size / 32;
  std::vector<std::byte> memory(blocks * 34);
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < blocks; ++i) {
    std::byte* const block = memory.data() + i * 34;
    const std::uint16_t scale = float_to_half(0.002F * static_cast<float>(1 + i % 7));
    std::memcpy(block, &scale, 2);
    for (int c = 0; c < 32; ++c) block[2 + c] = static_cast<std::byte>(random());
  }
  const auto numbers = [&] {
    const auto floats =
        floats_of({.type = "Q8_0", .shape = {tokens, heads * dim}, .bytes = memory});
    return std::vector<double>(floats->begin(), floats->end());
  };
  std::vector<double> exact = numbers();
  // [token][head][dim] as the library takes it.
  const Tensor x = Tensor::dense(exact.data(), {1, tokens, heads, dim}).swapped(1, 2);
  const Plan rope = plan_of(Rope{});
  ASSERT_TRUE(rekey({&rope, old_ids}, {&rope, new_ids}, x, x));
  const auto done = rekey({&rope, old_ids}, {&rope, new_ids},
                          CodedKeys::q8_0(memory.data(), 1, heads, tokens, dim));
  ASSERT_TRUE(done) << done.error().message();
  const std::vector<double> moved = numbers();
  for (std::size_t i = 0; i < moved.size(); ++i) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, memory.data() + i / 32 * 34, 2);
    EXPECT_LE(std::abs(moved[i] - exact[i]), half_to_float(scale) * 0.501);
  }
}

TEST(RekeyCoded, WhatDoesNotFitIsRefused) {
  const Plan rope = plan_of(Rope{});
  const auto refused = [&](const CodedKeys& keys, std::string_view word) {
    const auto done = rekey({&rope, old_ids}, {&rope, new_ids}, keys);
    ASSERT_FALSE(done) << word;
    EXPECT_NE(done.error().message().find(word), std::string::npos) << done.error().message();
  };
  Cache cache(KeyCode::e4m3, 1, 1, true);
  CodedKeys keys = cache.keys;
  keys.keep_scales = false;
  refused(keys, "of one token");
  keys = cache.keys;
  keys.block = 48;
  refused(keys, "divide head_dim");
  keys = cache.keys;
  keys.stride[1] = 0;
  refused(keys, "of its own");
  keys = cache.keys;
  keys.scales.shape[2] = 3;
  refused(keys, "shared");
  keys = cache.keys;
  keys.codes = nullptr;
  refused(keys, "codes must be there");
}

// A page is a batch of its own: what moves in pages is what moves in sequences of the same codes.
TEST(RekeyCoded, InPagesAsInSequences) {
  constexpr std::int64_t pages = 6, page_size = 4, columns = 3;
  constexpr std::int64_t of_page = heads * page_size * dim;
  const Plan rope = plan_of(Rope{});
  const std::vector<std::int32_t> table = {4, 5, 1, 2, -1, -1};
  const std::vector<std::int64_t> counts = {10, 3};
  const Positions stood = Positions::range(900, 10), stands = Positions::range(5, 10);
  for (const KeyCode code : {KeyCode::e4m3, KeyCode::int8})
    for (const bool keep : {true, false}) {
      std::mt19937 random(9);
      std::vector<std::byte> pool(pages * of_page);
      for (std::byte& each : pool) {
        auto value = static_cast<std::uint8_t>(random() & 0x3f);
        each = std::byte{value};
      }
      std::vector<float> scales(pages * heads * page_size);
      for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01F * static_cast<float>(i + 1);
      const std::vector<std::byte> before = pool;
      const std::vector<float> scales_before = scales;
      const auto keys_of = [&](std::byte* codes, float* of_codes, std::int64_t batch) {
        return CodedKeys{.code = code,
                         .codes = codes,
                         .shape = {batch, heads, page_size, dim},
                         .stride = {of_page, page_size * dim, dim, 1},
                         .scales = Tensor::dense(of_codes, {batch, heads, page_size, 1}),
                         .keep_scales = keep};
      };
      for (const int threads : {1, 2}) {
        pool = before, scales = scales_before;
        const auto done =
            rekey({&rope, stood}, {&rope, stands},
                  CodedPages{keys_of(pool.data(), scales.data(), pages), table, counts}, Side::key,
                  {threads});
        ASSERT_TRUE(done) << done.error().message();
        std::vector<std::byte> wanted = before;
        std::vector<float> wanted_scales = scales_before;
        for (std::int64_t s = 0; s < 2; ++s)
          for (std::int64_t first = 0; first < counts[static_cast<std::size_t>(s)];
               first += page_size) {
            const std::int64_t page =
                table[static_cast<std::size_t>(s * columns + first / page_size)];
            CodedKeys one = keys_of(wanted.data() + page * of_page,
                                    wanted_scales.data() + page * heads * page_size, 1);
            one.shape[2] = std::min(page_size, counts[static_cast<std::size_t>(s)] - first);
            one.scales.shape[2] = one.shape[2];
            ASSERT_TRUE(rekey({&rope, stood.slice(0, first, one.shape[2])},
                              {&rope, stands.slice(0, first, one.shape[2])}, one));
          }
        EXPECT_EQ(pool, wanted);
        EXPECT_EQ(scales, wanted_scales);
        EXPECT_NE(pool, before);
      }
      std::vector<std::int32_t> twice = table;
      twice[3] = 4;
      EXPECT_FALSE(rekey({&rope, stood}, {&rope, stands},
                         CodedPages{keys_of(pool.data(), scales.data(), pages), twice, counts}));
    }
}

}  // namespace
}  // namespace posenc::rekey_coded
