#include "evidence/lab/model/tokenizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/text/json.h"
#include "tests/gguf_bytes.h"

namespace posenc::lab {
namespace {

using Words = std::vector<std::string_view>;

TEST(Cut, OfGpt2KeepsTheBlankBeforeAWord) {
  EXPECT_EQ(cut("Hello world, it's 2024!", Cut::gpt2),
            (Words{"Hello", " world", ",", " it", "'s", " 2024", "!"}));
}

TEST(Cut, OfGpt2LeavesTheLastBlankToTheWordBehind) {
  EXPECT_EQ(cut("a   b\n\n  c  ", Cut::gpt2), (Words{"a", "  ", " b", "\n\n ", " c", "  "}));
}

TEST(Cut, OfSmolLmTakesDigitsOneByOne) {
  EXPECT_EQ(cut("in 1999, x", Cut::smollm), (Words{"in", " ", "1", "9", "9", "9", ",", " x"}));
}

TEST(Cut, OfLlama3TakesDigitsByThreesAndLineEndsAlong) {
  EXPECT_EQ(cut("It'S 12345.\n\n (ok)", Cut::llama3),
            (Words{"It", "'S", " ", "123", "45", ".\n\n", " (", "ok", ")"}));
}

TEST(Cut, OfQwen2TakesDigitsOneByOneAndSignsWithWords) {
  EXPECT_EQ(cut("in 1999,x", Cut::qwen2), (Words{"in", " ", "1", "9", "9", "9", ",x"}));
}

TEST(Cut, KnowsLettersOfOtherScripts) {
  EXPECT_EQ(cut("Ångström Привет 世界", Cut::gpt2), (Words{"Ångström", " Привет", " 世界"}));
}

TEST(Cut, TakesBytesThatAreNoUtf8AsSigns) {
  EXPECT_EQ(cut("a\xff\xfe b", Cut::gpt2), (Words{"a", "\xff\xfe", " b"}));
}

TEST(Cut, LosesNoByte) {
  const std::string text = "  \t\xc3 'x''ll 3½ \r\n\r\nend \u3000\u00a0z";
  for (const Cut how : {Cut::gpt2, Cut::smollm, Cut::llama3, Cut::qwen2}) {
    std::string whole;
    for (const std::string_view word : cut(text, how)) whole += word;
    EXPECT_EQ(whole, text);
  }
}

Expected<Tokenizer> of_json(std::string_view before, std::string_view rest = "") {
  const std::string text =
      R"({"pre_tokenizer": )" + std::string(before) +
      R"(, "added_tokens": [{"id": 9, "content": "<s>"}], "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "Ġ": 4, "ab": 5, "bc": 6, "abc": 7, "Ġab": 8},
      "merges": [["b", "c"], "a b", ["a", "bc"], ["Ġ", "ab"]]})" +
      std::string(rest) + "}";
  const auto json = detail::parse_json(text, "tokenizer.json");
  EXPECT_TRUE(json) << json.error().message();
  return Tokenizer::from(*json, "tokenizer.json");
}

TEST(TokenizerJson, MergesAsTheGgufDoes) {
  const auto made = of_json(R"({"type": "ByteLevel"})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->encode("abc ab"), (std::vector<std::int32_t>{7, 8}));
  EXPECT_EQ(made->text_of(9), "<s>");
}

TEST(TokenizerJson, BeginsATextAsItsTemplateDoes) {
  const auto made = of_json(R"({"type": "ByteLevel"})",
                            R"(, "post_processor": {"type": "TemplateProcessing", "single":
      [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->encode("d"), (std::vector<std::int32_t>{9, 3}));
}

TEST(TokenizerJson, OfAnotherWayOfCuttingIsRefused) {
  const auto made = of_json(R"({"type": "Metaspace"})");
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().message().contains("pre_tokenizer")) << made.error().message();
}

// A vocabulary of the letters a to d and the blank, and a few merges.
class SmallVocabulary : public testing::Test {
 protected:
  void SetUp() override {
    using Bytes = test::GgufBytes;
    Bytes b;
    const std::vector<std::string> tokens = {"a", "b", "c", "d", "Ġ", "ab", "bc", "abc", "Ġab"};
    const std::vector<std::string> merges = {"b c", "a b", "a bc", "Ġ ab"};
    b.start(0, 4);
    b.key("tokenizer.ggml.model", Bytes::string).word("gpt2");
    b.key("tokenizer.ggml.pre", Bytes::string).word("gpt-2");
    const auto list = [&](std::string_view key, const std::vector<std::string>& words) {
      b.key(key, Bytes::array).put(std::uint32_t{Bytes::string}).put(std::uint64_t{words.size()});
      for (const std::string& word : words) b.word(word);
    };
    list("tokenizer.ggml.tokens", tokens);
    list("tokenizer.ggml.merges", merges);
    text_ = b.text;
    const auto gguf = parse_gguf(std::as_bytes(std::span(text_)), "small");
    ASSERT_TRUE(gguf) << gguf.error().message();
    auto made = Tokenizer::from(*gguf, "small");
    ASSERT_TRUE(made) << made.error().message();
    tokenizer_ = std::move(*made);
  }
  std::string text_;
  Tokenizer tokenizer_;
};

TEST_F(SmallVocabulary, MergesTheLowestRankFirst) {
  // b c before a b, and then a bc: not ab c.
  EXPECT_EQ(tokenizer_.encode("abc"), (std::vector<std::int32_t>{7}));
}

TEST_F(SmallVocabulary, MergesTheLeftmostOfEqualRanks) {
  EXPECT_EQ(tokenizer_.encode("abab ab"), (std::vector<std::int32_t>{5, 5, 8}));
}

TEST_F(SmallVocabulary, MergesNothingAcrossWords) {
  EXPECT_EQ(tokenizer_.encode("a b"), (std::vector<std::int32_t>{0, 4, 1}));
}

TEST_F(SmallVocabulary, LosesBytesThatItLacks) {
  EXPECT_EQ(tokenizer_.encode("a\x01z"), (std::vector<std::int32_t>{0}));
}

TEST_F(SmallVocabulary, TellsTheTextOfAToken) {
  EXPECT_EQ(tokenizer_.text_of(8), " ab");
  EXPECT_EQ(tokenizer_.text_of(99), "");
}

TEST_F(SmallVocabulary, TakesALongWordInTimeThatGrowsWithIt) {
  const std::string word(1 << 20, 'a');
  EXPECT_EQ(tokenizer_.encode(word).size(), word.size());
}

}  // namespace
}  // namespace posenc::lab
