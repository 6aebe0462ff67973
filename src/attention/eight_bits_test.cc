// Keys and values of 8 bits, beside the double reference and beside the floats that they are.
#include "tests/eight_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t heads = 8, kv_heads = 2, keys = 70;

// `queries` of the last tokens of two texts.
template <class T>
struct EightBitCache {
  std::int64_t queries, dim;
  EightBits k, v;
  std::vector<T> q, out, expected;

  EightBitCache(DType of_keys, DType of_values, std::int64_t count, std::int64_t width)
      : queries(count),
        dim(width),
        k(of_keys, 2, kv_heads, keys, width, 1),
        v(of_values, 2, kv_heads, keys, width, 2),
        q(random<T>(2 * heads * count * width, 3)),
        out(q.size()),
        expected(q.size()) {}

  AttentionInputs inputs() {
    return {.q = of_queries(q),
            .k = k.view(),
            .v = v.view(),
            .queries = Positions::range(keys - queries, queries),
            .keys = Positions::range(0, keys),
            .threads = {1}};
  }
  Tensor of_queries(std::vector<T>& x) { return Tensor::dense(x.data(), {2, heads, queries, dim}); }
  Plan plan(const std::string& scheme) const {
    return compile(*make_scheme(scheme),
                   {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .length = keys})
        .value();
  }
  void expect_reference(const AttentionInputs& in, const std::string& scheme, double within) {
    const Plan by = plan(scheme);
    const auto done = attend(in, by, of_queries(out));
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_TRUE(attend_reference(in, by, of_queries(expected)));
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(expected[i]), within)
          << scheme << ", number " << i;
  }
};

class EightBitsOf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(, EightBitsOf, testing::ValuesIn(eight_bit_dtypes),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(EightBitsOf, DecodingIsTheReference) {
  for (const char* scheme : {"nope", "rope", "alibi"}) {
    EightBitCache<float> cache(GetParam(), GetParam(), 1, 64);
    cache.expect_reference(cache.inputs(), scheme, 2e-5);
  }
}

TEST_P(EightBitsOf, ManyQueriesAreTheReference) {
  for (const char* scheme : {"nope", "rope", "alibi", "pope"}) {
    EightBitCache<float> cache(GetParam(), GetParam(), keys, 32);
    cache.expect_reference(cache.inputs(), scheme, 2e-5);
  }
}

TEST_P(EightBitsOf, DoublesAreTheReference) {
  EightBitCache<double> cache(GetParam(), GetParam(), 3, 32);
  cache.expect_reference(cache.inputs(), "rope", 1e-12);
}

TEST_P(EightBitsOf, ScalesMultiplyKeysAndValues) {
  EightBitCache<float> cache(GetParam(), GetParam(), 1, 32);
  AttentionInputs in = cache.inputs();
  in.key_scale = 0.37;
  in.value_scale = -1.5;
  cache.expect_reference(in, "rope", 3e-5);
}

// The reference multiplies keys and values by them, so that it is held against floats in turn.
TEST_P(EightBitsOf, ScalesAreThoseOfFloats) {
  EightBitCache<float> cache(GetParam(), GetParam(), 2, 32);
  const auto floats = [](EightBits& x, double scale) {
    std::vector<float> numbers;
    for (std::int64_t e = 0; e < x.shape.size(); ++e)
      numbers.push_back(static_cast<float>(x.view().get(e) * scale));
    return numbers;
  };
  AttentionInputs in = cache.inputs();
  in.key_scale = 0.5;
  in.value_scale = 2;
  ASSERT_TRUE(attend(in, cache.plan("rope"), cache.of_queries(cache.out)));
  std::vector<float> k = floats(cache.k, 0.5), v = floats(cache.v, 2);
  in.k = Tensor::dense(k.data(), {2, kv_heads, keys, 32});
  in.v = Tensor::dense(v.data(), {2, kv_heads, keys, 32});
  in.key_scale = in.value_scale = 1;
  ASSERT_TRUE(attend(in, cache.plan("rope"), cache.of_queries(cache.expected)));
  for (std::size_t i = 0; i < cache.out.size(); ++i)
    ASSERT_NEAR(cache.out[i], cache.expected[i], 4e-5f) << "number " << i;
}

TEST_P(EightBitsOf, HiddenKeysAreOfNoEffect) {
  EightBitCache<float> cache(GetParam(), GetParam(), 1, 32);
  std::vector<std::uint8_t> keep(2 * keys, 1);
  for (std::size_t j = 0; j < keep.size(); j += 3) keep[j] = 0;
  AttentionInputs in = cache.inputs();
  in.mask.keep = keep.data();
  cache.expect_reference(in, "rope", 2e-5);
}

TEST(EightBits, KeysAndValuesMayDiffer) {
  EightBitCache<float> cache(DType::q8_0, DType::e4m3, 1, 64);
  cache.expect_reference(cache.inputs(), "rope", 2e-5);
}

TEST(EightBits, WidthsWithARestAreTheReference) {
  EightBitCache<float> cache(DType::e4m3, DType::e5m2, 1, 24);
  cache.expect_reference(cache.inputs(), "rope", 2e-5);
}

// Tokens first, as vLLM's blocks have them.
TEST(EightBits, StridesAreFollowed) {
  EightBitCache<float> cache(DType::q8_0, DType::q8_0, 1, 64);
  AttentionInputs in = cache.inputs();
  for (Tensor* x : {&in.k, &in.v}) {
    x->stride[1] = 64;
    x->stride[2] = kv_heads * 64;
  }
  cache.expect_reference(in, "rope", 2e-5);
}

// One that a value gives weight to reaches the output; a hidden one does not.
TEST(EightBits, NansReachThoseWhoSeeThem) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, 1, 32);
  cache.v.bytes[5] = 0x7f;
  ASSERT_TRUE(attend(cache.inputs(), cache.plan("nope"), cache.of_queries(cache.out)));
  EXPECT_TRUE(std::isnan(cache.out[5]));
  EXPECT_FALSE(std::isnan(cache.out[6]));
}

// --- what is refused -----------------------------------------------------------------------------

void expect_refused(const Expected<void>& done, std::string_view words) {
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find(words), std::string::npos) << done.error().message();
}

TEST(EightBits, VectorsByDistanceAreRefused) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, 1, 32);
  Plan plan = cache.plan("shaw");
  expect_refused(attend(cache.inputs(), plan, cache.of_queries(cache.out)),
                 "k must be of 16 bits or more beside vectors by distance");
}

TEST(EightBits, PartsOfBlocksAreRefused) {
  EightBitCache<float> cache(DType::q8_0, DType::q8_0, 1, 32);
  AttentionInputs in = cache.inputs();
  in.k.stride[2] = 24;
  expect_refused(attend(in, cache.plan("nope"), cache.of_queries(cache.out)),
                 "k of q8_0 must have whole blocks of 32 numbers");
}

TEST(EightBits, AScaleOfFloatsIsRefused) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, keys, 32);
  std::vector<float> k(static_cast<std::size_t>(cache.k.shape.size()));
  AttentionInputs in = cache.inputs();
  in.k = Tensor::dense(k.data(), {2, kv_heads, keys, 32});
  in.key_scale = 2;
  expect_refused(attend(in, cache.plan("nope"), cache.of_queries(cache.out)),
                 "key_scale must be 1 where k is not of 8 bits");
}

TEST(EightBits, AScaleBesideMagnitudesIsRefused) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, 1, 32);
  AttentionInputs in = cache.inputs();
  in.key_scale = 2;
  expect_refused(attend(in, cache.plan("pope"), cache.of_queries(cache.out)),
                 "key_scale must be 1 where the rotation makes magnitudes");
}

TEST(EightBits, QueriesAreRefused) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, keys, 32);
  AttentionInputs in = cache.inputs();
  in.q = in.k;
  expect_refused(attend(in, cache.plan("nope"), cache.of_queries(cache.out)),
                 "q must be of 16 bits or more");
}

TEST(EightBits, RotationsAndGradientsAreRefused) {
  EightBitCache<float> cache(DType::e4m3, DType::e4m3, keys, 32);
  const AttentionInputs in = cache.inputs();
  const Plan plan = cache.plan("rope");
  expect_refused(rotate(plan, in.k, in.keys, Side::key, in.k), "must be of 16 bits or more");
  expect_refused(attend_backward(in, plan, in.q, {}), "k must be of 16 bits or more");
}

TEST(EightBits, ACacheOfOursIsOf16OrMore) {
  EXPECT_FALSE(KvCache::make({.kv_heads = 1, .head_dim = 32, .dtype = DType::q8_0}));
}

}  // namespace
}  // namespace posenc
