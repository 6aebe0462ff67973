// Names of models as people have them: met half-way, or found in the local cache of the Hugging
// Face hub.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::detail {

// The name of a bundled or published configuration that is meant: case, owner, -GGUF and dots
// aside; -Instruct and -Chat too where no configuration has them. Nothing: none is.
std::optional<std::string_view> name_like(std::string_view name);

// The newest snapshot of owner/name in HF_HUB_CACHE, HF_HOME/hub or XDG_CACHE_HOME/huggingface/hub.
// No network is asked. Nothing: it is not there, or there are no files (WebAssembly).
std::optional<std::string> hub_snapshot(const std::string& name);

// A model that a line, a log or a trainer's settings name as owner/name (or a Modelfile behind
// FROM), and that is in the hub's cache or bundled.
struct Named {
  std::string as;  // as it is written there
  std::string is;  // what read_model() takes
};
std::optional<Named> model_named_in(std::string_view text);

// The same of sentences, where a name stands without its owner and in words of its own: "Llama 3.1
// 8B". Of a name that several sizes share (Llama 3.1) one stands for all if their positions agree.
std::optional<Named> model_in_prose(std::string_view text);
// The first so many of them, each once.
std::vector<Named> models_in_prose(std::string_view text, std::size_t most);

// What to do about a name that is nothing: the nearest names, or for an address the line that
// fetches it.
std::string name_cure(const std::string& name);

// The first name of the Hub in a text that looks like a model's, "Qwen/Qwen2.5-Math-7B"; "": none.
std::string hub_name_in(std::string_view text);

// What fetches the config.json of owner/name and hands it to the doctor.
std::string line_that_fetches(const std::string& name);

// What llama.cpp calls a family of Hugging Face's: "qwen3moe" of "qwen3_moe", "deepseek2" of
// "deepseek_v3"; empty where it is not known.
std::string architecture_of(std::string_view family);
// Whether llama.cpp calls an architecture so, which stands before the keys of its files.
bool is_architecture(std::string_view name);

}  // namespace posenc::detail
