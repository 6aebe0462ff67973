// Numbers and layer lists as people read them.
#include "src/explain/text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/text/number.h"

namespace posenc::detail {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string shown(double number, int significant) {
  if (!std::isfinite(number)) return number > 0 ? "∞" : "−∞";
  const double size = std::abs(number);
  if (size >= 1e15) return rounded_text(number, significant);
  // What three digits round up to a thousand has the next word.
  constexpr double nearly = 0.9995;
  if (size >= nearly * 1e12)
    return rounded_text(number / 1e12, std::min(significant, 3)) + " trillion";
  if (size >= nearly * 1e9)
    return rounded_text(number / 1e9, std::min(significant, 3)) + " billion";
  if (size >= 1e6) return rounded_text(number / 1e6, std::min(significant, 3)) + " million";
  if (size >= 1e4) return grouped(std::llround(number));
  return rounded_text(number, significant);
}

std::string scaling_by_length(const LayerGroup& group) {
  for (const Scheme& scheme : group.schemes)
    if (const Rope* rope = std::get_if<Rope>(&scheme)) {
      if (std::holds_alternative<DynamicNtk>(rope->scaling)) return "dynamic NTK";
      if (std::holds_alternative<LongRope>(rope->scaling)) return "LongRoPE";
      if (const Yarn* yarn = std::get_if<Yarn>(&rope->scaling); yarn && yarn->dynamic)
        return "dynamic YaRN";
    }
  return "";
}

std::string layer_list(std::span<const std::int64_t> layers) {
  if (layers.empty()) return "none";
  struct Run {
    std::int64_t first, last;
  };
  std::vector<Run> runs;
  for (const std::int64_t layer : layers) {
    if (runs.empty() || runs.back().last + 1 != layer) runs.push_back({layer, layer});
    runs.back().last = layer;
  }
  const auto text = [](const Run& run) {
    if (run.first == run.last) return std::to_string(run.first);
    return std::to_string(run.first) + "–" + std::to_string(run.last);
  };
  constexpr std::size_t most = 4;  // more runs than this are cut in the middle
  std::string list = text(runs[0]);
  const std::size_t shown_runs = runs.size() <= most ? runs.size() : 2;
  for (std::size_t i = 1; i < shown_runs; i++) list += ", " + text(runs[i]);
  if (runs.size() > most) list += ", … " + text(runs.back());
  return list;
}

std::string picked_text(const Picked& picked) {
  const auto counted = [](std::int64_t count, const char* noun) {
    return grouped(count) + " " + noun + (count == 1 ? "" : "s");
  };
  if (picked.block == 1) return counted(picked.count, "token");
  return counted(picked.count, "block") + " of " + counted(picked.block, "token");
}

}  // namespace posenc::detail
