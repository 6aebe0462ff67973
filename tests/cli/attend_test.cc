// posenc attend, and the picture of the same logits.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "posenc/attention.h"
#include "posenc/schemes.h"
#include "tests/cli/arrays.h"

namespace {

using namespace posenc::cli;
using posenc::Mask;
using posenc::Plan;
using posenc::Positions;
using posenc::Tensor;
using posenc::test::has;
using posenc::test::Outcome;

class AttendCommand : public posenc::test::ArrayTest {
 protected:
  void make_qkv(NpyType type, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                std::int64_t keys, std::int64_t head_dim) const {
    make("q.npy", type, {heads, queries, head_dim}, 1);
    make("k.npy", type, {kv_heads, keys, head_dim}, 2);
    make("v.npy", type, {kv_heads, keys, head_dim}, 3);
  }
  // out.npy of q.npy, k.npy and v.npy.
  void attend(const std::string& flags) const {
    const Outcome outcome = posenc("attend out.npy --q q.npy --k k.npy --v v.npy " + flags);
    EXPECT_EQ(outcome.code, 0) << flags << "\n" << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "") << flags;
  }
  // With k.npy and v.npy, but where the flags name others.
  std::string error(const std::string& flags) const {
    const Outcome outcome =
        posenc("attend out.npy --q q.npy " + std::string(has(flags, "--k ") ? "" : "--k k.npy ") +
               (has(flags, "--v ") ? "" : "--v v.npy ") + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.npy")) << flags;
    return outcome.err;
  }
  // What the library makes of the same files, with logits.
  struct Expected {
    Array out, logits;
  };
  Expected library(const Plan& plan, const Positions& queries, const Positions& keys,
                   const Mask& mask) const {
    Array q = array("q.npy"), k = array("k.npy"), v = array("v.npy");
    Expected want{*make_array(q.type, q.shape),
                  *make_array(q.type, {q.shape[0], q.shape[1], k.shape[1]})};
    const Tensor tq = tensor(q), tk = tensor(k), tv = tensor(v);
    Array scratch = want.out;
    EXPECT_TRUE(attend_reference({tq, tk, tv, queries, keys, mask}, plan, tensor(scratch),
                                 tensor(want.logits)));
    EXPECT_TRUE(posenc::attend({tq, tk, tv, queries, keys, mask}, plan, tensor(want.out)));
    return want;
  }
};

TEST_F(AttendCommand, EqualsTheLibraryBitForBitInEveryType) {
  const Plan plan = *posenc::compile(posenc::Rope{}, {.heads = 2, .head_dim = 8, .length = 12});
  for (const NpyType type : {NpyType::f64, NpyType::f32, NpyType::f16, NpyType::u16}) {
    make_qkv(type, 2, 2, 5, 5, 8);
    attend("--scheme rope --positions 7:12 --logits logits.npy" +
           std::string(type == NpyType::u16 ? " --dtype bfloat16" : ""));
    const auto want = library(plan, Positions::range(7, 5), Positions::range(7, 5), {});
    EXPECT_EQ(array("out.npy").type, type);
    EXPECT_EQ(array("out.npy").data, want.out.data) << name(type);
    EXPECT_EQ(array("logits.npy").data, want.logits.data) << name(type);
  }
}

TEST_F(AttendCommand, SinkLogitsAreAFile) {
  make_qkv(NpyType::f64, 2, 2, 5, 5, 8);
  make("sinks.npy", NpyType::f32, {2}, 4);
  attend("--scheme nope --sink_logits sinks.npy");
  Array q = array("q.npy"), k = array("k.npy"), v = array("v.npy"), sinks = array("sinks.npy");
  Array want = *make_array(q.type, q.shape);
  const Positions text = Positions::range(0, 5);
  ASSERT_TRUE(posenc::attend(
      {tensor(q), tensor(k), tensor(v), text, text, {}, {}, *tensor_of(sinks, "", "sinks")}, {},
      tensor(want)));
  EXPECT_EQ(array("out.npy").data, want.data);
  std::filesystem::remove(folder_ / "out.npy");
  make("sinks.npy", NpyType::f32, {3}, 4);
  EXPECT_TRUE(has(error("--scheme nope --sink_logits sinks.npy"),
                  "sink_logits must be [2], or [1, 2, 5], got [3]"));
}

TEST_F(AttendCommand, TheLoopsAgreeWithTheFusedKernel) {
  make_qkv(NpyType::f64, 4, 2, 37, 37, 16);
  for (const char* scheme : {"rope", "alibi", "kerple", "nope", "xpos"}) {
    const std::string flags = "--scheme " + std::string(scheme);
    attend(flags + " --reference");
    std::filesystem::rename(folder_ / "out.npy", folder_ / "loops.npy");
    attend(flags);
    EXPECT_LT(difference("loops.npy", "out.npy"), 1e-13) << scheme;
  }
}

TEST_F(AttendCommand, OneQueryStandsAtTheLastKey) {
  make_qkv(NpyType::f64, 2, 2, 9, 9, 8);
  attend("--scheme rope");
  const std::vector<double> whole = values("out.npy");
  Array q = array("q.npy"), last = *make_array(NpyType::f64, {2, 1, 8});
  for (std::int64_t h = 0; h < 2; h++)
    for (std::int64_t c = 0; c < 8; c++)
      tensor(last).set(h * 8 + c, tensor(q).get((h * 9 + 8) * 8 + c));
  ASSERT_TRUE(write_npy(path("q.npy"), last));
  attend("--scheme rope");
  const std::vector<double> decoded = values("out.npy");
  ASSERT_EQ(decoded.size(), 16u);
  for (std::size_t h = 0; h < 2; h++)
    for (std::size_t c = 0; c < 8; c++)
      EXPECT_NEAR(decoded[h * 8 + c], whole[(h * 9 + 8) * 8 + c], 1e-14);
}

TEST_F(AttendCommand, GroupedHeadsReadTheKeysOfTheirGroup) {
  make_qkv(NpyType::f64, 6, 2, 5, 7, 8);
  attend("--scheme alibi");
  const Plan plan = *posenc::compile(posenc::Alibi{}, {.heads = 6, .head_dim = 8, .length = 7});
  EXPECT_EQ(array("out.npy").data,
            library(plan, Positions::range(2, 5), Positions::range(0, 7), {}).out.data);
}

TEST_F(AttendCommand, MaskFlagsAreTheLibrarysMask) {
  make_qkv(NpyType::f64, 1, 1, 12, 12, 4);
  const std::vector<std::uint8_t> keep = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<std::int32_t> blocks = {-1, -1, 0, 0, 0, 0, -1, -1, -1, 1, 1, 1};
  const struct {
    const char* flags;
    Mask mask;
  } cases[] = {{"", {}},
               {"--bidirectional", {.causal = false}},
               {"--window 3", {.window = 3}},
               {"--chunk 5", {.chunk = 5}},
               {"--prefix 4", {.prefix = 4}},
               {"--keep 0,0,1,1,1,1,1,1,1,1,1,1", {.keep = keep.data()}},
               {"--blocks=-1,-1,0,0,0,0,-1,-1,-1,1,1,1", {.blocks = blocks.data()}},
               {"--bidirectional --window 3", {.causal = false, .window = 3}}};
  const Positions all = Positions::range(0, 12);
  for (const auto& [flags, mask] : cases) {
    attend(std::string("--scheme nope --logits logits.npy ") + flags);
    EXPECT_EQ(array("logits.npy").data, library({}, all, all, mask).logits.data) << flags;
  }
}

TEST_F(AttendCommand, ListsOfKeysAreTheLibrarys) {
  make_qkv(NpyType::f64, 1, 1, 3, 3, 4);
  const std::vector<std::int32_t> once = {0, -1, 1, 0, 0, 2};
  std::vector<std::int32_t> lists = once;
  lists.insert(lists.end(), once.begin(), once.end());
  attend("--scheme nope --logits logits.npy --keys '0,-1;1,0;0,2'");
  const Positions all = Positions::range(0, 3);
  const Mask mask{.keys = lists.data(), .key_count = 2};
  EXPECT_EQ(array("logits.npy").data, library({}, all, all, mask).logits.data);
}

TEST_F(AttendCommand, ASoftcapBoundsTheLogits) {
  make_qkv(NpyType::f64, 1, 1, 5, 5, 4);
  attend("--scheme nope --bidirectional --logits plain.npy");
  attend("--scheme nope --bidirectional --softcap 0.5 --logits capped.npy");
  const std::vector<double> plain = values("plain.npy"), capped = values("capped.npy");
  for (std::size_t i = 0; i < plain.size(); i++)
    EXPECT_NEAR(capped[i], 0.5 * std::tanh(plain[i] / 0.5), 1e-15);
}

TEST_F(AttendCommand, PaddingInFrontThatIsHiddenChangesNothing) {
  make_qkv(NpyType::f64, 1, 1, 6, 6, 8);
  attend("--scheme rope");
  const std::vector<double> plain = values("out.npy");
  for (const char* name : {"q.npy", "k.npy", "v.npy"}) {
    Array tokens = array(name), padded = *make_array(NpyType::f64, {2, 1, 8, 8});
    for (std::int64_t i = 0; i < 48; i++) {
      tensor(padded).set(i, tensor(tokens).get(i));            // two tokens of padding at the end
      tensor(padded).set(64 + 16 + i, tensor(tokens).get(i));  // and in front
    }
    ASSERT_TRUE(write_npy(path(name), padded));
  }
  Array ids = *make_array(NpyType::u8, {1, 2, 8});
  for (std::size_t t = 0; t < 8; t++) {
    ids.data[t] = static_cast<std::byte>(t);
    ids.data[8 + t] = static_cast<std::byte>(t < 2 ? 0 : t - 2);
  }
  ASSERT_TRUE(write_npy(path("ids.npy"), ids));
  attend("--scheme rope --key_positions ids.npy --keep '1,1,1,1,1,1,0,0;0,0,1,1,1,1,1,1'");
  const std::vector<double> out = values("out.npy");
  for (std::size_t i = 0; i < 48; i++) {
    EXPECT_NEAR(out[i], plain[i], 1e-14);
    EXPECT_NEAR(out[64 + 16 + i], plain[i], 1e-14);
  }
}

TEST_F(AttendCommand, PackedSequencesGetWhatEachAloneGets) {
  make_qkv(NpyType::f64, 2, 1, 11, 11, 8);
  attend("--scheme rope --cu_seqlens 0,3,3,11 --logits logits.npy");
  const Plan plan = *posenc::compile(posenc::Rope{}, {.heads = 2, .head_dim = 8});
  const Positions packed = *Positions::packed(std::vector<std::int64_t>{0, 3, 3, 11});
  const auto want = library(plan, packed, packed, {});
  EXPECT_EQ(array("out.npy").data, want.out.data);
  EXPECT_EQ(array("logits.npy").data, want.logits.data);

  std::filesystem::rename(folder_ / "out.npy", folder_ / "packed.npy");
  const auto tokens = [&](const Array& from, std::int64_t first, std::int64_t last) {
    Array whole = from;
    Array part = *make_array(from.type, {from.shape[0], last - first, 8});
    for (std::int64_t h = 0; h < from.shape[0]; h++)
      for (std::int64_t i = 0; i < (last - first) * 8; i++)
        tensor(part).set(h * (last - first) * 8 + i, tensor(whole).get((h * 11 + first) * 8 + i));
    return part;
  };
  const Array all[] = {array("q.npy"), array("k.npy"), array("v.npy"), array("packed.npy")};
  for (const auto& [first, last] : {std::pair{0, 3}, {3, 11}}) {
    ASSERT_TRUE(write_npy(path("q.npy"), tokens(all[0], first, last)));
    ASSERT_TRUE(write_npy(path("k.npy"), tokens(all[1], first, last)));
    ASSERT_TRUE(write_npy(path("v.npy"), tokens(all[2], first, last)));
    ASSERT_TRUE(write_npy(path("want.npy"), tokens(all[3], first, last)));
    attend("--scheme rope");
    EXPECT_LT(difference("out.npy", "want.npy"), 1e-14) << first;
  }
}

TEST_F(AttendCommand, ThreadsChangeNoBit) {
  make_qkv(NpyType::f32, 4, 4, 300, 300, 32);
  attend("--scheme rope --threads 1");
  const auto one = array("out.npy").data;
  attend("--scheme rope --threads 3");
  EXPECT_EQ(array("out.npy").data, one);
}

TEST_F(AttendCommand, AModelsLayerBringsItsWindow) {
  make_qkv(NpyType::f32, 1, 1, 1, 3000, 256);
  const auto hidden = [&](const std::string& flags) {
    attend("--model gemma-3-4b --logits logits.npy " + flags);
    std::int64_t count = 0;
    for (const double logit : values("logits.npy")) count += std::isinf(logit);
    return count;
  };
  EXPECT_EQ(hidden("--layer 0"), 3000 - 1024);
  EXPECT_EQ(hidden("--layer 5"), 0);
  EXPECT_EQ(hidden("--layer 0 --window 0"), 0);
  EXPECT_EQ(hidden("--layer 0 --window 10"), 2990);
}

TEST_F(AttendCommand, BidirectionalIsAlsoTheSchemesField) {
  make_qkv(NpyType::f64, 2, 2, 4, 4, 4);
  attend("--scheme alibi --bidirectional --logits logits.npy");
  const Plan plan = *posenc::compile(posenc::Alibi{.symmetric = true}, {.heads = 2, .head_dim = 4});
  const Positions all = Positions::range(0, 4);
  EXPECT_EQ(array("logits.npy").data, library(plan, all, all, {.causal = false}).logits.data);
}

TEST_F(AttendCommand, WhatEmbeddingsGetHasNoPlaceHere) {
  make_qkv(NpyType::f32, 1, 1, 4, 4, 64);
  attend("--scheme nope");
  const auto without = array("out.npy").data;
  for (const char* flags :
       {"--scheme sinusoidal --width 64", "--scheme learned --rows 9 --width 64", "--model gpt2"}) {
    attend(flags);
    EXPECT_EQ(array("out.npy").data, without) << flags;
  }
}

TEST_F(AttendCommand, VectorsByDistanceComeFromTheirFiles) {
  make_qkv(NpyType::f64, 1, 1, 4, 4, 4);
  make("key.npy", NpyType::f64, {5, 4}, 5);
  make("value.npy", NpyType::f64, {5, 4}, 6);
  attend("--scheme shaw --max_distance 2 --relative_key key.npy --relative_value value.npy");
  Array key = array("key.npy"), value = array("value.npy");
  Plan plan = *posenc::compile(posenc::Shaw{.max_distance = 2}, {.heads = 1, .head_dim = 4});
  plan.relative->key = posenc::Table::borrow(tensor(key));
  plan.relative->value = posenc::Table::borrow(tensor(value));
  const Positions all = Positions::range(0, 4);
  EXPECT_EQ(array("out.npy").data, library(plan, all, all, {}).out.data);
}

TEST_F(AttendCommand, FewerAxesAreTheSameNumbers) {
  make_qkv(NpyType::f32, 1, 1, 6, 6, 8);
  attend("--scheme rope");
  const auto three = array("out.npy").data;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{6, 8}, std::vector<std::int64_t>{1, 1, 6, 8}}) {
    for (const char* name : {"q.npy", "k.npy", "v.npy"}) {
      Array same = array(name);
      same.shape = shape;
      ASSERT_TRUE(write_npy(path(name), same));
    }
    attend("--scheme rope");
    EXPECT_EQ(array("out.npy").shape, shape);
    EXPECT_EQ(array("out.npy").data, three);
  }
}

TEST_F(AttendCommand, ErrorsNameRuleValueAndCure) {
  make_qkv(NpyType::f32, 4, 2, 5, 3, 8);
  make("line.npy", NpyType::f32, {8});
  make("double.npy", NpyType::f64, {2, 3, 8});
  make("three.npy", NpyType::f32, {3, 3, 8});
  const struct {
    const char *flags, *says;
  } cases[] = {
      {"--scheme rope", "--positions: must be given where queries are more than keys, got 5 and 3"},
      {"--positions 0:5", "takes --model or --scheme, got neither"},
      {"--scheme rope --positions 0:4", "--positions: one for each of the 5 queries, got 4"},
      {"--scheme rope --positions 0:5 --key_positions 0:4",
       "--key_positions: one for each of the 3"},
      {"--scheme rope --positions 0:5 --window=-1", "--window: must be 0 or more, got -1"},
      {"--scheme rope --positions 0:5 --keep 1,1", "--mask: must have a number for each of the 3"},
      {"--scheme rope --positions 0:5 --logits out.npy", "--logits: must not be OUT, got out.npy"},
      {"--scheme rope --positions 0:5 --logits none/l.npy", "none/l.npy: cannot be written"},
      {"--scheme rope --cu_seqlens 0,2,5", "--packed: must end at the number of queries"},
      {"--scheme rope --cu_seqlens 2,5", "cu_seqlens must start at 0"},
      {"--scheme rope --cu_seqlens 0,5 --positions 0:5", "excludes"},
      {"--scheme rope --positions 0:5 --threads 0", "--threads"},
      {"--scheme t5 --positions 0:5", "say --table FILE"},
      {"--scheme shaw --positions 0:5", "say --relative_key FILE.npy, of shape [33][head_dim]"},
      {"--scheme rope --positions 0:5 --relative_key k.npy",
       "--relative_key: this encoding has no"},
      {"--scheme rope --positions 0:5 --k line.npy", "the last 2 or 3 of these, got 1 axes"},
      {"--scheme rope --positions 0:5 --k double.npy --v double.npy", "must have one dtype"},
      {"--scheme rope --positions 0:5 --k three.npy --v three.npy", "a multiple of kv_heads"},
      {"--scheme rope --positions 0:5 --v three.npy", "v must have the shape [1, 2, 3, 8]"},
      {"--model llama-3.1-8b --positions 0:5", "head_dim must be 128, got 8"},
      {"--model gemma-3-4b --positions 0:5", "the layers of gemma-3-4b differ"},
      {"--scheme rope --positions 0:5 --dtype bfloat16", "must be bfloat16"},
  };
  for (const auto& [flags, says] : cases) {
    const std::string message = error(flags);
    EXPECT_TRUE(message.starts_with("posenc: ")) << flags << ": " << message;
    EXPECT_TRUE(has(message, says)) << flags << ": " << message;
  }
}

TEST_F(AttendCommand, ExamplesOfTheHelpRun) {
  make_qkv(NpyType::f32, 4, 2, 16, 16, 128);
  make("last_q.npy", NpyType::f32, {4, 1, 128});
  make("e.npy", NpyType::f32, {16, 128});
  // Logarithms of gates that let everything through.
  ASSERT_TRUE(
      posenc::cli::write_npy(path("g.npy"), *posenc::cli::make_array(NpyType::f32, {4, 16})));
  make("s.npy", NpyType::f32, {4}, 6);
  std::istringstream help(posenc("attend --help-all").out);
  std::vector<std::string> examples;
  for (std::string line; std::getline(help, line);) {
    if (!examples.empty() && examples.back().ends_with("\\")) {
      examples.back().pop_back();
      examples.back() += line;
    } else if (line.starts_with("  posenc attend ")) {
      examples.push_back(line.substr(9));
    }
  }
  ASSERT_EQ(examples.size(), 9u);
  for (const std::string& example : examples) {
    const Outcome outcome = posenc(example);
    EXPECT_EQ(outcome.code, 0) << example << "\n" << outcome.err;
  }
}

// Of the panel's rows the value in `column`, in order; NaN where a cell is empty.
std::vector<double> panel_values(const std::string& csv, const std::string& panel,
                                 std::size_t column) {
  std::vector<double> out;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(panel + ",")) continue;
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    out.push_back(cells[column].empty() ? NAN : std::stod(cells[column]));
  }
  return out;
}

TEST_F(AttendCommand, ThePicturesNumbersAreTheLogitsAndTheirSoftmax) {
  make_qkv(NpyType::f64, 4, 2, 5, 9, 8);
  attend("--scheme alibi --window 4 --logits logits.npy");
  const Outcome plot =
      posenc("plot scores --q q.npy --k k.npy --scheme alibi --window 4 --head 2 --csv -");
  ASSERT_EQ(plot.code, 0) << plot.err;
  ASSERT_TRUE(plot.out.starts_with("panel,key_position,query_position,logit,weight\n"));
  const auto all = values("logits.npy");
  const auto logits = panel_values(plot.out, "logits", 3);
  const auto weights = panel_values(plot.out, "weights", 4);
  const auto queries = panel_values(plot.out, "logits", 2);
  ASSERT_EQ(logits.size(), 45u);
  ASSERT_EQ(weights.size(), 45u);
  EXPECT_EQ(queries[0], 4);
  for (std::size_t row = 0; row < 5; row++) {
    double sum = 0;
    for (std::size_t key = 0; key < 9; key++) sum += std::exp(all[2 * 45 + row * 9 + key]);
    for (std::size_t key = 0; key < 9; key++) {
      const double logit = all[2 * 45 + row * 9 + key];
      if (std::isinf(logit)) {
        EXPECT_TRUE(std::isnan(logits[row * 9 + key]));
        EXPECT_TRUE(std::isnan(weights[row * 9 + key]));
      } else {
        EXPECT_EQ(logits[row * 9 + key], logit);
        EXPECT_NEAR(weights[row * 9 + key], std::exp(logit) / sum, 1e-15);
      }
    }
  }
}

TEST_F(AttendCommand, WithOneVectorEverywhereOnlyTheDistanceCounts) {
  const Outcome plot =
      posenc("plot scores --scheme rope --content same --length 12 --bidirectional --csv -");
  ASSERT_EQ(plot.code, 0) << plot.err;
  const auto logits = panel_values(plot.out, "logits", 3);
  ASSERT_EQ(logits.size(), 144u);
  // Angles of up to 12 rad, on logits of up to √64: a few roundings of 2^-53 times 100.
  for (std::size_t i = 1; i < 12; i++)
    for (std::size_t j = 1; j < 12; j++)
      EXPECT_NEAR(logits[i * 12 + j], logits[(i - 1) * 12 + j - 1], 1e-13);
}

// Four columns a row: patches 0 and 5 stand to each other as 6 and 11 do, and otherwise than 0 and
// 4.
TEST_F(AttendCommand, OnAPictureRowsAndColumnsCount) {
  for (const std::string scheme : {"axial", "decomposed --random_learned"}) {
    SCOPED_TRACE(scheme);
    const Outcome plot =
        posenc("plot scores --content same --grid 3x4 --bidirectional --csv - --scheme " + scheme);
    ASSERT_EQ(plot.code, 0) << plot.err;
    const auto logits = panel_values(plot.out, "logits", 3);
    ASSERT_EQ(logits.size(), 144u);
    EXPECT_NEAR(logits[0 * 12 + 5], logits[6 * 12 + 11], 1e-12);
    EXPECT_GT(std::abs(logits[0 * 12 + 5] - logits[0 * 12 + 4]), 1e-3);
  }
}

TEST_F(AttendCommand, WhatASchemeHasLearnedMayBeRandom) {
  for (const std::string scheme : {"fire", "cope", "forgetting", "wall", "path", "grape_ap", "t5",
                                   "shaw", "learned --rows 12 --width 64"}) {
    SCOPED_TRACE(scheme);
    const auto logits = [&](const std::string& flags) {
      const Outcome plot = posenc("plot scores --length 12 --csv - --random_learned --scheme " +
                                  scheme + " " + flags);
      EXPECT_EQ(plot.code, 0) << plot.err;
      return panel_values(plot.out, "logits", 3);
    };
    const auto some = logits("--seed 1"), same = logits("--seed 1"), others = logits("--seed 2");
    ASSERT_EQ(some.size(), 144u);
    for (std::size_t i = 0; i < 12; i++) EXPECT_EQ(some[i * 12], same[i * 12]);
    EXPECT_NE(some[11 * 12], others[11 * 12]);
    // One query and one key at every place: at the first, where nothing lies between, a score is
    // any other's at that distance. Rows of a learned table differ all the same.
    const auto alike = logits("--content alike");
    if (!scheme.starts_with("learned")) {
      EXPECT_NEAR(alike[1 * 12 + 0], alike[6 * 12 + 5], 1e-12);
    }
  }
}

TEST_F(AttendCommand, PositionVectorsJoinRandomQueriesAndKeys) {
  const auto first = [&](const std::string& scheme) {
    return panel_values(
        posenc("plot scores --length 4 --head_dim 8 --heads 2 --csv - --content same --scheme " +
               scheme)
            .out,
        "logits", 3);
  };
  // Distance 0 at positions 1 and 2: without position the same number.
  const auto bare = first("nope"), added = first("sinusoidal --width 8"),
             apart = first("sinusoidal --width 16");
  EXPECT_EQ(bare[5], bare[10]);
  EXPECT_GT(std::abs(added[5] - added[10]), 1e-3);
  EXPECT_EQ(apart[5], apart[10]);  // of another width, so they have gone through projections
}

TEST_F(AttendCommand, APictureThatCannotBeSaysWhy) {
  make_qkv(NpyType::f64, 4, 2, 5, 9, 8);
  const struct {
    const char *flags, *says;
  } cases[] = {
      {"--q q.npy", "takes both --q and --k, or neither, got --q alone"},
      {"--q q.npy --k k.npy --length 8", "--length: is that of random vectors"},
      {"--q q.npy --k k.npy --head 4", "--head: must lie in 0 to 3, got 4"},
      {"--q k.npy --k q.npy", "the queries are the last of the keys"},
      {"--scheme shaw", "posenc attend --logits takes them"},
      {"--q q.npy --k k.npy --random_learned", "--random_learned: goes with random queries"},
      {"--scheme fire", "fire needs --hidden_weight"},
      {"--scheme t5", "--table"},
      {"--length 8192", "at most 2^25 numbers"}};
  for (const auto& [flags, says] : cases) {
    const Outcome outcome = posenc("plot scores x.png " + std::string(flags));
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_TRUE(has(outcome.err, says)) << flags << ": " << outcome.err;
  }
}

}  // namespace
