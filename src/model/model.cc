// Where a model is read from, and what a read one answers.
#include "posenc/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "src/model/folder.h"

namespace posenc {
namespace {

// Also a symbolic link that leads nowhere: its own error says so, where a bundled name would not.
bool exists(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::string_view name(Stack stack) {
  constexpr std::string_view names[] = {"text", "encoder", "decoder", "vision"};
  return names[static_cast<std::size_t>(stack)];
}

std::string_view name(Origin origin) {
  constexpr std::string_view names[] = {"file", "derived", "family", "assumed"};
  return names[static_cast<std::size_t>(origin)];
}

std::string_view name(FileFormat format) {
  constexpr std::string_view names[] = {"config.json", "params.json", "GGUF", "safetensors",
                                        "safetensors index"};
  return names[static_cast<std::size_t>(format)];
}

std::string_view name(FileRole role) {
  constexpr std::string_view names[] = {"model", "compared", "weights", "unread"};
  return names[static_cast<std::size_t>(role)];
}

Expected<Plan> compile(const LayerGroup& group, std::int64_t length, Angles angles) {
  Geometry geometry = group.geometry;
  geometry.length = length;
  Plan plan;
  for (const Scheme& scheme : group.schemes) {
    auto part = compile(scheme, geometry, angles);
    if (!part) return part;
    auto both = merged(plan, *part);
    if (!both) return both;
    plan = std::move(*both);
  }
  plan.logits.multiplier *= group.logits.multiplier;
  if (group.logits.beta != 0) {
    plan.logits.beta = group.logits.beta;
    plan.logits.floor = group.logits.floor;
    plan.logits.offset = group.logits.offset;
  }
  return checked(std::move(plan), group.geometry.head_dim);
}

const LayerGroup* find_group(const Model& model, std::int64_t layer, Stack stack) {
  for (const LayerGroup& group : model.groups) {
    if (group.stack == stack && std::ranges::binary_search(group.layers, layer)) return &group;
  }
  return nullptr;
}

Expected<Model> read_model(std::string_view path_or_name) {
  if (path_or_name.empty() || path_or_name.contains('\0')) {
    return fail("read_model", "needs a file, a folder or a bundled name",
                "'" + std::string(path_or_name.substr(0, 60)) + "'");
  }
  const std::string path(path_or_name);
  if (exists(path)) return is_folder(path) ? detail::read_folder(path) : detail::read_file(path);
  const auto text = bundled_config(path_or_name);
  if (text) {
    auto model = read_config(*text, path_or_name);
    if (model) model->files.clear();  // no file of the user's
    return model;
  }
  return fail("read_model", "neither a file, a folder nor a bundled model",
              "'" + path.substr(0, 200) + "'", text.error().cure);
}

}  // namespace posenc
