import { type Attack, fails, gets } from './attack.ts'

const nothing = 'undefined'

/** Ways out: through constructors and prototypes, host objects, imports, names that other engines have. */
export const javascriptEscapes: readonly Attack[] = [
  gets('the constructor of a function', nothing, `(() => {}).constructor('return typeof process')()`),
  gets('the constructor of a host function', nothing, `host.constructor('return typeof process')()`),
  gets('the constructor of a method of the console', nothing, `console.log.constructor('return typeof require')()`),
  gets(
    'the constructor of what a host function answers',
    nothing,
    `(await host('echo', '1')).constructor.constructor('return typeof process')()`,
  ),
  gets(
    'the constructor of the promise of an answer',
    nothing,
    `host('echo', '1').constructor.constructor('return typeof process')()`,
  ),
  gets(
    'the constructor of an error of the host',
    nothing,
    `try { await host('refuse', '') } catch (error) { error.constructor.constructor('return typeof process')() }`,
  ),
  gets(
    'the constructor of an error of the engine',
    nothing,
    `try { null.x } catch (error) { error.constructor.constructor('return typeof process')() }`,
  ),
  gets(
    'the constructor of a stack overflow',
    nothing,
    `const deep = () => deep(); try { deep() } catch (error) { error.constructor.constructor('return typeof process')() }`,
  ),
  gets(
    'frames of the stack through prepareStackTrace',
    [],
    `const seen = []
Error.prepareStackTrace = (error, frames) => { for (const frame of frames) seen.push(typeof frame.getThis?.()?.process) }
try { await host('refuse', '') } catch (error) { error.stack }
seen.filter((kind) => kind !== 'undefined')`,
  ),
  gets(
    'the caller of a host function',
    nothing,
    `function probe() { try { return typeof probe.caller?.caller } catch { return 'undefined' } } probe()`,
  ),
  gets(
    'names of other engines',
    [],
    `['process', 'require', 'module', 'global', 'Buffer', 'Deno', 'Bun', 'WebAssembly',
 'Worker', 'XMLHttpRequest', 'WebSocket', 'importScripts', 'std', 'os', 'bjson', 'scriptArgs', 'navigator', '__dirname']
  .filter((name) => name in globalThis || typeof globalThis[name] !== 'undefined')`,
  ),
  gets('sloppy this', nothing, `(function () { return typeof this.process })()`),
  gets('indirect eval', nothing, `(0, eval)('typeof process')`),
  gets('a generator function', nothing, `(function* () {}).constructor('yield typeof process')().next().value`),
  gets('an async function', nothing, `await (async () => {}).constructor('return typeof process')()`),
  gets(
    'everything that can be reached',
    [],
    `const seen = new Set(), found = [], row = [globalThis]
while (row.length > 0 && seen.size < 20000) {
  const value = row.pop()
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue
  seen.add(value)
  row.push(Object.getPrototypeOf(value))
  for (const key of Reflect.ownKeys(value)) {
    if (/^(process|require|mainModule|binding|dlopen|spawn|readFileSync|parentPort)$/.test(String(key))) found.push(key)
    const { value: inner, get, set } = Object.getOwnPropertyDescriptor(value, key)
    row.push(inner, get, set)
  }
}
found`,
  ),
  fails('import of a module of Node', `await import('node:fs')`, { error: /Modules are not supported/ }),
  fails('import of a module of the engine', `await import('std')`, { error: /Modules are not supported/ }),
  fails('import of a data address', `await import('data:text/javascript,export default 1')`, {
    error: /Modules are not supported/,
  }),
  fails('import of a file', `await import('/toolway/guest/main.ts')`, { error: /Modules are not supported/ }),
  fails('an import statement', `import fs from 'node:fs'\nfs.readdirSync('/')`),
  fails('import.meta', `import.meta.url`),
  fails('a file', `await readText('/etc/passwd')`, { error: /folders|files/ }),
  fails('a file through its neighbour', `await readText('/etc/../proc/self/environ')`, { error: /folders|files/ }),
  fails('a file with a zero', `await readText('/etc/passwd\\0.txt')`, { error: /absolute path/ }),
  fails('the network', `await fetch('http://127.0.0.1:22/')`, { error: /network|hosts/ }),
  fails('the metadata of a cloud', `await fetch('http://169.254.169.254/latest/meta-data/')`, {
    error: /network|hosts/,
  }),
  fails('a host function of the sandbox that is none', `await host('sandbox.exec', '{"command":"id"}')`, {
    error: /function sandbox\.exec/,
  }),
  fails('something else than text over the bridge', `await host(new Proxy({}, { get: () => () => 'x' }), {})`, {
    error: /two strings/,
  }),
  gets('text that is none', 'echo', `await host('echo', '"' + String.fromCharCode(0xd800) + '"'); 'echo'`),
  gets(
    'memory that others have left',
    0,
    `const bytes = new Uint8Array(256 * 1024); bytes.reduce((sum, byte) => sum + byte, 0)`,
  ),
]
