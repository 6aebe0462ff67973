// posenc link, and posenc explain of what it prints: links are byte for byte those of the
// playground.
#include <fstream>
#include <string>
#include <string_view>
#include <nlohmann/json.hpp>

#include "cli/playground/link.h"
#include "cli/playground/link_fields.h"
#include "posenc/schemes.h"
#include "tests/cli/command.h"

namespace {

using namespace posenc::cli;
using nlohmann::ordered_json;
using posenc::test::has;
using posenc::test::Outcome;

class Link : public posenc::test::CommandTest {
 protected:
  std::string printed(const std::string& arguments) const {
    const Outcome done = posenc("link " + arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }
  ordered_json explained(const std::string& link, int code = 0) const {
    const Outcome done = posenc("explain '" + link + "' --json");
    EXPECT_EQ(done.code, code) << link << "\n" << done.err;
    return ordered_json::parse(done.out, nullptr, false);
  }
  // The message of a command that is refused.
  std::string refused(const std::string& arguments) const {
    const Outcome done = posenc(arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.out;
    return done.err;
  }
};

// What a link writes for a value of JSON.
std::string text_of(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return script_number(value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const ordered_json& one : value) out += (out.empty() ? "" : ",") + text_of(one);
  return out;
}

View view_of(const ordered_json& one) {
  View view = default_view();
  view.panel = one["panel"].get<std::string>();
  for (const auto& [key, value] : one["values"].items())
    view.values[find_link_field(key).value()] =
        value.is_boolean() ? (value.get<bool>() ? "1" : "0") : text_of(value);
  for (const auto& [name, value] : one["scheme"].items())
    view.scheme.push_back({name, text_of(value)});
  for (const auto& [name, value] : one["scaling"].items())
    view.scaling.push_back({name, text_of(value)});
  return view;
}

ordered_json fixture() {
  std::ifstream in(posenc::test::data_path("../../web/test/links.json"));
  return ordered_json::parse(in);
}

TEST(LinkText, IsWhatThePlaygroundWrites) {
  for (const ordered_json& one : fixture())
    EXPECT_EQ(format_link(view_of(one)), one["link"].get<std::string>());
}

TEST(LinkText, IsReadAsThePlaygroundReadsIt) {
  for (const ordered_json& one : fixture()) {
    const auto read = read_link("http://127.0.0.1:8137/" + one["link"].get<std::string>());
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->view, view_of(one)) << one["link"];
    EXPECT_TRUE(read->notes.empty()) << read->notes.front();
  }
}

TEST(LinkText, NumbersAreSpelledAsByJavaScript) {
  const std::pair<double, const char*> cases[] = {{0, "0"},
                                                  {-0.0, "0"},
                                                  {1, "1"},
                                                  {-3.14, "-3.14"},
                                                  {1e-6, "0.000001"},
                                                  {1e-7, "1e-7"},
                                                  {1.25e-9, "1.25e-9"},
                                                  {123456789, "123456789"},
                                                  {1e20, "100000000000000000000"},
                                                  {1e21, "1e+21"},
                                                  {1.5e300, "1.5e+300"},
                                                  {0.1 + 0.2, "0.30000000000000004"},
                                                  {5e-324, "5e-324"},
                                                  {100.5, "100.5"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(script_number(number), text);
}

TEST(LinkText, BringsNumbersIntoRangeAndSaysSo) {
  const auto read = read_link("#/rope?v=1&m=99999&d=63.4&n=-5&seed=2.5&pair=1e999&sign=2");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->view["m"], "2047");
  EXPECT_EQ(read->view["d"], "62");
  EXPECT_EQ(read->view["n"], "0");
  EXPECT_EQ(read->view["seed"], "3");
  EXPECT_EQ(read->view["pair"], "4");
  EXPECT_EQ(read->view["sign"], "1");
  EXPECT_EQ(read->notes.size(), 6u);
}

TEST(LinkText, HostileLinksAreBounded) {
  std::string many = "#/extend?v=1&with=";
  for (int i = 0; i < 5000; i++) many += "a,";
  for (int i = 0; i < 3000; i++) many += "&k" + std::to_string(i) + "=NaN";
  const auto read = read_link(many);
  ASSERT_TRUE(read);
  EXPECT_EQ(comma_separated(read->view["with"]).size(), 16u);
  EXPECT_LE(read->notes.size(), 13u);
  const auto huge = read_link("#/rope?v=1&words=" + std::string(100000, 'a'));
  ASSERT_FALSE(huge);
  EXPECT_TRUE(has(huge.error().message(), "65536"));
  const auto odd =
      read_link("#/rope?v=1&words=%&words=%4&words=%zz%00%1b[31m%ff&m=NaN&n=Infinity&=&&theta");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->view["words"], "%zz??[31m\uFFFD");
  EXPECT_EQ(odd->view["m"], "11");
  EXPECT_EQ(odd->view["n"], "4");
}

// A value that is not the default.
std::string another(const LinkField& field) {
  const std::string is = default_of(field);
  switch (field.kind) {
    case LinkKind::number:
      return script_number(script_number(field.most) == is ? field.least : field.most);
    case LinkKind::text:
      return field.key == "words" ? "a b,c&d" : field.key == "scheme" ? "alibi" : "linear";
    case LinkKind::boolean: return is == "1" ? "false" : "true";
    case LinkKind::choice:
      for (const std::string_view choice : comma_separated(field.choices))
        if (choice != is) return std::string(choice);
      return is;
    case LinkKind::numbers: return "2,1";
    case LinkKind::words: return "t5,rope";
  }
  return is;
}

TEST_F(Link, EveryFieldComesBackAsItWasAsked) {
  for (const LinkField& field : link_fields()) {
    const std::string key(field.key);
    const bool is_switch = field.kind == LinkKind::boolean;
    const std::string value = another(field);
    const std::string link = printed("rope --" + key + "='" + value + "'");
    EXPECT_TRUE(has(link, "http://127.0.0.1:8137/#/rope?v=1&" + key + "=")) << link;
    const ordered_json read = explained(link);
    ASSERT_TRUE(read.contains("link")) << link;
    const ordered_json& got = read["link"]["values"][key];
    EXPECT_EQ(is_switch ? got.dump() : text_of(got), value) << link;
    for (const LinkField& other : link_fields()) {
      const ordered_json& rest = read["link"]["values"][std::string(other.key)];
      if (other.key == field.key) continue;
      EXPECT_EQ(rest.is_boolean() ? rest.dump() : text_of(rest),
                !rest.is_boolean()         ? default_of(other)
                : default_of(other) == "1" ? "true"
                                           : "false")
          << link << " " << other.key;
    }
  }
}

TEST_F(Link, SchemesAndScalingsBringTheirOwnFields) {
  const std::string link = printed(
      "extend --rope_theta 500000 --scaling yarn --factor 4 --original_max_position_embeddings "
      "32768 "
      "--d 128 --fragment");
  EXPECT_EQ(link,
            "#/extend?v=1&scaling=yarn&d=128&theta=500000&scaling.factor=4&"
            "scaling.original_max_position_embeddings=32768");
  const ordered_json read = explained(link);
  EXPECT_EQ(read["link"]["scaling"]["factor"], 4);
  const ordered_json& scheme = read["groups"][0]["scheme"];
  EXPECT_EQ(scheme["rope_theta"], 500000);
  EXPECT_EQ(scheme["scaling"]["type"], "yarn");
  EXPECT_EQ(scheme["scaling"]["factor"], 4);
  EXPECT_EQ(read["groups"][0]["head_dim"], 128);
}

TEST_F(Link, OfAModelHoldsItsSchemeAndLengths) {
  EXPECT_EQ(printed("--model llama-3.1-8b --fragment"),
            "#/extend?v=1&scaling=llama3&d=128&heads=32&theta=500000&target=131072&"
            "scaling.factor=8&scaling.low_freq_factor=1&scaling.high_freq_factor=4&scaling."
            "original_max_position_embeddings=8192");
  const Outcome model = posenc("explain llama-3.1-8b --json");
  const ordered_json whole = ordered_json::parse(model.out);
  const ordered_json read = explained(printed("--model llama-3.1-8b"));
  EXPECT_EQ(read["groups"][0]["plan"]["rotate"], whole["groups"][0]["plan"]["rotate"]);
  EXPECT_EQ(read["groups"][0]["bands"], whole["groups"][0]["bands"]);
  EXPECT_EQ(read["context"], whole["context"]);
  EXPECT_EQ(read["trained_context"], whole["trained_context"]);
}

TEST_F(Link, KeepsForTheSchemeWhatItsOwnKeyCannotHold) {
  EXPECT_EQ(printed("rope --rope_theta 50000000000 --fragment"),
            "#/rope?v=1&scheme.rope_theta=50000000000");
  EXPECT_EQ(printed("compare --scheme xpos --pairing halves --fragment"),
            "#/compare?v=1&scheme=xpos&scheme.pairing=halves");
  EXPECT_EQ(printed("compare --scheme axial --scheme.order height_width --order 1,0 --fragment"),
            "#/compare?v=1&scheme=axial&order=1,0&scheme.order=height_width");
  EXPECT_EQ(explained("#/compare?v=1&scheme=xpos")["groups"][0]["scheme"]["pairing"],
            "interleaved");
}

TEST_F(Link, OfAModelHoldsListsWhole) {
  const Outcome model = posenc("explain phi-3.5-mini --at 131072 --json");
  const ordered_json whole = ordered_json::parse(model.out);
  const ordered_json read = explained(printed("--model phi-3.5-mini"));
  EXPECT_EQ(read["groups"][0]["scheme"]["scaling"]["long_factor"].size(), 48u);
  EXPECT_EQ(read["groups"][0]["plan"]["rotate"], whole["groups"][0]["plan"]["rotate"]);
}

TEST_F(Link, OpensAPageElsewhere) {
  EXPECT_EQ(printed("kv --base https://example.org/posenc.html"),
            "https://example.org/posenc.html#/kv?v=1");
  const ordered_json read = ordered_json::parse(posenc("link kv --json").out);
  EXPECT_EQ(read["link"], "http://127.0.0.1:8137/#/kv?v=1");
  EXPECT_EQ(read["fragment"], "#/kv?v=1");
  EXPECT_EQ(read["values"]["m"], 11);
}

TEST_F(Link, RefusesWhatThePlaygroundWouldClamp) {
  EXPECT_TRUE(has(refused("link rope --m 5000"), "--m: must be 0 to 2047, got 5000"));
  EXPECT_TRUE(has(refused("link rope --d 63"), "--d: must be even, got 63"));
  EXPECT_TRUE(has(refused("link rope --m 1.5"), "--m: must be a whole number, got 1.5"));
  EXPECT_TRUE(has(refused("link rope --theta nan"), "must be a finite number"));
  EXPECT_TRUE(has(refused("link rope --pairing halfs"), "did you mean 'halves'?"));
  EXPECT_TRUE(has(refused("link rop"), "did you mean 'rope'?"));
  EXPECT_TRUE(has(refused("link"), "needs a panel"));
  EXPECT_TRUE(has(refused("link rope --pairs 3"), "did you mean --pair?"));
  EXPECT_TRUE(has(refused("link rope --scheme ropes"), "did you mean 'rope'?"));
  EXPECT_TRUE(
      has(refused("link compare --scheme alibi --rope_theta 5"), "alibi has no such field"));
  EXPECT_TRUE(has(refused("link compare --scheme alibi --scaling yarn"), "only RoPE is scaled"));
  EXPECT_TRUE(has(refused("link --model llama-3.1-8b --rope_theta 5"), "a model brings its own"));
  EXPECT_TRUE(has(refused("link --model gemma-3-4b"), "differ"));
}

TEST_F(Link, ExplainedTellsValuesAndPlan) {
  const Outcome done = posenc("explain 'http://127.0.0.1:8137/#/rope?v=1&m=30&unknown=1'");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(has(done.out, "Panel rope")) << done.out;
  EXPECT_TRUE(has(done.out, "position of the query")) << done.out;
  EXPECT_TRUE(has(done.out, "'unknown' is no key of a link")) << done.out;
  EXPECT_TRUE(has(done.out, "\nExplained for positions 0 to 127.\n")) << done.out;
  EXPECT_TRUE(has(done.out, "RoPE, halves")) << done.out;
}

TEST_F(Link, WithoutAFactorTheLengthsGiveIt) {
  const ordered_json read = explained("#/extend?v=1&scaling=yarn&trained=4096&target=65536");
  EXPECT_EQ(read["groups"][0]["scheme"]["scaling"]["factor"], 16);
  EXPECT_EQ(read["groups"][0]["scheme"]["scaling"]["original_max_position_embeddings"], 4096);
  EXPECT_EQ(read["link"]["notes"].size(), 2u);
}

TEST_F(Link, WhosePlanCannotBeMadeStillTellsItsValues) {
  const ordered_json read = explained("#/extend?v=1&scaling=longrope&m=7", 1);
  EXPECT_EQ(read["link"]["values"]["m"], 7);
  EXPECT_TRUE(read["link"]["error"].is_string());
  EXPECT_TRUE(read["groups"].empty());
}

TEST_F(Link, OfANewerVersionNamesTheCure) {
  EXPECT_TRUE(has(refused("explain '#/rope?v=2&m=3'"), "a newer posenc reads it"));
  EXPECT_TRUE(has(refused("explain '#/rope?v=x'"), "link: v: must be a whole number"));
  EXPECT_TRUE(has(refused("explain '#/rope?v=1&scheme=nosuch'"
                          " --csv"),
                  "nosuch"));
}

TEST_F(Link, EverySchemeAndScalingIsExplained) {
  for (const posenc::SchemeInfo& scheme : posenc::all_schemes()) {
    const ordered_json read = explained(printed("compare --scheme " + std::string(scheme.name)));
    EXPECT_EQ(read["groups"][0]["scheme"]["type"], std::string(scheme.name)) << scheme.name;
  }
  for (const posenc::SchemeInfo& scaling : posenc::all_scalings()) {
    if (scaling.name == "longrope" || scaling.name == "explicit")
      continue;  // lists without a default
    const ordered_json read = explained(printed("extend --scaling " + std::string(scaling.name)));
    EXPECT_EQ(read["groups"][0]["scheme"]["scaling"]["type"], std::string(scaling.name));
  }
}

}  // namespace
