// Families whose attention knows the distance: Conformers, XLNet, towers by rows and columns. Each
// file is what the family's class in transformers 5.23.0 saves, without the keys that say nothing
// of position.
#include <algorithm>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {
namespace by_distance {

Model model_of(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

template <class S>
S scheme_of(const LayerGroup& group, std::size_t index = 0) {
  const S* scheme = index < group.schemes.size() ? std::get_if<S>(&group.schemes[index]) : nullptr;
  if (!scheme) ADD_FAILURE() << "another scheme";
  return scheme ? *scheme : S{};
}

bool warns(const Model& model, std::string_view words) {
  return std::ranges::any_of(model.warnings,
                             [&](const Warning& each) { return each.message.contains(words); });
}

TEST(FamilyLevit, EveryStageHasItsGridAndQueriesAStrideApartBehindIt) {
  const Model model = model_of(R"({"model_type": "levit", "image_size": 224, "patch_size": 16,
      "hidden_sizes": [128, 256, 384], "depths": [2, 3, 4], "num_attention_heads": [4, 6, 8],
      "key_dim": [16, 16, 16], "down_ops": [["Subsample", 16, 8, 4, 2, 2],
      ["Subsample", 16, 16, 4, 2, 2]]})");
  std::string found;
  for (const LayerGroup& group : model.groups) {
    EXPECT_TRUE(scheme_of<GridBias>(group).absolute);
    const auto plan = compile(group);
    ASSERT_TRUE(plan) << plan.error().message();
    found += std::to_string(group.layers.size()) + "x" + std::to_string(group.geometry.heads) +
             ":" + std::to_string(std::get<BiasTable>(*plan->bias).row_count) + " ";
  }
  EXPECT_EQ(found, "2x4:196 1x8:196 3x6:49 1x16:49 4x8:16 ");
}

TEST(FamilySeamless, SoundsHaveDistancesAndTextsSinusoids) {
  for (const std::string version : {"", "_v2"}) {
    const Model model = model_of(R"({"model_type": "seamless_m4t)" + version + R"(",
        "hidden_size": 512, "speech_encoder_layers": 3, "speech_encoder_attention_heads": 8,
        "encoder_layers": 4, "encoder_attention_heads": 8, "decoder_layers": 5,
        "decoder_attention_heads": 8, "max_position_embeddings": 2048, "pad_token_id": 0})");
    ASSERT_EQ(model.groups.size(), 3u);
    EXPECT_EQ(model.groups[0].stack, Stack::audio);
    EXPECT_EQ(model.groups[0].layers.size(), 3u);
    if (version.empty()) {
      scheme_of<TransformerXl>(model.groups[0]);
    } else {
      EXPECT_EQ(scheme_of<Shaw>(model.groups[0]).max_ahead, 8);
    }
    EXPECT_EQ(scheme_of<Sinusoidal>(model.groups[1]).row_offset, 1);
    EXPECT_EQ(model.groups[2].layers.size(), 5u);
    EXPECT_EQ(model.context, 2048);
  }
}

TEST(FamilyVits, VectorsEndAtItsWindow) {
  const std::string sizes = R"({"model_type": "vits", "hidden_size": 192, "num_hidden_layers": 6,
      "num_attention_heads": 2, "window_size": )";
  const Shaw scheme = scheme_of<Shaw>(model_of(sizes + "4}").groups.at(0));
  EXPECT_TRUE(scheme.zero_beyond && scheme.use_values);
  EXPECT_EQ(scheme.max_distance, 4);
  scheme_of<NoPe>(model_of(sizes + "null}").groups.at(0));
}

TEST(FamilyXlnet, SeesBothWaysUnlessItSaysOtherwise) {
  const std::string sizes =
      R"({"model_type": "xlnet", "d_model": 768, "n_head": 12, "n_layer": 12)";
  const Model both = model_of(sizes + R"(, "attn_type": "bi", "clamp_len": -1})");
  const TransformerXl scheme = scheme_of<TransformerXl>(both.groups.at(0));
  EXPECT_EQ(scheme.layout, WaveLayout::concatenated);
  EXPECT_TRUE(scheme.bidirectional);
  EXPECT_FALSE(both.groups[0].causal);
  EXPECT_EQ(compile(both.groups[0], 9)->relative->row_count, 17);
  const Model causal = model_of(sizes + R"(, "attn_type": "uni", "clamp_len": 400})");
  EXPECT_TRUE(causal.groups.at(0).causal);
  EXPECT_EQ(compile(causal.groups[0], 9)->relative->row_count, 9);
  EXPECT_TRUE(warns(causal, "clamp_len is 400"));
}

TEST(FamilyConformer, ParakeetHasTransformerXlsTermsInterleaved) {
  const Model model = model_of(R"({"model_type": "parakeet_ctc", "encoder_config": {
      "model_type": "parakeet_encoder", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 8, "max_position_embeddings": 5000}})");
  EXPECT_EQ(scheme_of<TransformerXl>(model.groups.at(0)).layout, WaveLayout::interleaved);
  EXPECT_EQ(model.groups[0].layers.size(), 24u);
  EXPECT_EQ(model.context, 5000);
  EXPECT_EQ(compile(model.groups[0], model.context)->relative->row_count, 9999);
}

TEST(FamilyConformer, CohereWritesBesideParakeetsEncoder) {
  const Model model = model_of(R"({"model_type": "cohere_asr", "hidden_size": 1024,
      "num_hidden_layers": 8, "num_attention_heads": 8, "max_position_embeddings": 1024,
      "encoder_config": {"model_type": "parakeet_encoder", "hidden_size": 1280,
      "num_hidden_layers": 48, "num_attention_heads": 8, "max_position_embeddings": 5000}})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].stack, Stack::encoder);
  EXPECT_EQ(scheme_of<TransformerXl>(model.groups[0]).layout, WaveLayout::interleaved);
  EXPECT_EQ(model.groups[1].stack, Stack::decoder);
  EXPECT_TRUE(model.groups[1].causal);
  EXPECT_EQ(scheme_of<Learned>(model.groups[1]).rows, 1024);
}

TEST(FamilyConformer, FastSpeechHasTwo) {
  const std::string sizes = R"("hidden_size": 384, "encoder_layers": 4, "decoder_layers": 3,
      "encoder_num_attention_heads": 2, "decoder_num_attention_heads": 4)";
  for (const std::string& file :
       {R"({"model_type": "fastspeech2_conformer", )" + sizes + "}",
        R"({"model_type": "fastspeech2_conformer_with_hifigan", "model_config": {)" + sizes +
            "}}"}) {
    const Model model = model_of(file);
    ASSERT_EQ(model.groups.size(), 2u) << file;
    EXPECT_EQ(model.groups[0].geometry.head_dim, 192);
    EXPECT_EQ(model.groups[1].geometry.head_dim, 96);
    EXPECT_EQ(model.groups[1].layers.size(), 3u);
    EXPECT_FALSE(model.groups[1].causal);
    EXPECT_EQ(scheme_of<TransformerXl>(model.groups[1]).layout, WaveLayout::interleaved);
  }
}

TEST(FamilyConformer, Wav2Vec2BertClipsUnevenly) {
  const std::string sizes = R"({"model_type": "wav2vec2-bert", "hidden_size": 1024,
      "num_attention_heads": 16, "num_hidden_layers": 24)";
  const Shaw scheme =
      scheme_of<Shaw>(model_of(sizes + R"(, "position_embeddings_type": "relative_key",
                    "left_max_position_embeddings": 64, "right_max_position_embeddings": 8})")
                          .groups.at(0));
  EXPECT_EQ(scheme.max_distance, 64);
  EXPECT_EQ(scheme.max_ahead, 8);
  EXPECT_FALSE(scheme.use_values);
  scheme_of<TransformerXl>(
      model_of(sizes + R"(, "position_embeddings_type": "relative"})").groups.at(0));
  scheme_of<NoPe>(model_of(sizes + R"(, "position_embeddings_type": null})").groups.at(0));
  EXPECT_FALSE(read_config(sizes + R"(, "position_embeddings_type": "rotary"})"));
}

TEST(FamilyConformer, GranitesBlocksHaveAVectorForEachDistance) {
  const Model model = model_of(R"({"model_type": "granite_speech_encoder", "hidden_dim": 1024,
      "num_layers": 10, "num_heads": 8, "dim_head": 128, "context_size": 200, "max_pos_emb": 512})");
  const LayerGroup& group = model.groups.at(0);
  EXPECT_TRUE(group.chunked);
  EXPECT_EQ(group.window, 200);
  EXPECT_EQ(scheme_of<Shaw>(group).row_order, RowOrder::query_minus_key);
  EXPECT_EQ(compile(group)->relative->row_count, 1025);
}

TEST(FamilyConformer, Phi4sSoundHasABiasForEachDistance) {
  const Model model = model_of(R"({"model_type": "phi4_multimodal_audio", "hidden_size": 1024,
      "num_blocks": 24, "num_attention_heads": 16, "bias_max_distance": 1000, "chunk_size": -1,
      "left_chunk": 18, "bias_symmetric": false})");
  const LayerGroup& group = model.groups.at(0);
  EXPECT_EQ(scheme_of<ClippedBias>(group).right, 999);
  EXPECT_EQ(group.layers.size(), 24u);
  EXPECT_EQ(group.window, 500);
}

TEST(TowersByDistance, SwinsStagesHalve) {
  const Model model = model_of(R"({"model_type": "swin", "image_size": 224, "patch_size": 4,
      "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7,
      "use_absolute_embeddings": false})");
  ASSERT_EQ(model.groups.size(), 4u);
  std::int64_t first = 0;
  for (std::size_t s = 0; s < 4; ++s) {
    const LayerGroup& group = model.groups[s];
    EXPECT_EQ(group.layers.front(), first);
    first += std::ssize(group.layers);
    EXPECT_EQ(group.geometry.width, 96 << s);
    EXPECT_EQ(group.geometry.head_dim, 32);
    EXPECT_EQ(compile(group)->bias ? std::get<BiasTable>(*compile(group)->bias).row_count : 0, 169);
    // The last stage is one window.
    EXPECT_EQ(group.label.contains("moved by 3"), s < 3) << group.label;
  }
  EXPECT_EQ(first, 12);
}

TEST(TowersByDistance, AWindowIsNoLargerThanItsStage) {
  const Model model = model_of(R"({"model_type": "swin", "image_size": 64, "patch_size": 4,
      "embed_dim": 96, "depths": [2, 2], "num_heads": [3, 6], "window_size": 12,
      "use_absolute_embeddings": true})");
  EXPECT_EQ(model.groups.at(0).geometry.grid_width, 12);
  EXPECT_EQ(model.groups.at(1).geometry.grid_width, 8);
  EXPECT_EQ(scheme_of<Learned>(model.groups[0], 1).rows, 256);
  EXPECT_EQ(model.groups[1].schemes.size(), 1u);
}

TEST(TowersByDistance, SwinV2KnowsTheWindowsOfItsTraining) {
  const Model model = model_of(R"({"model_type": "swinv2", "image_size": 256, "patch_size": 4,
      "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32], "window_size": 16,
      "pretrained_window_sizes": [12, 12, 12, 6]})");
  EXPECT_EQ(scheme_of<LogCpb>(model.groups.at(0)).pretrained_width, 12);
  EXPECT_EQ(scheme_of<LogCpb>(model.groups.at(3)).pretrained_height, 6);
  EXPECT_EQ(model.groups[3].geometry.grid_height, 8);
  EXPECT_TRUE(model.groups[0].logits_note.contains("cosines"));
}

TEST(TowersByDistance, StagesThatDoNotFitAreRefused) {
  for (const char* more : {R"("depths": [2, 2], "num_heads": [3])", R"("image_size": 2)",
                           R"("depths": [9000, 9000, 1, 1])", R"("embed_dim": 97)"}) {
    EXPECT_FALSE(read_config(R"({"model_type": "swin", )" + std::string(more) + "}")) << more;
  }
}

TEST(TowersByDistance, BeitsClassTokenStandsBeforeTheGrid) {
  const std::string sizes = R"({"model_type": "beit", "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "image_size": 224, "patch_size": 16)";
  const Model model = model_of(sizes + R"(, "use_relative_position_bias": true})");
  EXPECT_TRUE(scheme_of<GridBias>(model.groups.at(0)).class_token);
  const auto plan = compile(model.groups[0]);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<BiasTable>(*plan->bias).row_count, 27 * 27 + 3);
  scheme_of<NoPe>(model_of(sizes + "}").groups.at(0));
  EXPECT_EQ(scheme_of<Learned>(
                model_of(sizes + R"(, "use_absolute_position_embeddings": true})").groups.at(0))
                .rows,
            197);
}

// microsoft/layoutlmv3-base: 514 rows, of which padding has one.
TEST(Pages, LayoutLm3AddsBucketsOfThreeAxes) {
  const std::string sizes = R"({"model_type": "layoutlmv3", "hidden_size": 768,
      "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 514)";
  const Model model = model_of(sizes + "}");
  EXPECT_EQ(scheme_of<Learned>(model.groups.at(0)).row_offset, 2);
  EXPECT_TRUE(scheme_of<AxisBuckets>(model.groups[0], 1).divided);
  const auto plan = compile(model.groups[0]);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<BiasTable>(*plan->bias).axes(), 3);
  EXPECT_TRUE(plan->add);
  const Model text = model_of(sizes + R"(, "has_spatial_attention_bias": false})");
  EXPECT_EQ(scheme_of<AxisBuckets>(text.groups.at(0), 1).axes, 0);
}

TEST(Pages, LayoutLm2AddsThemAfterTheScale) {
  const Model model = model_of(R"({"model_type": "layoutlmv2"})");
  EXPECT_FALSE(scheme_of<AxisBuckets>(model.groups.at(0), 1).divided);
  const auto refused = read_config(R"({"model_type": "layoutlmv2",
      "has_relative_attention_bias": false})");
  ASSERT_FALSE(refused);
}

TEST(Pages, UdopsEncoderReadsBoxesAndItsDecoderIsT5s) {
  const Model model = model_of(R"({"model_type": "udop", "relative_bias_args": [
      {"type": "1d"}, {"type": "horizontal"}, {"type": "vertical"}]})");
  EXPECT_EQ(scheme_of<AxisBuckets>(model.groups.at(0)).axis_unit, 20);
  EXPECT_FALSE(scheme_of<T5>(model.groups.at(1)).bidirectional);
  EXPECT_FALSE(read_config(R"({"model_type": "udop", "relative_bias_args": [{"type": "1d"}]})"));
}

TEST(TowersByDistance, SamsLayersHaveWindowsOrThePicture) {
  const Model model = model_of(R"({"model_type": "sam", "vision_config": {
      "model_type": "sam_vision_model", "hidden_size": 1280, "num_hidden_layers": 32,
      "num_attention_heads": 16, "image_size": 1024, "patch_size": 16, "window_size": 14,
      "global_attn_indexes": [7, 15, 23, 31], "use_rel_pos": true, "use_abs_pos": true},
      "mask_decoder_config": {"hidden_size": 256}})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].layers.size(), 28u);
  EXPECT_EQ(model.groups[0].geometry.grid_height, 14);
  EXPECT_EQ(model.groups[1].layers, (std::vector<std::int64_t>{7, 15, 23, 31}));
  EXPECT_EQ(model.groups[1].geometry.grid_height, 64);
  scheme_of<Decomposed>(model.groups[1]);
  EXPECT_EQ(scheme_of<Learned>(model.groups[1], 1).rows, 4096);
  EXPECT_EQ(compile(model.groups[0])->relative->row_count, 27 + 27);
}

TEST(TowersByDistance, Sam3sWholePictureStandsAsNearAsAWindow) {
  const Model model = model_of(R"({"model_type": "sam3_vision_model", "backbone_config": {
      "model_type": "sam3_vit_model", "hidden_size": 1024, "num_hidden_layers": 32,
      "num_attention_heads": 16, "image_size": 1008, "patch_size": 14, "window_size": 24,
      "global_attn_indexes": [7, 15, 23, 31], "pretrain_image_size": 336,
      "rope_parameters": {"rope_type": "axial", "rope_theta": 10000.0}}})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(scheme_of<Learned>(model.groups[0]).rows, 576);
  EXPECT_TRUE(scheme_of<Axial>(model.groups[0], 1).position_scale.empty());
  EXPECT_EQ(scheme_of<Axial>(model.groups[1], 1).position_scale, std::vector<double>{24.0 / 72});
  EXPECT_EQ(compile(model.groups[1])->rotate->at(0, 1, 0), 24.0 / 72);
}

// facebook/sam2.1-hiera-tiny.
constexpr std::string_view sam2_tiny = R"({"model_type": "sam2_hiera_det_model",
    "image_size": [1024, 1024], "patch_stride": [4, 4], "query_stride": [2, 2],
    "window_positional_embedding_background_size": [7, 7], "num_query_pool_stages": 3,
    "blocks_per_stage": [1, 2, 7, 2], "embed_dim_per_stage": [96, 192, 384, 768],
    "num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [8, 4, 14, 7],
    "global_attention_blocks": [5, 7, 9]})";

TEST(TowersByDistance, Sam2sTableIsOfAllPatchesAndAddedOnce) {
  const Model model = model_of(std::string(sam2_tiny));
  EXPECT_EQ(scheme_of<Learned>(model.groups.at(0)).rows, 256 * 256);
  for (std::size_t g = 1; g < model.groups.size(); ++g) scheme_of<NoPe>(model.groups[g]);
  EXPECT_TRUE(warns(model, "stretched to the picture's patches"));
  const auto said = std::ranges::find(model.groups[0].provenance, "table", &Provenance::field);
  ASSERT_NE(said, model.groups[0].provenance.end());
  EXPECT_EQ(said->value, "7 × 7 stretched, and 8 × 8 repeated, summed");
}

// The first layer of a stage has the windows of the one before, and a quarter of the queries.
TEST(TowersByDistance, Sam2sLayersAttendWithinWindowsOrThePicture) {
  const Model model = model_of(std::string(sam2_tiny));
  const auto group = [&](std::int64_t layer) -> const LayerGroup& {
    return *std::ranges::find_if(model.groups, [&](const LayerGroup& each) {
      return std::ranges::find(each.layers, layer) != each.layers.end();
    });
  };
  std::size_t layers = 0;
  for (const LayerGroup& each : model.groups) layers += each.layers.size();
  EXPECT_EQ(layers, 12u);
  EXPECT_EQ(group(0).label, "stage 1: windows of 8 × 8 patches");
  EXPECT_EQ(group(1).label,
            "stage 2: windows of 8 × 8 patches, whose queries are the largest of 2 × 2");
  EXPECT_EQ(group(2).label, "stage 2: windows of 4 × 4 patches");
  EXPECT_EQ(group(3).geometry.grid_width, 4);
  EXPECT_EQ(group(4).layers, (std::vector<std::int64_t>{4, 6, 8}));
  EXPECT_EQ(group(9).label, "stage 3: the whole picture, 64 × 64");
  EXPECT_EQ(group(10).geometry.grid_width, 14);
  EXPECT_EQ(group(11).geometry.heads, 8);
  EXPECT_EQ(group(11).geometry.head_dim, 96);
}

TEST(TowersByDistance, Sam2IsExplainedByItsTower) {
  const std::string tower = R"("vision_config": {"model_type": "sam2_vision_model",
      "backbone_config": )" +
                            std::string(sam2_tiny) + "}}";
  EXPECT_EQ(model_of(R"({"model_type": "sam2", )" + tower).groups.size(), 8u);
  EXPECT_TRUE(warns(model_of(R"({"model_type": "sam2_video", )" + tower), "a memory whose keys"));
  EXPECT_EQ(model_of(R"({"model_type": "sam2_vision_model", "backbone_config": )" +
                     std::string(sam2_tiny) + "}")
                .groups.size(),
            8u);
}

// facebook/hiera-tiny-224-hf.
TEST(TowersByDistance, HierasMaskUnitsShrinkWithItsStages) {
  const Model model = model_of(R"({"model_type": "hiera", "depths": [1, 2, 7, 2],
      "embed_dim": 96, "embed_dim_multiplier": 2.0, "num_heads": [1, 2, 4, 8],
      "image_size": [224, 224], "patch_stride": [4, 4], "masked_unit_size": [8, 8],
      "masked_unit_attention": [true, true, false, false], "num_query_pool": 3,
      "query_stride": [2, 2]})");
  EXPECT_EQ(scheme_of<Learned>(model.groups.at(0)).rows, 56 * 56);
  std::vector<std::string> labels;
  for (const LayerGroup& each : model.groups) labels.push_back(each.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{
                "stage 1: windows of 8 × 8 patches",
                "stage 2: windows of 8 × 8 patches, whose queries are the largest of 2 × 2",
                "stage 2: windows of 4 × 4 patches",
                "stage 3: windows of 4 × 4 patches, whose queries are the largest of 2 × 2",
                "stage 3: the whole picture, 14 × 14",
                "stage 4: the whole picture, 14 × 14, whose queries are the largest of 2 × 2",
                "stage 4: the whole picture, 7 × 7"}));
  EXPECT_EQ(model.groups.back().geometry.width, 768);
}

TEST(TowersByDistance, HierasFlagsMayBeNumbers) {
  const Model model = model_of(R"({"model_type": "hiera", "masked_unit_attention": [1, 1, 0, 0]})");
  EXPECT_EQ(model.groups.at(0).label, "stage 1: windows of 8 × 8 patches");
}

// shi-labs/dinat-mini-in1k-224.
TEST(TowersByDistance, DinatsLayersLookNearAndFarInTurns) {
  const Model model = model_of(R"({"model_type": "dinat", "embed_dim": 64, "patch_size": 4,
      "depths": [3, 4, 6, 5], "num_heads": [2, 4, 8, 16], "kernel_size": 7,
      "dilations": [[1, 8, 1], [1, 4, 1, 4], [1, 2, 1, 2, 1, 2], [1, 1, 1, 1, 1]]})");
  ASSERT_EQ(model.groups.size(), 7u);
  EXPECT_EQ(model.groups[0].layers, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(model.groups[0].geometry.grid_width, 56);
  EXPECT_EQ(model.groups[1].label, "stage 1: neighbourhoods of 7 × 7 patches, 8 apart");
  EXPECT_EQ(model.groups[1].geometry.grid_width, 7);
  EXPECT_EQ(model.groups[6].geometry.width, 512);
  EXPECT_EQ(model.groups[6].geometry.head_dim, 32);
  for (const LayerGroup& each : model.groups) {
    EXPECT_EQ(scheme_of<GridBias>(each).reach, 7);
    const auto plan = compile(each);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(std::get<BiasTable>(*plan->bias).row_count, 169);
  }
}

TEST(TowersByDistance, DinatsDilationsAreTheClasssWhereTheFileHasNone) {
  const Model model = model_of(R"({"model_type": "dinat"})");
  ASSERT_EQ(model.groups.size(), 7u);
  EXPECT_EQ(model.groups[5].label, "stage 3: neighbourhoods of 7 × 7 patches, 2 apart");
}

TEST(TowersByDistance, StagesWithoutTheirNumbersAreRefused) {
  for (const char* file :
       {R"({"model_type": "dinat", "dilations": [[1, 8, 1], [1]]})",
        R"({"model_type": "dinat", "dilations": [[1, 8, 1], [1, 4, 1, 0]]})",
        R"({"model_type": "dinat", "depths": [3, 4]})",
        R"({"model_type": "dinat", "dilations": 2})",
        R"({"model_type": "dinat", "kernel_size": 6})",
        R"({"model_type": "dinat", "depths": [4, 4, 6, 5]})",
        R"({"model_type": "dinat", "embed_dim": 16777216})",
        R"({"model_type": "hiera", "embed_dim_multiplier": 1e5})",
        R"({"model_type": "sam2_hiera_det_model", "blocks_per_stage": [12000],
            "embed_dim_per_stage": [96], "num_attention_heads_per_stage": [1],
            "window_size_per_stage": [8]})",
        R"({"model_type": "hiera", "masked_unit_attention": [true]})",
        R"({"model_type": "hiera", "depths": [2], "num_heads": []})",
        R"({"model_type": "sam2_hiera_det_model", "window_size_per_stage": [8]})",
        R"({"model_type": "sam2_hiera_det_model", "blocks_per_stage": [9000, 9000, 1, 1]})"})
    EXPECT_FALSE(read_config(file)) << file;
}

TEST(TowersByDistance, VitDetListsItsWindows) {
  const Model model = model_of(R"({"model_type": "vitdet", "hidden_size": 768,
      "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 512,
      "pretrain_image_size": 224, "patch_size": 16, "window_size": 14,
      "window_block_indices": [0, 1, 3, 4, 6, 7, 9, 10], "use_relative_position_embeddings": true,
      "use_absolute_position_embeddings": true})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[1].layers, (std::vector<std::int64_t>{2, 5, 8, 11}));
  EXPECT_EQ(scheme_of<Learned>(model.groups[1], 1).rows, 197);
}

TEST(TowersByDistance, ABackboneAloneIsExplained) {
  const Model model = model_of(R"({"model_type": "upernet", "backbone_config": {
      "model_type": "swin", "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24]}})");
  EXPECT_EQ(model.groups.size(), 4u);
  EXPECT_TRUE(warns(model, "its backbone alone is explained"));
}

}  // namespace by_distance
}  // namespace
}  // namespace posenc
