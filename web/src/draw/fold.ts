// Commands and C++ in lines that a narrow column holds. What is folded is typed or compiled as if it were not.
export const narrow = 37

// Words as lines of at most `width`, `indent` before all but the first and `end` behind all but the last.
function filled(words: string[], width: number, indent: string, end = '', between = ' '): string[] {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last !== undefined && (last + between + word + end).length <= width) lines[lines.length - 1] += between + word
    else lines.push((lines.length ? indent : '') + word)
  }
  return lines.map((line, i) => (i < lines.length - 1 ? line + end : line))
}

// A flag keeps its value, and what stands between single quotes is one word. Within double quotes a shell forgets a backslash
// with the end of its line, so that a link is folded at its fields and its commas.
export function shell(text: string, width = narrow): string {
  const link = (word: string) => filled(word.match(/&?[^&,=]*[,=]?/g)!.filter(Boolean), width, '', '\\', '').join('\n')
  return text
    .split('\n')
    .map(line => {
      if (line.startsWith('#')) return filled(line.split(' '), width, '# ').join('\n')
      const words = line.match(/(?:--\S+ (?=[^\s-]))?(?:\\'|'[^']*'|[^\s'])+/g) ?? []
      return filled(
        words.map(word => (word.startsWith('"#') ? link(word) : word)),
        width,
        '  ',
        ' \\',
      ).join('\n')
    })
    .join('\n')
}

const open = '([{'
const shut = ')]}'
type Group = { from: number; to: number; commas: number[] }
// The brackets of a line that stand in no other.
function groups(line: string): Group[] {
  const found: Group[] = []
  let depth = 0
  let quoted = false
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '"' && line[i - 1] !== '\\') quoted = !quoted
    if (quoted) continue
    if (open.includes(line[i]) && depth++ === 0) found.push({ from: i, to: line.length, commas: [] })
    else if (line[i] === ',' && depth === 1) found.at(-1)!.commas.push(i)
    else if (shut.includes(line[i]) && --depth === 0) found.at(-1)!.to = i
  }
  return found
}

function folded(line: string, width: number, indent: string): string[] {
  if (indent.length + line.length <= width) return [indent + line]
  const [, code, comment] = /^(.*?\S)\s+(\/\/.*)$/.exec(line) ?? []
  if (code) return [...folded(comment, width, indent), ...folded(code, width, indent)]
  if (line.startsWith('//')) return filled(line.split(' '), width - indent.length, '// ').map(part => indent + part)
  const longest = groups(line).sort((a, b) => b.to - b.from - (a.to - a.from))[0]
  if (!longest || longest.to - longest.from < 4) {
    const [, name, value] = /^(.* =) (.*)$/.exec(line) ?? []
    return name ? [indent + name, ...folded(value, width, indent + '  ')] : [indent + line]
  }
  const ends = [...longest.commas, longest.to]
  const items = ends.map((end, i) => line.slice(i ? ends[i - 1] + 1 : longest.from + 1, end).trim())
  const inner = indent + '  '
  const lines = [indent + line.slice(0, longest.from + 1)]
  items.filter(Boolean).forEach((item, i, all) => {
    const rest = i < all.length - 1 ? ',' : line.slice(longest.to)
    const last = lines.at(-1)!
    if (i > 0 && (last + ' ' + item + rest).length <= width) lines[lines.length - 1] += ' ' + item + rest
    else lines.push(...folded(item + rest, width, inner))
  })
  return lines
}

// C++ in the library's namespace.
export function cpp(text: string, width = narrow): string {
  const bare = text.replaceAll('posenc::', '')
  const lines = bare.split('\n').flatMap(line => {
    const indent = /^ */.exec(line)![0]
    return folded(line.slice(indent.length), width, indent)
  })
  return (bare === text ? lines : ['using namespace posenc;', ...lines]).join('\n')
}
