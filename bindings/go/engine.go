package posenc

import (
	_ "embed" // posenc.wasm
	"encoding/json"
)

//go:embed posenc.wasm
var engineWasm []byte
var engineSource = source{wasm: engineWasm}

// Engine is an instance of posenc.wasm: schemes, and what computes with them.
type Engine struct {
	module  *module
	version string
	lists   struct {
		Schemes  []Described `json:"schemes"`
		Scalings []Described `json:"scalings"`
		Content  []Described `json:"content"`
	}
}

// Geometry is the model around a scheme. 0 stands for not known, and a scheme that needs a value
// says so.
type Geometry struct {
	Width      int64 // channels of the embedding
	Heads      int64 // query heads
	KVHeads    int64 // key and value heads; 0: as many as query heads
	HeadDim    int64 // channels of a query or key head
	Length     int64 // largest position + 1 to compile for; 0: as the model is constructed
	GridHeight int64 // patches of a picture
	GridWidth  int64
}

// Load gives an Engine with a memory of its own.
func Load() (*Engine, error) {
	module, err := engineSource.load()
	if err != nil {
		return nil, err
	}
	e := &Engine{module: module}
	err = module.with(func(c *calls) error {
		if e.version, err = c.said("posenc_version"); err != nil {
			return err
		}
		return c.json(&e.lists, "posenc_schemes_json")
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Close frees the module's memory; its plans compute no more.
func (e *Engine) Close() error { return e.module.close() }

// Version is that of the library inside.
func (e *Engine) Version() string { return e.version }

// Schemes are those that Plan takes.
func (e *Engine) Schemes() []Described { return e.lists.Schemes }

// Scalings are what may be the "scaling" of a RoPE.
func (e *Engine) Scalings() []Described { return e.lists.Scalings }

// Content are schemes that read the content, for Attend.
func (e *Engine) Content() []Described { return e.lists.Content }

// Plan compiles a scheme.
func (e *Engine) Plan(scheme Scheme, geometry Geometry) (*Plan, error) {
	text, err := json.Marshal(scheme)
	if err != nil {
		return nil, misuse("the scheme: %v", err)
	}
	if geometry.KVHeads == 0 {
		geometry.KVHeads = geometry.Heads
	}
	return newPlan(e.module, func(c *calls) (uint32, error) {
		written, err := c.text(string(text))
		if err != nil {
			return 0, err
		}
		size, err := c.structure("posenc_geometry", members{
			"width": {geometry.Width}, "heads": {geometry.Heads}, "kv_heads": {geometry.KVHeads},
			"head_dim": {geometry.HeadDim}, "length": {geometry.Length},
			"grid_height": {geometry.GridHeight}, "grid_width": {geometry.GridWidth},
		})
		if err != nil {
			return 0, err
		}
		return c.make("posenc_plan_from_scheme", written, size)
	})
}

// Normals are normal numbers 0, 1, … of a seed's sequence: those that the command draws.
func (e *Engine) Normals(seed uint64, count int) (made []float64, err error) {
	err = e.module.with(func(c *calls) error {
		out, err := c.tensor(nil, count)
		if err != nil {
			return err
		}
		if err := c.call("posenc_normals", int64(seed), int64(0), int64(count), out.at); err != nil {
			return err
		}
		made, err = c.read(out)
		return err
	})
	return made, err
}

// Table is row-major numbers of a tensor, of at most four axes.
type Table struct {
	Values []float64
	Shape  []int
}

// ContentAttended is attention by a scheme that reads the content, with its inside.
type ContentAttended struct {
	Out     []float64 // [heads][queries][head_dim]
	Logits  []float64 // [heads][queries][keys]; without a softmax the logarithms of weights
	Weights []float64 // what each value is multiplied by
}

// Attend is attention by a scheme of Content, with tensors by the names that the scheme gives them.
func (e *Engine) Attend(scheme Scheme, tables map[string]Table, in Attention) (made ContentAttended, err error) {
	text, err := json.Marshal(scheme)
	if err != nil {
		return made, misuse("the scheme: %v", err)
	}
	err = e.module.with(func(c *calls) error {
		written, err := c.text(string(text))
		if err != nil {
			return err
		}
		content, err := c.hold("posenc_content_free", "posenc_content_from_scheme", written)
		if err != nil {
			return err
		}
		for name, table := range tables {
			called, err := c.text(name)
			if err != nil {
				return err
			}
			values, err := c.tensor(given(table.Values), table.Shape...)
			if err != nil {
				return err
			}
			if err := c.call("posenc_content_set_table", content, called, values.view); err != nil {
				return err
			}
		}
		a, err := in.hold(c)
		if err != nil {
			return err
		}
		weights, err := c.tensor(nil, a.shape...)
		if err != nil {
			return err
		}
		err = c.call("posenc_attend_content_reference", content, uint32(0), a.in, a.out.view, a.logits.view, weights.view)
		if err != nil {
			return err
		}
		if made.Out, err = c.read(a.out); err != nil {
			return err
		}
		if made.Logits, err = c.read(a.logits); err != nil {
			return err
		}
		made.Weights, err = c.read(weights)
		return err
	})
	return made, err
}

// PositionsOf are those of a row with padding: a token's position is the number of tokens before
// it.
func (e *Engine) PositionsOf(mask []bool) (made Positions, err error) {
	return e.positions(func(c *calls) (uint32, error) {
		flags, err := c.bytes(flags(mask))
		if err != nil {
			return 0, err
		}
		return c.hold("posenc_positions_free", "posenc_positions_from_mask",
			flags, int64(1), int64(len(mask)), int64(0), int64(0))
	})
}

// Patches are the positions of a picture's patches, row by row, along two axes.
func (e *Engine) Patches(height, width int) (Positions, error) {
	return e.positions(func(c *calls) (uint32, error) {
		return c.hold("posenc_positions_free", "posenc_positions_patches",
			int64(height), int64(width), int64(1), int64(1))
	})
}

func (e *Engine) positions(hold func(*calls) (uint32, error)) (made Positions, err error) {
	err = e.module.with(func(c *calls) error {
		handle, err := hold(c)
		if err != nil {
			return err
		}
		made, err = positionsOf(c, handle)
		return err
	})
	return made, err
}

// given marks numbers as given, where there are none too.
func given(values []float64) []float64 {
	if values == nil {
		return []float64{}
	}
	return values
}

func flags(given []bool) []byte {
	made := make([]byte, len(given))
	for i, flag := range given {
		if flag {
			made[i] = 1
		}
	}
	return made
}
