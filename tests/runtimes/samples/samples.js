// What `wattloom.testing.runtime_conformance` asks for, and a few more.
let calls = 0
exports.echo = (value) => value
exports.add = (a, b) => a + b
exports.fail = (text) => {
  throw new RangeError(text)
}
exports.say = (text, times) => {
  for (let i = 0; i < times; i++) console.log(text)
}
exports.grow = (n) => 'x'.repeat(n)
exports.spin = (seconds) => {
  const used = () => process.cpuUsage().user + process.cpuUsage().system
  for (const end = used() + seconds * 1e6; used() < end; ) for (let i = 0; i < 1e6; i++);
}
exports.nan = () => ({ figures: [1, NaN] })
exports.count = () => calls++
exports.end = (code) => process.exit(code)
exports.die = () => process.kill(process.pid, 'SIGKILL')

exports.later = async (value) => {
  await new Promise((resolve) => setTimeout(resolve, 10))
  return value
}
exports.loop = () => {
  for (;;);
}
exports.sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000, process.pid))
exports.pid = () => process.pid
exports.env = (name) => process.env[name] ?? null
exports.stray = () => new Promise(() => setTimeout(() => { throw new TypeError('behind its back') }, 5))
exports.settled_by_nobody = () => new Promise(() => {})
exports.dieOnce = (file) => {
  const fs = require('fs')
  if (fs.existsSync(file)) return 'second time'
  fs.writeFileSync(file, '')
  process.kill(process.pid, 'SIGKILL')
}
