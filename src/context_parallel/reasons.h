// Why a group of layers does not survive a layout, and what an engine must keep where it does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/context_parallel.h"

namespace posenc::layout::detail {

// A group of layers under a layout.
struct Case {
  const LayerGroup& group;
  const Plan& plan;
  const Sharding& sharding;
  std::int64_t length = 0;

  // Ranks among which tokens are dealt out where keys are exchanged.
  std::int64_t ring() const { return sharding.ranks / sharding.head_ranks; }
  std::int64_t share() const { return length / sharding.ranks; }
  // Tokens of a rank that follow each other in the text, as its own work meets them.
  std::int64_t run() const;
  // A window or chunk that cuts a text of this length.
  bool windowed() const { return group.window && *group.window < length; }
  bool is_attention() const { return group.mixer == Mixer::attention; }
  // Whether the exchange hands a rank all tokens of some heads, and nothing else.
  bool by_heads_alone() const { return sharding.exchange == Exchange::heads; }
};

std::vector<Reason> reasons_of(const Case& one);
std::vector<std::string> needs_of(const Case& one);

// What is known of an engine, in place of the reason of the same code or beside the others.
void add_facts(const Case& one, std::vector<Reason>& reasons);

// What a fact is about, and whether a group has it.
enum class Feature { any, window, chunk, sinks, bias, recurrent, compressed, picked, not_picked };
bool has(const Case& one, Feature feature);

}  // namespace posenc::layout::detail
