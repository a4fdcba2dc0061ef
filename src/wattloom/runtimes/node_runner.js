'use strict'
// The other end of runtimes/child.py in Node: loads functions and calls them, one at a time.
// It reads without an event loop, so between calls the process stands still; in a call, promises and timers run.
const fs = require('fs')
const { isUint8Array, isAnyArrayBuffer } = require('util').types
const { pathToFileURL } = require('url')

const LOAD = 1, CALL_JSON = 2, CALL_BYTES = 3
const READY = 16, VALUE_JSON = 17, VALUE_BYTES = 18, RAISED = 19, UNSENDABLE = 20, RAISED_LAST = 21
const HEAD = 13
const requests = Number(process.env.WATTLOOM_REQUESTS)
const replies = Number(process.env.WATTLOOM_REPLIES)
delete process.env.WATTLOOM_REQUESTS
delete process.env.WATTLOOM_REPLIES
const functions = new Map()
const versions = new Map() // by path: the digest that was loaded last
let answering = -1 // the function whose answer is awaited

// -- frames

function readFully(buffer) {
  let at = 0
  while (at < buffer.length) {
    const got = fs.readSync(requests, buffer, at, Math.min(buffer.length - at, 1 << 30), null)
    if (got === 0) process.exit(0) // the worker has gone
    at += got
  }
  return buffer
}

function writeFully(buffer) {
  let at = 0
  while (at < buffer.length) at += fs.writeSync(replies, buffer, at, Math.min(buffer.length - at, 1 << 30))
}

function answer(kind, body) {
  if (answering < 0) return // it was answered already
  const head = Buffer.alloc(HEAD)
  head.writeUInt8(kind, 0)
  head.writeUInt32LE(answering, 1)
  head.writeBigUInt64LE(BigInt(body.length), 5)
  answering = -1
  if (body.length < 65536) writeFully(Buffer.concat([head, body]))
  else {
    writeFully(head)
    writeFully(body)
  }
}

// What was printed and did not fit into the pipe at once.
async function flush() {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writableLength > 0) await new Promise((resolve) => stream.write('', resolve))
  }
}

// -- failures

function told(problem) {
  const isError = problem !== null && typeof problem === 'object' && 'message' in problem
  const type = isError ? String(problem.name || (problem.constructor && problem.constructor.name) || 'Error') : typeof problem
  let message
  try {
    message = isError ? String(problem.message) : String(problem)
  } catch {
    message = '(what it says cannot be read)'
  }
  let traceback = isError && typeof problem.stack === 'string' ? problem.stack : `${type}: ${message}`
  for (let cause = isError && problem.cause, deep = 0; cause && deep < 8; cause = cause.cause, deep++) {
    traceback += `\nCaused by: ${cause.stack || cause}`
  }
  const code = isError && typeof problem.code === 'string' ? { code: problem.code } : {}
  return Buffer.from(JSON.stringify({ type, message, traceback, ...code }))
}

process.on('uncaughtException', (problem) => {
  if (answering < 0) {
    console.error(problem)
  } else {
    answer(RAISED_LAST, told(problem))
  }
  process.exit(1)
})

// -- functions

async function moduleAt(path, digest) {
  const before = versions.get(path)
  const changed = before !== undefined && before !== digest
  versions.set(path, digest)
  if (!path.endsWith('.mjs')) {
    try {
      if (changed) delete require.cache[require.resolve(path)]
      return require(path)
    } catch (problem) {
      const isModule = ['ERR_REQUIRE_ESM', 'ERR_REQUIRE_ASYNC_MODULE'].includes(problem && problem.code)
      const looksLikeOne = problem instanceof SyntaxError && /\b(import|export)\b|await is only valid/.test(problem.message)
      if (!isModule && (!looksLikeOne || path.endsWith('.cjs'))) throw problem
      if (looksLikeOne) problem.message += ' (an ES module is called .mjs, or has "type": "module" in its package.json)'
      if (looksLikeOne) throw problem
    }
  }
  return import(pathToFileURL(path).href + (changed ? `?${digest}` : ''))
}

function named(error, message) {
  const problem = new Error(message)
  problem.name = error
  problem.stack = `${error}: ${message}`
  return problem
}

function exported(found, entry, path) {
  const file = path.split('/').pop()
  const has = (value, key) => value !== null && ['object', 'function'].includes(typeof value) && key in value
  if (!entry) {
    for (const choice of [found.handler, found.default, found.default && found.default.handler, found]) {
      if (typeof choice === 'function') return choice
    }
  } else {
    for (const start of [found, found.default]) {
      let value = start
      let owner
      for (const part of entry.split('.')) {
        owner = value
        value = has(value, part) ? value[part] : undefined
      }
      if (typeof value === 'function') return owner === found ? value : value.bind(owner)
    }
  }
  const names = Object.keys(found).concat(Object.keys(found.default || {})).filter((name, at, all) => all.indexOf(name) === at)
  const there = names.length ? `it exports ${names.join(', ')}` : 'it exports nothing'
  throw named('NoSuchExport', `${file} exports no function ${entry || 'handler'}; ${there}`)
}

async function load(number, body) {
  const { path, entry, digest } = JSON.parse(body.toString())
  functions.set(number, exported(await moduleAt(path, digest), entry, path))
  answer(READY, Buffer.alloc(0))
}

// -- calls

function refuseOddNumbers(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw named('NotJson', `it has ${value}${key ? ` (at ${JSON.stringify(key)})` : ''}, which JSON has no word for`)
  }
  return value
}

function asJson(value) {
  if (value === undefined) return 'null'
  if (typeof value === 'function' || typeof value === 'symbol') throw named('NotJson', `it is a ${typeof value}`)
  const text = JSON.stringify(value)
  if (text === undefined) throw named('NotJson', `it is a ${typeof value}`)
  if (text.includes('null')) JSON.stringify(value, refuseOddNumbers) // JSON.stringify writes NaN as null
  return text
}

function bytesOf(value) {
  if (Buffer.isBuffer(value)) return value
  if (isUint8Array(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (isAnyArrayBuffer(value)) return Buffer.from(value)
  return null
}

async function call(number, kind, body) {
  const args = kind === CALL_BYTES ? [body] : JSON.parse(body.toString())
  const value = await functions.get(number)(...args)
  await flush()
  const bytes = bytesOf(value)
  if (bytes !== null) return answer(VALUE_BYTES, bytes)
  let text
  try {
    text = asJson(value)
  } catch (problem) {
    return answer(UNSENDABLE, Buffer.from(String((problem && problem.message) || problem)))
  }
  answer(VALUE_JSON, Buffer.from(text))
}

async function main() {
  for (;;) {
    const head = readFully(Buffer.alloc(HEAD))
    const kind = head.readUInt8(0)
    const number = head.readUInt32LE(1)
    const body = readFully(Buffer.allocUnsafeSlow(Number(head.readBigUInt64LE(5))))
    answering = number
    try {
      if (kind === LOAD) await load(number, body)
      else await call(number, kind, body)
    } catch (problem) {
      await flush()
      answer(RAISED, told(problem))
    }
  }
}

main()
