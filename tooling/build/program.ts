import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, type Plugin, type RolldownOutput, rolldown } from 'rolldown'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What is started by itself: others know these files by their names. */
const entries = [
  'index',
  'cli/main',
  'admin/thread/admin-thread',
  'tools/plugins/library',
  'tools/plugins/isolated/child',
]

/**
 * Each of these is one file, with all that its modules import and that is in none before it. What other processes and
 * threads need does not come with all that a gateway needs, nor does what all commands need.
 */
const together = [
  // What `main` needs before anything else is loaded, and before it is known that this Node can read the rest.
  { name: 'home', test: /src\/core\/home\.ts$/, priority: 6 },
  { name: 'start', test: /src\/(cli\/(run|interrupt)|core\/clock)\.ts$/, priority: 5 },
  // Never a module that does something when it is loaded, such as `isolated/child`: the gateway loads these files, too.
  { name: 'audit', test: /src\/audit\/(log-files|search\/search|verify\/verify)\.ts$/, priority: 4 },
  { name: 'plugins', test: /src\/tools\/plugins\/(library|load-module)\.ts$/, priority: 3 },
  { name: 'serve', test: /src\/cli\/commands\/serve\.ts$/, priority: 2 },
  { name: 'gateway', test: /src\/cli\/open\.ts$/, priority: 1 },
]

/**
 * What shares no file with the program. Children of the sandbox see one folder and nothing else of the package. The
 * history's thread needs a little of what the gateway has in one large file, which would take 12 MB of memory again.
 */
const onTheirOwn = ['sandbox/guest/main', 'stores/sqlite/history-thread']

/** Modules of Node that hide others behind some of their names: `node:http` a second HTTP client of 40 ms and 13 MB. */
const heavyModules = 'http|fs|util|process'
const isHeavy = new RegExp(`^\\0?node:(${heavyModules})$`)

/**
 * An import of such a module reads all of its names; here only those are read that somebody uses. The bundler applies the
 * filters itself: calling these functions for each import would take a fifth of its CPU time.
 */
export const readWhatIsUsed: Plugin = {
  name: 'read-what-is-used',
  resolveId: {
    filter: { id: isHeavy },
    handler: (id, _, { kind }) => (kind === 'import-statement' ? `\0${id}` : { id, external: true }),
  },
  load: {
    filter: { id: isHeavy },
    handler(id) {
      const name = id.slice(1)
      const read = (key: string) =>
        `const _${key} = /* @__PURE__ */ (() => whole.${key})()\nexport { _${key} as ${key} }`
      const keys = Object.keys(process.getBuiltinModule(name) as object)
      return [`const whole = process.getBuiltinModule('${name}')`, 'export default whole', ...keys.map(read)].join('\n')
    },
  },
}

/** Modules of Node that the plugin leaves as they are. */
export const external = new RegExp(`^node:(?!(${heavyModules})$)`)

/** The first reads files of its own package; the second is there where somebody has installed it. */
const apart = /^(libpg-query|node-llama-cpp)/

/**
 * Bundles the program into a folder; returns the modules that it contains. A few large files start in half the time that
 * hundreds of small ones need, and unused parts of dependencies are left out (docs/decisions/0019). `more` are further modules with files of their own, by their path in `src/`.
 */
export async function bundleProgram(out: string, more: readonly string[] = []): Promise<string[]> {
  rmSync(out, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries([...entries, ...more].map((name) => [name, `src/${name}.ts`])),
    platform: 'node',
    external: [apart, external],
    plugins: [readWhatIsUsed],
    // The other form of it loads its parts by names that only it knows.
    resolve: { alias: { 'jsonc-parser': join(root, 'node_modules/jsonc-parser/lib/esm/main.js') } },
  })
  const program = await bundle.write({
    dir: out,
    // V8 compiles functions that use variables of a large ES module more slowly, and Node takes longer to link it.
    format: 'cjs',
    strict: true,
    entryFileNames: '[name].cjs',
    // At the top of the folder, where src/runtime/package-paths.ts expects them.
    chunkFileNames: '[name]-[hash].cjs',
    comments: { jsdoc: false },
    // Left readable, for the sake of those who read a stack. The engine keeps the text, and any other letter would double it.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
    codeSplitting: { groups: together },
  })

  for (const file of program.output) if (file.type === 'chunk' && file.isEntry) writeModule(file, out)

  const alone: string[][] = []
  for (const name of onTheirOwn) alone.push(await bundleAlone(name, out))
  for (const file of ['package.json', 'python.py']) {
    cpSync(join(root, 'src/sandbox/guest', file), join(out, 'sandbox/guest', file))
  }

  return [...modulesOf(program.output), ...alone.flat()]
}

/** What the library says, instead of errors that do not help, where it cannot be loaded. */
const checks = [
  'if (Number.parseInt(process.versions.node, 10) < 24)',
  "  throw new Error('Toolway needs Node 24: this is Node ' + process.versions.node + '.')",
  "try { createRequire(import.meta.url).resolve('./index.cjs') } catch {",
  "  throw new Error('Toolway cannot be part of a bundle: mark the package toolway as external in your bundler.')",
  '}',
]

/** Writes an entry as the ES module that others import or run, next to its CommonJS module. */
function writeModule({ name, fileName, exports }: OutputChunk, out: string): void {
  const load = `createRequire(import.meta.url)('./${basename(fileName)}')`
  const lines = [
    ...(name === 'cli/main' ? ['#!/usr/bin/env node'] : []),
    "import { createRequire } from 'node:module'",
    ...(name === 'index' ? checks : []),
    exports.length === 0 ? load : `export const { ${exports.join(', ')} } = ${load}`,
  ]
  writeFileSync(join(out, `${name}.js`), lines.join('\n') + '\n')
}

/** Bundles a module and all that it imports into one file, even what the program has as well. */
async function bundleAlone(name: string, out: string): Promise<string[]> {
  const input = { [name]: `src/${name}.ts` }
  const bundle = await rolldown({ cwd: root, input, platform: 'node', external, plugins: [readWhatIsUsed] })
  const { output } = await bundle.write({ dir: out, format: 'esm', entryFileNames: '[name].js' })
  return modulesOf(output)
}

const modulesOf = (output: RolldownOutput['output']): string[] =>
  output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
