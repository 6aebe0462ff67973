// A model's folder: config.json, params.json, the index of the weights and a file of weights, which
// are what stands between bytes of 0xFF (no byte of a text); the weights are the rest. Read as a
// whole, so that files are compared and tables are taken from the weights.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

constexpr const char* names[] = {"config.json", "params.json", "model.safetensors.index.json",
                                 "weights.safetensors"};

// In memory where the system has such a place; removed when the process ends well.
class Folder {
 public:
  Folder() {
    path_ = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/posenc_XXXXXX";
    must(mkdtemp(path_.data()) != nullptr, "a folder can be made", path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    for (const char* name : names) remove(name);
    rmdir(path_.c_str());
  }

  const std::string& path() const { return path_; }
  void remove(const char* name) const { unlink((path_ + "/" + name).c_str()); }
  void write(const char* name, std::string_view text) const {
    std::FILE* file = std::fopen((path_ + "/" + name).c_str(), "wb");
    must(file && std::fwrite(text.data(), 1, text.size(), file) == text.size(), "a file is made");
    std::fclose(file);
  }

 private:
  std::string path_;
};

}  // namespace
}  // namespace posenc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  static const fuzz::Folder folder;
  std::string_view rest = fuzz::text_of({data, size});
  for (const char* name : fuzz::names) {
    const bool last = name == fuzz::names[3];
    const std::string_view text = last ? rest : rest.substr(0, rest.find('\xFF'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.empty())
      folder.remove(name);
    else
      folder.write(name, text);
  }
  const auto model = read_model(folder.path());
  if (!model) {
    fuzz::check_error(model.error());
    return 0;
  }
  fuzz::check_text(model->name);
  fuzz::check_model(*model);
  return 0;
}
