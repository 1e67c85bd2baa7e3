// Runs a file on each line of the input, {file, feed: {name: {type, dims, data}}}, where data is
// text, and prints its outputs as text, or the error.
const readline = require('node:readline');
const ort = require('onnxruntime-node');

const ARRAYS = {
  int64: (texts) => BigInt64Array.from(texts, BigInt),
  float64: (texts) => Float64Array.from(texts, Number),
  string: (texts) => texts,
};

async function answer({ file, feed }) {
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4 });
  const tensors = Object.entries(feed).map(([name, { type, dims, data }]) => [
    name,
    new ort.Tensor(type, ARRAYS[type](data), dims),
  ]);
  const outputs = await session.run(Object.fromEntries(tensors));
  return Object.fromEntries(
    Object.entries(outputs).map(([name, { data }]) => [name, Array.from(data, String)]),
  );
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const found = await answer(JSON.parse(line)).catch(({ message }) => ({ error: message }));
    console.log(JSON.stringify(found));
  }
})();
