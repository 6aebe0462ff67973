module example.org/posenc/bindings/go

go 1.22

// Not later: see newRuntime in memory.go.
require github.com/tetratelabs/wazero v1.6.0
