// What a tool found: how grave it is and the code in the margin, then where, the two values, what
// follows and the cure.
#include "cli/pages/findings_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace posenc::cli {
namespace {

constexpr std::size_t margin = 17;

// "0–3, 8" of 0, 1, 2, 3, 8.
std::string runs(std::span<const std::int64_t> layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", layers[i]);
    if (last > i) text += fmt::format("–{}", layers[last]);
    i = last + 1;
  }
  return text;
}

std::string where(const Finding& finding) {
  std::string text;
  if (finding.stack && *finding.stack != Stack::text)
    text = std::string(name(*finding.stack)) + (finding.layers.empty() ? "" : ", ");
  if (!finding.layers.empty())
    text += (finding.layers.size() == 1 ? "layer " : "layers ") + runs(finding.layers);
  return text;
}

std::string painted(const Terminal& term, Severity severity, std::string_view text) {
  if (severity == Severity::error) return term.painted("31", text);
  return severity == Severity::warning ? term.yellow(text) : term.dim(text);
}

}  // namespace

std::string findings_page(std::span<const Finding> findings, const Terminal& term,
                          std::string_view none) {
  std::string out;
  bool grave = false;
  for (const Finding& finding : findings) {
    grave = grave || finding.severity != Severity::note;
    const std::string indent(margin, ' ');
    const std::string head = std::string(name(finding.severity)) + " " + finding.code;
    std::string label = head.size() < margin ? padded(head, margin) : head + "\n" + indent;
    label.replace(0, head.size(), painted(term, finding.severity, head));
    std::string values = finding.expected;
    if (!finding.found.empty()) values += (values.empty() ? "" : " → ") + finding.found;
    if (const std::string at = where(finding); !at.empty())
      values += (values.empty() ? "" : "; ") + at;
    if (finding.line) values += fmt::format("{}line {}", values.empty() ? "" : "; ", *finding.line);
    if (!finding.engines.empty())
      values = fmt::format("{}{}{}", fmt::join(finding.engines, ", "), values.empty() ? "" : ": ",
                           values);
    // Each part on lines of its own, the first behind the label.
    std::vector<std::string> parts;
    if (!values.empty()) parts.push_back(wrapped(values, margin, margin));
    if (!finding.message.empty()) parts.push_back(wrapped(finding.message, margin, margin));
    if (!finding.cure.empty())
      parts.push_back(term.dim("cure: ") + wrapped(finding.cure, margin, margin + 6));
    out += label + fmt::format("{}", fmt::join(parts, "\n" + indent)) + "\n";
  }
  if (!grave && !none.empty()) out += (out.empty() ? "" : "\n") + std::string(none) + "\n";
  return out;
}

std::string engines_page(std::span<const EngineDifferences> engines, const Terminal& term) {
  std::size_t label_width = 0;
  const auto label = [](const EngineReading& reading) {
    return fmt::format("{} {}", reading.engine.title, reading.version());
  };
  for (const EngineDifferences& one : engines)
    label_width = std::max(label_width, columns(label(one.reading)) + 2);
  const std::string indent(label_width, ' ');
  // What is not known of an unknown family holds of every engine, and is said once.
  const auto is_unknown = [](const EngineDifferences& one) {
    return !one.findings.empty() && one.findings.front().code == "not_known";
  };
  const bool once = std::ranges::count_if(engines, is_unknown) > 2;
  bool said = false;
  std::string others;
  std::string out;
  for (const EngineDifferences& one : engines) {
    if (once && is_unknown(one) && said) {
      others += (others.empty() ? "" : ", ") + label(one.reading);
      for (const Finding& finding : one.findings)
        if (finding.code == "no_class") others += " (no class for it)";
      continue;
    }
    said = said || is_unknown(one);
    std::string line = padded(label(one.reading), label_width);
    const auto add = [&](std::string_view lead, std::string_view text) {
      out += line + std::string(lead) + wrapped(text, label_width, label_width) + "\n";
      line = indent;
    };
    if (one.findings.empty()) add("", term.painted("32", "as the file says"));
    for (const Finding& finding : one.findings) {
      const std::string values = finding.expected.empty() && finding.found.empty()
                                     ? ""
                                     : fmt::format(" {} → {}", finding.expected, finding.found);
      const std::string at = where(finding);
      add("", painted(term, finding.severity,
                      std::string(name(finding.severity)) + " " + finding.code) +
                  values + (at.empty() ? "" : "; " + at) + ": " + finding.message);
    }
    for (const EngineNote& note : one.reading.notes)
      add("", term.dim(fmt::format("{}: {}", name(note.kind), note.what)));
  }
  if (!others.empty())
    out += padded("the same of", label_width) + wrapped(others, label_width, label_width) + "\n";
  return out;
}

}  // namespace posenc::cli
