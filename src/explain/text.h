// Numbers and layer lists as people read them, for the sentences of an explanation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posenc/model.h"

namespace posenc {

struct Ask;  // posenc/explain.h

namespace detail {

std::string grouped(std::int64_t number);               // 131,072
std::string shown(double number, int significant = 5);  // 6.2832, 54,410, 2.56 million, 2.5e-06
std::string layer_list(std::span<const std::int64_t> layers);  // "0–31", "3, 7, … 47", "none"

// The scaling of a group by which its rotation depends on the length of the text: "dynamic NTK",
// "LongRoPE", "dynamic YaRN"; "" where it does not.
std::string scaling_by_length(const LayerGroup& group);

// "2,048 tokens", "16 blocks of 128 tokens": what an indexer lets a query see.
std::string picked_text(const Picked& picked);

// The model's own warnings, and those of the length that is asked for. Errors: a length below 0, a
// layer that the model lacks, a plan that does not reach the length.
Expected<std::vector<Warning>> warnings_at(const Model& model, const Ask& ask);

}  // namespace detail
}  // namespace posenc
