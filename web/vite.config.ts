/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte'
import katex from 'katex'
import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig, type Plugin } from 'vite'

// tex`…` becomes a string of MathML, so that neither KaTeX nor its fonts are shipped.
function tex(): Plugin {
  const math = (source: string) =>
    katex
      .renderToString(source, {
        output: 'mathml',
        displayMode: true,
        strict: 'error',
        throwOnError: true,
        macros: { '\\live': '\\text{@#1@}' },
      })
      .replace(/^<span class="katex">|<\/span>$|<annotation.*?<\/annotation>/gs, '')
      // Between a function's name and what it is of, where no parenthesis stands.
      .replace(/<mo>\u2061<\/mo>(?!(?:<mrow>)*<mo [^>]*>\()/g, '<mo>\u2061</mo><mspace width="0.1667em"></mspace>')
  return {
    name: 'tex',
    enforce: 'pre',
    transform(code, id) {
      if (!/\.(svelte|ts)$/.test(id) || id.includes('node_modules') || !code.includes('tex`')) return
      return {
        code: code.replace(/\btex`([^`]*)`/g, (_, source: string) =>
          JSON.stringify(math(source)).replaceAll('{', '\\u007b').replaceAll('}', '\\u007d'),
        ),
        map: null,
      }
    },
  }
}

// What the list says of each panel, without the panel's code: the `entry` of its module script.
function panels(): Plugin {
  const folder = new URL('src/panels/', import.meta.url)
  const about = (file: string) => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const [, entry] = /export const entry = {([^}]*)}/.exec(text) ?? []
    if (!entry) throw new Error(`${file} exports no entry`)
    // What the panel says first, where it is one text.
    const [, lead = ''] = /^ {2}lead="([^"]*)"/m.exec(text) ?? []
    return `{ file: './${file}', lead: ${JSON.stringify(lead)}, ${entry} }`
  }
  return {
    name: 'panels',
    resolveId: id => (id === 'virtual:panels' ? '\0' + id : undefined),
    load: id =>
      id === '\0virtual:panels'
        ? `export default [${readdirSync(folder)
            .filter(file => file.endsWith('.svelte'))
            .map(about)}]`
        : undefined,
  }
}

// Parts of Plot that it links and our charts never run: maps of the earth, colour schemes, dates, curves; legends, tips,
// markers. Of those that Plot calls for every chart, the answer is none.
const unused =
  /\/d3-(geo|scale-chromatic|time-format|time|shape)\/|plot\/src\/(legends|marker|projection|symbol|time|interactions\/pointer|marks\/tip|scales\/diverging|transforms\/group)/
function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    enforce: 'pre',
    transform(code, id) {
      if (!unused.test(id)) return
      const listed = /export\s*{([^}]*)}/.exec(code)?.[1].split(',') ?? []
      const names = [
        ...listed.map(name => name.trim().split(' as ').at(-1)!),
        ...[...code.matchAll(/^export (?:function\*?|const|class) (\w+)/gm)].map(([, name]) => name),
      ].filter(Boolean)
      const none = /\/d3-/.test(id) ? '({})' : /legends\.js/.test(id) ? '[]' : 'undefined'
      return { code: names.map(name => `export const ${name} = () => ${none}`).join('\n'), map: null }
    },
  }
}

// `about`: the version and the pages of docs/, in the words of its README. The pages lie beside the site, so that links to
// them need no other host; one file has no room for them.
function about(single: boolean): Plugin {
  const docs = new URL('../docs/', import.meta.url)
  const page = /^\| \[(\w[\w-]*)\.md\]\(\1\.md\) \| (.*) \|$/gm
  return {
    name: 'about',
    resolveId: id => (id === 'about' ? '\0about' : undefined),
    load(id) {
      if (id !== '\0about') return
      const { version } = JSON.parse(readFileSync(new URL('../bindings/npm/package.json', import.meta.url), 'utf8'))
      const pages = [...readFileSync(new URL('README.md', docs), 'utf8').matchAll(page)].map(([, name, what]) => ({
        name,
        what: what.replaceAll('`', ''),
      }))
      // `- **word**: what it means.` Of several words in one entry the first is its name.
      const entry = /^- \*\*(.*?)\*\*(.*(?:\n {2}.*)*)/gm
      const words = [...readFileSync(new URL('glossary.md', docs), 'utf8').matchAll(entry)].map(([, name, rest]) => ({
        name,
        what: rest
          .replace(/\s+/g, ' ')
          .replace(/[*`]/g, '')
          .replace(/^[:, ]+/, ''),
      }))
      return `export const version = ${JSON.stringify(version)}
        export const words = ${JSON.stringify(words)}
        export const docs = ${JSON.stringify(single ? '' : 'docs/')}
        export const pages = ${JSON.stringify(pages)}`
    },
    generateBundle() {
      if (single) return
      for (const name of readdirSync(docs).filter(name => name.endsWith('.md')))
        this.emitFile({ type: 'asset', fileName: `docs/${name}`, source: readFileSync(new URL(name, docs)) })
    },
  }
}

// `lab`: of evidence/lab/results/ what panels draw. Losses of a real model by position, a file for each reach, and of the small models that
// were trained with every scheme the mean over seeds by length.
function lab(): Plugin {
  const results = new URL('../evidence/lab/results/', import.meta.url)
  const short = (x: number) => Number(x.toFixed(3))
  // A point is so many positions: neighbouring texts differ by more than scalings do.
  const together = 512
  type Block = { from: number; to: number; nats: number; n: number }
  type Curves = { trained: number; length: number; curves: { scaling: string; factor: number; blocks: Block[] }[] }
  type Run = {
    cell: { experiment: string; arm: string; length: number; width: number; heads: number }
    measured: { length: number; metric: string; value: number }[]
  }
  function reach(name: string) {
    const { trained, length, curves } = JSON.parse(readFileSync(new URL(name, results), 'utf8')) as Curves
    return {
      trained,
      length,
      curves: curves.map(({ scaling, factor, blocks }) => {
        const sums = new Map<number, [number, number]>()
        for (const { from, nats, n } of blocks) {
          const [sum, count] = sums.get(Math.floor(from / together)) ?? [0, 0]
          sums.set(Math.floor(from / together), [sum + nats * n, count + n])
        }
        return { scaling, factor, y: [...sums.values()].map(([sum, count]) => short(sum / count)) }
      }),
    }
  }
  function trained() {
    const sums = new Map<string, Map<number, number[]>>()
    let shape = { length: 0, width: 0, heads: 0 }
    for (const line of readFileSync(new URL('standard.jsonl', results), 'utf8').trim().split('\n')) {
      const { cell, measured } = JSON.parse(line) as Run
      if (cell.experiment !== 'E1') continue
      shape = { length: cell.length, width: cell.width, heads: cell.heads }
      const arm = sums.get(cell.arm) ?? new Map<number, number[]>()
      sums.set(cell.arm, arm)
      for (const { length, metric, value } of measured)
        if (metric === 'nats') arm.set(length, [...(arm.get(length) ?? []), value])
    }
    return {
      ...shape,
      arms: [...sums].map(([name, byLength]) => ({
        name,
        x: [...byLength.keys()],
        y: [...byLength.values()].map(all => short(all.reduce((a, b) => a + b, 0) / all.length)),
      })),
    }
  }
  return {
    name: 'lab',
    resolveId: id => (id === 'lab' ? '\0lab' : undefined),
    load(id) {
      if (id !== '\0lab') return
      const reaches = readdirSync(results)
        .filter(name => /^smollm2-\d+k\.json$/.test(name))
        .map(reach)
        .sort((a, b) => a.length - b.length)
      return `export const together = ${together}
        export const reaches = ${JSON.stringify(reaches)}
        export const small = ${JSON.stringify(trained())}`
    },
  }
}

// One posenc.html that opens from disk: script, style and engine within it. POSENC_ONE_FILE=1.
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = bundle['index.html']
      if (page?.type !== 'asset') return
      let html = String(page.source)
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === 'chunk') {
          // Vite leaves the names of what to preload to a later step, which finds nothing to do in one chunk.
          const script = part.code.replaceAll('</script', '<\\/script').replaceAll('__VITE_PRELOAD__', '[]')
          html = html
            .replace(/<script type="module"[^>]*src="[^"]*"[^>]*><\/script>/, '')
            .replace('</body>', () => `<script type="module">${script}</script></body>`)
          delete bundle[name]
        } else if (name.endsWith('.css')) {
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${part.source}</style>`)
          delete bundle[name]
        }
      }
      page.source = html
      page.fileName = 'posenc.html'
    },
  }
}

export default defineConfig(() => {
  const single = !!process.env.POSENC_ONE_FILE
  return {
    base: './',
    plugins: [
      tex(),
      panels(),
      about(single),
      lab(),
      withoutUnused(),
      svelte({ configFile: false }),
      ...(single ? [oneFile()] : []),
    ],
    server: { fs: { allow: ['..'] } },
    build: {
      target: 'es2023',
      outDir: single ? 'dist/one' : 'dist/site',
      assetsInlineLimit: single ? Infinity : 0,
      modulePreload: false,
      rolldownOptions: {
        checks: { pluginTimings: false },
        // What panels share is one file, so that a panel is fetched in one go.
        output: {
          codeSplitting: single ? false : { groups: [{ name: 'parts', test: /./, minShareCount: 2 }] },
        },
      },
      cssCodeSplit: false,
    },
    // @posenc/webgpu, which lies outside, asks for posenc.
    resolve: { dedupe: ['posenc'] },
    test: { include: ['test/**/*.test.ts'] },
  }
})
