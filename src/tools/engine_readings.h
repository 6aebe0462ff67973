// What several engines make of one model. Most of them read it alike, so that each difference is
// looked for once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace posenc::detail {

class EngineReadings {
 public:
  // The model must outlive it; length: as engine_differences() has it.
  EngineReadings(const Model& model, std::int64_t length) : model_(model), length_(length) {}

  // Holds until another engine is asked for.
  Expected<EngineDifferences*> read_by(std::string_view engine);

  // differences() of the model and of what an engine makes of it: an engine changes schemes, logits
  // and the context, and nothing else.
  Expected<std::vector<Finding>> differences_from(const Model& reading, std::int64_t length);

 private:
  struct Seen {
    std::vector<LayerGroup> groups;
    std::int64_t context, length;
    std::vector<Finding> findings;
  };
  const Model& model_;
  const std::int64_t length_;
  std::vector<Seen> seen_;
  EngineDifferences now_ = {};
};

}  // namespace posenc::detail
