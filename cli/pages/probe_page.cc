#include "cli/pages/probe_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/pages/findings_page.h"

namespace posenc::cli {
namespace {

constexpr std::size_t name_columns_of_bars = 14;

// A line of bars, low where tokens were unlikely: [columns] of means.
std::string likelihood_bars(const std::vector<double>& heights, double least,
                            const Terminal& term) {
  constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view plain = "_.-~=+*#";
  std::string made;
  for (const double height : heights) {
    const double share = least < 0 ? std::clamp(1 - height / least, 0.0, 1.0) : 1;
    const auto level = static_cast<std::size_t>(std::min(7.0, share * 8));
    made += term.unicode ? std::string(blocks[level]) : std::string(1, plain[level]);
  }
  return made;
}

std::string likelihood_picture(const lab::ProbeResult& result, std::string_view second,
                               const Terminal& term) {
  if (result.evidence.size() < 8) return "";
  const std::size_t wide =
      std::min(page_width() - name_columns_of_bars - 2, result.evidence.size());
  std::vector<double> seen(wide), best(wide), other(wide), count(wide);
  const double last = static_cast<double>(result.evidence.back().read) + 1;
  const double first = static_cast<double>(result.evidence.front().read);
  for (const lab::EvidenceToken& one : result.evidence) {
    const double share = (static_cast<double>(one.read) - first) / (last - first);
    const auto column =
        std::min(wide - 1, static_cast<std::size_t>(share * static_cast<double>(wide)));
    seen[column] += one.seen;
    best[column] += one.best;
    other[column] += one.second;
    count[column] += 1;
  }
  double least = -0.1;
  for (std::size_t i = 0; i < wide; ++i)
    if (count[i] > 0)
      for (std::vector<double>* line : {&seen, &best, &other}) {
        (*line)[i] /= count[i];
        least = std::min(least, (*line)[i]);
      }
  std::string out = fmt::format(
      "\nlog-probability of each token, by tokens read, {} to {}; a full bar is 0, the lowest "
      "{:.1f} "
      "nats\n",
      grouped(result.evidence.front().read), grouped(result.evidence.back().read), least);
  out += padded("the server", name_columns_of_bars) + likelihood_bars(seen, least, term) + "\n";
  out += padded("the best", name_columns_of_bars) + likelihood_bars(best, least, term) + "\n";
  if (!second.empty())
    out += padded("the next", name_columns_of_bars) +
           term.dim(likelihood_bars(other, least, term)) + "\n";
  return out;
}

}  // namespace

std::string probe_page(const lab::ProbeResult& result, const lab::ProbedServer& server,
                       const Terminal& term) {
  std::string about = server.url + "  " + server.api;
  if (!server.model.empty()) about += ", " + printable(server.model, 60);
  std::string out =
      term.dim(wrapped(about, 4, 0)) + "\n\n" + term.bold(wrapped(result.sentence, 0, 0)) + "\n";
  if (result.sure > 0)
    out += fmt::format("Sure by {}.", result.sure >= 0.9995
                                          ? std::string("more than 99.9 %")
                                          : fmt::format("{:.1f} %", 100 * result.sure));
  const lab::Rated* next = lab::next_best(result);
  if (next != nullptr && !result.rated.empty())
    out += fmt::format("{}The next best is {}: e^{:.0f} times less likely.",
                       result.sure > 0 ? " " : "", next->title, std::min(999.0, -next->score));
  if (next != nullptr || result.sure > 0) out += "\n";
  std::string alike;
  for (std::size_t i = 1; i < result.rated.size(); ++i)
    if (result.rated[i].alike) alike += (alike.empty() ? "" : "; ") + result.rated[i].title;
  if (!alike.empty())
    out += term.dim(wrapped("Not told from it by these texts: " + alike + ".", 0, 0)) + "\n";
  if (!result.rated.empty()) {
    out += "\n" + term.bold(padded("hypothesis", 52) + "      ln L   off by") + "\n";
    std::size_t shown = 0;
    for (const lab::Rated& one : result.rated) {
      if (one.alike && shown > 0) continue;
      if (++shown > 4) break;
      out += fmt::format("{}{:>10.1f}   {:.4f}\n", padded(cut(one.title, 50), 52), one.score,
                         one.scale);
    }
    out += term.dim(fmt::format("{}{:>10}   {:.4f}\n",
                                padded("rounding and quantisation alone", 52), "", result.floor));
  }
  out += likelihood_picture(result, next != nullptr ? std::string_view(next->title) : "", term);
  if (result.verdict == lab::ProbeVerdict::unknown) {
    out += "\noff by, where so many tokens were read\n";
    for (const lab::Judge::Misfit& one : result.misfits)
      out += fmt::format("  {:>6}–{:<6} {:.4f}{}\n", one.from, one.to, one.scale,
                         one.scale > 4 * result.floor ? "  more than rounding" : "");
  }
  if (result.late)
    out += "\n" +
           wrapped(
               "The server tells each token's log-probability a token late "
               "(llama-cpp-python's echo does); read here as it is meant.",
               0, 0) +
           "\n";
  if (!result.findings.empty()) out += "\n" + findings_page(result.findings, term, "");
  std::int64_t longest = 0;
  for (const lab::AskedText& one : result.texts)
    longest = std::max(longest, one.tokens + one.generated);
  out += "\n" +
         term.dim(fmt::format("{} prompt tokens in {} requests, texts of up to {}; {:.0f} s",
                              grouped(result.tokens), result.requests, grouped(longest),
                              server.seconds)) +
         "\n";
  return out;
}

std::string apart_page(const lab::ServersApart& apart, const Terminal& term) {
  std::string out = "\n";
  if (apart.bands.empty()) return out + "The two tell nothing of the same tokens.\n";
  out += term.bold(apart.from == 0   ? "Both say the same, as far as they were asked."
                   : apart.from == 1 ? "They differ at every length."
                                     : "They differ from " + grouped(apart.from) + " tokens on.") +
         "\n";
  for (const lab::Judge::Misfit& one : apart.bands)
    out += fmt::format("  {:>6}–{:<6} read: apart by {:.4f} ({} log-probabilities)\n", one.from,
                       one.to, one.scale, one.n);
  return out;
}

}  // namespace posenc::cli
