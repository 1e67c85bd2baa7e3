// Answers test cases with the example's module, on node and in the browser alike.

import { Randomizer } from '../../runtime/examples/labeldp.mjs';

/** The answer to one case; harness.py says what both are. */
export async function answer(ort, bytes, testCase) {
  const { type, labels, batches, repeat, words, calls, timed, prepared } = testCase;
  try {
    const randomizer = await Randomizer.load(ort, bytes, { prepared });
    const options = readGroups(testCase);
    const ownWords = words && BigUint64Array.from(words, (hex) => BigInt(`0x${hex}`));
    if (batches !== undefined) return { outputs: await inTurn(randomizer, batches, ownWords) };
    if (testCase.members !== undefined) return { outputs: membersOf(randomizer, testCase) };
    if (labels === undefined) return { outputs: [] };
    const values = readLabels(type, labels, repeat ?? 1);
    const once = words
      ? () => randomizer.applyWords(values, ownWords, options)
      : () => randomizer.randomize(values, options);
    if (timed) {
      const seconds = [];
      for (let i = 0; i < calls; i++) {
        const start = performance.now();
        await once();
        seconds.push((performance.now() - start) / 1000);
      }
      return { seconds };
    }
    const results = await Promise.all(Array.from({ length: calls ?? 1 }, once));
    return { outputs: results.map(asTexts) };
  } catch (error) {
    return { error: `${error.name}: ${error.message}${error.cause ? ` (${error.cause})` : ''}` };
  }
}

async function inTurn(randomizer, batches, words) {
  const outputs = [];
  for (const batch of batches) {
    try {
      outputs.push(asTexts(await randomizer.applyWords(readLabels('javascript', batch), words)));
    } catch (error) {
      throw new Error(`${batch}: ${error.name}: ${error.message}`);
    }
  }
  return outputs;
}

/** The labels in each private label, or what is wrong with it; of JavaScript with their types. */
function membersOf(randomizer, { members, outputs }) {
  return Array.from(readLabels(outputs, members, 1), (output) => {
    try {
      const labels = randomizer.members(output);
      const shown = (label) => (outputs === 'javascript' ? `${typeof label} ` : '') + String(label);
      return labels.map((label) => (Array.isArray(label) ? label.map(shown) : shown(label)));
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  });
}

/** The options of a call: columns of groups by name, or text that is JavaScript. */
function readGroups({ columns, options, repeat }) {
  if (options !== undefined) return new Function(`return ${options}`)();
  if (columns === undefined) return undefined;
  return { columns: readLabels('columns', columns, repeat ?? 1) };
}

function readLabels(type, labels, repeat) {
  if (type === 'javascript') return new Function(`return ${labels}`)();
  if (type === 'columns') return byName(labels, (own) => readLabels(own.type, own.values, repeat));
  if (type === 'combinations') {
    return labels.map((row) => row.map(([own, text]) => readLabels(own, [text], 1)[0]));
  }
  const values = Array.from({ length: repeat }, () => labels).flat();
  const parse = { int64: BigInt, float64: Number, string: String }[type];
  if (values.includes(null)) return values.map((value) => (value === null ? null : parse(value)));
  if (type === 'int64') return BigInt64Array.from(values, BigInt);
  if (type === 'float64') return Float64Array.from(values, Number);
  return values;
}

function byName(columns, change) {
  return Object.fromEntries(Object.entries(columns).map(([name, own]) => [name, change(own)]));
}

/** Private labels, or the private columns by their names. */
function asTexts(outputs) {
  const isOne = Array.isArray(outputs) || ArrayBuffer.isView(outputs);
  return isOne ? asText(outputs) : byName(outputs, asText);
}

function asText(outputs) {
  if (!(outputs instanceof Float64Array)) return Array.from(outputs, String);
  const bits = new BigUint64Array(outputs.buffer, outputs.byteOffset, outputs.length);
  return Array.from(bits, (word) => word.toString(16).padStart(16, '0'));
}
