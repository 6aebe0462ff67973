// A verdict is what running shows. A small model of each kind is computed by one rank, and by ranks
// that have their own tokens and what the exchange hands them: where the verdict is `survives` both
// agree, where it is `breaks` they differ, and where an engine forgets what `needs` says they do
// too.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "posenc/attention.h"
#include "posenc/context_parallel.h"
#include "src/context_parallel/work.h"
#include "src/core/some_heads.h"

namespace posenc::layout {
namespace {

constexpr std::int64_t tokens = 96, ranks = 4;

Model small(std::string_view more, std::string_view type = "llama") {
  const std::string context =
      more.contains("\"max_position_embeddings\"") ? "" : R"("max_position_embeddings": 4096, )";
  const auto model =
      read_config(R"({"model_type": ")" + std::string(type) +
                  R"(", "hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 4,
          "head_dim": 16, "num_hidden_layers": 4, "rope_theta": 10000.0, )" +
                  context + R"("vocab_size": 100)" + std::string(more) + "}");
  EXPECT_TRUE(model) << model.error().message();
  return model ? *model : Model{};
}

Judgement judged(const Model& model, std::string_view words, std::int64_t length = tokens) {
  const auto sharding = read_sharding(words);
  EXPECT_TRUE(sharding) << sharding.error().message();
  const auto out = judge(model, *sharding, {.length = length});
  EXPECT_TRUE(out) << out.error().message();
  return out ? *out : Judgement{};
}

const Reason* find(const GroupVerdict& group, std::string_view code) {
  const auto at = std::ranges::find(group.reasons, code, &Reason::code);
  return at == group.reasons.end() ? nullptr : &*at;
}

bool needs(const GroupVerdict& group, std::string_view words) {
  return std::ranges::any_of(group.needs,
                             [&](const std::string& need) { return need.contains(words); });
}

// --- a layer, run --------------------------------------------------------------------------------

// [1, heads, count, width] of doubles.
struct Rows {
  std::int64_t heads = 0, count = 0, width = 0;
  std::vector<double> values = {};

  Rows(std::int64_t of_heads, std::int64_t of_count, std::int64_t of_width)
      : heads(of_heads),
        count(of_count),
        width(of_width),
        values(static_cast<std::size_t>(of_heads * of_count * of_width)) {}
  Tensor view() { return Tensor::dense(values.data(), {1, heads, count, width}); }
  double* row(std::int64_t head, std::int64_t t) {
    return values.data() + (head * count + t) * width;
  }
  void randomize(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (double& value : values) value = normal(random);
  }
  // Some of the tokens, of some of the heads.
  Rows part(std::span<const std::int64_t> of, std::int64_t first_head = 0,
            std::int64_t of_heads = 0) {
    const std::int64_t many = of_heads > 0 ? of_heads : heads;
    Rows out(many, std::ssize(of), width);
    for (std::int64_t h = 0; h < many; ++h)
      for (std::int64_t t = 0; t < std::ssize(of); ++t)
        std::copy_n(row(first_head + h, of[static_cast<std::size_t>(t)]), width, out.row(h, t));
    return out;
  }
};

// A group of layers with everything that its attention takes.
struct Layer {
  Plan plan;
  Mask mask;
  Rows q, k, v;
  std::vector<double> sinks;

  Layer(const LayerGroup& group, const Plan& of_group)
      : plan(of_group),
        q(group.geometry.heads, tokens, group.geometry.head_dim),
        k(group.geometry.kv_heads, tokens, group.geometry.head_dim),
        v(group.geometry.kv_heads, tokens, group.geometry.head_dim) {
    q.randomize(1), k.randomize(2), v.randomize(3);
    mask.causal = group.causal;
    if (group.window) (group.chunked ? mask.chunk : mask.window) = *group.window;
    if (group.sink_logits)
      for (std::int64_t h = 0; h < group.geometry.heads; ++h)
        sinks.push_back(1 + 0.3 * static_cast<double>(h));
  }

  Tensor sink_tensor(std::int64_t first, std::int64_t count) {
    return sinks.empty() ? Tensor() : Tensor::dense(sinks.data() + first, {count});
  }

  Rows whole() {
    Rows out(q.heads, tokens, v.width);
    const auto done = attend({.q = q.view(),
                              .k = k.view(),
                              .v = v.view(),
                              .queries = Positions::range(0, tokens),
                              .keys = Positions::range(0, tokens),
                              .mask = mask,
                              .sink_logits = sink_tensor(0, q.heads)},
                             plan, out.view());
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }
};

// What an engine may forget of `needs`.
struct Slip {
  bool local_ids = false;  // every rank counts from 0
  bool sinks_each_block = false;
  std::function<Plan(std::int64_t)> local_plan = {};  // compiled for a rank's part
};

double largest(Rows& a, Rows& b) {
  double most = 0;
  for (std::size_t n = 0; n < a.values.size(); ++n)
    most = std::max(most, std::abs(a.values[n] - b.values[n]));
  return most;
}

// Ranks that hand each other keys and values, block by block, and merge parts by their log sums.
Rows by_keys(Layer& layer, const Layout& layout, const Slip& slip = {}) {
  Rows out(layer.q.heads, tokens, layer.v.width);
  const Positions text = Positions::range(0, tokens);
  const auto places = [&](std::int64_t rank) {
    return slip.local_ids ? Positions::range(0, layout.size(rank)) : *layout.positions(rank, text);
  };
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
    const auto own = layout.tokens_of(rank);
    Rows q = layer.q.part(own);
    Plan plan = slip.local_plan ? slip.local_plan(layout.size(rank)) : layer.plan;
    if (slip.local_plan) plan.valid.reset();  // by which posenc itself would refuse it
    Rows sum(q.heads, q.count, layer.v.width), part = sum;
    std::vector<double> log_sum(static_cast<std::size_t>(q.heads * q.count), -INFINITY),
        log_part = log_sum;
    for (std::int64_t other = 0; other < layout.ranks(); ++other) {
      const auto theirs = layout.tokens_of(other);
      Rows k = layer.k.part(theirs), v = layer.v.part(theirs);
      const bool counts = other == 0 || slip.sinks_each_block;
      const auto done =
          attend({.q = q.view(),
                  .k = k.view(),
                  .v = v.view(),
                  .queries = places(rank),
                  .keys = places(other),
                  .mask = layer.mask,
                  .sink_logits = counts ? layer.sink_tensor(0, q.heads) : Tensor()},
                 plan, part.view(), Tensor::dense(log_part.data(), {1, q.heads, q.count}));
      EXPECT_TRUE(done) << done.error().message();
      for (std::size_t row = 0; row < log_sum.size(); ++row) {
        if (log_part[row] == -INFINITY) continue;
        const double most = std::max(log_sum[row], log_part[row]);
        const double both =
            most + std::log(std::exp(log_sum[row] - most) + std::exp(log_part[row] - most));
        for (std::int64_t c = 0; c < sum.width; ++c) {
          double& value =
              sum.values[row * static_cast<std::size_t>(sum.width) + static_cast<std::size_t>(c)];
          value =
              value * std::exp(log_sum[row] - both) +
              part.values[row * static_cast<std::size_t>(sum.width) + static_cast<std::size_t>(c)] *
                  std::exp(log_part[row] - both);
        }
        log_sum[row] = both;
      }
    }
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::size_t t = 0; t < own.size(); ++t)
        std::copy_n(sum.row(h, static_cast<std::int64_t>(t)), sum.width, out.row(h, own[t]));
  }
  return out;
}

// Ranks that have all tokens of some heads; key heads repeat where there are fewer.
Rows by_heads(Layer& layer, std::int64_t among) {
  Rows out(layer.q.heads, tokens, layer.v.width);
  std::vector<std::int64_t> all(static_cast<std::size_t>(tokens));
  std::iota(all.begin(), all.end(), 0);
  const std::int64_t own = layer.q.heads / among, group = layer.q.heads / layer.k.heads;
  for (std::int64_t rank = 0; rank < among; ++rank) {
    const std::int64_t first = rank * own, first_key = first / group,
                       keys = std::max<std::int64_t>(own / group, 1);
    Rows q = layer.q.part(all, first, own), k = layer.k.part(all, first_key, keys),
         v = layer.v.part(all, first_key, keys), part(own, tokens, layer.v.width);
    const Plan plan = posenc::detail::some_heads(layer.plan, {first, own}, {first_key, keys});
    const auto done = attend({.q = q.view(),
                              .k = k.view(),
                              .v = v.view(),
                              .queries = Positions::range(0, tokens),
                              .keys = Positions::range(0, tokens),
                              .mask = layer.mask,
                              .sink_logits = layer.sink_tensor(first, own)},
                             plan, part.view());
    EXPECT_TRUE(done) << done.error().message();
    for (std::int64_t h = 0; h < own; ++h)
      std::copy_n(part.row(h, 0), tokens * part.width, out.row(first + h, 0));
  }
  return out;
}

struct Kind {
  std::string_view name, type, more;
};
// Each with at least one group whose attention is more than a plain rotation.
constexpr Kind kinds[] = {
    {"plain", "llama", ""},
    {"window", "mistral", R"(, "sliding_window": 10)"},
    {"window among full", "gemma3_text",
     R"(, "sliding_window": 10, "query_pre_attn_scalar": 16, "rope_local_base_freq": 1000.0,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])"},
    {"chunks", "llama4_text",
     R"(, "attention_chunk_size": 20, "no_rope_layers": [1, 1, 1, 0], "attn_temperature_tuning": true,
        "floor_scale": 16, "attn_scale": 0.5)"},
    {"dynamic NTK", "llama", R"(, "rope_scaling": {"type": "dynamic", "factor": 4.0},
        "max_position_embeddings": 32)"},
    {"YaRN", "qwen2", R"(, "rope_scaling": {"type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 1024})"},
    {"sinks", "gpt_oss", R"(, "sliding_window": 10, "layer_types":
        ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])"},
};

TEST(JudgeByRunning, WhatSurvivesIsThatOfOneRank) {
  for (const Kind& kind : kinds) {
    const Model model = small(kind.more, kind.type);
    for (const std::string_view words :
         {"contiguous:4", "zigzag:4", "round_robin:4", "round_robin:4:block=8", "balanced:4",
          "ulysses:4", "ulysses:8"}) {
      const Judgement said = judged(model, words);
      for (std::size_t g = 0; g < said.groups.size(); ++g) {
        const LayerGroup& group = model.groups[g];
        EXPECT_EQ(said.groups[g].verdict, Verdict::survives) << kind.name << " " << words;
        Layer layer(group, *compile(group, tokens));
        Rows one = layer.whole();
        Rows many = said.sharding.exchange == Exchange::heads
                        ? by_heads(layer, said.sharding.head_ranks)
                        : by_keys(layer, *Layout::named(words.starts_with("round") ? "striped"
                                                        : words.starts_with("z")   ? "zigzag"
                                                        : words.starts_with("b")   ? "balanced"
                                                                                   : "contiguous",
                                                        std::array<std::int64_t, 2>{0, tokens},
                                                        ranks, layer.mask, said.sharding.block));
        EXPECT_LT(largest(one, many), 1e-12) << kind.name << " " << words;
      }
    }
  }
}

// Biases by distance, without a rotation.
TEST(JudgeByRunning, BiasesByDistanceSurviveByThoseOfTheText) {
  const Model model = read_model("bloom-176b").value();
  Model few = model;
  few.groups[0].geometry = {.heads = 8, .kv_heads = 8, .head_dim = 16};
  const Judgement said = judged(few, "zigzag:4");
  EXPECT_EQ(said.verdict, Verdict::survives);
  EXPECT_TRUE(needs(said.groups[0], "biases by the distance"));
  Layer layer(few.groups[0], *compile(few.groups[0], tokens));
  Rows one = layer.whole(), many = by_keys(layer, *Layout::zigzag(tokens, ranks)),
       slipped = by_keys(layer, *Layout::zigzag(tokens, ranks), {.local_ids = true}),
       heads = by_heads(layer, 8);
  EXPECT_LT(largest(one, many), 1e-12);
  EXPECT_LT(largest(one, heads), 1e-12);
  EXPECT_GT(largest(one, slipped), 0.1);
  EXPECT_EQ(judged(few, "megatron:4").verdict, Verdict::breaks);
  EXPECT_EQ(judged(few, "zigzag:4:engine=ring-flash-attention").verdict, Verdict::breaks);
}

// Megatron-LM #560, #1612 and others: what `needs` says, forgotten.
TEST(JudgeByRunning, IdsOfARankAloneAreWrong) {
  for (const std::string_view words : {"contiguous:4", "zigzag:4", "round_robin:4"}) {
    const Model model = small("");
    const Judgement said = judged(model, words);
    EXPECT_TRUE(needs(said.groups[0], "position ids of the whole text")) << words;
    Layer layer(model.groups[0], *compile(model.groups[0], tokens));
    Rows one = layer.whole();
    const Layout layout =
        *Layout::named(words.starts_with("round") ? "striped" : words.substr(0, words.find(':')),
                       std::array<std::int64_t, 2>{0, tokens}, ranks);
    Rows slipped = by_keys(layer, layout, {.local_ids = true});
    EXPECT_GT(largest(one, slipped), 0.1) << words;
  }
}

// llama.cpp #24875: a scaling by the length of a rank's part. 24 tokens are below 32, 96 above.
TEST(JudgeByRunning, AScalingByAPartsLengthIsWrongWhereItSaysSo) {
  const Model model = small(R"(, "rope_scaling": {"type": "dynamic", "factor": 4.0},
      "max_position_embeddings": 32)");
  const LayerGroup& group = model.groups[0];
  const Judgement said = judged(model, "zigzag:4");
  EXPECT_TRUE(needs(said.groups[0], "by which it would rotate differently"));
  Layer layer(group, *compile(group, tokens));
  Rows one = layer.whole(),
       slipped = by_keys(layer, *Layout::zigzag(tokens, ranks),
                         {.local_plan = [&](std::int64_t part) { return *compile(group, part); }});
  EXPECT_GT(largest(one, slipped), 0.01);
  // LongRoPE's switch at 64: 96 and a rank's 24 lie on two sides, 1024 and 256 on one.
  std::string factors = "1";
  for (int n = 1; n < 8; ++n) factors += ", 1.5";
  const Model switched =
      small(R"(, "rope_scaling": {"type": "longrope", "short_factor": [)" + factors +
                R"(], "long_factor": [2, 2, 3, 3, 4, 4, 5, 5]},
      "original_max_position_embeddings": 64)",
            "phi3");
  EXPECT_TRUE(
      needs(judged(switched, "zigzag:4").groups[0], "by which it would rotate differently"));
  EXPECT_TRUE(needs(judged(switched, "zigzag:4", 1024).groups[0], "happens not to change"));
  Layer both(switched.groups[0], *compile(switched.groups[0], tokens));
  Rows right = both.whole();
  Rows wrong = by_keys(both, *Layout::zigzag(tokens, ranks), {.local_plan = [&](std::int64_t part) {
                         return *compile(switched.groups[0], part);
                       }});
  EXPECT_GT(largest(right, wrong), 0.01);
  EXPECT_EQ(*compile(switched.groups[0], 1024)->rotate, *compile(switched.groups[0], 256)->rotate);
}

// A sink that each block of keys counts.
TEST(JudgeByRunning, ASinkCountsOnce) {
  const Model model = small(kinds[6].more, "gpt_oss");
  Layer layer(model.groups[1], *compile(model.groups[1], tokens));
  EXPECT_TRUE(needs(judged(model, "zigzag:4").groups[1], "counted once"));
  Rows one = layer.whole(),
       slipped = by_keys(layer, *Layout::zigzag(tokens, ranks), {.sinks_each_block = true});
  EXPECT_GT(largest(one, slipped), 0.01);
  const Judgement refused = judged(model, "megatron:4");
  EXPECT_TRUE(find(refused.groups[1], "sinks_refused"));
  EXPECT_TRUE(find(refused.groups[0], "window_refused"));
  const Judgement taken = judged(model, "--context-parallel-size 4 --cp-comm-type a2a");
  EXPECT_EQ(taken.verdict, Verdict::survives);
}

// --- keys that are made of several tokens --------------------------------------------------------

// A window of 8 and, behind it, a key for each 4 tokens: their mean, rotated by its first position.
// A rank makes those whose last token it holds of the tokens in its memory and the `m` before its
// first, which its neighbour hands on.
struct Compressed {
  static constexpr std::int64_t m = 4, window = 8, width = 16;
  Rows x{1, tokens, width}, q{1, tokens, width};
  Plan plan = *posenc::compile(Rope{}, {.heads = 1, .kv_heads = 1, .head_dim = width});
  Compressed() { x.randomize(4), q.randomize(5); }

  struct Key {
    std::int64_t number;
    std::vector<double> value;
  };
  // Of tokens in a row; `number` counts from the first of the text.
  std::vector<Key> keys_of(const std::vector<std::int64_t>& memory, std::int64_t first_number) {
    std::vector<Key> out;
    for (std::size_t t = 0; t + m <= memory.size(); t += m) {
      Key key{first_number + static_cast<std::int64_t>(t) / m, std::vector<double>(width)};
      for (std::size_t i = 0; i < m; ++i)
        for (std::int64_t c = 0; c < width; ++c)
          key.value[static_cast<std::size_t>(c)] += x.row(0, memory[t + i])[c] / m;
      out.push_back(std::move(key));
    }
    return out;
  }

  Rows attended(const std::vector<Key>& keys) {
    Rows all(1, tokens + std::ssize(keys), width), out(1, tokens, width);
    std::vector<std::int64_t> places(static_cast<std::size_t>(tokens));
    std::iota(places.begin(), places.end(), 0);
    std::copy(x.values.begin(), x.values.end(), all.values.begin());
    for (std::size_t n = 0; n < keys.size(); ++n) {
      std::ranges::copy(keys[n].value, all.row(0, tokens + static_cast<std::int64_t>(n)));
      places.push_back(keys[n].number * m);
    }
    // What each query sees, as a list.
    std::vector<std::int32_t> lists;
    const std::int64_t most = window + std::ssize(keys);
    for (std::int64_t i = 0; i < tokens; ++i) {
      std::vector<std::int32_t> list;
      for (std::int64_t j = std::max<std::int64_t>(i - window + 1, 0); j <= i; ++j)
        list.push_back(static_cast<std::int32_t>(j));
      for (std::size_t n = 0; n < keys.size(); ++n)
        if (keys[n].number * m + m <= i + 1)
          list.push_back(static_cast<std::int32_t>(tokens + static_cast<std::int64_t>(n)));
      list.resize(static_cast<std::size_t>(most), -1);
      lists.insert(lists.end(), list.begin(), list.end());
    }
    const auto done = attend({.q = q.view(),
                              .k = all.view(),
                              .v = all.view(),
                              .queries = Positions::range(0, tokens),
                              .keys = *Positions::ids(places),
                              .mask = {.causal = false, .keys = lists.data(), .key_count = most}},
                             plan, out.view());
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }

  Rows whole() {
    std::vector<std::int64_t> all(static_cast<std::size_t>(tokens));
    std::iota(all.begin(), all.end(), 0);
    return attended(keys_of(all, 0));
  }
  // Each rank's keys, made as kernels of one run a rank make them.
  Rows shared_out(const Layout& layout) {
    std::vector<Key> keys;
    for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
      std::vector<std::int64_t> memory = layout.tokens_of(rank);
      const std::int64_t first = memory.front(), begun = first % m;
      for (std::int64_t before = 1; before <= begun; ++before)
        memory.insert(memory.begin(), first - before);
      for (Key& key : keys_of(memory, first / m)) keys.push_back(std::move(key));
    }
    return attended(keys);
  }
};

Model compressing() {
  return small(R"(, "sliding_window": 8, "qk_rope_head_dim": 16, "compress_rates":
      {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}, "layer_types":
      ["heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention",
       "compressed_sparse_attention"])",
               "deepseek_v4");
}

// verl #7221.
TEST(JudgeByRunning, KeysOfSeveralTokensWantOneRun) {
  const Model model = compressing();
  const auto group = std::ranges::find(model.groups, 4, &LayerGroup::compressed);
  ASSERT_NE(group, model.groups.end());
  const auto at = static_cast<std::size_t>(group - model.groups.begin());
  Compressed layer;
  Rows one = layer.whole();
  const auto verdict = [&](std::string_view words) { return judged(model, words).groups[at]; };

  EXPECT_FALSE(find(verdict("contiguous:4"), "compressed_keys"));
  EXPECT_TRUE(needs(verdict("contiguous:4"), "from its neighbour"));
  for (const std::int64_t among : {2, 3, 4, 5}) {
    Rows many = layer.shared_out(*Layout::contiguous(tokens, among));
    EXPECT_LT(largest(one, many), 1e-12) << among;
  }
  const GroupVerdict zigzag = verdict("zigzag:4"), robin = verdict("round_robin:4"),
                     blocks = verdict("round_robin:4:block=8");
  for (const GroupVerdict* broken : {&zigzag, &robin, &blocks}) {
    EXPECT_EQ(broken->verdict, Verdict::breaks);
    ASSERT_TRUE(find(*broken, "compressed_keys"));
    EXPECT_EQ(find(*broken, "compressed_keys")->basis, Basis::layout);
  }
  EXPECT_EQ(find(zigzag, "compressed_keys")->source, "verl#7221");
  for (const Layout& layout :
       {*Layout::zigzag(tokens, 4), *Layout::striped(tokens, 4), *Layout::striped(tokens, 4, 8)}) {
    Rows many = layer.shared_out(layout);
    EXPECT_GT(largest(one, many), 0.1);
  }
  EXPECT_EQ(judged(model, "verl:4:by=ring:order=zigzag").groups[at].verdict, Verdict::breaks)
      << "its indexer picks from a ring";
  EXPECT_FALSE(judged(model, "zigzag:4").best.layout.starts_with("zigzag"));
}

// --- what an indexer picks -----------------------------------------------------------------------

// Scores q·k, rotated; the best `count` of what a query sees.
struct Picking {
  static constexpr std::int64_t count = 6, width = 16;
  Rows q{1, tokens, width}, k{1, tokens, width};
  Plan plan = *posenc::compile(Rope{}, {.heads = 1, .kv_heads = 1, .head_dim = width});
  Picking() { q.randomize(6), k.randomize(7); }

  // The picks of query i among keys in an order of memory, as ids of the text: `ids` are what the
  // rotation takes for their positions, `text` which they are.
  std::vector<std::vector<std::int64_t>> picked(std::span<const std::int64_t> text,
                                                std::span<const std::int64_t> ids,
                                                std::span<const std::int64_t> query_ids) {
    Rows keys = k.part(text), out(1, tokens, width), logits(1, tokens, std::ssize(text));
    const auto done = attend_reference({.q = q.view(),
                                        .k = keys.view(),
                                        .v = keys.view(),
                                        .queries = *Positions::ids(query_ids),
                                        .keys = *Positions::ids(ids),
                                        .mask = {}},
                                       plan, out.view(), logits.view());
    EXPECT_TRUE(done) << done.error().message();
    std::vector<std::vector<std::int64_t>> all;
    for (std::int64_t i = 0; i < tokens; ++i) {
      std::vector<std::int64_t> order(text.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, std::greater(),
                               [&](std::int64_t n) { return logits.row(0, i)[n]; });
      std::vector<std::int64_t> best;
      for (const std::int64_t n : order)
        if (std::ssize(best) < count && logits.row(0, i)[n] > -INFINITY)
          best.push_back(text[static_cast<std::size_t>(n)]);
      std::ranges::sort(best);
      all.push_back(std::move(best));
    }
    return all;
  }
};

// sglang #28463.
TEST(JudgeByRunning, AnIndexerWantsAllKeysAndIdsOfTheText) {
  const Model model = read_model("llama-3.1-8b").value();
  Model picks = model;
  picks.groups[0].picked = Picked{.count = 6};
  EXPECT_EQ(judged(picks, "contiguous:4").verdict, Verdict::survives);
  EXPECT_EQ(judged(picks, "contiguous:4:by=ring").verdict, Verdict::breaks);
  const Judgement robin = judged(picks, "round_robin:4:by=gather");
  EXPECT_EQ(robin.verdict, Verdict::unknown);
  EXPECT_EQ(find(robin.groups[0], "indexer")->source, "sglang#28463");
  EXPECT_EQ(judged(picks, "sglang:4").verdict, Verdict::unknown);
  EXPECT_EQ(judged(picks, "zigzag:4:engine=sglang").verdict, Verdict::breaks);

  Picking layer;
  std::vector<std::int64_t> text(static_cast<std::size_t>(tokens));
  std::iota(text.begin(), text.end(), 0);
  const auto one = layer.picked(text, text, text);
  // Gathered from ranks, with ids of the text: the same. With ids by the place in memory: not.
  const Layout striped = *Layout::striped(tokens, 4);
  std::vector<std::int64_t> gathered;
  for (std::int64_t rank = 0; rank < 4; ++rank)
    for (const std::int64_t t : striped.tokens_of(rank)) gathered.push_back(t);
  EXPECT_EQ(layer.picked(gathered, gathered, text), one);
  EXPECT_NE(layer.picked(gathered, text, text), one);
  // Contiguous parts gather in the order of the text, whatever counts them.
  // A ring picks within each block: six of each of four are not the six best of all.
  std::size_t most = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto block = Layout::contiguous(tokens, 4)->tokens_of(rank);
    most += layer.picked(block, block, text).back().size();
  }
  EXPECT_GT(most, one.back().size());
}

// --- states --------------------------------------------------------------------------------------

// S ← 0.9 S + v kᵀ, out = S q: linear attention that forgets.
struct Recurrent {
  static constexpr std::int64_t width = 8;
  Rows q{1, tokens, width}, k{1, tokens, width}, v{1, tokens, width};
  Recurrent() { q.randomize(8), k.randomize(9), v.randomize(10); }

  using State = std::vector<double>;
  static State none() { return State(width * width); }
  // Tokens one after another; the state that they leave.
  State run(std::span<const std::int64_t> memory, State state, Rows& out) {
    for (const std::int64_t t : memory)
      for (std::int64_t a = 0; a < width; ++a) {
        double sum = 0;
        for (std::int64_t b = 0; b < width; ++b) {
          double& cell = state[static_cast<std::size_t>(a * width + b)];
          cell = 0.9 * cell + v.row(0, t)[a] * k.row(0, t)[b];
          sum += cell * q.row(0, t)[b];
        }
        out.row(0, t)[a] = sum;
      }
    return state;
  }
  Rows shared_out(const Layout& layout, bool handed_on) {
    Rows out(1, tokens, width);
    State state = none();
    for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
      const auto memory = layout.tokens_of(rank);
      state = run(memory, handed_on ? state : none(), out);
    }
    return out;
  }
};

// accelerate #4177, Megatron-LM #5664.
TEST(JudgeByRunning, AStateWantsTheOrderOfTheText) {
  const auto model = read_config(R"({"model_type": "qwen3_next", "hidden_size": 64, "head_dim": 16,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
      "full_attention_interval": 4, "partial_rotary_factor": 0.25, "rope_theta": 1e7})");
  ASSERT_TRUE(model);
  const auto verdict = [&](std::string_view words) {
    const Judgement said = judged(*model, words);
    return *std::ranges::find_if(said.groups,
                                 [](const GroupVerdict& group) { return group.pairs.empty(); });
  };
  EXPECT_EQ(verdict("contiguous:4").verdict, Verdict::unknown);
  EXPECT_EQ(verdict("zigzag:4").verdict, Verdict::unknown);
  EXPECT_EQ(verdict("round_robin:4").verdict, Verdict::breaks);
  EXPECT_EQ(verdict("ulysses:2").verdict, Verdict::unknown);
  EXPECT_EQ(verdict("decode:4").verdict, Verdict::unknown);
  EXPECT_EQ(verdict("accelerate:4").verdict, Verdict::breaks);
  EXPECT_EQ(verdict("megatron:4").verdict, Verdict::survives);
  Recurrent layer;
  Rows one = layer.shared_out(*Layout::contiguous(tokens, 1), true);
  Rows handed = layer.shared_out(*Layout::contiguous(tokens, 4), true),
       anew = layer.shared_out(*Layout::contiguous(tokens, 4), false),
       zigzag = layer.shared_out(*Layout::zigzag(tokens, 4), true),
       robin = layer.shared_out(*Layout::striped(tokens, 4), true);
  EXPECT_EQ(largest(one, handed), 0);
  for (Rows* wrong : {&anew, &zigzag, &robin}) EXPECT_GT(largest(one, *wrong), 1);
}

// --- what the layout alone tells -----------------------------------------------------------------

TEST(Judge, HeadsMustDivide) {
  const Model model = small("");  // 8 heads, 4 of keys
  EXPECT_EQ(judged(model, "ulysses:8").verdict, Verdict::survives);
  EXPECT_TRUE(needs(judged(model, "ulysses:8").groups[0], "4 key heads on 2 ranks"));
  const Judgement three = judged(model, "ulysses:3"), sixteen = judged(model, "ulysses:16");
  EXPECT_EQ(three.verdict, Verdict::breaks);
  EXPECT_EQ(find(three.groups[0], "heads")->basis, Basis::layout);
  EXPECT_EQ(sixteen.verdict, Verdict::breaks);
  EXPECT_TRUE(find(sixteen.groups[0], "heads")->cure.contains("ring+heads:16:heads=8"));
  EXPECT_EQ(judged(model, "ring+heads:16:heads=8").verdict, Verdict::survives);
  Model uneven = model;
  uneven.groups[0].geometry = {.heads = 24, .kv_heads = 8, .head_dim = 16};
  EXPECT_EQ(find(judged(uneven, "ulysses:6").groups[0], "key_heads")->verdict, Verdict::breaks);
}

TEST(Judge, WhatIsCountedIsWhatAMaskShows) {
  constexpr std::int64_t lengths[] = {1, 7, 96, 257};
  for (const std::int64_t length : lengths)
    for (const Mask& mask :
         {Mask{}, Mask{.window = 10}, Mask{.window = 400}, Mask{.chunk = 20}, Mask{.causal = false},
          Mask{.causal = false, .window = 9}, Mask{.causal = false, .chunk = 20}})
      for (const std::string_view name : {"contiguous", "zigzag", "striped", "balanced"})
        for (const std::int64_t among : {1, 3, 4, 16})
          for (const std::int64_t block : {1, 4, 7}) {
            const Layout layout =
                *Layout::named(name, std::array<std::int64_t, 2>{0, length}, among, mask, block);
            const std::int64_t far = mask.window > 0 ? mask.window - 1 : length;
            const detail::Seen seen{.length = length,
                                    .causal = mask.causal,
                                    .before = far,
                                    .after = far,
                                    .chunk = mask.chunk};
            EXPECT_EQ(detail::pairs_of(layout, seen),
                      *pairs_per_rank(layout, mask, Positions::range(0, length)))
                << name << " " << length << " " << among << " " << block;
          }
}

// Compressed keys and picked ones against a loop over queries.
TEST(Judge, CompressedAndPickedKeysAreCounted) {
  for (const std::int64_t m : {0, 3, 8})
    for (const std::int64_t most : {0, 5, 1000}) {
      if (m == 0 && most == 0) continue;
      const detail::Seen seen{.length = 200,
                              .before = m > 0 ? 15 : 200,
                              .after = 200,
                              .compressed = m,
                              .most_keys = most};
      const Layout layout = *Layout::striped(200, 3, 5);
      const auto counted = detail::pairs_of(layout, seen);
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        std::int64_t expected = 0;
        for (const std::int64_t q : layout.tokens_of(rank)) {
          const std::int64_t whole = m > 0 ? (q + 1) / m : q + 1;
          const std::int64_t picked = most > 0 ? std::min(most, whole) : whole;
          expected += m > 0 ? std::min<std::int64_t>(q, 15) + 1 + picked : picked;
        }
        EXPECT_EQ(counted[static_cast<std::size_t>(rank)], expected) << m << " " << most;
      }
    }
}

// Bytes against a loop: keys of others that a rank's queries may see.
TEST(Judge, BytesAreThoseOfKeysThatOthersSee) {
  for (const Mask& mask :
       {Mask{}, Mask{.window = 10}, Mask{.window = 60}, Mask{.chunk = 20}, Mask{.causal = false}})
    for (const std::string_view name : {"contiguous", "zigzag", "striped"})
      for (const std::int64_t block : {1, 16}) {
        const Layout layout =
            *Layout::named(name, std::array<std::int64_t, 2>{0, tokens}, ranks, mask, block);
        const std::int64_t far = mask.window > 0 ? mask.window - 1 : tokens;
        const detail::Visited counted = detail::visited(layout, {.length = tokens,
                                                                 .causal = mask.causal,
                                                                 .before = far,
                                                                 .after = far,
                                                                 .chunk = mask.chunk});
        std::int64_t expected = 0;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const auto own = layout.tokens_of(rank);
          for (std::int64_t key = 0; key < tokens; ++key)
            expected += std::ranges::find(own, key) == own.end() &&
                        std::ranges::any_of(own, [&](std::int64_t q) { return mask.sees(q, key); });
        }
        EXPECT_EQ(counted.tokens, static_cast<double>(expected))
            << name << " " << mask.window << " " << mask.chunk << " " << block;
      }
}

TEST(Judge, KnownFiguresOfAPlainModel) {
  const Model model = read_model("llama-3.1-8b").value();
  const Judgement zigzag = judged(model, "zigzag:8", 131072),
                  apart = judged(model, "contiguous:8", 131072);
  EXPECT_GT(zigzag.balance, 0.999);
  EXPECT_NEAR(apart.balance, 8.0 / 15, 0.001);
  const double whole = 131072.0 * 131073 / 2 * 32 * 32;
  EXPECT_EQ(std::accumulate(zigzag.work.begin(), zigzag.work.end(), 0.0), whole);
  EXPECT_EQ(std::accumulate(apart.work.begin(), apart.work.end(), 0.0), whole);
  const Judgement heads = judged(model, "ulysses:8", 131072);
  EXPECT_EQ(std::accumulate(heads.work.begin(), heads.work.end(), 0.0), whole);
  // A seventh of an eighth of the text leaves by q, k, v and comes back as outputs: 2 · (32 + 8)
  // heads of 128 in two bytes.
  EXPECT_EQ(heads.groups[0].bytes, 131072 / 8 * 7 / 8 * (2 * 32 + 2 * 8) * 128 * 2);
}

TEST(Judge, BestIsContiguousWhereAllLayersSlide) {
  const Model slides = small(R"(, "sliding_window": 64)", "mistral");
  EXPECT_TRUE(judged(slides, "zigzag:8", 65536).best.layout.starts_with("contiguous:8"));
  EXPECT_TRUE(find(judged(slides, "zigzag:8", 65536).groups[0], "window_below_share"));
  const Model plain = read_model("llama-3.1-8b").value();
  const Best best = judged(plain, "contiguous:4", 1 << 20).best;
  EXPECT_EQ(best.verdict, Verdict::survives);
  EXPECT_GT(best.balance, 0.99);
}

// 1,024 tokens a rank, of which each layer's block takes 2 · 8 · 128 numbers of two bytes a token.
TEST(Judge, TimeIsThatOfBlocksAndOfMessagesThatNothingHides) {
  const Model model = read_model("llama-3.1-8b").value();
  const auto timed = [&](const char* words, const char* machine) {
    const auto said =
        judge(model, *read_sharding(words), {.length = 8192, .machine = *read_machine(machine)});
    EXPECT_TRUE(said) << said.error().message();
    return said.value_or(Judgement{});
  };
  // Memory and delays that take no time, and one rank that takes 32 · 4 · 32 · 128 operations a pair.
  const std::string still = "core:memory=1e30:far_delay=1e-30:flops=1e12";
  const double alone = 8192.0 * 8193 / 2 * 32 * 4 * 32 * 128 / 1e12;
  const double messages = 7 * 32 * 1024.0 * 2 * 8 * 128 * 2 / 1.25e9;
  const Judgement fast = timed("zigzag:8:by=ring", (still + ":far_bytes=1e30").c_str());
  EXPECT_NEAR(fast.seconds, alone / 8, 1e-4 * alone);
  EXPECT_NEAR(fast.efficiency, 1, 1e-3);
  EXPECT_NEAR(timed("zigzag:8:by=gather", still.c_str()).seconds, alone / 8 + messages, 1e-3);
  // All but the first block's time is the messages', which are the longer ones.
  EXPECT_NEAR(timed("zigzag:8:by=ring", (still + ":flops=1e15").c_str()).seconds,
              alone / 8 / 1000 / 8 + messages, 1e-3);
  EXPECT_NEAR(timed("contiguous:8:by=ring", (still + ":far_bytes=1e30").c_str()).efficiency,
              8.0 / 15, 1e-3);
  // Neighbours of one node send by the faster way.
  EXPECT_NEAR(timed("zigzag:8:by=gather",
                    (still + ":near_ranks=8:near_bytes=1.25e10:near_delay=1e-30").c_str())
                  .seconds,
              alone / 8 + messages / 10, 1e-3);
}

TEST(Judge, MachinesAreReadByNameWithOtherNumbers) {
  const auto machine = read_machine("h100:flops=6e14:near_ranks=4");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->flops, 6e14);
  EXPECT_EQ(machine->near_ranks, 4);
  EXPECT_EQ(machine->far_bytes, read_machine("h100")->far_bytes);
  for (const char* bad : {"", "h200x", "h100:flops", "h100:flops=0", "h100:flops=-1",
                          "h100:flops=x", "h100:speed=1", "h100:near_ranks=1.5"})
    EXPECT_FALSE(read_machine(bad)) << bad;
  const Model model = read_model("llama-3.1-8b").value();
  EXPECT_FALSE(judge(model, *read_sharding("zigzag:8"), {.machine = Machine{}}));
}

// A window that no text outgrows cuts nothing, and no engine need refuse it.
TEST(Judge, AWindowBeyondTheTextIsNone) {
  const Model wide = small(R"(, "sliding_window": 2048)", "mistral");
  EXPECT_EQ(judged(wide, "megatron:4", 2048).verdict, Verdict::survives);
  EXPECT_EQ(judged(wide, "megatron:4", 4096).verdict, Verdict::breaks);
}

TEST(Judge, ShortTextsAndLengthsAreTold) {
  const Model model = small("");
  EXPECT_TRUE(find(judged(model, "zigzag:8", 12).groups[0], "short_text"));
  EXPECT_FALSE(find(judged(model, "zigzag:8", 16).groups[0], "short_text"));
  EXPECT_TRUE(needs(judged(model, "zigzag:8", 100).groups[0], "padding to a multiple of 16"));
  EXPECT_FALSE(judge(model, *read_sharding("zigzag:8"), {.length = -1}));
  EXPECT_FALSE(judge(model, *read_sharding("zigzag:8"), {.length = (std::int64_t{1} << 30) + 1}));
  EXPECT_EQ(judge(model, *read_sharding("zigzag:8"))->length, 4096);
}

TEST(Judge, AxesAreCutAlongTheTokens) {
  const Judgement said = judged(read_model("qwen2.5-vl-7b").value(), "zigzag:4");
  EXPECT_TRUE(needs(said.groups.back(), "never along the 3"));
}

TEST(Judge, EveryBundledModelUnderEveryLayoutWithinItsTime) {
  for (const BundledModel& bundled : bundled_models()) {
    const Model model = read_model(bundled.name).value();
    for (const std::string_view words : {"contiguous:64", "zigzag:256", "round_robin:8:block=64",
                                         "ulysses:4", "megatron:8", "decode:8:block=16"}) {
      const std::clock_t begun = std::clock();
      const Judgement said = judged(model, words, 1 << 20);
      // Processor time, as other programs and sanitizers lengthen that of the clock.
      const double took = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
      EXPECT_LT(took, 1.0) << bundled.name << " " << words;
      EXPECT_FALSE(said.best.why.empty());
      for (const GroupVerdict& group : said.groups) {
        for (const Reason& reason : group.reasons) EXPECT_FALSE(reason.why.empty());
        if (group.verdict != Verdict::survives) {
          EXPECT_FALSE(group.reasons.empty()) << bundled.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace posenc::layout
