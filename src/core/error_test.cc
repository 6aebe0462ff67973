#include "posenc/error.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace posenc {
namespace {

constexpr std::array<std::string_view, 4> words = {"explain", "models", "rotate", "add"};

TEST(ErrorPrintable, KeepsTextThatIsFitForATerminal) {
  EXPECT_EQ(printable("rope_theta × 2, 模型"), "rope_theta × 2, 模型");
}

TEST(ErrorPrintable, TakesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2J\r\n\x7f"), "?[2J???");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "?2J");  // C1's one-character ESC [
}

// A name that shows its end first (U+202E), or ends the line where no newline is (U+2028).
TEST(ErrorPrintable, TakesWhatReversesTheText) {
  EXPECT_EQ(printable("a\u202Egnp.npy\u2066\u2069\u200F\u061C\u2028"), "a?gnp.npy?????");
}

TEST(ErrorPrintable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(printable("a\xff\xc0\xaf\xed\xa0\x80z"), "a\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(printable("\xe6\xa8"), "\uFFFD\uFFFD");
}

TEST(ErrorPrintable, CutsBetweenCharacters) { EXPECT_EQ(printable("éé", 3), "é..."); }

TEST(ErrorFail, QuotesNothingRaw) {
  const Error error = fail("a\nb", "rule", std::string(1 << 20, '\x1b'), "cure").error();
  EXPECT_EQ(error.where, "a?b");
  EXPECT_LT(error.message().size(), 400u);
}

TEST(ErrorNumberText, WholeNumbersHaveNoPointAndNoExponent) {
  EXPECT_EQ(number_text(500000), "500000");
  EXPECT_EQ(number_text(-3), "-3");
}

TEST(ErrorNumberText, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(number_text(0.707), "0.707");
  EXPECT_EQ(number_text(1e-9), "1e-09");
  EXPECT_EQ(number_text(1e300), "1e+300");
}

TEST(ErrorNumberText, NamesWhatIsNotFinite) {
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(ErrorNearest, FindsAMisspeltWord) {
  EXPECT_EQ(nearest("explian", words), "explain");
  EXPECT_EQ(nearest("rotat", words), "rotate");
}

TEST(ErrorNearest, OfWordsFarAwayThereIsNone) { EXPECT_EQ(nearest("quaternion", words), ""); }

TEST(ErrorNearest, AHostileWordIsNotCompared) {
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), words), "");
}

TEST(ErrorSuggestion, ListsAllWhereNothingIsNear) {
  EXPECT_EQ(suggestion("quaternion", words), "one of: explain models rotate add");
}

}  // namespace
}  // namespace posenc
