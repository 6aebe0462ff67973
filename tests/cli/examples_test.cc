// Every example that a help prints is one that the command takes.
#include <string>
#include <vector>

#include "cli/run.h"
#include "tests/cli/command.h"

namespace {

using posenc::cli::all_manuals;
using posenc::cli::Manual;

// The words of each `posenc` of a shell's line, where neither quotes nor pipes are nested.
std::vector<std::vector<std::string>> calls_of(const std::string& line) {
  std::vector<std::vector<std::string>> calls;
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  const auto end_word = [&] {
    if (begun) words.push_back(word);
    word.clear(), begun = false;
  };
  const auto end_call = [&] {
    end_word();
    const auto at = std::ranges::find(words, "posenc");
    if (at != words.end()) calls.emplace_back(at + 1, words.end());
    words.clear();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\'' || c == '"') {
      const std::size_t end = std::min(line.find(c, i + 1), line.size());
      word += line.substr(i + 1, end - i - 1), begun = true;
      i = end;
    } else if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\n') {
      end_word(), ++i;
    } else if (c == '#' && !begun) {
      i = std::min(line.find('\n', i), line.size()) - 1;
    } else if (c == '|' || c == '&' || c == ';' || c == '\n') {
      end_call();
    } else if (c == '>') {  // where the output goes
      end_word();
      while (i + 1 < line.size() && line[i + 1] == ' ') ++i;
      while (i + 1 < line.size() && line[i + 1] != ' ') ++i;
    } else if (c == ' ') {
      end_word();
    } else {
      word += c, begun = true;
    }
  }
  end_call();
  return calls;
}

TEST(Examples, AreTakenByTheirCommands) {
  std::size_t count = 0;
  for (const Manual& manual : all_manuals()) {
    for (const std::string& example : manual.examples) {
      for (const std::vector<std::string>& call : calls_of(example)) {
        ++count;
        const posenc::Expected<void> taken = posenc::cli::parsed(call);
        EXPECT_TRUE(taken) << example << "\n" << taken.error().message();
      }
    }
  }
  EXPECT_GT(count, 100u);
}

}  // namespace
