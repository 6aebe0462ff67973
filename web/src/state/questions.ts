// What people ask, in the words they ask it with, and the view that answers: a panel, and what is set there.
import type { Values } from './link'

export type Question = { asks: string; also?: string; panel: string; set?: Partial<Values> }
// Other words by which a panel is looked for.
export const known: Record<string, string> = {
  order: 'permutation bag of words',
  waves: 'wavelength frequency amplitude phase',
  sinusoid: 'sine cosine table',
  rope: 'rotary distance lock',
  extend: 'rope beyond training long context',
  kv: 'kv keys',
  pictures: 'images vision',
}
export const questions: Question[] = [
  { asks: 'How does RoPE work?', also: 'rotary rotation distance relative position', panel: 'rope' },
  { asks: 'Why does position matter?', also: 'order bag of words permutation', panel: 'start' },
  {
    asks: 'Why does a long text break?',
    also: 'context window length extend longer extrapolate extrapolation nonsense repetition',
    panel: 'extend',
  },
  { asks: 'How far does the context reach?', also: 'context length maximum tokens factor', panel: 'extend' },
  { asks: 'What does YaRN do?', also: 'scaling context extension', panel: 'extend', set: { scaling: 'yarn' } },
  { asks: 'Is there a bug in my engine?', also: 'slip wrong error mistake output garbage', panel: 'pitfalls' },
  { asks: 'What is wrong with my model?', also: 'bug broken config error file gguf', panel: 'doctor' },
  { asks: 'Which pairing does my model have?', also: 'interleaved halves neox gptj rotate_half', panel: 'pairs' },
  {
    asks: 'Does only the distance count?',
    also: 'relative absolute shift',
    panel: 'check',
    set: { property: 'distance' },
  },
  { asks: 'How do schemes differ?', also: 'ALiBi T5 bias compare distance', panel: 'compare' },
  { asks: 'What are sines and cosines for?', also: 'sinusoidal table embedding', panel: 'sinusoid' },
  {
    asks: 'How does a picture have positions?',
    also: 'image patches vision M-RoPE axial two dimensions',
    panel: 'pictures',
  },
  { asks: 'Why is my cache wrong?', also: 'kv keys stale dynamic', panel: 'kv' },
  { asks: 'What does a real model do?', also: 'heads attention SmolLM sink', panel: 'heads' },
  {
    asks: 'What does a wrong engine cost?',
    also: 'nats loss perplexity live model letter slip break',
    panel: 'live',
  },
  { asks: 'How do I teach this?', also: 'class lesson student tour', panel: 'tour' },
]
