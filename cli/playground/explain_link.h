// What a link of the playground stands for: its values in words, and the plan of its scheme.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pages/terminal.h"
#include "cli/playground/link.h"
#include "posenc/model.h"

namespace posenc::cli {

// A model of one layer with the view's scheme, and the length to explain it for.
struct Linked {
  Model model;
  std::int64_t length = 0;
};

// What the link leaves open (a factor, a trained length) follows from its lengths; each such rule,
// and each setting that the scheme does not take, is a note.
// Errors: no such scheme or scaling.
Expected<Linked> linked_model(const View& view, std::vector<std::string>& notes);

// The stated values, one a line.
std::string link_page(const ReadLink& read, const Terminal& term);

}  // namespace posenc::cli
