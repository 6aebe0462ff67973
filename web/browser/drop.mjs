// Real configurations, dropped on the panel that reads them and picked there: all of them are read, none leaves.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { command, compiled, same, wavelengths } from './reproduce.mjs'
import { assert, frame, here, settled, show } from './run.mjs'

export async function drop({ check, open, quiet, url }, entries) {
  if (!entries.includes('extend')) return console.log('skip  drop: there is no panel extend')
  const page = await open('extend')
  const folders = [here('../tests/data/zoo'), here('../models')]
  const files = folders.flatMap(folder =>
    readdirSync(folder)
      .filter(name => name.endsWith('.json') && name !== 'index.json')
      .map(name => `${folder}/${name}`),
  )
  await page.waitForFunction(() => document.querySelectorAll('main .pick option').length > 10) // the reader is there
  const stage = () => page.textContent('main')
  const before = page.asked.length

  // Until the page says which model it is: another than before, as two in a row are.
  const dropped = async file => {
    const told = () => page.$eval('main', e => e.querySelector('.model h2, .driven b')?.textContent ?? '')
    const was = await told()
    await give(file)
    await page
      .waitForFunction(
        was => (document.querySelector('main :is(.model h2, .driven b)')?.textContent ?? was) !== was,
        was,
        { timeout: 400 }, // the same name twice, or a panel that does not follow it
      )
      .catch(() => {})
    await settled(page)
  }
  const give_to = (page, ...files) =>
    page.evaluate(
      files => {
        const transfer = new DataTransfer()
        for (const { name, text } of files) transfer.items.add(new File([text], name))
        const onto = document.querySelector('main [data-drop]') ?? document.querySelector('main .stage')
        for (const kind of ['dragenter', 'dragover', 'drop'])
          onto.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }))
      },
      files.map(file => ({ name: basename(file), text: readFileSync(file, 'utf8') })),
    )
  const give = file => give_to(page, file)

  await check('a dropped config.json changes the panel', async () => {
    const was = await stage()
    await dropped(here('../models/llama-3.1-8b.json'))
    await page.waitForFunction(was => document.querySelector('main').textContent !== was, was)
    assert(/llama/i.test(await stage()), 'the panel does not name what it read')
  })
  await check('a picked config.json changes the panel', async () => {
    const was = await stage()
    await page.setInputFiles('main input[type=file]', here('../models/qwen2.5-7b-yarn4.json'))
    await page.waitForFunction(was => document.querySelector('main').textContent !== was, was)
    assert(/yarn/i.test(await stage()), 'YaRN is not mentioned')
  })
  // What the panel shows of its pairs, and what it prints.
  const taken = async () => {
    await page.evaluate(() => {
      const twin = document.querySelector('.chart .twin')
      if (twin) twin.open = true
    })
    await frame(page)
    return page.evaluate(() => {
      const table = document.querySelector('.chart .twin table')
      const chosen = document.querySelector('.methods .now button')?.textContent.trim()
      if (!table) return null
      const column = [...table.querySelectorAll('thead th')].findIndex(e => e.textContent.trim() === chosen)
      const shown = [...table.querySelectorAll('tbody tr')].map(row => row.children[column].textContent.trim())
      const [cli, cpp] = [...document.querySelectorAll('.reproduce pre')].map(e => e.textContent)
      return { shown, cli, cpp, equation: document.querySelector('.side .formula').textContent }
    })
  }
  const all = []
  await check('every configuration of the zoo can be dropped', async () => {
    for (const file of files) {
      await dropped(file)
      assert((await page.locator('main h1').count()) === 1, basename(file))
      assert((await page.locator('.model h2').count()) === 1, `${basename(file)} is refused`)
      const one = await taken()
      if (one) all.push({ name: basename(file), ...one })
      quiet(page)
    }
    return `${files.length} files, ${all.length} with RoPE`
  })
  const agree = (numbers, { name, shown }, text) => {
    const wrong = shown.findIndex((x, r) => !same(x, numbers[r]))
    assert(wrong < 0, `${name}: pair ${wrong} is ${shown[wrong]}, printed ${numbers[wrong]}: ${text}`)
  }
  if (existsSync(command))
    await check('… and the printed command gives the numbers of the page', () => {
      for (const one of all) agree(wavelengths(one.cli), one, one.cli)
      return `${all.length} commands`
    })
  else console.log(`skip  the printed commands: there is no ${command}`)
  await check('… and so does the printed C++, compiled', () => {
    const numbers = compiled(all.map(one => one.cpp))
    if (typeof numbers === 'string') return `skipped: ${numbers}`
    all.forEach((one, i) => agree(numbers[i], one, one.cpp))
    return `${all.length} snippets`
  })
  await check('… in lines that a narrow column holds', () => {
    for (const { name, cli, cpp } of all)
      for (const line of [...cli.split('\n'), ...cpp.split('\n')]) assert(line.length <= 52, `${name}: ${line}`)
  })
  await check('a broken file is answered with a sentence', async () => {
    const was = await stage()
    await page.setInputFiles('main input[type=file]', {
      name: 'config.json',
      mimeType: 'application/json',
      buffer: Buffer.from('{"model_type": '),
    })
    await page.waitForFunction(was => document.querySelector('main').textContent !== was, was)
  })
  // Code of the other panels is fetched meanwhile.
  await check('no file leaves the page', () => {
    const others = page.asked.slice(before).filter(asked => !asked.startsWith(`${url}assets/`))
    assert(others.length === 0, others.join(' '))
  })
  await check(
    'a model without RoPE leaves no figure of the one before, and names the panel that shows it',
    async () => {
      for (const name of ['phi-3.5-mini', 'bert-base-uncased']) {
        await dropped(here(`../models/${name}.json`))
        await settled(page)
      }
      assert((await page.locator('.stage .chart, .methods, .reproduce').count()) === 0, 'figures of another model')
      await page.locator('.model button', { hasText: 'see its scheme' }).click()
      assert((await settled(page)).startsWith('#/learned'), await settled(page))
    },
  )
  await check('a file dropped on Extend drives the other panels too', async () => {
    await show(page, '#/extend')
    await dropped(here('../models/deepseek-v3.json'))
    for (const [panel, shown] of [
      ['rope', '64 of 192 channels'],
      ['compare', '64 of 192 channels'],
      ['kv', '64 of 192 channels'],
    ]) {
      await page.locator(`nav a[href="#/${panel}"]`).click()
      const hash = await settled(page)
      assert(hash.startsWith(`#/${panel}`) && hash.includes('scheme.rotary_dim=64'), hash)
      assert((await page.textContent('.driven')).includes(shown), await page.textContent('.driven'))
    }
    await show(page, '#/rope' + (await settled(page)).replace(/^#\/kv/, ''))
    const cli = await page.locator('.reproduce pre').first().textContent()
    assert(/--rotary_dim 64/.test(cli) && /--factor 40/.test(cli), cli)
  })
  await check('two models are drawn beside each other', async () => {
    await show(page, '#/extend')
    for (const name of ['llama-3.1-8b', 'qwen2.5-7b-yarn4']) {
      await dropped(here(`../models/${name}.json`))
      await settled(page)
    }
    const names = await page.locator('.chart svg').first().textContent()
    assert(names.includes('llama-3.1-8b') && names.includes('qwen2.5-7b-yarn4'), names)
  })
  await check('a file dropped on another panel opens the Doctor, and so do two, and a log', async () => {
    const [model, other, log] = [
      'doctor/deepseek-r1-0528-qwen3-8b.json',
      'doctor/llama-3.1-without-scaling.json',
      'logs/llama-3.1-without-base.log',
    ]
    for (const [panel, ...files] of [
      ['start', model],
      ['start', model, other],
      ['start', log],
      ['start', model, log],
      ['rope', model],
    ]) {
      const fresh = await open(panel)
      await give_to(fresh, ...files.map(name => here(`../tests/data/${name}`)))
      await fresh.waitForFunction(
        names => names.every(name => document.querySelector('main .evidence')?.textContent.includes(name)),
        files.map(name => basename(name)),
      )
      assert((await settled(fresh)).startsWith('#/doctor'), await settled(fresh))
      quiet(fresh)
      await fresh.context().close()
    }
  })
  await check('extend: drops without a complaint on the console', () => quiet(page))
  await page.context().close()
}
