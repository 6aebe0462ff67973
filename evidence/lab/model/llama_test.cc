// A model of two layers with random weights, against its own arithmetic in plain double loops.
#include "evidence/lab/model/llama.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "evidence/lab/model/heads.h"
#include "evidence/lab/model/perplexity.h"
#include "evidence/lab/model/reuse.h"
#include "evidence/lab/model/shift.h"
#include "tests/paths.h"
#include "tests/small_llama.h"

namespace posenc::lab {
namespace {

using test::SmallLlamaFile;
using Vector = std::vector<double>;
constexpr int width = SmallLlamaFile::width, vocabulary = SmallLlamaFile::vocabulary,
              layers = SmallLlamaFile::layers, heads = SmallLlamaFile::heads;

class SmallLlama : public testing::Test {
 protected:
  void SetUp() override {
    path_ = test::temporary_path("small_llama.gguf");
    std::ofstream(path_, std::ios::binary) << small_.file();
    Expected<Llama> read = Llama::read(path_, {1});
    if (!read && read.error().rule.find("OpenBLAS") != std::string::npos)
      GTEST_SKIP() << "OpenBLAS is not installed (libopenblas0-pthread)";
    ASSERT_TRUE(read) << read.error().message();
    llama_ = std::make_unique<Llama>(std::move(*read));
    std::mt19937 random(9);
    for (int i = 0; i < 40; ++i)
      tokens_.push_back(static_cast<std::int32_t>(random() % vocabulary));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Passage::PlanRule as_it_is() const {
    return [](const LayerGroup& group, std::int64_t length) { return compile(group, length); };
  }

  SmallLlamaFile small_;
  std::string path_;
  std::unique_ptr<Llama> llama_;
  std::vector<std::int32_t> tokens_;
};

TEST_F(SmallLlama, HasTheLossesOfPlainLoops) {
  const auto found = losses(*llama_, tokens_, as_it_is());
  ASSERT_TRUE(found) << found.error().message();
  const Vector wanted = small_.losses(tokens_);
  ASSERT_EQ(found->size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR((*found)[i], wanted[i], 2e-5);
}

TEST_F(SmallLlama, OfAFolderHasTheLossesOfItsGguf) {
  const std::filesystem::path folder = test::temporary_path("small_llama");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors", std::ios::binary) << small_.safetensors();
  std::ofstream(folder / "config.json") << SmallLlamaFile::config();
  const Expected<Llama> read = Llama::read(folder.string(), {1});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(read) << read.error().message();
  const auto found = losses(*read, tokens_, as_it_is()),
             wanted = losses(*llama_, tokens_, as_it_is());
  ASSERT_TRUE(found && wanted);
  for (std::size_t i = 0; i < wanted->size(); ++i) EXPECT_NEAR((*found)[i], (*wanted)[i], 2e-5);
}

TEST_F(SmallLlama, OfAFolderWithoutWeightsIsRefused) {
  const std::filesystem::path folder = test::temporary_path("no_weights");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << SmallLlamaFile::config();
  const Expected<Llama> read = Llama::read(folder.string(), {1});
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message().contains("model.safetensors")) << read.error().message();
}

TEST_F(SmallLlama, ReadsAChunkAfterAnotherAsAllAtOnce) {
  auto whole = Passage::begin(*llama_, as_it_is()), parts = Passage::begin(*llama_, as_it_is());
  ASSERT_TRUE(whole && parts);
  const std::span<const std::int32_t> tokens(tokens_);
  const auto all = whole->read(tokens);
  ASSERT_TRUE(all);
  ASSERT_TRUE(parts->read(tokens.first(13)));
  const auto rest = parts->read(tokens.subspan(13));
  ASSERT_TRUE(rest);
  for (std::size_t i = 0; i < rest->size(); ++i)
    EXPECT_NEAR((*rest)[i], (*all)[13 * width + i], 2e-5);
}

TEST_F(SmallLlama, ForgetsAllButTheFirstAndTheLastTokens) {
  constexpr std::int64_t keep = 9, first = 2;  // an eighth of the rest: a token at a time
  const auto found = losses(*llama_, tokens_, as_it_is(), 0, {}, {keep, first});
  ASSERT_TRUE(found) << found.error().message();
  const Vector wanted = small_.losses(tokens_, keep, first);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR((*found)[i], wanted[i], 2e-5);
}

TEST_F(SmallLlama, RefusesACacheWithoutRoomForAToken) {
  EXPECT_FALSE(Passage::begin(*llama_, as_it_is(), 0, {4, 4}));
}

TEST_F(SmallLlama, FeelsNoShiftWithExactAngles) {
  const std::vector<Angles> angles = {Angles::exact, Angles::hf_float};
  const std::vector<std::int64_t> first = {1000000};
  const auto rows = shifted_losses(*llama_, tokens_, angles, first);
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_LT((*rows)[0].most, 1e-5);
  EXPECT_GT((*rows)[1].most, (*rows)[0].most);
}

// Rotation is all that the first layer's keys know of their place, and a token's keys depend on
// those before it alone: of a chunk that is read anew as a whole nothing is lost.
TEST_F(SmallLlama, LosesByKeysThatAreUsedAgainWhatDeeperLayersHadRead) {
  const ReuseOptions options{.prefix = 10, .chunk = 8, .tail = 6, .places = 2, .anew = {0, 3, 8}};
  const auto found = reuse(*llama_, tokens_, options);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->layers.size(), std::size_t{layers});
  EXPECT_LT(found->layers[0].keys, 1e-6);
  EXPECT_LT(found->layers[0].values, 1e-6);
  EXPECT_LT(found->layers[0].lost.divergence, 1e-7);  // float's rounding

  EXPECT_GT(found->layers[1].keys, 1e-3);
  EXPECT_GT(found->left_out.divergence, 1e-6);
  EXPECT_EQ(found->bands, (std::vector<std::int64_t>{1, 4, 6}));
  for (const ReusedChunk& chunk : found->chunks) {
    if (chunk.anew == options.chunk)
      EXPECT_LT(chunk.lost.divergence, 1e-7);
    else
      EXPECT_GT(chunk.lost.divergence, 1e-6);
    ASSERT_EQ(chunk.lost.by_distance.size(), 3u);
    const double all = (chunk.lost.by_distance[0] + 3 * chunk.lost.by_distance[1] +
                        2 * chunk.lost.by_distance[2]) /
                       6;
    EXPECT_NEAR(all, chunk.lost.divergence, 1e-12);
  }
  const auto again = reuse_of_json(to_json(*found, {}, 0), "page");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->chunks.size(), found->chunks.size());
  EXPECT_DOUBLE_EQ(again->layers[1].keys, found->layers[1].keys);
}

TEST_F(SmallLlama, LosesSmallTurnsIn16Bits) {
  const ReuseOptions options{.prefix = 10, .chunk = 8, .tail = 6, .places = 1};
  constexpr std::array dtypes{DType::f32, DType::bf16};
  const auto found = drift(*llama_, tokens_, options, 100, dtypes);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ((*found)[0].stood, 0);
  EXPECT_LT((*found)[0].stepwise, 1e-4);
  const Drift& sixteen = (*found)[1];
  EXPECT_LT(sixteen.once, 2 * sixteen.stood);
  EXPECT_GT(sixteen.stepwise, 2 * sixteen.once);
  EXPECT_GT(sixteen.lost_stepwise.divergence, sixteen.lost_once.divergence);
}

TEST_F(SmallLlama, UsesNoKeysAgainWhereTheTextIsTooShort) {
  EXPECT_FALSE(reuse(*llama_, tokens_, {.prefix = 20, .chunk = 8, .tail = 6}));
  EXPECT_FALSE(reuse(*llama_, tokens_, {.prefix = 10, .chunk = 8, .tail = 6, .anew = {9}}));
  EXPECT_FALSE(reuse(*llama_, tokens_, {.prefix = 10, .chunk = 8, .tail = 6, .places = 0}));
  EXPECT_FALSE(drift(*llama_, tokens_, {.prefix = 10, .chunk = 8, .tail = 6}, 0, {}));
}

TEST_F(SmallLlama, HasTheSameLossUnderDynamicScalingWithinItsContext) {
  const std::vector<std::int64_t> windows = {0};
  const auto none = loss_curve(*llama_, tokens_, windows, 40, 8, {"none", 1}),
             dynamic = loss_curve(*llama_, tokens_, windows, 40, 8, {"dynamic", 2}),
             linear = loss_curve(*llama_, tokens_, windows, 40, 8, {"linear", 2});
  ASSERT_TRUE(none && dynamic && linear);
  EXPECT_EQ(dynamic->losses, none->losses);
  EXPECT_NE(linear->losses, none->losses);
}

TEST_F(SmallLlama, CountsEveryTokenOfABlockOnce) {
  const std::vector<std::int64_t> windows = {0, 8};
  const auto curve = loss_curve(*llama_, tokens_, windows, 20, 8, {"none", 1});
  ASSERT_TRUE(curve);
  ASSERT_EQ(curve->blocks.size(), 3u);
  EXPECT_EQ(curve->blocks[0].n, 2 * 7);  // the first token of a window is given, not predicted
  EXPECT_EQ(curve->blocks[1].n, 2 * 8);
  EXPECT_EQ(curve->blocks[2].n, 2 * 4);
}

TEST_F(SmallLlama, ShowsWeightsThatSumToOne) {
  const auto survey = survey_heads(*llama_, tokens_);
  ASSERT_TRUE(survey) << survey.error().message();
  ASSERT_EQ(survey->heads.size(), std::size_t{layers * heads});
  for (const HeadFacts& head : survey->heads) {
    EXPECT_NEAR(head.waves[0] + head.waves[1], 1, 1e-9);
    EXPECT_GT(head.entropy, 0);
    EXPECT_LT(head.entropy, 1);
    EXPECT_GT(head.distance, 0);
  }
}

// A file whose numbers lie, or from which something is missing, is an error that names the file, at
// once.
TEST_F(SmallLlama, IsNotReadFromAFileThatLies) {
  const std::string good = small_.file();
  std::vector<std::pair<std::string, std::string>> files;
  const auto with = [&](const std::string& key, std::uint32_t number) {
    std::string file = good;
    const std::size_t at = file.find(key) + key.size() + sizeof(std::uint32_t);  // behind its type
    std::memcpy(file.data() + at, &number, sizeof number);
    files.emplace_back(key + " " + std::to_string(number), file);
  };
  constexpr std::uint32_t huge = 0xFFFFFFFF;
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.head_count_kv"})
    for (const std::uint32_t number : {0U, 3U, 1U << 20, huge}) with(key, number);
  for (const auto& [name, shape] : small_.shapes) {
    std::string file = good;
    file[file.find(name)] = 'X';
    files.emplace_back("no " + name, file);
    // Its first length stands behind the number of its axes.
    for (const std::uint64_t length :
         {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1} << 62}) {
      file = good;
      std::memcpy(file.data() + file.find(name) + name.size() + sizeof(std::uint32_t), &length,
                  sizeof length);
      files.emplace_back(name + " of " + std::to_string(length), file);
    }
  }
  for (std::size_t size = 0; size < good.size(); size += 97)
    files.emplace_back("cut to " + std::to_string(size), good.substr(0, size));
  for (const auto& [what, bytes] : files) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const Expected<Llama> read = Llama::read(path_, {1});
    ASSERT_FALSE(read) << what;
    EXPECT_TRUE(read.error().where.starts_with(path_)) << what << ": " << read.error().message();
  }
}

TEST_F(SmallLlama, RefusesATokenBeyondItsVocabulary) {
  auto passage = Passage::begin(*llama_, as_it_is());
  ASSERT_TRUE(passage);
  EXPECT_FALSE(passage->read(std::vector<std::int32_t>{vocabulary}));
}

TEST(PlansOf, RefusesAScalingWithListsOfItsOwn) {
  EXPECT_FALSE(plans_of({}, {"longrope", 2}));
  EXPECT_FALSE(plans_of({}, {"nosuch", 2}));
}

TEST(WindowsOf, SpreadsEvenlyOverTheText) {
  EXPECT_EQ(*windows_of(100, 10, 4), (std::vector<std::int64_t>{0, 30, 60, 90}));
  EXPECT_EQ(*windows_of(10, 10, 1), (std::vector<std::int64_t>{0}));
  EXPECT_FALSE(windows_of(9, 10, 1));
  EXPECT_FALSE(windows_of(10, 10, 2));
}

}  // namespace
}  // namespace posenc::lab
