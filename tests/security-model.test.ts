import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { editorSchema } from '../src/config/editor-schema.ts'

const root = new URL('../', import.meta.url)
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8')

interface Row {
  readonly attacker: string
  readonly cells: readonly string[]
}

/** The rows of the tables in one chapter of the page, each with the heading above it. */
function rowsIn(chapter: string): Row[] {
  const [, text = ''] = textOf('docs/security-model.md').split(`\n## ${chapter}\n`)
  let attacker = ''
  const rows: Row[] = []
  for (const line of text.split(/\n## /)[0]?.split('\n') ?? []) {
    if (line.startsWith('### ')) attacker = line.slice(4)
    const cells = line.split('|').slice(1, -1)
    const isHead = cells[0]?.trim() === 'asset' || /^ ?-+ ?$/.test(cells[0] ?? '')
    if (cells.length > 0 && !isHead) rows.push({ attacker, cells: cells.map((cell) => cell.trim()) })
  }
  return rows
}

const attacks = rowsIn('Attacks')
const nameOf = ({ attacker, cells: [, attack] }: Row): string => `${attacker}: ${attack}`

/** The tests that a cell names: `[name](../path) "part of a title"`. */
const testsIn = (cell = '') =>
  [...cell.matchAll(/\[([^\]]+)\]\(\.\.\/([^)]+)\) "([^"]+)"/g)].map(([, label = '', path = '', title = '']) => ({
    label,
    path,
    title,
  }))

/** The titles in a test file: strings that are the first of several arguments. */
function titlesIn(text: string): string[] {
  const first = /\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1,/g
  return [...text.matchAll(first)].map(([, , title = '']) => title.replaceAll(/\\(.)/g, '$1'))
}

describe('the threat model', () => {
  const assets = ['tools', 'data', 'credentials', 'audit', 'machine', 'availability', 'definitions', 'dashboard']
  const attackers = [
    'A caller with a valid credential',
    'A caller without a credential',
    'A web page in a local browser',
    'A hostile or compromised server',
    'A hostile model or injected instructions',
    'A program in the sandbox',
    'Another user of the machine',
    'Somebody on the network path',
    'Somebody who can write to the state folder',
    'The supply chain',
  ]

  test('names every attacker and every asset, one asset in each row', () => {
    expect([...new Set(attacks.map(({ attacker }) => attacker))]).toEqual(attackers)
    expect(new Set(attacks.map(({ cells: [asset] }) => asset))).toEqual(new Set(assets))
    expect(attacks.filter(({ cells }) => cells.length !== 4 || cells.includes(''))).toEqual([])
    expect(attacks.length).toBeGreaterThanOrEqual(60)
  })

  test('each attack is in it once', () => {
    const names = attacks.map(nameOf)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  test.each(attacks.map((row) => [nameOf(row), row] as const))('a test proves that this is stopped: %s', (_, row) => {
    const named = testsIn(row.cells[3])
    expect(named).not.toEqual([])
    // Nothing else is in the cell, so that no test is overlooked because of a slip.
    expect(row.cells[3]?.split('"').length).toBe(named.length * 2 + 1)
    for (const { label, path, title } of named) {
      expect(path).toMatch(/^(src|web\/src|tests)\/.*\.test\.ts$/)
      expect(basename(path).replace(/\.(program|long)\./, '.')).toBe(`${label}.test.ts`)
      expect(
        titlesIn(textOf(path)).filter((one) => one.includes(title)),
        `${path}: ${title}`,
      ).not.toEqual([])
    }
  })

  test('its files and settings exist', () => {
    const words = attacks.flatMap(({ cells: [, , stop = ''] }) =>
      [...stop.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
    )
    const files = words.filter((word) => word.endsWith('.ts'))
    expect(files.filter((file) => !existsSync(new URL(`src/${file}`, root)))).toEqual([])
    const keys = words.filter((word) => /^[a-z]\w*(\.\w+)+(: .*)?$/i.test(word) && !word.endsWith('.ts'))
    expect(keys.filter((key) => !isSetting(key.replace(/: .*/, '')))).toEqual([])
    expect([files.length > 20, keys.length > 20]).toEqual([true, true])
  })

  test('accepted risks are in a table of their own', () => {
    const accepted = rowsIn('Accepted risks')
    expect(accepted.length).toBeGreaterThan(10)
    expect(accepted.filter(({ cells }) => cells.length !== 3 || cells.includes(''))).toEqual([])
  })
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}

const settings = editorSchema() as Schema

/** Whether a key can be configured. `NAME` stands for any name. */
function isSetting(key: string, schema = settings): boolean {
  const [step = '', ...rest] = key.split('.')
  const next = (one: Schema) => (step === 'NAME' ? one.additionalProperties : one.properties?.[step])
  const found = [schema, schema.items, ...(schema.anyOf ?? [])].flatMap((one) => (one && next(one)) ?? [])
  return rest.length === 0 ? found.length > 0 : found.some((one) => isSetting(rest.join('.'), one))
}

test('titles are found behind tables and on lines of their own, and other strings are not titles', () => {
  const quote = "'"
  const text = `test.each([${quote}row${quote}])(\n  ${quote}it${'\\'}${quote}s %s${quote},\n  () => expect(x).toBe(${quote}value${quote}))`
  expect(titlesIn(text)).toEqual(["it's %s"])
})

describe('the supply chain', () => {
  const { packages } = JSON.parse(textOf('package-lock.json')) as {
    packages: Record<
      string,
      { integrity?: string; link?: boolean; dev?: boolean; optional?: boolean; hasInstallScript?: boolean }
    >
  }
  const installed = Object.entries(packages).filter(([path, { link }]) => path.startsWith('node_modules/') && !link)
  const namesOf = (entries: typeof installed) => entries.map(([path]) => path)

  test('every package is locked by its hash, but for programs for other platforms that only developers use', () => {
    const unlocked = installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    expect(namesOf(unlocked.filter(([, { dev, optional }]) => !dev || !optional))).toEqual([])
    expect(installed.length - unlocked.length).toBeGreaterThan(200)
  })

  test('no package runs a script when it is installed', () => {
    expect(namesOf(installed.filter(([, { hasInstallScript }]) => hasInstallScript))).toEqual([])
  })

  test('dependencies have exact versions', () => {
    const { dependencies, devDependencies } = JSON.parse(textOf('package.json')) as Record<
      string,
      Record<string, string>
    >
    const versions = Object.entries({ ...dependencies, ...devDependencies })
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })
})

test('the dashboard never turns text into markup or code', () => {
  const dangerous =
    /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|eval|new Function)\b/
  const files = globSync('web/{src/**/*.{ts,tsx},*.html}', { cwd: root })
  expect(files.length).toBeGreaterThan(50)
  expect(files.filter((file) => !file.includes('.test.') && dangerous.test(textOf(file)))).toEqual([])
})
