// The fused attention on every instruction set against the plain loops in double: random problems
// of every shape, mask, plan and dtype. POSENC_PROBLEMS=N asks for N of them, of which those beyond
// the first are mostly small: a million take some ten minutes for one instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "posenc/attention.h"
#include "posenc/gradients.h"
#include "tests/hidden_memory.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

class Attend : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, Attend, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// Numbers that two problems of one seed share.
class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}
  std::int64_t whole(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool in(std::int64_t n) { return whole(1, n) == 1; }
  double normal(double scale = 1) { return scale * detail::normal(engine_); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + whole(0, static_cast<std::int64_t>(list.size()) - 1));
  }
  std::vector<double> normals(std::int64_t count, double scale = 1) {
    std::vector<double> x(static_cast<std::size_t>(count));
    for (double& value : x) value = normal(scale);
    return x;
  }

 private:
  detail::SplitMix64 engine_;
};

DistanceRows random_rows(Chance& chance, std::int64_t& count) {
  DistanceRows rows;
  const std::int64_t reach = chance.whole(0, 40);
  rows.first = -reach;
  count = chance.whole(1, 2 * reach + 1);
  std::vector<std::int32_t> row;
  for (std::int64_t d = 0; d <= 2 * reach; ++d)
    row.push_back(static_cast<std::int32_t>(std::min(d, count - 1)));
  rows.row = row;
  return rows;
}

// Lists beside the first: runs of distances that share a row, or go from one to the next either
// way, or have none.
void add_further_rows(Chance& chance, Relative& relative) {
  for (std::int64_t lists = chance.whole(1, 2); lists > 0; --lists) {
    DistanceRows rows{.first = chance.whole(-40, 0)};
    std::vector<std::int32_t> row;
    for (const std::int64_t listed = 1 + chance.whole(0, 80); std::ssize(row) < listed;) {
      const std::int64_t step = chance.whole(-1, 1), first = chance.whole(-1, relative.row_count);
      for (std::int64_t n = chance.whole(1, 25), at = first; n > 0; --n, at += step)
        row.push_back(
            static_cast<std::int32_t>(at < 0 ? no_row : std::min(at, relative.row_count - 1)));
    }
    rows.row = std::move(row);
    relative.further_rows.push_back(std::move(rows));
  }
}

// Of queries or keys or both; some distances have no row, and a window may have none.
Relative random_profiles(Chance& chance, std::int64_t heads) {
  Relative relative;
  relative.rows = random_rows(chance, relative.row_count);
  std::vector<std::int32_t> row(relative.rows.row.begin(), relative.rows.row.end());
  if (chance.in(2)) row.front() = row.back() = no_row;
  relative.rows.row = std::move(row);
  if (chance.in(3)) add_further_rows(chance, relative);
  relative.profiles = chance.whole(1, 20);
  relative.uses_query = chance.in(2);
  relative.uses_key = !relative.uses_query || chance.in(2);
  for (Table* table : {&relative.query, &relative.key}) {
    const std::int64_t own = chance.in(2) ? heads : 1;
    *table = Table::own(chance.normals(own * relative.row_count * relative.profiles),
                        own * relative.row_count, relative.profiles);
    table->values =
        Tensor::dense(table->values.data, DType::f64, {own, relative.row_count, relative.profiles});
  }
  return relative;
}

Plan random_plan(Chance& chance, std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                 std::int64_t axes) {
  Plan plan;
  if (chance.in(2) && dim >= 2) {
    Rotate rotate;
    rotate.slice.pairing = chance.one_of({Pairing::halves, Pairing::interleaved});
    rotate.slice.rotary_dim = 2 * chance.whole(1, dim / 2);
    rotate.slice.first_dim = chance.whole(0, dim - rotate.slice.rotary_dim);
    rotate.frequencies.axes = axes;
    rotate.frequencies.heads = heads == kv_heads && chance.in(4) ? heads : 1;
    for (std::int64_t i = 0; i < rotate.frequencies.heads * axes * rotate.pairs(); ++i)
      rotate.frequencies.radians.push_back(std::exp(-std::abs(chance.normal(3))));
    rotate.amplitude = chance.in(3) ? 1.1 : 1;
    if (chance.in(4)) rotate.values = Values::rotated_and_back;
    if (chance.in(4)) {
      XposDecay growth{.scale = 1e7, .centre = 1000000};
      for (std::int64_t i = 0; i < rotate.pairs(); ++i)
        growth.factor.push_back(0.9 + 0.1 * std::abs(chance.normal(0.3)));
      rotate.kind = Plain{.growth = growth};
    }
    if (chance.in(4)) {
      std::vector<double>& magnitudes = std::get<Plain>(rotate.kind).magnitudes;
      for (std::int64_t i = 0; i < rotate.pairs(); ++i)
        magnitudes.push_back(1 + 0.1 * std::abs(chance.normal()));
    }
    plan.rotate = rotate;
  }
  const std::int64_t part = chance.whole(0, 4);
  if (part == 1) {
    Slopes slopes;
    for (std::int64_t h = 0; h < heads; ++h) slopes.slope.push_back(std::exp(chance.normal() - 3));
    slopes.bidirectional = chance.in(2);
    slopes.before_scale = chance.in(3);
    plan.bias = slopes;
  } else if (part == 2) {
    BiasTable table;
    table.rows = random_rows(chance, table.row_count);
    const std::int64_t rows = chance.in(3) ? 1 : heads;
    table.values = Table::own(chance.normals(rows * table.row_count), rows, table.row_count);
    plan.bias = table;
  } else if (part == 3) {
    Relative relative;
    relative.rows = random_rows(chance, relative.row_count);
    if (chance.in(3)) add_further_rows(chance, relative);
    relative.uses_query = chance.in(2);
    relative.uses_key = chance.in(2);
    relative.uses_value = chance.in(2);
    for (Table* table : {&relative.query, &relative.key, &relative.value})
      *table = Table::own(chance.normals(relative.row_count * dim), relative.row_count, dim);
    plan.relative = relative;
  }
  if (part == 4) plan.relative = random_profiles(chance, heads);
  if (plan.rotate && !plan.relative && chance.in(5)) {
    Rotate& rotate = *plan.rotate;
    rotate.slice.rotary_dim = 2 * chance.whole(1, dim);
    rotate.slice.first_dim = chance.whole(0, dim - rotate.pairs());
    rotate.frequencies.radians = chance.normals(rotate.frequencies.heads * axes * rotate.pairs());
    rotate.values = Values::unrotated;
    rotate.kind = Polar{};
  }
  if (plan.rotate && axes == 1 && !plan.relative && !plan.rotate->polar() && chance.in(4)) {
    Rotate& rotate = *plan.rotate;
    rotate.values = Values::unrotated;
    const std::int64_t size = chance.whole(1, 60), other = chance.whole(1, 9);
    const PositionMap within{.modulus = size}, far{.divisor = other, .offset = 3};
    if (chance.in(2))
      rotate.kind = Regions{.window = size, .region = {{}, {far, {.divisor = other}, 1.0 / 3}}};
    else
      rotate.kind = Regions{.chunk = size,
                            .region = {{within, within},
                                       {{.modulus = size, .offset = size}, within},
                                       {{.modulus = 1, .offset = 2 * size}, within}}};
  } else if (plan.rotate && plan.rotate->frequencies.heads == 1 && !plan.rotate->polar() &&
             chance.in(4)) {
    Rotate& rotate = *plan.rotate;
    rotate.values = Values::unrotated;
    Mix mix{.heads = chance.in(2) ? kv_heads : 1,
            .inputs = chance.whole(0, rotate.pairs()),
            .outputs = chance.whole(0, rotate.pairs()),
            .rest_sine = 0.5};
    mix.cosine = chance.normals(mix.heads * mix.inputs * mix.outputs);
    mix.sine = chance.normals(mix.heads * mix.inputs * mix.outputs);
    rotate.kind = mix;
  } else if (plan.rotate && chance.in(3)) {
    Phase phase{.side = chance.in(2) ? Side::key : Side::query};
    if (chance.in(2)) phase.heads = phase.side == Side::key ? kv_heads : heads;
    phase.radians = chance.normals(phase.heads * plan.rotate->pairs());
    if (plan.rotate->polar())
      plan.rotate->kind = Polar{.phase = phase};
    else if (auto* const plain = std::get_if<Plain>(&plan.rotate->kind))
      plain->phase = phase;
  }
  if (plan.rotate && plan.rotate->rotates_values() && chance.in(2))
    plan.rotate->values = Values::rotated;
  if (chance.in(3)) plan.logits.multiplier = 1.3;
  if (chance.in(4)) plan.logits = {.multiplier = 0.9, .beta = 0.1, .floor = 7, .offset = 1};
  return plan;
}

Positions random_positions(Chance& chance, std::int64_t batch, std::int64_t count,
                           std::int64_t axes) {
  if (axes == 1 && !chance.in(3)) {
    return Positions::range(chance.one_of<std::int64_t>({0, 0, 3, 1000000, (1 << 24) - 1 - count}),
                            count);
  }
  if (axes == 1 && chance.in(3) && count > 2) {
    const std::int64_t cut = chance.whole(1, count - 1);
    return Positions::packed(std::vector<std::int64_t>{0, cut, count}).value();
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(axes * batch * count));
  for (std::int64_t& id : ids) id = chance.whole(0, 60);
  if (chance.in(2)) std::ranges::sort(ids);
  return Positions::ids(ids, axes, batch).value();
}

std::vector<double> values_of(const Tensor& x) {
  std::vector<double> out;
  for_each_index(
      x, [&](auto a, auto b, auto c, auto e) { out.push_back(x.get(x.offset(a, b, c, e))); });
  return out;
}

constexpr unsigned large_problems = 80;

// Of each query some keys in any order, and places of none among them; `count` of both.
std::vector<std::int32_t> random_lists(Chance& chance, std::int64_t rows, std::int64_t keys,
                                       std::int64_t& count) {
  count = chance.in(8) ? 0 : chance.whole(1, std::max<std::int64_t>(keys, 2));
  std::vector<std::int32_t> lists, all(static_cast<std::size_t>(keys));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t n = 0; n < count; ++n) {
      const bool none = n >= keys || chance.in(6);
      if (!none)
        std::swap(all[static_cast<std::size_t>(n)],
                  all[static_cast<std::size_t>(chance.whole(n, keys - 1))]);
      lists.push_back(none ? -1 : all[static_cast<std::size_t>(n)]);
    }
  }
  return lists;
}

// One problem: what attend() gives is what attend_reference() does, to rounding. `worst` grows to
// the largest difference in units of what is allowed.
void try_problem(unsigned seed, double& worst) {
  Chance chance(seed);
  const bool large = seed < large_problems || chance.in(800), medium = large || chance.in(20);
  const std::int64_t batch = chance.whole(1, 2), kv_heads = chance.whole(1, 3);
  const std::int64_t heads = kv_heads * chance.one_of<std::int64_t>({1, 1, 2, 5});
  const std::int64_t dim =
      large ? chance.one_of<std::int64_t>({1, 5, 16, 16, 32, 48, 64, 80, 128, 256})
            : chance.one_of<std::int64_t>({1, 2, 5, 8, 16, 20, 32});
  const bool decodes = chance.in(3);
  const std::int64_t keys = chance.whole(1, large && chance.in(6) ? 600 : medium ? 70 : 9);
  const std::int64_t queries = decodes ? 1 : chance.in(3) ? chance.whole(1, 30) : keys;
  const std::int64_t axes = chance.in(6) ? 2 : 1;
  const DType dtype = chance.one_of({DType::f32, DType::f32, DType::f16, DType::bf16});
  Plan plan = random_plan(chance, heads, kv_heads, dim, axes);
  const Positions key_positions = random_positions(chance, batch, keys, axes);
  const Positions query_positions = decodes && key_positions.contiguous() && axes == 1
                                        ? Positions::range(key_positions.at(keys - 1), 1)
                                    : queries == keys
                                        ? key_positions
                                        : random_positions(chance, batch, queries, axes);
  Mask mask{.causal = chance.in(2)};
  if (chance.in(4)) mask.window = chance.whole(1, 50);
  if (chance.in(8)) mask.chunk = chance.whole(1, 50);
  if (chance.in(6)) mask.prefix = chance.whole(1, 30);
  std::vector<std::uint8_t> keep;
  if (chance.in(4)) {
    for (std::int64_t i = 0; i < batch * keys; ++i) keep.push_back(chance.in(4) ? 0 : 1);
    mask.keep = keep.data();
  }
  std::vector<std::int32_t> blocks;
  if (queries <= keys && chance.in(3)) {
    const std::int64_t longest = chance.one_of({3, 40, 200});
    while (std::ssize(blocks) < batch * keys)
      blocks.insert(blocks.end(), static_cast<std::size_t>(chance.whole(1, longest)),
                    static_cast<std::int32_t>(chance.whole(-2, 5)));
    mask.blocks = blocks.data();
  }
  std::vector<std::int32_t> lists;
  if (chance.in(4)) {
    lists = random_lists(chance, batch * queries, keys, mask.key_count);
    mask.keys = lists.data();
  }
  std::vector<double> sinks;
  const std::int64_t sink_kind = chance.whole(0, 3);
  if (sink_kind == 1) sinks = chance.normals(heads, 3);
  if (sink_kind == 2) sinks = chance.normals(batch * heads * queries, 3);
  const Tensor sink_logits = sink_kind == 1   ? Tensor::dense(sinks.data(), {heads})
                             : sink_kind == 2 ? Tensor::dense(sinks.data(), {batch, heads, queries})
                                              : Tensor{};
  const bool caps = std::holds_alternative<Slopes>(plan.bias.value_or(Slopes{})) &&
                    !std::get<Slopes>(plan.bias.value_or(Slopes{})).before_scale;
  const bool vectors = plan.relative && (plan.relative->profiles > 0 || plan.bias);
  if (caps && !vectors && chance.in(3)) plan.logits.softcap = chance.one_of({1.5, 20.0});
  const std::string what = "seed " + std::to_string(seed);
  const std::int64_t profiles = plan.relative ? plan.relative->profiles : 0;
  std::vector<float> of_queries, of_keys;
  ProfileTensors profiled;
  const auto profile = [&](std::vector<float>& x, std::int64_t tokens) {
    for (const double each : chance.normals(batch * heads * tokens * profiles))
      x.push_back(static_cast<float>(each));
    return Tensor::dense(x.data(), {batch, heads, tokens, profiles});
  };
  if (profiles > 0 && plan.relative->uses_key) profiled.query = profile(of_queries, queries);
  if (profiles > 0 && plan.relative->uses_query) profiled.key = profile(of_keys, keys);

  const auto layout = [&] { return all_layouts[chance.whole(0, 5)]; };
  Memory q = memory(dtype, layout(), batch, heads, queries, dim, seed),
         k = memory(dtype, layout(), batch, kv_heads, keys, dim, seed + 1),
         v = memory(dtype, layout(), batch, kv_heads, keys, dim, seed + 2),
         out = memory(dtype, layout(), batch, heads, queries, dim, seed + 3);
  std::vector<double> exact(static_cast<std::size_t>(batch * heads * queries * dim)),
      logits(static_cast<std::size_t>(batch * heads * queries * keys));
  std::vector<double> q64 = values_of(q.view()), k64 = values_of(k.view()),
                      v64 = values_of(v.view());
  ASSERT_TRUE(attend_reference({Tensor::dense(q64.data(), {batch, heads, queries, dim}),
                                Tensor::dense(k64.data(), {batch, kv_heads, keys, dim}),
                                Tensor::dense(v64.data(), {batch, kv_heads, keys, dim}),
                                query_positions,
                                key_positions,
                                mask,
                                {},
                                sink_logits,
                                profiled},
                               plan, Tensor::dense(exact.data(), {batch, heads, queries, dim}),
                               Tensor::dense(logits.data(), {batch, heads, queries, keys})))
      << what;
  AttentionInputs in{q.view(), k.view(), v.view(),    query_positions, key_positions,
                     mask,     {},       sink_logits, profiled};
  in.options.allow_bfloat16_products = false;  // bfloat16_test.cc
  spoil_hidden(in);
  const auto done = attend(in, plan, out.view());
  ASSERT_TRUE(done) << what << ": " << done.error().message();

  double largest = 1, steepest = 1;
  for (const double x : v64) largest = std::max(largest, std::abs(x));
  for (const double x : logits)
    steepest = std::isfinite(x) ? std::max(steepest, std::abs(x)) : steepest;
  if (plan.relative) largest += 4;
  const std::vector<double> got = values_of(out.view());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // A logit is off by some units of its terms' last place, a weight relatively by as much.
    const double allowed =
        largest * (8 + 2 * steepest) * 0x1p-22 * std::sqrt(static_cast<double>(dim)) +
        std::abs(exact[i]) * step(dtype) / 2 + 1e-6;
    worst = std::max(worst, std::abs(got[i] - exact[i]) / allowed);
    if (!(worst <= 1)) {
      FAIL() << what << ": " << got[i] << " for " << exact[i] << " at " << i;
    }
  }
}

TEST_P(Attend, AgreesWithPlainLoopsOnRandomProblems) {
  const char* asked = std::getenv("POSENC_PROBLEMS");
  const unsigned count =
      asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : large_problems;
  double worst = 0;
  for (unsigned seed = 0; seed < count && !HasFailure(); ++seed) try_problem(seed, worst);
  if (asked != nullptr) {
    std::printf("%u problems, the largest difference %.3f of what is allowed\n", count, worst);
  }
}

// Two heads of 16 channels over so many keys, all numbers seeded.
struct Small {
  explicit Small(std::int64_t keys, std::int64_t queries = 0)
      : n(keys), m(queries ? queries : keys) {
    Chance chance(5);
    for (auto* x : {&q, &out}) x->resize(static_cast<std::size_t>(2 * m * 16));
    for (auto* x : {&k, &v}) x->resize(static_cast<std::size_t>(2 * n * 16));
    for (auto* x : {&q, &k, &v})
      for (float& value : *x) value = static_cast<float>(chance.normal());
  }
  static Tensor view(std::vector<float>& x, std::int64_t t) {
    return Tensor::dense(x.data(), {1, 2, t, 16});
  }
  void run(const Plan& plan = {}, const Mask& mask = {}, Threads threads = {},
           std::int64_t first = 0) {
    const auto done =
        attend({view(q, m), view(k, n), view(v, n), Positions::range(first + n - m, m),
                Positions::range(first, n), mask, threads},
               plan, view(out, m));
    ASSERT_TRUE(done) << done.error().message();
  }
  // Against the plain loops; logits of order 1 in float are off by some 1e-6.
  void expect_reference(const Mask& mask, const Positions& queries, const Positions& keys) {
    std::vector<float> wanted(out.size());
    ASSERT_TRUE(attend_reference({view(q, m), view(k, n), view(v, n), queries, keys, mask}, {},
                                 view(wanted, m)));
    const auto done =
        attend({view(q, m), view(k, n), view(v, n), queries, keys, mask}, {}, view(out, m));
    ASSERT_TRUE(done) << done.error().message();
    for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], wanted[e], 1e-5) << e;
  }
  float* row(std::vector<float>& x, std::int64_t t) const { return x.data() + t * 16; }

  std::int64_t n, m;
  std::vector<float> q, k, v, out;
};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_P(Attend, GivesTheSameBitsForAnyNumberOfThreads) {
  Small one(700), many(700);
  one.run({}, {}, Threads{1});
  many.run({}, {}, Threads{3});
  EXPECT_EQ(one.out, many.out);
}

TEST_P(Attend, OfLogitsOfTenThousandTakesTheLargest) {
  Small x(40);
  for (std::int64_t c = 0; c < 16; ++c) {
    for (std::int64_t t = 0; t < 40; ++t) {
      x.row(x.q, t)[c] = 100;
      x.row(x.k, t)[c] = t == 7 ? 25.0f : -25.0f;  // logits ±10,000
    }
  }
  x.run();
  for (std::int64_t t = 7; t < 40; ++t) {
    for (std::int64_t c = 0; c < 16; ++c)
      EXPECT_FLOAT_EQ(x.row(x.out, t)[c], x.row(x.v, 7)[c]) << t;
  }
}

TEST_P(Attend, GivesZerosWhereEveryKeyIsHidden) {
  Small x(20);
  const std::vector<std::uint8_t> none(20, 0);
  x.run({}, Mask{.keep = none.data()});
  EXPECT_EQ(x.out, std::vector<float>(x.out.size(), 0.0f));
}

TEST_P(Attend, OfOneKeyGivesItsValue) {
  Small x(1);
  x.run();
  EXPECT_EQ(x.out, x.v);
}

TEST_P(Attend, OfNoKeysGivesZeros) {
  Small x(1);
  std::ranges::fill(x.out, nan);
  const Tensor one = Tensor::dense(x.q.data(), {1, 2, 1, 16}),
               none = Tensor::dense(x.k.data(), {1, 2, 0, 16}),
               out = Tensor::dense(x.out.data(), {1, 2, 1, 16});
  ASSERT_TRUE(attend({one, none, none, Positions::range(0, 1), Positions::range(0, 0)}, {}, out));
  EXPECT_EQ(x.out, std::vector<float>(x.out.size(), 0.0f));
}

TEST_P(Attend, OfNoQueriesDoesNothing) {
  Small x(3);
  const Tensor none = Tensor::dense(x.q.data(), {1, 2, 0, 16}),
               keys = Tensor::dense(x.k.data(), {1, 2, 3, 16});
  EXPECT_TRUE(attend({none, keys, keys, Positions::range(3, 0), Positions::range(0, 3)}, {}, none));
}

TEST_P(Attend, KeepsNaNFromRowsThatDoNotSeeIt) {
  for (const std::int64_t at : {3, 17, 300}) {
    Small clean(310), x(310);
    for (std::int64_t c = 0; c < 16; ++c) x.row(x.k, at)[c] = x.row(x.v, at)[c] = nan;
    clean.run();
    x.run();
    for (std::int64_t t = 0; t < 310; ++t) {
      if (t < at)
        EXPECT_NEAR(x.row(x.out, t)[2], clean.row(clean.out, t)[2], 1e-6) << t;
      else
        EXPECT_TRUE(std::isnan(x.row(x.out, t)[2])) << t;
    }
  }
}

TEST_P(Attend, KeepsWhatPaddingHoldsOut) {
  Small clean(50), x(50);
  std::vector<std::uint8_t> keep(50, 1);
  for (std::int64_t t = 0; t < 9; ++t) {
    keep[static_cast<std::size_t>(t)] = 0;
    for (std::int64_t c = 0; c < 16; ++c) {
      x.row(x.k, t)[c] = nan;
      x.row(x.v, t)[c] = std::numeric_limits<float>::infinity();
    }
  }
  clean.run({}, Mask{.keep = keep.data()});
  x.run({}, Mask{.keep = keep.data()});
  for (std::int64_t t = 0; t < 50; ++t)
    EXPECT_NEAR(x.row(x.out, t)[5], clean.row(clean.out, t)[5], 1e-6) << t;
}

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// No mask is so large that a distance and it do not fit into 64 bits together.
TEST_P(Attend, TakesTheLargestMasks) {
  for (const std::int64_t keys : {1, 40, 300}) {
    const Positions tokens = Positions::range(0, keys);
    for (const bool causal : {true, false}) {
      for (const std::int64_t number : {largest, largest - 1, std::int64_t{1} << 62}) {
        for (const Mask& mask :
             {Mask{.causal = causal, .window = number}, Mask{.causal = causal, .chunk = number},
              Mask{.causal = causal, .prefix = number},
              Mask{.causal = causal, .window = number, .chunk = number, .prefix = number}}) {
          SCOPED_TRACE(std::to_string(keys) + (causal ? " causal " : " open ") +
                       std::to_string(mask.window) + " " + std::to_string(mask.chunk) + " " +
                       std::to_string(mask.prefix));
          Small(keys).expect_reference(mask, tokens, tokens);
        }
      }
    }
  }
}

// Nor are positions so far apart, in ranges and in lists.
TEST_P(Attend, TakesQueriesFarFromTheirKeys) {
  constexpr std::int64_t far = furthest_position - 300;
  for (const std::int64_t keys : {5, 300}) {
    std::vector<std::int64_t> near_ids, far_ids;
    for (std::int64_t t = 0; t < keys; ++t) {
      near_ids.push_back(t);
      far_ids.push_back(far + t);
    }
    for (const auto& [near, away] : {std::pair{*Positions::ids(near_ids), *Positions::ids(far_ids)},
                                     {Positions::range(0, keys), *Positions::ids(far_ids)},
                                     {Positions::range(0, keys), Positions::range(far, keys)}}) {
      for (const bool causal : {true, false}) {
        for (const std::int64_t window : {std::int64_t{0}, std::int64_t{7}, far, largest}) {
          SCOPED_TRACE(std::to_string(keys) + (causal ? " causal " : " open ") +
                       std::to_string(window));
          const Mask mask{.causal = causal, .window = window};
          Small(keys).expect_reference(mask, away, near);
          Small(keys).expect_reference(mask, near, away);
        }
      }
    }
  }
}

TEST_P(Attend, IsTheSameAtTheLastPositionsThatAFloatHolds) {
  Plan plan;
  plan.bias = Slopes{.slope = {0.5, 0.1}};
  Small near(64), far(64);
  near.run(plan);
  far.run(plan, {}, {}, (1 << 24) - 1 - 64);
  EXPECT_EQ(near.out, far.out);
}

// Memory holds no view of nothing back, however many rows it has: loops over them would never end.
TEST(AttendErrors, ManyRowsWithoutANumber) {
  float none = 0;
  const Tensor x = Tensor::dense(&none, {std::int64_t{1} << 40, 2, 0, 8});
  const Positions at = Positions::range(0, 0);
  const AttentionInputs in{x, x, x, at, at};
  for (const Expected<void>& refused :
       {attend(in, {}, x), attend_reference(in, {}, x), attend_backward(in, {}, x, {.q = x})}) {
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().message().contains("2^24 rows")) << refused.error().message();
  }
}

}  // namespace
}  // namespace posenc
