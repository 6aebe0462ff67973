// Lines of the programs that choose a context by themselves when they load a model: Ollama and LM
// Studio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/tools/log_lines.h"

namespace posenc::detail {

class LoaderLines {
 public:
  // Whether a line is Ollama's: what stands behind it is read as such.
  void notice(std::string_view line);
  void read(std::string_view line, std::int64_t number, EngineLog& log);
  // What all lines say together.
  void judge(EngineLog& log) const;
  // A cure in the words of the program that the log is of: Ollama's runner prints llama-server's.
  Finding in_its_words(Finding finding) const;

 private:
  void cut_prompt(std::string_view line, std::int64_t number, EngineLog& log);
  void of_ollama_show(std::string_view text, std::int64_t number, EngineLog& log);
  void of_ollama(std::string_view line, std::int64_t number, EngineLog& log);
  void of_lm_studio(std::string_view line, std::int64_t number, EngineLog& log);
  Finding other_than_shown(double runs) const;
  void judge_prompt(EngineLog& log) const;
  void judge_context(EngineLog& log) const;

  bool is_ollama_ = false;
  bool asked_by_server_ = false;   // the server's own list of variables has the length
  bool runs_otherwise_ = false;    // than the model's own num_ctx
  double shown_ = 0;               // that num_ctx, of `ollama show`
  std::string architecture_ = {};  // of the same
  double limit_ = 0, prompt_ = 0;  // of a prompt that was cut
  std::size_t column_of_context_ =
      0;  // of the table of `ollama ps`, whose header was the last line
};

// A limit of a prompt is the context, or just half of one and two tokens, where the other half is
// kept for the answer: that context; 0: no half.
double context_of_half(double limit);

}  // namespace posenc::detail
