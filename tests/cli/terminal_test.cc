// Nothing that a person's files, folders or arguments are named by reaches a terminal as it is, and
// whatever numbers come out, --json is JSON.
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/command.h"
#include "tests/small_llama.h"

namespace {

using posenc::test::has;
using posenc::test::Outcome;
using Json = nlohmann::json;

// What a terminal obeys: controls but newlines and tabs, and what reverses a line.
std::string obeyed(std::string_view text) {
  constexpr std::string_view sequences[] = {"\u009B", "\u202E", "\u2066", "\u200F", "\u2028"};
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      return "control " + std::to_string(static_cast<int>(c));
  for (const std::string_view one : sequences)
    if (text.contains(one)) return "sequence of " + std::to_string(one.size()) + " bytes";
  return "";
}

class HostileNames : public posenc::test::CommandTest {
 protected:
  static constexpr const char* name = "d\x1b[31m\u202E\u009B2J\r\x7F\u2066x";
  // In single quotes, as a shell takes it.
  static std::string quoted(const std::string& tail = "") { return "'" + (name + tail) + "'"; }
};

TEST_F(HostileNames, OfFoldersAndFilesAreTamed) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 512,
      "num_hidden_layers": 2, "num_attention_heads": 8, "max_position_embeddings": 4096,
      "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0,
      "original_max_position_embeddings": 1024}})";
  std::filesystem::create_directories(path(name));
  write(std::string(name) + "/config.json", config);
  write(std::string(name) + ".json", config);
  write(std::string(name) + ".broken.json", "{\"model_type\": ");
  write(std::string(name) + ".gguf", posenc::test::SmallLlamaFile().file());
  write(std::string(name) + ".txt", "abc");
  for (const std::string& line : std::vector<std::string>{
           "lint " + quoted(),
           "lint " + quoted() + " --json",
           "lint " + quoted() + " --sarif",
           "lint " + quoted() + " --fix",
           "lint " + quoted(".broken.json") + " --fix",
           "explain " + quoted(),
           "explain " + quoted(".json") + " --json",
           "explain " + quoted() + " --csv",
           "explain " + quoted(".broken.json"),
           "diff " + quoted() + " llama-2-7b",
           "diff llama-2-7b " + quoted(".json") + " --json",
           "diff " + quoted() + " --engines all",
           "translate " + quoted() + " --to vllm",
           "translate " + quoted() + " --to vllm --json",
           "extend " + quoted() + " --to 8192",
           "precision " + quoted() + " --at 4096",
           "lab tokens " + quoted(".gguf") + " " + quoted(".txt"),
           "lab watch " + quoted(".gguf") + " " + quoted(".txt"),
           "link " + quoted(),
           "diff llama-2-7b --log " + quoted(".txt"),
           "identify --after " + quoted(".npy"),
           "rotate " + quoted(".npy") + " out.npy --scheme rope --positions 0:1",
           "table " + quoted(".npy") + " --scheme sinusoidal --width 4 --positions 0:2",
           "table " + quoted(".pt") + " --scheme sinusoidal --width 4 --positions 0:2",
           "plot heatmap " + quoted(".png") + " --csv " + quoted("/none/x.csv")}) {
    const Outcome said = posenc(line);
    EXPECT_EQ(obeyed(said.out), "") << line << "\n" << said.out;
    EXPECT_EQ(obeyed(said.err), "") << line << "\n" << said.err;
  }
  const Outcome lint = posenc("lint " + quoted());
  EXPECT_TRUE(lint.out.starts_with("d?[31m")) << lint.out;
  const Json json = Json::parse(posenc("lint " + quoted() + " --json").out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["findings"][0]["file"], name);
}

// As the name of a file, of a command, of a flag and as its value.
TEST_F(HostileNames, OfArgumentsAreTamedByEveryCommand) {
  for (const char* command :
       {"explain",   "diff",     "lint",         "translate",  "extend",
        "identify",  "models",   "schemes",      "rotate",     "add",
        "table",     "resample", "bias",         "attend",     "emit",
        "precision", "slopes",   "buckets",      "positions",  "check-positions",
        "verify",    "lab",      "lab shift",    "bench",      "serve",
        "link",      "plot",     "plot heatmap", "completion", "man",
        ""}) {
    for (const std::string& given :
         {quoted(), quoted() + " " + quoted(), "'--" + std::string(name) + "=1'",
          "--heads " + quoted(), "--scheme " + quoted(), "--positions " + quoted()}) {
      const Outcome said = posenc(std::string(command) + " " + given);
      EXPECT_EQ(obeyed(said.out + said.err), "") << command << " " << given << said.err;
    }
  }
}

class JsonOfCommands : public posenc::test::CommandTest {};

TEST_F(JsonOfCommands, ParsesWhateverTheNumbersAre) {
  posenc::test::SmallLlamaFile overflowing;
  for (auto& [name, numbers] : overflowing.weights)
    if (name.contains("attn_")) std::ranges::fill(numbers, 3e38F);
  write("huge.gguf", overflowing.file());
  write("small.gguf", posenc::test::SmallLlamaFile().file());
  std::string text;
  for (int i = 0; i < 6; ++i) text += "abcdefghijkl";
  write("text.txt", text);
  write("ids.npy", "");
  std::vector<std::string> lines{"explain llama-3.1-8b",
                                 "explain '#/rope?v=1&m=30'",
                                 "explain '#/rope?v=1&m=nan&theta=1e999'",
                                 "diff llama-3.1-8b llama-2-7b",
                                 "diff llama-3.1-8b --engines all",
                                 "diff llama-3.1-8b --command 'vllm serve x'",
                                 "lint llama-3.1-8b",
                                 "translate llama-3.1-8b --to vllm",
                                 "extend llama-3.1-8b --to 256k",
                                 "models",
                                 "schemes",
                                 "precision llama-2-7b --at 4096",
                                 "slopes --heads 8",
                                 "emit --scheme rope --head_dim 8 --to c",
                                 "slopes --heads 8 --max_bias 1e308",
                                 "buckets --max_distance 128",
                                 "positions --packed 0,3,8",
                                 "positions --mask '0,1,1'",
                                 "check-positions 0,1,2 --expect 0:3",
                                 "link --panel rope",
                                 "lab base --head_dim 64 --length 1024",
                                 "verify --claim 7a",
                                 "bench table --quick --length 32 --head_dim 16"};
  for (const char* model : {"small.gguf", "huge.gguf"})
    for (const char* kind : {"waves", "watch", "tokens", "shift", "perplexity"})
      lines.push_back(std::string("lab ") + kind + " " + model + " text.txt" +
                      (std::string_view(kind) == "shift" ? " --tokens 20" : ""));
  int said_all = 0;
  for (const std::string& line : lines) {
    const Outcome said = posenc(line + " --json");
    if (said.code == 2) {  // refused: nothing is said that could be JSON
      EXPECT_EQ(said.out, "") << line;
      continue;
    }
    ++said_all;
    EXPECT_FALSE(Json::parse(said.out, nullptr, false).is_discarded()) << line << "\n" << said.out;
  }
  EXPECT_GT(said_all, 24);
  EXPECT_TRUE(has(posenc("lab waves huge.gguf text.txt --json").out, "null"));
}

}  // namespace
