// The first screen by itself, in a minute: what is set when, and the words under it. A beat lasts `seconds`; `move` runs through it.
import type { Values } from '../state/link'

export type Beat = {
  seconds: number
  set: Partial<Values>
  move?: { key: 'moved' | 'times'; from: number; to: number; seconds: number }
  caption: string
}
export const scenes = ['order', 'rotate', 'dials', 'long'] as const
export type Scene = (typeof scenes)[number]

// What each scene is opened with: the film begins it so, and so does who asks again.
export const opening: Record<Scene, Partial<Values>> = {
  order: { scene: 'order', swapped: false, position: false },
  rotate: { scene: 'rotate', moved: 0, alone: false },
  dials: { scene: 'dials', waves: 1 },
  long: { scene: 'long', times: 1, yarn: false },
}

export const beats: Beat[] = [
  {
    seconds: 5,
    set: opening.order,
    caption: 'Attention mixes what words say. It does not see where they stand.',
  },
  {
    seconds: 6,
    set: { swapped: true },
    caption: 'Dog and man change places. What “bit” receives is the same to the last digit. Who bit whom is lost.',
  },
  {
    seconds: 5,
    set: { position: true },
    caption: 'Each word is told its position, and the two sentences differ. How is it told?',
  },
  {
    seconds: 6,
    set: opening.rotate,
    caption:
      'Each place turns a word’s hand by 15°. Two equal words score the cosine of the angle between their hands.',
  },
  {
    seconds: 7,
    set: {},
    move: { key: 'moved', from: 0, to: 40, seconds: 5 },
    caption: 'Both words move on. Both hands turn alike, and the score stands still: only the distance counts.',
  },
  {
    seconds: 5,
    set: { moved: 0, alone: true },
    move: { key: 'moved', from: 0, to: 9, seconds: 3.5 },
    caption: 'One word moves alone. The angle changes, and so does the score.',
  },
  {
    seconds: 5,
    set: opening.dials,
    caption: 'The fastest dial of a real head turns 1 radian a place. After 44 places its score is at the top again.',
  },
  { seconds: 1.5, set: { waves: 2 }, caption: 'Average many dials of different speeds, and the false peaks sink.' },
  { seconds: 1.5, set: { waves: 4 }, caption: 'Average many dials of different speeds, and the false peaks sink.' },
  { seconds: 1.5, set: { waves: 8 }, caption: 'Average many dials of different speeds, and the false peaks sink.' },
  { seconds: 2.5, set: { waves: 32 }, caption: 'Average many dials of different speeds, and the false peaks sink.' },
  {
    seconds: 4,
    set: opening.long,
    caption: 'Llama 2 was trained on texts of 4,096 tokens. Its slow hands saw a small arc of their dials.',
  },
  {
    seconds: 6,
    set: {},
    move: { key: 'times', from: 1, to: 8, seconds: 4.5 },
    caption: 'Longer texts take them to angles never seen. There the model reads nonsense.',
  },
  {
    seconds: 4,
    set: { yarn: true },
    caption: 'YaRN slows the slow hands, and leaves the fast ones alone. Now it is yours to touch.',
  },
]
export const lasts = beats.reduce((sum, beat) => sum + beat.seconds, 0)

// The beat at a time, and how far its motion has come, 0 to 1.
export function beatAt(time: number): { index: number; into: number } {
  let before = 0
  for (const [index, { seconds, move }] of beats.entries()) {
    if (time < before + seconds || index === beats.length - 1)
      return { index, into: move ? Math.min(1, Math.max(0, (time - before) / move.seconds)) : 1 }
    before += seconds
  }
  return { index: 0, into: 0 }
}
