// Test vectors, and a judge of answers to them (README.md, "How an answer is judged").
import { readFileSync } from 'node:fs';

const folder = new URL('../', import.meta.url);
const files = new Map();
const sixDigits = 1e-5; // wrong answers have six

function read(name) {
  if (!files.has(name)) files.set(name, JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')));
  return files.get(name);
}

export const operations = ['frequencies', 'cos_sin', 'rotate', 'model', 'rekey', 'positions', 'bias', 'mask', 'scores', 'added'];

/** Each mistake by name: { title, cure, report?, loss? }. */
export const mistakes = () => read('mistakes').mistakes;

/** The tests of an operation: { operation, id, about?, input, output, mistakes }. */
export const load = (operation) => read(operation).tests.map((test) => ({ operation, ...test }));

const flat = (value) => (value === null || typeof value === 'number' ? [value] : Array.from(value, flat).flat());

const close = (got, wanted, { absolute, relative }) =>
  got.length === wanted.length &&
  wanted.every((w, i) => w === null || (got[i] !== null && Math.abs(got[i] - w) <= absolute + relative * Math.abs(w)));

function shown(test, right, got, tolerance) {
  const names = [];
  const keys = Object.keys(got);
  for (const [name, changed] of Object.entries(test.mistakes)) {
    const wrong = (key) => (key in changed ? flat(changed[key]) : right[key]);
    const slack = (key) => ({ ...tolerance, relative: tolerance.relative + (key in changed ? sixDigits : 0) });
    const visible = keys.some((key) => key in changed && !close(wrong(key), right[key], tolerance));
    if (visible && keys.every((key) => close(got[key], wrong(key), slack(key)))) names.push(name);
  }
  for (const [name, bounds] of Object.entries(test.within ?? {})) {
    const near = (key) => {
      const bound = flat(bounds[key]);
      return got[key].length === bound.length && got[key].every((g, i) => Math.abs(g - right[key][i]) <= tolerance.absolute + bound[i]);
    };
    if (!names.includes(name) && keys.every(near)) names.push(name);
  }
  return names;
}

/** { right, shows: names of the mistakes that give this answer }. Outputs may be nested, flat or typed arrays. */
export function judge(test, answer, dtype = 'float32') {
  const tolerance = read(test.operation).tolerance[dtype];
  if (!tolerance) throw new Error(`dtype must be float64, float32, float16 or bfloat16, got ${dtype}`);
  const right = Object.fromEntries(Object.entries(test.output).map(([key, value]) => [key, flat(value)]));
  const got = Object.fromEntries(Object.entries(answer).filter(([key]) => key in right).map(([key, value]) => [key, flat(value)]));
  const keys = Object.keys(got);
  if (!keys.length) throw new Error(`an answer must have one of ${Object.keys(right).join(', ')}`);
  if (keys.every((key) => close(got[key], right[key], tolerance))) return { right: true, shows: [] };
  const whole = shown(test, right, got, tolerance);
  if (whole.length || keys.length === 1) return { right: false, shows: whole };
  const apart = keys.filter((key) => !close(got[key], right[key], tolerance)).map((key) =>
    // One that changes another output too is not what made this one wrong.
    shown(test, right, { [key]: got[key] }, tolerance).filter((name) => Object.keys(test.mistakes[name] ?? {}).every((changed) => changed === key)),
  );
  return { right: false, shows: apart.every((names) => names.length) ? apart.map(([first]) => first) : [] };
}

/** Throws an error that names the mistakes and their cures: the body of a test of vitest, node:test or any other. */
export function expectRight(test, answer, dtype = 'float32') {
  const { right, shows } = judge(test, answer, dtype);
  if (right) return;
  const why = shows.map((name) => `${name}: ${mistakes()[name].title}; cure: ${mistakes()[name].cure}`);
  throw new Error(`${test.operation}/${test.id}: ${why.join('\n') || 'wrong, by no mistake that is known'}`);
}
