// node test.mjs PACKAGE: every right answer passes, and every mistake is named.
import assert from 'node:assert';
import { pathToFileURL } from 'node:url';

const { expectRight, judge, load, operations } = await import(pathToFileURL(process.argv[2]));
let named = 0;
for (const operation of operations)
  for (const test of load(operation)) {
    assert(judge(test, test.output).right, `${operation}/${test.id}`);
    for (const [name, wrong] of Object.entries(test.mistakes)) {
      assert(judge(test, { ...test.output, ...wrong }).shows.includes(name), `${operation}/${test.id} ${name}`);
      named += 1;
    }
  }
const [test] = load('rotate');
assert.throws(() => expectRight(test, { ...test.output, ...test.mistakes.wrong_pairing }), /wrong_pairing: .*; cure: /);
console.log(`npm package: ${named} wrong answers named`);
