// Reads what a path leads to. In a folder, the first file that describes the model (config.json,
// then params.json, then GGUF) must be readable and is used; the others are compared with it, and
// weights are listed.
#include "src/model/folder.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "posenc/files.h"
#include "src/core/disk.h"
#include "src/core/try.h"
#include "src/model/bundled.h"
#include "src/model/checkpoint.h"
#include "src/model/compare.h"
#include "src/model/names.h"
#include "src/model/params.h"
#include "src/model/tables.h"
#include "src/text/json.h"

namespace posenc::detail {
namespace {

// Only plain files are opened: a pipe or a device would hang.
Expected<void> check_plain(const std::string& path) {
  const Entry target = look_through(path);
  if (target.kind == EntryKind::file) return {};
  const Entry own = look_at(path);
  if (own.kind == EntryKind::missing)
    return fail(path, "cannot be read", words_of_error(own.error), "check the path");
  if (target.kind == EntryKind::missing) {
    if (own.kind != EntryKind::link)
      return fail(path, "cannot be read", words_of_error(target.error), "check the path");
    return fail(path,
                target.circle ? "is a symbolic link that leads in a circle"
                              : "is a symbolic link to what is not there",
                target.circle || target.nothing ? "" : words_of_error(target.error),
                "mend the link, or give the file itself");
  }
  return fail(path, "must be a regular file",
              target.kind == EntryKind::folder ? "a folder" : "a pipe, socket or device",
              "give the model's folder, or its config.json, params.json or .gguf file");
}

// The whole file, at most as long as a configuration may be; a copy, as the file may change.
Expected<std::string> read_text(const std::string& path) {
  POSENC_CHECK(check_plain(path));
  POSENC_TRY(file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > largest_json) {
    return fail(path, "must be at most 16 MiB", std::to_string(bytes.size()) + " bytes",
                "give the model's config.json or its folder, not its weights");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string base_name(std::string path) {
  while (path.size() > 1 && separators.contains(path.back())) path.pop_back();
  return path.substr(path.find_last_of(separators) + 1);
}

// Of a GGUF file in parts the first one holds the description; a picture's projector has none.
bool describes(std::string_view gguf) {
  const bool part = gguf.contains("-of-");
  return (!part || gguf.contains("-00001-of-")) && !gguf.contains("mmproj");
}

// What the folder has of a model, those that describe it first, in the order that counts.
std::vector<ModelFile> files_of(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<ModelFile> files;
  const auto add = [&](FileFormat format, FileRole role, const auto& is) {
    for (const std::string& name : names)
      if (is(name)) files.push_back({folder + "/" + name, format, role});
  };
  const auto ends = [](std::string_view end) {
    return [end](std::string_view name) { return name.ends_with(end) && !name.starts_with('.'); };
  };
  const auto gguf = ends(".gguf");
  add(FileFormat::config, FileRole::compared, [](auto& name) { return name == "config.json"; });
  add(FileFormat::params, FileRole::compared, [](auto& name) { return name == "params.json"; });
  add(FileFormat::gguf, FileRole::compared,
      [&](auto& name) { return gguf(name) && describes(name); });
  add(FileFormat::gguf, FileRole::weights,
      [&](auto& name) { return gguf(name) && !describes(name); });
  add(FileFormat::safetensors_index, FileRole::weights, ends(".safetensors.index.json"));
  add(FileFormat::safetensors, FileRole::weights, ends(".safetensors"));
  return files;
}

// Also a symbolic link that leads nowhere: its own error says so, where a bundled name would not.
bool exists(const std::string& path) { return look_at(path).kind != EntryKind::missing; }

bool is_folder(const std::string& path) { return look_through(path).kind == EntryKind::folder; }

}  // namespace

Expected<Model> read_file(const std::string& path) {
  if (path.ends_with(".gguf")) {
    POSENC_CHECK(check_plain(path));
    POSENC_TRY(file, MappedFile::open(path));
    auto model = read_gguf(file.bytes(), path);
    if (model) give_tables_of_file(*model, path);
    return model;
  }
  if (path.ends_with(".safetensors")) {
    POSENC_CHECK(check_plain(path));
    POSENC_TRY(file, MappedFile::open(path));
    if (const auto read = parse_safetensors(file.bytes(), path)) {
      if (auto model = read_checkpoint(read->tensors, path, FileFormat::safetensors))
        return *std::move(model);
      const std::string_view whole(reinterpret_cast<const char*>(file.bytes().data()),
                                   file.bytes().size());
      return read_text_of_model(whole.substr(0, 4096), path);  // which says what it is
    }
  }
  POSENC_TRY(text, read_text(path));
  return read_text_of_model(text, path);
}

// sentence-transformers cuts texts at a length of its own, which vLLM takes for the model's.
void read_sentence_length(Model& model, const std::string& folder) {
  const auto text = read_text(folder + "/sentence_bert_config.json");
  const auto json = text ? parse_json(*text, "sentence_bert_config.json")
                         : Expected<Json>(std::unexpected(text.error()));
  if (!json) return;
  const Json* length = json->find("max_seq_length");
  const std::int64_t* tokens = length ? length->get<std::int64_t>() : nullptr;
  if (!tokens || *tokens < 1 || *tokens >= model.context) return;
  model.warnings.push_back(
      {"sentence_length", "sentence_bert_config.json: max_seq_length is " +
                              std::to_string(*tokens) + ", and the model takes " +
                              std::to_string(model.context) +
                              ": sentence-transformers cuts texts there, and vLLM serves no more"});
}

Expected<Model> read_folder(const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && separators.contains(folder.back())) folder.pop_back();
  POSENC_TRY(names, names_in(folder));
  std::vector<ModelFile> files = files_of(folder, names);

  std::optional<Model> model;
  for (ModelFile& file : files) {
    if (file.role != FileRole::compared) continue;
    auto read = read_file(file.path);
    if (!model) {
      if (!read) return std::unexpected(read.error());
      model = std::move(*read);
      file = {file.path, model->files.front().format, FileRole::model};
      continue;
    }
    if (!read) {
      file.role = FileRole::unread;
      model->warnings.push_back({"file_not_read", read.error().message()});
      continue;
    }
    file.format = read->files.front().format;
    compare(*model, *read, printable(base_name(files.front().path)),
            printable(base_name(file.path)));
  }
  // A folder of diffusers: the transformer's own stands below.
  if (!model && std::ranges::find(names, "model_index.json") != names.end() &&
      std::ranges::find(names, "transformer") != names.end())
    return read_folder(folder + "/transformer");
  if (!model) {
    return fail("read_model", "the folder has no config.json, params.json or .gguf file",
                "'" + path.substr(0, 200) + "'" +
                    (files.empty() ? "" : " with " + base_name(files.front().path)),
                "give the model's folder, or its file");
  }
  model->name = printable(base_name(folder));
  model->files = std::move(files);
  read_sentence_length(*model, folder);
  give_tables_of_folder(*model, folder);
  return std::move(*model);
}

}  // namespace posenc::detail

namespace posenc {

namespace {

// Whether somebody meant a place on the disk: OWNER/NAME means one where that folder is there.
bool is_path(const std::string& text) {
  for (const std::string_view start : {"./", "../", "/", "~", ".\\"})
    if (text.starts_with(start)) return true;
  const std::size_t slash = text.find('/');
  const bool deep = std::ranges::count(text, '/') > 1 && !text.contains("://");
  return slash != text.npos && (deep || detail::is_folder(text.substr(0, slash)));
}

}  // namespace

Expected<Model> read_model(std::string_view path_or_name) {
  if (path_or_name.empty() || path_or_name.contains('\0')) {
    return fail("read_model", "needs a file, a folder or a bundled name",
                "'" + std::string(path_or_name.substr(0, 60)) + "'");
  }
  const std::string path(path_or_name);
  if (detail::is_folder(path)) return detail::read_folder(path);
  if (detail::exists(path)) return detail::read_file(path);
  if (const auto folder = detail::hub_snapshot(path)) return detail::read_folder(*folder);
  if (is_path(path))
    return fail("read_model", "there is no such file or folder", "'" + path.substr(0, 200) + "'",
                "see that it is spelt as on the disk; a name alone means a model that posenc knows");
  auto model = detail::read_bundled(path_or_name);
  if (model) return model;
  return fail("read_model",
              "neither a file, a folder nor a known model, and not in the hub's cache",
              "'" + path.substr(0, 200) + "'", detail::name_cure(path));
}

}  // namespace posenc
