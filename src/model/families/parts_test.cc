// Models of several parts: encoder and decoder, sound beside text, a model within a wrapper.
#include <algorithm>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model parts_model(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

std::string parts_refusal(std::string_view text) {
  const auto model = read_config(text);
  return model ? "" : model.error().message();
}

std::int64_t layers_in(const Model& model, Stack stack) {
  std::int64_t count = 0;
  for (const LayerGroup& group : model.groups)
    if (group.stack == stack) count += std::ssize(group.layers);
  return count;
}

bool warns_of(const Model& model, std::string_view code) {
  return std::ranges::find(model.warnings, code, &Warning::code) != model.warnings.end();
}

TEST(Parts, MoonshineSpellsItsSidesApart) {
  const Model model = parts_model(R"({"model_type": "moonshine", "encoder_num_hidden_layers": 3,
      "decoder_num_hidden_layers": 5, "hidden_size": 288, "encoder_num_attention_heads": 8,
      "decoder_num_attention_heads": 4})");
  EXPECT_EQ(layers_in(model, Stack::encoder), 3);
  EXPECT_EQ(layers_in(model, Stack::decoder), 5);
  const LayerGroup *encoder = find_group(model, 0, Stack::encoder),
                   *decoder = find_group(model, 0, Stack::decoder);
  ASSERT_TRUE(encoder && decoder);
  EXPECT_FALSE(encoder->causal);
  EXPECT_TRUE(decoder->causal);
  EXPECT_EQ(encoder->geometry.head_dim, 36);
  EXPECT_EQ(decoder->geometry.head_dim, 72);
  EXPECT_EQ(compile(*encoder)->rotate->slice.rotary_dim, 32);  // ⌊0.9 · 36⌋
  EXPECT_EQ(std::get<Rope>(encoder->schemes[0]).pairing, Pairing::interleaved);
}

TEST(Parts, MoonshinesStreamingEncoderHasNoPosition) {
  const Model model = parts_model(R"({"model_type": "moonshine_streaming",
      "encoder_config": {"model_type": "moonshine_streaming_encoder"}})");
  EXPECT_TRUE(std::holds_alternative<NoPe>(find_group(model, 0, Stack::encoder)->schemes.front()));
  EXPECT_EQ(compile(*find_group(model, 0, Stack::decoder))->rotate->slice.rotary_dim, 32);
}

TEST(Parts, EachIsReadByItsOwnFamily) {
  const Model model = parts_model(R"({"model_type": "vision-encoder-decoder",
      "encoder": {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
                  "num_attention_heads": 12, "image_size": 384, "patch_size": 16},
      "decoder": {"model_type": "trocr", "d_model": 1024, "decoder_layers": 12,
                  "decoder_attention_heads": 16, "max_position_embeddings": 512}})");
  EXPECT_EQ(std::get<Learned>(find_group(model, 0, Stack::vision)->schemes[0]).rows, 577);
  const Learned table = std::get<Learned>(find_group(model, 0, Stack::decoder)->schemes[0]);
  EXPECT_EQ(table.rows, 514);
  EXPECT_EQ(table.row_offset, 2);
}

TEST(Parts, TrOcrMayHaveSinusoids) {
  const Model model = parts_model(R"({"model_type": "trocr", "d_model": 1024, "decoder_layers": 12,
      "decoder_attention_heads": 16, "use_learned_position_embeddings": false})");
  EXPECT_TRUE(std::holds_alternative<Sinusoidal>(model.groups[0].schemes[0]));
}

TEST(Parts, T5GemmasEncoderSeesAsFarAheadAsBack) {
  const Model model = parts_model(R"({"model_type": "t5gemma",
      "encoder": {"model_type": "t5_gemma_module", "num_hidden_layers": 2, "sliding_window": 64},
      "decoder": {"model_type": "t5_gemma_module", "num_hidden_layers": 2, "sliding_window": 64}})");
  EXPECT_EQ(find_group(model, 0, Stack::encoder)->window, 128);
  EXPECT_EQ(find_group(model, 0, Stack::decoder)->window, 64);
}

TEST(Parts, OneThatIsNotCoveredIsSaidWithItsReason) {
  const std::string why = parts_refusal(R"({"model_type": "speech-encoder-decoder",
      "encoder": {"model_type": "swiftformer"}, "decoder": {"model_type": "bert"}})");
  EXPECT_NE(why.find("convolutions"), std::string::npos) << why;
}

TEST(Parts, AnEncoderIsMissed) {
  EXPECT_NE(parts_refusal(R"({"model_type": "encoder-decoder"})").find("is missing"),
            std::string::npos);
}

// A small text model beside an encoder of sound.
Model hearing(std::string_view audio) {
  return parts_model(R"({"model_type": "voxtral", "text_config": {"model_type": "llama",
      "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2},
      "audio_config": )" +
                     std::string(audio) + "}");
}

TEST(Sound, AnEncoderBesideATextModelIsAStack) {
  const Model model = hearing(R"({"model_type": "voxtral_encoder", "num_hidden_layers": 4})");
  EXPECT_EQ(layers_in(model, Stack::audio), 4);
  EXPECT_EQ(layers_in(model, Stack::text), 2);
  EXPECT_FALSE(warns_of(model, "audio_not_explained"));
  EXPECT_TRUE(
      std::holds_alternative<Sinusoidal>(find_group(model, 0, Stack::audio)->schemes.front()));
  EXPECT_EQ(model.context, 2048);  // the text model's
}

TEST(Sound, AnEncoderThatIsNotCoveredIsAWarning) {
  const Model model = hearing(R"({"model_type": "speecht5"})");
  EXPECT_EQ(layers_in(model, Stack::audio), 0);
  EXPECT_TRUE(warns_of(model, "audio_not_explained"));
}

TEST(Sound, SpectrogramsAreCutIntoOverlappingPatches) {
  const Model model = parts_model(R"({"model_type": "audio-spectrogram-transformer",
      "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 16,
      "num_mel_bins": 128, "max_length": 512, "frequency_stride": 10, "time_stride": 10})");
  EXPECT_EQ(std::get<Learned>(model.groups[0].schemes[0]).rows, 12 * 50 + 2);
}

TEST(Sound, ACodecThatRotatesByTheHeadHasNoPosition) {
  const Model model = parts_model(R"({"model_type": "xcodec2"})");
  EXPECT_TRUE(std::holds_alternative<NoPe>(model.groups[0].schemes[0]));
}

TEST(Wrappers, TheModelWithinIsExplained) {
  const Model model = parts_model(R"({"model_type": "colpali", "vlm_config": {
      "model_type": "paligemma",
      "text_config": {"model_type": "gemma", "num_hidden_layers": 2},
      "vision_config": {"model_type": "siglip_vision_model", "num_hidden_layers": 3,
                        "image_size": 224, "patch_size": 14}}})");
  EXPECT_EQ(layers_in(model, Stack::text), 2);
  EXPECT_EQ(layers_in(model, Stack::vision), 3);
}

TEST(Wrappers, AHeadOnATowerIsItsBackbone) {
  const Model model = parts_model(R"({"model_type": "depth_anything",
      "backbone_config": {"model_type": "dinov2", "image_size": 518, "patch_size": 14}})");
  EXPECT_EQ(std::get<Learned>(model.groups[0].schemes[0]).rows, 37 * 37 + 1);
  EXPECT_TRUE(warns_of(model, "family_remark"));
}

TEST(Parts, MusicGenHasCosinesFirstBehindT5) {
  const Model model =
      parts_model(R"({"model_type": "musicgen", "text_encoder": {"model_type": "t5"},
      "audio_encoder": {"model_type": "encodec"}, "decoder": {"model_type": "musicgen_decoder", "scale_embedding": true}})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].stack, Stack::encoder);
  const Sinusoidal& waves = std::get<Sinusoidal>(model.groups[1].schemes.at(0));
  EXPECT_TRUE(waves.cosine_first);
  EXPECT_FALSE(waves.scale_embedding);
}

TEST(Parts, CanaryDividesItsVectors) {
  const Model model =
      parts_model(R"({"model_type": "canary", "encoder_config": {"model_type": "parakeet_encoder"},
      "decoder_config": {"model_type": "canary_decoder"}})");
  EXPECT_TRUE(std::get<Sinusoidal>(model.groups.at(1).schemes.at(0)).divide_vectors);
}

}  // namespace
}  // namespace posenc
