import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findProgram, spawnArguments } from './programs.ts'

/** A Windows machine on which only these files exist. */
const windows = (files: readonly string[], env: Readonly<Record<string, string>> = {}) => ({
  platform: 'win32' as const,
  env: { Path: 'C:\\Windows\\system32;;C:\\Program Files\\nodejs', PATHEXT: '.COM;.EXE;.BAT;.CMD;.JS', ...env },
  isWanted: (path: string) => files.some((file) => file.toUpperCase() === path.toUpperCase()),
})

const npx = 'C:\\Program Files\\nodejs\\npx'
/** Node installs all three. */
const machine = windows([npx, `${npx}.cmd`, `${npx}.ps1`, 'C:\\Program Files\\nodejs\\node.exe'], {
  ComSpec: 'C:\\Windows\\system32\\cmd.exe',
})

describe('V18: commands on Windows', () => {
  test('npx is npx.cmd, which cmd.exe runs; a program is started itself, by its whole name', () => {
    expect(spawnArguments('npx', ['-y', '@scope/server', 'C:\\my data\\'], machine)).toEqual([
      'C:\\Windows\\system32\\cmd.exe',
      ['/d', '/e:on', '/v:off', '/s', '/c', `""${npx}.CMD" "-y" "@scope/server" "C:\\my data\\\\""`],
      { windowsVerbatimArguments: true },
    ])
    expect(spawnArguments('node', ['a b'], machine)).toEqual(['C:\\Program Files\\nodejs\\node.EXE', ['a b'], {}])
  })

  test('elsewhere, nothing is looked up or quoted', () => {
    const isWanted = () => expect.unreachable()
    expect(spawnArguments('npx', ['%PATH%'], { platform: 'linux', env: {}, isWanted })).toEqual(['npx', ['%PATH%'], {}])
  })

  test('a command is found by PATH and PATHEXT in any case, by its extension, and by its path from its folder', () => {
    expect(findProgram('NPX', machine)).toBe('C:\\Program Files\\nodejs\\NPX.CMD')
    expect(findProgram('npx.cmd', machine)).toBe(`${npx}.cmd`)
    expect(findProgram('npx.ps1', machine)).toBe(`${npx}.ps1`)
    const own = windows(['D:\\work\\server.bat', 'D:\\work\\run.me.exe', 'D:\\work\\tool.js'])
    expect(findProgram('.\\server', { ...own, cwd: 'D:\\work' })).toBe('D:\\work\\server.BAT')
    expect(findProgram('./run.me', { ...own, cwd: 'D:\\work' })).toBe('D:\\work\\run.me.EXE')
    // Neither the current folder nor scripts that only the shell can start.
    expect(findProgram('server', { ...own, cwd: 'D:\\work' })).toBeUndefined()
    expect(findProgram('.\\tool', { ...own, cwd: 'D:\\work' })).toBeUndefined()
    expect(findProgram('uvx', { ...windows(['E:\\uvx.EXE'], { PATH: 'E:\\' }) })).toBe('E:\\uvx.EXE')
  })

  test('a missing command is left to spawn, whose error says so', () => {
    expect(spawnArguments('uvx', ['x'], machine)).toEqual(['uvx', ['x'], {}])
  })

  test('an argument with a line break, at which cmd.exe would stop reading, is refused', () => {
    expect(() => spawnArguments('npx', ['a\nb'], machine)).toThrow('line break')
  })

  test('B6: whatever an argument is, cmd.exe sees no command in it, and the program gets it unchanged', () => {
    const nasty = [
      '%',
      '%PATH%',
      '%cd%',
      '"',
      '\\',
      '\\"',
      '^',
      '&',
      '|',
      '<',
      '>',
      '(',
      ')',
      '!',
      ' ',
      'x',
      '=',
      ';',
      ',',
    ]
    const word = fc
      .array(
        fc.oneof(
          fc.constantFrom(...nasty),
          fc.string().filter((text) => !/[\r\n\0]/.test(text)),
        ),
      )
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const [, shellWords] = spawnArguments('npx', words, machine)
        const line = afterExpansion(String(shellWords.at(-1)).slice(1, -1))
        expect(unquoted(line)).toMatch(/^ *$/)
        expect(programWords(line)).toEqual([`${npx}.CMD`, ...words])
      }),
    )
    const [, [, , , , , line = ''] = []] = spawnArguments('npx', ['" & calc & "', '%PATH%'], machine)
    expect(unquoted(afterExpansion(line.slice(1, -1)))).toBe('  ')
  })
})

/** What cmd.exe makes of %NAME%, also inside quotation marks: names of variables that exist, and `cd` with a range. */
const afterExpansion = (line: string): string =>
  line.replaceAll(/%([^%:]+)(:~,)?%/g, (whole, name: string, range?: string) =>
    range !== undefined && name === 'cd' ? '' : /^(PATH|cd)$/i.test(name) ? 'EXPANDED' : whole,
  )

/** What cmd.exe reads as a part of its own language. */
const unquoted = (line: string): string =>
  line
    .split('"')
    .filter((_, index) => index % 2 === 0)
    .join('')

/** The arguments as the runtime of C finds them in a command line. */
function programWords(line: string): string[] {
  const words: string[] = []
  let [word, isQuoted, hasWord] = ['', false, false]
  for (let at = 0; at < line.length; ) {
    const [backslashes = ''] = /^\\*/.exec(line.slice(at)) ?? []
    at += backslashes.length
    const isBeforeQuote = line[at] === '"'
    word += '\\'.repeat(isBeforeQuote ? backslashes.length / 2 : backslashes.length)
    const isLiteral = isBeforeQuote && backslashes.length % 2 === 1
    if (backslashes !== '') hasWord = true
    if (at >= line.length) break
    if (isBeforeQuote && !isLiteral) {
      hasWord = true
      if (isQuoted && line[at + 1] === '"') {
        word += '"'
        at++
      } else isQuoted = !isQuoted
    } else if (line[at] === ' ' && !isQuoted) {
      if (hasWord) words.push(word)
      ;[word, hasWord] = ['', false]
    } else {
      word += line[at]
      hasWord = true
    }
    at++
  }
  return hasWord ? [...words, word] : words
}
