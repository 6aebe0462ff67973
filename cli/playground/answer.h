// What `posenc serve` says to a request: bytes for bytes, with no socket in sight.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/playground/site.h"

namespace posenc::cli {

// The head and then the body, which lies in the program.
struct Answer {
  std::string head;
  std::string_view body;
};

constexpr std::size_t longest_head = 8 * 1024;  // of a request, its empty line included

// The answer to the request that `received` begins with; none while its head is not whole and no
// longer than longest_head. GET and HEAD are answered with `files`, and only where the request
// names this machine or `host` (--host). All else is refused. A body is never looked at, so none
// needs to be read.
std::optional<Answer> answer(std::string_view received, std::string_view host,
                             std::span<const SiteFile> files);

}  // namespace posenc::cli
