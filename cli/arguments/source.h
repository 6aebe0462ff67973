// Where a command takes its plan from: --model with --layer, or --scheme with the scheme's own
// fields as flags (all of them come from fields(), by every name and alias). Where the command
// computes with them, --scheme may name a scheme that reads the content, with its tables as flags
// besides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/attention.h"
#include "posenc/content.h"
#include "posenc/model.h"
#include "posenc/schemes.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posenc::cli {

class Source {
 public:
  // `command` is the name that errors begin with.
  Source(CLI::App& app, std::string command, bool takes_content = false);

  // Before plan(): what a scheme has learned need not be given, since the caller fills it in: of a
  // content scheme later, of another by `fill`, which it is asked for before it is compiled.
  void fill_learned(std::function<void(Scheme&, const Geometry&)> fill) { fill_ = std::move(fill); }

  // The plan for a tensor that fixes some of the geometry (0: it does not).
  // Errors: neither or both of --model and --scheme, a flag of another scheme, what compile() says.
  Expected<Plan> plan(const Geometry& of_tensor, Angles angles = Angles::exact);

  // After plan(): the scheme that reads the content, beside an empty plan; null where --scheme or
  // --model name none.
  const ContentScheme* content() const { return content_ ? &*content_ : nullptr; }

  // MODEL may stand without --model.
  void take_model_alone(CLI::App& app);

  // The scheme to take where the user names neither a model nor a scheme.
  void otherwise(std::string_view scheme);

  // Sets a field of the scheme, where it has it: for a flag of the command's own that is also a
  // field. Of a model nothing is changed.
  void set_where_known(std::string_view field, FieldValue value);

  // After plan(): which keys the model's layer sees; causal for a scheme.
  const Mask& mask() const { return mask_; }

  // What it was compiled for, of the flags or the model; 0 where neither says it.
  const Geometry& compiled_for() const { return compiled_for_; }
  std::int64_t heads() const { return compiled_for_.heads; }
  std::int64_t width() const { return compiled_for_.width; }
  std::int64_t head_dim() const { return compiled_for_.head_dim; }

  // As --model says; "" where it is not given.
  const std::string& model() const { return model_; }
  // As --layer says; none where it is not given.
  std::optional<std::int64_t> layer() const { return layer_; }

  // For titles, after plan(): "llama-3.1-8b, layer 3", or the scheme's own title.
  std::string title() const;
  // Who published it, after plan(): "RoPE: arXiv:2104.09864; YaRN: arXiv:2309.00071", or "".
  const std::string& published() const { return published_; }

 private:
  Expected<Scheme> scheme_from_flags();
  Expected<ContentScheme> content_from_flags(ContentScheme scheme) const;
  // The fields whose flags are given.
  template <class S>
  Expected<std::vector<const FieldInfo*>> set_fields(S& scheme) const;
  Expected<void> check_required(const SchemeInfo& of,
                                const std::vector<const FieldInfo*>& given) const;
  Expected<void> read_table();
  Expected<LayerGroup> group_from_model();
  Expected<Geometry> geometry(Geometry own, const Geometry& of_tensor) const;
  void give_table(Scheme& scheme) const;

  std::string command_, model_, model_name_, published_, scheme_, stack_, table_, grid_;
  std::optional<std::int64_t> layer_;
  Geometry asked_, compiled_for_;
  std::map<std::string, CLI::Option*> fields_;  // by spelling
  std::map<std::string, CLI::Option*> tables_;  // of schemes that read the content, by name
  std::vector<std::pair<std::string, FieldValue>> own_;  // of set_where_known()
  Mask mask_;
  Table given_;  // of --table
  bool takes_content_;
  std::optional<ContentScheme> content_;
  std::function<void(Scheme&, const Geometry&)> fill_;  // empty: everything must be given
};

// A flag that sets a field of some schemes or scalings.
struct FieldFlag {
  std::string schemes, doc;  // whose field it is; what the first of them says of it
  std::string type;          // of its value: "N", "{log|power}"
  bool is_switch = true;     // boolean wherever it is a field
  bool canonical = false;    // the field's own name, no alias
};

// Every spelling of every field, so that a new scheme brings its flags with it. with_content: those
// of the schemes that read the content too.
std::map<std::string, FieldFlag> field_flags(bool with_content = false);

// The group of a model's layers that a user means: of the stack that writes the text unless `stack`
// names another. Errors: no such stack or layer, or layers that differ and none named.
struct Asking {
  std::string command, model;  // for messages
};
Expected<LayerGroup> chosen_group(const Model& model, const std::string& stack,
                                  std::optional<std::int64_t> layer, const Asking& asking);

// A tensor that a flag names, FILE or FILE:TENSOR: numbers in place where they are aligned, else
// copied.
Expected<Table> tensor_named(const std::string& text);

// A table of two axes that a flag names: numbers in place where they are aligned, else copied.
Expected<Table> table_named(const std::string& text);

// Errors: the plan reads a learned table that --table did not give.
Expected<void> check_table(const Plan& plan, std::string_view command);

}  // namespace posenc::cli
