import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseAst } from 'rolldown/parseAst'
import { createChance } from '../tests/browser/stand-in/chance.ts'

/**
 * `npm run mutants [-- PATH…] [--count 20] [--seed 1] [--list]`: makes random mistakes in a copy of the sources, one at a
 * time, and says which of them no fast test notices. A path limits it to the files that begin with it. The same seed
 * makes the same mistakes in the same sources.
 */
const { values, positionals } = parseArgs({
  options: {
    count: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const root = fileURLToPath(new URL('..', import.meta.url))
/** A mistake may be an endless loop. */
const timeoutMs = 300_000

interface Mutant {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

const otherOperators: Readonly<Record<string, string>> = {
  ...{ '===': '!==', '!==': '===', '<': '<=', '<=': '<', '>': '>=', '>=': '>' },
  ...{ '+': '-', '-': '+', '*': '/', '/': '*', '%': '*' },
  ...{ '&&': '||', '||': '&&', '??': '&&' },
}

/** The wrong texts for one node of the syntax tree. */
function mistakesAt(node: Node, text: string): Omit<Mutant, 'file'>[] {
  const { type, start } = node
  const replace = ({ start, end }: Node, replacement: string) => ({ start, end, replacement })
  switch (type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const [left, right, operator] = [node.left as Node, node.right as Node, node.operator as string]
      const other = otherOperators[operator]
      const at = text.indexOf(operator, left.end)
      return other && at < right.start ? [{ start: at, end: at + operator.length, replacement: other }] : []
    }
    case 'UnaryExpression':
      return node.operator === '!' ? [{ start, end: start + 1, replacement: '' }] : []
    case 'IfStatement':
    case 'ConditionalExpression':
      return ['true', 'false'].map((value) => replace(node.test as Node, value))
    case 'ReturnStatement':
      return isNode(node.argument) ? [replace(node.argument, 'undefined')] : []
    case 'ExpressionStatement':
      // Does nothing instead. A directive does nothing anyway, and `super` must be called.
      return 'directive' in node || text.startsWith('super', start)
        ? []
        : [replace(node.expression as Node, 'undefined')]
    case 'Literal':
      if (typeof node.value === 'boolean') return [replace(node, String(!node.value))]
      return typeof node.value === 'number' ? [replace(node, String(node.value + 1))] : []
    default:
      return []
  }
}

function mutantsOf(file: string): Mutant[] {
  const text = stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'))
  const found: Mutant[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one)
    if (!isNode(value)) return
    // There is nothing to get wrong in the name of a module.
    if (value.type === 'ImportDeclaration') return
    for (const mistake of mistakesAt(value, text)) found.push({ file, ...mistake })
    for (const part of Object.values(value)) visit(part)
  }
  visit(parseAst(text))
  return found
}

function choose(count: number, seed: number): Mutant[] {
  const files = globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !/\.(test|fixture|contract|property)\.ts$|\.d\.ts$/.test(file))
    .filter((file) => positionals.length === 0 || positionals.some((path) => file.startsWith(path)))
  const all = files.sort().flatMap(mutantsOf)
  if (all.length === 0) throw new Error(`No source file in src/ begins with ${positionals.join(' or ')}.`)
  const { next } = createChance(seed)
  return Array.from({ length: Math.min(count, all.length) }, () =>
    all.splice(Math.floor(next() * all.length), 1),
  ).flat()
}

/** A copy of what git knows of this checkout, with the same packages. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'toolway-mutants-'))
  const names = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const name of names
    .toString()
    .split('\0')
    .filter((one) => one !== '' && existsSync(join(root, one)))) {
    mkdirSync(dirname(join(copy, name)), { recursive: true })
    cpSync(join(root, name), join(copy, name), { verbatimSymlinks: true })
  }
  mkdirSync(join(copy, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules')).filter((one) => !/^\.(cache|vite)/.test(one))) {
    symlinkSync(join(root, 'node_modules', name), join(copy, 'node_modules', name))
  }
  if (existsSync(join(root, 'web/dist'))) symlinkSync(join(root, 'web/dist'), join(copy, 'web/dist'))
  return copy
}

/**
 * What vitest says of failed tests; undefined if none failed. The tests see no process but their own and can write to the
 * copy and to temporary files alone: a mistake may stop the wrong process or delete the wrong file.
 */
function failuresOf(copy: string, tests: readonly string[]): string | undefined {
  if (tests.length === 0) return undefined
  const jail = ['--die-with-parent', '--unshare-pid', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc']
  // The checkout itself may be in one of the temporary folders.
  const writable = ['--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--ro-bind', root, root, '--bind', copy, copy]
  const vitest = [
    process.execPath,
    'node_modules/vitest/vitest.mjs',
    'run',
    '--bail=1',
    '--maxWorkers=2',
    '--reporter=agent',
  ]
  const { status, error, stdout, stderr } = spawnSync(
    'bwrap',
    [...jail, ...writable, '--chdir', copy, ...vitest, '--project=unit', '--project=web', ...tests],
    { timeout: timeoutMs, killSignal: 'SIGKILL', encoding: 'utf8', maxBuffer: 1 << 28, env: inCopy(copy) },
  )
  if (error && (error as NodeJS.ErrnoException).code !== 'ETIMEDOUT') throw error
  return status === 0 ? undefined : `${stdout}${stderr}`
}

const inCopy = (copy: string): NodeJS.ProcessEnv => ({ ...process.env, INIT_CWD: copy, TMPDIR: '/tmp' })

/** The tests that can notice a mistake in this file, in groups: those close to it first, because most are noticed there. */
function testsNear(copy: string, file: string): string[][] {
  const words = ['tooling/near.ts', '--list', file]
  const listed = execFileSync(process.execPath, words, { cwd: copy, encoding: 'utf8', env: inCopy(copy) })
  const near = listed.split('\n').filter((test) => /^(src|web)\/(?!.*\.program\.test\.ts$)/.test(test))
  const distance = (test: string) =>
    dirname(test) !== dirname(file) ? 2 : basename(test).startsWith(`${basename(file, '.ts')}.`) ? 0 : 1
  return [0, 1, 2].map((wanted) => near.filter((test) => distance(test) === wanted))
}

/** The line of a mutant before and after. */
function describeMutant({ file, start, end, replacement }: Mutant): string {
  const text = readFileSync(join(root, file), 'utf8')
  const lineStart = text.lastIndexOf('\n', start) + 1
  const lineEnd = text.indexOf('\n', end)
  const lines = `${text.slice(lineStart, start)}[${text.slice(start, end)} → ${replacement}]${text.slice(end, lineEnd)}`
  return `${file}:${text.slice(0, start).split('\n').length}  ${lines.trim().replaceAll(/\s+/g, ' ')}`
}

function tryMutants(copy: string, mutants: readonly Mutant[]): void {
  const failures = failuresOf(copy, ['src', 'web'])
  if (failures !== undefined) throw new Error(`Tests fail without any mistake:\n${failures}`)
  let noticed = 0
  for (const [index, mutant] of mutants.entries()) {
    const { file, start, end, replacement } = mutant
    const text = readFileSync(join(root, file), 'utf8')
    writeFileSync(join(copy, file), `${text.slice(0, start)}${replacement}${text.slice(end)}`)
    const isNoticed = testsNear(copy, file).some((tests) => failuresOf(copy, tests) !== undefined)
    writeFileSync(join(copy, file), text)
    if (isNoticed) noticed++
    const place = `${index + 1}/${mutants.length}`
    console.log(`${place} ${isNoticed ? 'noticed  ' : 'UNNOTICED'} ${describeMutant(mutant)}`)
  }
  console.log(`${noticed} of ${mutants.length} noticed.`)
}

function wholeNumber(option: 'count' | 'seed'): number {
  const given = values[option]
  if (!/^\d{1,9}$/.test(given)) throw new Error(`--${option} must be a whole number, not "${given}".`)
  return Number(given)
}

const mutants = choose(wholeNumber('count'), wholeNumber('seed'))
if (values.list) for (const mutant of mutants) console.log(describeMutant(mutant))
else {
  const copy = copyCheckout()
  try {
    tryMutants(copy, mutants)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
