// What a group of layers does about position, in plain sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/explain.h"

namespace posenc::detail {

// What the sentences are made from.
struct Subject {
  const Model& model;
  const LayerGroup& group;
  const GroupExplanation& facts;  // plan, pairs and bands are filled in
  std::int64_t asked = 0;         // 0: as constructed
};

std::string heading(const Subject& subject);
std::vector<std::string> sentences(const Subject& subject);
std::string amplitude_note(const Subject& subject);
std::vector<FormulaLine> formula_lines(const Subject& subject);  // formulas.cc
std::vector<std::string> model_words(const Explanation& explanation);

}  // namespace posenc::detail
