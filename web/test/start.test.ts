// The numbers of the first screen, as its story tells them.
import { beforeAll, describe, expect, it } from 'vitest'
import { load, type Engine } from 'posenc'
import { told } from '../src/article/numbers'
import * as start from '../src/compute/start'
import { beatAt, beats, lasts, opening, scenes } from '../src/scenes/film'
import { defaults, fields } from '../src/state/link'

let engine: Engine
beforeAll(async () => {
  engine = await load()
})

describe('scene 1', () => {
  const of = (position: boolean) => {
    const [before, after] = [start.inOrder, start.swappedOrder].map(order => start.mixture(engine, position, order).out)
    return start.differing(before, after)
  }
  it('changes no bit where nothing tells the order', () => expect(of(false)).toEqual({ bits: 0, of: 256 }))
  it('changes bits with positions', () => expect(of(true).bits).toBeGreaterThan(50))
  it('counts bits', () => expect(start.differing(Float32Array.of(1, -2), Float32Array.of(1, 2)).bits).toBe(1))
})

describe('scene 2', () => {
  it('scores 0.7071 at distance 3, wherever, and at 27', () => {
    for (const [m, n] of [
      [9, 6],
      [49, 46],
      [27, 0],
    ])
      expect(start.hands(engine, m, n).score).toBeCloseTo(0.7071067811865476, 12)
  })
  it('turns 15 degrees a place', () => {
    const { angles } = start.hands(engine, 9, 6)
    expect((angles[0] * 180) / Math.PI).toBeCloseTo(135, 10)
    expect((angles[1] * 180) / Math.PI).toBeCloseTo(90, 10)
  })
})

describe('scene 3', () => {
  it.each([
    [1, [1, 0.54, -0.416, 0.96, -0.839, 1, 0.862]],
    [2, [1, 0.77, 0.292, 0.98, 0.08, 1, 0.931]],
    [4, [1, 0.885, 0.644, 0.976, 0.502, 0.552, 0.906]],
    [8, [1, 0.936, 0.797, 0.816, 0.483, 0.588, 0.663]],
    [32, [1, 0.966, 0.884, 0.736, 0.658, 0.598, 0.559]],
  ])('%i dials', (dials, want) => {
    const curve = start.curve(engine, dials)
    const seen = [0, 1, 2, 6, 10, 44, 100].map(distance => Number(curve[distance].toFixed(3)))
    expect(seen).toEqual(want)
    expect(Math.max(...curve)).toBe(curve[0])
  })
})

describe('scene 4', () => {
  it('46 of 64 dials of Llama 2 made a full turn, the slowest 0.473 rad', () => {
    const { full, pairs, slowest, fresh } = start.stretchedDials(engine, 1, false)
    expect([full, pairs, fresh]).toEqual([46, 64, 0])
    expect(slowest.seen).toBeCloseTo(0.473, 3)
  })
  it('the others leave their arcs in a longer text, and YaRN brings them back', () => {
    for (const times of [2, 3.5, 8]) {
      expect(start.stretchedDials(engine, times, false).fresh).toBe(18)
      const mended = start.stretchedDials(engine, times, true)
      expect(mended.fresh).toBe(0)
      expect(mended.shown[0].now).toBeCloseTo(times * start.llama.trained, 6) // the fastest is left alone
    }
  })
  it('says what a model lost', () => {
    const { trained, tokens, inside, without, with: mended } = start.lost()
    expect([trained, tokens]).toEqual([8192, 16384])
    const { within, beyond } = told(engine) // the Article's
    expect([inside, without, mended]).toEqual([within.default, beyond.default, beyond.yarn])
  })
})

describe('the minute', () => {
  it('lasts sixty seconds and goes through every scene, in order', () => {
    expect(lasts).toBe(60)
    expect(beats.flatMap(beat => beat.set.scene ?? [])).toEqual([...scenes])
  })
  it('says each thing in 22 words or fewer', () => {
    for (const { caption } of beats) expect(caption.split(' ').length, caption).toBeLessThanOrEqual(22)
  })
  it('moves within the ranges of its fields, and ends before its beat does', () => {
    for (const { move, seconds } of beats) {
      if (!move) continue
      expect(move.seconds).toBeLessThan(seconds)
      for (const x of [move.from, move.to]) expect(x).toBeLessThanOrEqual(fields[move.key].most!)
    }
  })
  it('knows its beat at any time', () => {
    expect(beatAt(0)).toEqual({ index: 0, into: 1 })
    expect(beatAt(22)).toEqual({ index: 4, into: 0 })
    expect(beatAt(24.5)).toEqual({ index: 4, into: 0.5 })
    expect(beatAt(999).index).toBe(beats.length - 1)
  })
  it('opens scenes as a bare link does', () => {
    for (const scene of scenes) expect({ ...defaults(), ...opening[scene], scene: 'order' }).toEqual(defaults())
  })
})
