// node copied.mjs FILE ROWS ASK: private labels of a process and of its copy
// (tests/copied_process.c). --single-threaded, because a copy has one thread.

import { createHash } from 'node:crypto';
import { accessSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Randomizer } from '../../runtime/examples/labeldp.mjs';

const require = createRequire(new URL('../../runtime/examples/node/', import.meta.url));
const [file, rows, ask] = process.argv.slice(2);
const randomizer = await Randomizer.load(require('onnxruntime-node'), readFileSync(file));
const labels = new Array(Number(rows)).fill(3);
const draw = async () => {
  const hash = createHash('sha256').update(await randomizer.randomize(labels));
  return hash.digest('hex');
};
await draw();
try {
  accessSync(ask);
} catch {
  // the copy
}
writeSync(1, `${process.pid} ${await draw()} ${await draw()}\n`);
accessSync('/end/of/this/process'); // threads to wait for are not in the copy
