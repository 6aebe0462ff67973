// What settings of any program say of position, told by the words of their names: a program that
// posenc does not know still has a length, a base, a factor or a trained length.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace posenc::detail {

enum class Role {
  length,    // tokens that it is to run for: n_ctx, contextSize, --max-seq-len
  base,      // rope_theta, --rope-freq-base
  factor,    // by which positions or frequencies are divided: compress_pos_emb, rope_scale
  share,     // one over that: rope_freq_scale
  alpha,     // NTK's, which raises the base: alpha_value
  original,  // the trained length of a scaling: yarn_orig_ctx
  type,      // a word: rope_scaling_type
};

// The role of a setting's name, whatever its spelling; nothing: none that is about position.
std::optional<Role> role_of(std::string_view name);

struct RoleTold {
  Role role;
  std::string key;    // as it stands there
  double number = 0;  // of a length "128k" is 131,072
  std::string word = {};
};
// Flags, variables, keys of YAML, TOML, JSON and Python; a value that stands for none (0, -1, auto)
// is passed over. Empty: no such setting.
std::vector<RoleTold> roles_in(std::string_view text);

// How evidence is called whose settings are told so.
constexpr std::string_view settings_by_name = "settings of a program that posenc does not know: ";
// In front of what is said of the angles that the settings change.
constexpr std::string_view as_settings_ask = "as these settings ask: ";
// "n_ctx 131,072, compress_pos_emb 4"
std::string roles_text(std::span<const RoleTold> roles);

// The settings against each other, and against the model's own lengths, base and scaling (null: no
// model is known).
std::vector<Finding> judge_roles(const Model* model, std::span<const RoleTold> roles);

}  // namespace posenc::detail
