// What an indexer picks, and what layers cache beside keys and values: files as transformers'
// classes save them and as the hub has them. Sizes of caches are those that the classes' own cache
// layers hold (DeepseekV4CSACache, DynamicIndexedLayer, the copies that looped layers append).
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model indexed_model(std::string_view type, std::string_view more = {}) {
  auto model = read_config(R"({"model_type": ")" + std::string(type) + "\"" +
                           (more.empty() ? std::string() : ", " + std::string(more)) + "}");
  if (!model) ADD_FAILURE() << type << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

const LayerGroup& indexed_layer(const Model& model, std::int64_t number) {
  static const LayerGroup none;
  const LayerGroup* const group = find_group(model, number, Stack::text);
  if (!group) ADD_FAILURE() << "no layer " << number;
  return group ? *group : none;
}

std::int64_t indexed_bytes(const Model& model, std::int64_t tokens) {
  std::int64_t sum = 0;
  for (const LayerGroup& group : model.groups) sum += cached_bytes(model, group, tokens);
  return sum;
}

TEST(Indexers, DeepSeekV32PicksTokensAndCachesItsOwnKeys) {
  const Model model = indexed_model("deepseek_v32");
  EXPECT_EQ(indexed_layer(model, 0).picked, (Picked{.count = 2048}));
  EXPECT_EQ(indexed_layer(model, 0).cache_elements, 512 + 64);
  ASSERT_EQ(indexed_layer(model, 0).cache_beside.size(), 1u);
  EXPECT_EQ(indexed_bytes(model, 1000), 61 * 1000 * 2 * (512 + 64 + 128));
  const Model fewer = indexed_model("deepseek_v32", R"("index_topk": 512)");
  EXPECT_EQ(indexed_layer(fewer, 0).picked, (Picked{.count = 512}));
}

TEST(Indexers, LayersThatTakeWhatAnotherHasPickedCacheNoKeysOfAnIndexer) {
  const auto beside = [](const Model& model, std::int64_t number) {
    EXPECT_EQ(indexed_layer(model, number).picked, (Picked{.count = 2048}));
    return indexed_layer(model, number).cache_beside.size();
  };
  const Model often = indexed_model("glm_moe_dsa", R"("index_topk_freq": 2)");
  EXPECT_EQ(beside(often, 1), 1u);
  EXPECT_EQ(beside(often, 2), 0u);
  EXPECT_EQ(beside(often, 3), 1u);
  EXPECT_EQ(beside(indexed_model("glm_moe_dsa"), 2), 1u);
  const Model spelled =
      indexed_model("glm_moe_dsa", R"("num_hidden_layers": 4, "index_topk_pattern": "FSSF")");
  EXPECT_EQ(beside(spelled, 2), 0u);
  EXPECT_EQ(beside(spelled, 3), 1u);
  const Model listed = indexed_model(
      "mistral_large4_text", R"("num_hidden_layers": 2, "indexer_types": ["full", "shared"])");
  EXPECT_EQ(beside(listed, 1), 0u);
  const Model fourth = indexed_model("hy_v4");
  EXPECT_EQ(beside(fourth, 0), 1u);
  EXPECT_EQ(beside(fourth, 4), 0u);
  EXPECT_EQ(beside(fourth, 5), 1u);
}

TEST(Indexers, ALayerThatReadsAnothersKeysHasStillThoseOfItsIndexer) {
  const Model model = indexed_model("mistral_large4_text",
                                    R"("num_hidden_layers": 4, "kv_source_layers": [0, 0, 2, 2])");
  EXPECT_EQ(indexed_layer(model, 0).cache_elements, 512 + 64);
  EXPECT_EQ(indexed_layer(model, 1).cache_elements, 0);
  EXPECT_EQ(indexed_layer(model, 1).cache_beside.size(), 1u);
}

TEST(Indexers, PoolsAndBlocksArePickedWhole) {
  const Model pools = indexed_model("glm5_next_text",
                                    R"("num_hidden_layers": 1, "layer_types": ["full_attention"])");
  EXPECT_EQ(indexed_layer(pools, 0).picked, (Picked{.count = 128, .block = 16}));
  EXPECT_EQ(indexed_layer(pools, 0).cache_beside.at(0).elements, 2 * 128 + 1);
  constexpr std::string_view small = R"("head_dim": 64)";
  const Model unindexed = indexed_model("qwen4_exp_text", small);
  EXPECT_FALSE(indexed_layer(unindexed, 3).picked);
  const Model budget = indexed_model(
      "qwen4_exp_text",
      std::string(small) +
          R"(, "indexer_budget": 1024, "indexer_head_dim": 64, "indexer_compress_ratio": 16)");
  EXPECT_EQ(indexed_layer(budget, 3).picked, (Picked{.count = 64, .block = 16}));
}

// What each family's own code does, and its scaling without the factor on the attention's logits.
TEST(Indexers, RotateInTheirOwnWay) {
  const auto own = [](std::string_view type, std::string_view more = {}) {
    const Model model = indexed_model(type, more);
    const auto group = indexer_group(indexed_layer(model, 0));
    EXPECT_TRUE(group) << type;
    return group ? compile(*group).value_or(Plan{}) : Plan{};
  };
  constexpr std::string_view yarn =
      R"("rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
         "mscale": 1, "mscale_all_dim": 1})";
  const Plan deepseek = own("deepseek_v32", yarn);
  EXPECT_EQ(deepseek.rotate->slice, (Slice{.rotary_dim = 64}));
  EXPECT_EQ(deepseek.logits.multiplier, 1);
  const Model model = indexed_model("deepseek_v32", yarn);
  EXPECT_GT(compile(indexed_layer(model, 0))->logits.multiplier, 1.8);
  EXPECT_EQ(indexed_layer(model, 0).indexer->heads, 64);
  const Plan glm = own("glm_moe_dsa");
  EXPECT_EQ(glm.rotate->slice, (Slice{.pairing = Pairing::interleaved, .rotary_dim = 64}));
  EXPECT_EQ(own("glm_moe_dsa", R"("indexer_rope_interleave": false)").rotate->slice.pairing,
            Pairing::halves);
  EXPECT_EQ(own("hy_v4").rotate->slice, (Slice{.first_dim = 64, .rotary_dim = 64}));
  const Plan large = own("mistral_large4_text");
  EXPECT_EQ(large.logits.temperature, Temperature::heads);
}

TEST(Indexers, ALayerThatTakesAnothersPicksHasNone) {
  const Model fourth = indexed_model("hy_v4");
  EXPECT_TRUE(indexed_layer(fourth, 1).indexer);
  EXPECT_FALSE(indexed_layer(fourth, 2).indexer);
  EXPECT_FALSE(indexer_group(indexed_layer(fourth, 2)));
  EXPECT_FALSE(indexer_group(indexed_layer(indexed_model("deepseek_v3"), 0)));
}

// MiniMax M3's would rotate each channel of a pair by an angle of its own.
TEST(Indexers, ANarrowerOneThanWhatRotatesIsTold) {
  const Model model = indexed_model("minimax_m3_vl_text",
                                    R"("num_hidden_layers": 1, "layer_types": ["minimax_m3_sparse"],
                                       "index_head_dim": 32)");
  EXPECT_FALSE(indexed_layer(model, 0).indexer);
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_EQ(model.warnings.back().code, "ignored_key");
}

constexpr std::string_view six_layers = R"("num_hidden_layers": 6, )";

TEST(Indexers, MiniMaxM3SaysItsLayersInThreeWays) {
  constexpr Picked picked{.count = 16, .block = 128, .local = 1};
  const Model saved =
      indexed_model("minimax_m3_vl_text", std::string(six_layers) +
                                              R"("layer_types": ["full_attention", "full_attention",
      "minimax_m3_sparse", "minimax_m3_sparse", "sparse", "dense"])");
  EXPECT_FALSE(indexed_layer(saved, 0).picked);
  EXPECT_EQ(indexed_layer(saved, 2).picked, picked);
  EXPECT_EQ(indexed_layer(saved, 2).cache_beside.at(0).elements, 128);
  EXPECT_FALSE(indexed_layer(saved, 4).picked);
  EXPECT_FALSE(indexed_layer(saved, 5).picked);
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(indexed_layer(saved, i).mixer, Mixer::attention);
    EXPECT_TRUE(std::holds_alternative<Rope>(indexed_layer(saved, i).schemes.at(0)));
  }
  const Model first =
      indexed_model("minimax_m3_vl_text",
                    std::string(six_layers) +
                        R"("sparse_attention_config": {"sparse_attention_freq": [0, 0, 0, 1, 1, 1],
      "sparse_topk_blocks": 8, "sparse_block_size": 64, "sparse_index_dim": 32,
      "sparse_local_block": 2})");
  EXPECT_FALSE(indexed_layer(first, 2).picked);
  EXPECT_EQ(indexed_layer(first, 3).picked, (Picked{.count = 8, .block = 64, .local = 2}));
  EXPECT_EQ(indexed_layer(first, 3).cache_beside.at(0).elements, 32);
  const Model plain = indexed_model("minimax_m3_vl_text");
  EXPECT_FALSE(indexed_layer(plain, 59).picked);
}

TEST(Indexers, MiniMaxM3sListMustCoverItsLayers) {
  const auto model = read_config(
      R"({"model_type": "minimax_m3_vl_text", "num_hidden_layers": 6,
          "sparse_attention_config": {"sparse_attention_freq": [0, 1]}})");
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().message().contains("sparse_attention_freq"));
}

TEST(Indexers, DeepSeekV4CachesEntriesAndKeysOfItsIndexerBesideItsWindows) {
  const Model model = indexed_model("deepseek_v4");
  constexpr std::int64_t tokens = 1 << 20, entry = 512 * 2, key = 128 * 2;
  EXPECT_EQ(
      indexed_bytes(model, tokens),
      23 * (128 + tokens / 128) * entry + 20 * (128 + tokens / 4) * entry + 20 * tokens / 4 * key);
  EXPECT_EQ(indexed_layer(model, 0).compressed, 128);
  EXPECT_FALSE(indexed_layer(model, 0).picked);
  EXPECT_EQ(indexed_layer(model, 3).compressed, 4);
  EXPECT_EQ(indexed_layer(model, 3).picked, (Picked{.count = 512}));
}

TEST(Passes, LayersThatRunAgainCacheTheirKeysEachTime) {
  const Model dory = indexed_model("dory");
  EXPECT_EQ(indexed_layer(dory, 7).cache_elements, 2 * 4 * 256);
  EXPECT_EQ(indexed_layer(dory, 8).cache_elements, 2 * 2 * 4 * 256);
  EXPECT_EQ(indexed_layer(dory, 27).cache_elements, 2 * 2 * 4 * 256);
  EXPECT_EQ(indexed_layer(dory, 28).cache_elements, 2 * 4 * 256);
  const Model once = indexed_model("dory", R"("recurrent_kv_cache_mode": "last_loop")");
  EXPECT_EQ(indexed_layer(once, 8).cache_elements, 2 * 4 * 256);
  const Model loop = indexed_model("inkling2_loop_text");
  EXPECT_EQ(indexed_layer(loop, 5).cache_elements, 2 * 8 * 128);
  EXPECT_EQ(indexed_layer(loop, 6).cache_elements, 3 * 2 * 8 * 128);
  EXPECT_EQ(indexed_layer(loop, 18).cache_elements, 2 * 8 * 128);
  const Model nested =
      indexed_model("inkling2_loop_text",
                    R"("loop_config": {"core_start": 12, "core_end": 18, "num_passes": 2})");
  EXPECT_EQ(indexed_layer(nested, 6).cache_elements, 2 * 8 * 128);
  EXPECT_EQ(indexed_layer(nested, 12).cache_elements, 2 * 2 * 8 * 128);
}

}  // namespace
}  // namespace posenc
