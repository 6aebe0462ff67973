#include "cli/pages/explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "cli/pages/braille_chart.h"
#include "posenc/tools.h"

namespace posenc::cli {
namespace {

// 131072 -> "128 KiB"
std::string bytes(double count) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; count >= 1024 && unit + 1 < std::size(units); unit++) count /= 1024;
  return fmt::format("{:.4g} {}", count, units[unit]);
}

std::string quantity(double number) {
  if (!std::isfinite(number)) return "never";
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e12) return grouped(std::llround(number));
  return fmt::format("{:.5g}", number);
}

class Page {
 public:
  Page(const Explanation& explanation, Shown shown, const Terminal& term)
      : explanation_(explanation), shown_(shown), term_(term) {}

  std::string text() {
    title();
    for (const GroupExplanation& facts : explanation_.groups) group(facts);
    cache();
    warnings();
    return std::move(out_);
  }

 private:
  const Model& model() const { return explanation_.model; }

  void line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += text + '\n';
  }
  // A labelled paragraph: the label stands in the margin.
  void paragraph(const std::string& label, const std::string& text) {
    constexpr std::size_t margin = 14;
    const std::string head = padded(label, margin - 1) + " ";
    line(term_.bold(head) + wrapped(text, columns(head), margin));
  }

  void title() {
    std::string head = term_.bold(model().name);
    std::string about;
    for (const std::string& part : {model().family, model().origin})
      if (!part.empty()) about += " · " + part;
    line(head + term_.dim(wrapped(about, 2, columns(model().name))));
    std::string words;
    for (const std::string& sentence : explanation_.words)
      words += (words.empty() ? "" : " ") + sentence;
    if (explanation_.asked > 0)
      words += fmt::format("{}Explained for positions 0 to {}.", words.empty() ? "" : " ",
                           grouped(explanation_.asked - 1));
    line(wrapped(words, 0, 0));
  }

  void group(const GroupExplanation& facts) {
    const LayerGroup& of = model().groups[facts.group];
    line("");
    line(term_.bold(wrapped(facts.heading, 2, 0)));
    const std::size_t before = out_.size();
    std::string words;
    for (const std::string& sentence : facts.words)
      if (said_.insert(sentence).second || explanation_.groups.size() == 1)
        words += (words.empty() ? "" : " ") + sentence;
    if (!words.empty()) line(wrapped(words, 0, 0) + "\n");
    formulas(facts);
    fields(of);
    pairs(facts, of);
    if (!facts.amplitude_note.empty() && said_.insert(facts.amplitude_note).second)
      paragraph("logits", facts.amplitude_note);
    if (out_.size() == before) out_ += "As above.\n";
    while (out_.ends_with("\n\n")) out_.pop_back();  // the next part brings its blank line
  }

  void formulas(const GroupExplanation& facts) {
    for (const FormulaLine& formula : facts.formulas)
      if (said_.insert(formula.text).second) paragraph(formula.name, formula.text);
  }

  // What every value is and where it came from; of later groups only what differs.
  void fields(const LayerGroup& of) {
    std::vector<const Provenance*> rows;
    for (const Provenance& row : of.provenance) {
      if (!said_.insert("field " + row.field + "=" + row.value + row.detail).second) continue;
      if (row.detail == "the model's context") continue;  // the row "context" says it
      rows.push_back(&row);
    }
    if (rows.empty()) return;
    if (shown_.values) {
      table_of(rows);
    } else {
      for (const Origin origin : {Origin::file, Origin::derived, Origin::family, Origin::assumed})
        values_by(origin, rows);
    }
    line("");
  }

  // A line for each value, with the whole key.
  void table_of(std::span<const Provenance* const> rows) {
    // A value longer than the column stands out of it; an origin without room goes below.
    constexpr std::size_t column = 16, widest = 40, narrow_margin = 6;
    std::size_t name_width = 0, value_width = 0;
    for (const Provenance* row : rows) {
      name_width = std::max(name_width, columns(row->field));
      if (columns(row->value) <= column) value_width = std::max(value_width, columns(row->value));
    }
    for (const Provenance* row : rows) {
      const std::string origin = std::string(name(row->origin)) + " " + row->detail;
      std::string value = cut(row->value, std::min(widest, page_width() - name_width - 4));
      const std::size_t used = name_width + 4 + std::max(value_width, columns(value)) + 2;
      const bool fits = used + columns(origin) <= page_width();
      const std::size_t margin =
          name_width + 4 + columns(origin) <= page_width() ? name_width + 4 : narrow_margin;
      value = fits ? padded(value, value_width) + "  " : value + "\n" + std::string(margin, ' ');
      line("  " + term_.blue(padded(row->field, name_width)) + "  " + value +
           term_.dim(wrapped(origin, margin, fits ? used : margin)));
    }
  }

  // The values of one origin, one behind the other; the key's last part where it is not the value's
  // name.
  void values_by(Origin origin, std::vector<const Provenance*> rows) {
    std::erase_if(rows, [&](const Provenance* row) { return row->origin != origin; });
    if (rows.empty()) return;
    constexpr std::size_t margin = 14;
    const std::string indent = '\n' + std::string(margin, ' ');
    std::string text;
    std::size_t used = margin;  // of the line
    for (const Provenance* row : rows) {
      const std::string key = row->detail.substr(row->detail.rfind('.') + 1);
      const std::string& from = origin == Origin::file ? key : row->detail;
      const std::string comma = row == rows.back() ? "" : ",";
      const std::string detail = from == row->field ? "" : "(" + from + ")" + comma;
      const std::size_t name_width = columns(row->field);
      const std::string value =
          cut(row->value, std::min<std::size_t>(40, page_width() - margin - name_width - 2)) +
          (detail.empty() ? comma : "");
      const std::size_t width = name_width + 1 + columns(value);
      const std::size_t whole = width + (detail.empty() ? 0 : 1 + columns(detail));
      if (used > margin) {
        const bool fits = used + 1 + whole <= page_width();
        text += fits ? " " : indent;
        used = fits ? used + 1 : margin;
      }
      text += term_.blue(row->field) + " " + value;
      used += width;
      if (detail.empty()) continue;
      const bool fits = used + 1 + columns(detail.substr(0, detail.find(' '))) <= page_width();
      used = fits ? used + 1 : margin;
      const std::string last = wrapped(detail, margin, used);
      text += (fits ? " " : indent) + term_.dim(last);
      const std::size_t broken = last.rfind('\n');
      used = broken == last.npos ? used + columns(last) : columns(last.substr(broken + 1));
    }
    line(term_.bold(padded(name(origin), margin)) + text);
  }

  // The pairs a reader wants: the ends, both sides of where the scaling changes its mind, and of
  // where a wavelength outgrows a context.
  std::vector<std::size_t> chosen(const GroupExplanation& facts,
                                  std::span<const Mark> marks) const {
    const std::span<const PairFact> pairs = facts.pairs;
    std::set<std::size_t> rows;
    if (shown_.pairs) {
      for (std::size_t i = 0; i < pairs.size(); i++) rows.insert(i);
      return {rows.begin(), rows.end()};
    }
    rows.insert({0, pairs.size() - 1});
    const auto around = [&](std::size_t i) {
      rows.insert(i);
      if (i > 0) rows.insert(i - 1);
    };
    constexpr std::size_t most = 8;
    if (facts.bands.size() <= 4)
      for (std::size_t i = 1; i < facts.bands.size(); i++)
        around(static_cast<std::size_t>(facts.bands[i].first));
    for (std::size_t i = 1; i < pairs.size() && rows.size() < most; i++) {
      const PairFact &a = pairs[i - 1], &b = pairs[i];
      for (const Mark& mark : marks) {
        const auto length = static_cast<double>(mark.length);
        if ((a.wavelength > length) != (b.wavelength > length)) around(i);
      }
    }
    if (rows.size() <= 2)
      for (const std::size_t part : {1, 2, 3}) rows.insert((pairs.size() - 1) * part / 4);
    return {rows.begin(), rows.end()};
  }

  // Whether a layer sees no further than its window.
  static bool cut_off(const LayerGroup& of) { return of.window && of.compressed == 0; }

  // The lengths that wavelengths are held against: what the layers see.
  std::vector<Mark> lengths(const LayerGroup& of) const {
    if (is_tower(of.stack)) return {};
    if (cut_off(of) && (model().context == 0 || *of.window < model().context))
      return {{*of.window, of.chunked ? "chunk" : "window"}};
    const std::int64_t trained =
        model().trained_context > 0 ? model().trained_context : model().context;
    const std::int64_t asked = explanation_.asked > 0 ? explanation_.asked : model().context;
    std::vector<Mark> marks;
    if (trained > 0 && trained != asked) marks.push_back({trained, "trained"});
    if (asked > 0) marks.push_back({asked, explanation_.asked > 0 ? "asked" : "context"});
    return marks;
  }

  struct Column {
    std::size_t width;
    std::vector<std::string> cells;  // the first is the head
  };

  // At their widths where the page has them, else as narrow as they go, without some behind the
  // wavelength if need be.
  void print(std::vector<Column> table) {
    const auto width = [&] {
      std::size_t sum = 0;
      for (const Column& column : table) sum += (sum > 0 ? 2 : 0) + column.width;
      return sum;
    };
    if (width() > page_width()) {
      for (Column& column : table) {
        column.width = 0;
        for (const std::string& cell : column.cells)
          column.width = std::max(column.width, columns(cell));
      }
    }
    while (width() > page_width() && table.size() > 4) table.erase(table.begin() + 3);
    for (std::size_t i = 0; i < table[0].cells.size(); ++i) {
      std::string row;
      for (const Column& column : table)
        row += fmt::format("{}{:>{}}", row.empty() ? "" : "  ", column.cells[i], column.width);
      line(i == 0 ? term_.dim(row) : row);
    }
  }

  void pairs(const GroupExplanation& facts, const LayerGroup& of) {
    if (facts.pairs.empty()) return;
    const Rotate& rotate = *facts.plan.rotate;
    // Layers that see everything decide how far a context goes: their lengths are the ones to hold
    // pairs against.
    const bool seen_whole = std::ranges::any_of(explanation_.groups, [&](const auto& other) {
      return !cut_off(model().groups[other.group]) && other.plan.rotate == rotate;
    });
    if (cut_off(of) && seen_whole) return;
    if (std::find(plotted_.begin(), plotted_.end(), rotate) != plotted_.end()) return;
    plotted_.push_back(rotate);
    const std::vector<Mark> marks = lengths(of);
    const bool scaled = !facts.bands.empty();
    const bool axes = rotate.frequencies.axes > 1;

    const std::vector<std::size_t> rows = chosen(facts, marks);
    std::vector<Column> table;
    const auto add = [&](std::size_t width, std::string head, const auto& cell) {
      Column column{width, {std::move(head)}};
      for (const std::size_t i : rows) column.cells.push_back(cell(facts.pairs[i]));
      table.push_back(std::move(column));
    };
    add(6, "pair", [](const PairFact& pair) { return std::to_string(pair.pair); });
    add(12, "frequency", [](const PairFact& pair) { return quantity(pair.frequency); });
    add(14, "wavelength", [](const PairFact& pair) { return quantity(pair.wavelength); });
    if (scaled)
      add(14, "unscaled", [](const PairFact& pair) {
        return quantity(2 * std::acos(-1.0) / std::abs(pair.unscaled));
      });
    for (const Mark& mark : marks)
      add(18, "turns in " + grouped(mark.length), [&](const PairFact& pair) {
        return quantity(static_cast<double>(mark.length) / pair.wavelength);
      });
    if (axes) add(4, "axis", [](const PairFact& pair) { return std::to_string(pair.axis); });
    print(std::move(table));
    if (scaled) {
      std::string bands;
      for (const Band& band : facts.bands)
        bands +=
            fmt::format("{}{}{} {}", bands.empty() ? "" : ", ", band.first,
                        band.last == band.first ? "" : fmt::format("–{}", band.last), band.effect);
      paragraph("pairs", bands);
    }
    if (!shown_.pairs && !marks.empty() && !beside_whole(of)) {
      line("");
      for (const std::string& row : wavelength_sketch(facts.pairs, marks, term_)) line(row);
    }
    line("");
  }

  // Layers that slide, beside others that see everything and are sketched.
  bool beside_whole(const LayerGroup& of) const {
    return cut_off(of) && std::ranges::any_of(explanation_.groups, [&](const auto& other) {
             const LayerGroup& group = model().groups[other.group];
             return group.stack == of.stack && !cut_off(group) && !other.pairs.empty();
           });
  }

  // "compressed: 512 + 64 (MLA) + 128, keys of the indexer"
  static std::string kept(const LayerGroup& of) {
    std::string text = of.cache_note;
    for (const CachePart& part : of.cache_beside)
      text += fmt::format(" + {}{}, {}", part.elements,
                          part.every == 1 ? "" : fmt::format(" for every {} tokens", part.every),
                          part.note);
    return text;
  }

  void cache() {
    if (explanation_.cache_bytes_per_token == 0) return;
    const std::int64_t total = explanation_.cache_bytes_per_token;
    std::string text = fmt::format("{} bytes a token in {}", grouped(total),
                                   model().dtype.empty() ? "16-bit numbers" : model().dtype);
    const std::int64_t length = explanation_.asked > 0 ? explanation_.asked : model().context;
    for (const GroupExplanation& facts : explanation_.groups) {
      const LayerGroup& of = model().groups[facts.group];
      if (facts.cache_bytes_per_token == 0) {
        if (of.causal && !of.cache_note.empty())
          text += fmt::format("; {} {}: {}", of.layers.size(),
                              of.layers.size() == 1 ? "layer" : "layers", of.cache_note);
        continue;
      }
      text +=
          fmt::format("; {} {}{}: {}", of.layers.size(), of.layers.size() == 1 ? "layer" : "layers",
                      of.label.empty() ? "" : " of " + of.label,
                      explanation_.groups.size() > 1
                          ? grouped(facts.cache_bytes_per_token) + " (" + kept(of) + ")"
                          : kept(of));
    }
    if (length > 0)
      text += fmt::format("; {} for {} tokens",
                          bytes(static_cast<double>(explanation_.cache_bytes)), grouped(length));
    if (explanation_.groups.size() > 1) line("");
    paragraph("cache", text);
  }

  void warnings() {
    for (const Warning& warning : explanation_.warnings) {
      constexpr std::size_t margin = 14;
      line(term_.yellow(padded(name(severity_of(warning)), margin)) +
           wrapped(warning.code + ": " + warning.message, margin, margin));
    }
  }

  const Explanation& explanation_;
  Shown shown_;
  Terminal term_;
  std::string out_;
  std::set<std::string> said_;  // sentences, formulas and fields are told once
  std::vector<Rotate> plotted_;
};

}  // namespace

std::string page(const Explanation& explanation, Shown shown, const Terminal& term) {
  return Page(explanation, shown, term).text();
}

std::string csv(const Explanation& explanation) {
  std::string out =
      "group,stack,label,pair,axis,frequency,unscaled,wavelength,turns_trained,turns_asked\n";
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& of = explanation.model.groups[facts.group];
    for (const PairFact& pair : facts.pairs)
      out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", facts.group, name(of.stack), of.label,
                         pair.pair, pair.axis, pair.frequency, pair.unscaled, pair.wavelength,
                         pair.turns_trained, pair.turns_asked);
  }
  return out;
}

}  // namespace posenc::cli
