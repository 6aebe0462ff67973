// A cache fed token by token, or by pieces of any size, gives what attention over the whole text
// gives.
#include "posenc/cache.h"

#include <string>
#include <tuple>
#include <vector>

#include "tests/kv_text.h"

namespace posenc {
using namespace kv;

namespace {

constexpr CachedKeys both[] = {CachedKeys::unrotated, CachedKeys::rotated};

std::string name(CachedKeys keys) { return keys == CachedKeys::rotated ? "rotated" : "unrotated"; }

// --- every scheme, dtype, policy and page size ---------------------------------------------------

Table learned(std::int64_t rows, std::int64_t columns) {
  Numbers values;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    values.push_back(std::sin(static_cast<double>(i * i)));
  return Table::own(std::move(values), rows, columns);
}

struct Named {
  const char* name;
  Scheme scheme;
};
const Named schemes[] = {
    {"NoPE", NoPe{}},
    {"RopeHalves", Rope{}},
    {"RopeInterleaved", Rope{.pairing = Pairing::interleaved}},
    {"RopePartial", Rope{.rotary_dim = 4}},
    {"RopeTrailing", Rope{.rotary_dim = 6, .slice = SliceEnd::trailing}},
    {"RopeValues", Rope{.rotate_values = true}},
    {"RopeYarn", Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 8}}},
    {"XPos", XPos{}},
    {"Alibi", Alibi{}},
    {"T5", T5{.num_buckets = 8, .max_distance = 16, .table = learned(8, 8)}},
    {"Shaw", Shaw{.max_distance = 4, .key = learned(9, 8), .value = learned(9, 8)}},
};

using Case = std::tuple<Named, DType, CachedKeys>;
class CacheOf : public testing::TestWithParam<Case> {
 protected:
  Text text{.dtype = std::get<DType>(GetParam())};
  const Plan plan = compiled(std::get<Named>(GetParam()).scheme, text.geometry());
  const Numbers truth = text.at_once(plan);

  Numbers in_pieces(const std::vector<std::int64_t>& pieces, std::int64_t page_size) {
    return through_cache(text.options(std::get<CachedKeys>(GetParam()), page_size), text, pieces,
                         [&](auto) { return plan; });
  }
  double rounding() { return text.rounding(plan.rotate ? plan.rotate->amplitude : 1); }
};
std::string case_name(const testing::TestParamInfo<Case>& each) {
  const auto& [scheme, dtype, keys] = each.param;
  return scheme.name + std::string("_") + std::string(posenc::name(dtype)) + "_" + name(keys);
}
INSTANTIATE_TEST_SUITE_P(Every, CacheOf,
                         testing::Combine(testing::ValuesIn(schemes), testing::ValuesIn(all_dtypes),
                                          testing::ValuesIn(both)),
                         case_name);

TEST_P(CacheOf, TokenByTokenGivesWhatThePrefillGives) {
  for (const std::int64_t page_size : {1, 3, 16}) {
    const Numbers out = in_pieces({1}, page_size);
    EXPECT_LE(largest_difference(out, truth), rounding()) << page_size;
    EXPECT_LE(rms_difference(out, truth), 2 * std::max(step(text.dtype), 0x1p-46)) << page_size;
  }
}

TEST_P(CacheOf, APrefillCutAnywhereGivesTheSame) {
  for (const std::vector<std::int64_t>& pieces :
       {std::vector<std::int64_t>{21}, {20, 1}, {1, 20}, {4, 1, 1, 7}, {5}}) {
    EXPECT_LE(largest_difference(in_pieces(pieces, 3), truth), rounding()) << pieces[0];
  }
}

// As in DeepSeek's heads of 192 channels, whose values have 128.
TEST_P(CacheOf, ValuesMayBeNarrowerOrWiderThanKeys) {
  const bool rotated = plan.rotate && plan.rotate->rotates_values();
  for (const std::int64_t width : {rotated ? 9 : 6, 11}) {
    Text other{.value_dim = width, .dtype = text.dtype};
    Plan fits = plan;
    if (fits.relative) fits.relative->value = learned(9, width);
    const Numbers out = through_cache(other.options(std::get<CachedKeys>(GetParam())), other,
                                      {4, 1}, [&](auto) { return fits; });
    EXPECT_LE(largest_difference(out, other.at_once(fits)), rounding()) << width;
  }
}

// --- masks, batches, axes ------------------------------------------------------------------------

class Cache : public testing::TestWithParam<CachedKeys> {};
INSTANTIATE_TEST_SUITE_P(Keys, Cache, testing::ValuesIn(both),
                         [](const auto& each) { return name(each.param); });

// A prefix sees itself whole, so it comes in one piece.
TEST_P(Cache, MasksSeeAsInOneCall) {
  Text text;
  const Plan plan = compiled(Rope{}, text.geometry());
  for (const Mask& mask : {Mask{.window = 4}, Mask{.chunk = 5}, Mask{.window = 3, .prefix = 2},
                           Mask{.chunk = 4, .prefix = 1}, Mask{.window = 1}}) {
    const Numbers out =
        through_cache(text.options(GetParam()), text, {3, 1}, [&](auto) { return plan; }, mask);
    EXPECT_LE(largest_difference(out, text.at_once(plan, mask)), text.rounding())
        << mask.window << " " << mask.chunk;
  }
}

// Keys that the window has left are not even read, so what is not a number there does no harm.
TEST_P(Cache, WhatNoQuerySeesIsNotRead) {
  Text text;
  const Plan plan = compiled(Alibi{}, text.geometry());
  const Mask mask{.window = 4};
  const Numbers truth = text.at_once(plan, mask);
  Memory& k = text.k;
  KvCache cache = made(text.options(GetParam(), 16));
  const auto sequence = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, text.heads, text.tokens, text.dim);
  for (std::int64_t h = 0; h < 2; ++h) k.view().set(k.view().offset(0, h, 0), NAN);
  fed(cache, sequence, text, 0, 20, {20}, [&](auto) { return plan; }, out.view(), mask);
  fed(cache, sequence, text, 20, 21, {1}, [&](auto) { return plan; }, out.view(), mask);
  const Numbers got = numbers(tokens_of(out.view(), 20, 1));
  for (const double x : got) EXPECT_TRUE(std::isfinite(x));
  EXPECT_NEAR(got[0], truth[20 * 8], text.rounding());
}

TEST_P(Cache, SequencesOfUnequalLengthsDecodeTogether) {
  std::vector<Text> texts;
  for (const std::int64_t tokens : {5, 21, 12}) {
    texts.push_back({.tokens = tokens, .seed = static_cast<unsigned>(tokens)});
  }
  const Plan plan = compiled(Rope{}, texts[0].geometry());
  KvCache cache = made(texts[0].options(GetParam()));
  std::vector<KvCache::Sequence> sequences;
  std::vector<std::int64_t> next;
  for (Text& text : texts) {  // all but the last four tokens as a prefill
    sequences.push_back(cache.add());
    next.push_back(text.tokens - 4);
    const auto first = [&](Memory& x) { return tokens_of(x.view(), 0, next.back()); };
    ASSERT_TRUE(cache.append({{sequences.back()}}, first(text.k), first(text.v), plan));
  }
  for (int step = 0; step < 4; ++step) {
    Memory q = memory(DType::f64, MemoryLayout::heads_first, 3, 8, 1, 8),
           k = memory(DType::f64, MemoryLayout::heads_first, 3, 2, 1, 8),
           v = memory(DType::f64, MemoryLayout::reversed, 3, 2, 1, 8), out = q;
    for (std::size_t b = 0; b < 3; ++b) {
      for (const auto& [to, from] :
           {std::pair{&q, &texts[b].q}, {&k, &texts[b].k}, {&v, &texts[b].v}}) {
        const Tensor x = tokens_of(from->view(), next[b], 1), y = to->view();
        for_each_index(x, [&](auto, auto h, auto t, auto c) {
          y.set(y.offset(static_cast<std::int64_t>(b), h, t, c), x.get(x.offset(0, h, t, c)));
        });
      }
    }
    ASSERT_TRUE(cache.append(sequences, k.view(), v.view(), plan));
    ASSERT_TRUE(cache.attend(sequences, q.view(), plan, {}, out.view()));
    for (std::size_t b = 0; b < 3; ++b, ++next[b - 1]) {
      const Numbers truth = texts[b].at_once(plan), got = numbers(out.view());
      for (std::int64_t h = 0; h < 8; ++h) {
        for (std::int64_t c = 0; c < 8; ++c) {
          EXPECT_NEAR(got[static_cast<std::size_t>((static_cast<std::int64_t>(b) * 8 + h) * 8 + c)],
                      truth[static_cast<std::size_t>((h * texts[b].tokens + next[b]) * 8 + c)],
                      texts[b].rounding())
              << b;
        }
      }
    }
  }
}

TEST_P(Cache, TextGoesOnBehindAPictureOnAllAxes) {
  Text text{.tokens = 8};
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 8},
             .frequencies = {.axes = 3, .radians = {1, 0.3, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 0.03}}};
  // Two words, a picture of 1 x 2 x 2 patches, two words.
  const std::vector<std::int64_t> ids = {0, 1, 2, 2, 2, 2, 4, 5, 0, 1, 2, 2,
                                         3, 3, 4, 5, 0, 1, 2, 3, 2, 3, 4, 5};
  const auto all = Positions::ids(ids, 3);
  ASSERT_TRUE(all);
  const auto picture =
      Positions::ids(std::vector<std::int64_t>{2, 2, 2, 2, 2, 2, 3, 3, 2, 3, 2, 3}, 3);
  ASSERT_TRUE(picture);
  KvCache cache = made(text.options(GetParam()));
  const auto sequence = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 8, 8);
  const auto feed = [&](std::int64_t first, std::int64_t count, std::optional<Positions> at) {
    const auto piece = [&](Memory& x) { return tokens_of(x.view(), first, count); };
    ASSERT_EQ(message(cache.append({{sequence}}, piece(text.k), piece(text.v), plan, at)), "");
    ASSERT_EQ(message(cache.attend({{sequence}}, piece(text.q), plan, {}, piece(out))), "");
  };
  feed(0, 2, {});
  feed(2, 4, *picture);
  feed(6, 2, {});  // behind the largest of all axes
  EXPECT_EQ(*cache.positions(sequence), *all);
  EXPECT_LE(largest_difference(numbers(out.view()), text.at_once(plan, *all)), text.rounding());
}

TEST_P(Cache, TheSameBitsForAnyNumberOfThreads) {
  Text text{.tokens = 64, .dim = 64, .dtype = DType::f32};
  const Plan plan = compiled(Rope{}, text.geometry());
  const auto run = [&](int threads) {
    KvCache cache = made(text.options(GetParam()));
    const auto one = cache.add(), two = cache.add();
    Memory out = memory(DType::f32, MemoryLayout::heads_first, 1, 8, 64, 64);
    for (const auto sequence : {one, two, one}) {
      EXPECT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), plan, {}, {threads}));
    }
    EXPECT_TRUE(cache.attend({{one}}, text.q.view(), plan, {}, out.view(), {threads}));
    return numbers(out.view());
  };
  EXPECT_EQ(run(1), run(2));
  EXPECT_EQ(run(1), run(7));
}

// --- pages ---------------------------------------------------------------------------------------

TEST_P(Cache, PagesOfRemovedSequencesServeOthers) {
  Text text{.tokens = 10};
  const Plan plan = compiled(Rope{}, text.geometry());
  KvCacheOptions options = text.options(GetParam());
  options.max_pages = 8;  // two sequences of ten tokens in pages of three
  KvCache cache = made(options);
  EXPECT_EQ(cache.free_pages(), 8);
  const Numbers truth = text.at_once(plan);
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 10, 8);
  KvCache::Sequence old = cache.add();
  fed(cache, old, text, 0, 10, {4, 1}, [&](auto) { return plan; }, out.view());
  for (int round = 0; round < 6; ++round) {
    const auto fresh = cache.add();
    EXPECT_GT(fresh, old);
    fed(cache, fresh, text, 0, 10, {4, 1}, [&](auto) { return plan; }, out.view());
    EXPECT_LE(largest_difference(numbers(out.view()), truth), text.rounding());
    ASSERT_TRUE(cache.attend({{old}}, text.q.view(), plan, {}, out.view()));  // nobody wrote there
    EXPECT_LE(largest_difference(numbers(out.view()), truth), text.rounding());
    EXPECT_EQ(cache.free_pages(), 0);
    ASSERT_TRUE(cache.remove(old));
    EXPECT_EQ(cache.free_pages(), 4);
    old = fresh;
  }
  EXPECT_EQ(cache.pages(), 8);
}

TEST_P(Cache, AFullCacheIsAnErrorThatLeavesItAsItWas) {
  Text text{.tokens = 10};
  const Plan plan = compiled(Rope{}, text.geometry());
  KvCacheOptions options = text.options(GetParam());
  options.max_pages = 4;
  KvCache cache = made(options);
  const std::vector<KvCache::Sequence> two = {cache.add(), cache.add()};
  ASSERT_TRUE(cache.append({{two[0]}}, text.k.view(), text.v.view(), plan));
  const Tensor k = tokens_of(text.k.view(), 0, 1), v = tokens_of(text.v.view(), 0, 1);
  EXPECT_EQ(
      message(cache.append({{two[1]}}, k, v, plan)),
      "cache append: there must be 1 free pages, got 0 of max_pages 4; remove or evict, or make "
      "a cache with more pages");
  EXPECT_EQ(*cache.tokens(two[1]), 0);
  EXPECT_TRUE(cache.append({{two[0]}}, k, v, plan));  // the last page has room
}

TEST_P(Cache, OneSequenceAloneIsReadWhereItLies) {
  Text text{.tokens = 20};
  const Plan plan = compiled(Alibi{}, text.geometry());
  KvCacheOptions options = text.options(GetParam());
  options.max_pages = 16;
  KvCache cache = made(options);
  const auto one = cache.add(), other = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 20, 8);
  // Turn about: with room reserved, each has neighbouring pages all the same.
  for (std::int64_t t = 0; t < 20; ++t) {
    fed(cache, one, text, t, t + 1, {1}, [&](auto) { return plan; }, out.view());
    fed(cache, other, text, t, t + 1, {1}, [&](auto) { return plan; }, out.view());
  }
  EXPECT_EQ(cache.bytes(), 2 * 16 * 3 * 2 * 8 * 8);  // no scratch
}

}  // namespace
}  // namespace posenc
