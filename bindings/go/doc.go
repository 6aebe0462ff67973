// Package posenc computes positional encodings for transformers exactly, explains them, and checks
// what models' own files say about them.
//
// It is the C++ library posenc as WebAssembly modules, which wazero compiles and runs: no cgo, no
// files, no network. [Load] gives an [Engine] of schemes and plans, [LoadModels] the readers of
// models' files and the doctor.
//
// All of it may be used by goroutines side by side: a lock lets one call of an Engine or a Models
// run at a time. For calls in parallel load several, which costs little: a module is compiled once
// in a program. Numbers are float64, and arrays are row-major.
package posenc
