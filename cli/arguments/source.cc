#include "cli/arguments/source.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "cli/pages/manual.h"
#include "posenc/files.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// "{halves|interleaved}", which is how CLI11 tells choices, or what the help writes for a value.
std::string type_of(const FieldInfo& field) {
  std::string choices;
  for (const std::string_view choice : field.choices)
    choices += (choices.empty() ? "{" : "|") + std::string(choice);
  if (!choices.empty()) return choices + "}";
  switch (field.kind) {
    case FieldKind::integer: return "N";
    case FieldKind::number: return "X";
    case FieldKind::integers: return "N,N,...";
    case FieldKind::numbers: return "X,X,...";
    default: return "VALUE";
  }
}

// The infos that answer for a scheme's fields, the scaling's first.
std::vector<const SchemeInfo*> infos(const Scheme& scheme) {
  std::vector<const SchemeInfo*> out;
  if (const Rope* rope = std::get_if<Rope>(&scheme)) out.push_back(&info(rope->scaling));
  out.push_back(&info(scheme));
  return out;
}

// "RoPE: arXiv:2104.09864; YaRN: arXiv:2309.00071" of what has a paper.
void add_published(std::string& to, const Scheme& scheme) {
  const std::vector<const SchemeInfo*> of = infos(scheme);
  for (const SchemeInfo* each : std::views::reverse(of)) {
    const std::string paper = "arXiv:" + std::string(each->paper);
    if (each->paper.empty() || to.contains(paper)) continue;
    to += (to.empty() ? "" : "; ") + std::string(each->title) + ": " + paper;
  }
}

std::vector<const SchemeInfo*> infos(const ContentScheme& scheme) { return {&info(scheme)}; }

template <class S>
std::string no_such_field(const S& scheme) {
  return std::string(info(scheme).name) + " has no such field";
}

// Half of RoPE's fields are those of a scaling, which a flag of its own names.
template <class S>
std::string cure_of_field(const S& scheme, std::string_view spelling) {
  std::string scalings;
  if constexpr (std::is_same_v<S, Scheme>)
    for (const SchemeInfo& scaling : all_scalings())
      if (std::holds_alternative<Rope>(scheme) && find_field(scaling, spelling))
        scalings += (scalings.empty() ? "" : ", ") + std::string(scaling.name);
  if (!scalings.empty()) return "name a --rope_type that has it: " + scalings;
  return "posenc schemes " + std::string(info(scheme).name) + " lists its fields";
}

// FILE:TENSOR, where a file of the whole name does not exist.
struct TableName {
  std::string file, tensor;
};
TableName split(const std::string& text) {
  std::error_code error;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text, error)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Expected<StoredTensor> chosen(const TensorFile& read, const TableName& name) {
  if (name.tensor.empty() && read.tensors.size() == 1) return read.tensors[0];
  if (const StoredTensor* found = find_tensor(read.tensors, name.tensor);
      found && !name.tensor.empty())
    return *found;
  std::vector<std::string_view> known;
  for (const StoredTensor& tensor : read.tensors)
    if (tensor.shape.size() >= 2) known.push_back(tensor.name);
  constexpr std::size_t most = 20;  // a suggestion lists them all
  const std::string_view near = nearest(name.tensor, known);
  std::string cure = "give its name as FILE:TENSOR";
  if (known.size() <= most) cure = suggestion(name.tensor, known);
  if (!near.empty()) cure = "did you mean '" + std::string(near) + "'?";
  return fail(name.file, name.tensor.empty() ? "holds more tensors than one" : "has no such tensor",
              name.tensor.empty() ? std::to_string(read.tensors.size()) : name.tensor, cure);
}

Expected<StoredTensor> stored_tensor(const std::string& text, TensorFile& file) {
  const TableName name = split(text);
  POSENC_TRY(read, read_tensors(name.file));
  file = std::move(read);
  return chosen(file, name);
}

// Over the file's own bytes where they are aligned numbers, else over a copy.
Expected<Table> table_of(StoredTensor stored, const TensorFile& file,
                         std::span<const std::int64_t> shape) {
  Tensor view;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = axis + 1 == shape.size() ? 1 : view.stride[axis + 1] * view.shape[axis + 1];
  }
  view.rank = static_cast<int>(shape.size());
  if (stored.view) {
    view.data = stored.view.data;
    view.dtype = stored.view.dtype;
    return Table::borrow(view, std::make_shared<MappedFile>(file.file));
  }
  if (stored.type == "<u2") stored.type = "BF16";  // NumPy has no name for it
  POSENC_TRY(numbers, doubles_of(stored));
  const auto copy = std::make_shared<std::vector<double>>(std::move(numbers));
  view.data = copy->data();
  view.dtype = DType::f64;
  return Table::borrow(view, copy);
}

// Of a field that is a list: "0.5,0.25", or the numbers of a file.
Expected<FieldValue> listed_value(const FieldInfo& field, const std::string& text,
                                  const std::string& flag) {
  std::error_code error;
  if (field.kind != FieldKind::numbers || !std::filesystem::exists(split(text).file, error))
    return field_value(field, text, flag);
  TensorFile file;
  POSENC_TRY(stored, stored_tensor(text, file));
  POSENC_TRY(numbers, doubles_of(stored));
  return FieldValue(std::move(numbers));
}

}  // namespace

std::map<std::string, FieldFlag> field_flags(bool with_content) {
  std::map<std::string, FieldFlag> flags;
  const auto gather = [&flags](std::span<const SchemeInfo> list) {
    for (const SchemeInfo& scheme : list)
      for (const FieldInfo& field : scheme.fields) {
        const bool is_switch = field.kind == FieldKind::boolean;
        FieldFlag& flag = flags[std::string(field.name)];
        if (flag.doc.empty()) flag.doc = field.doc;
        if (flag.type.empty()) flag.type = type_of(field);
        flag.schemes += (flag.schemes.empty() ? "" : ", ") + std::string(scheme.name);
        flag.is_switch &= is_switch;
        flag.canonical = true;
        for (const std::string_view alias : field.aliases)
          flags[std::string(alias)].is_switch &= is_switch;
      }
  };
  gather(all_schemes());
  gather(all_scalings());
  if (with_content) gather(all_content_schemes());
  return flags;
}

Expected<Table> tensor_named(const std::string& text) {
  TensorFile file;
  POSENC_TRY(stored, stored_tensor(text, file));
  const std::vector<std::int64_t> shape = stored.shape;
  if (shape.size() > Tensor::max_rank)
    return fail(text, "must have at most 4 axes", std::to_string(shape.size()), "reshape it");
  return table_of(std::move(stored), file, shape);
}

Expected<Table> table_named(const std::string& text) {
  TensorFile file;
  POSENC_TRY(stored, stored_tensor(text, file));
  std::vector<std::int64_t> shape = stored.shape;
  while (shape.size() > 2 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() != 2)
    return fail(text, "a table must have two axes", std::to_string(shape.size()), "reshape it");
  if (shape[0] == 0 || shape[1] == 0)
    return fail(text, "a table must have rows and columns",
                std::to_string(shape[0]) + " × " + std::to_string(shape[1]), "write it anew");
  return table_of(std::move(stored), file, shape);
}

Source::Source(CLI::App& app, std::string command, bool takes_content)
    : command_(std::move(command)), takes_content_(takes_content) {
  app.add_option("--model", model_, "A config.json, its folder, or a bundled name (posenc models)")
      ->type_name("MODEL")
      ->group("Which encoding");
  app.add_option("--layer", layer_, "Layer of the model; needed where layers differ")
      ->group("Which encoding");
  app.add_option("--stack", stack_, "Stack of the model")
      ->type_name("{text,encoder,decoder,vision,audio}")
      ->group("Which encoding");
  app.add_option("--scheme", scheme_, "A scheme by name (posenc schemes), instead of a model")
      ->type_name("SCHEME")
      ->group("Which encoding");
  app.add_option("--at", asked_.length,
                 "Compile for this length (largest position + 1); default: as constructed")
      ->group("Which encoding")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--table", table_,
                 "Learned table: .npy, or FILE:TENSOR of a .safetensors or .gguf; else the model's")
      ->type_name("FILE")
      ->group("Which encoding");
  const auto extent = [&app](const char* flag, std::int64_t& into, const char* doc) {
    app.add_option(flag, into, doc)
        ->group(std::string(geometry_group))
        ->transform(above_zero())
        ->default_str("");
  };
  extent("--width", asked_.width, "Channels of the embedding");
  extent("--heads", asked_.heads, "Query heads");
  extent("--kv_heads", asked_.kv_heads, "Key and value heads");
  extent("--head_dim", asked_.head_dim, "Channels of a head");
  app.add_option("--grid", grid_, "Patches of a picture")
      ->type_name("HEIGHTxWIDTH")
      ->group(std::string(geometry_group));

  const auto keep = [&](const std::string& spelling, const FieldFlag& flag) {
    const std::string name = "--" + spelling;
    if (app.get_option_no_throw(name)) return;
    CLI::Option* option = flag.is_switch ? app.add_flag(name) : app.add_option(name);
    option->description("[" + flag.schemes + "] " + flag.doc);
    if (!flag.is_switch) option->type_name(flag.type);
    // Other spellings work and are not listed.
    option->group(flag.canonical ? std::string(fields_group) : "");
    fields_[spelling] = option;
  };
  for (const auto& [spelling, flag] : field_flags(takes_content)) keep(spelling, flag);
  FieldFlag scaling;
  scaling.schemes = "rope";
  scaling.type = "SCALING";
  scaling.doc = "scaling by name: default, linear, yarn, llama3, ... (posenc schemes)";
  scaling.is_switch = false;
  scaling.canonical = true;
  keep("rope_type", scaling);
  scaling.canonical = false;
  keep("scaling", scaling);
  // A flag a name: schemes whose tables have the same name share it, and the first one's words.
  // Where a field of another scheme has the name (NTK-by-parts' beta), the scheme's stands before
  // it: --path_beta. --table is any scheme's that has one.
  const auto add_tables = [&](std::span<const SchemeInfo> schemes) {
    for (const SchemeInfo& scheme : schemes) {
      for (const TableInfo& table : scheme.tables) {
        if (table.name == "table") continue;
        CLI::Option*& option = tables_[std::string(table.name)];
        if (option == nullptr)
          option =
              app.add_option(app.get_option_no_throw("--" + std::string(table.name)) == nullptr
                                 ? "--" + std::string(table.name)
                                 : "--" + std::string(scheme.name) + "_" + std::string(table.name))
                  ->description("[" + std::string(scheme.name) + "] " + std::string(table.doc) +
                                ": a .npy file, or FILE:TENSOR")
                  ->type_name("FILE")
                  ->group(std::string(fields_group));
        else
          option->description("[" + std::string(scheme.name) + ", " +
                              option->get_description().substr(1));
      }
    }
  };
  add_tables(all_schemes());
  if (takes_content) add_tables(all_content_schemes());
}

void Source::take_model_alone(CLI::App& app) {
  app.add_option("MODEL", model_, "A config.json, its folder, or a bundled name")
      ->type_name("MODEL")
      ->group("Which encoding");
}

void Source::otherwise(std::string_view scheme) {
  if (model_.empty() && scheme_.empty()) scheme_ = scheme;
}

void Source::set_where_known(std::string_view field, FieldValue value) {
  own_.emplace_back(field, std::move(value));
}

std::string Source::title() const {
  if (model_.empty()) {
    if (content_) return std::string(info(*content_).title);
    const Expected<Scheme> scheme = make_scheme(scheme_);
    return scheme ? std::string(info(*scheme).title) : scheme_;
  }
  return model_name_ + (layer_ ? ", layer " + std::to_string(*layer_) : "");
}

Expected<Scheme> Source::scheme_from_flags() {
  POSENC_TRY(scheme, make_scheme(scheme_));
  for (const char* spelling : {"rope_type", "scaling"}) {
    if (fields_.at(spelling)->count() == 0) continue;
    POSENC_CHECK(
        set_field(scheme, "rope_type", FieldValue(fields_.at(spelling)->results().back())));
  }
  POSENC_TRY(given, set_fields(scheme));
  for (const auto& [spelling, value] : own_)
    for (const SchemeInfo* of : infos(scheme)) {
      if (!find_field(*of, spelling)) continue;
      POSENC_CHECK(set_field(scheme, spelling, value));
    }
  give_table(scheme);
  for (const SchemeInfo* of : infos(scheme)) POSENC_CHECK(check_required(*of, given));
  return std::move(scheme);
}

template <class S>
Expected<std::vector<const FieldInfo*>> Source::set_fields(S& scheme) const {
  std::vector<const FieldInfo*> given;
  std::vector<FieldSetting> settings;
  for (const auto& [spelling, option] : fields_) {
    if (option->count() == 0 || spelling == "rope_type" || spelling == "scaling") continue;
    const FieldInfo* field = nullptr;
    for (const SchemeInfo* of : infos(scheme))
      if (!field) field = find_field(*of, spelling);
    if (!field)
      return fail(command_, no_such_field(scheme), "--" + spelling,
                  cure_of_field(scheme, spelling));
    POSENC_TRY(value, listed_value(*field, option->results().back(), "--" + spelling));
    settings.push_back({spelling, std::move(value)});
    given.push_back(field);
  }
  POSENC_CHECK(posenc::set_fields(scheme, settings));
  return given;
}

Expected<void> Source::check_required(const SchemeInfo& of,
                                      const std::vector<const FieldInfo*>& given) const {
  for (const FieldInfo& field : of.fields)
    if (field.required && std::find(given.begin(), given.end(), &field) == given.end() &&
        !(given_ && field.name == "rows"))
      return fail(command_, std::string(of.name) + " needs --" + std::string(field.name), "",
                  std::string(field.doc));
  return {};
}

Expected<ContentScheme> Source::content_from_flags(ContentScheme scheme) const {
  POSENC_TRY(given, set_fields(scheme));
  if (!fill_) POSENC_CHECK(check_required(info(scheme), given));
  for (const auto& [name, option] : tables_) {
    if (option->count() == 0) continue;
    POSENC_TRY(table, tensor_named(option->results().back()));
    POSENC_CHECK(set_table(scheme, name, std::move(table)));
  }
  return scheme;
}

Expected<void> Source::read_table() {
  if (table_.empty()) return {};
  POSENC_TRY(table, table_named(table_));
  given_ = std::move(table);
  return {};
}

void Source::give_table(Scheme& scheme) const {
  if (!given_) return;
  if (Learned* learned = std::get_if<Learned>(&scheme)) {
    learned->table = given_;
    if (learned->rows == 0) learned->rows = given_.values.shape[0];
  }
  if (T5* t5 = std::get_if<T5>(&scheme)) t5->table = given_;
  if (Profiles* profiles = std::get_if<Profiles>(&scheme)) profiles->table = given_;
  if (ClippedBias* clipped = std::get_if<ClippedBias>(&scheme)) clipped->table = given_;
  if (GridBias* grid = std::get_if<GridBias>(&scheme)) grid->table = given_;
}

Expected<LayerGroup> Source::group_from_model() {
  for (const auto& [spelling, option] : fields_)
    if (option->count() > 0)
      return fail(command_, "a model brings its own fields", "--" + spelling,
                  "drop the flag, or say --scheme instead of --model");
  POSENC_TRY(model, named_model(model_));
  model_name_ = model.name;

  return chosen_group(model, stack_, layer_, {command_, model_});
}

// What the model or the flags say, completed from the tensor; both must agree where both speak.
Expected<Geometry> Source::geometry(Geometry own, const Geometry& of_tensor) const {
  struct Row {
    const char* name;
    std::int64_t Geometry::* extent;
  };
  constexpr Row rows[] = {{"width", &Geometry::width},
                          {"heads", &Geometry::heads},
                          {"kv_heads", &Geometry::kv_heads},
                          {"head_dim", &Geometry::head_dim}};
  for (const auto& [label, extent] : rows) {
    if (model_.empty() && asked_.*extent > 0) own.*extent = asked_.*extent;
    if (!model_.empty() && asked_.*extent > 0 && asked_.*extent != own.*extent)
      return fail(command_,
                  std::string(label) + " must be the model's " + std::to_string(own.*extent),
                  std::to_string(asked_.*extent), "drop --" + std::string(label));
    if (of_tensor.*extent == 0) continue;
    // A tensor may hold some of the heads only.
    const bool may_differ = extent == &Geometry::heads || extent == &Geometry::kv_heads;
    if (own.*extent > 0 && may_differ) continue;
    if (own.*extent > 0 && own.*extent != of_tensor.*extent)
      return fail(command_,
                  "the tensor's " + std::string(label) + " must be " + std::to_string(own.*extent),
                  std::to_string(of_tensor.*extent), "check the tensor's axes and the flags");
    own.*extent = of_tensor.*extent;
  }
  own.length = asked_.length > 0 ? asked_.length : of_tensor.length;
  if (!grid_.empty()) {
    POSENC_TRY(patches, grid(grid_, "--grid"));
    own.grid_height = patches.height;
    own.grid_width = patches.width;
  }
  return own;
}

Expected<Plan> Source::plan(const Geometry& of_tensor, Angles angles) {
  if (model_.empty() == scheme_.empty())
    return fail(command_, "takes --model or --scheme", model_.empty() ? "neither" : "both",
                "posenc models and posenc schemes list what there is");
  POSENC_CHECK(read_table());
  if (!model_.empty()) {
    POSENC_TRY(group, group_from_model());
    for (Scheme& scheme : group.schemes) {
      give_table(scheme);
      add_published(published_, scheme);
    }
    mask_.causal = group.causal;
    (group.chunked ? mask_.chunk : mask_.window) = group.window.value_or(0);
    POSENC_TRY(whole, geometry(group.geometry, of_tensor));
    group.geometry = compiled_for_ = whole;
    group.geometry.length = 0;
    return compile(group, whole.length, angles);
  }
  POSENC_TRY(whole, geometry({}, of_tensor));
  compiled_for_ = whole;
  if (auto content = make_content_scheme(scheme_)) {
    if (!takes_content_)
      return fail(command_, scheme_ + " reads what tokens say, so no plan can say it", "",
                  "posenc attend and posenc plot scores compute with it");
    POSENC_TRY(filled, content_from_flags(std::move(*content)));
    content_ = std::move(filled);
    return Plan{};
  }
  POSENC_TRY(scheme, scheme_from_flags());
  for (const auto& [name, option] : tables_) {
    if (option->count() == 0) continue;
    const std::span<const TableInfo> known = info(scheme).tables;
    if (std::ranges::find(known, name, &TableInfo::name) == known.end())
      return fail(command_, scheme_ + " has no such table", option->get_name(), "drop the flag");
    POSENC_TRY(table, tensor_named(option->results().back()));
    POSENC_CHECK(set_table(scheme, name, std::move(table)));
  }
  if (fill_) fill_(scheme, whole);
  add_published(published_, scheme);
  return compile(scheme, whole, angles);
}

Expected<LayerGroup> chosen_group(const Model& model, const std::string& stack,
                                  std::optional<std::int64_t> layer, const Asking& asking) {
  // The stack that writes the text, unless another is asked for.
  std::vector<const LayerGroup*> groups;
  for (const Stack kind :
       {Stack::text, Stack::decoder, Stack::encoder, Stack::vision, Stack::audio}) {
    if (!stack.empty() && name(kind) != stack) continue;
    for (const LayerGroup& group : model.groups)
      if (group.stack == kind) groups.push_back(&group);
    if (!groups.empty()) break;
  }
  if (groups.empty())
    return fail("--stack", "the model has no such stack", stack,
                "posenc explain " + asking.model + " shows what it has");
  if (!layer) {
    if (groups.size() == 1) return *groups[0];
    return fail(asking.command, "the layers of " + model.name + " differ", "no --layer",
                "choose one; posenc explain " + asking.model + " tells how they differ");
  }
  for (const LayerGroup* group : groups)
    if (std::binary_search(group->layers.begin(), group->layers.end(), *layer)) return *group;
  return fail("--layer", "the model has no such layer", std::to_string(*layer),
              "posenc explain " + asking.model + " lists its layers");
}

Expected<void> check_table(const Plan& plan, std::string_view command) {
  const BiasTable* bias = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  if (bias && !bias->values)
    return fail(command, "the learned biases must be given", "none",
                "say --table FILE, of shape [buckets][heads], or --model FOLDER with its weights");
  const Rows* rows = plan.add ? std::get_if<Rows>(&plan.add->kind) : nullptr;
  if (rows && !rows->table)
    return fail(command, "the learned vectors must be given", "none",
                "say --table FILE, of shape [rows][width], or --model FOLDER with its weights");
  return {};
}

}  // namespace posenc::cli
