// TeX that the build turns into MathML; \live{name} marks a number that moves.
declare function tex(source: TemplateStringsArray): string
// What the list of panels tells of each, read from their files by the build.
declare module 'virtual:panels' {
  export type About = { id: string; title: string; about: string; file: string; lead: string }
  const abouts: About[]
  export default abouts
}
declare module 'about' {
  export const version: string
  export const docs: string // where its pages lie; empty where they do not come with the page
  export const words: { name: string; what: string }[] // of docs/glossary.md
  export const pages: { name: string; what: string }[]
}
// What panels draw of evidence/lab/results/.
declare module 'lab' {
  export const together: number // positions of a point
  export type Reach = {
    trained: number
    length: number
    curves: { scaling: string; factor: number; y: number[] }[] // nats a token by position
  }
  export const reaches: Reach[]
  export const small: {
    length: number // trained
    width: number
    heads: number
    arms: { name: string; x: number[]; y: number[] }[] // nats a byte by length
  }
}
