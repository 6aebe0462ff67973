// The claims as a page: a table of all, or one in full. The claims are a span, so that tests bring
// their own.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/pages/terminal.h"
#include "posenc/claims.h"

namespace posenc::cli {

// Which claims are wanted; empty fields want all.
struct Wanted {
  std::string claim;  // "4b", or "4" for all of a row
  std::string text;   // "S2"
  std::string group;  // a part of its name
};
// Errors: nothing matches.
Expected<std::vector<Claim>> chosen(std::span<const Claim> claims, const Wanted& wanted);

// Runs them in order; `before` hears of each.
std::vector<Verified> verified(std::span<const Claim> claims,
                               const std::function<void(std::size_t, const Claim&)>& before = {});

// 0 if every computation agrees with its verdict, else 1.
int exit_code(std::span<const Verified> results);

std::string table(std::span<const Verified> results, const Terminal& term);
std::string in_full(const Verified& result, const Terminal& term);

}  // namespace posenc::cli
