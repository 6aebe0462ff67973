#include "cli/conform/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace posenc::cli::conform {
namespace {

// Wrong answers have six digits.
constexpr double of_six_digits = 1e-5;

bool close(double got, double wanted, const Tolerance& tolerance, double slack) {
  if (std::isnan(wanted)) return true;
  return std::abs(got - wanted) <=
         tolerance.absolute + (tolerance.relative + slack) * std::abs(wanted);
}

bool close(const std::vector<double>& got, const std::vector<double>& wanted,
           const Tolerance& tolerance, double slack = 0) {
  return got.size() == wanted.size() && std::ranges::equal(got, wanted, [&](double a, double b) {
           return close(a, b, tolerance, slack);
         });
}

// Of the outputs that were answered; what a mistake does not change is right in it.
bool close(const Numbers& got, const VectorTest& test, const Numbers* mistake,
           const Tolerance& tolerance) {
  return std::ranges::all_of(got, [&](const auto& output) {
    const auto& [name, values] = output;
    if (mistake)
      if (const auto wrong = mistake->find(name); wrong != mistake->end())
        return close(values, wrong->second, tolerance, of_six_digits);
    return close(values, test.output.find(name)->second, tolerance);
  });
}

// Whether a mistake changes what was answered by more than the tolerance.
bool visible(const Numbers& got, const VectorTest& test, const Numbers& mistake,
             const Tolerance& tolerance) {
  return std::ranges::any_of(mistake, [&](const auto& output) {
    const auto& [name, values] = output;
    return got.contains(name) && !close(values, test.output.find(name)->second, tolerance);
  });
}

// Whether each number is as near the right one as that mistake of rounding leaves it.
bool is_within(const Numbers& got, const VectorTest& test, const Numbers& bounds,
               const Tolerance& tolerance) {
  return std::ranges::all_of(got, [&](const auto& output) {
    const auto& [name, values] = output;
    const std::vector<double>& right = test.output.find(name)->second;
    const auto bound = bounds.find(name);
    if (bound == bounds.end()) return close(values, right, tolerance);
    if (values.size() != right.size() || bound->second.size() != right.size()) return false;
    for (std::size_t i = 0; i < right.size(); ++i)
      if (!(std::abs(values[i] - right[i]) <= tolerance.absolute + bound->second[i])) return false;
    return true;
  });
}

// The mistakes that give what was answered.
std::vector<std::string> shown_by(const Numbers& got, const VectorTest& test,
                                  const Tolerance& tolerance) {
  std::vector<std::string> names;
  for (const auto& [name, wrong] : test.mistakes)
    if (visible(got, test, wrong, tolerance) && close(got, test, &wrong, tolerance))
      names.push_back(name);
  for (const auto& [name, bounds] : test.within)
    if (std::ranges::find(names, name) == names.end() && is_within(got, test, bounds, tolerance))
      names.push_back(name);
  return names;
}

double largest_difference(const Numbers& got, const VectorTest& test) {
  double most = 0;
  for (const auto& [name, values] : got) {
    const std::vector<double>& right = test.output.find(name)->second;
    if (values.size() != right.size()) return std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (std::isnan(right[i])) continue;
      const double off = std::abs(values[i] - right[i]);
      most = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(most, off);
    }
  }
  return most;
}

}  // namespace

bool JudgedTest::explained() const {
  return std::ranges::none_of(parts, &std::string::empty, &WrongPart::mistake);
}

bool JudgedTest::shows(std::string_view mistake) const {
  return std::ranges::any_of(parts, [&](const WrongPart& part) {
    return std::ranges::find(part.shows, mistake) != part.shows.end();
  });
}

std::size_t JudgedFile::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(tests, outcome, &JudgedTest::outcome));
}

std::vector<const JudgedTest*> JudgedFile::unexplained() const {
  std::vector<const JudgedTest*> all;
  for (const JudgedTest& each : tests)
    if (each.outcome == Outcome::wrong && !each.explained()) all.push_back(&each);
  return all;
}

JudgedTest judge(const VectorTest& test, const Tolerance& tolerance, const Answer& answer) {
  JudgedTest judged{.test = &test};
  if (!answer.unsupported.empty() || !answer.error.empty()) {
    judged.outcome = answer.error.empty() ? Outcome::unsupported : Outcome::failed;
    judged.why = answer.error.empty() ? answer.unsupported : answer.error;
    return judged;
  }
  Numbers got;
  for (const auto& [name, values] : answer.output)
    if (test.output.contains(name)) got.emplace(name, values);
  if (got.empty()) {
    judged.outcome = Outcome::failed;
    judged.why = "its answer has none of the outputs that are asked:";
    for (const auto& [name, right] : test.output) judged.why += " " + name;
    return judged;
  }
  for (const auto& [name, wrong] : test.mistakes)
    if (visible(got, test, wrong, tolerance)) judged.would.push_back(name);
  judged.off = largest_difference(got, test);
  if (close(got, test, nullptr, tolerance)) return judged;
  judged.outcome = Outcome::wrong;
  judged.parts.push_back({shown_by(got, test, tolerance)});
  if (!judged.parts.front().shows.empty() || got.size() == 1) return judged;
  // Two mistakes at once: one in the frequencies, say, and one in the factor.
  std::vector<WrongPart> apart;
  for (const auto& output : got) {
    const Numbers alone{output};
    if (close(alone, test, nullptr, tolerance)) continue;
    WrongPart part{shown_by(alone, test, tolerance)};
    // One that changes another output too is not what made this one wrong.
    std::erase_if(part.shows, [&](const std::string& mistake) {
      const auto changed = test.mistakes.find(mistake);
      return changed != test.mistakes.end() && changed->second.size() > 1;
    });
    apart.push_back(std::move(part));
  }
  if (std::ranges::none_of(apart, [](const WrongPart& part) { return part.shows.empty(); }))
    judged.parts = std::move(apart);
  return judged;
}

JudgedFile judge(const VectorFile& file, std::vector<JudgedTest> tests) {
  JudgedFile judged{&file, std::move(tests), {}};
  // Right answers in which a mistake would have shown; in wrong ones another may hide it.
  std::map<std::string, std::size_t> silent;
  std::vector<std::pair<const JudgedTest*, WrongPart*>> open;
  for (JudgedTest& each : judged.tests) {
    if (each.outcome == Outcome::passed)
      for (const std::string& name : each.would) ++silent[name];
    for (WrongPart& part : each.parts)
      if (!part.shows.empty()) open.emplace_back(&each, &part);
  }
  while (!open.empty()) {
    std::map<std::string, std::size_t> explains;
    for (const auto& [test, part] : open)
      for (const std::string& name : part->shows) ++explains[name];
    const auto best = std::ranges::max_element(explains, {}, [&](const auto& one) {
      const auto& [name, count] = one;
      const auto quiet = static_cast<std::ptrdiff_t>(silent[name]);
      return std::pair(static_cast<std::ptrdiff_t>(count) - quiet, -quiet);
    });
    Shown shown{best->first, {}, silent[best->first] == 0};
    std::erase_if(open, [&](const auto& each) {
      const auto& [test, part] = each;
      if (std::ranges::find(part->shows, shown.mistake) == part->shows.end()) return false;
      part->mistake = shown.mistake;
      shown.tests.push_back(test);
      return true;
    });
    judged.shown.push_back(std::move(shown));
  }
  return judged;
}

}  // namespace posenc::cli::conform
