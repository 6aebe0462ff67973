#include "cli/pages/claims_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace posenc::cli {
namespace {

// Lines of at most `width` columns.
std::vector<std::string> lines_of(std::string_view text, std::size_t width) {
  std::vector<std::string> lines{""};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word = cut(text.substr(0, end), width);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string& line = lines.back();
    if (!line.empty() && columns(line) + 1 + columns(word) > width) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines;
}

std::string bound(const Measure& measure) {
  return fmt::format("{:.2g} {} {:.2g}", measure.residual,
                     measure.residual <= measure.tolerance ? "≤" : ">", measure.tolerance);
}

std::string painted(const Terminal& term, const Verified& result, std::string_view text) {
  if (!result.agrees) return term.painted("31", text);
  switch (result.claim->verdict) {
    case Verdict::right: return term.painted("32", text);
    case Verdict::sloppy: return term.yellow(text);
    case Verdict::wrong: return term.painted("35", text);
    case Verdict::measured: return term.blue(text);
    case Verdict::unchecked: return term.dim(text);
  }
  return std::string(text);
}

std::string verdict_of(const Verified& result) {
  return std::string(name(result.claim->verdict)) + (result.agrees ? "" : " DISAGREES");
}

// Columns and their widths: with two spaces between, a page. What is claimed and what came out
// share what the numbers leave.
std::string row(const std::vector<std::string>& cells, const auto& paint_last) {
  constexpr std::size_t number_width = 3, texts_width = 5, bound_width = 13, verdict_width = 9;
  const std::size_t rest =
      page_width() - (number_width + texts_width + bound_width + verdict_width + 5 * 2);
  const std::size_t claim_width = rest * 7 / 15;
  const std::size_t widths[] = {number_width,       texts_width, claim_width,
                                rest - claim_width, bound_width, verdict_width};
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 0;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    lines.push_back(lines_of(cells[c], widths[c]));
    height = std::max(height, lines.back().size());
  }
  std::string out;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string text = l < lines[c].size() ? lines[c][l] : "";
      const bool last = c + 1 == cells.size();
      line += last ? (text.empty() ? "" : paint_last(text)) : padded(text, widths[c]) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "S1  Positional Encoding ...", a line for each text that is named.
std::string titles(std::span<const Verified> results, const Terminal& term) {
  std::string out;
  for (const ClaimText& text : claim_texts()) {
    const auto named = [&](const Verified& result) {
      return result.claim->texts.contains(text.name);
    };
    if (std::ranges::any_of(results, named))
      out += term.dim(text.name) + "  " + wrapped(text.title, 4, 4) + '\n';
  }
  return out;
}

}  // namespace

Expected<std::vector<Claim>> chosen(std::span<const Claim> claims, const Wanted& wanted) {
  const std::string number = lower(wanted.claim), text = lower(wanted.text),
                    group = lower(wanted.group);
  std::vector<Claim> out;
  for (const Claim& claim : claims) {
    if (!number.empty() && number != claim.number() && number != std::to_string(claim.row))
      continue;
    if (!text.empty() && !(" " + lower(claim.texts) + " ").contains(" " + text + " ")) continue;
    if (!lower(claim.group).contains(group)) continue;
    out.push_back(claim);
  }
  if (!out.empty()) return out;
  std::vector<std::string_view> groups;
  for (const Claim& claim : claims)
    if (std::ranges::find(groups, claim.group) == groups.end()) groups.push_back(claim.group);
  std::string list;
  for (const std::string_view name : groups) list += (list.empty() ? "" : ", ") + std::string(name);
  const std::string asked = !number.empty() ? wanted.claim
                            : !text.empty() ? wanted.text
                                            : wanted.group;
  return fail("verify", "no claim matches", "'" + asked + "'",
              "claims are " + claims.front().number() + " to " + claims.back().number() +
                  ", texts S0 to S4, groups: " + list);
}

std::vector<Verified> verified(std::span<const Claim> claims,
                               const std::function<void(std::size_t, const Claim&)>& before) {
  std::vector<Verified> results;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (before) before(i, claims[i]);
    results.push_back(verify(claims[i]));
  }
  return results;
}

int exit_code(std::span<const Verified> results) {
  return std::ranges::all_of(results, &Verified::agrees) ? 0 : 1;
}

std::string table(std::span<const Verified> results, const Terminal& term) {
  const auto plain = [](const std::string& text) { return text; };
  std::string out = term.bold(
      row({"", "text", "claim", "computed", "residual against tolerance", "verdict"}, plain));
  for (const Verified& result : results) {
    const Claim& claim = *result.claim;
    const std::vector<Measure>& measures = result.finding.measures;
    // The measure that decides; or the one that spoils the verdict.
    const auto off = std::ranges::find_if_not(measures, &Measure::agrees);
    const std::string& machine = result.finding.machine;
    const std::string decides =
        measures.empty() ? "" : bound(off == measures.end() ? measures.front() : *off);
    out += '\n' + row({claim.number(), std::string(claim.texts), std::string(claim.statement),
                       result.finding.computed + (machine.empty() ? "" : " " + machine), decides,
                       verdict_of(result)},
                      [&](const std::string& text) { return painted(term, result, text); });
  }
  return out + '\n' + wrapped(summary(results), 0, 0) + "\n\n" + titles(results, term);
}

std::string in_full(const Verified& result, const Terminal& term) {
  const Claim& claim = *result.claim;
  std::string out = term.bold(claim.number()) + "  " + wrapped(claim.statement, 4, 5) + '\n';
  const auto line = [&](std::string_view label, std::string_view text) {
    if (!text.empty())
      out += "  " + term.dim(padded(label, 11)) + " " + wrapped(text, 14, 14) + '\n';
  };
  out += "  " + term.dim(padded("verdict", 11)) + " " + painted(term, result, verdict_of(result)) +
         '\n';
  bool first_text = true;
  for (const ClaimText& text : claim_texts()) {
    if (!claim.texts.contains(text.name)) continue;
    line(first_text ? "said by" : "", fmt::format("{}, {}", text.name, text.title));
    first_text = false;
  }
  line("subject", claim.group);
  line("what holds", claim.correct);
  line("formula", claim.formula);
  if (claim.check) line("computed", result.finding.computed);
  line("measured", claim.measured);
  line("here", result.finding.machine);
  bool first = true;
  for (const Measure& measure : result.finding.measures) {
    line(first ? "measured" : "",
         fmt::format("{}: {}{}", measure.what, bound(measure),
                     measure.agrees() ? measure.inside ? "" : ", as it must"
                     : measure.inside ? ", TOO LARGE"
                                      : ", NOT LARGE ENOUGH"));
    first = false;
  }
  if (!claim.paper.empty()) line("paper", "https://arxiv.org/abs/" + std::string(claim.paper));
  line(claim.check ? "reproduce" : "see", claim.reproduce);
  return out;
}

}  // namespace posenc::cli
