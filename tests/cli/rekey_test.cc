// rekey on files: keys that move, and the header that goes with them.
#include <algorithm>
#include <cmath>
#include <string>

#include "posenc/files.h"
#include "tests/cli/arrays.h"

namespace {

using namespace posenc::cli;
using posenc::test::has;
using posenc::test::Outcome;

class RekeyCommand : public posenc::test::ArrayTest {
 protected:
  void SetUp() override {
    ArrayTest::SetUp();
    make("x.npy", NpyType::f32, {2, 9, 64});
    expect_good("rotate x.npy k.safetensors:k --scheme rope --positions 100:109 --side key");
    expect_good("rotate x.npy fresh.npy --scheme rope --positions 7:16 --side key");
  }
  void expect_good(const std::string& arguments) const {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  }
  void expect_refused(const std::string& arguments, const std::string& words) const {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(has(outcome.err, words)) << outcome.err;
  }
};

TEST_F(RekeyCommand, KeysStandWhereTheyAreToldTo) {
  expect_good("rekey k.safetensors:k moved.npy --scheme rope --from 100:109 --to 7:16");
  EXPECT_LT(difference("moved.npy", "fresh.npy"), 1e-5);
}

// What identify, which solves for positions, says of caches that were put together.
TEST_F(RekeyCommand, IdentifyConfirmsWhatWasMoved) {
  constexpr std::int64_t heads = 2, tokens = 24, dim = 128;
  Array word = *make_array(NpyType::f32, {heads, tokens, dim});
  const posenc::Tensor view = tensor(word);
  for (std::int64_t i = 0; i < word.size(); ++i)
    view.set(i, std::sin(1.0 + static_cast<double>(i / (tokens * dim) * 7 + 3 * (i % dim))));
  ASSERT_TRUE(write_npy(path("word.npy"), word));
  expect_good("rotate word.npy keys.npy --model llama-3.1-8b --positions 0:24 --side key");
  expect_good("rekey keys.npy moved.npy --model llama-3.1-8b --from 0:24 --to 24:48");
  const auto put_together = [&](const std::string& second, const std::string& name) {
    Array both = *make_array(NpyType::f32, {heads, 2 * tokens, dim});
    Array parts[] = {array("keys.npy"), array(second)};
    for (std::int64_t i = 0; i < both.size(); ++i) {
      const std::int64_t h = i / (2 * tokens * dim), in_head = i % (2 * tokens * dim),
                         part = in_head / (tokens * dim);
      tensor(both).set(i, tensor(parts[part]).get(h * tokens * dim + in_head % (tokens * dim)));
    }
    ASSERT_TRUE(write_npy(path(name), both));
  };
  put_together("keys.npy", "wrong.npy");
  put_together("moved.npy", "right.npy");
  const std::string identify = "identify --repeated --model llama-3.1-8b --after ";
  const Outcome wrong = posenc(identify + "wrong.npy");
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  EXPECT_TRUE(has(wrong.out, "positions jump at token 24")) << wrong.out;
  EXPECT_TRUE(has(wrong.out, "posenc rekey")) << wrong.out;
  const Outcome right = posenc(identify + "right.npy");
  EXPECT_EQ(right.code, 0) << right.out << right.err;
}

TEST_F(RekeyCommand, ToAnotherScheme) {
  const std::string flags = " --scheme rope --from 100:109 --to 7:16 --to-scheme ";
  expect_good("rotate x.npy other.npy --scheme rope --rope-theta 500000 --positions 7:16");
  expect_good("rekey k.safetensors:k moved.npy" + flags +
              R"('{"type": "rope", "rope_theta": 500000}')");
  EXPECT_LT(difference("moved.npy", "other.npy"), 1e-5);
  expect_good("rekey k.safetensors:k bare.npy" + flags + "nope");
  EXPECT_LT(difference("bare.npy", "x.npy"), 1e-5);
  expect_refused("rekey k.safetensors:k no.npy" + flags + "ropes", "rope");
}

TEST_F(RekeyCommand, AHeaderSaysWhereTheyStand) {
  expect_good("rekey k.safetensors:k moved.safetensors --scheme rope --from 100:109 --to 7:16");
  expect_good("rekey moved.safetensors back.npy --scheme rope --to 100:109");
  EXPECT_LT(difference("back.npy", "k.safetensors:k"), 1e-5);
  const std::string moved = "rekey moved.safetensors no.npy --to 0:9 --scheme rope";
  expect_refused(moved + " --from 8:17", "must have the positions");
  expect_refused(moved + " --rope-theta 500000", "must have the rotation");
  expect_refused(moved + " --pairing interleaved", "must have the pairing");
  expect_refused(moved + " --values", "must have the kind");
  expect_refused("rekey k.safetensors:k no.npy --scheme rope --to 0:9", "--from must say");
}

TEST_F(RekeyCommand, AHeaderOfIdsThatJumpAsksForThem) {
  expect_good(
      "rekey k.safetensors:k far.safetensors --scheme rope --from 100:109 "
      "--to 0,1,2,3,4,5,6,7,90");
  expect_refused("rekey far.safetensors no.npy --scheme rope --to 0:9", "not consecutive");
  expect_good("rekey far.safetensors back.npy --scheme rope --from 0,1,2,3,4,5,6,7,90 --to 7:16");
  EXPECT_LT(difference("back.npy", "fresh.npy"), 1e-5);
}

TEST_F(RekeyCommand, ADamagedHeaderIsRefused) {
  expect_good("rekey k.safetensors:k moved.safetensors --scheme rope --from 100:109 --to 7:16");
  std::string bytes = text("moved.safetensors");
  const std::size_t at = bytes.find("706f736b");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 17] = '9';  // the version
  write("moved.safetensors", bytes);
  expect_refused("rekey moved.safetensors no.npy --scheme rope --to 0:9", "version");
  bytes[at] = 'x';
  write("moved.safetensors", bytes);
  expect_refused("rekey moved.safetensors no.npy --scheme rope --to 0:9", "must have 64 bytes");
}

// One token, repeated, as llama.cpp cached it: moved by ten, a token's keys are those that the token
// ten behind it had.
TEST_F(RekeyCommand, AStateFileOfLlamaCpp) {
  const std::string state = posenc::test::data_path("llama_cpp/smollm2.state");
  const std::string flags =
      " --scheme rope --rope-theta 100000 --pairing interleaved --kv_heads 3 --head_dim 64";
  expect_good("rekey '" + state + "' moved.bin --from 0:64 --to 10:74" + flags);
  const auto before = posenc::MappedFile::open(state),
             after = posenc::MappedFile::open(path("moved.bin"));
  ASSERT_TRUE(before && after);
  const auto old_state = posenc::parse_llama_state(before->bytes(), "old"),
             new_state = posenc::parse_llama_state(after->bytes(), "new");
  ASSERT_TRUE(old_state && new_state);
  EXPECT_EQ(new_state->tokens, old_state->tokens);
  EXPECT_EQ(new_state->caches[0].position.front(), 10);
  EXPECT_EQ(new_state->caches[0].position.back(), 73);
  const auto was = posenc::floats_of(old_state->caches[0].keys[0]),
             is = posenc::floats_of(new_state->caches[0].keys[0]);
  ASSERT_TRUE(was && is);
  float most = 0, large = 0;
  for (std::size_t i = 0; i < 54 * 192; ++i) {
    most = std::max(most, std::abs((*is)[i] - (*was)[i + 10 * 192]));
    large = std::max(large, std::abs((*was)[i]));
  }
  EXPECT_LT(most, large * 0x1p-9F);
  expect_good("rekey moved.bin back.bin --to 0:64" + flags);
  EXPECT_EQ(text("back.bin").size(), text("moved.bin").size());
  expect_refused("rekey moved.bin no.bin --from 0:64 --to 0:64" + flags,
                 "--from must name each cell");
  expect_refused("rekey moved.bin no.bin --to 0:9" + flags, "as many as --from");
  expect_refused("rekey moved.bin no.bin --to 0:64 --scheme rope", "head_dim");
  expect_refused("rekey moved.bin no.bin --to 0:64 --model gpt2", "may be moved");
  expect_refused("rekey moved.bin no.bin --to 0:64 --model llama-3.1-8b", "of the model's layers");
}

}  // namespace
