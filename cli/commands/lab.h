// The kinds of `posenc lab`, and what they ask of a command line alike.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "evidence/lab/model/llama.h"
#include "evidence/lab/model/tokenizer.h"

namespace posenc::cli {

// Flags of those that read a text as a pretrained model does, and run it.
struct RealModelFlags {
  std::string model, text;
  std::int64_t skip = 0;  // tokens of the text
  int threads = 0;
  bool json = false;
};
void add_text_of_model(CLI::App& app,
                       const std::shared_ptr<RealModelFlags>& flags);  // MODEL TEXT --json
void add_real_model(CLI::App& app,
                    const std::shared_ptr<RealModelFlags>& flags);  // and --skip --threads

// A text as the model's tokens, without its weights. Errors: those of Tokenizer::from, no such
// text.
struct ReadText {
  lab::Tokenizer tokenizer;
  std::vector<std::int32_t> tokens;
};
Expected<ReadText> read_text(const RealModelFlags& flags);

// The model and the text's tokens behind the skipped ones. Errors: those of Llama::read, no such
// text.
struct RealModel {
  lab::Llama llama;
  std::vector<std::int32_t> tokens;
};
Expected<RealModel> real_model(const RealModelFlags& flags);

}  // namespace posenc::cli
