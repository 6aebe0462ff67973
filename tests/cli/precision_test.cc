// posenc precision, and rotate --angles, run as a user does.
#include <cmath>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "cli/arguments/npy.h"
#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class PrecisionCommand : public posenc::test::CommandTest {
 protected:
  Json json(const std::string& arguments) const {
    const Outcome outcome = posenc("precision --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  static Json engine(const Json& all, const std::string& angles, std::size_t group = 0) {
    for (const Json& e : all.at("groups").at(group).at("engines"))
      if (e.at("angles") == angles) return e;
    ADD_FAILURE() << "no engine " << angles;
    return {};
  }
};

TEST_F(PrecisionCommand, APageSaysWhatFloatAnglesCost) {
  const Outcome page = posenc("precision llama-2-7b --at 16384");
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(
      page.out.starts_with("llama-2-7b: 32 layers, base 10,000, 128 of 128 channels rotate"));
  for (const char* part : {"float product (Hugging Face)", "pair after pair (ggml)", "16,384",
                           "largest error of an angle", "Angles in double never come near it."})
    EXPECT_TRUE(has(page.out, part)) << part << "\n" << page.out;
  EXPECT_FALSE(has(page.out, "\x1b")) << "colours without a terminal";
  EXPECT_EQ(page.err, "") << "progress without a terminal";
}

// Independent figures (d = 128, b = 10⁴): the float product is off by 1.9e-3 before 32,768 and the
// iterated product by 4.9e-3, both within a factor of 1.3 of what another program measured.
TEST_F(PrecisionCommand, ErrorsAreThoseThatOthersMeasured) {
  const Json all = json("llama-2-7b --at 32768");
  const auto marks = all.at("groups").at(0).at("positions").get<std::vector<std::int64_t>>();
  EXPECT_EQ(marks, (std::vector<std::int64_t>{1024, 4096, 8192, 32768}));
  const double hf = engine(all, "hf_float").at("cosine").at("float32").back();
  const double ggml = engine(all, "ggml_float").at("cosine").at("float32").back();
  EXPECT_NEAR(std::log(hf / 1.9e-3), 0, std::log(1.3));
  EXPECT_NEAR(std::log(ggml / 4.9e-3), 0, std::log(1.3));
  EXPECT_LT(engine(all, "exact").at("phase").back(), 1e-11);
}

TEST_F(PrecisionCommand, ErrorsGrowWithThePositionAndCosinesStayBelowAngles) {
  const Json all = json("llama-3.1-8b --at 65536");
  for (const Json& e : all.at("groups").at(0).at("engines")) {
    const auto phase = e.at("phase").get<std::vector<double>>();
    EXPECT_TRUE(std::is_sorted(phase.begin(), phase.end())) << e.at("angles");
    for (const auto& [dtype, errors] : e.at("cosine").items()) {
      const double rounding = dtype == "float32" ? 0x1p-25 : dtype == "float16" ? 0x1p-12 : 0x1p-9;
      for (std::size_t i = 0; i < phase.size(); i++) {
        EXPECT_LE(errors.at(i), phase[i] + rounding) << e.at("angles") << " " << dtype;
        EXPECT_LE(errors.at(i), 2 + rounding);
      }
    }
  }
}

// The first position beyond a bound is the first: one position earlier nothing is.
TEST_F(PrecisionCommand, FirstPositionsAreTheFirst) {
  const Json far = json("llama-2-7b --at 65536");
  const std::int64_t first = engine(far, "hf_float").at("beyond").at("float16");
  const auto beyond = [&](std::int64_t length) {
    return engine(json("llama-2-7b --at " + std::to_string(length)), "hf_float")
        .at("beyond")
        .at("float16");
  };
  EXPECT_EQ(beyond(first + 1), first);
  EXPECT_TRUE(beyond(first).is_null());
  EXPECT_GT(
      engine(json("llama-2-7b --at " + std::to_string(first + 1)), "hf_float").at("phase").back(),
      0x1p-12);
}

// Pair 1 of a head of 128 at base 10,000 turns by 10000^(−1/64) = 0.8659643233600653, which
// bfloat16 holds as 0.8671875: an angle is off by 0.1 radian from position 0.1 / 0.0012231766 =
// 81.75 on. No pair is off by more.
TEST_F(PrecisionCommand, FrequenciesInBfloat16ShowFromPosition82On) {
  const Json all = json("llama-2-7b --at 1024");
  EXPECT_EQ(engine(all, "bfloat16_frequencies").at("shows").at("bfloat16"), 82);
}

TEST_F(PrecisionCommand, ATableIn16BitsAloneNeverShows) {
  const Json all = json("llama-2-7b --at 262144");
  for (const char* dtype : {"float32", "float16", "bfloat16"})
    EXPECT_TRUE(engine(all, "hf_float").at("shows").at(dtype).is_null()) << dtype;
}

// One more product in float, of relative error 2^-24 at most: at most twice the error, and more
// than the product alone.
TEST_F(PrecisionCommand, FastSinesLoseWhatOneMoreProductLoses) {
  const Json all = json("llama-2-7b --at 131072");
  const double product = engine(all, "hf_float").at("phase").back();
  const double fast = engine(all, "fast_sines").at("phase").back();
  EXPECT_GT(fast, product);
  EXPECT_LT(fast, product + 131072 * 0x1p-23);
}

TEST_F(PrecisionCommand, LayersThatDifferHaveTheirOwnNumbers) {
  const Json all = json("gemma-3-4b --at 8192");
  ASSERT_EQ(all.at("groups").size(), 2u);
  EXPECT_NE(engine(all, "hf_float", 0), engine(all, "hf_float", 1));
  EXPECT_EQ(json("gemma-3-4b --at 8192 --layer 5").at("groups").size(), 1u);
}

TEST_F(PrecisionCommand, EveryBundledModelWithRopeHasNumbers) {
  for (const char* model : {"chatglm3-6b", "deepseek-v3", "gemma-4-e2b", "gpt-oss-20b",
                            "llama-4-scout", "phi-3.5-mini", "qwen2.5-vl-7b", "qwen3-vl-4b"}) {
    const Outcome page = posenc("precision --at 2048 " + std::string(model));
    EXPECT_EQ(page.code, 0) << model << ": " << page.err;
    EXPECT_TRUE(page.out.starts_with(model));
  }
}

TEST_F(PrecisionCommand, ModelsWithoutRopeAndLengthsBeyondFloatAreBadInput) {
  for (const char* arguments : {"gpt2", "llama-2-7b --at 16777217", "llama-2-7b --at 0",
                                "llama-2-7b --layer 99", "nosuch", ""}) {
    const Outcome outcome = posenc("precision " + std::string(arguments));
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(outcome.err.starts_with("posenc: ")) << outcome.err;
  }
}

// --- rotate --angles -----------------------------------------------------------------------------

class AnglesFlag : public posenc::test::CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    using namespace posenc::cli;
    Array array = *make_array(NpyType::f32, {1, 8, 64});
    const posenc::Tensor x = *tensor_of(array, "", "test");
    for (std::int64_t i = 0; i < array.size(); i++) x.set(i, std::sin(0.7 * double(i)));
    ASSERT_TRUE(write_npy(path("x.npy"), array));
  }
};

TEST_F(AnglesFlag, EnginesDifferFarOutAndAgreeAtZero) {
  for (const char* angles : {"exact", "hf_float", "ggml_float"}) {
    const std::string flags = std::string(" --scheme rope --angles ") + angles;
    EXPECT_EQ(
        posenc("rotate x.npy far_" + std::string(angles) + ".npy --positions 100000:100008" + flags)
            .code,
        0);
    EXPECT_EQ(posenc("rotate x.npy near_" + std::string(angles) +
                     ".npy --positions 0,0,0,0,0,0,0,0" + flags)
                  .code,
              0);
  }
  EXPECT_EQ(posenc("rotate x.npy far.npy --scheme rope --positions 100000:100008").code, 0);
  EXPECT_EQ(text("far.npy"), text("far_exact.npy"));
  EXPECT_NE(text("far_hf_float.npy"), text("far_exact.npy"));
  EXPECT_NE(text("far_ggml_float.npy"), text("far_hf_float.npy"));
  for (const char* angles : {"exact", "hf_float", "ggml_float"})
    EXPECT_EQ(text("near_" + std::string(angles) + ".npy"), text("x.npy"));
}

TEST_F(AnglesFlag, RefusesWhatTheEngineDoesNotHave) {
  const Outcome far =
      posenc("rotate x.npy y.npy --scheme rope --angles hf_float --positions 16777209:16777217");
  EXPECT_EQ(far.code, 2);
  EXPECT_TRUE(has(far.err, "must stay below 2^24")) << far.err;
  const Outcome xpos =
      posenc("rotate x.npy y.npy --scheme xpos --angles ggml_float --positions 0:8");
  EXPECT_EQ(xpos.code, 2);
  EXPECT_TRUE(has(xpos.err, "ggml's rope does not rotate so")) << xpos.err;
  EXPECT_EQ(posenc("rotate x.npy y.npy --scheme rope --angles vllm --positions 0:8").code, 2);
}

}  // namespace
