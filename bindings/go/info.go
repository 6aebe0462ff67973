package posenc

import "encoding/json"

// Scheme is a scheme as posenc prints it: its type and its fields, those of a RoPE's scaling in
// "scaling". Fields left out have their defaults.
type Scheme map[string]any

// Described is a scheme, a scaling of RoPE or a scheme of content, with the fields that it takes.
type Described struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"`
	Title   string   `json:"title"`
	Formula string   `json:"formula"`
	Paper   string   `json:"paper"` // an arXiv number, or ""
	Fields  []Field  `json:"fields"`
}

// Field is a field of a scheme.
type Field struct {
	Name     string   `json:"name"` // Hugging Face's where it has the field
	Aliases  []string `json:"aliases"`
	Kind     string   `json:"kind"` // boolean, integer, number, choice, numbers or integers
	Doc      string   `json:"doc"`
	Unit     string   `json:"unit"`
	Least    *float64 `json:"least"` // nil: no bound
	Most     *float64 `json:"most"`
	Open     bool     `json:"open"` // Least itself is not allowed
	Choices  []string `json:"choices"`
	Required bool     `json:"required"`
	Optional bool     `json:"optional"` // it may be null: left to the scheme's rule
	Default  any      `json:"default"`
}

// PlanInfo is what a scheme comes down to: the parts that programs ask for most, and all of it as
// JSON.
type PlanInfo struct {
	Rotate *Rotate `json:"rotate"` // of queries and keys
	Bias   *Bias   `json:"bias"`   // on the logits
	Logits Logits  `json:"logits"`
	Valid  *Valid  `json:"valid"` // nil: any length

	JSON json.RawMessage `json:"-"` // every part and member, as docs/json.md has them
}

// Rotate is the rotation of a plan.
type Rotate struct {
	// halves: channels (r, r + RotaryDim/2); interleaved: (2r, 2r + 1)
	Pairing     string      `json:"pairing"`
	FirstDim    int         `json:"first_dim"` // first channel of the head that rotates
	RotaryDim   int         `json:"rotary_dim"`
	Heads       int         `json:"heads"` // with frequencies of their own; 1: all share them
	Axes        int         `json:"axes"`  // 1 for text, 2 or 3 for pictures and videos
	Frequencies [][]float64 `json:"frequencies"`
	// On cos and sin of both sides: logits grow by its square.
	Amplitude float64 `json:"amplitude"`
	// Each channel makes a pair before it rotates (PoPE): heads become wider.
	Polar bool `json:"polar"`
}

// Bias is the bias of a plan.
type Bias struct {
	Kind   string      `json:"kind"`   // slope or table
	Slopes []float64   `json:"slopes"` // −slope·distance is added to a head's logits
	Values [][]float64 `json:"values"` // [head or 1][row]; nil where they are learned
}

// Logits says what becomes of z = q·k · Multiplier/√head_dim · temperature: with a Softcap c other
// than 0 the logit is c·tanh(z/c), else z.
type Logits struct {
	Multiplier float64 `json:"multiplier"`
	Softcap    float64 `json:"softcap"`
}

// Valid are lengths, both ends included.
type Valid struct {
	From int64  `json:"from"`
	To   *int64 `json:"to"` // nil: no end
}
