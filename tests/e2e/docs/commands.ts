import { PassThrough, Readable } from 'node:stream'
import type { Command } from 'commander'
import { createProgram } from '../../../src/cli/program.ts'

/** How a page may spell the command line; `npm start --` has its first word with it. */
const spellings: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:npx )?toolway /, []],
  [/^npm run -s toolway -- /, []],
  [/^npm start -- /, ['serve']],
  [/^\S+\/src\/cli\/main\.ts /, []],
]

/** The words of every call of Toolway in a script. */
export function commandsIn(script: string): string[][] {
  const lines = script.replaceAll(/\\\n\s*/g, ' ').split('\n')
  return lines.flatMap(partsOf).flatMap((words) => {
    const line = `${words.join(' ')} `
    for (const [spelling, first] of spellings) {
      const [start] = spelling.exec(line) ?? []
      if (start !== undefined) return [[...first, ...words.slice(start.trim().split(' ').length)]]
    }
    return []
  })
}

/** The words of each command of a line: comments left out, quotes taken away, cut where a shell would. */
function partsOf(line: string): string[][] {
  const parts: string[][] = [[]]
  for (const [token] of line.matchAll(/#.*$|&&|\|\|?|;|\$\(|\)|(?:"[^"]*"|'[^']*'|[^\s"'|;&()])+|[<>&]/g)) {
    if (token.startsWith('#')) break
    if (/^(?:&&|\|\|?|;|\$\(|\)|&|[<>])$/.test(token)) parts.push([])
    else parts.at(-1)?.push(token.replaceAll(/["']/g, ''))
  }
  return parts.map(withoutVariables)
}

/** They may be set for one command alone; `ExecStart=` of a service looks the same. */
const withoutVariables = ([first = '', ...rest]: readonly string[]): string[] =>
  /^\w+=/.test(first) ? withoutVariables(rest) : [first, ...rest]

/** What is wrong with the words of a command; nothing where the program takes them. Prose may leave arguments out. */
export async function complaintOf(words: readonly string[], { inProse = false } = {}): Promise<string | undefined> {
  const nothing = new PassThrough()
  const interrupted = new AbortController().signal
  const streams = { stdin: Readable.from([]), stdout: nothing, stderr: nothing }
  const shell = { ...streams, env: {}, cwd: '/nowhere', command: 'toolway', program: [], interrupted }
  const program = createProgram(shell, () => {})
  tame(program)
  try {
    await program.parseAsync(words, { from: 'user' })
    return undefined
  } catch (thrown) {
    const { code = '', message } = thrown as { code?: string; message: string }
    const harmless = inProse ? [...help, ...incomplete] : help
    return harmless.includes(code) ? undefined : message
  }
}

const help = ['commander.helpDisplayed', 'commander.help', 'commander.version']
const incomplete = ['commander.missingArgument', 'commander.missingMandatoryOptionValue']

/** Nothing is done, printed or ended: the words are only understood, or not. */
function tame(command: Command): void {
  command.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} })
  if (command.commands.length === 0) command.action(() => {})
  for (const one of command.commands) tame(one)
}
