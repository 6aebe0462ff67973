#include "evidence/lab/endpoint/texts.h"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>

namespace posenc::lab {
namespace {

constexpr std::int64_t passage_tokens = 32;

using Words = std::array<std::string_view, 24>;
constexpr Words names = {"Anna",  "Boris", "Clara",  "David",  "Elena", "Felix",
                         "Greta", "Henry", "Ivan",   "Julia",  "Karl",  "Laura",
                         "Marco", "Nina",  "Oscar",  "Paula",  "Quinn", "Robert",
                         "Sarah", "Tom",   "Ursula", "Victor", "Wendy", "Xavier"};
constexpr Words things = {"key",    "letter", "lamp",   "map",    "book",   "coin",
                          "clock",  "ladder", "stone",  "basket", "mirror", "rope",
                          "bottle", "hammer", "shell",  "candle", "drum",   "pencil",
                          "ticket", "violin", "button", "knife",  "scarf",  "box"};
constexpr Words kinds = {"red",    "old",    "small", "heavy",  "green", "broken",
                         "silver", "empty",  "blue",  "wooden", "warm",  "dark",
                         "yellow", "narrow", "quiet", "white",  "black", "new",
                         "cheap",  "round",  "dusty", "bright", "thin",  "strange"};
constexpr Words places = {"garden",  "kitchen", "harbour", "library", "station", "tower",
                          "market",  "cellar",  "bridge",  "school",  "forest",  "church",
                          "theatre", "village", "castle",  "mill",    "office",  "hotel",
                          "museum",  "river",   "stable",  "attic",   "square",  "factory"};
constexpr Words deeds = {"found", "lost",   "sold",      "hid",    "painted",  "carried",
                         "broke", "bought", "borrowed",  "opened", "counted",  "repaired",
                         "drew",  "left",   "threw",     "kept",   "measured", "cleaned",
                         "stole", "wanted", "described", "packed", "moved",    "showed"};

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  std::string sentence() {
    const std::string name(pick(names)), thing(pick(things)), place(pick(places));
    switch (random_() % 5) {
      case 0:
        return " " + name + " " + std::string(pick(deeds)) + " the " + std::string(pick(kinds)) +
               " " + thing + " in the " + place + ".";
      case 1:
        return " The number of the " + std::string(pick(kinds)) + " " + thing + " is " + number() +
               ".";
      case 2:
        return " When the " + place + " was " + std::string(pick(kinds)) + ", " + name + " and " +
               std::string(pick(names)) + " " + std::string(pick(deeds)) + " a " + thing + ".";
      case 3:
        return " There is a " + thing + " behind the " + std::string(pick(kinds)) + " " + place +
               ", said " + name + ".";
      default:
        return " On day " + number() + " the " + thing + " of " + name + " was in the " + place +
               " again.";
    }
  }

 private:
  std::string_view pick(const Words& words) { return words[random_() % words.size()]; }
  std::string number() { return std::to_string(100 + random_() % 900); }

  std::mt19937_64 random_;
};

// The text's tokens, without the one that begins every text.
std::int64_t tokens_in(const Tokenizer& tokenizer, const std::string& text) {
  return std::ssize(tokenizer.encode(text));
}

}  // namespace

ChosenText chosen_text(const Tokenizer* tokenizer, std::int64_t vocabulary, std::uint64_t seed,
                       std::int64_t distance) {
  ChosenText made{.distance = distance};
  // Two texts of one seed and other distances have nothing in common.
  const std::uint64_t drawn = seed * 1'000'003 + static_cast<std::uint64_t>(distance);
  const std::int64_t whole = std::min(passage_tokens, distance);
  if (tokenizer == nullptr) {
    std::mt19937_64 random(drawn);
    for (std::int64_t i = 0; i < distance; ++i)
      made.tokens.push_back(static_cast<std::int32_t>(
          random() % static_cast<std::uint64_t>(std::max<std::int64_t>(vocabulary / 2, 1))));
    made.tokens.insert(made.tokens.end(), made.tokens.begin(), made.tokens.begin() + whole);
    return made;
  }
  Writer writer(drawn);
  std::string passage = "Notes.";
  while (tokens_in(*tokenizer, passage) < whole) passage += writer.sentence();
  made.text = passage;
  for (std::int64_t count = tokens_in(*tokenizer, made.text); count < distance;) {
    const std::string more = writer.sentence();
    made.text += more;
    count += tokens_in(*tokenizer, more);
  }
  made.text += " " + passage;
  made.tokens = tokenizer->encode(made.text);
  return made;
}

std::vector<std::int32_t> repeated_tokens(const Tokenizer* tokenizer, std::int64_t vocabulary,
                                          std::uint64_t seed, std::int64_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> made;
  while (std::ssize(made) < count) {
    if (tokenizer == nullptr) {
      made.push_back(static_cast<std::int32_t>(
          random() % static_cast<std::uint64_t>(std::max<std::int64_t>(vocabulary / 2, 1))));
      continue;
    }
    // Words that are one token each, however often they stand beside each other.
    const Words& words = *std::array{&things, &kinds, &places, &deeds}[random() % 4];
    const std::string word = " " + std::string(words[random() % words.size()]);
    const std::vector<std::int32_t> tokens = tokenizer->encode(word + word);
    if (tokens.size() >= 2 && tokens.back() == tokens[tokens.size() - 2] &&
        tokenizer->text_of(tokens.back()) == word)
      made.push_back(tokens.back());
    else if (random() % 64 == 0)
      return made;  // a vocabulary without such words
  }
  return made;
}

}  // namespace posenc::lab
