// posenc conform as a user runs it, with adapters of a few words of shell.
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

class ConformCommand : public posenc::test::CommandTest {
 protected:
  // An adapter that answers hello, and every other request by a line of shell ($id is its number).
  std::string adapter(const std::string& answer) const {
    const std::string file = path("adapter.sh");
    std::ofstream(file)
        << "while IFS= read -r line; do\n"
           "  id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\n"
           "  case $line in\n"
           "  *hello*) echo "
           "\"{\\\"id\\\":$id,\\\"name\\\":\\\"shell\\\",\\\"version\\\":\\\"1\\\"}\";;\n"
           "  *) "
        << answer
        << ";;\n"
           "  esac\n"
           "done\n";
    return "-- sh '" + file + "'";
  }
};

TEST_F(ConformCommand, AnEngineThatHasNothingOfWhatIsAskedGivesNoAnswer) {
  const auto ran =
      posenc("conform --only mask " +
             adapter("echo \"{\\\"id\\\":$id,\\\"unsupported\\\":\\\"no masks\\\"}\""));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_NE(ran.out.find("not there: no masks"), std::string::npos) << ran.out;
}

TEST_F(ConformCommand, WhatIsNotThereIsNotWrong) {
  const auto ran =
      posenc("conform --only bias/slopes " +
             adapter("if [ $id = 1 ]; then echo \"{\\\"id\\\":1,\\\"output\\\":{\\\"slopes\\\":"
                     "[0.00390625]}}\"; else "
                     "echo \"{\\\"id\\\":$id,\\\"unsupported\\\":\\\"one head alone\\\"}\"; fi"));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST_F(ConformCommand, AnAnswerThatIsNoJsonIsToldAsSuch) {
  const auto ran =
      posenc("conform --only bias/slopes/4 " +
             adapter("echo \"{\\\"id\\\":$id,\\\"output\\\":{\\\"slopes\\\":[NaN]}}\""));
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("write NaN"), std::string::npos) << ran.out;
}

TEST_F(ConformCommand, AMistakeIsNamedWithItsCure) {
  const auto ran = posenc("conform --only bias/slopes/4 " +
                          adapter("echo \"{\\\"id\\\":$id,\\\"output\\\":{\\\"slopes\\\":"
                                  "[0.00390625,0.015625,0.0625,0.25]}}\""));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_NE(ran.out.find("slopes_reversed"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("cure: the first head has the steepest slope"), std::string::npos);
}

TEST_F(ConformCommand, TheCardIsJsonAndJUnit) {
  const std::string xml = path("report.xml");
  const auto ran = posenc("conform --json --junit '" + xml + "' --only scores " +
                          adapter("echo \"{\\\"id\\\":$id,\\\"error\\\":\\\"a < b\\\"}\""));
  EXPECT_EQ(ran.code, 1) << ran.err;
  const auto card = nlohmann::json::parse(ran.out);
  EXPECT_EQ(card["failed"], 8);
  EXPECT_EQ(card["operations"][0]["tests"][0]["why"], "a < b");
  std::ifstream file(xml);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("<error message=\"a &lt; b\"/>"), std::string::npos) << text;
}

TEST_F(ConformCommand, AnAnswerOfListsWithoutEndIsRefused) {
  const auto ran = posenc("conform --only bias/slopes/4 " +
                          adapter("printf '{\"id\":%s,\"output\":{\"slopes\":' $id; head -c 100000 "
                                  "/dev/zero | tr '\\0' '['; "
                                  "head -c 100000 /dev/zero | tr '\\0' ']'; echo '}}'"));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("must nest at most 64"), std::string::npos) << ran.err;
}

TEST_F(ConformCommand, GreetingsBeforeAnAnswerAreCountedAndIgnored) {
  const auto ran = posenc(
      "conform --only scores/sink " +
      adapter("echo loading weights; echo \"{\\\"id\\\":$id,\\\"unsupported\\\":\\\"no\\\"}\""));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_NE(ran.err.find("2 lines of its output were no answers"), std::string::npos) << ran.err;
}

TEST_F(ConformCommand, NoAnswerIsExitCode2WithASentence) {
  for (const auto& [program, words] :
       {std::pair{"-- true", "must answer each request with a line"},
        {"-- /no/such/program", "No such file"},
        {"--timeout 0.2 -- sleep 5", "none within 0.2 s"},
        {"-- yes", "a JSON object a line"},
        {"-- sh -c 'echo \"{}\"'", "must have the id of its request"},
        {"-- sh -c 'kill -9 $$'", "signal 9 ended it"}}) {
    const auto ran = posenc(std::string("conform ") + program);
    EXPECT_EQ(ran.code, 2) << program;
    EXPECT_NE(ran.err.find(words), std::string::npos) << program << ": " << ran.err;
  }
}

TEST_F(ConformCommand, FlagsBehindTheDashesAreTheProgramsOwn) {
  const auto ran = posenc("conform -- sh -c 'echo \"$0\" >&2' --my-flag");
  EXPECT_NE(ran.err.find("--my-flag"), std::string::npos) << ran.err;
}

}  // namespace
