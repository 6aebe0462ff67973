import { mount } from 'svelte'
import wasm from 'posenc.wasm?url'
import App from './App.svelte'
import './app.css'
import { Engine } from './engine/engine'
import { follow } from './state/store.svelte'
import { startTheme } from './state/theme'

startTheme()
const target = document.getElementById('app')!
Engine.load(fetch(wasm)).then(engine => {
  follow()
  mount(App, { target, props: { engine } })
  performance.mark('ready')
}).catch((error: Error) => {
  target.textContent = `The engine did not start: ${error.message}`
})
