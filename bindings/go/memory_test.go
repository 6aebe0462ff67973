package posenc

import (
	"runtime"
	"testing"

	"github.com/tetratelabs/wazero"
)

func TestThisVersionOfWazeroCompiles(t *testing.T) {
	switch runtime.GOARCH {
	case "amd64", "arm64":
	default:
		t.Skip("there is no compiler for " + runtime.GOARCH)
	}
	if engine := engineOf(newRuntime()); engine != "*compiler.engine" {
		t.Errorf("%q runs the modules", engine)
	}
	if engine := engineOf(wazero.NewRuntimeWithConfig(never, wazero.NewRuntimeConfigInterpreter())); engine != "*interpreter.engine" {
		t.Errorf("the interpreter is taken for %q", engine)
	}
}
