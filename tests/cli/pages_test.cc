// Runs README and the pages of docs/: every `$ posenc ...` line of a ```console block prints what
// stands under it.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/model.h"
#include "tests/cli/command.h"

namespace {

namespace fs = std::filesystem;
using posenc::test::lines_of;

struct Line {
  std::string arguments, printed;
  std::size_t number = 0;  // in the page, from 1
};

fs::path docs() { return posenc::test::data_path("../../docs"); }

constexpr std::string_view readme = "../README";

// By their paths from docs/, without the ending.
std::vector<std::string> pages() {
  std::vector<std::string> names{std::string(readme)};
  for (const auto& file : fs::directory_iterator(docs())) {
    if (file.path().extension() == ".md") names.push_back(file.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

fs::path path_of(const std::string& page) { return docs() / (page + ".md"); }

std::string page_text(const std::string& page) {
  std::ifstream in(path_of(page));
  return {std::istreambuf_iterator<char>(in), {}};
}

// The console lines of a page. A backslash at the end of a line joins the next to it.
std::vector<Line> console_lines(const std::string& page) {
  constexpr std::string_view prompt = "$ posenc ";
  std::vector<Line> lines;
  std::istringstream in(page_text(page));
  bool console = false, joins = false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      console = line == "```console";
    } else if (console && joins) {
      lines.back().arguments.back() = ' ';
      lines.back().arguments += line;
      joins = line.ends_with('\\');
    } else if (console && line.starts_with(prompt)) {
      lines.push_back({line.substr(prompt.size()), "", number});
      joins = line.ends_with('\\');
    } else if (console && !lines.empty()) {
      lines.back().printed += line + '\n';
    }
  }
  return lines;
}

// Whether the printed lines are the expected ones, where "…" stands for any number of lines.
bool matches(std::span<const std::string> expected, std::span<const std::string> printed) {
  if (expected.empty()) return printed.empty();
  const auto rest = expected.subspan(1);
  if (expected.front() != "…") {
    return !printed.empty() && expected.front() == printed.front() &&
           matches(rest, printed.subspan(1));
  }
  for (std::size_t skipped = 0; skipped <= printed.size(); ++skipped) {
    if (matches(rest, printed.subspan(skipped))) return true;
  }
  return false;
}
bool matches(const std::string& expected, const std::string& printed) {
  return matches(lines_of(expected), lines_of(printed));
}

// The command that draws docs/pictures/NAME, after "posenc "; "" where the text does not say it.
std::string command_of(const std::string& text, const std::string& name) {
  for (const std::string& line : lines_of(text)) {
    for (const char* draws : {"posenc plot ", "posenc lab picture "}) {
      const std::size_t at = line.find(draws);
      if (at != line.npos && (line + " ").find(" docs/pictures/" + name + " ") != line.npos)
        return line.substr(at + 7);
    }
  }
  return "";
}

// Whether a script of the repository, named with the picture, draws it: what posenc itself cannot
// compute.
bool script_draws(const std::string& text, const std::string& name) {
  return std::ranges::any_of(lines_of(text), [&](const std::string& line) {
    const std::string command = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    return line.ends_with(" docs/pictures/" + name) &&
           fs::is_regular_file(docs().parent_path() / command.substr(0, command.find(' ')));
  });
}

// The pictures of docs/pictures that a page shows.
std::vector<std::string> pictures_of(const std::string& page) {
  std::vector<std::string> names;
  const std::string text = page_text(page),
                    begin = page == readme ? "](docs/pictures/" : "](pictures/";
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1))
    names.push_back(text.substr(at + begin.size(), text.find(')', at) - at - begin.size()));
  return names;
}

class Page : public posenc::test::CommandTest, public testing::WithParamInterface<std::string> {};

TEST_P(Page, ItsCommandsPrintWhatItSays) {
  // Pages name files as a clone has them.
  for (const char* room : {"tests", "evidence", "models"})
    std::filesystem::create_directory_symlink(docs().parent_path() / room, folder_ / room);
  for (const Line& line : console_lines(GetParam())) {
    const auto ran = posenc(line.arguments);
    EXPECT_TRUE(matches(line.printed, ran.out + ran.err))
        << GetParam() << ".md:" << line.number << ": posenc " << line.arguments << "\nprints\n"
        << ran.out << ran.err;
  }
}

// In the repository: a file, or a heading of a page.
TEST_P(Page, ItsLinksLeadSomewhere) {
  const std::string text = page_text(GetParam());
  for (std::size_t at = text.find("]("); at != text.npos; at = text.find("](", at + 1)) {
    const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (target.starts_with("http") || target.contains(' ')) continue;  // elsewhere; C++
    const std::string file = target.substr(0, target.find('#'));
    EXPECT_TRUE(file.empty() || fs::exists(path_of(GetParam()).parent_path() / file))
        << GetParam() << ".md: " << target;
  }
}

TEST_P(Page, ItsPicturesAreDrawnByTheCommandsUnderThem) {
  const std::string page = page_text(GetParam());
  for (const std::string& name : pictures_of(GetParam())) {
    EXPECT_TRUE(fs::exists(docs() / "pictures" / name)) << name;
    std::string command = command_of(page, name);
    if (command.empty() && script_draws(page, name)) continue;
    ASSERT_NE(command, "") << GetParam() << ".md does not say how it drew " << name;
    command.replace(command.find("docs/pictures/"), 14, "");
    if (const std::size_t at = command.find("models/fetched/"); at != command.npos) {
      const fs::path models = docs().parent_path() / "models" / "fetched";
      if (!fs::exists(models)) continue;  // the tests of fetched models say that they are missing
      command.replace(at, 15, models.string() + "/");
    }
    for (const char* const results : {"evidence/lab/results/", "backends/distributed/results/"})
      if (const std::size_t at = command.find(results); at != command.npos)
        command.insert(at, (docs().parent_path() / "").string());
    const auto ran = posenc(command);
    EXPECT_EQ(ran.code, 0) << command << "\n" << ran.err;
    EXPECT_GT(text(name).size(), 5000u) << command;
    // gnuplot's pictures differ from one version to the next; this one is the command's own.
    if (name == "lock.svg") {
      std::ifstream kept(docs() / "pictures" / name);
      EXPECT_EQ(text(name), std::string(std::istreambuf_iterator<char>(kept), {}))
          << "draw it again: " << command;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, Page, testing::ValuesIn(pages()), [](const auto& page) {
  std::string name = page.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.' || c == '/'; }, '_');
  return name;
});

TEST(Pages, ShowEveryPictureThatIsKept) {
  std::set<std::string> shown;
  for (const std::string& page : pages())
    for (const std::string& name : pictures_of(page)) shown.insert(name);
  for (const auto& file : fs::directory_iterator(docs() / "pictures"))
    EXPECT_TRUE(shown.contains(file.path().filename().string())) << file.path();
}

TEST(Pages, SkippedLinesMatchAnything) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("a\nb\n", "a\nb\n"));
  EXPECT_TRUE(matches("…\n", "a\nb\n"));
  EXPECT_TRUE(matches("a\n…\n", "a\nb\nc\n"));
  EXPECT_TRUE(matches("…\nc\n", "a\nc\nb\nc\n"));
  EXPECT_TRUE(matches("a\n…\nc\n…\n", "a\nb\nc\nd\n"));
  EXPECT_FALSE(matches("", "a\n"));
  EXPECT_FALSE(matches("a\n", "a\nb\n"));
  EXPECT_FALSE(matches("a\n…\nd\n", "a\nb\nc\n"));
  EXPECT_FALSE(matches("…\nb\n", "ab\n"));
}

// Every bundled model is named by the pages of its schemes and scalings.
TEST(Pages, NameTheBundledModels) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& page : pages()) texts.emplace_back(page, page_text(page));
  const auto page_of = [&](std::string_view scheme) {
    const std::string heading = "\n### `" + std::string(scheme) + "`\n";
    return std::ranges::find_if(texts,
                                [&](const auto& page) { return page.second.contains(heading); });
  };
  for (const auto& bundled : posenc::bundled_models()) {
    const auto model = posenc::read_model(bundled.name);
    ASSERT_TRUE(model) << model.error().message();
    std::set<std::string_view> schemes;
    for (const auto& group : model->groups) {
      for (const auto& scheme : group.schemes) {
        schemes.insert(posenc::info(scheme).name);
        const auto* rope = std::get_if<posenc::Rope>(&scheme);
        if (rope && posenc::info(rope->scaling).name != "default") {
          schemes.insert(posenc::info(rope->scaling).name);
        }
      }
    }
    for (const std::string_view scheme : schemes) {
      const auto page = page_of(scheme);
      ASSERT_NE(page, texts.end()) << scheme;
      EXPECT_TRUE(page->second.contains("`" + std::string(bundled.name) + "`"))
          << page->first << ".md does not name " << bundled.name;
    }
  }
}

}  // namespace
