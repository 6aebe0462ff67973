import { mount } from 'svelte'
import App from './App.svelte'
import './app.css'
import './parts.css'
import { load, loadReader } from 'posenc'
import { once } from './compute/once'
import { entries, panel } from './panels'
import { parse } from './state/link'
import { follow, page } from './state/store.svelte'
import { startTheme } from './state/theme'

const reader = once(() =>
  loadReader().catch((error: Error) => {
    throw new Error(`The reader of models did not start: ${error.message}`)
  }),
)

// What stands before the # is the frame's, not the view's: links to views stay as they are.
const frame = new URLSearchParams(location.search)
page.embed = frame.get('embed') === '1'
page.figure = Number(frame.get('figure')) || 0
page.present = frame.get('present') === '1'
startTheme()
const target = document.getElementById('app')!
Promise.all([load(), panel(parse(location.hash).panel)])
  .then(([engine]) => {
    follow()
    mount(App, { target, props: { engine, reader } })
    performance.mark('ready')
    // The others are here before anyone asks for them; one that fails is asked for again when it is shown.
    setTimeout(() => entries.forEach(({ id }) => Promise.resolve(panel(id)).catch(() => {})), 500)
  })
  .catch((error: Error) => {
    target.textContent = `The engine did not start: ${error.message}`
  })
