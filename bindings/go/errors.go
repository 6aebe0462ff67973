package posenc

import (
	"fmt"
	"strings"
)

// Kind says whose fault an error is.
type Kind int

const (
	// Misuse is a call that is wrong itself: numbers that do not fill their shape, handles that do
	// not belong together or are closed.
	Misuse Kind = 1
	// Refused is a value that breaks a rule of posenc, or bytes that are not what they should be.
	Refused Kind = 2
	// Module is a module that ran out of memory, or trapped. After a trap its memory may be in
	// disorder: every later call fails with this kind, and what was made by it must be made again.
	Module Kind = 3
)

// Error is what every function of this package fails with. Its message is the library's sentence,
// and its other members are the parts of it: "" where it has none, and of a misuse that this package
// finds by itself.
type Error struct {
	Kind    Kind
	Message string
	Where   string // the function, or the file's key
	Rule    string // that is broken
	Got     string // the value found
	Cure    string // what to do about it
}

func (e *Error) Error() string { return e.Message }

func misuse(format string, args ...any) error {
	return &Error{Kind: Misuse, Message: fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) error {
	return &Error{Kind: Module, Message: "the WebAssembly module: " + fmt.Sprintf(format, args...)}
}

// The library's cures name the command's flags: what Geometry calls them. Of a whole sentence, or of
// the cure alone.
func inOurWords(said string) string {
	at := strings.LastIndex(said, "; set --")
	if at >= 0 {
		at += len("; ")
	} else {
		at = 0
	}
	cure := strings.Replace(said[at:], "set --grid HEIGHTxWIDTH", "set GridHeight and GridWidth", 1)
	flag, found := strings.CutPrefix(cure, "set --")
	if !found {
		return said[:at] + cure
	}
	end := strings.IndexFunc(flag, func(c rune) bool { return c != '-' && (c < 'a' || c > 'z') })
	if end < 0 {
		end = len(flag)
	}
	name := ""
	for _, word := range strings.Split(flag[:end], "-") {
		if word != "" {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return said[:at] + "set " + name + flag[end:]
}
