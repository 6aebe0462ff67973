#include "cli/pages/picture_page.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "cli/pages/table.h"

namespace posenc::cli {
namespace {

std::string picture_text(const PictureSize& size) {
  const std::string sides = fmt::format("{}×{}", size.height, size.width);
  return size.frames > 1 ? fmt::format("{} frames of {}", size.frames, sides) : sides;
}

std::string axis_rows(const PicturePlan& plan, const Terminal& term) {
  std::vector<std::vector<std::string>> rows{
      {"axis", "positions", "pairs", "turned in training", "would come round"}};
  for (const PictureAxis& axis : plan.axes)
    rows.push_back({axis.name,
                    axis.factor > 1 ? fmt::format("{} → {}, ×{:.3g}", grouped(axis.trained),
                                                  grouped(axis.wanted), axis.factor)
                                    : grouped(axis.wanted),
                    fmt::format("{}", axis.pairs), fmt::format("{}", axis.turning),
                    listed(axis.repeats)});
  return table(rows, "", term);
}

std::string option_rows(const PicturePlan& plan, const Terminal& term) {
  std::vector<std::string> head{"option"};
  for (const PictureAxis& axis : plan.axes) head.push_back("unseen, " + axis.name);
  head.insert(head.end(), {"neighbours nearer", "cos, sin"});
  std::vector<std::vector<std::string>> rows{head};
  for (const PictureOption& option : plan.options) {
    std::vector<std::string> row{option.name};
    for (const auto& pairs : option.unseen) row.push_back(listed(pairs));
    row.push_back(fmt::format("{:.3g}, {:.3g} times", option.fastest_pair, option.middle_pair));
    row.push_back(option.magnitude == 1 ? "as before" : fmt::format("×{:.4g}", option.magnitude));
    rows.push_back(std::move(row));
  }
  return table(rows, plan.recommended, term);
}

std::string fraction_rows(const PicturePlan& plan, const Terminal& term) {
  std::vector<std::vector<std::string>> rows{{"axis", "last token at", "share of its range"}};
  for (const PictureAxis& axis : plan.axes) {
    const std::string_view unit = axis.name == "time" ? "s" : "px";
    rows.push_back({axis.name,
                    fmt::format("{:.4g} of {:.4g} {}", axis.coordinate, axis.range, unit),
                    fmt::format("{:.3g} %{}", 100 * axis.coordinate / axis.range,
                                axis.coordinate > axis.range ? ", beyond it" : "")});
  }
  return table(rows, "", term);
}

std::string grid_rows(const PicturePlan& plan, const Terminal& term) {
  std::vector<std::vector<std::string>> rows{{"axis", "patches"}};
  for (const PictureAxis& axis : plan.axes)
    rows.push_back(
        {axis.name,
         fmt::format("{} → {}, ×{:.3g}", grouped(axis.trained), grouped(axis.wanted),
                     static_cast<double>(axis.wanted) / static_cast<double>(axis.trained))});
  return table(rows, "", term);
}

}  // namespace

std::string picture_page(const std::string& title, const PicturePlan& plan, const Terminal& term) {
  std::string out;
  const auto line = [&](std::string_view label, const std::string& text) {
    out +=
        term.blue(padded(label, label_margin)) + wrapped(text, label_margin, label_margin) + "\n";
  };
  out += term.bold(title) + "  " +
         term.dim(fmt::format("{} → {}", picture_text(plan.trained), picture_text(plan.to))) +
         "\n\n";
  const bool fractions = plan.axes.front().range > 0, rotates = !plan.options.empty();
  line(fractions ? "reach" : "training",
       fmt::format("{}, {}", picture_text(plan.trained), plan.trained_by));
  out += "\n" +
         (fractions ? fraction_rows(plan, term)
          : rotates ? axis_rows(plan, term) + "\n" + option_rows(plan, term)
                    : grid_rows(plan, term)) +
         "\n";
  line("recommended", fmt::format("{} (rule {}{}): {}", plan.recommended, plan.rule,
                                  plan.source.empty() ? "" : ", " + plan.source, plan.reason));
  out += "\n";
  for (const auto& [tool, words] : plan.said) {
    out += term.dim(fmt::format("for {}:", tool)) + "\n" + words + "\n";
  }
  if (!plan.said.empty()) out += "\n";
  for (const std::string& sentence : plan.unknown) line("not known", sentence);
  return out;
}

}  // namespace posenc::cli
