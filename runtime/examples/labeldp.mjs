// Runs a labeldp artifact on onnxruntime-node (Node 20.16 or newer) or onnxruntime-web: one file for
// both, to paste into a service.
//
//   import ort from 'onnxruntime-node';  // or: import * as ort from 'onnxruntime-web/wasm';
//   const randomizer = await Randomizer.load(ort, await readFile('doctor-visits.onnx'));
//   const noisy = await randomizer.randomize([0, 3, 12, null, 1e9]);
//   // of an artifact with a table for each public group:
//   const more = await byGroup.randomize(labels, { columns: { age: ages, work: works } });
//   // of an artifact that answers with sets of labels, by their numbers:
//   const classes = bySets.members((await bySets.randomize(['red']))[0]);
//   // of an artifact whose labels have several columns:
//   const { converted, value } = await joint.randomize({ converted: ['yes'], value: [3] });
//
// Randomizing one label twice spends its ε twice.

const FORMAT_MAJOR = '1';
const MAX_FILE_BYTES = 64 * 2 ** 20;
const CHUNK = 16384; // labels per run: the tensors of one chunk stay in a core's cache
const MAX_POINTS = 2 ** 20; // of a grid
const SHOWN = 200; // characters of a file's text in an error
const FEW_WORDS = 128; // fewer come sooner from the kernel than from AES
const WORDS_A_DRAW = 8192; // getRandomValues gives at most 65,536 bytes
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UNPREPARED =
  'its ε holds only if the rows meet its rules of persons or of labels that change, ' +
  'as labeldp randomize enforces';
// Windows has no such copies of a process, and browsers let a page do nothing about theirs.
const RUNS_ON_NODE = !!globalThis.process?.versions?.node && process.platform !== 'win32';
const ARRAYS = { float64: Float64Array, int64: BigInt64Array, string: Array };

/** The artifact cannot be used; the message says why. */
export class ArtifactError extends Error {
  name = 'ArtifactError';
}

/** A compiled label randomizer, made by `Randomizer.load`: fresh random bits at every call. */
export class Randomizer {
  #ort;
  #session;
  #width; // random words per label
  #limbs = 0; // of a word; 0 if the graph takes whole words
  #labels; // of each column: its name, the graph's input, its type, what replaces null, and NUL
  #groups; // the same for the group columns
  #outputs; // of each column of private labels: the graph's output and its type
  #sets; // of labels, if private labels are sets

  /** The claims in the file. `labeldp verify` proves them, once, before deployment. */
  certificate;

  /**
   * Load an artifact from its bytes (Uint8Array or ArrayBuffer), with onnxruntime as `ort`, and
   * test the platform with the vectors inside. Throws an ArtifactError unless all is well.
   *
   * `prepared` says that the rows meet the certificate's rules of persons (`person`) or of labels
   * that change (`mature`), which only `labeldp randomize` enforces.
   */
  static async load(ort, bytes, { prepared = false } = {}) {
    bytes = new Uint8Array(bytes);
    const metadata = await readMetadata(bytes);
    const randomizer = new Randomizer();
    let columns;
    try {
      const text = metadata.get('labeldp.certificate');
      randomizer.certificate = JSON.parse(text);
      if (randomizer.certificate.insecure === undefined) throw new Error('a field is missing');
      columns = labelColumns(randomizer.certificate, text);
      randomizer.#sets = setsOf(randomizer.certificate, columns);
    } catch (error) {
      if (error instanceof PublicNullsError) {
        throw new ArtifactError('its nulls stay null (nulls: public): use labeldp randomize');
      }
      throw new ArtifactError('the certificate is damaged'); // a cause would quote it
    }
    if (randomizer.certificate.insecure !== null) {
      throw new ArtifactError(`made for tests only: ${printable(randomizer.certificate.insecure)}`);
    }
    const { person, mature } = randomizer.certificate;
    if (!prepared && (person !== undefined || mature !== undefined)) {
      throw new ArtifactError(`${UNPREPARED}: if they do, load it with { prepared: true }`);
    }
    try {
      const session = await ort.InferenceSession.create(bytes, {
        executionProviders: ['cpu'], // onnxruntime-web knows its wasm by this name, too
        intraOpNumThreads: 1,
        interOpNumThreads: 1,
        logSeverityLevel: 4,
      });
      const at = session.inputMetadata.findIndex(({ name }) => name === 'entropy');
      randomizer.#ort = ort;
      randomizer.#session = session;
      const { type, shape } = session.inputMetadata[at];
      if (type === 'int64') randomizer.#limbs = randomizer.certificate.portable.limbs_per_word;
      randomizer.#width = (shape[1] ?? 1) / (randomizer.#limbs || 1);
      randomizer.#labels = session.inputMetadata.slice(0, at).map(asColumn);
      randomizer.#groups = session.inputMetadata.slice(at + 1).map(asColumn);
      randomizer.#outputs = session.outputMetadata.map(asColumn);
    } catch (error) {
      const cause = printable(error?.message);
      throw new ArtifactError('onnxruntime cannot load the file', { cause });
    }
    try {
      randomizer.#nameColumns(columns);
    } catch {
      throw new ArtifactError('the certificate is damaged');
    }
    if (!(await randomizer.#passesSelfTest(metadata.get('labeldp.self_test')))) {
      throw new ArtifactError('this build of onnxruntime gives wrong results: use another version');
    }
    return randomizer;
  }

  /**
   * Private labels for an array of labels: Float64Array, or BigInt64Array or string[] for
   * categories; BigInt64Array if private labels are numbers of sets (see `members`).
   *
   * If labels have several columns, give an object with an array for each of the `labelColumns`.
   * The private columns come in such an object (numbers of sets are one array). Throws a TypeError
   * unless all columns are there, with one label per row.
   *
   * Labels are an array or, if they are numbers, any typed array. Numbers, bigints and booleans (0
   * and 1) are numbers; integer labels are rounded to the nearest integer (halves to even). Each
   * element is read on its own, and none throws, because an error would disclose it. Elements that
   * are not numbers (not text), NaN, holes, getters and labels outside the domain follow the
   * artifact's out-of-domain rule. JavaScript rounds integers above 2^53 before they get here: read
   * such labels into bigints. Throws a TypeError for another type than an array, and for a typed
   * array if labels are text.
   *
   * An artifact with a table for each public group takes `groups`, one per label, if they come from
   * one column. Otherwise it takes `columns`, an object with the `groupColumns` by name: text,
   * integers (not rounded: 2.5 is not a listed integer), or numbers for bands. Groups that are not
   * listed have the table of all others. Throws a TypeError unless there is one group per label.
   */
  async randomize(labels, { groups, columns } = {}) {
    const arrays = this.#read(labels, groups, columns);
    return this.#chunked(arrays, (start, end) => freshWords(end - start));
  }

  /**
   * As `randomize`, with words that the caller supplies, for tests: a BigUint64Array, from which
   * each label takes its share in turn. They must be uniform, secret and never used twice.
   */
  async applyWords(labels, words, { groups, columns } = {}) {
    const arrays = this.#read(labels, groups, columns);
    const count = arrays[0].length * this.#width;
    if (words.length !== count) {
      throw new TypeError(`expected ${count} words, got ${words.length}`);
    }
    return this.#chunked(arrays, (start, end) => words.slice(start, end));
  }

  /**
   * The labels in a private label, if private labels are sets: in the order of the domain, as
   * strings, as numbers, or as bigints if they are categories.
   *
   * Subset selection answers with the number of a set (a bigint; an integer is accepted) or, at a
   * large ε, with a label, which is a set of one. Throws a TypeError if private labels are not
   * sets, and for a value that is not a private label of this artifact. If labels have several
   * columns, each label is an array with one value per column.
   */
  members(output) {
    if (this.#sets === undefined) {
      throw new TypeError('the private labels of this artifact are not sets of labels');
    }
    return membersOf(this.#sets, output);
  }

  /** The names of the group columns; none if there is one table for all. */
  get groupColumns() {
    return this.#groups.map(({ name }) => name);
  }

  /** The names of the label columns: one or several. */
  get labelColumns() {
    return this.#labels.map(({ name }) => name);
  }

  /** Names the graph's inputs; throws if the certificate has other ones, or other outputs. */
  #nameColumns(labels) {
    const { groups } = this.certificate;
    const columns = groups === undefined ? [] : groups.columns;
    if ((groups !== undefined) !== columns.length > 0) throw new Error('there are no groups');
    this.#labels = named(this.#labels, labels);
    this.#groups = named(this.#groups, columns).map((column) => {
      if (typeof column.name !== 'string') throw new Error('a column has no name');
      return { ...column, missing: unlisted(column.values, column.type) };
    });
    const outputs = this.#sets?.blocks ? 1 : labels.length; // a set's number has no columns
    if (this.#outputs.length !== outputs) throw new Error('these are not those of the graph');
  }

  /** Labels and groups as the graph's inputs take them, in their order. */
  #read(labels, groups, columns) {
    const arrays = this.#readLabels(labels);
    return [...arrays, ...this.#readGroups(groups, columns, arrays[0].length)];
  }

  #readLabels(labels) {
    const [first, ...others] = this.#labels;
    if (!others.length) return [convert(labels, first)];
    if (typeof labels !== 'object' || labels === null || isArray(labels)) {
      const names = printable(this.labelColumns);
      throw new TypeError(`expected label columns by name: ${names}`);
    }
    const arrays = this.#labels.map((column) =>
      convert(columnOf(labels, column.name, 'labels'), column),
    );
    const counts = arrays.map((array) => array.length);
    if (new Set(counts).size > 1) {
      throw new TypeError(`expected one label per row in each column, got ${counts.join(', ')}`);
    }
    return arrays;
  }

  /** The columns of groups as the graph's inputs take them. */
  #readGroups(groups, columns, count) {
    const given = [groups, columns].filter((value) => value !== undefined).length;
    if (!this.#groups.length) {
      if (!given) return [];
      throw new TypeError('this artifact has one table for all labels and takes no groups');
    }
    if (given !== 1 || (groups !== undefined && this.#groups.length > 1)) {
      const names = printable(this.groupColumns);
      throw new TypeError(`expected one group per label, as columns by name: ${names}`);
    }
    return this.#groups.map((column) => {
      const given = groups === undefined ? columnOf(columns, column.name, 'groups') : groups;
      const values = convert(given, column, true);
      if (values.length !== count) {
        throw new TypeError(`expected one group per label, got ${values.length} of ${count}`);
      }
      return values;
    });
  }

  async #chunked(arrays, words) {
    const count = arrays[0].length;
    const outputs = this.#outputs.map(({ type }) => new ARRAYS[type](count));
    for (let start = 0; start < count; start += CHUNK) {
      const parts = arrays.map((array) => array.slice(start, start + CHUNK));
      const end = start + parts[0].length;
      const chunks = await this.#run(parts, words(start * this.#width, end * this.#width));
      outputs.forEach((output, column) => {
        if (output.set) output.set(chunks[column], start);
        else chunks[column].forEach((text, i) => (output[start + i] = text));
      });
    }
    if (outputs.length === 1) return outputs[0];
    return Object.fromEntries(this.#labels.map(({ name }, i) => [name, outputs[i]]));
  }

  async #run(arrays, words) {
    const { Tensor } = this.#ort;
    const n = arrays[0].length;
    const width = this.#width * (this.#limbs || 1);
    const shape = width === 1 ? [n] : [n, width];
    const entropy = this.#limbs
      ? new Tensor('int64', inLimbs(words, this.#limbs), shape)
      : new Tensor('uint64', words, shape);
    const feed = { entropy };
    [...this.#labels, ...this.#groups].forEach(({ graphName, type }, i) => {
      feed[graphName] = new Tensor(type, arrays[i], [n]);
    });
    const answer = await this.#session.run(feed);
    return this.#outputs.map(({ graphName }) => answer[graphName].data);
  }

  async #passesSelfTest(text) {
    try {
      const vectors = JSON.parse(text);
      const number = (text) => Number(text.replace('inf', 'Infinity'));
      const parse = { float64: number, int64: BigInt, string: String };
      const read = (columns, rows) =>
        columns.map(({ type }, i) =>
          ARRAYS[type].from(rows, (row) => parse[type](Array.isArray(row) ? row[i] : row)),
        );
      const words = BigUint64Array.from(vectors.words.flat(), (hex) => BigInt(`0x${hex}`));
      const labels = read(this.#labels, vectors.labels);
      const got = await this.#run([...labels, ...read(this.#groups, vectors.groups)], words);
      const isSame = (column, values) =>
        values.length > 0 &&
        values.length === column.length &&
        column.every((value, i) => Object.is(value, values[i]));
      return read(this.#outputs, vectors.outputs).every((column, i) => isSame(column, got[i]));
    } catch {
      return false;
    }
  }
}

/** Text of a file as one line for terminals and logs: no control characters, no bidi marks. */
export function printable(value) {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value)}`;
  const escaped = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
  return text.slice(0, SHOWN).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

/** Words as portable files take them: the lowest 31 bits of each limb, in int64. */
function inLimbs(words, limbs) {
  const found = new BigInt64Array(words.length * limbs);
  words.forEach((word, i) => {
    found[i * limbs] = word >> 33n;
    found[i * limbs + 1] = (word >> 2n) & 0x7fffffffn;
    if (limbs > 2) found[i * limbs + 2] = (word & 3n) << 29n;
  });
  return found;
}

/** Fresh secret uniform words. */
function freshWords(count) {
  const words = new BigUint64Array(count);
  if (RUNS_ON_NODE) {
    fillOnNode(words);
    return words;
  }
  for (let start = 0; start < count; start += WORDS_A_DRAW) {
    crypto.getRandomValues(words.subarray(start, start + WORDS_A_DRAW));
  }
  return words;
}

/**
 * On Node few words come from the kernel; many are the stream of AES-256 in counter mode under a key
 * from the kernel. No generator is kept between calls: that of Node (OpenSSL's) draws the same in a
 * copy of the process (a checkpoint that is restored twice) with the same process id.
 */
function fillOnNode(words) {
  if (words.length <= FEW_WORDS) {
    fillByKernel(words);
    return;
  }
  const { createCipheriv } = process.getBuiltinModule('node:crypto');
  const cipher = createCipheriv('aes-256-ctr', fillByKernel(new Uint8Array(32)), new Uint8Array(16));
  const bytes = new Uint8Array(words.buffer);
  bytes.set(cipher.update(bytes)); // which are zeros
}

let kernel; // the open device

/** A typed array, filled with random bytes of the kernel. */
function fillByKernel(array) {
  const { fstatSync, openSync, readSync } = process.getBuiltinModule('node:fs');
  if (kernel === undefined) {
    const device = openSync('/dev/urandom', 'r');
    if (!fstatSync(device).isCharacterDevice()) throw new Error('/dev/urandom is not a device');
    kernel = device;
  }
  if (readSync(kernel, array) !== array.byteLength) throw new Error('no random bytes came');
  return array;
}

/** For each label column its name, its domain, and labels for the rules of nulls and of others. */
function labelColumns({ label, joint }, certificateText) {
  const isJoint = label.domain.kind === 'joint';
  if (isJoint !== (joint !== undefined)) throw new Error('one has no columns');
  const domains = isJoint ? label.domain.columns : [label.domain];
  const names = isJoint ? joint.columns.map(({ name }) => name) : [label.column];
  if (isJoint && !(domains.length > 1 && names.every((name) => typeof name === 'string'))) {
    throw new Error('these are no columns');
  }
  if (domains.length !== names.length || new Set(names).size !== names.length) {
    throw new Error('these are no columns');
  }
  const exact = exactDomains(domains, certificateText);
  return domains.map((domain, i) => {
    const other = unlisted(exact[i].values, 'string'); // no rule but that of text asks for it
    return { name: names[i], domain: exact[i], missing: missingLabel(exact[i]), other };
  });
}

/** Domains whose integer categories and defaults are bigints, exact beyond 2^53, too. */
function exactDomains(domains, certificateText) {
  // What is read here is as the file has it, but each integer a text.
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
  const quote = (text) => (/^-?\d+$/.test(text) ? `"${text}"` : text);
  const isInteger = ({ kind, out_of_domain: rule }) => {
    const { others, nulls } = rulesOf(rule);
    const stated = [others.default, nulls.default].some((label) => typeof label === 'number');
    return kind !== 'real' && kind !== 'grid' && stated;
  };
  if (!domains.some(isInteger)) return domains;
  const { domain } = JSON.parse(certificateText.replace(token, quote)).label;
  const texts = domains.length > 1 ? domain.columns : [domain];
  return domains.map((own, i) => {
    if (!isInteger(own)) return own;
    const { others, nulls } = rulesOf(texts[i].out_of_domain);
    const exact = (rule) => (rule.default === undefined ? rule : { default: BigInt(rule.default) });
    const rule = { others: exact(others), nulls: exact(nulls) };
    if (own.kind === 'integer') return { ...own, out_of_domain: rule };
    if (!own.values.every(Number.isInteger)) throw new Error('it has no categories');
    return { ...own, values: texts[i].values.map(BigInt), out_of_domain: rule };
  });
}

/**
 * The rule for labels outside the domain, and that for nulls. Files without a rule for nulls treat
 * them like other values.
 */
function rulesOf(rule) {
  if (rule.nulls === undefined) return { others: rule, nulls: rule };
  return { others: rule.others, nulls: rule.nulls };
}

/** A label that the graph treats by the rule for nulls. */
function missingLabel({ kind, out_of_domain: rule }) {
  const { nulls } = rulesOf(rule);
  if (nulls === 'public') throw new PublicNullsError();
  if (kind === 'real' || kind === 'grid') return NaN;
  if (nulls === 'clamp') return INT64_MIN;
  if (!['string', 'bigint'].includes(typeof nulls.default)) throw new Error('it has no default');
  return nulls.default;
}

/** Where nulls stay null: an array of private labels has no place for them. */
class PublicNullsError extends Error {}

/** The sets of labels, if private labels are sets; throws if they are damaged. */
function setsOf({ sets, outputs }, columns) {
  if (sets === undefined) return undefined;
  const domains = columns.map((column) => domainOf(column.domain));
  const domain = domains.length > 1 ? jointOf(domains) : domains[0];
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
function domainOf({ kind, min, max, points, values }) {
  if (kind === 'integer') {
    const count = max - min + 1;
    if (!(Number.isSafeInteger(min) && Number.isSafeInteger(max) && count > 0)) {
      throw new Error('this is no range');
    }
    return { count, at: (i) => min + i, indexOf: (label) => rangeIndex(min, max, label) };
  }
  if (kind === 'real') {
    const fits = Number.isInteger(points) && points > 1 && points <= MAX_POINTS;
    if (!(fits && min < max && Number.isFinite(max - min))) throw new Error('this is no grid');
    const at = (i) => gridPoint(min, max, points - 1, i);
    return { count: points, at, indexOf: (label) => gridIndex(min, max, points, at, label) };
  }
  if (kind !== 'categorical' || !Array.isArray(values)) throw new Error('it has no categories');
  const isText = values.every((value) => typeof value === 'string');
  if (!values.length || !(isText || values.every((value) => typeof value === 'bigint'))) {
    throw new Error('it has no categories');
  }
  const indexOf = (label) => values.indexOf(isText ? label : asBigInt(label));
  return { count: values.length, at: (i) => values[i], indexOf };
}

/** The combinations of several domains, the last domain fastest. */
function jointOf(domains) {
  const at = (number) =>
    domains.reduceRight((labels, domain) => {
      labels.unshift(domain.at(number % domain.count));
      number = Math.floor(number / domain.count);
      return labels;
    }, []);
  const indexOf = (labels) => {
    if (!Array.isArray(labels) || labels.length !== domains.length) return -1;
    const places = domains.map((domain, i) => domain.indexOf(labels[i]));
    if (places.includes(-1)) return -1;
    return places.reduce((number, place, i) => number * domains[i].count + place, 0);
  };
  const count = domains.reduce((product, domain) => product * domain.count, 1);
  if (!Number.isSafeInteger(count)) throw new Error('these are too many combinations');
  return { count, at, indexOf };
}

function rangeIndex(min, max, label) {
  const whole = Number(asBigInt(label) ?? NaN);
  return whole >= min && whole <= max ? whole - min : -1;
}

function gridIndex(min, max, points, at, label) {
  if (typeof label !== 'number' || !(label >= min && label <= max)) return -1;
  const index = Math.round(((label - min) / (max - min)) * (points - 1));
  return at(index) === label ? index : -1;
}

/**
 * The double nearest to min + (max − min)·i/steps, halves to the even one, as Python has it. What
 * the division cuts off decides nothing: steps have 20 bits, so that a quotient of which 63 bits
 * are 0 is exact.
 */
function gridPoint(min, max, steps, i) {
  const sum = leastDoubles(min) * BigInt(steps - i) + leastDoubles(max) * BigInt(i);
  const size = ((sum < 0n ? -sum : sum) << 64n) / BigInt(steps);
  const shift = BigInt(Math.max(size.toString(2).length - 53, 64)); // the bits to round away
  const half = 1n << (shift - 1n);
  const rest = size & (2n * half - 1n);
  let whole = size >> shift;
  if (rest > half || (rest === half && whole & 1n)) whole++;
  return (sum < 0n ? -1 : 1) * Number(whole) * 2 ** (Number(shift) - 64 - 1074);
}

/** A double as a multiple of the least of them, 2^-1074. */
function leastDoubles(x) {
  let shift = 1074n;
  for (; !Number.isInteger(x); shift--) x *= 2;
  return BigInt(x) << shift;
}

/** A bigint, or a number that is whole as one; undefined otherwise. */
function asBigInt(value) {
  if (typeof value === 'bigint') return value;
  return Number.isInteger(value) ? BigInt(value) : undefined;
}

/** The labels in a private label; a TypeError quotes no label. */
function membersOf({ domain, blocks }, output) {
  if (blocks === null) {
    const index = domain.indexOf(output);
    if (index < 0) throw new TypeError('this is not a private label of the artifact');
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

/** An input or output of the graph, whose name need not be that of its column. */
function asColumn({ name, type }) {
  return { graphName: name, type };
}

/** Inputs of the graph with what a certificate says of their columns; throws unless as many. */
function named(inputs, columns) {
  if (columns.length !== inputs.length) throw new Error('these are not those of the graph');
  return inputs.map((input, i) => ({ ...columns[i], ...input }));
}

/** A column of an object by its name. */
function columnOf(columns, name, what) {
  if (!Object.hasOwn(columns ?? {}, name)) {
    throw new TypeError(`expected a column ${printable(name)} of ${what}`);
  }
  return columns[name];
}

function isArray(values) {
  return Array.isArray(values) || ArrayBuffer.isView(values);
}

/** A value that is not listed; as a group it replaces null. */
function unlisted(values, type) {
  if (type === 'float64') return NaN;
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
 * container's type alone, and each element is read on its own.
 */
function convert(values, { type, missing, other = missing }, areGroups = false) {
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
    for (let i = 0; i < labels.length; i++) labels[i] = asText(element(i), other) ?? missing;
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

/** An array's element; getters are not called, since they could change other elements. */
function ownElement(values, i) {
  try {
    return Object.getOwnPropertyDescriptor(values, i)?.value;
  } catch {
    return undefined; // the trap of a proxy
  }
}

/** Text as onnxruntime takes it, or undefined. It would cut text at a NUL; no category has one. */
function asText(value, other) {
  if (typeof value !== 'string') return undefined;
  if (value.includes('\0')) return other;
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
    if (metadata.has(key)) throw new ArtifactError('the file is damaged: a key occurs twice');
    metadata.set(key, value);
    if (key === 'labeldp.content_sha256') {
      content = new Blob([bytes.subarray(0, start), bytes.subarray(end)]);
    }
  }
  const format = metadata.get('labeldp.format_version');
  if (format === undefined) throw new ArtifactError('this is not a labeldp artifact');
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
    else if (tag % 8 !== 0) throw new ArtifactError('this is not a labeldp artifact');
    if (at > bytes.length) throw new ArtifactError('the file is damaged: it ends too early');
    if (tag % 8 === 2) {
      const payload = bytes.subarray(at - length, at);
      yield { number: Math.floor(tag / 8), payload, start, end: at };
    }
  }
}
