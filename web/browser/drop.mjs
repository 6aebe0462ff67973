// Real configurations, dropped on the panel that reads them and picked there: all of them are read, none leaves.
import { readFileSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { assert, frame, here } from './run.mjs'

export async function drop({ check, open, quiet }, entries) {
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

  const dropped = file =>
    page.evaluate(
      ({ name, text }) => {
        const transfer = new DataTransfer()
        transfer.items.add(new File([text], name, { type: 'application/json' }))
        const onto = document.querySelector('main [data-drop]') ?? document.querySelector('main .stage')
        for (const kind of ['dragenter', 'dragover', 'drop'])
          onto.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }))
      },
      { name: basename(file), text: readFileSync(file, 'utf8') },
    )

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
  await check('every configuration of the zoo can be dropped', async () => {
    for (const file of files) {
      await dropped(file)
      await frame(page)
      assert((await page.locator('main h1').count()) === 1, basename(file))
      quiet(page)
    }
    return `${files.length} files`
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
  await check('no file leaves the page', () => assert(page.asked.length === before, page.asked.slice(before).join(' ')))
  await check('extend: drops without a complaint on the console', () => quiet(page))
  await page.context().close()
}
