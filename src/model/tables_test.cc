#include "src/model/tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace {

using namespace posenc;

// Tensors whose elements are their number in the list plus element/1000.
class Weights {
 public:
  explicit Weights(std::vector<std::pair<std::string, std::vector<std::int64_t>>> names) {
    for (const auto& [name, shape] : names) {
      std::size_t count = 1;
      for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
      std::vector<float>& numbers = numbers_.emplace_back(count + 1);
      for (std::size_t i = 0; i < count; ++i)
        numbers[i] = static_cast<float>(numbers_.size()) + static_cast<float>(i) / 1000;
      tensors.push_back({.name = name,
                         .type = "F32",
                         .shape = shape,
                         .bytes = std::as_bytes(std::span(numbers).first(count))});
      StoredTensor& tensor = tensors.back();
      if (shape.size() < 2) continue;
      std::vector<std::int64_t> last(shape.end() - 2, shape.end());
      tensor.view = Tensor::dense(numbers.data(), {last[0], last[1]});
    }
  }
  std::vector<StoredTensor> tensors;

 private:
  std::list<std::vector<float>> numbers_;
};

Model model_of(std::string_view config) {
  const auto model = read_config(config);
  if (!model) ADD_FAILURE() << model.error().message();
  return model ? *model : Model{};
}

// Its tables borrow from the weights, which must outlive them.
Model given(std::string_view config, const Weights& weights) {
  Model model = model_of(config);
  detail::give_tables(model, weights.tensors, nullptr, "w");
  return model;
}

// The first element of the table of the stack's first group; 0 where it has none.
double first_of(const Model& model, Stack stack) {
  for (const LayerGroup& group : model.groups)
    if (group.stack == stack)
      for (const Scheme& scheme : group.schemes) {
        const auto* learned = std::get_if<Learned>(&scheme);
        const auto* t5 = std::get_if<T5>(&scheme);
        const auto* shaw = std::get_if<Shaw>(&scheme);
        const Table* table = learned ? &learned->table
                             : t5    ? &t5->table
                             : shaw  ? &shaw->key
                                     : nullptr;
        if (table && *table) return table->values.get(0);
      }
  return 0;
}

std::string warning(const Model& model, std::string_view code) {
  for (const Warning& warning : model.warnings)
    if (warning.code == code) return warning.message;
  return {};
}

constexpr const char* gpt2 =
    R"({"model_type":"gpt2","n_embd":8,"n_layer":1,"n_head":2,"n_positions":6})";

TEST(ModelTables, AreFoundByTheNamesOfEachFamily) {
  const struct {
    const char* config;
    const char* name;
    std::vector<std::int64_t> shape;
    Stack stack;
  } rows[] = {
      {gpt2, "wpe.weight", {6, 8}, Stack::text},
      {gpt2, "transformer.wpe.weight", {6, 8}, Stack::text},
      {gpt2, "position_embd.weight", {6, 8}, Stack::text},
      {R"({"model_type":"roberta","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
          "max_position_embeddings":6})",
       "roberta.embeddings.position_embeddings.weight",
       {6, 8},
       Stack::encoder},
      {R"({"model_type":"opt","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
          "max_position_embeddings":6})",
       "model.decoder.embed_positions.weight",
       {8, 8},
       Stack::text},
      {R"({"model_type":"vit","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
          "image_size":4,"patch_size":2})",
       "vit.embeddings.position_embeddings",
       {1, 5, 8},
       Stack::vision},
      {R"({"model_type":"whisper","d_model":8,"encoder_layers":1,"decoder_layers":1,
          "encoder_attention_heads":2,"decoder_attention_heads":2,"max_target_positions":6})",
       "model.decoder.embed_positions.weight",
       {6, 8},
       Stack::decoder}};
  for (const auto& [config, name, shape, stack] : rows) {
    const Weights weights({{"other.weight", {6, 8}}, {name, shape}});
    const Model model = given(config, weights);
    EXPECT_EQ(first_of(model, stack), 2) << name;
    EXPECT_EQ(warning(model, "table_missing"), "") << name;
  }
}

TEST(ModelTables, EachStackHasItsOwn) {
  const Weights sides({{"model.decoder.embed_positions.weight", {8, 8}},
                       {"model.encoder.embed_positions.weight", {8, 8}}});
  const Model bart = given(
      R"({"model_type":"bart","d_model":8,"encoder_layers":1,"decoder_layers":1,
          "encoder_attention_heads":2,"decoder_attention_heads":2,"max_position_embeddings":6})",
      sides);
  EXPECT_EQ(first_of(bart, Stack::decoder), 1);
  EXPECT_EQ(first_of(bart, Stack::encoder), 2);

  const Weights towers({{"vision_model.embeddings.position_embedding.weight", {5, 8}},
                        {"text_model.embeddings.position_embedding.weight", {5, 8}}});
  const Model clip = given(
      R"({"model_type":"clip","text_config":{"hidden_size":8,"num_hidden_layers":1,
          "num_attention_heads":2,"max_position_embeddings":5},
          "vision_config":{"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
          "image_size":4,"patch_size":2}})",
      towers);
  EXPECT_EQ(first_of(clip, Stack::vision), 1);
  EXPECT_EQ(first_of(clip, Stack::text), 2);
}

TEST(ModelTables, T5ReadsItsSelfAttentionsTables) {
  constexpr const char* t5 =
      R"({"model_type":"t5","d_model":8,"d_kv":4,"num_heads":2,"num_layers":1,
          "relative_attention_num_buckets":8})";
  const Weights safetensors(
      {{"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {8, 2}},
       {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", {8, 2}},
       {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", {8, 2}}});
  const Model spelt = given(t5, safetensors);
  EXPECT_EQ(first_of(spelt, Stack::decoder), 2);
  EXPECT_EQ(first_of(spelt, Stack::encoder), 3);
  const Weights gguf(
      {{"enc.blk.0.attn_rel_b.weight", {8, 2}}, {"dec.blk.0.attn_rel_b.weight", {8, 2}}});
  const Model converted = given(t5, gguf);
  EXPECT_EQ(first_of(converted, Stack::encoder), 1);
  EXPECT_EQ(first_of(converted, Stack::decoder), 2);
}

TEST(ModelTables, AreNotedWithTheirSource) {
  const Model model = given(gpt2, Weights({{"wpe.weight", {6, 8}}}));
  const Provenance& row = model.groups.at(0).provenance.back();
  EXPECT_EQ(row.field, "table");
  EXPECT_EQ(row.value, "[6, 8] F32");
  EXPECT_EQ(row.detail, "w: wpe.weight");
}

TEST(ModelTables, AShapeTheConfigurationDoesNotMeanIsAWarning) {
  const Model model = given(gpt2, Weights({{"wpe.weight", {7, 8}}}));
  EXPECT_EQ(warning(model, "table_shape"),
            "w: wpe.weight is [7, 8], and the configuration means [6, 8]; the table is not used: "
            "correct the one that is wrong");
  EXPECT_EQ(first_of(model, Stack::text), 0);
}

TEST(ModelTables, WeightsWithoutTheTableAreAWarning) {
  const Model model = given(gpt2, Weights({{"wte.weight", {6, 8}}, {"not_wpe.weight", {6, 8}}}));
  EXPECT_NE(warning(model, "table_missing").find("[6, 8]"), std::string::npos);
}

TEST(ModelTables, TwoThatDifferAreAWarningAndTwoThatAreOneAreNot) {
  const Weights two({{"wpe.weight", {6, 8}}, {"copy.wpe.weight", {6, 8}}});
  const Model differs = given(gpt2, two);
  EXPECT_NE(warning(differs, "table_differs"), "");
  EXPECT_EQ(first_of(differs, Stack::text), 0);
  Weights same = two;
  same.tensors[1].bytes = same.tensors[0].bytes;
  EXPECT_NE(first_of(given(gpt2, same), Stack::text), 0);
}

TEST(ModelTables, ATypePosencDoesNotComputeWithIsAWarning) {
  Weights weights({{"wpe.weight", {6, 8}}});
  weights.tensors[0].type = "Q8_0";
  weights.tensors[0].view = {};
  EXPECT_NE(warning(given(gpt2, weights), "table_type").find("got Q8_0"), std::string::npos);
}

TEST(ModelTables, UnalignedNumbersAreCopied) {
  Weights weights({{"wpe.weight", {6, 8}}});
  weights.tensors[0].view = {};
  const Model model = given(gpt2, weights);
  EXPECT_EQ(first_of(model, Stack::text), 1);
  EXPECT_EQ(std::get<Learned>(model.groups[0].schemes[0]).table.values.dtype, DType::f64);
}

constexpr std::string_view by_two_tables =
    R"({"model_type": "pix2struct_vision_model", "hidden_size": 4, "num_attention_heads": 2, "seq_len": 3})";

TEST(ModelTables, RowsAndColumnsOfPatchesStandOneBehindTheOther) {
  const Weights weights(
      {{"embeddings.column_embedder.weight", {3, 4}}, {"embeddings.row_embedder.weight", {3, 4}}});
  const Model model = given(by_two_tables, weights);
  const Tensor table = std::get<Learned>(model.groups.at(0).schemes.at(0)).table.values;
  ASSERT_TRUE(table);
  EXPECT_EQ(table.shape[0], 6);
  EXPECT_EQ(table.get(table.offset(0, 0)), 2);
  EXPECT_EQ(table.get(table.offset(3, 0)), 1);
}

TEST(ModelTables, Gemma4HasColumnsBeforeRows) {
  const Weights weights({{"patch_embedder.position_embedding_table", {2, 3, 4}}});
  const Model model =
      given(R"({"model_type": "gemma4_vision", "hidden_size": 4, "num_attention_heads": 1,
      "head_dim": 4, "position_embedding_size": 3})",
            weights);
  const auto& schemes = model.groups.at(0).schemes;
  const Tensor table = std::get<Learned>(schemes.at(1)).table.values;
  ASSERT_TRUE(table);
  EXPECT_EQ(table.get(table.offset(0, 0)), 1.012f);
  EXPECT_EQ(table.get(table.offset(3, 0)), 1);
  EXPECT_TRUE(compile(model.groups.at(0)));
}

TEST(ModelTables, OneAxisAloneOrOfAnotherShapeIsAWarning) {
  EXPECT_NE(
      warning(given(by_two_tables, Weights({{"row_embedder.weight", {3, 4}}})), "table_missing"),
      "");
  EXPECT_NE(warning(given(by_two_tables, Weights({{"row_embedder.weight", {3, 4}},
                                                  {"column_embedder.weight", {5, 4}}})),
                    "table_shape"),
            "");
}

TEST(ModelTables, RotaryModelsNeedNone) {
  EXPECT_TRUE(detail::needs_tables(model_of(gpt2)));
  EXPECT_FALSE(detail::needs_tables(model_of(*bundled_config("llama-3.1-8b"))));
}

TEST(ModelTables, OfAFolderOutliveTheModel) {
  std::optional<Plan> plan;
  {
    const auto model = read_model(test::data_path("files/bert"));
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_TRUE(model->warnings.empty());
    const auto compiled = compile(model->groups.at(0));
    ASSERT_TRUE(compiled) << compiled.error().message();
    plan = *compiled;
  }
  const Table& table = std::get<Rows>(plan->add->kind).table;
  ASSERT_TRUE(table);
  EXPECT_EQ(table.values.get(table.values.offset(5, 7)), 47 / 4.0);
}

TEST(ModelTables, OfShardsAreFoundThroughTheIndex) {
  std::vector<Plan> plans;
  {
    const auto model = read_model(test::data_path("files/t5"));
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_TRUE(model->warnings.empty());
    for (const LayerGroup& group : model->groups) plans.push_back(*compile(group));
  }
  ASSERT_EQ(plans.size(), 2u);
  const auto at = [&](std::size_t plan, std::int64_t head, std::int64_t row) {
    const Tensor& values = std::get<BiasTable>(*plans[plan].bias).values.values;
    return values.get(values.offset(head, row));
  };
  EXPECT_EQ(at(0, 0, 0), 1);  // encoder: bfloat16
  EXPECT_EQ(at(0, 1, 0), 2);
  EXPECT_EQ(at(1, 1, 7), 7.5);  // decoder
}

constexpr std::string_view of_learned_factors =
    R"({"model_type": "mistral_large4_text", "hidden_size": 64, "num_attention_heads": 2,
        "num_key_value_heads": 2, "num_hidden_layers": 4, "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8, "kv_lora_rank": 16, "v_head_dim": 16})";

const Rope* first_rope(const Model& model) {
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const auto* rope = std::get_if<Rope>(&scheme)) return rope;
  return nullptr;
}

TEST(Tables, LearnedFactorsDivideFrequenciesByTheirExponential) {
  const Weights weights({{"model.rotary_emb.alpha", {4}}});  // 1, 1.001, ...
  const Model model = given(of_learned_factors, weights);
  const Rope* rope = first_rope(model);
  ASSERT_TRUE(rope);
  ASSERT_EQ(rope->frequency_factors.size(), 4u);
  EXPECT_DOUBLE_EQ(rope->frequency_factors[3], std::exp(-static_cast<double>(1.003f)));
}

TEST(Tables, LearnedFactorsOfAnotherNumberAreAWarning) {
  for (const std::int64_t count : {3, 1 << 20}) {
    const Weights weights({{"model.rotary_emb.alpha", {count}}});
    const Model model = given(of_learned_factors, weights);
    EXPECT_TRUE(first_rope(model)->frequency_factors.empty());
    EXPECT_NE(warning(model, "table_shape"), "") << count;
  }
}

// One of three frequencies turns once within 8 tokens.
constexpr std::string_view of_mixtures =
    R"({"model_type": "interns1_pro_text", "hidden_size": 24, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 6, "num_hidden_layers": 2,
        "max_position_embeddings": 8, "rope_scaling": {"rope_type": "default",
        "fope_init_factor": 0.5, "fope_sep_head": true, "num_inv_freq": null}})";

const Fope& first_fope(const Model& model) { return std::get<Fope>(model.groups[0].schemes[0]); }

TEST(Tables, AMixtureIsOutOfBothItsTensors) {
  const Model model = given(of_mixtures, Weights({{"model.rotary_emb.sin_coef", {2, 1, 1}},
                                                  {"model.rotary_emb.cos_coef", {2, 1, 1}}}));
  EXPECT_TRUE(detail::needs_tables(model_of(of_mixtures)));
  EXPECT_EQ(first_fope(model).sin_coef, (std::vector<double>{1, 1.001f}));
  EXPECT_EQ(first_fope(model).cos_coef, (std::vector<double>{2, 2.001f}));
  EXPECT_FALSE(detail::needs_tables(model));
}

TEST(Tables, AMixtureThatDoesNotFitOrLacksAHalfIsAWarning) {
  for (const std::int64_t pairs : {2, 1 << 20}) {
    const Model model = given(of_mixtures, Weights({{"rotary_emb.sin_coef", {2, 1, 1}},
                                                    {"rotary_emb.cos_coef", {2, 1, pairs}}}));
    EXPECT_TRUE(first_fope(model).sin_coef.empty());
    EXPECT_NE(warning(model, "table_shape"), "") << pairs;
  }
  const Model half = given(of_mixtures, Weights({{"rotary_emb.sin_coef", {2, 1, 1}}}));
  EXPECT_TRUE(first_fope(half).sin_coef.empty());
  EXPECT_NE(warning(half, "table_missing").find("cos_coef"), std::string::npos);
}

TEST(Tables, ARotaryModelWithoutLearnedFactorsNeedsNoWeights) {
  EXPECT_FALSE(detail::needs_tables(model_of(R"({"model_type": "llama", "hidden_size": 64,
      "num_attention_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 64})")));
}

class TablesFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy(test::data_path("files/t5"), folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string warned() const {
    const auto model = read_model(folder_.string());
    return model ? warning(*model, "weights_not_read") : model.error().message();
  }
  std::filesystem::path folder_ = test::temporary_path("tables");
};

TEST_F(TablesFolder, WeightsThatCannotBeReadAreAWarning) {
  EXPECT_EQ(warned(), "");
  write("model-00002-of-00002.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_NE(warned().find("git lfs pull"), std::string::npos) << warned();
  std::filesystem::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_NE(warned().find("No such file"), std::string::npos) << warned();
  for (const char* index : {"", "{}", "[]", R"({"weight_map":7})", R"({"weight_map":{"a":7}})",
                            R"({"weight_map":{"wpe.weight":"../x"}})"}) {
    write("model.safetensors.index.json", index);
    EXPECT_NE(warned(), "") << index;
  }
  write("model.safetensors", "not a file of tensors at all");
  EXPECT_NE(warned(), "");
}

}  // namespace
