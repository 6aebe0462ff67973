declare module '*.wasm?url' {
  const url: string
  export default url
}
// TeX that the build turns into MathML; \live{name} marks a number that moves.
declare function tex(source: TemplateStringsArray): string
