#include <algorithm>
#include <nlohmann/json.hpp>

#include "evidence/lab/model/perplexity.h"

namespace posenc::lab {

// In this order, whatever the letters of the keys.
using Json = nlohmann::ordered_json;

std::string to_json(const Perplexity& perplexity) {
  Json curves = Json::array();
  for (const LossCurve& curve : perplexity.curves) {
    Json blocks = Json::array();
    for (const LossBlock& block : curve.blocks)
      blocks.push_back(
          {{"from", block.from}, {"to", block.to}, {"nats", block.nats}, {"n", block.n}});
    curves.push_back(
        {{"scaling", curve.stretch.scaling}, {"factor", curve.stretch.factor}, {"blocks", blocks}});
  }
  Json made{{"model", perplexity.model},
            {"tokens", perplexity.tokens},
            {"windows", perplexity.windows},
            {"length", perplexity.length},
            {"trained", perplexity.trained}};
  if (perplexity.kept.tokens > 0) {
    made["keep"] = perplexity.kept.tokens;
    made["sinks"] = perplexity.kept.first;
  }
  made["curves"] = curves;
  return made.dump();
}

Expected<Perplexity> perplexity_of_json(std::string_view text, std::string_view where) {
  const Json all = Json::parse(text, nullptr, false);
  const auto damaged = [&](std::string_view what) {
    return fail(where, "must be what posenc lab perplexity --json prints", what, "make it again");
  };
  const auto number = [](const Json& of, const char* key) {
    return of.is_object() && of.contains(key) && of[key].is_number() ? of[key].get<double>() : -1;
  };
  const auto count = [&](const Json& of, const char* key) {
    const double x = number(of, key);
    return x >= 0 && x < 1e15 ? static_cast<std::int64_t>(x) : -1;
  };
  if (!all.is_object() || !all.contains("curves") || !all["curves"].is_array() ||
      all["curves"].empty())
    return damaged("no curves");
  Perplexity made{.model = all.contains("model") && all["model"].is_string()
                               ? all["model"].get<std::string>()
                               : "",
                  .tokens = count(all, "tokens"),
                  .windows = count(all, "windows"),
                  .length = count(all, "length"),
                  .trained = std::max<std::int64_t>(0, count(all, "trained"))};
  for (const Json& curve : all["curves"]) {
    if (!curve.is_object() || !curve.contains("scaling") || !curve["scaling"].is_string() ||
        !curve.contains("blocks") || !curve["blocks"].is_array())
      return damaged("a curve without its blocks");
    LossCurve& at = made.curves.emplace_back();
    at.stretch = {curve["scaling"].get<std::string>(), number(curve, "factor")};
    for (const Json& block : curve["blocks"])
      at.blocks.push_back(
          {count(block, "from"), count(block, "to"), number(block, "nats"), count(block, "n")});
    if (at.blocks.size() != made.curves.front().blocks.size() || at.blocks.empty())
      return damaged("curves of several lengths");
  }
  return made;
}

}  // namespace posenc::lab
