#include "cli/pages/layout_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/pages/table.h"

namespace posenc::cli {
namespace {

std::string sent_text(double bytes) {
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (bytes < 1000) break;
    bytes /= 1000;
    unit = next;
  }
  return fmt::format("{:.3g} {}", bytes, unit);
}

std::string step_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string painted(const Terminal& term, layout::Verdict verdict) {
  const std::string_view word = name(verdict);
  if (verdict == layout::Verdict::breaks) return term.painted("31", word);
  return verdict == layout::Verdict::unknown ? term.yellow(word) : term.painted("32", word);
}

std::string layers_of(const layout::GroupVerdict& group) {
  return (group.stack == Stack::text ? "" : std::string(name(group.stack)) + " ") +
         listed(group.layers);
}

}  // namespace

std::string layout_page(const layout::Judgement& judgement, const Terminal& term) {
  std::string out = fmt::format("{} at {} tokens: {}\n", term.bold(judgement.sharding.text()),
                                grouped(judgement.length), painted(term, judgement.verdict));
  std::vector<std::vector<std::string>> rows = {
      {"layers", "verdict", "pairs of the busiest", "even", "sends"}};
  for (const layout::GroupVerdict& group : judgement.groups)
    rows.push_back({layers_of(group), std::string(name(group.verdict)),
                    group.pairs.empty() ? "–" : grouped(std::ranges::max(group.pairs)),
                    group.pairs.empty() ? "–" : fmt::format("{:.2f}", group.balance),
                    group.pairs.empty() ? "–" : sent_text(static_cast<double>(group.bytes))});
  out += table(rows, "", term);
  // What several groups need stands once.
  std::vector<std::pair<std::string, std::string>> needs;
  for (const layout::GroupVerdict& group : judgement.groups)
    for (const std::string& need : group.needs) {
      const auto same = std::ranges::find(needs, need, &std::pair<std::string, std::string>::first);
      if (same == needs.end())
        needs.emplace_back(need, layers_of(group));
      else if (same->second.size() < 40)
        same->second += "; " + layers_of(group);
    }
  if (!needs.empty()) out += "The engine must keep\n";
  for (const auto& [need, layers] : needs)
    out += "  " +
           wrapped(need + (judgement.groups.size() > 1 ? " (layers " + layers + ")" : ""), 4, 2) +
           "\n";
  if (judgement.seconds > 0 && judgement.verdict != layout::Verdict::breaks)
    out += wrapped(fmt::format(
                       "Predicted on {}: attention of a forward pass takes {}, and {:.0f} % of the "
                       "ranks' time is work.",
                       judgement.machine.name, step_text(judgement.seconds),
                       100 * judgement.efficiency),
                   2, 0) +
           "\n";
  out +=
      wrapped(fmt::format("Best: {}: {}.", judgement.best.layout, judgement.best.why), 2, 0) + "\n";
  return out;
}

}  // namespace posenc::cli
