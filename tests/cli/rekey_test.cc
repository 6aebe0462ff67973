// rekey on files: keys that move, and the header that goes with them.
#include <string>

#include "posenc/key_header.h"
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

}  // namespace
