import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/**
 * Prints the size and shape of the source: `node tooling/structure.ts [--json] [--list]`. `--list` names the files
 * under 25 lines and the exported types that share a name. Tests, fixtures and contract suites do not count.
 */
const source = join(import.meta.dirname, '../src')
const isTest = /\.(test|fixture|contract|property)\.ts$/

const files = globSync('**/*.ts', { cwd: source })
  .filter((file) => !isTest.test(file))
  .sort()
  .map((path) => ({ path, text: readFileSync(join(source, path), 'utf8') }))
const lines = files.map(({ text }) => text.split('\n').length - 1).sort((a, b) => a - b)
const small = files.filter(({ text }) => text.split('\n').length - 1 < 25).map(({ path }) => path)

const importers = new Map<string, number>()
for (const { path, text } of files) {
  const imported = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, to]) =>
    join(dirname(path), to as string),
  )
  for (const to of new Set(imported.map(normalize))) importers.set(to, (importers.get(to) ?? 0) + 1)
}

const types = new Map<string, string[]>()
for (const { path, text } of files)
  for (const [, name = ''] of text.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm))
    types.set(name, [...(types.get(name) ?? []), path])
const sharedNames = [...types].filter(([, paths]) => paths.length > 1)

const folders = Object.fromEntries(
  [...Map.groupBy(files, ({ path }) => (path.includes('/') ? path.split('/')[0] : '(root)') as string)].map(
    ([folder, members]) => [folder, members.length],
  ),
)

const figures = {
  files: files.length,
  lines: lines.reduce((sum, count) => sum + count, 0),
  median: lines[Math.floor(lines.length / 2)],
  longest: lines.at(-1),
  under25: small.length,
  oneImporter: [...importers.values()].filter((count) => count === 1).length,
  sharedTypeNames: sharedNames.length,
  folders,
}

const { argv } = process
if (argv.includes('--json')) console.log(JSON.stringify(figures, undefined, 2))
else {
  console.log(`production files in src/: ${figures.files} (at most 700)`)
  console.log(`lines: ${figures.lines}; median ${figures.median} (70 to 120), longest ${figures.longest} (at most 500)`)
  console.log(`files under 25 lines: ${figures.under25} (at most 60)`)
  console.log(`files with exactly one importer: ${figures.oneImporter}`)
  console.log(`names of exported types that are used more than once: ${figures.sharedTypeNames} (none)`)
  const perFolder = Object.entries(folders).map(([name, count]) => `${name} ${count}`)
  console.log(`per folder: ${perFolder.join(', ')}`)
}
if (argv.includes('--list')) {
  for (const path of small) console.log(`under 25 lines: ${path}`)
  for (const [name, paths] of sharedNames) console.log(`type ${name}: ${paths.join(', ')}`)
}
