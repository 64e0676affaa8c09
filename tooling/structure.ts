import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'

/**
 * Prints the size and shape of the source: `node tooling/structure.ts [--json] [--list [folder]]`. `--list` names what
 * each figure counts. Tests, fixtures and contract suites do not count.
 */
const source = join(import.meta.dirname, '../src')
const isTest = /\.(test|fixture|contract|property)\.ts$/
const limits = { functionLines: 80, longestFunction: 120, optionMembers: 8 }
const optionsName = /(Options|Parts|Dependencies|Environment|Facts)$/
const participle =
  /^(?:[a-z]+ed|begun|bound|bought|built|chosen|cut|drawn|driven|fed|found|given|gone|grown|heard|held|hidden|kept|known|laid|left|lent|lost|made|meant|met|paid|put|read|run|said|seen|sent|set|shown|shut|spelt|spent|spoken|stood|sworn|taken|taught|thought|told|understood|won|worn|written)$/

interface Place {
  readonly path: string
  readonly name: string
  readonly count: number
}

interface SourceFile {
  readonly path: string
  readonly text: string
  readonly lines: number
}

type Node = { readonly name?: string } | null | undefined
const nameOf = (node: unknown): string => (node as Node)?.name ?? ''

export function readStructure() {
  const files = globSync('**/*.ts', { cwd: source })
    .filter((file) => !isTest.test(file))
    .sort()
    .map((path): SourceFile => {
      const text = readFileSync(join(source, path), 'utf8')
      return { path, text, lines: text.split('\n').length - 1 }
    })
  const names = new Map<string, Set<string>>()
  const types = new Map<string, Set<string>>()
  const functions: Place[] = []
  const options: Place[] = []
  const participles: Place[] = []
  for (const { path, text } of files) {
    const { program } = parseSync(path, text)
    for (const { name, isType, exported } of topLevelNames(program.body)) {
      addTo(names, name, path)
      if (isType && exported) addTo(types, name, path)
      if (!isType && participle.test(name)) participles.push({ path, name, count: 1 })
    }
    const lineAt = lineCounter(text)
    const measure = (name: string, { start, end }: { start: number; end: number }) =>
      functions.push({ path, name, count: lineAt(end) - lineAt(start) + 1 })
    const given = new Map<unknown, string>()
    const name = (value: unknown, key: unknown) => void given.set(value, nameOf(key))
    new Visitor({
      VariableDeclarator: ({ id, init }) => name(init, id),
      Property: ({ key, value }) => name(value, key),
      MethodDefinition: ({ key, value }) => name(value, key),
      PropertyDefinition: ({ key, value }) => name(value, key),
      FunctionDeclaration: (node) => measure(nameOf(node.id), node),
      FunctionExpression: (node) => measure(given.get(node) ?? nameOf(node.id), node),
      ArrowFunctionExpression: (node) => measure(given.get(node) ?? '', node),
      TSInterfaceDeclaration: ({ id, body }) => {
        if (optionsName.test(id.name)) options.push({ path, name: id.name, count: body.body.length })
      },
    }).visit(program)
  }
  const over = (places: Place[], most: number) =>
    places.filter(({ count }) => count > most).sort((one, other) => other.count - one.count)
  const shared = (places: Map<string, Set<string>>) =>
    [...places].filter(([, paths]) => paths.size > 1).sort(([, one], [, other]) => other.size - one.size)
  return {
    files,
    importers: countImporters(files),
    longFunctions: over(functions, limits.functionLines),
    largeOptions: over(options, limits.optionMembers),
    participles,
    sharedNames: shared(names),
    sharedTypes: shared(types),
  }
}

function* topLevelNames(body: ReturnType<typeof parseSync>['program']['body']) {
  for (const statement of body) {
    const exported = statement.type === 'ExportNamedDeclaration'
    const declaration = exported ? statement.declaration : statement
    if (declaration?.type === 'VariableDeclaration') {
      for (const { id } of declaration.declarations) {
        if (id.type === 'Identifier') yield { name: id.name, isType: false, exported }
      }
    } else if (declaration && 'id' in declaration && declaration.id) {
      yield { name: nameOf(declaration.id), isType: declaration.type !== 'FunctionDeclaration', exported }
    }
  }
}

function addTo(places: Map<string, Set<string>>, name: string, path: string): void {
  const paths = places.get(name) ?? new Set()
  places.set(name, paths.add(path))
}

function lineCounter(text: string): (offset: number) => number {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  return (offset) => starts.findLastIndex((start) => start <= offset)
}

function countImporters(files: readonly SourceFile[]): Map<string, number> {
  const importers = new Map<string, number>()
  for (const { path, text } of files) {
    const imported = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, to]) =>
      normalize(join(dirname(path), to as string)),
    )
    for (const to of new Set(imported)) importers.set(to, (importers.get(to) ?? 0) + 1)
  }
  return importers
}

function print(argv: readonly string[]): void {
  const { files, importers, longFunctions, largeOptions, participles, sharedNames, sharedTypes } = readStructure()
  const lines = files.map((file) => file.lines).sort((a, b) => a - b)
  const folderOf = (path: string) => (path.includes('/') ? (path.split('/')[0] as string) : '(root)')
  const folders = Object.fromEntries(
    [...Map.groupBy(files, ({ path }) => folderOf(path))].map(([folder, members]) => [
      folder,
      { files: members.length, lines: members.reduce((sum, file) => sum + file.lines, 0) },
    ]),
  )
  const figures = {
    files: files.length,
    lines: lines.reduce((sum, count) => sum + count, 0),
    median: lines[Math.floor(lines.length / 2)],
    longest: lines.at(-1),
    under25: lines.filter((count) => count < 25).length,
    oneImporter: [...importers.values()].filter((count) => count === 1).length,
    functionsOver80: longFunctions.length,
    functionsOver120: longFunctions.filter(({ count }) => count > limits.longestFunction).length,
    optionsOver8: largeOptions.length,
    participles: participles.length,
    sharedNames: sharedNames.length,
    sharedTypes: sharedTypes.length,
    folders,
  }
  if (argv.includes('--json')) console.log(JSON.stringify(figures, undefined, 2))
  else {
    console.log(`production files in src/: ${figures.files} (at most 630)`)
    console.log(`lines: ${figures.lines} (at most 89,000); median ${figures.median}, longest ${figures.longest}`)
    console.log(`files under 25 lines: ${figures.under25}; with exactly one importer: ${figures.oneImporter}`)
    console.log(
      `functions over 120 lines: ${figures.functionsOver120} (none), over 80: ${figures.functionsOver80} (20)`,
    )
    console.log(`option interfaces with more than 8 members: ${figures.optionsOver8}`)
    console.log(`top-level names that are participles: ${figures.participles}`)
    console.log(`top-level names with several definitions: ${figures.sharedNames} (under 350)`)
    console.log(`exported types with several definitions: ${figures.sharedTypes} (none)`)
    for (const [name, folder] of Object.entries(folders).sort(([, one], [, other]) => other.lines - one.lines))
      console.log(`  ${name.padEnd(10)} ${String(folder.lines).padStart(6)} lines in ${folder.files} files`)
  }
  if (!argv.includes('--list')) return
  const room = argv[argv.indexOf('--list') + 1] ?? ''
  for (const { path, lines } of files) if (lines < 25 && path.startsWith(room)) console.log(`under 25 lines: ${path}`)
  for (const [what, places] of Object.entries({
    function: longFunctions,
    options: largeOptions,
    participle: participles,
  }))
    for (const { path, name, count } of places)
      if (path.startsWith(room)) console.log(`${what} ${name || '(unnamed)'}: ${path} (${count})`)
  for (const [name, paths] of sharedNames)
    if ([...paths].some((path) => path.startsWith(room))) console.log(`name ${name}: ${[...paths].join(', ')}`)
}

if (import.meta.main) print(process.argv.slice(2))
