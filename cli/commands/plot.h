// The kinds of `posenc plot`, for the command and for the gallery of all of them.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "cli/figures/draw/draw.h"
#include "cli/figures/kind.h"

namespace posenc::cli {

std::span<const Kind* const> all_kinds();

// By the name's end: .png, .svg, .pdf.
Expected<Format> format_of(const std::string& path, std::string_view where);

Run define_gallery(CLI::App& app);

}  // namespace posenc::cli
