// node driver_node.mjs DIRECTORY: answers DIRECTORY/cases.json into DIRECTORY/node.json.

import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { answer } from './driver.mjs';

// onnxruntime-node is installed beside the example, not beside this file.
const require = createRequire(new URL('../../runtime/examples/node/', import.meta.url));
const ort = require('onnxruntime-node');
const directory = process.argv[2];
const answers = [];
for (const testCase of JSON.parse(await readFile(`${directory}/cases.json`))) {
  answers.push(await answer(ort, await readFile(`${directory}/${testCase.file}`), testCase));
}
await writeFile(`${directory}/node.json`, JSON.stringify(answers));
