// posenc.html, the whole playground in one file, opened from disk.
import { existsSync, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { assert, here } from './run.mjs'

export async function oneFile({ check, open, quiet }) {
  const file = here('dist/one/posenc.html')
  if (!existsSync(file))
    return console.log('skip  one file: web/dist/one/posenc.html is not built; make site builds it')
  const page = await open('rope?v=1&m=20', { from: pathToFileURL(file).href })
  await check('one file opens from disk', async () => {
    assert((await page.inputValue('#slide-m')) === '20', 'the link is not read')
    assert(/\d/.test(await page.textContent('.score output')), 'the engine gives no score')
    return `${(statSync(file).size / 1e6).toFixed(2)} MB`
  })
  await check('one file asks for no other', () => {
    const others = page.asked.filter(
      url => !url.startsWith('data:') && !url.startsWith('blob:') && !url.split('#')[0].endsWith('/posenc.html'),
    )
    assert(others.length === 0, others.join(' '))
  })
  await check('one file without a complaint on the console', () => quiet(page))
  await page.context().close()
}
