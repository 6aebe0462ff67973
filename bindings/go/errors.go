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

// Error is what every function of this package fails with. Its message is the library's sentence:
// where, the rule, what it got, and the cure.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

func misuse(format string, args ...any) error {
	return &Error{Misuse, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) error {
	return &Error{Module, "the WebAssembly module: " + fmt.Sprintf(format, args...)}
}

// The library's cures name the command's flags: what Geometry calls them.
func inOurWords(message string) string {
	message = strings.Replace(message, "; set --grid HEIGHTxWIDTH", "; set GridHeight and GridWidth", 1)
	before, flag, found := strings.Cut(message, "; set --")
	if !found {
		return message
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
	return before + "; set " + name + flag[end:]
}
