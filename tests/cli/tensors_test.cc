// rotate, add, table and bias on files.
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "posenc/schemes.h"
#include "tests/cli/arrays.h"

namespace {

using namespace posenc::cli;
using posenc::Expected;
using posenc::Tensor;
using posenc::test::has;
using posenc::test::Outcome;

class TensorCommand : public posenc::test::ArrayTest {
 protected:
  std::vector<std::int64_t> shape(const std::string& name) const {
    const Expected<Array> array = read_array(path(name));
    return array ? array->shape : std::vector<std::int64_t>{};
  }
  void expect_good(const std::string& arguments) const {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  }
};

TEST_F(TensorCommand, InverseUndoesRotateInEveryType) {
  const struct {
    NpyType type;
    const char* dtype;
    double tolerance;
  } kinds[] = {{NpyType::f64, "", 1e-13},
               {NpyType::f32, "", 1e-6},
               {NpyType::f16, "", 2e-3},
               {NpyType::u16, " --dtype bfloat16", 2e-2}};
  for (const auto& [type, dtype, tolerance] : kinds) {
    make("x.npy", type, {2, 9, 64});
    const std::string flags = std::string(" --scheme rope --positions 100:109") + dtype;
    expect_good("rotate x.npy y.npy" + flags);
    expect_good("rotate y.npy back.npy --inverse" + flags);
    EXPECT_EQ(read_array(path("y.npy"))->type, type);
    EXPECT_GT(difference("x.npy", "y.npy"), 0.1);
    EXPECT_LT(difference("x.npy", "back.npy"), tolerance) << name(type);
  }
}

TEST_F(TensorCommand, TensorsOfSafetensorsFilesGoInAndOut) {
  for (const NpyType type : {NpyType::f64, NpyType::f32, NpyType::f16, NpyType::bf16}) {
    make("x.npy", type, {2, 9, 64});
    make("x.safetensors:q", type, {2, 9, 64});
    const std::string flags = " --scheme rope --positions 100:109";
    expect_good("rotate x.npy y.npy" + flags + (type == NpyType::bf16 ? " --dtype bfloat16" : ""));
    expect_good("rotate x.safetensors:q y.safetensors:rotated" + flags);
    EXPECT_EQ(difference("y.npy", "y.safetensors:rotated"), 0) << name(type);
    EXPECT_EQ(read_array(path("y.safetensors:rotated"))->type, type);
  }
}

TEST_F(TensorCommand, AFileOfOneTensorNeedsNoName) {
  make("x.safetensors", NpyType::f32, {1, 3, 4});
  expect_good("rotate x.safetensors y.npy --scheme rope --positions 0:3");
  EXPECT_EQ(read_array(path("x.safetensors:tensor"))->shape, (std::vector<std::int64_t>{1, 3, 4}));
}

TEST_F(TensorCommand, ATensorThatIsNotThereIsNamed) {
  make("x.safetensors:query", NpyType::f32, {1, 3, 4});
  const Outcome refused = posenc("rotate x.safetensors:qeury y.npy --scheme rope --positions 0:3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "did you mean 'query'?")) << refused.err;
}

TEST_F(TensorCommand, StandardInputIsNpyOrSafetensors) {
  make("x.npy", NpyType::f32, {1, 3, 4});
  make("x.safetensors", NpyType::f32, {1, 3, 4});
  const std::string flags = " --scheme rope --positions 0:3";
  expect_good("rotate x.npy wanted.npy" + flags);
  for (const char* file : {"x.npy", "x.safetensors"}) {
    expect_good(std::string("rotate - y.npy") + flags + " < " + file);
    EXPECT_EQ(difference("wanted.npy", "y.npy"), 0) << file;
  }
  EXPECT_EQ(posenc("rotate - y.npy" + flags + " < /dev/null").code, 2);
}

TEST_F(TensorCommand, AttendTakesTensorsOfOneFileInBfloat16) {
  make("x.npy", NpyType::u16, {2, 9, 64});
  make("x.safetensors:x", NpyType::bf16, {2, 9, 64});
  expect_good("attend a.npy --q x.npy --k x.npy --v x.npy --scheme rope --dtype bfloat16");
  expect_good(
      "attend a.safetensors:out --q x.safetensors:x --k x.safetensors:x --v x.safetensors:x "
      "--scheme rope");
  EXPECT_EQ(difference("a.npy", "a.safetensors:out"), 0);
}

TEST_F(TensorCommand, IdentifyTakesTensorsOfFiles) {
  make("x.safetensors:q", NpyType::bf16, {2, 64, 32});
  expect_good("rotate x.safetensors:q y.safetensors:q --scheme rope --positions 0:64");
  const Outcome found = posenc("identify --before x.safetensors:q --after y.safetensors:q");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_TRUE(has(found.out, "10,000") || has(found.out, "10000")) << found.out;
}

TEST_F(TensorCommand, PositionsAreATensorOfAFile) {
  make("x.npy", NpyType::f32, {1, 3, 4});
  Array ids = *make_array(NpyType::i64, {3});
  const std::int64_t at[] = {5, 0, 9};
  std::memcpy(ids.data.data(), at, sizeof at);
  ASSERT_TRUE(write_array(path("ids.safetensors:ids"), ids));
  expect_good("rotate x.npy a.npy --scheme rope --positions 5,0,9");
  expect_good("rotate x.npy b.npy --scheme rope --positions ids.safetensors:ids");
  EXPECT_EQ(difference("a.npy", "b.npy"), 0);
}

// More numbers than one part has.
TEST_F(TensorCommand, PartsOfALongTensorAreRotatedAsItsWhole) {
  make("long.npy", NpyType::f32, {1, 300000, 64});
  expect_good("rotate long.npy y.npy --scheme rope --positions 0:300000");
  Array whole = array("y.npy"), given = array("long.npy");
  Array end = *make_array(NpyType::f32, {1, 20000, 64});
  const std::size_t last = given.data.size() - end.data.size();
  std::memcpy(end.data.data(), given.data.data() + last, end.data.size());
  ASSERT_TRUE(write_npy(path("end.npy"), end));
  expect_good("rotate end.npy z.npy --scheme rope --positions 280000:300000");
  EXPECT_EQ(std::memcmp(array("z.npy").data.data(), whole.data.data() + last, end.data.size()), 0);
}

TEST_F(TensorCommand, RotateTurnsPairsByPositionTimesFrequency) {
  make("x.npy", NpyType::f64, {1, 1, 4});
  expect_good("rotate x.npy y.npy --scheme rope --rope_theta 100 --positions 3");
  const auto x = values("x.npy"), y = values("y.npy");
  EXPECT_NEAR(y[0], x[0] * std::cos(3.0) - x[2] * std::sin(3.0), 1e-15);
  EXPECT_NEAR(y[3], x[1] * std::sin(0.3) + x[3] * std::cos(0.3), 1e-15);
}

TEST_F(TensorCommand, RealPositionsAreAFileOfFloats) {
  make("x.npy", NpyType::f64, {1, 2, 4});
  Array at = *make_array(NpyType::f64, {2});
  tensor(at).set(0, -2.5);
  tensor(at).set(1, 0.125);
  ASSERT_TRUE(write_npy(path("at.npy"), at));
  expect_good("rotate x.npy y.npy --scheme rope --rope_theta 100 --positions at.npy");
  const auto x = values("x.npy"), y = values("y.npy");
  EXPECT_NEAR(y[0], x[0] * std::cos(-2.5) - x[2] * std::sin(-2.5), 1e-15);
  EXPECT_NEAR(y[7], x[5] * std::sin(0.0125) + x[7] * std::cos(0.0125), 1e-15);
  expect_good("rotate y.npy back.npy --scheme rope --rope_theta 100 --positions at.npy --inverse");
  EXPECT_LT(difference("x.npy", "back.npy"), 1e-15);
}

TEST_F(TensorCommand, AnglesMayBeGiven) {
  make("x.npy", NpyType::f64, {2, 3, 4});
  make("angles.npy", NpyType::f64, {3, 2});
  expect_good("rotate x.npy y.npy --scheme rope --by angles.npy");
  const auto x = values("x.npy"), y = values("y.npy"), angle = values("angles.npy");
  for (std::size_t h = 0; h < 2; h++)
    for (std::size_t t = 0; t < 3; t++) {
      const std::size_t at = (h * 3 + t) * 4;
      EXPECT_NEAR(y[at], x[at] * std::cos(angle[2 * t]) - x[at + 2] * std::sin(angle[2 * t]),
                  1e-14);
    }
}

TEST_F(TensorCommand, AxesMayStandAnywhere) {
  make("x.npy", NpyType::f64, {3, 5, 8});  // [head][seq][dim]
  expect_good("rotate x.npy y.npy --scheme rope --positions 0:5");
  Array x = *read_array(path("x.npy"));
  Array moved = *make_array(NpyType::f64, {5, 3, 8});
  const auto move = [&](Array& from, Array& to) {
    for (std::int64_t h = 0; h < 3; h++)
      for (std::int64_t t = 0; t < 5; t++)
        for (std::int64_t d = 0; d < 8; d++)
          tensor(to).set((t * 3 + h) * 8 + d, tensor(from).get((h * 5 + t) * 8 + d));
  };
  move(x, moved);
  ASSERT_TRUE(write_npy(path("xm.npy"), moved));
  for (const char* axes : {"--seq_axis 0 --head_axis 1", "--seq_axis 0", "--head-axis -2"}) {
    expect_good("rotate xm.npy ym.npy --scheme rope --positions 0:5 " + std::string(axes));
    Array y = *read_array(path("y.npy"));
    Array expected = moved;
    move(y, expected);
    EXPECT_EQ(read_array(path("ym.npy"))->data, expected.data) << axes;
  }
}

TEST_F(TensorCommand, TwoAndFourAxesAreRotatedLikeThree) {
  make("x.npy", NpyType::f32, {1, 6, 8});
  expect_good("rotate x.npy y.npy --scheme rope --positions 0:6");
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{6, 8}, {1, 1, 6, 8}}) {
    Array x = *read_array(path("x.npy"));
    x.shape = dims;
    ASSERT_TRUE(write_npy(path("other.npy"), x));
    expect_good("rotate other.npy out.npy --scheme rope --positions 0:6");
    EXPECT_EQ(shape("out.npy"), dims);
    EXPECT_EQ(values("out.npy"), values("y.npy"));
  }
}

TEST_F(TensorCommand, AModelRotatesAsItsFieldsDo) {
  make("x.npy", NpyType::f32, {2, 7, 128});
  expect_good("rotate x.npy a.npy --model llama-3.1-8b --positions 1000:1007");
  expect_good(
      "rotate x.npy b.npy --scheme rope --theta 5e5 --rope-type llama3 --factor 8 "
      "--low_freq_factor 1 "
      "--high_freq_factor 4 --original_max_position_embeddings 8192 --positions 1000:1007");
  EXPECT_EQ(text("a.npy"), text("b.npy"));
}

TEST_F(TensorCommand, AModelsHeadDimIsChecked) {
  make("x.npy", NpyType::f32, {2, 7, 64});
  const Outcome outcome = posenc("rotate x.npy a.npy --model llama-3.1-8b --positions 0:7");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "head_dim must be 128, got 64")) << outcome.err;
}

TEST_F(TensorCommand, WhereNothingRotatesTheShapeIsNotBlamed) {
  make("x.npy", NpyType::f32, {2, 7, 128});
  const Outcome outcome = posenc("rotate x.npy a.npy --model bert-base-uncased --positions 0:7");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "this encoding rotates nothing")) << outcome.err;
}

TEST_F(TensorCommand, LayersThatDifferMustBeChosen) {
  make("x.npy", NpyType::f32, {1, 3, 256});
  EXPECT_EQ(posenc("rotate x.npy y.npy --model gemma-3-4b --positions 0:3").code, 2);
  expect_good("rotate x.npy local.npy --model gemma-3-4b --positions 0:3 --layer 0");
  expect_good("rotate x.npy global.npy --model gemma-3-4b --positions 0:3 --layer 5");
  EXPECT_GT(difference("local.npy", "global.npy"), 0.01);
}

TEST_F(TensorCommand, InAndOutMayBeTheSameFile) {
  make("x.npy", NpyType::f32, {1, 3, 8});
  expect_good("rotate x.npy y.npy --scheme rope --positions 0:3");
  expect_good("rotate x.npy x.npy --scheme rope --positions 0:3");
  EXPECT_EQ(text("x.npy"), text("y.npy"));
}

TEST_F(TensorCommand, AFailedRunLeavesTheOutputAsItWas) {
  make("x.npy", NpyType::f32, {1, 3, 7});
  write("y.npy", "precious");
  EXPECT_EQ(posenc("rotate x.npy y.npy --scheme rope --positions 0:3").code, 2);
  EXPECT_EQ(text("y.npy"), "precious");
}

TEST_F(TensorCommand, BadRequestsAreBadInput) {
  make("x.npy", NpyType::f32, {1, 3, 8});
  for (const char* flags :
       {"--positions 0:3", "--scheme rope --positions 0:4", "--scheme rope --positions 0:3:1",
        "--scheme rope --positions 0:3 --num_buckets 3", "--scheme rope --positions 0:3 --factor 2",
        "--scheme rope --rope_type yarn --positions 0:3", "--scheme roep --positions 0:3",
        "--scheme rope --rope_theta 0.5 --positions 0:3", "--scheme rope --positions 0:3 --side v",
        "--scheme rope --positions 0:3 --head_axis 3", "--scheme rope --model gpt2 --positions 0:3",
        "--scheme rope --positions 0:3 --seq_axis 0 --head_axis 0",
        "--scheme alibi --heads 1 --positions 0:3", "--scheme rope --positions 0:3 --head_dim 16",
        "--scheme rope --positions 0:3 --dtype float64", "--model gpt2 --positions 0:3",
        "--scheme rope"}) {
    const Outcome outcome = posenc(std::string("rotate x.npy y.npy ") + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_TRUE(outcome.err.starts_with("posenc: ")) << outcome.err;
  }
}

TEST_F(TensorCommand, ATableHoldsTheSinusoids) {
  expect_good("table t.npy --scheme sinusoidal --width 4 --positions 0:3 --dtype float64");
  EXPECT_EQ(shape("t.npy"), (std::vector<std::int64_t>{3, 4}));
  const auto t = values("t.npy");
  EXPECT_EQ(t[0], 0);
  EXPECT_EQ(t[1], 1);
  EXPECT_NEAR(t[8], std::sin(2.0), 1e-15);
  EXPECT_NEAR(t[11], std::cos(0.02), 1e-15);
  expect_good("table t.npy --scheme sinusoidal --width 4 --positions 0:3");
  EXPECT_EQ(read_array(path("t.npy"))->type, NpyType::f32);
}

// By the ending of the name, and nothing by another.
TEST_F(TensorCommand, ArraysAreTextWhereTheNameSaysSo) {
  const std::string flags = " --scheme sinusoidal --width 4 --positions 0:3";
  expect_good("table t.npy" + flags);
  const std::vector<double> wanted = values("t.npy");
  expect_good("table t.csv" + flags);
  expect_good("table t.txt" + flags);
  EXPECT_EQ(text("t.csv"), text("t.txt"));
  const Outcome printed = posenc("table -" + flags);
  EXPECT_EQ(printed.out, text("t.csv"));
  EXPECT_FALSE(std::filesystem::exists(path("-")));
  const auto lines = posenc::test::lines_of(printed.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "0,1,0,1");
  std::size_t at = 0;
  for (const std::string& line : lines) {
    std::istringstream row(line);
    for (std::string number; std::getline(row, number, ',');)
      EXPECT_EQ(static_cast<float>(std::stod(number)), static_cast<float>(wanted[at++]));
  }
  EXPECT_EQ(at, wanted.size());
  for (const char* name : {"t.pt", "t", "t.npz", "t.gguf"}) {
    const Outcome refused = posenc(std::string("table ") + name + flags);
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_TRUE(has(refused.err, ".npy, .safetensors, .csv or .txt")) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(path(name)));
  }
}

TEST_F(TensorCommand, EveryCommandThatWritesAnArrayWritesText) {
  make("x.npy", NpyType::u16, {1, 2, 3, 4});
  make("e.npy", NpyType::f32, {3, 4});
  for (const std::string& line : std::vector<std::string>{
           "rotate x.npy OUT --scheme rope --positions 0:3 --dtype bfloat16",
           "attend OUT --q x.npy --k x.npy --v x.npy --scheme nope --dtype bfloat16",
           "add e.npy OUT --scheme sinusoidal --positions 0:3",
           "bias OUT --scheme alibi --heads 2 --queries 3 --keys 3",
           "resample e.npy OUT --from 3x1 --to 2x1", "positions OUT --packed 0,2,3"}) {
    const auto into = [&](const std::string& out) {
      std::string with = line;
      return with.replace(with.find("OUT"), 3, out);
    };
    expect_good(into("out.csv"));
    EXPECT_GT(text("out.csv").size(), 5u) << line;
    EXPECT_FALSE(has(text("out.csv"), "NUMPY")) << line;
    EXPECT_EQ(posenc(into("-")).out, text("out.csv")) << line;
    EXPECT_EQ(posenc(into("out.pt")).code, 2) << line;
  }
}

TEST_F(TensorCommand, ATableOfAnOddWidthIsTheOneOfDouble) {
  for (const std::string width : {"1", "3", "17", "31", "63", "127", "511"}) {
    SCOPED_TRACE(width);
    const std::string table = " --scheme sinusoidal --positions 0:16 --width " + width;
    expect_good("table exact.npy --dtype float64" + table);
    const auto exact = values("exact.npy");
    for (const std::string dtype : {"float32", "float16"}) {
      expect_good("table t.npy --dtype " + dtype + table);
      const auto t = values("t.npy");
      ASSERT_EQ(t.size(), exact.size());
      for (std::size_t i = 0; i < t.size(); ++i) ASSERT_NEAR(t[i], exact[i], 1e-3) << dtype << i;
    }
  }
}

TEST_F(TensorCommand, AddTakesAnOddWidth) {
  make("x.npy", NpyType::f32, {1, 5, 17});
  expect_good("add x.npy sum.npy --scheme sinusoidal --positions 0:5");
  expect_good("table t.npy --scheme sinusoidal --width 17 --positions 0:5 --dtype float64");
  const auto x = values("x.npy"), sum = values("sum.npy"), t = values("t.npy");
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(sum[i], x[i] + t[i], 1e-6);
}

TEST_F(TensorCommand, AddIsEmbeddingPlusTable) {
  make("x.npy", NpyType::f64, {5, 6});
  expect_good("add x.npy sum.npy --scheme sinusoidal --positions 2:7");
  expect_good("table t.npy --scheme sinusoidal --width 6 --positions 2:7 --dtype float64");
  const auto x = values("x.npy"), sum = values("sum.npy"), t = values("t.npy");
  for (std::size_t i = 0; i < x.size(); i++) EXPECT_NEAR(sum[i], x[i] + t[i], 1e-15);
}

TEST_F(TensorCommand, VectorsStandAtThePatchesOfAPicture) {
  const std::string scheme = " --scheme sinusoidal --axes_dim 4,4 --width 8 --dtype float64";
  expect_good("table grid.npy --positions 2x3" + scheme);
  EXPECT_EQ(shape("grid.npy"), (std::vector<std::int64_t>{6, 8}));
  const std::vector<double> rows = values("grid.npy");
  EXPECT_NEAR(rows[5 * 8 + 0], std::sin(1.0), 1e-15);
  EXPECT_NEAR(rows[5 * 8 + 4], std::sin(2.0), 1e-15);
  EXPECT_TRUE(has(posenc("table grid.npy --positions 2x" + scheme).err, "HEIGHTxWIDTH"));
}

TEST_F(TensorCommand, VectorsStandAtRealPositionsOfAFileOfFloats) {
  make("at.npy", NpyType::f64, {2, 5});
  make("x.npy", NpyType::f64, {5, 8});
  const std::string scheme = " --scheme sinusoidal --axes_dim 4,4 --positions at.npy";
  expect_good("table rows.npy --width 8 --dtype float64" + scheme);
  expect_good("add x.npy sum.npy" + scheme);
  const std::vector<double> at = values("at.npy"), rows = values("rows.npy"), x = values("x.npy"),
                            sum = values("sum.npy");
  EXPECT_NEAR(rows[8 + 5], std::cos(at[6]), 1e-15);
  EXPECT_NEAR(sum[8 + 5], x[8 + 5] + rows[8 + 5], 1e-15);
}

TEST_F(TensorCommand, ALearnedTableIsResampledForAnotherGrid) {
  make("table.npy", NpyType::f64, {1 + 6, 3});
  expect_good("resample table.npy out.npy --from 2x3 --to 2x5 --align_corners --kept_rows 1");
  EXPECT_EQ(shape("out.npy"), (std::vector<std::int64_t>{11, 3}));
  const std::vector<double> table = values("table.npy"), out = values("out.npy");
  EXPECT_EQ(out[0], table[0]);
  EXPECT_NEAR(out[2 * 3], (table[1 * 3] + table[2 * 3]) / 2, 1e-15);
  EXPECT_TRUE(has(posenc("resample table.npy out.npy --from 2x4 --to 2x5").err, "table must"));
}

// As SAM 2 puts its table together.
TEST_F(TensorCommand, AWindowsTableIsAddedToAStretchedOne) {
  make("stretched.npy", NpyType::f64, {4 * 4, 3});
  make("window.npy", NpyType::f64, {2 * 2, 3});
  expect_good(
      "resample window.npy out.npy --from 2x2 --to 4x4 --interpolation repeated "
      "--onto stretched.npy");
  const std::vector<double> big = values("stretched.npy"), small = values("window.npy"),
                            out = values("out.npy");
  EXPECT_EQ(out[(3 * 4 + 2) * 3], big[(3 * 4 + 2) * 3] + small[(1 * 2 + 0) * 3]);
  EXPECT_TRUE(has(posenc("resample window.npy out.npy --from 2x2 --to 4x3 --interpolation repeated "
                         "--onto stretched.npy")
                      .err,
                  "must be [12, 3]"));
}

TEST_F(TensorCommand, LearnedVectorsComeFromTheirTable) {
  make("wpe.npy", NpyType::f32, {10, 4});
  expect_good(
      "table t.npy --scheme learned --table wpe.npy --width 4 --positions 2:5 --row_offset 2");
  const auto rows = values("wpe.npy"), t = values("t.npy");
  ASSERT_EQ(t.size(), 12u);
  EXPECT_EQ(t[0], rows[16]);
  const Outcome beyond = posenc(
      "table t.npy --scheme learned --table wpe.npy --width 4 --positions 2:9 --row_offset 2");
  EXPECT_EQ(beyond.code, 2);
}

TEST_F(TensorCommand, AModelsFolderBringsItsTable) {
  const std::string bert = posenc::test::data_path("files/bert");
  expect_good("table t.npy --model " + bert + " --positions 1:3 --dtype float64");
  const auto t = values("t.npy");
  ASSERT_EQ(t.size(), 16u);
  for (std::size_t i = 0; i < t.size(); i++) EXPECT_EQ(t[i], static_cast<double>(8 + i) / 4);
  make("x.npy", NpyType::f64, {6, 8});
  expect_good("add x.npy sum.npy --model " + bert + " --positions 0:6");
  EXPECT_EQ(posenc("add x.npy sum.npy --model " + bert + "/config.json --positions 0:6").code, 2);
}

TEST_F(TensorCommand, ATableMayBeATensorOfAFile) {
  const std::string bert = posenc::test::data_path("files/bert");
  const std::string file = bert + "/model.safetensors";
  const std::string flags = " --scheme learned --width 8 --positions 0:6";
  expect_good("table a.npy --model " + bert + " --positions 0:6");
  expect_good("table b.npy --table " + file + ":bert.embeddings.position_embeddings.weight" +
              flags);
  EXPECT_EQ(text("a.npy"), text("b.npy"));
  const Outcome misspelt =
      posenc("table b.npy --table " + file + ":bert.embeddings.position_embedding.weight" + flags);
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_TRUE(has(misspelt.err, "did you mean 'bert.embeddings.position_embeddings.weight'?"))
      << misspelt.err;
  const Outcome unnamed = posenc("table b.npy --table " + file + flags);
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_TRUE(has(unnamed.err, "holds more tensors than one, got 2")) << unnamed.err;
  EXPECT_EQ(posenc("table b.npy --table none.npy" + flags).code, 2);
}

TEST_F(TensorCommand, BiasOfAModelsFolderIsItsTables) {
  const std::string t5 = posenc::test::data_path("files/t5");
  expect_good("bias b.npy --model " + t5 + " --stack decoder --queries 1 --keys 4 --dtype float64");
  // Distances 3, 2, 1, 0 have their own rows; row r of head h holds (2r + h)/2.
  EXPECT_EQ(values("b.npy"), (std::vector<double>{3, 2, 1, 0, 3.5, 2.5, 1.5, 0.5}));
}

TEST_F(TensorCommand, BiasOfTheLastQueriesIsTheEndOfTheWhole) {
  expect_good("bias all.npy --scheme alibi --heads 3 --queries 6 --keys 6 --dtype float64");
  expect_good("bias last.npy --scheme alibi --heads 3 --queries 1 --keys 6 --dtype float64");
  EXPECT_EQ(shape("all.npy"), (std::vector<std::int64_t>{3, 6, 6}));
  const auto all = values("all.npy"), last = values("last.npy");
  const double slope = posenc::alibi_slopes(3)->at(1);
  EXPECT_EQ(all[36 + 5 * 6 + 2], -3 * slope);
  for (std::size_t h = 0; h < 3; h++)
    for (std::size_t k = 0; k < 6; k++) EXPECT_EQ(last[h * 6 + k], all[h * 36 + 30 + k]);
}

TEST_F(TensorCommand, T5ReadsItsTableByBucketAndHead) {
  make("rel.npy", NpyType::f32, {32, 2});
  expect_good("bias b.npy --scheme t5 --heads 2 --table rel.npy --queries 4 --keys 4");
  const auto rel = values("rel.npy"), b = values("b.npy");
  EXPECT_EQ(b[16 + 3 * 4 + 1], rel[2 * 2 + 1]);  // head 1, distance 2: bucket 2
}

TEST_F(TensorCommand, ALearnedTableThatIsMissingIsAskedFor) {
  for (const char* arguments :
       {"bias b.npy --scheme t5 --heads 2 --queries 4 --keys 4",
        "table t.npy --scheme learned --rows 9 --width 4 --positions 0:4"}) {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, "say --table FILE, of shape")) << outcome.err;
  }
}

}  // namespace
