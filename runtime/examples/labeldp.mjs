// Runs a labeldp artifact on onnxruntime-node (Node 20 or newer) or onnxruntime-web: one file for
// both, to paste into a service.
//
//   import ort from 'onnxruntime-node';  // or: import * as ort from 'onnxruntime-web/wasm';
//   const randomizer = await Randomizer.load(ort, await readFile('doctor-visits.onnx'));
//   const noisy = await randomizer.randomize([0, 3, 12, null, 1e9]);
//   // of an artifact with a table for each public group:
//   const more = await byGroup.randomize(labels, { columns: { age: ages, work: works } });
//   // of an artifact that answers with sets of labels, by their numbers:
//   const classes = bySets.members((await bySets.randomize(['red']))[0]);
//
// Randomizing one label twice spends its ε twice.

const FORMAT_MAJOR = '1';
const MAX_FILE_BYTES = 64 * 2 ** 20;
const CHUNK = 16384; // labels a run: the tensors of one chunk stay in a core's cache
const SHOWN = 200; // characters of a file's text in an error
const WORDS_A_DRAW = 8192; // getRandomValues gives at most 65,536 bytes
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const ARRAYS = { float64: Float64Array, int64: BigInt64Array, string: Array };

/** The artifact cannot be used; the message says why. */
export class ArtifactError extends Error {
  name = 'ArtifactError';
}

/** A compiled label randomizer, made by `Randomizer.load`: fresh secure words at every call. */
export class Randomizer {
  #ort;
  #session;
  #type; // of the labels: 'int64', 'float64' or 'string'
  #outputType;
  #width; // random words a label
  #missing; // stands in for a null label
  #groups = []; // of each column: its name, the graph's input, its type, what stands in for null
  #sets; // of labels, if private labels are that

  /** The claims in the file. `labeldp verify` proves them, once, before deployment. */
  certificate;

  /**
   * Load an artifact from its bytes (Uint8Array or ArrayBuffer), with onnxruntime as `ort`, and
   * test the platform with the vectors inside. Throws an ArtifactError unless all is well.
   */
  static async load(ort, bytes) {
    bytes = new Uint8Array(bytes);
    const metadata = await readMetadata(bytes);
    const randomizer = new Randomizer();
    let inputs;
    try {
      const text = metadata.get('labeldp.certificate');
      randomizer.certificate = JSON.parse(text);
      if (randomizer.certificate.insecure === undefined) throw new Error('a field is missing');
      randomizer.#missing = missingLabel(randomizer.certificate.label.domain, text);
      randomizer.#sets = setsOf(randomizer.certificate, text);
    } catch {
      throw new ArtifactError('the certificate is damaged'); // a cause would quote it
    }
    if (randomizer.certificate.insecure !== null) {
      throw new ArtifactError(`made for tests only: ${printable(randomizer.certificate.insecure)}`);
    }
    try {
      const session = await ort.InferenceSession.create(bytes, {
        executionProviders: ['cpu'], // onnxruntime-web knows its wasm by this name, too
        intraOpNumThreads: 1,
        interOpNumThreads: 1,
        logSeverityLevel: 4,
      });
      const [label, entropy, ...groups] = session.inputMetadata;
      randomizer.#ort = ort;
      randomizer.#session = session;
      randomizer.#type = label.type;
      randomizer.#outputType = session.outputMetadata[0].type;
      randomizer.#width = entropy.shape[1] ?? 1;
      inputs = groups;
    } catch (error) {
      const cause = printable(error?.message);
      throw new ArtifactError('onnxruntime cannot load the file', { cause });
    }
    randomizer.#groups = groupColumns(randomizer.certificate.groups, inputs);
    if (!(await randomizer.#passesSelfTest(metadata.get('labeldp.self_test')))) {
      throw new ArtifactError('this build of onnxruntime computes wrongly: use another version');
    }
    return randomizer;
  }

  /**
   * Private labels for an array of labels: Float64Array, or BigInt64Array or string[] for
   * categories; BigInt64Array where they are numbers of sets of labels (see `members`).
   *
   * Labels are an array or, where they are numbers, any typed array. Numbers, bigints and booleans
   * (0 and 1) are numbers; where labels are integers they go to the nearest one (halves to the even
   * one). Each element is read alone, and none throws, because an error would disclose it: whatever
   * is no number (no text), NaN, holes, getters and labels outside the domain follow the artifact's
   * out-of-domain rule. JavaScript rounds integers above 2^53 before they get here: read such labels
   * into bigints. Throws a TypeError for another type than an array, and for a typed array where
   * labels are text.
   *
   * An artifact with a table for each public group takes `groups`, one a label, if they come from
   * one column, or `columns`, an object with the `groupColumns` by their names: text, or integers
   * (which are not rounded: 2.5 is no listed integer), or numbers for bands. Whatever is not listed
   * has the table of all others. Throws a TypeError unless there is one group a label.
   */
  async randomize(labels, { groups, columns } = {}) {
    const array = this.#read(labels);
    const feed = this.#readGroups(groups, columns, array.length);
    return this.#chunked(array, (start, end) => freshWords(end - start), feed);
  }

  /**
   * As `randomize`, with words that the caller brings, for tests: a BigUint64Array, of which each
   * label takes its share in turn. They must be uniform, secret and never used twice.
   */
  async applyWords(labels, words, { groups, columns } = {}) {
    const array = this.#read(labels);
    const feed = this.#readGroups(groups, columns, array.length);
    if (words.length !== array.length * this.#width) {
      throw new TypeError(`expected ${array.length * this.#width} words, got ${words.length}`);
    }
    return this.#chunked(array, (start, end) => words.slice(start, end), feed);
  }

  /**
   * The labels in a private label, where private labels are sets of them: in the order of the
   * domain, as strings, as numbers, or as bigints where they are categories.
   *
   * Subset selection answers with the number of a set (a bigint; an integer does, too), or, at a
   * large ε, with a label, which is a set of one. Throws a TypeError for an artifact of another
   * mechanism, whose private labels are no sets, and for what is no private label of this one.
   */
  members(output) {
    if (this.#sets === undefined) {
      throw new TypeError('the private labels of this artifact are no sets of labels');
    }
    return membersOf(this.#sets, output);
  }

  /** The names of the columns that the groups come from; none if there is one table for all. */
  get groupColumns() {
    return this.#groups.map(({ name }) => name);
  }

  #read(labels) {
    return convert(labels, this.#type, this.#missing);
  }

  /** The columns of groups as the graph's inputs take them. */
  #readGroups(groups, columns, count) {
    const given = [groups, columns].filter((value) => value !== undefined).length;
    if (!this.#groups.length) {
      if (!given) return [];
      throw new TypeError('this artifact has one table for all labels: it takes no groups');
    }
    if (given !== 1 || (groups !== undefined && this.#groups.length > 1)) {
      const names = printable(this.groupColumns);
      throw new TypeError(`expected one group a label, as columns by their names: ${names}`);
    }
    return this.#groups.map(({ name, type, missing }) => {
      if (columns !== undefined && !Object.hasOwn(columns ?? {}, name)) {
        throw new TypeError(`expected a column ${printable(name)} of groups`);
      }
      const values = convert(groups === undefined ? columns[name] : groups, type, missing, true);
      if (values.length !== count) {
        throw new TypeError(`expected one group a label, got ${values.length} for ${count} labels`);
      }
      return values;
    });
  }

  async #chunked(labels, words, groups) {
    const outputs = new ARRAYS[this.#outputType](labels.length);
    for (let start = 0; start < labels.length; start += CHUNK) {
      const part = labels.slice(start, start + CHUNK);
      const ownWords = words(start * this.#width, (start + part.length) * this.#width);
      const ownGroups = groups.map((column) => column.slice(start, start + CHUNK));
      const chunk = await this.#run(part, ownWords, ownGroups);
      if (outputs.set) outputs.set(chunk, start);
      else chunk.forEach((text, i) => (outputs[start + i] = text));
    }
    return outputs;
  }

  async #run(labels, words, groups) {
    const { Tensor } = this.#ort;
    const n = labels.length;
    const label = new Tensor(this.#type, labels, [n]);
    const entropy = new Tensor('uint64', words, this.#width === 1 ? [n] : [n, this.#width]);
    const feed = { label, entropy };
    this.#groups.forEach(({ input, type }, i) => (feed[input] = new Tensor(type, groups[i], [n])));
    return (await this.#session.run(feed)).private_label.data;
  }

  async #passesSelfTest(text) {
    try {
      const vectors = JSON.parse(text);
      const number = (text) => Number(text.replace('inf', 'Infinity'));
      const parse = { float64: number, int64: BigInt, string: String };
      const read = (type, texts) => ARRAYS[type].from(texts, (t) => parse[type](t));
      const words = BigUint64Array.from(vectors.words.flat(), (hex) => BigInt(`0x${hex}`));
      const groups = this.#groups.map(({ type }, i) =>
        read(type, vectors.groups.map((row) => row[i])),
      );
      const got = await this.#run(read(this.#type, vectors.labels), words, groups);
      const expected = read(this.#outputType, vectors.outputs);
      return (
        got.length > 0 &&
        got.length === expected.length &&
        expected.every((value, i) => Object.is(value, got[i]))
      );
    } catch {
      return false;
    }
  }
}

/** What a file says as one line for terminals and logs: no control characters, no bidi marks. */
export function printable(value) {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value)}`;
  const escaped = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
  return text.slice(0, SHOWN).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

/** Uniform words from the platform's secure generator. */
function freshWords(count) {
  const words = new BigUint64Array(count);
  for (let start = 0; start < count; start += WORDS_A_DRAW) {
    crypto.getRandomValues(words.subarray(start, start + WORDS_A_DRAW));
  }
  return words;
}

/** A label that the graph treats by the out-of-domain rule, exact beyond 2^53, too. */
function missingLabel(domain, certificateText) {
  if (domain.kind === 'real') return NaN;
  if (domain.out_of_domain === 'clamp') return INT64_MIN;
  if (typeof domain.out_of_domain.default === 'string') return domain.out_of_domain.default;
  return BigInt(/"out_of_domain":\{"default":(-?\d+)\}/.exec(certificateText)[1]);
}

/** The sets of labels that private labels are, if they are that; throws if they are damaged. */
function setsOf({ sets, outputs, label }, certificateText) {
  if (sets === undefined) return undefined;
  const domain = domainOf(label.domain, certificateText);
  const { blocks } = sets;
  if (blocks === null) return { domain, blocks };
  const digits = Math.ceil(domain.count / 4);
  const spare = 4 * digits - domain.count; // bits of the first digit that are no labels
  const isSet = (block) =>
    typeof block === 'string' &&
    block.length === digits &&
    /^[0-9a-f]+$/.test(block) &&
    parseInt(block[0], 16) < 2 ** (4 - spare);
  if (!Array.isArray(blocks) || blocks.length !== outputs || !blocks.every(isSet)) {
    throw new Error('these are no sets of the labels');
  }
  return { domain, blocks };
}

/** How many labels a domain has, the label of an index, and the index of a label (or −1). */
function domainOf({ kind, min, max, values }, certificateText) {
  if (kind === 'integer') {
    const count = max - min + 1;
    if (!(Number.isSafeInteger(min) && Number.isSafeInteger(max) && count > 0)) {
      throw new Error('this is no range');
    }
    return { count, at: (i) => min + i, indexOf: (label) => rangeIndex(min, max, label) };
  }
  if (kind !== 'categorical' || !Array.isArray(values)) throw new Error('it has no categories');
  const isText = values.every((value) => typeof value === 'string');
  const labels = isText ? values : integerCategories(certificateText);
  if (!labels.length || labels.length !== values.length) throw new Error('it has no categories');
  const indexOf = (label) => labels.indexOf(isText ? label : asBigInt(label));
  return { count: labels.length, at: (i) => labels[i], indexOf };
}

/** Categories that are integers, exact beyond 2^53, too; no string holds a quote that is bare. */
function integerCategories(certificateText) {
  const start = String.raw`"domain":\{"kind":"categorical","out_of_domain":\{"default":-?\d+\},`;
  const listed = new RegExp(String.raw`${start}"values":\[(-?\d+(?:,-?\d+)*)\]`);
  return listed.exec(certificateText)[1].split(',').map(BigInt);
}

function rangeIndex(min, max, label) {
  const whole = Number(asBigInt(label) ?? NaN);
  return whole >= min && whole <= max ? whole - min : -1;
}

/** A bigint, or a number that is whole as one; undefined otherwise. */
function asBigInt(value) {
  if (typeof value === 'bigint') return value;
  return Number.isInteger(value) ? BigInt(value) : undefined;
}

/** The labels in a private label; a TypeError quotes none. */
function membersOf({ domain, blocks }, output) {
  if (blocks === null) {
    const index = domain.indexOf(output);
    if (index < 0) throw new TypeError('this is no private label of the artifact');
    return [domain.at(index)];
  }
  const number = asBigInt(output);
  if (number === undefined || number < 0n || number >= blocks.length) {
    throw new TypeError(`expected the number of a set, 0 to ${blocks.length - 1}`);
  }
  const block = blocks[Number(number)];
  const labels = [];
  for (let i = 0; i < domain.count; i++) {
    const digit = parseInt(block[block.length - 1 - (i >> 2)], 16);
    if ((digit >> (i % 4)) & 1) labels.push(domain.at(i));
  }
  return labels;
}

/** The columns of groups that a certificate names, for the graph's inputs behind the words. */
function groupColumns(groups, inputs) {
  try {
    if ((groups !== undefined) !== inputs.length > 0) throw new Error('one has none');
    const { columns } = groups ?? { columns: [] };
    if (columns.length !== inputs.length) throw new Error('these are not those of the graph');
    return columns.map(({ name, values }, i) => {
      if (typeof name !== 'string') throw new Error('a column has no name');
      const { name: input, type } = inputs[i];
      return { name, input, type, missing: type === 'float64' ? NaN : unlisted(values, type) };
    });
  } catch {
    throw new ArtifactError('the certificate is damaged');
  }
}

/** A group that is not listed, which stands in for null. */
function unlisted(values, type) {
  const listed = new Set(values); // numbers beyond 2^53 are not exact here, but stay beyond it
  let n = 1;
  if (type === 'int64') {
    while (listed.has(-n)) n++;
    return BigInt(-n);
  }
  while (listed.has('\x7f'.repeat(n))) n++;
  return '\x7f'.repeat(n);
}

/**
 * Values as the array that a tensor of labels or groups takes. What is refused is decided by the
 * container's type alone, and each element is read alone: none changes how another is read.
 */
function convert(values, type, missing, areGroups = false) {
  const what = areGroups ? 'groups' : 'labels';
  const toInteger = areGroups ? integer : nearest;
  const isTyped = ArrayBuffer.isView(values) && 'length' in values; // a DataView has none
  if (!isTyped && !Array.isArray(values)) throw new TypeError(`expected an array of ${what}`);
  if (isTyped && type === 'string') throw new TypeError(`expected text as ${what}, got numbers`);
  if (isTyped && areGroups && type === 'int64' && /^Float/.test(values[Symbol.toStringTag])) {
    throw new TypeError('expected integers as groups, got an array of floats');
  }
  if (type === 'float64' && values instanceof Float64Array) return values;
  if (type === 'int64' && values instanceof BigInt64Array) return values;
  const element = isTyped ? (i) => values[i] : (i) => ownElement(values, i);
  const labels = new ARRAYS[type](values.length);
  if (type === 'string') {
    for (let i = 0; i < labels.length; i++) labels[i] = asText(element(i)) ?? missing;
  } else if (type === 'float64') {
    for (let i = 0; i < labels.length; i++) labels[i] = asNumber(element(i)) ?? missing;
  } else {
    const halves = new Int32Array(labels.buffer); // little-endian, as wherever onnxruntime runs
    for (let i = 0; i < labels.length; i++) {
      const whole = toInteger(element(i));
      if (typeof whole === 'number') {
        halves[2 * i] = whole; // modulo 2^32
        halves[2 * i + 1] = Math.floor(whole / 2 ** 32);
      } else {
        labels[i] = whole ?? missing;
      }
    }
  }
  return labels;
}

/** An array's own element; getters are not called, for their code could change other elements. */
function ownElement(values, i) {
  try {
    return Object.getOwnPropertyDescriptor(values, i)?.value;
  } catch {
    return undefined; // the trap of a proxy
  }
}

/** Text as onnxruntime takes it, or undefined. It would cut text at a NUL; no category has one. */
function asText(value) {
  if (typeof value !== 'string' || value.includes('\0')) return undefined;
  return value.replace(/\p{Surrogate}/gu, '?'); // lone ones, which have no UTF-8: as Python does
}

/** A double, or undefined. `typeof` runs no code of the value. */
function asNumber(value) {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  return isNumber || typeof value === 'boolean' ? Number(value) : undefined;
}

/**
 * The nearest integer, halves to the even one: a number, or a bigint where that is what was given
 * or the end of int64, or undefined.
 */
function nearest(value) {
  if (typeof value === 'bigint') {
    return value < INT64_MIN ? INT64_MIN : value > INT64_MAX ? INT64_MAX : value;
  }
  const x = asNumber(value);
  if (x === undefined || Number.isNaN(x)) return undefined;
  if (x >= 2 ** 63) return INT64_MAX;
  if (x < -(2 ** 63)) return INT64_MIN;
  if (Math.abs(x) >= 2 ** 52) return x; // doubles from here on have no fraction
  return x < 0 ? x - 2 ** 52 + 2 ** 52 : x + 2 ** 52 - 2 ** 52;
}

/** An integer of 64 bits as it is: a number or a bigint, or undefined. */
function integer(value) {
  if (typeof value === 'bigint') return value < INT64_MIN || value > INT64_MAX ? undefined : value;
  const fits = Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
  return fits ? value : undefined;
}

/** The metadata (onnxruntime does not show it here), after a look at format and checksum. */
async function readMetadata(bytes) {
  if (bytes.length > MAX_FILE_BYTES) throw new ArtifactError('the file is too large');
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true }); // which keeps the mark
  const metadata = new Map();
  let content; // the file without its checksum's entry
  for (const { number, payload, start, end } of fields(bytes)) {
    if (number !== 14) continue;
    const [key, value] = [...fields(payload)].map((f) => decoder.decode(f.payload));
    if (metadata.has(key)) throw new ArtifactError('the file is damaged: one key twice');
    metadata.set(key, value);
    if (key === 'labeldp.content_sha256') {
      content = new Blob([bytes.subarray(0, start), bytes.subarray(end)]);
    }
  }
  const format = metadata.get('labeldp.format_version');
  if (format === undefined) throw new ArtifactError('this is no labeldp artifact');
  if (format.split('.')[0] !== FORMAT_MAJOR) {
    throw new ArtifactError(`format ${printable(format)} is unknown: upgrade this reader`);
  }
  if (!content || (await sha256(content)) !== metadata.get('labeldp.content_sha256')) {
    throw new ArtifactError('the file is damaged: its checksum is wrong');
  }
  return metadata;
}

/** SHA-256 of a Blob in hex; browsers offer it to pages from https and from localhost only. */
async function sha256(blob) {
  const digest = await crypto.subtle.digest('SHA-256', await blob.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The fields of a protobuf message: integers (skipped) and byte strings. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (!(byte & 128)) return value;
    }
  };
  while (at < bytes.length) {
    const start = at;
    const tag = varint();
    const length = varint(); // or, in a field that is an integer, its value
    if (tag % 8 === 2) at += length;
    else if (tag % 8 !== 0) throw new ArtifactError('this is no labeldp artifact');
    if (at > bytes.length) throw new ArtifactError('the file is damaged: it ends too early');
    if (tag % 8 === 2) {
      const payload = bytes.subarray(at - length, at);
      yield { number: Math.floor(tag / 8), payload, start, end: at };
    }
  }
}
