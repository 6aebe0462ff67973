// The panels whose numbers one types oneself: their tensors and commands, as the page offers them, against what it shows.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assert, close, settled } from './run.mjs'

const command = process.env.POSENC_COMMAND || fileURLToPath(new URL('../../build/release/posenc', import.meta.url))

// What a figure exports as JSON: its rows.
async function rows(page, name) {
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
    await page.goto(page.url().replace(/#.*/, hash))
    await settled(page)
    for (const button of await page.locator('.tensors button').all()) {
      const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
      await download.saveAs(join(folder, download.suggestedFilename()))
    }
    const text = await page.locator('.reproduce pre').first().textContent()
    for (const line of text.replaceAll('\\\n', ' ').split('\n')) {
      if (line.startsWith('#')) continue
      assert(line.startsWith('posenc '), `${line} is no command of ours`)
      execFileSync('bash', ['-c', `${command}${line.slice(6)}`], { cwd: folder })
      await after(line)
    }
  }
  const within = by => {
    assert(by < 1e-9, `${by} apart`)
    return `${by.toExponential(1)} apart`
  }

  for (const view of ['', '&pairing=interleaved&m=70&channels=8&seed=3&x=-1.2'])
    await check(`pairs${view}: the printed commands give vector and matrix`, async () => {
      await type(`#/pairs?v=1${view}`)
      const shown = await rows(page, 'One matrix')
      const y = shown.filter(([of]) => of === 'y').map(row => row[3])
      const matrix = shown.filter(([of]) => of.startsWith('R at')).map(row => row[3])
      const columns = at('columns.npy')
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
  for (const view of ['', '&scaled=0&m=77&probes=1,2,300&d=32&theta=500'])
    await check(`added${view}: the printed commands give its lengths`, async () => {
      await type(`#/added?v=1${view}`)
      const shown = await rows(page, 'Length and direction')
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
    await page.goto(page.url().replace(/#.*/, '#/pictures?v=1&tall=3&wide=5'))
    await settled(page)
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
      await page.goto(page.url().replace(/#.*/, `#/pitfalls?v=1&pitfall=${slip}`))
      await settled(page)
      assert(!/^0$/.test(await page.textContent('.score output')), `${slip}: no difference`)
      assert((await page.locator('.told dd').count()) === 4, `${slip} is not told`)
    }
  })
  await check('these panels without a complaint on the console', () => quiet(page))
  await page.context().close()
  rmSync(folder, { recursive: true })
}
