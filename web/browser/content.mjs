// Schemes that read the content: compared, checked, and the numbers of the page beside those of the command it prints.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { command } from './reproduce.mjs'
import { assert, close, settled, show } from './run.mjs'

const schemes = ['fire', 'cope', 'forgetting', 'stick_breaking', 'wall', 'path', 'grape_ap']

// What the page offers of its first map, [query][key]; NaN where a key is hidden.
async function numbers(page) {
  await page.keyboard.press('e')
  const button = page.locator('.exports button[aria-label$=" as json"]').first()
  await button.waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
  const chunks = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk)
  await close(page)
  return JSON.parse(Buffer.concat(chunks).toString()).rows.map(([, ...row]) =>
    row.map(x => (x === null ? NaN : Number(x))),
  )
}

// What the printed command computes: [query][key] of its logits or its weights.
function printed(text, column, length) {
  const words = text.replaceAll('\\\n', ' ').trim().split(/\s+/)
  assert(words[0] === 'posenc', `${words[0]} is no command of ours`)
  const csv = execFileSync(command, [...words.slice(1), '--csv', '-'], { encoding: 'utf8', cwd: tmpdir() })
  const rows = Array.from({ length }, () => Array(length).fill(NaN))
  for (const line of csv.trim().split('\n').slice(1)) {
    const [panel, key, query, logit, weight] = line.split(',')
    const value = { logits: logit, weights: weight }[column]
    if (panel === column && value !== '') rows[query][key] = Number(value)
  }
  return rows
}

function apart(ours, theirs) {
  let most = 0
  ours.forEach((row, i) =>
    row.forEach((x, j) => {
      const y = theirs[i][j]
      if (Number.isFinite(x) || Number.isFinite(y))
        most = Math.max(most, Number.isFinite(x - y) ? Math.abs(x - y) : 1e9)
    }),
  )
  return most
}

export async function content({ check, open, quiet }) {
  const page = await open('compare?v=1&length=24&d=32&seed=3')
  const map = name => page.locator(`[aria-label^="${name}"]`)
  await check('compare: those that read the content are chosen beside each other', async () => {
    await page.selectOption('.pick select', 'cope')
    await page.locator('.beside button').click()
    const beside = page.locator('.choice input[type=checkbox]:checked')
    // The page compares four at once.
    for (const chosen of [
      ['wall', 'path', 'grape_ap'],
      ['fire', 'forgetting', 'stick_breaking'],
    ]) {
      while (await beside.count()) await beside.first().uncheck()
      for (const name of chosen) await page.locator(`.choice [data-scheme=${name}]`).click()
      await settled(page)
      for (const name of chosen) assert((await map(name).count()) > 0, `the map of ${name} is missing`)
      assert((await page.locator('.here tr').count()) === chosen.length + 1, 'a row is missing')
    }
    return (await page.locator('.shift').allTextContents()).map(text => text.trim().slice(0, 60)).join(' | ')
  })
  await check('compare: keys of the future are refused in the words of the library', async () => {
    await show(page, '#/compare?v=1&length=24&scheme=forgetting&future=1&with=')
    assert(/mask must be causal/.test(await page.textContent('.shift')), await page.textContent('.shift'))
  })
  if (existsSync(command)) {
    const others = ['rope', 'sinusoidal', 'learned', 't5', 'shaw', 'alibi']
    for (const name of [...schemes, ...others])
      for (const view of ['tokens=alike', 'tokens=different&scores=weights&head=2', 'content=equal&future=1']) {
        if (view.includes('future') && schemes.includes(name) && name !== 'fire') continue
        await check(`compare: ${name}, ${view}: the printed command gives the numbers of the page`, async () => {
          await show(page, `#/compare?v=1&length=20&d=16&seed=5&scheme=${name}&${view}&with=`)
          const text = await page.locator('.reproduce pre').first().textContent()
          const by = apart(await numbers(page), printed(text, view.includes('weights') ? 'weights' : 'logits', 20))
          assert(by < 1e-9, `${by} apart: ${text}`)
          return `${by.toExponential(1)} apart`
        })
      }
  } else console.log(`skip  the printed commands: there is no ${command}`)
  await check('compare: no complaint on the console', () => quiet(page))
  await check('check: each has a verdict for every property', async () => {
    await show(page, '#/check?v=1&scheme=cope&property=between')
    assert(/✗ no/.test(await page.textContent('.case h2')), await page.textContent('.case'))
    const names = await page.locator('thead th').allTextContents()
    for (const name of schemes) assert(names.includes(name), `${name} has no column`)
    const cells = await page.locator('tbody button').allTextContents()
    assert(cells.length % names.length === 0 && cells.every(text => text.trim()), 'a cell is empty')
    assert(/--scheme cope/.test(await page.locator('.reproduce pre').first().textContent()), 'another command')
  })
  await check('check: FIRE depends on where the query stands, from its 512th token on', async () => {
    await show(page, '#/check?v=1&scheme=fire&property=distance')
    assert(/✗ no/.test(await page.textContent('.case h2')), await page.textContent('.case'))
    return (await page.textContent('.case p')).trim()
  })
  await check('check: button, command and C++ are of the cell chosen', async () => {
    await show(page, '#/check?v=1&scheme=alibi&property=bounded')
    assert(/Compare/.test(await page.textContent('.case button')), await page.textContent('.case button'))
    const [cli, cpp] = await page.locator('.reproduce pre').allTextContents()
    assert(/--scheme alibi/.test(cli) && /Alibi{/.test(cpp), `${cli} ${cpp}`)
  })
  await check('check: no complaint on the console', () => quiet(page))
  await page.context().close()
}
