#include <cstddef>
#include <nlohmann/json.hpp>

#include "evidence/lab/model/reuse.h"

namespace posenc::lab {
namespace {

// In this order, whatever the letters of the keys.
using Page = nlohmann::ordered_json;

Page page_of(const Lost& lost) {
  return {{"divergence", lost.divergence}, {"loss", lost.loss}, {"by_distance", lost.by_distance}};
}

}  // namespace

std::string to_json(const Reuse& reuse, std::span<const Drift> drifts, std::int64_t moves) {
  Page chunks = Page::array(), layers = Page::array(), dtypes = Page::array();
  for (const ReusedChunk& chunk : reuse.chunks)
    chunks.push_back({{"read", name(chunk.read)},
                      {"moved", chunk.moved},
                      {"anew", chunk.anew},
                      {"lost", page_of(chunk.lost)}});
  for (const ReusedLayer& layer : reuse.layers)
    layers.push_back(
        {{"keys", layer.keys}, {"values", layer.values}, {"lost", page_of(layer.lost)}});
  for (const Drift& drift : drifts)
    dtypes.push_back({{"dtype", name(drift.dtype)},
                      {"stood", drift.stood},
                      {"once", drift.once},
                      {"stepwise", drift.stepwise},
                      {"lost_once", page_of(drift.lost_once)},
                      {"lost_stepwise", page_of(drift.lost_stepwise)}});
  Page made{{"model", reuse.model},
            {"prefix", reuse.options.prefix},
            {"chunk", reuse.options.chunk},
            {"tail", reuse.options.tail},
            {"places", reuse.options.places},
            {"bands", reuse.bands},
            {"chunks", chunks},
            {"left_out", page_of(reuse.left_out)},
            {"layers", layers}};
  if (!drifts.empty()) {
    made["moves"] = moves;
    made["drift"] = dtypes;
  }
  return made.dump();
}

Expected<Reuse> reuse_of_json(std::string_view text, std::string_view where) {
  const Page all = Page::parse(text, nullptr, false);
  const auto damaged = [&](std::string_view what) {
    return fail(where, "must be what posenc lab reuse --json prints", what, "make it again");
  };
  const auto list = [](const Page& of, const char* key) {
    return of.is_object() && of.contains(key) && of[key].is_array() ? of[key] : Page::array();
  };
  const auto number = [](const Page& of, const char* key) {
    return of.is_object() && of.contains(key) && of[key].is_number() ? of[key].get<double>() : 0.0;
  };
  const auto count = [&](const char* key) { return static_cast<std::int64_t>(number(all, key)); };
  if (list(all, "chunks").empty() || list(all, "layers").empty() || list(all, "bands").empty())
    return damaged("no chunks, layers or bands");
  const auto lost = [&](const Page& of) {
    Lost made{.divergence = number(of, "divergence"), .loss = number(of, "loss")};
    for (const Page& each : list(of, "by_distance"))
      made.by_distance.push_back(each.is_number() ? each.get<double>() : 0.0);
    made.by_distance.resize(list(all, "bands").size());
    return made;
  };
  const auto member = [](const Page& of, const char* key) {
    return of.is_object() && of.contains(key) ? of[key] : Page();
  };
  Reuse made{.model = member(all, "model").is_string() ? all["model"].get<std::string>() : "",
             .options = {.prefix = count("prefix"),
                         .chunk = count("chunk"),
                         .tail = count("tail"),
                         .places = count("places")},
             .left_out = lost(member(all, "left_out"))};
  for (const Page& band : list(all, "bands"))
    made.bands.push_back(band.is_number() ? band.get<std::int64_t>() : 0);
  for (const Page& chunk : list(all, "chunks"))
    made.chunks.push_back({.read = member(chunk, "read") == name(ChunkRead::alone)
                                       ? ChunkRead::alone
                                       : ChunkRead::elsewhere,
                           .moved = member(chunk, "moved") == true,
                           .anew = static_cast<std::int64_t>(number(chunk, "anew")),
                           .lost = lost(member(chunk, "lost"))});
  for (const Page& layer : list(all, "layers"))
    made.layers.push_back({.keys = number(layer, "keys"),
                           .values = number(layer, "values"),
                           .lost = lost(member(layer, "lost"))});
  return made;
}

}  // namespace posenc::lab
