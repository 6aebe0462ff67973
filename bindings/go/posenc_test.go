package posenc_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	posenc "example.org/posenc/bindings/go"
)

// Loaded once: tests show what an Engine computes, not that it starts.
var loaded = sync.OnceValues(posenc.Load)
var loadedModels = sync.OnceValues(posenc.LoadModels)

func engine(t testing.TB) *posenc.Engine {
	return must[*posenc.Engine](t)(loaded())
}

func models(t testing.TB) *posenc.Models {
	return must[*posenc.Models](t)(loadedModels())
}

func must[T any](t testing.TB) func(T, error) T {
	return func(made T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// data is a file of tests/data, which the packed module is without.
func data(t *testing.T, name string) []byte {
	bytes, err := os.ReadFile("../../tests/data/" + name)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("tests/data is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func apart(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range a {
		most = math.Max(most, math.Abs(a[i]-b[i]))
	}
	return most
}

func rope(t testing.TB, scheme posenc.Scheme, headDim int64) *posenc.Plan {
	return must[*posenc.Plan](t)(engine(t).Plan(scheme, posenc.Geometry{HeadDim: headDim}))
}

func TestYaRNRotatesAsTransformersDoes(t *testing.T) {
	var golden struct {
		Records []struct {
			Name      string
			HeadDim   int `json:"head_dim"`
			Positions json.RawMessage
			Q         []float64
			Rotated   []float64      `json:"q_out_f64"`
			Rope      map[string]any `json:"rope_parameters"`
		}
	}
	if err := json.Unmarshal(data(t, "golden/rotation.json"), &golden); err != nil {
		t.Fatal(err)
	}
	for _, one := range golden.Records {
		if one.Name != "llama-half-yarn" {
			continue
		}
		var ids []int64
		if err := json.Unmarshal(one.Positions, &ids); err != nil {
			t.Fatal(err)
		}
		original := one.Rope["original_max_position_embeddings"]
		scaling := posenc.Scheme{"type": "yarn", "factor": one.Rope["factor"], "original_max_position_embeddings": original}
		plan := rope(t, posenc.Scheme{"type": "rope", "scaling": scaling}, int64(one.HeadDim))
		for i, x := range one.Q {
			one.Q[i] = float64(float32(x))
		}
		rotated := must[[]float64](t)(plan.Rotate(one.Q, one.HeadDim, posenc.IDs(ids...), posenc.Query))
		if off := apart(rotated, one.Rotated); off > 1e-9 {
			t.Errorf("off by %g", off)
		}
		return
	}
	t.Error("no such record")
}

// Numbers that transformers computes of Qwen's YaRN and Llama 3.1's scaling
// (tests/data/golden/zoo_rope.json has them in float).
func TestFrequenciesOfScalings(t *testing.T) {
	yarn := rope(t, posenc.Scheme{"type": "rope", "rope_theta": 1e6, "scaling": posenc.Scheme{
		"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}}, 128).Info().Rotate
	if f := yarn.Frequencies[0]; len(f) != 64 || f[0] != 1 || math.Abs(f[63]*4-math.Pow(1e6, -126./128)) > 1e-20 {
		t.Errorf("YaRN: %v", f)
	}
	if want := 0.1*math.Log(4) + 1; math.Abs(yarn.Amplitude-want) > 1e-15 {
		t.Errorf("amplitude %v, not %v", yarn.Amplitude, want)
	}
	llama := rope(t, posenc.Scheme{"type": "rope", "rope_theta": 5e5, "scaling": posenc.Scheme{
		"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
		"original_max_position_embeddings": 8192}}, 128).Info().Rotate.Frequencies[0]
	if want := math.Pow(5e5, -126./128) / 8; math.Abs(llama[63]/want-1) > 1e-14 {
		t.Errorf("slowest pair %v, not %v", llama[63], want)
	}
	if want := math.Pow(5e5, -2./128); math.Abs(llama[1]/want-1) > 1e-14 {
		t.Errorf("second pair %v, not %v", llama[1], want)
	}
}

func TestRotationKeepsNormsAndIsUndone(t *testing.T) {
	plan := rope(t, posenc.Scheme{"type": "rope"}, 8)
	q := must[[]float64](t)(engine(t).Normals(1, 3*6*8))
	rotated := must[[]float64](t)(plan.Rotate(q, 8, posenc.Range(5, 6), posenc.Query))
	for token := 0; token < len(q); token += 8 {
		var before, after float64
		for i := token; i < token+8; i++ {
			before += q[i] * q[i]
			after += rotated[i] * rotated[i]
		}
		if math.Abs(before-after) > 1e-12 {
			t.Errorf("token %d: %v is %v", token/8, before, after)
		}
	}
	back := must[[]float64](t)(plan.RotateBack(rotated, 8, posenc.IDs(5, 6, 7, 8, 9, 10), posenc.Query))
	if off := apart(back, q); off > 1e-14 {
		t.Errorf("not undone, off by %g", off)
	}
	angles := must[[]float64](t)(plan.Angles(posenc.Range(5, 2)))
	if want := 5 * plan.Info().Rotate.Frequencies[0][1]; len(angles) != 8 || math.Abs(angles[1]-want) > 1e-15 {
		t.Errorf("angles %v", angles)
	}
}

func TestAddAndVectors(t *testing.T) {
	e := engine(t)
	plan := must[*posenc.Plan](t)(e.Plan(posenc.Scheme{"type": "sinusoidal"}, posenc.Geometry{Width: 4}))
	vectors := must[[]float64](t)(plan.Vectors(posenc.Range(1, 1), 4))
	if want := []float64{math.Sin(1), math.Cos(1), math.Sin(.01), math.Cos(.01)}; apart(vectors, want) > 1e-15 {
		t.Errorf("%v, not %v", vectors, want)
	}
	sum := must[[]float64](t)(plan.Add([]float64{1, 1, 1, 1}, 4, posenc.Range(1, 1)))
	if math.Abs(sum[0]-1-vectors[0]) > 1e-15 {
		t.Errorf("sum %v", sum)
	}
	learned := must[*posenc.Plan](t)(e.Plan(posenc.Scheme{"type": "learned", "rows": 2}, posenc.Geometry{Width: 2}))
	if err := learned.SetTable(posenc.AddTable, posenc.Table{Values: []float64{1, 2, 3, 4}, Shape: []int{2, 2}}); err != nil {
		t.Fatal(err)
	}
	if row := must[[]float64](t)(learned.Vectors(posenc.IDs(1), 2)); apart(row, []float64{3, 4}) != 0 {
		t.Errorf("row %v", row)
	}
}

func TestBiasAndAttention(t *testing.T) {
	e := engine(t)
	plan := must[*posenc.Plan](t)(e.Plan(posenc.Scheme{"type": "alibi"}, posenc.Geometry{Heads: 2, HeadDim: 4}))
	slopes := plan.Info().Bias.Slopes
	bias := must[[]float64](t)(plan.Bias(2, posenc.IDs(3), posenc.Range(0, 4)))
	if apart(bias[:4], []float64{-3 * slopes[0], -2 * slopes[0], -slopes[0], 0}) > 1e-15 {
		t.Errorf("bias %v of slopes %v", bias, slopes)
	}
	q := must[[]float64](t)(e.Normals(1, 48))
	k := must[[]float64](t)(e.Normals(2, 24))
	in := posenc.Attention{Q: q, K: k, V: k, Heads: 2, HeadDim: 4, Queries: posenc.Range(0, 6)}
	shared := must[posenc.Attended](t)(plan.Attend(in))
	in.K, in.V = append(append([]float64{}, k...), k...), append(append([]float64{}, k...), k...)
	if off := apart(shared.Out, must[posenc.Attended](t)(plan.Attend(in)).Out); off != 0 {
		t.Errorf("shared keys are off by %g", off)
	}
	if !math.IsInf(shared.Logits[1], -1) {
		t.Errorf("the first query sees the second key: %v", shared.Logits[:6])
	}
	in.Mask.Window = 1
	if off := apart(must[posenc.Attended](t)(plan.Attend(in)).Out, in.V); off != 0 {
		t.Errorf("alone it sees another value, off by %g", off)
	}
	in.Mask = posenc.Mask{BothWays: true, Keep: []bool{true, false, true, true, true, true}}
	both := must[posenc.Attended](t)(plan.Attend(in))
	if !math.IsInf(both.Logits[1], -1) || math.IsInf(both.Logits[2], -1) {
		t.Errorf("logits %v", both.Logits[:6])
	}
}

func TestContent(t *testing.T) {
	e := engine(t)
	x := must[[]float64](t)(e.Normals(1, 12))
	in := posenc.Attention{Q: x, K: x, V: x, Heads: 1, HeadDim: 4, Queries: posenc.Range(0, 3)}
	gates := posenc.Table{Values: []float64{-1, -2, -3}, Shape: []int{1, 1, 3}}
	made, err := e.Attend(posenc.Scheme{"type": "forgetting"}, map[string]posenc.Table{"log_gates": gates}, in)
	if err != nil {
		t.Fatal(err)
	}
	for row := range 3 {
		if sum := made.Weights[3*row] + made.Weights[3*row+1] + made.Weights[3*row+2]; math.Abs(sum-1) > 1e-14 {
			t.Errorf("weights of query %d sum up to %v", row, sum)
		}
	}
}

func TestPositions(t *testing.T) {
	e := engine(t)
	if ids := must[posenc.Positions](t)(e.PositionsOf([]bool{false, true, true})).IDs(); len(ids) != 1 || ids[0][2] != 1 {
		t.Errorf("%v", ids)
	}
	patches := must[posenc.Positions](t)(e.Patches(2, 3))
	if ids := patches.IDs(); len(ids) != 2 || patches.Len() != 6 || ids[0][5] != 1 || ids[1][5] != 2 {
		t.Errorf("%v", ids)
	}
}

func TestErrors(t *testing.T) {
	e := engine(t)
	plan := rope(t, posenc.Scheme{"type": "rope"}, 8)
	for name, one := range map[string]struct {
		kind posenc.Kind
		says string
		work func() error
	}{
		"an odd head":         {posenc.Refused, "head_dim must be even, got 7", planned(e, posenc.Scheme{"type": "rope"}, 7)},
		"no such scheme":      {posenc.Refused, "ropes", planned(e, posenc.Scheme{"type": "ropes"}, 8)},
		"no such field":       {posenc.Refused, "thetas", planned(e, posenc.Scheme{"type": "rope", "thetas": 1}, 8)},
		"a size left out":     {posenc.Refused, "; set HeadDim", planned(e, posenc.Scheme{"type": "rope"}, 0)},
		"no JSON":             {posenc.Misuse, "the scheme", planned(e, posenc.Scheme{"type": math.NaN()}, 8)},
		"another grid":        {posenc.Refused, "; set GridHeight and GridWidth", planned(e, posenc.Scheme{"type": "log_cpb"}, 0)},
		"numbers left over":   {posenc.Misuse, "47 numbers", rotated(plan, 47, posenc.Range(0, 6))},
		"a negative position": {posenc.Refused, "-1", rotated(plan, 8, posenc.IDs(-1))},
		"axes of two lengths": {posenc.Misuse, "every axis", rotated(plan, 8, posenc.Axes([]int64{0}, []int64{0, 1}))},
	} {
		err := one.work()
		var posencError *posenc.Error
		if !errors.As(err, &posencError) || posencError.Kind != one.kind || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsHaveTheirParts(t *testing.T) {
	e := engine(t)
	parts := func(err error) [4]string {
		var refused *posenc.Error
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return [4]string{refused.Where, refused.Rule, refused.Got, refused.Cure}
	}
	odd := parts(planned(e, posenc.Scheme{"type": "rope"}, 7)())
	if want := [4]string{"rope", "head_dim must be even", "7", "set rotary_dim or pad the head"}; odd != want {
		t.Errorf("%q, not %q", odd, want)
	}
	if got := parts(planned(e, posenc.Scheme{"type": "rope"}, 0)()); got[3] != "set HeadDim" {
		t.Errorf("%q", got)
	}
	if got := parts(planned(e, posenc.Scheme{"type": "log_cpb"}, 0)()); !strings.HasPrefix(got[3], "set GridHeight and GridWidth: ") {
		t.Errorf("%q", got)
	}
	if got := parts(rotated(rope(t, posenc.Scheme{"type": "rope"}, 8), 47, posenc.Range(0, 6))()); got != [4]string{} {
		t.Errorf("%q", got)
	}
}

func planned(e *posenc.Engine, scheme posenc.Scheme, headDim int64) func() error {
	return func() error {
		_, err := e.Plan(scheme, posenc.Geometry{HeadDim: headDim, Heads: 2})
		return err
	}
}

func rotated(plan *posenc.Plan, count int, at posenc.Positions) func() error {
	return func() error {
		_, err := plan.Rotate(make([]float64, count), 8, at, posenc.Query)
		return err
	}
}

func TestListsSayWhatThereIs(t *testing.T) {
	e := engine(t)
	if e.Version() != "0.1.0" || len(e.Schemes()) < 20 || len(e.Scalings()) < 8 || len(e.Content()) < 5 {
		t.Errorf("version %s, %d schemes, %d scalings, %d of content", e.Version(), len(e.Schemes()), len(e.Scalings()), len(e.Content()))
	}
	for _, scheme := range e.Schemes() {
		if scheme.Name == "rope" && scheme.Fields[0].Default == 10000.0 {
			return
		}
	}
	t.Error("no rope")
}

func TestGoroutinesShareAnEngine(t *testing.T) {
	plan := rope(t, posenc.Scheme{"type": "rope"}, 8)
	q := must[[]float64](t)(engine(t).Normals(1, 64*8))
	want := must[[]float64](t)(plan.Rotate(q, 8, posenc.Range(0, 64), posenc.Query))
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				// Plans that the garbage collector takes while others compute.
				if _, err := engine(t).Plan(posenc.Scheme{"type": "rope"}, posenc.Geometry{HeadDim: 8}); err != nil {
					t.Error(err)
				}
				runtime.GC()
				got, err := plan.Rotate(q, 8, posenc.Range(0, 64), posenc.Query)
				if err != nil || apart(got, want) != 0 {
					t.Error("another rotation", err)
				}
			}
		}()
	}
	all.Wait()
}

func TestClosed(t *testing.T) {
	e := must[*posenc.Engine](t)(posenc.Load())
	plan := must[*posenc.Plan](t)(e.Plan(posenc.Scheme{"type": "rope"}, posenc.Geometry{HeadDim: 8}))
	other := must[*posenc.Plan](t)(e.Plan(posenc.Scheme{"type": "rope"}, posenc.Geometry{HeadDim: 8}))
	plan.Close()
	plan.Close()
	if _, err := plan.Angles(posenc.Range(0, 1)); err == nil || err.Error() != "the plan is closed" {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := other.Angles(posenc.Range(0, 1)); err == nil || err.Error() != "it is closed" {
		t.Error(err)
	}
}

func TestModelsExplainAndPlan(t *testing.T) {
	model := must[*posenc.Model](t)(models(t).Open("llama-3.1-8b"))
	said := must[*posenc.Explanation](t)(model.Explain(131072))
	scaling, _ := said.Groups[0].Scheme["scaling"].(map[string]any)
	if scaling["type"] != "llama3" || len(said.JSON) == 0 {
		t.Errorf("%v", said.Groups[0].Scheme)
	}
	plan := must[*posenc.Plan](t)(model.Plan(31, 131072))
	if off := apart(plan.Info().Rotate.Frequencies[0], said.Groups[0].Plan.Rotate.Frequencies[0]); off != 0 {
		t.Errorf("another plan, off by %g", off)
	}
	if _, err := model.Plan(32, 0); err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("layer 32: %v", err)
	}
	model.Close()
	if _, err := model.Plan(0, 0); err == nil {
		t.Error("a closed model gives a plan")
	}
}

func TestReadersRefuse(t *testing.T) {
	for _, bytes := range []string{"", "{", "[]", `{"model_type": 1}`, "GGUF\x00", strings.Repeat("[", 1<<20), "\xff\xfe"} {
		_, err := models(t).Read([]byte(bytes), "config.json")
		var posencError *posenc.Error
		if !errors.As(err, &posencError) || posencError.Kind != posenc.Refused {
			t.Errorf("%.10q: %v", bytes, err)
		}
	}
}

func TestDoctorJudgesFilesAndALine(t *testing.T) {
	m := models(t)
	bytes := data(t, "doctor/llama-3.1-without-scaling.json")
	said := must[*posenc.Diagnosis](t)(m.Doctor([]posenc.Evidence{
		posenc.Words("llama-3.1-8b"),
		posenc.File("config.json", bytes),
		posenc.Words("llama-server -m m.gguf -c 65536 -np 4"),
	}, posenc.DoctorOptions{}))
	if !strings.HasPrefix(said.Verdict, "Wrong in config.json: rope_scaling is none") || said.Evidence[2].Kind != "command" {
		t.Errorf("%s: %+v", said.Verdict, said.Evidence)
	}
	found := false
	for _, one := range said.Findings {
		found = found || one.Code == "rope_scaling" && one.Where == "config.json" && len(one.Finding.Layers) > 0
	}
	if !found {
		t.Errorf("%+v", said.Findings)
	}
	broken := must[*posenc.Model](t)(m.Read(bytes, "config.json"))
	compared := must[*posenc.Comparison](t)(must[*posenc.Model](t)(m.Open("llama-3.1-8b")).Diff(broken, 0))
	if compared.Equal || len(compared.Findings) == 0 {
		t.Error("equal")
	}
	if _, err := m.Doctor(nil, posenc.DoctorOptions{}); err == nil {
		t.Error("a judgement of nothing")
	}
}

func TestLintTranslateExtend(t *testing.T) {
	m := models(t)
	qwen := must[*posenc.Model](t)(m.Read(data(t, "doctor/deepseek-r1-0528-qwen3-8b.json"), "config.json"))
	errors := 0
	for _, one := range must[[]posenc.Finding](t)(qwen.Lint("sglang", 0)) {
		if one.Severity == "error" && one.Cure != "" {
			errors++
		}
	}
	if errors == 0 {
		t.Error("nothing is found")
	}
	llama := must[*posenc.Model](t)(m.Open("llama-3.1-8b"))
	must[[]posenc.Finding](t)(llama.Lint("", 0))
	target, _ := must[*posenc.Translation](t)(llama.Translate("vllm", 0)).Target.(string)
	if !strings.Contains(target, `"rope_type":"llama3"`) {
		t.Errorf("%s", target)
	}
	longer := must[*posenc.ContextPlan](t)(llama.Extend(262144, posenc.ExtendOptions{}))
	known := false
	for _, option := range longer.Options {
		known = known || option.Name == longer.Recommended
	}
	if !known {
		t.Error(longer.Recommended)
	}
	if _, err := llama.Extend(262144, posenc.ExtendOptions{Engine: "nobody"}); err == nil {
		t.Error("nobody's words")
	}
	line := "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072"
	asked := must[*posenc.Comparison](t)(must[*posenc.Model](t)(m.Open("qwen3-8b")).DiffCommand(line, 0))
	if len(asked.Findings) == 0 || asked.Findings[0].Code != "rope_scaling" {
		t.Errorf("%+v", asked)
	}
	if must[*posenc.Reading](t)(llama.ReadBy("vllm", 0)).Engine != "vllm" {
		t.Error("another engine")
	}
	if len(must[[]posenc.Bundled](t)(m.Bundled())) < 20 || len(must[[]posenc.Profile](t)(m.Engines())) < 4 {
		t.Error("lists are short")
	}
}

// The blocks of README.md are the bodies of the examples, which run.
func TestREADMEShowsTheExamples(t *testing.T) {
	page := string(must[[]byte](t)(os.ReadFile("README.md")))
	examples := string(must[[]byte](t)(os.ReadFile("example_test.go")))
	examples = strings.ReplaceAll(examples, "\n\t", "\n")
	blocks := strings.Split(page, "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if block = strings.TrimPrefix(block, "import "); !strings.Contains(examples, block) {
			t.Errorf("example_test.go is without\n%s", block)
		}
	}
	if len(blocks) != 3 {
		t.Errorf("%d blocks", len(blocks))
	}
}

func BenchmarkRotate(b *testing.B) {
	plan := rope(b, posenc.Scheme{"type": "rope"}, 128)
	q := make([]float64, 8*4096*128)
	for i := range q {
		q[i] = math.Sin(float64(i))
	}
	b.ResetTimer()
	for range b.N {
		must[[]float64](b)(plan.Rotate(q, 128, posenc.Range(0, 4096), posenc.Query))
	}
}
