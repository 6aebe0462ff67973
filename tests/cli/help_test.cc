// The help, the man pages and the completion of three shells say the same flags, since one table
// makes them all.
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/pages/manual.h"
#include "cli/pages/terminal.h"
#include "cli/run.h"
#include "tests/cli/command.h"

namespace {

using posenc::cli::all_manuals;
using posenc::cli::FlagManual;
using posenc::cli::Manual;
using posenc::test::has;
using posenc::test::lines_of;
using posenc::test::Outcome;

class Help : public posenc::test::CommandTest {
 protected:
  // What a shell prints; "" and a failure where it is not content.
  std::string shell(const std::string& line) const {
    const std::string in = "cd '" + folder_.string() + "' && ( " + line + " ) > out 2>&1";
    EXPECT_EQ(std::system(in.c_str()), 0) << line << "\n" << text("out");
    return text("out");
  }
  static bool installed(const std::string& program) {
    return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
  }
  // What bash offers after these words, the last one unfinished.
  std::string offered(const std::string& words) const {
    std::istringstream in(words);
    std::string quoted;
    int count = -1;
    for (std::string word; in >> word; count++) quoted += " '" + word + "'";
    if (words.ends_with(' ')) quoted += " ''", count++;
    write("ask.bash", "source ./posenc.bash\nCOMP_WORDS=(" + quoted + ")\nCOMP_CWORD=" +
                          std::to_string(count) + "\n_posenc\necho \" ${COMPREPLY[*]} \"\n");
    return shell("bash ask.bash");
  }
  // What fish offers after this line, a word a line, without what it says of each. Its home is the
  // test's folder, which it writes to.
  std::string offered_by_fish(const std::string& line) const {
    write("ask.fish", "source ./posenc.fish\ncomplete -C '" + line + "' | cut -f 1\n");
    return shell("HOME=. XDG_CONFIG_HOME=. XDG_DATA_HOME=. fish --no-config ask.fish");
  }
};

TEST_F(Help, OfACommandIsAScreen) {
  for (const Manual& manual : all_manuals()) {
    const Outcome help = posenc(manual.name + " --help");
    EXPECT_EQ(help.err, "");
    const auto lines = lines_of(help.out);
    EXPECT_LE(lines.size(), 40u) << manual.name;
    for (const std::string& line : lines) {
      if (line.starts_with("  posenc ")) continue;  // an example that can be copied
      EXPECT_LE(posenc::cli::columns(line), 100u) << manual.name << ": " << line;
    }
  }
}

TEST_F(Help, TellsWhatMustBeGivenAndWhereTheRestIs) {
  const std::string help = posenc("rotate --help").out;
  EXPECT_TRUE(has(help, "Usage: posenc rotate IN OUT [flags]\n"));
  EXPECT_TRUE(has(posenc("table --help").out, "Usage: posenc table OUT --positions IDS [flags]\n"));
  EXPECT_TRUE(has(help, "Fields of the scheme: posenc schemes NAME"));
  EXPECT_TRUE(has(help, "posenc rotate --help-all"));
  EXPECT_FALSE(has(help, "--num_buckets"));
  EXPECT_FALSE(has(help, "--beta_fast"));
}

TEST_F(Help, ShowsTheFieldsOfTheSchemeThatIsNamed) {
  const std::string yarn = posenc("rotate --scheme rope --rope_type yarn --help").out;
  EXPECT_TRUE(has(yarn, "--beta_fast")) << yarn;
  EXPECT_TRUE(has(yarn, "--rope_theta"));
  EXPECT_FALSE(has(yarn, "--num_buckets"));
  EXPECT_EQ(posenc("rotate --scheme yarn --help").out, yarn);
  EXPECT_TRUE(has(posenc("bias --scheme t5 --help").out, "--num_buckets"));
}

TEST_F(Help, AllTellsEveryFlagAndAlias) {
  for (const Manual& manual : all_manuals()) {
    const std::string help = posenc(manual.name + " --help-all").out;
    for (const FlagManual& flag : manual.flags) {
      if (flag.hidden) continue;
      EXPECT_TRUE(has(help, flag.name)) << manual.name;
      for (const std::string& alias : flag.aliases) EXPECT_TRUE(has(help, alias)) << manual.name;
    }
  }
  EXPECT_EQ(posenc("rotate --help_all").out, posenc("rotate --help-all").out);
}

TEST_F(Help, NamesAThingOnceAndTakesItsOtherNames) {
  EXPECT_FALSE(has(posenc("attend --help").out, "--cu_seqlens"));
  EXPECT_EQ(posenc("positions --grid 2x3").out, posenc("positions --patches 2,3").out);
  EXPECT_EQ(posenc("positions --packed 0,3,8").out, posenc("positions --cu-seqlens 0,3,8").out);
  const std::string ids = "positions --ids 1,2,3,100,101,101,101,101,103 --image_token_id 101 ";
  EXPECT_EQ(posenc(ids + "--image_grid 1x4x4").out, posenc(ids + "--image-grid 1,4,4").out);
  EXPECT_EQ(posenc("explain llama-3.1-8b --length 128k").out,
            posenc("explain llama-3.1-8b --at 131072").out);
  EXPECT_EQ(posenc("-V").out, posenc("--version").out);
}

TEST_F(Help, AFieldOfAScalingAsksForTheScaling) {
  write("x.npy", "");
  const Outcome ran = posenc("table x.npy --scheme rope --head_dim 8 --factor 4 --positions 0:4");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err,
                  "rope has no such field, got --factor; name a --rope_type that has it: "
                  "linear, "))
      << ran.err;
}

TEST_F(Help, PagesForManHaveEveryFlagAndNoWarnings) {
  ASSERT_EQ(posenc("man --into man1").code, 0);
  std::set<std::string> pages;
  for (const auto& file : std::filesystem::directory_iterator(path("man1"))) {
    const std::string name = file.path().filename().string();
    pages.insert(name);
    const std::string page = text("man1/" + name);
    EXPECT_EQ(page.find_first_not_of("\n\t !\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~"
                                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
              page.npos)
        << name << " is not ASCII";
  }
  if (installed("man") && installed("groff")) {
    EXPECT_EQ(shell("LC_ALL=C.UTF-8 man --warnings -l man1/*.1 2>&1 >/dev/null"), "");
  }
  EXPECT_TRUE(pages.contains("posenc.1"));
  for (const Manual& manual : all_manuals()) {
    const std::string name = page_name(manual) + ".1";
    ASSERT_TRUE(pages.contains(name)) << name;
    const std::string page = text("man1/" + name);
    for (const FlagManual& flag : manual.flags) {
      std::string name_in_roff = flag.name;
      for (std::size_t at = 0; (at = name_in_roff.find('-', at)) != std::string::npos; at += 2)
        name_in_roff.insert(at, 1, '\\');
      EXPECT_TRUE(flag.hidden || has(page, "\\fB" + name_in_roff + "\\fR"))
          << name << ": " << flag.name;
    }
  }
  EXPECT_EQ(posenc("man plot heatmap").out, text("man1/posenc-plot-heatmap.1"));
  EXPECT_EQ(posenc("man none").code, 2);
}

TEST_F(Help, CompletionHasEveryCommandAndFlag) {
  for (const char* name : {"bash", "zsh", "fish"}) {
    const Outcome printed = posenc("completion " + std::string(name));
    ASSERT_EQ(printed.code, 0);
    for (const Manual& manual : all_manuals()) {
      EXPECT_TRUE(has(printed.out, manual.name.substr(manual.name.rfind(' ') + 1))) << name;
      for (const FlagManual& flag : manual.flags) {
        if (flag.hidden || flag.positional) continue;
        const bool is_fish = name == std::string("fish");
        EXPECT_TRUE(has(printed.out, is_fish ? "-l " + flag.name.substr(2) + " " : flag.name))
            << name << ", " << manual.name << ": " << flag.name;
      }
    }
    write(std::string("posenc.") + name, printed.out);
    if (installed(name)) shell(std::string(name) + " -n posenc." + name);
  }
  EXPECT_EQ(posenc("completion tcsh").code, 2);
}

TEST_F(Help, BashCompletes) {
  if (!installed("bash")) GTEST_SKIP() << "bash is not installed";
  write("posenc.bash", posenc("completion bash").out);
  EXPECT_EQ(offered("posenc exp"), " explain \n");
  EXPECT_EQ(offered("posenc plot wave"), " wavelengths \n");
  EXPECT_EQ(offered("posenc rotate --head-d"), " --head_dim \n");
  EXPECT_EQ(offered("posenc rotate q.npy --angles hf"), " hf_float \n");
  EXPECT_EQ(offered("posenc rotate --scheme xp"), " xpos \n");
  EXPECT_EQ(offered("posenc rotate --rope_type = ya"), " yarn \n");
  EXPECT_EQ(offered("posenc explain llama-3.1"), " llama-3.1-8b \n");
  EXPECT_EQ(offered("posenc plot heatmap --of c"), " cos \n");
  EXPECT_EQ(offered("posenc rotate q."), "  \n");  // bash offers files itself
}

TEST_F(Help, FishCompletes) {
  if (!installed("fish")) GTEST_SKIP() << "fish is not installed";
  write("posenc.fish", posenc("completion fish").out);
  EXPECT_EQ(offered_by_fish("posenc exp"), "explain\n");
  EXPECT_EQ(offered_by_fish("posenc plot wave"), "wavelengths\n");
  EXPECT_EQ(offered_by_fish("posenc rotate --head_d"), "--head_dim\n");
  EXPECT_EQ(offered_by_fish("posenc rotate q.npy --angles hf_f"), "hf_float\n");
  EXPECT_EQ(offered_by_fish("posenc rotate --scheme xp"), "xpos\n");
  EXPECT_EQ(offered_by_fish("posenc rotate --rope_type=yar"), "--rope_type=yarn\n");
  EXPECT_EQ(offered_by_fish("posenc explain llama-3.1"), "llama-3.1-8b\n");
  EXPECT_EQ(offered_by_fish("posenc plot heatmap --of co"), "cos\n");
  EXPECT_TRUE(has(offered_by_fish("posenc explain "), "ask.fish\n"));  // files, where one may stand
  EXPECT_FALSE(has(offered_by_fish("posenc schemes "), "ask.fish"));
}

}  // namespace
