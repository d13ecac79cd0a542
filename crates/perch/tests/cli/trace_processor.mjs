// SPDX-License-Identifier: GPL-2.0-or-later
// Loads a trace into Perfetto's trace_processor and asks it.
//
//     node trace_processor.mjs FOLDER TRACE SQL...
//
// FOLDER has trace_processor as Perfetto's viewer has it: WebAssembly and the script of its worker,
// engine_bundle.js. That is a browser's; what it asks of one is little, and is here. A line a row,
// with tabs between the columns. What the trace lost or did not understand is an error.

import fs from "node:fs";
import path from "node:path";

const [, , folder, trace, ...questions] = process.argv;
const file = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

// Protocol buffers, as far as the worker's messages go.
function varint(value) {
	const bytes = [];
	let rest = BigInt(value);
	for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
	return Buffer.from([...bytes, Number(rest)]);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(from, at) {
	let value = 0n;
	for (let shift = 0n; ; shift += 7n) {
		const byte = from[at++];
		value |= BigInt(byte & 127) << shift;
		if (byte < 128) return [value, at];
	}
}
function* fields(from) {
	for (let at = 0; at < from.length; ) {
		let key, value;
		[key, at] = readVarint(from, at);
		const [field, kind] = [Number(key >> 3n), Number(key & 7n)];
		if (kind === 0) {
			[value, at] = readVarint(from, at);
		} else {
			let length = 8n;
			if (kind === 2) [length, at] = readVarint(from, at);
			else if (kind !== 1) throw new Error(`a field of kind ${kind}`);
			value = from.subarray(at, at + Number(length));
			at += Number(length);
		}
		yield [field, value];
	}
}
const all = (message, field) => [...fields(message)].filter(([f]) => f === field).map(([, v]) => v);
function numbers(packed) {
	const found = [];
	for (let at = 0, value; at < packed.length; ) {
		[value, at] = readVarint(packed, at);
		found.push(BigInt.asIntN(64, value));
	}
	return found;
}
const text = (value) => Buffer.from(value).toString();

let columns = 0;
let failed = false;
function fail(what) {
	console.error(what);
	failed = true;
}

// QueryResult: names of columns, an error, batches of cells. A cell says what it is and takes the
// next value of that kind.
function show(result) {
	columns = all(result, 1).length || columns;
	for (const error of all(result, 2)) if (error.length) fail(text(error));
	for (const batch of all(result, 3)) {
		const integers = all(batch, 2).flatMap(numbers);
		const doubles = all(batch, 3).map(Buffer.from);
		const strings = all(batch, 5).map(text).join("").split("\0");
		let row = [];
		let read = 0;
		for (const kind of all(batch, 1).flatMap((cells) => [...cells])) {
			if (kind === 2) row.push(integers.shift());
			else if (kind === 3) row.push(doubles[0].readDoubleLE(8 * read++));
			else if (kind === 4) row.push(strings.shift());
			else row.push("");
			if (row.length === columns) {
				console.log(row.join("\t"));
				row = [];
			}
		}
	}
}

const port = {
	onmessage: null,
	postMessage(reply) {
		for (const message of all(reply, 1)) {
			for (const error of all(message, 5)) fail(`fatal: ${text(error)}`);
			for (const result of all(message, 203)) show(result);
			for (const result of all(message, 201)) {
				for (const error of all(result, 2)) fail(text(error));
			}
		}
	},
};

// What a worker of a browser has, and it looks for.
class WorkerGlobalScope {}
class XMLHttpRequest {
	open(_, url) {
		this.url = url;
	}
	send() {
		this.response = new Uint8Array(file(this.url)).buffer;
		this.status = 200;
	}
}
const type = { headers: { "content-type": "application/wasm" } };
const fetch = async (url) => new Response(file(url), type);
const location = { href: "http://localhost/engine_bundle.js", protocol: "http:", host: "localhost" };
const self = { location, WorkerGlobalScope };
console.warn = () => {};
const quiet = { ...console, log() {}, error() {} };
const names = "self process WorkerGlobalScope fetch XMLHttpRequest location importScripts console";
const worker = new Function(...names.split(" "), text(file("engine_bundle.js")));
worker(self, undefined, WorkerGlobalScope, fetch, XMLHttpRequest, location, () => {}, quiet);

let sequence = 0;
function ask(request, argument = Buffer.alloc(0)) {
	const message = Buffer.concat([number(1, sequence++), number(2, request), argument]);
	port.onmessage({ data: new Uint8Array(bytes(1, message)) });
}

self.onmessage({ data: port });
// There is no word of when the WebAssembly is compiled; until then asking throws.
const query = (sql) => ask(3, bytes(103, bytes(1, Buffer.from(sql))));
for (let waited = 0; ; waited++) {
	await new Promise((resolve) => setTimeout(resolve, 100));
	try {
		query("select 1 where 0");
		break;
	} catch (error) {
		if (waited === 600) throw error;
	}
}
const whole = fs.readFileSync(trace);
for (let at = 0; at < whole.length; at += 1 << 20) ask(1, bytes(101, whole.subarray(at, at + (1 << 20))));
ask(2);
for (const sql of questions) query(sql);
query("select 'ERROR', name, value from stats where severity = 'error' and value > 0");
process.exit(failed ? 1 : 0);
