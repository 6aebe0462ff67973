// Where a model is read from, and what a read one answers.
#include "posenc/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "posenc/files.h"
#include "src/files/json.h"
#include "src/model/tables.h"

namespace posenc {
namespace {

// The whole file, at most as long as a configuration may be. Only regular files are opened: a pipe
// or a device would hang.
Expected<std::string> read_file(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0)
    return fail(path, "cannot be read", std::strerror(errno), "check the path");
  if (!S_ISREG(status.st_mode))
    return fail(path, "must be a regular file", "a pipe, socket or device", "give a config.json");
  if (status.st_size > static_cast<off_t>(detail::largest_json)) {
    return fail(path, "must be at most 16 MiB", std::to_string(status.st_size) + " bytes",
                "give the model's config.json, not its weights");
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) return fail(path, "cannot be opened", std::strerror(errno), "check its permissions");
  std::string text;
  char buffer[64 << 10];
  while (text.size() <= detail::largest_json) {
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get());
    text.append(buffer, count);
    if (count < sizeof buffer) break;
  }
  if (std::ferror(file.get()))
    return fail(path, "cannot be read", std::strerror(errno), "check the disk");
  return text;
}

bool is_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0;
}

std::string folder_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
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

Expected<Plan> compile(const LayerGroup& group, std::int64_t length) {
  Geometry geometry = group.geometry;
  geometry.length = length;
  Plan plan;
  for (const Scheme& scheme : group.schemes) {
    auto part = compile(scheme, geometry);
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
  std::string path(path_or_name);
  if (!exists(path)) {
    const auto text = bundled_config(path_or_name);
    if (text) return read_config(*text, path_or_name);
    return fail("read_model", "neither a file, a folder nor a bundled model",
                "'" + path.substr(0, 200) + "'", text.error().cure);
  }
  std::string model_name;
  const std::string folder = path;
  if (is_folder(path)) {
    model_name = folder_name(path);
    path += path.back() == '/' ? "config.json" : "/config.json";
    if (!exists(path))
      return fail("read_model", "the folder has no config.json",
                  "'" + std::string(path_or_name) + "'", "give the model's folder or its file");
  }
  if (path.ends_with(".gguf")) {
    const auto file = MappedFile::open(path);
    return file ? read_gguf(file->bytes(), path) : std::unexpected(file.error());
  }
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  auto model = read_config(*text, path);
  if (model && !model_name.empty()) {
    model->name = model_name;
    detail::give_tables_of_folder(*model, folder);
  }
  return model;
}

}  // namespace posenc
