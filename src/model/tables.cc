// Finds learned tables among a model's tensors by their names and shapes. DeBERTa's are not among
// them: its attention reads the relative embedding behind a layer's norm and projections, and no
// tensor of the file holds that.
#include "src/model/tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "src/core/saturating.h"
#include "src/core/try.h"
#include "src/files/stored_tensor.h"
#include "src/model/families/reading.h"

namespace posenc::detail {
namespace {

using Axes = std::vector<std::int64_t>;

// A table that a scheme reads, and the names that end so.
struct Slot {
  Table* table;
  std::vector<std::string_view> endings;
  Axes shape;
};

std::optional<Slot> slot_of(Scheme& scheme, const Geometry& geometry) {
  if (auto* learned = std::get_if<Learned>(&scheme); learned && learned->axis_rows.empty())
    return Slot{&learned->table,
                {"position_embeddings.weight",  // BERT and its relatives
                 "wpe.weight",                  // GPT-2
                 "embed_positions.weight",      // OPT, BART, Whisper
                 "position_embedding.weight",   // CLIP, SigLIP
                 "positions_embed.weight",      // the first GPT
                 "position_embeddings",         // ViT, DeiT, DINOv2: [1][rows][width]
                 "position_embedding",          // InternViT
                 "positional_embedding_vlm",    // Llama 4
                 "pos_embed.weight",            // Qwen3-VL
                 "position_embd.weight"},       // GGUF
                {learned->rows, geometry.width}};
  if (auto* t5 = std::get_if<T5>(&scheme))
    return Slot{&t5->table,
                {"relative_attention_bias.weight", "attn_rel_b.weight"},
                {t5->num_buckets, geometry.heads}};
  if (auto* shaw = std::get_if<Shaw>(&scheme); shaw && !shaw->use_values)  // BERT's; one table
    return Slot{
        &shaw->key, {"distance_embedding.weight"}, {2 * shaw->max_distance + 1, geometry.head_dim}};
  return {};
}

// The rope that a group's learned factors belong to, while it is without; null for every other
// group.
Rope* without_factors(LayerGroup& group) {
  if (!group.learned_factors) return nullptr;
  for (Scheme& scheme : group.schemes) {
    if (auto* rope = std::get_if<Rope>(&scheme); rope && rope->frequency_factors.empty())
      return rope;
  }
  return nullptr;
}
// The mixture of a group, while its weights have not given it; null where there is none.
Fope* without_mixture(LayerGroup& group) {
  for (Scheme& scheme : group.schemes) {
    if (auto* fope = std::get_if<Fope>(&scheme);
        fope && fope->cos_coef.empty() && fope->sin_coef.empty())
      return fope;
  }
  return nullptr;
}
// The rows and columns of a group's patches, while its weights have not given them; null where it
// has none.
Learned* without_axes(LayerGroup& group) {
  for (Scheme& scheme : group.schemes) {
    if (auto* learned = std::get_if<Learned>(&scheme);
        learned && learned->axis_rows.size() == 2 && !learned->table)
      return learned;
  }
  return nullptr;
}
// Pix2Struct's and Kosmos-2.5's two tables; Gemma 4's one, [2][rows][width], in which columns come
// first.
constexpr std::string_view patch_rows = "row_embedder.weight",
                           patch_columns = "column_embedder.weight",
                           columns_and_rows = "position_embedding_table";
constexpr std::string_view cosines = "rotary_emb.cos_coef", sines = "rotary_emb.sin_coef";
constexpr std::string_view logarithms = "rotary_emb.alpha";  // Mistral Large 4: one for each pair

// --- names ---------------------------------------------------------------------------------------

bool ends_with(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  return name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.';
}

// The first part of a dotted name that is one of the words; "" if none is.
std::string_view first_part(std::string_view name, std::initializer_list<std::string_view> words) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    if (std::ranges::find(words, part) != words.end()) return part;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return {};
}

bool has_stack(const Model& model, Stack stack) {
  return std::ranges::find(model.groups, stack, &LayerGroup::stack) != model.groups.end();
}

// Whether a tensor of that name can belong to the stack, among those the model has.
bool in_stack(std::string_view name, Stack stack, const Model& model) {
  const bool of_tower =
      !first_part(name, {"vision_model", "vision_tower", "visual", "vision", "v"}).empty();
  const bool of_audio =
      !first_part(name, {"audio_model", "audio_tower", "audio_encoder", "audio"}).empty();
  const bool only_tower = std::ranges::all_of(
      model.groups, [&](const LayerGroup& g) { return g.stack == stack && is_tower(stack); });
  if (stack == Stack::vision) return of_tower || only_tower;
  if (stack == Stack::audio) return of_audio || only_tower;
  if (of_tower || of_audio) return false;
  if (!has_stack(model, Stack::encoder) || !has_stack(model, Stack::decoder)) return true;
  const std::string_view side = first_part(name, {"encoder", "enc", "decoder", "dec"});
  return stack == Stack::encoder ? side.starts_with("enc") : side.starts_with("dec");
}

bool may_hold(std::string_view name, const Slot& slot) {
  // T5's cross attention stores a table that nothing reads.
  if (name.contains("EncDecAttention")) return false;
  return std::ranges::any_of(slot.endings,
                             [&](std::string_view ending) { return ends_with(name, ending); });
}

// --- tensors -------------------------------------------------------------------------------------

// Without axes of 1 in front.
Axes trimmed(const Axes& shape) {
  auto begin = shape.begin();
  while (shape.end() - begin > 2 && *begin == 1) ++begin;
  return {begin, shape.end()};
}

std::string text_of(const Axes& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

Expected<Table> table_of(const StoredTensor& tensor, const std::shared_ptr<const void>& lender) {
  const Axes shape = trimmed(tensor.shape);
  if (tensor.view) return Table::borrow(view_of(tensor.bytes, tensor.view.dtype, shape), lender);
  POSENC_TRY(numbers, doubles_of(tensor));
  const auto copy = std::make_shared<std::vector<double>>(std::move(numbers));
  // Borrowed from the copy and not owned: owned tables are computed ones, and are printed whole.
  return Table::borrow(Tensor::dense(copy->data(), {shape[0], shape[1]}), copy);
}

void warn(Model& model, std::string_view code, std::string_view message) {
  const Warning warning{std::string(code), printable(message, 1000)};
  if (std::ranges::find(model.warnings, warning) == model.warnings.end())
    model.warnings.push_back(warning);
}

// A command takes one table; Shaw's are not among those it takes.
std::string by_hand(const Slot& slot) {
  return slot.endings.front().starts_with("distance") ? "" : "; give it with --table FILE:TENSOR";
}

void fill(Model& model, LayerGroup& group, const Slot& slot, std::span<const StoredTensor> tensors,
          const std::shared_ptr<const void>& lender, std::string_view file) {
  const std::string place(file);
  std::vector<const StoredTensor*> named, fitting;
  for (const StoredTensor& tensor : tensors) {
    if (!may_hold(tensor.name, slot) || !in_stack(tensor.name, group.stack, model)) continue;
    named.push_back(&tensor);
    if (trimmed(tensor.shape) == slot.shape) fitting.push_back(&tensor);
  }
  if (named.empty()) {
    return warn(model, "table_missing",
                place + ": no tensor has the name of a learned table, for the " +
                    std::string(name(group.stack)) + " stack's of " + text_of(slot.shape) +
                    by_hand(slot));
  }
  if (fitting.empty()) {
    return warn(model, "table_shape",
                place + ": " + named[0]->name + " is " + text_of(named[0]->shape) +
                    ", and the configuration means " + text_of(slot.shape) +
                    "; the table is not used: correct the one that is wrong");
  }
  const StoredTensor& tensor = *fitting[0];
  const auto same = [&](const StoredTensor* other) {
    return other->type == tensor.type && std::ranges::equal(other->bytes, tensor.bytes);
  };
  if (!std::ranges::all_of(fitting, same)) {
    return warn(model, "table_differs",
                place + ": " + std::to_string(fitting.size()) + " tables could be the one of the " +
                    std::string(name(group.stack)) + " stack (" + tensor.name + ", " +
                    fitting.back()->name + "), and they differ; none is used" + by_hand(slot));
  }
  Expected<Table> table = table_of(tensor, lender);
  if (!table) return warn(model, "table_type", place + ": " + table.error().message());
  *slot.table = std::move(*table);
  note(group.provenance, "table", text_of(tensor.shape) + " " + tensor.type, Origin::file,
       place + ": " + tensor.name);
}

// The file stores the logarithms of what frequencies are multiplied by; frequency_factors divide
// them.
void fill_factors(Model& model, LayerGroup& group, Rope& rope,
                  std::span<const StoredTensor> tensors, std::string_view file) {
  const std::string place(file);
  const auto found = std::ranges::find_if(tensors, [&](const StoredTensor& tensor) {
    return ends_with(tensor.name, logarithms) && in_stack(tensor.name, group.stack, model);
  });
  if (found == tensors.end()) {
    return warn(model, "table_missing",
                place + ": no tensor is called " + std::string(logarithms) +
                    ", the learned factors of the frequencies; they are taken as 1");
  }
  const auto shape_warning = [&](std::string_view why) {
    warn(model, "table_shape",
         place + ": " + found->name + " is " + text_of(found->shape) + ": " + std::string(why));
  };
  if (element_count(found->shape).value_or(saturated) > group.geometry.head_dim)
    return shape_warning("there must be a factor for each pair of a head");
  Expected<std::vector<double>> alpha = doubles_of(*found);
  if (!alpha) return warn(model, "table_type", place + ": " + alpha.error().message());
  rope.frequency_factors = std::move(*alpha);
  for (double& factor : rope.frequency_factors) factor = std::exp(-factor);
  if (const Expected<Plan> plan = compile(group); !plan) {
    rope.frequency_factors.clear();
    return shape_warning(plan.error().message());
  }
  note(group.provenance, "frequency_factors", text_of(found->shape) + " " + found->type,
       Origin::file, place + ": e^-alpha of " + found->name);
}

// Both coefficients, [kv_head][frequency][pair], or none.
void fill_mixture(Model& model, LayerGroup& group, Fope& fope,
                  std::span<const StoredTensor> tensors, std::string_view file) {
  const std::string place(file);
  const auto refuse = [&](std::string_view code, std::string_view why) {
    fope.cos_coef.clear();
    fope.sin_coef.clear();
    warn(model, code, place + ": " + std::string(why));
  };
  for (const auto& [name, to] : {std::pair{cosines, &fope.cos_coef}, {sines, &fope.sin_coef}}) {
    const auto found = std::ranges::find_if(tensors, [&](const StoredTensor& tensor) {
      return ends_with(tensor.name, name) && in_stack(tensor.name, group.stack, model);
    });
    if (found == tensors.end())
      return refuse("table_missing", "no tensor is called " + std::string(name) +
                                         ", the mixture of the frequencies; each pair is taken to "
                                         "rotate by its own");
    const std::int64_t pairs = group.geometry.head_dim / 2;
    if (element_count(found->shape).value_or(saturated) >
        product(std::max<std::int64_t>(group.geometry.kv_heads, 1), product(pairs, pairs)))
      return refuse("table_shape", found->name + " is " + text_of(found->shape) +
                                       ": there are fewer key heads and pairs");
    Expected<std::vector<double>> numbers = doubles_of(*found);
    if (!numbers) return refuse("table_type", numbers.error().message());
    *to = std::move(*numbers);
    note(group.provenance, name.substr(name.find('.') + 1),
         text_of(found->shape) + " " + found->type, Origin::file, place + ": " + found->name);
  }
  if (const Expected<Plan> plan = compile(group); !plan)
    refuse("table_shape", plan.error().message());
}

// Rows of the patch's row, then of its column, in memory of their own: files have them apart, or
// the other way round.
void fill_by_axis(Model& model, LayerGroup& group, Learned& learned,
                  std::span<const StoredTensor> tensors, std::string_view file) {
  const std::string place(file);
  const auto named = [&](std::string_view name) -> const StoredTensor* {
    const auto found = std::ranges::find_if(tensors, [&](const StoredTensor& tensor) {
      return ends_with(tensor.name, name) && in_stack(tensor.name, group.stack, model);
    });
    return found == tensors.end() ? nullptr : &*found;
  };
  const StoredTensor *rows = named(patch_rows), *columns = named(patch_columns),
                     *both = named(columns_and_rows);
  const std::int64_t each = learned.rows / 2, width = group.geometry.width;
  if (!both && (!rows || !columns)) {
    return warn(model, "table_missing",
                place + ": no tensors are called " + std::string(patch_rows) + " and " +
                    std::string(patch_columns) + ", or " + std::string(columns_and_rows) +
                    ", for the " + std::string(name(group.stack)) + " stack's 2 x [" +
                    std::to_string(each) + ", " + std::to_string(width) +
                    "]; give both axes, rows first, with --table FILE:TENSOR");
  }
  const Axes shape = both ? Axes{2, each, width} : Axes{each, width};
  for (const StoredTensor* tensor : both ? std::vector{both} : std::vector{rows, columns}) {
    if (tensor->shape != shape)
      return warn(model, "table_shape",
                  place + ": " + tensor->name + " is " + text_of(tensor->shape) +
                      ", and the configuration means " + text_of(shape) +
                      "; the table is not used: correct the one that is wrong");
    if (!tensor->view || tensor->type != (both ? both : rows)->type)
      return warn(model, "table_type",
                  place + ": " + tensor->name + " is " + tensor->type +
                      ", which cannot be put behind the other axis; convert the file");
  }
  const std::span<const std::byte> first = both ? both->bytes.subspan(both->bytes.size() / 2)
                                                : rows->bytes,
                                   second = both ? both->bytes.first(both->bytes.size() / 2)
                                                 : columns->bytes;
  const auto copy = std::make_shared<std::vector<std::byte>>(first.begin(), first.end());
  copy->insert(copy->end(), second.begin(), second.end());
  learned.table = Table::borrow(
      view_of(*copy, (both ? both : rows)->view.dtype, Axes{learned.rows, width}), copy);
  note(group.provenance, "table", text_of(shape) + " " + (both ? both : rows)->type, Origin::file,
       place + ": " + (both ? both->name : rows->name + " and " + columns->name));
}

}  // namespace

bool needs_tables(const Model& model) {
  Model copy = model;
  for (LayerGroup& group : copy.groups) {
    if (without_factors(group) || without_mixture(group) || without_axes(group)) return true;
    for (Scheme& scheme : group.schemes)
      if (const auto slot = slot_of(scheme, group.geometry); slot && !*slot->table) return true;
  }
  return false;
}

bool may_hold_table(Model& model, std::string_view name) {
  for (LayerGroup& group : model.groups) {
    if (without_factors(group) && ends_with(name, logarithms)) return true;
    if (without_mixture(group) && (ends_with(name, cosines) || ends_with(name, sines))) return true;
    if (without_axes(group) && (ends_with(name, patch_rows) || ends_with(name, patch_columns) ||
                                ends_with(name, columns_and_rows)))
      return true;
    for (Scheme& scheme : group.schemes)
      if (const auto slot = slot_of(scheme, group.geometry); slot && may_hold(name, *slot))
        return true;
  }
  return false;
}

void give_tables(Model& model, std::span<const StoredTensor> tensors,
                 const std::shared_ptr<const void>& lender, std::string_view file) {
  for (LayerGroup& group : model.groups) {
    if (Rope* rope = without_factors(group)) fill_factors(model, group, *rope, tensors, file);
    if (Fope* fope = without_mixture(group)) fill_mixture(model, group, *fope, tensors, file);
    if (Learned* learned = without_axes(group)) fill_by_axis(model, group, *learned, tensors, file);
    for (Scheme& scheme : group.schemes)
      if (const auto slot = slot_of(scheme, group.geometry); slot && !*slot->table)
        fill(model, group, *slot, tensors, lender, file);
  }
}

}  // namespace posenc::detail
