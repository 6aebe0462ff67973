#include "cli/pages/conform_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "cli/pages/json_text.h"

namespace posenc::cli::conform {
namespace {

const NamedMistake& named(const Card& card, const std::string& mistake) {
  static const NamedMistake none;
  const auto found = card.vectors->mistakes.find(mistake);
  return found == card.vectors->mistakes.end() ? none : found->second;
}

// Wrong by nothing but precision.
bool is_loss(const Card& card, const JudgedTest& test) {
  return test.outcome == Outcome::wrong && test.explained() &&
         std::ranges::all_of(test.parts,
                             [&](const WrongPart& part) { return named(card, part.mistake).loss; });
}

std::vector<std::string> mistakes_of(const JudgedTest& test) {
  std::vector<std::string> names;
  for (const WrongPart& part : test.parts)
    if (!part.mistake.empty()) names.push_back(part.mistake);
  return names;
}

struct Counts {
  std::size_t passed = 0, wrong = 0, loss = 0, unsupported = 0, failed = 0;
  std::size_t tried() const { return passed + wrong + loss + failed; }
};

Counts counts(const Card& card, const JudgedFile& file) {
  Counts all{.passed = file.count(Outcome::passed),
             .wrong = file.count(Outcome::wrong),
             .unsupported = file.count(Outcome::unsupported),
             .failed = file.count(Outcome::failed)};
  for (const JudgedTest& test : file.tests)
    if (is_loss(card, test)) --all.wrong, ++all.loss;
  return all;
}

Counts counts(const Card& card) {
  Counts all;
  for (const JudgedFile& file : card.files) {
    const Counts of = counts(card, file);
    all.passed += of.passed, all.wrong += of.wrong, all.loss += of.loss;
    all.unsupported += of.unsupported, all.failed += of.failed;
  }
  return all;
}

std::string some_ids(std::span<const JudgedTest* const> tests) {
  std::string text;
  for (std::size_t i = 0; i < tests.size() && i < 3; ++i)
    text += (i ? ", " : "") + tests[i]->test->id;
  return tests.size() > 3 ? fmt::format("{} and {} more", text, tests.size() - 3) : text;
}

std::vector<const JudgedTest*> of_outcome(const JudgedFile& file, Outcome outcome) {
  std::vector<const JudgedTest*> all;
  for (const JudgedTest& test : file.tests)
    if (test.outcome == outcome) all.push_back(&test);
  return all;
}

std::string verdict(const Card& card) {
  const Counts all = counts(card);
  if (all.tried() == 0) return "No answer: the engine has nothing of what was asked";
  const std::string right = fmt::format("{} of {} right", all.passed, all.tried());
  std::vector<std::string> parts;
  if (all.wrong) parts.push_back(fmt::format("{} wrong", all.wrong));
  if (all.loss) parts.push_back(fmt::format("{} lose precision", all.loss));
  if (all.failed) parts.push_back(fmt::format("{} failed in the engine", all.failed));
  if (all.unsupported) parts.push_back(fmt::format("{} refused by it", all.unsupported));
  return fmt::format("{}{}{}", right, parts.empty() ? "" : ", ", fmt::join(parts, ", "));
}

std::string mistake_lines(const Card& card, const Shown& shown, const Terminal& term) {
  const NamedMistake& mistake = named(card, shown.mistake);
  std::string out = fmt::format(
      "    {}  {}\n", mistake.loss ? term.blue(shown.mistake) : term.yellow(shown.mistake),
      wrapped(mistake.title, 6, 6 + shown.mistake.size()));
  double worst = 0;
  for (const JudgedTest* test : shown.tests) worst = std::max(worst, test->off);
  out += fmt::format("      {} {}: {}{}\n", shown.tests.size(),
                     shown.tests.size() == 1 ? "test" : "tests", some_ids(shown.tests),
                     std::isfinite(worst) ? fmt::format("; off by up to {:.2g}", worst) : "");
  if (!mistake.cure.empty()) out += fmt::format("      cure: {}\n", wrapped(mistake.cure, 6, 12));
  if (!mistake.report.empty()) out += term.dim(fmt::format("      seen: {}\n", mistake.report));
  return out;
}

std::string file_lines(const Card& card, const JudgedFile& file, const Terminal& term) {
  const Counts of = counts(card, file);
  std::string out = fmt::format("  {}  ", term.bold(padded(file.file->operation, 12)));
  if (of.tried() == 0) {
    const auto none = of_outcome(file, Outcome::unsupported);
    return out + term.dim(fmt::format("not there: {}\n", none.empty() ? "" : none.front()->why));
  }
  out += fmt::format("{} of {} right{}\n", of.passed, of.tried(),
                     of.unsupported ? fmt::format(", {} not there", of.unsupported) : "");
  for (const Shown& shown : file.shown) out += mistake_lines(card, shown, term);
  if (const auto unknown = file.unexplained(); !unknown.empty()) {
    double worst = 0;
    for (const JudgedTest* test : unknown) worst = std::max(worst, test->off);
    out += fmt::format("    {}  {} that no known mistake explains: {}{}\n", term.yellow("unknown"),
                       unknown.size(), some_ids(unknown),
                       std::isfinite(worst) ? fmt::format("; off by up to {:.2g}", worst)
                                            : "; of another size, or no number");
    if (!unknown.front()->why.empty())
      out += fmt::format("      {}\n", wrapped(unknown.front()->why, 6, 6));
  }
  if (const auto failed = of_outcome(file, Outcome::failed); !failed.empty())
    out += fmt::format("    {}  {}: {}\n", term.yellow("failed"), some_ids(failed),
                       wrapped(failed.front()->why, 6, 12));
  return out;
}

// What XML may hold, and no control that a terminal obeys.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : tame(text)) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 32 && c != '\n' ? ' ' : c;
    }
  return out;
}

}  // namespace

int exit_code(const Card& card) {
  const Counts all = counts(card);
  if (all.tried() == 0) return 2;
  return all.wrong == 0 && all.failed == 0 ? 0 : 1;
}

std::string conform_page(const Card& card, const Terminal& term) {
  std::string out = fmt::format("{} {}, {}: {}\n\n", term.bold(printable(card.engine)),
                                printable(card.version), name(card.dtype), verdict(card));
  for (const JudgedFile& file : card.files) out += file_lines(card, file, term);
  return out;
}

std::string conform_json(const Card& card) {
  const Counts all = counts(card);
  std::string files;
  for (const JudgedFile& file : card.files) {
    std::string tests;
    for (const JudgedTest& test : file.tests) {
      constexpr std::string_view words[] = {"passed", "wrong", "unsupported", "failed"};
      std::string mistakes;
      for (const std::string& name : mistakes_of(test))
        mistakes += (mistakes.empty() ? "" : ",") + json_string(name);
      tests += fmt::format(
          "{}{{\"id\":{},\"outcome\":\"{}\",\"mistakes\":[{}],\"off\":{},\"why\":{}}}",
          tests.empty() ? "" : ",", json_string(test.test->id),
          is_loss(card, test) ? "loss" : words[static_cast<std::size_t>(test.outcome)], mistakes,
          json_number(test.off), test.why.empty() ? "null" : json_string(test.why));
    }
    std::string shown;
    for (const Shown& each : file.shown) {
      const NamedMistake& mistake = named(card, each.mistake);
      shown += fmt::format(
          "{}{{\"mistake\":{},\"title\":{},\"cure\":{},\"report\":{},\"loss\":{},\"tests\":{},"
          "\"everywhere\":{}}}",
          shown.empty() ? "" : ",", json_string(each.mistake), json_string(mistake.title),
          json_string(mistake.cure), mistake.report.empty() ? "null" : json_string(mistake.report),
          mistake.loss, each.tests.size(), each.everywhere);
    }
    files += fmt::format("{}{{\"operation\":{},\"mistakes\":[{}],\"unknown\":{},\"tests\":[{}]}}",
                         files.empty() ? "" : ",", json_string(file.file->operation), shown,
                         file.unexplained().size(), tests);
  }
  return fmt::format(
      "{{\"version\":1,\"engine\":{},\"engine_version\":{},\"dtype\":\"{}\",\"verdict\":{},"
      "\"passed\":{},\"wrong\":{},\"loss\":{},\"failed\":{},\"unsupported\":{},\"operations\":[{}]"
      "}}\n",
      json_string(card.engine), json_string(card.version), name(card.dtype),
      json_string(verdict(card)), all.passed, all.wrong, all.loss, all.failed, all.unsupported,
      files);
}

std::string conform_junit(const Card& card) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const JudgedFile& file : card.files) {
    const Counts of = counts(card, file);
    out += fmt::format(
        "<testsuite name=\"posenc.{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
        "skipped=\"{}\">\n",
        xml(file.file->operation), file.tests.size(), of.wrong, of.failed, of.unsupported);
    for (const JudgedTest& test : file.tests) {
      out += fmt::format("<testcase classname=\"posenc.{}\" name=\"{}\"", xml(file.file->operation),
                         xml(test.test->id));
      if (test.outcome == Outcome::unsupported) {
        out += fmt::format("><skipped message=\"{}\"/></testcase>\n", xml(test.why));
      } else if (test.outcome == Outcome::failed) {
        out += fmt::format("><error message=\"{}\"/></testcase>\n", xml(test.why));
      } else if (test.outcome == Outcome::wrong && !is_loss(card, test)) {
        std::vector<std::string> titles, cures;
        for (const std::string& name : mistakes_of(test)) {
          titles.push_back(named(card, name).title);
          cures.push_back(named(card, name).cure);
        }
        const bool known = test.explained();
        out += fmt::format(
            "><failure type=\"{}\" message=\"{}\">{}</failure></testcase>\n",
            known ? xml(fmt::format("{}", fmt::join(mistakes_of(test), " + "))) : "unknown",
            known ? xml(fmt::format("{}", fmt::join(titles, "; ")))
                  : fmt::format("off by {:.3g}, by no known mistake", test.off),
            xml(fmt::format("{}", fmt::join(cures, "; "))));
      } else {
        out += "/>\n";
      }
    }
    out += "</testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace posenc::cli::conform
