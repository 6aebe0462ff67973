// The article: its figures hold what its sentences say, and the numbers that stand in them as words.
import { readFileSync } from 'node:fs'
import { load, type Engine } from 'posenc'
import { beforeAll, describe, expect, it } from 'vitest'
import * as article from '../src/article/numbers'
import { model } from '../src/compute/heads'

let engine: Engine
beforeAll(async () => {
  engine = await load()
})
const text = readFileSync(new URL('../src/panels/Article.svelte', import.meta.url), 'utf8').replace(/\s+/g, ' ')
const prose = text
  .slice(text.indexOf('<article'), text.indexOf('</article>'))
  .replace(/<Correction.*?<\/Correction>|{#snippet.*?{\/snippet}|{@render.*?}\B|<[^>]*>/g, ' ')

describe('figures', () => {
  it('1: no order changes what a word receives, until places are told', () => {
    const first = [false, true].map(placed => article.bag(engine, article.orders[0], placed))
    for (const order of article.orders.slice(1)) {
      expect([...order].sort()).toEqual([0, 1, 2, 3, 4])
      expect(article.apart(first[0], article.bag(engine, order, false))).toBeLessThan(1e-12)
      expect(article.apart(first[1], article.bag(engine, order, true))).toBeGreaterThan(0.01)
    }
  })
  it('2: a count keeps its meaning, a fraction its range', () => {
    for (const count of [10, 64]) {
      const { counted, divided } = article.rulers(engine, count)
      expect(counted).toEqual([...Array(count).keys()])
      expect(divided[4]).toBeCloseTo(4 / (count - 1), 15)
      expect(divided.at(-1)).toBeCloseTo(1, 15)
    }
  })
  it('3: a hand is below the middle where its digit is 1', () => {
    for (let p = 0; p < 16; p++)
      for (const value of article.values) {
        const { x, y } = article.hand(engine, value, p)
        const angle = (Math.atan2(y, x) + 2 * Math.PI + 1e-9) % (2 * Math.PI)
        expect(angle >= Math.PI).toBe(Math.floor(p / value) % 2 === 1)
      }
  })
  it('4: the hump of positions knows the distance alone, and words are beside it', () => {
    const at = (m: number, n: number, words = false) => article.products(engine, m, words)[n]
    expect(at(40, 33)).toBeCloseTo(at(107, 100), 10)
    expect(at(40, 40)).toBeCloseTo(article.read_width / 2, 10)
    expect(Math.abs(at(40, 33, true) - at(107, 100, true))).toBeGreaterThan(1)
  })
  it('5: every rule has one number along a diagonal, and hides what lies ahead', () => {
    const n = article.rule_count
    for (const name of ['shaw', 't5', 'alibi'] as const) {
      const map = article.rule(engine, name)
      for (let i = 1; i < n; i++)
        for (let j = 1; j < n; j++)
          if (j > i) expect(map[i * n + j]).toBe(-Infinity)
          else expect(map[i * n + j]).toBeCloseTo(map[(i - 1) * n + j - 1], 12)
    }
    const [shaw, t5, alibi] = (['shaw', 't5', 'alibi'] as const).map(name => article.rule(engine, name))
    const row = (map: Float64Array, distance: number) => map[(n - 1) * n + n - 1 - distance]
    expect([row(shaw, 0), row(shaw, 15), row(shaw, 16), row(shaw, 40)].map(Math.round)).toEqual([16, 1, 0, 0])
    expect([row(t5, 3), row(t5, 15), row(t5, 40)]).toEqual([3, 15, 23])
    expect(row(alibi, 10)).toBe(-5)
  })
  it('6: both words moved leave the score, and 27 places score as 3', () => {
    const score = (m: number, n: number) => {
      const [q, k] = [article.arrow(engine, m), article.arrow(engine, n)]
      return article.dot([q.x, q.y], [k.x, k.y])
    }
    expect(score(9, 6)).toBeCloseTo(0.70710678, 8)
    expect(score(49, 46)).toBeCloseTo(score(9, 6), 12)
    expect(score(33, 6)).toBeCloseTo(score(9, 6), 12)
  })
  it('7: false peaks vanish as dials are added', () => {
    const rows: Record<number, number[]> = {
      1: [1, 0.54, -0.416, 0.96, -0.839, 1.0, 0.862],
      2: [1, 0.77, 0.292, 0.98, 0.08, 1.0, 0.931],
      4: [1, 0.885, 0.644, 0.976, 0.502, 0.552, 0.906],
      8: [1, 0.936, 0.797, 0.816, 0.483, 0.588, 0.663],
      32: [1, 0.966, 0.884, 0.736, 0.658, 0.598, 0.559],
    }
    for (const many of article.dials) {
      const curve = article.several(engine, many)
      ;[0, 1, 2, 6, 10, 44, 100].forEach((distance, i) =>
        expect(Math.abs(curve[distance] - rows[many][i])).toBeLessThan(6e-4),
      )
    }
    expect(article.again(article.several(engine, 2)).distance).toBe(44)
    expect(article.again(article.several(engine, 32)).score).toBeLessThan(0.8)
  })
  it('8: a cure leaves no new angle at twice the length, or fewer', () => {
    const unseen = (way: article.Way) => article.board(engine, way, 2).unseen.length
    expect(unseen('default')).toBe(12)
    expect([unseen('linear'), unseen('yarn')]).toEqual([0, 0])
    expect(article.board(engine, 'linear', 2).frequencies[0]).toBeCloseTo(0.5, 12)
    for (const way of ['ntk', 'ntk_by_parts', 'yarn'] as const)
      expect(article.board(engine, way, 2).frequencies[0]).toBeCloseTo(1, 12)
    expect(article.measured().map(curve => curve.name)).toEqual(expect.arrayContaining([...article.ways]))
  })
})

describe('sentences', () => {
  it('hold the numbers that they write out', () => {
    const said = article.told(engine)
    expect([said.llama_turned, said.last_bucket, 1 / said.slopes.at(-1)!]).toEqual([46, 113, 256])
    expect(said.llama_slowest).toBeCloseTo(0.473, 3)
    expect(Math.round((2 * Math.PI) / said.llama_slowest)).toBe(13) // a thirteenth of a turn
    expect((5000 * said.llama_slowest) / 4096).toBeGreaterThan(said.llama_slowest)
    expect(said.first_wave).toBeCloseTo(6.283, 3)
    expect(Math.round(said.last_wave)).toBe(60611)
    expect(said.nope).toBeCloseTo(0.616, 3)
    expect(said.within.yarn - said.within.default).toBeCloseTo(0.016, 3)
    expect(said.beyond.yarn).toBeLessThan(0.5 * said.beyond.default)
    expect(model.head_dim / 2).toBe(32)
  })
  it('are the length of an article', () => {
    const words = prose.split(/\s+/).filter(word => /\w/.test(word)).length
    expect(words).toBeGreaterThan(2000)
    expect(words).toBeLessThan(3000)
  })
})
