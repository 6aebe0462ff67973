// Results as JSON for machines and as Markdown for the documentation.
#include <cmath>
#include <nlohmann/json.hpp>

#include "posenc/claims.h"

namespace posenc {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) list.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

Json known(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }
Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json json_of(const Verified& result) {
  const Claim& claim = *result.claim;
  Json measures = Json::array();
  for (const Measure& m : result.finding.measures)
    measures.push_back({{"what", m.what},
                        {"residual", finite(m.residual)},
                        {"tolerance", finite(m.tolerance)},
                        {"expected", m.inside ? "inside" : "outside"},
                        {"agrees", m.agrees()}});
  return {{"number", claim.number()},
          {"row", claim.row},
          {"group", claim.group},
          {"texts", words(claim.texts)},
          {"statement", claim.statement},
          {"verdict", name(claim.verdict)},
          {"correct", claim.correct},
          {"formula", known(claim.formula)},
          {"paper", known(claim.paper)},
          {"reproduce", claim.reproduce},
          {"computed", claim.check ? Json(result.finding.computed) : Json(nullptr)},
          {"measured", known(claim.measured)},
          {"machine", known(result.finding.machine)},
          {"measures", measures},
          {"agrees", claim.check ? Json(result.agrees) : Json(nullptr)},
          {"seconds", result.seconds}};
}

// A cell of a table: bars would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string row(const Verified& result) {
  const Claim& claim = *result.claim;
  std::string text = "| " + claim.number() + " | " + cell(claim.statement) + " | " +
                     std::string(name(claim.verdict)) + " | " + cell(claim.correct);
  if (!claim.formula.empty()) text += ": `" + cell(claim.formula) + "`";
  text += " | " + cell(claim.check ? result.finding.computed : claim.measured);
  if (!claim.paper.empty())
    text += " | [" + std::string(claim.paper) + "](https://arxiv.org/abs/" +
            std::string(claim.paper) + ") |\n";
  else
    text += " | |\n";
  return text;
}

}  // namespace

std::string to_json(std::span<const Verified> results) {
  Json list = Json::array();
  for (const Verified& result : results) list.push_back(json_of(result));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_markdown(std::span<const Verified> results) {
  std::string text =
      "# What is said about positional encodings, and whether it holds\n\n"
      "Five public introductions to positional encodings make the claims below; the statements are "
      "in our\n"
      "words. Every number in the fifth column was computed by posenc in double precision. `posenc "
      "verify`\n"
      "computes all of it again, with the residuals and their tolerances, and `posenc verify "
      "--claim 4b`\n"
      "shows one claim in full. This page is what `posenc verify --markdown` prints. A claim that "
      "several\n"
      "texts make stands under each.\n\n" +
      summary(results) + ".\n";
  for (const ClaimText& source : claim_texts()) {
    std::string rows;
    for (const Verified& result : results)
      if (result.claim->texts.contains(source.name)) rows += row(result);
    if (rows.empty()) continue;
    text +=
        "\n## " + std::string(source.name) + ": " + std::string(source.about) +
        "\n\n| | claim | verdict | what holds | computed | paper |\n|---|---|---|---|---|---|\n" +
        rows;
  }
  return text;
}

}  // namespace posenc
