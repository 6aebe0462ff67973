// Servers in process, computed by the runner with a fault planted: each is named, and none that is
// healthy is accused.
#include "evidence/lab/endpoint/probe.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/small_llama.h"

namespace posenc::lab {
namespace {

constexpr std::int64_t at = 192;

// A server that runs a hypothesis, and rounds.
class PlantedServer : public Scorer {
 public:
  PlantedServer(const Llama& model, ServerHypothesis planted, double noise, bool prompts,
                bool late = false)
      : model_(model),
        planted_(std::move(planted)),
        noise_(noise),
        prompts_(prompts),
        late_(late) {}

  Expected<Observed> score(const std::string&, const std::vector<std::int32_t>& tokens,
                           std::int64_t more) override {
    Observed made{.tokens = tokens, .prompt = std::ssize(tokens)};
    const auto size = static_cast<std::uint64_t>(model_.vocabulary());
    for (std::int64_t i = 0; i < more; ++i)
      made.tokens.push_back(static_cast<std::int32_t>(random_() % size));
    const std::int64_t first = prompts_ ? 1 : made.prompt;
    for (std::int64_t read = first; read < std::ssize(made.tokens); ++read) {
      Seen seen{.read = read};
      for (std::uint64_t i = 0; i < 4; ++i)
        seen.chances.push_back(
            {static_cast<std::int32_t>(
                 (static_cast<std::uint64_t>(made.tokens[static_cast<std::size_t>(read)]) + i) %
                 size),
             0});
      made.seen.push_back(std::move(seen));
    }
    Observed whole = made;
    if (late_)
      std::erase_if(whole.seen,
                    [&](const Seen& seen) { return seen.read >= std::ssize(whole.tokens); });
    Expected<std::vector<float>> numbers = log_probabilities(model_, planted_, whole, false);
    if (!numbers) return std::unexpected(numbers.error());
    std::normal_distribution<double> normal;  // a width of 0 is not defined
    std::size_t next = 0;
    for (Seen& seen : made.seen)
      for (Chance& chance : seen.chances) {
        const double exact = (*numbers)[next++];
        chance.log_probability =
            static_cast<float>(std::min(0.0, exact + noise_ * normal(random_) * (1 - exact / 4)));
      }
    asked += std::ssize(tokens);
    return made;
  }
  bool scores_prompts() const override { return prompts_; }

  std::int64_t asked = 0;

 private:
  const Llama& model_;
  ServerHypothesis planted_;
  double noise_;
  bool prompts_, late_;
  std::mt19937_64 random_{4};
};

class Probing : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "posenc_probe_llama.gguf";
    std::ofstream(path_, std::ios::binary) << test::SmallLlamaFile().file();
    Expected<Llama> read = Llama::read(path_, {1});
    if (!read && read.error().rule.find("OpenBLAS") != std::string::npos)
      GTEST_SKIP() << "OpenBLAS is not installed (libopenblas0-pthread)";
    ASSERT_TRUE(read) << read.error().message();
    llama_ = std::make_unique<Llama>(std::move(*read));
    prober_ = std::make_unique<Prober>(*llama_, nullptr);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  ServerHypothesis hypothesis(const std::string& id) const {
    for (const ServerHypothesis& one : hypotheses_of(llama_->about(), at))
      if (one.id == id) return one;
    ADD_FAILURE() << "no hypothesis " << id;
    return {};
  }
  ProbeResult probed(Scorer& scorer, std::uint64_t seed = 1) {
    Expected<ProbeResult> made = prober_->probe(scorer, {.at = at, .limit = 8 * at, .seed = seed});
    if (made) return *std::move(made);
    ADD_FAILURE() << made.error().message();
    return {};
  }
  static bool says(const ProbeResult& result, const std::string& id) {
    for (const Rated& one : result.rated)
      if (one.id == id && one.alike) return true;
    return false;
  }

  std::string path_;
  std::unique_ptr<Llama> llama_;
  std::unique_ptr<Prober> prober_;
};

TEST_F(Probing, NamesFaultsThatAreKnown) {
  for (const char* id :
       {"none", "pairing", "reversed", "linear:2", "linear:8", "yarn:4", "theta:10000",
        "theta:1000000", "window:128", "restart:64", "restart:128", "keys:-1", "keys:1",
        "half_head", "pairing_hf", "half_head_hf", "bfloat16_angles"}) {
    const ServerHypothesis planted = hypothesis(id);
    PlantedServer server(*llama_, planted, 0.002, true);
    const ProbeResult result = probed(server);
    EXPECT_EQ(result.verdict, ProbeVerdict::named) << id << ": " << result.sentence;
    EXPECT_TRUE(says(result, id)) << id << ": " << result.sentence;
    ASSERT_EQ(result.findings.size(), 1u) << id;
    EXPECT_FALSE(result.findings[0].cure.empty()) << id;
    EXPECT_EQ(result.tokens, server.asked) << id;
    EXPECT_LE(result.tokens, 8 * at) << id;
  }
}

TEST_F(Probing, TellsFromTheFileWhatFewTokensShow) {
  for (const char* id : {"window:128", "restart:128"}) {
    PlantedServer server(*llama_, hypothesis(id), 0.002, true);
    const ProbeResult result = probed(server);
    EXPECT_FALSE(says(result, "file")) << id << ": " << result.sentence;
  }
}

TEST_F(Probing, NamesThoseBehindThePromptByWhatIsGenerated) {
  for (const char* id : {"behind:1", "behind:-1", "padding:64", "linear:4", "none"}) {
    PlantedServer server(*llama_, hypothesis(id), 0.002, false);
    const ProbeResult result = probed(server);
    EXPECT_EQ(result.verdict, ProbeVerdict::named) << id << ": " << result.sentence;
    EXPECT_TRUE(says(result, id)) << id << ": " << result.sentence;
  }
}

TEST_F(Probing, AccusesNoHealthyServer) {
  for (const double noise : {0.0005, 0.005, 0.02})
    for (const bool prompts : {true, false})
      for (const std::uint64_t seed : {1, 2, 3}) {
        PlantedServer server(*llama_, hypothesis("file"), noise, prompts);
        const ProbeResult result = probed(server, seed);
        EXPECT_TRUE(result.verdict == ProbeVerdict::as_file ||
                    (noise > 0.01 && result.verdict == ProbeVerdict::undecided))
            << noise << " " << prompts << " " << seed << ": " << result.sentence;
        EXPECT_TRUE(result.findings.empty());
      }
}

TEST_F(Probing, FindsANumberThatNoListHas) {
  const auto planted = hypothesis_with(llama_->about(), "theta", 30000, at);
  ASSERT_TRUE(planted);
  PlantedServer server(*llama_, *planted, 0.001, true);
  const ProbeResult result = probed(server);
  EXPECT_EQ(result.verdict, ProbeVerdict::named) << result.sentence;
  EXPECT_EQ(result.rated.front().id, "theta:30000") << result.sentence;
}

TEST_F(Probing, SaysThatARotationIsNotKnown) {
  ServerHypothesis odd = hypothesis("file");
  odd.placement = {.restart = 37, .keys = 5};
  PlantedServer server(*llama_, odd, 0.002, true);
  const ProbeResult result = probed(server);
  EXPECT_EQ(result.verdict, ProbeVerdict::unknown) << result.sentence;
  EXPECT_NE(result.sentence.find("not run a rotation that is known"), std::string::npos);
  EXPECT_FALSE(result.misfits.empty());
  EXPECT_TRUE(result.findings.empty());
}

// Noise of four bits on a small model: nothing is named that the file explains nearly as well.
TEST_F(Probing, CoarseWeightsAreNoRotationAndNoOtherWeights) {
  PlantedServer server(*llama_, hypothesis("file"), 0.45, true);
  const ProbeResult result = probed(server);
  EXPECT_GT(result.floor, 0.35);
  EXPECT_TRUE(result.verdict == ProbeVerdict::as_file || result.verdict == ProbeVerdict::undecided)
      << result.sentence;
  EXPECT_TRUE(result.findings.empty());
}

TEST_F(Probing, OfWeightsFarCoarserNothingIsDecided) {
  PlantedServer server(*llama_, hypothesis("none"), 1, true);
  const ProbeResult result = probed(server);
  EXPECT_EQ(result.verdict, ProbeVerdict::undecided) << result.sentence;
  EXPECT_TRUE(result.sentence.contains("so coarsely")) << result.sentence;
}

// A server that says the same of every token follows nothing.
TEST_F(Probing, TakesOneNumberForAllTokensForOtherWeights) {
  class Uniform : public PlantedServer {
   public:
    using PlantedServer::PlantedServer;
    Expected<Observed> score(const std::string& text, const std::vector<std::int32_t>& tokens,
                             std::int64_t more) override {
      Expected<Observed> said = PlantedServer::score(text, tokens, more);
      if (said)
        for (Seen& seen : said->seen)
          for (Chance& chance : seen.chances) chance.log_probability = -4;
      return said;
    }
  };
  Uniform server(*llama_, hypothesis("file"), 0, true);
  EXPECT_EQ(probed(server).verdict, ProbeVerdict::other_weights);
}

TEST_F(Probing, TakesOtherWeightsForNoRotation) {
  test::SmallLlamaFile other;
  for (float& weight : other.weights["blk.0.ffn_down.weight"]) weight *= -1;
  const std::string path = testing::TempDir() + "posenc_probe_other.gguf";
  std::ofstream(path, std::ios::binary) << other.file();
  Expected<Llama> read = Llama::read(path, {1});
  std::filesystem::remove(path);
  ASSERT_TRUE(read);
  PlantedServer server(*read, hypothesis("file"), 0, true);
  const ProbeResult result = probed(server);
  EXPECT_EQ(result.verdict, ProbeVerdict::other_weights) << result.sentence;
}

TEST_F(Probing, TellsFromWhereOnTwoServersDiffer) {
  PlantedServer one(*llama_, hypothesis("file"), 0.001, true),
      other(*llama_, hypothesis("window:128"), 0.001, true);
  const ServersApart apart = servers_apart(probed(one), probed(other));
  EXPECT_EQ(apart.from, 128);
  EXPECT_EQ(servers_apart(probed(one), probed(one)).from, 0);
}

TEST_F(Probing, RefusesWhatNoTextIsOf) {
  Observed text{.tokens = {1, 2}, .prompt = 2, .seen = {{.read = 3, .chances = {{1, -1}}}}};
  EXPECT_FALSE(log_probabilities(*llama_, hypothesis("file"), text));
  text.seen = {{.read = 1, .chances = {{99, -1}}}};
  EXPECT_FALSE(log_probabilities(*llama_, hypothesis("file"), text));
}

TEST_F(Probing, CountsThePairsThatTurnOtherwise) {
  const ServerHypothesis file = hypothesis("file"), linear = hypothesis("linear:8");
  EXPECT_EQ(pairs_apart(file, file, 64, at), 0);
  EXPECT_EQ(pairs_apart(file, hypothesis("none"), 64, at), 2);
  EXPECT_EQ(pairs_apart(file, linear, 1, at), 1);  // a radian of the fast pair, none of the slow
  EXPECT_EQ(pairs_apart(file, hypothesis("window:128"), 64, at), 0);
  EXPECT_EQ(pairs_apart(file, hypothesis("window:128"), 160, at), 2);
}

}  // namespace
}  // namespace posenc::lab
