// Tensors and commands, as the panels offer them, run, and their C++ compiled: against what the page shows.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, compiled } from './reproduce.mjs'
import { assert, close, further, show } from './run.mjs'

// What a figure exports as JSON: its rows.
async function rows(page, name) {
  await further(page)
  await page.keyboard.press('e')
  const button = page.locator(`.exports button[aria-label^="${name}"][aria-label$=" as json"]`).first()
  await button.waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
  const made = JSON.parse(readFileSync(await download.path(), 'utf8'))
  await close(page)
  return made.rows
}

function array(path) {
  const file = readFileSync(path)
  const head = 10 + file.readUInt16LE(8)
  const shape = /'shape': \(([^)]*)\)/
    .exec(file.toString('latin1', 10, head))[1]
    .split(',')
    .filter(Boolean)
    .map(Number)
  const wide = shape.at(-1)
  const all = new Float64Array(new Uint8Array(file.subarray(head)).buffer)
  return Array.from({ length: all.length / wide }, (_, i) => [...all.subarray(i * wide, (i + 1) * wide)])
}

function apart(ours, theirs) {
  assert(ours.length === theirs.length, `${ours.length} numbers, ${theirs.length} printed`)
  return Math.max(...ours.map((x, i) => Math.abs(x - theirs[i])))
}
const norm = x => Math.hypot(...x)
const column = (rows, i) => rows.map(row => row[i])

// What each panel shows, row by row as its command writes it and its C++ prints it: `at` reads a tensor, `rows` a figure.
const shows = {
  sinusoid: {
    views: ['length=40&d=16', 'length=9&d=12&layout=concatenated&theta=500'],
    numbers: async ({ rows, at }) => [
      (await rows('Position vectors')).flatMap(row => row.slice(1)),
      at('rows.npy').flat(),
    ],
  },
  clocks: {
    most: 1e-7, // its hands are floats
    views: ['m=77&d=24', 'm=5&d=20&theta=300'],
    numbers: async ({ rows, at }) => [
      (await rows('The same positions as cosines')).flatMap(row => row.slice(1).reverse()),
      at('rows.npy').flatMap(row => row.filter((_, i) => i % 2)),
      printed => printed.filter((_, i) => i % 2),
    ],
  },
  vectors: {
    views: [
      'd=16',
      'd=24&sign=-1&pairing=interleaved&probes=3,70,71&seed=9&theta=500',
      'd=8&content=equal&probes=4,5,6',
    ],
    numbers: async ({ rows, at, page }) => {
      const places = await page.$$eval('.controls fieldset input.number', all => all.map(e => e.value))
      const shown = []
      for (const p of places) shown.push(...column(await rows(`Position ${p}`), 1))
      return [shown, at('rotated.npy').flat()]
    },
  },
  rotate: {
    views: ['', 'angle=-2.31&then=-0.6&x=-1.4&y=0.33'],
    numbers: async ({ rows, at }) => {
      const [[, ...v], ...moved] = await rows('A vector, rotated')
      const twice = moved.find(([name]) => name.includes('ψ')).slice(1)
      assert(apart([...v, ...twice], [...at('undone.npy')[3], ...at('twice.npy')[1]]) < 1e-9, 'it is not undone')
      return [(await rows('RoPE: the same vector')).flatMap(row => row.slice(1)), at('rotated.npy').flat()]
    },
  },
  waves: {
    views: ['', 'm=70&amplitude=1.4&frequency=2.13&phase=-1.1'],
    numbers: async ({ rows, at }) => [
      (await rows('The wave')).slice(0, 32).flatMap(([, sine, cosine]) => [cosine, sine]),
      at('rotated.npy').flat(),
    ],
  },
  kv: {
    views: ['', 'policy=turned&arrived=90', 'policy=unrotated&scaling=yarn', 'scaling=longrope&theta=500000&d=32'],
    numbers: async ({ rows, at, page }) => {
      const j = (await page.textContent('.side [data-name=j]')).replaceAll(',', '')
      const i = column(await rows('How far off'), 0).indexOf(+j)
      return [[(await rows('What the newest token sees'))[i][2]], [at('logits.npy')[0][0]]]
    },
  },
  learned: {
    views: ['m=100&n=70'],
    numbers: async ({ rows, at }) => {
      const [a, b] = at('rows.npy')
      const cosine = a.reduce((sum, x, i) => sum + x * b[i], 0) / norm(a) / norm(b)
      const [, shown] = (await rows('How alike position 100'))[70]
      assert(Math.abs(cosine - shown) < 1e-6, `${cosine}, not ${shown}`)
      return [
        [...a, ...b],
        [...a, ...b],
      ]
    },
  },
  start: {
    views: ['scene=rotate&moved=5&alone=1', 'scene=dials&waves=8'],
    numbers: async ({ at, page }) => {
      await page.locator('.guesses button', { hasText: 'next' }).waitFor() // answered: its number stands there
      const shown = Number((await page.textContent('.scene .number')).replace('−', '-'))
      const score = Math.sqrt(at('q.npy')[0].length) * at('logits.npy')[0][0]
      assert(Math.abs(score - shown) < 6e-4, `${score}, not ${shown}`)
      return [[score], [score]]
    },
  },
  rope: {
    views: [
      'm=40&n=3',
      'm=9&n=6&dials=one&arrows=unit&lock=1',
      'm=50&n=6&dials=all&arrows=opposite',
      'm=7&n=4&dials=one&pair=2&seed=3&pairing=interleaved',
      'm=9&n=90&content=equal&scaling=yarn&trained=4096&pairing=interleaved&theta=1000000',
    ],
    numbers: async ({ at, page }) => {
      const shown = Number((await page.textContent('.score output')).replace('−', '-'))
      const logit = at('logits.npy')[0][0]
      assert(Math.abs(8 * logit - shown) < 1e-5 * Math.abs(shown), `${8 * logit}, not ${shown}`)
      return [[8 * logit], [8 * logit]]
    },
  },
  heads: {
    views: ['m=40&n=39', 'head=2&away=20000&m=32&n=20&scaling=yarn'],
    numbers: async ({ at, page }) => {
      const shown = Number((await page.textContent('.score output')).replace('−', '-'))
      const logit = at('logits.npy')[0][0]
      assert(Math.abs(logit - shown) < 1e-5 * Math.abs(shown), `${logit}, not ${shown}`)
      return [[logit], [logit]]
    },
  },
  pairs: { views: ['', 'pairing=interleaved&m=70&channels=8&seed=3&x=-1.2'] },
  added: { views: ['', 'scaled=0&m=77&probes=1,2,300&d=32&theta=500'] },
}
// Their tensors are the reader's own.
const open_ended = {
  start: ['', 'position=1'],
  order: ['', 'position=1&scheme=sinusoidal', 'position=1&scheme=alibi&causal=1'],
  compare: ['', 'scheme=fire', 'scheme=cope&tokens=different', 'scheme=forgetting', 'scheme=learned'],
  check: ['', 'scheme=alibi&property=bounded', 'scheme=sinusoidal&property=unique'],
  pictures: [''],
  pitfalls: ['padding', 'values', 'pairing', 'factor', 'offset', 'scale'].map(slip => `pitfall=${slip}`),
}

export async function printed({ check, open, quiet }) {
  if (!existsSync(command)) {
    console.log(`skip  the printed commands: there is no ${command}`)
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'posenc-'))
  const page = await open('pairs')
  const at = name => array(join(folder, name))
  // `after` is called after each line of the command, with the line.
  async function type(hash, after = () => {}) {
    await show(page, hash)
    // Its table is fetched.
    if (hash.startsWith('#/learned'))
      await page.waitForFunction(() => /needs row/.test(document.querySelector('.refusal').textContent))
    // Tensors are offered beside the code, which is folded; unfolded, it stays so.
    const folded = page.locator('.unfold [aria-expanded=false]:visible')
    if (await folded.count()) await folded.click()
    await page.evaluate(() => document.querySelectorAll('details:has(.reproduce)').forEach(e => (e.open = true)))
    for (const button of await page.locator('.tensors button').all()) {
      const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
      await download.saveAs(join(folder, download.suggestedFilename()))
    }
    const text = await page.locator('.reproduce pre').first().textContent()
    for (const line of text.replaceAll('\\\n', ' ').split('\n')) {
      if (line.startsWith('#')) continue
      assert(line.startsWith('posenc '), `${line} is no command of ours`)
      execFileSync('bash', ['-c', `${command}${line.slice(6)}`], { cwd: folder, stdio: 'pipe' })
      await after(line)
    }
  }
  const within = (by, most = 1e-9) => {
    assert(by < most, `${by} apart`)
    return `${by.toExponential(1)} apart`
  }

  const snippets = []
  const cpp = () => page.locator('.reproduce pre').nth(1).textContent()
  for (const [id, { views, numbers, most }] of Object.entries(shows))
    for (const view of numbers ? views : [])
      await check(`${id}, ${view || 'as it opens'}: the printed commands give what it shows`, async () => {
        await type(`#/${id}?v=1&${view}`)
        const [shown, made, told = x => x] = await numbers({ page, at, rows: name => rows(page, name) })
        snippets.push({ name: `${id}, ${view}`, text: await cpp(), shown, told })
        return within(apart(shown, made), most)
      })
  await check('learned: beyond the table the printed command refuses as the panel does', async () => {
    const why = await type('#/learned?v=1&m=600').catch(error => error.message)
    const said = await page.textContent('.refusal')
    const [, told] = /posenc: (.*)/.exec(why) ?? []
    assert(told && said.includes(told), `${why}, not ${said}`)
  })

  for (const view of ['', '&swapped=1&position=1'])
    await check(`start${view}: the printed command gives what attention gives the word`, async () => {
      await type(`#/start?v=1${view}`)
      const shown = column(await rows(page, 'What attention gives'), 2)
      return within(apart(shown, at('out.npy')[2]), 1e-6) // its floats
    })
  for (const view of shows.pairs.views.map(view => view && '&' + view))
    await check(`pairs${view}: the printed commands give vector and matrix`, async () => {
      await type(`#/pairs?v=1${view}`)
      const shown = await rows(page, 'One matrix')
      const y = shown.filter(([of]) => of === 'y').map(row => row[3])
      const matrix = shown.filter(([of]) => of.startsWith('R at')).map(row => row[3])
      const columns = at('columns.npy')
      snippets.push({ name: `pairs${view}`, text: await cpp(), shown: y, told: x => x })
      return within(
        Math.max(
          apart(y, at('y.npy')[0]),
          apart(
            matrix,
            columns.flatMap((_, i) => columns.map(c => c[i])),
          ),
        ),
      )
    })
  for (const view of shows.added.views.map(view => view && '&' + view))
    await check(`added${view}: the printed commands give its lengths`, async () => {
      await type(`#/added?v=1${view}`)
      const shown = await rows(page, 'Length and direction')
      const [, sum, , rotated] = shown.at(-1) // m's own
      const halves = all => [all.slice(0, all.length / 2), all.slice(all.length / 2)].map(norm)
      snippets.push({ name: `added${view}`, text: await cpp(), shown: [sum, rotated], told: halves })
      return within(
        Math.max(
          apart(
            shown.map(row => row[1]),
            at('sums.npy').map(norm),
          ),
          apart(
            shown.map(row => row[3]),
            at('rotated.npy').map(norm),
          ),
        ),
      )
    })
  for (const [view, patch] of [
    ['m=17', 17],
    ['m=9&tall=3&wide=5&d=32', 9],
  ])
    await check(`pictures, ${view}: the printed commands give each map`, async () => {
      const made = []
      await type(`#/pictures?v=1&${view}`, line => line.includes('attend') && made.push(at('logits.npy')[patch]))
      const names = ['RoPE on', 'Axial', 'Mixed', 'M-RoPE: ']
      let most = 0
      for (const [i, name] of names.entries())
        most = Math.max(
          most,
          apart(
            (await rows(page, name)).flatMap(([, ...row]) => row),
            made[i],
          ),
        )
      return within(most)
    })
  await check('pictures: the positions of a sentence with a picture are those of posenc positions', async () => {
    await show(page, '#/pictures?v=1&tall=3&wide=5')
    await further(page)
    const table = page.locator('figure', { hasText: 'where the tokens of a sentence' }).locator('tbody tr')
    const shown = await Promise.all(
      (await table.all()).map(async row => (await row.locator('td').allTextContents()).map(Number)),
    )
    const ids = [1, 2, 3, ...Array(15).fill(151655), 4, 5].join(',')
    const out = execFileSync(command, ['positions', '--ids', ids, '--image_grid', '1,3,5', '--merge', '1', '--json'])
    const all = JSON.parse(out).positions.map(([row]) => row)
    const want = all.map(axis => [0, 1, 2, 3, 7, 8, 17, 18, 19].map(token => axis[token]))
    assert(JSON.stringify(shown) === JSON.stringify(want), `${JSON.stringify(shown)}, not ${JSON.stringify(want)}`)
  })
  await check('pitfalls: the words of every slip, and a difference', async () => {
    for (const slip of ['padding', 'values', 'pairing', 'factor', 'offset', 'scale']) {
      await show(page, `#/pitfalls?v=1&pitfall=${slip}`)
      assert(!/^0$/.test(await page.textContent('.score output')), `${slip}: no difference`)
      assert((await page.locator('.told dd').count()) === (slip === 'values' ? 4 : 5), `${slip} is not told`)
    }
  })
  await check('the printed C++ compiles, and gives what the panels show', async () => {
    const others = []
    for (const [id, views] of Object.entries(open_ended))
      for (const view of views) {
        await show(page, `#/${id}?v=1&${view}`)
        others.push(await cpp())
      }
    const made = compiled(
      snippets.map(({ text }) => text),
      folder,
      others,
    )
    if (typeof made === 'string') return `skipped: ${made}`
    snippets.forEach(({ name, shown, told }, i) => {
      const numbers = told(made[i])
      assert(numbers.length === shown.length, `${name}: ${shown.length} numbers, ${numbers.length} printed`)
      const wrong = numbers.findIndex((x, j) => !(Math.abs(x - shown[j]) <= 1e-5 * (1 + Math.abs(shown[j]))))
      assert(wrong < 0, `${name}: ${numbers[wrong]}, not ${shown[wrong]}`)
    })
    return `${snippets.length} snippets run, ${others.length} compiled`
  })
  await check('these panels without a complaint on the console', () => quiet(page))
  await page.context().close()
  rmSync(folder, { recursive: true })
}
