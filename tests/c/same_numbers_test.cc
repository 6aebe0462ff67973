// The C interface gives what the C++ interface gives, to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "posenc/c.h"
#include "posenc/posenc.h"
#include "tests/random.h"

namespace posenc {
namespace {

template <class Handle, void (*release)(Handle*)>
struct Released {
  void operator()(Handle* handle) const { release(handle); }
};
using CPlan = std::unique_ptr<posenc_plan, Released<posenc_plan, posenc_plan_free>>;
using CModel = std::unique_ptr<posenc_model, Released<posenc_model, posenc_model_free>>;
using CPositions =
    std::unique_ptr<posenc_positions, Released<posenc_positions, posenc_positions_free>>;

std::string taken(char* text) {
  std::string copy = text ? text : "";
  posenc_string_free(text);
  return copy;
}

CPlan c_plan(const std::string& scheme, const Geometry& g) {
  const posenc_geometry geometry{sizeof geometry, 0,        g.width,       g.heads,     g.kv_heads,
                                 g.head_dim,      g.length, g.grid_height, g.grid_width};
  posenc_plan* plan = nullptr;
  EXPECT_EQ(posenc_plan_from_scheme(scheme.c_str(), &geometry, &plan), POSENC_OK)
      << scheme << posenc_last_error();
  return CPlan(plan);
}

std::string json_of(const posenc_plan* plan) {
  char* json = nullptr;
  EXPECT_EQ(posenc_plan_json(plan, &json), POSENC_OK) << posenc_last_error();
  return taken(json);
}

posenc_tensor c_tensor(const Tensor& tensor) {
  posenc_tensor out;
  EXPECT_EQ(posenc_tensor_dense(tensor.data, static_cast<posenc_dtype>(tensor.dtype), tensor.rank,
                                tensor.shape.data(), &out),
            POSENC_OK);
  return out;
}

CPositions c_range(std::int64_t first, std::int64_t count) {
  posenc_positions* positions = nullptr;
  EXPECT_EQ(posenc_positions_range(first, count, &positions), POSENC_OK);
  return CPositions(positions);
}

constexpr Geometry around{.width = 16,
                          .heads = 4,
                          .kv_heads = 4,
                          .head_dim = 16,
                          .length = 64,
                          .grid_height = 4,
                          .grid_width = 4};

std::vector<Scheme> schemes() {
  return {Sinusoidal{},
          Sinusoidal{.layout = WaveLayout::concatenated, .spacing = WaveSpacing::ends},
          Index{},
          Alibi{},
          Kerple{},
          Sandwich{},
          T5{},
          Shaw{},
          Deberta{},
          XPos{},
          Axial{},
          Mixed{},
          Pope{.phases = {-1, -2, -3, -4, -5, -6, 0, -1, -2, -3, -4, -5, -6, 0, -1, -2}},
          Fope{.num_inv_freq = 2, .cos_coef = {1, -0.25, 0.5, 1.5}},
          NoPe{},
          Learned{.rows = 64},
          Rope{.pairing = Pairing::interleaved, .partial_rotary_factor = 0.5},
          Rope{.rope_theta = 5e5,
               .scaling = Llama3{.factor = 8,
                                 .low_freq_factor = 1,
                                 .high_freq_factor = 4,
                                 .original_max_position_embeddings = 8192}},
          Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 32768}}};
}

TEST(CInterface, CompilesEverySchemeToThePlanOfTheCppInterface) {
  for (const Scheme& scheme : schemes()) {
    const Expected<Plan> plan = compile(scheme, around);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(json_of(c_plan(to_json(scheme), around).get()), to_json(*plan));
  }
}

TEST(CInterface, ExplainsEveryBundledModelInTheSameText) {
  for (const BundledModel& bundled : bundled_models()) {
    posenc_model* model = nullptr;
    ASSERT_EQ(posenc_model_open(std::string(bundled.name).c_str(), &model), POSENC_OK);
    const CModel released(model);
    char* json = nullptr;
    ASSERT_EQ(posenc_model_explain_json(model, 200, -1, &json), POSENC_OK) << posenc_last_error();
    const Expected<Explanation> explanation = explain(*read_model(bundled.name), {.at = 200});
    EXPECT_EQ(taken(json), to_json(*explanation)) << bundled.name;
  }
}

TEST(CInterface, ReadsAConfigFromItsBytesAsFromItsName) {
  const std::string text(*bundled_config("deepseek-v3"));
  posenc_model* model = nullptr;
  ASSERT_EQ(posenc_model_read(text.data(), text.size(), "deepseek-v3", &model), POSENC_OK);
  const CModel released(model);
  posenc_plan* plan = nullptr;
  ASSERT_EQ(posenc_model_plan(model, 0, 0, POSENC_EXACT, &plan), POSENC_OK) << posenc_last_error();
  const CPlan kept(plan);
  EXPECT_EQ(json_of(plan), to_json(*compile(read_model("deepseek-v3")->groups[0])));
}

TEST(CInterface, RotatesToTheSameBitsInEveryDtype) {
  const Scheme scheme = XPos{.scale_base = 64};
  const Plan plan = *compile(scheme, around);
  const CPlan same = c_plan(to_json(scheme), around);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<double> cpp(4 * 5 * 16), c(cpp.size());
    const Tensor x = Tensor::dense(cpp.data(), dtype, {1, 4, 5, 16}),
                 y = Tensor::dense(c.data(), dtype, {1, 4, 5, 16});
    for (std::int64_t i = 0; i < x.size(); i++) x.set(i, std::sin(static_cast<double>(i)));
    c = cpp;
    ASSERT_TRUE(rotate(plan, x, Positions::range(60, 5), Side::key, x));
    const posenc_tensor view = c_tensor(y);
    ASSERT_EQ(posenc_rotate(same.get(), &view, c_range(60, 5).get(), POSENC_KEY, &view, 0),
              POSENC_OK);
    EXPECT_EQ(cpp, c) << name(dtype);
  }
}

TEST(CInterface, GivesTheSameVectorsAndBiases) {
  std::vector<double> cpp(7 * 16), c(cpp.size());
  const Tensor rows = Tensor::dense(cpp.data(), {1, 7, 16});
  ASSERT_TRUE(position_vectors(*compile(Sinusoidal{}, around), Positions::range(9, 7), rows));
  posenc_tensor out = c_tensor(Tensor::dense(c.data(), {1, 7, 16}));
  ASSERT_EQ(posenc_position_vectors(c_plan(to_json(Scheme{Sinusoidal{}}), around).get(),
                                    c_range(9, 7).get(), &out, 0),
            POSENC_OK);
  EXPECT_EQ(cpp, c);

  for (const Scheme& scheme : {Scheme{Alibi{}}, Scheme{Kerple{}}, Scheme{Sandwich{}}}) {
    std::vector<double> a(4 * 3 * 8), b(a.size());
    ASSERT_TRUE(bias(*compile(scheme, around), Positions::range(5, 3), Positions::range(0, 8),
                     Tensor::dense(a.data(), {4, 3, 8})));
    out = c_tensor(Tensor::dense(b.data(), {4, 3, 8}));
    ASSERT_EQ(posenc_bias(c_plan(to_json(scheme), around).get(), c_range(5, 3).get(),
                          c_range(0, 8).get(), &out, 0),
              POSENC_OK);
    EXPECT_EQ(a, b);
  }
}

TEST(CInterface, AttendsInEveryTypeAsTheCppInterfaceForAnyNumberOfThreads) {
  const Positions rows = Positions::range(0, 9);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    // q, k, v and what comes out of either, [1, 4, 9, 16] each.
    std::vector<std::byte> memory(5 * 4 * 9 * 16 * size_of(dtype));
    Tensor x[5];
    for (std::size_t i = 0; i < 5; i++) {
      x[i] = Tensor::dense(memory.data() + i * memory.size() / 5, dtype, {1, 4, 9, 16});
      for (std::int64_t at = 0; i < 3 && at < x[i].size(); at++)
        x[i].set(at, std::sin(static_cast<double>(at + 1000 * static_cast<std::int64_t>(i))));
    }
    const Mask mask{.causal = true, .window = 5};
    const Plan plan = *compile(Rope{}, around);
    std::vector<double> of_heads(static_cast<std::size_t>(x[0].shape[1]), 0.5);
    const Tensor cpp_sinks = Tensor::dense(of_heads.data(), {x[0].shape[1]});
    const posenc_tensor sinks = c_tensor(cpp_sinks);
    ASSERT_TRUE(attend({x[0], x[1], x[2], rows, rows, mask, Threads{1}, cpp_sinks}, plan, x[3]));
    const posenc_tensor q = c_tensor(x[0]), k = c_tensor(x[1]), v = c_tensor(x[2]),
                        out = c_tensor(x[4]);
    const posenc_mask c_mask{sizeof c_mask, 1, 5, 0, 0, nullptr};
    const CPlan c = c_plan(to_json(Scheme{Rope{}}), around);
    const CPositions range = c_range(0, 9);
    for (const int threads : {0, 1, 3}) {
      const posenc_attention in{sizeof in,   threads,     &q,      &k,    &v,
                                range.get(), range.get(), &c_mask, &sinks};
      ASSERT_EQ(posenc_attend(c.get(), &in, &out), POSENC_OK) << posenc_last_error();
      for (std::int64_t at = 0; at < out.shape[1] * 9 * 16; at++)
        ASSERT_EQ(x[3].get(at), x[4].get(at)) << name(dtype) << " " << threads;
    }
    AttentionInputs cpp_in{x[0], x[1], x[2], rows, rows, mask, Threads{1}, cpp_sinks};
    cpp_in.options.allow_bfloat16_products = false;
    ASSERT_TRUE(attend(cpp_in, plan, x[3]));
    posenc_attention in{sizeof in, 1, &q, &k, &v, range.get(), range.get(), &c_mask, &sinks};
    in.float_products = 1;
    ASSERT_EQ(posenc_attend(c.get(), &in, &out), POSENC_OK) << posenc_last_error();
    for (std::int64_t at = 0; at < out.shape[1] * 9 * 16; at++)
      ASSERT_EQ(x[3].get(at), x[4].get(at)) << name(dtype) << " in float";
  }
}

// q, k, v and what is written of each, [1, 4, 9, 16].
struct Layer {
  std::vector<double> memory[8];
  Tensor x[8];
  posenc_tensor c[8];

  Layer() {
    for (std::size_t i = 0; i < 8; i++) {
      memory[i] = random(4 * 9 * 16, static_cast<unsigned>(i));
      x[i] = Tensor::dense(memory[i].data(), {1, 4, 9, 16});
      c[i] = c_tensor(x[i]);
    }
  }
};

TEST(CInterface, GivesTheSameGradients) {
  Layer t;
  const Positions rows = Positions::range(0, 9);
  const Plan plan = *compile(Alibi{}, around);
  std::vector<double> slopes(8);
  const Tensor cpp_slopes = Tensor::dense(slopes.data(), {4}),
               of_c = Tensor::dense(slopes.data() + 4, {4});
  std::vector<double> sinks = {0.5, 1, -1, 2}, by_sink(8);
  const Tensor cpp_sinks = Tensor::dense(sinks.data(), {4});
  const posenc_tensor c_sinks = c_tensor(cpp_sinks),
                      c_by_sink = c_tensor(Tensor::dense(by_sink.data() + 4, {4}));
  ASSERT_TRUE(attend_backward({t.x[0], t.x[1], t.x[2], rows, rows, {}, {}, cpp_sinks}, plan, t.x[3],
                              {.q = t.x[4],
                               .k = t.x[5],
                               .slopes = cpp_slopes,
                               .sink_logits = Tensor::dense(by_sink.data(), {4})}));
  const posenc_tensor c_slopes = c_tensor(of_c);
  const posenc_attention_gradients to{sizeof to, &t.c[6], &t.c[7], nullptr, &c_slopes, nullptr,
                                      nullptr,   nullptr, nullptr, nullptr, &c_by_sink};
  const CPlan c = c_plan(to_json(Scheme{Alibi{}}), around);
  const CPositions range = c_range(0, 9);
  const posenc_attention in{sizeof in,   2,           &t.c[0], &t.c[1], &t.c[2],
                            range.get(), range.get(), nullptr, &c_sinks};
  ASSERT_EQ(posenc_attend_backward(c.get(), &in, &t.c[3], &to), POSENC_OK) << posenc_last_error();
  EXPECT_EQ(t.memory[4], t.memory[6]);
  EXPECT_EQ(t.memory[5], t.memory[7]);
  for (std::int64_t h = 0; h < 4; h++) EXPECT_EQ(cpp_slopes.get(h), of_c.get(h));
  for (std::size_t h = 0; h < 4; h++) EXPECT_EQ(by_sink[h], by_sink[h + 4]);
}

TEST(CInterface, CompilesASchemeWithItsTables) {
  std::vector<double> rows = {0.5, 1, -1}, columns = {2, 0, 3};
  const posenc_tensor tables[] = {c_tensor(Tensor::dense(rows.data(), {3, 1})),
                                  c_tensor(Tensor::dense(columns.data(), {3, 1}))};
  const char* names[] = {"row_vectors", "column_vectors"};
  const posenc_geometry geometry{.struct_size = sizeof geometry,
                                 .angles = POSENC_EXACT,
                                 .width = 0,
                                 .heads = 0,
                                 .kv_heads = 0,
                                 .head_dim = 1,
                                 .length = 0,
                                 .grid_height = 2,
                                 .grid_width = 2};
  const char* const scheme = R"({"type": "decomposed"})";
  posenc_plan* plan = nullptr;
  ASSERT_EQ(posenc_plan_from_tables(scheme, &geometry, names, tables, 2, &plan), POSENC_OK)
      << posenc_last_error();
  char* json = nullptr;
  ASSERT_EQ(posenc_plan_json(plan, &json), POSENC_OK);
  EXPECT_NE(std::string(json).find("\"row_count\":6"), std::string::npos) << json;
  posenc_string_free(json);
  posenc_plan_free(plan);
  names[1] = "column_vector";
  EXPECT_EQ(posenc_plan_from_tables(scheme, &geometry, names, tables, 2, &plan), POSENC_REFUSED);
  EXPECT_EQ(plan, nullptr);
  EXPECT_NE(std::string(posenc_last_error()).find("column_vectors"), std::string::npos);
  EXPECT_EQ(posenc_plan_from_tables(scheme, &geometry, nullptr, tables, 2, &plan), POSENC_MISUSE);
}

TEST(CInterface, DecodesThroughACacheAsItAttends) {
  Layer t;
  const CPlan c = c_plan(to_json(Scheme{Rope{}}), around);
  const CPositions range = c_range(0, 9);
  double of_heads[] = {0.5, 1, -1, 2};
  const posenc_tensor sinks = c_tensor(Tensor::dense(of_heads, {4}));
  const posenc_attention in{sizeof in,   1,           &t.c[0], &t.c[1], &t.c[2],
                            range.get(), range.get(), nullptr, &sinks};
  ASSERT_EQ(posenc_attend(c.get(), &in, &t.c[3]), POSENC_OK);
  for (const int rotated : {0, 1}) {
    const posenc_cache_options options{.struct_size = sizeof options,
                                       .dtype = POSENC_FLOAT64,
                                       .kv_heads = 4,
                                       .head_dim = 16,
                                       .value_dim = 0,
                                       .page_size = 4,
                                       .max_pages = 0,
                                       .rotated = rotated,
                                       .one_plan = 0};
    posenc_cache* made = nullptr;
    ASSERT_EQ(posenc_cache_make(&options, &made), POSENC_OK);
    const std::unique_ptr<posenc_cache, Released<posenc_cache, posenc_cache_free>> cache(made);
    std::int64_t id = 0;
    ASSERT_EQ(posenc_cache_add(made, &id), POSENC_OK);
    for (std::int64_t token = 0; token < 9; token++) {
      posenc_tensor row[4] = {t.c[0], t.c[1], t.c[2], t.c[4]};
      for (posenc_tensor& each : row) {
        each.data = static_cast<double*>(each.data) + token * each.stride[2];
        each.shape[2] = 1;
      }
      ASSERT_EQ(posenc_cache_append(made, &id, 1, &row[1], &row[2], c.get(), nullptr, 1),
                POSENC_OK);
      ASSERT_EQ(
          posenc_cache_attend(made, &id, 1, &row[0], c.get(), nullptr, &sinks, nullptr, &row[3], 1),
          POSENC_OK);
    }
    for (std::int64_t at = 0; at < 4 * 9 * 16; at++)
      ASSERT_NEAR(t.x[3].get(at), t.x[4].get(at), 1e-14) << rotated;
  }
}

TEST(CInterface, KeepsAnErrorForEachThread) {
  const auto open = [](const char* name) {
    posenc_model* model = nullptr;
    EXPECT_EQ(posenc_model_open(name, &model), POSENC_REFUSED);
    return std::string(posenc_last_error());
  };
  const std::string mine = open("no-such-model");
  std::string theirs;
  std::thread([&] { theirs = open("another-model"); }).join();
  EXPECT_EQ(theirs, read_model("another-model").error().message());
  EXPECT_EQ(posenc_last_error(), mine);
}

// Where malloc itself ends the process (sanitizers) the same holds, with another message.
TEST(CInterfaceDeathTest, EndsTheProcessWhereMemoryRunsOut) {
  const auto huge = [] {
    double one = 0;
    posenc_tensor out;
    const std::int64_t shape[] = {1, std::int64_t{1} << 40, 16};
    posenc_tensor_dense(&one, POSENC_FLOAT64, 3, shape, &out);
    const CPlan plan = c_plan(to_json(Scheme{Sinusoidal{}}), around);
    try {
      posenc_position_vectors(plan.get(), c_range(0, std::int64_t{1} << 40).get(), &out, 0);
    } catch (...) {
      std::exit(0);
    }
  };
  EXPECT_DEATH(huge(), "");
}

}  // namespace
}  // namespace posenc
