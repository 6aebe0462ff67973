// Two files that describe one model, and what any comparison of models asks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"
#include "src/core/member_differences.h"

namespace posenc::detail {

std::int64_t layers_of(const Model& model, Stack stack);
// Whether a model has so few layers beside a whole one as the drafts of EAGLE, MTP and DFlash.
bool is_draft_of(const Model& target, const Model& model);
// Whether both have as many layers and heads of one width, as files of one model have; of towers
// alone nobody can say.
bool could_be_one_model(const Model& a, const Model& b);
const Rope* rope_of(const LayerGroup& group);  // null: none of its schemes rotates
// That of its first layers that rotate text; null: none do.
const Rope* rope_of_text(const Model& model);
// The furthest length that a scaling of the model is made for: factor times trained length; 0 where
// none says.
std::int64_t reach(const Model& model);
// How far dynamic NTK's factor reaches, which stretches by each text's own length; 0: there is none.
std::int64_t grown_by_length(const Model& model);
// The length that a file says its training had, where the authors' scaling makes its context of it
// (Nomic's max_trained_positions); else the context.
std::int64_t trained_length(const Model& model);
// Whether it is a GGUF whose context is what llama.cpp's converter writes for every model of its
// architecture, whatever the configuration promises.
bool is_converters_context(const Model& model);
// How far back the layers that rotate look at most; 0 where one of them sees everything. Texts
// beyond a trained length at least this wide show no new angle.
std::int64_t widest_window(const Model& model);

// The parts of a configuration around the keys of a layer: text_config of a model with pictures,
// thinker_config and text_config of one that speaks. Of a model those of its first such layer.
std::vector<std::string_view> parts_around(const LayerGroup& group);
std::vector<std::string_view> parts_around(const Model& model);
// JSON within them: {"text_config":{…}}.
std::string within_parts(const std::vector<std::string_view>& parts, std::string json);

// By how much NTK-aware scaling stretches the context that a larger base of `now` means, layers
// being as many as in `before`: s of b·s^(d/(d−2)); 1 where no base is larger.
double stretch_of_base(const Model& before, const Model& now);

std::string scheme_text(const LayerGroup& group);  // "rope + learned"
std::string scaling_text(
    const Scaling& scaling);  // "yarn factor 40 original_max_position_embeddings 4096"
bool same_temperature(const Logits& a, const Logits& b);
std::string logits_text(const Logits& logits);  // "×1.2 with beta 0.1 from 8192"
// A window that the context never outgrows does not cut: "none".
std::string window_text(const Model& model, const LayerGroup& group);

// A warning files_disagree in `model` for each thing that another file of it says otherwise.
void compare(Model& model, const Model& other, std::string_view file, std::string_view other_file);

}  // namespace posenc::detail
