import { type Attack, ends, fails, gets } from './attack.ts'

/** Attempts at the bridge between a program and its host: they may harm the program itself, and nobody else. */
export const tampering: readonly Attack[] = [
  gets('another host', 'mine', `globalThis.host = async () => 'mine'; await host('echo', '1')`),
  gets('another stringify', [1, 2], `JSON.stringify = () => '"forged"'; [1, 2]`),
  gets('another parse', [1], `JSON.parse = () => 'forged'; [1]`),
  ends('toJSON for everything', `Object.prototype.toJSON = () => 'forged'; ({ a: 1 })`),
  ends('another then', `Promise.prototype.then = () => { throw new Error('no') }; await host('echo', '1')`),
  ends(
    'another promise',
    `globalThis.Promise = class { constructor() { throw new Error('no') } }; await host('echo', '1')`,
  ),
  ends(
    'polluted objects',
    `Object.prototype.status = 'ok'; Object.prototype.broken = true; Object.prototype.code = 'x'; throw new Error('x')`,
  ),
  ends(
    'a setter on every object',
    `Object.defineProperty(Object.prototype, 'name', { set() { throw 1 }, get() { return {} } }); throw {}`,
  ),
  ends('polluted arrays', `Array.prototype.map = () => { throw new Error('no') }; console.log('a', 'b')`),
  ends(
    'polluted strings',
    `String.prototype.toString = () => ({}); String.prototype.valueOf = () => ({}); console.log('a'); 'x'`,
  ),
  ends(
    'polluted functions',
    `Function.prototype.call = Function.prototype.apply = () => { throw 1 }; await host('echo', '1')`,
  ),
  ends(
    'polluted errors',
    `Object.defineProperty(Error.prototype, 'message', { get() { throw 1 } }); await host('refuse', '')`,
  ),
  ends('an exception that cannot be shown', `throw new Proxy({}, { get() { throw new Error('no') } })`),
  fails('a host refusal of its own', `throw Object.assign(new Error('forged'), { code: 'ADMIN', line: 99 })`, {
    error: /forged/,
  }),
  gets('a frame in what it prints', 1, `console.log('\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02{}'); 1`),
  ends('a line feed in a name', `await host('echo\\nadmin', '1')`),
  ends('an empty name', `await host('', '1').catch((e) => e.code)`),
  gets('the realm again', 'undefined'.repeat(4), `typeof realm + typeof native + typeof finished + typeof answered`),
  ends('a frozen world', `Object.freeze(globalThis); Object.freeze(Object.prototype); await host('echo', '1')`),
  ends('deleted globals', `for (const key of Reflect.ownKeys(globalThis)) try { delete globalThis[key] } catch {}; 1`),
  ends('a result that changes while it is read', `let n = 0; ({ get a() { return n++ ? { a: this } : this } })`),
  ends('out of its function', `}) (); for (const x of [1]) { host('echo', '1') } (async () => { return 1`),
  ends('a directive that is none', `//# sourceMappingURL=/etc/passwd\n//# sourceURL=/etc/passwd\nthrow new Error('x')`),
]

/** Sources that make parsers fail, hang or grow. */
export const transpilerBombs: readonly Attack[] = [
  ...(
    [
      ['parentheses', '('.repeat(200_000)],
      ['brackets', '['.repeat(250_000)],
      ['braces', '{'.repeat(200_000)],
      ['types in types', `let a: ${'Array<'.repeat(40_000)}`],
      ['arrows', `${'x=>'.repeat(80_000)}1`],
      ['ambiguous generics', `${'a<b<'.repeat(25)}c`],
      ['ambiguous arrows', `${'(a?(b:c)=>d:'.repeat(40)}1`],
      ['conditional types', `type A<T> = ${'T extends string ? '.repeat(5000)}1`],
      ['negations', `${'!'.repeat(200_000)}1`],
      ['templates in templates', '`${'.repeat(60_000)],
      ['a union', `type U = ${'"x"|'.repeat(50_000)}"y"; 1`],
      ['decorators', `${'@a '.repeat(60_000)}class A {}`],
    ] as const
  ).flatMap(([title, code]) => [
    ends(`${title}, as TypeScript`, code, { language: 'typescript' }),
    ends(`${title}, as JavaScript`, code),
  ]),
  { title: 'a source that is too large', code: `1${' '.repeat(300_000)}`, status: ['refused'], error: /bytes/ },
]
