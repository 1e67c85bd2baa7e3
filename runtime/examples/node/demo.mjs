// node demo.mjs doctor-visits.onnx: randomizes a few labels.

import { readFile } from 'node:fs/promises';
import { printable, Randomizer } from '../labeldp.mjs';

// Before it is imported, or onnxruntime, from 1.29 on, sends names and hashes of models to its makers.
process.env.ORT_DISABLE_TELEMETRY ??= '1';
const { default: ort } = await import('onnxruntime-node');

const randomizer = await Randomizer.load(ort, await readFile(process.argv[2]));
const { name, privacy } = randomizer.certificate;
console.log(`${printable(name)}: ε = ${printable(privacy.epsilon_label_bound)} for each label`);

const labels = [0, 3, 12, null, 1e9];
const noisy = await randomizer.randomize(labels);
labels.forEach((label, i) => console.log(`${label} -> ${noisy[i]}`));
