// Parts of the doctor that look at one kind of evidence, or at two beside each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/doctor.h"
#include "posenc/engines.h"
#include "src/tools/symptom.h"

namespace posenc::detail {

// How evidence is called that is the rope_scaling of a file and nothing else of it.
constexpr std::string_view scaling_alone = "a scaling alone";

// Says better what one piece of evidence says of another: a limit that a log names is one of the
// line's own. What no piece says alone comes back as findings of its own, with `message` and
// `line`.
std::vector<Finding> join_evidence(Diagnosis& diagnosis);

// Printed frequencies against each other, and against the model's as far as their digits go. With
// no model (null) what the numbers say alone; nothing: they say nothing wrong. Errors: no list of
// frequencies.
Expected<std::optional<Finding>> compare_frequencies(const Model* model, std::string_view text,
                                                     std::int64_t length);

// How many printed frequencies stand before the "..." that parts them; 0: nothing is left out.
std::int64_t numbers_before_gap(std::string_view text);

// What a piece of Python does otherwise than the files it is given want: angles formed in 16 bits,
// arguments of another transformers, neighbours rotated where files have halves, a scaling that is
// set on a model that is loaded.
// With no model (null) the pairing is a note: the files that belong to the code may want it so.
std::optional<Finding> slip_in_code(std::string_view code, const Model* model);

// Position ids in lists, as somebody printed them; nothing: it is another text.
std::optional<Finding> printed_positions(std::string_view text);

// What is known of a version, as a finding.
Finding finding_of(const VersionFault& fault, const std::string& version);
// Faults that are known of the versions which the evidence names, versions without a profile, and
// what an older transformers beneath would read. Their `where` is empty.
std::vector<Diagnosed> told_by_versions(const Model& model, std::span<const Exhibit> evidence,
                                        std::span<const std::string> engines, std::int64_t length);
// Faults that are known of these versions ("vllm@0.9.1") where they run the model.
std::vector<Diagnosed> faults_of(const Model& model, std::span<const std::string> versions);
// A flag that a newer version of the engine lacks, and the one of `engines` has, becomes a note.
void removed_later(std::vector<Finding>& found, std::string_view engine,
                   std::span<const std::string> engines);

// Differences of two models, as those of a draft that runs beside a target of so many tokens.
void as_of_a_draft(std::int64_t target, const Model& draft, std::vector<Finding>& found);
Finding shorter_draft(std::int64_t target, std::int64_t draft);
// A draft of its target's base and length without the scaling of Llama 3 that its target has.
std::optional<Finding> scaling_draft_lacks(const Model& target, const Model& draft);

// Two models whose weights somebody wants to average: a warning where they rotate otherwise, or, of
// two that are `exact`, and not a name that several sizes share, have other sizes.
Finding as_partners(const Model& one, const Model& other, bool exact);

// YaRN of the file, where texts of `length` tokens need none; 0: nobody says a length.
std::optional<Finding> scaling_unneeded(const Model& model, std::int64_t length);
// A plain rotation that promises more tokens than the published models which are built alike.
std::optional<Finding> raised_context(const Model& model);
// A scaling alone, as somebody pasted it.
void as_somebody_wrote(const Model& model, std::vector<Finding>& found);

struct ModelfileSays {
  std::int64_t tokens = 0;  // num_ctx; 0: none
  std::vector<Finding> findings = {};
};
ModelfileSays read_modelfile(std::string_view text, const Model* model);

// Whether the configuration of a class that is not read stands there: no other one is wanted then.
bool with_unread_class(const Diagnosis& diagnosis);

// How sure a finding is that somebody's words alone tell.
constexpr std::string_view told_by_words = "by what was seen";
// What the words say beside the model (null: none is known) and the engines: numbers of the file,
// defaults and slips at which it begins.
std::vector<Finding> judge_symptom(const Symptom& symptom, const Model* model,
                                   std::span<const std::string> engines);
// Whether a finding speaks of about as many tokens as those at which it was seen to begin, other
// than `asked`, the length that it is judged for.
bool begins_where_seen(const Finding& finding, const Symptom& symptom, std::int64_t asked);

// The sentence above the findings, which are in their order, and what to type next. `explained`:
// the first finding begins where somebody saw it.
void give_verdict(Diagnosis& out, const Exhibit* intent, bool names_engine, bool explained);

}  // namespace posenc::detail
