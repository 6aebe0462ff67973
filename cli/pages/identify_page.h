// What identify found, as people read it.
#pragma once

#include <span>
#include <string>

#include "cli/pages/terminal.h"
#include "posenc/identify.h"

namespace posenc::cli {

std::string identified_page(const Identified& found, const Terminal& term);

std::string identified_page(const IdentifiedTable& table, const Terminal& term);
std::string identified_page(const IdentifiedVectors& vectors, const Terminal& term);

// A page a group of layers that rotate alike, the largest first.
std::string identified_page(std::span<const IdentifiedLayer> layers, const Terminal& term);

}  // namespace posenc::cli
