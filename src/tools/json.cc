// What a tool found, as JSON.
#include "posenc/tools.h"
#include "src/text/json_writer.h"

namespace posenc {

std::string to_json(const Finding& finding) {
  detail::JsonWriter out;
  out.object()
      .member("code", finding.code)
      .member("severity", name(finding.severity))
      .member("stack", finding.stack ? std::optional(name(*finding.stack)) : std::nullopt)
      .member("layer",
              finding.layers.empty() ? std::nullopt : std::optional(finding.layers.front()))
      .member("layers", finding.layers)
      .member("pair", finding.pair)
      .member("position", finding.position)
      .member("expected", finding.expected)
      .member("found", finding.found)
      .member("message", finding.message)
      .member("cure", finding.cure)
      .end();
  return out.text;
}

}  // namespace posenc
