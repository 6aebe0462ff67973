// posenc identify, run on what posenc rotate wrote.
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>
#include <nlohmann/json.hpp>

#include "tests/cli/arrays.h"
#include "tests/gguf_bytes.h"
#include "tests/random.h"

namespace {

using Json = nlohmann::json;
using posenc::cli::NpyType;
using posenc::test::has;
using posenc::test::Outcome;

class IdentifyCommand : public posenc::test::ArrayTest {
 protected:
  // [heads][tokens][64] normal numbers; `repeated`: the first token's in place of all.
  void make_tokens(const std::string& name, bool repeated) const {
    constexpr std::int64_t heads = 4, tokens = 128, dim = 64;
    posenc::cli::Array array = *posenc::cli::make_array(NpyType::f32, {heads, tokens, dim});
    const std::vector<double> numbers = posenc::random(heads * tokens * dim);
    const posenc::Tensor view = tensor(array);
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const std::int64_t from = repeated ? i / (tokens * dim) * tokens * dim + i % dim : i;
      view.set(i, numbers[static_cast<std::size_t>(from)]);
    }
    ASSERT_TRUE(posenc::cli::write_npy(path(name), array));
  }
  // The arrays of .npy files under names of their own, as safetensors.
  void make_safetensors(const std::string& name,
                        const std::vector<std::pair<std::string, std::string>>& tensors) const {
    Json header;
    std::string data;
    for (const auto& [key, file] : tensors) {
      const posenc::cli::Array array = this->array(file);
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(array.data.data()), array.data.size());
      header[key] = {
          {"dtype", "F32"}, {"shape", array.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const std::uint64_t size = text.size();
    std::ofstream(path(name), std::ios::binary)
            .write(reinterpret_cast<const char*>(&size), sizeof size)
        << text << data;
  }
  // The array of a .npy file as the one tensor of a GGUF, whose extents begin with the last axis.
  void make_gguf(const std::string& name, const std::string& tensor,
                 const std::string& file) const {
    const posenc::cli::Array array = this->array(file);
    const auto extent = [&](std::size_t i) { return static_cast<std::uint64_t>(array.shape[i]); };
    posenc::test::GgufBytes bytes;
    bytes.start(1, 1).key("general.architecture", posenc::test::GgufBytes::string).word("llama");
    bytes.tensor(tensor, {extent(2), extent(1), extent(0)}, 0, 0).pad();
    bytes.text.append(reinterpret_cast<const char*>(array.data.data()), array.data.size());
    std::ofstream(path(name), std::ios::binary) << bytes.text;
  }
  void rotate(const std::string& flags) const {
    const Outcome done = posenc("rotate before.npy after.npy --scheme rope " + flags);
    ASSERT_EQ(done.code, 0) << done.err;
  }
};

TEST_F(IdentifyCommand, NamesWhatRotateWasToldTo) {
  make_tokens("before.npy", false);
  rotate("--rope_theta 500000 --pairing interleaved --positions 0:128");
  const Outcome said = posenc("identify --before before.npy --after after.npy --json");
  EXPECT_EQ(said.code, 0) << said.err;
  const Json found = Json::parse(said.out, nullptr, false);
  EXPECT_EQ(found["verdict"], "rotation");
  EXPECT_EQ(found["pairing"], "interleaved");
  EXPECT_EQ(found["rotary_dim"], 64);
  EXPECT_EQ(found["base"], 500000);
  EXPECT_EQ(found["scaling"]["type"], "default");
  EXPECT_EQ(found["offset"], 0);
  for (const char* key : {"first_dim", "amplitude", "sign", "residual", "runner_up", "cannot_tell"})
    EXPECT_TRUE(found.contains(key)) << key;
}

TEST_F(IdentifyCommand, KeysOfARepeatedTokenMakeAPage) {
  make_tokens("before.npy", true);
  rotate("--rope_theta 1e6 --positions 0:128");
  const Outcome page = posenc("identify --after after.npy --repeated");
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(has(page.out, "halves: channels (0, 32), (1, 33), …")) << page.out;
  EXPECT_TRUE(has(page.out, "base 1000000, no scaling")) << page.out;
}

TEST_F(IdentifyCommand, RowsWithoutNumbersAreRefused) {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
           {64, 0}, {0, 8}, {0, 0}, {2, 0, 8}, {2, 8, 0}, {0, 8, 8}, {0}, {1, 0, 4, 0}}) {
    ASSERT_TRUE(posenc::cli::write_npy(path("d.npy"), *make_array(NpyType::f32, shape)));
    for (const char* flags :
         {"--repeated --heads 2", "--repeated", "--heads 2", "--before d.npy"}) {
      const Outcome said = posenc(std::string("identify --after d.npy ") + flags);
      EXPECT_EQ(said.code, 2) << flags << "\n" << said.out << said.err;
    }
    for (const char* table : {"--table d.npy", "--cos d.npy --sin d.npy"})
      EXPECT_LE(posenc(std::string("identify ") + table).code, 2) << table;
  }
}

TEST_F(IdentifyCommand, PositionsTellAnOffset) {
  make_tokens("before.npy", false);
  rotate("--positions 1:129");
  const std::string files = "identify --before before.npy --after after.npy --json ";
  EXPECT_EQ(Json::parse(posenc(files).out)["offset"], 1);
  EXPECT_EQ(Json::parse(posenc(files + "--positions 1:129").out)["offset"], 0);
}

TEST_F(IdentifyCommand, UnchangedEndsWithOne) {
  make_tokens("before.npy", false);
  const Outcome said = posenc("identify --before before.npy --after before.npy");
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(said.out.starts_with("no rotation")) << said.out;
}

TEST_F(IdentifyCommand, HowPrintsLinesForAnEngine) {
  EXPECT_TRUE(has(posenc("identify --how transformers").out, "past_key_values"));
  const Outcome unknown = posenc("identify --how abacus");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(has(unknown.err, "transformers")) << unknown.err;
}

TEST_F(IdentifyCommand, EveryEngineOfHowHasWords) {
  for (const char* engine :
       {"transformers", "vllm", "sglang", "mlx-lm", "llama.cpp", "onnxruntime", "any"})
    EXPECT_TRUE(has(posenc(std::string("identify --how ") + engine).out, "posenc identify"))
        << engine;
}

TEST_F(IdentifyCommand, LayersOfOneFileAreCompared) {
  make_tokens("before.npy", true);
  rotate("--rope_theta 1e6 --positions 0:128");
  const Outcome other =
      posenc("rotate before.npy other.npy --scheme rope --rope_theta 10000 --positions 0:128");
  ASSERT_EQ(other.code, 0) << other.err;
  make_safetensors("k.safetensors",
                   {{"k_0", "after.npy"}, {"k_1", "after.npy"}, {"k_2", "other.npy"}});
  const Outcome page = posenc("identify --after k.safetensors --repeated");
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(has(page.out, "2 layers: k_0, k_1")) << page.out;
  EXPECT_TRUE(has(page.out, "not all rotate alike: k_2 differ")) << page.out;
  const Json all =
      Json::parse(posenc("identify --after k.safetensors --repeated --json").out, nullptr, false);
  EXPECT_EQ(all["groups"], Json::parse(R"([["k_0", "k_1"], ["k_2"]])"));
  EXPECT_EQ(all["layers"][2]["base"], 10000);
}

TEST_F(IdentifyCommand, ATensorIsNamedByAPartOfItsName) {
  make_tokens("before.npy", false);
  rotate("--rope_theta 1e6 --positions 0:128");
  make_safetensors("both.safetensors", {{"q", "before.npy"}, {"q_rotated", "after.npy"}});
  const Outcome said = posenc(
      "identify --after both.safetensors --tensor '*rotated' --before both.safetensors "
      "--before_tensor q --json");
  EXPECT_EQ(Json::parse(said.out, nullptr, false)["base"], 1e6) << said.err;
  const Outcome none = posenc("identify --after both.safetensors --tensor k --repeated");
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "did you mean 'q'?")) << none.err;
}

TEST_F(IdentifyCommand, DumpsMayBeGguf) {
  make_tokens("before.npy", false);
  rotate("--rope_theta 1e6 --positions 0:128");
  make_gguf("before.gguf", "q", "before.npy");
  make_gguf("after.gguf", "q_rope", "after.npy");
  const Outcome said = posenc("identify --after after.gguf --before before.gguf --json");
  EXPECT_EQ(Json::parse(said.out, nullptr, false)["base"], 1e6) << said.err;
}

TEST_F(IdentifyCommand, RowsOfAllHeadsAreCut) {
  make_tokens("before.npy", true);
  rotate("--rope_theta 1e6 --positions 0:128");
  posenc::cli::Array array = this->array("after.npy");
  const posenc::cli::Array from = array;
  const posenc::Tensor rows = tensor(array);
  posenc::cli::Array copy = from;
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t t = 0; t < 128; ++t)
      for (std::int64_t c = 0; c < 64; ++c)
        rows.set((t * 4 + h) * 64 + c, tensor(copy).get((h * 128 + t) * 64 + c));
  array.shape = {128, 256};
  ASSERT_TRUE(posenc::cli::write_npy(path("rows.npy"), array));
  const Outcome said = posenc("identify --after rows.npy --heads 4 --repeated --json");
  EXPECT_EQ(Json::parse(said.out, nullptr, false)["base"], 1e6) << said.err;
  EXPECT_EQ(posenc("identify --after rows.npy --heads 3 --repeated").code, 2);
}

// Keys that llama.cpp itself saved, of a model whose file says base 100000 in neighbours.
TEST_F(IdentifyCommand, AStateOfLlamaCppIsEnough) {
  const std::string file = posenc::test::data_path("llama_cpp/smollm2.state");
  const Outcome said = posenc("identify --after " + file + " --heads 3 --json");
  const Json found = Json::parse(said.out, nullptr, false);
  ASSERT_EQ(found["layers"].size(), 2U) << said.err;
  EXPECT_EQ(found["groups"].size(), 1U);
  for (const Json& layer : found["layers"]) {
    EXPECT_EQ(layer["verdict"], "rotation");
    EXPECT_EQ(layer["pairing"], "interleaved");
    EXPECT_EQ(layer["base"], 100000);
  }
  EXPECT_TRUE(has(posenc("identify --after " + file).err, "--heads"));
}

TEST_F(IdentifyCommand, EvalCallbackShowsNeighbours) {
  const std::string file = posenc::test::data_path("llama_cpp/smollm2.eval.txt");
  const Outcome page = posenc("identify --after " + file);
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(has(page.out, "2 layers: Qcur-0, Kcur-0")) << page.out;
  EXPECT_TRUE(has(page.out, "interleaved")) << page.out;
  EXPECT_TRUE(has(page.out, "what lies between")) << page.out;
}

TEST_F(IdentifyCommand, ATableOfVectorsIsNamed) {
  ASSERT_EQ(posenc("table pe.npy --scheme sinusoidal --width 64 --positions 2:200").code, 0);
  const Json found = Json::parse(posenc("identify --table pe.npy --json").out, nullptr, false);
  EXPECT_EQ(found["sinusoidal"], true);
  EXPECT_EQ(found["offset"], 2);
  EXPECT_EQ(posenc("identify --table before.npy").code, 2);
}

TEST_F(IdentifyCommand, AModelsOwnRotationIsComparedWithTheDump) {
  make_tokens("before.npy", false);
  rotate("--rope_theta 100000 --positions 0:128");
  std::ofstream(path("config.json"))
      << R"({"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": )"
      << R"(500000, "num_hidden_layers": 2, "max_position_embeddings": 4096})";
  const Outcome page = posenc("identify --before before.npy --after after.npy --model config.json");
  EXPECT_EQ(page.code, 1) << page.err;
  EXPECT_TRUE(has(page.out, "rope_theta")) << page.out;
  EXPECT_TRUE(has(page.out, "base 500000")) << page.out;
}

TEST_F(IdentifyCommand, ValuesAreNotToRotate) {
  make_tokens("before.npy", false);
  rotate("--positions 0:128");
  const Outcome said = posenc("identify --before before.npy --after after.npy --values --json");
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(Json::parse(said.out, nullptr, false)["findings"][0]["code"], "values");
}

TEST_F(IdentifyCommand, CosinesWantTheirSines) {
  ASSERT_EQ(posenc("table pe.npy --scheme sinusoidal --width 64 --positions 0:200").code, 0);
  EXPECT_TRUE(has(posenc("identify --cos pe.npy").err, "--sin: is required"));
  EXPECT_EQ(posenc("identify --cos pe.npy --sin pe.npy").code, 1);
}

TEST_F(IdentifyCommand, AfterAloneMustBeOfARepeatedToken) {
  make_tokens("before.npy", false);
  const Outcome said = posenc("identify --after before.npy");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "--repeated")) << said.err;
}

}  // namespace
