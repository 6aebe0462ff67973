// Every room refuses what it does not know, and what its list leaves out: the one a feature that
// this build alone adds to every plan, the other each feature of a real plan. The lists are thereby
// true.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "posenc/cuda.h"
#include "posenc/key_header.h"
#include "posenc/posenc.h"
#include "posenc/rekey.h"

namespace posenc {

extern bool has_test_feature;  // src/core/features.cc, compiled for this build

namespace {

constexpr std::int64_t heads = 2, tokens = 3, head_dim = 4, pairs = 2;

// Numbers of any shape, alive as long as the test.
struct Numbers {
  std::vector<double> values;
  Tensor view;
  explicit Numbers(std::initializer_list<std::int64_t> shape, double value = 0.5) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    values.assign(size, value);
    view = Tensor::dense(values.data(), shape);
  }
};

Numbers of_tokens(std::int64_t channels = head_dim) {
  return Numbers({1, heads, tokens, channels});
}

// What `verb` makes of a head comes out as wide as the plan says.
template <class Verb>
Expected<void> on_tokens(const Plan& plan, Verb verb) {
  const Numbers x = of_tokens(),
                out = of_tokens(head_dim + (plan.rotate ? plan.rotate->widening() : 0));
  return verb(plan, x.view, Positions::range(1, tokens), Side::query, out.view, Threads{1});
}

AttentionInputs inputs(const Numbers& q, const Numbers& k, const Numbers& v, const Plan& plan) {
  static const Numbers profile({1, heads, tokens, 2});
  AttentionInputs in{.q = q.view,
                     .k = k.view,
                     .v = v.view,
                     .queries = Positions::range(0, tokens),
                     .keys = Positions::range(0, tokens),
                     .mask = {.causal = true}};
  if (plan.relative && plan.relative->profiles > 0) in.profiles.query = profile.view;
  return in;
}

Expected<void> attended(const Plan& plan) {
  const Numbers q = of_tokens(), k = q, v = q, out = q;
  return attend(inputs(q, k, v, plan), plan, out.view);
}

Expected<void> attended_back(const Plan& plan, bool frequencies = false, bool temperature = false) {
  const Numbers q = of_tokens(), k = q, v = q, gradient = q, by_q = q;
  AttentionGradients to{.q = by_q.view};
  const std::int64_t axes = plan.rotate ? plan.rotate->frequencies.axes : 1,
                     own = plan.rotate ? plan.rotate->frequencies.heads : 1,
                     count = plan.rotate ? plan.rotate->pairs() : 1;
  const Numbers by_frequency({own, axes, count}), by_scale({heads});
  if (frequencies) to.rotation_frequency = by_frequency.view;
  if (temperature) to.head_scale = by_scale.view;
  return attend_backward(inputs(q, k, v, plan), plan, gradient.view, to);
}

Expected<void> cached(const Plan& plan, CachedKeys keys, bool shifted = false) {
  auto cache =
      KvCache::make({.kv_heads = heads, .head_dim = head_dim, .dtype = DType::f64, .keys = keys});
  if (!cache) return std::unexpected(cache.error());
  const KvCache::Sequence sequence = cache->add();
  const Numbers k = of_tokens(), v = k, out = k;
  if (auto done = cache->append({{sequence}}, k.view, v.view, plan); !done || !shifted) return done;
  return cache->shift(sequence, 0, tokens, 5);
}

// A place of the library, and how it is asked; `needs` is what it cannot do without.
struct Asked {
  const Room* room;
  std::function<Expected<void>(const Plan&)> ask;
  std::vector<Feature> needs = {};
};

std::vector<Asked> asked() {
  using enum Feature;
  const auto verb = [](auto function) {
    return [function](const Plan& plan) {
      return on_tokens(plan, [&](auto&&... arguments) { return function(arguments...); });
    };
  };
  const auto emitted = [](std::string_view target) {
    return [target](const Plan& plan) -> Expected<void> {
      const auto made = emit(plan, target, {.head_dim = head_dim, .heads = heads});
      if (!made) return std::unexpected(made.error());
      return {};
    };
  };
  return {
      {&rooms::add,
       [](const Plan& plan) {
         const Numbers x({1, tokens, head_dim}), out = x;
         return add(plan, x.view, Positions::range(0, tokens), out.view);
       },
       {waves, position_table, ramp}},
      {&rooms::bias,
       [](const Plan& plan) {
         const Numbers out({heads, tokens, tokens});
         return bias(plan, Positions::range(0, tokens), Positions::range(0, tokens), out.view);
       }},
      {&rooms::rotate, verb([](auto&&... a) { return rotate(a...); })},
      {&rooms::rotate_transpose, verb([](auto&&... a) { return rotate_transpose(a...); })},
      {&rooms::rotate_inverse, verb([](auto&&... a) { return rotate_inverse(a...); })},
      {&rooms::rotate_by,
       [](const Plan& plan) {
         const Numbers x = of_tokens(), out = x, angles({1, 1, tokens, pairs});
         return rotate_by(plan, x.view, angles.view, Side::query, out.view);
       },
       {rotation}},
      {&rooms::rekey,
       [](const Plan& plan) {
         const Numbers x = of_tokens(), out = x;
         const Positions at = Positions::range(0, tokens);
         return rekey({&plan, at}, {&plan, at}, x.view, out.view);
       }},
      {&rooms::key_header,
       [](const Plan& plan) -> Expected<void> {
         const std::int64_t shape[] = {1, heads, tokens, head_dim};
         const auto made = key_header({&plan, Positions::range(0, tokens)}, shape, KeyType::f64);
         if (!made) return std::unexpected(made.error());
         return {};
       }},
      {&rooms::rotation_angles,
       [](const Plan& plan) {
         const Numbers out({1, heads, tokens, plan.rotate ? plan.rotate->pairs() : pairs});
         return rotation_angles(plan, Positions::range(0, tokens), out.view);
       },
       {rotation}},
      {&rooms::rotation_turns,
       [](const Plan& plan) -> Expected<void> {
         const auto made = rotation_turns(plan);
         if (!made) return std::unexpected(made.error());
         return {};
       },
       {rotation}},
      {&rooms::frequency_gradient,
       [](const Plan& plan) {
         const std::int64_t wide = head_dim + (plan.rotate ? plan.rotate->widening() : 0);
         const Numbers x = of_tokens(wide), gradient = x;
         const Frequencies of = plan.rotate ? plan.rotate->frequencies : Frequencies{};
         const Numbers out({of.heads, of.axes, plan.rotate ? plan.rotate->pairs() : pairs});
         return rotate_frequency_gradient(plan, x.view, gradient.view, Positions::range(0, tokens),
                                          out.view);
       },
       {rotation}},
      {&rooms::content_angles,
       [](const Plan& plan) {
         const Numbers said({1, heads, tokens, pairs}), out = said;
         return content_angles({.plan = plan}, {.said = said.view}, out.view);
       },
       {rotation}},
      {&rooms::attend, attended},
      {&rooms::attend_backward, [](const Plan& plan) { return attended_back(plan); }},
      {&rooms::attended_frequencies,
       [](const Plan& plan) { return attended_back(plan, true); },
       {rotation}},
      {&rooms::attended_temperature,
       [](const Plan& plan) { return attended_back(plan, false, true); },
       {head_temperature}},
      {&rooms::attend_content,
       [](const Plan& plan) {
         const Numbers q = of_tokens(), k = q, v = q, out = q;
         const Fire fire{.hidden_weight = {1},
                         .hidden_bias = {0},
                         .output_weight = {1, 1},
                         .output_bias = {0, 0}};
         return attend(inputs(q, k, v, plan), fire, plan, out.view);
       }},
      {&rooms::rotated_keys,
       [](const Plan& plan) { return cached(plan, CachedKeys::rotated); },
       {rotation}},
      {&rooms::rerotated_keys,
       [](const Plan& plan) { return cached(plan, CachedKeys::rotated, true); },
       {rotation}},
      {&rooms::unrotated_keys,
       [](const Plan& plan) { return cached(plan, CachedKeys::unrotated); }},
      {&rooms::emit, emitted("c"), {rotation, slopes, slopes_before_scale, bias_table}},
      {&rooms::emit_score_mod, emitted("score_mod"), {slopes, slopes_before_scale, bias_table}},
      {&rooms::cuda,
       [](const Plan& plan) {
         const auto made = cuda::Rotations::make(std::span(&plan, 1), cuda::emulated());
         return made ? Expected<void>() : std::unexpected(made.error());
       },
       {rotation}},
  };
}

Plan of(const Scheme& scheme) {
  Expected<Plan> plan = compile(
      scheme,
      {.width = head_dim, .heads = heads, .kv_heads = heads, .head_dim = head_dim, .length = 16});
  EXPECT_TRUE(plan) << plan.error().message();
  return plan.value_or(Plan{});
}

// A plan with each feature, as schemes make it or a person by hand.
std::vector<Plan> plans() {
  std::vector<Plan> all{of(Sinusoidal{}),
                        of(Rope{}),
                        of(Rope{.rotated_heads = 1}),
                        of(Rope{.rotate_values = true}),
                        of(XPos{}),
                        of(Pope{}),
                        of(Rope{.imaginary_heads = ImaginaryHeads::alternating}),
                        of(Alibi{})};
  const auto rotating = [&](RotationKind kind) {
    all.push_back(of(Rope{}));
    all.back().rotate->kind = std::move(kind);
  };
  rotating(Plain{.magnitudes = {1, 1.25}});
  rotating(Mix{.inputs = 1, .outputs = 1, .cosine = {1}, .sine = {1}});
  rotating(Regions{.window = 2, .region = {{}, {}}});
  rotating(TwoAngles{.radians = {0.5, 0.25}});
  rotating(HfFloat{});
  for (double& f : all.back().rotate->frequencies.radians) f = static_cast<float>(f);
  all.push_back({.add = Add{Rows{.rows = 16,
                                 .width = head_dim,
                                 .table = Table::own(std::vector<double>(64, 1), 16, 4)}}});
  all.push_back({.add = Add{Ramp{.width = head_dim}}});
  all.push_back(of(Rope{}));
  all.back().rotate->frequencies = {.axes = 2, .radians = {1, 0, 0, 1}};
  all.push_back({.bias = Slopes{.slope = {1, 0.5}, .before_scale = true}});
  all.push_back({.bias = BiasTable{
                     .rows = {.row = {0, 1}}, .row_count = 2, .values = Table::own({1, 2}, 1, 2)}});
  const Relative vectors{.rows = {.row = {0}},
                         .row_count = 1,
                         .key = Table::own(std::vector<double>(head_dim, 1), 1, head_dim)};
  all.push_back({.relative = vectors});
  all.push_back(of(Rope{}));
  all.back().relative = vectors;
  all.push_back(
      {.relative = Relative{
           .rows = {.row = {0}}, .row_count = 1, .key = Table::own({1, 1}, 1, 2), .profiles = 2}});
  all.push_back({.logits = {.beta = 0.1, .floor = 2}});
  all.push_back({.logits = {.temperature = Temperature::heads,
                            .offset = 1,
                            .head_scale = {1, 1},
                            .head_bias = {0, 0}}});
  all.push_back({.logits = {.softcap = 30}});
  return all;
}

std::string text(FeatureSet set) {
  std::string words;
  for (const FeatureInfo& each : feature_list())
    if (set.has(each.feature)) words += std::string(each.name) + " ";
  return words;
}

bool has_what_it_needs(const Asked& room, FeatureSet has) {
  return room.needs.empty() ||
         std::ranges::any_of(room.needs, [&](Feature feature) { return has.has(feature); });
}

TEST(Features, EachIsOfSomePlan) {
  FeatureSet all;
  for (const Plan& plan : plans()) {
    EXPECT_TRUE(checked(plan)) << text(features(plan));
    all = all | features(plan);
  }
  for (const FeatureInfo& each : feature_list())
    EXPECT_EQ(all.has(each.feature), each.feature != Feature::unknown) << each.name;
}

TEST(Features, AreListedInTheirOrderWithWordsAndACure) {
  int next = 0;
  for (const FeatureInfo& each : feature_list()) {
    EXPECT_EQ(static_cast<int>(each.feature), next++);
    EXPECT_FALSE(each.name.empty() || each.words.empty() || each.cure.empty()) << each.name;
  }
}

TEST(Rooms, TakeWhatTheirListsSayAndRefuseTheRest) {
  for (const Asked& room : asked()) {
    int taken = 0;
    for (const Plan& plan : plans()) {
      const FeatureSet has = features(plan);
      if (!has_what_it_needs(room, has)) continue;
      const Expected<void> done = room.ask(plan);
      if (room.room->refused(has).empty()) {
        EXPECT_TRUE(done) << room.room->name << ": " << text(has) << done.error().message();
        ++taken;
      } else {
        ASSERT_FALSE(done) << room.room->name << ": " << text(has);
        EXPECT_TRUE(done.error().rule.starts_with("the plan must not have "))
            << room.room->name << ": " << done.error().message();
        EXPECT_FALSE(done.error().cure.empty());
      }
    }
    EXPECT_GT(taken, 0) << room.room->name;
  }
}

// As a later posenc writes it, and as this test's build has it.
class WhatNoRoomKnows : public testing::TestWithParam<bool> {
 protected:
  WhatNoRoomKnows() { has_test_feature = !GetParam(); }
  ~WhatNoRoomKnows() override { has_test_feature = false; }
};
INSTANTIATE_TEST_SUITE_P(Written, WhatNoRoomKnows, testing::Bool(), [](const auto& written) {
  return written.param ? "ByALaterPosenc" : "InThisBuild";
});

TEST_P(WhatNoRoomKnows, IsRefusedByEveryRoom) {
  for (const Asked& room : asked()) {
    for (Plan plan : plans()) {
      if (GetParam()) plan.unknown = {"rotate.hologram"};
      if (!has_what_it_needs(room, features(plan))) continue;
      const Expected<void> done = room.ask(plan);
      EXPECT_FALSE(done) << room.room->name;
    }
  }
}

// Rooms that read a model's plan: of a build with a feature that they do not know.
TEST(WhatNoRoomKnowsOfAModel, IsLostInTranslationAndRefusedByIdentify) {
  const Model model = *read_config(
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
          "max_position_embeddings": 64})");
  has_test_feature = true;
  for (const char* engine : {"onnx", "llama.cpp", "vllm"}) {
    const auto translation = translate(model, engine);
    ASSERT_TRUE(translation) << translation.error().message();
    EXPECT_TRUE(std::ranges::any_of(translation->notes, [](const EngineNote& note) {
      return note.kind == EngineNote::Kind::lost && note.what == info(Feature::unknown).words;
    })) << engine;
  }
  const Identified found{.verdict = Rotated::rotation};
  EXPECT_FALSE(beside_model(found, model, 0, 64));
  has_test_feature = false;
}

}  // namespace
}  // namespace posenc
