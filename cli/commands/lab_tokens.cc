// posenc lab tokens: a text as a model's tokens.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/commands/lab.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// A token may end within a letter, or be a line's end.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<int>(c));
    else
      out += c;
  }
  return "\"" + printable(out) + "\"";
}

Run define_tokens(CLI::App& app) {
  auto flags = std::make_shared<RealModelFlags>();
  add_text_of_model(app, flags);
  app.footer(
      "Byte-level BPE with the vocabulary, the merges and the way of cutting words that the file "
      "names (gpt-2, smollm,\n"
      "llama-bpe); control tokens in the text are text. The ids are llama.cpp's "
      "(docs/real_model.md).\n\n"
      "Examples:\n"
      "  posenc lab tokens smollm2.gguf book.txt | head\n"
      "  echo 'Hello world' | posenc lab tokens smollm2.gguf - --json");
  return [flags]() -> Expected<int> {
    POSENC_TRY(read, read_text(*flags));
    if (flags->json) {
      std::string list;
      for (const std::int32_t token : read.tokens)
        list += (list.empty() ? "" : ",") + std::to_string(token);
      write_out("{{\"tokens\":[{}]}}\n", list);
      return 0;
    }
    for (const std::int32_t token : read.tokens)
      write_out("{:>8}  {}\n", token, shown(read.tokenizer.text_of(token)));
    return 0;
  };
}

}  // namespace

extern const Command lab_tokens{"tokens", "a text as the model's tokens", define_tokens};

}  // namespace posenc::cli
