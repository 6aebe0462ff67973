// The doctor: files and logs dropped, findings that lead to their panels, and the printed commands beside what it shows.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { command, compiled } from './reproduce.mjs'
import { assert, close, frame, further, here, settled, show } from './run.mjs'

const data = name => here(`../tests/data/${name}`)
const figures = {
  doctor: 'Findings',
  diff: 'What engines make of it',
  extend: 'Ways to a longer context',
}

// Everything that the panel exports as JSON: its rows by the figure's name.
async function exported(page) {
  await page.keyboard.press('e')
  const buttons = page.locator('.exports button[aria-label$=" as json"]')
  await buttons.first().waitFor()
  const all = {}
  for (const button of await buttons.all()) {
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
    const made = JSON.parse(readFileSync(await download.path(), 'utf8'))
    all[made.figure] = made.rows
    await frame(page) // Chromium drops a download that is asked for while the one before is handed over
  }
  await close(page)
  return all
}

// Several files in one drop.
const give = async (page, ...paths) => {
  await page.evaluate(
    files => {
      const transfer = new DataTransfer()
      for (const { name, text } of files) transfer.items.add(new File([text], name))
      for (const kind of ['dragenter', 'dragover', 'drop'])
        document
          .querySelector('main .stage')
          .dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }))
    },
    paths.map(path => ({ name: basename(path), text: readFileSync(path, 'utf8') })),
  )
  await page.waitForFunction(
    names => names.every(name => [...document.querySelectorAll('main select')].some(e => e.textContent.includes(name))),
    paths.map(path => basename(path)),
  )
  await settled(page)
}
const stage = page => page.textContent('main .stage')
const ready = async page => {
  await page.waitForFunction(() => document.querySelector('main .verdict')?.textContent)
  await further(page)
}

// What `posenc … --json` says of a printed line, in the rows that the page exports.
const told = {
  doctor: ({ findings }) =>
    findings.map(({ finding: f, where, effect, sure }) => [
      ...[f.severity, f.code, f.expected, f.found, f.message, f.cure],
      ...[where, effect, sure],
    ]),
  diff: ({ engines }) => engines.map(e => [e.engine, e.version, e.findings.length, e.refused ?? '']),
  extend: ({ options }) =>
    options
      .filter(o => o.unavailable === null)
      .map(o => [o.name, o.unseen.length, o.fastest_pair, o.middle_pair, o.amplitude, o.logits, Number(o.rerotate)]),
}
const columns = {
  doctor: [0, 1, 3, 4, 5, 6, 8, 9, 10],
  diff: [0, 1, 2, 3],
  extend: [0, 1, 2, 3, 4, 5, 6],
}

async function same(page, folder) {
  const rows = await exported(page)
  const text = (await page.locator('.reproduce pre').first().textContent()).replaceAll('\\\n', ' ')
  for (const line of text.split('\n')) {
    assert(line.startsWith('posenc '), `${line} is no command of ours`)
    const verb = line.split(' ')[1]
    const { stdout, stderr } = spawnSync('bash', ['-c', `${command}${line.slice(6)} --json`], {
      cwd: folder,
      encoding: 'utf8',
    })
    assert(stdout, `${line}: ${stderr}`)
    const said = JSON.parse(stdout)
    if (verb === 'translate') {
      const shown = await page.locator(`section[aria-label="In another engine's words"] pre`).first().textContent()
      const want = typeof said.target === 'string' ? said.target : JSON.stringify(said.target, null, 1)
      assert(shown === want, `${line}: ${shown}, not ${want}`)
      continue
    }
    const shown = (rows[figures[verb]] ?? []).map(each => columns[verb].map(i => each[i]))
    const want = told[verb](said)
    const off = shown.findIndex((each, i) =>
      each.some((x, j) =>
        typeof x === 'number' ? Math.abs(x - want[i]?.[j]) > 1e-9 * Math.abs(x) : x !== want[i]?.[j],
      ),
    )
    assert(shown.length === want.length && off < 0, `${line}: ${shown[off]}, not ${want[off]} (${shown.length} rows)`)
  }
  return text.split('\n').length
}

export async function doctor({ check, open, quiet, url }) {
  const page = await open('doctor')
  await ready(page)
  const folder = mkdtempSync(join(tmpdir(), 'posenc-doctor-'))
  const views = []
  const view = async name => {
    await further(page)
    if (existsSync(command))
      await check(`doctor, ${name}: the printed commands say what it shows`, () => same(page, folder))
    const rows = await exported(page)
    const off = /angles within ([\d.]+) rad/.exec(await stage(page))?.[1]
    const shown = [
      rows.Findings?.length ?? 0,
      ...(rows['What engines make of it']?.map(row => row[2]) ?? []),
      ...(off === undefined ? [] : [Number(off)]),
    ]
    views.push({ name, cpp: await page.locator('.reproduce pre').nth(1).textContent(), shown })
  }
  const dropped = async (...names) => {
    for (const name of names) copyFileSync(data(name), join(folder, basename(name)))
    await give(page, ...names.map(data))
  }
  const before = page.asked.length

  await check('doctor: opens with a file that is broken, and says how', async () => {
    const text = await stage(page)
    assert(/broken-llama-3\.1-8b/.test(text) && /llama3_scaling_missing/.test(text), text.slice(0, 300))
    assert(/rope_scaling/.test(text), 'no cure')
    assert(/First mend the file/.test(text) && !/"rope_type":"default"/.test(text), 'a line hands the fault on')
    assert(/"rope_type":"llama3"/.test(text), 'no line for the mended file')
  })
  await view('as it opens')
  await check('doctor: a dropped file is asked about every engine', async () => {
    await dropped('doctor/deepseek-r1-0528-qwen3-8b.json')
    const text = await stage(page)
    assert(/SGLang 0/.test(text) && /×1\.13863/.test(text), text.slice(0, 300))
  })
  await view('a file')
  await check('doctor: a second one stands beside it, and they change places', async () => {
    await dropped('doctor/llama-3.1-without-scaling.json')
    await page.locator('.controls button', { hasText: 'exchange' }).click()
    await page.waitForFunction(() =>
      document.querySelector('.side caption').textContent.startsWith('llama-3.1-without-scaling.json beside deepseek'),
    )
  })
  await view('two files')
  await check('doctor: another engine, another length, and back by the link', async () => {
    const folded = page.locator('.unfold [aria-expanded=false]:visible')
    if (await folded.count()) await folded.click()
    await page.locator('.controls select').last().selectOption('transformers@4')
    await page.locator('#slide-wanted').focus()
    await page.keyboard.press('ArrowRight')
    const hash = await settled(page)
    assert(/engine=transformers(@|%40)4/.test(hash) && /wanted=/.test(hash), hash)
  })
  await view('for transformers 4')
  await check('doctor: a finding leads to the panel that shows it, with both models', async () => {
    await show(page, '#/doctor?v=1&patient=llama-3.1-8b')
    for (const button of await page.locator('.controls [aria-label^="forget"]').all()) {
      await page.locator('.controls [aria-label^="forget"]').last().click()
      void button
    }
    await show(page, '#/doctor?v=1&patient=llama-3.1-8b&beside=qwen2.5-7b-yarn4')
    await page.locator('.findings button', { hasText: 'Extend' }).first().click()
    const hash = await settled(page)
    assert(hash.startsWith('#/extend') && hash.includes('theta=1000000') && hash.includes('scaling=yarn'), hash)
    const names = await page.locator('.chart svg').first().textContent()
    assert(names.includes('llama-3.1-8b') && names.includes('qwen2.5-7b-yarn4'), names)
  })
  await check('doctor: an option leads to Extend, stretched so', async () => {
    await show(page, '#/doctor?v=1&patient=llama-2-7b&wanted=32768')
    await page.locator('.options button', { hasText: 'linear' }).click()
    const hash = await settled(page)
    assert(/scaling=linear/.test(hash) && /trained=4096/.test(hash) && !/target=/.test(hash), hash)
  })
  await check('doctor: a log beside a model names the line', async () => {
    await show(page, '#/doctor?v=1&patient=llama-3.1-8b')
    await dropped('logs/llama-3.1-without-base.log')
    const text = await stage(page)
    assert(/500000 → 10000/.test(text) && /line 19/.test(text), text.slice(0, 600))
  })
  await view('a log')
  await check('doctor: a command line that is pasted stands beside the model', async () => {
    await show(page, '#/doctor?v=1&patient=llama-3.1-8b')
    await page.locator('.drop summary').click()
    await page.locator('.drop textarea').fill('llama-server -m m.gguf --rope-freq-base 10000')
    await page.locator('.drop textarea').blur()
    const text = await stage(page)
    assert(/500000 → 10000/.test(text), text.slice(0, 600))
  })
  await check('doctor: a Modelfile and printed frequencies are told apart', async () => {
    const pasted = async text => {
      await page.locator('.drop textarea').fill(text)
      await page.locator('.drop textarea').blur()
      await frame(page)
      return await page.locator('.evidence').textContent()
    }
    const modelfile = await pasted('FROM x.gguf\nPARAMETER num_ctx 8192\n')
    assert(/a Modelfile of Ollama/.test(modelfile), modelfile)
    const printed = await pasted('inv_freq: tensor([1.0, 0.8, 0.6, 0.5, 0.4])\n')
    assert(/frequencies, as numbers/.test(printed), printed)
  })
  await check('doctor: what somebody saw is evidence, and in the printed command', async () => {
    await show(page, '#/doctor?v=1&patient=llama-3.1-8b')
    await page.locator('.seen input').fill('nonsense beyond 8k tokens in candle')
    // The command is printed when the page is at rest.
    await page.waitForFunction(
      words => document.querySelector('main').textContent.includes(words),
      "'nonsense beyond 8k tokens in candle'",
    )
    const text = await stage(page)
    assert(/seen_at_scaling/.test(text), text.slice(0, 600))
    await page.locator('.seen input').fill('')
  })
  await check(
    'doctor: the example stands aside of what a visitor tells, and a lost scaling is drawn as meant',
    async () => {
      for (const forget of await page.locator('.controls [aria-label^="forget"]').all()) await forget.click()
      await show(page, '#/doctor')
      await page.locator('.seen input').fill('gibberish after 8k tokens in vllm 0.11')
      await page.waitForFunction(() =>
        document.querySelector('.stage').textContent.includes('The example is set aside'),
      )
      const text = await stage(page)
      assert(!/llama3_scaling_missing|Recommended/.test(text), text.slice(0, 600))
      await page.locator('.seen input').fill('')
      await page.locator('.findings button', { hasText: 'Extend' }).first().click()
      const hash = await settled(page)
      assert(/scaling=llama3/.test(hash) && /target=131072/.test(hash), hash)
      const names = await page.locator('.chart svg').first().textContent()
      assert(/default/.test(names) && /broken-llama-3\.1-8b/.test(names), names)
      await show(page, '#/doctor?v=1&patient=llama-3.1-8b')
    },
  )
  await check('doctor: a broken file is answered with a sentence, and forgotten', async () => {
    const broken = join(folder, 'config.json')
    await page.setInputFiles('main input[type=file]', {
      name: basename(broken),
      mimeType: 'application/json',
      buffer: Buffer.from('{"model_type": '),
    })
    await page.waitForSelector('.refused')
    await page.locator('.controls [aria-label="forget config.json"]').click()
    await frame(page)
    assert((await page.locator('.refused').count()) === 0, 'it is still refused')
  })
  await check('doctor: / finds it', async () => {
    await page.goto(`${url}#/order`)
    await frame(page)
    await page.keyboard.press('/')
    await page.locator('dialog .find').waitFor()
    await page.keyboard.type('doctor')
    await page.keyboard.press('Enter')
    assert((await settled(page)).startsWith('#/doctor'), await settled(page))
  })
  await check('doctor: the printed C++ compiles, and counts what the page lists', () => {
    const made = compiled(
      views.map(each => each.cpp),
      folder,
    )
    if (typeof made === 'string') return `skipped: ${made}`
    views.forEach(({ name, shown }, i) =>
      shown.forEach((x, j) => assert(Math.abs(made[i][j] - x) <= 5e-3 * x, `${name}: ${made[i]}, not ${shown}`)),
    )
    return `${views.length} snippets`
  })
  await check('doctor: no file leaves the page', () => {
    const others = page.asked.slice(before).filter(asked => !asked.startsWith(`${url}assets/`) && asked !== url)
    assert(others.length === 0, others.join(' '))
  })
  await check('doctor: drops without a complaint on the console', () => quiet(page))
  await page.context().close()
  rmSync(folder, { recursive: true })
}
