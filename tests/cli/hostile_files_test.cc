// Files that want to hang, crash or fill the command: each is one line on standard error that names
// the file, the rule and the cure, exit code 2, within ten seconds and 256 MiB of memory.
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cli/command.h"

namespace posenc::test {
namespace {

namespace fs = std::filesystem;

class HostileFile : public CommandTest {
 protected:
  // Memory that is written counts; a mapping of a file does not, however big the file.
  Outcome bounded(const std::string& arguments) const {
    const std::string limit = sanitized ? "" : "ulimit -d 262144; ";
    const std::string seconds = sanitized ? "60" : "10";
    write("run.sh", limit + "exec " + as_ + "timeout " + seconds + " '" + command_path() + "' " +
                        arguments + "\n");
    const std::string shell = "cd '" + folder_.string() + "' && sh run.sh > out.txt 2> err.txt";
    const int status = std::system(shell.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out.txt"),
            text("err.txt")};
  }

  std::string as_;  // a command in front, which runs the rest as somebody else

  void expect_refused(const std::string& arguments,
                      std::initializer_list<std::string> parts) const {
    const Outcome run = bounded(arguments);
    EXPECT_EQ(run.code, 2) << arguments << "\n" << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_LE(run.err.size(), 2000u) << arguments;
    EXPECT_TRUE(run.err.starts_with("posenc: ")) << run.err;
    for (const std::string& part : parts)
      EXPECT_TRUE(has(run.err, part)) << arguments << "\n  said: " << run.err << "  not: " << part;
    for (const char c : run.err) EXPECT_TRUE(c == '\n' || (c & 0xE0) != 0) << run.err;
  }
  void refuses_table(const std::string& file, std::initializer_list<std::string> parts) const {
    expect_refused("table --scheme learned --positions 0:1 --table '" + file + "' o.npy", parts);
    EXPECT_FALSE(fs::exists(path("o.npy"))) << file;
  }
};

// --- bytes ---------------------------------------------------------------------------------------

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
std::string u32(std::uint32_t value) { return raw(value); }
std::string u64(std::uint64_t value) { return raw(value); }
std::string word(std::string_view text) { return u64(text.size()) + std::string(text); }
constexpr std::uint64_t two_to(int power) { return std::uint64_t{1} << power; }

std::string gguf(std::uint64_t tensors, std::uint64_t keys, const std::string& rest = "") {
  return "GGUF" + u32(3) + u64(tensors) + u64(keys) + rest;
}
enum Kind : std::uint32_t {
  u8_kind,
  u32_kind = 4,
  f32_kind = 6,
  string_kind = 8,
  array_kind,
  u64_kind
};
std::string key(std::string_view name, Kind kind, const std::string& value) {
  return word(name) + u32(kind) + value;
}
std::string tensor(std::string_view name, std::initializer_list<std::uint64_t> extents,
                   std::uint64_t offset = 0) {
  std::string bytes = word(name) + u32(static_cast<std::uint32_t>(extents.size()));
  for (const std::uint64_t extent : extents) bytes += u64(extent);
  return bytes + u32(0) + u64(offset);  // F32
}
std::string llama(float theta) {
  return gguf(0, 6,
              key("general.architecture", string_kind, word("llama")) +
                  key("llama.context_length", u32_kind, u32(4096)) +
                  key("llama.embedding_length", u32_kind, u32(512)) +
                  key("llama.block_count", u32_kind, u32(4)) +
                  key("llama.attention.head_count", u32_kind, u32(8)) +
                  key("llama.rope.freq_base", f32_kind, raw(theta)));
}

std::string safetensors(const std::string& header, std::size_t data = 0) {
  return u64(header.size()) + header + std::string(data, '\0');
}
std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets +
         "]}";
}

std::string npy(const std::string& shape, std::size_t data, std::uint16_t longer = 0) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\1\0", 8) + raw(static_cast<std::uint16_t>(header.size() + longer)) +
         header + std::string(data, '\0');
}

const std::string config = R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4,
  "num_attention_heads": 8, "max_position_embeddings": 4096, "rope_theta": )";
const std::string bert = R"({"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2,
  "num_hidden_layers": 1, "max_position_embeddings": 6})";

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  while (times-- > 0) text += part;
  return text;
}

// --- names that are no plain file ----------------------------------------------------------------

// What every reader is asked of every such name.
class NoPlainFile : public HostileFile {
 protected:
  void all_refuse(const std::string& stem, std::initializer_list<std::string> rule,
                  const std::function<void(const std::string&)>& make) const {
    for (const std::string end : {".json", ".gguf"}) {
      make(stem + end);
      expect_refused("explain " + stem + end, {stem + end});
      expect_refused("explain " + stem + end, rule);
    }
    for (const std::string end : {".npy", ".safetensors"}) {
      make(stem + end);
      refuses_table(stem + end, {stem + end});
    }
    expect_refused("rotate --scheme rope --rope_theta 1e4 --positions 0:1 " + stem + ".npy o.npy",
                   {stem + ".npy"});
    expect_refused("positions --mask " + stem + ".npy o.npy", {stem + ".npy"});
  }
};

TEST_F(NoPlainFile, APipeNobodyWritesDoesNotHang) {
  all_refuse("pipe", {"must be a regular file, got a pipe"},
             [&](const std::string& name) { ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0); });
}
TEST_F(NoPlainFile, AnEndlessDeviceIsNotRead) {
  all_refuse("zero", {"must be a regular file, got a pipe, socket or device"},
             [&](const std::string& name) { fs::create_symlink("/dev/zero", path(name)); });
}
TEST_F(NoPlainFile, AFolderIsNoFile) {
  const auto make = [&](const std::string& name) { fs::create_directory(path(name)); };
  make("a.npy");
  refuses_table("a.npy", {"a.npy: must be a regular file, got a folder"});
  make("b.gguf");
  refuses_table("b.gguf:t", {"b.gguf: must be a regular file, got a folder"});
  make("config.json");
  expect_refused("explain .", {"./config.json: must be a regular file, got a folder"});
}
TEST_F(NoPlainFile, ALinkToNothingSaysSo) {
  all_refuse("link", {"is a symbolic link to what is not there"},
             [&](const std::string& name) { fs::create_symlink("nowhere", path(name)); });
}
TEST_F(NoPlainFile, ALinkInACircleSaysSo) {
  all_refuse("loop", {"leads in a circle"},
             [&](const std::string& name) { fs::create_symlink(name, path(name)); });
}
TEST_F(NoPlainFile, AFileOneMayNotReadSaysSo) {
  fs::permissions(folder_,
                  fs::perms::all);  // run as nobody where this is root, who reads every file
  if (geteuid() == 0) as_ = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  if (std::system((as_ + "test -x '" + command_path() + "' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "nobody may not run " << command_path();
  all_refuse("secret", {"Permission denied", "check its permissions"},
             [&](const std::string& name) {
               write(name, "{}");
               fs::permissions(path(name), fs::perms::none);
             });
}
TEST_F(NoPlainFile, AnEmptyFileIsNoneOfTheFormats) {
  for (const char* name : {"e.json", "e.gguf", "e.npy", "e.safetensors"}) write(name, "");
  expect_refused("explain e.json", {"e.json: must be JSON, got the end"});
  expect_refused("explain e.gguf", {"e.gguf: must be a GGUF file, got no bytes"});
  refuses_table("e.npy", {"e.npy: "});
  refuses_table("e.safetensors", {"e.safetensors: must be a safetensors file, got 0 bytes"});
}

// --- GGUF ----------------------------------------------------------------------------------------

struct Damaged {
  const char* name;
  std::string bytes;
  std::vector<std::string> says;
};
void PrintTo(const Damaged& damaged, std::ostream* out) { *out << damaged.name; }

class HostileGguf : public HostileFile, public testing::WithParamInterface<Damaged> {};

TEST_P(HostileGguf, IsRefused) {
  write("m.gguf", GetParam().bytes);
  expect_refused("explain m.gguf", {"m.gguf: "});
  for (const std::string& part : GetParam().says) expect_refused("explain m.gguf", {part});
  refuses_table("m.gguf:t", {"m.gguf"});
}

constexpr auto name_of = [](const auto& damaged) { return std::string(damaged.param.name); };

INSTANTIATE_TEST_SUITE_P(
    Counts, HostileGguf,
    testing::Values(
        Damaged{"tensors_2_63", gguf(two_to(63), 0), {"1048576 tensors", "9223372036854775808"}},
        Damaged{"keys_2_63", gguf(0, two_to(63)), {"65536 metadata keys", "9223372036854775808"}},
        Damaged{"array_2_62",
                gguf(0, 1, key("list", array_kind, u32(u32_kind) + u64(two_to(62)))),
                {"list: has more entries than the file has bytes, got 4611686018427387904"}},
        Damaged{"string_2_63",
                gguf(0, 1, key("text", string_kind, u64(two_to(63)))),
                {"text: ", "9223372036854775808 more wanted"}},
        Damaged{"arrays_of_arrays",
                gguf(0, 1, key("deep", array_kind, repeated(u32(array_kind) + u64(1), 100'000))),
                {"deep: must not be an array of arrays"}},
        Damaged{"axes_2_31",
                gguf(1, 0, word("t") + u32(1u << 31)),
                {"t: has at most 4 axes, got 2147483648"}},
        Damaged{"extents_overflow",
                gguf(1, 0, tensor("t", {two_to(33), two_to(33)})),
                {"t: its extents must multiply to 63 bits, got 8589934592 × 8589934592"}},
        Damaged{"bytes_overflow",
                gguf(1, 0, tensor("t", {two_to(31), two_to(31)})),
                {"t: its size in bytes must fit 63 bits, got 2147483648 × 2147483648"}},
        Damaged{"end_overflows",
                gguf(1, 0, tensor("t", {64}, ~std::uint64_t{31})),
                {"t: its end must fit 64 bits, got offset 18446744073709551584"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Contradictions, HostileGguf,
    testing::Values(Damaged{"key_twice",
                            gguf(0, 2, key("a", u8_kind, "\1") + key("a", u8_kind, "\2")),
                            {"a: each key must stand once"}},
                    Damaged{"tensor_twice",
                            gguf(2, 0, tensor("t", {1}) + tensor("t", {1}, 32)),
                            {"t: each tensor must stand once"}},
                    Damaged{"tensors_overlap",
                            gguf(2, 0, tensor("a", {32}) + tensor("t", {1}, 32)),
                            {"t: tensors must not overlap, got offset 32"}},
                    Damaged{"alignment_0",
                            gguf(0, 1, key("general.alignment", u32_kind, u32(0))),
                            {"general.alignment: must be a power of two", "got 0"}},
                    Damaged{
                        "alignment_huge",
                        gguf(0, 1, key("general.alignment", u64_kind, u64(two_to(63)))),
                        {"general.alignment: must be a power of two", "got 9223372036854775808"}}),
    name_of);

TEST_F(HostileFile, GgufNumbersThatAreNoneNameTheirKey) {
  const std::string rule = "m.gguf: llama.rope.freq_base: must be a number above 1, got ";
  for (const auto& [theta, said] :
       {std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"},
        std::pair{std::numeric_limits<float>::infinity(), "inf"}, std::pair{-1e4F, "-10000"}}) {
    write("m.gguf", llama(theta));
    expect_refused("explain m.gguf", {rule + said});
  }
}

TEST_F(HostileFile, ATensorBeyondTheEndOfAGgufIsNotThere) {
  write("m.gguf", gguf(1, 0, tensor("t", {4, 4}, two_to(40))));
  refuses_table("m.gguf:t", {"t: its numbers must be in the file, got 0 bytes of them"});
}

// --- JSON ----------------------------------------------------------------------------------------

TEST_F(HostileFile, JsonDepthIsBoundedWhateverItsSize) {
  for (const char* part : {"[", "{\"a\":"}) {
    write("deep.json", repeated(part, 3'000'000));
    expect_refused("explain deep.json", {"deep.json: must not nest deeper than 64 levels"});
  }
}

TEST_F(HostileFile, AHundredMegabytesOfBracketsAreNotRead) {
  write("huge.json", std::string(100'000'000, '['));
  expect_refused("explain huge.json", {"huge.json: must be at most 16 MiB, got 100000000 bytes"});
}

TEST_F(HostileFile, JsonOfMillionsOfValuesIsRefused) {
  write("wide.json", "[" + repeated("0,", 7'000'000) + "0]");
  expect_refused("explain wide.json", {"wide.json: must hold at most a million values"});
}

// 259 bytes once made 700 MB of JSON.
TEST_F(HostileFile, AHeadOfMillionsOfChannelsIsRefused) {
  write("wide.json", R"({"model_type": "llama", "hidden_size": 16777216, "num_attention_heads": 1,
      "num_hidden_layers": 4, "layer_types": ["attention_0", "attention_1", "attention_2", "attention_3"]})");
  for (const char* flags : {"", " --json", " --pairs"})
    expect_refused(
        std::string("explain wide.json") + flags,
        {"hidden_size: must give heads of 65536 channels or fewer, got 16777216 for 1 heads"});
}

TEST_F(HostileFile, AKindOfItsOwnForEachOfManyLayersIsRefused) {
  std::string types;
  for (int i = 0; i < 300; ++i)
    types += (i > 0 ? ", \"attention_" : "\"attention_") + std::to_string(i) + "\"";
  write("many.json", R"({"model_type": "llama", "hidden_size": 65536, "num_attention_heads": 1,
      "num_hidden_layers": 300, "layer_types": [)" +
                         types + "]}");
  expect_refused("explain many.json --json",
                 {"65536 frequencies and biases or fewer", "300 kinds of layers"});
}

TEST_F(HostileFile, WavesOfMillionsOfChannelsAreRefused) {
  write("waves.json",
        R"({"model_type": "marian", "d_model": 16777216, "encoder_attention_heads": 4096,
      "decoder_attention_heads": 4096, "encoder_layers": 2, "decoder_layers": 2})");
  expect_refused("explain waves.json --json", {"65536 frequencies and biases or fewer"});
}

TEST_F(HostileFile, JsonNumbersThatAreNoneNameTheirKey) {
  for (const char* number : {"NaN", "Infinity", "-Infinity", "-1", "1e999"}) {
    write("m.json", config + number + "}");
    expect_refused("explain m.json", {"m.json: ", number[0] == '1' ? "1e999" : "rope_theta"});
  }
  write("m.json", config + "1e4, \"rope_theta\": 2e4}");
  expect_refused("explain m.json", {"m.json: each key must stand once", "'rope_theta' twice"});
}

// --- safetensors and npy -------------------------------------------------------------------------

class HostileTensors : public HostileFile, public testing::WithParamInterface<Damaged> {};

TEST_P(HostileTensors, AreRefused) {
  write("t.bin", GetParam().bytes);
  refuses_table("t.bin", {"t.bin: "});
  for (const std::string& part : GetParam().says) refuses_table("t.bin", {part});
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, HostileTensors,
    testing::Values(
        Damaged{"header_of_a_terabyte",
                u64(two_to(40)) + "{}",
                {"must be at most 16 MiB, got 1099511627776 bytes"}},
        Damaged{"header_cut_off", u64(1000) + "{}", {"must hold its header of 1000 bytes, got 2"}},
        Damaged{"overlap",
                safetensors("{" + entry("a", "2", "0,8") + "," + entry("b", "1", "4,8") + "}", 8),
                {"tensor \"b\" must begin where the one before it ends, at byte 8, got 4"}},
        Damaged{"out_of_range",
                safetensors("{" + entry("a", "2", "0,1099511627776") + "}", 8),
                {"tensor \"a\" must lie within the file's data", "1099511627776 of 8"}},
        Damaged{"negative",
                safetensors("{" + entry("a", "-2", "0,8") + "}", 8),
                {"tensor \"a\" must have 'shape', a list of whole numbers from 0, got [-2]"}},
        Damaged{"overflow",
                safetensors("{" + entry("a", "8589934592,8589934592", "0,8") + "}", 8),
                {"fits into 64 bits, got [8589934592, 8589934592]"}},
        Damaged{"twice",
                safetensors("{" + entry("a", "1", "0,4") + "," + entry("a", "1", "0,4") + "}", 4),
                {"each key must stand once", "'a' twice"}},
        Damaged{"depth", safetensors(repeated("{\"a\":", 100'000)), {"deeper than 64 levels"}},
        Damaged{"axes",
                safetensors("{" + entry("a", repeated("1,", 300'000) + "1", "0,4") + "}", 4),
                {"tensor \"a\" must have at most 64 axes, got 300001"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Npy, HostileTensors,
    testing::Values(
        Damaged{"overflow",
                npy("(4611686018427387904, 4)", 16),
                {"the shape must fit into 64 bits", "(4611686018427387904, 4)"}},
        Damaged{"overflow_of_nothing",
                npy("(0, 4611686018427387904, 4)", 0),
                {"the shape must fit into 64 bits"}},
        Damaged{"terabytes",
                npy("(1099511627776, 4)", 16),
                {"the file must be whole", "17592186044400 more wanted"}},
        Damaged{"negative", npy("(-1,)", 4), {"must give the shape as whole numbers"}},
        Damaged{"header_beyond_the_file", npy("(2,)", 8, 60'000), {"59992 more wanted"}},
        Damaged{"header_into_the_data", npy("(2,)", 8, 8), {"must end with its dictionary"}}),
    name_of);

TEST_F(HostileFile, ATableOfNothingIsNoTable) {
  write("none.npy", npy("(3, 0)", 0));
  refuses_table("none.npy", {"none.npy: a table must have rows and columns, got 3 × 0"});
}

// --- folders -------------------------------------------------------------------------------------

class HostileFolder : public HostileFile {
 protected:
  void SetUp() override {
    HostileFile::SetUp();
    write("config.json", bert);
  }
  // The model is explained without its table, and the warning says why.
  void expect_warned(const std::string& part) const {
    const Outcome run = bounded("explain . --json");
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_TRUE(has(run.out, part)) << part << "\n" << run.out.substr(run.out.find("warnings"));
    EXPECT_LT(run.out.size(), 100'000u);
  }
  void index(const std::string& shard) const {
    write("model.safetensors.index.json",
          R"({"weight_map": {"embeddings.position_embeddings.weight": ")" + shard + "\"}}");
  }
};

TEST_F(HostileFolder, AnIndexMayNotNameFilesElsewhere) {
  for (const char* shard : {"../../etc/passwd", "/etc/passwd", "a/../../b"}) {
    index(shard);
    expect_warned("model.safetensors.index.json: weight_map must name files beside it, got \\\"" +
                  std::string(shard));
  }
}
TEST_F(HostileFolder, AnIndexMayNotNameTheFolderOrItself) {
  for (const char* shard : {".", "..", ""}) {
    index(shard);
    expect_warned("weights_not_read");
  }
  index("model.safetensors.index.json");
  expect_warned("header must be at most 16 MiB");
}
TEST_F(HostileFolder, AShardThatIsALinkInACircleOrAPipeDoesNotHang) {
  index("shard.safetensors");
  fs::create_symlink("shard.safetensors", path("shard.safetensors"));
  expect_warned("weights_not_read");
  fs::remove(path("shard.safetensors"));
  ASSERT_EQ(mkfifo(path("shard.safetensors").c_str(), 0600), 0);
  expect_warned("must be a regular file, got a pipe");
}
TEST_F(HostileFolder, ATensorsNameCannotCommandTheTerminal) {
  write("model.safetensors",
        safetensors(
            "{" + entry("\\u001b[31m\\u0007.position_embeddings.weight", "1,1", "0,4") + "}", 4));
  const Outcome run = bounded("explain .");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(has(run.out, "?[31m?.position_embeddings.weight")) << run.out;
  EXPECT_FALSE(has(run.out, "\x1b") || has(run.out, "\a")) << run.out;
}
TEST_F(HostileFolder, AFilesNameCannotCommandTheTerminal) {
  write("\x1b[31m\n.gguf", llama(1e4F));
  write("\x1b]0;title\a.safetensors", "");
  for (const char* flags : {"", " --json"}) {
    const Outcome run = bounded("explain ." + std::string(flags));
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_FALSE(has(run.out, "\x1b") || has(run.out, "\a")) << run.out;
  }
}

// --- a file that changes while it is read --------------------------------------------------------

// The signal that the system then sends, at a time when the command surely runs: it waits for a
// reader.
TEST_F(HostileFile, AFileCutShortWhileItIsMappedEndsTheCommandWithALine) {
  if (sanitized) GTEST_SKIP() << "the sanitizer takes the signal";
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  write("run.sh", "exec 3<>pipe\n'" + command_path() +
                      "' plot heatmap --positions 0:2000 --csv - >&3 & pid=$!\n"
                      "sleep 1; kill -BUS $pid; wait $pid\n");
  const std::string shell = "cd '" + folder_.string() + "' && sh run.sh 2> err.txt";
  const int status = std::system(shell.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(text("err.txt"),
            "posenc: a file was cut short or lost while it was read; try again when nothing writes "
            "it\n");
}

}  // namespace
}  // namespace posenc::test
