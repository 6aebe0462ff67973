// What a decoder learns from: a folder of texts as bytes, or small tasks over symbols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/train/decoder.h"

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
  // Held-out windows whose ends lie evenly, whatever their length: the last `scored` bytes of each are targets, so that
  // losses at several lengths are of the same bytes, given more or less before them.
  Batch held_out(std::int64_t texts, std::int64_t length, std::int64_t scored,
                 std::int64_t longest) const;
  std::string_view fingerprint() const { return fingerprint_; }  // of all its bytes

 private:
  std::vector<std::uint8_t> training_, held_out_;
  std::string fingerprint_;
};

// copy "abcd=abcd;", reverse "abcd=dcba;", addition "12+99=111;" with digits from the last to the first. What stands
// behind = is scored.
bool is_task(std::string_view name);
// `texts` of them with `least` to `most` symbols (digits of each summand), padded to the longest there can be.
Batch task_texts(std::string_view task, Random& random, std::int64_t texts, std::int64_t least,
                 std::int64_t most);

}  // namespace posenc::lab
