package posenc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The functions of posenc/c.h as Go calls: strings, numbers and structs go in as copies, errors
// come out as *Error. The module itself says how the compiler laid out the structs of c.h
// (cmake/wasm_layout.sh).

type layout map[string]struct {
	Size int `json:"size"`
	// [offset, kind] of a member, or [offset, kind, count] of an array; a pointer is a uint32.
	Members map[string][]any `json:"members"`
}

// source is what a module is compiled from, once in a program.
type source struct {
	wasm    []byte
	once    sync.Once
	runtime wazero.Runtime
	module  wazero.CompiledModule
	layout  layout
	err     error
}

var never = context.Background()

func (s *source) compile() error {
	s.once.Do(func() {
		s.runtime = newRuntime()
		if s.module, s.err = s.runtime.CompileModule(never, s.wasm); s.err != nil {
			s.err = broken("%v", s.err)
			return
		}
		for _, section := range s.module.CustomSections() {
			if section.Name() == "posenc.layout" {
				if err := json.Unmarshal(section.Data(), &s.layout); err != nil {
					s.err = broken("its layout: %v", err)
				}
				return
			}
		}
		s.err = broken("it does not tell its layout")
	})
	return s.err
}

// From version 1.7 on wazero's compiler computes some of posenc-models.wasm wrong (its issue 2516
// tells of another such module): a diff of two models finds nothing. That of 1.6, which go.mod asks for, is right, but another dependency of
// a program may ask for a later version. Then, and on processors that have no compiler, the modules
// are interpreted, which is right and slow.
func newRuntime() wazero.Runtime {
	made := wazero.NewRuntimeWithConfig(never, wazero.NewRuntimeConfig().WithCustomSections(true))
	if engineOf(made) == "*compiler.engine" {
		return made
	}
	_ = made.Close(never)
	return wazero.NewRuntimeWithConfig(never, wazero.NewRuntimeConfigInterpreter().WithCustomSections(true))
}

// engineOf is the type of what runs the code, or "" where a runtime is built otherwise.
func engineOf(runtime wazero.Runtime) string {
	at := reflect.ValueOf(runtime)
	for _, name := range []string{"store", "Engine"} {
		if at = reflect.Indirect(at); at.Kind() != reflect.Struct {
			return ""
		}
		at = at.FieldByName(name)
	}
	if at.Kind() != reflect.Interface || at.IsNil() {
		return ""
	}
	return at.Elem().Type().String()
}

// module is an instance with a memory of its own. One call runs at a time: the lock sees to it.
type module struct {
	lock   sync.Mutex
	api    api.Module
	layout layout
	slot   uint32 // where functions hand out pointers
	err    error  // of a module that trapped or is closed

	// Handles that the garbage collector found, which the next call frees.
	lost struct {
		sync.Mutex
		handles []held
	}
}

type held struct {
	free   string
	handle uint32
}

func (s *source) load() (*module, error) {
	if err := s.compile(); err != nil {
		return nil, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	instance, err := s.runtime.InstantiateModule(never, s.module, config)
	if err != nil {
		return nil, broken("%v", err)
	}
	m := &module{api: instance, layout: s.layout}
	err = m.with(func(c *calls) error {
		m.slot, err = c.alloc(64)
		c.held = nil
		return err
	})
	return m, err
}

func (m *module) close() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.err = misuse("it is closed")
	return m.api.Close(never)
}

// with makes some calls in a row, and frees what they took.
func (m *module) with(work func(*calls) error) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.err != nil {
		return m.err
	}
	c := &calls{m: m}
	defer c.done()
	m.lost.Lock()
	c.held, m.lost.handles = m.lost.handles, nil
	m.lost.Unlock()
	return work(c)
}

// lose leaves a handle to the next call: a finalizer must not wait for a lock.
func (m *module) lose(free string, handle uint32) {
	m.lost.Lock()
	defer m.lost.Unlock()
	m.lost.handles = append(m.lost.handles, held{free, handle})
}

type calls struct {
	m    *module
	held []held
}

func (c *calls) done() {
	for i := len(c.held) - 1; i >= 0 && c.m.err == nil; i-- {
		// A trap is kept for the next call.
		_, _ = c.invoke(c.held[i].free, uint64(c.held[i].handle))
	}
}

func (c *calls) invoke(name string, args ...uint64) (uint32, error) {
	if c.m.err != nil {
		return 0, c.m.err
	}
	function := c.m.api.ExportedFunction(name)
	if function == nil {
		return 0, broken("it has no %s", name)
	}
	results, err := function.Call(never, args...)
	if err != nil {
		c.m.err = broken("%v; load it again", err)
		return 0, c.m.err
	}
	if len(results) == 0 {
		return 0, nil
	}
	return uint32(results[0]), nil
}

func (c *calls) alloc(size int) (uint32, error) {
	if size > math.MaxInt32 {
		return 0, broken("%d bytes are more than its memory can hold", size)
	}
	at, err := c.invoke("malloc", uint64(max(size, 8)))
	if err == nil && at == 0 {
		err = broken("no memory for %d bytes", size)
	}
	if err != nil {
		return 0, err
	}
	c.held = append(c.held, held{"free", at})
	return at, nil
}

// view is the module's own memory, until the next call.
func (c *calls) view(at uint32, size int) ([]byte, error) {
	seen, ok := c.m.api.Memory().Read(at, uint32(size))
	if !ok {
		return nil, broken("an address outside of its memory")
	}
	return seen, nil
}

func (c *calls) bytes(given []byte) (uint32, error) {
	at, err := c.alloc(len(given))
	if err != nil {
		return 0, err
	}
	room, err := c.view(at, len(given))
	copy(room, given)
	return at, err
}

func (c *calls) text(given string) (uint32, error) {
	if strings.IndexByte(given, 0) >= 0 {
		return 0, misuse("a text must not contain a zero byte")
	}
	return c.bytes(append([]byte(given), 0))
}

func (c *calls) textOrNull(given string) (uint32, error) {
	if given == "" {
		return 0, nil
	}
	return c.text(given)
}

func (c *calls) longs(given []int64) (uint32, error) {
	made := make([]byte, 0, 8*len(given))
	for _, one := range given {
		made = binary.LittleEndian.AppendUint64(made, uint64(one))
	}
	return c.bytes(made)
}

func (c *calls) readLongs(at uint32, count int) ([]int64, error) {
	seen, err := c.view(at, 8*count)
	if err != nil {
		return nil, err
	}
	made := make([]int64, count)
	for i := range made {
		made[i] = int64(binary.LittleEndian.Uint64(seen[8*i:]))
	}
	return made, nil
}

// members of a struct of c.h by their names. Those left out are zero, and struct_size is filled in.
type members map[string][]int64

func (c *calls) structure(name string, given members) (uint32, error) {
	form, ok := c.m.layout[name]
	if !ok {
		return 0, broken("it knows no %s", name)
	}
	made := make([]byte, form.Size)
	put := func(member string, values ...int64) error {
		place := form.Members[member]
		if len(place) < 2 {
			return broken("%s has no member %s", name, member)
		}
		at, _ := place[0].(float64)
		kind, _ := place[1].(string)
		for i, value := range values {
			if strings.HasSuffix(kind, "64") {
				binary.LittleEndian.PutUint64(made[int(at)+8*i:], uint64(value))
			} else {
				binary.LittleEndian.PutUint32(made[int(at)+4*i:], uint32(value))
			}
		}
		return nil
	}
	if err := put("struct_size", int64(form.Size)); err != nil {
		return 0, err
	}
	for member, values := range given {
		if err := put(member, values...); err != nil {
			return 0, err
		}
	}
	return c.bytes(made)
}

// tensor is numbers in the module's memory, and the posenc_tensor that views them.
type tensor struct {
	view, at uint32
	count    int
}

// tensor makes a row-major one, filled where numbers are given.
func (c *calls) tensor(from []float64, shape ...int) (tensor, error) {
	const most = 1 << 28
	count := 1
	extents := make([]int64, len(shape))
	for axis, extent := range shape {
		if extent < 0 || extent > most || count > most/max(extent, 1) {
			return tensor{}, misuse("a tensor %v has too many numbers, or a negative extent", shape)
		}
		count *= extent
		extents[axis] = int64(extent)
	}
	if from != nil && len(from) != count {
		return tensor{}, misuse("%d numbers do not fill a tensor %v", len(from), shape)
	}
	strides := make([]int64, len(shape))
	for axis, stride := len(shape)-1, int64(1); axis >= 0; axis-- {
		strides[axis] = stride
		stride *= extents[axis]
	}
	at, err := c.alloc(8 * count)
	if err != nil {
		return tensor{}, err
	}
	if from != nil {
		room, err := c.view(at, 8*count)
		if err != nil {
			return tensor{}, err
		}
		for i, value := range from {
			binary.LittleEndian.PutUint64(room[8*i:], math.Float64bits(value))
		}
	}
	view, err := c.structure("posenc_tensor", members{
		"dtype": {0}, "rank": {int64(len(shape))}, "data": {int64(at)}, "shape": extents, "stride": strides,
	})
	return tensor{view, at, count}, err
}

func (c *calls) read(t tensor) ([]float64, error) {
	seen, err := c.view(t.at, 8*t.count)
	if err != nil {
		return nil, err
	}
	made := make([]float64, t.count)
	for i := range made {
		made[i] = math.Float64frombits(binary.LittleEndian.Uint64(seen[8*i:]))
	}
	return made, nil
}

func (c *calls) string(at uint32) (string, error) {
	memory := c.m.api.Memory()
	seen, ok := memory.Read(at, memory.Size()-at)
	if !ok {
		return "", broken("an address outside of its memory")
	}
	end := bytes.IndexByte(seen, 0)
	return string(seen[:max(end, 0)]), nil
}

// said is the text of a function that returns one.
func (c *calls) said(name string, args ...uint64) (string, error) {
	at, err := c.invoke(name, args...)
	if err != nil {
		return "", err
	}
	return c.string(at)
}

// call takes uint32 for pointers and constants, int64 for what c.h calls int64_t.
func (c *calls) call(name string, args ...any) error {
	words := make([]uint64, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case uint32:
			words[i] = uint64(value)
		case int64:
			words[i] = uint64(value)
		default:
			return broken("%s: argument %d", name, i)
		}
	}
	status, err := c.invoke(name, words...)
	if err != nil || status == 0 {
		return err
	}
	return c.refused(status)
}

// refused is the error of the call before.
func (c *calls) refused(status uint32) error {
	message, err := c.said("posenc_last_error")
	if err != nil {
		return err
	}
	made := &Error{Kind: Refused, Message: inOurWords(message)}
	if status == 1 {
		made.Kind = Misuse
	}
	for part, to := range []*string{&made.Where, &made.Rule, &made.Got, &made.Cure} {
		if *to, err = c.said("posenc_last_error_part", uint64(part)); err != nil {
			return err
		}
	}
	made.Cure = inOurWords(made.Cure)
	return made
}

// make gives what a function hands out through its last argument.
func (c *calls) make(name string, args ...any) (uint32, error) {
	if err := c.call(name, append(args, c.m.slot)...); err != nil {
		return 0, err
	}
	seen, err := c.view(c.m.slot, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(seen), nil
}

// hold is make for the time of these calls.
func (c *calls) hold(free, name string, args ...any) (uint32, error) {
	handle, err := c.make(name, args...)
	if err == nil {
		c.held = append(c.held, held{free, handle})
	}
	return handle, err
}

// json reads the JSON that a function hands out.
func (c *calls) json(to any, name string, args ...any) error {
	at, err := c.hold("posenc_string_free", name, args...)
	if err != nil {
		return err
	}
	text, err := c.string(at)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return broken("%s: %v", name, err)
	}
	return nil
}
