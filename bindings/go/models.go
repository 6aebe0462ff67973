package posenc

import (
	_ "embed" // posenc-models.wasm
	"encoding/json"
	"runtime"
	"strings"
)

//go:embed posenc-models.wasm
var modelsWasm []byte
var modelsSource = source{wasm: modelsWasm}

// Models is an instance of posenc-models.wasm: the readers of models' files, and the doctor.
type Models struct{ module *module }

// LoadModels gives a Models with a memory of its own.
func LoadModels() (*Models, error) {
	module, err := modelsSource.load()
	if err != nil {
		return nil, err
	}
	return &Models{module}, nil
}

// Close frees the module's memory; its models and their plans compute no more.
func (m *Models) Close() error { return m.module.close() }

// Read reads a config.json, a params.json or (the front of) a GGUF, told apart by their content.
// The name is for messages.
func (m *Models) Read(bytes []byte, name string) (*Model, error) {
	return newModel(m.module, func(c *calls) (uint32, error) {
		at, err := c.bytes(bytes)
		if err != nil {
			return 0, err
		}
		called, err := c.text(name)
		if err != nil {
			return 0, err
		}
		return c.make("posenc_model_read", at, uint32(len(bytes)), called)
	})
}

// Open opens one of Bundled by its name.
func (m *Models) Open(name string) (*Model, error) {
	return newModel(m.module, func(c *calls) (uint32, error) {
		called, err := c.text(name)
		if err != nil {
			return 0, err
		}
		return c.make("posenc_model_open", called)
	})
}

// Bundled is a real configuration that travels with the library.
type Bundled struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Origin string `json:"origin"` // published or reconstructed
	Source string `json:"source"`
}

// Bundled lists the real configurations that travel with the library.
func (m *Models) Bundled() ([]Bundled, error) {
	return listed[Bundled](m, "posenc_models_json")
}

// Profile is what is known of a version of an engine.
type Profile struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
	Source  string `json:"source"`
}

// Engines lists the profiles of engines, the newest version of each first.
func (m *Models) Engines() ([]Profile, error) {
	return listed[Profile](m, "posenc_engines_json")
}

func listed[T any](m *Models, name string) (made []T, err error) {
	err = m.module.with(func(c *calls) error { return c.json(&made, name) })
	return made, err
}

// Evidence is something that the doctor looks at: [Words] or [File] make it.
type Evidence struct {
	name  string
	bytes []byte
	file  bool
}

// Words are a bundled name, or a command line of an engine.
func Words(words string) Evidence { return Evidence{name: words} }

// File is a config.json, params.json, GGUF, log, Modelfile, trainer's YAML …, told apart by its
// content.
func File(name string, bytes []byte) Evidence { return Evidence{name, bytes, true} }

// DoctorOptions say how the doctor is asked.
type DoctorOptions struct {
	Engines []string // "vllm", "transformers@5.12": beside those of the evidence
	Length  int64    // tokens that it is to run for; 0: as the evidence says
}

// Diagnosis is the doctor's judgement (docs/doctor.md).
type Diagnosis struct {
	Evidence []Examined      `json:"evidence"`
	Verdict  string          `json:"verdict"`
	Findings []DoctorFinding `json:"findings"` // ordered by what they do to a text
	Next     string          `json:"next"`     // the command to run next

	JSON json.RawMessage `json:"-"` // all of it, as posenc doctor --json prints it
}

// Examined is a piece of evidence as the doctor took it.
type Examined struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // docs/json.md lists them; "unusable" is one
	As   string `json:"as"`
}

// DoctorFinding is a finding of the doctor.
type DoctorFinding struct {
	Code     string  `json:"code"`
	Severity string  `json:"severity"`
	Engine   string  `json:"engine"` // "": none is concerned
	Version  string  `json:"version"`
	Where    string  `json:"where"`
	What     string  `json:"what"`
	Effect   string  `json:"effect"`
	Cure     string  `json:"cure"`
	Sure     string  `json:"sure"` // what it rests on
	Finding  Finding `json:"finding"`
}

// Finding is what differs, or deserves a look.
type Finding struct {
	Code     string   `json:"code"`     // one of docs/codes.md or docs/warnings.md
	Severity string   `json:"severity"` // error, warning or note
	Stack    string   `json:"stack"`    // "": of the model as a whole
	Layer    *int64   `json:"layer"`
	Layers   []int64  `json:"layers"`
	Pair     *int64   `json:"pair"`
	Position *int64   `json:"position"`
	Expected string   `json:"expected"`
	Found    string   `json:"found"`
	Message  string   `json:"message"`
	Cure     string   `json:"cure"`
	Engines  []string `json:"engines"`
	Line     *int64   `json:"line"`
}

// Doctor says what is wrong with position. The first model is what should run; all else is a run of
// it.
func (m *Models) Doctor(evidence []Evidence, options DoctorOptions) (*Diagnosis, error) {
	made := &Diagnosis{}
	err := m.module.with(func(c *calls) error {
		doctor, err := c.hold("posenc_doctor_free", "posenc_doctor_new")
		if err != nil {
			return err
		}
		for _, one := range evidence {
			called, err := c.text(one.name)
			if err != nil {
				return err
			}
			at := uint32(0)
			if one.file {
				if at, err = c.bytes(one.bytes); err != nil {
					return err
				}
			}
			if err := c.call("posenc_doctor_tell", doctor, called, at, uint32(len(one.bytes))); err != nil {
				return err
			}
		}
		engines, err := c.text(strings.Join(options.Engines, ","))
		if err != nil {
			return err
		}
		return c.both(made, &made.JSON, "posenc_doctor_json", doctor, engines, options.Length)
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Model is what a model's files say about position. Every length: positions to look at, 0: the
// model's context. An engine is "vllm", or "transformers@4" for that version. The garbage collector
// frees it, and so does Close.
type Model struct {
	module *module
	handle uint32 // 0: closed
}

func newModel(m *module, make func(*calls) (uint32, error)) (*Model, error) {
	made := &Model{module: m}
	err := m.with(func(c *calls) (err error) {
		made.handle, err = make(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(made, func(made *Model) { m.lose("posenc_model_free", made.handle) })
	return made, nil
}

func (m *Model) with(work func(c *calls, model uint32) error) error {
	return m.module.with(func(c *calls) error {
		if m.handle == 0 {
			return misuse("the model is closed")
		}
		return work(c, m.handle)
	})
}

// Close frees it before the garbage collector does.
func (m *Model) Close() {
	_ = m.with(func(c *calls, model uint32) error {
		c.held = append(c.held, held{"posenc_model_free", model})
		m.handle = 0
		runtime.SetFinalizer(m, nil)
		return nil
	})
}

// both reads JSON into a struct and keeps it.
func (c *calls) both(to any, kept *json.RawMessage, name string, args ...any) error {
	var text json.RawMessage
	if err := c.json(&text, name, args...); err != nil {
		return err
	}
	*kept = text
	if err := json.Unmarshal(text, to); err != nil {
		return broken("%s: %v", name, err)
	}
	return nil
}

// Explanation is what a model's files say (docs/json.md).
type Explanation struct {
	Model          string    `json:"model"`
	Family         string    `json:"family"`          // model_type as the file spells it
	Context        *int64    `json:"context"`         // longest length the files promise
	TrainedContext *int64    `json:"trained_context"` // the same before any scaling
	Words          []string  `json:"words"`
	Groups         []Group   `json:"groups"`
	Warnings       []Warning `json:"warnings"`

	JSON json.RawMessage `json:"-"` // all of it, as posenc explain --json prints it
}

// Group is layers that treat position alike.
type Group struct {
	Stack   string   `json:"stack"` // text, encoder, decoder, vision or audio
	Layers  []int64  `json:"layers"`
	Scheme  Scheme   `json:"scheme"` // the main one
	Plan    PlanInfo `json:"plan"`
	Valid   *Valid   `json:"valid"`
	Heading string   `json:"heading"` // the group in one line
	Words   []string `json:"words"`
}

// Warning is one of docs/warnings.md.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Explain is what posenc explain --json prints, for positions 0 to length − 1.
func (m *Model) Explain(length int64) (*Explanation, error) {
	return said(m, func(c *calls, model uint32, made *Explanation) error {
		return c.both(made, &made.JSON, "posenc_model_explain_json", model, length, int64(-1))
	})
}

// Plan is the plan of a layer of the text stack, compiled for a length.
func (m *Model) Plan(layer, length int64) (*Plan, error) { return m.PlanOf("text", layer, length) }

// PlanOf is the plan of a layer of "text", "encoder", "decoder" or "vision".
func (m *Model) PlanOf(stack string, layer, length int64) (*Plan, error) {
	return newPlan(m.module, func(c *calls) (uint32, error) {
		if m.handle == 0 {
			return 0, misuse("the model is closed")
		}
		called, err := c.text(stack)
		if err != nil {
			return 0, err
		}
		at, err := c.longs([]int64{0})
		if err != nil {
			return 0, err
		}
		if err := c.call("posenc_model_find_group", m.handle, called, layer, at); err != nil {
			return 0, err
		}
		group, err := c.readLongs(at, 1)
		if err != nil {
			return 0, err
		}
		return c.make("posenc_model_plan", m.handle, group[0], length, uint32(0))
	})
}

// Comparison is where two readings of a model differ.
type Comparison struct {
	Equal    bool      `json:"equal"`
	Findings []Finding `json:"findings"`
}

// Diff is where another model of the same Models treats position differently.
func (m *Model) Diff(found *Model, length int64) (*Comparison, error) {
	if found.module != m.module {
		return nil, misuse("diff: both models must be of the same Models")
	}
	return said(m, func(c *calls, model uint32, made *Comparison) error {
		if found.handle == 0 {
			return misuse("the model is closed")
		}
		return c.json(made, "posenc_model_diff_json", model, found.handle, length)
	})
}

// said is what some calls with a model fill, or nil beside an error.
func said[T any](m *Model, fill func(c *calls, model uint32, made *T) error) (*T, error) {
	made := new(T)
	if err := m.with(func(c *calls, model uint32) error { return fill(c, model, made) }); err != nil {
		return nil, err
	}
	return made, nil
}

// saidOf calls a function of a model, a text and a length.
func saidOf[T any](m *Model, verb, text string, length int64) (*T, error) {
	return said(m, func(c *calls, model uint32, made *T) error {
		at, err := c.textOrNull(text)
		if err != nil {
			return err
		}
		return c.json(made, verb, model, at, length)
	})
}

// DiffCommand is what a command line of llama.cpp, vLLM, SGLang or another engine makes of it.
// length 0: what the line asks for.
func (m *Model) DiffCommand(command string, length int64) (*Comparison, error) {
	return saidOf[Comparison](m, "posenc_model_command_json", command, length)
}

// DiffLog is what an engine printed, beside it.
func (m *Model) DiffLog(log []byte, length int64) (*Comparison, error) {
	return said(m, func(c *calls, model uint32, made *Comparison) error {
		at, err := c.bytes(log)
		if err != nil {
			return err
		}
		return c.json(made, "posenc_model_log_json", model, at, uint32(len(log)), length)
	})
}

// Note is what an engine loses or changes.
type Note struct {
	Kind string `json:"kind"` // lost, approximated, defaulted, fixed or rounded
	What string `json:"what"`
}

// Reading is what an engine makes of a model.
type Reading struct {
	Engine   string    `json:"engine"`
	Version  string    `json:"version"`
	Refused  string    `json:"refused"` // why; "": it does not
	Notes    []Note    `json:"notes"`
	Findings []Finding `json:"findings"`
}

// ReadBy is what an engine makes of it.
func (m *Model) ReadBy(engine string, length int64) (*Reading, error) {
	return saidOf[Reading](m, "posenc_model_engine_json", engine, length)
}

// Lint is what deserves a look. engine: that it is for, whose differences are then errors; "": any.
func (m *Model) Lint(engine string, length int64) ([]Finding, error) {
	made, err := saidOf[Comparison](m, "posenc_model_lint_json", engine, length)
	if err != nil {
		return nil, err
	}
	return made.Findings, nil
}

// Translation is a rotation in an engine's words.
type Translation struct {
	Engine  string `json:"engine"`
	Version string `json:"version"`
	// A map: keys of a configuration or a GGUF; or a string: a command line.
	Target any    `json:"target"`
	Notes  []Note `json:"notes"`
	Length int64  `json:"length"` // that it was compared for
	// Radians, of what the engine makes of Target; nil: it refuses it.
	LargestAngleDifference *float64 `json:"largest_angle_difference"`
	AmplitudeDifference    *float64 `json:"amplitude_difference"`
}

// Translate gives its rotation in an engine's words.
func (m *Model) Translate(engine string, length int64) (*Translation, error) {
	return saidOf[Translation](m, "posenc_model_translate_json", engine, length)
}

// ExtendOptions say how Extend is asked.
type ExtendOptions struct {
	Engine   string // "": transformers
	Trained  int64  // tokens that training has shown; 0: as the file tells
	Training bool   // the weights will be trained at that length
}

// ContextPlan is a plan for a longer context.
type ContextPlan struct {
	To          int64           `json:"to"`
	Trained     *int64          `json:"trained"`     // nil: nobody says, and it does not matter
	Recommended string          `json:"recommended"` // the name of an option, or longer_table
	Reason      string          `json:"reason"`
	Options     []ContextOption `json:"options"`
	Flags       any             `json:"flags"` // the recommended option in the engine's words
	Remarks     []string        `json:"remarks"`
	Unknown     []string        `json:"unknown"` // what only measuring tells

	JSON json.RawMessage `json:"-"` // all of it, as posenc extend --json prints it
}

// ContextOption is a way to a longer context.
type ContextOption struct {
	Name          string    `json:"name"`
	Unavailable   string    `json:"unavailable"` // why it cannot be had; "": it can
	NeedsTraining bool      `json:"needs_training"`
	Scheme        Scheme    `json:"scheme"`
	Frequencies   []float64 `json:"frequencies"`
	Unseen        []int64   `json:"unseen"` // pairs that meet angles which training has not shown
}

// Extend plans a context of so many tokens.
func (m *Model) Extend(to int64, options ExtendOptions) (*ContextPlan, error) {
	return said(m, func(c *calls, model uint32, made *ContextPlan) error {
		engine, err := c.textOrNull(options.Engine)
		if err != nil {
			return err
		}
		training := uint32(0)
		if options.Training {
			training = 1
		}
		return c.both(made, &made.JSON, "posenc_model_extend_json", model, to, engine, options.Trained, training)
	})
}
