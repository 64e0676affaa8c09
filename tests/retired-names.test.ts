import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
/** Lines of `file BASENAME` or `name IDENTIFIER`; CONTRIBUTING.md has the words that replace them. */
const retired = readFileSync(join(import.meta.dirname, 'retired-names.txt'), 'utf8')
  .trim()
  .split('\n')
const names = retired.filter((line) => line.startsWith('name ')).map((line) => line.slice('name '.length))
const fileNames = new Set(retired.filter((line) => line.startsWith('file ')).map((line) => line.slice('file '.length)))
const files = globSync('src/**/*.ts', { cwd: root })

test('no file has a retired name', () => {
  const plain = (file: string) => basename(file).replace(/\..*$/, '')
  expect(files.filter((file) => fileNames.has(plain(file)))).toEqual([])
})

test('no declaration has a retired name', () => {
  const declared = new RegExp(`\\b(?:interface|type|class|function|const|let)\\s+(${names.join('|')})\\b`)
  const found = files.flatMap(
    (file) => declared.exec(readFileSync(join(root, file), 'utf8'))?.[0].concat(` in ${file}`) ?? [],
  )
  expect(found).toEqual([])
})

test('no two exported types share a name', () => {
  const types = new Map<string, string[]>()
  for (const file of files.filter((path) => !/\.(test|fixture|contract)\.ts$/.test(path)))
    for (const [, name = ''] of readFileSync(join(root, file), 'utf8').matchAll(
      /^export (?:interface|type|class) (\w+)/gm,
    ))
      types.set(name, [...(types.get(name) ?? []), file])
  expect([...types].filter(([, paths]) => paths.length > 1)).toEqual([])
})
