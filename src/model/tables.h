// Learned tables and factors of frequencies out of a model's weights: which tensor holds the one
// that a scheme lacks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "posenc/files.h"
#include "posenc/model.h"

namespace posenc::detail {

// Whether any scheme of the model is without the table or the factors it reads. Most rotary models
// are not, and their weights need not be opened.
bool needs_tables(const Model& model);

// Whether a tensor of that name may be a table that the model reads.
bool may_hold_table(Model& model, std::string_view name);

// Sets the tables of Learned, T5 and Shaw schemes from the tensors, by the names that Hugging
// Face's and GGUF's files have, and notes each as provenance. Aligned numbers are borrowed, and
// `lender` (what holds the tensors' bytes) is shared by every such table; others are copied. A
// table that is missing, of another shape than the configuration means, of a type posenc does not
// compute with, or that differs from layer to layer, is a warning, and stays unset. `file` is the
// weights' name for messages. A Rope whose group has learned_factors gets its frequency_factors
// alike: e^-alpha.
void give_tables(Model& model, std::span<const StoredTensor> tensors,
                 const std::shared_ptr<const void>& lender, std::string_view file);

// The same from one file of tensors (weights.cc, as the next).
void give_tables_of_file(Model& model, const std::string& path);

// The same from a model's folder: model.safetensors, or the shards of model.safetensors.index.json
// that hold a table. Without either nothing happens; weights that cannot be read are a warning.
void give_tables_of_folder(Model& model, const std::string& folder);

}  // namespace posenc::detail
