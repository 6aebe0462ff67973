// posenc identify, run on what posenc rotate wrote.
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "tests/cli/arrays.h"
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

TEST_F(IdentifyCommand, AfterAloneMustBeOfARepeatedToken) {
  make_tokens("before.npy", false);
  const Outcome said = posenc("identify --after before.npy");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "--repeated")) << said.err;
}

}  // namespace
