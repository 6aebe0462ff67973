// What a probe found, as people read it.
#pragma once

#include <string>
#include <vector>

#include "cli/pages/terminal.h"
#include "evidence/lab/endpoint/probe.h"

namespace posenc::cli {

std::string probe_page(const lab::ProbeResult& result, const lab::ProbedServer& server,
                       const Terminal& term);
// Of two servers that were asked the same texts.
std::string apart_page(const lab::ServersApart& apart, const Terminal& term);

}  // namespace posenc::cli
