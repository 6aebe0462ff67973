// A plan for a longer context: options as rows, then one in words.
#include "cli/pages/extend_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cli/pages/table.h"

namespace posenc::cli {
namespace {

std::string times(double x) { return x > 0.9995 && x < 1.0005 ? "" : fmt::format("×{:.3g}", x); }

std::string size_of(std::int64_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(units); ++unit) size /= 1024;
  return fmt::format("{:.3g} {}", size, units[unit]);
}

std::vector<std::string> row_of(const ContextOption& option) {
  return {option.name,
          option.unseen.empty()
              ? "none"
              : fmt::format("{} from {}", listed(option.unseen), grouped(*option.unseen_from)),
          times(option.fastest_pair).empty() && times(option.middle_pair).empty()
              ? "as before"
              : fmt::format("{:.3g}, {:.3g} times", option.fastest_pair, option.middle_pair),
          times(option.logits).empty() ? "as before" : times(option.logits),
          option.short_texts_from ? fmt::format("from {}", grouped(*option.short_texts_from))
                                  : "as before",
          option.rerotate ? "rotate again" : "stay"};
}

std::string table_of(const ContextPlan& plan, const Terminal& term) {
  std::vector<std::vector<std::string>> rows{
      {"option", "unseen pairs", "neighbours nearer", "logits", "short texts off", "cached keys"}};
  for (const ContextOption& option : plan.options)
    if (option.unavailable.empty()) rows.push_back(row_of(option));
  return table(rows, plan.recommended, term);
}

}  // namespace

std::string extend_page(const Model& model, const ContextPlan& plan, const Terminal& term) {
  std::string out;
  const auto line = [&](std::string_view label, const std::string& text) {
    out +=
        term.blue(padded(label, label_margin)) + wrapped(text, label_margin, label_margin) + "\n";
  };
  out += term.bold(model.name) + "  " +
         term.dim(plan.trained > 0
                      ? fmt::format(
                            "{} → {} tokens, {:.3g} times", grouped(plan.trained), grouped(plan.to),
                            static_cast<double>(plan.to) / static_cast<double>(plan.trained))
                      : fmt::format("to {} tokens", grouped(plan.to))) +
         "\n\n";
  if (!plan.turns.empty()) {
    const auto whole = std::ranges::count_if(plan.turns, [](double turns) { return turns >= 1; });
    line("training", fmt::format("{}; {} of {} pairs made a full turn within {} tokens",
                                 plan.trained_by, whole, plan.turns.size(), grouped(plan.trained)));
  }
  if (!plan.layers.empty())
    line("layers", plan.untouched.empty()
                       ? fmt::format("{}: {}", listed(plan.layers), plan.scheme)
                       : fmt::format("{}: {}; {} are left as they are", listed(plan.layers),
                                     plan.scheme, listed(plan.untouched)));
  else
    line("position", plan.scheme);
  if (plan.least_base)
    line("base", fmt::format("{:.6g}; at this length from about {:.2g} on a key like the query "
                             "outweighs others at every distance (2405.14591)",
                             plan.base, *plan.least_base));
  if (!plan.options.empty()) out += "\n" + table_of(plan, term) + "\n";
  for (const ContextOption& option : plan.options)
    if (!option.unavailable.empty()) line(option.name, "not to be had: " + option.unavailable);
  line("recommended", fmt::format("{} (rule {}{}): {}", plan.recommended, plan.rule,
                                  plan.source.empty() ? "" : ", " + plan.source, plan.reason));
  if (plan.said) {
    out += fmt::format(
        "\n{}\n{}\n\n",
        term.dim(fmt::format("for {} {}:", plan.said->engine.title, plan.said->engine.version)),
        plan.said->target);
    for (const EngineNote& note : plan.said->notes) line(name(note.kind), note.what);
  }
  for (const std::string& sentence : plan.engine) line("besides", sentence);
  std::int64_t whole = 0, within = 0;
  for (const CacheShare& share : plan.cache)
    whole += share.bytes / 2, within += share.bytes_within_window / 2;
  if (whole > 0) {
    std::string text = fmt::format("{} of keys and values a sequence", size_of(within * 2));
    for (const CacheShare& share : plan.cache)
      if (share.window && *share.window < plan.to)
        text +=
            fmt::format("; layers {} keep {} tokens", listed(share.layers), grouped(*share.window));
    if (within < whole)
      text += fmt::format("; {} where an engine keeps all of them", size_of(whole * 2));
    line("cache", text);
  }
  for (const std::string& sentence : plan.unknown) line("not known", sentence);
  return out;
}

}  // namespace posenc::cli
