// What a decoder learns from: a folder of texts as bytes, or small tasks over symbols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/lab/train/decoder.h"

namespace posenc::lab {

// Texts of a folder, whole files held out: every tenth by name.
class Corpus {
 public:
  // Errors: no such folder, fewer than ten files *.pod or *.txt in it.
  static Expected<Corpus> read(const std::string& folder);
  // Where Debian's package perl-doc has Perl's manual. Errors: it is not installed.
  static Expected<std::string> usual_folder();

  // `texts` windows of the training files, the same for a state of `random`.
  Batch window(Random& random, std::int64_t texts, std::int64_t length) const;
  // Held-out windows whose ends lie evenly, whatever their length: the last `scored` bytes of each
  // are targets, so that losses at several lengths are of the same bytes, given more or less before
  // them.
  Batch held_out(std::int64_t texts, std::int64_t length, std::int64_t scored,
                 std::int64_t longest) const;
  std::string_view fingerprint() const { return fingerprint_; }  // of all its bytes

 private:
  std::vector<std::uint8_t> training_, held_out_;
  std::string fingerprint_;
};

// Changes to a batch of a corpus, the same for a seed; what its last positions are does not depend
// on the length. masked: three bytes of twenty are hidden, and what stood there is what is scored.
void hide_bytes(Batch& batch, std::uint64_t seed);
// recall: a text with one fact in each eighth, a symbol that says a key and its value, whose end
// asks for all eight in some order: the keys stand there, and their values are all that is scored.
// All are symbols beyond bytes. A share of the texts has them; the others are left alone.
constexpr std::int64_t facts = 8, symbols_of_recall = 376;
void plant_facts(Batch& batch, std::uint64_t seed, double share = 1);
// Of a text with facts: the positions from which values are asked for, and in which eighth each of
// them stands.
struct Question {
  std::int64_t at = 0, eighth = 0;
};
std::vector<Question> questions_of(std::span<const std::int32_t> text);

// copy "abcd=abcd;", reverse "abcd=dcba;", sort "cadb=abcd;", parity "0110=0;", addition
// "12+99=111;" with digits from the last to the first. What stands behind = is scored.
bool is_task(std::string_view name);
bool is_of_text(std::string_view task);  // text, masked, recall
// `texts` of them with `least` to `most` symbols (digits of each summand), padded to the longest
// there can be.
Batch task_texts(std::string_view task, Random& random, std::int64_t texts, std::int64_t least,
                 std::int64_t most);

// Positions other than 0, 1, …, of texts of a task, all below `range`.
// random: as many as a text is long, drawn anew for each and in order (2305.16843).
// numbers: each number of a text counts its digits from 1 on, plus an offset, the same for all
// numbers of a text and drawn for each; none in tests; what is no digit has 0 (2405.17399).
bool is_positions(std::string_view name);
Expected<Positions> positions_of(const Batch& batch, std::string_view name, std::int64_t range,
                                 bool training, Random& random);

// The same text with the words before its last eight bytes in another order: every byte is still
// there.
std::vector<std::int32_t> words_shuffled(std::span<const std::int32_t> text, Random& random);
constexpr std::int64_t bytes_kept = 8;

}  // namespace posenc::lab
