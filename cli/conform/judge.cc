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
    return got.contains(name) &&
           !close(values, test.output.find(name)->second, tolerance, of_six_digits);
  });
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

std::size_t JudgedFile::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(tests, outcome, &JudgedTest::outcome));
}

std::vector<const JudgedTest*> JudgedFile::unexplained() const {
  std::vector<const JudgedTest*> all;
  for (const JudgedTest& each : tests)
    if (each.outcome == Outcome::wrong && each.mistake.empty()) all.push_back(&each);
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
    judged.why = "the answer has none of the outputs that are asked";
    return judged;
  }
  for (const auto& [name, wrong] : test.mistakes)
    if (visible(got, test, wrong, tolerance)) {
      judged.would.push_back(name);
      if (close(got, test, &wrong, tolerance)) judged.shows.push_back(name);
    }
  judged.off = largest_difference(got, test);
  if (close(got, test, nullptr, tolerance))
    judged.shows.clear();
  else
    judged.outcome = Outcome::wrong;
  return judged;
}

JudgedFile judge(const VectorFile& file, std::vector<JudgedTest> tests) {
  JudgedFile judged{&file, std::move(tests), {}};
  std::map<std::string, std::size_t> silent;  // tests in which a mistake should have shown
  for (const JudgedTest& each : judged.tests)
    for (const std::string& name : each.would)
      silent[name] += std::ranges::find(each.shows, name) == each.shows.end() ? 1 : 0;
  while (true) {
    std::map<std::string, std::size_t> explains;
    for (const JudgedTest& each : judged.tests)
      if (each.outcome == Outcome::wrong && each.mistake.empty())
        for (const std::string& name : each.shows) ++explains[name];
    if (explains.empty()) return judged;
    const auto best = std::ranges::max_element(explains, {}, [&](const auto& one) {
      const auto& [name, count] = one;
      return std::tuple(silent[name] == 0, count, -static_cast<std::ptrdiff_t>(silent[name]));
    });
    Shown shown{best->first, {}, silent[best->first] == 0};
    for (JudgedTest& each : judged.tests)
      if (each.outcome == Outcome::wrong && each.mistake.empty() &&
          std::ranges::find(each.shows, shown.mistake) != each.shows.end()) {
        each.mistake = shown.mistake;
        shown.tests.push_back(&each);
      }
    judged.shown.push_back(std::move(shown));
  }
}

}  // namespace posenc::cli::conform
