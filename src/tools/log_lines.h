// What an engine's log says, line by line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/tools.h"

namespace posenc::detail {

// One thing that a log says, and the line that says it last.
struct LogSaid {
  double number = 0;
  std::string text = {};  // the value as it stands there
  std::int64_t line = 0;
};

struct EngineLog {
  std::map<std::string, LogSaid, std::less<>> said = {};
  std::vector<Finding> remarks = {};  // what a line says by itself
  std::int64_t known = 0;             // lines that say anything

  const LogSaid* find(std::string_view what) const {
    const auto at = said.find(what);
    return at == said.end() ? nullptr : &at->second;
  }
  // The first remark of a code; null: none.
  const Finding* remark_of(std::string_view code) const {
    const auto at = std::ranges::find(remarks, code, &Finding::code);
    return at == remarks.end() ? nullptr : &*at;
  }
  Finding* remark_of(std::string_view code) {
    return const_cast<Finding*>(std::as_const(*this).remark_of(code));
  }
  // What the line says of `what`, as it stands there; the last one counts.
  void say(std::string_view what, std::string_view value, std::int64_t line);
  // What the line says by itself, once for each code and number.
  void remark(Finding finding, std::int64_t line);
  // What a key of a GGUF says: "qwen3.context_length", "8192".
  void say_by_key(std::string_view key, std::string_view value, std::int64_t line);
};

// Stands in a cure for a number that the model's file has.
constexpr std::string_view base_of_the_file = "BASE";

// What several lines say, or what other evidence says better.
constexpr std::string_view
    dictionary_of_five =
        "code for transformers 4 takes any rope_scaling for a scaling, and transformers 5 gives "
        "every model a dictionary there: of rope_type default it scales nothing",
    update_the_program =
        "pip install 'transformers<5', or a newer version of the program (nano-vllm, mini-sglang); "
        "the file is right",
    takes_positions_now =
        "rotary_emb(x, seq_len=…) is of older transformers: since 4.45 at the latest the module "
        "takes the positions themselves, and since 4.48 the model calls it once for all layers",
    sum_beyond_context =
        "verl stops: the longest prompt and the longest answer together are more than the model's "
        "max_position_embeddings",
    not_consecutive = "llama.cpp stops: the new tokens do not follow the last cached position. ",
    of_three_causes =  // behind not_consecutive
    "Of three causes, in this order: pictures under M-RoPE that several batches share (the log "
    "then says image batch 2/3), a draft (-md, -hfd, MTP) that counts a picture's tokens for "
    "its positions, a cache that was reused and could not be cut back (recurrent layers, a "
    "sliding window)",
    of_two_causes =  // behind it, of a model that has one position a token
    "Of two causes, in this order: a cache that was reused and could not be cut back "
    "(recurrent layers, a sliding window), a draft (-md, -hfd, MTP) whose guesses were left in "
    "it",
    latent_unshifted =
        "the context ran full, and keys of a latent attention (MLA) cannot be moved to other "
        "places: the server ends where it would shift them",
    positions_of_a_draft = "these are positions of the draft's context: ";

// The first 400 characters of a line.
std::string in_small_letters(std::string_view line);

// Of a Python dict as its repr shows it, JSON; what stands behind the closing brace is left out.
// Nothing: no dict.
std::optional<std::string> json_of_repr(std::string_view text);

// The number behind the first `before` in a line, "4,096" too; nothing where none stands there.
std::optional<double> number_after(std::string_view line, std::string_view before);

// "4,096": a number that a line holds, as people write it. The largest that is told is 2⁵⁰.
std::string told(double number);

// The numbers of a list behind a place of the line, which moves to its end: "(1, 16, 56, 64)".
// Empty: no such list stands there, or a longer one than 80 characters.
std::vector<double> numbers_between(std::string_view line, std::size_t& at, std::string_view opens,
                                    char closes);

// What a line says that needs no model to be understood; nothing: it is none of those.
std::optional<Finding> message_of(std::string_view line);

// Whether a line says that two tensors have sizes that do not match.
bool tells_sizes(std::string_view line);
// What its numbers and the lines before it (`context`, in small letters) say of the cause.
std::optional<Finding> sizes_that_differ(std::string_view line, std::string_view context);

// Answers and texts that were cut, of a trainer's metrics, a server's answer, or code; `behind` is
// the text below the line. Nothing: none.
std::optional<Finding> cut_told(std::string_view line, std::span<const std::string> before,
                                std::string_view behind);

// An attention mask or the bounds of packed texts that a line prints, or an error about one;
// `before` are the lines above it, in small letters, and the line itself. Nothing: no fault of
// positions.
std::optional<Finding> mask_told(std::string_view line, std::span<const std::string> before,
                                 std::string_view behind);

// Patches of a square picture, and a token or a few in front of them: "16×16 and 1"; "": none.
std::string square_of(double rows);
// A learned table of positions, whose sizes in a checkpoint and in the model the line compares.
std::optional<Finding> checkpoint_table(std::string_view line);

// A message that many programs print, by the lines around it (`context`, in small letters); nothing:
// they do not tell whose it is.
std::optional<Finding> told_by_neighbours(std::string_view line, std::string_view context);

// Errors: a line above 1 MiB, a zero byte.
Expected<EngineLog> read_log(std::string_view text);

}  // namespace posenc::detail
