package vectors

import (
	"slices"
	"strings"
	"testing"
)

func answer(v Vector, wrong map[string]any) map[string][]float64 {
	made := map[string][]float64{}
	for key, value := range v.Output {
		made[key] = Flat(value)
	}
	for key, value := range wrong {
		made[key] = Flat(value)
	}
	return made
}

func TestRightAnswersPassAndMistakesAreNamed(t *testing.T) {
	for _, operation := range []string{"added", "bias", "mask", "positions", "rekey", "rotate", "scores"} {
		for _, v := range Load(operation) {
			if verdict := Judge(v, answer(v, nil), "float32"); !verdict.Right {
				t.Errorf("%s/%s: %s", operation, v.ID, verdict)
			}
			for name, wrong := range v.Mistakes {
				if verdict := Judge(v, answer(v, wrong), "float32"); !slices.Contains(verdict.Shows, name) {
					t.Errorf("%s/%s: %s is not named: %s", operation, v.ID, name, verdict)
				}
			}
		}
	}
}

func TestAVerdictSaysTheCure(t *testing.T) {
	if text := (Verdict{Shows: []string{"wrong_pairing"}}).String(); !strings.Contains(text, "cure: ") {
		t.Error(text)
	}
}
