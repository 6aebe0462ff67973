// Package vectors holds test vectors of transformers' positions: inputs, right answers, and the answers that known mistakes give.
//
//	for _, v := range vectors.Load("bias") {
//		verdict := vectors.Judge(v, map[string][]float64{"slopes": slopes(v.Input)}, "float32")
//		if !verdict.Right {
//			t.Errorf("%s: %s", v.ID, verdict)
//		}
//	}
//
// README.md says how an answer is judged.
package vectors

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

//go:embed added.json bias.json cos_sin.json frequencies.json mask.json mistakes.json model.json positions.json rekey.json rotate.json scores.json
var files embed.FS

const sixDigits = 1e-5 // wrong answers have six

// Vector is a test. Outputs are nested lists of numbers; nil is compared with nothing.
type Vector struct {
	Operation string                    `json:"-"`
	ID        string                    `json:"id"`
	About     string                    `json:"about"`
	Input     map[string]any            `json:"input"`
	Output    map[string]any            `json:"output"`
	Mistakes  map[string]map[string]any `json:"mistakes"`
	Within    map[string]map[string]any `json:"within"`
}

// Mistake is what an engine that gives a wrong answer does, and its cure.
type Mistake struct {
	Title, Cure, Report string
	Loss                bool
}

// Verdict says whether an answer is right, and which mistakes give it.
type Verdict struct {
	Right bool
	Shows []string
}

func (v Verdict) String() string {
	if v.Right {
		return "right"
	}
	if len(v.Shows) == 0 {
		return "wrong, by no mistake that is known"
	}
	known, lines := Mistakes(), []string{}
	for _, name := range v.Shows {
		lines = append(lines, fmt.Sprintf("%s: %s; cure: %s", name, known[name].Title, known[name].Cure))
	}
	return strings.Join(lines, "\n")
}

type tolerance struct{ Absolute, Relative float64 }

type file struct {
	Tolerance map[string]tolerance
	Tests     []Vector
	Mistakes  map[string]Mistake
}

func read(name string) file {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		panic("posenc vectors: no operation " + name)
	}
	var made file
	if err := json.Unmarshal(text, &made); err != nil {
		panic(err)
	}
	return made
}

// Mistakes are all that have a name.
func Mistakes() map[string]Mistake { return read("mistakes").Mistakes }

// Load returns the tests of an operation: "rotate", "frequencies", "model" … It panics where there is no such operation.
func Load(operation string) []Vector {
	tests := read(operation).Tests
	for i := range tests {
		tests[i].Operation = operation
	}
	return tests
}

// Flat is every number of a value, row-major; NaN for nil.
func Flat(value any) []float64 {
	switch v := value.(type) {
	case []any:
		var all []float64
		for _, part := range v {
			all = append(all, Flat(part)...)
		}
		return all
	case float64:
		return []float64{v}
	}
	return []float64{math.NaN()}
}

func isClose(got, wanted []float64, t tolerance, slack float64) bool {
	if len(got) != len(wanted) {
		return false
	}
	for i, w := range wanted {
		if !math.IsNaN(w) && !(math.Abs(got[i]-w) <= t.Absolute+(t.Relative+slack)*math.Abs(w)) {
			return false
		}
	}
	return true
}

func shown(v Vector, got map[string][]float64, t tolerance) []string {
	var names []string
	for name, changed := range v.Mistakes {
		visible, all := false, true
		for key, values := range got {
			wanted, slack := Flat(v.Output[key]), 0.0
			if wrong, ok := changed[key]; ok {
				visible = visible || !isClose(Flat(wrong), wanted, t, 0)
				wanted, slack = Flat(wrong), sixDigits
			}
			all = all && isClose(values, wanted, t, slack)
		}
		if visible && all {
			names = append(names, name)
		}
	}
	for name, bounds := range v.Within {
		all := !slices.Contains(names, name)
		for key, values := range got {
			right, bound := Flat(v.Output[key]), Flat(bounds[key])
			all = all && len(values) == len(right) && len(bound) == len(right)
			for i := 0; all && i < len(right); i++ {
				all = math.Abs(values[i]-right[i]) <= t.Absolute+bound[i]
			}
		}
		if all {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// Judge judges an answer: its outputs by name, row-major, in "float64", "float32", "float16" or "bfloat16". It panics where none of them
// is asked for.
func Judge(v Vector, answer map[string][]float64, dtype string) Verdict {
	t, ok := read(v.Operation).Tolerance[dtype]
	if !ok {
		panic("posenc vectors: no dtype " + dtype)
	}
	got, wrong := map[string][]float64{}, []string{}
	for key, values := range answer {
		if right, ok := v.Output[key]; ok {
			got[key] = values
			if !isClose(values, Flat(right), t, 0) {
				wrong = append(wrong, key)
			}
		}
	}
	if len(got) == 0 {
		panic("posenc vectors: an answer must have one of the outputs of " + v.Operation + "/" + v.ID)
	}
	if len(wrong) == 0 {
		return Verdict{Right: true}
	}
	if names := shown(v, got, t); len(names) > 0 || len(got) == 1 {
		return Verdict{Shows: names}
	}
	var each []string // two mistakes at once
	sort.Strings(wrong)
	for _, key := range wrong {
		names := slices.DeleteFunc(shown(v, map[string][]float64{key: got[key]}, t), func(name string) bool {
			_, changes := v.Mistakes[name][key] // one that changes another output too is not what made this one wrong
			return len(v.Mistakes[name]) > 1 || len(v.Mistakes[name]) == 1 && !changes
		})
		if len(names) == 0 {
			return Verdict{}
		}
		each = append(each, names[0])
	}
	return Verdict{Shows: each}
}
