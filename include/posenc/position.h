// position.json: what a model's position comes down to, layer by layer, for another program. It
// says nothing of where a value came from, and needs no family to be known: spec/position.md has
// its rules, spec/position.schema.json its schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/explain.h"

namespace [[gnu::visibility("default")]] posenc {

// Layers that treat position alike.
struct PositionGroup {
  Stack stack = Stack::text;
  std::vector<std::int64_t> layers = {};               // ascending, from 0 in each stack
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;  // 0: not known
  bool causal = true;
  std::optional<std::int64_t> window = {};  // tokens
  bool chunked = false;                     // the window does not slide
  bool sink_logits = false;                 // the softmax counts a learned one of each head
  Plan plan = {};
  bool operator==(const PositionGroup&) const = default;
};

// A model, group by group.
struct PositionFile {
  std::string model = {};
  std::int64_t length = 0;  // that the plans are made for; 0: as the model is constructed
  std::int64_t context = 0, trained_context = 0;  // tokens; 0: not said
  std::vector<PositionGroup> groups = {};         // those with attention
  bool operator==(const PositionFile&) const = default;
};

PositionFile position_of(const Explanation& explanation);
std::string to_json(const PositionFile& file);

// Whether a text is a position.json and no configuration: it has the key "position_json".
bool is_position(std::string_view text);

// What to_json() writes, read back; keys of a later version are named in Plan::unknown. Errors: not
// JSON, another version, a group without layers, a plan that checked() refuses.
Expected<PositionFile> read_position(std::string_view text,
                                     std::string_view name = "position.json");

}  // namespace posenc
