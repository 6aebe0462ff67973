// posenc plot: every kind's pictures and numbers, and what must not happen to either.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/plot.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/draw/draw.h"
#include "cli/figures/draw/gnuplot.h"
#include "cli/figures/draw/layout.h"
#include "cli/figures/draw/shrink.h"
#include "posenc/schemes.h"
#include "tests/cli/command.h"

namespace {

using namespace posenc::cli;
using posenc::test::has;
using posenc::test::Outcome;

class Plot : public posenc::test::CommandTest {
 protected:
  // Rows of a CSV without quoted fields.
  static std::vector<std::vector<std::string>> rows(const std::string& csv) {
    std::vector<std::vector<std::string>> out;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> row(1);
      for (const char c : line) {
        if (c == ',') {
          row.emplace_back();
        } else {
          row.back() += c;
        }
      }
      out.push_back(std::move(row));
    }
    return out;
  }
  std::vector<std::vector<std::string>> numbers(const std::string& arguments) const {
    const Outcome outcome = posenc("plot " + arguments + " --csv -");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows(outcome.out);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
};

std::string picture_name(std::string_view example) {
  return std::string(example.substr(0, example.find(' ')));
}

TEST_F(Plot, EveryExampleOfEveryKindIsDrawnAndShownInTheGallery) {
  const Outcome outcome = posenc("plot all pictures");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(has(outcome.out, "pictures/index.html"));
  const std::string page = text("pictures/index.html");
  for (const Kind* kind : all_kinds()) {
    ASSERT_FALSE(kind->examples.empty()) << kind->name;
    EXPECT_TRUE(has(page, "id=\"" + std::string(kind->name) + "\""));
    for (const std::string_view example : kind->examples) {
      const std::string name = picture_name(example);
      EXPECT_TRUE(text("pictures/" + name).starts_with("\x89PNG\r\n\x1a\n")) << name;
      EXPECT_GT(text("pictures/" + name).size(), 10000u) << name;
      EXPECT_TRUE(has(page, "<img src=\"" + name + "\"")) << name;
      EXPECT_TRUE(has(page, std::string(example))) << name;
    }
  }
  for (const char* outside : {"http://", "https://", "<script", "url("})
    EXPECT_FALSE(has(page, outside)) << outside;
}

TEST_F(Plot, EveryKindWritesEveryFormatAndTheSameBytesAgain) {
  for (const Kind* kind : all_kinds())
    for (const auto& [ending, magic] :
         {std::pair{".png", "\x89PNG"}, std::pair{".svg", "<?xml"}, std::pair{".pdf", "%PDF-"}}) {
      const std::string name(kind->name);
      for (const std::string copy : {"a", "b"}) {
        const Outcome outcome = posenc("plot " + name + " " + copy + ending + " --size 600x400");
        ASSERT_EQ(outcome.code, 0) << name << ending << ": " << outcome.err;
        EXPECT_EQ(outcome.out + outcome.err, "") << name;
      }
      EXPECT_TRUE(text(std::string("a") + ending).starts_with(magic)) << name << ending;
      EXPECT_EQ(text(std::string("a") + ending), text(std::string("b") + ending)) << name << ending;
    }
}

TEST_F(Plot, EveryKindHasNumbersWithUnitsInTheirNames) {
  for (const Kind* kind : all_kinds()) {
    const auto table = numbers(std::string(kind->name));
    ASSERT_GT(table.size(), 2u) << kind->name;
    for (const std::string& column : table[0]) EXPECT_NE(column, "") << kind->name;
  }
}

TEST_F(Plot, KindsAreListedWithASentenceEach) {
  const Outcome list = posenc("plot");
  EXPECT_EQ(list.code, 0);
  for (const Kind* kind : all_kinds()) {
    EXPECT_TRUE(has(list.out, std::string(kind->about))) << kind->name;
    const Outcome help = posenc("plot " + std::string(kind->name) + " --help-all");
    EXPECT_EQ(help.code, 0);
    for (const std::string_view example : kind->examples)
      EXPECT_TRUE(has(help.out, std::string(example))) << kind->name;
  }
}

TEST_F(Plot, HeatMapsNumbersAreTheTables) {
  const auto table = numbers("heatmap --scheme sinusoidal --width 8 --positions 5:9");
  ASSERT_EQ(table.size(), 1u + 4 * 8);
  EXPECT_EQ(table[0], (std::vector<std::string>{"channel", "position_tokens", "value"}));
  for (std::size_t i = 1; i < table.size(); i++) {
    const double d = std::stod(table[i][0]), p = std::stod(table[i][1]);
    const double angle = p * std::pow(10000, -std::floor(d / 2) / 4);
    const double expected = std::fmod(d, 2) == 0 ? std::sin(angle) : std::cos(angle);
    EXPECT_NEAR(std::stod(table[i][2]), expected, 1e-14) << d << " " << p;
  }
}

// What is moved has a fresh prefill's scores, and what is left as it stood those of other distances.
TEST_F(Plot, MovedKeysLieOnTheLine) {
  const auto table = numbers("moves --tokens 24 --seed 3");
  ASSERT_EQ(table.size(), 1u + 3 * 48 + 3 * 24);
  std::map<std::pair<std::string, std::string>, std::map<std::string, double>> scores;
  for (std::size_t i = 1; i < table.size(); i++)
    scores[{table[i][0], table[i][2]}][table[i][1]] = std::stod(table[i][3]);
  double most = 0;
  for (const auto& [at, of] : scores) {
    EXPECT_NEAR(of.at("moved"), of.at("a fresh prefill's"), 1e-12) << at.first << " " << at.second;
    most = std::max(most, std::abs(of.at("left as they stood") - of.at("a fresh prefill's")));
  }
  EXPECT_GT(most, 0.5);
}

// Moved together, the score stays; alone, it is that of the distance. An angle below 16 rad is
// rounded by up to 9e-16.
TEST_F(Plot, TheLockedScoreStandsStill) {
  const auto table = numbers("lock --query 9 --key 6 --turn 24");
  ASSERT_EQ(table.size(), 1u + 2 * 25);
  for (std::size_t i = 1; i < table.size(); i++) {
    const double moved = table[i][0] == "both" ? 0 : std::stod(table[i][1]);
    EXPECT_NEAR(std::stod(table[i][2]), std::cos((3 + moved) * std::numbers::pi / 12), 2e-15) << i;
  }
}

TEST_F(Plot, TheLockMovesInAnSvgUnlessMotionIsUnwanted) {
  ASSERT_EQ(posenc("plot lock lock.svg").code, 0);
  const std::string svg = text("lock.svg");
  EXPECT_LT(svg.size(), 60000u);
  for (const char* part : {"@keyframes qt", "prefers-reduced-motion", "prefers-color-scheme:dark",
                           "their score stays 0.7071"})
    EXPECT_TRUE(has(svg, part)) << part;
  for (const char* outside : {"href", "<script", "url("})
    EXPECT_FALSE(has(svg, outside)) << outside;
}

TEST_F(Plot, WavelengthsAreTwoPiOverTheLibrarysFrequencies) {
  const auto table = numbers("wavelengths --scalings yarn --factor 16 --trained 4096");
  const auto scaled = posenc::rope_frequencies<double>(
      posenc::Rope{.scaling = posenc::Yarn{.factor = 16, .original_max_position_embeddings = 4096}},
      {.head_dim = 128, .length = 65536});
  ASSERT_TRUE(scaled);
  ASSERT_EQ(table.size(), 65u);
  for (std::size_t r = 0; r < 64; r++)
    EXPECT_DOUBLE_EQ(std::stod(table[r + 1].back()), 2 * std::numbers::pi / scaled->frequency[r]);
}

TEST_F(Plot, TheModelsWavelengthsStandBesideTheUnscaled) {
  const std::string out = posenc("plot wavelengths --model llama-3.1-8b --at 131072 --csv -").out;
  EXPECT_TRUE(has(out, "as the model turns,0,6.28318"));
  EXPECT_TRUE(has(out, "before the scaling,63,"));
}

// A row of numbers() that begins with a series and a pair.
double turns_of(const std::string& csv, const std::string& start) {
  const std::size_t at = csv.find('\n' + start + ',');
  return at == csv.npos ? -1 : std::stod(csv.substr(at + start.size() + 2));
}

TEST_F(Plot, APairOfALargerPictureComesRoundBeyondATurn) {
  const std::string csv = posenc("plot axes --to 4096x4096 --csv -").out;
  const double turn = 2 * std::numbers::pi;
  EXPECT_DOUBLE_EQ(turns_of(csv, "in training,0"), 64 / turn) << csv;
  EXPECT_DOUBLE_EQ(turns_of(csv, "as_is,0"), 256 / turn);
  EXPECT_GT(turns_of(csv, "as_is,11"), 1);
  EXPECT_LT(turns_of(csv, "in training,8"), 1);
  EXPECT_EQ(turns_of(csv, "linear,20"), turns_of(csv, "in training,20"));
}

TEST_F(Plot, AVideoThatIsOnlyLongerShowsItsTimeAlone) {
  const std::string csv =
      posenc("plot axes --class WanTransformer3DModel --to 161x480x832 --csv -").out;
  EXPECT_TRUE(has(csv, "riflex,")) << csv;
  EXPECT_FALSE(has(csv, "height")) << csv;
}

TEST_F(Plot, BiasesAreTheSlopesTimesTheDistance) {
  for (const auto& row : numbers("bias --scheme alibi --heads 8 --length 6 --show 1")) {
    if (row[0] == "key_position" || row[2].empty()) continue;
    const double key = std::stod(row[0]), query = std::stod(row[1]);
    EXPECT_LE(key, query);
    EXPECT_DOUBLE_EQ(std::stod(row[2]), -0.25 * (query - key) + 0.0);
  }
}

TEST_F(Plot, SimilarityOfWavesDependsOnTheDistanceAlone) {
  std::vector<std::vector<double>> by_distance(16);
  const auto table = numbers("similarity --width 64 --positions 0:16");
  for (std::size_t i = 1; i < table.size(); i++)
    by_distance[static_cast<std::size_t>(std::abs(std::stod(table[i][0]) - std::stod(table[i][1])))]
        .push_back(std::stod(table[i][2]));
  for (const std::vector<double>& same : by_distance)
    for (const double value : same) EXPECT_NEAR(value, same[0], 1e-14);
}

TEST_F(Plot, StairsStartWhereT5sBucketsDo) {
  const std::string out = posenc("plot buckets --kind t5 --csv -").out;
  EXPECT_TRUE(has(out, "\"T5, causal\",-15,15\n"));
  EXPECT_TRUE(has(out, "\"T5, causal\",-16,16\n"));
  EXPECT_TRUE(has(out, "\"T5, causal\",-18,16\n"));
  EXPECT_TRUE(has(out, "\"T5, causal\",-19,17\n"));
  EXPECT_TRUE(has(out, "\"T5, causal\",-113,31\n"));
}

TEST_F(Plot, FloatAnglesAreOffByWhatWasMeasured) {
  // Errors of cos and sin of 1.9e-3 and 4.9e-3 were measured at 32k, 6.2e-2 and 0.15 at 1M; the
  // angle's own error bounds them, and a window of positions differs by less than a factor of 2.
  const auto worst = [&](const std::string& name, double from, double to) {
    double most = 0;
    for (const auto& row : numbers("phase"))
      if (row[0] == name && std::stod(row[1]) >= from && std::stod(row[1]) <= to)
        most = std::max(most, std::stod(row[2]));
    return most;
  };
  EXPECT_NEAR(std::log2(worst("float product (Hugging Face)", 30000, 33000) / 1.9e-3), 0, 1);
  EXPECT_NEAR(std::log2(worst("double (posenc)", 30000, 33000) / 3.3e-12), 0, 1);
  const auto ggml = [&](double from, double to) {
    double most = 0;
    const std::string out = posenc("plot phase --csv -").out;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("\"float, pair after pair (ggml)\",")) continue;
      const std::string rest = line.substr(line.find("\",") + 2);
      const double at = std::stod(rest), error = std::stod(rest.substr(rest.find(',') + 1));
      if (at >= from && at <= to) most = std::max(most, error);
    }
    return most;
  };
  EXPECT_NEAR(std::log2(ggml(30000, 33000) / 4.9e-3), 0, 1);
}

TEST_F(Plot, BadFlagsSayTheCure) {
  const struct {
    const char *arguments, *says;
  } cases[] = {
      {"plot heatmpa x.png", "did you mean heatmap?"},
      {"plot heatmap", "--csv -"},
      {"plot heatmap x.jpg", ".png, .svg or .pdf"},
      {"plot heatmap x.png --size 10", "1500x1000"},
      {"plot heatmap x.png --size 99999x99999", "10000x10000"},
      {"plot heatmap x.png --positions 9:3", "the end must lie after"},
      {"plot heatmap x.png --positions 0:99999999999", "fewer positions"},
      {"plot heatmap x.png --scheme alibi", "adds no vectors"},
      {"plot heatmap x.png --scheme t5", "adds no vectors"},
      {"plot heatmap x.png --scheme learned --rows 9 --positions 0:9", "--table"},
      {"plot similarity x.png --scheme rope", "adds no vectors"},
      {"plot bias x.png --scheme rope", "no bias"},
      {"plot bias x.png --scheme t5", "--table"},
      {"plot moves x.png --tokens 1", "2 to 4096"},
      {"plot axes x.png --to 4096", "HEIGHTxWIDTH"},
      {"plot axes x.png --to 64x64 --class 'a\"b'", "--class"},
      {"plot axes x.png --to 64x64 --model gpt2", "diffusion transformers"},
      {"plot moves x.png --scheme fope", "FoPE"},
      {"plot turns x.png --pairs 32", "0 to 31"},
      {"plot turns x.png --scheme alibi", "rotates nothing"},
      {"plot lock x.svg --turn 49", "2 to 48"},
      {"plot channels x.png --channels ''", "at least one"},
      {"plot wavelengths x.png --model none-such", "none-such"},
      {"plot wavelengths x.png --model gpt2", "nothing rotates"},
      {"plot wavelengths x.png --scalings longrope", "--model"},
      {"plot phase x.png --heda_dim 8", "did you mean --head_dim?"},
      {"plot decay x.png --head 9", "0 to 7"},
      {"plot heatmap missing/x.png", "cannot be written"},
      {"plot all stdout", "folder"},
  };
  for (const auto& [arguments, says] : cases) {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(outcome.err.starts_with("posenc: ")) << arguments << ": " << outcome.err;
    EXPECT_TRUE(has(outcome.err, says)) << arguments << ": " << outcome.err;
    EXPECT_EQ(files(), (std::vector<std::string>{"stderr", "stdout"})) << arguments;
  }
}

TEST_F(Plot, AMissingGnuplotIsNamedWithItsPackage) {
  const Outcome outcome = posenc("> /dev/null; PATH=/none '" + posenc::test::command_path() +
                                 std::string("' plot phase x.png"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "apt-get install gnuplot-nox")) << outcome.err;
}

// A gnuplot that never ends goes when posenc is told to.
TEST_F(Plot, ASignalEndsGnuplotToo) {
  write("gnuplot", "#!/bin/sh\necho $$ > pid\nexec sleep 100\n");
  std::filesystem::permissions(path("gnuplot"), std::filesystem::perms::owner_all);
  for (const char* signal : {"TERM", "HUP"}) {
    std::filesystem::remove(path("pid"));
    const Outcome ended =
        run("{ PATH=.:$PATH '" + posenc::test::command_path() +
            "' plot heatmap out.png & plot=$!; n=0; until [ -s pid ] || [ $n -gt 200 ]; do "
            "sleep 0.05; n=$((n + 1)); done; kill -" +
            signal +
            " $plot; wait $plot; sleep 0.1; ! grep -q '^State:[[:space:]]*[A-Y]' /proc/$(cat "
            "pid)/status; }");
    EXPECT_EQ(ended.code, 0) << signal << ended.err;
  }
}

TEST_F(Plot, HostileNamesAreTextAndNothingElse) {
  const std::string hostile =
      "`touch pwned`'; system('touch pwned') # @a _{b} \"$(touch pwned)\"\n\xff";
  for (const Format format : {Format::png, Format::svg, Format::pdf}) {
    Figure figure;
    figure.title = hostile;
    Panel panel;
    panel.title = hostile;
    panel.x = {.label = hostile, .column = hostile};
    panel.y = {.label = hostile, .column = "y"};
    panel.series.push_back({.name = hostile, .x = {0, 1}, .y = {0, 1}});
    panel.rules.push_back({0.5, hostile});
    panel.notes.push_back({0.5, 0.5, hostile});
    figure.panels.push_back(panel);
    const auto bytes = picture(figure, format, {});
    ASSERT_TRUE(bytes) << bytes.error().message();
  }
  EXPECT_FALSE(std::filesystem::exists("pwned"));
  // A quote ends nothing, and no character but a quote counts within.
  EXPECT_EQ(in_quotes("it's `x`\n\xff"), "'it''s `x` \uFFFD'");
}

TEST_F(Plot, AModelsHostileNameReachesNoInterpreter) {
  const std::string folder = "m`touch pwned`'_{x}@y";
  std::filesystem::create_directories(folder_ / folder);
  write(folder + "/config.json", posenc("models llama-2-7b").out);
  const Outcome outcome = posenc("plot wavelengths x.svg --model 'm`touch pwned`'\\''_{x}@y'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{folder, "stderr", "stdout", "x.svg"}));
}

TEST(Gnuplot, ItsComplaintIsPassedOn) {
  const auto outcome = gnuplot("set terminal pngcairo\nplot nonsense(\n");
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(has(outcome.error().message(), "invalid expression;")) << outcome.error().message();
}

TEST(Shrink, APatternThatWouldAliasBecomesItsMean) {
  // Every other row is 1 and −1: picking every 10th would show all of one colour.
  Matrix stripes{1000, 3, {}, 0, 0};
  for (int r = 0; r < 1000; r++) stripes.values.insert(stripes.values.end(), 3, r % 2 ? -1.0 : 1.0);
  // Mirrored at the edges the pattern stumbles, by half of one cell in ten.
  for (const std::int64_t rows : {100, 97}) {
    const Matrix small = resampled(stripes, rows, 3);
    for (std::int64_t r = 0; r < rows; r++)
      EXPECT_LE(std::abs(small.values[static_cast<std::size_t>(3 * r)]), r == 0 || r == rows - 1
                                                                             ? 0.0501
                                                                         : rows == 100 ? 1e-12
                                                                                       : 1e-3)
          << r;
  }
}

TEST(Shrink, WavesTooFastForThePictureFade) {
  // In periods to the new cell. A tent passes sinc² of that: 4.7% at most above one, where a plain
  // mean passes 22%.
  for (const double fast : {1.0, 1.2, 1.43, 2.0, 2.46, 7.7}) {
    Matrix wave{5000, 1, {}, 0, 0};
    for (int r = 0; r < 5000; r++)
      wave.values.push_back(std::sin(2 * std::numbers::pi * fast * r * 200 / 5000));
    const std::vector<double> seen = resampled(wave, 200, 1).values;
    for (std::size_t i = 1; i + 1 < seen.size(); i++) EXPECT_LT(std::abs(seen[i]), 0.05) << fast;
  }
}

TEST(Shrink, TheMeanOfAllIsKept) {
  Matrix matrix{37, 53, {}, 0, 0};
  double sum = 0;
  for (int i = 0; i < 37 * 53; i++) {
    matrix.values.push_back(std::sin(i * 0.7) + 0.3);
    sum += matrix.values.back();
  }
  const Matrix small = resampled(matrix, 5, 7);
  double shrunk = 0;
  for (const double value : small.values) shrunk += value;
  EXPECT_NEAR(shrunk / 35, sum / (37 * 53), 1e-12);
}

TEST(Shrink, CellsThatAreNotThereWeighNothing) {
  const Matrix matrix{2, 2, {from_data, 4, from_data, from_data}, 0, 0};
  EXPECT_EQ(resampled(matrix, 1, 1).values[0], 4);
  EXPECT_TRUE(std::isnan(resampled(matrix, 2, 1).values[1]));
}

TEST(Shrink, ALineKeepsItsExtremes) {
  Series line;
  for (int i = 0; i < 100000; i++) {
    line.x.push_back(i);
    line.y.push_back(i == 54321 ? 9 : std::sin(i));
  }
  const Series thin = thinned(line, 500, 0, 99999, false);
  EXPECT_LE(thin.x.size(), 2004u);
  EXPECT_EQ(*std::max_element(thin.y.begin(), thin.y.end()), 9);
  EXPECT_EQ(thin.x.front(), 0);
  EXPECT_EQ(thin.x.back(), 99999);
}

TEST(Colours, LightnessOfTheSequentialMapFalls) {
  double before = 256;
  for (int i = 0; i <= 100; i++) {
    const Colour c = sequential(i / 100.0);
    const double lightness = 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue;
    EXPECT_LT(lightness, before);
    before = lightness;
  }
}

// web/test/colour.test.ts holds the same.
TEST(Colours, AreThoseOfThePlayground) {
  EXPECT_EQ(diverging(-1), (Colour{158, 48, 0}));
  EXPECT_EQ(diverging(-0.5), (Colour{207, 149, 123}));
  EXPECT_EQ(diverging(0.5), (Colour{126, 169, 213}));
  EXPECT_EQ(diverging(1), (Colour{0, 91, 175}));
  EXPECT_EQ(sequential(0), (Colour{238, 238, 238}));
  EXPECT_EQ(sequential(0.5), (Colour{0, 143, 130}));
  EXPECT_EQ(sequential(1), (Colour{22, 22, 22}));
}

TEST(Colours, ZeroIsNearlyWhiteInADivergingMap) {
  EXPECT_EQ(colour_of({.least = -3, .most = 1, .diverging = true}, 0), (Colour{245, 245, 245}));
}

TEST(Ticks, NumbersAreRoundAndReadable) {
  EXPECT_EQ(tick_text(-0.5), "−0.5");
  EXPECT_EQ(tick_text(10000), "10,000");
  EXPECT_EQ(tick_text(1e6), "1M");
  EXPECT_EQ(tick_text(1e-6), "10⁻⁶");
  const Ticks ticks = ticks_of(0, 99, false, 10);
  ASSERT_EQ(ticks.size(), 10u);
  EXPECT_EQ(ticks[3].second, "30");
}

}  // namespace
