// What a probe found, as programs read it (docs/schemas/probe.schema.json).
#include <cmath>
#include <string>
#include <nlohmann/json.hpp>

#include "evidence/lab/endpoint/probe.h"

namespace posenc::lab {
namespace {

using Page = nlohmann::ordered_json;

Page bands_of(const std::vector<Judge::Misfit>& bands) {
  Page made = Page::array();
  for (const Judge::Misfit& one : bands)
    made.push_back({{"from", one.from}, {"to", one.to}, {"scale", one.scale}, {"n", one.n}});
  return made;
}

Page page_of(const ProbeResult& result, const ProbedServer& server) {
  Page rated = Page::array(), texts = Page::array(), evidence = Page::array();
  for (const Rated& one : result.rated)
    rated.push_back({{"id", one.id},
                     {"title", one.title},
                     {"score", one.score},
                     {"probability", one.probability},
                     {"scale", std::isfinite(one.scale) ? Page(one.scale) : Page(nullptr)},
                     {"alike", one.alike}});
  for (const AskedText& one : result.texts)
    texts.push_back(
        {{"tokens", one.tokens}, {"generated", one.generated}, {"distance", one.distance}});
  for (const EvidenceToken& one : result.evidence)
    evidence.push_back(
        {{"read", one.read}, {"server", one.seen}, {"best", one.best}, {"second", one.second}});
  Page findings = Page::array();
  for (const Finding& one : result.findings)
    findings.push_back(Page::parse(posenc::to_json(one), nullptr, false));
  return {{"url", server.url},
          {"server", {{"model", server.model}, {"api", server.api}, {"context", server.context}}},
          {"verdict", name(result.verdict)},
          {"sentence", result.sentence},
          {"sure", result.sure},
          {"hypothesis", result.rated.empty() ? Page(nullptr) : Page(result.rated.front().id)},
          {"next_best", next_best(result) == nullptr ? Page(nullptr) : Page(next_best(result)->id)},
          {"tokens", result.tokens},
          {"requests", result.requests},
          {"seconds", server.seconds},
          {"noise", {{"floor", result.floor}, {"scale", result.scale}}},
          {"late", result.late},
          {"texts", texts},
          {"hypotheses", rated},
          {"off", bands_of(result.misfits)},
          {"evidence", evidence},
          {"findings", findings}};
}

}  // namespace

const Rated* next_best(const ProbeResult& result) {
  for (const Rated& one : result.rated)
    if (!one.alike) return &one;
  return nullptr;
}

std::string to_json(const std::vector<ProbeResult>& results,
                    const std::vector<ProbedServer>& servers, std::string_view model) {
  Page all = Page::array();
  for (std::size_t i = 0; i < results.size(); ++i) all.push_back(page_of(results[i], servers[i]));
  Page made{{"model", model}, {"servers", all}};
  if (results.size() == 2) {
    const ServersApart apart = servers_apart(results[0], results[1]);
    made["apart"] = {{"from", apart.from > 0 ? Page(apart.from) : Page(nullptr)},
                     {"floor", apart.floor},
                     {"bands", bands_of(apart.bands)}};
  }
  return made.dump(-1, ' ', false, Page::error_handler_t::replace);  // an address may be any bytes
}

}  // namespace posenc::lab
