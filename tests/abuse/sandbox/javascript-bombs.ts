import { type Attack, bursts, ends, fails, gets, prints, spins } from './attack.ts'

/** Memory bombs of every kind. */
export const memoryBombs: readonly Attack[] = [
  bursts('strings in an array', `const all = []; for (;;) all.push('x'.repeat(1000) + all.length)`),
  bursts('a string that doubles', `let text = 'x'; for (;;) text += text + 'y'`),
  bursts('a rope that is flattened', `let text = 'x'; for (let i = 0; i < 29; i++) text += text; text.charCodeAt(5)`),
  bursts('one buffer', `new ArrayBuffer(2 ** 40)`),
  bursts('many buffers', `const all = []; for (;;) all.push(new Uint8Array(1024 * 1024).fill(1))`),
  bursts('shared buffers', `const all = []; for (;;) all.push(new SharedArrayBuffer(1024 * 1024))`),
  bursts('a filled array', `new Array(2 ** 32 - 1).fill('x')`),
  bursts('a map', `const map = new Map(); for (let i = 0; ; i++) map.set('key' + i, { i })`),
  bursts('closures', `let f = () => 0; for (;;) { const g = f; f = () => g }`),
  bursts('properties', `const o = {}; for (let i = 0; ; i++) o['p' + i] = i`),
  bursts('symbols', `const all = []; for (;;) all.push(Symbol('x'.repeat(100)))`),
  bursts('a number without end', `2n ** (2n ** 40n)`),
  bursts('a number that squares', `let n = 3n; for (;;) n *= n`),
  bursts('promises', `const all = []; for (;;) all.push(new Promise(() => {}))`),
  bursts('padding', `'x'.padEnd(2 ** 30 - 1)`),
  bursts('a deep list as result', `let list = []; for (let i = 0; i < 1e6; i++) list = [list]; list`),
  bursts('a result that grows exponentially', `let o = ['x']; for (let i = 0; i < 40; i++) o = [o, o]; o`),
  bursts(
    'an exception that keeps memory',
    `const all = []; for (;;) try { for (;;) all.push('x'.repeat(1e5) + all.length) } catch {}`,
  ),
  ends('a large expression', `new RegExp('(a{0,1000}){0,1000}'.repeat(20)).test('a'.repeat(10))`),
  ends('matches', `'a'.repeat(1e6).match(/a/g).length`),
]

/** Loops, also where the engine cannot be interrupted. */
export const loops: readonly Attack[] = [
  spins('a loop', `for (;;);`),
  spins('a loop that catches', `for (;;) try { for (;;); } catch {}`),
  spins('a loop after a loop', `try { for (;;); } finally { for (;;); }`),
  bursts('a recursion of promises', `const again = () => Promise.resolve().then(again); await again()`),
  spins('an async loop', `for (;;) await null`),
  spins('a catastrophic expression', `/^(a+)+$/.test('a'.repeat(50) + 'b')`),
  ends('a sort that lies', `Array.from({ length: 2e5 }, (_, i) => i).sort(() => Math.random() - 0.5).length`),
  ends('an endless generator', `[...(function* () { for (;;) yield 1 })()]`),
  ends('a large split', `'a,'.repeat(5e6).split(',').length`),
  ends('a deep text to parse', `JSON.parse('['.repeat(1e6))`),
  ends('joining nothing', `new Array(2 ** 31).join('')`),
  ends('searching in vain', `'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b')`),
  ends('replacing', `'a'.repeat(1e6).replaceAll('a', 'b'.repeat(100)).length`),
  spins('a getter of the result', `({ get x() { for (;;); } })`),
  spins('toJSON of the result', `({ toJSON() { for (;;); } })`),
  spins('a proxy as result', `new Proxy({}, { ownKeys() { for (;;); } })`),
  spins('a thenable as result', `({ then() { for (;;); } })`),
  spins('the message of an exception', `throw { get message() { for (;;); } }`),
  spins('timers for ever', `const again = () => setTimeout(again, 5); again(); await new Promise(() => {})`, {
    timeoutMs: 300,
  }),
  spins('a host function that never answers', `await host('never', '')`, { timeoutMs: 300 }),
  ends('waiting on shared memory', `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`, { timeoutMs: 500 }),
  ends('a promise that nobody fulfils', `await new Promise(() => {})`),
  spins('a million jobs', `for (;;) await Promise.all(Array.from({ length: 1000 }, async () => null))`),
]

/** Floods of what leaves the sandbox. */
export const floods: readonly Attack[] = [
  prints('lines for ever', `for (;;) console.log('flood')`),
  prints('lines for ever that it catches', `for (;;) try { for (;;) console.log('flood') } catch {}`),
  prints('long lines for ever', `const line = 'x'.repeat(1e5); for (;;) console.log(line)`),
  gets('one long line', 1, `console.log('x'.repeat(5e6)); 1`, { logs: 65_536 }),
  gets('a large result', true, `'x'.repeat(4e5)`, { value: undefined }),
  fails('a large exception', `throw new Error('x'.repeat(1e6))`, { error: /^Error: x{8000}$/ }),
  fails('an exception with a large name', `const e = new Error('y'); e.name = 'x'.repeat(1e6); throw e`, {
    error: /^x{200}: y$/,
  }),
  gets(
    'calls without end',
    'OVERLOADED',
    `let code; for (let i = 0; i < 300; i++) host('echo', '1').catch((e) => { code = e.code })
await null; await null; code`,
  ),
  gets('a call that is too large', 'OVERLOADED', `await host('echo', 'x'.repeat(3e6)).catch((e) => e.code)`),
  gets('a name that is too long', 'OVERLOADED', `await host('n'.repeat(3e6), '').catch((e) => e.code)`),
  ends('a name that is rather long', `await host('n'.repeat(3000), '').catch((e) => e.code)`),
  gets(
    'timers without end',
    true,
    `const codes = []
for (let i = 0; i < 1200; i++) setTimeout(() => {}, 1e6)
true`,
  ),
  gets('rejections that nobody handles', 1, `for (let i = 0; i < 1e4; i++) Promise.reject(new Error('x')); 1`),
]
