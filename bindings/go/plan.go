package posenc

import (
	"encoding/json"
	"runtime"
)

// Side says which vectors rotate: xPos grows queries and shrinks keys; values only rotate.
type Side uint32

// Queries are rotated as Query, and so on.
const (
	Query Side = 0
	Key   Side = 1
	Value Side = 2
)

// LearnedTable is what a plan may have learned.
type LearnedTable uint32

// Shapes as c.h has them.
const (
	AddTable           LearnedTable = 0 // vectors added to the embedding, [rows][width]
	BiasTable          LearnedTable = 1 // [heads][rows]
	RelativeQueryTable LearnedTable = 2 // by distance, [rows][head_dim] or [heads][rows][head_dim]
	RelativeKeyTable   LearnedTable = 3
	RelativeValueTable LearnedTable = 4
	TemperatureTable   LearnedTable = 5 // [2][heads]: s, then b of s·ln(p + 1) + b
)

// Plan is a scheme as numbers, which act on arrays. The garbage collector frees it, and so does
// Close.
type Plan struct {
	module *module
	handle uint32 // 0: closed
	info   PlanInfo
}

func newPlan(m *module, make func(*calls) (uint32, error)) (*Plan, error) {
	p := &Plan{module: m}
	err := m.with(func(c *calls) (err error) {
		if p.handle, err = make(c); err != nil {
			return err
		}
		if err = p.describe(c); err != nil {
			c.held = append(c.held, held{"posenc_plan_free", p.handle})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(p, func(p *Plan) { m.lose("posenc_plan_free", p.handle) })
	return p, nil
}

func (p *Plan) describe(c *calls) error {
	var text json.RawMessage
	if err := c.json(&text, "posenc_plan_json", p.handle); err != nil {
		return err
	}
	info := PlanInfo{JSON: text}
	if err := json.Unmarshal(text, &info); err != nil {
		return broken("a plan: %v", err)
	}
	p.info = info
	return nil
}

// with makes calls with the plan's handle, which is read while the lock is held.
func (p *Plan) with(work func(c *calls, plan uint32) error) error {
	return p.module.with(func(c *calls) error {
		if p.handle == 0 {
			return misuse("the plan is closed")
		}
		return work(c, p.handle)
	})
}

// Close frees it before the garbage collector does.
func (p *Plan) Close() {
	_ = p.with(func(c *calls, plan uint32) error {
		c.held = append(c.held, held{"posenc_plan_free", plan})
		p.handle = 0
		runtime.SetFinalizer(p, nil)
		return nil
	})
}

// Info is what the plan computes with: frequencies, amplitude, slopes, lengths.
func (p *Plan) Info() PlanInfo { return p.info }

// SetTable gives the plan learned numbers. No other call of the plan may run beside it.
func (p *Plan) SetTable(which LearnedTable, table Table) error {
	return p.with(func(c *calls, plan uint32) error {
		values, err := c.tensor(given(table.Values), table.Shape...)
		if err != nil {
			return err
		}
		if err := c.call("posenc_plan_set_table", plan, uint32(which), values.view); err != nil {
			return err
		}
		return p.describe(c)
	})
}

// Rotate rotates x, [tokens][head_dim] or [heads][tokens][head_dim], by the tokens' positions. Of
// PoPE heads become wider by a channel for each pair.
func (p *Plan) Rotate(x []float64, headDim int, at Positions, side Side) ([]float64, error) {
	wider := 0
	if r := p.info.Rotate; r != nil && r.Polar {
		wider = r.RotaryDim / 2
	}
	return p.rotated("posenc_rotate", x, headDim, wider, at, side)
}

// RotateBack undoes Rotate.
func (p *Plan) RotateBack(x []float64, headDim int, at Positions, side Side) ([]float64, error) {
	return p.rotated("posenc_rotate_inverse", x, headDim, 0, at, side)
}

func (p *Plan) rotated(verb string, x []float64, headDim, wider int, at Positions, side Side) (made []float64, err error) {
	heads := 1
	if n := at.Len() * headDim; n > 0 {
		heads = max(len(x)/n, 1)
	}
	err = p.with(func(c *calls, plan uint32) error {
		in, err := c.tensor(given(x), heads, at.Len(), headDim)
		if err != nil {
			return err
		}
		out := in
		if wider > 0 {
			if out, err = c.tensor(nil, heads, at.Len(), headDim+wider); err != nil {
				return err
			}
		}
		positions, err := at.hold(c)
		if err != nil {
			return err
		}
		if err := c.call(verb, plan, in.view, positions, uint32(side), out.view, uint32(1)); err != nil {
			return err
		}
		made, err = c.read(out)
		return err
	})
	return made, err
}

// Angles are those of Rotate in radians, [tokens][pairs], of the first head.
func (p *Plan) Angles(at Positions) ([]float64, error) {
	heads, pairs := 1, 0
	if r := p.info.Rotate; r != nil {
		heads, pairs = r.Heads, r.RotaryDim/2
	}
	all, err := p.filled("posenc_rotation_angles", nil, []int{1, heads, at.Len(), pairs}, at)
	if err != nil {
		return nil, err
	}
	return all[:at.Len()*pairs], nil
}

// Vectors are what is added to the embedding, [tokens][width].
func (p *Plan) Vectors(at Positions, width int) ([]float64, error) {
	return p.filled("posenc_position_vectors", nil, []int{1, at.Len(), width}, at)
}

// Add gives embeddings [tokens][width] with what the plan adds.
func (p *Plan) Add(x []float64, width int, at Positions) ([]float64, error) {
	return p.filled("posenc_add", given(x), []int{1, at.Len(), width}, at)
}

// Bias is what is added to the logits, [heads][queries][keys].
func (p *Plan) Bias(heads int, queries, keys Positions) ([]float64, error) {
	return p.filled("posenc_bias", nil, []int{heads, queries.Len(), keys.Len()}, queries, keys)
}

// filled calls a function that takes the plan, perhaps a tensor that it changes in place,
// positions, and a tensor to write.
func (p *Plan) filled(verb string, x []float64, shape []int, at ...Positions) (made []float64, err error) {
	err = p.with(func(c *calls, plan uint32) error {
		out, err := c.tensor(x, shape...)
		if err != nil {
			return err
		}
		args := []any{plan}
		if x != nil {
			args = append(args, out.view)
		}
		for _, each := range at {
			positions, err := each.hold(c)
			if err != nil {
				return err
			}
			args = append(args, positions)
		}
		if err := c.call(verb, append(args, out.view, uint32(1))...); err != nil {
			return err
		}
		made, err = c.read(out)
		return err
	})
	return made, err
}

// Attention is what attention takes: Q [heads][queries][head_dim], K and V [kv
// heads][keys][head_dim], unrotated, of as many heads as Q or fewer.
type Attention struct {
	Q, K, V []float64
	Heads   int // of Q
	HeadDim int // of Q, K and V
	Queries Positions
	Keys    *Positions // nil: where the queries stand
	Mask    Mask
}

// Mask says which keys a query sees. Its zero is causal.
type Mask struct {
	BothWays bool   // keys behind the query are seen
	Window   int64  // hides keys so far away or further; 0: none
	Keep     []bool // [key], false hides one; nil: none hidden
}

type heldAttention struct {
	in          uint32
	out, logits tensor
	shape       []int // of logits
}

func (in *Attention) hold(c *calls) (heldAttention, error) {
	queries, keys := in.Queries, in.Queries
	if in.Keys != nil {
		keys = *in.Keys
	}
	kvHeads := in.Heads
	if n := keys.Len() * in.HeadDim; n > 0 && len(in.K) >= n {
		kvHeads = len(in.K) / n
	}
	none := heldAttention{}
	a := heldAttention{shape: []int{1, in.Heads, queries.Len(), keys.Len()}}
	places := members{}
	for _, each := range []struct {
		name   string
		values []float64
		heads  int
		tokens int
	}{
		{"q", in.Q, in.Heads, queries.Len()}, {"k", in.K, kvHeads, keys.Len()}, {"v", in.V, kvHeads, keys.Len()},
	} {
		made, err := c.tensor(given(each.values), 1, each.heads, each.tokens, in.HeadDim)
		if err != nil {
			return none, err
		}
		places[each.name] = []int64{int64(made.view)}
	}
	for name, at := range map[string]Positions{"queries": queries, "keys": keys} {
		made, err := at.hold(c)
		if err != nil {
			return none, err
		}
		places[name] = []int64{int64(made)}
	}
	mask := members{"causal": {1}, "window": {in.Mask.Window}}
	if in.Mask.BothWays {
		mask["causal"] = []int64{0}
	}
	if in.Mask.Keep != nil {
		if len(in.Mask.Keep) != keys.Len() {
			return none, misuse("Keep must say of %d keys, got %d", keys.Len(), len(in.Mask.Keep))
		}
		keep, err := c.bytes(flags(in.Mask.Keep))
		if err != nil {
			return none, err
		}
		mask["keep"] = []int64{int64(keep)}
	}
	made, err := c.structure("posenc_mask", mask)
	if err != nil {
		return none, err
	}
	places["mask"] = []int64{int64(made)}
	if a.in, err = c.structure("posenc_attention", places); err != nil {
		return none, err
	}
	if a.out, err = c.tensor(nil, 1, in.Heads, queries.Len(), in.HeadDim); err != nil {
		return none, err
	}
	a.logits, err = c.tensor(nil, a.shape...)
	return a, err
}

// Attended is attention, with its inside.
type Attended struct {
	Out    []float64 // [heads][queries][head_dim]
	Logits []float64 // [heads][queries][keys], −Inf where hidden
}

// Attend gives softmax(logits) v, and every logit.
func (p *Plan) Attend(in Attention) (made Attended, err error) {
	err = p.with(func(c *calls, plan uint32) error {
		a, err := in.hold(c)
		if err != nil {
			return err
		}
		if err := c.call("posenc_attend_reference", plan, a.in, a.out.view, a.logits.view); err != nil {
			return err
		}
		if made.Out, err = c.read(a.out); err != nil {
			return err
		}
		made.Logits, err = c.read(a.logits)
		return err
	})
	return made, err
}
