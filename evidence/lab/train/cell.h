// One run of the lab: what defines it as JSON in, what was measured as a JSON line out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/lab/train/data.h"

namespace posenc::lab {

// What a trained model is changed to, and how long it learns on after that.
struct Change {
  std::string arm, scheme;
  std::vector<std::int64_t> steps = {0};  // tested after so many
  std::int64_t length = 0;                // of the texts it learns from; 0: that of the last test
  double rate = 0.1;                      // times the cell's
  bool operator==(const Change&) const = default;
};

// All that a result depends on, but for the text and the machine.
struct Cell {
  std::string experiment, arm, scheme;
  std::string task = "text";
  std::uint64_t seed = 1;
  DecoderShape shape = {};
  std::int64_t steps = 600, texts = 32;  // of a step
  double rate = 0.002;
  std::int64_t least = 1, most = 10;     // symbols of a task's training
  std::vector<std::int64_t> tests = {};  // lengths, or symbols of a task
  std::vector<Change> afterwards = {};   // each from the same trained model
  // Left out of the JSON where they are as here, so that lines from before them are good:
  std::string positions = {};       // of a task's texts, those of data.h; "": 0, 1, …
  std::int64_t position_range = 0;  // they lie below it
  std::int64_t scored = 0;          // bytes at a text's end that tests score; 0: half of `length`
  bool probe = false;  // also test what the residual stream knows of position and of order

  std::int64_t scored_bytes() const { return scored > 0 ? scored : shape.trained_length / 2; }
};

std::string to_json(const Cell& cell);  // one line
// Errors: no JSON, a key that is missing or unknown, a number out of range.
Expected<Cell> read_cell(std::string_view json, std::string_view where);
// Names a cell's file: its experiment, arm and seed, and a hash of all of it.
std::string name_of(const Cell& cell);

// `told` hears how far it is, from 0 to 1. With fewer than ten tenths training stops there, and
// nothing is tested. `trained` is given the decoder before it is tested and changed.
Expected<std::string> run_cell(const Cell& cell, const Corpus& corpus,
                               const std::function<void(double)>& told = {},
                               std::int64_t tenths = 10,
                               const std::function<Expected<void>(Decoder&)>& trained = {});

// What a line says of one cell.
struct Measurement {
  std::string arm;
  std::int64_t step = 0, length = 0;
  // nats; exact: the share of answers without a mistake; training: nats while it learned; recall_1
  // to recall_8: the share of facts found of each eighth of a text; position_r2_0, …: ridge_r2 of
  // positions before each layer and behind the last; told_apart: the share of texts whose last
  // bytes have another loss when the words before them change places; true_order: the share in
  // which the text as it was has the lower one, half of where they are the same.
  std::string metric;
  double value = 0;
};
struct Outcome {
  Cell cell;
  std::vector<Measurement> measured;
  double seconds = 0;
  std::string machine, instruction_set, text;
  std::string line;  // as it was read
};
Expected<Outcome> read_outcome(std::string_view line, std::string_view where);

// A result beside what its cell gives when it is run again, or the first tenths of its training.
struct Again {
  std::int64_t compared = 0;  // numbers
  double most = 0;            // by which one of them differs
  bool same_kind = false;     // of processor: then no number may differ
};
// Errors: those of run_cell, and another text than the result's.
Expected<Again> run_again(const Outcome& outcome, const Corpus& corpus,
                          const std::function<void(double)>& told = {}, std::int64_t tenths = 10);

}  // namespace posenc::lab
