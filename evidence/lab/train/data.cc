#include "evidence/lab/train/data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <tuple>

#include "evidence/lab/train/hash.h"

namespace posenc::lab {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> texts_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".pod" || at->path().extension() == ".txt")
      files.push_back(at->path());
  std::ranges::sort(files);
  return files;
}

// Text `row` of the batch: bytes [from, from + length), each with the one behind it as its target.
void append(Batch& batch, const std::vector<std::uint8_t>& bytes, std::int64_t from,
            std::int64_t scored) {
  const auto begin = bytes.begin() + from, end = begin + batch.length;
  batch.tokens.insert(batch.tokens.end(), begin, end);
  batch.targets.insert(batch.targets.end(), static_cast<std::size_t>(batch.length - scored), -1);
  batch.targets.insert(batch.targets.end(), end - scored + 1, end + 1);
  ++batch.texts;
}

// Ten keys and ten values, and a symbol for each fact that says both, beyond bytes; asking for all
// facts takes so many.
constexpr std::int32_t first_key = 256, first_value = 266, first_fact = 276;
constexpr std::int64_t asking = 2 * facts - 1;

template <class T>
void shuffle(Random& random, std::vector<T>& list) {
  for (std::size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1],
              list[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
}

constexpr std::int32_t equals = 10, stop = 11, plus = 12, symbols = 10;

std::vector<std::int32_t> some_symbols(Random& random, std::int64_t count,
                                       std::int64_t kinds = symbols) {
  std::vector<std::int32_t> made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<std::int32_t>(random.below(kinds)));
  return made;
}

// Question and answer; digits from the last to the first.
std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> sum(Random& random,
                                                                    std::int64_t digits) {
  const std::vector<std::int32_t> a = some_symbols(random, digits),
                                  b = some_symbols(random, digits);
  std::vector<std::int32_t> question = a, answer;
  question.push_back(plus);
  question.insert(question.end(), b.begin(), b.end());
  std::int32_t carry = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int32_t digit = a[i] + b[i] + carry;
    answer.push_back(digit % 10);
    carry = digit / 10;
  }
  answer.push_back(carry);
  return {question, answer};
}

}  // namespace

Expected<std::string> Corpus::usual_folder() {
  std::error_code failed;
  for (fs::directory_iterator at("/usr/share/perl", failed), end; !failed && at != end;
       at.increment(failed))
    if (texts_in((at->path() / "pod").string()).size() > 100) return (at->path() / "pod").string();
  return fail("lab", "learns from Perl's manual", "it is not on this machine",
              "apt-get install perl-doc, or name a folder of texts by --text");
}

Expected<Corpus> Corpus::read(const std::string& folder) {
  const std::vector<fs::path> files = texts_in(folder);
  if (files.size() < 10)
    return fail("--text", "must be a folder of ten files *.pod or *.txt, or more",
                std::to_string(files.size()) + " in " + folder, "name another");
  Corpus made;
  Hash hash;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::ifstream file(files[i], std::ios::binary);
    std::vector<std::uint8_t>& into = i % 10 == 9 ? made.held_out_ : made.training_;
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    into.insert(into.end(), bytes.begin(), bytes.end());
    hash.add(bytes);
  }
  made.fingerprint_ = hash.text();
  return made;
}

Batch Corpus::window(Random& random, std::int64_t texts, std::int64_t length) const {
  Batch batch{.length = length};
  for (std::int64_t i = 0; i < texts; ++i)
    append(batch, training_, random.below(std::ssize(training_) - length - 1), length);
  return batch;
}

Batch Corpus::held_out(std::int64_t texts, std::int64_t length, std::int64_t scored,
                       std::int64_t longest) const {
  Batch batch{.length = length};
  const std::int64_t room = std::ssize(held_out_) - longest - 1;
  for (std::int64_t i = 0; i < texts; ++i)
    append(batch, held_out_, longest - length + room * (i + 1) / (texts + 1), scored);
  return batch;
}

void hide_bytes(Batch& batch, std::uint64_t seed) {
  constexpr std::int32_t hidden = 0;
  for (std::int64_t t = 0; t < batch.texts; ++t) {
    Random random(seed + static_cast<std::uint64_t>(t));
    // From the end, which texts of all lengths share.
    for (std::int64_t i = batch.length; i-- > 0;) {
      const auto at = static_cast<std::size_t>(t * batch.length + i);
      const bool hides = random.uniform() < 0.15;
      batch.targets[at] = hides && batch.targets[at] >= 0 ? batch.tokens[at] : -1;
      if (hides) batch.tokens[at] = hidden;
    }
  }
}

namespace {

// One text of a batch, and facts to write into it.
class Facts {
 public:
  Facts(Batch& batch, std::int64_t text, Random& random)
      : batch_(batch), from_(static_cast<std::size_t>(text * batch.length)) {
    std::fill_n(batch.targets.begin() + text * batch.length, batch.length, -1);
    std::vector<std::int32_t> keys(10);
    std::iota(keys.begin(), keys.end(), first_key);
    shuffle(random, keys);
    for (std::int64_t i = 0; i < facts; ++i)
      list_.emplace_back(keys[static_cast<std::size_t>(i)],
                         first_value + static_cast<std::int32_t>(random.below(10)));
  }
  const std::pair<std::int32_t, std::int32_t>& at(std::int64_t fact) const {
    return list_[static_cast<std::size_t>(fact)];
  }
  void write(std::int64_t i, std::int32_t symbol) {
    batch_.tokens[from_ + static_cast<std::size_t>(i)] = symbol;
  }
  void write_fact(std::int64_t i, std::int64_t fact) {
    write(i, first_fact + 10 * (at(fact).first - first_key) + at(fact).second - first_value);
  }
  void ask(std::int64_t i, std::int64_t fact) {
    write(i, at(fact).first);
    batch_.targets[from_ + static_cast<std::size_t>(i)] = at(fact).second;
  }

 private:
  Batch& batch_;
  std::size_t from_;
  std::vector<std::pair<std::int32_t, std::int32_t>> list_ = {};
};

}  // namespace

void plant_facts(Batch& batch, std::uint64_t seed, double share) {
  const std::int64_t body = batch.length - asking;
  for (std::int64_t t = 0; t < batch.texts; ++t) {
    Random random(seed + static_cast<std::uint64_t>(t));
    if (random.uniform() >= share) continue;
    Facts planted(batch, t, random);
    std::vector<std::int64_t> order(facts);
    std::iota(order.begin(), order.end(), 0);
    for (const std::int64_t i : order) {
      const std::int64_t begin = body * i / facts, room = body * (i + 1) / facts - begin;
      planted.write_fact(begin + random.below(room), i);
    }
    shuffle(random, order);
    for (std::int64_t i = 0; i < facts; ++i) {
      const std::int64_t fact = order[static_cast<std::size_t>(i)];
      planted.ask(body + 2 * i, fact);
      if (i + 1 < facts) planted.write(body + 2 * i + 1, planted.at(fact).second);
    }
  }
}

std::vector<Question> questions_of(std::span<const std::int32_t> text) {
  const std::int64_t body = std::ssize(text) - asking;
  const auto begin = text.begin(), end = begin + body;
  std::vector<Question> made;
  for (std::int64_t i = body; i < std::ssize(text); i += 2) {
    const std::int32_t key = text[static_cast<std::size_t>(i)] - first_key;
    const std::int64_t at =
        std::find_if(begin, end,
                     [key](std::int32_t symbol) {
                       return symbol >= first_fact && (symbol - first_fact) / 10 == key;
                     }) -
        begin;
    if (at < body) made.push_back({i, ((at + 1) * facts - 1) / body});
  }
  return made;
}

bool is_of_text(std::string_view task) {
  return task == "text" || task == "masked" || task == "recall";
}

bool is_task(std::string_view name) {
  constexpr std::string_view tasks[] = {"copy", "reverse", "sort", "parity", "addition"};
  return std::ranges::find(tasks, name) != std::end(tasks);
}

Batch task_texts(std::string_view task, Random& random, std::int64_t texts, std::int64_t least,
                 std::int64_t most) {
  const bool adds = task == "addition";
  Batch batch{.texts = texts, .length = adds ? 3 * most + 4 : 2 * most + 2};
  for (std::int64_t t = 0; t < texts; ++t) {
    const std::int64_t size = least + random.below(most - least + 1);
    std::vector<std::int32_t> question, answer;
    if (adds) {
      std::tie(question, answer) = sum(random, size);
    } else {
      question = answer = some_symbols(random, size, task == "parity" ? 2 : symbols);
      if (task == "reverse") std::ranges::reverse(answer);
      if (task == "sort") std::ranges::sort(answer);
      if (task == "parity") answer = {std::reduce(answer.begin(), answer.end()) % 2};
    }
    const auto first = static_cast<std::int64_t>(question.size());  // where = stands
    std::vector<std::int32_t> text = question;
    text.push_back(equals);
    text.insert(text.end(), answer.begin(), answer.end());
    text.resize(static_cast<std::size_t>(batch.length + 1), stop);
    const std::int64_t last = first + std::ssize(answer);  // the answer's stop is the target there
    for (std::int64_t i = 0; i < batch.length; ++i) {
      batch.tokens.push_back(text[static_cast<std::size_t>(i)]);
      const bool scored = first <= i && i <= last;
      batch.targets.push_back(scored ? text[static_cast<std::size_t>(i + 1)] : -1);
    }
  }
  return batch;
}

bool is_positions(std::string_view name) {
  return name.empty() || name == "random" || name == "numbers";
}

Expected<Positions> positions_of(const Batch& batch, std::string_view name, std::int64_t range,
                                 bool training, Random& random) {
  if (name.empty()) return Positions::range(0, batch.length);
  const bool draws = name == "random";
  std::vector<std::int64_t> ids, all(static_cast<std::size_t>(range));
  for (std::int64_t t = 0; t < batch.texts; ++t) {
    if (draws) {
      std::iota(all.begin(), all.end(), 0);
      for (std::int64_t i = 0; i < batch.length; ++i)  // the first of a shuffle are a draw
        std::swap(all[static_cast<std::size_t>(i)],
                  all[static_cast<std::size_t>(i + random.below(range - i))]);
      std::sort(all.begin(), all.begin() + batch.length);
      ids.insert(ids.end(), all.begin(), all.begin() + batch.length);
      continue;
    }
    std::int64_t longest = 0, digits = 0;
    const std::size_t from = ids.size();
    for (std::int64_t i = 0; i < batch.length; ++i) {
      const bool digit = batch.tokens[static_cast<std::size_t>(t * batch.length + i)] < symbols;
      digits = digit ? digits + 1 : 0;
      longest = std::max(longest, digits);
      ids.push_back(digits);
    }
    const std::int64_t offset = training ? random.below(range - longest) : 0;
    for (std::size_t i = from; i < ids.size(); ++i) ids[i] += ids[i] > 0 ? offset : 0;
  }
  return Positions::ids(ids, 1, batch.texts);
}

std::vector<std::int32_t> words_shuffled(std::span<const std::int32_t> text, Random& random) {
  const std::size_t kept = text.size() - static_cast<std::size_t>(bytes_kept);
  // A word ends with what follows its letters; the last one may be cut.
  std::vector<std::vector<std::int32_t>> words(1);
  for (std::size_t i = 0; i < kept; ++i) {
    words.back().push_back(text[i]);
    if (text[i] == ' ' || text[i] == '\n') words.emplace_back();
  }
  shuffle(random, words);
  std::vector<std::int32_t> made;
  for (const std::vector<std::int32_t>& word : words)
    made.insert(made.end(), word.begin(), word.end());
  made.insert(made.end(), text.begin() + static_cast<std::ptrdiff_t>(kept), text.end());
  return made;
}

}  // namespace posenc::lab
