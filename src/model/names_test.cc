// Names met half-way: what people write in lines, logs and settings leads to what is meant.
#include "src/model/names.h"

#include <gtest/gtest.h>

#include <string>

#include "posenc/model.h"
#include "src/model/bundled.h"

namespace posenc {
namespace {
namespace names {

using detail::architecture_of;
using detail::model_named_in;
using detail::name_like;

std::string known(std::string_view name) {
  return std::string(name_like(name).value_or("nothing"));
}

std::string named(std::string_view text) {
  const auto found = model_named_in(text);
  return found ? found->is : "nothing";
}

TEST(Names, OwnerCaseAndPackingAreNoPartOfAModel) {
  EXPECT_EQ(known("meta-llama/Llama-3.1-8B"), "llama-3.1-8b");
  EXPECT_EQ(known("unsloth/Qwen3-32B-UD-Q4_K_XL-00001-of-00002.gguf"), "qwen3-32b");
  EXPECT_EQ(known("mlx-community/Qwen3-32B-4bit"), "qwen3-32b");
  EXPECT_EQ(known("/models/llama-2-7b.Q4_K_M.gguf"), "llama-2-7b");
  EXPECT_EQ(known("nvidia/DeepSeek-V3.2-NVFP4"), "deepseek-v3.2");
}

TEST(Names, TuningIsLeftOutOnlyWhereNoConfigurationHasIt) {
  EXPECT_EQ(known("Qwen/Qwen3-VL-8B-Instruct"), "qwen3-vl-8b-instruct");
  EXPECT_EQ(known("mistralai/Mistral-7B-Instruct-v0.3"), "mistral-7b-v0.3");
  EXPECT_EQ(known("google/gemma-3-4b-it"), "gemma-3-4b");
}

TEST(Names, ANumberMoreIsAnotherModel) {
  EXPECT_EQ(known("Qwen/Qwen3-8B-Base-128K"), "nothing");
  EXPECT_EQ(known("llama-3.1-80b"), "nothing");
  EXPECT_EQ(known(""), "nothing");
  EXPECT_EQ(known(std::string(5000, 'a')), "nothing");
}

TEST(Names, ALineNamesItsModelBehindAFlagInAFolderOrByItsOwner) {
  EXPECT_EQ(named("vllm serve Qwen/Qwen3-32B --max-model-len 65536"), "qwen3-32b");
  EXPECT_EQ(named("mlx_lm.server --model Qwen3-32B"), "qwen3-32b");
  EXPECT_EQ(named("llama-server -m /data/gguf/Qwen3-32B-Q8_0.gguf -c 0"), "qwen3-32b");
  EXPECT_EQ(named("model_name_or_path: ../weights/Qwen3-32B\ncutoff_len: 65536"), "qwen3-32b");
  EXPECT_EQ(named("FROM qwen3:32b"), "qwen3-32b");
  EXPECT_EQ(named("a server for Qwen3-32B, see https://example.org/Qwen/Qwen3-32B"), "nothing");
}

TEST(Names, SentencesNameAModelWithoutItsOwner) {
  const auto meant = [](const char* words) {
    const auto found = detail::model_in_prose(words);
    return found ? found->is : "nothing";
  };
  EXPECT_EQ(meant("Llama 3.1 8B gives nonsense"), "llama-3.1-8b");
  EXPECT_EQ(meant("`meta-llama/Meta-Llama-3-8B-Instruct` is gibberish"), "llama-3-8b-instruct");
  EXPECT_EQ(meant("Phi-3-mini-4k breaks"), "phi-3-mini-4k-instruct");
  // Of sizes that one name has in common, where their positions are the same.
  EXPECT_TRUE(meant("Llama 2 forgets").starts_with("llama-2-"));
  EXPECT_EQ(meant("Gemma 3 is garbage"), "nothing");
  // Another size, and a model that nobody here knows.
  EXPECT_EQ(meant("deepseek-r1:7b loops"), "nothing");
  EXPECT_EQ(meant("Nobodys-Model-51B fails, unlike Llama 3.1 8B"), "nothing");
}

TEST(Names, APackingBehindTheDotOfAVersionLeavesTheVersion) {
  EXPECT_EQ(known("Qwen3.5-35B-A3B-4bit"), "qwen3.5-35b-a3b");
  EXPECT_EQ(known("mlx-community/Llama-3.3-70B-8bit"), "llama-3.3-70b-instruct");
  EXPECT_EQ(known("Qwen3.9-35B-A3B-4bit"), "nothing");
  EXPECT_EQ(known("qwen3-8b.4bit"), "qwen3-8b");
}

TEST(Names, AnAddressIsReadAsOwnerAndName) {
  const auto found = [](const char* words) {
    const auto named = detail::model_in_prose(words);
    return named ? named->as : "nothing";
  };
  EXPECT_EQ(found("see https://huggingface.co/Qwen/Qwen3-8B/tree/main"), "Qwen/Qwen3-8B");
  EXPECT_EQ(found("see https://github.com/meta-llama/llama-3.1-8b"), "llama-3.1-8b");
  EXPECT_EQ(detail::hub_name_in("https://huggingface.co/some/model-7b/blob/main/config.json"),
            "some/model-7b");
  EXPECT_EQ(found("https://huggingface.co/ is down"), "nothing");
}

TEST(Names, SentencesMayNameTwo) {
  const auto both = detail::models_in_prose("merge Qwen3-8B, Qwen3-8B and Llama 3.1 8B", 2);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].is, "qwen3-8b");
  EXPECT_EQ(both[1].is, "llama-3.1-8b");
}

TEST(Names, ATagOfOllamasIsTheModelForChats) {
  EXPECT_EQ(detail::model_in_prose("qwen2.5:14b forgets")->is, "qwen2.5-14b-instruct");
  EXPECT_EQ(detail::model_in_prose("Qwen2.5 14B forgets")->is, "qwen2.5-14b");
}

TEST(Names, SignsAndOtherScriptsPartANameFromTheSentence) {
  const auto found = [](const char* words) {
    const auto named = detail::model_in_prose(words);
    return named ? named->as : "nothing";
  };
  EXPECT_EQ(found("qwen3-8b，我用 ollama 输出 200k tokens 就乱码"), "qwen3-8b");
  EXPECT_EQ(found("我在 vllm 里部署 qwen3-8b 超过 200k tokens 乱码"), "qwen3-8b");
  EXPECT_EQ(found("I love llama-3.1-8b, it is great"), "llama-3.1-8b");
  EXPECT_EQ(found("llama-3.1-8b it is garbage"), "llama-3.1-8b");
  EXPECT_EQ(found("unlike Llama-3.1-8B, Qwen3-8B breaks past 8k tokens"), "Qwen3-8B");
}

TEST(Names, TheBaseOfQwen25IsNotItsModelForChats) {
  EXPECT_EQ(known("Qwen/Qwen2.5-14B"), "qwen2.5-14b");
  EXPECT_EQ(known("Qwen/Qwen2.5-14B-Instruct-AWQ"), "qwen2.5-14b-instruct");
  EXPECT_EQ(known("Qwen/Qwen2.5-7B-Instruct-AWQ"), "qwen2.5-7b-instruct");
}

TEST(Names, ADraftIsNotTheModel) {
  EXPECT_EQ(named("llama-server -md Qwen3-0.6B-Q8_0.gguf -m Qwen3-32B-Q8_0.gguf"), "qwen3-32b");
  EXPECT_EQ(named("sglang --speculative-draft-model-path lmsys/Qwen3-0.6B"), "nothing");
}

TEST(Names, OllamasNameIsTheModelThatWasTunedForChats) {
  EXPECT_EQ(named("ollama run qwen3-vl:8b"), "qwen3-vl-8b-instruct");
}

TEST(Names, LlamaCppCallsAFamilyOtherwise) {
  EXPECT_EQ(architecture_of("qwen3_moe"), "qwen3moe");
  EXPECT_EQ(architecture_of("gpt_oss"), "gpt-oss");
  EXPECT_EQ(architecture_of("gemma3_text"), "gemma3");
  EXPECT_EQ(architecture_of("cohere"), "command-r");
  EXPECT_EQ(architecture_of("deepseek_v3"), "deepseek2");  // and not mistral4
  EXPECT_EQ(architecture_of("no_family"), "");
}

TEST(PublishedModels, AreReadableAndStandInNoOtherList) {
  const auto models = published_models();
  EXPECT_GE(models.size(), 80U);
  for (const BundledModel& one : models) {
    const auto model = read_model(one.name);
    ASSERT_TRUE(model) << one.name << ": " << model.error().message();
    EXPECT_FALSE(model->groups.empty()) << one.name;
    EXPECT_TRUE(model->origin.starts_with(one.origin)) << one.name;
    EXPECT_EQ(known(one.name), one.name);
    for (const BundledModel& other : bundled_models()) EXPECT_NE(other.name, one.name);
  }
}

}  // namespace names
}  // namespace
}  // namespace posenc
